//! The language's own functions.

mod compare;
mod escape;

use govalue::{IntType, Key, MapShape, Value};

use crate::error::Fail;
use crate::functions::Type::{Any, Reflect, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{List, Purpose, Val};

pub(crate) const FUNCTIONS: &[Native] = &[
    Native::new("call", &[Reflect], call).rest(Reflect),
    Native::new("eq", &[Reflect], compare::eq).rest(Reflect),
    Native::new("ge", &[Reflect, Reflect], compare::ge),
    Native::new("gt", &[Reflect, Reflect], compare::gt),
    Native::new("html", &[], escape::html).rest(Any),
    Native::new("index", &[Reflect], index).rest(Reflect),
    Native::new("js", &[], escape::js).rest(Any),
    Native::new("le", &[Reflect, Reflect], compare::le),
    Native::new("len", &[Reflect], len),
    Native::new("lt", &[Reflect, Reflect], compare::lt),
    Native::new("ne", &[Reflect, Reflect], compare::ne),
    Native::new("not", &[Reflect], |_, a| Ok(a.get(0).is_empty().into())),
    Native::new("print", &[], print).rest(Any),
    Native::new("printf", &[String], printf).rest(Any),
    Native::new("println", &[], println).rest(Any),
    Native::new("slice", &[Reflect], slice).rest(Reflect),
    Native::new("urlquery", &[], escape::urlquery).rest(Any),
];

/// No value of a template is a function, so there is nothing to call.
fn call(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    match arguments.get(0) {
        Val::Missing => Err("call of nil".into()),
        other => Err(format!("non-function of type {}", other.type_name()).into()),
    }
}

fn len(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let length = match arguments.get(0) {
        Val::Str(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.items.len(),
        Val::Dict(dict) => dict.len(),
        Val::Missing | Val::Nil => return Err("len of nil pointer".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Val::Int(length as i64))
}

/// A position in a list; past the end is still inside when cutting.
fn position(index: &Val, length: usize, cutting: bool) -> Result<usize, Fail> {
    let number = match index {
        Val::Int(number) | Val::Sized(_, number) => *number,
        Val::Missing | Val::Nil => return Err("cannot index slice/array with nil".into()),
        other => {
            return Err(format!("cannot index slice/array with type {}", other.type_name()).into());
        }
    };
    let most = if cutting { length + 1 } else { length };
    usize::try_from(number)
        .ok()
        .filter(|number| *number < most)
        .ok_or_else(|| format!("index out of range: {number}").into())
}

fn index(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut item = arguments.get(0).clone();
    if item.is_nothing() {
        return Err("index of untyped nil".into());
    }
    for index in arguments.from(1) {
        item = match &item {
            Val::List(list) => list.items[position(index, list.items.len(), false)?].clone(),
            Val::Str(text) => byte(text.as_bytes()[position(index, text.len(), false)?]),
            Val::Bytes(bytes) => byte(bytes[position(index, bytes.len(), false)?]),
            Val::Dict(dict) => match index {
                Val::Str(key) => dict.get_key(&Key::from(key.clone())),
                other if dict.shape().string_keys() => {
                    let kind = other.type_name();
                    return Err(format!("value has type {kind}; should be string").into());
                }
                other => key_of(other).and_then(|key| dict.get_key(&key)),
            }
            .unwrap_or_else(|| zero(dict.shape())),
            Val::Missing | Val::Nil => return Err("index of nil pointer".into()),
            other => {
                return Err(format!("can't index item of type {}", other.type_name()).into());
            }
        };
    }
    Ok(item)
}

fn byte(byte: u8) -> Val {
    Val::Sized(IntType::Uint8, i64::from(byte))
}

fn zero(shape: MapShape) -> Val {
    Val::from(&shape.zero())
}

/// A scalar as a key of a map.
fn key_of(value: &Val) -> Option<Key> {
    let value = match value {
        Val::Bool(value) => Value::Bool(*value),
        Val::Int(value) => Value::Int(*value),
        Val::Sized(kind, value) => Value::Sized(*kind, *value),
        Val::Float(value) => Value::Float(*value),
        Val::Missing | Val::Nil => Value::Nil,
        _ => return None,
    };
    Key::try_from(value).ok()
}

fn slice(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let item = arguments.get(0);
    let indexes = arguments.from(1);
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let length = match item {
        Val::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Val::Str(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.items.len(),
        Val::Missing | Val::Nil => return Err("slice of untyped nil".into()),
        other => return Err(format!("can't slice item of type {}", other.type_name()).into()),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length, true)?;
    }
    let [start, end, most] = bounds;
    if start > end || end > most {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    context.budget.spend(end - start)?;
    Ok(match item {
        Val::Str(text) => text.slice(start, end).into(),
        Val::Bytes(bytes) => Val::Bytes(bytes[start..end].into()),
        Val::List(list) => {
            let items = list.items[start..end].to_vec();
            Val::List(List { of: list.of, items, nil: list.nil }.into())
        }
        _ => Val::Nil,
    })
}

fn plain(context: &mut Context<'_>, values: &[Val]) -> Result<Vec<Value>, Fail> {
    values.iter().map(|value| value.to_value(context.budget, Purpose::Print)).collect()
}

/// `fmt.Sprint`, kept byte for byte. A missing value is `<nil>` here: only
/// actions say `<no value>`.
pub(crate) fn sprint(context: &mut Context<'_>, values: &[Val]) -> Result<Vec<u8>, Fail> {
    let mut out = Vec::new();
    let mut after_string = true;
    for value in values {
        let is_string = matches!(value, Val::Str(_));
        if !is_string && !after_string {
            out.push(b' ');
        }
        after_string = is_string;
        out.extend_from_slice(value.print(context.budget)?.as_bytes());
        if out.len() > context.budget.output {
            context.budget.spend_bytes(out.len())?;
        }
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out)
}

fn print(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    Ok(sprint(context, arguments.0)?.into())
}

fn println(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut out = Vec::new();
    for (index, value) in arguments.0.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(value.print(context.budget)?.as_bytes());
        if out.len() > context.budget.output {
            context.budget.spend_bytes(out.len())?;
        }
    }
    out.push(b'\n');
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

fn printf(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let format = arguments.text(0);
    let rest = arguments.from(1);
    let limit = context.budget.output;
    let values = plain(context, rest)?;
    let types: Vec<&'static str> = rest.iter().map(Val::type_name).collect();
    let printed = govalue::sprintf_within(&format, &values, &types, limit);
    let text = printed.ok_or_else(|| Fail::limit(format!("a text of more than {limit} bytes")))?;
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}
