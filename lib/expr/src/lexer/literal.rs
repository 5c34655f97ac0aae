//! Numbers and strings.

use std::sync::Arc;

use govalue::{Str, Unquoted, parse_float, unquote_char};

use super::{Lexer, Tok, continues_name};
use crate::error::Error;

/// What the escapes of a string may produce.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    /// `\x`, octal and Unicode escapes are characters.
    Text,
    /// `\x` and octal escapes are bytes; there are no Unicode escapes.
    Bytes,
}

impl<'s> Lexer<'s> {
    pub(super) fn number(&mut self) -> Result<Tok<'s>, Error> {
        let start = self.at;
        let prefix = self.rest().get(..2).unwrap_or("").to_ascii_lowercase();
        let radix = match prefix.as_str() {
            "0x" => 16,
            "0o" => 8,
            "0b" => 2,
            _ => 10,
        };
        if radix != 10 {
            self.at += 2;
        }
        self.digits(radix);
        let mut float = false;
        // `1..2` is a range, not the number `1.` and a dot.
        if radix == 10 && self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.at += 1;
            float = true;
            self.digits(10);
        }
        if radix == 10 && self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            float = true;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            self.digits(10);
        }
        if self.peek().is_some_and(continues_name) {
            self.at += self.peek().map_or(0, char::len_utf8);
            return Err(self.error("malformed number", start));
        }
        let text = self.source[start..self.at].replace('_', "");
        if float {
            return match parse_float(&text) {
                Ok(value) => Ok(Tok::Float(value)),
                Err(_) => Err(self.error("malformed or too large number", start)),
            };
        }
        let digits = if radix == 10 { text.as_str() } else { &text[2..] };
        match i64::from_str_radix(digits, radix) {
            Ok(value) => Ok(Tok::Int(value)),
            Err(_) => Err(self.error("malformed or too large number", start)),
        }
    }

    fn digits(&mut self, radix: u32) {
        let rest = self.rest();
        self.at += rest.find(|c: char| c != '_' && !c.is_digit(radix)).unwrap_or(rest.len());
    }

    /// A raw string: no escapes, a doubled backtick stands for one.
    pub(super) fn raw(&mut self) -> Result<Tok<'s>, Error> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(end) = rest.find('`') else {
                self.at = self.source.len();
                return Err(self.error("string without an end", start));
            };
            text.push_str(&rest[..end]);
            self.at += end + 1;
            if !self.rest().starts_with('`') {
                return Ok(Tok::String(text.into()));
            }
            text.push('`');
            self.at += 1;
        }
    }

    pub(super) fn quoted(&mut self) -> Result<Tok<'s>, Error> {
        let bytes = self.escaped(Escapes::Text)?;
        Ok(Tok::String(Str::from(bytes)))
    }

    pub(super) fn byte_string(&mut self) -> Result<Tok<'s>, Error> {
        self.at += 1;
        let bytes = self.escaped(Escapes::Bytes)?;
        Ok(Tok::Bytes(Arc::from(bytes)))
    }

    fn escaped(&mut self, escapes: Escapes) -> Result<Vec<u8>, Error> {
        let start = self.at;
        let quote = self.source.as_bytes()[start] as char;
        let mut out = Vec::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let plain = rest.find([quote, '\\', '\n', '\r']).unwrap_or(rest.len());
            out.extend_from_slice(&rest.as_bytes()[..plain]);
            self.at += plain;
            match self.peek() {
                Some('\\') => self.escape(&mut out, escapes)?,
                Some(c) if c == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                // A carriage return is no end of line on its own.
                Some('\r') => {
                    out.push(b'\r');
                    self.at += 1;
                }
                _ => return Err(self.error("string without an end", start)),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>, escapes: Escapes) -> Result<(), Error> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.peek() else {
            return Err(self.error("string without an end", start));
        };
        self.at += c.len_utf8();
        if matches!(c, '\'' | '"' | '`' | '?') {
            out.push(c as u8);
            return Ok(());
        }
        let invalid = |lexer: &Self| lexer.error("invalid escape in a string", start);
        let unquoted = match c {
            'u' | 'U' if escapes == Escapes::Bytes => None,
            'u' if self.rest().starts_with('{') => self.braced().map(Unquoted::Char),
            _ => unquote_char(&self.source[start..], '\0').map(|(unquoted, rest)| {
                self.at = self.source.len() - rest.len();
                unquoted
            }),
        };
        match unquoted.ok_or_else(|| invalid(self))? {
            // In a text, a code is that of a character.
            Unquoted::Byte(byte) if escapes == Escapes::Text => {
                Unquoted::Char(char::from(byte)).push_to(out);
            }
            unquoted => unquoted.push_to(out),
        }
        Ok(())
    }

    /// `{1F600}`, one to six digits.
    fn braced(&mut self) -> Option<char> {
        let rest = &self.rest()[1..];
        let end = rest.find('}').filter(|len| (1..=6).contains(len))?;
        let digits = &rest[..end];
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        self.at += end + 2;
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Tok, tokens};

    fn first(source: &str) -> Tok<'_> {
        tokens(source).unwrap().swap_remove(0).kind
    }

    #[test]
    fn numbers() {
        for (source, want) in
            [("007", 7), ("0xff_ff", 65535), ("0b11", 3), ("0o17", 15), ("1__0", 10), ("1..2", 1)]
        {
            assert_eq!(first(source), Tok::Int(want), "{source}");
        }
        for (source, want) in
            [("1.", 1.0), (".5", 0.5), ("1_0.5_0", 10.5), ("1e3", 1000.0), ("1.5E-3", 0.0015)]
        {
            assert_eq!(first(source), Tok::Float(want), "{source}");
        }
        for source in ["0x", "0b12", "0o8", "1e309", "99999999999999999999", "0X10G", "1e", "24h"] {
            assert!(tokens(source).is_err(), "{source}");
        }
    }

    #[test]
    fn strings() {
        for (source, want) in [
            (r#""a\n\x41\101\u0041\u{1F600}\U0001F600""#, "a\nAAA😀😀"),
            (r"'it\'s'", "it's"),
            ("`a\\n``b`", "a\\n`b"),
            (r#""\xff""#, "ÿ"),
        ] {
            assert_eq!(first(source), Tok::String(want.into()), "{source}");
        }
        assert_eq!(first(r#"b"\xff\101a""#), Tok::Bytes((*b"\xffAa").into()));
        for source in [
            r#""\u{}""#,
            r#""\u{1234567}""#,
            r#""\x4""#,
            r#""\u12""#,
            r#"b"\u0041""#,
            r#""\ud800""#,
        ] {
            assert!(tokens(source).is_err(), "{source}");
        }
    }
}
