//! Lines with checksums.

use ccm_host::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many hexadecimal digits of the SHA-256 precede a record.
const DIGITS: usize = 16;

/// A record as a line.
pub(crate) fn encode(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    encode_into(&mut bytes, record);
    bytes
}

/// Adds a record as a line.
pub(crate) fn encode_into(bytes: &mut Vec<u8>, record: &impl Serialize) {
    let start = bytes.len();
    let json = start + DIGITS + 1;
    bytes.resize(json, b' ');
    if serde_json::to_writer(&mut *bytes, record).is_err() {
        bytes.truncate(json);
    }
    let sum = checksum(&bytes[json..]);
    bytes[start..json - 1].copy_from_slice(&sum);
    bytes.push(b'\n');
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
    /// The last line was not written to its end.
    pub(crate) is_torn: bool,
}

/// The records of a file. Half a line at its end counts as not written.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Decoded<T> {
    let mut decoded = Decoded { records: Vec::new(), is_damaged: false, is_torn: false };
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            decoded.is_torn = true;
            break;
        };
        match decode_line(line) {
            Some(record) => decoded.records.push(record),
            None => decoded.is_damaged = true,
        }
    }
    decoded
}

/// The lines of a file that are whole, as they are.
pub(crate) fn whole_lines(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let is_whole = |line: &&[u8]| {
        let line = line.strip_suffix(b"\n");
        line.is_some_and(|line| decode_line::<serde_json::Value>(line).is_some())
    };
    lines.filter(is_whole).flatten().copied().collect()
}

fn decode_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (sum, json) = line.split_at_checked(DIGITS)?;
    let json = json.strip_prefix(b" ")?;
    if checksum(json) != sum {
        return None;
    }
    serde_json::from_slice(json).ok()
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
}
