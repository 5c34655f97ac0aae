//! A text as lines that keep their ends.

/// What editors of another system put before the first line.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    /// Where it begins.
    pub(crate) start: usize,
    /// It, without its end.
    pub(crate) text: &'t [u8],
    /// `\n`, `\r\n`, or nothing for a last line without an end.
    pub(crate) end: &'t [u8],
}

impl Line<'_> {
    /// Where the next line begins.
    pub(crate) fn stop(&self) -> usize {
        self.start + self.text.len() + self.end.len()
    }

    /// The bytes of the line, its end included.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start..self.stop()
    }
}

/// How many bytes before the first line a text has.
pub(crate) fn bom(text: &[u8]) -> usize {
    if text.starts_with(BOM) { BOM.len() } else { 0 }
}

/// The lines of a text. A byte order mark is not part of the first.
pub(crate) fn split(text: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut start = bom(text);
    while start < text.len() {
        let rest = &text[start..];
        let stop = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        let whole = &rest[..stop];
        let line = match whole {
            [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] | text => text,
        };
        lines.push(Line { start, text: line, end: &whole[line.len()..] });
        start += stop;
    }
    lines
}

/// The line end that new lines before the line at `index` get: that of the line
/// before, else of another neighbour.
pub(crate) fn end_at<'t>(lines: &[Line<'t>], index: usize) -> &'t [u8] {
    let before = lines[..index.min(lines.len())].iter().rev().map(|line| line.end);
    let after = lines.iter().skip(index).map(|line| line.end);
    before.chain(after).find(|end| !end.is_empty()).unwrap_or(b"\n")
}

/// The text that puts new lines before the line at `index`, and where it goes.
/// Behind a last line without an end, the new last line has none either.
pub(crate) fn inserted(
    text: &[u8],
    lines: &[Line<'_>],
    index: usize,
    new: &[Vec<u8>],
) -> (usize, Vec<u8>) {
    let end = end_at(lines, index);
    if let Some(line) = lines.get(index) {
        return (line.start, ended(new, end));
    }
    match lines.last() {
        Some(last) if last.end.is_empty() => {
            let mut added = end.to_vec();
            added.extend(ended(new, end));
            added.truncate(added.len() - end.len());
            (text.len(), added)
        }
        _ => (text.len(), ended(new, end)),
    }
}

/// Lines, each with this end.
pub(crate) fn ended(lines: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_slice(), end].concat()).collect()
}

/// The line that a place is in, from 1.
pub(crate) fn number_at(text: &[u8], at: usize) -> usize {
    let before = &text[..at.min(text.len())];
    before.split(|byte| *byte == b'\n').count()
}

/// Without blanks at the end.
pub(crate) fn trim_end(text: &[u8]) -> &[u8] {
    let stop = text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |at| at + 1);
    &text[..stop]
}

/// Without blanks at either end.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let text = trim_end(text);
    &text[indent(text)..]
}

/// How many blanks a line begins with.
pub(crate) fn indent(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len())
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str) -> Vec<(&[u8], &[u8])> {
        split(text.as_bytes()).into_iter().map(|line| (line.text, line.end)).collect()
    }

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(ends(""), []);
        assert_eq!(ends("\n"), [(&b""[..], &b"\n"[..])]);
        assert_eq!(
            ends("a\r\nb\rc\nd"),
            [(&b"a"[..], &b"\r\n"[..]), (&b"b\rc"[..], &b"\n"[..]), (&b"d"[..], &b""[..]),]
        );
        assert_eq!(ends("\u{feff}a"), [(&b"a"[..], &b""[..])]);
        assert_eq!(ends("\u{feff}"), []);
    }

    #[test]
    fn new_lines_take_the_end_of_the_line_before() {
        for (text, index, wanted) in [
            ("", 0, "x\n"),
            ("\u{feff}", 0, "\u{feff}x\n"),
            ("a\n", 0, "x\na\n"),
            ("a\n", 1, "a\nx\n"),
            ("a", 1, "a\nx"),
            ("a", 0, "x\na"),
            ("a\r\nb", 2, "a\r\nb\r\nx"),
            ("a\r\nb\n", 1, "a\r\nx\r\nb\n"),
            ("a\nb\r\n", 0, "x\na\nb\r\n"),
        ] {
            let text = text.as_bytes();
            let (at, new) = inserted(text, &split(text), index, &[b"x".to_vec()]);
            let made = [&text[..at], &new, &text[at..]].concat();
            assert_eq!(String::from_utf8(made).unwrap(), wanted);
        }
    }
}
