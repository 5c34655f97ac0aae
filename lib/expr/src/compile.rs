//! The syntax tree to instructions.

use govalue::Span;
use govalue::Value;
use govalue::regexp::{self, Regex};

use crate::ast::{Ast, BinaryOp, Node, NodeId, UnaryOp};
use crate::builtins::{Builtin, Predicate};
use crate::check::{Binding, Checked};
use crate::error::{Error, ErrorKind};
use crate::program::Op;
use crate::types::Type;

pub(crate) struct Compiled {
    pub(crate) code: Vec<Op>,
    pub(crate) spans: Vec<Span>,
    pub(crate) constants: Vec<Value>,
    pub(crate) patterns: Vec<Regex>,
    pub(crate) amplifies: bool,
}

pub(crate) fn compile(ast: &Ast, root: NodeId, checked: &Checked) -> Result<Compiled, Error> {
    let mut compiler = Compiler {
        ast,
        checked,
        out: Compiled {
            code: Vec::new(),
            spans: Vec::new(),
            constants: Vec::new(),
            patterns: Vec::new(),
            amplifies: false,
        },
        chains: Vec::new(),
        makes: false,
        reuses: false,
    };
    compiler.node(root)?;
    compiler.out.amplifies = compiler.makes && compiler.reuses;
    Ok(compiler.out)
}

struct Compiler<'a> {
    ast: &'a Ast,
    checked: &'a Checked,
    out: Compiled,
    /// For each open chain, the jumps to its end.
    chains: Vec<Vec<usize>>,
    /// Whether lists or maps are made.
    makes: bool,
    /// Whether values are named and so can be used more than once.
    reuses: bool,
}

impl Compiler<'_> {
    fn emit(&mut self, op: Op, node: NodeId) -> usize {
        self.out.code.push(op);
        self.out.spans.push(self.ast.span(node));
        self.out.code.len() - 1
    }

    fn here(&self) -> u32 {
        self.out.code.len() as u32
    }

    /// Makes a jump lead to the next instruction.
    fn land(&mut self, at: usize) {
        let here = self.here();
        match &mut self.out.code[at] {
            Op::Jump(target)
            | Op::Branch(target)
            | Op::And(target)
            | Op::Or(target)
            | Op::JumpIfNil(target)
            | Op::Coalesce(target)
            | Op::Next(target) => *target = here,
            // Only jumps are kept for landing.
            _ => {}
        }
    }

    fn constant(&mut self, value: Value) -> u32 {
        self.out.constants.push(value);
        self.out.constants.len() as u32 - 1
    }

    fn push_constant(&mut self, value: Value, node: NodeId) {
        let constant = self.constant(value);
        self.emit(Op::Constant(constant), node);
    }

    fn nodes(&mut self, ids: &[NodeId]) -> Result<(), Error> {
        ids.iter().try_for_each(|id| self.node(*id))
    }

    fn node(&mut self, id: NodeId) -> Result<(), Error> {
        match self.ast.node(id) {
            Node::Nil => {
                self.emit(Op::Nil, id);
            }
            Node::Bool(value) => {
                self.emit(Op::Bool(*value), id);
            }
            Node::Int(value) => {
                self.emit(Op::Int(*value), id);
            }
            Node::Float(value) => self.push_constant(Value::Float(*value), id),
            Node::String(text) => self.push_constant(Value::String(text.clone()), id),
            Node::Bytes(bytes) => self.push_constant(Value::Bytes(bytes.clone()), id),
            Node::Env => {
                self.emit(Op::Env, id);
            }
            Node::Name(name) => self.name(id, name),
            Node::Pointer(name) => {
                let op = match &**name {
                    "index" => Op::Index,
                    "acc" => Op::Accumulated,
                    _ => Op::Item,
                };
                self.emit(op, id);
            }
            Node::Unary(op, operand) => self.unary(id, *op, *operand)?,
            Node::Binary(..) => self.binary(id)?,
            Node::Chain(inner) => {
                self.chains.push(Vec::new());
                self.node(*inner)?;
                self.nil_if_missing(*inner);
                for jump in self.chains.pop().unwrap_or_default() {
                    self.land(jump);
                }
            }
            Node::Member { base, key, optional } => self.member(id, *base, *key, *optional)?,
            Node::Slice { base, from, to } => {
                self.node(*base)?;
                for bound in [from, to].into_iter().flatten() {
                    self.node(*bound)?;
                }
                self.emit(Op::Slice { from: from.is_some(), to: to.is_some() }, id);
            }
            Node::Call { args, .. } => {
                self.nodes(args)?;
                if let Binding::Function(slot) = self.checked.places[id.index()] {
                    self.emit(Op::Call(slot, args.len() as u32), id);
                }
            }
            Node::Method { base, name, optional, args } => {
                self.node(*base)?;
                self.optional(*optional, *base);
                self.nodes(args)?;
                let name = self.constant((**name).into());
                self.emit(Op::Method(name, args.len() as u32), id);
            }
            Node::Builtin { function, args } => self.builtin(id, *function, args)?,
            Node::Predicate { predicate, items, body, extra } => {
                self.predicate(id, *predicate, *items, *body, *extra)?;
            }
            Node::Conditional { condition, then, other } => {
                self.node(*condition)?;
                let branch = self.emit(Op::Branch(0), *condition);
                self.node(*then)?;
                let jump = self.emit(Op::Jump(0), id);
                self.land(branch);
                self.node(*other)?;
                self.land(jump);
            }
            Node::Array(items) => {
                self.makes = true;
                self.nodes(items)?;
                self.emit(Op::Array(items.len() as u32), id);
            }
            Node::Map(pairs) => {
                self.makes = true;
                for (key, value) in pairs {
                    self.node(*key)?;
                    self.node(*value)?;
                }
                self.emit(Op::Map(pairs.len() as u32), id);
            }
            Node::Let { value, body, .. } => {
                self.reuses = true;
                self.node(*value)?;
                if let Binding::Variable(slot) = self.checked.places[id.index()] {
                    self.emit(Op::Store(slot), id);
                }
                self.node(*body)?;
            }
            Node::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.emit(Op::Pop, *item);
                    }
                    self.node(*item)?;
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, id: NodeId, name: &str) {
        let op = match self.checked.places[id.index()] {
            Binding::Variable(slot) => Op::Variable(slot),
            Binding::Member(slot) => Op::Member(slot),
            Binding::Function(_) | Binding::Nowhere => Op::NoValue(self.constant(name.into())),
        };
        self.emit(op, id);
    }

    fn unary(&mut self, id: NodeId, op: UnaryOp, operand: NodeId) -> Result<(), Error> {
        // A negative number is one constant, not an operation.
        if let (UnaryOp::Minus, Node::Int(value)) = (op, self.ast.node(operand)) {
            self.emit(Op::Int(value.wrapping_neg()), id);
            return Ok(());
        }
        self.node(operand)?;
        match op {
            UnaryOp::Not => {
                self.emit(Op::Not, id);
            }
            UnaryOp::Minus => {
                self.emit(Op::Negate, id);
            }
            UnaryOp::Plus => {}
        }
        Ok(())
    }

    /// Like the checker, walks the left side in a loop.
    fn binary(&mut self, id: NodeId) -> Result<(), Error> {
        let mut spine = Vec::new();
        let mut at = id;
        let mut decided = None;
        while let Node::Binary(op, left, right) = self.ast.node(at) {
            // These decide about the left side before it is compiled.
            if *op == BinaryOp::In && self.contained_specially(at) {
                break;
            }
            // As in the reference, a literal on the right decides without a look
            // at the left side, or leaves the left side as it is.
            match (op, self.literal(*right)) {
                (BinaryOp::And, Some(false)) | (BinaryOp::Or, Some(true)) => {
                    decided = self.literal(*right);
                    break;
                }
                (BinaryOp::And | BinaryOp::Or, Some(_)) => {}
                _ => spine.push((at, *op, *right)),
            }
            at = *left;
        }
        match (decided, self.ast.node(at)) {
            (Some(value), _) => {
                self.emit(Op::Bool(value), at);
            }
            (None, Node::Binary(_, left, right)) => self.contained(at, *left, *right)?,
            (None, _) => self.node(at)?,
        }
        for (node, op, right) in spine.into_iter().rev() {
            self.operator(node, op, right)?;
        }
        Ok(())
    }

    /// The value of `true`, `false` and their negations.
    fn literal(&self, id: NodeId) -> Option<bool> {
        match self.ast.node(id) {
            Node::Bool(value) => Some(*value),
            Node::Unary(UnaryOp::Not, of) => self.literal(*of).map(|value| !value),
            _ => None,
        }
    }

    fn operator(&mut self, node: NodeId, op: BinaryOp, right: NodeId) -> Result<(), Error> {
        let jump = match op {
            BinaryOp::And => Some(Op::And(0)),
            BinaryOp::Or => Some(Op::Or(0)),
            BinaryOp::Coalesce => Some(Op::Coalesce(0)),
            _ => None,
        };
        if let Some(jump) = jump {
            if let (BinaryOp::Coalesce, Node::Binary(_, left, _)) = (op, self.ast.node(node)) {
                self.nil_if_missing(*left);
            }
            let jump = self.emit(jump, node);
            self.node(right)?;
            self.land(jump);
            return Ok(());
        }
        if let (BinaryOp::Matches, Node::String(pattern)) = (op, self.ast.node(right)) {
            let pattern = regexp::compile(pattern)
                .map_err(|message| Error::new(ErrorKind::Type, message, self.ast.span(right)))?;
            self.out.patterns.push(pattern);
            self.emit(Op::MatchesPattern(self.out.patterns.len() as u32 - 1), node);
            return Ok(());
        }
        self.node(right)?;
        let op = match op {
            BinaryOp::Equal => Op::Equal,
            BinaryOp::NotEqual => Op::NotEqual,
            BinaryOp::Less => Op::Less,
            BinaryOp::LessEqual => Op::LessEqual,
            BinaryOp::Greater => Op::Greater,
            BinaryOp::GreaterEqual => Op::GreaterEqual,
            BinaryOp::In => Op::In,
            BinaryOp::Matches => Op::Matches,
            BinaryOp::Contains => Op::Contains,
            BinaryOp::StartsWith => Op::StartsWith,
            BinaryOp::EndsWith => Op::EndsWith,
            BinaryOp::Range => Op::Range,
            BinaryOp::Add => Op::Add,
            BinaryOp::Subtract => Op::Subtract,
            BinaryOp::Multiply => Op::Multiply,
            BinaryOp::Divide => Op::Divide,
            BinaryOp::Modulo => Op::Modulo,
            BinaryOp::Power => Op::Power,
            // Compiled to jumps above.
            BinaryOp::And | BinaryOp::Or | BinaryOp::Coalesce => return Ok(()),
        };
        self.emit(op, node);
        Ok(())
    }

    /// Whether `in` has `$env` or a constant range on its right.
    fn contained_specially(&self, id: NodeId) -> bool {
        let Node::Binary(_, left, right) = self.ast.node(id) else {
            return false;
        };
        matches!(self.ast.node(*right), Node::Env)
            || self.constant_range(*right).is_some()
                && self.checked.types[left.index()] == Type::Int
    }

    fn constant_range(&self, id: NodeId) -> Option<(i64, i64)> {
        let Node::Binary(BinaryOp::Range, low, high) = self.ast.node(id) else {
            return None;
        };
        match (self.ast.node(*low), self.ast.node(*high)) {
            (Node::Int(low), Node::Int(high)) => Some((*low, *high)),
            _ => None,
        }
    }

    fn contained(&mut self, id: NodeId, left: NodeId, right: NodeId) -> Result<(), Error> {
        self.node(left)?;
        match self.constant_range(right) {
            Some((low, high)) => {
                let (low, high) = (self.constant(Value::Int(low)), self.constant(Value::Int(high)));
                self.emit(Op::InRange(low, high), id);
            }
            None => {
                self.emit(Op::EnvHas, id);
            }
        }
        Ok(())
    }

    /// A missing group is an empty list, but nil where nil matters.
    fn nil_if_missing(&mut self, node: NodeId) {
        if let Node::Member { base, .. } = self.ast.node(node)
            && matches!(&self.checked.types[base.index()], Type::AnyMap(value) if matches!(**value, Type::Array(_)))
        {
            self.emit(Op::NilIfEmptyGroup, node);
        }
    }

    /// After a base that may be nil and then ends its chain.
    fn optional(&mut self, optional: bool, base: NodeId) {
        if optional {
            let jump = self.emit(Op::JumpIfNil(0), base);
            if let Some(chain) = self.chains.last_mut() {
                chain.push(jump);
            }
        }
    }

    fn member(
        &mut self,
        id: NodeId,
        base: NodeId,
        key: NodeId,
        optional: bool,
    ) -> Result<(), Error> {
        if matches!(self.ast.node(base), Node::Env) {
            self.node(key)?;
            self.emit(Op::EnvFetch, id);
            return Ok(());
        }
        if let Node::String(name) = self.ast.node(key) {
            let name = self.constant(Value::String(name.clone()));
            if let (false, Node::Name(_), Binding::Member(slot)) =
                (optional, self.ast.node(base), self.checked.places[base.index()])
            {
                self.emit(Op::MemberField(slot, name), id);
                return Ok(());
            }
            self.node(base)?;
            self.optional(optional, base);
            self.emit(Op::Field(name), id);
            return Ok(());
        }
        self.node(base)?;
        self.optional(optional, base);
        self.node(key)?;
        self.emit(Op::Fetch, id);
        Ok(())
    }

    fn builtin(&mut self, id: NodeId, function: Builtin, args: &[NodeId]) -> Result<(), Error> {
        let of_env = args.first().is_some_and(|arg| matches!(self.ast.node(*arg), Node::Env));
        match function {
            Builtin::Get if of_env => {
                self.nodes(&args[1..])?;
                self.emit(Op::EnvGet, id);
            }
            Builtin::Type if of_env => {
                self.emit(Op::EnvType, id);
            }
            _ => {
                self.nodes(args)?;
                self.emit(Op::Builtin(function, args.len() as u32), id);
            }
        }
        Ok(())
    }

    fn predicate(
        &mut self,
        id: NodeId,
        predicate: Predicate,
        items: NodeId,
        body: Option<NodeId>,
        extra: Option<NodeId>,
    ) -> Result<(), Error> {
        self.makes = true;
        self.reuses = true;
        if let Some(extra) = extra {
            self.node(extra)?;
        }
        if let Node::Binary(BinaryOp::Range, low, high) = self.ast.node(items) {
            self.node(*low)?;
            self.node(*high)?;
            self.emit(Op::BeginRange(predicate), items);
        } else {
            self.node(items)?;
            self.emit(Op::Begin(predicate), id);
        }
        match (extra, predicate) {
            (Some(_), _) => {
                self.emit(Op::Extra, id);
            }
            (None, Predicate::Reduce) => {
                self.emit(Op::FirstItem, id);
            }
            (None, _) => {}
        }
        let start = self.emit(Op::Next(0), id);
        match body {
            // A chain ends within its body.
            Some(body) => {
                let chains = std::mem::take(&mut self.chains);
                self.node(body)?;
                self.chains = chains;
            }
            None => {
                self.emit(Op::Item, id);
            }
        }
        self.emit(Op::Step(predicate, start as u32), id);
        self.land(start);
        self.emit(Op::End(predicate), id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Op;
    use crate::{Environment, Program, Type};

    fn program(source: &str) -> Program {
        let env = Environment::new().member("a", Type::Any).member("n", Type::Int);
        Program::compile(source, &env).unwrap()
    }

    #[test]
    fn jumps_land_behind_their_branches() {
        assert_eq!(
            program("a ? 1 : 2").code,
            [Op::Member(0), Op::Branch(4), Op::Int(1), Op::Jump(5), Op::Int(2)]
        );
        assert_eq!(program("a ?? -1").code, [Op::Member(0), Op::Coalesce(3), Op::Int(-1)]);
        assert_eq!(
            program("a?.b.c").code,
            [Op::Member(0), Op::JumpIfNil(4), Op::Field(1), Op::Field(0)]
        );
        assert_eq!(program("a.b.c").code, [Op::MemberField(0, 1), Op::Field(0)]);
    }

    #[test]
    fn constant_ranges_are_not_made() {
        assert_eq!(program("n in 1..1000000000").code, [Op::Member(1), Op::InRange(0, 1)]);
        assert!(program("a in 1..3").code.contains(&Op::Range));
    }

    #[test]
    fn only_reused_parts_amplify() {
        assert!(!program("[1, [2]]").amplifies);
        assert!(!program("let x = a; x + x").amplifies);
        assert!(program("let x = [1]; [x, x]").amplifies);
    }
}
