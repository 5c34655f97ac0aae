//! Expressions.

use super::Parser;
use govalue::Span;

use crate::ast::{Args, Expr, ExprKind, Name, Operator};
use crate::error::Error;
use crate::lexer::{Keyword, Mark, TokenKind};

/// From loosest to tightest. `&&` and `||` share a level, as `==` and `!=` do.
const LEVELS: &[&[(TokenKind, Operator)]] = &[
    &[
        (TokenKind::Mark(Mark::And), Operator::And),
        (TokenKind::Keyword(Keyword::And), Operator::And),
        (TokenKind::Mark(Mark::Or), Operator::Or),
        (TokenKind::Keyword(Keyword::Or), Operator::Or),
    ],
    &[
        (TokenKind::Mark(Mark::Equal), Operator::Equal),
        (TokenKind::Mark(Mark::Unequal), Operator::Unequal),
    ],
    &[
        (TokenKind::Mark(Mark::Less), Operator::Less),
        (TokenKind::Mark(Mark::LessEqual), Operator::LessEqual),
        (TokenKind::Mark(Mark::Greater), Operator::Greater),
        (TokenKind::Mark(Mark::GreaterEqual), Operator::GreaterEqual),
    ],
    &[
        (TokenKind::Mark(Mark::Plus), Operator::Add),
        (TokenKind::Mark(Mark::Minus), Operator::Subtract),
    ],
    &[
        (TokenKind::Mark(Mark::Times), Operator::Multiply),
        (TokenKind::Mark(Mark::Divide), Operator::Divide),
        (TokenKind::Mark(Mark::Modulo), Operator::Modulo),
    ],
];

/// How tall an expression may grow sideways, by calls and indexes in a row.
const MAX_HEIGHT: u32 = 100;

/// The level of `==`: `!` takes everything that binds tighter than `&&`.
const COMPARISON: usize = 1;

impl Parser<'_> {
    pub(super) fn expression(&mut self, place: &str) -> Result<Expr, Error> {
        self.nested(|parser| {
            let condition = parser.binary(0, place)?;
            if !parser.accept(Mark::Question) {
                return Ok(condition);
            }
            let yes = parser.expression("a ternary")?;
            let colon = TokenKind::Mark(Mark::Colon);
            parser.expect(&colon, "a ternary", "a colon is missing")?;
            let no = parser.expression("a ternary")?;
            let span = condition.span.to(no.span);
            Ok(Expr::new(ExprKind::Ternary(Box::new([condition, yes, no])), span))
        })
    }

    /// An operand and the operators that follow it, from the tightest level to
    /// the given one. The levels are a loop so that parentheses cost little of
    /// the stack.
    fn binary(&mut self, loosest: usize, place: &str) -> Result<Expr, Error> {
        let mut left = self.unary(place)?;
        for level in (loosest..LEVELS.len()).rev() {
            let rest = self.operators(level, place)?;
            if let Some((_, last)) = rest.last() {
                let span = left.span.to(last.span);
                left = Expr::new(ExprKind::Binary(Box::new(left), rest), span);
            }
        }
        Ok(left)
    }

    /// Operators of one level with their right operands.
    fn operators(&mut self, level: usize, place: &str) -> Result<Vec<(Operator, Expr)>, Error> {
        let mut found = Vec::new();
        while let Some((_, operator)) =
            LEVELS[level].iter().find(|(kind, _)| *kind == self.peek().kind)
        {
            self.pos += 1;
            found.push((*operator, self.binary(level + 1, place)?));
        }
        Ok(found)
    }

    fn unary(&mut self, place: &str) -> Result<Expr, Error> {
        let token = self.peek().clone();
        match token.kind {
            TokenKind::Mark(Mark::Not) | TokenKind::Keyword(Keyword::Not) => {
                self.pos += 1;
                let operand = self.nested(|parser| parser.binary(COMPARISON, place))?;
                let span = token.span.to(operand.span);
                Ok(Expr::new(ExprKind::Not(Box::new(operand)), span))
            }
            TokenKind::Mark(Mark::Minus | Mark::Plus) => {
                self.pos += 1;
                let operand = self.operand("a sign")?;
                let span = token.span.to(operand.span);
                let minus = token.kind == TokenKind::Mark(Mark::Minus);
                Ok(Expr::new(ExprKind::Sign(minus, Box::new(operand)), span))
            }
            _ => self.operand(place),
        }
    }

    /// A term and the members, calls and indexes that follow it.
    pub(super) fn operand(&mut self, place: &str) -> Result<Expr, Error> {
        let mut expr = self.term(place)?;
        // Each of these wraps the last, so a long row of them is deep.
        while expr.height <= MAX_HEIGHT {
            expr = self.members(expr)?;
            let reachable = matches!(
                expr.kind,
                ExprKind::Name(_)
                    | ExprKind::Field(_)
                    | ExprKind::Chain(..)
                    | ExprKind::Call(..)
                    | ExprKind::Index(..)
            );
            if !reachable {
                return Ok(expr);
            }
            if self.accept(Mark::OpenParen) {
                let args = self.arguments()?;
                let close = TokenKind::Mark(Mark::CloseParen);
                let end = self.expect(&close, "a call", "a closing parenthesis is missing")?;
                let span = expr.span.to(end);
                expr = Expr::new(ExprKind::Call(Box::new(expr), args), span);
            } else if self.accept(Mark::OpenBracket) {
                expr = self.brackets(expr)?;
                if matches!(expr.kind, ExprKind::Slice(..)) {
                    return Ok(expr);
                }
            } else {
                return Ok(expr);
            }
        }
        Err(self.error(expr.span, "too many calls and indexes in a row"))
    }

    /// `.a.b` right after an expression.
    fn members(&mut self, expr: Expr) -> Result<Expr, Error> {
        let mut path: Vec<(Name, Span)> = Vec::new();
        let mut span = expr.span;
        while self.peek().kind == TokenKind::Field && !self.peek().spaced {
            let token = self.next();
            path.push((Name::from(&self.text(token.span)[1..]), token.span));
            span = span.to(token.span);
        }
        if path.is_empty() {
            return Ok(expr);
        }
        match expr.kind {
            ExprKind::Field(mut first) => {
                first.append(&mut path);
                Ok(Expr::new(ExprKind::Field(first), span))
            }
            ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Number(_) | ExprKind::Nil => {
                Err(self.error(path[0].1, "a literal has no members"))
            }
            _ => Ok(Expr::new(ExprKind::Chain(Box::new(expr), path), span)),
        }
    }

    /// `[index]` or `[from:to]`, after the opening bracket.
    fn brackets(&mut self, base: Expr) -> Result<Expr, Error> {
        let bound = |parser: &mut Self, missing: bool| {
            (!missing).then(|| parser.expression("an index").map(Box::new)).transpose()
        };
        let from = bound(self, self.at(Mark::Colon))?;
        let slice = self.accept(Mark::Colon);
        let to = bound(self, !slice || self.at(Mark::CloseBracket))?;
        let close = TokenKind::Mark(Mark::CloseBracket);
        let end = self.expect(&close, "an index", "a closing bracket is missing")?;
        let span = base.span.to(end);
        let base = Box::new(base);
        let kind = match from {
            Some(index) if !slice => ExprKind::Index(base, index),
            from => ExprKind::Slice(base, from, to),
        };
        Ok(Expr::new(kind, span))
    }

    /// Arguments separated by commas; one after the last is fine before `)`.
    pub(super) fn arguments(&mut self) -> Result<Args, Error> {
        let mut args = Args::default();
        while !self.at(Mark::CloseParen) {
            let expr = self.expression("a call")?;
            if matches!(expr.kind, ExprKind::Slot) {
                if args.slot.is_some() {
                    return Err(self.error(expr.span, "a call has at most one `_`"));
                }
                args.slot = Some(args.values.len());
            }
            args.values.push(expr);
            if !self.accept(Mark::Comma) {
                break;
            }
        }
        Ok(args)
    }

    fn term(&mut self, place: &str) -> Result<Expr, Error> {
        let token = self.next();
        let span = token.span;
        let kind = match token.kind {
            TokenKind::Name => ExprKind::Name(Name::from(self.text(span))),
            TokenKind::Field => ExprKind::Field(vec![(Name::from(&self.text(span)[1..]), span)]),
            TokenKind::Mark(Mark::Dot) => ExprKind::Field(Vec::new()),
            TokenKind::Mark(Mark::Slot) => ExprKind::Slot,
            TokenKind::Bool(value) => ExprKind::Bool(value),
            TokenKind::Number(value) => ExprKind::Number(value),
            TokenKind::Imaginary => ExprKind::Imaginary,
            TokenKind::Quoted(text) => ExprKind::Text(text),
            TokenKind::Keyword(Keyword::Nil) => ExprKind::Nil,
            TokenKind::Mark(Mark::OpenParen) => {
                let inner = self.expression("parentheses")?;
                let close = TokenKind::Mark(Mark::CloseParen);
                self.expect(&close, "parentheses", "a closing parenthesis is missing")?;
                return Ok(inner);
            }
            _ => return Err(self.unexpected(&token, place, "an expression is missing")),
        };
        Ok(Expr::new(kind, span))
    }
}
