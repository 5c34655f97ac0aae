//! Equality and order.

use std::cmp::Ordering;

use crate::{Map, Value};

/// Equality as Go's `reflect.DeepEqual` sees it: the types must be the same,
/// so the integer 1 is not the float 1.
pub fn deep_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b) == Some(Ordering::Equal),
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| deep_equal(a, b))
        }
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b),
        (Value::Time(a), Value::Time(b)) => a.same_instant(b) && a.zone() == b.zone(),
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Location(a), Value::Location(b)) => a == b,
        (Value::Sized(a, x), Value::Sized(b, y)) => a == b && x == y,
        _ => false,
    }
}

fn equal_maps(a: &Map, b: &Map) -> bool {
    a.len() == b.len()
        && a.shape() == b.shape()
        && a.iter().all(|(key, value)| b.get_key(key).is_some_and(|other| deep_equal(value, other)))
}

/// Equality across number types: integers equal floats of the same value, lists
/// compare item by item, maps as [`deep_equal`] does. Different kinds differ.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Value::Time(a), Value::Time(b)) => a.same_instant(b),
        (Value::Int(a), Value::Int(b)) => a == b,
        _ if a.is_number() && b.is_number() => numbers(a, b) == Some(Ordering::Equal),
        _ => deep_equal(a, b),
    }
}

/// Order of two numbers, strings, times or durations; `None` where `<` makes no
/// sense, which includes NaN.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.instant().cmp(&b.instant())),
        _ => numbers(a, b),
    }
}

fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        return Some(a.cmp(&b));
    }
    // Go compares an int with a float as floats.
    a.as_float()?.partial_cmp(&b.as_float()?)
}

/// The order in which Go prints the keys of a map; keys of different types are
/// grouped.
pub(crate) fn order_keys(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.instant().cmp(&b.instant()),
        _ => rank(a).cmp(&rank(b)).then_with(|| match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        }),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::Sized(..) => 1,
        Value::Int(_) => 2,
        Value::Float(_) => 3,
        Value::Bool(_) => 4,
        Value::String(_) => 5,
        Value::Duration(_) => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_across_types_except_inside_maps() {
        assert!(equal(&1.into(), &1.0.into()));
        assert!(!deep_equal(&1.into(), &1.0.into()));
        let list = |value: Value| Value::array([value]);
        assert!(equal(&list(1.into()), &list(1.0.into())));
        let map = |value: Value| Value::from(Map::from_iter([("a", value)]));
        assert!(!equal(&map(1.into()), &map(1.0.into())));
        assert!(equal(&map(1.into()), &map(1.into())));
    }

    #[test]
    fn only_like_things_have_an_order() {
        assert_eq!(compare(&1.into(), &1.5.into()), Some(Ordering::Less));
        assert_eq!(compare(&"a".into(), &"b".into()), Some(Ordering::Less));
        assert_eq!(compare(&"a".into(), &1.into()), None);
        assert_eq!(compare(&true.into(), &false.into()), None);
        assert_eq!(compare(&f64::NAN.into(), &1.into()), None);
    }
}
