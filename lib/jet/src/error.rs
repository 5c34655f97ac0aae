//! What goes wrong, and where.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use govalue::{Excerpt, Span};

use crate::source::Source;

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template cannot be read.
    Syntax,
    /// A name that is neither a variable nor a function.
    UnknownName,
    /// A member, index or slice that is not there.
    Missing,
    /// A value of the wrong sort, such as a list where a number is needed.
    Type,
    /// A division by zero.
    Arithmetic,
    /// A call with the wrong number or sort of arguments.
    Arguments,
    /// A function of the caller's failed; see the error's source.
    Function,
    /// A template or block that cannot be found.
    NotFound,
    /// A bound was reached: recursion, steps or output; or the rendering was
    /// interrupted. `try` does not catch these.
    Limit,
}

/// Why a template could not be parsed or rendered.
///
/// Its `Display` shows the place, with a caret under it:
///
/// ```
/// let error = jet::Set::new().parse("motd", "hello {{ if }}").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "unexpected `}}` in if: an expression is missing\n \
///      --> motd:1:13\n  \
///        |\n\
///      1 | hello {{ if }}\n  \
///        |             ^^"
/// );
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    source: Arc<Source>,
    span: Span,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        message: impl Into<String>,
        source: &Arc<Source>,
        span: Span,
    ) -> Self {
        let (message, source) = (message.into(), Arc::clone(source));
        Self(Box::new(Inner { kind, message, source, span, cause: None }))
    }

    pub(crate) fn caused_by(mut self, cause: Box<dyn StdError + Send + Sync>) -> Self {
        self.0.cause = Some(cause);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without the location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The name of the template.
    pub fn file(&self) -> &str {
        &self.0.source.name
    }

    /// The bytes of the template that are at fault.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// The line of the template, with its number.
    pub fn excerpt(&self) -> Excerpt {
        Excerpt::new(&self.0.source.name, &self.0.source.text, self.0.span)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.0.message, self.excerpt())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_can_cross_threads() {
        fn shareable<T: Send + Sync>() {}
        shareable::<Error>();
    }
}
