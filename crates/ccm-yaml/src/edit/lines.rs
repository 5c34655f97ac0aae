//! Lines of a text: where they begin and end. Line ends are `\n` and `\r\n`.

/// Where the text begins, behind a byte order mark.
pub(super) fn text_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// Where the line of a byte begins.
pub(super) fn start(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(text_start(text), |found| found + 1)
}

/// Where the line of a byte ends, before its line end.
pub(super) fn end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let end =
        bytes[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |found| at + found);
    if end > at && end < text.len() && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

/// Where the line behind that of a byte begins.
pub(super) fn next(text: &str, at: usize) -> usize {
    text.as_bytes()[at..]
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(text.len(), |found| at + found + 1)
}

/// The end of `from..to` without the line end that it may end with.
pub(super) fn without_break(text: &str, from: usize, to: usize) -> usize {
    let slice = &text[from..to];
    let slice =
        slice.strip_suffix('\n').map_or(slice, |rest| rest.strip_suffix('\r').unwrap_or(rest));
    from + slice.len()
}

/// How the line of a byte ends; empty for the last one without line end.
pub(super) fn line_break(text: &str, at: usize) -> &str {
    &text[end(text, at)..next(text, at)]
}

/// How a new line behind that of a byte ends: as that one, or else as the one
/// before it, or else as most do.
pub(super) fn new_break(text: &str, at: usize) -> &str {
    let own = line_break(text, at);
    if !own.is_empty() {
        return own;
    }
    let before = &text[..start(text, at)];
    if before.ends_with("\r\n") { "\r\n" } else { "\n" }
}

/// Characters before a byte on its line.
pub(super) fn column(text: &str, at: usize) -> usize {
    text[start(text, at)..at].chars().count()
}

/// Whether only blanks stand before a byte on its line.
pub(super) fn is_first(text: &str, at: usize) -> bool {
    text[start(text, at)..at].bytes().all(|byte| byte == b' ')
}

/// Whether the line that begins at a byte is there and blank.
pub(super) fn is_blank(text: &str, line: usize) -> bool {
    line < text.len() && text[line..end(text, line)].trim_matches([' ', '\t', '\r']).is_empty()
}

/// The first line from `line` on that is not blank.
pub(super) fn skip_blank(text: &str, mut line: usize) -> usize {
    while is_blank(text, line) {
        line = next(text, line);
    }
    line
}
