//! What can be wrong with a template.

use ccm_model::TemplateError;

use crate::placeholder::TooTangled;

/// Why a template could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An expression cannot be compiled, or failed when it ran.
    #[error("{}", source.snippet(expression))]
    Expression {
        /// The expression.
        expression: String,
        /// What is wrong with it, and where.
        source: expr::Error,
    },
    /// A placeholder with nothing in it.
    #[error("an empty placeholder: there is no expression in `{placeholder}`")]
    Empty {
        /// The placeholder.
        placeholder: String,
    },
    /// A condition that is neither true nor false.
    #[error("`{expression}` must be true or false, but is {found}")]
    NotBoolean {
        /// The expression.
        expression: String,
        /// What it is instead.
        found: String,
    },
    /// A result that text cannot hold.
    #[error("the result of `{template}` is not UTF-8")]
    NotText {
        /// The beginning of the template.
        template: String,
    },
    /// A Jet template that cannot be parsed, or failed when it was rendered.
    #[error(transparent)]
    Jet(#[from] jet::Error),
    /// A file that a template names.
    #[error("{message}")]
    File {
        /// What is wrong with it.
        message: String,
    },
    /// A path into the data that leads nowhere.
    #[error("nothing is found under the key `{key}`")]
    Missing {
        /// The path.
        key: String,
    },
    /// A path that cannot be evaluated.
    #[error("the key `{key}` cannot be looked up: {source}")]
    Path {
        /// The path.
        key: String,
        /// Why.
        source: gjson::Error,
    },
    /// Placeholders that nobody can follow.
    #[error(transparent)]
    Tangled(#[from] TooTangled),
    /// A template that wants more than any sensible one.
    #[error("{what}")]
    Limit {
        /// Which bound was met.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn expression(expression: &str, source: expr::Error) -> Self {
        Self::Expression { expression: expression.to_owned(), source }
    }

    /// The error within the message of another, on as few lines as possible.
    pub(crate) fn nested(&self) -> String {
        match self {
            Self::Expression { expression, source } => {
                format!("in `{}`: {}", beginning(expression), source.message())
            }
            other => other.to_string(),
        }
    }
}

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        Self { message: error.to_string() }
    }
}

/// As much of a text as fits into a message.
pub(crate) fn beginning(text: &str) -> String {
    const FITS: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(FITS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_templates_are_cut_in_messages() {
        assert_eq!(beginning("short"), "short");
        assert_eq!(beginning("one\ntwo"), "one…");
        assert_eq!(beginning(&"é".repeat(100)).chars().count(), 61);
    }
}
