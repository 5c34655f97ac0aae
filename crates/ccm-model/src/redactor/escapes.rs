//! Finds secrets whose characters are escaped: with backslashes, as in JSON, or
//! with percent signs, as in URLs.

use std::ops::Range;

/// Gives what an escape at the beginning of a text stands for, and its length.
type Decode = dyn Fn(&[u8]) -> Option<(Piece, usize)>;

/// Adds where a text holds something secret behind escapes.
pub(super) fn find(
    text: &str,
    find: impl Fn(&[u8], &mut Vec<Range<usize>>),
    into: &mut Vec<Range<usize>>,
) {
    let has = |byte: u8| memchr::memchr(byte, text.as_bytes()).is_some();
    let mut search = |decode: &Decode| {
        let decoded = Decoded::new(text.as_bytes(), decode);
        let mut found = Vec::new();
        find(&decoded.bytes, &mut found);
        into.extend(found.into_iter().map(|range| decoded.place(&range)));
    };
    if has(b'\\') {
        search(&backslash);
    }
    if has(b'%') {
        search(&percent);
    }
    // Forms write a blank so.
    if has(b'+') {
        search(&|rest| match rest.first() {
            Some(b'+') => Some((Piece::from(' '), 1)),
            _ => percent(rest),
        });
    }
}

/// A text without escapes.
struct Decoded {
    bytes: Vec<u8>,
    /// Where each byte comes from, and where the text ends.
    from: Vec<usize>,
}

impl Decoded {
    fn new(text: &[u8], decode: &Decode) -> Self {
        let mut this = Self { bytes: Vec::with_capacity(text.len()), from: Vec::new() };
        let mut at = 0;
        while at < text.len() {
            let (piece, length) =
                decode(&text[at..]).unwrap_or((Piece { bytes: [text[at], 0, 0, 0], length: 1 }, 1));
            for &byte in &piece.bytes[..piece.length] {
                this.bytes.push(byte);
                this.from.push(at);
            }
            at += length;
        }
        this.from.push(text.len());
        this
    }

    /// Where a part of the decoded text stands in the text.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let end = self.from.len() - 1;
        self.from[range.start.min(end)]..self.from[range.end.min(end)]
    }
}

/// The UTF-8 bytes of one character, or one byte.
struct Piece {
    bytes: [u8; 4],
    length: usize,
}

impl From<char> for Piece {
    fn from(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }
}

/// `%2F`, with how many bytes it has.
fn percent(rest: &[u8]) -> Option<(Piece, usize)> {
    let [b'%', digits @ ..] = rest else { return None };
    let byte = u8::try_from(number(digits.get(..2)?)?).ok()?;
    Some((Piece { bytes: [byte, 0, 0, 0], length: 1 }, 3))
}

/// `\"`, `\n`, `\u00e4`, with how many bytes it has.
fn backslash(rest: &[u8]) -> Option<(Piece, usize)> {
    let [b'\\', escaped, digits @ ..] = rest else { return None };
    let c = match escaped {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(digits),
        // What stands for itself; only the backslash goes of others.
        byte if byte.is_ascii() => char::from(*byte),
        _ => return None,
    };
    Some((c.into(), 2))
}

/// The digits behind `\u`, and a second half where there is one.
fn unicode(digits: &[u8]) -> Option<(Piece, usize)> {
    let first = number(digits.get(..4)?)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c.into(), 6));
    }
    let [b'\\', b'u', second @ ..] = digits.get(4..)? else { return None };
    let second = number(second.get(..4)?)?;
    let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
    let both = is_pair.then(|| 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?;
    Some((char::from_u32(both)?.into(), 12))
}

/// The value of hexadecimal digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, &digit| Some(number * 16 + char::from(digit).to_digit(16)?))
}
