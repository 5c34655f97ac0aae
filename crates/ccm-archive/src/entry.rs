//! One entry of an archive, independent of the format.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The system's own bounds on names.
const MAX_NAME: usize = 4096;
const MAX_PART: usize = 255;

/// One entry. Names are relative and lead nowhere else: they are made by
/// [`clean`].
#[derive(Clone, Debug, Hash)]
pub(crate) struct Entry {
    /// The empty name is the destination itself.
    pub(crate) name: PathBuf,
    pub(crate) kind: EntryKind,
    /// The twelve permission bits.
    pub(crate) mode: Mode,
    pub(crate) owner: Option<Owner>,
    /// Time of the last change, as seconds and nanoseconds since 1970.
    pub(crate) mtime: Option<(i64, u32)>,
    /// Bytes of a file, holes included.
    pub(crate) size: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Symlink(PathBuf),
    /// Another name for this one.
    HardLink(PathBuf),
}

/// Permission bits, and what becomes of them.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Restore modes in full as root; as another user, apply the umask.
    Tar(u32),
    /// Restore modes in full, regardless of the user running ccm.
    Exact(u32),
    /// Not known: what new files get.
    Unknown(u32),
}

impl Mode {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Tar(bits) | Self::Exact(bits) | Self::Unknown(bits) => bits,
        }
    }
}

/// Who owned a file where the archive was made.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) user: String,
    pub(crate) group: String,
}

/// A part of a file's content.
pub(crate) enum Piece<'a> {
    Data(&'a [u8]),
    /// This many zeros that take no room.
    Hole(u64),
}

/// The content of a file, piece by piece.
pub(crate) trait Contents {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> Result<Option<Piece<'_>>>;
}

/// Who sees the entries.
pub(crate) trait Visitor {
    fn visit(&mut self, entry: Entry, contents: &mut dyn Contents) -> Result<()>;
}

/// The contents of entries that have none, such as directories.
pub(crate) struct NoContents;

impl Contents for NoContents {
    fn next(&mut self) -> Result<Option<Piece<'_>>> {
        Ok(None)
    }
}

/// A name from an archive as a relative path without detours.
pub(crate) fn clean(bytes: &[u8]) -> Result<PathBuf> {
    let shown = Path::new(OsStr::from_bytes(bytes));
    if bytes.is_empty() {
        return Err(Error::refused(Path::new("?"), "an entry has no name"));
    }
    if bytes.contains(&0) {
        return Err(Error::refused(shown, "its name contains a NUL character"));
    }
    if bytes.starts_with(b"/") {
        return Err(Error::refused(shown, "its name is absolute"));
    }
    let mut name = PathBuf::with_capacity(bytes.len());
    for part in bytes.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(Error::refused(shown, "its name contains `..`")),
            part if part.len() > MAX_PART => {
                return Err(Error::refused(shown, "a part of its name is too long"));
            }
            part => name.push(OsStr::from_bytes(part)),
        }
    }
    if name.as_os_str().len() >= MAX_NAME {
        return Err(Error::refused(shown, "its name is too long"));
    }
    Ok(name)
}

/// Where a symbolic link leads, as it is written.
pub(crate) fn target(name: &Path, bytes: &[u8]) -> Result<PathBuf> {
    if bytes.is_empty() || bytes.len() >= MAX_NAME || bytes.contains(&0) {
        return Err(Error::refused(name, "it is a symlink without a valid target"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_and_without_detours() {
        for (name, wanted) in [
            ("a", Some("a")),
            ("./a//b/./c/", Some("a/b/c")),
            (".", Some("")),
            ("./", Some("")),
            ("...", Some("...")),
            ("a\\..\\b", Some("a\\..\\b")),
            ("", None),
            ("/", None),
            ("/a", None),
            ("//a", None),
            ("..", None),
            ("a/..", None),
            ("a/../b", None),
            ("./../a", None),
            ("a\0b", None),
        ] {
            let found = clean(name.as_bytes()).ok();
            assert_eq!(found.as_deref(), wanted.map(Path::new), "{name:?}");
        }
        assert!(clean(&[b'x'; 256]).is_err());
        assert!(clean("x/".repeat(2100).as_bytes()).is_err());
    }
}
