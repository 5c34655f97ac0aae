//! Where resolved data comes from: for each key the level that supplied it and
//! those that it overrode, for each entry of the hierarchy why it did not match.

use std::collections::HashMap;

use ccm_host::Host;
use ccm_template::placeholder::Openers;
use ccm_template::{Facts, ReadKind, reads_of_text};
use govalue::{Map, Value};

use crate::resolve::{Level, Merge};
use crate::{Document, Error};

/// An entry of the hierarchy, and whether it applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyEntry {
    /// The entry as written.
    pub written: String,
    /// The name that it stands for on this machine, where it has one.
    pub name: Option<String>,
    /// Whether it matched.
    pub state: EntryState,
}

/// Whether an entry of the hierarchy applied, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// An override of its name was applied.
    Applied,
    /// There is no override of its name.
    NoOverride,
    /// A placeholder has no value.
    NoValue {
        /// Which, and what may have been meant.
        reason: String,
    },
    /// All placeholders gave the empty string.
    Empty,
    /// It names the base data, which is there anyway.
    Data,
    /// Another entry before it matched, and only the first one counts.
    NotReached,
}

impl std::fmt::Display for EntryState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Applied => f.write_str("applies"),
            Self::NoOverride => f.write_str("has no override"),
            Self::NoValue { reason } => f.write_str(reason),
            Self::Empty => f.write_str("its placeholders are empty"),
            Self::Data => f.write_str("is the base data"),
            Self::NotReached => f.write_str("not reached: an earlier entry applies"),
        }
    }
}

/// Where one level has a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// The document, if it was read from a text of its own.
    pub file: Option<String>,
    /// The line of the key.
    pub line: Option<usize>,
    /// The level: the key of the base data, or the name of the override.
    pub level: String,
    /// The entry of the hierarchy that the level was named by.
    pub entry: Option<String>,
    /// The text with placeholders that the value comes from, if it has any.
    pub template: Option<String>,
    /// The value that the level has for the key, with placeholders resolved.
    pub value: Option<Value>,
}

/// Where a key comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// What it comes from, the strongest last. Several where maps or lists were
    /// merged, none where there is no such key.
    pub supplied: Vec<Provider>,
    /// Overridden levels, the lowest precedence first.
    pub overrode: Vec<Provider>,
}

/// The levels that data was resolved from, in the order in which they override
/// each other.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The hierarchy, document by document.
    pub entries: Vec<HierarchyEntry>,
    /// The facts that hierarchy and values ask for, as dotted paths.
    pub facts: Vec<String>,
    documents: Vec<Layers>,
    secrets: Vec<String>,
}

/// The levels of one document.
#[derive(Clone, Debug)]
struct Layers {
    file: Option<String>,
    lines: HashMap<Vec<String>, usize>,
    root: Map,
    data_key: String,
    levels: Vec<Level>,
    merge: Merge,
    /// The merged values.
    values: Map,
}

impl Document {
    /// Explains what [`Document::resolve`] makes of the data.
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
    /// let explained = document.explain(&ccm_host::Host::new(), &facts)?;
    /// let origin = explained.origin(&["port".to_owned()]);
    /// assert_eq!((origin.supplied[0].level.as_str(), origin.supplied[0].line), ("os:linux", Some(5)));
    /// assert_eq!(origin.overrode[0].level, "data");
    /// assert_eq!(origin.overrode[0].value, Some(80.into()));
    /// assert_eq!(explained.facts, ["os"]);
    /// # Ok::<(), ccm_hiera::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns why the data cannot be resolved. Rules are not checked.
    pub fn explain(&self, host: &Host, facts: &Facts) -> Result<Explanation, Error> {
        let mut entries = Vec::new();
        let (levels, merge) =
            self.levels(host, facts, Some(&mut entries)).map_err(|error| self.located(error))?;
        let mut values = Map::new();
        for level in levels.iter().cloned() {
            level.lay_over(&mut values, merge);
        }
        let mut asked = Vec::new();
        for entry in entries.iter().filter(|entry| entry.state != EntryState::NotReached) {
            add_facts(&entry.written, &mut asked);
        }
        let layers = Layers {
            file: self.name().map(str::to_owned),
            lines: self.key_lines(),
            root: self.root.clone(),
            data_key: self.data_key.clone(),
            levels,
            merge,
            values,
        };
        for level in &layers.levels {
            if let Some(written) = layers.section(level) {
                written.values().for_each(|value| facts_of(value, &mut asked));
            }
        }
        let rules = self.annotations.rules.iter().filter(|rule| rule.secret);
        let secrets = rules.map(|rule| rule.key.clone()).collect();
        Ok(Explanation { entries, facts: asked, documents: vec![layers], secrets })
    }
}

impl Explanation {
    /// Data that stands in no document, as one level of this name.
    pub fn of_values(level: &str, values: Map) -> Self {
        let (name, data_key) = (level.to_owned(), level.to_owned());
        let levels = vec![Level { name, entry: None, values: values.clone() }];
        let layers = Layers {
            file: None,
            lines: HashMap::new(),
            root: Map::new(),
            data_key,
            levels,
            merge: Merge::Deep,
            values,
        };
        Self { documents: vec![layers], ..Self::default() }
    }

    /// Overrides this with other data, as external data overrides a manifest's.
    pub fn lay_over(&mut self, above: Self) {
        self.entries.extend(above.entries);
        self.documents.extend(above.documents);
        self.secrets.extend(above.secrets);
        for fact in above.facts {
            if !self.facts.contains(&fact) {
                self.facts.push(fact);
            }
        }
    }

    /// The merged data of all levels, whether or not rules hold.
    pub fn data(&self) -> Map {
        let mut data = Map::new();
        for document in &self.documents {
            crate::mapmerge::deep(&mut data, &document.values);
        }
        data
    }

    /// Where the key at this path comes from.
    pub fn origin(&self, path: &[String]) -> Origin {
        let mut laid = Laid::default();
        for document in &self.documents {
            laid.lay(path, &document.values, Merge::Deep, document.origin(path));
        }
        laid.origin
    }

    /// Whether a rule says that the value at this path must not be shown.
    pub fn is_secret(&self, path: &[String]) -> bool {
        let mut key = String::new();
        path.iter().any(|part| {
            if !key.is_empty() {
                key.push('.');
            }
            // As rules write the keys that they are about.
            if part.contains('.') {
                key.push_str(&format!("'{part}'"));
            } else {
                key.push_str(part);
            }
            self.secrets.contains(&key)
        })
    }
}

impl Layers {
    fn origin(&self, path: &[String]) -> Origin {
        let mut laid = Laid::default();
        for level in &self.levels {
            // The base is laid on nothing.
            let supplied = vec![self.provider(level, path)];
            let origin = Origin { supplied, overrode: Vec::new() };
            laid.lay(path, &level.values, self.merge, origin);
        }
        laid.origin
    }

    fn provider(&self, level: &Level, path: &[String]) -> Provider {
        let mut whole: Vec<String> = match level.entry {
            None => vec![self.data_key.clone()],
            Some(_) => vec!["overrides".to_owned(), level.name.clone()],
        };
        whole.extend(path.iter().cloned());
        // A placeholder can give a whole map: then the line is that of its key.
        let mut line = None;
        while line.is_none() && !whole.is_empty() {
            line = self.lines.get(&whole).copied();
            whole.pop();
        }
        Provider {
            file: self.file.clone(),
            line,
            level: level.name.clone(),
            entry: level.entry.clone(),
            template: self.section(level).and_then(|written| template(written, path)),
            value: value_at(&level.values, path).cloned(),
        }
    }

    /// The values of a level as written.
    fn section(&self, level: &Level) -> Option<&Map> {
        let section = match level.entry {
            None => self.root.get(&self.data_key),
            Some(_) => self.root.get("overrides").and_then(|all| all.get(&level.name)),
        };
        section.and_then(Value::as_map)
    }
}

fn value_at<'a>(values: &'a Map, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(values.get(first)?, |value, key| value.as_map()?.get(key))
}

/// The text with placeholders at a path, or at the beginning of it.
fn template(written: &Map, path: &[String]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let mut value = written.get(first)?;
    for key in rest {
        match value {
            Value::Map(map) => value = map.get(key)?,
            _ => break,
        }
    }
    let text = value.as_str()?;
    let has_placeholder = !reads_of_text(text, Openers::All).is_empty();
    has_placeholder.then(|| text.to_owned())
}

/// A path while maps are laid over each other.
#[derive(Default)]
struct Laid {
    origin: Origin,
    /// Whether a map, a list or something else is there.
    kind: Option<std::mem::Discriminant<Value>>,
}

impl Laid {
    /// Lays a map over what there is, as `mapmerge` does. `origin` tells where
    /// the map has the key from; what it has overridden counts even if it does
    /// not have the key any more.
    fn lay(&mut self, path: &[String], over: &Map, merge: Merge, origin: Origin) {
        let Some((first, rest)) = path.split_first() else { return };
        let Origin { supplied, overrode } = origin;
        let mut value = over.get(first);
        let mut is_replaced = value.is_some() && merge != Merge::Deep;
        for key in rest {
            let Some(found) = value else { break };
            // What is no map replaces one.
            is_replaced |= found.as_map().is_none();
            value = found.as_map().and_then(|map| map.get(key));
        }
        let kind = value.map(std::mem::discriminant);
        let is_collection = matches!(value, Some(Value::Map(_) | Value::Array(_)));
        is_replaced |= value.is_some() && !(is_collection && self.kind == kind);
        if is_replaced {
            self.origin.overrode.append(&mut self.origin.supplied);
            self.kind = None;
        }
        self.origin.overrode.extend(overrode);
        if value.is_some() {
            self.origin.supplied.extend(supplied);
            self.kind = kind;
        }
    }
}

/// Adds the facts that a text with placeholders asks for.
fn add_facts(text: &str, into: &mut Vec<String>) {
    let reads = reads_of_text(text, Openers::All).into_iter().flat_map(|found| found.reads);
    for read in reads.filter(|read| read.kind == ReadKind::Fact) {
        let key = read.path.join(".");
        if !into.contains(&key) {
            into.push(key);
        }
    }
}

fn facts_of(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            if let Some(text) = text.as_str().filter(|text| text.contains('{')) {
                add_facts(text, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| facts_of(item, into)),
        Value::Map(map) => map.values().for_each(|item| facts_of(item, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts::known(Map::from_iter([("os", "debian"), ("role", "web"), ("empty", "")]))
    }

    fn explain(text: &str) -> Explanation {
        Document::parse("h.yaml", text).unwrap().explain(&Host::new(), &facts()).unwrap()
    }

    fn shown(explained: &Explanation, key: &str) -> String {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        let origin = explained.origin(&path);
        let list = |providers: &[Provider]| {
            let one = |p: &Provider| format!("{}:{}", p.level, p.line.unwrap_or_default());
            providers.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        format!("{} < {}", list(&origin.supplied), list(&origin.overrode))
    }

    const DEEP: &str = "\
hierarchy:
  order: ['role:{{ Facts.role }}', 'os:{{ Facts.os }}', 'site:{{ Facts.site }}', '{{ Facts.empty }}', rack, data]
  merge: deep
data:
  port: 80
  web: {host: a, tags: [x], only: 1}
  gone: {deep: 1}
overrides:
  role:web:
    port: 81
    web: {host: b}
    gone: 5
  os:debian:
    port: '{{ 41 + 41 }}'
    web:
      tags: [y]
";

    #[test]
    fn deep_merges_are_followed_key_by_key() {
        let explained = explain(DEEP);
        for (key, wanted) in [
            ("port", "os:debian:14 < data:5 role:web:10"),
            ("web.host", "role:web:11 < data:6"),
            ("web.only", "data:6 < "),
            ("web.tags", "data:6 os:debian:16 < "),
            ("web", "data:6 role:web:11 os:debian:15 < "),
            ("gone", "role:web:12 < data:7"),
            ("gone.deep", " < data:7"),
            ("nothing", " < "),
        ] {
            assert_eq!(shown(&explained, key), wanted, "{key}");
        }
        let port = explained.origin(&["port".to_owned()]);
        assert_eq!(port.supplied[0].template.as_deref(), Some("{{ 41 + 41 }}"));
        assert_eq!(port.supplied[0].entry.as_deref(), Some("os:{{ Facts.os }}"));
        assert_eq!(port.overrode[0].template, None);
    }

    #[test]
    fn entries_say_why_they_did_not_match() {
        let explained = explain(DEEP);
        let states: Vec<String> =
            explained.entries.iter().map(|entry| entry.state.to_string()).collect();
        assert_eq!(
            states,
            [
                "applies",
                "applies",
                "`Facts.site` has no value",
                "its placeholders are empty",
                "has no override",
                "is the base data"
            ]
        );
        assert_eq!(explained.entries[1].name.as_deref(), Some("os:debian"));
        assert_eq!(explained.facts, ["role", "os", "site", "empty"]);
    }

    #[test]
    fn the_first_match_replaces_whole_keys() {
        let explained = explain(
            "hierarchy: {order: ['os:{{ Facts.os }}', 'role:{{ Facts.role }}']}\n\
             data: {web: {a: 1, b: 2}, x: '{{ Facts.host }}'}\n\
             overrides:\n  os:debian: {web: {a: 3}}\n  role:web: {web: {b: 4}}\n",
        );
        assert_eq!(shown(&explained, "web.a"), "os:debian:4 < data:2");
        assert_eq!(shown(&explained, "web.b"), " < data:2");
        assert_eq!(explained.entries[1].state, EntryState::NotReached);
        assert_eq!(explained.facts, ["os", "host"]);
    }

    #[test]
    fn external_data_is_laid_over_all_of_it() {
        let mut explained = explain(DEEP);
        let external = Document::parse(
            "external.yaml",
            "data:\n  # @secret\n  port: 99\n  web: {host: c}\n  'a.b': 1\n",
        );
        explained.lay_over(external.unwrap().explain(&Host::new(), &facts()).unwrap());
        assert_eq!(shown(&explained, "port"), "data:3 < data:5 role:web:10 os:debian:14");
        assert_eq!(shown(&explained, "web.host"), "data:4 < data:6 role:web:11");
        let port = explained.origin(&["port".to_owned()]);
        assert_eq!(port.supplied[0].file.as_deref(), Some("external.yaml"));
        assert!(explained.is_secret(&["port".to_owned()]));
        assert!(explained.is_secret(&["port".to_owned(), "below".to_owned()]));
        assert!(!explained.is_secret(&["web".to_owned()]));
    }

    proptest::proptest! {
        /// What is explained is what is resolved: a key has a supplier if and only
        /// if it is there.
        #[test]
        fn keys_that_are_there_come_from_somewhere(
            base in "(\\{(a: (1|\\[1\\]|\\{b: 1\\}|\\{c: \\{b: 2\\}\\}), )?d: 1\\})",
            one in "(\\{(a: (1|\\[1\\]|\\{b: 1\\}|\\{c: 3\\}), )?e: 1\\})",
            two in "(\\{(a: (1|\\[1\\]|\\{b: 1\\}|\\{c: \\{b: 2\\}\\}), )?f: 1\\})",
            merge in "(first|deep)",
        ) {
            let text = format!(
                "hierarchy: {{order: [one, two], merge: {merge}}}\ndata: {base}\noverrides:\n  one: {one}\n  two: {two}\n"
            );
            let document = Document::parse("t", &text).unwrap();
            let data = document.resolve(&Host::new(), &Facts::default(), None).unwrap().data;
            let explained = document.explain(&Host::new(), &Facts::default()).unwrap();
            for key in ["a", "a.b", "a.c", "a.c.b", "d", "e", "f", "g"] {
                let path: Vec<String> = key.split('.').map(str::to_owned).collect();
                let mut value = Some(&Value::from(data.clone())).cloned();
                for part in &path {
                    value = value.and_then(|value| value.as_map().and_then(|map| map.get(part).cloned()));
                }
                let is_supplied = !explained.origin(&path).supplied.is_empty();
                proptest::prop_assert_eq!(is_supplied, value.is_some(), "{} in {}", key, text);
            }
        }
    }
}
