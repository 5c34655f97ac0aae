//! Plain paths over dynamic values.

use std::sync::Arc;

use govalue::{Map, Value};

use crate::decode::MAX_DEPTH;
use crate::path::{find, write};
use crate::{Error, step};

/// A plain component: a key, or an index if it meets an array.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    name: Box<str>,
    index: Option<usize>,
}

impl Segment {
    pub(crate) fn new(part: &str) -> Self {
        Self { name: part.into(), index: step::index(part) }
    }
}

/// Follows names and indexes; neither copies nor allocates.
pub(crate) fn walk<'v>(root: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, segment| match value {
        Value::Map(map) => map.get(&segment.name),
        Value::Array(items) => items.get(segment.index?),
        _ => None,
    })
}

/// Whether a value is an object or an array in JSON.
pub(crate) fn is_container(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Array(_))
}

/// A value as it comes back from its JSON text: alone, a whole float is an int;
/// inside of lists and maps every number is a float.
pub(crate) fn typed(value: &Value) -> Result<Value, Error> {
    match value {
        Value::Nil | Value::Bool(_) | Value::Int(_) => Ok(value.clone()),
        Value::Float(float) if float.fract() != 0.0 => Ok(value.clone()),
        Value::Float(float) if float.abs() < EXACT => Ok(Value::Int(*float as i64)),
        Value::String(text) if text.as_str().is_some() => Ok(value.clone()),
        Value::Array(_) | Value::Map(_) => inner(value, 0).map(|changed| {
            // What holds no number is shared, not copied.
            changed.unwrap_or_else(|| value.clone())
        }),
        // Among them are large floats: their text is not as exact as they are.
        other => Ok(find(&write(other)?, "@this")?.unwrap_or_default()),
    }
}

/// Below this, whole floats are written with all their digits.
const EXACT: f64 = (1i64 << 53) as f64;

/// A value inside of a list or a map, if it must change.
fn inner(value: &Value, depth: usize) -> Result<Option<Value>, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    Ok(match value {
        Value::Nil | Value::Bool(_) | Value::Float(_) => None,
        Value::Int(int) => Some(Value::Float(*int as f64)),
        Value::String(text) if text.as_str().is_some() => None,
        Value::Array(items) => {
            let mut changed: Option<Vec<Value>> = None;
            for (index, item) in items.iter().enumerate() {
                if let Some(new) = inner(item, depth + 1)? {
                    changed.get_or_insert_with(|| items.to_vec())[index] = new;
                }
            }
            changed.map(|items| Value::Array(Arc::new(items)))
        }
        Value::Map(map) if map.shape().string_keys() => {
            let mut changed: Option<Map> = None;
            for (key, item) in map.iter() {
                if let Some(new) = inner(item, depth + 1)?
                    && let Some(slot) =
                        changed.get_or_insert_with(|| Map::clone(map)).get_key_mut(key)
                {
                    *slot = new;
                }
            }
            changed.map(|map| Value::Map(Arc::new(map)))
        }
        other => Some(find(&write(other)?, "@this")?.map_or(Value::Nil, |value| match value {
            Value::Int(int) => Value::Float(int as f64),
            value => value,
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use govalue::{Duration, Time};

    #[test]
    fn scalars() {
        for (value, want) in [
            (Value::Nil, Value::Nil),
            (8.into(), Value::Int(8)),
            (8.0.into(), Value::Int(8)),
            ((-0.0).into(), Value::Int(0)),
            (8.5.into(), Value::Float(8.5)),
            (1e15.into(), Value::Int(1_000_000_000_000_000)),
            ((-1.143_120_066_890_023_2e18).into(), Value::Int(-1_143_120_066_890_023_200)),
            (1e19.into(), Value::Float(1e19)),
            (1e300.into(), Value::Float(1e300)),
            ("x".into(), "x".into()),
            (Duration(5).into(), Value::Int(5)),
            (Value::bytes(*b"abcd"), "YWJjZA==".into()),
            (Time::zero().into(), "0001-01-01T00:00:00Z".into()),
        ] {
            assert_eq!(typed(&value), Ok(want), "{value:?}");
        }
    }

    #[test]
    fn containers() {
        let list = Value::array([1.into(), "a".into(), Value::array([2.0.into(), Value::Nil])]);
        let want = Value::array([1.0.into(), "a".into(), Value::array([2.0.into(), Value::Nil])]);
        assert_eq!(typed(&list), Ok(want));

        let Value::Array(words) = Value::array(["a".into(), "b".into()]) else { unreachable!() };
        let Ok(Value::Array(same)) = typed(&Value::Array(words.clone())) else { unreachable!() };
        assert!(Arc::ptr_eq(&words, &same));
    }
}
