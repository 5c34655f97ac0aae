//! Documents as the generator thinks of them, and what operations do to them.
//! Written apart from the editor, so that both cannot be wrong in the same way.

use std::collections::HashMap;

use ccm_yaml::edit::{Beside, Operation, Step};
use serde_json::{Map, Value};

use crate::random::Random;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Tells the nodes of a document apart.
    pub(crate) id: usize,
    pub(crate) anchor: Option<usize>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    Alias(usize),
}

/// An operation cannot be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Impossible {
    Missing,
    Kind,
    Duplicate,
    /// Something with aliases or merges: the editor knows better what.
    Linked,
}

impl Node {
    pub(crate) fn new(value: &Value) -> Self {
        let kind = match value {
            Value::Array(items) => Kind::List(items.iter().map(Self::new).collect()),
            Value::Object(map) => {
                Kind::Map(map.iter().map(|(key, value)| (key.clone(), Self::new(value))).collect())
            }
            scalar => Kind::Scalar(scalar.clone()),
        };
        Self { id: 0, anchor: None, kind }
    }

    fn at(&mut self, path: &[Step]) -> Result<&mut Self, Impossible> {
        let mut node = self;
        for step in path {
            node = match (&mut node.kind, step) {
                (Kind::Alias(_), _) => return Err(Impossible::Linked),
                (Kind::List(items), Step::Index(index)) => {
                    items.get_mut(*index).ok_or(Impossible::Missing)?
                }
                (Kind::Map(entries), Step::Key(key)) => {
                    let is_merging = entries.iter().any(|(key, _)| key == "<<");
                    let found = entries.iter_mut().find(|(found, _)| found == key);
                    let missing = if is_merging { Impossible::Linked } else { Impossible::Missing };
                    &mut found.ok_or(missing)?.1
                }
                _ => return Err(Impossible::Kind),
            };
        }
        Ok(node)
    }

    /// Every node with its path.
    pub(crate) fn walk<'a>(&'a self, path: &mut Vec<Step>, found: &mut Vec<(Vec<Step>, &'a Self)>) {
        found.push((path.clone(), self));
        match &self.kind {
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(index.into());
                    item.walk(path, found);
                    path.pop();
                }
            }
            Kind::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.as_str().into());
                    value.walk(path, found);
                    path.pop();
                }
            }
            Kind::Scalar(_) | Kind::Alias(_) => {}
        }
    }

    /// What it means; nothing if an anchor is missing.
    pub(crate) fn resolve(&self) -> Option<Value> {
        let mut nodes = Vec::new();
        self.walk(&mut Vec::new(), &mut nodes);
        let anchors = nodes.iter().rev();
        let anchors = anchors.filter_map(|(_, node)| Some((node.anchor?, *node))).collect();
        self.value(&anchors)
    }

    fn value(&self, anchors: &HashMap<usize, &Self>) -> Option<Value> {
        Some(match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => {
                Value::Array(items.iter().map(|item| item.value(anchors)).collect::<Option<_>>()?)
            }
            Kind::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries.iter().filter(|(key, _)| key != "<<") {
                    map.insert(key.clone(), value.value(anchors)?);
                }
                for (_, value) in entries.iter().filter(|(key, _)| key == "<<") {
                    let maps = match value.value(anchors)? {
                        Value::Array(maps) => maps,
                        map => vec![map],
                    };
                    for merged in maps {
                        let Value::Object(merged) = merged else { return None };
                        for (key, value) in merged {
                            map.entry(key).or_insert(value);
                        }
                    }
                }
                Value::Object(map)
            }
            Kind::Alias(anchor) => anchors.get(anchor)?.value(anchors)?,
        })
    }

    /// Does to this document what an operation says.
    pub(crate) fn apply(&mut self, operation: &Operation) -> Result<(), Impossible> {
        let path = operation.path();
        let (last, above) = match path.split_last() {
            Some((last, above)) => (Some(last), above),
            None => (None, path),
        };
        match operation {
            Operation::Set { value, beside, .. } => {
                let Some(last) = last else {
                    self.kind = Self::new(value).kind;
                    return Ok(());
                };
                let parent = self.at(above)?;
                if let (Kind::Map(entries), Step::Key(key)) = (&mut parent.kind, last)
                    && !entries.iter().any(|(found, _)| found == key)
                {
                    let index = |other: &String| {
                        let found = entries.iter().position(|(key, _)| key == other);
                        found.ok_or(Impossible::Missing)
                    };
                    let index = match beside {
                        None => entries.len(),
                        Some(Beside::Before(other)) => index(other)?,
                        Some(Beside::After(other)) => index(other)? + 1,
                    };
                    entries.insert(index, (key.clone(), Self::new(value)));
                    return Ok(());
                }
                let node = parent.at(std::slice::from_ref(last))?;
                node.kind = Self::new(value).kind;
            }
            Operation::Remove { .. } => match (&mut self.at(above)?.kind, last) {
                (Kind::List(items), Some(Step::Index(index))) if *index < items.len() => {
                    items.remove(*index);
                }
                (Kind::Map(entries), Some(Step::Key(key))) => {
                    let is_merging = entries.iter().any(|(key, _)| key == "<<");
                    let missing = if is_merging { Impossible::Linked } else { Impossible::Missing };
                    let found = entries.iter().position(|(found, _)| found == key);
                    entries.remove(found.ok_or(missing)?);
                }
                (Kind::Alias(_), _) => return Err(Impossible::Linked),
                (Kind::List(_), Some(Step::Index(_))) => return Err(Impossible::Missing),
                _ => return Err(Impossible::Kind),
            },
            Operation::Insert { index, value, .. } => match &mut self.at(path)?.kind {
                Kind::List(items) if *index <= items.len() => {
                    items.insert(*index, Self::new(value));
                }
                Kind::List(_) => return Err(Impossible::Missing),
                Kind::Alias(_) => return Err(Impossible::Linked),
                _ => return Err(Impossible::Kind),
            },
            Operation::Move { to, .. } | Operation::Copy { to, .. } => {
                let is_copy = matches!(operation, Operation::Copy { .. });
                let parent = self.at(above)?;
                parent.at(last.map_or(&[], std::slice::from_ref))?;
                match (&mut parent.kind, last) {
                    (Kind::List(items), Some(Step::Index(index))) => {
                        if *to >= items.len() + usize::from(is_copy) {
                            return Err(Impossible::Missing);
                        }
                        let item =
                            if is_copy { items[*index].clone() } else { items.remove(*index) };
                        items.insert(*to, item);
                    }
                    (Kind::Map(entries), Some(Step::Key(key))) if !is_copy => {
                        let index = entries.iter().position(|(found, _)| found == key);
                        if *to >= entries.len() {
                            return Err(Impossible::Missing);
                        }
                        let entry = entries.remove(index.ok_or(Impossible::Missing)?);
                        entries.insert(*to, entry);
                    }
                    _ => return Err(Impossible::Kind),
                }
            }
            Operation::Rename { key, .. } => {
                let (Kind::Map(entries), Some(Step::Key(old))) = (&mut self.at(above)?.kind, last)
                else {
                    return Err(Impossible::Kind);
                };
                let is_merging = entries.iter().any(|(key, _)| key == "<<");
                let missing = if is_merging { Impossible::Linked } else { Impossible::Missing };
                let found = entries.iter().position(|(found, _)| found == old).ok_or(missing)?;
                if key != old && entries.iter().any(|(found, _)| found == key) {
                    return Err(Impossible::Duplicate);
                }
                entries[found].0.clone_from(key);
            }
        }
        Ok(())
    }
}

const KEYS: [&str; 16] = [
    "a",
    "b",
    "mode",
    "owner",
    "/etc/motd",
    "a b",
    "x: y",
    "über",
    "{{ Data.x }}",
    "true",
    "12",
    "- z",
    "k#1",
    "'q'",
    "e\"f",
    "",
];
const TEXTS: [&str; 40] = [
    "x",
    "hello world",
    "0644",
    "5.10",
    "true",
    "null",
    "~",
    "",
    " lead",
    "trail ",
    "a: b",
    "a #c",
    "# no",
    "- dash",
    "it's",
    "say \"hi\"",
    "{{ Data.app }}",
    "[x]",
    "{y}",
    "a, b",
    "*star",
    "&and",
    "!bang",
    "%pct",
    "@at",
    "`tick",
    "|",
    ">",
    "line one\nline two\n",
    "no\nend",
    "keep\n\n\n",
    "\n",
    "\n\nlead",
    "  indented\nrest\n",
    "tab\tin\n\tside\n",
    "cr\r\nlf",
    "Zürich 🚀",
    "bell\u{7}",
    "---",
    "x\n \ny\n",
];

/// A value to write.
pub(crate) fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => random.once_in(2).into(),
        2 => match random.below(5) {
            0 => Value::from(-17),
            1 => Value::from(u64::MAX),
            2 => Value::from(2.5),
            3 => Value::from(1e300),
            _ => Value::from(random.below(100_000)),
        },
        3..=6 => (*random.pick(&TEXTS)).into(),
        7 | 8 => {
            let count = random.below(4);
            Value::Object((0..count).map(|_| (key(random), value(random, depth - 1))).collect())
        }
        _ => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
    }
}

pub(crate) fn key(random: &mut Random) -> String {
    (*random.pick(&KEYS)).to_owned()
}
