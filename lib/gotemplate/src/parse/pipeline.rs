//! Pipelines: declarations, commands and operands.

use super::{Parse, Parser};
use crate::ErrorKind;
use crate::ast::{Command, Operand, Pipe, Term, Var};
use crate::error::Fail;
use crate::lex::{Token, TokenKind};
use crate::number::Number;

impl Parser<'_> {
    fn variable(&mut self, name: &str) -> Var {
        let known = self.names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Var(index as u32)
    }

    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Parse<Pipe> {
        let first = self.peek_solid();
        let mut pipe = Pipe {
            span: Self::span(first),
            variables: Vec::new(),
            assign: false,
            commands: Vec::new(),
        };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.peek_solid();
            match token.kind {
                kind if kind == end => {
                    self.at += 1;
                    Self::check(token, &pipe, context)?;
                    return Ok(pipe);
                }
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Dot
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::Nil
                | TokenKind::Raw
                | TokenKind::Quoted
                | TokenKind::Variable
                | TokenKind::LeftParen => {
                    let command = self.command()?;
                    pipe.span = pipe.span.to(command.span());
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(token, context),
            }
        }
    }

    /// `$x :=`, `$x =` or, in a loop, `$i, $x :=`
    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parse<()> {
        loop {
            let before = self.at;
            let token = self.peek_solid();
            if token.kind != TokenKind::Variable {
                return Ok(());
            }
            self.next();
            let next = self.peek_solid();
            let comma = next.kind == TokenKind::Char && self.text_of(next) == ",";
            if !comma && !matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
                self.at = before;
                return Ok(());
            }
            self.next();
            let name = self.text_of(token).to_owned();
            let variable = self.variable(&name);
            pipe.variables.push(variable);
            self.variables.push(variable);
            if !comma {
                pipe.assign = next.kind == TokenKind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() > 1 {
                return Self::fail(token, format!("too many declarations in {context}"));
            }
            if self.peek_solid().kind != TokenKind::Variable {
                return Self::fail(next, "range can only initialize variables");
            }
        }
    }

    fn check(token: Token, pipe: &Pipe, context: &str) -> Parse<()> {
        if pipe.commands.is_empty() {
            return Self::fail(token, format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if matches!(
                command.head.term,
                Term::Bool(_) | Term::Dot | Term::Nil | Term::Number(_) | Term::String(_)
            ) {
                let message = format!("non executable command in pipeline stage {}", index + 1);
                return Err((Fail::new(ErrorKind::Syntax, message), command.head.span));
            }
        }
        Ok(())
    }

    /// Operands up to a pipe or the end; the pipe is consumed.
    fn command(&mut self) -> Parse<Command> {
        let first = self.peek_solid();
        let mut operands = Vec::new();
        loop {
            self.skip_space();
            operands.extend(self.operand()?);
            let token = self.peek();
            match token.kind {
                TokenKind::Space => {}
                TokenKind::RightDelimiter | TokenKind::RightParen => break,
                TokenKind::Pipe => {
                    self.at += 1;
                    break;
                }
                _ => return self.unexpected(token, "operand"),
            }
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            Some(head) => Ok(Command { head, arguments: operands.collect() }),
            None => Self::fail(first, "empty command"),
        }
    }

    /// A term and the fields hanging on it.
    fn operand(&mut self) -> Parse<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        let mut span = operand.span;
        while self.peek().kind == TokenKind::Field {
            let token = self.next();
            fields.push(self.text_of(token)[1..].into());
            span = span.to(Self::span(token));
        }
        if fields.is_empty() {
            return Ok(Some(operand));
        }
        operand = match operand.term {
            Term::Field(mut names) => {
                names.append(&mut fields);
                Operand { span, term: Term::Field(names) }
            }
            Term::Variable(variable, mut names) => {
                names.append(&mut fields);
                Operand { span, term: Term::Variable(variable, names) }
            }
            Term::Function(..) | Term::Pipe(_) | Term::Chain(..) => {
                Operand { span, term: Term::Chain(Box::new(operand), fields) }
            }
            Term::Dot | Term::Nil | Term::Bool(_) | Term::Number(_) | Term::String(_) => {
                let text = &self.text[operand.span.start as usize..operand.span.end as usize];
                let message = format!("unexpected . after term {text:?}");
                return Err((Fail::new(ErrorKind::Syntax, message), span));
            }
        };
        Ok(Some(operand))
    }

    fn term(&mut self) -> Parse<Option<Operand>> {
        let token = self.peek();
        let text = self.text_of(token);
        let number = |number: Result<Number, String>| match number {
            Ok(number) => Ok(Term::Number(number)),
            Err(message) => Self::fail(token, message),
        };
        let term = match token.kind {
            TokenKind::Identifier => {
                if let Some(function) = (self.around.function)(text) {
                    Term::Function(text.into(), function)
                } else {
                    let message = format!("function {text:?} not defined");
                    let fail = Fail::new(ErrorKind::UndefinedFunction, message);
                    return Err((fail, Self::span(token)));
                }
            }
            TokenKind::Dot => Term::Dot,
            TokenKind::Nil => Term::Nil,
            TokenKind::Bool => Term::Bool(text == "true"),
            TokenKind::Variable => {
                let name = text.to_owned();
                let variable = self.variable(&name);
                if !self.variables.contains(&variable) {
                    let message = format!("undefined variable {name:?}");
                    let fail = Fail::new(ErrorKind::UndefinedVariable, message);
                    return Err((fail, Self::span(token)));
                }
                Term::Variable(variable, Vec::new())
            }
            TokenKind::Field => Term::Field(vec![text[1..].into()]),
            TokenKind::CharConstant => number(Number::character(text))?,
            TokenKind::Complex => number(Number::complex(text))?,
            TokenKind::Number => number(Number::parse(text))?,
            TokenKind::Quoted | TokenKind::Raw => Term::String(self.string(token)?),
            TokenKind::LeftParen => {
                self.next();
                self.deeper(token)?;
                let pipe = self.pipeline("parenthesized pipeline", TokenKind::RightParen)?;
                self.depth -= 1;
                let close = self.tokens[self.at - 1];
                let span = Self::span(token).to(Self::span(close));
                return Ok(Some(Operand { span, term: Term::Pipe(Box::new(pipe)) }));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(Operand { span: Self::span(token), term }))
    }
}
