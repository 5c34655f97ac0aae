//! Lines with checksums. A line contains all records of one write.

use ccm_host::{Digest, Result, StateDir};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many hexadecimal digits of the SHA-256 precede the records of a line.
const DIGITS: usize = 16;
const BEGIN: usize = DIGITS + 1;

/// A record as a line.
pub(crate) fn encode(record: &impl Serialize) -> Vec<u8> {
    let mut line = Line::default();
    line.push(record);
    line.finish();
    line.0
}

/// Records that are written together, as a line that is not finished yet.
#[derive(Debug)]
pub(crate) struct Line(Vec<u8>);

impl Default for Line {
    fn default() -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.resize(BEGIN, b' ');
        Self(bytes)
    }
}

impl Line {
    /// Adds a record.
    pub(crate) fn push(&mut self, record: &impl Serialize) {
        let begin = self.0.len();
        if serde_json::to_writer(&mut self.0, record).is_err() {
            self.0.truncate(begin);
        }
    }

    /// How long it is, without what precedes the records.
    pub(crate) fn len(&self) -> usize {
        self.0.len() - BEGIN
    }

    /// Drops everything beyond a length that it had.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(BEGIN + length);
    }

    /// The line as it is written, until the next call of any other function.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let sum = checksum(&self.0[BEGIN..]);
        self.0[..DIGITS].copy_from_slice(&sum);
        self.0.push(b'\n');
        &self.0
    }
}

fn checksum(json: &[u8]) -> [u8; DIGITS] {
    let mut sum = [0; DIGITS];
    sum.copy_from_slice(&Digest::of(json).hex()[..DIGITS]);
    sum
}

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    /// Everything that is whole.
    pub(crate) records: Vec<T>,
    /// Something is not, and a killed writer cannot be the reason.
    pub(crate) is_damaged: bool,
    /// How many records precede each line that is not whole.
    pub(crate) gaps: Vec<usize>,
    /// The last line was not written to its end.
    pub(crate) is_torn: bool,
}

/// The records of a file. Half a line at its end counts as not written.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Decoded<T> {
    let mut decoded =
        Decoded { records: Vec::new(), is_damaged: false, gaps: Vec::new(), is_torn: false };
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            decoded.is_torn = true;
            break;
        };
        match decode_line(line) {
            Some(mut records) => decoded.records.append(&mut records),
            None => {
                decoded.is_damaged = true;
                decoded.gaps.push(decoded.records.len());
            }
        }
    }
    decoded
}

/// The lines of a file that are whole, as they are, and `marker` in the place of
/// each other one.
pub(crate) fn whole_lines(bytes: &[u8], marker: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(content) = line.strip_suffix(b"\n") else { break };
        let is_whole = decode_line::<serde_json::Value>(content).is_some();
        whole.extend_from_slice(if is_whole { line } else { marker });
    }
    whole
}

/// How many damaged files of one name are told apart.
const MAX_ASIDE: usize = 1000;

/// Gives a file another name, which says why, and is not that of an earlier one.
pub(crate) fn set_aside(folder: &StateDir, name: &str, suffix: &str) -> Result<()> {
    let mut aside = format!("{name}.{suffix}");
    for number in 2..MAX_ASIDE {
        if folder.links(&aside)?.is_none() {
            break;
        }
        aside = format!("{name}.{number}.{suffix}");
    }
    folder.rename(name, aside)
}

/// The records of a line, if all of them are whole.
fn decode_line<T: DeserializeOwned>(line: &[u8]) -> Option<Vec<T>> {
    let (sum, json) = line.split_at_checked(DIGITS)?;
    let json = json.strip_prefix(b" ")?;
    if checksum(json) != sum {
        return None;
    }
    let records = serde_json::Deserializer::from_slice(json).into_iter();
    records.collect::<std::result::Result<Vec<T>, _>>().ok().filter(|records| !records.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_end_is_told_from_damage() {
        let whole: Vec<u8> = ["one", "two", "three"].iter().flat_map(encode).collect();
        let decoded: Decoded<String> = decode(&whole);
        assert_eq!(decoded.records, ["one", "two", "three"]);
        assert!(!decoded.is_damaged && !decoded.is_torn);
        for end in 0..whole.len() {
            let decoded: Decoded<String> = decode(&whole[..end]);
            assert!(!decoded.is_damaged, "cut at {end}");
            assert_eq!(decoded.records, ["one", "two", "three"][..decoded.records.len()]);
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let decoded: Decoded<String> = decode(&flipped);
            assert!(decoded.is_damaged || decoded.is_torn, "bit {bit} went unnoticed");
            assert!(decoded.records.iter().all(|text| ["one", "two", "three"].contains(&&**text)));
        }
    }

    #[test]
    fn what_is_written_together_is_there_together() {
        let mut line = Line::default();
        line.push(&"one");
        let length = line.len();
        line.push(&"dropped");
        line.truncate(length);
        line.push(&"two");
        let bytes = line.finish().to_vec();
        let decoded: Decoded<String> = decode(&bytes);
        assert_eq!(decoded.records, ["one", "two"]);
        for end in 0..bytes.len() {
            let decoded: Decoded<String> = decode(&bytes[..end]);
            assert!(decoded.records.is_empty() && !decoded.is_damaged, "cut at {end}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let decoded: Decoded<String> = decode(&flipped);
            assert!(decoded.records.is_empty(), "bit {bit} went unnoticed");
        }
        // What a power failure leaves of a file that was not on disk yet.
        let decoded: Decoded<String> = decode(&[bytes, vec![0; 100]].concat());
        assert!(decoded.records.len() == 2 && decoded.is_torn);
    }
}
