//! Calls, with the special forms that take a body.

use super::Parser;
use govalue::Span;

use crate::ast::{Node, NodeId};
use crate::builtins::{Builtin, Predicate};
use crate::error::Error;
use crate::lexer::Tok;

impl Parser<'_> {
    /// `value | name(args)` is `name(value, args)`.
    pub(super) fn pipe(&mut self, value: NodeId) -> Result<NodeId, Error> {
        let span = self.span();
        let node = if self.is("::") {
            self.next();
            self.named_call(Some(value))?
        } else {
            let Tok::Name(name) = *self.peek() else {
                return Err(self.unexpected());
            };
            self.next();
            self.call(name, span, Some(value))?
        };
        self.postfix(node)
    }

    /// `::name(args)` is a function of the language whatever the environment has.
    pub(super) fn global(&mut self) -> Result<NodeId, Error> {
        self.next();
        self.named_call(None)
    }

    fn named_call(&mut self, piped: Option<NodeId>) -> Result<NodeId, Error> {
        let span = self.span();
        let Tok::Name(name) = *self.peek() else {
            return Err(self.unexpected());
        };
        self.next();
        self.call(name, span, piped)
    }

    /// A call whose name has been read.
    pub(super) fn call(
        &mut self,
        name: &str,
        start: Span,
        piped: Option<NodeId>,
    ) -> Result<NodeId, Error> {
        if !self.is("(") {
            return Err(self.unexpected());
        }
        if let Some(predicate) = Predicate::named(name) {
            return self.predicate(predicate, start, piped);
        }
        let args = self.arguments(piped)?;
        let span = start.to(self.end());
        let node = match Builtin::named(name) {
            Some(function) => Node::Builtin { function, args },
            None => Node::Call { name: name.into(), args },
        };
        self.add(node, span)
    }

    pub(super) fn arguments(&mut self, piped: Option<NodeId>) -> Result<Vec<NodeId>, Error> {
        self.expect("(")?;
        let mut args: Vec<NodeId> = piped.into_iter().collect();
        let mut first = true;
        while !self.take(")") {
            if !first {
                self.expect(",")?;
                if self.take(")") {
                    break;
                }
            }
            first = false;
            args.push(self.expression(0)?);
        }
        Ok(args)
    }

    fn predicate(
        &mut self,
        predicate: Predicate,
        start: Span,
        piped: Option<NodeId>,
    ) -> Result<NodeId, Error> {
        self.expect("(")?;
        let items = match piped {
            Some(items) => items,
            None => self.expression(0)?,
        };
        let has_body = match piped {
            Some(_) => !predicate.body_optional() || !self.is(")"),
            None if predicate.body_optional() => self.take(","),
            None => {
                self.expect(",")?;
                true
            }
        };
        let body = if has_body { Some(self.body()?) } else { None };
        let mut extra = None;
        if self.take(",") && matches!(predicate, Predicate::SortBy | Predicate::Reduce) {
            extra = Some(self.expression(0)?);
        }
        self.expect(")")?;
        let span = start.to(self.end());
        self.add(Node::Predicate { predicate, items, body, extra }, span)
    }

    /// What a predicate does with each item; braces are optional.
    fn body(&mut self) -> Result<NodeId, Error> {
        self.closures += 1;
        let body = if self.take("{") {
            let body = self.sequence();
            self.expect("}").and(body)
        } else {
            self.expression(0)
        };
        self.closures -= 1;
        body
    }
}
