//! Functions of lists and maps.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use govalue::{Key, Map, MapShape, Value};

use super::Args;
use crate::vm::{Budget, Failure, Number, descending, equal, sort_by_key, weight};

pub(super) fn len(args: &Args<'_>) -> Result<Value, String> {
    match args.value(0) {
        Value::String(text) => Ok(text.rune_count().into()),
        Value::Bytes(bytes) => Ok(bytes.len().into()),
        Value::Array(items) => Ok(items.len().into()),
        Value::Map(map) => Ok(map.len().into()),
        other => Err(args.misfit(other)),
    }
}

pub(super) fn take(args: &Args<'_>) -> Result<Value, String> {
    let items = args.array(0)?;
    let count =
        usize::try_from(args.int(1)?).map_err(|_| "take needs a positive number".to_owned())?;
    Ok(Value::array(items.iter().take(count).cloned()))
}

pub(super) fn reverse(args: &Args<'_>) -> Result<Value, String> {
    Ok(Value::array(args.array(0)?.iter().rev().cloned()))
}

/// What is not a list sorts to an empty one.
pub(super) fn sort(args: &Args<'_>) -> Result<Value, String> {
    let descending = descending(args.optional(1))?;
    let items = args.value(0).as_array().unwrap_or_default();
    let mut pairs: Vec<(Value, ())> = items.iter().map(|item| (item.clone(), ())).collect();
    sort_by_key(&mut pairs, descending)?;
    Ok(Value::array(pairs.into_iter().map(|(item, ())| item)))
}

pub(super) fn concat(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    let mut out = Vec::new();
    for index in 0..args.values.len() {
        let items = args.array(index)?;
        budget.make(items.len() as u64)?;
        out.extend_from_slice(items);
    }
    Ok(out.into())
}

pub(super) fn flatten(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    fn collect(items: &[Value], out: &mut Vec<Value>, budget: &mut Budget) -> Result<(), Failure> {
        for item in items {
            if let Value::Array(inner) = item {
                collect(inner, out, budget)?;
            } else {
                budget.make(1)?;
                out.push(item.clone());
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    collect(args.array(0)?, &mut out, budget)?;
    Ok(out.into())
}

/// Keeps the first of equal items. Numbers and strings are found by a hash;
/// lists and maps have to be compared one by one.
pub(super) fn uniq(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    let hasher = RandomState::new();
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut out: Vec<Value> = Vec::new();
    for item in args.array(0)? {
        let hash = match item {
            Value::String(text) => hasher.hash_one(text),
            Value::Bool(value) => hasher.hash_one(value),
            _ => match Number::of(item) {
                // Integers equal floats, so both hash alike.
                Some(number) => hasher.hash_one((number.float() + 0.0).to_bits()),
                None => 0,
            },
        };
        let alike = seen.entry(hash).or_default();
        budget.spend(alike.len() as u64 * (1 + weight(item)))?;
        if !alike.iter().any(|index| equal(&out[*index], item)) {
            budget.make(1)?;
            alike.push(out.len());
            out.push(item.clone());
        }
    }
    Ok(out.into())
}

fn map<'a>(args: &Args<'a>) -> Result<&'a Map, String> {
    let value = args.value(0);
    value.as_map().ok_or_else(|| args.misfit(value))
}

pub(super) fn keys(args: &Args<'_>) -> Result<Value, String> {
    Ok(Value::array(map(args)?.keys().map(|key| key.value().clone())))
}

pub(super) fn values(args: &Args<'_>) -> Result<Value, String> {
    Ok(Value::array(map(args)?.values().cloned()))
}

pub(super) fn to_pairs(args: &Args<'_>) -> Result<Value, String> {
    let pair = |(key, value): (&Key, &Value)| Value::array([key.value().clone(), value.clone()]);
    Ok(Value::array(map(args)?.iter().map(pair)))
}

pub(super) fn from_pairs(args: &Args<'_>) -> Result<Value, String> {
    let mut map = Map::with_shape(MapShape::AnyAny);
    for pair in args.array(0)? {
        let Some([key, value]) = pair.as_array() else {
            return Err(format!("fromPairs takes pairs, not {pair}"));
        };
        map.insert(Key::try_from(key.clone()).map_err(|error| error.to_string())?, value.clone());
    }
    Ok(map.into())
}
