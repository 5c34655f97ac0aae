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
}
