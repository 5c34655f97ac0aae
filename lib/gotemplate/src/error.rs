//! What can go wrong, and where in the template it did.

use std::error::Error as StdError;
use std::fmt;

use govalue::{Excerpt, Span};

/// The sort of a failure, for callers that treat some of them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not a template.
    Syntax,
    /// A function that is neither built in nor registered.
    UndefinedFunction,
    /// A variable that was never declared.
    UndefinedVariable,
    /// A template that was never defined.
    UndefinedTemplate,
    /// Too many or too few arguments, or arguments of the wrong type.
    Arguments,
    /// A field, a loop or a value where its type does not allow one.
    Type,
    /// A function said no.
    Function,
    /// The template does more than the [`Limits`](crate::Limits) allow, or was
    /// interrupted.
    Limit,
}

/// Why a template could not be parsed or rendered.
///
/// Its `Display` shows the source line with a caret under the place:
///
/// ```text
/// expected string; found 1
///  --> nginx.conf:1:10
///   |
/// 1 | {{ upper 1 }}
///   |          ^
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    template: String,
    span: Span,
    excerpt: Excerpt,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(fail: Fail, template: &str, text: &str, span: Span) -> Self {
        Self(Box::new(Inner {
            kind: fail.kind,
            message: fail.message,
            template: template.to_owned(),
            span,
            excerpt: Excerpt::new(template, text, span),
            cause: fail.cause,
        }))
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without the location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The name of the template's source.
    pub fn template(&self) -> &str {
        &self.0.template
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.0.excerpt.line()
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.0.excerpt.column()
    }

    /// The bytes of the template that are at fault.
    pub fn span(&self) -> Span {
        self.0.span
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.0.message, self.0.excerpt)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("template", &self.0.template)
            .field("span", &self.0.span)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

/// A failure whose place is not known yet.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Fail {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None }
    }

    /// What a function of the caller's says; a template it rendered says it
    /// in one line, and a limit stays a limit.
    pub(crate) fn from_host(name: &str, cause: Box<dyn StdError + Send + Sync>) -> Self {
        let (kind, reason) = match cause.downcast_ref::<Error>().map(|inner| &*inner.0) {
            Some(inner) => {
                let Inner { template, excerpt, message, .. } = inner;
                let (line, column) = (excerpt.line(), excerpt.column());
                let kind = match inner.kind {
                    ErrorKind::Limit => ErrorKind::Limit,
                    _ => ErrorKind::Function,
                };
                (kind, format!("{template}:{line}:{column}: {message}"))
            }
            None => (ErrorKind::Function, cause.to_string()),
        };
        Self { kind, message: format!("error calling {name}: {reason}"), cause: Some(cause) }
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Arguments, message)
    }
}

/// What a function says when it cannot go on.
impl From<String> for Fail {
    fn from(message: String) -> Self {
        Self::new(ErrorKind::Function, message)
    }
}

impl From<&str> for Fail {
    fn from(message: &str) -> Self {
        Self::new(ErrorKind::Function, message)
    }
}
