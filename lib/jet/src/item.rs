//! What an expression yields while a template runs.

use std::sync::Arc;

use govalue::Value;

use crate::builtins::Builtin;
use crate::function::{Function, describe};

/// A value, or one of the things that only templates know.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// No value at all: `nil`, or a key that is not there. A null that is
    /// there is a [`Value::Nil`].
    Missing,
    Value(Value),
    Function(Function),
    Builtin(Builtin),
    /// The integers from the first up to, not including, the second.
    Ints(i64, i64),
    /// JSON that prints itself.
    Json(Arc<str>),
    /// A truth that prints as nothing.
    Silent(bool),
    /// The error that `catch` caught; `Error()` returns its message.
    Failure(Arc<str>),
}

impl Item {
    /// The answer of a function, where nil stands for nothing.
    pub(crate) fn from_answer(value: Value) -> Self {
        if value.is_nil() { Self::Missing } else { Self::Value(value) }
    }

    /// Neither missing nor null.
    pub(crate) fn is_set(&self) -> bool {
        match self {
            Self::Missing | Self::Value(Value::Nil) => false,
            Self::Value(Value::Map(map)) => !map.is_nil(),
            _ => true,
        }
    }

    /// Whether it is anything but the zero value of its type. Lists and maps
    /// are true even when empty, but not maps that were never made.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Value(Value::Map(map)) => !map.is_nil(),
            Self::Missing | Self::Value(Value::Nil) => false,
            Self::Value(Value::Array(_) | Value::Bytes(_)) => true,
            // A negative zero is not the zero value.
            Self::Value(Value::Float(number)) => number.to_bits() != 0,
            Self::Value(value) => !value.is_empty(),
            Self::Silent(truth) => *truth,
            _ => true,
        }
    }

    /// The value, where there is one to store or hand on.
    pub(crate) fn into_value(self) -> Result<Option<Value>, String> {
        match self {
            Self::Missing => Ok(None),
            Self::Value(value) => Ok(Some(value)),
            Self::Silent(truth) => Ok(Some(truth.into())),
            Self::Failure(text) => Ok(Some(Value::String(text.into()))),
            Self::Json(text) => Ok(Some(Value::from(&*text))),
            Self::Function(_) | Self::Builtin(_) | Self::Ints(..) => {
                Err(format!("{} is no plain value", self.describe()))
            }
        }
    }

    /// How messages call it.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Missing => "nothing",
            Self::Value(value) => describe(value),
            Self::Function(_) | Self::Builtin(_) => "a function",
            Self::Ints(..) => "a range of integers",
            Self::Json(_) => "JSON",
            Self::Silent(_) => "a boolean",
            Self::Failure(_) => "an error",
        }
    }
}

impl<T: Into<Value>> From<T> for Item {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}
