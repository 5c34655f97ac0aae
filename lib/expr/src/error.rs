//! What can go wrong, and where in the expression it did.

use std::fmt;

use govalue::{Excerpt, Span};

/// The phase and sort of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not an expression.
    Syntax,
    /// A name is neither in the environment nor declared.
    UnknownName,
    /// An operator, function or member does not fit its operands' types.
    Type,
    /// A value met while running does not fit.
    Value,
    /// A function of the environment failed.
    Function,
    /// The expression is too large, or wants more memory or steps than allowed,
    /// or was interrupted.
    Budget,
}

/// A failure to compile or run an expression.
///
/// As small as a pointer, because it travels through every level of a parser.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    span: Span,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, span: Span) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), span, source: None }))
    }

    pub(crate) fn function(
        name: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
        span: Span,
    ) -> Self {
        Self(Box::new(Inner {
            kind: ErrorKind::Function,
            message: format!("{name}: {source}"),
            span,
            source: Some(source),
        }))
    }

    /// The sort of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without the location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The bytes of the expression that the failure is about.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// Shows the failure with the line of the expression and a caret under the
    /// place. `source` is the text that was compiled.
    ///
    /// ```
    /// use expr::{Environment, Program};
    ///
    /// let error = Program::compile("1 + nope", &Environment::new()).unwrap_err();
    /// assert_eq!(
    ///     error.snippet("1 + nope").to_string(),
    ///     "unknown name nope\n --> expression:1:5\n  |\n1 | 1 + nope\n  |     ^^^^"
    /// );
    /// ```
    pub fn snippet<'a>(&'a self, source: &'a str) -> Snippet<'a> {
        Snippet { error: self, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// A failure shown in its expression; made by [`Error::snippet`].
#[derive(Clone, Copy, Debug)]
pub struct Snippet<'a> {
    error: &'a Error,
    source: &'a str,
}

impl fmt::Display for Snippet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excerpt = Excerpt::new("expression", self.source, self.error.span());
        write!(f, "{}\n{excerpt}", self.error.0.message)
    }
}
