//! JSON strings: out of their escapes and back into them.

use std::borrow::Cow;

use govalue::{Value, json};

/// The text that a JSON string stands for; `body` is what is between its quotes.
///
/// Reading ends where the string stops being JSON: at an unknown or cut escape,
/// and, in a string with escapes, at a raw control character.
pub(crate) fn unescape(body: &str) -> Cow<'_, str> {
    if !body.contains('\\') {
        return Cow::Borrowed(body);
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'\\' => match escape(rest, &mut out) {
                Some(after) => rest = after,
                None => break,
            },
            0..b' ' => break,
            _ => out.push(*byte),
        }
    }
    // A cut `\u` escape may swallow the first byte of a character.
    Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Reads what follows a backslash; says what is left after it.
fn escape<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (letter, rest) = rest.split_first()?;
    if *letter == b'u' {
        return unicode(rest, out);
    }
    out.push(json::escaped_char(*letter)? as u8);
    Some(rest)
}

fn unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (digits, mut rest) = rest.split_at_checked(4)?;
    let code = hex(digits);
    let mut shown = char::from_u32(code);
    if (0xD800..0xE000).contains(&code)
        && let [b'\\', b'u', digits @ ..] = rest
        && let Some((digits, after)) = digits.split_at_checked(4)
    {
        // Whatever follows half a pair is taken as its other half.
        shown = json::surrogate_pair(code, hex(digits));
        rest = after;
    }
    let shown = shown.unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

/// Four hexadecimal digits; 0 for anything else.
fn hex(digits: &[u8]) -> u32 {
    digits
        .iter()
        .try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
        .unwrap_or(0)
}

/// The JSON string for a text, with the characters escaped that Go escapes.
pub(crate) fn quote(text: &str) -> String {
    // Strings always have a form in JSON.
    json::encode(&Value::from(text), json::Options::default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (body, want) in [
            ("plain", "plain"),
            (r#"a\"b\\c\/\n\té"#, "a\"b\\c/\n\té"),
            (r"\u00e9\ud83d\ude00", "é😀"),
            (r"\ud800", "\u{fffd}"),
            (r"x\udf93asdf", "x\u{fffd}asdf"),
            (r"x\udf93\u", "x\u{fffd}"),
            (r"x\udf93\u134", "x\u{fffd}"),
            (r"x\udf93\u1345asd", "x\u{fffd}asd"),
            (r"a\qb", "a"),
            (r"a\", "a"),
            (r"\uzzzz!", "\0!"),
            ("\\n\u{1}x", "\n"),
            (r"\u123é", "\0\u{fffd}"),
        ] {
            assert_eq!(unescape(body), want, "{body}");
        }
    }

    #[test]
    fn quotes() {
        assert_eq!(quote("a\"<\u{2028}\n"), r#""a\"\u003c\u2028\n""#);
    }
}
