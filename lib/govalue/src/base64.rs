//! Base64 as Go's standard encoding reads and writes it.

use ::base64::Engine as _;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Go pads, and accepts bits behind the last byte that mean nothing.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Encodes bytes, with padding.
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Decodes a text with its padding; line ends are skipped. `None` if it is no
/// base64.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return ENGINE.decode(text).ok();
    }
    let line: Vec<u8> =
        text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    ENGINE.decode(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (text, coded) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("Hello World", "SGVsbG8gV29ybGQ="),
        ] {
            assert_eq!(encode(text.as_bytes()), coded);
            assert_eq!(decode(coded.as_bytes()).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode(b"YW\nI="), Some(b"ab".to_vec()));
        assert_eq!(decode(b"YR=="), Some(b"a".to_vec()), "bits that mean nothing");
        for bad in ["aGk", "_-8=", "a===", "YQ==YQ==", "Y=Q=", "YQ==\nx"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
