//! Lists. None is ever changed: each function makes a new one.

use std::borrow::Cow;
use std::rc::Rc;

use super::cast;
use crate::error::Fail;
use crate::functions::Type::{Any, Int};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Items, List, Val};

/// Functions whose plain and `must` forms both fail in a template.
macro_rules! both {
    ($($name:literal $must:literal [$($kind:expr),*] $(rest $rest:expr)? => $run:expr;)*) => {
        &[
            $(
                Native::new($name, &[$($kind),*], $run)$(.rest($rest))?,
                Native::new($must, &[$($kind),*], $run)$(.rest($rest))?,
            )*
            Native::new("concat", &[], concat).rest(Any),
            Native::new("list", &[], make).rest(Any),
            Native::new("tuple", &[], make).rest(Any),
        ]
    };
}

pub(super) const FUNCTIONS: &[Native] = both! {
    "append" "mustAppend" [Any, Any] => append;
    "chunk" "mustChunk" [Int, Any] => chunk;
    "compact" "mustCompact" [Any] => |context, a| {
        let items = items(a.get(0), "Cannot compact on")?;
        kept(context, &items, |_, item| Ok(!item.is_empty()))
    };
    "first" "mustFirst" [Any] => |_, a| {
        Ok(items(a.get(0), "Cannot find first on")?.first().cloned().unwrap_or(Val::Nil))
    };
    "has" "mustHas" [Any, Any] => has;
    "initial" "mustInitial" [Any] => |context, a| {
        let items = items(a.get(0), "Cannot find initial on")?;
        part(context, items.split_last().map(|(_, initial)| initial))
    };
    "last" "mustLast" [Any] => |_, a| {
        Ok(items(a.get(0), "Cannot find last on")?.last().cloned().unwrap_or(Val::Nil))
    };
    "prepend" "mustPrepend" [Any, Any] => |context, a| {
        let items = items(a.get(0), "Cannot prepend on")?;
        listed(context, std::iter::once(a.get(1)).chain(items.iter()))
    };
    "push" "mustPush" [Any, Any] => append;
    "rest" "mustRest" [Any] => |context, a| {
        let items = items(a.get(0), "Cannot find rest on")?;
        part(context, items.split_first().map(|(_, rest)| rest))
    };
    "reverse" "mustReverse" [Any] => |context, a| {
        let items = items(a.get(0), "Cannot find reverse on")?;
        listed(context, items.iter().rev())
    };
    "slice" "mustSlice" [Any] rest Any => slice;
    "uniq" "mustUniq" [Any] => uniq;
    "without" "mustWithout" [Any] rest Any => |context, a| {
        let items = items(a.get(0), "Cannot find without on")?;
        kept(context, &items, |context, item| Ok(!among(context, a.from(1), item)?))
    };
};

fn items<'v>(value: &'v Val, complaint: &str) -> Result<Cow<'v, [Val]>, Fail> {
    value.items().ok_or_else(|| format!("{complaint} type {}", value.kind_name()).into())
}

/// A new list; in a list nothing is missing, it is null.
fn listed<'v>(context: &mut Context<'_>, items: impl Iterator<Item = &'v Val>) -> Outcome {
    let items: Vec<Val> = items
        .map(|item| if matches!(item, Val::Missing) { Val::Nil } else { item.clone() })
        .collect();
    context.budget.spend_items(items.len())?;
    Ok(Val::list(items))
}

/// Of an empty list no part was ever made.
fn part(context: &mut Context<'_>, part: Option<&[Val]>) -> Outcome {
    match part {
        Some(items) => listed(context, items.iter()),
        None => Ok(Val::nil_list(Items::Any)),
    }
}

fn kept(
    context: &mut Context<'_>,
    items: &[Val],
    keep: impl Fn(&mut Context<'_>, &Val) -> Result<bool, Fail>,
) -> Outcome {
    context.budget.spend_items(items.len())?;
    let mut found = Vec::new();
    for item in items {
        if keep(context, item)? {
            found.push(item.clone());
        }
    }
    Ok(Val::list(found))
}

/// Whether one of them is deeply equal: the integer 1 is not the float 1.
fn among(context: &mut Context<'_>, items: &[Val], wanted: &Val) -> Result<bool, Fail> {
    for item in items {
        if item.deep_equal(wanted, context.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn make(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    listed(context, arguments.0.iter())
}

fn append(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let items = items(arguments.get(0), "Cannot push on")?;
    listed(context, items.iter().chain(std::iter::once(arguments.get(1))))
}

fn concat(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut all = Vec::new();
    for list in arguments.0 {
        let Some(items) = list.items() else {
            return Err(format!("Cannot concat type {} as list", list.kind_name()).into());
        };
        context.budget.spend_items(items.len() + 1)?;
        all.extend_from_slice(&items);
    }
    if all.is_empty() { Ok(Val::nil_list(Items::Any)) } else { Ok(Val::list(all)) }
}

fn chunk(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let items = items(arguments.get(1), "Cannot chunk")?;
    let size = usize::try_from(arguments.int(0)).ok().filter(|size| *size > 0);
    let size = size.ok_or("the size of chunks must be positive")?;
    context.budget.spend_items(items.len())?;
    let chunks = items.chunks(size).map(|chunk| Val::list(chunk.to_vec())).collect();
    Ok(Val::list_of(Items::Lists, chunks))
}

fn has(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    if arguments.get(1).is_nothing() {
        return Ok(false.into());
    }
    let items = items(arguments.get(1), "Cannot find has on")?;
    Ok(among(context, &items, arguments.get(0))?.into())
}

fn slice(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let value = arguments.get(0);
    let Some(items) = value.items() else {
        return Err(
            format!("list should be type of slice or array but {}", value.kind_name()).into()
        );
    };
    if items.is_empty() {
        return Ok(Val::Nil);
    }
    let bounds = arguments.from(1);
    let start = bounds.first().map_or(0, cast::int);
    let end = bounds.get(1).map_or(items.len() as i64, cast::int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let cut = range.and_then(|(start, end)| items.get(start..end));
    let cut = cut.ok_or_else(|| format!("slice bounds out of range [{start}:{end}]"))?;
    context.budget.spend_items(cut.len())?;
    Ok(match value {
        Val::Bytes(bytes) => Val::Bytes(bytes[start as usize..end as usize].into()),
        Val::List(list) => {
            Val::List(Rc::new(List { of: list.of, items: cut.to_vec(), nil: false }))
        }
        _ => Val::list(cut.to_vec()),
    })
}

fn uniq(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let items = items(arguments.get(0), "Cannot find uniq on")?;
    let mut found: Vec<Val> = Vec::new();
    for item in items.iter() {
        if !among(context, &found, item)? {
            found.push(item.clone());
        }
    }
    Ok(Val::list(found))
}
