//! What can keep a path from being evaluated.

use std::fmt;

use govalue::json::Unsupported;

/// Why a path could not be evaluated. A path that finds nothing is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The path or the data is nested more deeply than any sensible one.
    TooDeep,
    /// The path makes more text, or reads the text more often, than is allowed.
    TooMuchWork,
    /// The dynamic value has no form in JSON.
    Unsupported(Unsupported),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => f.write_str("the path or its data is nested too deeply"),
            Self::TooMuchWork => f.write_str("the path takes too much work to evaluate"),
            Self::Unsupported(_) => f.write_str("the data cannot be written as JSON"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unsupported(source) => Some(source),
            Self::TooDeep | Self::TooMuchWork => None,
        }
    }
}

impl From<Unsupported> for Error {
    fn from(source: Unsupported) -> Self {
        Self::Unsupported(source)
    }
}
