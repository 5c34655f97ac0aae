//! Operators on values.

use std::cmp::Ordering;

use govalue::{Duration, Key, Map, Str, Value};

use super::{Budget, Failure};

/// A number of either sort.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number in a value; named types such as months are none.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            Value::Sized(kind, value) if !kind.is_named() => Some(Self::Int(*value)),
            _ => None,
        }
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

fn misfit(left: &Value, op: &str, right: &Value) -> Failure {
    Failure::value(format!("invalid operation: {} {op} {}", left.type_name(), right.type_name()))
}

/// Whether a value is nil, or a map that is.
pub(crate) fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

/// An integer, as indices and `int` take it: floats lose their fraction.
pub(crate) fn to_int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(value) | Value::Sized(_, value) => Ok(*value),
        Value::Float(value) => Ok(truncate(*value)),
        Value::Duration(span) => Ok(span.0),
        _ => Err(format!("invalid operation: int({})", value.type_name())),
    }
}

/// What does not fit an integer becomes the smallest one, as on the reference's
/// platform.
fn truncate(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

pub(super) fn negate(value: &Value) -> Result<Value, String> {
    match Number::of(value) {
        Some(Number::Int(value)) => Ok(Value::Int(value.wrapping_neg())),
        Some(Number::Float(value)) => Ok(Value::Float(-value)),
        None => Err(format!("invalid operation: - {}", value.type_name())),
    }
}

/// Integers stay integers and wrap; with a float, both become floats.
fn numbers(
    a: &Value,
    b: &Value,
    ints: fn(i64, i64) -> i64,
    floats: fn(f64, f64) -> f64,
) -> Option<Value> {
    match (Number::of(a)?, Number::of(b)?) {
        (Number::Int(a), Number::Int(b)) => Some(Value::Int(ints(a, b))),
        (a, b) => Some(Value::Float(floats(a.float(), b.float()))),
    }
}

pub(super) fn add(a: &Value, b: &Value, budget: &Budget) -> Result<Value, Failure> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return Ok(Value::Int(a.wrapping_add(*b)));
    }
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            budget.string(a.len() + b.len())?;
            Ok(Value::String(join(a, b)))
        }
        (Value::Duration(a), Value::Duration(b)) => Ok(Duration(a.0.wrapping_add(b.0)).into()),
        (Value::Time(time), Value::Duration(span)) | (Value::Duration(span), Value::Time(time)) => {
            Ok(time.add(*span).into())
        }
        _ => numbers(a, b, i64::wrapping_add, |a, b| a + b).ok_or_else(|| misfit(a, "+", b)),
    }
}

/// `a + b` of two numbers, for sums.
pub(super) fn add_numbers(a: &Value, b: &Value) -> Result<Value, Failure> {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => Ok(Duration(a.0.wrapping_add(b.0)).into()),
        _ => numbers(a, b, i64::wrapping_add, |a, b| a + b).ok_or_else(|| misfit(b, "+", a)),
    }
}

fn join(a: &Str, b: &Str) -> Str {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            text.into()
        }
        _ => [a.as_bytes(), b.as_bytes()].concat().into(),
    }
}

pub(super) fn subtract(a: &Value, b: &Value, _: &Budget) -> Result<Value, Failure> {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => Ok(Duration(a.0.wrapping_sub(b.0)).into()),
        (Value::Time(a), Value::Time(b)) => Ok(a.sub(b).into()),
        (Value::Time(time), Value::Duration(span)) => {
            Ok(time.add(Duration(span.0.wrapping_neg())).into())
        }
        _ => numbers(a, b, i64::wrapping_sub, |a, b| a - b).ok_or_else(|| misfit(a, "-", b)),
    }
}

pub(super) fn multiply(a: &Value, b: &Value, _: &Budget) -> Result<Value, Failure> {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => Ok(Duration(a.0.wrapping_mul(b.0)).into()),
        (Value::Duration(span), other) | (other, Value::Duration(span)) => {
            match Number::of(other) {
                Some(Number::Int(factor)) => Ok(Duration(span.0.wrapping_mul(factor)).into()),
                Some(Number::Float(factor)) => Ok(Value::Float(span.0 as f64 * factor)),
                None => Err(misfit(a, "*", b)),
            }
        }
        _ => numbers(a, b, i64::wrapping_mul, |a, b| a * b).ok_or_else(|| misfit(a, "*", b)),
    }
}

pub(super) fn divide(a: &Value, b: &Value, _: &Budget) -> Result<Value, Failure> {
    match (Number::of(a), Number::of(b)) {
        (Some(x), Some(y)) => Ok(Value::Float(x.float() / y.float())),
        _ => Err(misfit(a, "/", b)),
    }
}

pub(super) fn modulo(a: &Value, b: &Value, _: &Budget) -> Result<Value, Failure> {
    match (Number::of(a), Number::of(b)) {
        (Some(Number::Int(_)), Some(Number::Int(0))) => {
            Err(Failure::value("integer divide by zero".to_owned()))
        }
        (Some(Number::Int(x)), Some(Number::Int(y))) => Ok(Value::Int(x.wrapping_rem(y))),
        _ => Err(misfit(a, "%", b)),
    }
}

pub(super) fn power(a: &Value, b: &Value, _: &Budget) -> Result<Value, Failure> {
    match (Number::of(a), Number::of(b)) {
        (Some(x), Some(y)) => Ok(Value::Float(super::power::power(x.float(), y.float()))),
        _ => Err(misfit(a, "**", b)),
    }
}

/// `==`: numbers across types, lists item by item, the rest as Go compares.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Value::Time(a), Value::Time(b)) => a.same_instant(b),
        _ if is_nil(a) && is_nil(b) => true,
        _ => match (Number::of(a), Number::of(b)) {
            (Some(Number::Int(a)), Some(Number::Int(b))) => a == b,
            (Some(a), Some(b)) => a.float().partial_cmp(&b.float()) == Some(Ordering::Equal),
            _ => govalue::deep_equal(a, b),
        },
    }
}

/// The order of two values, or that `op` does not work on them.
pub(crate) fn compare(a: &Value, b: &Value, op: &str) -> Result<Option<Ordering>, String> {
    let ordered = match (a, b) {
        (Value::String(_), Value::String(_))
        | (Value::Time(_), Value::Time(_))
        | (Value::Duration(_), Value::Duration(_)) => true,
        _ => Number::of(a).is_some() && Number::of(b).is_some(),
    };
    if ordered {
        // NaN has no order, but is no mistake either.
        return Ok(govalue::compare(a, b));
    }
    Err(format!("invalid operation: {} {op} {}", a.type_name(), b.type_name()))
}

pub(super) fn ordered(
    a: &Value,
    b: &Value,
    op: &str,
    wanted: fn(Ordering) -> bool,
) -> Result<bool, String> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return Ok(wanted(a.cmp(b)));
    }
    Ok(compare(a, b, op)?.is_some_and(wanted))
}

/// `left in right`
pub(super) fn contained(left: &Value, right: &Value) -> Result<bool, String> {
    match right {
        Value::Nil => Ok(false),
        Value::Array(items) => Ok(items.iter().any(|item| equal(left, item))),
        Value::Bytes(bytes) => {
            Ok(bytes.iter().any(|byte| equal(left, &super::access::byte(*byte))))
        }
        Value::Map(map) => has_key(map, left),
        _ => Err(format!("in does not work on {}", right.type_name())),
    }
}

fn has_key(map: &Map, key: &Value) -> Result<bool, String> {
    match key {
        Value::String(name) => Ok(map.get_str(name).is_some()),
        Value::Nil if map.shape().string_keys() => Ok(false),
        _ if map.shape().string_keys() => {
            Err(format!("cannot use {} as a key of {}", key.type_name(), map.type_name()))
        }
        _ => {
            let key = Key::try_from(key.clone()).map_err(|error| error.to_string())?;
            Ok(map.get_key(&key).is_some())
        }
    }
}

/// The bytes that `matches` looks at; nothing for nil.
pub(super) fn text(value: &Value) -> Result<Option<&[u8]>, String> {
    match value {
        Value::String(text) => Ok(Some(text.as_bytes())),
        Value::Bytes(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        _ => Err(format!("matches works on strings, not {}", value.type_name())),
    }
}

/// `low..high`, both included; empty when they are the wrong way round.
pub(super) fn range(low: &Value, high: &Value, budget: &mut Budget) -> Result<Value, Failure> {
    let (low, len) = bounds(low, high, budget)?;
    Ok(Value::array((0..len as i64).map(|index| Value::Int(low + index))))
}

/// Where a range starts and how long it is, paid for as if it were a list.
pub(super) fn bounds(
    low: &Value,
    high: &Value,
    budget: &mut Budget,
) -> Result<(i64, usize), Failure> {
    let (low, high) = (to_int(low)?, to_int(high)?);
    if high < low {
        return Ok((low, 0));
    }
    let len = low.abs_diff(high).saturating_add(1);
    budget.grow(len)?;
    Ok((low, usize::try_from(len).map_err(|_| Failure::budget("memory"))?))
}
