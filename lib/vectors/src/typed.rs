//! Recorded values, which keep their types in JSON.

use govalue::{Value, layout};

/// A recorded value: a number without fraction and exponent is an integer.
///
/// # Panics
///
/// Never for what `serde_json` has read.
pub fn decode(recorded: &serde_json::Value) -> Value {
    serde_json::from_value(recorded.clone()).expect("any JSON is a value")
}

/// Whether a value is the recorded one, by type and content.
pub fn same(got: &Value, want: &Value) -> bool {
    if let Some(special) = want.as_map().filter(|map| map.len() == 1)
        && let Some((key, inner)) = special.iter().next()
        && let Some(name) = key.as_str().and_then(|name| name.strip_prefix('$'))
    {
        return same_special(got, name, inner);
    }
    match (got, want) {
        (Value::Nil, Value::Nil) => true,
        (Value::Int(a) | Value::Sized(_, a), Value::Int(b)) => a == b,
        // Beyond what fits an integer of 64 bits with a sign.
        (Value::Sized(..), Value::Float(b)) => got.as_float() == Some(*b),
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && b.iter().all(|(key, value)| a.get_key(key).is_some_and(|got| same(got, value)))
        }
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => got == want,
        _ => false,
    }
}

fn same_special(got: &Value, name: &str, want: &Value) -> bool {
    let text = want.as_str().unwrap_or_default();
    match (name, got) {
        ("float", Value::Float(value)) => Value::Float(*value).to_string() == text,
        ("b64", Value::String(value)) => govalue::base64::encode(value.as_bytes()) == text,
        ("bytes", Value::Bytes(value)) => govalue::base64::encode(value) == text,
        ("duration", Value::Duration(span)) => want.as_int() == Some(span.0),
        ("time", Value::Time(time)) => time.format(layout::RFC3339_NANO) == text,
        ("location", Value::Location(zone)) => zone.name() == text,
        ("map", Value::Map(map)) => {
            let pairs = want.as_array().unwrap_or_default();
            pairs.len() == map.len()
                && pairs.iter().filter_map(Value::as_array).all(|pair| {
                    map.iter()
                        .any(|(key, value)| same(key.value(), &pair[0]) && same(value, &pair[1]))
                })
        }
        _ => false,
    }
}

/// The word that the recordings use for a value's type.
pub fn word(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Sized(kind, _) if kind.is_named() => "named-int",
        Value::Int(_) | Value::Sized(..) => "int",
        Value::Float(_) => "float",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Time(_) => "time",
        Value::Duration(_) => "duration",
        Value::Location(_) => "location",
    }
}

/// Whether the printed form is the recorded one.
pub fn same_text(got: &Value, want: &Value) -> bool {
    let printed = got.to_go_string();
    match want {
        Value::String(text) => printed == *text,
        Value::Map(map) => {
            map.get("$b64").and_then(Value::as_str)
                == Some(&*govalue::base64::encode(printed.as_bytes()))
        }
        _ => false,
    }
}
