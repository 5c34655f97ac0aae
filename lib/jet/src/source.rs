//! Where in a template something stands.

/// The text of one template and the name it goes by in messages.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A stretch of a source, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// From the start of this to the end of another.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.end) }
    }
}

impl Source {
    /// The line (from 1), the column in characters (from 1) and the text of the
    /// line at an offset.
    pub(crate) fn locate(&self, offset: u32) -> (usize, usize, &str) {
        let offset = self.boundary(offset as usize);
        let before = &self.text[..offset];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = self.text[start..offset].chars().count() + 1;
        let text = self.text[start..].lines().next().unwrap_or_default();
        (line, column, text)
    }

    /// How many characters of its first line a span covers, at least one.
    pub(crate) fn width(&self, span: Span) -> usize {
        let start = self.boundary(span.start as usize);
        let end = self.boundary(span.end as usize).max(start);
        let covered = self.text[start..end].lines().next().unwrap_or_default();
        covered.chars().count().max(1)
    }

    /// The nearest character boundary at or before an offset.
    fn boundary(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = Source { name: "t".into(), text: "one\nhé [[ x ]]\n".into() };
        let at = source.text.find('x').unwrap();
        assert_eq!(source.locate(at as u32), (2, 7, "hé [[ x ]]"));
        assert_eq!(source.width(Span::new(at, at + 1)), 1);
        assert_eq!(source.locate(source.text.len() as u32), (3, 1, ""));
    }
}
