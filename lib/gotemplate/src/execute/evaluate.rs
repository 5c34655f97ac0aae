//! Pipelines, fields and calls.

use std::sync::Arc;

use govalue::Span;
use govalue::Value;

use super::{Exec, Run};
use crate::ErrorKind;
use crate::ast::{Command, Operand, Pipe, Term};
use crate::error::Fail;
use crate::functions::{Arguments, Context, Function, HostFunction, Native, Type};
use crate::limits::Caller;
use crate::methods;
use crate::number::Number;
use crate::val::{Purpose, Val};

/// What a function, method or field is given.
struct Given<'t> {
    span: Span,
    arguments: &'t [Operand],
    /// The value of the command before, in a pipeline.
    last: Option<Val>,
}

impl Given<'_> {
    fn count(&self) -> usize {
        self.arguments.len() + usize::from(self.last.is_some())
    }
}

impl<'t> Run<'t> {
    /// The value of a pipeline, after its variables were set.
    pub(super) fn pipeline(&mut self, pipe: &'t Pipe, dot: &Val) -> Exec<Val> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(match self.command(command, dot, last)? {
                Val::Nil => Val::Missing,
                value => value,
            });
        }
        let value = last.unwrap_or(Val::Missing);
        for variable in &pipe.variables {
            if pipe.assign {
                self.assign(pipe.span, *variable, value.clone())?;
            } else {
                self.variables.push((*variable, value.clone()));
            }
        }
        Ok(value)
    }

    fn command(&mut self, command: &'t Command, dot: &Val, last: Option<Val>) -> Exec<Val> {
        let given = Given { span: command.span(), arguments: &command.arguments, last };
        self.evaluate(&command.head, dot, given)
    }

    fn operand(&mut self, operand: &'t Operand, dot: &Val) -> Exec<Val> {
        self.evaluate(operand, dot, Given { span: operand.span, arguments: &[], last: None })
    }

    fn evaluate(&mut self, operand: &'t Operand, dot: &Val, given: Given<'t>) -> Exec<Val> {
        self.spend(operand.span, 1)?;
        match &operand.term {
            Term::Function(name, function) => self.call(name, function, dot, given),
            Term::Field(names) => self.fields(dot.clone(), names, dot, given),
            Term::Chain(receiver, names) => {
                let receiver = self.operand(receiver, dot)?;
                self.fields(receiver, names, dot, given)
            }
            Term::Variable(variable, names) => {
                let frame = self.frame;
                let found = self.variables[frame..].iter().rev().find(|(name, _)| name == variable);
                let Some((_, value)) = found else {
                    let message = format!("undefined variable: {}", self.text(operand.span));
                    return self.fail(operand.span, ErrorKind::UndefinedVariable, message);
                };
                let value = value.clone();
                if names.is_empty() {
                    self.not_a_function(operand, &given)?;
                    return Ok(value);
                }
                self.fields(value, names, dot, given)
            }
            Term::Pipe(pipe) => {
                self.not_a_function(operand, &given)?;
                self.deeper(operand.span)?;
                let value = self.pipeline(pipe, dot)?;
                self.depth -= 1;
                Ok(value)
            }
            term => {
                self.not_a_function(operand, &given)?;
                match term {
                    Term::Dot => Ok(dot.clone()),
                    Term::Nil => self.fail(operand.span, ErrorKind::Type, "nil is not a command"),
                    _ => self.literal(operand, Type::Any),
                }
            }
        }
    }

    fn not_a_function(&self, operand: &Operand, given: &Given<'_>) -> Exec<()> {
        if given.count() == 0 {
            return Ok(());
        }
        let text = self.text(operand.span);
        let message = format!("can't give argument to non-function {text}");
        self.fail(operand.span, ErrorKind::Arguments, message)
    }

    /// A literal, as a parameter of this type takes it.
    fn literal(&self, operand: &Operand, wanted: Type) -> Exec<Val> {
        let expected = |what: &str| {
            let message = format!("expected {what}; found {}", self.text(operand.span));
            self.fail(operand.span, ErrorKind::Arguments, message)
        };
        match (wanted, &operand.term) {
            (_, Term::Nil) => {
                if let Some(value) = wanted.nil() {
                    Ok(value)
                } else {
                    let message = format!("cannot assign nil to {}", wanted.name());
                    self.fail(operand.span, ErrorKind::Arguments, message)
                }
            }
            (Type::Any | Type::Reflect | Type::String, Term::String(text)) => {
                Ok(Val::Str(text.clone()))
            }
            (Type::Any | Type::Reflect | Type::Bool, Term::Bool(value)) => Ok(Val::Bool(*value)),
            (Type::Any | Type::Reflect, Term::Number(number)) => self.constant(operand, number),
            (Type::Int, Term::Number(Number { int: Some(int), .. })) => Ok(Val::Int(*int)),
            (Type::Duration, Term::Number(Number { int: Some(int), .. })) => {
                Ok(Val::Duration(govalue::Duration(*int)))
            }
            (Type::Uint32, Term::Number(Number { uint: Some(uint), .. })) => {
                Ok(Val::Sized(govalue::IntType::Uint32, i64::from(*uint as u32)))
            }
            (Type::Float, Term::Number(Number { float: Some(float), .. })) => {
                Ok(Val::Float(*float))
            }
            (Type::String, _) => expected("string"),
            (Type::Bool, _) => expected("bool"),
            (Type::Int | Type::Duration, _) => expected("integer"),
            (Type::Uint32, _) => expected("unsigned integer"),
            (Type::Float, _) => expected("float"),
            _ => {
                let text = self.text(operand.span);
                let message = format!("can't handle {text} for arg of type {}", wanted.name());
                self.fail(operand.span, ErrorKind::Arguments, message)
            }
        }
    }

    /// A number where nothing says which type it should have.
    fn constant(&self, operand: &Operand, number: &Number) -> Exec<Val> {
        match *number {
            Number { complex: Some((real, imaginary)), .. } => Ok(Val::Complex(real, imaginary)),
            Number { float: Some(float), float_text: true, .. } => Ok(Val::Float(float)),
            Number { int: Some(int), .. } => Ok(Val::Int(int)),
            _ => {
                let message = format!("{} overflows int", self.text(operand.span));
                self.fail(operand.span, ErrorKind::Type, message)
            }
        }
    }

    /// Follows the names; the last one may be a method and gets the arguments.
    fn fields(
        &mut self,
        mut receiver: Val,
        names: &'t [Box<str>],
        dot: &Val,
        given: Given<'t>,
    ) -> Exec<Val> {
        let Some((last, inner)) = names.split_last() else { return Ok(receiver) };
        for name in inner {
            let nothing = Given { span: given.span, arguments: &[], last: None };
            receiver = self.field(receiver, name, dot, nothing)?;
        }
        self.field(receiver, last, dot, given)
    }

    fn field(&mut self, receiver: Val, name: &str, dot: &Val, given: Given<'t>) -> Exec<Val> {
        if let Some(method) = methods::find(&receiver, name) {
            return self.native(method, Some(receiver), dot, given);
        }
        if matches!(receiver, Val::List(_))
            && let Some(method) = self.set.settings.list_methods.get(name).map(Arc::clone)
        {
            return self.host(name, &*method, Some(receiver), dot, given);
        }
        let found = match &receiver {
            Val::Missing => return Ok(Val::Missing),
            Val::Dict(dict) => Some(dict.get(name).unwrap_or_else(|| {
                self.note_missing(dict, name, given.span);
                Val::Missing
            })),
            Val::Certificate(pair) => match name {
                "Cert" => Some(Val::from(pair.cert.as_str())),
                "Key" => Some(Val::from(pair.key.as_str())),
                _ => None,
            },
            Val::Nil => {
                let message = format!("nil pointer evaluating interface {{}}.{name}");
                return self.fail(given.span, ErrorKind::Type, message);
            }
            _ => None,
        };
        match found {
            Some(_) if given.count() > 0 => {
                let message = format!("{name} is not a method but has arguments");
                self.fail(given.span, ErrorKind::Arguments, message)
            }
            Some(value) => Ok(value),
            None => {
                let kind = receiver.type_name();
                let message = format!("can't evaluate field {name} in type {kind}");
                self.fail(given.span, ErrorKind::Type, message)
            }
        }
    }

    fn call(
        &mut self,
        name: &str,
        function: &'t Function,
        dot: &Val,
        given: Given<'t>,
    ) -> Exec<Val> {
        match function {
            Function::And => self.shortcut(name, false, dot, given),
            Function::Or => self.shortcut(name, true, dot, given),
            Function::Native(native) => self.native(native, None, dot, given),
            Function::Host(host) => self.host(name, &**host, None, dot, given),
        }
    }

    /// Calls a function of the caller's, or a method: then the receiver comes
    /// first.
    fn host(
        &mut self,
        name: &str,
        host: &HostFunction,
        receiver: Option<Val>,
        dot: &Val,
        given: Given<'t>,
    ) -> Exec<Val> {
        let mut values = Vec::with_capacity(given.count() + 1);
        values.extend(receiver);
        for operand in given.arguments {
            values.push(self.argument(operand, Type::Any, dot)?);
        }
        values.extend(given.last);
        let plain: Result<Vec<Value>, Fail> =
            values.iter().map(|value| value.to_value(&mut self.budget, Purpose::Print)).collect();
        let plain = plain.map_err(|fail| self.error(given.span, fail))?;
        let caller = Caller::new(self.depth, &self.budget);
        let result = host(&caller, &plain);
        self.budget.charge(&caller);
        match result {
            Ok(value) => Ok(Val::from(&value)),
            Err(cause) => Err(self.error(given.span, Fail::from_host(name, cause))),
        }
    }

    /// `and` and `or` evaluate no more than they need, and return what decided.
    fn shortcut(&mut self, name: &str, until: bool, dot: &Val, given: Given<'t>) -> Exec<Val> {
        if given.count() == 0 {
            let message = format!("wrong number of args for {name}: want at least 1 got 0");
            return self.fail(given.span, ErrorKind::Arguments, message);
        }
        let mut value = Val::Missing;
        for operand in given.arguments {
            value = self.argument(operand, Type::Reflect, dot)?;
            if value.is_empty() != until {
                return Ok(value);
            }
        }
        Ok(given.last.unwrap_or(value))
    }

    /// Calls a function of ours, or a method: then the receiver comes first.
    fn native(
        &mut self,
        native: &'static Native,
        receiver: Option<Val>,
        dot: &Val,
        given: Given<'t>,
    ) -> Exec<Val> {
        let own = usize::from(receiver.is_some());
        let (wanted, got) = (native.parameters.len() - own, given.count());
        if got < wanted || got > wanted && native.rest.is_none() {
            let least = if native.rest.is_some() { "at least " } else { "" };
            let message =
                format!("wrong number of args for {}: want {least}{wanted} got {got}", native.name);
            return self.fail(given.span, ErrorKind::Arguments, message);
        }
        let kind = |index: usize| {
            let listed = native.parameters.get(own + index).copied();
            listed.or(native.rest).unwrap_or(Type::Any)
        };
        let mut values = Vec::with_capacity(own + got);
        values.extend(receiver);
        for (index, operand) in given.arguments.iter().enumerate() {
            values.push(self.argument(operand, kind(index), dot)?);
        }
        if let Some(last) = given.last {
            let checked = kind(given.arguments.len()).check(last);
            values.push(checked.map_err(|fail| self.error(given.span, fail))?);
        }
        let mut context = Context {
            budget: &mut self.budget,
            clock: &*self.set.settings.clock,
            random: &*self.set.settings.random,
            regexes: &mut self.regexes,
            knots: &mut self.knots,
        };
        (native.run)(&mut context, &Arguments(&values)).map_err(|mut fail| {
            if fail.kind != ErrorKind::Limit {
                fail.message = format!("error calling {}: {}", native.name, fail.message);
            }
            self.error(given.span, fail)
        })
    }

    fn argument(&mut self, operand: &'t Operand, wanted: Type, dot: &Val) -> Exec<Val> {
        if let Term::Nil | Term::Bool(_) | Term::Number(_) | Term::String(_) = operand.term {
            self.spend(operand.span, 1)?;
            return self.literal(operand, wanted);
        }
        let value = self.operand(operand, dot)?;
        wanted.check(value).map_err(|fail| self.error(operand.span, fail))
    }
}
