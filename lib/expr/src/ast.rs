//! The syntax tree, kept in one vector so that it can be dropped and copied
//! without recursion.

use std::sync::Arc;

use govalue::Span;
use govalue::Str;

use crate::builtins::{Builtin, Predicate};

/// The place of a node in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tree of nodes.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    nodes: Vec<Node>,
    spans: Vec<Span>,
}

impl Ast {
    pub(crate) fn push(&mut self, node: Node, span: Span) -> NodeId {
        self.nodes.push(node);
        self.spans.push(span);
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn span(&self, id: NodeId) -> Span {
        self.spans[id.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Str),
    Bytes(Arc<[u8]>),
    /// A name: a variable, a member of the environment, or a function.
    Name(Box<str>),
    /// `$env`
    Env,
    /// `#`, `#index`, `#acc`
    Pointer(Box<str>),
    Unary(UnaryOp, NodeId),
    Binary(BinaryOp, NodeId, NodeId),
    /// A chain of members in which `?.` may end the whole.
    Chain(NodeId),
    Member {
        base: NodeId,
        key: NodeId,
        optional: bool,
    },
    Slice {
        base: NodeId,
        from: Option<NodeId>,
        to: Option<NodeId>,
    },
    /// A call of a function of the environment.
    Call {
        name: Box<str>,
        args: Vec<NodeId>,
    },
    /// A call of what a member yields, `date.Year()`.
    Method {
        base: NodeId,
        name: Box<str>,
        optional: bool,
        args: Vec<NodeId>,
    },
    Builtin {
        function: Builtin,
        args: Vec<NodeId>,
    },
    /// `filter(items, body)` and the like; `extra` is the order of `sortBy` and
    /// the first value of `reduce`.
    Predicate {
        predicate: Predicate,
        items: NodeId,
        body: Option<NodeId>,
        extra: Option<NodeId>,
    },
    Conditional {
        condition: NodeId,
        then: NodeId,
        other: NodeId,
    },
    Array(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),
    Let {
        name: Box<str>,
        value: NodeId,
        body: NodeId,
    },
    Sequence(Vec<NodeId>),
}

impl Node {
    /// Calls `visit` for every node right below this one.
    pub(crate) fn children(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Self::Unary(_, node) | Self::Chain(node) => visit(*node),
            Self::Binary(_, left, right) => [*left, *right].into_iter().for_each(visit),
            Self::Member { base, key, .. } => [*base, *key].into_iter().for_each(visit),
            Self::Slice { base, from, to } => {
                [Some(*base), *from, *to].into_iter().flatten().for_each(visit);
            }
            Self::Call { args, .. } | Self::Builtin { args, .. } => {
                args.iter().copied().for_each(visit);
            }
            Self::Method { base, args, .. } => {
                visit(*base);
                args.iter().copied().for_each(visit);
            }
            Self::Predicate { items, body, extra, .. } => {
                [Some(*items), *body, *extra].into_iter().flatten().for_each(visit);
            }
            Self::Conditional { condition, then, other } => {
                [*condition, *then, *other].into_iter().for_each(visit);
            }
            Self::Array(items) | Self::Sequence(items) => items.iter().copied().for_each(visit),
            Self::Map(pairs) => {
                pairs.iter().flat_map(|(key, value)| [*key, *value]).for_each(visit);
            }
            Self::Let { value, body, .. } => [*value, *body].into_iter().for_each(visit),
            Self::Nil
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::String(_)
            | Self::Bytes(_)
            | Self::Name(_)
            | Self::Env
            | Self::Pointer(_) => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Matches,
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
    Coalesce,
}

impl BinaryOp {
    /// The operator with its strength, and whether it binds to the right.
    pub(crate) fn parse(text: &str) -> Option<(Self, u16, bool)> {
        Some(match text {
            "or" | "||" => (Self::Or, 10, false),
            "and" | "&&" => (Self::And, 15, false),
            "==" => (Self::Equal, 20, false),
            "!=" => (Self::NotEqual, 20, false),
            "<" => (Self::Less, 20, false),
            "<=" => (Self::LessEqual, 20, false),
            ">" => (Self::Greater, 20, false),
            ">=" => (Self::GreaterEqual, 20, false),
            "in" => (Self::In, 20, false),
            "matches" => (Self::Matches, 20, false),
            "contains" => (Self::Contains, 20, false),
            "startsWith" => (Self::StartsWith, 20, false),
            "endsWith" => (Self::EndsWith, 20, false),
            ".." => (Self::Range, 25, false),
            "+" => (Self::Add, 30, false),
            "-" => (Self::Subtract, 30, false),
            "*" => (Self::Multiply, 60, false),
            "/" => (Self::Divide, 60, false),
            "%" => (Self::Modulo, 60, false),
            "**" | "^" => (Self::Power, 100, true),
            "??" => (Self::Coalesce, 500, false),
            _ => return None,
        })
    }

    /// How messages write the operator.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::In => "in",
            Self::Matches => "matches",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Range => "..",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "**",
            Self::Coalesce => "??",
        }
    }

    /// Whether `not` may stand before the operator, as in `not in`.
    pub(crate) fn negatable(self) -> bool {
        matches!(
            self,
            Self::In | Self::Matches | Self::Contains | Self::StartsWith | Self::EndsWith
        )
    }

    /// Whether the operator chains: `a < b < c`.
    pub(crate) fn chains(self) -> bool {
        matches!(self, Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual)
    }
}
