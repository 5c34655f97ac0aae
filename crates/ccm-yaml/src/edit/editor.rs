//! Turns operations into text changes.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::law::{Expected, Outcome, Part, PartValue, Read};
use super::lines;
use super::tree::{Child, Id, Kind, Style, Tag, Tree};
use super::write::Unspeakable;
use super::{Beside, EditError, EditErrorKind, Operation, Step};

pub(super) type Edited<T = ()> = Result<T, EditError>;

/// A child with the comments that belong to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// The first byte: of a comment above it, or its own.
    pub(super) head: usize,
    /// Behind the comment on its last line, or behind its own last byte.
    pub(super) end: usize,
}

/// Makes the changes of operations on one text.
pub(super) struct Editor<'a> {
    pub(super) read: Read<'a>,
    pub(super) is_careful: bool,
    /// Whether a text without a final line break may get one, for the sake of
    /// what then stands at its end.
    pub(super) keeps_break: bool,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> Editor<'a> {
    pub(super) fn new(read: Read<'a>, is_careful: bool) -> Self {
        Self { read, is_careful, keeps_break: is_careful, changes: Vec::new() }
    }

    pub(super) fn tree(&self) -> &'a Tree {
        self.read.tree
    }

    pub(super) fn text(&self) -> &'a str {
        self.read.text
    }

    pub(super) fn change(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        if self.text()[range.clone()] != text {
            self.changes.push((range, text));
        }
    }

    /// The changes in order.
    pub(super) fn into_changes(mut self) -> Edited<Vec<(Range<usize>, String)>> {
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let overlap = |pair: &[(Range<usize>, String)]| pair[0].0.end > pair[1].0.start;
        if self.changes.windows(2).any(overlap) {
            return Err(EditError::unsupported(None, "the edit concerns the same text twice"));
        }
        Ok(self.changes)
    }

    /// Makes the changes of the first operation, and of those behind it that
    /// only replace other scalars.
    pub(super) fn run<'v>(&mut self, operations: &'v [Operation]) -> Edited<(usize, Expected<'v>)>
    where
        'a: 'v,
    {
        let mut expected = HashMap::new();
        self.operation(&operations[0], &mut expected)?;
        let mut count = 1;
        if !self.is_scalar_set(&operations[0]) {
            return Ok((count, expected));
        }
        while let Some(operation) = operations.get(count).filter(|next| self.is_scalar_set(next)) {
            let id = self.own(operation.path());
            if id.is_none_or(|id| expected.contains_key(&id)) {
                break;
            }
            self.operation(operation, &mut expected)?;
            count += 1;
        }
        Ok((count, expected))
    }

    /// Whether an operation only replaces a scalar by one on its line.
    fn is_scalar_set(&self, operation: &Operation) -> bool {
        let Operation::Set { path, value, .. } = operation else { return false };
        let is_line = match value {
            Value::String(text) => !text.contains('\n'),
            Value::Array(_) | Value::Object(_) => false,
            _ => true,
        };
        let is_scalar = |id: Id| match &self.tree().nodes[id].kind {
            Kind::Scalar(scalar) => !matches!(scalar.style, Style::Block { .. }),
            _ => false,
        };
        is_line && self.own(path).is_some_and(is_scalar)
    }

    fn operation<'v>(&mut self, operation: &'v Operation, expected: &mut Expected<'v>) -> Edited
    where
        'a: 'v,
    {
        match operation {
            Operation::Set { path, value, beside } => {
                self.set(path, value, beside.as_ref(), expected)
            }
            Operation::Remove { path } => {
                let (parent, index) = self.child(path)?;
                self.check_released(self.tree().children(parent)[index].value, true)?;
                let mut parts = self.parts(parent);
                parts.remove(index);
                expected.insert(parent, Outcome::Children(parts));
                self.remove(parent, index..index + 1);
                Ok(())
            }
            Operation::Insert { path, index, value } => {
                let list = self.walk(path)?;
                let Kind::List(found) = &self.tree().nodes[list].kind else {
                    return Err(self.not_a(list, "a list"));
                };
                if *index > found.children.len() {
                    return Err(self.beyond(list, *index));
                }
                let mut parts = self.parts(list);
                parts.insert(*index, Part { key: None, value: PartValue::New(value) });
                expected.insert(list, Outcome::Children(parts));
                self.insert(list, *index, &[(None, value)])
            }
            Operation::Move { path, to } => {
                let (parent, index) = self.child(path)?;
                let mut parts = self.parts(parent);
                if *to >= parts.len() {
                    return Err(self.beyond(parent, *to));
                }
                let part = parts.remove(index);
                parts.insert(*to, part);
                expected.insert(parent, Outcome::Children(parts));
                if self.is_flow(parent) {
                    self.move_flow(parent, index, *to);
                } else {
                    self.move_block(parent, index, *to);
                }
                Ok(())
            }
            Operation::Copy { path, to } => {
                let (parent, index) = self.child(path)?;
                if !matches!(self.tree().nodes[parent].kind, Kind::List(_)) {
                    return Err(self.not_a(parent, "a list"));
                }
                let mut parts = self.parts(parent);
                if *to > parts.len() {
                    return Err(self.beyond(parent, *to));
                }
                parts.insert(*to, parts[index]);
                expected.insert(parent, Outcome::Children(parts));
                if self.is_flow(parent) {
                    self.copy_flow(parent, index, *to);
                } else {
                    self.copy_block(parent, index, *to);
                }
                Ok(())
            }
            Operation::Rename { path, key } => self.rename(path, key, expected),
        }
    }

    pub(super) fn is_flow(&self, id: Id) -> bool {
        self.tree().nodes[id].collection().is_some_and(|found| found.is_flow)
    }

    fn parts(&self, id: Id) -> Vec<Part<'a>> {
        let part = |child: &Child| Part {
            key: child.key.map(|key| self.tree().key(self.text(), key)),
            value: PartValue::Old(child.value),
        };
        self.tree().children(id).iter().map(part).collect()
    }

    fn set<'v>(
        &mut self,
        path: &'v [Step],
        value: &'v Value,
        beside: Option<&Beside>,
        expected: &mut Expected<'v>,
    ) -> Edited
    where
        'a: 'v,
    {
        let Some((last, above)) = path.split_last() else {
            let root = self.tree().root;
            expected.insert(root, Outcome::Value(value));
            return self.set_node(root, value);
        };
        let parent = self.walk(above)?;
        let Step::Key(key) = last else {
            let index = self.step(parent, last)?;
            let id = self.tree().children(parent)[index].value;
            expected.insert(id, Outcome::Value(value));
            return self.set_node(id, value);
        };
        if !matches!(self.tree().nodes[parent].kind, Kind::Map(_)) {
            self.step(parent, last)?;
        }
        if key == "<<" {
            let at = Some(self.tree().nodes[parent].span.clone());
            return Err(EditError::unsupported(at, "merge keys (`<<`) cannot be set"));
        }
        if self.find(parent, key).is_some() {
            let index = self.step(parent, last)?;
            let id = self.tree().children(parent)[index].value;
            expected.insert(id, Outcome::Value(value));
            return self.set_node(id, value);
        }
        if self.tree().nodes[parent].collection().is_some_and(|found| found.is_pair) {
            self.step(parent, last)?;
        }
        if self.merged(parent, key).is_some_and(|merged| self.read.equals(merged, value)) {
            return Ok(());
        }
        let count = self.tree().children(parent).len();
        let index = match beside {
            None => count,
            Some(Beside::Before(other)) => self.step(parent, &Step::Key(other.clone()))?,
            Some(Beside::After(other)) => self.step(parent, &Step::Key(other.clone()))? + 1,
        };
        let mut parts = self.parts(parent);
        parts.insert(index, Part { key: Some(key), value: PartValue::New(value) });
        expected.insert(parent, Outcome::Children(parts));
        self.insert(parent, index, &[(Some(key), value)])
    }

    /// Makes a node mean a value, with as little change as can be.
    fn set_node(&mut self, id: Id, value: &Value) -> Edited {
        if self.read.equals(id, value) {
            return Ok(());
        }
        let node = &self.tree().nodes[id];
        if node.tag == Tag::Other {
            let at = Some(node.properties.clone());
            return Err(EditError::unsupported(at, "a value with a tag cannot be set"));
        }
        if !value.is_object() && self.is_merged(id) {
            return Err(EditError::new(
                EditErrorKind::Anchored,
                Some(node.span.clone()),
                "this is merged elsewhere (`<<`), so it must stay a map",
            ));
        }
        let is_pair = node.collection().is_some_and(|found| found.is_pair);
        match (&node.kind, value) {
            (Kind::Map(_), Value::Object(map)) if !is_pair => self.set_map(id, map),
            (Kind::List(_), Value::Array(items)) => self.set_list(id, items),
            _ if is_pair => {
                let at = Some(node.span.clone());
                Err(EditError::unsupported(at, "pairs without braces cannot be edited"))
            }
            _ => {
                self.check_released(id, false)?;
                self.replace(id, value)
            }
        }
    }

    /// Keys that stay are set one by one, others go, new ones come at the end.
    fn set_map(&mut self, id: Id, map: &Map<String, Value>) -> Edited {
        let children = self.tree().children(id);
        if let Some(explicit) = children.iter().find(|child| child.is_explicit) {
            let at = Some(explicit.start..self.tree().child_end(explicit));
            return Err(EditError::unsupported(at, "keys after `?` cannot be edited"));
        }
        let has = |key: &str| children.iter().any(|child| self.key_of(child) == key);
        let entries = self.read.entries(id);
        if let Some((key, _)) = entries.iter().find(|(key, _)| !has(key) && !map.contains_key(*key))
        {
            self.step(id, &Step::Key((*key).to_owned()))?;
        }
        let merged = |key: &str, value: &Value| {
            entries.iter().any(|(found, id)| *found == key && self.read.equals(*id, value))
        };
        let new: Vec<(Option<&str>, &Value)> = map
            .iter()
            .filter(|(key, value)| !has(key) && !merged(key, value))
            .map(|(key, value)| (Some(&**key), value))
            .collect();
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (index, child) in children.iter().enumerate() {
            let key = self.key_of(child);
            if let Some(value) = map.get(key) {
                self.set_node(child.value, value)?;
                continue;
            }
            if key == "<<" {
                continue;
            }
            self.check_released(child.value, true)?;
            match runs.last_mut() {
                Some(run) if run.end == index => run.end += 1,
                _ => runs.push(index..index + 1),
            }
        }
        let last = runs.last().filter(|run| run.end == children.len() && !new.is_empty()).cloned();
        for run in runs.iter().filter(|run| Some(*run) != last.as_ref()) {
            self.remove(id, run.clone());
        }
        match last {
            Some(run) => self.exchange(id, run, &new),
            None if new.is_empty() => Ok(()),
            None => self.insert(id, children.len(), &new),
        }
    }

    fn key_of(&self, child: &Child) -> &'a str {
        child.key.map_or("", |key| self.tree().key(self.text(), key))
    }

    /// Items that are equal at both ends stay, those between are set one by one.
    fn set_list(&mut self, id: Id, items: &[Value]) -> Edited {
        let children = self.tree().children(id);
        let is_same = |(child, item): &(&Child, &Value)| self.read.equals(child.value, item);
        let front = children.iter().zip(items).take_while(is_same).count();
        let (children_left, items_left) = (&children[front..], &items[front..]);
        let back = children_left.iter().rev().zip(items_left.iter().rev()).take_while(is_same);
        let back = back.count();
        let (old, new) = (children_left.len() - back, items_left.len() - back);
        let pairs = old.min(new);
        for (child, item) in children_left.iter().zip(items_left).take(pairs) {
            self.set_node(child.value, item)?;
        }
        for child in &children_left[pairs..old] {
            self.check_released(child.value, true)?;
        }
        if old > new {
            self.remove(id, front + pairs..front + old);
        } else if new > old {
            let items: Vec<_> = items_left[pairs..new].iter().map(|item| (None, item)).collect();
            return self.insert(id, front + old, &items);
        }
        Ok(())
    }

    fn rename<'v>(&mut self, path: &[Step], key: &'v str, expected: &mut Expected<'v>) -> Edited
    where
        'a: 'v,
    {
        if let Some((Step::Index(_), above)) = path.split_last() {
            return Err(self.not_a(self.walk(above)?, "a map"));
        }
        let (parent, index) = self.child(path)?;
        let child = &self.tree().children(parent)[index];
        let Some(id) = child.key else { return Err(self.not_a(parent, "a map")) };
        if self.tree().key(self.text(), id) == key {
            return Ok(());
        }
        let node = &self.tree().nodes[id];
        let at = Some(node.span.clone());
        if let Some(other) = self.find(parent, key) {
            let other = self.tree().children(parent)[other].key.unwrap_or(id);
            return Err(EditError::new(
                EditErrorKind::Duplicate,
                Some(self.tree().nodes[other].span.clone()),
                format!("the key `{key}` already exists"),
            ));
        }
        let Kind::Scalar(scalar) = &node.kind else {
            return Err(EditError::unsupported(at, "a key that is an alias cannot be renamed"));
        };
        if node.tag == Tag::Other || self.tree().key(self.text(), id) == "<<" {
            return Err(EditError::unsupported(at, "this key cannot be renamed"));
        }
        let manner = self.manner(parent);
        let text = manner.restyled(key, &scalar.style, node.in_flow, true);
        let text = text.map_err(|_: Unspeakable| unspeakable(at))?;
        let mut parts = self.parts(parent);
        parts[index].key = Some(key);
        expected.insert(parent, Outcome::Children(parts));
        if node.is_empty() {
            let at = Some(node.span.clone());
            return Err(EditError::unsupported(at, "an empty key cannot be renamed"));
        }
        self.change(node.span.clone(), text);
        Ok(())
    }

    /// Adds children at an index.
    fn insert(&mut self, id: Id, index: usize, new: &[(Option<&str>, &Value)]) -> Edited {
        let at = Some(self.tree().nodes[id].span.clone());
        if self.is_flow(id) {
            let manner = self.manner(id);
            let parts: Result<Vec<_>, _> = new
                .iter()
                .map(|(key, value)| match key {
                    Some(key) => manner.flow_entry(key, value),
                    None => manner.flow(value),
                })
                .collect();
            self.insert_flow(id, index, &parts.map_err(|_: Unspeakable| unspeakable(at))?);
        } else {
            let lines = self.block_lines(id, new)?;
            self.insert_lines(id, index, &lines);
        }
        Ok(())
    }

    /// Children of a block collection as lines with their indentation.
    pub(super) fn block_lines(
        &self,
        id: Id,
        new: &[(Option<&str>, &Value)],
    ) -> Edited<Vec<String>> {
        let manner = self.manner(id);
        let start = self.tree().nodes[id].span.start;
        let column = lines::column(self.text(), start);
        let mut lines = Vec::new();
        for (key, value) in new {
            let more = match key {
                Some(key) => manner.entry(key, value, column),
                None => manner.item(value, column),
            };
            lines.extend(more.map_err(|_: Unspeakable| unspeakable(Some(start..start)))?);
        }
        Ok(lines)
    }

    /// Puts new children in the place of the last ones.
    fn exchange(&mut self, id: Id, run: Range<usize>, new: &[(Option<&str>, &Value)]) -> Edited {
        if self.is_flow(id) {
            // The first takes the place of what goes.
            let manner = self.manner(id);
            let parts: Result<Vec<_>, _> = new
                .iter()
                .filter_map(|(key, value)| key.map(|key| manner.flow_entry(key, value)))
                .collect();
            let start = self.tree().children(id)[run.start].start;
            let parts = parts.map_err(|_: Unspeakable| unspeakable(Some(start..start)))?;
            let end = self.tree().child_end(&self.tree().children(id)[run.end - 1]);
            self.change(start..end, parts.join(", "));
            return Ok(());
        }
        let lines = self.block_lines(id, new)?;
        self.exchange_lines(id, run, &lines);
        Ok(())
    }

    fn remove(&mut self, id: Id, run: Range<usize>) {
        if self.is_flow(id) { self.remove_flow(id, run) } else { self.remove_block(id, run) }
    }
}

pub(super) fn unspeakable(at: Option<Range<usize>>) -> EditError {
    EditError::unsupported(at, "the value cannot be written in YAML")
}
