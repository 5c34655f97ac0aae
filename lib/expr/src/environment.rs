//! What an expression can see: members, functions and limits.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use govalue::{Map, Time, Value, Zone};

use crate::types::Type;

/// How a function of the environment fails.
pub type FunctionError = Box<dyn std::error::Error + Send + Sync>;

type Body = dyn Fn(Context<'_>, &[Value]) -> Result<Value, FunctionError> + Send + Sync;

/// A function that expressions can call.
#[derive(Clone)]
pub struct Function {
    pub(crate) body: Arc<Body>,
    pub(crate) least: usize,
    pub(crate) most: Option<usize>,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
}

impl Function {
    /// A function of any number of arguments of any type.
    pub fn new<F>(body: F) -> Self
    where
        F: Fn(Context<'_>, &[Value]) -> Result<Value, FunctionError> + Send + Sync + 'static,
    {
        Self { body: Arc::new(body), least: 0, most: None, params: Vec::new(), result: Type::Any }
    }

    /// Takes from `least` to `most` arguments; checked when compiling.
    #[must_use]
    pub fn arity(mut self, least: usize, most: usize) -> Self {
        (self.least, self.most) = (least, Some(most));
        self
    }

    /// The types of the first arguments; checked when compiling.
    #[must_use]
    pub fn params(mut self, params: impl IntoIterator<Item = Type>) -> Self {
        self.params = params.into_iter().collect();
        self
    }

    /// The type of the result.
    #[must_use]
    pub fn returns(mut self, result: Type) -> Self {
        self.result = result;
        self
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("least", &self.least)
            .field("most", &self.most)
            .field("params", &self.params)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

/// How much one run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// List items and map members that may be made.
    pub memory: u64,
    /// Steps that may be taken; a step is about one operator.
    pub steps: u64,
    /// Bytes a string may have, and all text that is held at one time.
    pub string: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 1_000_000, steps: 100_000_000, string: 64 << 20 }
    }
}

/// The names and types that expressions are compiled against.
///
/// Cheap to clone. Values come later, in [`Vars`], so that an expression is
/// compiled once and run with many.
///
/// ```
/// use expr::{Environment, Function, Program, Type};
///
/// let env = Environment::new()
///     .member("user", Type::map(Type::Any))
///     .function("shout", Function::new(|_, args| match &args[0] {
///         value => Ok(format!("{value}!").into()),
///     }).arity(1, 1));
/// let program = Program::compile(r#"shout(user.name ?? "nobody")"#, &env).unwrap();
///
/// let mut vars = env.vars();
/// vars.set("user", govalue::Map::from_iter([("name", "Ann")]));
/// assert_eq!(program.run(&vars).unwrap().to_string(), "Ann!");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Clone)]
pub(crate) struct Shared {
    names: HashMap<Box<str>, Entry>,
    pub(crate) members: Vec<(Box<str>, Type)>,
    pub(crate) functions: Vec<(Box<str>, Function)>,
    list_methods: HashMap<Box<str>, Function>,
    pub(crate) type_name: Box<str>,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Fn() -> Time + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Member(usize),
    Function(usize),
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            names: HashMap::new(),
            members: Vec::new(),
            functions: Vec::new(),
            list_methods: HashMap::new(),
            type_name: "map".into(),
            limits: Limits::default(),
            clock: Arc::new(system_clock),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("members", &self.members)
            .field("functions", &self.functions)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        self.names.get(name).copied()
    }

    pub(crate) fn list_method(&self, name: &str) -> Option<&Function> {
        self.list_methods.get(name)
    }

    pub(crate) fn member(&self, name: &str) -> Option<usize> {
        match self.entry(name) {
            Some(Entry::Member(slot)) => Some(slot),
            _ => None,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the default for those who set no clock of their own"
)]
fn system_clock() -> Time {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since.as_secs() as i64, i64::from(since.subsec_nanos()), Zone::UTC)
}

impl Environment {
    /// An environment with nothing but the language itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a member and its type; a second declaration replaces the first.
    #[must_use]
    pub fn member(mut self, name: &str, kind: Type) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        if let Some(slot) = shared.member(name) {
            shared.members[slot].1 = kind;
        } else {
            shared.names.insert(name.into(), Entry::Member(shared.members.len()));
            shared.members.push((name.into(), kind));
        }
        self
    }

    /// Declares a function; a second declaration replaces the first.
    #[must_use]
    pub fn function(mut self, name: &str, function: Function) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.names.insert(name.into(), Entry::Function(shared.functions.len()));
        shared.functions.push((name.into(), function));
        self
    }

    /// Declares a method of lists: the list is the first argument of the
    /// function.
    ///
    /// ```
    /// use expr::{Environment, Function, Program};
    ///
    /// let env = Environment::new().list_method("Count", Function::new(|_, args| {
    ///     Ok(args[0].as_array().map_or(0, |items| items.len()).into())
    /// }).arity(1, 1));
    /// let program = Program::compile("[1, 2].Count()", &env).unwrap();
    /// assert_eq!(program.run(&env.vars()).unwrap().to_string(), "2");
    /// ```
    #[must_use]
    pub fn list_method(mut self, name: &str, function: Function) -> Self {
        Arc::make_mut(&mut self.shared).list_methods.insert(name.into(), function);
        self
    }

    /// Name of the environment's type for `type($env)`; defaults to `map`.
    #[must_use]
    pub fn type_name(mut self, name: &str) -> Self {
        Arc::make_mut(&mut self.shared).type_name = name.into();
        self
    }

    /// Replaces the [`Limits`] of a run.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        Arc::make_mut(&mut self.shared).limits = limits;
        self
    }

    /// Replaces the clock behind `now()`, which is the system's in UTC.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.shared).clock = Arc::new(clock);
        self
    }

    /// Values for the members, all nil at first.
    pub fn vars(&self) -> Vars<'static> {
        Vars {
            slots: vec![Value::Nil; self.shared.members.len()],
            shared: Arc::clone(&self.shared),
            interrupt: None,
            user: None,
        }
    }
}

/// The values of an environment's members for a run.
#[derive(Clone)]
pub struct Vars<'u> {
    pub(crate) slots: Vec<Value>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) interrupt: Option<Interrupt>,
    user: Option<&'u (dyn Any + Send + Sync)>,
}

/// Says whether to stop.
pub(crate) type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

impl fmt::Debug for Vars<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.shared.members.iter().map(|(name, _)| name).zip(&self.slots))
            .finish()
    }
}

impl<'u> Vars<'u> {
    /// Sets a member; false when the environment has none of that name.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> bool {
        match self.shared.member(name) {
            Some(slot) => {
                self.slots[slot] = value.into();
                true
            }
            None => false,
        }
    }

    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.shared.member(name).map(|slot| &self.slots[slot])
    }

    /// Hands a reference to the functions, which get it from their
    /// [`Context`] by its type.
    #[must_use]
    pub fn with_user<'v>(self, user: &'v (dyn Any + Send + Sync)) -> Vars<'v>
    where
        'u: 'v,
    {
        Vars { user: Some(user), ..self }
    }

    /// Ends a run with an error of the kind [`ErrorKind::Budget`](crate::ErrorKind::Budget)
    /// when this says so. It is asked every few thousand steps.
    ///
    /// ```
    /// use expr::{Environment, Program};
    ///
    /// let env = Environment::new();
    /// let program = Program::compile("count(1..900000, # % 7 == 0)", &env).unwrap();
    /// let mut vars = env.vars();
    /// vars.interrupt_if(|| true);
    /// assert_eq!(program.run(&vars).unwrap_err().message(), "interrupted");
    /// ```
    pub fn interrupt_if(&mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) {
        self.interrupt = Some(Arc::new(interrupt));
    }

    /// All members as a map.
    pub(crate) fn to_map(&self) -> Map {
        self.shared
            .members
            .iter()
            .zip(&self.slots)
            .map(|((name, _), value)| (&**name, value.clone()))
            .collect()
    }
}

/// Context of a function call besides the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub(crate) vars: &'a Vars<'a>,
}

impl<'a> Context<'a> {
    /// The values of the run.
    pub fn vars(&self) -> &'a Vars<'a> {
        self.vars
    }

    /// The value passed to [`Vars::with_user`], if it has this type.
    pub fn user<T: 'static>(&self) -> Option<&'a T> {
        self.vars.user?.downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vars_are_set_by_name() {
        let env =
            Environment::new().member("a", Type::Int).member("a", Type::Any).member("b", Type::Any);
        let mut vars = env.vars();
        assert!(vars.set("b", 2) && !vars.set("c", 3));
        assert_eq!(vars.get("b"), Some(&Value::Int(2)));
        assert_eq!(vars.get("a"), Some(&Value::Nil));
        assert_eq!(vars.to_map().len(), 2);
    }
}
