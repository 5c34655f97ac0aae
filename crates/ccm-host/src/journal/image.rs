//! What is at a path, and how it is written to a journal.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Attributes, Digest, FileKind, Stat};

/// The state of a path, in enough detail to restore it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its owner, group and all twelve permission bits.
        attributes: Attributes,
        /// Its size in bytes.
        size: u64,
        /// SHA-256 digest of its content; `None` if the content was not read.
        digest: Option<Digest>,
    },
    /// A directory, without what is in it.
    Directory {
        /// Its owner, group and all twelve permission bits.
        attributes: Attributes,
    },
    /// A symlink.
    Symlink {
        /// Numeric ID of the owner.
        uid: u32,
        /// Numeric ID of the group.
        gid: u32,
        /// Target of the symlink.
        target: PathBuf,
    },
    /// A socket, FIFO or device.
    Other,
}

/// How images are written: short, as there may be many.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ImageRecord<'a> {
    Absent,
    File(u32, u32, u32, u64, Option<Digest>),
    Directory(u32, u32, u32),
    Symlink(u32, u32, #[serde(with = "path_text")] Cow<'a, Path>),
    Other,
}

impl Serialize for Image {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Absent => ImageRecord::Absent,
            Self::File { attributes: Attributes { uid, gid, mode }, size, digest } => {
                ImageRecord::File(*uid, *gid, *mode, *size, *digest)
            }
            Self::Directory { attributes: Attributes { uid, gid, mode } } => {
                ImageRecord::Directory(*uid, *gid, *mode)
            }
            Self::Symlink { uid, gid, target } => {
                ImageRecord::Symlink(*uid, *gid, Cow::Borrowed(target))
            }
            Self::Other => ImageRecord::Other,
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Ok(match ImageRecord::deserialize(from)? {
            ImageRecord::Absent => Self::Absent,
            ImageRecord::File(uid, gid, mode, size, digest) => {
                Self::File { attributes: Attributes { uid, gid, mode }, size, digest }
            }
            ImageRecord::Directory(uid, gid, mode) => {
                Self::Directory { attributes: Attributes { uid, gid, mode } }
            }
            ImageRecord::Symlink(uid, gid, target) => {
                Self::Symlink { uid, gid, target: target.into_owned() }
            }
            ImageRecord::Other => Self::Other,
        })
    }
}

impl Image {
    /// A regular file.
    pub(crate) fn file(attributes: Attributes, size: u64, digest: Option<Digest>) -> Self {
        Self::File { attributes, size, digest }
    }

    /// Owner, group and mode, of what has all three.
    pub fn attributes(&self) -> Option<Attributes> {
        match self {
            Self::File { attributes, .. } | Self::Directory { attributes } => Some(*attributes),
            Self::Absent | Self::Symlink { .. } | Self::Other => None,
        }
    }

    /// The digest of the content, of a file that was read.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => *digest,
            _ => None,
        }
    }

    /// Whether something looks the same. A digest that is not known equals
    /// every digest, and the owner of a symlink means nothing.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { attributes, size, digest }, Self::File { .. }) => {
                let digests = digest.zip(other.digest());
                let is_same_size = matches!(other, Self::File { size: it, .. } if it == size);
                is_same_size
                    && other.attributes() == Some(*attributes)
                    && digests.is_none_or(|(one, other)| one == other)
            }
            (Self::Symlink { target, .. }, Self::Symlink { target: other, .. }) => target == other,
            (one, other) => one == other,
        }
    }

    pub(super) fn of(stat: &Stat) -> Self {
        let attributes = stat.attributes();
        match stat.kind {
            FileKind::File => Self::file(attributes, stat.size, None),
            FileKind::Directory => Self::Directory { attributes },
            FileKind::Symlink | FileKind::Other => Self::Other,
        }
    }
}

/// Paths as text. One that is no text is written in hexadecimal digits behind a
/// zero, which no path contains.
pub mod path_text {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    /// Writes a path.
    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => to.serialize_str(text),
            None => {
                let bytes = path.as_os_str().as_bytes();
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                to.serialize_str(&format!("\0{digits}"))
            }
        }
    }

    /// Reads a path.
    pub fn deserialize<'de, P, D>(from: D) -> Result<P, D::Error>
    where
        P: From<PathBuf>,
        D: Deserializer<'de>,
    {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        let Some(digits) = text.strip_prefix('\0') else {
            return Ok(PathBuf::from(text.as_ref()).into());
        };
        let pair = |at: usize| {
            let pair = digits.get(at..at + 2).ok_or_else(|| D::Error::custom("half a byte"))?;
            u8::from_str_radix(pair, 16).map_err(D::Error::custom)
        };
        let bytes: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(pair).collect();
        Ok(PathBuf::from(std::ffi::OsString::from_vec(bytes?)).into())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn paths_that_are_no_text_come_back() {
        #[derive(Serialize, Deserialize)]
        struct Wrapped(#[serde(with = "path_text")] PathBuf);
        for bytes in [&b"/plain"[..], b"/\xfe/x", "/ü".as_bytes()] {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            let json = serde_json::to_string(&Wrapped(path.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Wrapped>(&json).unwrap().0, path, "{json}");
        }
        for wrong in ["\"\\u00000\"", "\"\\u0000zz\"", "\"\\u0000é\""] {
            assert!(serde_json::from_str::<Wrapped>(wrong).is_err(), "{wrong}");
        }
    }
}
