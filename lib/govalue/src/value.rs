//! The dynamic value.

use std::sync::Arc;

use crate::{Duration, IntType, Map, Str, Time, Zone};

/// A value of one of the types that Go's dynamic languages pass around.
///
/// Cloning costs at most one reference count.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value: a nil interface.
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// `int`, 64 bits wide
    Int(i64),
    /// `float64`
    Float(f64),
    /// `string`
    String(Str),
    /// `[]byte`
    Bytes(Arc<[u8]>),
    /// `[]interface {}`
    Array(Arc<Vec<Value>>),
    /// A map; its [`MapShape`](crate::MapShape) tells the Go type.
    Map(Arc<Map>),
    /// `time.Time`
    Time(Arc<Time>),
    /// `time.Duration`
    Duration(Duration),
    /// `*time.Location`
    Location(Zone),
    /// Any other integer type; an unsigned 64 bit number is kept by its bits.
    Sized(IntType, i64),
}

impl Value {
    /// A string value.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// A list value.
    pub fn array(items: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(Arc::new(items.into_iter().collect()))
    }

    /// A byte slice.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Whether this is [`Value::Nil`].
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Whether this is an integer or a float of any type.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Float(_) | Self::Sized(..))
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if this is an integer of any type; durations are not.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) | Self::Sized(_, value) => Some(*value),
            _ => None,
        }
    }

    /// The number as a float, if this is an integer or a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Sized(kind, value) => Some(kind.to_float(*value)),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if this is a string of valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The map, if this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether this is the zero value of its type; empty lists and maps are.
    ///
    /// This is the opposite of truth in Go's templates.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Sized(_, value) => *value == 0,
            Self::Float(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Duration(duration) => duration.0 == 0,
            Self::Time(_) | Self::Location(_) => false,
        }
    }

    /// The member of this map under a string key; `None` for a missing key and
    /// for what is not a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map().and_then(|map| map.get(key))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(Arc::new(items))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }
}

impl From<Time> for Value {
    fn from(time: Time) -> Self {
        Self::Time(Arc::new(time))
    }
}

impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Self::Duration(duration)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nil, Into::into)
    }
}

/// Prints as Go's `fmt.Sprint` does.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&crate::sprint(std::slice::from_ref(self)))
    }
}

/// Type-strict, as Go's `reflect.DeepEqual`: see [`deep_equal`](crate::deep_equal).
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        crate::deep_equal(self, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_small_and_shareable() {
        fn shareable<T: Send + Sync>() {}
        shareable::<Value>();
        assert!(size_of::<Value>() <= 24, "{}", size_of::<Value>());
    }

    #[test]
    fn emptiness_follows_go() {
        for empty in [Value::Nil, false.into(), 0.into(), 0.0.into(), "".into(), Value::array([])] {
            assert!(empty.is_empty(), "{empty:?}");
        }
        assert!(!Value::from("0").is_empty());
    }
}
