//! Members, indices and slices.

use govalue::{IntType, Key, Str, Value};

use super::operators::to_int;

/// `base.name`
pub(super) fn field(base: &Value, name: &Value) -> Result<Value, String> {
    if let (Value::Map(map), Value::String(name)) = (base, name) {
        return Ok(map.get_str(name).cloned().unwrap_or_else(|| map.shape().zero()));
    }
    fetch(base, name)
}

/// `base[key]`
pub(super) fn fetch(base: &Value, key: &Value) -> Result<Value, String> {
    match base {
        Value::Map(map) => match key {
            Value::String(name) => {
                Ok(map.get_str(name).cloned().unwrap_or_else(|| map.shape().zero()))
            }
            Value::Nil if map.shape().string_keys() => Ok(map.shape().zero()),
            _ if map.shape().string_keys() => {
                Err(format!("cannot use {} as a key of {}", key.type_name(), map.type_name()))
            }
            _ => {
                let key = Key::try_from(key.clone()).map_err(|error| error.to_string())?;
                Ok(map.get_key(&key).cloned().unwrap_or_else(|| map.shape().zero()))
            }
        },
        Value::Array(items) => {
            let at = index(key, items.len())?;
            Ok(items[at].clone())
        }
        Value::String(text) => Ok(byte(text.as_bytes()[index(key, text.len())?])),
        Value::Bytes(bytes) => Ok(byte(bytes[index(key, bytes.len())?])),
        _ => Err(format!("cannot fetch {key} from {}", base.type_name())),
    }
}

pub(super) fn byte(byte: u8) -> Value {
    Value::Sized(IntType::Uint8, i64::from(byte))
}

/// The position that a key means, counted from the end if negative.
fn index(key: &Value, len: usize) -> Result<usize, String> {
    let wanted = to_int(key)?;
    let from_start = if wanted < 0 { wanted + len as i64 } else { wanted };
    usize::try_from(from_start)
        .ok()
        .filter(|index| *index < len)
        .ok_or_else(|| format!("index out of range: {wanted} (array length is {len})"))
}

/// `get(base, key)`.
/// What is missing is nil; a key of another type than the keys is an error.
pub(crate) fn get(base: &Value, key: &Value) -> Result<Value, String> {
    let wrong = || Err(format!("cannot get {} of {}", key.type_name(), base.type_name()));
    Ok(match (base, key) {
        // Plain indexing gives a zero value for a missing key, this does not.
        (Value::Map(map), Value::String(name)) => map.get_str(name).cloned().unwrap_or_default(),
        (Value::Map(map), _) if map.shape().string_keys() && !key.is_nil() => return wrong(),
        (Value::Map(map), _) => match Key::try_from(key.clone()) {
            Ok(key) => map.get_key(&key).cloned().unwrap_or_default(),
            Err(_) => Value::Nil,
        },
        (Value::Array(_), _) if to_int(key).is_err() => return wrong(),
        _ => fetch(base, key).unwrap_or_default(),
    })
}

/// `base[from:to]`; bounds beyond the ends are moved to them.
pub(super) fn slice(
    base: &Value,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<Value, String> {
    let len = match base {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(format!("cannot slice {}", base.type_name())),
    };
    let bound = |value: &Value| -> Result<usize, String> {
        let wanted = to_int(value)?;
        let from_start = if wanted < 0 { wanted.saturating_add(len as i64) } else { wanted };
        Ok(usize::try_from(from_start.max(0)).unwrap_or(len).min(len))
    };
    let end = to.map_or(Ok(len), bound)?;
    let start = from.map_or(Ok(0), bound)?.min(end);
    Ok(match base {
        Value::String(text) if start == 0 && end == len => Value::String(text.clone()),
        Value::String(text) => Value::String(Str::from_bytes(&text.as_bytes()[start..end])),
        Value::Array(items) => Value::array(items[start..end].iter().cloned()),
        Value::Bytes(bytes) => Value::bytes(&bytes[start..end]),
        // Refused above.
        _ => Value::Nil,
    })
}
