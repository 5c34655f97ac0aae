//! Numbers out of anything, as the library `cast` makes them: what is not a
//! number is zero.

use std::borrow::Cow;

use crate::number;
use crate::val::Val;

pub(super) fn int(value: &Val) -> i64 {
    match value {
        Val::Int(value) | Val::Sized(_, value) => *value,
        Val::Duration(duration) => duration.0,
        Val::Bool(value) => i64::from(*value),
        Val::Float(value) => truncate(*value),
        Val::Str(text) => text
            .as_str()
            .and_then(|text| govalue::parse_int(&whole_part(text), 0).ok())
            .unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn float(value: &Val) -> f64 {
    match value {
        Val::Float(value) => *value,
        Val::Sized(kind, value) if kind.is_unsigned() => *value as u64 as f64,
        Val::Int(value) | Val::Sized(_, value) => *value as f64,
        Val::Duration(duration) => duration.0 as f64,
        Val::Bool(value) => f64::from(u8::from(*value)),
        Val::Str(text) => text.as_str().and_then(number::float).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// What does not fit becomes the smallest integer, as on the processors Go's
/// own documentation leaves it to.
fn truncate(value: f64) -> i64 {
    let fits = (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

/// `12.9` is read as 12; a text with a dot that is no decimal number as 0.
fn whole_part(text: &str) -> Cow<'_, str> {
    let Some((whole, fraction)) = text.split_once('.') else { return text.into() };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let decimal = digits(unsigned) && digits(fraction);
    if decimal && !unsigned.is_empty() { whole.into() } else { "0".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_as_integers() {
        for (text, want) in [
            ("42", 42),
            ("017", 15),
            ("08", 0),
            ("0x1F", 31),
            ("1_000", 1000),
            ("1.9", 1),
            ("-1.9", -1),
            (".5", 0),
            ("1e3", 0),
            (" 5", 0),
            ("9223372036854775808", 0),
            ("1.x", 0),
        ] {
            assert_eq!(int(&Val::from(text)), want, "{text}");
        }
        assert_eq!(int(&Val::Float(f64::NAN)), i64::MIN);
    }

    #[test]
    fn texts_as_floats() {
        for (text, want) in [("1e3", 1000.0), ("0x1F", 0.0), ("x", 0.0), ("1_0.5", 10.5)] {
            assert!((float(&Val::from(text)) - want).abs() < 1e-9, "{text}");
        }
    }
}
