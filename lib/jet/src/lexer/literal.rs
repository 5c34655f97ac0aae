//! Numbers and quoted text.

use govalue::{Str, parse_float, parse_int};

use super::{Kind, Lexer, is_word};
use crate::error::Error;

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> Result<Kind, Error> {
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
            (false, Some(number)) => Ok(Kind::Number(number)),
            (true, Some(_)) => Ok(Kind::Imaginary),
            (_, None) => {
                let message = format!("`{}` is not a number, or too large", &self.text[start..end]);
                Err(self.error(start, end, message))
            }
        }
    }

    /// A string, raw string or character constant. A character is the number
    /// of its code.
    pub(super) fn quoted(&mut self, quote: char) -> Result<Kind, Error> {
        let start = self.pos;
        self.pos += 1;
        if quote == '`' {
            let Some(len) = self.rest().find('`') else {
                return Err(self.error(start, start + 1, "the raw string is not closed"));
            };
            let text = self.rest()[..len].replace('\r', "");
            self.pos += len + 1;
            return Ok(Kind::Quoted(text.into()));
        }
        let mut out = Vec::new();
        let mut characters = Vec::new();
        loop {
            let at = self.pos;
            let mut chars = self.rest().chars();
            let piece = match chars.next() {
                Some('\\') => self.escape(quote)?,
                None | Some('\n') => {
                    return Err(self.error(start, start + 1, "the string is not closed"));
                }
                Some(c) if c == quote => break,
                Some(c) => {
                    self.pos += c.len_utf8();
                    Piece::Char(c)
                }
            };
            debug_assert!(self.pos > at);
            match piece {
                Piece::Char(c) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    characters.push(u32::from(c));
                }
                Piece::Byte(byte) => {
                    out.push(byte);
                    characters.push(u32::from(byte));
                }
            }
        }
        self.pos += 1;
        match (quote, characters[..].as_ref()) {
            ('"', _) => Ok(Kind::Quoted(Str::from(out))),
            (_, [code]) => Ok(Kind::Number(f64::from(*code))),
            _ => Err(self.error(start, self.pos, "a character constant is one character")),
        }
    }

    /// A backslash and what follows, by Go's rules.
    fn escape(&mut self, quote: char) -> Result<Piece, Error> {
        let start = self.pos;
        self.pos += 1;
        let c = self.rest().chars().next().unwrap_or_default();
        self.pos += if c == '\0' { 0 } else { c.len_utf8() };
        let piece = match c {
            'a' => Some(Piece::Byte(0x07)),
            'b' => Some(Piece::Byte(0x08)),
            'f' => Some(Piece::Byte(0x0C)),
            'n' => Some(Piece::Byte(b'\n')),
            'r' => Some(Piece::Byte(b'\r')),
            't' => Some(Piece::Byte(b'\t')),
            'v' => Some(Piece::Byte(0x0B)),
            '\\' => Some(Piece::Byte(b'\\')),
            _ if c == quote => Some(Piece::Char(c)),
            'x' => self.code(2, 16).map(|code| Piece::Byte(code as u8)),
            'u' => self.code(4, 16).and_then(char::from_u32).map(Piece::Char),
            'U' => self.code(8, 16).and_then(char::from_u32).map(Piece::Char),
            '0'..='7' => {
                self.pos -= 1;
                self.code(3, 8).and_then(|code| u8::try_from(code).ok()).map(Piece::Byte)
            }
            _ => None,
        };
        piece.ok_or_else(|| self.error(start, self.pos, "unknown escape in a string"))
    }

    /// Exactly this many digits.
    fn code(&mut self, digits: usize, radix: u32) -> Option<u32> {
        let text = self.rest().get(..digits)?;
        if !text.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        self.pos += digits;
        u32::from_str_radix(text, radix).ok()
    }
}

enum Piece {
    Char(char),
    Byte(u8),
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
