//! Reading JSON that may not be JSON: whatever can begin a value does, all else
//! is passed over.

use crate::found::Kind;

/// Where a value begins, and what it is by its first character.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
}

/// A value as it stands in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) kind: Kind,
    pub(crate) raw: &'a str,
}

impl<'a> Piece<'a> {
    /// The value that a text begins with; objects and arrays keep all the text
    /// that follows them. Empty where there is none.
    pub(crate) fn first(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let at = bytes.iter().take_while(|byte| **byte <= b' ').count();
        let Some(kind) = kind_at(bytes, at) else {
            return Self { kind: Kind::Null, raw: "" };
        };
        let end = match kind {
            Kind::Json => bytes.len(),
            _ => value_end(bytes, Head { kind, at }).unwrap_or(bytes.len()),
        };
        Self { kind, raw: &text[at..end] }
    }

    pub(crate) fn is_object(self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('{')
    }

    pub(crate) fn is_array(self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('[')
    }
}

/// The kind of value that begins at an offset, if one does.
pub(crate) fn kind_at(bytes: &[u8], at: usize) -> Option<Kind> {
    Some(match bytes.get(at)? {
        b'"' => Kind::String,
        b'{' | b'[' => Kind::Json,
        b't' => Kind::True,
        b'f' => Kind::False,
        // Only a `u` makes it a null; `nan` is a number.
        b'n' if bytes.get(at + 1).is_none_or(|next| *next == b'u') => Kind::Null,
        b'n' | b'N' | b'i' | b'I' | b'+' | b'-' | b'0'..=b'9' => Kind::Number,
        _ => return None,
    })
}

/// The offset after the string whose quote is at `at`; `None` without an end.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The offset after the bracket that closes the one at `at`, with strings
/// passed over and all kinds of brackets counted alike; `None` without an end.
pub(crate) fn group_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = at;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The offset after a value; `None` for a string without an end.
pub(crate) fn value_end(bytes: &[u8], head: Head) -> Option<usize> {
    let run = |more: fn(&u8) -> bool| {
        let length = bytes[head.at + 1..].iter().take_while(|byte| more(byte)).count();
        Some(head.at + 1 + length)
    };
    match head.kind {
        Kind::String => string_end(bytes, head.at),
        Kind::Json => Some(group_end(bytes, head.at).unwrap_or(bytes.len())),
        Kind::Number => run(|byte| *byte > b' ' && !matches!(byte, b',' | b']' | b'}')),
        Kind::True | Kind::False | Kind::Null => run(u8::is_ascii_lowercase),
    }
}

/// A place in a JSON text, inside of an object or an array.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// The next key of an object, quotes included.
    pub(crate) fn key(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'"' => break,
                b'}' => return None,
                _ => self.at += 1,
            }
        }
        let start = self.at;
        self.at = string_end(bytes, start)?;
        Some(&self.text[start..self.at])
    }

    /// Where the next value begins, up to a closing bracket.
    pub(crate) fn head(&mut self, close: u8) -> Option<Head> {
        let bytes = self.text.as_bytes();
        loop {
            if let Some(kind) = kind_at(bytes, self.at) {
                return Some(Head { kind, at: self.at });
            }
            if *bytes.get(self.at)? == close {
                return None;
            }
            self.at += 1;
        }
    }

    /// Moves behind a value and returns it.
    pub(crate) fn take(&mut self, head: Head) -> Option<Piece<'a>> {
        self.at = value_end(self.text.as_bytes(), head)?;
        Some(Piece { kind: head.kind, raw: &self.text[head.at..self.at] })
    }
}

/// The members of an object with their keys, the elements of an array without.
#[derive(Clone, Debug)]
pub(crate) struct Children<'a> {
    cursor: Cursor<'a>,
    close: u8,
}

impl<'a> Children<'a> {
    /// The children of a text that begins with a bracket; any other has none.
    pub(crate) fn of(text: &'a str) -> Self {
        let (close, at) = match text.as_bytes().first() {
            Some(b'{') => (b'}', 1),
            Some(b'[') => (b']', 1),
            _ => (0, text.len()),
        };
        Self { cursor: Cursor::new(text, at), close }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = (Option<&'a str>, Piece<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = if self.close == b'}' { Some(self.cursor.key()?) } else { None };
        let head = self.cursor.head(self.close)?;
        Some((key, self.cursor.take(head)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(text: &str) -> Vec<String> {
        Children::of(text)
            .map(|(key, value)| format!("{}{}", key.unwrap_or_default(), value.raw))
            .collect()
    }

    #[test]
    fn children_of_json() {
        assert_eq!(
            children(r#"[1, "a]" ,[2,[3]],{"k":"}"}] 9"#),
            ["1", "\"a]\"", "[2,[3]]", r#"{"k":"}"}"#]
        );
        assert_eq!(children(r#"{"a":1,"b\"":null}"#), ["\"a\"1", r#""b\""null"#]);
        assert_eq!(children("5"), [""; 0]);
    }

    #[test]
    fn children_of_what_is_not_json() {
        assert_eq!(children(r#"{"tag":, "good"}"#), [r#""tag""good""#]);
        assert_eq!(children(r#"{"sadf":sdf"asdf"}"#), ["\"sadf\"f"]);
        assert_eq!(children("[1,2"), ["1", "2"]);
        assert_eq!(children("[1,\"2"), ["1"]);
        assert_eq!(children("{a:1}"), [""; 0]);
        assert_eq!(children("[nan,nul,tru?]"), ["nan", "nul", "tru"]);
    }
}
