//! Running a template.

mod access;
mod assign;
mod blocks;
mod call;
mod edits;
mod eval;
mod ops;
mod print;
mod scope;

use std::rc::Rc;
use std::sync::Arc;

use govalue::{Map, MissingMember, Span, Str, Value};

use crate::ast::{Action, Branch, Catch, Command, Expr, ExprKind, List, Node, Range};
use crate::builtins::Builtin;
use crate::error::{Error, ErrorKind};
use crate::item::Item;
use crate::limits::Limits;
use crate::set::{Set, Template, not_found};
use crate::source::Source;
use crate::variables::Variables;

use blocks::Content;
use edits::Edits;
use scope::Scope;

pub(crate) fn render(
    set: &Set,
    template: &Template,
    variables: &Variables,
    context: &Value,
) -> Result<Str, Error> {
    let outermost = template.outermost();
    let top = Scope::top(variables.all().clone(), Arc::clone(&template.0.blocks));
    let mut runtime = Runtime {
        set,
        limits: set.limits(),
        steps: 0,
        ask_at: ASK_AFTER,
        written: 0,
        depth: 0,
        out: Vec::new(),
        scope: top,
        context: Item::from_answer(context.clone()),
        content: None,
        source: Arc::clone(&outermost.0.source),
        edits: Edits::default(),
        missing: None,
    };
    runtime.list(&outermost.0.root)?;
    Ok(Str::from(runtime.out))
}

/// So many steps are taken before it asks again whether to stop.
const ASK_AFTER: u64 = 10_000;

struct Runtime<'a> {
    set: &'a Set,
    limits: Limits,
    steps: u64,
    /// Whether to stop is asked behind so many steps.
    ask_at: u64,
    /// Bytes written so far, those that `try` threw away included.
    written: usize,
    depth: usize,
    out: Vec<u8>,
    scope: Rc<Scope>,
    /// `.`
    context: Item,
    /// What `yield content` renders.
    content: Option<Rc<Content>>,
    /// The template that is running, for messages and relative paths.
    source: Arc<Source>,
    edits: Edits,
    /// The last member that was not in its map.
    missing: Option<(Arc<Map>, Str)>,
}

/// What a list of statements returned, if it did.
type Returned = Result<Option<Item>, Error>;

impl Runtime<'_> {
    fn error(&self, kind: ErrorKind, span: Span, message: impl Into<String>) -> Error {
        Error::new(kind, message, &self.source, span)
    }

    /// Counts work, and fails when there was too much of it.
    fn work(&mut self, steps: usize, span: Span) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.ask_at {
            self.ask_at = self.steps.saturating_add(ASK_AFTER);
            if self.set.interrupt.as_ref().is_some_and(|interrupt| interrupt()) {
                return Err(self.error(ErrorKind::Limit, span, "interrupted"));
            }
        }
        if self.steps <= self.limits.steps {
            return Ok(());
        }
        let message = format!("more than {} steps", self.limits.steps);
        Err(self.error(ErrorKind::Limit, span, message))
    }

    /// Counts work that grows with an amount of text.
    fn work_on(&mut self, bytes: usize, span: Span) -> Result<(), Error> {
        self.work(bytes / 32, span)
    }

    fn too_large(&self, span: Span) -> Error {
        let message = format!("a value is larger than {} bytes", self.limits.output);
        self.error(ErrorKind::Limit, span, message)
    }

    fn write(&mut self, bytes: &[u8], span: Span) -> Result<(), Error> {
        self.written = self.written.saturating_add(bytes.len());
        if self.written > self.limits.output {
            let message = format!("more than {} bytes of output", self.limits.output);
            return Err(self.error(ErrorKind::Limit, span, message));
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// One level deeper; every recursion of the renderer goes through here.
    fn deeper<T>(
        &mut self,
        span: Span,
        run: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth >= self.limits.depth {
            let message = format!("more than {} levels of nesting or recursion", self.limits.depth);
            return Err(self.error(ErrorKind::Limit, span, message));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Statements in a scope of their own, which begins with the first `:=`.
    fn list(&mut self, list: &List) -> Returned {
        self.deeper(list.start(), |runtime| {
            let outer = Rc::clone(&runtime.scope);
            let mut returned = None;
            for (node, span) in &list.0 {
                runtime.work(1, *span)?;
                if let Some(item) = runtime.node(node, *span, &outer)? {
                    returned = Some(item);
                }
            }
            runtime.scope = outer;
            Ok(returned)
        })
    }

    fn node(&mut self, node: &Node, span: Span, outer: &Rc<Scope>) -> Returned {
        match node {
            Node::Text(text) => {
                self.work_on(text.len(), span)?;
                self.write(text.as_bytes(), span)?;
                Ok(None)
            }
            Node::Action(action) => {
                self.action(action, outer)?;
                Ok(None)
            }
            Node::If { branches, otherwise } => self.branches(branches, otherwise.as_ref()),
            Node::Range(range) => self.range(range),
            Node::Try { body, catch } => self.attempt(body, catch.as_ref()),
            Node::Return(value) => match self.eval(value)? {
                Item::Missing => Ok(None),
                item => Ok(Some(item)),
            },
            Node::Block(block) => {
                self.block(block)?;
                Ok(None)
            }
            Node::Yield(used) => {
                self.yield_block(used)?;
                Ok(None)
            }
            Node::YieldContent { context } => {
                self.yield_content(context.as_ref())?;
                Ok(None)
            }
            Node::Include { path, context } => self.include(path, context.as_ref()),
        }
    }

    fn action(&mut self, action: &Action, outer: &Rc<Scope>) -> Result<(), Error> {
        if let Some(assign) = &action.assign {
            if assign.declare && Rc::ptr_eq(&self.scope, outer) {
                self.scope = Scope::inside(outer);
            }
            self.assign(assign)?;
        }
        self.pipeline(&action.pipeline)
    }

    /// Evaluates stage after stage and prints what comes out of the last.
    fn pipeline(&mut self, commands: &[Command]) -> Result<(), Error> {
        let mut piped = None;
        for (index, command) in commands.iter().enumerate() {
            let callee = self.eval(&command.base)?;
            if let Item::Builtin(Builtin::Writer(writer)) = callee
                && (piped.is_some() || command.args.is_some())
            {
                if let Some(next) = commands.get(index + 1) {
                    let message = "what writes to the output must come last in a pipeline";
                    return Err(self.error(ErrorKind::Arguments, next.span, message));
                }
                return self.write_escaped(writer, command, piped);
            }
            piped = Some(match (&command.args, piped) {
                (None, None) => callee,
                (args, piped) => self.call(&callee, args.as_ref(), piped, command.base.span)?,
            });
        }
        match (piped, commands.last()) {
            (Some(item), Some(last)) => {
                if let (Item::Missing, [only]) = (&item, commands) {
                    self.report_missing(only);
                }
                self.print(&item, last.span)
            }
            _ => Ok(()),
        }
    }

    /// Tells of an action that is nothing but a member that is not there.
    fn report_missing(&mut self, command: &Command) {
        let is_member = matches!(command.base.kind, ExprKind::Chain(..) | ExprKind::Index(..));
        if let Some(report) = &self.set.on_missing
            && let Some((map, name)) = self.missing.take()
            && is_member
            && command.args.is_none()
        {
            report(&MissingMember {
                template: &self.source.name,
                text: &self.source.text,
                span: command.base.span,
                map: &map,
                member: &name.to_str_lossy(),
            });
        }
    }

    /// Notes that a member is not in its map.
    fn note_missing(&mut self, map: &Arc<Map>, name: impl Into<Str>) -> Item {
        if self.set.on_missing.is_some() {
            self.missing = Some((Arc::clone(map), name.into()));
        }
        Item::Missing
    }

    fn branches(&mut self, branches: &[Branch], otherwise: Option<&List>) -> Returned {
        let outer = Rc::clone(&self.scope);
        let mut returned = None;
        let mut chosen = otherwise;
        for branch in branches {
            if let Some(assign) = &branch.assign {
                if assign.declare && Rc::ptr_eq(&self.scope, &outer) {
                    self.scope = Scope::inside(&outer);
                }
                self.assign(assign)?;
            }
            if self.eval(&branch.condition)?.is_true() {
                chosen = Some(&branch.body);
                break;
            }
        }
        if let Some(body) = chosen {
            returned = self.list(body)?;
        }
        self.scope = outer;
        Ok(returned)
    }

    fn range(&mut self, range: &Range) -> Returned {
        let over = self.eval(&range.over)?;
        let pairs = self.pairs(over, &range.over)?;
        let outer = Rc::clone(&self.scope);
        let context = self.context.clone();
        if range.declare {
            self.scope = Scope::inside(&outer);
        }
        let mut returned = None;
        let mut any = false;
        for (index, value) in pairs {
            any = true;
            self.work(1, range.over.span)?;
            // With one target the value is still `.`; with two it is the second.
            let targets = range.targets.iter().zip([&index, &value]);
            for (target, item) in targets {
                self.assign_to(target, item.clone(), range.declare, range.over.span)?;
            }
            if range.targets.len() < 2 {
                self.context = value;
            }
            returned = self.list(&range.body)?;
            if returned.is_some() {
                break;
            }
        }
        self.scope = outer;
        self.context = context;
        if let (false, Some(otherwise)) = (any, &range.otherwise) {
            returned = self.list(otherwise)?;
        }
        Ok(returned)
    }

    /// What `range` goes over: indexes or keys, and values.
    fn pairs(
        &mut self,
        over: Item,
        expr: &Expr,
    ) -> Result<Box<dyn Iterator<Item = (Item, Item)>>, Error> {
        match over {
            Item::Ints(from, to) => Ok(Box::new(
                (from..to).enumerate().map(|(index, value)| (index.into(), value.into())),
            )),
            Item::Value(Value::Array(items)) => Ok(Box::new(
                (0..items.len()).map(move |index| (index.into(), items[index].clone().into())),
            )),
            Item::Value(Value::Bytes(bytes)) => Ok(Box::new(
                (0..bytes.len()).map(move |index| (index.into(), access::byte(bytes[index]))),
            )),
            Item::Value(Value::Map(map)) => {
                let map = self.edits.view(&map);
                let pairs: Vec<_> = map
                    .sorted()
                    .into_iter()
                    .map(|(key, value)| (key.value().clone().into(), value.clone().into()))
                    .collect();
                self.work(pairs.len(), expr.span)?;
                Ok(Box::new(pairs.into_iter()))
            }
            other => {
                let message = format!("{} cannot be ranged over", other.describe());
                Err(self.error(ErrorKind::Type, expr.span, message))
            }
        }
    }

    /// Runs something whose failure is not the end: nothing of what it wrote or
    /// changed here remains then. Only limits go on failing.
    fn guarded<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        let out = std::mem::take(&mut self.out);
        let (scope, source) = (Rc::clone(&self.scope), Arc::clone(&self.source));
        let (context, content) = (self.context.clone(), self.content.clone());
        let result = run(self);
        let inner = std::mem::replace(&mut self.out, out);
        match result {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            Err(error) => {
                (self.scope, self.source) = (scope, source);
                (self.context, self.content) = (context, content);
                Ok(Err(error))
            }
            Ok(value) => {
                self.out.extend_from_slice(&inner);
                Ok(Ok(value))
            }
        }
    }

    fn attempt(&mut self, body: &List, catch: Option<&Catch>) -> Returned {
        let error = match self.guarded(|runtime| runtime.list(body))? {
            Ok(returned) => return Ok(returned),
            Err(error) => error,
        };
        let Some(catch) = catch else { return Ok(None) };
        let outer = Rc::clone(&self.scope);
        if let Some(name) = &catch.error {
            self.scope = Scope::inside(&outer);
            self.scope.declare(name, Item::Failure(error.message().into()));
        }
        let returned = self.list(&catch.body)?;
        self.scope = outer;
        Ok(returned)
    }

    fn include(&mut self, path: &Expr, context: Option<&Expr>) -> Returned {
        let named = match self.eval(path)? {
            Item::Value(Value::String(text)) => text.to_string(),
            other => {
                let message = format!("a path is a string, not {}", other.describe());
                return Err(self.error(ErrorKind::Type, path.span, message));
            }
        };
        let context = context.map(|context| self.eval(context)).transpose()?;
        let at = crate::loader::join("/", &self.source.name);
        let absolute = crate::loader::join(&at, &named);
        let template = match self.set.find(&absolute) {
            Ok(Some(template)) => template,
            Ok(None) => return Err(not_found(&absolute, &self.source, path.span)),
            Err(failure) => return Err(failure.at(&self.source, path.span)),
        };
        self.run_template(&template, context)
    }

    /// Runs another template here, with its blocks and the variables of this.
    fn run_template(&mut self, template: &Template, context: Option<Item>) -> Returned {
        let outermost = template.outermost();
        let scope = Scope::with_blocks(&self.scope, Arc::clone(&template.0.blocks));
        let scope = std::mem::replace(&mut self.scope, scope);
        let source = std::mem::replace(&mut self.source, Arc::clone(&outermost.0.source));
        let saved = context.map(|context| std::mem::replace(&mut self.context, context));
        let returned = self.list(&outermost.0.root)?;
        (self.scope, self.source) = (scope, source);
        if let Some(context) = saved {
            self.context = context;
        }
        Ok(returned)
    }
}

#[cfg(test)]
mod tests;
