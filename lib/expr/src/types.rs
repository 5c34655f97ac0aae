//! What is known about values before they are there.

use std::fmt;

/// The type of an expression, as far as it is known before running.
///
/// Members of an [`Environment`](crate::Environment) are declared with one; an
/// expression that cannot be right for its types does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// Unknown until it runs.
    Any,
    /// `nil`
    Nil,
    /// A boolean
    Bool,
    /// An integer
    Int,
    /// A float
    Float,
    /// A string
    String,
    /// A byte slice
    Bytes,
    /// A list of items of one type
    Array(Box<Type>),
    /// A map from strings to values of one type
    Map(Box<Type>),
    /// A map from any keys to values of one type
    AnyMap(Box<Type>),
    /// A point in time
    Time,
    /// A span of time
    Duration,
    /// A time zone
    Location,
    /// A month
    Month,
    /// A day of the week
    Weekday,
    /// A function, which is no value
    Function,
    /// The environment itself, `$env`
    Environment,
}

impl Type {
    /// A list of items of a type.
    pub fn array(item: Self) -> Self {
        Self::Array(Box::new(item))
    }

    /// A map from strings to values of a type.
    pub fn map(value: Self) -> Self {
        Self::Map(Box::new(value))
    }

    pub(crate) fn is_any(&self) -> bool {
        *self == Self::Any
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }

    /// Whether Go has one kind for both, so that comparing them is not a mistake.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(_) | Self::Bytes, Self::Array(_) | Self::Bytes)
            | (Self::Map(_) | Self::AnyMap(_), Self::Map(_) | Self::AnyMap(_))
            | (Self::Int | Self::Month | Self::Weekday, Self::Int | Self::Month | Self::Weekday)
            | (Self::Time | Self::Environment, Self::Time | Self::Environment) => true,
            _ => self == other,
        }
    }

    /// Whether `==` between the types can make sense.
    pub(crate) fn comparable(&self, other: &Self) -> bool {
        self.is_any()
            || other.is_any()
            || *self == Self::Nil
            || *other == Self::Nil
            || self.is_number() && other.is_number()
            || self.same_kind(other)
    }

    /// The type of a value that is one or the other.
    pub(crate) fn either(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Nil, _) => other,
            (_, Self::Nil) => self,
            _ if self == other => self,
            _ => Self::Any,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Nil => f.write_str("nil"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Array(item) => write!(f, "array of {item}"),
            Self::Map(value) | Self::AnyMap(value) => write!(f, "map of {value}"),
            Self::Time => f.write_str("time"),
            Self::Duration => f.write_str("duration"),
            Self::Location => f.write_str("location"),
            Self::Month => f.write_str("month"),
            Self::Weekday => f.write_str("weekday"),
            Self::Function => f.write_str("function"),
            Self::Environment => f.write_str("environment"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_compared() {
        assert!(Type::Int.comparable(&Type::Float));
        assert!(Type::Nil.comparable(&Type::String));
        assert!(Type::array(Type::Int).comparable(&Type::array(Type::String)));
        assert!(!Type::Int.comparable(&Type::String));
        assert!(!Type::Duration.comparable(&Type::Int));
    }

    #[test]
    fn one_or_the_other() {
        assert_eq!(Type::Nil.either(Type::Int), Type::Int);
        assert_eq!(Type::Int.either(Type::Int), Type::Int);
        assert_eq!(Type::Int.either(Type::Float), Type::Any);
        assert_eq!(Type::map(Type::array(Type::Any)).to_string(), "map of array of any");
    }
}
