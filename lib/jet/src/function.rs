//! Functions that the caller gives to templates.

use std::error::Error as StdError;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use govalue::{Str, Value};

/// What a parameter takes, with the conversions that Go does between types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Param {
    /// Anything that is a value.
    Any,
    /// A string; bytes become one, and an integer the character with that code.
    String,
    /// An integer; a float loses its fraction.
    Int,
    /// A float, or an integer.
    Float,
    /// A boolean.
    Bool,
}

type Body = dyn Fn(&[Value]) -> Result<Value, Box<dyn StdError + Send + Sync>> + Send + Sync;

/// A function for templates. Cloning shares it.
///
/// ```
/// use jet::{Function, Param, Set, Variables};
///
/// let mut variables = Variables::new();
/// variables.set_function(
///     "join",
///     Function::typed(&[Param::Any, Param::String], |args| {
///         let words: Vec<String> =
///             args[0].as_array().unwrap_or_default().iter().map(ToString::to_string).collect();
///         Ok(words.join(&args[1].to_string()).into())
///     }),
/// );
/// let set = Set::new();
/// let template = set.parse("t", r#"{{ slice("a", 2) | join: ", " }}"#).unwrap();
/// let text = set.render(&template, &variables, &govalue::Value::Nil).unwrap();
/// assert_eq!(text, "a, 2");
/// ```
#[derive(Clone)]
pub struct Function {
    signature: Signature,
    body: Arc<Body>,
}

#[derive(Clone, Debug)]
enum Signature {
    Free(RangeInclusive<usize>),
    Typed(Arc<[Param]>),
}

impl Function {
    /// A function that takes so many arguments, each as it is; what is missing
    /// comes as nil. Returning nil prints nothing.
    pub fn new<F>(arity: RangeInclusive<usize>, body: F) -> Self
    where
        F: Fn(&[Value]) -> Result<Value, Box<dyn StdError + Send + Sync>> + Send + Sync + 'static,
    {
        Self { signature: Signature::Free(arity), body: Arc::new(body) }
    }

    /// A function of typed parameters: arguments are converted as Go converts
    /// between types, and what cannot be, or is missing, is an error.
    pub fn typed<F>(params: &[Param], body: F) -> Self
    where
        F: Fn(&[Value]) -> Result<Value, Box<dyn StdError + Send + Sync>> + Send + Sync + 'static,
    {
        Self { signature: Signature::Typed(params.into()), body: Arc::new(body) }
    }

    /// The same function with its first argument given.
    pub(crate) fn with_first(&self, first: Value) -> Self {
        let signature = match &self.signature {
            Signature::Free(arity) => {
                Signature::Free(arity.start().saturating_sub(1)..=arity.end().saturating_sub(1))
            }
            Signature::Typed(params) => {
                Signature::Typed(params.get(1..).unwrap_or_default().into())
            }
        };
        let body = Arc::clone(&self.body);
        let body = move |args: &[Value]| {
            let mut all = vec![first.clone()];
            all.extend_from_slice(args);
            body(&all)
        };
        Self { signature, body: Arc::new(body) }
    }

    /// The arguments as the function wants them; `None` stands for a missing
    /// value.
    pub(crate) fn arguments(&self, given: Vec<Option<Value>>) -> Result<Vec<Value>, String> {
        match &self.signature {
            Signature::Free(arity) if arity.contains(&given.len()) => {
                Ok(given.into_iter().map(Option::unwrap_or_default).collect())
            }
            Signature::Free(arity) if arity.start() == arity.end() => {
                Err(wrong_count(*arity.start(), given.len()))
            }
            Signature::Free(arity) => Err(format!(
                "takes {} to {} arguments, not {}",
                arity.start(),
                arity.end(),
                given.len()
            )),
            Signature::Typed(params) => convert_all(params, given),
        }
    }

    pub(crate) fn call(&self, args: &[Value]) -> Result<Value, Box<dyn StdError + Send + Sync>> {
        (self.body)(args)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("signature", &self.signature).finish_non_exhaustive()
    }
}

fn wrong_count(wanted: usize, given: usize) -> String {
    let plural = if wanted == 1 { "" } else { "s" };
    format!("takes {wanted} argument{plural}, not {given}")
}

/// The arguments converted to what the parameters take.
pub(crate) fn convert_all(
    params: &[Param],
    given: Vec<Option<Value>>,
) -> Result<Vec<Value>, String> {
    if params.len() != given.len() {
        return Err(wrong_count(params.len(), given.len()));
    }
    let converted = params.iter().zip(given).enumerate().map(|(index, (param, value))| {
        let number = index + 1;
        let value = value.ok_or_else(|| format!("argument {number} is missing a value"))?;
        convert(*param, &value).ok_or_else(|| {
            format!("argument {number} is {}, not {}", describe(&value), param.noun())
        })
    });
    converted.collect()
}

/// How messages call a value of this sort.
pub(crate) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Nil => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Sized(..) => "an integer",
        Value::Float(_) => "a float",
        Value::String(_) => "a string",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "a list",
        Value::Map(_) => "a map",
        Value::Time(_) => "a time",
        Value::Duration(_) => "a duration",
        Value::Location(_) => "a time zone",
    }
}

impl Param {
    fn noun(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::String => "a string",
            Self::Int => "an integer",
            Self::Float => "a float",
            Self::Bool => "a boolean",
        }
    }
}

/// Converts as Go does between convertible types.
fn convert(param: Param, value: &Value) -> Option<Value> {
    match (param, value) {
        (Param::Any, _) => Some(value.clone()),
        (Param::String, _) => text(value).map(Value::String),
        (Param::Int, Value::Float(number)) => Some(Value::Int(truncate(*number))),
        (Param::Int, Value::Duration(duration)) => Some(Value::Int(duration.0)),
        (Param::Int, _) => value.as_int().map(Value::Int),
        (Param::Float, _) => value.as_float().map(Value::Float),
        (Param::Bool, _) => value.as_bool().map(Value::Bool),
    }
}

/// Go's conversion to `string`: an integer is taken for a character's code.
pub(crate) fn text(value: &Value) -> Option<Str> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bytes(bytes) => Some(Str::from_bytes(bytes)),
        _ => value.as_int().map(|code| {
            let c = u32::try_from(code).ok().and_then(char::from_u32);
            Str::from(&*c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]))
        }),
    }
}

/// Go's conversion of a float to an integer on 64 bit Intel: what does not fit
/// is the smallest integer.
pub(crate) fn truncate(number: f64) -> i64 {
    let whole = number.trunc();
    // The bounds are exact powers of two, so these comparisons are as well.
    if whole >= -(2f64.powi(63)) && whole < 2f64.powi(63) { whole as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_converted_as_go_does() {
        let string = |value: Value| convert(Param::String, &value);
        assert_eq!(string(8080.into()), Some("\u{1F90}".into()));
        assert_eq!(string((-1).into()), Some("\u{FFFD}".into()));
        assert_eq!(string(Value::bytes(*b"ab")), Some("ab".into()));
        assert_eq!(string(1.5.into()), None);
        assert_eq!(string(true.into()), None);
        assert_eq!(string(Value::Nil), None);
        assert_eq!(convert(Param::Int, &1.9.into()), Some(1.into()));
        assert_eq!(convert(Param::Int, &"1".into()), None);
    }

    #[test]
    fn floats_out_of_range_become_the_smallest_integer() {
        assert_eq!(truncate(-1.9), -1);
        assert_eq!(truncate(1e300), i64::MIN);
        assert_eq!(truncate(f64::NAN), i64::MIN);
    }
}
