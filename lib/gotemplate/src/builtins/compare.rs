//! `eq`, `lt` and their kin, with Go's rules on what may be compared.

use std::cmp::Ordering;

use crate::error::Fail;
use crate::functions::{Arguments, Context, Outcome};
use crate::val::Val;

/// The kinds whose values are compared by value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    String,
    Uint,
    /// Lists, maps, times, nothing at all.
    Other,
}

fn basic(value: &Val) -> Basic {
    match value {
        Val::Bool(_) => Basic::Bool,
        Val::Sized(kind, _) if kind.is_unsigned() => Basic::Uint,
        Val::Int(_) | Val::Duration(_) | Val::Sized(..) => Basic::Int,
        Val::Float(_) => Basic::Float,
        Val::Complex(..) => Basic::Complex,
        Val::Str(_) => Basic::String,
        _ => Basic::Other,
    }
}

const INCOMPATIBLE: &str = "incompatible types for comparison";

/// An integer with room for both signs and all of `uint64`.
fn wide(value: &Val) -> Option<i128> {
    match value {
        Val::Duration(value) => Some(i128::from(value.0)),
        Val::Sized(kind, value) if kind.is_unsigned() => Some(i128::from(*value as u64)),
        Val::Int(value) | Val::Sized(_, value) => Some(i128::from(*value)),
        _ => None,
    }
}

pub(super) fn eq(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let first = arguments.get(0);
    let others = arguments.from(1);
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

pub(super) fn ne(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    Ok((!equal(arguments.get(0), arguments.get(1))?).into())
}

fn equal(a: &Val, b: &Val) -> Result<bool, Fail> {
    let kinds = (basic(a), basic(b));
    if let (Some(a), Some(b)) = (wide(a), wide(b)) {
        return Ok(a == b);
    }
    if kinds.0 != kinds.1 {
        // Nothing is comparable with everything, and equal to nothing else.
        if a.is_nothing() || b.is_nothing() {
            return Ok(false);
        }
        return Err(format!("{INCOMPATIBLE}: {} and {}", a.type_name(), b.type_name()).into());
    }
    Ok(match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Float(a), Val::Float(b)) => a.partial_cmp(b) == Some(Ordering::Equal),
        (Val::Complex(a, b), Val::Complex(c, d)) => {
            a.partial_cmp(c) == Some(Ordering::Equal) && b.partial_cmp(d) == Some(Ordering::Equal)
        }
        (Val::Str(a), Val::Str(b)) => a == b,
        _ => return other(a, b),
    })
}

fn other(a: &Val, b: &Val) -> Result<bool, Fail> {
    let is_nil = |value: &Val| match value {
        Val::Missing | Val::Nil => true,
        Val::List(list) => list.nil,
        Val::Dict(dict) => dict.is_nil(),
        _ => false,
    };
    if a.is_nothing() || b.is_nothing() || a.kind_name() == b.kind_name() {
        if is_nil(a) || is_nil(b) {
            return Ok(is_nil(a) == is_nil(b));
        }
    } else {
        return Err(format!("non-comparable types {} and {}", a.type_name(), b.type_name()).into());
    }
    match (a, b) {
        (Val::Time(a), Val::Time(b)) => Ok(a.same_instant(b) && a.zone() == b.zone()),
        (Val::Zone(a), Val::Zone(b)) => Ok(a == b),
        (Val::Version(a), Val::Version(b)) => Ok(std::rc::Rc::ptr_eq(a, b)),
        (Val::Certificate(a), Val::Certificate(b)) => Ok(a == b),
        (_, Val::List(_) | Val::Dict(_) | Val::Bytes(_)) => {
            Err(format!("non-comparable type {}", b.type_name()).into())
        }
        _ => Ok(false),
    }
}

/// The order of two values of the same basic kind; `None` around NaN.
fn order(a: &Val, b: &Val) -> Result<Option<Ordering>, Fail> {
    if let (Some(a), Some(b)) = (wide(a), wide(b)) {
        return Ok(Some(a.cmp(&b)));
    }
    match (a, b) {
        (Val::Float(a), Val::Float(b)) => Ok(a.partial_cmp(b)),
        (Val::Str(a), Val::Str(b)) => Ok(Some(a.cmp(b))),
        _ if basic(a) == basic(b) || basic(a) == Basic::Other || basic(b) == Basic::Other => {
            Err("invalid type for comparison".into())
        }
        _ => Err(format!("{INCOMPATIBLE}: {} and {}", a.type_name(), b.type_name()).into()),
    }
}

fn ordered(arguments: &Arguments<'_>, wanted: fn(Ordering) -> bool) -> Outcome {
    let found = order(arguments.get(0), arguments.get(1))?;
    Ok(found.is_some_and(wanted).into())
}

pub(super) fn lt(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    ordered(arguments, Ordering::is_lt)
}

pub(super) fn le(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    ordered(arguments, Ordering::is_le)
}

/// Go defines it as the opposite of `le`, which shows with NaN.
pub(super) fn gt(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let found = order(arguments.get(0), arguments.get(1))?;
    Ok((!found.is_some_and(Ordering::is_le)).into())
}

/// The opposite of `lt`.
pub(super) fn ge(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let found = order(arguments.get(0), arguments.get(1))?;
    Ok((!found.is_some_and(Ordering::is_lt)).into())
}

#[cfg(test)]
mod tests {
    use govalue::{IntType, Value};

    use super::*;

    #[test]
    fn integers_compare_across_their_types() {
        let unsigned = Val::Sized(IntType::Uint64, -1);
        assert!(equal(&Val::Int(1), &Val::int64(1)).unwrap());
        assert!(!equal(&Val::Int(-1), &unsigned).unwrap());
        assert_eq!(order(&Val::Int(-1), &unsigned).unwrap(), Some(Ordering::Less));
        assert!(equal(&Val::Int(1), &Val::Float(1.0)).is_err());
    }

    #[test]
    fn nothing_equals_only_nothing() {
        assert!(equal(&Val::Missing, &Val::Nil).unwrap());
        assert!(!equal(&Val::Int(0), &Val::Missing).unwrap());
        let list = Val::from(&Value::array([]));
        assert!(!equal(&list, &Val::Missing).unwrap());
        assert!(equal(&list, &list).is_err());
        assert!(order(&Val::Missing, &Val::Int(1)).is_err());
    }
}
