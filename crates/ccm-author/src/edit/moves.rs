//! Moving resources in the order in which they run.

use ccm_yaml::edit::{EditError, Operation};
use serde_json::{Value, json};

use super::Planner;
use super::operations::index_in;
use crate::outline::{OutlineEntry, ResourceShape};

impl Planner<'_> {
    pub(super) fn move_before(
        &self,
        entry: &OutlineEntry,
        before: Option<&OutlineEntry>,
        force: bool,
    ) -> Result<Vec<Operation>, EditError> {
        let target = before.map_or(self.found.len() + 1, |before| before.number);
        if target == entry.number || target == entry.number + 1 {
            return Ok(Vec::new());
        }
        if !force {
            self.check_references(entry, target)?;
        }
        let is_alone = self.siblings(entry).count() == 1;
        if let Some(operation) = self.move_within(entry, before) {
            return Ok(vec![operation]);
        }
        let is_first = before.is_none_or(|before| {
            self.siblings(before).next().is_some_and(|first| first.number == before.number)
        });
        let resources = &entry.block.path[..2];
        let count = self.document.count(resources).unwrap_or_default();
        let slot = before.map_or(count, |before| index_in(&before.block.path, 2));
        let from = index_in(&entry.block.path, 2);
        if is_first && is_alone {
            let to = if from < slot { slot - 1 } else { slot };
            return Ok(vec![Operation::Move { path: entry.block.path[..3].to_vec(), to }]);
        }
        if !is_first {
            let reference = before.map(OutlineEntry::reference).unwrap_or_default();
            return Err(EditError::refused(
                format!("{reference} is in the middle of another block"),
                "move it before the first or after the last resource of that block",
            ));
        }
        // It gets a block of its own, with what it had from the defaults.
        let block =
            json!({ entry.kind.as_str(): [{ entry.name.as_str(): self.effective(entry) }] });
        self.check_no_comments(entry)?;
        let remove = Operation::Remove { path: self.removable(entry) };
        let insert = Operation::Insert { path: resources.to_vec(), index: slot, value: block };
        // The insertion first, unless it shifts the path of the removal.
        Ok(if slot > from { vec![insert, remove] } else { vec![remove, insert] })
    }

    /// The move within one block, if it is one.
    fn move_within(
        &self,
        entry: &OutlineEntry,
        before: Option<&OutlineEntry>,
    ) -> Option<Operation> {
        let siblings: Vec<_> = self.siblings(entry).collect();
        let last = siblings.last()?;
        let is_end = match before {
            Some(before) => before.number == last.number + 1,
            None => last.number == self.found.len(),
        };
        let is_within = before.is_some_and(|before| before.block.path == entry.block.path);
        if !is_within && (!is_end || siblings.len() == 1) {
            return None;
        }
        let depth = entry.block.path.len();
        let place = |of: &OutlineEntry| match entry.shape {
            ResourceShape::Item | ResourceShape::BareItem => Some(index_in(&of.path, depth)),
            ResourceShape::Entry => self.entry_index(of),
            ResourceShape::Single => None,
        };
        let from = place(entry)?;
        let to = if is_within { place(before?)? } else { place(last)? + 1 };
        let to = if from < to { to - 1 } else { to };
        let path = match entry.shape {
            ResourceShape::Item => entry.path[..=depth].to_vec(),
            _ => entry.path.clone(),
        };
        Some(Operation::Move { path, to })
    }

    /// The index of a resource among the entries of its block.
    fn entry_index(&self, entry: &OutlineEntry) -> Option<usize> {
        self.document.index(&entry.path)
    }

    /// Refuses to put a resource before one that it refers to, or behind one
    /// that refers to it.
    fn check_references(&self, entry: &OutlineEntry, target: usize) -> Result<(), EditError> {
        let refers = |from: &OutlineEntry, to: &OutlineEntry| {
            let mut references = from.require.iter().chain(&from.subscribe);
            references.any(|reference| {
                reference.split_once('#').is_some_and(|(kind, name)| to.is_called(kind, name))
            })
        };
        for other in &self.found {
            let is_passed_up = (target..entry.number).contains(&other.number);
            let is_passed_down = (entry.number + 1..target).contains(&other.number);
            if is_passed_up && refers(entry, other) {
                return Err(EditError::refused(
                    format!("{} refers to {}", entry.reference(), other.reference()),
                    "resources run in the order written, so the referring resource must come later",
                ));
            }
            if is_passed_down && refers(other, entry) {
                return Err(EditError::refused(
                    format!("{} refers to {}", other.reference(), entry.reference()),
                    "resources run in the order written, so the referring resource must come later",
                ));
            }
        }
        Ok(())
    }

    /// The properties of a resource, those from its block's defaults included.
    fn effective(&self, entry: &OutlineEntry) -> Value {
        let own = match self.document.value(&entry.path) {
            Some(Value::Object(own)) => own,
            _ => serde_json::Map::new(),
        };
        let defaults = entry.block.defaults.as_ref().and_then(|path| self.document.value(path));
        let Some(Value::Object(defaults)) = defaults else { return Value::Object(own) };
        let mut all = own;
        for (key, value) in defaults {
            let is_own = self.property(entry, &key).is_ok_and(|key| all.contains_key(&key));
            if !is_own && !value.is_null() {
                all.insert(key, value);
            }
        }
        Value::Object(all)
    }

    /// Refuses to write a resource anew that has comments.
    fn check_no_comments(&self, entry: &OutlineEntry) -> Result<(), EditError> {
        let path = match entry.shape {
            ResourceShape::Item => &entry.path[..entry.path.len() - 1],
            _ => &entry.path,
        };
        if self.document.has_comments(path) {
            return Err(EditError::refused(
                format!("{} has comments, which would be lost", entry.reference()),
                "move its lines in the text itself",
            ));
        }
        Ok(())
    }
}
