//! What holds for every text and every path.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use gjson::{Document, Path};
use govalue::{Map, Value, json};
use proptest::prelude::*;

/// Texts that are nearly JSON, and some that are far from it.
fn any_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[\\[\\]{}:,\" ]",
        2 => prop::sample::select(vec![
            "\"a\":", "\"b\"", "\"a.b\":", "1", "-2.5e3", "true", "nul", "\\", "\\u", "\\ud800",
            "é", "\n", "[[1,2],[3]]", "{\"a\":{\"b\":[1]}}", "nan", "\"x*\":",
        ]).prop_map(str::to_owned),
    ];
    prop_oneof![
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat()),
        any::<String>(),
        value().prop_map(|value| json::encode(&value, json::Options::default()).unwrap()),
    ]
}

/// Paths of everything that has a meaning, in and out of place.
fn any_path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "0",
        "1",
        ".",
        ".",
        ".",
        "|",
        "|",
        "#",
        "#.",
        "#(",
        ")",
        "#[",
        "]",
        "[",
        "{",
        "}",
        ",",
        ":",
        "*",
        "?",
        "\\",
        "!",
        "~",
        "==",
        "!=",
        "<",
        "%",
        "\"a\"",
        "\"",
        "@reverse",
        "@flatten",
        "@dig:",
        "@this",
        "@pretty",
        "@keys",
        "@values",
        "@group",
        "@join",
        "@tostr",
        "@fromstr",
        "@ugly",
        "@valid",
        "@nope",
        "{\"deep\":true}",
        "..",
        "!true",
        "!5",
        "é",
        " ",
        "~true",
    ]);
    prop_oneof![
        4 => prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

const NAMES: [&str; 10] = ["a", "b", "0", "1", "", "a b", "é", "x@y", "-1", "<&>"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-9i64..9).prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no other", |float| float.is_finite())
            .prop_map(Value::from),
        (-9i64..9).prop_map(|int| Value::from(int as f64)),
        any::<String>().prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..6)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map>())),
        ]
    })
}

fn plain_path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..5)
        .prop_map(|names| names.join("."))
        .prop_filter("two dots in front stand for lines", |path| !path.starts_with(".."))
}

/// The same path over the text and over the value.
fn agree(root: Value, path: &Path) -> Result<(), TestCaseError> {
    let from_value = path.lookup(&root);
    let document = Document::new(root);
    let found = path.get(document.text().unwrap());
    let from_text = found.and_then(|found| found.exists().then(|| found.lookup()).transpose());
    prop_assert_eq!(&from_value, &from_text, "{}", document.text().unwrap());
    prop_assert_eq!(&document.lookup(path), &from_text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(json in any_json(), path in any_path()) {
        if let Ok(found) = gjson::get(&json, &path) {
            let _ = (found.text().len(), found.number(), found.value(), found.lookup());
            prop_assert!(found.exists() || found.raw().is_empty());
        }
    }

    #[test]
    fn plain_paths_agree(root in value(), path in plain_path()) {
        let path = Path::compile(&path);
        prop_assert!(path.is_plain());
        agree(root, &path)?;
    }

    #[test]
    fn any_paths_agree(root in value(), path in any_path()) {
        agree(root, &Path::compile(&path))?;
    }

    #[test]
    fn paths_with_a_plain_part_agree(root in value(), plain in plain_path(), rest in any_path(), dot in any::<bool>()) {
        let path = format!("{plain}{}{rest}", if dot { "." } else { "|" });
        agree(root, &Path::compile(&path))?;
    }

    #[test]
    fn values_come_back(root in value()) {
        let text = json::encode(&root, json::Options::default()).unwrap();
        let floats = json::decode(&text, json::Numbers::Floats).unwrap();
        prop_assert_eq!(gjson::get(&text, "@this").unwrap().value(), Ok(floats.clone()));
        for layout in ["@ugly", "@pretty", "@pretty:{\"width\":10}"] {
            prop_assert_eq!(gjson::get(&text, layout).unwrap().value(), Ok(floats.clone()));
        }
    }
}
