//! Keys as text: base 32 without padding, with a checksum at the end.

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Bytes with their checksum.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in bytes.iter().chain(&checksum(bytes).to_le_bytes()) {
        bits = bits << 8 | u32::from(byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(letter(bits >> count));
        }
    }
    if count > 0 {
        text.push(letter(bits << (5 - count)));
    }
    text
}

fn letter(bits: u32) -> char {
    char::from(ALPHABET[(bits & 0b1_1111) as usize])
}

/// The bytes before the checksum, if that is right.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    // What is left over is less than a letter, and zero.
    if count >= 5 || bits & ((1 << count) - 1) != 0 {
        return None;
    }
    let (content, sum) = bytes.split_last_chunk()?;
    (u16::from_le_bytes(*sum) == checksum(content)).then(|| content.to_vec())
}

/// CRC-16 as XMODEM has it.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |mut sum, &byte| {
        sum ^= u16::from(byte) << 8;
        for _ in 0..8 {
            let carry = sum & 0x8000 != 0;
            sum <<= 1;
            if carry {
                sum ^= 0x1021;
            }
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0x31c3);
    }

    #[test]
    fn all_lengths_come_back() {
        for length in 0..40 {
            let bytes: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
