//! Values while a template runs.
//!
//! They are the caller's values with what templates add: dictionaries that are
//! changed in place and seen changed by everyone who holds them, lists that
//! know the type of their items, versions, and the difference between a null
//! and a value that is not there.

mod convert;
mod dict;

use std::rc::Rc;
use std::sync::Arc;

use govalue::semver::Version;
use govalue::{Duration, IntType, MapShape, Str, Time, Zone};

pub(crate) use convert::Purpose;
pub(crate) use dict::Dict;

#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// Nothing at all: a missing key, or what a pipeline makes of a null.
    Missing,
    /// A null.
    Nil,
    Bool(bool),
    Int(i64),
    Sized(IntType, i64),
    Float(f64),
    Complex(f64, f64),
    Str(Str),
    Bytes(Arc<[u8]>),
    List(Rc<List>),
    Dict(Dict),
    Time(Arc<Time>),
    Duration(Duration),
    Zone(Zone),
    Version(Rc<Version>),
    #[cfg_attr(
        not(feature = "certificates"),
        expect(dead_code, reason = "only those functions make one")
    )]
    Certificate(Rc<Certificate>),
}

/// A list, with the Go type of its items.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) of: Items,
    pub(crate) items: Vec<Val>,
    /// A nil slice: empty, and `null` in JSON.
    pub(crate) nil: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Items {
    /// `[]interface {}`
    #[default]
    Any,
    /// `[]string`
    Strings,
    /// `[]int`
    Ints,
    /// `[][]interface {}`
    Lists,
}

/// Lists of lists may be deeper than the stack: they are taken apart in a loop.
impl Drop for List {
    fn drop(&mut self) {
        if self.items.iter().any(Val::holds_others) {
            dismantle(std::mem::take(&mut self.items));
        }
    }
}

fn dismantle(mut values: Vec<Val>) {
    while let Some(value) = values.pop() {
        match value {
            Val::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    values.append(&mut list.items);
                }
            }
            Val::Dict(dict) => values.extend(dict.into_members()),
            _ => {}
        }
    }
}

/// What the functions that make certificates return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Val {
    pub(crate) fn text(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    pub(crate) fn int64(value: i64) -> Self {
        Self::Sized(IntType::Int64, value)
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(List { of: Items::Any, items, nil: false }))
    }

    pub(crate) fn list_of(of: Items, items: Vec<Self>) -> Self {
        Self::List(Rc::new(List { of, items, nil: false }))
    }

    /// A list without items whose slice was never made.
    pub(crate) fn nil_list(of: Items) -> Self {
        Self::List(Rc::new(List { of, items: Vec::new(), nil: true }))
    }

    pub(crate) fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::list_of(Items::Strings, items.into_iter().map(Self::text).collect())
    }

    fn holds_others(&self) -> bool {
        matches!(self, Self::List(_) | Self::Dict(_))
    }

    /// Whether there is nothing, or a null.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Missing | Self::Nil)
    }

    /// The zero value of its type, or an empty list or map: what templates take
    /// for false.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Missing | Self::Nil => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Sized(_, value) | Self::Duration(Duration(value)) => {
                *value == 0
            }
            Self::Float(value) => *value == 0.0,
            Self::Complex(real, imaginary) => *real == 0.0 && *imaginary == 0.0,
            Self::Str(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Dict(dict) => dict.is_empty(),
            Self::Time(_) | Self::Zone(_) | Self::Version(_) | Self::Certificate(_) => false,
        }
    }

    /// The Go type, as `%T` prints it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Missing | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Sized(kind, _) => kind.name(),
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Str(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => match list.of {
                Items::Any => "[]interface {}",
                Items::Strings => "[]string",
                Items::Ints => "[]int",
                Items::Lists => "[][]interface {}",
            },
            Self::Dict(dict) => dict.type_name(),
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
            Self::Zone(_) => "*time.Location",
            Self::Version(_) => "*semver.Version",
            Self::Certificate(_) => "sprig.certificate",
        }
    }

    /// The Go kind of that type.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Missing | Self::Nil => "invalid",
            Self::Sized(IntType::Month | IntType::Weekday, _) => "int",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Dict(_) => "map",
            Self::Time(_) | Self::Certificate(_) => "struct",
            Self::Duration(_) => "int64",
            Self::Zone(_) | Self::Version(_) => "ptr",
            _ => self.type_name(),
        }
    }

    /// The items of anything Go calls a slice.
    pub(crate) fn items(&self) -> Option<std::borrow::Cow<'_, [Self]>> {
        match self {
            Self::List(list) => Some(list.items.as_slice().into()),
            Self::Bytes(bytes) => Some(
                bytes
                    .iter()
                    .map(|byte| Self::Sized(IntType::Uint8, i64::from(*byte)))
                    .collect::<Vec<_>>()
                    .into(),
            ),
            _ => None,
        }
    }

    /// The dictionary, if it is a `map[string]interface {}`.
    pub(crate) fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) if dict.shape() == MapShape::StringAny => Some(dict),
            _ => None,
        }
    }
}

impl From<bool> for Val {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Val {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Str> for Val {
    fn from(text: Str) -> Self {
        Self::Str(text)
    }
}

impl From<String> for Val {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Val {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Vec<u8>> for Val {
    fn from(text: Vec<u8>) -> Self {
        Self::text(text)
    }
}

impl From<Dict> for Val {
    fn from(dict: Dict) -> Self {
        Self::Dict(dict)
    }
}

impl From<Time> for Val {
    fn from(time: Time) -> Self {
        Self::Time(Arc::new(time))
    }
}
