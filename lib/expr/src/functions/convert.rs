//! Types, text, JSON and base64.

use govalue::json::{self, Numbers, Options};
use govalue::{Str, Value};

pub(super) fn string(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        // The reference prints what a location points to, fields and all.
        Value::Location(zone) => format!("{{{} [] []  0 0 <nil>}}", zone.name()).into(),
        _ => value.to_go_string().into(),
    }
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::String(_) => "string",
        Value::Bytes(_) | Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Location(_) => "time.Location",
        Value::Sized(kind, _) if kind.is_unsigned() => "uint",
        Value::Sized(kind, _) if !kind.is_named() => "int",
        Value::Time(_) | Value::Duration(_) | Value::Sized(..) => value.type_name(),
    }
}

pub(super) fn to_json(value: &Value) -> Result<Value, String> {
    let options = Options { indent: Some("  "), ..Options::default() };
    json::encode(value, options).map(Value::from).map_err(|error| error.to_string())
}

/// How many values a JSON text has at most.
pub(super) fn json_items(text: &Str) -> u64 {
    let separates = |byte: &&u8| matches!(**byte, b',' | b'[' | b'{');
    text.as_bytes().iter().filter(separates).count() as u64
}

pub(super) fn from_json(text: &Str) -> Result<Value, String> {
    json::decode(&text.to_str_lossy(), Numbers::Floats).map_err(|error| error.to_string())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let part = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = part(0) << 16 | part(1) << 8 | part(2);
        for index in 0..4 {
            let symbol = ALPHABET[(word >> (18 - 6 * index) & 63) as usize];
            out.push(if index <= chunk.len() { symbol as char } else { '=' });
        }
    }
    out
}

pub(super) fn from_base64(text: &[u8]) -> Result<Value, String> {
    decode(text)
        .map(|bytes| Str::from(bytes).into())
        .ok_or_else(|| "illegal base64 data".to_owned())
}

/// Padding is required; line ends are skipped.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.iter().copied().filter(|c| !matches!(c, b'\n' | b'\r')).collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(symbols.len() / 4 * 3);
    let last = symbols.len() / 4;
    for (index, chunk) in symbols.chunks(4).enumerate() {
        let padding = match chunk {
            [_, _, b'=', b'='] => 2,
            [_, _, _, b'='] => 1,
            _ => 0,
        };
        if padding > 0 && index + 1 != last {
            return None;
        }
        let mut word = 0u32;
        for symbol in &chunk[..4 - padding] {
            word = word << 6 | ALPHABET.iter().position(|known| known == symbol)? as u32;
        }
        word <<= 6 * padding;
        out.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_there_and_back() {
        for (text, coded) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("Hello World", "SGVsbG8gV29ybGQ="),
        ] {
            assert_eq!(to_base64(text.as_bytes()), coded);
            assert_eq!(decode(coded.as_bytes()).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode(b"YW\nI="), Some(b"ab".to_vec()));
        for bad in ["aGk", "_-8=", "a===", "YQ==YQ==", "Y=Q="] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
