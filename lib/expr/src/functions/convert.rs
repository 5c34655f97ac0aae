//! Types, text, JSON and base64.

use govalue::json::{self, Numbers, Options};
use govalue::{Str, Value, base64};

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

pub(super) fn from_base64(text: &[u8]) -> Result<Value, String> {
    base64::decode(text)
        .map(|bytes| Str::from(bytes).into())
        .ok_or_else(|| "illegal base64 data".to_owned())
}
