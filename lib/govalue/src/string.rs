//! Go's string: bytes that are usually, but not always, UTF-8.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A shared, immutable Go string.
///
/// Go strings may hold any bytes: slicing one can cut a character in half. The
/// text form is kept where the bytes are UTF-8, so the common case hands out a
/// `&str` for free.
#[derive(Clone)]
pub struct Str(Repr);

#[derive(Clone)]
enum Repr {
    Text(Arc<str>),
    /// Never valid UTF-8, so equal strings have equal representations.
    Raw(Arc<[u8]>),
}

impl Str {
    /// A string of these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::from(text),
            Err(_) => Self(Repr::Raw(Arc::from(bytes))),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Text(text) => text.as_bytes(),
            Repr::Raw(bytes) => bytes,
        }
    }

    /// The text, unless some byte is not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Text(text) => Some(text),
            Repr::Raw(_) => None,
        }
    }

    /// The text, with U+FFFD for what is not UTF-8.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Text(text) => Cow::Borrowed(text),
            Repr::Raw(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// Length in bytes, Go's `len`.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The characters as Go's `range` sees them: each invalid byte is one U+FFFD.
    pub fn runes(&self) -> impl Iterator<Item = char> + '_ {
        let (text, raw) = match &self.0 {
            Repr::Text(text) => (&**text, &[][..]),
            Repr::Raw(bytes) => ("", &**bytes),
        };
        text.chars().chain(raw_runes(raw).map(|(_, rune)| rune.unwrap_or('\u{FFFD}')))
    }

    /// The bytes of each character; an invalid byte stands alone.
    pub fn rune_bytes(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let mut rest = self.as_bytes();
        raw_runes(self.as_bytes()).map(move |(len, _)| {
            let (rune, after) = rest.split_at(len);
            rest = after;
            rune
        })
    }

    /// How many characters there are, Go's `utf8.RuneCountInString`.
    pub fn rune_count(&self) -> usize {
        match &self.0 {
            Repr::Text(text) => text.chars().count(),
            Repr::Raw(bytes) => raw_runes(bytes).count(),
        }
    }

    /// The bytes from `start` to `end`, both clamped to the string.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let end = end.min(self.len());
        let start = start.min(end);
        Self::from_bytes(&self.as_bytes()[start..end])
    }
}

/// Every character with its length in bytes; `None` marks a byte that is not
/// part of one.
pub(crate) fn raw_runes(mut bytes: &[u8]) -> impl Iterator<Item = (usize, Option<char>)> + '_ {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let (len, rune) = first_rune(bytes);
        bytes = &bytes[len..];
        Some((len, rune))
    })
}

fn first_rune(bytes: &[u8]) -> (usize, Option<char>) {
    let longest = bytes.len().min(4);
    for len in 1..=longest {
        if let Ok(text) = std::str::from_utf8(&bytes[..len]) {
            return (len, text.chars().next());
        }
    }
    (1, None)
}

impl Default for Str {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(Repr::Text(Arc::from(text)))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(Repr::Text(Arc::from(text)))
    }
}

impl From<Arc<str>> for Str {
    fn from(text: Arc<str>) -> Self {
        Self(Repr::Text(text))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::from(text),
            Err(error) => Self(Repr::Raw(Arc::from(error.into_bytes()))),
        }
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str_lossy())
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::quote(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_kept_byte_for_byte() {
        let text = Str::from("héllo");
        let cut = text.slice(0, 2);
        assert_eq!(cut.as_bytes(), b"h\xc3");
        assert_eq!(cut.as_str(), None);
        assert_eq!(cut.rune_count(), 2);
        assert_eq!(cut.runes().collect::<String>(), "h\u{FFFD}");
        assert_eq!(cut.rune_bytes().collect::<Vec<_>>(), [&b"h"[..], b"\xc3"]);
        assert_eq!(text.slice(1, 3), "é");
        assert_eq!(text.slice(9, 3), "");
    }
}
