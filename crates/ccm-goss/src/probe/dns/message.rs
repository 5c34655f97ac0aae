//! DNS messages: the question as bytes, and bytes as an answer.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

const HEADER: usize = 12;
const INTERNET: u16 = 1;
/// Flags of a header: an answer, cut short, recursion wanted.
const IS_ANSWER: u16 = 0x8000;
const IS_TRUNCATED: u16 = 0x0200;
const RECURSION: u16 = 0x0100;
const NO_SUCH_NAME: u16 = 3;
/// More jumps than this are a loop.
const MAX_JUMPS: usize = 64;

/// What a server said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The records of the answer section.
    Records(Vec<Record>),
    /// There is no such name.
    NoSuchName,
    /// It does not fit into a packet.
    Truncated,
    /// The server's code of an error.
    Refused(u16),
    /// An answer to the question that makes no sense.
    Malformed,
}

/// One record, its data as people write it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: u16,
    pub(super) text: String,
}

/// The question for records of a type; `None` if the name is none.
pub(super) fn query(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER + name.len() + 6);
    for word in [id, RECURSION, 1, 0, 0, 0] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    for label in name.split('.').filter(|_| !name.is_empty()) {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        bytes.push(length);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    if bytes.len() > HEADER + 255 {
        return None;
    }
    for word in [kind, INTERNET] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    Some(bytes)
}

/// What a message answers to a question; `None` if it answers another one.
pub(super) fn answer(message: &[u8], id: u16, query: &[u8]) -> Option<Answer> {
    let mut reader = Reader { message, at: 0 };
    let (own, flags) = (reader.word()?, reader.word()?);
    if own != id || flags & IS_ANSWER == 0 {
        return None;
    }
    let (questions, answers) = (reader.word()?, reader.word()?);
    reader.at = HEADER;
    if questions == 1 {
        let asked = message.get(HEADER..query.len())?;
        if !asked.eq_ignore_ascii_case(&query[HEADER..]) {
            return None;
        }
        reader.at = query.len();
    } else if questions != 0 {
        return Some(Answer::Malformed);
    }
    Some(match flags & 0xf {
        _ if flags & IS_TRUNCATED != 0 => Answer::Truncated,
        0 => reader.records(answers).map_or(Answer::Malformed, Answer::Records),
        NO_SUCH_NAME => Answer::NoSuchName,
        code => Answer::Refused(code),
    })
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let found = self.message.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(found)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn word(&mut self) -> Option<u16> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A name with a final dot. Names may go on elsewhere in the message.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut at = self.at;
        let mut end = None;
        for _ in 0..MAX_JUMPS {
            let length = usize::from(*self.message.get(at)?);
            match length {
                0 => {
                    self.at = end.unwrap_or(at + 1);
                    if name.is_empty() {
                        name.push('.');
                    }
                    return Some(name);
                }
                1..64 => {
                    let label = self.message.get(at + 1..at + 1 + length)?;
                    push_label(&mut name, label);
                    name.push('.');
                    at += 1 + length;
                }
                0xc0.. => {
                    end = end.or(Some(at + 2));
                    at = (length & 0x3f) << 8 | usize::from(*self.message.get(at + 1)?);
                }
                _ => return None,
            }
        }
        None
    }

    fn records(&mut self, count: u16) -> Option<Vec<Record>> {
        let mut records = Vec::new();
        for _ in 0..count {
            self.name()?;
            let (kind, class) = (self.word()?, self.word()?);
            self.bytes(4)?;
            let length = usize::from(self.word()?);
            let end = self.at.checked_add(length)?;
            if end > self.message.len() {
                return None;
            }
            // ccm queries no other types.
            if class == INTERNET && matches!(kind, 1 | 2 | 5 | 12 | 15 | 16 | 28 | 33 | 257) {
                records.push(Record { kind, text: self.data(kind, end)? });
            }
            self.at = end;
        }
        Some(records)
    }

    /// The data of a record as people write it.
    fn data(&mut self, kind: u16, end: usize) -> Option<String> {
        let length = end - self.at;
        Some(match kind {
            1 => Ipv4Addr::from(<[u8; 4]>::try_from(self.bytes(length)?).ok()?).to_string(),
            28 => Ipv6Addr::from(<[u8; 16]>::try_from(self.bytes(length)?).ok()?).to_string(),
            2 | 5 | 12 => self.name()?,
            15 => format!("{} {}", self.word()?, self.name()?),
            33 => format!("{} {} {} {}", self.word()?, self.word()?, self.word()?, self.name()?),
            16 => {
                let mut text = Vec::new();
                while self.at < end {
                    let part = self.byte()?;
                    text.extend_from_slice(self.bytes(part.into())?);
                }
                String::from_utf8_lossy(&text).into_owned()
            }
            257 => {
                let (flags, tag) = (self.byte()?, self.byte()?);
                let tag = String::from_utf8_lossy(self.bytes(tag.into())?).into_owned();
                let value = self.bytes(end.checked_sub(self.at)?)?;
                format!("{flags} {tag} {}", String::from_utf8_lossy(value))
            }
            _ => return None,
        })
    }
}

/// A label as names are written: what is no printable character, and dots
/// inside, by number.
fn push_label(name: &mut String, label: &[u8]) {
    for &byte in label {
        match byte {
            b'.' | b'\\' => name.extend(['\\', char::from(byte)]),
            b'!'..=b'~' => name.push(char::from(byte)),
            _ => drop(write!(name, "\\{byte:03}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer with one record, its name a jump to the question.
    fn with_record(query: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
        let mut bytes = query.to_vec();
        bytes[2] |= 0x80;
        bytes[7] = 1;
        bytes.extend([0xc0, 12]);
        for word in [kind, INTERNET, 0, 60, data.len() as u16] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(data);
        bytes
    }

    #[test]
    fn records_are_written_as_people_write_them() {
        for (kind, data, wanted) in [
            (1, &[192, 0, 2, 1][..], "192.0.2.1"),
            (28, &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8], "1:2:3:4:5:6:7:8"),
            (5, b"\x01a\xc0\x0c", "a.x.test."),
            (2, b"\x00", "."),
            (15, b"\x00\x05\x02mx\xc0\x0e", "5 mx.test."),
            (33, b"\x00\x01\x00\x02\x01\xbb\x01s\x00", "1 2 443 s."),
            (16, b"\x02ab\x03c d", "abc d"),
            (257, b"\x00\x05issueca.test", "0 issue ca.test"),
            (12, b"\x03a.b\x01\x07\x00", "a\\.b.\\007."),
        ] {
            let query = query(7, "x.test", kind).unwrap();
            let message = with_record(&query, kind, data);
            let Some(Answer::Records(records)) = answer(&message, 7, &query) else {
                panic!("{kind}");
            };
            assert_eq!(records, [Record { kind, text: wanted.to_owned() }]);
        }
    }

    #[test]
    fn other_answers_are_told_apart() {
        let query = query(7, "x.test", 1).unwrap();
        let message = with_record(&query, 1, &[1, 2, 3, 4]);
        assert_eq!(answer(&message, 8, &query), None, "another id");
        assert_eq!(answer(&query, 7, &query), None, "not an answer");
        let other = self::query(7, "y.test", 1).unwrap();
        assert_eq!(answer(&with_record(&other, 1, &[1, 2, 3, 4]), 7, &query), None);
        let with_flags = |flags: u8, more: u8| {
            let mut message = message.clone();
            message[2] |= more;
            message[3] |= flags;
            answer(&message, 7, &query).unwrap()
        };
        assert_eq!(with_flags(3, 0), Answer::NoSuchName);
        assert_eq!(with_flags(2, 0), Answer::Refused(2));
        assert_eq!(with_flags(0, 2), Answer::Truncated);
        // A name that leads to itself, and data that ends early.
        let looped = with_record(&query, 5, &[0xc0, query.len() as u8 + 12]);
        assert_eq!(answer(&looped, 7, &query), Some(Answer::Malformed));
        assert_eq!(answer(&message[..message.len() - 1], 7, &query), Some(Answer::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let query = query(7, "x.test", 1).unwrap();
            let mut message = query.clone();
            message[2] |= 0x80;
            message[7] = 3;
            message.extend(tail);
            let _ = answer(&message, 7, &query);
            let _ = answer(&message[HEADER..], 7, &query);
        }
    }
}
