//! What expressions read: values and their origins.

use ccm_hiera::{Explanation, Provider};
use ccm_model::{REDACTED, is_secret_name};
use ccm_template::placeholder::Openers;
use ccm_template::{ExpressionReads, LoopItem, Read, ReadKind, Resolver, reads_of_text};
use govalue::Value as Dynamic;
use serde_json::Value;

use super::{WhyOrigin, WhyRead, WhyReadKind};

/// What values are looked up in.
pub(super) struct Lookup<'a> {
    pub(super) templates: &'a Resolver,
    pub(super) explained: &'a Explanation,
}

impl Lookup<'_> {
    /// Everything that expressions read, each thing once. The expressions and
    /// values of a secret property are not shown.
    pub(super) fn reads(&self, found: Vec<ExpressionReads>, is_secret: bool) -> Vec<WhyRead> {
        let mut reads: Vec<WhyRead> = Vec::new();
        for ExpressionReads { expression, reads: inner } in found {
            for read in inner {
                let Some(mut read) = self.read(&read) else { continue };
                read.expression = Some(expression.clone());
                if is_secret {
                    (read.value, read.expression) = (hidden(&read.value), None);
                }
                let is_known =
                    reads.iter().any(|known| known.kind == read.kind && known.key == read.key);
                if !is_known {
                    reads.push(read);
                }
            }
        }
        reads
    }

    /// One thing that is read; nothing for a variable of the expression itself.
    pub(super) fn read(&self, read: &Read) -> Option<WhyRead> {
        let key = match (read.path.join("."), read.is_complete) {
            (key, false) => key + "[…]",
            // All of it.
            (key, true) if key.is_empty() => "*".to_owned(),
            (key, true) => key,
        };
        let read_of = |kind, value| WhyRead {
            kind,
            key: key.clone(),
            value,
            data: None,
            origin: None,
            overrode: Vec::new(),
            merged: Vec::new(),
            expression: None,
        };
        Some(match read.kind {
            ReadKind::Variable => {
                let (root, keys) = read.path.split_first()?;
                let item = self.templates.item()?;
                let value = json(at(item.get(root)?, keys));
                let found = read_of(WhyReadKind::Item, value);
                // What the data says of where it comes from, and whether to show it.
                let behind = item.called(root).and_then(LoopItem::data);
                match behind {
                    Some(behind) => {
                        let data = self.data(&[&behind[..], keys].concat());
                        WhyRead {
                            kind: found.kind,
                            key: found.key,
                            data: Some(data.key.clone()),
                            ..data
                        }
                    }
                    None => found,
                }
            }
            ReadKind::File => read_of(WhyReadKind::File, Value::Null),
            ReadKind::Fact => {
                let facts = self.templates.facts();
                let mut origins = facts.origins(&read.path).into_iter().map(fact_origin);
                let fact = read_of(WhyReadKind::Fact, json(at(facts.get(), &read.path)));
                let origin = origins.next();
                // A map has members of every layer.
                let (merged, overrode) = if fact.value.is_object() {
                    (origins.collect(), Vec::new())
                } else {
                    (Vec::new(), origins.collect())
                };
                WhyRead { origin, overrode, merged, ..fact }
            }
            ReadKind::Environment => {
                let mut value = json(at(self.templates.environ(), &read.path));
                hide_variables(read.path.last(), &mut value);
                read_of(WhyReadKind::Environment, value)
            }
            ReadKind::Data => {
                let data = self.data(&read.path);
                WhyRead { key: key.clone(), ..data }
            }
        })
    }

    /// One data key, with where its value comes from.
    pub(super) fn data(&self, path: &[String]) -> WhyRead {
        let data = self.templates.data();
        let origin = self.explained.origin(&through_maps(data, path));
        let mut supplied = origin.supplied;
        let (kind, key, value) = (WhyReadKind::Data, path.join("."), self.value(path));
        let last = supplied.pop();
        WhyRead {
            kind,
            key,
            value,
            data: None,
            origin: last.as_ref().map(place),
            overrode: origin.overrode.iter().rev().map(place).collect(),
            merged: supplied.iter().rev().map(place).collect(),
            expression: None,
        }
    }

    /// The value of a data key, without what rules call secret.
    pub(super) fn value(&self, path: &[String]) -> Value {
        let mut value = json(at(self.templates.data(), path));
        self.hide(&mut path.to_vec(), &mut value);
        value
    }

    fn hide(&self, path: &mut Vec<String>, value: &mut Value) {
        if self.explained.is_secret(path) {
            *value = hidden(value);
        } else if let Value::Object(map) = value {
            for (key, below) in map.iter_mut() {
                path.push(key.clone());
                self.hide(path, below);
                path.pop();
            }
        }
    }

    /// The facts that a data key depends on: those in its own text, and those
    /// in the entries of the hierarchy that chose its levels.
    pub(super) fn facts_of(&self, path: &[String]) -> Vec<ExpressionReads> {
        let path = through_maps(self.templates.data(), path);
        let supplied = self.explained.origin(&path).supplied;
        let texts = supplied.iter().flat_map(|found| found.template.iter().chain(&found.entry));
        texts.flat_map(|text| reads_of_text(text, Openers::All)).collect()
    }
}

/// Formats a location.
fn place(provider: &Provider) -> WhyOrigin {
    let Provider { file, line, level, .. } = provider.clone();
    WhyOrigin { file, line, level }
}

/// Where a fact comes from: the machine, a file, or the command line.
fn fact_origin(layer: &str) -> WhyOrigin {
    let file = layer.contains('/').then(|| layer.to_owned());
    let level = if file.is_some() { "facts file" } else { layer };
    WhyOrigin { file, line: None, level: level.to_owned() }
}

/// What stands where a value was; nothing stays nothing.
fn hidden(value: &Value) -> Value {
    if value.is_null() { Value::Null } else { REDACTED.into() }
}

/// Hides variables whose names say that they are secret.
fn hide_variables(name: Option<&String>, value: &mut Value) {
    if name.is_some_and(|name| is_secret_name(name)) {
        *value = hidden(value);
    } else if let Value::Object(map) = value {
        for (name, value) in map.iter_mut() {
            hide_variables(Some(name), value);
        }
    }
}

/// The value at a path, through maps and lists.
fn at<'v>(value: &'v Dynamic, path: &[String]) -> Option<&'v Dynamic> {
    path.iter().try_fold(value, |value, key| match value {
        Dynamic::Map(map) => map.get(key),
        Dynamic::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The beginning of a path that leads through maps: levels know no more.
fn through_maps(data: &Dynamic, path: &[String]) -> Vec<String> {
    let mut value = Some(data);
    let is_map = |key: &&String| {
        let Some(Dynamic::Map(map)) = value else { return value.is_none() };
        value = map.get(key);
        true
    };
    path.iter().take_while(is_map).cloned().collect()
}

/// A value of the template languages as JSON.
fn json(value: Option<&Dynamic>) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
