//! Errors of facts.

use std::sync::Arc;

use ccm_model::Finding;
use ccm_yaml::Source;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file or an argument gave no facts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read facts")]
    Read {
        /// The error of the host.
        #[from]
        source: ccm_host::Error,
    },
    /// The text is neither JSON nor YAML, or no map.
    #[error("{}: {}", place(document, finding), finding.message)]
    Syntax {
        /// The facts file, which ccm ignores then.
        document: Arc<Source>,
        /// Why the parser rejects it, and where.
        finding: Box<Finding>,
    },
    /// An argument that is not `name=value`.
    #[error("`{argument}` is not a fact")]
    Argument {
        /// The argument as it was given.
        argument: String,
    },
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source: ccm_host::Error::Symlink { .. } } => {
                Some("replace the symlink with the file itself".to_owned())
            }
            Self::Read { source } => source.hint(),
            Self::Argument { .. } => Some("write it as `name=value` or `a.b=value`".to_owned()),
            Self::Syntax { finding, .. } => finding.hint.clone(),
        }
    }
}

fn place(document: &Source, finding: &Finding) -> String {
    let position = document.position(finding.span.unwrap_or_default().start);
    format!("{}:{}:{}", document.name(), position.line, position.column)
}
