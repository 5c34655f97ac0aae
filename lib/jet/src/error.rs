//! What goes wrong, and where.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::source::{Source, Span};

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
    /// A bound was reached: recursion, steps or output. `try` does not catch
    /// these.
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

/// How much of a long source line is shown on either side of the place.
const EXCERPT: usize = 60;

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

    /// The line in the template, from 1.
    pub fn line(&self) -> usize {
        self.0.source.locate(self.0.span.start).0
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.source.locate(self.0.span.start).1
    }

    /// The text of the line.
    pub fn source_line(&self) -> &str {
        self.0.source.locate(self.0.span.start).2
    }

    /// How many characters of the line are at fault.
    pub fn width(&self) -> usize {
        self.0.source.width(self.0.span)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column, text) = self.0.source.locate(self.0.span.start);
        let skipped = (column - 1).saturating_sub(EXCERPT);
        let shown: String = text.chars().skip(skipped).take(2 * EXCERPT).collect();
        let shown = shown.trim_end();
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // Tabs stay tabs, so that the caret stands where the eye expects it.
        let indent: String = text
            .chars()
            .skip(skipped)
            .take(column - 1 - skipped)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let room = shown.chars().count().saturating_sub(column - 1 - skipped).max(1);
        let carets = "^".repeat(self.width().min(room));
        writeln!(f, "{}", self.0.message)?;
        writeln!(f, "{margin}--> {}:{line}:{column}", self.0.source.name)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {shown}")?;
        write!(f, "{margin} | {indent}{carets}")
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

    fn error(text: &str, start: usize, end: usize) -> Error {
        let source = Arc::new(Source { name: "t".into(), text: text.into() });
        Error::new(ErrorKind::Type, "wrong", &source, Span::new(start, end))
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let shown = error("a\n\té [[ x ]]", 9, 10).to_string();
        assert_eq!(shown, "wrong\n --> t:2:7\n  |\n2 | \té [[ x ]]\n  | \t     ^");
    }

    #[test]
    fn long_lines_are_cut() {
        let text = "x".repeat(5000);
        let shown = error(&text, 3000, 5000).to_string();
        assert!(shown.lines().all(|line| line.len() < 140), "{shown}");
    }

    #[test]
    fn errors_can_cross_threads() {
        fn shareable<T: Send + Sync>() {}
        shareable::<Error>();
    }
}
