//! The stack machine.

mod access;
mod budget;
mod operators;
mod power;
mod scope;

use std::sync::Arc;

use govalue::Span;
use govalue::regexp::{self, Regex};
use govalue::{Map, Str, Value};

use crate::environment::{Context, FunctionError, Vars};
use crate::error::{Error, ErrorKind};
use crate::functions;
use crate::methods;
use crate::program::{Op, Program};

pub(crate) use access::get;
pub(crate) use budget::{Budget, weight};
use budget::{Held, own_size};
pub(crate) use operators::{Number, compare, equal, is_nil, to_int};
use scope::Scope;
pub(crate) use scope::{descending, sort_by_key};

/// Why an instruction failed; the machine adds the place. As small as a pointer,
/// because every instruction may return one.
#[derive(Debug)]
pub(crate) struct Failure(Box<Cause>);

#[derive(Debug)]
enum Cause {
    Value(String),
    Budget(&'static str),
    Interrupted,
    /// More text than this.
    Memory(usize),
    Function(Box<str>, FunctionError),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::value(message)
    }
}

impl Failure {
    pub(crate) fn value(message: String) -> Self {
        Self(Box::new(Cause::Value(message)))
    }

    pub(crate) fn budget(what: &'static str) -> Self {
        Self(Box::new(Cause::Budget(what)))
    }

    pub(crate) fn memory(limit: usize) -> Self {
        Self(Box::new(Cause::Memory(limit)))
    }

    pub(crate) fn interrupted() -> Self {
        Self(Box::new(Cause::Interrupted))
    }

    fn function(name: Box<str>, error: FunctionError) -> Self {
        Self(Box::new(Cause::Function(name, error)))
    }

    fn at(self, span: Span) -> Error {
        match *self.0 {
            Cause::Value(message) => Error::new(ErrorKind::Value, message, span),
            Cause::Budget(what) => {
                Error::new(ErrorKind::Budget, format!("{what} budget exceeded"), span)
            }
            Cause::Interrupted => Error::new(ErrorKind::Budget, "interrupted", span),
            Cause::Memory(limit) => {
                let message = match limit >> 20 {
                    0 => format!("memory budget exceeded: more than {limit} bytes of text"),
                    mib => format!("memory budget exceeded: more than {mib} MiB of text"),
                };
                Error::new(ErrorKind::Budget, message, span)
            }
            Cause::Function(name, source) => Error::function(&name, source, span),
        }
    }
}

pub(crate) fn run(program: &Program, vars: &Vars<'_>) -> Result<Value, Error> {
    if !Arc::ptr_eq(&program.shared, &vars.shared) && !same_members(program, vars) {
        return Err(Error::new(
            ErrorKind::Value,
            "the values belong to another environment",
            Span::default(),
        ));
    }
    let mut machine = Machine {
        program,
        vars,
        at: 0,
        stack: Vec::with_capacity(8),
        variables: vec![Value::Nil; program.variables],
        scopes: Vec::new(),
        budget: Budget::new(program.shared.limits, vars.interrupt.clone()),
        pattern: None,
    };
    let result = machine.run();
    result.map_err(|failure| {
        let span =
            program.spans.get(machine.at).or(program.spans.last()).copied().unwrap_or_default();
        failure.at(span)
    })
}

/// Whether the values are in the places where the program looks for them.
fn same_members(program: &Program, vars: &Vars<'_>) -> bool {
    let (wanted, given) = (&program.shared.members, &vars.shared.members);
    wanted.len() == given.len()
        && wanted.iter().zip(given).all(|(wanted, given)| wanted.0 == given.0)
}

struct Machine<'p> {
    program: &'p Program,
    vars: &'p Vars<'p>,
    at: usize,
    stack: Vec<Value>,
    variables: Vec<Value>,
    scopes: Vec<Scope>,
    budget: Budget,
    /// The last pattern that had to be compiled while running.
    pattern: Option<(Str, Regex)>,
}

/// What compiling a pattern costs, which can be a lot more than matching it.
const PATTERN_STEPS: u64 = 2_000;
/// What each state of it costs.
const STATE_STEPS: u64 = 10;

impl Machine<'_> {
    fn run(&mut self) -> Result<Value, Failure> {
        while let Some(op) = self.program.code.get(self.at) {
            self.budget.step()?;
            match self.step(*op)? {
                Some(target) => self.at = target as usize,
                None => self.at += 1,
            }
        }
        let result = self.pop();
        if self.program.amplifies {
            self.budget.measure(&result)?;
        }
        Ok(result)
    }

    /// The compiler balances pushes and pops, so the stack is never empty here.
    fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    fn push(&mut self, value: impl Into<Value>) {
        self.stack.push(value.into());
    }

    fn constant(&self, index: u32) -> &Value {
        &self.program.constants[index as usize]
    }

    /// Runs one instruction; gives the target of a jump that is taken.
    #[inline]
    fn step(&mut self, op: Op) -> Result<Option<u32>, Failure> {
        match op {
            Op::Constant(index) => {
                let value = self.constant(index).clone();
                self.stack.push(value);
            }
            Op::Nil => self.stack.push(Value::Nil),
            Op::Bool(value) => self.stack.push(Value::Bool(value)),
            Op::Int(value) => self.stack.push(Value::Int(value)),
            Op::Member(slot) => self.push(self.vars.slots[slot as usize].clone()),
            Op::Variable(slot) => self.push(self.variables[slot as usize].clone()),
            Op::Store(slot) => {
                let value = self.pop();
                // Named values can be put into each other, deeper every time.
                if self.program.amplifies {
                    self.budget.measure(&value)?;
                }
                self.variables[slot as usize] = value;
            }
            Op::Pop => drop(self.pop()),
            Op::Field(name) => {
                let base = self.pop();
                let value = access::field(&base, self.constant(name))?;
                self.stack.push(value);
            }
            Op::MemberField(slot, name) => {
                let value = access::field(&self.vars.slots[slot as usize], self.constant(name))?;
                self.stack.push(value);
            }
            Op::Fetch => {
                let key = self.pop();
                let base = self.pop();
                self.push(access::fetch(&base, &key)?);
            }
            Op::Not => {
                let value = truth(&self.pop())?;
                self.push(!value);
            }
            Op::Negate => {
                let value = operators::negate(&self.pop())?;
                self.push(value);
            }
            Op::Equal => self.compare(|a, b| Ok(equal(a, b)))?,
            Op::NotEqual => self.compare(|a, b| Ok(!equal(a, b)))?,
            Op::Less => {
                self.compare(|a, b| operators::ordered(a, b, "<", std::cmp::Ordering::is_lt))?;
            }
            Op::LessEqual => {
                self.compare(|a, b| operators::ordered(a, b, "<=", std::cmp::Ordering::is_le))?;
            }
            Op::Greater => {
                self.compare(|a, b| operators::ordered(a, b, ">", std::cmp::Ordering::is_gt))?;
            }
            Op::GreaterEqual => {
                self.compare(|a, b| operators::ordered(a, b, ">=", std::cmp::Ordering::is_ge))?;
            }
            Op::Jump(target) => return Ok(Some(target)),
            Op::Branch(target) => {
                if !truth(&self.pop())? {
                    return Ok(Some(target));
                }
            }
            Op::And(target) => {
                if !self.left_truth()? {
                    return Ok(Some(target));
                }
                self.pop();
            }
            Op::Or(target) => {
                if self.left_truth()? {
                    return Ok(Some(target));
                }
                self.pop();
            }
            Op::JumpIfNil(target) => {
                if self.stack.last().is_none_or(is_nil) {
                    // A nil map would print as one; the chain gives plain nil.
                    self.pop();
                    self.stack.push(Value::Nil);
                    return Ok(Some(target));
                }
            }
            Op::NilIfEmptyGroup => {
                if matches!(self.stack.last(), Some(Value::Array(items)) if items.is_empty()) {
                    self.pop();
                    self.stack.push(Value::Nil);
                }
            }
            Op::Coalesce(target) => {
                if !self.stack.last().is_none_or(is_nil) {
                    return Ok(Some(target));
                }
                self.pop();
            }
            Op::Add => self.arithmetic(operators::add)?,
            Op::Subtract => self.arithmetic(operators::subtract)?,
            Op::Multiply => self.arithmetic(operators::multiply)?,
            Op::Divide => self.arithmetic(operators::divide)?,
            Op::Modulo => self.arithmetic(operators::modulo)?,
            Op::Power => self.arithmetic(operators::power)?,
            Op::Call(slot, count) => self.call(slot, count as usize)?,
            Op::Item => {
                let item = self.scope()?.item()?;
                self.stack.push(item);
            }
            Op::Index => {
                let index = self.scope()?.index();
                self.push(index);
            }
            Op::Accumulated => {
                let value = self.scope()?.extra.clone();
                self.stack.push(value);
            }
            Op::Next(target) => {
                if self.scope()?.done() {
                    return Ok(Some(target));
                }
            }
            Op::Step(predicate, target) => {
                let value = self.pop();
                let Some(scope) = self.scopes.last_mut() else {
                    return Ok(None);
                };
                scope.step(predicate, value, &mut self.budget)?;
                return Ok(Some(target));
            }
            _ => self.rare(op)?,
        }
        Ok(None)
    }

    /// The instructions that need not be fast, kept out of the hot loop.
    #[inline(never)]
    fn rare(&mut self, op: Op) -> Result<(), Failure> {
        match op {
            Op::Env => {
                let map = self.vars.to_map();
                self.push(map);
            }
            Op::EnvFetch => {
                let key = self.pop();
                match key.as_str().and_then(|name| self.vars.get(name)) {
                    Some(value) => self.stack.push(value.clone()),
                    None => {
                        return Err(Failure::value(format!("the environment has no member {key}")));
                    }
                }
            }
            Op::EnvGet => {
                let key = self.pop();
                let value = key.as_str().and_then(|name| self.vars.get(name)).cloned();
                self.push(value.unwrap_or_default());
            }
            Op::EnvHas => {
                let Value::String(name) = self.pop() else {
                    return Err(Failure::value(
                        "members of the environment are named by strings".to_owned(),
                    ));
                };
                let found = name.as_str().is_some_and(|name| self.vars.get(name).is_some());
                self.push(found);
            }
            Op::EnvType => self.push(&*self.program.shared.type_name),
            Op::NoValue(name) => {
                let message = format!("{} is a function, not a value", self.constant(name));
                return Err(Failure::value(message));
            }
            Op::In => {
                let (right, left) = (self.pop(), self.pop());
                self.budget.spend(weight(&right) * (1 + weight(&left)))?;
                if self.program.amplifies && matches!(left, Value::Array(_) | Value::Map(_)) {
                    self.budget.measure(&right)?;
                }
                let found = operators::contained(&left, &right)?;
                self.push(found);
            }
            Op::InRange(low, high) => {
                let value = self.pop().as_int();
                let (low, high) = (self.constant(low).as_int(), self.constant(high).as_int());
                self.push(value >= low && value <= high);
            }
            Op::Matches => {
                let (right, left) = (self.pop(), self.pop());
                let found = self.matches(&left, &right)?;
                self.push(found);
            }
            Op::MatchesPattern(index) => {
                let left = self.pop();
                self.budget.spend(weight(&left))?;
                let pattern = &self.program.patterns[index as usize];
                let found = operators::text(&left)?.is_some_and(|text| pattern.is_match(text));
                self.push(found);
            }
            Op::Contains => self.strings("contains", |a, b| functions::find(a, b).is_some())?,
            Op::StartsWith => self.strings("startsWith", <[u8]>::starts_with)?,
            Op::EndsWith => self.strings("endsWith", <[u8]>::ends_with)?,
            Op::Range => {
                let (high, low) = (self.pop(), self.pop());
                let value = operators::range(&low, &high, &mut self.budget)?;
                self.push(value);
            }
            Op::Slice { from, to } => {
                let to = if to { Some(self.pop()) } else { None };
                let from = if from { Some(self.pop()) } else { None };
                let base = self.pop();
                self.budget.spend(weight(&base))?;
                self.push_made(access::slice(&base, from.as_ref(), to.as_ref())?)?;
            }
            Op::Array(count) => {
                self.budget.grow(u64::from(count))?;
                let items = self.top(count as usize);
                self.push(items);
            }
            Op::Map(count) => self.map(count as usize)?,
            Op::Builtin(function, count) => {
                let args = self.top(count as usize);
                let cost = args.iter().map(weight).sum();
                self.budget.spend(cost)?;
                let shared = &self.program.shared;
                let guard = self.program.amplifies;
                let value = functions::call(function, &args, shared, guard, &mut self.budget)?;
                drop(args);
                self.push_made(value)?;
            }
            Op::Method(name, count) => {
                let args = self.top(count as usize);
                let base = self.pop();
                let name = self.constant(name).to_string();
                let is_list = matches!(base, Value::Array(_));
                if !(is_list && self.list_method(&name, &base, &args)?) {
                    self.push(methods::call(&base, &name, &args)?);
                }
            }
            Op::Begin(predicate) => {
                let items = self.pop();
                let bytes = if matches!(items, Value::String(_)) { own_size(&items) } else { 0 };
                self.scopes.push(Scope::new(items, predicate)?);
                self.notice(bytes)?;
            }
            Op::BeginRange(predicate) => {
                let (high, low) = (self.pop(), self.pop());
                let (low, len) = operators::bounds(&low, &high, &mut self.budget)?;
                self.scopes.push(Scope::range(low, len, predicate));
            }
            Op::Extra => {
                let extra = self.pop();
                if let Some(scope) = self.scopes.last_mut() {
                    scope.extra = extra;
                }
            }
            Op::FirstItem => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.start_with_first()?;
                }
            }
            Op::End(predicate) => {
                if let Some(scope) = self.scopes.pop() {
                    let value = scope.end(predicate, &mut self.budget)?;
                    self.push(value);
                }
            }
            // The rest runs in the hot loop.
            _ => {}
        }
        Ok(())
    }

    /// Pushes a value that may have taken new memory.
    fn push_made(&mut self, value: Value) -> Result<(), Failure> {
        let bytes = own_size(&value);
        self.stack.push(value);
        self.notice(bytes)
    }

    /// Counts new memory, and now and then looks at all that is held: only that
    /// tells what was made for a moment from what piles up.
    fn notice(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 || !self.budget.notice(bytes) {
            return Ok(());
        }
        let mut held = Held::default();
        self.stack.iter().chain(&self.variables).for_each(|value| held.add(value));
        self.scopes.iter().for_each(|scope| scope.hold(&mut held));
        self.budget.hold(&held)
    }

    fn scope(&self) -> Result<&Scope, Failure> {
        self.scopes.last().ok_or_else(|| Failure::value("# outside of a predicate".to_owned()))
    }

    /// The truth of a left operand, where nil counts as false.
    fn left_truth(&self) -> Result<bool, Failure> {
        match self.stack.last() {
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => truth(other),
            None => truth(&Value::Nil),
        }
    }

    fn compare(
        &mut self,
        decide: impl Fn(&Value, &Value) -> Result<bool, String>,
    ) -> Result<(), Failure> {
        let (right, left) = (self.pop(), self.pop());
        let small = matches!(
            (&left, &right),
            (Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Nil, _)
        );
        if !small {
            self.budget.spend(weight(&left).min(weight(&right)))?;
            if self.program.amplifies && matches!(left, Value::Array(_) | Value::Map(_)) {
                self.budget.measure(&left)?;
                self.budget.measure(&right)?;
            }
        }
        self.push(decide(&left, &right)?);
        Ok(())
    }

    fn arithmetic(
        &mut self,
        compute: impl Fn(&Value, &Value, &Budget) -> Result<Value, Failure>,
    ) -> Result<(), Failure> {
        let (right, left) = (self.pop(), self.pop());
        if let (Value::String(_), Value::String(_)) = (&left, &right) {
            self.budget.spend(weight(&left) + weight(&right))?;
        }
        let value = compute(&left, &right, &self.budget)?;
        match value {
            Value::String(_) => self.push_made(value),
            value => {
                self.stack.push(value);
                Ok(())
            }
        }
    }

    fn strings(
        &mut self,
        name: &str,
        decide: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let (right, left) = (self.pop(), self.pop());
        let found = match (&left, &right) {
            (Value::String(a), Value::String(b)) => {
                self.budget.spend(weight(&left) + weight(&right))?;
                decide(a.as_bytes(), b.as_bytes())
            }
            (Value::Nil, _) | (_, Value::Nil) => false,
            _ => {
                let (left, right) = (left.type_name(), right.type_name());
                return Err(Failure::value(format!("{name} does not work on {left} and {right}")));
            }
        };
        self.push(found);
        Ok(())
    }

    /// `left matches right` with a pattern that was not known before.
    fn matches(&mut self, left: &Value, right: &Value) -> Result<bool, Failure> {
        self.budget.spend(weight(left))?;
        let text = operators::text(left)?;
        let pattern = match right {
            Value::String(pattern) => pattern,
            Value::Nil => return Ok(false),
            other => {
                let message = format!("a pattern is a string, not {}", other.type_name());
                return Err(Failure::value(message));
            }
        };
        let Some(text) = text else { return Ok(false) };
        if let Some((known, regex)) = &self.pattern
            && known == pattern
        {
            return Ok(regex.is_match(text));
        }
        let states = regexp::cost(pattern);
        self.budget.spend(PATTERN_STEPS + pattern.len() as u64 * 100 + states * STATE_STEPS)?;
        let regex = regexp::compile(pattern)?;
        let found = regex.is_match(text);
        self.pattern = Some((pattern.clone(), regex));
        Ok(found)
    }

    /// Takes the topmost values, the last one on top.
    fn top(&mut self, count: usize) -> Vec<Value> {
        let start = self.stack.len().saturating_sub(count);
        self.stack.split_off(start)
    }

    fn map(&mut self, count: usize) -> Result<(), Failure> {
        self.budget.grow(count as u64)?;
        let mut map = Map::new();
        let mut parts = self.top(count * 2).into_iter();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            let Value::String(key) = key else {
                return Err(Failure::value(format!(
                    "a map key must be a string, not {}",
                    key.type_name()
                )));
            };
            // The first of repeated keys stays.
            if map.get_str(&key).is_none() {
                map.insert(key, value);
            }
        }
        self.push(map);
        Ok(())
    }

    fn call(&mut self, slot: u32, count: usize) -> Result<(), Failure> {
        let start = self.stack.len().saturating_sub(count);
        let (name, function) = &self.program.shared.functions[slot as usize];
        let context = Context { vars: self.vars };
        let value = (function.body)(context, &self.stack[start..])
            .map_err(|error| Failure::function(name.clone(), error))?;
        self.stack.truncate(start);
        self.push_made(value)
    }

    /// Calls a method of lists that the environment has; false if it has none
    /// of that name.
    fn list_method(&mut self, name: &str, base: &Value, args: &[Value]) -> Result<bool, Failure> {
        let shared = Arc::clone(&self.program.shared);
        let Some(method) = shared.list_method(name) else { return Ok(false) };
        let mut all = vec![base.clone()];
        all.extend_from_slice(args);
        if all.len() < method.least || method.most.is_some_and(|most| all.len() > most) {
            return Err(Failure::value(format!("wrong number of arguments to call {name}")));
        }
        let value = (method.body)(Context { vars: self.vars }, &all)
            .map_err(|error| Failure::function(name.into(), error))?;
        self.push_made(value)?;
        Ok(true)
    }
}

fn truth(value: &Value) -> Result<bool, Failure> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(Failure::value(format!("expected a boolean, not {}", other.type_name()))),
    }
}
