//! Edits as the vectors write them: the properties of a manifest as JSON.

use ccm_textedit::{
    Anchor, BlockEdit, Comment, Dialect, Edit, Entries, IfMissing, LineEdit, Pattern, Pointer,
    Which,
};
use serde_json::{Map, Value};

/// The edit that these properties are.
pub(crate) fn edit(format: &str, spec: &str) -> Edit {
    let spec: Map<String, Value> =
        serde_json::from_str(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let known = ["absent", "line", "match", "which", "if_missing", "after", "before", "block"];
    let more = ["name", "comment", "set", "add", "remove", "document"];
    for key in spec.keys() {
        assert!(known.contains(&key.as_str()) || more.contains(&key.as_str()), "{key}");
    }
    let text = |key: &str| spec.get(key).and_then(Value::as_str);
    let absent = spec.get("absent").is_some();
    match format {
        "line" => Edit::Line(LineEdit {
            absent,
            line: text("line").map(str::to_owned),
            pattern: text("match").map(pattern),
            which: text("which").map(|word| match word {
                "first" => Which::First,
                "last" => Which::Last,
                "only" => Which::Only,
                word => panic!("{word}"),
            }),
            if_missing: match text("if_missing") {
                None | Some("insert") => IfMissing::Insert,
                Some("skip") => IfMissing::Skip,
                Some("error") => IfMissing::Error,
                Some(word) => panic!("{word}"),
            },
            anchor: anchor(text("after"), text("before")),
        }),
        "block" => Edit::Block(BlockEdit {
            absent,
            name: text("name").unwrap_or("n").to_owned(),
            block: text("block").unwrap_or_default().to_owned(),
            comment: text("comment").map_or(Comment::Hash, |word| {
                Comment::ALL.into_iter().find(|comment| comment.as_str() == word).unwrap()
            }),
            anchor: anchor(text("after"), text("before")),
        }),
        "ini" => Edit::Ini(entries(&spec)),
        "json" => Edit::Json(entries(&spec)),
        "yaml" => {
            let document = spec.get("document").and_then(Value::as_u64).unwrap_or(0);
            Edit::Yaml(entries(&spec), usize::try_from(document).unwrap())
        }
        "toml" => Edit::Toml(entries(&spec)),
        "properties" => Edit::Properties(entries(&spec), Dialect::Java),
        "shell" => Edit::Properties(entries(&spec), Dialect::Shell),
        format => panic!("{format}"),
    }
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn anchor(after: Option<&str>, before: Option<&str>) -> Anchor {
    match (after, before) {
        (Some("start"), None) | (None, Some("start")) => Anchor::Start,
        (None | Some("end"), None) | (None, Some("end")) => Anchor::End,
        (Some(text), None) => Anchor::After(pattern(text)),
        (None, Some(text)) => Anchor::Before(pattern(text)),
        (Some(_), Some(_)) => panic!("two anchors"),
    }
}

fn entries(spec: &Map<String, Value>) -> Entries {
    let pointer = |text: &str| Pointer::new(text).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let add = spec.get("add").and_then(Value::as_object).into_iter().flatten();
    let remove = spec.get("remove").map(list).unwrap_or_default();
    Entries {
        set: spec.get("set").and_then(Value::as_object).cloned().unwrap_or_default(),
        add: add.map(|(key, value)| (pointer(key), list(value))).collect(),
        remove: remove.iter().map(|value| pointer(value.as_str().unwrap())).collect(),
    }
}
