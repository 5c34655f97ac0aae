//! The check after every edit: the new text must parse to the expected result
//! of the operation, and to nothing else.

use std::collections::{HashMap, HashSet};

use govalue::Value as Meaning;
use serde_json::Value;

use super::tree::{Child, Id, Kind, Tree};
use super::write::same_number;
use crate::Scalar;
use crate::value::scalar_value;

/// A text with its tree.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) text: &'a str,
    pub(super) tree: &'a Tree,
}

/// What an operation makes of nodes of the old tree. Aliases follow, as they
/// are looked up by the node that they stand for.
pub(super) type Expected<'v> = HashMap<Id, Outcome<'v>>;

/// What becomes of one node.
pub(super) enum Outcome<'v> {
    /// It has this value.
    Value(&'v Value),
    /// It is a collection of these.
    Children(Vec<Part<'v>>),
}

/// A child of a collection: an old one, or a new one.
#[derive(Clone, Copy)]
pub(super) struct Part<'v> {
    pub(super) key: Option<&'v str>,
    pub(super) value: PartValue<'v>,
}

#[derive(Clone, Copy)]
pub(super) enum PartValue<'v> {
    Old(Id),
    New(&'v Value),
}

/// Whether `new` is `old` with what is expected.
pub(super) fn holds(old: Read<'_>, new: Read<'_>, expected: &Expected<'_>) -> bool {
    let mut law = Law { old, new, expected, compared: HashSet::new() };
    law.node(old.tree.root, new.tree.root)
}

/// Whether these entries of the new text are the old ones with what is expected.
pub(super) fn entries_hold(
    old: Read<'_>,
    new: Read<'_>,
    expected: &Expected<'_>,
    left: &[Child],
    right: &[Child],
) -> bool {
    Law { old, new, expected, compared: HashSet::new() }.children(left, right)
}

/// Whether these entries of the new text are the parts that are expected.
pub(super) fn parts_hold(
    old: Read<'_>,
    new: Read<'_>,
    expected: &Expected<'_>,
    parts: &[Part<'_>],
    right: &[Child],
) -> bool {
    Law { old, new, expected, compared: HashSet::new() }.parts(parts, right)
}

struct Law<'a, 'v> {
    old: Read<'a>,
    new: Read<'a>,
    expected: &'a Expected<'v>,
    /// Compared pairs; targets of aliases are compared once.
    compared: HashSet<(Id, Id)>,
}

impl Law<'_, '_> {
    fn node(&mut self, old: Id, new: Id) -> bool {
        if let Some(outcome) = self.expected.get(&old) {
            return self.outcome(old, outcome, new);
        }
        if let Kind::Alias(target) = self.old.tree.nodes[old].kind {
            let new = self.new.tree.resolve(new);
            return self.compared.contains(&(target, new))
                || (self.node(target, new) && {
                    self.compared.insert((target, new));
                    true
                });
        }
        let new = self.new.tree.resolve(new);
        let (old_tree, new_tree) = (self.old.tree, self.new.tree);
        match (&old_tree.nodes[old].kind, &new_tree.nodes[new].kind) {
            (Kind::Scalar(_), Kind::Scalar(_)) => {
                old_tree.scalar(self.old.text, old) == new_tree.scalar(self.new.text, new)
            }
            (Kind::List(left), Kind::List(right)) | (Kind::Map(left), Kind::Map(right)) => {
                self.children(&left.children, &right.children)
            }
            _ => false,
        }
    }

    fn children(&mut self, left: &[Child], right: &[Child]) -> bool {
        let old = self.old;
        left.len() == right.len()
            && left.iter().zip(right).all(|(left, right)| {
                self.same_key(left.key.map(|key| old.tree.key(old.text, key)), right.key)
                    && self.node(left.value, right.value)
            })
    }

    fn parts(&mut self, parts: &[Part<'_>], right: &[Child]) -> bool {
        parts.len() == right.len()
            && parts.iter().zip(right).all(|(part, child)| {
                part.key.is_some() == child.key.is_some()
                    && self.same_key(part.key, child.key)
                    && match part.value {
                        PartValue::Old(old) => self.node(old, child.value),
                        PartValue::New(value) => self.new.equals(child.value, value),
                    }
            })
    }

    fn same_key(&self, old: Option<&str>, new: Option<Id>) -> bool {
        old == new.map(|key| self.new.tree.key(self.new.text, key))
    }

    fn outcome(&mut self, old: Id, outcome: &Outcome<'_>, new: Id) -> bool {
        let parts = match outcome {
            Outcome::Value(value) => return self.new.equals(new, value),
            Outcome::Children(parts) => parts,
        };
        let (old_tree, new_tree) = (self.old.tree, self.new.tree);
        match (&old_tree.nodes[old].kind, &new_tree.nodes[new_tree.resolve(new)].kind) {
            (Kind::List(_), Kind::List(found)) | (Kind::Map(_), Kind::Map(found)) => {
                self.parts(parts, &found.children)
            }
            _ => false,
        }
    }
}

impl<'a> Read<'a> {
    /// Whether a node means a value: aliases and merges followed, the order of
    /// keys apart.
    pub(super) fn equals(self, id: Id, value: &Value) -> bool {
        let id = self.tree.resolve(id);
        match (&self.tree.nodes[id].kind, value) {
            (Kind::Scalar(_), _) => {
                let Some((text, plain)) = self.tree.scalar(self.text, id) else { return false };
                same_scalar(text, plain, value)
            }
            (Kind::List(list), Value::Array(items)) => {
                list.children.len() == items.len()
                    && list
                        .children
                        .iter()
                        .zip(items)
                        .all(|(child, item)| self.equals(child.value, item))
            }
            (Kind::Map(_), Value::Object(map)) => {
                let entries = self.entries(id);
                entries.len() == map.len()
                    && entries.iter().all(|&(key, value)| {
                        map.get(key).is_some_and(|wanted| self.equals(value, wanted))
                    })
            }
            _ => false,
        }
    }

    /// The entries of a map, those that are merged into it behind its own.
    pub(super) fn entries(self, id: Id) -> Vec<(&'a str, Id)> {
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        self.add_entries(id, &mut entries, &mut seen);
        entries
    }

    fn add_entries(self, id: Id, entries: &mut Vec<(&'a str, Id)>, seen: &mut HashSet<&'a str>) {
        let children = self.tree.children(id);
        let key =
            |child: &super::tree::Child| child.key.map_or("", |key| self.tree.key(self.text, key));
        for child in children.iter().filter(|child| key(child) != "<<") {
            if seen.insert(key(child)) {
                entries.push((key(child), child.value));
            }
        }
        for child in children.iter().filter(|child| key(child) == "<<") {
            for map in self.merged_maps(child.value) {
                self.add_entries(map, entries, seen);
            }
        }
    }

    /// The maps that a `<<` brings.
    pub(super) fn merged_maps(self, value: Id) -> Vec<Id> {
        let value = self.tree.resolve(value);
        match &self.tree.nodes[value].kind {
            Kind::Map(_) => vec![value],
            Kind::List(list) => {
                list.children.iter().map(|child| self.tree.resolve(child.value)).collect()
            }
            Kind::Scalar(_) | Kind::Alias(_) => Vec::new(),
        }
    }

    /// What a node means as JSON.
    pub(super) fn value(self, id: Id) -> Value {
        let id = self.tree.resolve(id);
        match &self.tree.nodes[id].kind {
            Kind::List(list) => list.children.iter().map(|child| self.value(child.value)).collect(),
            Kind::Map(_) => {
                let entries = self.entries(id).into_iter();
                Value::Object(
                    entries.map(|(key, value)| (key.to_owned(), self.value(value))).collect(),
                )
            }
            Kind::Scalar(_) | Kind::Alias(_) => match self.tree.scalar(self.text, id) {
                Some((text, plain)) => json(text, plain),
                None => Value::Null,
            },
        }
    }
}

fn json(text: &str, plain: bool) -> Value {
    match scalar_value(&Scalar { text: text.into(), plain }) {
        Meaning::Nil => Value::Null,
        Meaning::Bool(flag) => flag.into(),
        Meaning::Int(number) => number.into(),
        Meaning::Sized(_, bits) => bits.cast_unsigned().into(),
        Meaning::Float(number) => {
            serde_json::Number::from_f64(number).map_or_else(|| text.into(), Value::Number)
        }
        _ => text.into(),
    }
}

fn same_scalar(text: &str, plain: bool, value: &Value) -> bool {
    let scalar = Scalar { text: text.into(), plain };
    match (value, scalar_value(&scalar)) {
        (Value::Null, Meaning::Nil) => true,
        (Value::Bool(wanted), Meaning::Bool(flag)) => *wanted == flag,
        (Value::Number(number), found) => same_number(&found, number),
        (Value::String(wanted), Meaning::String(_)) => wanted == text,
        _ => false,
    }
}
