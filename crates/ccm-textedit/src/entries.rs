//! What an edit wants of the entries of a structured file.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::change::{Change, Refusal, Result};

/// Entries that must be there, members that lists must have, and entries that
/// must not be there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entries {
    /// Values by key. Maps are merged into those of the file, everything else
    /// replaces what is there.
    pub set: Map<String, Value>,
    /// Members that a list must have.
    pub add: Vec<(Pointer, Vec<Value>)>,
    /// Entries that must not be there.
    pub remove: Vec<Pointer>,
}

/// A JSON Pointer: the keys on the way to an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a pointer such as `/Journal/Storage`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let Some(keys) = text.strip_prefix('/') else {
            return Err(format!("`{text}` is not a JSON Pointer such as `/section/key`"));
        };
        keys.split('/').map(unescaped).collect::<Option<_>>().map(Self).ok_or_else(|| {
            format!("`{text}` is not a JSON Pointer: after `~` comes `0` for `~` or `1` for `/`")
        })
    }

    /// The pointer to an entry.
    pub fn of<'k>(keys: impl IntoIterator<Item = &'k str>) -> Self {
        Self(keys.into_iter().map(str::to_owned).collect())
    }

    /// The keys.
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// Whether another entry is this one or is in it.
    fn covers(&self, other: &[String]) -> bool {
        other.starts_with(&self.0)
    }
}

fn unescaped(key: &str) -> Option<String> {
    let mut parts = key.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push(match part.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        });
        text.push_str(&part[1..]);
    }
    Some(text)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|key| write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")))
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.to_string()
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl Entries {
    /// The paths of everything that is set: maps are followed to what is in them.
    pub fn leaves(&self) -> Vec<(Vec<String>, &Value)> {
        let mut leaves = Vec::new();
        let mut path = Vec::new();
        collect(&self.set, &mut path, &mut leaves);
        leaves
    }

    /// Fails if two parts of the edit contradict each other.
    ///
    /// # Errors
    ///
    /// Returns which entry is meant to be two things.
    pub fn check(&self) -> Result<(), String> {
        let set: Vec<Vec<String>> = self.leaves().into_iter().map(|(path, _)| path).collect();
        for pointer in &self.remove {
            let is_kept =
                |path: &Vec<String>| pointer.covers(path) || pointer.keys().starts_with(path);
            if set.iter().any(is_kept) {
                return Err(format!("`{pointer}` is removed and set"));
            }
            if self.add.iter().any(|(list, _)| is_kept(&list.0)) {
                return Err(format!("`{pointer}` is removed, and `add` adds to it"));
            }
        }
        for (list, _) in &self.add {
            if set.iter().any(|path| list.covers(path) || list.keys().starts_with(path)) {
                return Err(format!("`{list}` is set, and `add` adds to it"));
            }
        }
        Ok(())
    }
}

fn collect<'v>(
    map: &'v Map<String, Value>,
    path: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, &'v Value)>,
) {
    for (key, value) in map {
        path.push(key.clone());
        match value {
            Value::Object(map) if !map.is_empty() => collect(map, path, leaves),
            value => leaves.push((path.clone(), value)),
        }
        path.pop();
    }
}

/// The name of an entry in changes: with dots, or the pointer if a key has one.
pub(crate) fn named(keys: &[String]) -> String {
    if keys.iter().any(|key| key.is_empty() || key.contains('.')) {
        return Pointer(keys.to_vec()).to_string();
    }
    keys.join(".")
}

/// The change of an entry. Strings are shown as they are, unless only their type
/// is different.
pub(crate) fn change(keys: &[String], from: Option<&Value>, to: Option<&Value>) -> Change {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (shown_from, shown_to) = (from.map(plain), to.map(plain));
    if shown_from == shown_to {
        let exact = |value: &Value| value.to_string();
        return Change::new(named(keys), from.map(exact), to.map(exact));
    }
    Change::new(named(keys), shown_from, shown_to)
}

/// What a format without types writes for a scalar.
pub(crate) fn scalar_text(keys: &[String], value: &Value) -> Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        other => {
            let (name, kind) = (named(keys), kind_of(other));
            return Err(Refusal::new(format!("`{name}` cannot be {kind} in this format")));
        }
    })
}

/// The kind of a value, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_come_back() {
        for text in ["/a", "/a/b", "/", "//x", "/a~1b/~0", "/a.b"] {
            assert_eq!(Pointer::new(text).unwrap().to_string(), text);
        }
        for text in ["", "a", "a/b", "/~", "/~2", "/a~"] {
            assert!(Pointer::new(text).is_err(), "{text}");
        }
        assert_eq!(Pointer::new("/a~1b/~01").unwrap().keys(), ["a/b", "~1"]);
    }

    #[test]
    fn names_have_dots_unless_a_key_does() {
        let name = |text: &str| named(Pointer::new(text).unwrap().keys());
        assert_eq!(name("/Journal/Storage"), "Journal.Storage");
        assert_eq!(name("/a.b/c"), "/a.b/c");
        assert_eq!(name("//c"), "//c");
    }

    #[test]
    fn contradictions_are_found() {
        let entries = |set: Value, add: &[&str], remove: &[&str]| Entries {
            set: set.as_object().unwrap().clone(),
            add: add.iter().map(|text| (Pointer::new(text).unwrap(), vec![json!(1)])).collect(),
            remove: remove.iter().map(|text| Pointer::new(text).unwrap()).collect(),
        };
        for (set, add, remove, is_right) in [
            (json!({"a": {"b": 1}}), &[][..], &["/a/c"][..], true),
            (json!({"a": {"b": 1}}), &["/a/d"], &["/c"], true),
            (json!({"a": {"b": 1}}), &[], &["/a/b"], false),
            (json!({"a": {"b": 1}}), &[], &["/a"], false),
            (json!({"a": 1}), &[], &["/a/b"], false),
            (json!({}), &["/a"], &["/a"], false),
            (json!({"a": []}), &["/a"], &[], false),
        ] {
            assert_eq!(entries(set.clone(), add, remove).check().is_ok(), is_right, "{set}");
        }
    }

    #[test]
    fn only_a_different_type_is_quoted() {
        let shown = |from: Value, to: Value| {
            let change = change(&["a".to_owned()], Some(&from), Some(&to));
            (change.from.unwrap(), change.to.unwrap())
        };
        assert_eq!(shown(json!("a"), json!("b")), ("a".into(), "b".into()));
        assert_eq!(shown(json!("8080"), json!(8080)), ("\"8080\"".into(), "8080".into()));
    }
}
