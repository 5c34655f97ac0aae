//! Running a template.

mod evaluate;
mod missing;

use govalue::Span;
use govalue::{Key, Value};

use crate::ErrorKind;
use crate::ast::{Branch, Invocation, Loop, Node, Pipe, Var};
use crate::engine::{Body, Set};
use crate::error::{Error, Fail};
use crate::limits::{Budget, Caller};
use crate::sprig::RegexCache;
use crate::val::{Dict, Val};

use missing::Missing;

type Exec<T> = Result<T, Error>;

/// One rendering.
pub(crate) struct Run<'t> {
    set: &'t Set,
    body: &'t Body,
    /// The rendering that this one is part of.
    caller: Option<&'t Caller>,
    variables: Vec<(Var, Val)>,
    /// Where the variables of the running template start.
    frame: usize,
    out: Vec<u8>,
    budget: Budget,
    regexes: RegexCache,
    knots: Vec<Dict>,
    depth: usize,
    /// The members of the running action that are not in their maps.
    missing: Vec<Missing>,
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> Run<'t> {
    pub(crate) fn new(set: &'t Set, body: &'t Body, caller: Option<&'t Caller>) -> Self {
        Self {
            set,
            body,
            caller,
            variables: Vec::new(),
            frame: 0,
            out: Vec::new(),
            budget: Budget::new(&set.settings.limits, set.settings.interrupt.clone(), caller),
            regexes: RegexCache::new(),
            knots: Vec::new(),
            depth: caller.map_or(0, Caller::depth),
            missing: Vec::new(),
        }
    }

    pub(crate) fn render(mut self, data: &Value) -> Exec<Vec<u8>> {
        let dot = match data {
            Value::Nil => Val::Missing,
            data => Val::from(data),
        };
        self.variables.push((Var::ROOT, dot.clone()));
        let steps = self.budget.steps();
        let result = self.walk(&self.body.nodes, &dot);
        // What holds itself would never be freed.
        for dict in self.knots.drain(..) {
            dict.clear();
        }
        if let Some(caller) = self.caller {
            self.budget.settle(steps, caller);
        }
        result.map(|_| self.out)
    }

    fn error(&self, span: Span, fail: Fail) -> Error {
        let source = &self.set.sources[self.body.source];
        Error::new(fail, &source.name, &source.text, span)
    }

    fn fail<T>(&self, span: Span, kind: ErrorKind, message: impl Into<String>) -> Exec<T> {
        Err(self.error(span, Fail::new(kind, message)))
    }

    /// The source text of a place.
    fn text(&self, span: Span) -> &'t str {
        let text: &'t str = &self.set.sources[self.body.source].text;
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    fn spend(&mut self, span: Span, steps: usize) -> Exec<()> {
        self.budget.spend(steps).map_err(|fail| self.error(span, fail))
    }

    fn deeper(&mut self, span: Span) -> Exec<()> {
        let limit = self.set.settings.limits.depth;
        self.depth += 1;
        if self.depth > limit {
            let message = format!("templates and expressions nest more than {limit} deep");
            return self.fail(span, ErrorKind::Limit, message);
        }
        Ok(())
    }

    fn write(&mut self, span: Span, bytes: &[u8]) -> Exec<()> {
        let limit = self.budget.output;
        if self.out.len() + bytes.len() > limit {
            let message = format!("the result is longer than {limit} bytes");
            return self.fail(span, ErrorKind::Limit, message);
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn walk(&mut self, nodes: &'t [Node], dot: &Val) -> Exec<Flow> {
        for node in nodes {
            let flow = match node {
                Node::Text(text) => {
                    self.write(Span::default(), text.as_bytes())?;
                    Flow::Next
                }
                Node::Action(pipe) => self.action(pipe, dot)?,
                Node::If(branch) => self.branch(branch, dot, false)?,
                Node::With(branch) => self.branch(branch, dot, true)?,
                Node::Range(node) => self.range(node, dot)?,
                Node::Template(invocation) => self.invoke(invocation, dot)?,
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn action(&mut self, pipe: &'t Pipe, dot: &Val) -> Exec<Flow> {
        self.missing.clear();
        let value = self.pipeline(pipe, dot)?;
        if !pipe.variables.is_empty() {
            return Ok(Flow::Next);
        }
        self.report_missing(pipe);
        match &value {
            Val::Missing | Val::Nil => self.write(pipe.span, b"<no value>")?,
            Val::Str(text) => self.write(pipe.span, text.as_bytes())?,
            value => {
                let text =
                    value.print(&mut self.budget).map_err(|fail| self.error(pipe.span, fail))?;
                self.write(pipe.span, text.as_bytes())?;
            }
        }
        Ok(Flow::Next)
    }

    fn branch(&mut self, branch: &'t Branch, dot: &Val, with: bool) -> Exec<Flow> {
        let mark = self.variables.len();
        let mut chosen = (&branch.otherwise, None);
        for (pipe, nodes) in &branch.arms {
            let value = self.pipeline(pipe, dot)?;
            if !value.is_empty() {
                chosen = (nodes, with.then_some(value));
                break;
            }
        }
        self.deeper(branch.arms[0].0.span)?;
        let flow = self.walk(chosen.0, chosen.1.as_ref().unwrap_or(dot))?;
        self.depth -= 1;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, node: &'t Loop, dot: &Val) -> Exec<Flow> {
        let mark = self.variables.len();
        let value = self.pipeline(&node.pipe, dot)?;
        let span = node.pipe.span;
        self.deeper(span)?;
        let ran = match &value {
            Val::Missing => false,
            Val::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    if self.round(node, mark, Val::Int(index as i64), item)? == Flow::Break {
                        break;
                    }
                }
                !list.items.is_empty()
            }
            Val::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let item = Val::Sized(govalue::IntType::Uint8, i64::from(*byte));
                    if self.round(node, mark, Val::Int(index as i64), &item)? == Flow::Break {
                        break;
                    }
                }
                !bytes.is_empty()
            }
            Val::Dict(dict) => {
                let entries = dict.sorted();
                for (key, item) in &entries {
                    if self.round(node, mark, key_value(key), item)? == Flow::Break {
                        break;
                    }
                }
                !entries.is_empty()
            }
            Val::Int(count) | Val::Sized(_, count) => {
                if node.pipe.variables.len() > 1 {
                    let message =
                        format!("can't use {count} to iterate over more than one variable");
                    return self.fail(span, ErrorKind::Type, message);
                }
                for number in 0..*count {
                    let item = match &value {
                        Val::Sized(kind, _) => Val::Sized(*kind, number),
                        _ => Val::Int(number),
                    };
                    if self.round(node, mark, Val::Missing, &item)? == Flow::Break {
                        break;
                    }
                }
                *count > 0
            }
            other => {
                let shown = other.print(&mut self.budget).map_err(|fail| self.error(span, fail))?;
                let message = format!("range can't iterate over {shown:.100}");
                return self.fail(span, ErrorKind::Type, message);
            }
        };
        let flow = if ran { Flow::Next } else { self.walk(&node.otherwise, dot)? };
        self.depth -= 1;
        self.variables.truncate(mark);
        Ok(flow)
    }

    /// One time through the body of a loop.
    fn round(&mut self, node: &'t Loop, mark: usize, index: Val, item: &Val) -> Exec<Flow> {
        let pipe = &node.pipe;
        self.spend(pipe.span, 1)?;
        let (first, second) = match pipe.variables.len() {
            0 => (None, None),
            1 => (Some(item.clone()), None),
            _ => (Some(index), Some(item.clone())),
        };
        for (at, value) in [first, second].into_iter().flatten().enumerate() {
            if pipe.assign {
                self.assign(pipe.span, pipe.variables[at], value)?;
            } else if let Some(slot) = self.variables.get_mut(mark + at) {
                slot.1 = value;
            }
        }
        let inner = self.variables.len();
        let flow = self.walk(&node.body, item)?;
        self.variables.truncate(inner);
        Ok(flow)
    }

    fn invoke(&mut self, invocation: &'t Invocation, dot: &Val) -> Exec<Flow> {
        let Some(body) = self.set.bodies.get(&invocation.name) else {
            let message = format!("template {:?} not defined", invocation.name);
            return self.fail(invocation.span, ErrorKind::UndefinedTemplate, message);
        };
        let dot = match &invocation.pipe {
            Some(pipe) => self.pipeline(pipe, dot)?,
            None => Val::Missing,
        };
        self.spend(invocation.span, 1)?;
        self.deeper(invocation.span)?;
        let (outer_body, outer_frame) = (self.body, self.frame);
        let mark = self.variables.len();
        (self.body, self.frame) = (body, mark);
        self.variables.push((Var::ROOT, dot.clone()));
        self.walk(&body.nodes, &dot)?;
        self.variables.truncate(mark);
        (self.body, self.frame) = (outer_body, outer_frame);
        self.depth -= 1;
        Ok(Flow::Next)
    }

    fn assign(&mut self, span: Span, variable: Var, value: Val) -> Exec<()> {
        let frame = self.frame;
        match self.variables[frame..].iter_mut().rev().find(|(name, _)| *name == variable) {
            Some(slot) => {
                slot.1 = value;
                Ok(())
            }
            None => {
                self.fail(span, ErrorKind::UndefinedVariable, "assignment to an undefined variable")
            }
        }
    }
}

fn key_value(key: &Key) -> Val {
    Val::from(key.value())
}
