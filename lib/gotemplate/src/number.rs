//! Number, character and string literals.

use govalue::{Unquoted, parse_float, unquote_char};

/// A literal number: which types it may become depends on where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
    /// Written as a float, which decides its type where nothing else does.
    pub(crate) float_text: bool,
}

impl Number {
    /// A character such as `'a'`, which is an integer.
    pub(crate) fn character(text: &str) -> Result<Self, String> {
        let malformed = || format!("malformed character constant: {text}");
        let inner = text.get(1..text.len() - 1).ok_or_else(malformed)?;
        let (unit, rest) = unquote_char(inner, '\'').ok_or_else(malformed)?;
        if !rest.is_empty() {
            return Err(malformed());
        }
        let code = match unit {
            Unquoted::Char(c) => i64::from(u32::from(c)),
            Unquoted::Byte(byte) => i64::from(byte),
        };
        Ok(Self::from_int(code))
    }

    fn from_int(int: i64) -> Self {
        Self {
            int: Some(int),
            uint: u64::try_from(int).ok(),
            float: Some(int as f64),
            complex: None,
            float_text: false,
        }
    }

    /// `1+2i`
    pub(crate) fn complex(text: &str) -> Result<Self, String> {
        let bad = || format!("illegal number syntax: {text:?}");
        let body = text.strip_suffix('i').ok_or_else(bad)?;
        // The last sign that is not part of an exponent parts the halves.
        let split = body
            .char_indices()
            .skip(1)
            .filter(|(at, c)| {
                matches!(c, '+' | '-') && !body[..*at].ends_with(['e', 'E', 'p', 'P'])
            })
            .last()
            .map(|(at, _)| at);
        let (real, imaginary) = body.split_at(split.unwrap_or(0));
        let real = if real.is_empty() { 0.0 } else { float(real).ok_or_else(bad)? };
        Ok(Self::from_complex(real, float(imaginary).ok_or_else(bad)?))
    }

    fn from_complex(real: f64, imaginary: f64) -> Self {
        let float = (imaginary == 0.0).then_some(real);
        Self {
            int: float.and_then(whole),
            uint: None,
            float,
            complex: Some((real, imaginary)),
            float_text: true,
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("illegal number syntax: {text:?}");
        let hexadecimal =
            text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
        if let Some(imaginary) = text.strip_suffix('i') {
            let imaginary = float(imaginary).or_else(|| int(imaginary).map(|int| int as f64));
            return Ok(Self::from_complex(0.0, imaginary.ok_or_else(bad)?));
        }
        if let Some(int) = int(text) {
            return Ok(Self::from_int(int));
        }
        if let Some(uint) = uint(text) {
            return Ok(Self {
                int: None,
                uint: Some(uint),
                float: Some(uint as f64),
                complex: None,
                float_text: false,
            });
        }
        let float_text = if hexadecimal {
            text.contains(['.', 'p', 'P'])
        } else {
            text.contains(['.', 'e', 'E', 'p', 'P'])
        };
        let value = float(text).ok_or_else(bad)?;
        if !float_text {
            return Err(format!("integer overflow: {text:?}"));
        }
        Ok(Self {
            int: whole(value),
            uint: whole(value).and_then(|int| u64::try_from(int).ok()),
            float: Some(value),
            complex: None,
            float_text,
        })
    }
}

fn whole(value: f64) -> Option<i64> {
    let inside = (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value);
    (inside && value.trunc().total_cmp(&value).is_eq()).then_some(value as i64)
}

fn int(text: &str) -> Option<i64> {
    govalue::parse_int(text, 0).ok()
}

/// Beyond the largest integer, where only unsigned ones go.
fn uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase().replace('_', "");
    match lower.get(..2) {
        Some("0x") => u64::from_str_radix(&lower[2..], 16).ok(),
        Some("0o") => u64::from_str_radix(&lower[2..], 8).ok(),
        Some("0b") => u64::from_str_radix(&lower[2..], 2).ok(),
        _ => lower.parse().ok().filter(|_| !lower.starts_with(['+', '0'])),
    }
}

/// As `strconv.ParseFloat`, with underscores between digits.
pub(crate) fn float(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return parse_float(text).ok();
    }
    let bytes = text.as_bytes();
    let hexadecimal = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at)).is_some_and(|byte| {
            byte.is_ascii_digit() || hexadecimal && (byte.is_ascii_hexdigit() || *byte == b'x')
        })
    };
    let separates = (0..bytes.len())
        .filter(|at| bytes[*at] == b'_')
        .all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)));
    separates.then(|| parse_float(&text.replace('_', "")).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let int = |text: &str| Number::parse(text).unwrap().int;
        for (text, want) in [
            ("017", 15),
            ("0x1F", 31),
            ("0b11", 3),
            ("1_000", 1000),
            ("-3", -3),
            ("1e3", 1000),
            ("+1", 1),
        ] {
            assert_eq!(int(text), Some(want), "{text}");
        }
        assert_eq!(int("1.5"), None);
        assert_eq!(Number::parse("1_000.5").unwrap().float, Some(1000.5));
        assert_eq!(Number::parse("9223372036854775808").unwrap().uint, Some(1 << 63));
        for text in ["-", "08", "99999999999999999999", "1e999", "1__0.5", "+"] {
            assert!(Number::parse(text).is_err(), "{text}");
        }
        assert_eq!(Number::parse("1i").unwrap().complex, Some((0.0, 1.0)));
        assert_eq!(Number::complex("1e+2-2i").unwrap().complex, Some((100.0, -2.0)));
    }

    #[test]
    fn characters() {
        let character = |text| Number::character(text).ok().and_then(|number| number.int);
        assert_eq!(character(r"'\n'"), Some(10));
        assert_eq!(character("'é'"), Some(233));
        assert_eq!(character(r"'\u00e9'"), Some(233));
        assert_eq!(character(r"'\x41'"), Some(65));
        for text in ["''", "'ab'", r"'\q'", r#"'\"'"#] {
            assert_eq!(character(text), None, "{text}");
        }
    }
}
