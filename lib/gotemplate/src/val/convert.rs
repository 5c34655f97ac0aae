//! Between the caller's values and ours.

use std::rc::Rc;
use std::sync::Arc;

use govalue::{FloatFormat, Map, Str, Value, format_float};

use super::{Items, List, Val};
use crate::error::Fail;
use crate::limits::Budget;

/// What a value is made plain for; a few types differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be printed, or handed to the caller's functions.
    Print,
    /// To be written as JSON, where a nil slice is a null.
    Json,
}

/// Deeper than any sensible value, and far from the end of the stack.
const MAX_DEPTH: usize = 200;

impl From<&Value> for Val {
    fn from(value: &Value) -> Self {
        match value {
            Value::Nil => Self::Nil,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Sized(kind, value) => Self::Sized(*kind, *value),
            Value::Float(value) => Self::Float(*value),
            Value::String(text) => Self::Str(text.clone()),
            Value::Bytes(bytes) => Self::Bytes(Arc::clone(bytes)),
            Value::Array(items) => Self::List(Rc::new(List {
                of: Items::Any,
                items: items.iter().map(Self::from).collect(),
                nil: false,
            })),
            Value::Map(map) => Self::Dict(super::Dict::from_map(map)),
            Value::Time(time) => Self::Time(Arc::clone(time)),
            Value::Duration(duration) => Self::Duration(*duration),
            Value::Location(zone) => Self::Zone(zone.clone()),
        }
    }
}

impl Val {
    /// The plain value. Dictionaries may share members, so the result can be
    /// far larger than what it is made from: every member is paid for.
    pub(crate) fn to_value(&self, budget: &mut Budget, purpose: Purpose) -> Result<Value, Fail> {
        self.plain(budget, purpose, 0)
    }

    fn plain(&self, budget: &mut Budget, purpose: Purpose, depth: usize) -> Result<Value, Fail> {
        if depth > MAX_DEPTH {
            return Err(Fail::limit(format!("a value is nested more than {MAX_DEPTH} deep")));
        }
        Ok(match self {
            Self::Missing | Self::Nil => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Sized(kind, value) => Value::Sized(*kind, *value),
            Self::Float(value) => Value::Float(*value),
            Self::Complex(real, imaginary) => complex(*real, *imaginary).into(),
            Self::Str(text) => Value::String(text.clone()),
            Self::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
            Self::List(list) if list.nil && purpose == Purpose::Json => Value::Nil,
            Self::Dict(dict) if dict.is_nil() && purpose == Purpose::Json => Value::Nil,
            Self::List(list) => {
                let mut items = Vec::with_capacity(list.items.len());
                for item in &list.items {
                    budget.spend(1 + depth / 8)?;
                    items.push(item.plain(budget, purpose, depth + 1)?);
                }
                items.into()
            }
            Self::Dict(dict) => {
                if let Some(map) = dict.untouched() {
                    return Ok(Value::Map(map));
                }
                let mut map = Map::with_shape(dict.shape());
                for (key, value) in dict.entries() {
                    budget.spend(1 + depth / 8)?;
                    map.insert(key, value.plain(budget, purpose, depth + 1)?);
                }
                map.into()
            }
            Self::Time(time) => Value::Time(Arc::clone(time)),
            Self::Duration(duration) => Value::Duration(*duration),
            Self::Zone(zone) => Value::Location(zone.clone()),
            Self::Version(version) => version.to_string().into(),
            Self::Certificate(pair) if purpose == Purpose::Print => {
                format!("{{{} {}}}", pair.cert, pair.key).into()
            }
            Self::Certificate(pair) => {
                Map::from_iter([("Cert", pair.cert.as_str()), ("Key", pair.key.as_str())]).into()
            }
        })
    }

    /// What `fmt.Sprint` makes of the value.
    pub(crate) fn print(&self, budget: &mut Budget) -> Result<Str, Fail> {
        let text = match self {
            Self::Str(text) => return Ok(text.clone()),
            Self::Int(value) => Str::from(value.to_string()),
            _ => self.to_value(budget, Purpose::Print)?.to_go_string(),
        };
        budget.spend_bytes(text.len())?;
        Ok(text)
    }

    /// Sprig's `strval`: as printed, but bytes are text.
    pub(crate) fn to_text(&self, budget: &mut Budget) -> Result<Str, Fail> {
        match self {
            Self::Bytes(bytes) => Ok(Str::from_bytes(bytes)),
            _ => self.print(budget),
        }
    }

    /// `reflect.DeepEqual`: types count, and so do types of lists.
    pub(crate) fn deep_equal(&self, other: &Self, budget: &mut Budget) -> Result<bool, Fail> {
        self.equal(other, budget, 0)
    }

    fn equal(&self, other: &Self, budget: &mut Budget, depth: usize) -> Result<bool, Fail> {
        budget.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(Fail::limit(format!("a value is nested more than {MAX_DEPTH} deep")));
        }
        Ok(match (self, other) {
            (Self::Missing | Self::Nil, Self::Missing | Self::Nil) => true,
            (Self::List(a), Self::List(b)) => {
                if a.of != b.of || a.items.len() != b.items.len() || a.nil != b.nil {
                    return Ok(false);
                }
                for (a, b) in a.items.iter().zip(&b.items) {
                    if !a.equal(b, budget, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::Dict(a), Self::Dict(b)) => {
                if a.same(b) {
                    return Ok(true);
                }
                if a.shape() != b.shape() || a.len() != b.len() || a.is_nil() != b.is_nil() {
                    return Ok(false);
                }
                for (key, value) in a.entries() {
                    match b.get_key(&key) {
                        Some(other) if value.equal(&other, budget, depth + 1)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Self::Complex(a, b), Self::Complex(c, d)) => {
                govalue::deep_equal(&Value::Float(*a), &Value::Float(*c))
                    && govalue::deep_equal(&Value::Float(*b), &Value::Float(*d))
            }
            (Self::Version(a), Self::Version(b)) => a == b,
            (Self::Certificate(a), Self::Certificate(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (
                Self::List(_)
                | Self::Dict(_)
                | Self::Complex(..)
                | Self::Version(_)
                | Self::Certificate(_),
                _,
            )
            | (
                _,
                Self::List(_)
                | Self::Dict(_)
                | Self::Complex(..)
                | Self::Version(_)
                | Self::Certificate(_),
            ) => false,
            _ => govalue::deep_equal(
                &self.plain(budget, Purpose::Print, 0)?,
                &other.plain(budget, Purpose::Print, 0)?,
            ),
        })
    }
}

/// `(1+2i)`
fn complex(real: f64, imaginary: f64) -> String {
    let show = |value: f64| format_float(value, FloatFormat::General, None);
    let imaginary = show(imaginary);
    let sign = if imaginary.starts_with(['+', '-']) { "" } else { "+" };
    format!("({}{sign}{imaginary}i)", show(real))
}
