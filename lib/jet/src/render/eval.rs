//! Expressions.

use govalue::Span;
use govalue::Value;

use super::{Runtime, ops};
use crate::ast::{Expr, ExprKind, Operator};
use crate::builtins;
use crate::error::{Error, ErrorKind};
use crate::item::Item;

impl Runtime<'_> {
    pub(super) fn eval(&mut self, expr: &Expr) -> Result<Item, Error> {
        self.work(1, expr.span)?;
        match &expr.kind {
            ExprKind::Nil => Ok(Item::Missing),
            ExprKind::Bool(value) => Ok((*value).into()),
            ExprKind::Number(value) => Ok((*value).into()),
            ExprKind::Text(text) => Ok(text.clone().into()),
            ExprKind::Name(name) => self.resolve(name, expr.span),
            ExprKind::Field(path) => self.field(path, expr.span),
            _ => self.deeper(expr.span, |runtime| runtime.compound(expr)),
        }
    }

    /// An expression made of others.
    fn compound(&mut self, expr: &Expr) -> Result<Item, Error> {
        match &expr.kind {
            ExprKind::Chain(base, path) => {
                let base = self.eval(base)?;
                self.chain(base, path)
            }
            ExprKind::Index(base, index) => {
                let (base, key) = (self.eval(base)?, self.eval(index)?);
                self.index(&base, &key, index.span)
            }
            ExprKind::Slice(base, from, to) => {
                let base = self.eval(base)?;
                let from = from.as_ref().map(|from| self.eval(from)).transpose()?;
                let to = to.as_ref().map(|to| self.eval(to)).transpose()?;
                self.slice(&base, from, to, expr.span)
            }
            ExprKind::Call(callee, args) => {
                let function = self.eval(callee)?;
                self.call(&function, Some(args), None, callee.span)
            }
            ExprKind::Not(operand) => Ok((!self.eval(operand)?.is_true()).into()),
            ExprKind::Sign(minus, operand) => {
                let item = self.eval(operand)?;
                ops::sign(*minus, &item)
                    .map_err(|message| self.error(ErrorKind::Type, operand.span, message))
            }
            ExprKind::Binary(first, rest) => self.binary(first, rest),
            ExprKind::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if self.eval(condition)?.is_true() { yes } else { no };
                self.eval(chosen)
            }
            _ => {
                let message = "this stands for no value here";
                Err(self.error(ErrorKind::Type, expr.span, message))
            }
        }
    }

    /// Variables first, then the built-in functions.
    fn resolve(&mut self, name: &str, span: Span) -> Result<Item, Error> {
        let (found, walked) = self.scope.find(name);
        self.work(walked / 8, span)?;
        if let Some(item) = found.or_else(|| builtins::find(name).map(Item::Builtin)) {
            return Ok(item);
        }
        let message = format!("`{name}` is neither a variable nor a function");
        Err(self.error(ErrorKind::UnknownName, span, message))
    }

    /// Operators of one precedence, from left to right.
    fn binary(&mut self, first: &Expr, rest: &[(Operator, Expr)]) -> Result<Item, Error> {
        let mut left = self.eval(first)?;
        let mut span = first.span;
        for (operator, expr) in rest {
            left = match operator {
                Operator::And => (left.is_true() && self.eval(expr)?.is_true()).into(),
                Operator::Or => (left.is_true() || self.eval(expr)?.is_true()).into(),
                _ => {
                    let right = self.eval(expr)?;
                    self.operate(*operator, left, right, span.to(expr.span))?
                }
            };
            span = span.to(expr.span);
        }
        Ok(left)
    }

    fn operate(
        &mut self,
        operator: Operator,
        left: Item,
        right: Item,
        span: Span,
    ) -> Result<Item, Error> {
        if matches!(operator, Operator::Equal | Operator::Unequal) {
            let (left, right) = (self.plain(left, span)?, self.plain(right, span)?);
            let equal = ops::equal(&left, &right, &mut || self.work(1, span))?;
            return Ok((equal == (operator == Operator::Equal)).into());
        }
        if let (Operator::Add, Item::Value(Value::String(text))) = (operator, &left) {
            return self.concatenate(text, right, span);
        }
        ops::arithmetic(operator, &left, &right)
            .map_err(|(kind, message)| self.error(kind, span, message))
    }

    fn concatenate(&mut self, left: &govalue::Str, right: Item, span: Span) -> Result<Item, Error> {
        if matches!(right, Item::Missing) {
            return Err(self.error(ErrorKind::Type, span, "there is nothing to add"));
        }
        let right = self.text_of(right, span)?;
        let size = left.len() + right.len();
        if size > self.limits.output {
            return Err(self.too_large(span));
        }
        self.work_on(size, span)?;
        Ok(govalue::Str::from([left.as_bytes(), right.as_bytes()].concat()).into())
    }

    /// The item with all changes to maps in it.
    pub(super) fn plain(&mut self, item: Item, span: Span) -> Result<Item, Error> {
        match item {
            Item::Value(value) => self.plain_value(&value, span).map(Item::Value),
            other => Ok(other),
        }
    }

    pub(super) fn plain_value(&mut self, value: &Value, span: Span) -> Result<Value, Error> {
        self.edits.applied(value, self.limits.output).map_err(|_| self.too_large(span))
    }

    /// `isset`: whether something is there and not null. Never fails; what is
    /// computed rather than looked up is always there.
    pub(super) fn is_set(&mut self, expr: &Expr) -> Result<bool, Error> {
        match expr.kind {
            ExprKind::Name(_) | ExprKind::Field(_) | ExprKind::Chain(..) | ExprKind::Index(..) => {
                let item = self.guarded(|runtime| runtime.eval(expr))?;
                Ok(item.is_ok_and(|item| item.is_set()))
            }
            _ => Ok(true),
        }
    }
}
