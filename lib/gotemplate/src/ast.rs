//! A parsed template.

use govalue::{Span, Str};

use crate::functions::Function;
use crate::number::Number;

/// A variable's name, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Var(pub(crate) u32);

impl Var {
    /// `$`
    pub(crate) const ROOT: Self = Self(0);
}

#[derive(Debug)]
pub(crate) enum Node {
    Text(Box<str>),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Loop),
    Template(Invocation),
    Break,
    Continue,
}

/// `if` or `with`, each with what follows `else` and the like.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) arms: Vec<(Pipe, Vec<Node>)>,
    pub(crate) otherwise: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) span: Span,
    pub(crate) name: String,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) span: Span,
    pub(crate) variables: Vec<Var>,
    /// `=` rather than `:=`
    pub(crate) assign: bool,
    pub(crate) commands: Vec<Command>,
}

/// An operand, and arguments for it.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) head: Operand,
    pub(crate) arguments: Vec<Operand>,
}

impl Command {
    pub(crate) fn span(&self) -> Span {
        self.head.span.to(self.arguments.last().unwrap_or(&self.head).span)
    }
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) span: Span,
    pub(crate) term: Term,
}

#[derive(Debug)]
pub(crate) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    String(Str),
    Field(Vec<Box<str>>),
    Variable(Var, Vec<Box<str>>),
    Function(Box<str>, Function),
    Pipe(Box<Pipe>),
    /// Fields of a function's result or of a pipeline in parentheses.
    Chain(Box<Operand>, Vec<Box<str>>),
}
