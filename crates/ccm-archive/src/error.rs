//! Errors of extractions.

use std::io;
use std::path::Path;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How the reason begins where something else was sent in the place of an archive.
const NOT_A: &str = "not a ";

/// The reason where a file would run with the rights of its owner.
pub(crate) const SET_ID: &str = "it has a setuid or setgid bit";

/// Why an archive was not extracted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be read.
    #[error("cannot extract {archive}: {reason}")]
    Damaged {
        /// The path or URL of the archive, without credentials.
        archive: String,
        /// The reason.
        reason: String,
    },
    /// It contains an entry that ccm refuses.
    #[error("refusing to extract {archive}: {entry}: {reason}")]
    Refused {
        /// The path or URL of the archive, without credentials.
        archive: String,
        /// Which entry, as far as it is known.
        entry: String,
        /// The reason.
        reason: String,
    },
    /// It exceeds a limit.
    #[error("refusing to extract {archive}: {reason}")]
    Excessive {
        /// The path or URL of the archive, without credentials.
        archive: String,
        /// The limit, and what exceeded it.
        reason: String,
    },
    /// The address does not name a tar archive of a known kind.
    #[error("archive type not supported: {name}")]
    Unsupported {
        /// The file name, which has no known ending.
        name: String,
    },
    /// The run was interrupted.
    #[error("extraction of {archive} was interrupted")]
    Interrupted {
        /// The path or URL of the archive, without credentials.
        archive: String,
    },
    /// An error from `ccm_host`, such as a failed system call.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { reason, .. } if reason.starts_with(NOT_A) => {
                Some("check the URL; the server may have sent an error page".to_owned())
            }
            Self::Damaged { .. } => Some("download or build the archive again".to_owned()),
            Self::Refused { reason, .. } if reason == SET_ID => {
                let words = "nothing was written; if you trust the archive, set `allow_setuid`";
                Some(words.to_owned())
            }
            Self::Refused { .. } => {
                Some("nothing was written; extract only archives from sources you trust".to_owned())
            }
            Self::Unsupported { .. } => {
                Some(format!("supported: {}", crate::Format::known_tarballs()))
            }
            Self::Host(error) => error.hint(),
            Self::Excessive { .. } | Self::Interrupted { .. } => None,
        }
    }

    pub(crate) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged { archive: String::new(), reason: reason.into() }
    }

    pub(crate) fn not_a(kind: &str, size: u64) -> Self {
        Self::damaged(format!("{NOT_A}{kind} file ({size} bytes)"))
    }

    pub(crate) fn excessive(reason: impl Into<String>) -> Self {
        Self::Excessive { archive: String::new(), reason: reason.into() }
    }

    pub(crate) fn refused(entry: &Path, reason: impl Into<String>) -> Self {
        // Names are chosen by strangers and read on terminals.
        let entry = entry.display().to_string().escape_debug().to_string();
        Self::Refused { archive: String::new(), entry, reason: reason.into() }
    }

    pub(crate) fn interrupted() -> Self {
        Self::Interrupted { archive: String::new() }
    }

    /// The same, of this archive.
    pub(crate) fn of(mut self, name: &str) -> Self {
        match &mut self {
            Self::Damaged { archive, .. }
            | Self::Refused { archive, .. }
            | Self::Excessive { archive, .. }
            | Self::Interrupted { archive } => name.clone_into(archive),
            Self::Unsupported { .. } | Self::Host(_) => {}
        }
        self
    }
}

/// What a decoder says of its input.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::damaged("it is truncated");
        }
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::damaged(error.to_string()),
        }
    }
}
