//! Functions: what they are called with, and how they are looked up.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use govalue::semver::Version;
use govalue::{Duration, IntType, MapShape, Str, Time, Value};

use crate::error::Fail;
use crate::limits::{Budget, Caller};
use crate::val::{Dict, Items, Val};
use crate::{Clock, Random, builtins, sprig};

/// A function of the caller's.
pub(crate) type HostFunction =
    dyn Fn(&Caller, &[Value]) -> Result<Value, crate::Failure> + Send + Sync;

/// What a name in a template means.
#[derive(Clone)]
pub(crate) enum Function {
    /// Evaluates its arguments only until one is false.
    And,
    /// Evaluates its arguments only until one is true.
    Or,
    Native(&'static Native),
    Host(Arc<HostFunction>),
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::And => "and",
            Self::Or => "or",
            Self::Native(native) => native.name,
            Self::Host(_) => "a function of the host",
        })
    }
}

/// The Go type of a parameter, which decides what may be given for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `interface {}`: a missing value arrives as null.
    Any,
    /// `reflect.Value`: a missing value arrives as such.
    Reflect,
    String,
    Int,
    Uint32,
    Float,
    Bool,
    /// `map[string]interface {}`
    Dict,
    /// `[]interface {}`
    List,
    Time,
    Duration,
    Version,
    Certificate,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::String => "string",
            Self::Int => "int",
            Self::Uint32 => "uint32",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Dict => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Time => "time.Time",
            Self::Duration => "time.Duration",
            Self::Version => "*semver.Version",
            Self::Certificate => "sprig.certificate",
        }
    }

    /// What nil becomes, where it may be given.
    pub(crate) fn nil(self) -> Option<Val> {
        match self {
            Self::Any => Some(Val::Nil),
            Self::Reflect => Some(Val::Missing),
            Self::Dict => Some(Dict::nil().into()),
            Self::List => Some(Val::nil_list(Items::Any)),
            _ => None,
        }
    }

    /// Whether a value of this type may be given as it is.
    fn takes(self, value: &Val) -> bool {
        match self {
            Self::Any | Self::Reflect => true,
            Self::String => matches!(value, Val::Str(_)),
            Self::Int => matches!(value, Val::Int(_)),
            Self::Uint32 => matches!(value, Val::Sized(IntType::Uint32, _)),
            Self::Float => matches!(value, Val::Float(_)),
            Self::Bool => matches!(value, Val::Bool(_)),
            Self::Dict => {
                matches!(value, Val::Dict(dict) if dict.shape() == MapShape::StringAny)
            }
            Self::List => matches!(value, Val::List(list) if list.of == Items::Any),
            Self::Time => matches!(value, Val::Time(_)),
            Self::Duration => matches!(value, Val::Duration(_)),
            Self::Version => matches!(value, Val::Version(_)),
            Self::Certificate => matches!(value, Val::Certificate(_)),
        }
    }

    /// The value as a parameter of this type receives it.
    pub(crate) fn check(self, value: Val) -> Result<Val, Fail> {
        match value {
            Val::Missing => self
                .nil()
                .ok_or_else(|| Fail::arguments(format!("invalid value; expected {}", self.name()))),
            Val::Nil if self == Self::Reflect => Ok(Val::Missing),
            value if self.takes(&value) && (self == Self::Any || !value.is_nothing()) => Ok(value),
            value => {
                let got = if value.is_nothing() { "interface {}" } else { value.type_name() };
                Err(Fail::arguments(format!(
                    "wrong type for value; expected {}; got {got}",
                    self.name()
                )))
            }
        }
    }
}

pub(crate) type Outcome = Result<Val, Fail>;

/// A function of ours.
pub(crate) struct Native {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Type],
    /// The type of any further arguments.
    pub(crate) rest: Option<Type>,
    pub(crate) run: fn(&mut Context<'_>, &Arguments<'_>) -> Outcome,
}

impl Native {
    pub(crate) const fn new(
        name: &'static str,
        parameters: &'static [Type],
        run: fn(&mut Context<'_>, &Arguments<'_>) -> Outcome,
    ) -> Self {
        Self { name, parameters, rest: None, run }
    }

    pub(crate) const fn rest(mut self, rest: Type) -> Self {
        self.rest = Some(rest);
        self
    }
}

/// What a running function may use.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) clock: &'a Clock,
    pub(crate) random: &'a Random,
    pub(crate) regexes: &'a mut sprig::RegexCache,
    /// Dictionaries that were given members and so may hold themselves.
    pub(crate) knots: &'a mut Vec<Dict>,
}

impl Context<'_> {
    /// Fills the bytes from the configured source of randomness.
    pub(crate) fn random(&self, bytes: &mut [u8]) -> Result<(), Fail> {
        (self.random)(bytes).map_err(|error| Fail::from(error.to_string()))
    }

    /// Puts a member into a dictionary that others may hold.
    pub(crate) fn put(&mut self, dict: &Dict, key: impl Into<govalue::Key>, value: Val) {
        if matches!(value, Val::List(_) | Val::Dict(_)) {
            self.knots.push(dict.clone());
        }
        dict.insert(key, value);
    }

    pub(crate) fn now(&self) -> Time {
        (self.clock)()
    }
}

/// Arguments that were checked against the parameters.
pub(crate) struct Arguments<'a>(pub(crate) &'a [Val]);

impl Arguments<'_> {
    pub(crate) fn get(&self, index: usize) -> &Val {
        const NOTHING: &Val = &Val::Nil;
        self.0.get(index).unwrap_or(NOTHING)
    }

    /// All from this one on.
    pub(crate) fn from(&self, index: usize) -> &[Val] {
        self.0.get(index..).unwrap_or_default()
    }

    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        match self.get(index) {
            Val::Str(text) => text.as_bytes(),
            _ => &[],
        }
    }

    pub(crate) fn string(&self, index: usize) -> Str {
        match self.get(index) {
            Val::Str(text) => text.clone(),
            _ => Str::default(),
        }
    }

    /// The text, with U+FFFD for what is not UTF-8.
    pub(crate) fn text(&self, index: usize) -> Cow<'_, str> {
        match self.get(index) {
            Val::Str(text) => text.to_str_lossy(),
            _ => Cow::Borrowed(""),
        }
    }

    pub(crate) fn int(&self, index: usize) -> i64 {
        match self.get(index) {
            Val::Int(value) | Val::Sized(_, value) => *value,
            _ => 0,
        }
    }

    pub(crate) fn float(&self, index: usize) -> Option<f64> {
        match self.get(index) {
            Val::Float(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn bool(&self, index: usize) -> bool {
        matches!(self.get(index), Val::Bool(true))
    }

    pub(crate) fn dict(&self, index: usize) -> Dict {
        match self.get(index) {
            Val::Dict(dict) => dict.clone(),
            _ => Dict::nil(),
        }
    }

    #[cfg(feature = "certificates")]
    pub(crate) fn list(&self, index: usize) -> std::rc::Rc<crate::val::List> {
        match self.get(index) {
            Val::List(list) => list.clone(),
            _ => std::rc::Rc::default(),
        }
    }

    pub(crate) fn time(&self, index: usize) -> Arc<Time> {
        match self.get(index) {
            Val::Time(time) => Arc::clone(time),
            _ => Arc::new(Time::zero()),
        }
    }

    pub(crate) fn duration(&self, index: usize) -> Duration {
        match self.get(index) {
            Val::Duration(duration) => *duration,
            _ => Duration(0),
        }
    }

    pub(crate) fn version(&self, index: usize) -> Option<&Version> {
        match self.get(index) {
            Val::Version(version) => Some(version),
            _ => None,
        }
    }

    #[cfg(feature = "certificates")]
    pub(crate) fn certificate(&self, index: usize) -> Option<&crate::val::Certificate> {
        match self.get(index) {
            Val::Certificate(pair) => Some(pair),
            _ => None,
        }
    }
}

/// The language's own functions.
pub(crate) fn builtin(name: &str) -> Option<Function> {
    static TABLE: LazyLock<HashMap<&str, &'static Native>> =
        LazyLock::new(|| builtins::FUNCTIONS.iter().map(|native| (native.name, native)).collect());
    match name {
        "and" => Some(Function::And),
        "or" => Some(Function::Or),
        _ => TABLE.get(name).copied().map(Function::Native),
    }
}

/// Sprig's functions, some of which replace the language's.
pub(crate) fn sprig(name: &str) -> Option<Function> {
    static TABLE: LazyLock<HashMap<&str, &'static Native>> = LazyLock::new(|| {
        sprig::GROUPS
            .iter()
            .flat_map(|group| group.iter())
            .map(|native| (native.name, native))
            .collect()
    });
    TABLE.get(name).copied().map(Function::Native)
}

/// The names of the functions that every template has, Go's and Sprig's.
pub fn names() -> impl Iterator<Item = &'static str> {
    let natives = sprig::GROUPS.iter().flat_map(|group| group.iter()).chain(builtins::FUNCTIONS);
    natives.map(|native| native.name).chain(["and", "or"])
}
