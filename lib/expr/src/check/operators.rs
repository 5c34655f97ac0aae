//! Which types operators take, and what they make of them.

use super::Checker;
use crate::ast::{BinaryOp, Node, NodeId};
use crate::error::Error;
use crate::types::Type;

impl Checker<'_> {
    /// Walks the left side of nested operators in a loop: a sum of a thousand
    /// terms is a thousand levels deep on that side.
    pub(super) fn binary(&mut self, id: NodeId) -> Result<Type, Error> {
        let mut spine = Vec::new();
        let mut at = id;
        while let Node::Binary(op, left, right) = self.ast.node(at) {
            spine.push((at, *op, *left, *right));
            at = *left;
        }
        let mut kind = self.visit(at)?;
        for (node, op, left, right) in spine.into_iter().rev() {
            let right_type = self.visit(right)?;
            kind = match op {
                BinaryOp::In => self.contained(left, &kind, &right_type, node)?,
                _ => result(op, &kind, &right_type).ok_or_else(|| {
                    let message =
                        format!("{} does not work on {kind} and {right_type}", op.symbol());
                    self.type_error(node, message)
                })?,
            };
            self.types[node.index()] = kind.clone();
        }
        Ok(kind)
    }

    fn contained(&self, left: NodeId, l: &Type, r: &Type, whole: NodeId) -> Result<Type, Error> {
        let fits = match r {
            Type::Any | Type::Nil | Type::AnyMap(_) => true,
            Type::Map(_) | Type::Environment => matches!(l, Type::String | Type::Any),
            Type::Array(item) => l.comparable(item),
            Type::Bytes => matches!(l, Type::Int | Type::Any),
            _ => return Err(self.type_error(whole, format!("in does not work on {l} and {r}"))),
        };
        if fits {
            return Ok(Type::Bool);
        }
        Err(self.type_error(left, format!("{l} cannot be in {r}")))
    }
}

/// The type of an operator's result, unless it does not take these types.
fn result(op: BinaryOp, l: &Type, r: &Type) -> Option<Type> {
    use Type::{Any, Bool, Bytes, Duration, Float, Int, String, Time};
    // One side unknown, and the other unknown as well or one of these.
    let partly = |known: &[Type]| {
        (l.is_any() && (r.is_any() || known.contains(r))) || (r.is_any() && known.contains(l))
    };
    let numbers = l.is_number() && r.is_number();
    let number = || if *l == Int && *r == Int { Int } else { Float };
    match op {
        BinaryOp::Or | BinaryOp::And => {
            (*l == Bool && *r == Bool || partly(&[Bool])).then_some(Bool)
        }
        BinaryOp::Equal | BinaryOp::NotEqual => l.comparable(r).then_some(Bool),
        BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
            let same = l == r && matches!(l, String | Time | Duration);
            (numbers || same || partly(&[Int, Float, String, Time, Duration])).then_some(Bool)
        }
        BinaryOp::Matches => {
            let text = |kind: &Type| matches!(kind, String | Bytes | Any);
            (text(l) && matches!(r, String | Any)).then_some(Bool)
        }
        BinaryOp::Contains | BinaryOp::StartsWith | BinaryOp::EndsWith => {
            (*l == String && *r == String || partly(&[String])).then_some(Bool)
        }
        BinaryOp::Range => (*l == Int && *r == Int || partly(&[Int])).then(|| Type::array(Int)),
        BinaryOp::Add => match (l, r) {
            _ if numbers => Some(number()),
            (String, String) => Some(String),
            (Time, Duration) | (Duration, Time) => Some(Time),
            (Duration, Duration) => Some(Duration),
            _ => partly(&[Int, Float, String, Time, Duration]).then_some(Any),
        },
        BinaryOp::Subtract => match (l, r) {
            _ if numbers => Some(number()),
            (Time, Time) | (Duration, Duration) => Some(Duration),
            (Time, Duration) => Some(Time),
            _ => partly(&[Int, Float, Time, Duration]).then_some(Any),
        },
        BinaryOp::Multiply => match (l, r) {
            _ if numbers => Some(number()),
            (Duration, Duration | Int) | (Int, Duration) => Some(Duration),
            (Duration, Float) | (Float, Duration) => Some(Any),
            _ => partly(&[Int, Float, Duration]).then_some(Any),
        },
        BinaryOp::Divide | BinaryOp::Power => (numbers || partly(&[Int, Float])).then_some(Float),
        BinaryOp::Modulo => (*l == Int && *r == Int || partly(&[Int])).then_some(Int),
        BinaryOp::Coalesce => Some(l.clone().either(r.clone())),
        // Decided by the caller, who knows where the sides stand.
        BinaryOp::In => Some(Bool),
    }
}
