//! Go's quoted strings.

use crate::string::raw_runes;

/// Quotes as Go's `strconv.Quote`: printable characters stay, the rest is escaped.
pub fn quote(bytes: &[u8]) -> String {
    quoted(bytes, '"', false)
}

/// Quotes as Go's `strconv.QuoteToASCII`: everything beyond ASCII is escaped.
pub fn quote_ascii(bytes: &[u8]) -> String {
    quoted(bytes, '"', true)
}

/// Quotes one character with single quotes, Go's `strconv.QuoteRune`.
pub(crate) fn quote_rune(rune: char, ascii: bool) -> String {
    quoted(rune.encode_utf8(&mut [0; 4]).as_bytes(), '\'', ascii)
}

/// Whether a string can be written in backquotes unchanged.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    raw_runes(bytes).all(|(_, rune)| match rune {
        None | Some('\u{feff}' | '`' | '\u{7f}') => false,
        Some(rune) => rune >= ' ' || rune == '\t',
    })
}

fn quoted(bytes: &[u8], mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(mark);
    let mut at = 0;
    for (len, rune) in raw_runes(bytes) {
        if let Some(rune) = rune {
            escape(&mut out, rune, mark, ascii);
        } else {
            push!(out, "\\x{:02x}", bytes[at]);
        }
        at += len;
    }
    out.push(mark);
    out
}

fn escape(out: &mut String, rune: char, mark: char, ascii: bool) {
    match rune {
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if rune == mark => {
            out.push('\\');
            out.push(rune);
        }
        _ if is_print(rune) && (rune.is_ascii() || !ascii) => out.push(rune),
        _ if rune < ' ' || rune == '\x7f' => push!(out, "\\x{:02x}", rune as u32),
        _ if (rune as u32) < 0x1_0000 => push!(out, "\\u{:04x}", rune as u32),
        _ => push!(out, "\\U{:08x}", rune as u32),
    }
}

/// What one character of a quoted text stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unquoted {
    /// A character.
    Char(char),
    /// A byte by its code, which need not be a character.
    Byte(u8),
}

/// The first character of a quoted text, its escape resolved, and the rest, as
/// Go's `strconv.UnquoteChar`. `mark` ends the text unless it is escaped.
pub fn unquote_char(text: &str, mark: char) -> Option<(Unquoted, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Unquoted::Char(first), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let plain = |c: char| Some((Unquoted::Char(c), rest));
    let code = |digits: usize, radix: u32, skip: usize| {
        let from = text.get(skip..skip + digits)?;
        let is_code = from.chars().all(|c| c.is_digit(radix));
        let value = is_code.then(|| u32::from_str_radix(from, radix).ok()).flatten()?;
        Some((value, &text[skip + digits..]))
    };
    match escape {
        'a' => plain('\x07'),
        'b' => plain('\x08'),
        'f' => plain('\x0c'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0b'),
        '\\' => plain('\\'),
        '\'' | '"' if escape == mark => plain(escape),
        'x' => code(2, 16, 2).map(|(value, rest)| (Unquoted::Byte(value as u8), rest)),
        '0'..='7' => {
            let (value, rest) = code(3, 8, 1)?;
            Some((Unquoted::Byte(u8::try_from(value).ok()?), rest))
        }
        'u' | 'U' => {
            let (value, rest) = code(if escape == 'u' { 4 } else { 8 }, 16, 2)?;
            Some((Unquoted::Char(char::from_u32(value)?), rest))
        }
        _ => None,
    }
}

impl Unquoted {
    /// Appends what it stands for.
    pub fn push_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Self::Byte(byte) => out.push(byte),
        }
    }
}

/// The bytes of a string in its quotes or backquotes, as Go's `strconv.Unquote`.
///
/// ```
/// assert_eq!(govalue::unquote(r#""a\tb""#).unwrap(), b"a\tb");
/// assert_eq!(govalue::unquote("\"open"), None);
/// ```
pub fn unquote(text: &str) -> Option<Vec<u8>> {
    if let Some(raw) = text.strip_prefix('`') {
        return Some(raw.strip_suffix('`')?.replace('\r', "").into_bytes());
    }
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unquoted, after) = unquote_char(rest, '"')?;
        unquoted.push_to(&mut out);
        rest = after;
    }
    Some(out)
}

/// Whether Go counts the character as printable: letters, marks, numbers,
/// punctuation, symbols and the ASCII space.
pub fn is_print(rune: char) -> bool {
    if rune.is_ascii() {
        return (' '..='~').contains(&rune);
    }
    // The standard library knows the same categories, but only tells through
    // its debug escapes. A leading letter keeps combining marks as they are.
    let mut text = String::from("a");
    text.push(rune);
    text.escape_debug().nth(1) == Some(rune)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (bytes, want) in [
            (&b"plain"[..], r#""plain""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\x00\x07\n\x7f", r#""\x00\a\n\x7f""#),
            (b"h\xc3", r#""h\xc3""#),
            ("h\u{e9}\u{301}\u{200b}\u{1f600}".as_bytes(), "\"h\u{e9}\u{301}\\u200b\u{1f600}\""),
        ] {
            assert_eq!(quote(bytes), want);
        }
        assert_eq!(quote_ascii("\u{e9}\u{1f600}".as_bytes()), r#""\u00e9\U0001f600""#);
        assert_eq!(quote_rune('\'', false), r"'\''");
        assert!(can_backquote(b"a\tb") && !can_backquote(b"a`b"));
    }

    #[test]
    fn back_out_of_escapes() {
        assert_eq!(unquote(r#""a\tb\xff\101\"é""#).unwrap(), b"a\tb\xffA\"\xc3\xa9");
        assert_eq!(unquote("`a\\n\r\n`").unwrap(), b"a\\n\n");
        for text in [r#""\q""#, r#""\x4""#, r#""\400""#, r#""\ud800""#, r#""\'""#] {
            assert_eq!(unquote(text), None, "{text}");
        }
    }
}
