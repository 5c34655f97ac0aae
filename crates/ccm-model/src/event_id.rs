//! Event IDs: KSUIDs that sort in the order of recording.

use std::fmt;
use std::str::FromStr;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Where the seconds of a KSUID begin to count: 2014-05-13.
const EPOCH: i64 = 1_400_000_000;
const TEXT_LENGTH: usize = 27;

/// A KSUID. Its payload begins with the nanoseconds within the second, so that
/// ids made in one second, by one process or several, still sort by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId([u8; 20]);

/// A text that is no event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event id")]
pub struct InvalidEventId;

impl EventId {
    /// An id for an instant, unlike any other by `random`.
    pub fn new(at: jiff::Timestamp, random: [u8; 12]) -> Self {
        let mut id = [0; 20];
        let seconds = (at.as_second() - EPOCH).clamp(0, i64::from(u32::MAX)) as u32;
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..8].copy_from_slice(&(at.subsec_nanosecond().max(0) as u32).to_be_bytes());
        id[8..].copy_from_slice(&random);
        Self(id)
    }

    /// The smallest id behind this one.
    #[must_use]
    pub fn next(self) -> Self {
        let mut id = self.0;
        for byte in id.iter_mut().rev() {
            let (sum, carry) = byte.overflowing_add(1);
            *byte = sum;
            if !carry {
                break;
            }
        }
        Self(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = [0u32; 5];
        for (limb, bytes) in limbs.iter_mut().zip(self.0.chunks_exact(4)) {
            *limb = bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        }
        let mut text = [b'0'; TEXT_LENGTH];
        for digit in text.iter_mut().rev() {
            let mut remainder = 0u64;
            for limb in &mut limbs {
                let value = remainder << 32 | u64::from(*limb);
                *limb = (value / 62) as u32;
                remainder = value % 62;
            }
            *digit = ALPHABET[remainder as usize];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != TEXT_LENGTH {
            return Err(InvalidEventId);
        }
        let mut id = [0u8; 20];
        for c in text.bytes() {
            let digit = ALPHABET.iter().position(|&known| known == c).ok_or(InvalidEventId)?;
            let mut carry = digit as u32;
            for byte in id.iter_mut().rev() {
                let value = u32::from(*byte) * 62 + carry;
                *byte = value as u8;
                carry = value >> 8;
            }
            if carry != 0 {
                return Err(InvalidEventId);
            }
        }
        Ok(Self(id))
    }
}

impl serde::Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_is_a_ksuid() {
        // The example of the KSUID documentation: id, timestamp and payload.
        let id: EventId = "0ujtsYcgvSTl8PAuAdqWYSMnLOv".parse().unwrap();
        assert_eq!(u32::from_be_bytes([id.0[0], id.0[1], id.0[2], id.0[3]]), 107_608_047);
        assert_eq!(id.to_string(), "0ujtsYcgvSTl8PAuAdqWYSMnLOv");
        assert!("zzzzzzzzzzzzzzzzzzzzzzzzzzz".parse::<EventId>().is_err());
        assert!("0ujtsYcgvSTl8PAuAdqWYSMnLO!".parse::<EventId>().is_err());
    }

    proptest! {
        #[test]
        fn texts_sort_as_the_instants_do(a in 1_500_000_000_000_000_000i128..2_000_000_000_000_000_000, step in 1i128..3_000_000_000, r in any::<[u8; 12]>(), s in any::<[u8; 12]>()) {
            let at = |ns| jiff::Timestamp::from_nanosecond(ns).unwrap();
            let (first, second) = (EventId::new(at(a), r), EventId::new(at(a + step), s));
            prop_assert!(first.to_string() < second.to_string());
            prop_assert!(first < first.next() && first.to_string() < first.next().to_string());
            prop_assert_eq!(first.to_string().parse::<EventId>().unwrap(), first);
        }
    }
}
