//! Resolves documents to data.

use ccm_host::Host;
use ccm_template::{Facts, Resolver};
use govalue::{Map, Value};

use crate::error::KEYS;
use crate::provenance::{EntryState, HierarchyEntry};
use crate::{Document, Error, Rule, Warning, mapmerge, rules};

/// Data, resolved and checked.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The data after overrides and merges, as templates see it.
    pub data: Map,
    /// The rules that it keeps.
    pub rules: Vec<Rule>,
    /// Comments that look like rules but are none.
    pub warnings: Vec<Warning>,
    /// The values that must not be shown.
    pub secrets: Vec<String>,
}

/// How the levels of a document are laid over each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    First,
    Deep,
}

/// The data of one level: the base, or an override.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The key of the base, or the name of the override.
    pub(crate) name: String,
    /// The entry of the hierarchy that named the override.
    pub(crate) entry: Option<String>,
    pub(crate) values: Map,
}

impl Level {
    /// Lays the level over those below it.
    pub(crate) fn lay_over(self, data: &mut Map, merge: Merge) {
        match merge {
            _ if data.is_empty() => *data = self.values,
            Merge::Deep => mapmerge::deep(data, &self.values),
            Merge::First => mapmerge::shallow(data, &self.values),
        }
    }
}

impl Document {
    /// Resolves the data for a machine with these facts.
    ///
    /// ```
    /// use ccm_hiera::Document;
    /// use ccm_template::Facts;
    ///
    /// let document = Document::parse("data.yaml", "
    /// hierarchy: { order: [\"os:{{ Facts.os }}\"] }
    /// data: { port: 80 }
    /// overrides:
    ///   os:linux: { port: 8080 }
    /// ")?;
    /// let host = ccm_host::Host::new();
    /// let facts = Facts::known(govalue::Map::from_iter([("os", "linux")]));
    /// let resolved = document.resolve(&host, &facts, None)?;
    /// assert_eq!(resolved.data.get("port"), Some(&govalue::Value::Int(8080)));
    /// # Ok::<(), ccm_hiera::Error>(())
    /// ```
    ///
    /// `over` is laid over the result as it is, before the rules are checked.
    pub fn resolve(
        &self,
        host: &Host,
        facts: &Facts,
        over: Option<&Map>,
    ) -> Result<Resolution, Error> {
        self.resolve_with(host, facts, |data| {
            if let Some(over) = over {
                mapmerge::deep(data, over);
            }
        })
    }

    /// As [`Document::resolve`], with anything done to the result before the
    /// rules are checked.
    pub fn resolve_with(
        &self,
        host: &Host,
        facts: &Facts,
        lay_over: impl FnOnce(&mut Map),
    ) -> Result<Resolution, Error> {
        self.resolved(host, facts, lay_over).map_err(|error| self.located(error))
    }

    fn resolved(
        &self,
        host: &Host,
        facts: &Facts,
        lay_over: impl FnOnce(&mut Map),
    ) -> Result<Resolution, Error> {
        let (levels, merge) = self.levels(host, facts, None)?;
        let mut data = Map::new();
        for level in levels {
            level.lay_over(&mut data, merge);
        }
        lay_over(&mut data);
        let failures = rules::check(&self.annotations.rules, &data);
        if !failures.is_empty() {
            return Err(Error::Rules { failures });
        }
        Ok(Resolution {
            secrets: rules::secrets(&self.annotations.rules, &data),
            data,
            rules: self.annotations.rules.clone(),
            warnings: self.annotations.warnings.clone(),
        })
    }

    /// The data of every level that applies, in the order in which they are laid
    /// over each other, and how that is done. Notes in `entries` what became of
    /// each entry of the hierarchy, if someone asks.
    pub(crate) fn levels(
        &self,
        host: &Host,
        facts: &Facts,
        mut entries: Option<&mut Vec<HierarchyEntry>>,
    ) -> Result<(Vec<Level>, Merge), Error> {
        let engine = Resolver::facts_only(host, facts.clone());
        let (order, merge) = self.hierarchy()?;
        let overrides = match self.root.get("overrides") {
            None | Some(Value::Nil) => None,
            Some(Value::Map(overrides)) => Some(overrides),
            Some(_) => return Err(Error::Shape { section: "overrides", wanted: "a map" }),
        };
        let base = match self.root.get(&self.data_key) {
            Some(Value::Map(data)) => Some(data),
            _ => None,
        };
        let mut levels = Vec::new();
        if let Some(data) = base {
            let values = expand(&engine, data, &[&self.data_key])?;
            levels.push(Level { name: self.data_key.clone(), entry: None, values });
        }
        let mut is_settled = false;
        for (index, &entry) in order.iter().enumerate() {
            let mut note = |name: Option<&str>, state: EntryState| {
                if let Some(entries) = &mut entries {
                    let (written, name) = (entry.to_owned(), name.map(str::to_owned));
                    entries.push(HierarchyEntry { written, name, state });
                }
            };
            if is_settled {
                note(None, EntryState::NotReached);
                continue;
            }
            let resolved = match engine.text(entry) {
                // What the machine does not know of itself matches nothing.
                Err(error @ ccm_template::Error::NoValue { .. }) => {
                    note(None, EntryState::NoValue { reason: error.to_string() });
                    continue;
                }
                resolved => resolved.map_err(|source| Error::Template {
                    path: vec!["hierarchy".into(), "order".into(), index.to_string()],
                    source,
                })?,
            };
            let name = resolved.text.to_str_lossy();
            if !resolved.matched {
                note(Some(&name), EntryState::Empty);
                continue;
            }
            if base.is_some() && name == self.data_key {
                note(Some(&name), EntryState::Data);
                continue;
            }
            let found = overrides.and_then(|overrides| overrides.get(&name));
            let Some(found) = found.and_then(Value::as_map) else {
                note(Some(&name), EntryState::NoOverride);
                continue;
            };
            let values = expand(&engine, found, &["overrides", &name])?;
            note(Some(&name), EntryState::Applied);
            let name = name.into_owned();
            levels.push(Level { name, entry: Some(entry.to_owned()), values });
            is_settled = merge == Merge::First;
        }
        Ok((levels, merge))
    }

    /// The order, and how to merge.
    fn hierarchy(&self) -> Result<(Vec<&str>, Merge), Error> {
        let Some(hierarchy) = self.root.get("hierarchy") else {
            return Ok((vec!["default"], Merge::First));
        };
        let wrong = |section, wanted| Err(Error::Shape { section, wanted });
        let Some(hierarchy) = hierarchy.as_map() else {
            return wrong("hierarchy", "a map with an `order`");
        };
        let Some(order) = hierarchy.get("order").and_then(Value::as_array) else {
            return wrong("hierarchy.order", "a list of strings");
        };
        let order: Option<Vec<&str>> = order.iter().map(Value::as_str).collect();
        let Some(order) = order else {
            return wrong("hierarchy.order", "a list of strings");
        };
        let mut keys = hierarchy.keys().map(|key| key.value().to_string());
        if let Some(key) = keys.find(|key| !KEYS.contains(&key.as_str())) {
            return Err(Error::UnknownKey { key });
        }
        let merge = hierarchy.get("merge");
        if matches!(merge, Some(Value::Array(_) | Value::Map(_))) {
            return wrong("hierarchy.merge", "`first` or `deep`");
        }
        let merge = match merge.and_then(Value::as_str) {
            // Numbers and booleans count as no word, as in the original.
            None | Some("") => Merge::First,
            Some(word) if word.eq_ignore_ascii_case("first") => Merge::First,
            Some(word) if word.eq_ignore_ascii_case("deep") => Merge::Deep,
            Some(word) => return Err(Error::Merge { found: word.to_owned() }),
        };
        Ok((order, merge))
    }
}

fn expand(engine: &Resolver, map: &Map, section: &[&str]) -> Result<Map, Error> {
    let mut expanded = Map::new();
    for (key, value) in map.iter() {
        let value = engine.expand(value, false).map_err(|source| {
            let mut path: Vec<String> = section.iter().map(|&key| key.to_owned()).collect();
            path.push(key.value().to_string());
            Error::Template { path, source }
        })?;
        expanded.insert(key.clone(), value);
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Error {
        let document = Document::parse("h.yaml", text).unwrap();
        document.resolve(&Host::new(), &Facts::default(), None).unwrap_err()
    }

    #[test]
    fn a_wrong_hierarchy_is_told_whether_it_matters_or_not() {
        for (text, wanted, hint) in [
            (
                "hierarchy:\n  order: [a]\n  merge: deap\ndata: {x: 1}\n",
                "h.yaml:3:10: `hierarchy.merge` must be `first` or `deep`, not `deap`",
                Some("did you mean `deep`?"),
            ),
            (
                "{\"hierarchy\": {\"order\": [], \"merges\": \"deep\"}}",
                "h.yaml:1:29: unknown key `merges` in `hierarchy`",
                Some("did you mean `merge`?"),
            ),
            (
                "hierarchy: {order: [], x: 1}",
                "h.yaml:1:24: unknown key `x` in `hierarchy`",
                Some("allowed keys: order, merge"),
            ),
            (
                "hierarchy: {order: 5}",
                "h.yaml:1:20: `hierarchy.order` must be a list of strings",
                None,
            ),
            (
                "hierarchy: {merge: deep}",
                "h.yaml:1:12: `hierarchy.order` must be a list of strings",
                None,
            ),
            (
                "data:\n  a:\n    - \"x{{ Facts.hostnme }}\"\n",
                "h.yaml:3:12: in `data.a`: `Facts.hostnme` has no value",
                Some("for an optional value, write `Facts.hostnme ?? \"default\"`"),
            ),
            (
                "hierarchy: {order: [a, '{{ nope }}']}",
                "h.yaml:1:28: in `hierarchy.order.1`: unknown name nope\n --> expression:1:1\n  |\n1 | nope\n  | ^^^^",
                None,
            ),
        ] {
            let error = error(text);
            assert_eq!(
                (error.to_string().as_str(), error.hint().as_deref()),
                (wanted, hint),
                "{text}"
            );
        }
    }
}
