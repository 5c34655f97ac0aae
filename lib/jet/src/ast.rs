//! What a parsed template consists of.

use std::collections::HashMap;
use std::sync::Arc;

use govalue::Span;
use govalue::Str;

use crate::source::Source;

/// A name of a variable, function, member or block.
pub(crate) type Name = Arc<str>;

/// Blocks by name.
pub(crate) type Blocks = HashMap<Name, Arc<Block>>;

/// Statements that share a scope, each with its place.
#[derive(Debug, Default)]
pub(crate) struct List(pub(crate) Vec<(Node, Span)>);

impl List {
    /// Where the first statement stands.
    pub(crate) fn start(&self) -> Span {
        self.0.first().map_or(Span::default(), |(_, span)| *span)
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    Text(Box<str>),
    Action(Action),
    If { branches: Vec<Branch>, otherwise: Option<List> },
    Range(Box<Range>),
    Try { body: List, catch: Option<Catch> },
    Return(Expr),
    Block(Arc<Block>),
    Yield(Box<Yield>),
    YieldContent { context: Option<Expr> },
    Include { path: Expr, context: Option<Expr> },
}

/// `x := 1; y | upper`, either part optional.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) assign: Option<Assign>,
    pub(crate) pipeline: Vec<Command>,
}

/// One stage of a pipeline.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) base: Expr,
    /// Arguments, where the stage is written as a call.
    pub(crate) args: Option<Args>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Assign {
    pub(crate) targets: Vec<Target>,
    pub(crate) values: Vec<Expr>,
    /// `:=` rather than `=`.
    pub(crate) declare: bool,
    /// `value, found := map[key]`
    pub(crate) lookup: bool,
    pub(crate) span: Span,
}

/// The left side of an assignment.
#[derive(Debug)]
pub(crate) enum Target {
    /// `_`
    Discard,
    Variable(Name, Span),
    /// The last member of `base.member`.
    Member {
        base: Expr,
        member: Name,
        span: Span,
    },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) assign: Option<Assign>,
    pub(crate) condition: Expr,
    pub(crate) body: List,
}

#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) targets: Vec<Target>,
    pub(crate) declare: bool,
    pub(crate) over: Expr,
    pub(crate) body: List,
    pub(crate) otherwise: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) error: Option<Name>,
    pub(crate) body: List,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) context: Option<Expr>,
    pub(crate) body: List,
    /// The content of the use that the definition itself is.
    pub(crate) content: Option<Arc<List>>,
    /// Where it is written, which is not always what is being rendered.
    pub(crate) source: Arc<Source>,
    pub(crate) span: Span,
}

/// `name`, `name=value` or a value alone, which has no effect.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: Option<Name>,
    pub(crate) value: Option<Expr>,
}

#[derive(Debug)]
pub(crate) struct Yield {
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) context: Option<Expr>,
    pub(crate) content: Option<Arc<List>>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How many expressions stand inside one another here.
    pub(crate) height: u32,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Self {
        let tallest = |parts: &[Self]| parts.iter().map(|part| part.height).max().unwrap_or(0);
        let inside = match &kind {
            ExprKind::Chain(base, _) | ExprKind::Not(base) | ExprKind::Sign(_, base) => base.height,
            ExprKind::Index(base, index) => base.height.max(index.height),
            ExprKind::Slice(base, from, to) => {
                let bounds = [from, to].into_iter().flatten().map(|bound| bound.height).max();
                base.height.max(bounds.unwrap_or(0))
            }
            ExprKind::Call(callee, args) => callee.height.max(tallest(&args.values)),
            ExprKind::Binary(first, rest) => {
                let rest = rest.iter().map(|(_, right)| right.height).max();
                first.height.max(rest.unwrap_or(0))
            }
            ExprKind::Ternary(parts) => tallest(&parts[..]),
            _ => 0,
        };
        Self { kind, span, height: inside + 1 }
    }
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Nil,
    Bool(bool),
    Number(f64),
    Imaginary,
    Text(Str),
    Name(Name),
    /// `_`, where a piped value goes.
    Slot,
    /// `.a.b`, or `.` when empty: members of the context.
    Field(Vec<(Name, Span)>),
    /// `base.a.b`
    Chain(Box<Expr>, Vec<(Name, Span)>),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Call(Box<Expr>, Args),
    Not(Box<Expr>),
    /// `-x`, or `+x` when false.
    Sign(bool, Box<Expr>),
    /// Operators of one precedence, from left to right.
    Binary(Box<Expr>, Vec<(Operator, Expr)>),
    Ternary(Box<[Expr; 3]>),
}

#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) values: Vec<Expr>,
    /// Which of them is `_`.
    pub(crate) slot: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    And,
    Or,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}
