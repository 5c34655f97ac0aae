//! Tokens to a syntax tree, by precedence climbing.

mod call;
mod primary;

use govalue::Span;

use crate::ast::{Ast, BinaryOp, Node, NodeId, UnaryOp};
use crate::error::{Error, ErrorKind};
use crate::lexer::{Tok, Token, tokens};

/// How deep expressions may nest, so that neither parsing nor compiling can
/// exhaust the stack.
const MAX_DEPTH: u32 = 150;

/// How many nodes an expression may have, as in the reference implementation.
const MAX_NODES: usize = 10_000;

/// Parses a whole expression.
pub(crate) fn parse(source: &str) -> Result<(Ast, NodeId), Error> {
    let mut parser = Parser {
        source,
        tokens: tokens(source)?,
        at: 0,
        ast: Ast::default(),
        heights: Vec::new(),
        depth: 0,
        closures: 0,
    };
    let root = parser.sequence()?;
    match parser.peek() {
        Tok::End => Ok((parser.ast, root)),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token<'s>>,
    at: usize,
    ast: Ast,
    /// How tall the tree below each node is.
    heights: Vec<u32>,
    depth: u32,
    /// How many bodies of predicates are open: `#` has a meaning inside them.
    closures: u32,
}

impl<'s> Parser<'s> {
    fn peek(&self) -> &Tok<'s> {
        &self.tokens[self.at].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The end of the token before the current one.
    fn end(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn next(&mut self) {
        // The last token is the end, which stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.peek(), Tok::Op(found) if *found == op)
    }

    fn take(&mut self, op: &str) -> bool {
        let found = self.is(op);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, op: &str) -> Result<(), Error> {
        if self.take(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Error {
        Error::new(ErrorKind::Syntax, format!("unexpected {}", self.peek().describe()), self.span())
    }

    fn add(&mut self, node: Node, span: Span) -> Result<NodeId, Error> {
        let mut height = 0;
        node.children(|child| height = height.max(self.heights[child.index()] + 1));
        // Operators are compiled without recursion along their left side, so a
        // long sum is not a tall one.
        if let Node::Binary(_, left, right) = node
            && matches!(self.ast.node(left), Node::Binary(..))
        {
            height = self.heights[left.index()].max(self.heights[right.index()] + 1);
        }
        if height > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Budget, "expression nests too deeply", span));
        }
        if self.ast.len() >= MAX_NODES {
            return Err(Error::new(ErrorKind::Budget, "expression is too large", span));
        }
        self.heights.push(height);
        Ok(self.ast.push(node, span))
    }

    /// One or more expressions separated by semicolons.
    fn sequence(&mut self) -> Result<NodeId, Error> {
        let first = self.expression(0)?;
        let mut items = vec![first];
        while self.take(";") {
            if *self.peek() == Tok::End {
                break;
            }
            items.push(self.expression(0)?);
        }
        if items.len() == 1 {
            return Ok(first);
        }
        let span = self.ast.span(first).to(self.end());
        self.add(Node::Sequence(items), span)
    }

    /// An expression of operators at least as strong as `strength`.
    fn expression(&mut self, strength: u16) -> Result<NodeId, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Budget, "expression nests too deeply", self.span()));
        }
        let node = self.expression_inner(strength);
        self.depth -= 1;
        node
    }

    fn expression_inner(&mut self, strength: u16) -> Result<NodeId, Error> {
        if strength == 0 && self.is("let") {
            return self.declaration();
        }
        if strength == 0 && self.is("if") {
            return self.branches();
        }
        let mut left = self.primary()?;
        let mut after_coalesce = false;
        loop {
            if strength == 0 && self.is("|") {
                self.next();
                left = self.pipe(left)?;
                after_coalesce = false;
                continue;
            }
            let negated = self.is("not");
            let op_at = self.at + usize::from(negated);
            let Some(Tok::Op(text)) = self.tokens.get(op_at).map(|token| token.kind.clone()) else {
                if negated {
                    self.next();
                    return Err(self.unexpected());
                }
                break;
            };
            let Some((op, op_strength, to_right)) = BinaryOp::parse(text) else {
                if negated {
                    self.next();
                    return Err(self.unexpected());
                }
                break;
            };
            if op_strength < strength {
                break;
            }
            if negated {
                self.next();
                if !op.negatable() {
                    return Err(self.unexpected());
                }
            }
            if after_coalesce && op != BinaryOp::Coalesce {
                let message = format!("{text} next to ?? needs parentheses");
                return Err(Error::new(ErrorKind::Syntax, message, self.span()));
            }
            self.next();
            left = if op.chains() {
                self.comparison(left, op, op_strength)?
            } else {
                let right =
                    self.expression(if to_right { op_strength } else { op_strength + 1 })?;
                self.binary(op, left, right)?
            };
            if negated {
                let span = self.ast.span(left);
                left = self.add(Node::Unary(UnaryOp::Not, left), span)?;
            }
            after_coalesce = op == BinaryOp::Coalesce;
        }
        if strength == 0 { self.conditional(left) } else { Ok(left) }
    }

    fn binary(&mut self, op: BinaryOp, left: NodeId, right: NodeId) -> Result<NodeId, Error> {
        let span = self.ast.span(left).to(self.ast.span(right));
        self.add(Node::Binary(op, left, right), span)
    }

    /// `a < b < c` means `a < b and b < c`.
    fn comparison(&mut self, left: NodeId, op: BinaryOp, strength: u16) -> Result<NodeId, Error> {
        let (mut left, mut op) = (left, op);
        let mut whole: Option<NodeId> = None;
        loop {
            let right = self.expression(strength + 1)?;
            let one = self.binary(op, left, right)?;
            whole = Some(match whole {
                Some(before) => self.binary(BinaryOp::And, before, one)?,
                None => one,
            });
            let next = match self.peek() {
                Tok::Op(text) => BinaryOp::parse(text).map(|(op, ..)| op).filter(|op| op.chains()),
                _ => None,
            };
            match (next, whole) {
                (Some(next), _) => (op, left) = (next, right),
                (None, Some(whole)) => return Ok(whole),
                (None, None) => return Ok(one),
            }
            self.next();
        }
    }

    /// `condition ? then : other`, and `condition ?: other`.
    fn conditional(&mut self, condition: NodeId) -> Result<NodeId, Error> {
        if !self.take("?") {
            return Ok(condition);
        }
        let then = if self.is(":") { condition } else { self.expression(0)? };
        self.expect(":")?;
        let other = self.expression(0)?;
        let span = self.ast.span(condition).to(self.end());
        self.add(Node::Conditional { condition, then, other }, span)
    }

    fn declaration(&mut self) -> Result<NodeId, Error> {
        self.next();
        let span = self.span();
        let Tok::Name(name) = *self.peek() else {
            return Err(self.unexpected());
        };
        self.next();
        self.expect("=")?;
        let value = self.expression(0)?;
        self.expect(";")?;
        let body = self.sequence()?;
        self.add(Node::Let { name: name.into(), value, body }, span)
    }

    /// `if a { b } else if c { d } else { e }`
    fn branches(&mut self) -> Result<NodeId, Error> {
        let start = self.span();
        self.next();
        let condition = self.expression(0)?;
        let then = self.block()?;
        self.expect("else")?;
        let other = if self.is("if") { self.expression(0)? } else { self.block()? };
        let span = start.to(self.end());
        self.add(Node::Conditional { condition, then, other }, span)
    }

    fn block(&mut self) -> Result<NodeId, Error> {
        self.expect("{")?;
        let body = self.sequence()?;
        self.expect("}")?;
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_have_places() {
        for (source, start) in [
            ("1 +", 3),
            ("1 2", 2),
            ("(1", 2),
            ("{a 1}", 3),
            ("#", 0),
            ("let x = 1", 9),
            ("nil ?? 1 + 1", 9),
        ] {
            let error = parse(source).map(|_| ()).unwrap_err();
            assert_eq!(
                (error.kind(), error.span().start),
                (ErrorKind::Syntax, start),
                "{source}: {error}"
            );
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let sum = |terms: usize| vec!["1"; terms].join(" + ");
        assert!(parse(&sum(4_000)).is_ok());
        assert_eq!(parse(&sum(11_000)).map(|_| ()).unwrap_err().kind(), ErrorKind::Budget);
        for source in [
            "(".repeat(20_000),
            "-".repeat(20_000),
            "not ".repeat(20_000),
            "[".repeat(20_000),
            "a".to_owned() + &".b".repeat(20_000),
            "a".to_owned() + &" | f()".repeat(20_000),
            "true ? 1 : ".repeat(20_000),
            "let a = 1; ".repeat(20_000),
            "2 ** ".repeat(20_000),
            "if true { 1 } else ".repeat(20_000),
            "all(1, ".repeat(20_000),
        ] {
            assert_eq!(
                parse(&source).map(|_| ()).unwrap_err().kind(),
                ErrorKind::Budget,
                "{}",
                &source[..20]
            );
        }
    }
}
