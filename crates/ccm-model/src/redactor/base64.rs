//! Redacts secrets inside Base64 text, because anyone can decode it.

use std::ops::Range;

/// Fewer digits encode nothing that is looked for.
const MIN_DIGITS: usize = 6;

/// Adds every run of Base64 digits in a text that encodes something secret. What
/// stands before the secret may shift it, so all alignments count.
pub(super) fn find(text: &str, is_secret: impl Fn(&[u8]) -> bool, into: &mut Vec<Range<usize>>) {
    let mut decoded = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|&&byte| digit(byte).is_some()).count();
        let run = &bytes[at..at + length];
        let holds_secret = length >= MIN_DIGITS
            && (0..4).any(|skipped| {
                decode(&run[skipped..], &mut decoded);
                is_secret(&decoded)
            });
        if holds_secret {
            let end = at + length;
            let filling = bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
            into.push(at..end + filling);
        }
        at += length.max(1);
    }
}

/// The value of a digit of either alphabet.
fn digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

/// Decodes digits; what is left of the last group counts as far as it goes.
fn decode(digits: &[u8], into: &mut Vec<u8>) {
    into.clear();
    for group in digits.chunks(4) {
        let value = group.iter().filter_map(|&byte| digit(byte)).fold(0, |all, one| all << 6 | one);
        let bytes = (value << (6 * (4 - group.len()))).to_be_bytes();
        into.extend_from_slice(&bytes[1..group.len()]);
    }
}
