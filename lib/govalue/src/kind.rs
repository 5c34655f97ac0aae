//! Go's names for types and kinds.

use crate::{Map, MapShape, Value};

/// An integer type other than plain `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IntType {
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint`
    Uint,
    /// `uint8`, a byte
    Uint8,
    /// `uint16`
    Uint16,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
    /// `time.Month`, which prints its English name
    Month,
    /// `time.Weekday`, which prints its English name
    Weekday,
}

impl IntType {
    /// The type's name as `%T` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Month => "time.Month",
            Self::Weekday => "time.Weekday",
        }
    }

    /// Whether values of the type are never negative.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::Uint | Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64)
    }

    /// Whether the type has a name of its own, such as `time.Month`.
    pub fn is_named(self) -> bool {
        matches!(self, Self::Month | Self::Weekday)
    }

    pub(crate) fn to_float(self, value: i64) -> f64 {
        if self.is_unsigned() { value as u64 as f64 } else { value as f64 }
    }

    /// The digits of a value of this type.
    pub(crate) fn decimal(self, value: i64) -> String {
        if self.is_unsigned() { (value as u64).to_string() } else { value.to_string() }
    }
}

/// What sort of thing a value is, Go's `reflect.Kind` with the types a dynamic
/// language can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// No value
    Nil,
    /// `bool`
    Bool,
    /// Any integer type but `time.Duration`
    Int,
    /// `float64`
    Float,
    /// `string`
    String,
    /// `[]byte`
    Bytes,
    /// A list
    Array,
    /// A map
    Map,
    /// `time.Time`
    Time,
    /// `time.Duration`
    Duration,
    /// `*time.Location`
    Location,
}

impl Value {
    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Nil,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) | Self::Sized(..) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::String(_) => Kind::String,
            Self::Bytes(_) => Kind::Bytes,
            Self::Array(_) => Kind::Array,
            Self::Map(_) => Kind::Map,
            Self::Time(_) => Kind::Time,
            Self::Duration(_) => Kind::Duration,
            Self::Location(_) => Kind::Location,
        }
    }

    /// The Go type's name, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::Array(_) => "[]interface {}",
            Self::Map(map) => map.type_name(),
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::Location(_) => "*time.Location",
            Self::Sized(kind, _) => kind.name(),
        }
    }

    /// The name of Go's `reflect.Kind` of this value.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Sized(IntType::Month | IntType::Weekday, _) => "int",
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::Bytes(_) | Self::Array(_) => "slice",
            Self::Map(_) => "map",
            Self::Time(_) => "struct",
            Self::Duration(_) => "int64",
            Self::Location(_) => "ptr",
            Self::Sized(kind, _) => kind.name(),
        }
    }
}

impl Map {
    /// The Go type's name, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self.shape() {
            MapShape::Strings => "map[string]string",
            MapShape::StringAny => "map[string]interface {}",
            MapShape::AnyAny => "map[interface {}]interface {}",
            MapShape::AnyList => "map[interface {}][]interface {}",
        }
    }
}
