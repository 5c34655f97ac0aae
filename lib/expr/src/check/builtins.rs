//! The types that the language's functions take and give.

use crate::builtins::Builtin;
use crate::types::Type;

/// Whether an argument of type `given` can be used where `wanted` is asked for.
pub(super) fn accepts(wanted: &Type, given: &Type) -> bool {
    match (wanted, given) {
        (Type::Any, _) | (_, Type::Any) => true,
        (Type::Array(wanted), Type::Array(given)) | (Type::Map(wanted), Type::Map(given)) => {
            accepts(wanted, given)
        }
        _ => wanted == given,
    }
}

/// The type of a call's result, or what is wrong with its arguments.
pub(super) fn result(function: Builtin, args: &[Type]) -> Result<Type, String> {
    use Type::{Any, Bool, Duration, Float, Int, Location, String, Time};
    let list = || Type::array(Any);
    match function {
        Builtin::Trim | Builtin::TrimPrefix | Builtin::TrimSuffix => {
            signature(function, args, &[String], &[String], String)
        }
        Builtin::Upper | Builtin::Lower => signature(function, args, &[String], &[], String),
        Builtin::Split | Builtin::SplitAfter => {
            signature(function, args, &[String, String], &[Int], Type::array(String))
        }
        Builtin::Replace => signature(function, args, &[String, String, String], &[Int], String),
        Builtin::Repeat => signature(function, args, &[String, Int], &[], String),
        Builtin::Join => signature(function, args, &[list()], &[String], String),
        Builtin::IndexOf | Builtin::LastIndexOf => {
            signature(function, args, &[String, String], &[], Int)
        }
        Builtin::HasPrefix | Builtin::HasSuffix => {
            signature(function, args, &[String, String], &[], Bool)
        }
        Builtin::Sort => signature(function, args, &[list()], &[String], list()),
        Builtin::ToJson | Builtin::String | Builtin::Type => {
            signature(function, args, &[Any], &[], String)
        }
        Builtin::FromJson => signature(function, args, &[String], &[], Any),
        Builtin::ToBase64 | Builtin::FromBase64 => {
            signature(function, args, &[String], &[], String)
        }
        Builtin::Duration => signature(function, args, &[String], &[], Duration),
        Builtin::Timezone => signature(function, args, &[String], &[], Location),
        Builtin::Now => signature(function, args, &[], &[Location], Time),
        Builtin::Date => signature(function, args, &[Any], &[Any, Any, Any], Time),
        Builtin::Bitand
        | Builtin::Bitor
        | Builtin::Bitxor
        | Builtin::Bitnand
        | Builtin::Bitshl
        | Builtin::Bitshr
        | Builtin::Bitushr => signature(function, args, &[Int, Int], &[], Int),
        Builtin::Bitnot => signature(function, args, &[Int], &[], Int),
        Builtin::Len => one(function, args, |kind| match kind {
            Any | String | Type::Bytes | Type::Array(_) | Type::Map(_) | Type::AnyMap(_) => {
                Some(Int)
            }
            _ => None,
        }),
        Builtin::Abs => one(function, args, |kind| match kind {
            Any | Int | Float => Some(kind.clone()),
            _ => None,
        }),
        Builtin::Ceil | Builtin::Floor | Builtin::Round => one(function, args, |kind| match kind {
            Any | Int | Float => Some(Float),
            _ => None,
        }),
        Builtin::Int | Builtin::Float => one(function, args, |kind| match kind {
            Any | Int | Float | String | Duration | Type::Month | Type::Weekday => {
                Some(if function == Builtin::Int { Int } else { Float })
            }
            _ => None,
        }),
        Builtin::Max | Builtin::Min | Builtin::Mean | Builtin::Median => {
            numbers(function, args).map(|()| Any)
        }
        Builtin::First | Builtin::Last => one(function, args, |kind| match kind {
            Any => Some(Any),
            Type::Array(item) => Some((**item).clone()),
            _ => None,
        }),
        Builtin::Take => {
            signature(function, args, &[list(), Int], &[], args.first().cloned().unwrap_or(Any))
        }
        Builtin::Reverse | Builtin::Flatten | Builtin::Uniq => {
            one(function, args, |kind| match kind {
                Any | Type::Array(_) => Some(list()),
                _ => None,
            })
        }
        Builtin::Concat => match args.iter().find(|kind| !matches!(kind, Any | Type::Array(_))) {
            Some(kind) => Err(format!("concat does not work on {kind}")),
            None if args.is_empty() => Err("not enough arguments to call concat".to_owned()),
            None => Ok(list()),
        },
        Builtin::Keys => one(function, args, |kind| match kind {
            Type::Map(_) => Some(Type::array(String)),
            Any | Type::AnyMap(_) => Some(list()),
            _ => None,
        }),
        Builtin::Values => one(function, args, |kind| match kind {
            Type::Map(value) | Type::AnyMap(value) => Some(Type::array((**value).clone())),
            Any => Some(list()),
            _ => None,
        }),
        Builtin::ToPairs => one(function, args, |kind| match kind {
            Any | Type::Map(_) | Type::AnyMap(_) => Some(list()),
            _ => None,
        }),
        Builtin::FromPairs => one(function, args, |kind| match kind {
            Any | Type::Array(_) => Some(Type::AnyMap(Box::new(Any))),
            _ => None,
        }),
        Builtin::Get => match args {
            [Any | Type::Environment, _] => Ok(Any),
            [Type::AnyMap(value), _] | [Type::Map(value), String | Any] => Ok((**value).clone()),
            [Type::Array(item), Int | Any] => Ok((**item).clone()),
            [base, key] => Err(format!("get cannot use {key} on {base}")),
            _ => Err(format!("get takes 2 arguments, not {}", args.len())),
        },
    }
}

/// Arguments of fixed types, of which the last ones may be left out.
fn signature(
    function: Builtin,
    args: &[Type],
    required: &[Type],
    optional: &[Type],
    result: Type,
) -> Result<Type, String> {
    let name = function.name();
    if args.len() < required.len() {
        return Err(format!("not enough arguments to call {name}"));
    }
    if args.len() > required.len() + optional.len() {
        return Err(format!("too many arguments to call {name}"));
    }
    for (given, wanted) in args.iter().zip(required.iter().chain(optional)) {
        if !accepts(wanted, given) {
            return Err(format!("cannot use {given} as {wanted} to call {name}"));
        }
    }
    Ok(result)
}

fn one(
    function: Builtin,
    args: &[Type],
    result: impl Fn(&Type) -> Option<Type>,
) -> Result<Type, String> {
    let name = function.name();
    match args {
        [kind] => result(kind).ok_or_else(|| format!("{name} does not work on {kind}")),
        _ => Err(format!("{name} takes 1 argument, not {}", args.len())),
    }
}

fn numbers(function: Builtin, args: &[Type]) -> Result<(), String> {
    let name = function.name();
    if args.is_empty() {
        return Err(format!("not enough arguments to call {name}"));
    }
    match args
        .iter()
        .find(|kind| !matches!(kind, Type::Any | Type::Int | Type::Float | Type::Array(_)))
    {
        Some(kind) => Err(format!("{name} does not work on {kind}")),
        None => Ok(()),
    }
}
