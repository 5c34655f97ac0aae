//! The laws for formats with nested values. The documents have one entry per line,
//! most with a comment, and every key has the keys above it in its name. So the
//! lines that an edit is about can be told from outside.

use std::collections::BTreeMap;

use ccm_textedit::{Dialect, Edit, Entries, Pointer};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::laws::{is_idempotent, others, same_but_for_a_last_end, starts_as_before};

#[derive(Clone, Debug)]
enum Node {
    Leaf(Value),
    Map(BTreeMap<&'static str, Node>),
}

const LETTERS: &[&str] = &["a", "b", "c"];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        proptest::sample::select(&["1", "", "x y", "é", "true", "# no"][..]).prop_map(Value::from),
        Just(json!([1, "x"])),
        Just(json!([])),
        Just(json!(1.5)),
    ]
}

fn map() -> impl Strategy<Value = BTreeMap<&'static str, Node>> {
    let node = leaf().prop_map(Node::Leaf).prop_recursive(3, 16, 3, |inner| {
        proptest::collection::btree_map(proptest::sample::select(LETTERS), inner, 0..3)
            .prop_map(Node::Map)
    });
    proptest::collection::btree_map(proptest::sample::select(LETTERS), node, 0..4)
}

/// Paths in which every key has those above it in its name.
fn path() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::sample::select(&["a", "b", "c", "n"][..]), 1..4).prop_map(
        |letters| (1..=letters.len()).map(|count| letters[..count].join("_") + "_").collect(),
    )
}

fn edit() -> impl Strategy<Value = Entries> {
    let set = proptest::collection::vec((path(), leaf()), 0..3);
    // A list in a list would take lines that have no key.
    let member = leaf().prop_filter("a scalar", |value| !value.is_array());
    let add = proptest::option::weighted(0.3, (path(), member));
    let remove = proptest::option::weighted(0.4, path());
    (set, add, remove).prop_map(|(set, add, remove)| {
        let mut wanted = Map::new();
        for (path, value) in set {
            put(&mut wanted, &path, value);
        }
        let pointer = |path: &Vec<String>| Pointer::of(path.iter().map(String::as_str));
        let mut entries = Entries {
            set: wanted,
            add: add.iter().map(|(path, value)| (pointer(path), vec![value.clone()])).collect(),
            remove: remove.iter().map(pointer).collect(),
        };
        if entries.check().is_err() {
            entries.add.clear();
            entries.remove.clear();
        }
        entries
    })
}

fn put(map: &mut Map<String, Value>, path: &[String], value: Value) {
    let (key, rest) = path.split_first().unwrap();
    if rest.is_empty() {
        map.insert(key.clone(), value);
        return;
    }
    let inner = map.entry(key.clone()).or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    put(inner.as_object_mut().unwrap(), rest, value);
}

/// What the operation makes of a value, worked out a second time.
fn expected(mut value: Value, entries: &Entries) -> Value {
    fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
        for (key, value) in from {
            match (into.get_mut(key), value) {
                (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
                _ => drop(into.insert(key.clone(), value.clone())),
            }
        }
    }
    let map = value.as_object_mut().unwrap();
    merge(map, &entries.set);
    for (pointer, members) in &entries.add {
        let mut list = value.pointer(&pointer.to_string()).cloned().unwrap_or(json!([]));
        for member in members {
            let list = list.as_array_mut().unwrap();
            if !list.contains(member) {
                list.push(member.clone());
            }
        }
        put(value.as_object_mut().unwrap(), pointer.keys(), list);
    }
    for pointer in &entries.remove {
        let (key, above) = pointer.keys().split_last().unwrap();
        let above = above.iter().try_fold(&mut value, |value, key| value.get_mut(key));
        if let Some(map) = above.and_then(Value::as_object_mut) {
            map.shift_remove(key);
        }
    }
    value
}

fn value_of(map: &BTreeMap<&'static str, Node>, above: &str) -> Value {
    let entry = |(letter, node): (&&str, &Node)| {
        let key = format!("{above}{letter}_");
        let value = match node {
            Node::Leaf(value) => value.clone(),
            Node::Map(map) => value_of(map, &key),
        };
        (key, value)
    };
    Value::Object(map.iter().map(entry).collect())
}

/// How a document looks.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
struct Look {
    crlf: bool,
    bom: bool,
    stub: bool,
    comments: bool,
    trailing: bool,
}

fn look() -> impl Strategy<Value = Look> {
    any::<(bool, bool, bool, bool, bool)>().prop_map(|(crlf, bom, stub, comments, trailing)| Look {
        crlf,
        bom,
        stub,
        comments,
        trailing,
    })
}

impl Look {
    fn finish(self, mut text: String) -> Vec<u8> {
        if self.stub {
            text.truncate(text.trim_end_matches('\n').len());
        }
        if self.crlf {
            text = text.replace('\n', "\r\n");
        }
        if self.bom {
            text.insert(0, '\u{feff}');
        }
        text.into_bytes()
    }

    fn note(self, sign: &str, count: usize) -> String {
        if self.comments && count.is_multiple_of(2) {
            format!(" {sign} note {count}")
        } else {
            String::new()
        }
    }
}

fn json_text(map: &Map<String, Value>, indent: usize, look: Look, out: &mut String) {
    let pad = " ".repeat(indent + 2);
    for (index, (key, value)) in map.iter().enumerate() {
        let is_last = index + 1 == map.len();
        let comma = if is_last && !look.trailing { "" } else { "," };
        if look.comments && index % 3 == 0 {
            out.push_str(&format!("{pad}// above\n"));
        }
        let note = look.note("//", out.len());
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push_str(&format!("{pad}\"{key}\": {{{note}\n"));
                json_text(inner, indent + 2, look, out);
                out.push_str(&format!("{pad}}}{comma}\n"));
            }
            value => out.push_str(&format!("{pad}\"{key}\": {value}{comma}{note}\n")),
        }
    }
}

fn yaml_text(map: &Map<String, Value>, indent: usize, look: Look, out: &mut String) {
    let pad = " ".repeat(indent);
    for (key, value) in map {
        let note = look.note("#", out.len());
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push_str(&format!("{pad}{key}:{note}\n"));
                yaml_text(inner, indent + 2, look, out);
            }
            value => out.push_str(&format!("{pad}{key}: {value}{note}\n")),
        }
    }
}

fn toml_text(map: &Map<String, Value>, header: &str, look: Look, out: &mut String) {
    for (key, value) in map.iter().filter(|(_, value)| !value.is_object()) {
        let note = look.note("#", out.len());
        out.push_str(&format!("{key} = {value}{note}\n"));
    }
    for (key, value) in map {
        if let Value::Object(inner) = value {
            let header = if header.is_empty() { key.clone() } else { format!("{header}.{key}") };
            let note = look.note("#", out.len());
            out.push_str(&format!("[{header}]{note}\n"));
            toml_text(inner, &header, look, out);
        }
    }
}

/// Every line is kept that has none of the keys in it that the edit names.
fn keeps_other_lines(before: &[u8], after: &[u8], entries: &Entries) -> Result<(), TestCaseError> {
    prop_assert!(starts_as_before(before, after));
    let paths = entries.leaves().into_iter().map(|(path, _)| path);
    let more = entries.add.iter().map(|(pointer, _)| pointer).chain(&entries.remove);
    let paths: Vec<Vec<String>> =
        paths.chain(more.map(|pointer| pointer.keys().to_vec())).collect();
    // A key on the way may be a scalar that becomes a map.
    let is_named = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let line = line.split(" // note").next().unwrap_or_default();
        let is_bracket = line.trim_matches([' ', ',', '{', '}', '[', ']']).is_empty();
        let is_above = line.trim() == "// above";
        is_bracket || is_above || paths.iter().flatten().any(|key| line.contains(key.as_str()))
    };
    // A comma may come or go behind the last entry of a map.
    let plain =
        |text: &[u8]| text.iter().copied().filter(|byte| *byte != b',').collect::<Vec<u8>>();
    let (before, after) = (plain(before), plain(after));
    let (mut before, mut after) = (others(&before, &is_named), others(&after, &is_named));
    // If the last entry of a file without a last line end goes, the file may stay one.
    for line in [before.last_mut(), after.last_mut()].into_iter().flatten() {
        *line = line.trim_ascii_end();
    }
    prop_assert_eq!(before, after);
    Ok(())
}

fn without_notes(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let cut = |line: &str| line.split(" // note").next().unwrap_or_default().to_owned();
    text.lines().filter(|line| line.trim() != "// above").map(|line| cut(line) + "\n").collect()
}

proptest! {
    #[test]
    fn json_obeys_the_laws(map in map(), look in look(), entries in edit()) {
        let value = value_of(&map, "");
        let mut text = String::from("{\n");
        json_text(value.as_object().unwrap(), 0, look, &mut text);
        text.push_str("}\n");
        let text = look.finish(text);
        let Some(after) = is_idempotent(&text, &Edit::Json(entries.clone()))? else { return Ok(()) };
        keeps_other_lines(&text, &after, &entries)?;
        if !look.trailing {
            let read: Value = serde_json::from_str(&without_notes(&after)).unwrap();
            prop_assert_eq!(read, expected(value, &entries));
        }
    }

    #[test]
    fn compact_json_obeys_the_laws(map in map(), entries in edit(), is_spaced in any::<bool>()) {
        let value = value_of(&map, "");
        let mut text = value.to_string();
        if is_spaced {
            text = text.replace("\":", "\": ").replace(",\"", ", \"");
        }
        let edit = Edit::Json(entries.clone());
        let Some(after) = is_idempotent(text.as_bytes(), &edit)? else { return Ok(()) };
        let read: Value = serde_json::from_slice(&after).unwrap();
        prop_assert_eq!(read, expected(value, &entries));
    }

    #[test]
    fn yaml_obeys_the_laws(map in map(), look in look(), entries in edit()) {
        let value = value_of(&map, "");
        let mut text = String::new();
        yaml_text(value.as_object().unwrap(), 0, look, &mut text);
        let text = look.finish(text);
        let edit = Edit::Yaml(entries.clone(), 0);
        let Some(after) = is_idempotent(&text, &edit)? else { return Ok(()) };
        keeps_other_lines(&text, &after, &entries)?;
        let read = ccm_yaml::Source::new("t", String::from_utf8(after).unwrap().trim_start_matches('\u{feff}').to_owned());
        let read = ccm_yaml::to_value(&ccm_yaml::parse(&read).unwrap());
        let read = match serde_json::to_value(&read).unwrap() {
            Value::Null => json!({}),
            read => read,
        };
        prop_assert_eq!(read, expected(value, &entries));
    }

    #[test]
    fn toml_obeys_the_laws(map in map(), look in look(), entries in edit()) {
        let value = value_of(&map, "");
        let mut text = String::new();
        toml_text(value.as_object().unwrap(), "", look, &mut text);
        let text = look.finish(text);
        let Some(after) = is_idempotent(&text, &Edit::Toml(entries.clone()))? else { return Ok(()) };
        keeps_other_lines(&text, &after, &entries)?;
    }

    #[test]
    fn properties_obey_the_laws(
        lines in proptest::collection::vec(proptest::sample::select(&[
            "a_=1", "a_ = 2", "a_: x", "a_ y", "a_", "b_=1", "b_=a\\\n  b_b", "c_='q'", "c_=\"q\" # x",
            "export c_=1", "# note", "! note", "", "  b_=2", "b_=$x", "c_=é",
        ][..]), 0..7),
        look in look(),
        set in proptest::collection::btree_map(
            proptest::sample::select(&["a_", "b_", "c_", "n_"][..]),
            proptest::sample::select(&["1", "", "x y", "it's", "$x", "é", " l", "\\", "#"][..]),
            0..3,
        ),
        is_shell in any::<bool>(),
    ) {
        let text = look.finish(lines.join("\n") + "\n");
        let set: Map<String, Value> =
            set.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let entries = Entries { set, ..Entries::default() };
        let dialect = if is_shell { Dialect::Shell } else { Dialect::Java };
        let edit = Edit::Properties(entries.clone(), dialect);
        let Some(after) = is_idempotent(&text, &edit)? else { return Ok(()) };
        prop_assert!(starts_as_before(&text, &after));
        let is_named = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            entries.set.keys().any(|key| line.contains(key.as_str()))
        };
        let (before, after) = (others(&text, &is_named), others(&after, &is_named));
        prop_assert!(same_but_for_a_last_end(&before, &after), "{before:?} {after:?}");
    }

    /// Whatever a file holds, nothing panics, and what is edited obeys the first law.
    #[test]
    fn any_bytes(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        text in "[\\[\\]{}a_=:,#\"'\\\\ \n\r-]{0,40}",
        entries in edit(),
    ) {
        for text in [bytes, text.into_bytes()] {
            for edit in [
                Edit::Ini(entries.clone()),
                Edit::Json(entries.clone()),
                Edit::Yaml(entries.clone(), 0),
                Edit::Toml(entries.clone()),
                Edit::Properties(entries.clone(), Dialect::Java),
                Edit::Properties(entries.clone(), Dialect::Shell),
            ] {
                is_idempotent(&text, &edit)?;
            }
        }
    }
}
