//! Arithmetic and comparison.
//!
//! The left operand's kind rules: the right one is converted to it, except that
//! an integer meets a float halfway, as a float.

use govalue::{IntType, Value, parse_float, parse_int};

use crate::ast::Operator;
use crate::error::{Error, ErrorKind};
use crate::function::truncate;
use crate::item::Item;

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Uint(u64),
    Float(f64),
}

fn number(item: &Item) -> Option<Number> {
    match item {
        Item::Value(Value::Sized(kind, value)) if kind.is_unsigned() => {
            Some(Number::Uint(*value as u64))
        }
        Item::Value(Value::Int(value) | Value::Sized(_, value)) => Some(Number::Int(*value)),
        Item::Value(Value::Float(value)) => Some(Number::Float(*value)),
        Item::Value(Value::Duration(value)) => Some(Number::Int(value.0)),
        _ => None,
    }
}

impl From<Number> for Item {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => value.into(),
            Number::Uint(value) => Value::Sized(IntType::Uint64, value as i64).into(),
            Number::Float(value) => value.into(),
        }
    }
}

/// What a right operand becomes next to an integer. A true boolean is 0, and a
/// false one 1.
pub(super) fn to_int(item: &Item) -> Result<i64, String> {
    match (number(item), item) {
        (Some(Number::Int(value)), _) => Ok(value),
        (Some(Number::Uint(value)), _) => Ok(value as i64),
        (Some(Number::Float(value)), _) => Ok(truncate(value)),
        (None, Item::Value(Value::String(text))) => parse_int(&text.to_str_lossy(), 10),
        (None, Item::Value(Value::Bool(value))) => Ok(i64::from(!value)),
        _ => Err(format!("{} is no integer", item.describe())),
    }
}

fn to_float(item: &Item) -> Result<f64, String> {
    match (number(item), item) {
        (Some(Number::Int(value)), _) => Ok(value as f64),
        (Some(Number::Uint(value)), _) => Ok(value as f64),
        (Some(Number::Float(value)), _) => Ok(value),
        (None, Item::Value(Value::String(text))) => parse_float(&text.to_str_lossy()),
        (None, Item::Value(Value::Bool(value))) => Ok(if *value { 0.0 } else { 1.0 }),
        _ => Err(format!("{} is no number", item.describe())),
    }
}

/// Both operands as numbers of one kind.
enum Pair {
    Int(i64, i64),
    Uint(u64, u64),
    Float(f64, f64),
}

fn pair(left: Number, right: &Item) -> Result<Pair, String> {
    Ok(match (left, number(right)) {
        (Number::Float(left), _) => Pair::Float(left, to_float(right)?),
        (Number::Int(left), Some(Number::Float(right))) => Pair::Float(left as f64, right),
        (Number::Uint(left), Some(Number::Float(right))) => Pair::Float(left as f64, right),
        (Number::Int(left), _) => Pair::Int(left, to_int(right)?),
        (Number::Uint(left), _) => Pair::Uint(left, to_int(right)? as u64),
    })
}

pub(super) fn sign(minus: bool, item: &Item) -> Result<Item, String> {
    let Some(number) = number(item) else {
        return Err(format!("{} has no sign", item.describe()));
    };
    Ok(match (minus, number) {
        (false, number) => number.into(),
        (true, Number::Int(value)) => value.wrapping_neg().into(),
        (true, Number::Uint(value)) => (value as i64).wrapping_neg().into(),
        (true, Number::Float(value)) => (-value).into(),
    })
}

/// Every operator but equality, logic and the joining of strings.
pub(super) fn arithmetic(
    operator: Operator,
    left: &Item,
    right: &Item,
) -> Result<Item, (ErrorKind, String)> {
    let Some(number) = number(left) else {
        let message = match (operator, left) {
            (Operator::Subtract, Item::Value(Value::String(_))) => {
                "strings cannot be subtracted from".to_owned()
            }
            _ => format!("{} is no number", left.describe()),
        };
        return Err((ErrorKind::Type, message));
    };
    let pair = pair(number, right).map_err(|message| (ErrorKind::Type, message))?;
    let zero = match (operator, &pair) {
        (_, Pair::Int(_, divisor)) => *divisor == 0,
        (_, Pair::Uint(_, divisor)) => *divisor == 0,
        (Operator::Modulo, Pair::Float(_, divisor)) => truncate(*divisor) == 0,
        (_, Pair::Float(_, divisor)) => *divisor == 0.0,
    };
    if zero && matches!(operator, Operator::Divide | Operator::Modulo) {
        return Err((ErrorKind::Arithmetic, "division by zero".to_owned()));
    }
    Ok(match (operator, pair) {
        (Operator::Add, Pair::Int(a, b)) => a.wrapping_add(b).into(),
        (Operator::Add, Pair::Uint(a, b)) => Number::Uint(a.wrapping_add(b)).into(),
        (Operator::Add, Pair::Float(a, b)) => (a + b).into(),
        (Operator::Subtract, Pair::Int(a, b)) => a.wrapping_sub(b).into(),
        (Operator::Subtract, Pair::Uint(a, b)) => Number::Uint(a.wrapping_sub(b)).into(),
        (Operator::Subtract, Pair::Float(a, b)) => (a - b).into(),
        (Operator::Multiply, Pair::Int(a, b)) => a.wrapping_mul(b).into(),
        (Operator::Multiply, Pair::Uint(a, b)) => Number::Uint(a.wrapping_mul(b)).into(),
        (Operator::Multiply, Pair::Float(a, b)) => (a * b).into(),
        (Operator::Divide, Pair::Int(a, b)) => a.wrapping_div(b).into(),
        (Operator::Divide, Pair::Uint(a, b)) => Number::Uint(a / b).into(),
        (Operator::Divide, Pair::Float(a, b)) => (a / b).into(),
        // Floats lose their fractions before a remainder is taken.
        (Operator::Modulo, Pair::Float(a, b)) => truncate(a).wrapping_rem(truncate(b)).into(),
        (Operator::Modulo, Pair::Int(a, b)) => a.wrapping_rem(b).into(),
        (Operator::Modulo, Pair::Uint(a, b)) => Number::Uint(a % b).into(),
        (operator, Pair::Int(a, b)) => ordered(operator, &a, &b),
        (operator, Pair::Uint(a, b)) => ordered(operator, &a, &b),
        (operator, Pair::Float(a, b)) => ordered(operator, &a, &b),
    })
}

fn ordered<T: PartialOrd>(operator: Operator, a: &T, b: &T) -> Item {
    match operator {
        Operator::Less => a < b,
        Operator::LessEqual => a <= b,
        Operator::Greater => a > b,
        _ => a >= b,
    }
    .into()
}

/// Equality: numbers by the left one's kind, so that an integer ignores the
/// fraction of a float; lists and maps item by item; nothing equals null.
/// `work` is called for each value that is looked at.
pub(super) fn equal(
    left: &Item,
    right: &Item,
    work: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<bool, Error> {
    let value = |item: &Item| match item {
        Item::Missing => Some(Value::Nil),
        Item::Value(value) => Some(value.clone()),
        Item::Silent(truth) => Some(Value::Bool(*truth)),
        Item::Failure(text) => Some(Value::from(&**text)),
        _ => None,
    };
    match (value(left), value(right)) {
        (Some(left), Some(right)) => equal_values(&left, &right, work),
        _ => Ok(matches!(
            (left, right),
            (Item::Builtin(a), Item::Builtin(b)) if a == b
        )),
    }
}

fn equal_values(
    left: &Value,
    right: &Value,
    work: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<bool, Error> {
    work()?;
    match (left, right) {
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal_values(a, b, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.len() != b.len() || a.shape() != b.shape() {
                return Ok(false);
            }
            for (key, a) in a.iter() {
                match b.get_key(key) {
                    Some(b) if equal_values(a, b, work)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => Ok(equal_scalars(left, right)),
    }
}

fn equal_scalars(left: &Value, right: &Value) -> bool {
    let numbers = (number(&left.clone().into()), number(&right.clone().into()));
    match numbers {
        (Some(left), Some(right)) => match (left, right) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Int(a), Number::Uint(b)) => a == b as i64,
            (Number::Int(a), Number::Float(b)) => a == truncate(b),
            (Number::Uint(a), Number::Int(b)) => a == b as u64,
            (Number::Uint(a), Number::Uint(b)) => a == b,
            (Number::Uint(a), Number::Float(b)) => a == truncate(b) as u64,
            (Number::Float(a), Number::Int(b)) => same(a, b as f64),
            (Number::Float(a), Number::Uint(b)) => same(a, b as f64),
            (Number::Float(a), Number::Float(b)) => same(a, b),
        },
        _ => govalue::deep_equal(left, right),
    }
}

fn same(a: f64, b: f64) -> bool {
    a.partial_cmp(&b) == Some(std::cmp::Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_values(left: impl Into<Item>, right: impl Into<Item>) -> bool {
        equal(&left.into(), &right.into(), &mut || Ok(())).unwrap()
    }

    fn compute(
        left: impl Into<Item>,
        operator: Operator,
        right: impl Into<Item>,
    ) -> Result<String, ErrorKind> {
        match arithmetic(operator, &left.into(), &right.into()) {
            Ok(Item::Value(value)) => Ok(value.to_string()),
            Ok(_) => Ok("?".into()),
            Err((kind, _)) => Err(kind),
        }
    }

    #[test]
    fn the_left_operand_rules() {
        assert_eq!(compute(1, Operator::Add, 1.5), Ok("2.5".into()));
        assert_eq!(compute(1, Operator::Add, "2"), Ok("3".into()));
        assert_eq!(compute(1, Operator::Add, false), Ok("2".into()));
        assert_eq!(compute(10, Operator::Divide, 3), Ok("3".into()));
        assert_eq!(compute(10.0, Operator::Divide, 4), Ok("2.5".into()));
        assert_eq!(compute(7.5, Operator::Modulo, 2), Ok("1".into()));
        assert_eq!(compute(i64::MIN, Operator::Divide, -1), Ok(i64::MIN.to_string()));
        assert_eq!(compute(i64::MIN, Operator::Modulo, -1), Ok("0".into()));
        assert_eq!(compute(1, Operator::Less, 1.5), Ok("true".into()));
    }

    #[test]
    fn what_cannot_be_computed() {
        assert_eq!(compute(1, Operator::Divide, 0), Err(ErrorKind::Arithmetic));
        assert_eq!(compute(1, Operator::Modulo, 0.5), Err(ErrorKind::Arithmetic));
        assert_eq!(compute("a", Operator::Less, "b"), Err(ErrorKind::Type));
        assert_eq!(compute(1, Operator::Add, "x"), Err(ErrorKind::Type));
        assert_eq!(compute(true, Operator::Add, 1), Err(ErrorKind::Type));
    }

    #[test]
    fn equality_is_not_symmetric_across_numbers() {
        assert!(same_values(0, 0.5));
        assert!(!same_values(0.5, 0));
        assert!(!same_values(8080, "8080"));
        assert!(same_values(Item::Missing, Value::Nil));
        assert!(same_values(Value::array([1.into()]), Value::array([1.0.into()])));
        assert!(!same_values(false, 0));
    }
}
