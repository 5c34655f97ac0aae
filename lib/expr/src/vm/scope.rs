//! Predicates: a body run for every item of a list.

use std::cmp::Ordering;
use std::sync::Arc;

use govalue::{Key, Map, MapShape, Value};

use super::budget::Held;
use super::operators::{self, compare};
use super::{Budget, Failure, access};
use crate::builtins::Predicate;

/// One running predicate.
pub(super) struct Scope {
    items: Items,
    at: usize,
    len: usize,
    backwards: bool,
    finished: bool,
    /// `#acc`, or the order of `sortBy`.
    pub(super) extra: Value,
    count: i64,
    found: Option<usize>,
    collected: Vec<Value>,
    groups: Map,
}

/// What is gone through.
enum Items {
    List(Arc<Vec<Value>>),
    Bytes(Arc<[u8]>),
    /// Integers from this one on.
    Range(i64),
    /// The body of a map may run, but has no item to look at.
    Opaque,
}

impl Scope {
    pub(super) fn new(items: Value, predicate: Predicate) -> Result<Self, Failure> {
        let (items, len) = match items {
            Value::Array(items) => {
                let len = items.len();
                (Items::List(items), len)
            }
            Value::String(text) => (Items::Bytes(text.as_bytes().into()), text.len()),
            Value::Bytes(bytes) => {
                let len = bytes.len();
                (Items::Bytes(bytes), len)
            }
            Value::Map(map) => (Items::Opaque, map.len()),
            other => {
                let message =
                    format!("{} takes an array, not {}", predicate.name(), other.type_name());
                return Err(Failure::value(message));
            }
        };
        Ok(Self::over(items, len, predicate))
    }

    /// Goes through the integers from `low` on.
    pub(super) fn range(low: i64, len: usize, predicate: Predicate) -> Self {
        Self::over(Items::Range(low), len, predicate)
    }

    fn over(items: Items, len: usize, predicate: Predicate) -> Self {
        Self {
            items,
            at: 0,
            len,
            backwards: predicate.backwards(),
            finished: false,
            extra: Value::Nil,
            count: 0,
            found: None,
            collected: Vec::new(),
            groups: Map::with_shape(MapShape::AnyList),
        }
    }

    /// Counts the memory that the predicate holds.
    pub(super) fn hold(&self, held: &mut Held) {
        match &self.items {
            Items::List(items) => held.add(&Value::Array(Arc::clone(items))),
            Items::Bytes(bytes) => held.add_bytes(bytes),
            Items::Range(_) | Items::Opaque => {}
        }
        held.add(&self.extra);
        self.collected.iter().for_each(|value| held.add(value));
        held.add_map(&self.groups);
    }

    pub(super) fn done(&self) -> bool {
        self.finished || self.at >= self.len
    }

    fn position(&self) -> usize {
        if self.backwards { self.len - 1 - self.at } else { self.at }
    }

    pub(super) fn index(&self) -> i64 {
        self.position() as i64
    }

    pub(super) fn item(&self) -> Result<Value, Failure> {
        self.item_at(self.position())
    }

    fn item_at(&self, index: usize) -> Result<Value, Failure> {
        match &self.items {
            Items::List(items) => Ok(items.get(index).cloned().unwrap_or_default()),
            Items::Bytes(bytes) => {
                Ok(bytes.get(index).map_or(Value::Nil, |byte| access::byte(*byte)))
            }
            Items::Range(low) => Ok(Value::Int(low + index as i64)),
            Items::Opaque => Err(Failure::value("the members of a map are not items".to_owned())),
        }
    }

    /// `reduce` without a first value takes the first item for it.
    pub(super) fn start_with_first(&mut self) -> Result<(), Failure> {
        if self.len == 0 {
            return Err(Failure::value(
                "reduce of an empty array without a first value".to_owned(),
            ));
        }
        self.extra = self.item_at(0)?;
        self.at = 1;
        Ok(())
    }

    /// Takes what the body gave for the current item and moves on.
    pub(super) fn step(
        &mut self,
        predicate: Predicate,
        value: Value,
        budget: &mut Budget,
    ) -> Result<(), Failure> {
        match predicate {
            Predicate::Map => {
                budget.grow(1)?;
                self.collected.push(value);
            }
            Predicate::SortBy => {
                budget.make(1)?;
                self.collected.push(value);
            }
            Predicate::Reduce => {
                // Only here can a value grow deeper with every item.
                if matches!(value, Value::Array(_) | Value::Map(_)) && !same(&value, &self.extra) {
                    budget.measure(&value)?;
                }
                self.extra = value;
            }
            Predicate::Sum => {
                let sum =
                    if self.at == 0 { Value::Int(0) } else { std::mem::take(&mut self.extra) };
                self.extra = operators::add_numbers(&sum, &value)?;
            }
            Predicate::GroupBy => self.group(value, budget)?,
            _ => {
                let Value::Bool(truth) = value else {
                    let message = format!(
                        "the body of {} must be a boolean, not {}",
                        predicate.name(),
                        value.type_name()
                    );
                    return Err(Failure::value(message));
                };
                self.decide(predicate, truth, budget)?;
            }
        }
        self.at += 1;
        Ok(())
    }

    fn decide(
        &mut self,
        predicate: Predicate,
        truth: bool,
        budget: &mut Budget,
    ) -> Result<(), Failure> {
        match predicate {
            Predicate::Filter if truth => {
                budget.grow(1)?;
                self.collected.push(self.item()?);
            }
            Predicate::Count | Predicate::One => self.count += i64::from(truth),
            Predicate::All => self.finished = !truth,
            Predicate::Any | Predicate::None => self.finished = truth,
            Predicate::Find
            | Predicate::FindIndex
            | Predicate::FindLast
            | Predicate::FindLastIndex
                if truth =>
            {
                self.found = Some(self.position());
                self.finished = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn group(&mut self, key: Value, budget: &mut Budget) -> Result<(), Failure> {
        budget.make(1)?;
        let key = Key::try_from(key).map_err(|error| Failure::value(error.to_string()))?;
        let item = self.item()?;
        match self.groups.get_key_mut(&key) {
            Some(Value::Array(items)) => Arc::make_mut(items).push(item),
            _ => {
                self.groups.insert(key, vec![item]);
            }
        }
        Ok(())
    }

    /// The predicate's result.
    pub(super) fn end(self, predicate: Predicate, budget: &mut Budget) -> Result<Value, Failure> {
        Ok(match predicate {
            Predicate::All | Predicate::None => (!self.finished).into(),
            Predicate::Any => self.finished.into(),
            Predicate::One => (self.count == 1).into(),
            Predicate::Count => self.count.into(),
            Predicate::Filter | Predicate::Map => self.collected.into(),
            Predicate::Find | Predicate::FindLast => match self.found {
                Some(index) => self.item_at(index)?,
                None => Value::Nil,
            },
            Predicate::FindIndex | Predicate::FindLastIndex => self.found.into(),
            Predicate::GroupBy => self.groups.into(),
            Predicate::Sum if self.len == 0 => Value::Int(0),
            Predicate::Reduce | Predicate::Sum => self.extra,
            Predicate::SortBy => self.sorted(budget)?,
        })
    }

    fn sorted(mut self, budget: &mut Budget) -> Result<Value, Failure> {
        let descending = descending(Some(&self.extra).filter(|order| !order.is_nil()))?;
        let keys = std::mem::take(&mut self.collected);
        let mut pairs = Vec::with_capacity(keys.len());
        for (index, key) in keys.into_iter().enumerate() {
            pairs.push((key, self.item_at(index)?));
        }
        budget.spend(pairs.len() as u64)?;
        sort_by_key(&mut pairs, descending)?;
        Ok(Value::array(pairs.into_iter().map(|(_, item)| item)))
    }
}

/// Whether both are one and the same list or map.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Reads the order that `sort` and `sortBy` take.
pub(crate) fn descending(order: Option<&Value>) -> Result<bool, String> {
    match order.map(Value::as_str) {
        None | Some(Some("asc")) => Ok(false),
        Some(Some("desc")) => Ok(true),
        Some(_) => Err("invalid order, expected asc or desc".to_owned()),
    }
}

/// Sorts by the first of each pair; equal ones keep their order.
pub(crate) fn sort_by_key<T>(pairs: &mut [(Value, T)], descending: bool) -> Result<(), String> {
    // What compares with its neighbour compares with all: there are only
    // numbers, strings, times and durations.
    for pair in pairs.windows(2) {
        compare(&pair[0].0, &pair[1].0, "<")?;
    }
    // Integers compare exactly, but not once there are floats among them:
    // otherwise the order would contradict itself.
    let floats = pairs.iter().any(|(key, _)| matches!(key, Value::Float(_)));
    pairs.sort_by(|(a, _), (b, _)| {
        let order = match (a.as_float(), b.as_float()) {
            (Some(a), Some(b)) if floats => order_floats(a, b),
            _ => govalue::compare(a, b).unwrap_or(Ordering::Equal),
        };
        if descending { order.reverse() } else { order }
    });
    Ok(())
}

/// NaN comes first, as no order says otherwise.
fn order_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}
