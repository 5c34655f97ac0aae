//! Names and types, checked before anything runs.

mod builtins;
mod operators;

use crate::ast::{Ast, Node, NodeId, UnaryOp};
use crate::builtins::{Predicate, is_builtin};
use crate::environment::{Entry, Function, Shared};
use crate::error::{Error, ErrorKind};
use crate::methods;
use crate::types::Type;

/// What the names of an expression stand for.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    pub(crate) places: Vec<Binding>,
    /// How many variables can be alive at once.
    pub(crate) variables: u32,
}

/// Where a name's value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Binding {
    #[default]
    Nowhere,
    Variable(u32),
    Member(u32),
    Function(u32),
}

pub(crate) fn check(ast: &Ast, root: NodeId, environment: &Shared) -> Result<Checked, Error> {
    let mut checker = Checker {
        ast,
        environment,
        types: vec![Type::Any; ast.len()],
        places: vec![Binding::Nowhere; ast.len()],
        variables: Vec::new(),
        most_variables: 0,
        closures: Vec::new(),
    };
    checker.visit(root)?;
    Ok(Checked { types: checker.types, places: checker.places, variables: checker.most_variables })
}

struct Checker<'a> {
    ast: &'a Ast,
    environment: &'a Shared,
    types: Vec<Type>,
    places: Vec<Binding>,
    variables: Vec<(&'a str, Type)>,
    most_variables: u32,
    closures: Vec<Closure>,
}

/// What `#` and its kin are inside a predicate's body.
struct Closure {
    item: Type,
    predicate: Predicate,
}

impl<'a> Checker<'a> {
    fn type_error(&self, node: NodeId, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Type, message, self.ast.span(node))
    }

    fn visit(&mut self, id: NodeId) -> Result<Type, Error> {
        let kind = self.infer(id)?;
        self.types[id.index()] = kind.clone();
        Ok(kind)
    }

    fn visit_all(&mut self, ids: &[NodeId]) -> Result<Vec<Type>, Error> {
        ids.iter().map(|id| self.visit(*id)).collect()
    }

    fn infer(&mut self, id: NodeId) -> Result<Type, Error> {
        match self.ast.node(id) {
            Node::Nil => Ok(Type::Nil),
            Node::Bool(_) => Ok(Type::Bool),
            Node::Int(_) => Ok(Type::Int),
            Node::Float(_) => Ok(Type::Float),
            Node::String(_) => Ok(Type::String),
            Node::Bytes(_) => Ok(Type::Bytes),
            Node::Env => Ok(Type::Environment),
            Node::Name(name) => self.name(id, name),
            Node::Pointer(name) => self.pointer(id, name),
            Node::Unary(op, operand) => self.unary(id, *op, *operand),
            Node::Binary(..) => self.binary(id),
            Node::Chain(inner) => self.visit(*inner),
            Node::Member { base, key, .. } => self.member(*base, *key),
            Node::Slice { base, from, to } => self.slice(id, *base, *from, *to),
            Node::Call { name, args } => self.call(id, name, args),
            Node::Method { base, name, args, .. } => self.method(id, *base, name, args),
            Node::Builtin { function, args } => {
                let types = self.visit_all(args)?;
                builtins::result(*function, &types).map_err(|message| self.type_error(id, message))
            }
            Node::Predicate { predicate, items, body, extra } => {
                self.predicate(*predicate, *items, *body, *extra)
            }
            Node::Conditional { condition, then, other } => {
                self.conditional(*condition, *then, *other)
            }
            Node::Array(items) => self.array(items),
            Node::Map(pairs) => self.map(pairs),
            Node::Let { name, value, body } => self.declaration(id, name, *value, *body),
            Node::Sequence(items) => {
                let types = self.visit_all(items)?;
                Ok(types.into_iter().next_back().unwrap_or(Type::Nil))
            }
        }
    }

    fn name(&mut self, id: NodeId, name: &str) -> Result<Type, Error> {
        if let Some(slot) = self.variables.iter().rposition(|(known, _)| *known == name) {
            self.places[id.index()] = Binding::Variable(slot as u32);
            return Ok(self.variables[slot].1.clone());
        }
        match self.environment.entry(name) {
            Some(Entry::Member(slot)) => {
                self.places[id.index()] = Binding::Member(slot as u32);
                Ok(self.environment.members[slot].1.clone())
            }
            Some(Entry::Function(_)) => Ok(Type::Function),
            None if is_builtin(name) => Ok(Type::Function),
            None => Err(self.unknown(id, name)),
        }
    }

    fn unknown(&self, id: NodeId, name: &str) -> Error {
        Error::new(ErrorKind::UnknownName, format!("unknown name {name}"), self.ast.span(id))
    }

    fn pointer(&self, id: NodeId, name: &str) -> Result<Type, Error> {
        let Some(closure) = self.closures.last() else {
            return Err(self.unknown(id, "#"));
        };
        match name {
            "" => Ok(closure.item.clone()),
            "index" if matches!(closure.predicate, Predicate::Map | Predicate::Reduce) => {
                Ok(Type::Int)
            }
            "acc" if closure.predicate == Predicate::Reduce => Ok(Type::Any),
            _ => Err(self.unknown(id, &format!("#{name}"))),
        }
    }

    fn unary(&mut self, id: NodeId, op: UnaryOp, operand: NodeId) -> Result<Type, Error> {
        let kind = self.visit(operand)?;
        let (fits, symbol) = match op {
            UnaryOp::Not => (kind == Type::Bool, "not"),
            UnaryOp::Minus => (kind.is_number(), "-"),
            UnaryOp::Plus => (kind.is_number(), "+"),
        };
        if !fits && !kind.is_any() {
            return Err(self.type_error(id, format!("{symbol} does not work on {kind}")));
        }
        Ok(if op == UnaryOp::Not { Type::Bool } else { kind })
    }

    fn member(&mut self, base: NodeId, key: NodeId) -> Result<Type, Error> {
        let base_type = self.visit(base)?;
        let key_type = self.visit(key)?;
        let fits = |wanted: Type| key_type == wanted || key_type.is_any();
        match base_type {
            Type::Any => Ok(Type::Any),
            Type::AnyMap(value) => Ok(*value),
            Type::Map(value) if fits(Type::String) => Ok(*value),
            Type::Array(item) if fits(Type::Int) => Ok(*item),
            Type::Bytes if fits(Type::Int) => Ok(Type::Any),
            Type::Environment => match self.ast.node(key) {
                Node::String(name) => {
                    let name = name.to_str_lossy();
                    match self.environment.member(&name) {
                        Some(slot) => Ok(self.environment.members[slot].1.clone()),
                        None => Err(self.unknown(key, &name)),
                    }
                }
                _ if fits(Type::String) => Ok(Type::Any),
                _ => {
                    Err(self.type_error(key, format!("the environment has no {key_type} members")))
                }
            },
            Type::Array(_) | Type::Map(_) | Type::Bytes => {
                Err(self.type_error(key, format!("{key_type} cannot select from {base_type}")))
            }
            _ => Err(match self.ast.node(key) {
                Node::String(name) => {
                    self.type_error(key, format!("{base_type} has no member {name}"))
                }
                _ => self.type_error(key, format!("{base_type} has no members")),
            }),
        }
    }

    fn slice(
        &mut self,
        id: NodeId,
        base: NodeId,
        from: Option<NodeId>,
        to: Option<NodeId>,
    ) -> Result<Type, Error> {
        let base_type = self.visit(base)?;
        for bound in [from, to].into_iter().flatten() {
            let kind = self.visit(bound)?;
            if !base_type.is_any() && !matches!(kind, Type::Int | Type::Any) {
                return Err(
                    self.type_error(bound, format!("a slice is bounded by integers, not {kind}"))
                );
            }
        }
        match base_type {
            Type::Any | Type::String | Type::Array(_) | Type::Bytes => Ok(base_type),
            _ => Err(self.type_error(id, format!("cannot slice {base_type}"))),
        }
    }

    fn call(&mut self, id: NodeId, name: &str, args: &[NodeId]) -> Result<Type, Error> {
        let known = self.variables.iter().any(|(known, _)| *known == name);
        let slot = match self.environment.entry(name) {
            Some(Entry::Function(slot)) if !known => slot,
            None if !known => return Err(self.unknown(id, name)),
            _ => return Err(self.type_error(id, format!("{name} is not a function"))),
        };
        self.places[id.index()] = Binding::Function(slot as u32);
        let environment = self.environment;
        let types = self.visit_all(args)?;
        let function = &environment.functions[slot].1;
        self.arguments(id, name, function, args, &types)?;
        Ok(function.result.clone())
    }

    fn arguments(
        &self,
        id: NodeId,
        name: &str,
        function: &Function,
        args: &[NodeId],
        types: &[Type],
    ) -> Result<(), Error> {
        if args.len() < function.least {
            return Err(self.type_error(id, format!("not enough arguments to call {name}")));
        }
        if function.most.is_some_and(|most| args.len() > most) {
            return Err(self.type_error(id, format!("too many arguments to call {name}")));
        }
        for ((arg, given), wanted) in args.iter().zip(types).zip(&function.params) {
            if !builtins::accepts(wanted, given) {
                return Err(
                    self.type_error(*arg, format!("cannot use {given} as {wanted} to call {name}"))
                );
            }
        }
        Ok(())
    }

    fn method(
        &mut self,
        id: NodeId,
        base: NodeId,
        name: &str,
        args: &[NodeId],
    ) -> Result<Type, Error> {
        let base_type = self.visit(base)?;
        let types = self.visit_all(args)?;
        match base_type {
            // What a map holds is not known; that it is no function shows later.
            Type::Any | Type::Map(_) | Type::AnyMap(_) => Ok(Type::Any),
            Type::Array(_) if let Some(method) = self.environment.list_method(name) => {
                Ok(method.result.clone())
            }
            _ => {
                let Some(method) = methods::signature(&base_type, name) else {
                    return Err(self.type_error(id, format!("{base_type} has no method {name}")));
                };
                if args.len() != method.params.len() {
                    let message = format!(
                        "{name} takes {} arguments, not {}",
                        method.params.len(),
                        args.len()
                    );
                    return Err(self.type_error(id, message));
                }
                for ((arg, given), wanted) in args.iter().zip(&types).zip(method.params) {
                    if !builtins::accepts(wanted, given) {
                        let message = format!("cannot use {given} as {wanted} to call {name}");
                        return Err(self.type_error(*arg, message));
                    }
                }
                Ok(method.result.clone())
            }
        }
    }

    fn predicate(
        &mut self,
        predicate: Predicate,
        items: NodeId,
        body: Option<NodeId>,
        extra: Option<NodeId>,
    ) -> Result<Type, Error> {
        let item = match self.visit(items)? {
            Type::Array(item) => *item,
            Type::Any | Type::Bytes => Type::Any,
            other => {
                return Err(self.type_error(
                    items,
                    format!("{} takes an array, not {other}", predicate.name()),
                ));
            }
        };
        let body_type = match body {
            Some(body) => {
                self.closures.push(Closure { item: item.clone(), predicate });
                let kind = self.visit(body);
                self.closures.pop();
                self.body(predicate, body, kind?)?
            }
            None => item.clone(),
        };
        if let Some(extra) = extra {
            let kind = self.visit(extra)?;
            if predicate == Predicate::SortBy && !matches!(kind, Type::String | Type::Any) {
                return Err(
                    self.type_error(extra, format!("the order of sortBy is a string, not {kind}"))
                );
            }
        }
        Ok(match predicate {
            Predicate::All | Predicate::Any | Predicate::None | Predicate::One => Type::Bool,
            Predicate::Filter | Predicate::SortBy => Type::array(item),
            Predicate::Find | Predicate::FindLast => item,
            Predicate::FindIndex | Predicate::FindLastIndex | Predicate::Count => Type::Int,
            Predicate::GroupBy => Type::AnyMap(Box::new(Type::array(item))),
            Predicate::Map => Type::array(body_type),
            Predicate::Reduce => body_type,
            Predicate::Sum if body_type.is_number() => body_type,
            Predicate::Sum => Type::Any,
        })
    }

    fn body(&self, predicate: Predicate, body: NodeId, kind: Type) -> Result<Type, Error> {
        if kind == Type::Nil {
            return Err(
                self.type_error(body, format!("the body of {} gives nothing", predicate.name()))
            );
        }
        if predicate.wants_bool() && !matches!(kind, Type::Bool | Type::Any) {
            let message = format!("the body of {} must be a boolean, not {kind}", predicate.name());
            return Err(self.type_error(body, message));
        }
        Ok(kind)
    }

    fn conditional(
        &mut self,
        condition: NodeId,
        then: NodeId,
        other: NodeId,
    ) -> Result<Type, Error> {
        let kind = self.visit(condition)?;
        if !matches!(kind, Type::Bool | Type::Any) {
            return Err(
                self.type_error(condition, format!("a condition must be a boolean, not {kind}"))
            );
        }
        let then = self.visit(then)?;
        Ok(then.either(self.visit(other)?))
    }

    fn array(&mut self, items: &[NodeId]) -> Result<Type, Error> {
        let mut types = self.visit_all(items)?.into_iter();
        let first = types.next().unwrap_or(Type::Any);
        let same = first != Type::Nil && types.all(|kind| kind == first);
        Ok(Type::array(if same { first } else { Type::Any }))
    }

    fn map(&mut self, pairs: &[(NodeId, NodeId)]) -> Result<Type, Error> {
        for (key, value) in pairs {
            self.visit(*key)?;
            self.visit(*value)?;
        }
        Ok(Type::map(Type::Any))
    }

    fn declaration(
        &mut self,
        id: NodeId,
        name: &'a str,
        value: NodeId,
        body: NodeId,
    ) -> Result<Type, Error> {
        let value_type = self.visit(value)?;
        let taken = self.variables.iter().any(|(known, _)| *known == name)
            || self.environment.entry(name).is_some()
            || is_builtin(name);
        if taken {
            return Err(self.type_error(id, format!("cannot redeclare {name}")));
        }
        self.places[id.index()] = Binding::Variable(self.variables.len() as u32);
        self.variables.push((name, value_type));
        self.most_variables = self.most_variables.max(self.variables.len() as u32);
        let kind = self.visit(body);
        self.variables.pop();
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Program};

    fn kind(source: &str) -> String {
        let env =
            Environment::new().member("any", Type::Any).member("texts", Type::map(Type::String));
        match Program::compile(source, &env) {
            Ok(program) => program.result_type().to_string(),
            Err(error) => format!("{:?} at {:?}", error.kind(), error.span().range()),
        }
    }

    #[test]
    fn results_have_types() {
        for (source, want) in [
            ("1 + 1", "int"),
            ("1 + 1.0", "float"),
            ("1 / 1", "float"),
            ("any + 1", "any"),
            ("texts.a + 'b'", "string"),
            ("[1, 2]", "array of int"),
            ("[1, 'a']", "array of any"),
            ("filter([1], true)", "array of int"),
            ("map([1], string(#))", "array of string"),
            ("groupBy(['a'], #)", "map of array of string"),
            ("true ? 1 : nil", "int"),
            ("now() - now()", "duration"),
            ("let x = 'a'; x", "string"),
        ] {
            assert_eq!(kind(source), want, "{source}");
        }
    }

    #[test]
    fn mistakes_have_places() {
        for (source, want) in [
            ("1 + (2 - 'a')", "Type at 5..12"),
            ("texts.a.b", "Type at 8..9"),
            ("[1, nope]", "UnknownName at 4..8"),
            ("upper('a', 1)", "Type at 0..13"),
            ("filter([1], # + 1)", "Type at 12..17"),
            ("1 ? 2 : 3", "Type at 0..1"),
        ] {
            assert_eq!(kind(source), want, "{source}");
        }
    }
}
