//! JSON read as Go's `encoding/json` reads it.

use std::fmt;

use crate::{Map, Value};

/// How numbers are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Always a float, as when Go decodes into `interface {}`.
    Floats,
    /// An int where it is written without fraction and exponent and fits one.
    Ints,
}

/// The text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The reason.
    pub reason: &'static str,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the JSON text", self.reason, self.offset)
    }
}

impl std::error::Error for ParseError {}

/// Reads one JSON document. Of repeated keys the last one counts; halves of
/// surrogate pairs become U+FFFD.
pub fn decode(text: &str, numbers: Numbers) -> Result<Value, ParseError> {
    let mut reader = Reader { text, at: 0, numbers, depth: 0 };
    let value = reader.value()?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.error("unexpected text after the value"));
    }
    Ok(value)
}

const MAX_DEPTH: usize = 1_000;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    numbers: Numbers,
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, reason: &'static str) -> ParseError {
        ParseError { reason, offset: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::from),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(_) => Err(self.error("unexpected character")),
            None => Err(self.error("unexpected end")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ParseError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("unknown word"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, ParseError>,
    ) -> Result<Value, ParseError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<Value, ParseError> {
        let mut items = Vec::new();
        self.blanks();
        if self.take(b']') {
            return Ok(items.into());
        }
        loop {
            items.push(self.value()?);
            self.blanks();
            if self.take(b']') {
                return Ok(items.into());
            }
            if !self.take(b',') {
                return Err(self.error("expected a comma or the end of the array"));
            }
        }
    }

    fn object(&mut self) -> Result<Value, ParseError> {
        let mut map = Map::new();
        self.blanks();
        if self.take(b'}') {
            return Ok(map.into());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key"));
            }
            let key = self.string()?;
            self.blanks();
            if !self.take(b':') {
                return Err(self.error("expected a colon"));
            }
            let value = self.value()?;
            map.insert(key, value);
            self.blanks();
            if self.take(b'}') {
                return Ok(map.into());
            }
            if !self.take(b',') {
                return Err(self.error("expected a comma or the end of the object"));
            }
        }
    }

    fn string(&mut self) -> Result<String, ParseError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    out.push(c);
                }
                Some(_) => return Err(self.error("control character in a string")),
                None => return Err(self.error("string without an end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        self.at += 1;
        if self.peek() == Some(b'u') {
            return self.unicode();
        }
        let c = self.peek().and_then(escaped_char).ok_or_else(|| self.error("unknown escape"))?;
        self.at += 1;
        Ok(c)
    }

    fn unicode(&mut self) -> Result<char, ParseError> {
        let first = self.hex4(self.at + 1).ok_or_else(|| self.error("bad escape"))?;
        self.at += 5;
        if !(0xd800..0xe000).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or('\u{FFFD}'));
        }
        if first < 0xdc00 && self.text[self.at..].starts_with("\\u") {
            let second = self.hex4(self.at + 2).unwrap_or(0);
            if let Some(c) = surrogate_pair(first, second) {
                self.at += 6;
                return Ok(c);
            }
        }
        Ok('\u{FFFD}')
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits
            .bytes()
            .all(|c| c.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if whole
            && self.numbers == Numbers::Ints
            && let Ok(int) = text.parse::<i64>()
        {
            return Ok(Value::Int(int));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => Err(self.error("number out of range")),
        }
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }
}

/// The character that a backslash and this letter stand for in a JSON string;
/// none for `u`, which begins a code.
pub fn escaped_char(letter: u8) -> Option<char> {
    Some(match letter {
        b'"' | b'\\' | b'/' => char::from(letter),
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

/// The character that two codes stand for together, if they are a pair.
pub fn surrogate_pair(high: u32, low: u32) -> Option<char> {
    let is_pair = (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low);
    is_pair.then(|| char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        decode(text, Numbers::Ints)
            .map_or_else(|error| error.to_string(), |value| format!("{value}"))
    }

    #[test]
    fn documents() {
        assert_eq!(
            shown(r#" {"b": [1, 2.5, -0, 1e2], "a": {"x": null, "x": true}} "#),
            "map[a:map[x:true] b:[1 2.5 0 100]]"
        );
        assert_eq!(shown(r#""\u00e9\ud83d\ude00\ud800x\n""#), "é😀\u{FFFD}x\n");
        assert!(matches!(decode("3", Numbers::Floats), Ok(Value::Float(3.0))));
        assert!(matches!(decode("9223372036854775808", Numbers::Ints), Ok(Value::Float(_))));
    }

    #[test]
    fn what_is_not_json() {
        for text in [
            "", "{", "[1,]", "{a:1}", "01", "1.", "+1", "'a'", "\"\n\"", "nul", "1 2", "\"\\x\"",
            "1e999", "[1 2]",
        ] {
            assert!(decode(text, Numbers::Ints).is_err(), "{text}");
        }
        assert!(decode(&"[".repeat(100_000), Numbers::Ints).is_err());
    }
}
