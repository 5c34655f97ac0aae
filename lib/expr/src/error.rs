//! What can go wrong, and where in the expression it did.

use std::fmt;
use std::ops::Range;

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
    /// The expression is too large, or wants more memory or steps than allowed.
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
    span: Range<usize>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, span: Span) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), span: span.range(), source: None }))
    }

    pub(crate) fn function(
        name: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
        span: Span,
    ) -> Self {
        Self(Box::new(Inner {
            kind: ErrorKind::Function,
            message: format!("{name}: {source}"),
            span: span.range(),
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
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    /// Shows the failure with the line of the expression and a caret under the
    /// place. `source` is the text that was compiled.
    ///
    /// ```
    /// use expr::{Environment, Program};
    ///
    /// let error = Program::compile("1 + nope", &Environment::new()).unwrap_err();
    /// assert_eq!(error.snippet("1 + nope").to_string(), "unknown name nope (1:5)\n | 1 + nope\n |     ^^^^");
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
        // A span of another text must not make the report itself fail.
        let start = floor(self.source, self.error.0.span.start);
        let end = floor(self.source, self.error.0.span.end).max(start);
        let line_start = self.source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.source[start..].find('\n').map_or(self.source.len(), |at| start + at);
        let line = self.source[..line_start].matches('\n').count() + 1;
        let before = self.source[line_start..start].chars();
        let column = before.clone().count() + 1;
        let marked = self.source[start..end.min(line_end).max(start)].chars().count().max(1);
        writeln!(f, "{} ({line}:{column})", self.error.0.message)?;
        writeln!(f, " | {}", &self.source[line_start..line_end])?;
        // Tabs are kept, so that the caret stands where the text does.
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, " | {indent}{}", "^".repeat(marked))
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A range of bytes in the expression, small enough to keep for every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_finds_its_line() {
        let error = Error::new(ErrorKind::Type, "no", Span::new(7, 9));
        assert_eq!(error.snippet("let\n\té = 1").to_string(), "no (2:3)\n | \té = 1\n | \t ^^");
        assert_eq!(error.snippet("").to_string(), "no (1:1)\n | \n | ^");
    }
}
