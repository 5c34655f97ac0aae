//! Assignments, alone and in front of `if` and `range`.

use super::Parser;
use crate::ast::{Assign, Expr, ExprKind, Target};
use crate::error::Error;
use crate::lexer::Mark;

impl Parser<'_> {
    /// An assignment, or the expression that turned out not to be one.
    pub(super) fn assignment(
        &mut self,
        place: &str,
    ) -> Result<(Option<Assign>, Option<Expr>), Error> {
        let mut left = self.expressions(place)?;
        let Some(declare) = self.assign_mark() else {
            let only = if left.len() == 1 { left.pop() } else { None };
            return match only {
                Some(only) => Ok((None, Some(only))),
                None => Err(self.unexpected(self.peek(), place, "an assignment is missing")),
            };
        };
        let span = left[0].span;
        let values = self.expressions(place)?;
        let lookup = match &values[..] {
            [Expr { kind: ExprKind::Index(..), .. }] => left.len() == 2,
            _ => false,
        };
        if !lookup && left.len() != values.len() {
            let message = format!("{} names but {} values", left.len(), values.len());
            return Err(self.error(span, message));
        }
        let targets = self.targets(left, declare)?;
        Ok((Some(Assign { targets, values, declare, lookup, span }), None))
    }

    /// What `range` assigns to, whether it declares that, and what it goes over.
    pub(super) fn range_head(&mut self) -> Result<(Vec<Target>, bool, Expr), Error> {
        let mut left = self.expressions("range")?;
        let Some(declare) = self.assign_mark() else {
            return match (left.pop(), left.is_empty()) {
                (Some(over), true) => Ok((Vec::new(), false, over)),
                _ => Err(self.unexpected(self.peek(), "range", "`:=` is missing")),
            };
        };
        if left.len() > 2 {
            return Err(self.error(left[2].span, "`range` sets at most an index and a value"));
        }
        let over = self.expression("range")?;
        Ok((self.targets(left, declare)?, declare, over))
    }

    fn expressions(&mut self, place: &str) -> Result<Vec<Expr>, Error> {
        let mut found = vec![self.expression(place)?];
        while self.accept(Mark::Comma) {
            found.push(self.expression(place)?);
        }
        Ok(found)
    }

    fn assign_mark(&mut self) -> Option<bool> {
        if self.accept(Mark::Declare) {
            Some(true)
        } else {
            self.accept(Mark::Assign).then_some(false)
        }
    }

    fn targets(&self, left: Vec<Expr>, declare: bool) -> Result<Vec<Target>, Error> {
        left.into_iter().map(|expr| self.target(expr, declare)).collect()
    }

    fn target(&self, expr: Expr, declare: bool) -> Result<Target, Error> {
        let span = expr.span;
        match expr.kind {
            ExprKind::Slot => return Ok(Target::Discard),
            ExprKind::Name(name) => return Ok(Target::Variable(name, span)),
            ExprKind::Field(mut path) if !declare => {
                if let Some((member, at)) = path.pop() {
                    let base = Expr::new(ExprKind::Field(path), span);
                    return Ok(Target::Member { base, member, span: at });
                }
            }
            ExprKind::Chain(base, mut path) if !declare => {
                if let Some((member, at)) = path.pop() {
                    let base = if path.is_empty() {
                        *base
                    } else {
                        Expr::new(ExprKind::Chain(base, path), span)
                    };
                    return Ok(Target::Member { base, member, span: at });
                }
            }
            _ => {}
        }
        let wanted = if declare { "a name" } else { "a name or a member" };
        Err(self.error(span, format!("only {wanted} can be assigned to")))
    }
}
