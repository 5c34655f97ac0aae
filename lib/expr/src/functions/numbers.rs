//! Functions of numbers.

use std::cmp::Ordering;

use govalue::{Value, parse_float, parse_int};

use super::Args;
use crate::builtins::Builtin;
use crate::vm::{Number, compare, to_int};

pub(super) fn abs(args: &Args<'_>) -> Result<Value, String> {
    match Number::of(args.value(0)) {
        Some(Number::Int(value)) => Ok(value.wrapping_abs().into()),
        Some(Number::Float(value)) => Ok(value.abs().into()),
        None => Err(args.misfit(args.value(0))),
    }
}

pub(super) fn rounded(args: &Args<'_>, round: fn(f64) -> f64) -> Result<Value, String> {
    match Number::of(args.value(0)) {
        Some(number) => Ok(round(number.float()).into()),
        None => Err(args.misfit(args.value(0))),
    }
}

pub(super) fn int(args: &Args<'_>) -> Result<Value, String> {
    match args.value(0) {
        Value::String(text) => {
            let text = text.to_str_lossy();
            parse_int(&text, 10).map(Value::Int).map_err(|_| format!("{text:?} is no integer"))
        }
        value => to_int(value).map(Value::Int),
    }
}

pub(super) fn float(args: &Args<'_>) -> Result<Value, String> {
    match args.value(0) {
        Value::String(text) => {
            let text = text.to_str_lossy();
            parse_float(&text).map(Value::Float).map_err(|_| format!("{text:?} is no number"))
        }
        Value::Duration(span) => Ok(Value::Float(span.0 as f64)),
        value => value.as_float().map(Value::Float).ok_or_else(|| args.misfit(value)),
    }
}

/// The largest or smallest of numbers and lists of them.
pub(super) fn extreme(args: &Args<'_>, wanted: Ordering) -> Result<Value, String> {
    extreme_of(args, args.values, wanted)
}

fn extreme_of(args: &Args<'_>, values: &[Value], wanted: Ordering) -> Result<Value, String> {
    let mut best = Value::Nil;
    for value in values {
        let candidate = match value {
            Value::Array(items) => extreme_of(args, items, wanted)?,
            _ if Number::of(value).is_some() => value.clone(),
            // A single value of any sort is its own extreme.
            _ if values.len() == 1 => return Ok(value.clone()),
            _ => return Err(args.misfit(value)),
        };
        if candidate.is_nil() {
            continue;
        }
        if best.is_nil() || compare(&candidate, &best, "<")? == Some(wanted) {
            best = candidate;
        }
    }
    Ok(best)
}

/// Calls `each` for every number, also those in lists.
fn every_number(
    args: &Args<'_>,
    values: &[Value],
    each: &mut impl FnMut(f64),
) -> Result<(), String> {
    for value in values {
        match value {
            Value::Array(items) => every_number(args, items, each)?,
            _ => each(Number::of(value).ok_or_else(|| args.misfit(value))?.float()),
        }
    }
    Ok(())
}

pub(super) fn mean(args: &Args<'_>) -> Result<Value, String> {
    let (mut sum, mut count) = (0.0, 0u64);
    every_number(args, args.values, &mut |value| {
        sum += value;
        count += 1;
    })?;
    Ok(if count == 0 { 0.0 } else { sum / count as f64 }.into())
}

pub(super) fn median(args: &Args<'_>) -> Result<Value, String> {
    let mut all = Vec::new();
    every_number(args, args.values, &mut |value| all.push(value))?;
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    Ok(match all.len() {
        0 => 0.0,
        len if len % 2 == 1 => all[middle],
        _ => f64::midpoint(all[middle - 1], all[middle]),
    }
    .into())
}

pub(super) fn shift(function: Builtin, args: &Args<'_>) -> Result<Value, String> {
    let (value, count) = (args.int(0)?, args.int(1)?);
    if count < 0 {
        return Err(format!("negative shift count {count}"));
    }
    let by = u32::try_from(count).unwrap_or(u32::MAX);
    Ok(match function {
        Builtin::Bitshl => value.checked_shl(by).unwrap_or(0),
        Builtin::Bitshr => value >> by.min(63),
        _ => (value as u64).checked_shr(by).unwrap_or(0) as i64,
    }
    .into())
}
