//! What can go wrong, and where in the template it did.

use std::error::Error as StdError;
use std::fmt;

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
    /// The template does more than the [`Limits`](crate::Limits) allow.
    Limit,
}

/// Why a template could not be parsed or rendered.
///
/// Its `Display` shows the source line with a caret under the place:
///
/// ```text
/// nginx.conf:1:10: expected string; found 1
///   |
/// 1 | {{ upper 1 }}
///   |          ^
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    template: String,
    line: usize,
    column: usize,
    source_line: String,
    /// How many characters the caret underlines.
    width: usize,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(fail: Fail, template: &str, text: &str, start: usize, end: usize) -> Self {
        let start = start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = end.clamp(start, line_end);
        Self(Box::new(Inner {
            kind: fail.kind,
            message: fail.message,
            template: template.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            source_line: text[line_start..line_end].trim_end_matches('\r').to_owned(),
            width: text.get(start..end).map_or(1, |marked| marked.chars().count().max(1)),
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
        self.0.line
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }
}

/// Lines longer than this are cut around the caret.
const SHOWN: usize = 160;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, template, line, column, source_line, width, .. } = &*self.0;
        writeln!(f, "{template}:{line}:{column}: {message}")?;
        let skipped = if *column > SHOWN { column - SHOWN / 2 } else { 0 };
        let shown: Vec<char> = source_line.chars().skip(skipped).take(SHOWN).collect();
        // Tabs stay tabs, so that the caret lines up whatever their width.
        let before = column - 1 - skipped;
        let margin: String =
            shown.iter().take(before).map(|c| if *c == '\t' { '\t' } else { ' ' }).collect();
        let carets = "^".repeat((*width).clamp(1, SHOWN.saturating_sub(before).max(1)));
        let gutter = " ".repeat(line.to_string().len());
        let shown: String = shown.into_iter().collect();
        write!(f, "{gutter} |\n{line} | {shown}\n{gutter} | {margin}{carets}")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("template", &self.0.template)
            .field("line", &self.0.line)
            .field("column", &self.0.column)
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
                let Inner { template, line, column, message, .. } = inner;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = "first\n\t{{ upper 1 }}\nlast";
        let error = Error::new(Fail::arguments("expected string; found 1"), "t", text, 16, 17);
        assert_eq!((error.line(), error.column()), (2, 11));
        assert_eq!(
            error.to_string(),
            "t:2:11: expected string; found 1\n  |\n2 | \t{{ upper 1 }}\n  | \t         ^"
        );
    }

    #[test]
    fn long_lines_are_cut() {
        let text = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let error = Error::new(Fail::from("no"), "t", &text, 1000, 1900);
        let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
        assert!(lines.iter().all(|line| line.len() < 200), "{lines:?}");
        assert!(lines[2].contains("ax"));
    }
}
