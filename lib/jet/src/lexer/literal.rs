//! Numbers and quoted text.

use govalue::{Str, Unquoted, parse_float, parse_int, unquote_char};

use super::{Lexer, TokenKind, is_word};
use crate::error::Error;

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> Result<TokenKind, Error> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let run = |mut pos: usize, allowed: fn(&u8) -> bool| {
            while bytes.get(pos).is_some_and(allowed) {
                pos += 1;
            }
            pos
        };
        let mut pos = start + usize::from(matches!(bytes[start], b'+' | b'-'));
        let hexadecimal =
            bytes.get(pos) == Some(&b'0') && matches!(bytes.get(pos + 1), Some(b'x' | b'X'));
        let digit = if hexadecimal { u8::is_ascii_hexdigit } else { u8::is_ascii_digit };
        pos = run(pos + if hexadecimal { 2 } else { 0 }, digit);
        if bytes.get(pos) == Some(&b'.') {
            pos = run(pos + 1, digit);
        }
        if matches!(bytes.get(pos), Some(b'e' | b'E')) {
            pos += 1 + usize::from(matches!(bytes.get(pos + 1), Some(b'+' | b'-')));
            pos = run(pos, u8::is_ascii_digit);
        }
        let imaginary = bytes.get(pos) == Some(&b'i');
        let end = pos + usize::from(imaginary);
        self.pos = end;
        if let Some(c) = self.rest().chars().next().filter(|c| is_word(*c)) {
            let end = end + c.len_utf8();
            let message = format!("`{}` is not a number", &self.text[start..end]);
            return Err(self.error(start, end, message));
        }
        match (imaginary, value(&self.text[start..pos])) {
            (false, Some(number)) => Ok(TokenKind::Number(number)),
            (true, Some(_)) => Ok(TokenKind::Imaginary),
            (_, None) => {
                let message = format!("`{}` is not a number, or too large", &self.text[start..end]);
                Err(self.error(start, end, message))
            }
        }
    }

    /// A string, raw string or character constant. A character is the number
    /// of its code.
    pub(super) fn quoted(&mut self, quote: char) -> Result<TokenKind, Error> {
        let start = self.pos;
        self.pos += 1;
        if quote == '`' {
            let Some(len) = self.rest().find('`') else {
                return Err(self.error(start, start + 1, "the raw string is not closed"));
            };
            let text = self.rest()[..len].replace('\r', "");
            self.pos += len + 1;
            return Ok(TokenKind::Quoted(text.into()));
        }
        let mut out = Vec::new();
        let mut characters = Vec::new();
        while !self.rest().starts_with(quote) {
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with('\n') {
                return Err(self.error(start, start + 1, "the string is not closed"));
            }
            let Some((unquoted, after)) = unquote_char(rest, quote) else {
                let escape: usize = rest.chars().take(2).map(char::len_utf8).sum();
                let end = self.pos + escape;
                return Err(self.error(self.pos, end, "unknown escape in a string"));
            };
            unquoted.push_to(&mut out);
            characters.push(match unquoted {
                Unquoted::Char(c) => u32::from(c),
                Unquoted::Byte(byte) => u32::from(byte),
            });
            self.pos = self.text.len() - after.len();
        }
        self.pos += 1;
        match (quote, characters[..].as_ref()) {
            ('"', _) => Ok(TokenKind::Quoted(Str::from(out))),
            (_, [code]) => Ok(TokenKind::Number(f64::from(*code))),
            _ => Err(self.error(start, self.pos, "a character constant is one character")),
        }
    }
}

/// Every number is a float, but whole ones must fit 64 bits, and a leading
/// zero means octal.
fn value(text: &str) -> Option<f64> {
    if let Ok(whole) = parse_int(text, 0) {
        return Some(whole as f64);
    }
    if let Some(whole) = unsigned(text) {
        return Some(whole as f64);
    }
    text.contains(['.', 'e', 'E']).then(|| parse_float(text).ok()).flatten()
}

fn unsigned(text: &str) -> Option<u64> {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&text[2..], 16).ok(),
        [b'0', _, ..] => u64::from_str_radix(&text[1..], 8).ok(),
        [b'+' | b'-', ..] => None,
        _ => text.parse().ok(),
    }
}
