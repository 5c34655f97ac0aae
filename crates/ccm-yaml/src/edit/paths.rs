//! Resolves path steps to nodes, and rejects nodes that cannot be edited.

use std::ops::Range;

use super::editor::{Edited, Editor};
use super::tree::{Child, Id, Kind};
use super::{EditError, EditErrorKind, Step};

impl Editor<'_> {
    /// The node of a path, which must be written there.
    pub(super) fn walk(&self, path: &[Step]) -> Edited<Id> {
        let mut id = self.tree().root;
        for step in path {
            id = self.tree().children(id)[self.step(id, step)?].value;
        }
        Ok(id)
    }

    /// The collection and index of the last step of a path.
    pub(super) fn child(&self, path: &[Step]) -> Edited<(Id, usize)> {
        let Some((last, above)) = path.split_last() else {
            return Err(EditError::unsupported(None, "the document itself can only be set"));
        };
        let parent = self.walk(above)?;
        Ok((parent, self.step(parent, last)?))
    }

    /// The index of a step within a node.
    pub(super) fn step(&self, id: Id, step: &Step) -> Edited<usize> {
        let node = &self.tree().nodes[id];
        let at = Some(node.span.clone());
        let index = match (&node.kind, step) {
            (Kind::Alias(_), _) => {
                return Err(EditError::new(
                    EditErrorKind::Alias,
                    at,
                    format!("`{step}` is inside of an alias"),
                )
                .hint("edit the anchor of the alias, or replace the whole alias"));
            }
            (Kind::List(list), Step::Index(index)) => {
                if *index >= list.children.len() {
                    return Err(self.beyond(id, *index));
                }
                *index
            }
            (Kind::Map(_), Step::Key(key)) => match self.find(id, key) {
                Some(index) => index,
                None if self.merged(id, key).is_some() => {
                    return Err(EditError::new(
                        EditErrorKind::Merged,
                        at,
                        format!("`{key}` comes from a merge (`<<`)"),
                    )
                    .hint("edit the map that is merged, or set the key here to override it"));
                }
                None => {
                    let message = format!("there is no `{key}`");
                    return Err(EditError::new(EditErrorKind::Missing, at, message));
                }
            },
            (_, Step::Key(_)) => return Err(self.not_a(id, "a map")),
            (_, Step::Index(_)) => return Err(self.not_a(id, "a list")),
        };
        let collection = node.collection();
        if collection.is_some_and(|found| found.is_pair || found.children[index].is_explicit) {
            let what = "keys after `?` and pairs without braces cannot be edited";
            return Err(EditError::unsupported(at, what));
        }
        Ok(index)
    }

    /// The index of a key that is written in a map.
    pub(super) fn find(&self, map: Id, key: &str) -> Option<usize> {
        let is_key = |child: &Child| {
            child.key.is_some_and(|found| self.tree().key(self.text(), found) == key)
        };
        self.tree().children(map).iter().position(is_key)
    }

    /// The value of a key that is merged into a map.
    pub(super) fn merged(&self, map: Id, key: &str) -> Option<Id> {
        self.find(map, "<<")?;
        let entries = self.read.entries(map);
        entries.into_iter().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// The node of a path that is written there.
    pub(super) fn own(&self, path: &[Step]) -> Option<Id> {
        self.walk(path).ok()
    }

    /// The node of a path, through aliases and merges.
    pub(super) fn reach(&self, path: &[Step]) -> Option<Id> {
        let mut id = self.tree().root;
        for step in path {
            id = self.tree().resolve(id);
            id = match (&self.tree().nodes[id].kind, step) {
                (Kind::List(list), Step::Index(index)) => list.children.get(*index)?.value,
                (Kind::Map(_), Step::Key(key)) => match self.find(id, key) {
                    Some(index) => self.tree().children(id)[index].value,
                    None => self.merged(id, key)?,
                },
                _ => return None,
            };
        }
        Some(id)
    }

    /// Where the deepest node of a path is that is there.
    pub(super) fn nearest(&self, path: &[Step]) -> Range<usize> {
        let mut id = self.tree().root;
        for step in path {
            match self.step(id, step) {
                Ok(index) => id = self.tree().children(id)[index].value,
                Err(_) => break,
            }
        }
        self.tree().nodes[id].span.clone()
    }

    pub(super) fn not_a(&self, id: Id, wanted: &str) -> EditError {
        let node = &self.tree().nodes[id];
        let found = match &node.kind {
            Kind::Scalar(_) if node.is_empty() => "nothing",
            Kind::Scalar(_) => "a scalar",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
            Kind::Alias(_) => {
                let message = format!("this is an alias, not {wanted}");
                return EditError::new(EditErrorKind::Alias, Some(node.span.clone()), message);
            }
        };
        let message = format!("this is {found}, not {wanted}");
        EditError::new(EditErrorKind::Kind, Some(node.span.clone()), message)
    }

    pub(super) fn beyond(&self, id: Id, index: usize) -> EditError {
        let count = self.tree().children(id).len();
        let at = Some(self.tree().nodes[id].span.clone());
        let message = format!("there is no index {index}: the list has {count} items");
        EditError::new(EditErrorKind::Missing, at, message)
    }

    /// Refuses what would take a node away that an alias elsewhere needs:
    /// something below `id`, or `id` itself if that goes too.
    pub(super) fn check_released(&self, id: Id, goes: bool) -> Edited {
        let tree = self.tree();
        for (alias, node) in tree.nodes.iter().enumerate() {
            let Kind::Alias(target) = node.kind else { continue };
            let is_lost = tree.is_within(target, id) && (goes || target != id);
            if is_lost && !tree.is_within(alias, id) {
                return Err(EditError::new(
                    EditErrorKind::Anchored,
                    Some(node.span.clone()),
                    "an alias refers to what this edit would remove",
                )
                .hint("first replace the alias with a value"));
            }
        }
        Ok(())
    }

    /// Whether a node is merged somewhere.
    pub(super) fn is_merged(&self, id: Id) -> bool {
        let tree = self.tree();
        if !tree.nodes[id].is_anchored {
            return false;
        }
        let is_merge = |mut alias: Id| {
            while let Some((parent, index)) = tree.nodes[alias].parent {
                let key = tree.children(parent)[index].key;
                if let Some(key) = key {
                    return tree.key(self.text(), key) == "<<";
                }
                alias = parent;
            }
            false
        };
        (0..tree.nodes.len())
            .filter(|&alias| matches!(tree.nodes[alias].kind, Kind::Alias(target) if target == id))
            .any(is_merge)
    }
}
