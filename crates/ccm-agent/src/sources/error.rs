//! Errors of sources.

use std::path::PathBuf;
use std::time::Duration;

/// A result of the sources.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a source or the cache cannot be used. Displayed, it never shows
/// credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another agent has locked the cache.
    #[error("another agent uses {}{}", path.display(), shown(holder.as_ref()))]
    CacheInUse {
        /// The directory.
        path: PathBuf,
        /// The process that holds the lock, if known.
        holder: Option<ccm_host::LockHolder>,
    },
    /// The cache cannot be opened.
    #[error("cannot use {} as `cache_dir`", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// What the machine said.
        source: ccm_host::Error,
    },
    /// Two sources would have their copies in one directory.
    #[error("{source_name} is already a source of this agent")]
    Twice {
        /// The source, without credentials.
        source_name: String,
    },
    /// A check failed.
    #[error("{message}")]
    Look {
        /// The failed action and its reason.
        message: String,
    },
    /// A check took too long.
    #[error("cannot download {source_name}: no answer within {}s", limit.as_secs())]
    Late {
        /// The source, without credentials.
        source_name: String,
        /// How long it may take.
        limit: Duration,
    },
    /// Nothing can be watched.
    #[error("cannot watch sources: {reason}")]
    Start {
        /// The error of the system call.
        reason: String,
    },
    /// The machine said no.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

fn shown(holder: Option<&ccm_host::LockHolder>) -> String {
    holder.map(|holder| format!(": {holder}")).unwrap_or_default()
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CacheInUse { .. } => {
                Some("stop the other agent, or give this one another `cache_dir`".to_owned())
            }
            Self::Cache { source: ccm_host::Error::SharedState { doubt, .. }, .. } => {
                Some(format!("choose another `cache_dir`, or make {} safe", doubt.path.display()))
            }
            Self::Cache { .. } => Some("choose another `cache_dir`".to_owned()),
            Self::Host(error) => error.hint(),
            Self::Twice { .. } | Self::Look { .. } | Self::Late { .. } | Self::Start { .. } => None,
        }
    }
}
