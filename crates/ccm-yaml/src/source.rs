//! Source text and locations in it.

use std::ops::Range;
use std::sync::OnceLock;

use govalue::Span;

/// A location for messages: lines and columns from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A text and its display name.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    line_starts: OnceLock<Vec<u32>>,
}

impl Source {
    /// A source of the given name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), line_starts: OnceLock::new() }
    }

    /// Display name of this source, usually a path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text, which all spans are offsets into.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of a span, widened to whole characters and cut at the end of
    /// the text, so that the text can be sliced by them.
    pub fn clamp(&self, span: Span) -> Range<usize> {
        span.clamp(&self.text)
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect()
        })
    }

    /// A span as editors count: line, column, line, column, from 0, columns in
    /// UTF-16 units.
    pub fn range(&self, span: Span) -> [usize; 4] {
        let bytes = self.clamp(span);
        let place = |at: usize| {
            let starts = self.line_starts();
            let line = starts.partition_point(|&start| start as usize <= at).max(1) - 1;
            let column: usize =
                self.text[starts[line] as usize..at].chars().map(char::len_utf16).sum();
            (line, column)
        };
        let (start, end) = (place(bytes.start), place(bytes.end));
        [start.0, start.1, end.0, end.1]
    }

    /// The number of the line at an offset, from 1. Unlike
    /// [`Source::position`], takes no longer in a long line.
    pub fn line(&self, offset: u32) -> usize {
        self.line_starts().partition_point(|&start| start <= offset).max(1)
    }

    /// The line and column of a byte offset.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.line(offset);
        let start = self.line_starts()[line - 1] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = self.text.as_bytes()[start.min(end)..end]
            .iter()
            .filter(|&&byte| byte & 0xC0 != 0x80)
            .count();
        Position { line, column: column + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("t", "ab\nö€x\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 1, column: 3 });
        assert_eq!(source.position(3), Position { line: 2, column: 1 });
        assert_eq!(source.position(8), Position { line: 2, column: 3 });
        assert_eq!(source.position(9999), Position { line: 3, column: 1 });
    }

    #[test]
    fn ranges_count_from_zero_in_utf16() {
        let source = Source::new("t", "ab\nö🚀x\n");
        let range = |start, end| source.range(Span { start, end });
        assert_eq!(range(0, 2), [0, 0, 0, 2]);
        assert_eq!(range(3, 9), [1, 0, 1, 3]);
        assert_eq!(range(9, 11), [1, 3, 2, 0]);
        assert_eq!(range(99, 99), [2, 0, 2, 0]);
    }

    #[test]
    fn a_clamped_span_has_whole_characters() {
        let source = Source::new("t", "aö€");
        let clamp = |start, end| source.clamp(Span { start, end });
        assert_eq!(clamp(0, 1), 0..1);
        assert_eq!(clamp(1, 2), 1..3);
        assert_eq!(clamp(2, 4), 1..6);
        assert_eq!(clamp(5, 4), 3..6);
        assert_eq!(clamp(3, 1), 3..3);
        assert_eq!(clamp(6, 99), 6..6);
        assert_eq!(clamp(99, 200), 6..6);
    }
}
