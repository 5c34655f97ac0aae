//! Printing as Go's `fmt.Sprint`.

use crate::{IntType, Month, Value, Weekday};

/// Prints the values as Go's `fmt.Sprint`: a space separates two neighbours
/// when neither is a string.
pub fn sprint(values: &[Value]) -> String {
    let mut out = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let strings = matches!(value, Value::String(_))
            || index > 0 && matches!(values[index - 1], Value::String(_));
        if index > 0 && !strings {
            out.push(b' ');
        }
        print(&mut out, value);
    }
    text(out)
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Value {
    /// What `fmt.Sprint` makes of this value, byte for byte: the bytes of a
    /// string that is not UTF-8 are kept.
    pub fn to_go_string(&self) -> crate::Str {
        match self {
            Self::String(text) => text.clone(),
            Self::Int(value) => crate::Str::from(value.to_string()),
            _ => {
                let mut out = Vec::new();
                print(&mut out, self);
                crate::Str::from(out)
            }
        }
    }
}

/// Writes one value as `%v` does.
pub(crate) fn print(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.extend_from_slice(b"<nil>"),
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => list(out, bytes.iter(), push),
        Value::Array(items) => list(out, items.iter(), print),
        Value::Map(map) if map.is_reflected() => {
            push(out, format_args!("<{} Value>", map.type_name()));
        }
        Value::Map(map) => {
            out.extend_from_slice(b"map[");
            for (index, (key, value)) in map.sorted().into_iter().enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                print(out, key.value());
                out.push(b':');
                print(out, value);
            }
            out.push(b']');
        }
        _ => push(out, scalar(value)),
    }
}

/// The text of a value that is neither a list nor a map.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => crate::float::shortest(*value),
        Value::Time(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Location(zone) => zone.to_string(),
        Value::Sized(IntType::Month, value) => Month(*value).to_string(),
        Value::Sized(IntType::Weekday, value) => Weekday(*value).to_string(),
        Value::Sized(kind, value) => kind.decimal(*value),
        Value::Nil => "<nil>".to_owned(),
        Value::String(_) | Value::Bytes(_) | Value::Array(_) | Value::Map(_) => {
            sprint(std::slice::from_ref(value))
        }
    }
}

fn push(out: &mut Vec<u8>, shown: impl std::fmt::Display) {
    use std::io::Write as _;
    // Writing to memory cannot fail.
    let _ = write!(out, "{shown}");
}

fn list<T>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    mut one: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        one(out, item);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, Map, Str, Time};

    #[test]
    fn every_type() {
        for (value, want) in [
            (Value::Nil, "<nil>"),
            (true.into(), "true"),
            (1e6.into(), "1e+06"),
            (Value::bytes(*b"ab"), "[97 98]"),
            (Value::array([1.into(), "two".into(), Value::Nil]), "[1 two <nil>]"),
            (Map::from_iter([("b", 2), ("a", 1)]).into(), "map[a:1 b:2]"),
            (Map::new().into(), "map[]"),
            (Time::zero().into(), "0001-01-01 00:00:00 +0000 UTC"),
            (Duration::HOUR.into(), "1h0m0s"),
            (Value::Sized(IntType::Month, 3), "March"),
            (Value::Sized(IntType::Weekday, 0), "Sunday"),
            (Value::Sized(IntType::Uint64, -1), "18446744073709551615"),
        ] {
            assert_eq!(value.to_string(), want);
        }
    }

    #[test]
    fn neighbours() {
        assert_eq!(sprint(&[1.into(), 2.into(), "a".into(), 3.into(), true.into()]), "1 2a3 true");
        assert_eq!(Value::from(Str::from_bytes(b"h\xc3")).to_go_string().as_bytes(), b"h\xc3");
    }
}
