//! Places in a source text, and how messages show them: the line, and carets
//! below the part that a message is about.
//!
//! Nothing else calls the library that draws, because it panics on a span that
//! splits a character.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level as DrawnLevel, Origin, Renderer, Snippet};

/// A range of bytes in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// From the first byte of both spans to the last one.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The offsets, to slice a text by.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The offsets, widened to whole characters of a text and cut at its end,
    /// so that it can be sliced by them.
    pub fn clamp(self, text: &str) -> Range<usize> {
        let start = text.floor_char_boundary(self.start as usize);
        let end = text.ceil_char_boundary(self.end as usize);
        start..end.max(start)
    }
}

/// The line of a source that a message is about. Displayed, it has carets below
/// the part in question:
///
/// ```
/// use govalue::{Excerpt, Span};
/// let excerpt = Excerpt::new("motd", "one\ntwo words", Span::new(8, 13));
/// assert_eq!(excerpt.to_string(), " --> motd:2:5\n  |\n2 | two words\n  |     ^^^^^");
/// ```
///
/// Any text and any span can be shown: spans are clamped, and control characters
/// that a terminal would obey are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: String,
    /// Line and column in characters, from 1.
    position: Option<(usize, usize)>,
    /// The line and the part of it, unless it is too long to be read.
    line: Option<(String, Range<usize>)>,
}

impl Excerpt {
    /// A line of more bytes is not shown: the place in it still is.
    pub const MAX_LINE: usize = 300;

    /// The line of a text that a span begins in.
    pub fn new(name: &str, text: &str, span: Span) -> Self {
        let bytes = span.clamp(text);
        let start = text[..bytes.start].rfind('\n').map_or(0, |at| at + 1);
        let number = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        let line = text[start..].split('\n').next().unwrap_or_default();
        Self::of_line(name, number, line, bytes.start - start..bytes.end - start)
    }

    /// A line that the caller has cut out, and the bytes of it in question.
    pub fn of_line(name: &str, number: usize, line: &str, part: Range<usize>) -> Self {
        let line = line.trim_end_matches('\r');
        let start = line.floor_char_boundary(part.start);
        let end = line.ceil_char_boundary(part.end).max(start);
        let column = line[..start].chars().count() + 1;
        let mut shown = visible(&line[..start]).into_owned();
        let from = shown.len();
        shown.push_str(&visible(&line[start..end]));
        let part = from..shown.len();
        shown.push_str(&visible(&line[end..]));
        Self {
            name: visible(name).into_owned(),
            position: Some((number, column)),
            line: (line.len() <= Self::MAX_LINE).then_some((shown, part)),
        }
    }

    /// A source as a whole.
    pub fn whole(name: &str) -> Self {
        Self { name: visible(name).into_owned(), position: None, line: None }
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.position.map_or(1, |(line, _)| line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.position.map_or(1, |(_, column)| column)
    }

    /// The line as it is shown, unless it is too long for that.
    pub fn text(&self) -> Option<&str> {
        self.line.as_ref().map(|(text, _)| &**text)
    }

    fn add_to<'a>(&'a self, group: Group<'a>) -> Group<'a> {
        if let Some((text, part)) = &self.line {
            let annotation = AnnotationKind::Primary.span(part.clone());
            return group.element(
                Snippet::source(&**text)
                    .line_start(self.line())
                    .path(&*self.name)
                    .annotation(annotation),
            );
        }
        let mut origin = Origin::path(&*self.name);
        if let Some((line, column)) = self.position {
            origin = origin.line(line).char_column(column);
        }
        group.element(origin)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.add_to(Group::with_level(DrawnLevel::ERROR));
        f.write_str(&Renderer::plain().render(&[group]))
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something that must be put right.
    Error,
    /// Something to look at.
    Warning,
}

/// A message with its place in a source.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// How bad it is.
    pub level: Level,
    /// The message, in one line.
    pub title: &'a str,
    /// What it is about.
    pub excerpt: &'a Excerpt,
    /// Another place that it comes from, and what that is.
    pub origin: Option<(&'a str, &'a Excerpt)>,
    /// What else there is to say.
    pub note: Option<&'a str>,
    /// Advice on how to fix the problem.
    pub hint: Option<&'a str>,
}

impl Frame<'_> {
    /// Draws the frame.
    pub fn render(&self, color: bool) -> String {
        let level = match self.level {
            Level::Error => DrawnLevel::ERROR,
            Level::Warning => DrawnLevel::WARNING,
        };
        let title = visible(self.title);
        let note = self.note.map(visible);
        let hint = self.hint.map(visible);
        let mut group = self.excerpt.add_to(Group::with_title(level.primary_title(&*title)));
        if let Some(note) = &note {
            group = group.element(DrawnLevel::NOTE.message(&**note));
        }
        if let Some(hint) = &hint {
            group = group.element(DrawnLevel::HELP.with_name("hint").message(&**hint));
        }
        let mut groups = vec![group];
        if let Some((what, excerpt)) = self.origin {
            groups.push(excerpt.add_to(Group::with_title(DrawnLevel::NOTE.secondary_title(what))));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&groups)
    }
}

/// Replaces control characters that a terminal would obey, one by one, so that
/// carets stay in place. Line ends and tabs are kept.
fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |c| if is_obeyed(c) { char::REPLACEMENT_CHARACTER } else { c };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, start: usize, end: usize) -> String {
        Excerpt::new("t", text, Span::new(start, end)).to_string()
    }

    #[test]
    fn carets_stand_below_the_part() {
        assert_eq!(shown("a: é\n", 3, 5), " --> t:1:4\n  |\n1 | a: é\n  |    ^");
        for (start, end) in [(3, 4), (4, 5), (4, 4)] {
            assert_eq!(shown("a: é\n", start, end), shown("a: é\n", 3, 5));
        }
        assert_eq!(shown("a\n\té x\r\n", 6, 7), " --> t:2:4\n  |\n2 |     é x\n  |       ^");
        // A span of several lines is shown in its first one.
        assert_eq!(shown("ab\ncd", 1, 5), " --> t:1:2\n  |\n1 | ab\n  |  ^");
        assert_eq!(shown("", 7, 9), " --> t:1:1\n  |\n1 |\n  | ^");
    }

    #[test]
    fn long_lines_are_left_out() {
        assert_eq!(shown(&"x".repeat(5000), 3000, 5000), "--> t:1:3001");
    }

    #[test]
    fn a_terminal_obeys_nothing_of_a_frame() {
        let excerpt = Excerpt::new("\x1b[1m", "a\x1b[2J\u{9b}b", Span::new(1, 2));
        let (title, hint) = ("\x1b]0;x", Some("\u{9b}2J"));
        let level = Level::Error;
        let frame = Frame { level, title, excerpt: &excerpt, origin: None, note: hint, hint };
        let text = frame.render(false);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_is_shown(text in any::<String>(), start in 0..120usize, end in 0..160usize) {
            shown(&text, start, end);
        }
    }
}
