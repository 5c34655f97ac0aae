//! Members that an action prints though they are not there.

use std::sync::Arc;

use govalue::{Map, MissingMember, Span};

use super::Run;
use crate::ast::{Command, Operand, Pipe, Term};
use crate::val::Dict;

/// Functions that print what they are given. Nothing is left of a missing value
/// but `<nil>` or the empty string, and no default is chosen.
const PRINTERS: &[&str] =
    &["cat", "html", "js", "print", "printf", "println", "quote", "squote", "toString", "urlquery"];

/// A member that is not in its map.
pub(super) struct Missing {
    map: Arc<Map>,
    name: String,
    /// What asked for it.
    span: Span,
}

impl Run<'_> {
    /// Notes that a member is not in a map of the caller's.
    pub(super) fn note_missing(&mut self, dict: &Dict, name: &str, span: Span) {
        if self.set.settings.on_missing.is_some()
            && let Some(map) = dict.origin()
        {
            let (map, name) = (Arc::clone(map), name.to_owned());
            self.missing.push(Missing { map, name, span });
        }
    }

    /// Tells of the missing members that an action has printed.
    pub(super) fn report_missing(&mut self, pipe: &Pipe) {
        let Some(report) = &self.set.settings.on_missing else { return };
        if self.missing.is_empty() {
            return;
        }
        let printed = printed(pipe);
        let source = &self.set.sources[self.body.source];
        for missing in self.missing.drain(..) {
            let start = missing.span.start;
            let Some(operand) = printed.iter().find(|operand| operand.span.start == start) else {
                continue;
            };
            report(&MissingMember {
                template: &source.name,
                text: &source.text,
                span: operand.span,
                map: &missing.map,
                member: &missing.name,
            });
        }
    }
}

/// The members that an action prints as they are.
fn printed(pipe: &Pipe) -> Vec<&Operand> {
    let Some((first, rest)) = pipe.commands.split_first() else { return Vec::new() };
    if !rest.iter().all(is_printer) {
        return Vec::new();
    }
    let operands =
        if is_printer(first) { &*first.arguments } else { std::slice::from_ref(&first.head) };
    operands.iter().filter(|operand| is_member(operand)).collect()
}

fn is_printer(command: &Command) -> bool {
    matches!(&command.head.term, Term::Function(name, _) if PRINTERS.contains(&&**name))
}

fn is_member(operand: &Operand) -> bool {
    match &operand.term {
        Term::Field(_) => true,
        Term::Variable(_, names) => !names.is_empty(),
        _ => false,
    }
}
