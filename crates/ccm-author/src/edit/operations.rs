//! Operations on one resource, as operations by path.

use std::sync::Arc;

use ccm_yaml::edit::{Beside, EditError, Operation, Step};
use serde_json::{Map, Value, json};

use super::{Planner, ResourceId, ResourceOperation};
use crate::outline::{OutlineBlock, OutlineEntry, ResourceShape};

type Planned = Result<Vec<Operation>, EditError>;

impl Planner<'_> {
    pub(super) fn plan(&self, operation: &ResourceOperation) -> Planned {
        match operation {
            ResourceOperation::SetProperty { resource, property, value } => {
                self.set(self.find(resource)?, property, value.clone())
            }
            ResourceOperation::UnsetProperty { resource, property } => {
                self.unset(self.find(resource)?, property)
            }
            ResourceOperation::Add { kind, name, properties, after } => {
                self.add(kind, name, properties, after.as_ref())
            }
            ResourceOperation::Remove { resource } => {
                let entry = self.find(resource)?;
                Ok(vec![Operation::Remove { path: self.removable(entry) }])
            }
            ResourceOperation::MoveBefore { resource, before, force } => {
                let entry = self.find(resource)?;
                let before = before.as_ref().map(|before| self.find(before)).transpose()?;
                self.move_before(entry, before, *force)
            }
            ResourceOperation::Duplicate { resource, name } => {
                self.duplicate(self.find(resource)?, name)
            }
            ResourceOperation::Rename { resource, name } => self.rename(self.find(resource)?, name),
        }
    }

    fn set(&self, entry: &OutlineEntry, property: &str, value: Value) -> Planned {
        let key = self.property(entry, property)?;
        let properties = Map::from_iter([(key.clone(), value.clone())]);
        if entry.shape == ResourceShape::BareItem {
            let value = json!({ entry.name.as_str(): properties });
            return Ok(vec![Operation::Set { path: entry.path.clone(), value, beside: None }]);
        }
        // A name without properties has nothing below it yet.
        if self.document.value(&entry.path) == Some(Value::Null) {
            let (path, value) = (entry.path.clone(), Value::Object(properties));
            return Ok(vec![Operation::Set { path, value, beside: None }]);
        }
        Ok(vec![Operation::Set { path: below(&entry.path, key), value, beside: None }])
    }

    fn unset(&self, entry: &OutlineEntry, property: &str) -> Planned {
        let key = self.property(entry, property)?;
        let path = below(&entry.path, key.clone());
        if self.document.value(&path).is_some() {
            return Ok(vec![Operation::Remove { path }]);
        }
        let defaults = entry.block.defaults.as_ref().map(|path| below(path, key.clone()));
        let is_default = defaults.is_some_and(|path| self.document.value(&path).is_some());
        let hint = is_default.then(|| "it comes from the `defaults` of its block".to_owned());
        let message = format!("{} does not set `{key}`", entry.reference());
        Err(EditError::missing(message, hint))
    }

    fn add(
        &self,
        kind: &str,
        name: &str,
        properties: &Map<String, Value>,
        after: Option<&ResourceId>,
    ) -> Planned {
        self.check_free(kind, name)?;
        self.check_type(kind, properties)?;
        let after = match after {
            Some(after) => Some(self.find(after)?),
            None => self.found.last(),
        };
        let properties = Value::Object(properties.clone());
        let item = json!({ name: properties });
        let block = json!({ kind: [item] });
        let resources: Vec<Step> = vec!["ccm".into(), "resources".into()];
        let Some(after) = after else {
            return match self.document.value(&resources) {
                Some(Value::Array(items)) => {
                    let index = items.len();
                    Ok(vec![Operation::Insert { path: resources, index, value: block }])
                }
                Some(Value::Null) => {
                    let value = json!([block]);
                    Ok(vec![Operation::Set { path: resources, value, beside: None }])
                }
                _ => Err(EditError::missing(
                    "there is no `ccm.resources` in this text".to_owned(),
                    Some("a manifest has `ccm:` with `resources:` below it".to_owned()),
                )),
            };
        };
        let path = after.block.path.clone();
        let is_last = self.siblings(after).last().is_none_or(|last| last.number == after.number);
        match (after.shape, after.kind == kind) {
            (ResourceShape::Item | ResourceShape::BareItem, true) => {
                let index = index_in(&after.path, path.len()) + 1;
                Ok(vec![Operation::Insert { path, index, value: item }])
            }
            (ResourceShape::Entry, true) => {
                let beside = Some(Beside::After(after.name.clone()));
                Ok(vec![Operation::Set { path: below(&path, name), value: properties, beside }])
            }
            _ if is_last => {
                let index = index_in(&path, 2) + 1;
                Ok(vec![Operation::Insert { path: resources, index, value: block }])
            }
            _ => Err(EditError::refused(
                format!("{} is not the last resource of its block", after.reference()),
                "add it after the last resource of the block",
            )),
        }
    }

    /// Refuses types and properties that are not known.
    fn check_type(&self, kind: &str, properties: &Map<String, Value>) -> Result<(), EditError> {
        if self.types.is_empty() {
            return Ok(());
        }
        let Some(known) = self.types.iter().find(|known| known.name() == kind) else {
            let names: Vec<_> = self.types.iter().map(|known| known.name()).collect();
            let hint = ccm_model::did_you_mean(kind, names.iter().copied())
                .unwrap_or_else(|| format!("available types: {}", names.join(", ")));
            let message = format!("unknown resource type `{kind}`");
            return Err(EditError::missing(message, Some(hint)));
        };
        for property in properties.keys() {
            if !known.fields().iter().any(|field| field.is_called(property)) {
                let names = known.fields().iter().map(|field| field.name);
                let hint = ccm_model::did_you_mean(property, names);
                let message = format!("{kind} has no property `{property}`");
                return Err(EditError::missing(message, hint));
            }
        }
        Ok(())
    }

    /// What goes with a resource: its block, if that is all that it has.
    pub(super) fn removable(&self, entry: &OutlineEntry) -> Vec<Step> {
        let block = &entry.block.path;
        if self.siblings(entry).count() == 1 {
            return block[..block.len() - 1].to_vec();
        }
        match entry.shape {
            ResourceShape::Item => entry.path[..entry.path.len() - 1].to_vec(),
            _ => entry.path.clone(),
        }
    }

    fn duplicate(&self, entry: &OutlineEntry, name: &str) -> Planned {
        self.check_free(&entry.kind, name)?;
        let block = &entry.block.path;
        let mut operations = Vec::new();
        let copy = match entry.shape {
            ResourceShape::Item => {
                let item = entry.path[..entry.path.len() - 1].to_vec();
                let index = index_in(&entry.path, block.len());
                operations.push(Operation::Copy { path: item, to: index + 1 });
                let copy = below(&below(block, index + 1), entry.name.as_str());
                operations.push(Operation::Rename { path: copy, key: name.to_owned() });
                below(&below(block, index + 1), name)
            }
            ResourceShape::BareItem => {
                let index = index_in(&entry.path, block.len()) + 1;
                let (path, value) = (block.clone(), name.into());
                return Ok(vec![Operation::Insert { path, index, value }]);
            }
            ResourceShape::Entry => {
                // Keys are there once, so the text cannot be repeated as it is.
                let value = self.document.value(&entry.path).unwrap_or(Value::Null);
                let beside = Some(Beside::After(entry.name.clone()));
                let path = below(block, name);
                operations.push(Operation::Set { path: path.clone(), value, beside });
                path
            }
            ResourceShape::Single => {
                let index = index_in(block, 2);
                let item = block[..3].to_vec();
                operations.push(Operation::Copy { path: item, to: index + 1 });
                let copy = below(&below(&block[..2], index + 1), entry.kind.as_str());
                let (path, value) = (below(&copy, "name"), name.into());
                operations.push(Operation::Set { path, value, beside: None });
                copy
            }
        };
        // Two resources cannot have the same alias.
        if entry.alias.is_some() {
            operations.push(Operation::Remove { path: below(&copy, "alias") });
        }
        Ok(operations)
    }

    fn rename(&self, entry: &OutlineEntry, name: &str) -> Planned {
        if entry.name == name {
            return Ok(Vec::new());
        }
        self.check_free(&entry.kind, name)?;
        let (old, new) = (entry.reference(), format!("{}#{name}", entry.kind));
        let mut operations = Vec::new();
        // References first: the path of the resource itself still holds then.
        let mut places: Vec<&[Step]> = Vec::new();
        let mut block: Option<&Arc<OutlineBlock>> = None;
        for other in &self.found {
            if other.require.iter().chain(&other.subscribe).any(|reference| *reference == old) {
                places.push(&other.path);
            }
            // Those of a block stand together, and share its defaults.
            if !block.is_some_and(|block| Arc::ptr_eq(block, &other.block)) {
                places.extend(other.block.defaults.as_deref());
            }
            block = Some(&other.block);
        }
        for place in places {
            for property in ["require", "subscribe"] {
                let path = below(place, property);
                if self.document.locate(&path).is_none() {
                    continue;
                }
                let paths = match self.document.value(&path) {
                    Some(Value::Array(items)) => {
                        let is_old = |(_, item): &(usize, &Value)| item.as_str() == Some(&*old);
                        let found = items.iter().enumerate().filter(is_old);
                        found.map(|(index, _)| below(&path, index)).collect()
                    }
                    Some(Value::String(text)) if text == old => vec![path],
                    _ => Vec::new(),
                };
                // What comes from an alias is renamed where its anchor is.
                let paths = paths.into_iter().filter(|path| self.document.locate(path).is_some());
                operations.extend(paths.map(|path| Operation::Set {
                    path,
                    value: new.as_str().into(),
                    beside: None,
                }));
            }
        }
        operations.push(match entry.shape {
            ResourceShape::Item | ResourceShape::Entry => {
                Operation::Rename { path: entry.path.clone(), key: name.to_owned() }
            }
            ResourceShape::BareItem => {
                Operation::Set { path: entry.path.clone(), value: name.into(), beside: None }
            }
            ResourceShape::Single => Operation::Set {
                path: below(&entry.path, "name"),
                value: name.into(),
                beside: None,
            },
        });
        Ok(operations)
    }
}

pub(super) fn below(path: &[Step], step: impl Into<Step>) -> Vec<Step> {
    let mut path = path.to_vec();
    path.push(step.into());
    path
}

/// The index at a depth of a path.
pub(super) fn index_in(path: &[Step], depth: usize) -> usize {
    match path.get(depth) {
        Some(Step::Index(index)) => *index,
        _ => 0,
    }
}
