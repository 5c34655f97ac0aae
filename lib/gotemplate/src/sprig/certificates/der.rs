//! As much of DER and PEM as certificates and private keys need.

use govalue::base64;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// A part of a structure that has its number for a type.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// One element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let used = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(0)..];
        out.push(0x80 | used.len() as u8);
        out.extend_from_slice(used);
    }
    out.extend_from_slice(content);
    out
}

/// An element made of others.
pub(super) fn nested(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// A positive number from its bytes.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len().saturating_sub(1));
    let mut content = bytes[start..].to_vec();
    // A leading one bit would make it negative.
    if content.first().is_none_or(|byte| *byte >= 0x80) {
        content.insert(0, 0);
    }
    element(INTEGER, &content)
}

/// Whole bytes as a string of bits.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// Reads elements one after the other.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next element whatever it is: its tag, content and all of its bytes.
    pub(super) fn any(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return None;
            }
            let (bytes, rest) = rest.split_at_checked(count)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some((tag, content, whole))
    }

    /// The content of the next element, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.any().filter(|(found, ..)| *found == tag).map(|(_, content, _)| content)
    }

    /// Passes over an element with this tag, if it is the next.
    pub(super) fn skip(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.any();
        }
    }
}

pub(super) fn pem(label: &str, bytes: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in base64::encode(bytes).as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + "-----END " + label + "-----\n"
}

/// The label and the bytes of the first block in a text.
pub(super) fn from_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    Some((label, base64::decode(body.trim().as_bytes())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_both_ways() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let bytes = element(OCTET_STRING, &content);
            let mut reader = Reader(&bytes);
            assert_eq!(reader.expect(OCTET_STRING), Some(&content[..]));
            assert!(reader.any().is_none());
        }
        assert_eq!(integer(&[0, 0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[0, 0]), [2, 1, 0]);
        assert!(Reader(&[0x30, 0x85, 1, 1, 1, 1, 1]).any().is_none());
    }

    #[test]
    fn blocks_of_text() {
        let text = pem("TEST", &[9; 100]);
        assert_eq!(from_pem(&text), Some(("TEST", vec![9; 100])));
        assert_eq!(from_pem("nothing"), None);
    }
}
