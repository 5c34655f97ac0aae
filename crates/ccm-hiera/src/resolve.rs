//! Documents to data.

use ccm_template::{Engine, Facts};
use govalue::{Map, Value};

use crate::{Document, Error, Rule, Warning, mapmerge, rules};

/// Data, resolved and checked.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The data.
    pub data: Map,
    /// The rules that it keeps.
    pub rules: Vec<Rule>,
    /// Comments that look like rules but are none.
    pub warnings: Vec<Warning>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    First,
    Deep,
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
    /// let facts = Facts::known(govalue::Map::from_iter([("os", "linux")]));
    /// let resolved = document.resolve(&facts, None)?;
    /// assert_eq!(resolved.data.get("port"), Some(&govalue::Value::Int(8080)));
    /// # Ok::<(), ccm_hiera::Error>(())
    /// ```
    ///
    /// `over` is laid over the result as it is, before the rules are checked.
    pub fn resolve(&self, facts: &Facts, over: Option<&Map>) -> Result<Resolution, Error> {
        self.resolve_with(facts, |data| {
            if let Some(over) = over {
                mapmerge::deep(data, over);
            }
        })
    }

    /// As [`Document::resolve`], with anything done to the result before the
    /// rules are checked.
    pub fn resolve_with(
        &self,
        facts: &Facts,
        lay_over: impl FnOnce(&mut Map),
    ) -> Result<Resolution, Error> {
        let engine = Engine::facts_only(facts.clone());
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
        let mut data = match base {
            Some(data) => expand(&engine, data, &self.data_key)?,
            None => Map::new(),
        };
        for entry in &order {
            let resolved = match engine.text(entry) {
                // What the machine does not know of itself matches nothing.
                Err(ccm_template::Error::NoValue { .. }) => continue,
                resolved => resolved.map_err(|source| Error::Template {
                    place: format!("hierarchy.order: {entry}"),
                    source,
                })?,
            };
            let name = resolved.text.to_str_lossy();
            if !resolved.matched || (base.is_some() && name == self.data_key) {
                continue;
            }
            let found = overrides.and_then(|overrides| overrides.get(&name));
            let Some(found) = found.and_then(Value::as_map) else { continue };
            let merge = merge.clone()?;
            let found = expand(&engine, found, &format!("overrides.{name}"))?;
            match merge {
                Merge::Deep => mapmerge::deep(&mut data, &found),
                Merge::First => {
                    mapmerge::shallow(&mut data, &found);
                    break;
                }
            }
        }
        lay_over(&mut data);
        let failures = rules::check(&self.annotations.rules, &data);
        if !failures.is_empty() {
            return Err(Error::Rules { failures });
        }
        Ok(Resolution {
            data,
            rules: self.annotations.rules.clone(),
            warnings: self.annotations.warnings.clone(),
        })
    }

    /// The order, and how to merge. A wrong word is wrong only when it is used.
    fn hierarchy(&self) -> Result<(Vec<&str>, Result<Merge, WrongMerge>), Error> {
        let Some(hierarchy) = self.root.get("hierarchy") else {
            return Ok((vec!["default"], Ok(Merge::First)));
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
        let merge = match hierarchy.get("merge").and_then(Value::as_str) {
            None | Some("") => Ok(Merge::First),
            Some(word) if word.eq_ignore_ascii_case("first") => Ok(Merge::First),
            Some(word) if word.eq_ignore_ascii_case("deep") => Ok(Merge::Deep),
            Some(word) => Err(WrongMerge(word.to_owned())),
        };
        Ok((order, merge))
    }
}

#[derive(Clone)]
struct WrongMerge(String);

impl From<WrongMerge> for Error {
    fn from(WrongMerge(found): WrongMerge) -> Self {
        Self::Merge { found }
    }
}

fn expand(engine: &Engine, map: &Map, place: &str) -> Result<Map, Error> {
    let mut expanded = Map::new();
    for (key, value) in map.iter() {
        let value = engine.expand(value, false).map_err(|source| Error::Template {
            place: format!("{place}.{}", key.value()),
            source,
        })?;
        expanded.insert(key.clone(), value);
    }
    Ok(expanded)
}
