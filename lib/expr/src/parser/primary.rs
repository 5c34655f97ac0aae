//! Literals, names, brackets, and what may follow them.

use super::Parser;
use crate::ast::{Node, NodeId, UnaryOp};
use crate::error::{Error, ErrorKind};
use crate::lexer::Tok;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<NodeId, Error> {
        let span = self.span();
        let node = match self.peek().clone() {
            Tok::Int(value) => self.literal(Node::Int(value))?,
            Tok::Float(value) => self.literal(Node::Float(value))?,
            Tok::String(text) => self.literal(Node::String(text))?,
            Tok::Bytes(bytes) => self.literal(Node::Bytes(bytes))?,
            Tok::Name(name) => self.name(name)?,
            Tok::Pointer(name) if self.closures > 0 => self.literal(Node::Pointer(name.into()))?,
            Tok::Op("." | "?.") if self.closures > 0 => {
                // `.name` is short for `#.name`; the dot is read below.
                self.add(Node::Pointer("".into()), span)?
            }
            Tok::Op(op) => match op {
                "not" => return self.unary(UnaryOp::Not, 50),
                "!" => return self.unary(UnaryOp::Not, 1000),
                "-" => return self.unary(UnaryOp::Minus, 90),
                "+" => return self.unary(UnaryOp::Plus, 90),
                "(" => {
                    self.next();
                    let node = self.sequence()?;
                    self.expect(")")?;
                    node
                }
                "[" => self.array()?,
                "{" => self.map()?,
                "::" => self.global()?,
                _ => return Err(self.unexpected()),
            },
            Tok::Pointer(_) | Tok::End => return Err(self.unexpected()),
        };
        self.postfix(node)
    }

    fn literal(&mut self, node: Node) -> Result<NodeId, Error> {
        let span = self.span();
        self.next();
        self.add(node, span)
    }

    fn unary(&mut self, op: UnaryOp, strength: u16) -> Result<NodeId, Error> {
        let start = self.span();
        self.next();
        let operand = self.expression(strength)?;
        let span = start.to(self.end());
        let node = self.add(Node::Unary(op, operand), span)?;
        self.postfix(node)
    }

    fn name(&mut self, name: &str) -> Result<NodeId, Error> {
        let span = self.span();
        let node = match name {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            "nil" => Node::Nil,
            "$env" => Node::Env,
            _ => {
                self.next();
                if self.is("(") {
                    return self.call(name, span, None);
                }
                return self.add(Node::Name(name.into()), span);
            }
        };
        self.next();
        self.add(node, span)
    }

    fn array(&mut self) -> Result<NodeId, Error> {
        let start = self.span();
        self.next();
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
                if self.take("]") {
                    break;
                }
            }
            items.push(self.expression(0)?);
        }
        let span = start.to(self.end());
        self.add(Node::Array(items), span)
    }

    fn map(&mut self) -> Result<NodeId, Error> {
        let start = self.span();
        self.next();
        let mut pairs = Vec::new();
        while !self.take("}") {
            if !pairs.is_empty() {
                self.expect(",")?;
                if self.take("}") {
                    break;
                }
            }
            let key = self.key()?;
            self.expect(":")?;
            pairs.push((key, self.expression(0)?));
        }
        let span = start.to(self.end());
        self.add(Node::Map(pairs), span)
    }

    /// A key stands for itself, unless it is in parentheses.
    fn key(&mut self) -> Result<NodeId, Error> {
        let span = self.span();
        let text = match self.peek().clone() {
            Tok::Name(name) => name.into(),
            Tok::String(text) => text,
            Tok::Int(_) | Tok::Float(_) => {
                self.source[span.start as usize..span.end as usize].into()
            }
            Tok::Op("(") => return self.expression(0),
            _ => {
                let message =
                    "a map key must be a name, a string, a number or an expression in parentheses";
                return Err(Error::new(ErrorKind::Syntax, message, span));
            }
        };
        self.literal(Node::String(text))
    }

    /// Members, indices, slices and calls, as many as there are.
    pub(super) fn postfix(&mut self, node: NodeId) -> Result<NodeId, Error> {
        let start = self.ast.span(node);
        let (mut node, mut chained) = match self.ast.node(node) {
            // Parentheses do not end a chain.
            Node::Chain(inner) => (*inner, true),
            _ => (node, false),
        };
        loop {
            let optional = self.is("?.");
            if self.take(".") || self.take("?.") {
                chained |= optional;
                if optional && self.is("[") {
                    node = self.index(node, true)?;
                    continue;
                }
                let span = self.span();
                let name = match self.peek() {
                    Tok::Name(name) => *name,
                    // Words that are operators elsewhere are names here.
                    Tok::Op(word) if word.starts_with(char::is_alphabetic) => word,
                    _ => return Err(self.unexpected()),
                };
                self.next();
                if self.is("(") {
                    let args = self.arguments(None)?;
                    let span = start.to(self.end());
                    let name = name.into();
                    node = self.add(Node::Method { base: node, name, optional, args }, span)?;
                    continue;
                }
                let key = self.add(Node::String(name.into()), span)?;
                let whole = start.to(span);
                node = self.add(Node::Member { base: node, key, optional }, whole)?;
            } else if self.is("[") {
                node = self.index(node, false)?;
            } else {
                break;
            }
        }
        if !chained {
            return Ok(node);
        }
        let span = start.to(self.end());
        self.add(Node::Chain(node), span)
    }

    fn index(&mut self, base: NodeId, optional: bool) -> Result<NodeId, Error> {
        let start = self.ast.span(base);
        self.next();
        let from = if self.is(":") { None } else { Some(self.expression(0)?) };
        if !self.take(":") {
            let key = from.ok_or_else(|| self.unexpected())?;
            self.expect("]")?;
            let span = start.to(self.end());
            return self.add(Node::Member { base, key, optional }, span);
        }
        let to = if self.is("]") { None } else { Some(self.expression(0)?) };
        self.expect("]")?;
        let span = start.to(self.end());
        self.add(Node::Slice { base, from, to }, span)
    }
}
