//! Compiled expressions.

use std::sync::Arc;

use govalue::Span;
use govalue::Value;
use govalue::regexp::Regex;

use crate::builtins::{Builtin, Predicate};
use crate::environment::{Environment, Shared, Vars};
use crate::error::Error;
use crate::types::Type;
use crate::{check, compile, parser, vm};

/// An expression, checked and ready to run any number of times, also from
/// several threads at once.
///
/// ```
/// use expr::{Environment, Program, Type};
///
/// let env = Environment::new().member("port", Type::Any);
/// let program = Program::compile("port > 1024 ? 'user' : 'system'", &env).unwrap();
/// let mut vars = env.vars();
/// vars.set("port", 8080);
/// assert_eq!(program.run(&vars).unwrap().as_str(), Some("user"));
/// ```
#[derive(Debug)]
pub struct Program {
    pub(crate) code: Vec<Op>,
    /// The place in the source of every instruction.
    pub(crate) spans: Vec<Span>,
    pub(crate) constants: Vec<Value>,
    pub(crate) patterns: Vec<Regex>,
    pub(crate) variables: usize,
    /// Whether values can be made that share their parts, so that a small one
    /// can be huge when written out.
    pub(crate) amplifies: bool,
    pub(crate) shared: Arc<Shared>,
    result: Type,
}

impl Program {
    /// Compiles an expression for an environment.
    pub fn compile(source: &str, environment: &Environment) -> Result<Self, Error> {
        let shared = &environment.shared;
        let (ast, root) = parser::parse(source)?;
        let checked = check::check(&ast, root, shared)?;
        let compiled = compile::compile(&ast, root, &checked)?;
        Ok(Self {
            code: compiled.code,
            spans: compiled.spans,
            constants: compiled.constants,
            patterns: compiled.patterns,
            variables: checked.variables as usize,
            amplifies: compiled.amplifies,
            shared: Arc::clone(shared),
            result: checked.types[root.index()].clone(),
        })
    }

    /// Runs the expression with these values, which must come from the
    /// environment it was compiled for, or one with the same members.
    pub fn run(&self, vars: &Vars<'_>) -> Result<Value, Error> {
        vm::run(self, vars)
    }

    /// Whether running may read this member of the environment. Members that
    /// are costly to make need not be there for expressions without them.
    ///
    /// ```
    /// use expr::{Environment, Program, Type};
    ///
    /// let env = Environment::new().member("a", Type::Any).member("b", Type::Any);
    /// let program = Program::compile("a + 1", &env).unwrap();
    /// assert!(program.reads("a") && !program.reads("b"));
    /// assert!(Program::compile("$env", &env).unwrap().reads("b"));
    /// ```
    pub fn reads(&self, member: &str) -> bool {
        let Some(slot) = self.shared.member(member) else { return false };
        self.code.iter().any(|op| match op {
            Op::Member(read) | Op::MemberField(read, _) => *read as usize == slot,
            Op::Env | Op::EnvFetch | Op::EnvGet => true,
            _ => false,
        })
    }

    /// The inferred type of the result.
    pub fn result_type(&self) -> &Type {
        &self.result
    }
}

/// An instruction of the stack machine. Jumps hold absolute targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Constant(u32),
    Nil,
    Bool(bool),
    Int(i64),
    Member(u32),
    Variable(u32),
    Store(u32),
    /// The environment as a map.
    Env,
    /// A name that is a function has no value.
    NoValue(u32),
    Pop,
    Item,
    Index,
    Accumulated,
    Not,
    Negate,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    /// Whether an integer is within two bounds, both constants.
    InRange(u32, u32),
    EnvHas,
    Matches,
    MatchesPattern(u32),
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Jump(u32),
    /// Pops a boolean, jumps if it is false.
    Branch(u32),
    /// Keeps the value and jumps if it is false or nil, else drops it.
    And(u32),
    /// Keeps the value and jumps if it is true, else drops it.
    Or(u32),
    /// Jumps if the value on top is nil, keeping it.
    JumpIfNil(u32),
    /// Keeps the value and jumps if it is not nil, else drops it.
    Coalesce(u32),
    /// Groups are never empty, so an empty one is a missing one.
    NilIfEmptyGroup,
    Field(u32),
    /// A field of a member of the environment, the most common access.
    MemberField(u32, u32),
    Fetch,
    EnvFetch,
    EnvGet,
    Slice {
        from: bool,
        to: bool,
    },
    Array(u32),
    Map(u32),
    EnvType,
    Builtin(Builtin, u32),
    Call(u32, u32),
    Method(u32, u32),
    /// Pops the items and opens a scope.
    Begin(Predicate),
    /// Pops the bounds of a range that need not become a list.
    BeginRange(Predicate),
    /// Pops the first value of `reduce` or the order of `sortBy`.
    Extra,
    /// Starts `reduce` with its first item.
    FirstItem,
    /// Jumps out if there are no more items.
    Next(u32),
    /// Pops what the body gave and jumps back to `Next`.
    Step(Predicate, u32),
    /// Closes the scope and pushes the result.
    End(Predicate),
}
