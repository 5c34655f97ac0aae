//! Longer texts: shortening and wrapping, initials, cases of letters.

use super::strings::{lower, mapped, upper};
use crate::functions::Type::{Int, String};
use crate::functions::{Arguments, Context, Native, Outcome};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("abbrev", &[Int, String], |_, a| Ok(abbreviate(a.bytes(1), 0, a.int(0)).into())),
    Native::new("abbrevboth", &[Int, Int, String], |_, a| {
        Ok(abbreviate(a.bytes(2), a.int(0), a.int(1)).into())
    }),
    Native::new("initials", &[String], initials),
    Native::new("nospace", &[String], |context, a| {
        mapped(context, a, |c| (!c.is_whitespace()).then_some(c))
    }),
    Native::new("swapcase", &[String], |context, a| {
        mapped(context, a, |c| Some(if c.is_uppercase() { lower(c) } else { upper(c) }))
    }),
    Native::new("untitle", &[String], |context, a| {
        let mut start = true;
        mapped(context, a, |c| {
            let shown = if start { lower(c) } else { c };
            start = c.is_whitespace();
            Some(shown)
        })
    }),
    Native::new("wrap", &[Int, String], |context, a| {
        wrap(context, a.bytes(1), a.int(0), b"\n", false)
    }),
    Native::new("wrapWith", &[Int, String, String], |context, a| {
        let between = if a.bytes(1).is_empty() { b"\n" } else { a.bytes(1) };
        wrap(context, a.bytes(2), a.int(0), between, true)
    }),
];

const DOTS: &[u8] = b"...";

/// At most `width` bytes, from about `offset`, with dots for what is left out.
fn abbreviate(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    if width < 4 || offset > 0 && width < 7 {
        return text.to_vec();
    }
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    if text.len() <= width {
        return text.to_vec();
    }
    let room = width - DOTS.len();
    let mut offset = usize::try_from(offset).unwrap_or(0).min(text.len());
    if text.len() - offset < room {
        offset = text.len() - room;
    }
    if offset <= 4 {
        return [&text[..room], DOTS].concat();
    }
    if offset + room < text.len() {
        let rest = abbreviate(&text[offset..], 0, room as i64);
        return [DOTS, &rest].concat();
    }
    [DOTS, &text[text.len() - room..]].concat()
}

/// The first byte of each word as a character, which is what the original does:
/// beyond ASCII the result is of no use.
fn initials(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut start = true;
    let mut out = std::string::String::new();
    for byte in arguments.bytes(0) {
        let c = char::from(*byte);
        if c.is_whitespace() {
            start = true;
        } else if std::mem::take(&mut start) {
            out.push(c);
        }
    }
    Ok(out.into())
}

/// Breaks at the last space that fits; words longer than a line are cut only
/// if `cut` says so.
fn wrap(context: &mut Context<'_>, text: &[u8], width: i64, between: &[u8], cut: bool) -> Outcome {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut lines: Vec<&[u8]> = Vec::new();
    let mut rest = text;
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let fitting = rest[..=width].iter().rposition(|byte| *byte == b' ');
        let line = match fitting {
            Some(space) => space,
            None if cut => width,
            None => match memchr::memchr(b' ', &rest[width..]) {
                Some(space) => width + space,
                None => break,
            },
        };
        lines.push(&rest[..line]);
        // The space the line breaks at is gone.
        let skip = usize::from(!(fitting.is_none() && cut));
        rest = &rest[line + skip..];
    }
    lines.push(rest);
    let length = text.len().saturating_add(lines.len().saturating_mul(between.len()));
    context.budget.spend_bytes(length)?;
    Ok(lines.join(between).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations() {
        let short = |text: &str, offset, width| {
            std::string::String::from_utf8(abbreviate(text.as_bytes(), offset, width)).unwrap()
        };
        assert_eq!(short("hello world", 0, 5), "he...");
        assert_eq!(short("hello world", 0, 3), "hello world");
        assert_eq!(short("1234 5678 9123", 5, 10), "...5678...");
        assert_eq!(short("abcdefghijklmno", 15, 10), "...ijklmno");
        assert_eq!(short("abcdefghijklmno", 99, 10), "...ijklmno");
        assert_eq!(short("abcdefghijklmno", -1, 10), "abcdefg...");
    }
}
