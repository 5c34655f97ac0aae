//! The functions of the language.

mod convert;
mod lists;
mod numbers;
mod strings;
mod times;

use govalue::{Str, Value};

use crate::builtins::Builtin;
use crate::environment::Shared;
use crate::vm::{Budget, Failure, get, to_int};

pub(crate) use strings::find;

/// Calls a function. The checker has seen to the number of arguments, and to
/// their types where it knew them.
pub(crate) fn call(
    function: Builtin,
    args: &[Value],
    shared: &Shared,
    guard: bool,
    budget: &mut Budget,
) -> Result<Value, Failure> {
    let args = Args { name: function.name(), values: args };
    // These go through all parts of a value, which may be shared.
    if guard {
        for value in args.values {
            budget.measure(value)?;
        }
    }
    let value = match function {
        Builtin::Trim => strings::trim(&args)?,
        Builtin::TrimPrefix => strings::trim_prefix(&args)?,
        Builtin::TrimSuffix => strings::trim_suffix(&args)?,
        Builtin::Upper => strings::upper(args.string(0)?).into(),
        Builtin::Lower => strings::lower(args.string(0)?).into(),
        Builtin::Split => strings::split(&args, false, budget)?,
        Builtin::SplitAfter => strings::split(&args, true, budget)?,
        Builtin::Replace => strings::replace(&args, budget)?,
        Builtin::Repeat => strings::repeat(&args, budget)?,
        Builtin::Join => strings::join(&args, budget)?,
        Builtin::IndexOf => position(find(args.bytes(0)?, args.bytes(1)?)),
        Builtin::LastIndexOf => position(strings::find_last(args.bytes(0)?, args.bytes(1)?)),
        Builtin::HasPrefix => args.bytes(0)?.starts_with(args.bytes(1)?).into(),
        Builtin::HasSuffix => args.bytes(0)?.ends_with(args.bytes(1)?).into(),
        Builtin::Len => lists::len(&args)?,
        Builtin::Abs => numbers::abs(&args)?,
        Builtin::Ceil => numbers::rounded(&args, f64::ceil)?,
        Builtin::Floor => numbers::rounded(&args, f64::floor)?,
        Builtin::Round => numbers::rounded(&args, f64::round)?,
        Builtin::Int => numbers::int(&args)?,
        Builtin::Float => numbers::float(&args)?,
        Builtin::Max => numbers::extreme(&args, std::cmp::Ordering::Greater)?,
        Builtin::Min => numbers::extreme(&args, std::cmp::Ordering::Less)?,
        Builtin::Mean => numbers::mean(&args)?,
        Builtin::Median => numbers::median(&args)?,
        Builtin::Bitand => (args.int(0)? & args.int(1)?).into(),
        Builtin::Bitor => (args.int(0)? | args.int(1)?).into(),
        Builtin::Bitxor => (args.int(0)? ^ args.int(1)?).into(),
        Builtin::Bitnand => (args.int(0)? & !args.int(1)?).into(),
        Builtin::Bitnot => (!args.int(0)?).into(),
        Builtin::Bitshl | Builtin::Bitshr | Builtin::Bitushr => numbers::shift(function, &args)?,
        Builtin::First => get(args.value(0), &Value::Int(0)).unwrap_or_default(),
        Builtin::Last => get(args.value(0), &Value::Int(-1)).unwrap_or_default(),
        Builtin::Get => get(args.value(0), args.value(1))?,
        Builtin::Take => lists::take(&args)?,
        Builtin::Reverse => lists::reverse(&args)?,
        Builtin::Sort => lists::sort(&args)?,
        Builtin::Concat => lists::concat(&args, budget)?,
        Builtin::Flatten => lists::flatten(&args, budget)?,
        Builtin::Uniq => lists::uniq(&args, budget)?,
        Builtin::Keys => lists::keys(&args)?,
        Builtin::Values => lists::values(&args)?,
        Builtin::ToPairs => lists::to_pairs(&args)?,
        Builtin::FromPairs => lists::from_pairs(&args)?,
        Builtin::String => {
            budget.text_of(args.value(0))?;
            convert::string(args.value(0))
        }
        Builtin::Type => convert::type_name(args.value(0)).into(),
        Builtin::ToJson => {
            budget.text_of(args.value(0))?;
            convert::to_json(args.value(0))?
        }
        Builtin::FromJson => {
            let text = args.string(0)?;
            budget.make(convert::json_items(text))?;
            convert::from_json(text)?
        }
        Builtin::ToBase64 => govalue::base64::encode(args.bytes(0)?).into(),
        Builtin::FromBase64 => convert::from_base64(args.bytes(0)?)?,
        Builtin::Now => times::now(&args, shared)?,
        Builtin::Duration => times::duration(args.string(0)?)?,
        Builtin::Date => times::date(&args)?,
        Builtin::Timezone => times::timezone(args.string(0)?)?,
    };
    Ok(value)
}

fn position(found: Option<usize>) -> Value {
    Value::Int(found.map_or(-1, |at| at as i64))
}

/// The arguments of a call.
struct Args<'a> {
    name: &'static str,
    values: &'a [Value],
}

impl<'a> Args<'a> {
    fn value(&self, index: usize) -> &'a Value {
        self.values.get(index).unwrap_or(&Value::Nil)
    }

    fn optional(&self, index: usize) -> Option<&'a Value> {
        self.values.get(index)
    }

    fn misfit(&self, value: &Value) -> String {
        format!("{} does not work on {}", self.name, value.type_name())
    }

    fn string(&self, index: usize) -> Result<&'a Str, String> {
        match self.value(index) {
            Value::String(text) => Ok(text),
            other => Err(self.misfit(other)),
        }
    }

    fn bytes(&self, index: usize) -> Result<&'a [u8], String> {
        self.string(index).map(Str::as_bytes)
    }

    fn int(&self, index: usize) -> Result<i64, String> {
        let value = self.value(index);
        match value {
            Value::Float(_) => Err(self.misfit(value)),
            _ => to_int(value),
        }
    }

    fn array(&self, index: usize) -> Result<&'a [Value], String> {
        let value = self.value(index);
        value.as_array().ok_or_else(|| self.misfit(value))
    }
}
