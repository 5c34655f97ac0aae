//! Documents, places, several operations at once, and refusals.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use ccm_yaml::Source;
use ccm_yaml::edit::{Change, Document, EditErrorKind, Operation, Step, compose, path};
use serde_json::{Value, json};

const TEXT: &str = "\
# head
a:
  # about b
  b: 1  # one
  c: [x, {d: 2}]

# tail of a
e: |
  text
";

fn document(text: &str) -> Document {
    Document::parse(Source::new("t", text)).unwrap()
}

fn operations(operations: Value) -> Vec<Operation> {
    serde_json::from_value(operations).unwrap()
}

fn applied(text: &str, changes: &[Change]) -> String {
    let mut text = text.to_owned();
    for change in changes.iter().rev() {
        text.replace_range(change.span.start as usize..change.span.end as usize, &change.text);
    }
    text
}

#[test]
fn several_operations_are_one_list_of_changes() {
    let mut edited = document(TEXT);
    let all = operations(json!([
        {"op": "set", "path": ["a", "b"], "value": 2},
        {"op": "set", "path": ["a", "c", 0], "value": "y"},
        {"op": "set", "path": ["a", "b"], "value": 3},
        {"op": "insert", "path": ["a", "c"], "index": 2, "value": "z"},
        {"op": "rename", "path": ["a", "b"], "key": "bb"},
        {"op": "set", "path": ["a", "f"], "value": "new", "before": "c"},
        {"op": "remove", "path": ["e"]},
    ]));
    let changes = edited.apply(&all).unwrap();
    let after =
        "# head\na:\n  # about b\n  bb: 3  # one\n  f: new\n  c: [y, {d: 2}, z]\n\n# tail of a\n";
    // The comment above `e` belongs to it.
    assert_eq!(edited.text(), after.replace("# tail of a\n", ""), "{}", edited.text());
    assert_eq!(applied(TEXT, &changes), edited.text());
    assert!(changes.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
}

#[test]
fn all_operations_or_none() {
    let mut edited = document(TEXT);
    let all = operations(json!([
        {"op": "set", "path": ["a", "b"], "value": 2},
        {"op": "remove", "path": ["nowhere"]},
    ]));
    let error = edited.apply(&all).unwrap_err();
    assert_eq!(error.kind, EditErrorKind::Missing);
    assert_eq!(error.to_string(), "there is no `nowhere`");
    assert_eq!(edited.text(), TEXT);
    assert_eq!(edited.apply(&[]).unwrap(), []);
}

#[test]
fn changes_of_several_rounds_are_composed() {
    let mut edited = document(TEXT);
    let first = edited.apply(&operations(json!([{"op": "remove", "path": ["a", "b"]}]))).unwrap();
    let set = json!([{"op": "set", "path": ["a", "b"], "value": {"k": [1, 2]}}]);
    let second = edited.apply(&operations(set)).unwrap();
    let changes = compose(TEXT.len(), [first, second]);
    assert_eq!(applied(TEXT, &changes), edited.text());
}

#[test]
fn places_have_keys_values_and_comments() {
    let document = document(TEXT);
    let slice = |span: ccm_yaml::Span| &TEXT[span.start as usize..span.end as usize];
    let place = document.locate(&path(["a", "b"])).unwrap();
    assert_eq!(slice(place.key.unwrap()), "b");
    assert_eq!(slice(place.value), "1");
    assert_eq!(slice(place.whole), "# about b\n  b: 1  # one");
    let place = document.locate(&path(["e"])).unwrap();
    assert_eq!(slice(place.value), "|\n  text");
    let inner: Vec<Step> = vec!["a".into(), "c".into(), 1.into(), "d".into()];
    assert_eq!(slice(document.locate(&inner).unwrap().value), "2");
    assert!(document.locate(&path(["a", "nowhere"])).is_none());
    assert_eq!(document.locate(&[]).unwrap().key, None);
}

#[test]
fn bytes_have_paths() {
    let document = document(TEXT);
    let at = |text: &str| {
        let steps = document.path_at(TEXT.find(text).unwrap() as u32);
        steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
    };
    for (text, wanted) in [
        ("# head", ""),
        ("a:", "a"),
        ("# about b", "a/b"),
        ("1  # one", "a/b"),
        ("# one", "a/b"),
        ("x, {", "a/c/0"),
        ("2}", "a/c/1/d"),
        ("text\n", "e"),
    ] {
        assert_eq!(at(text), wanted, "{text}");
    }
    assert_eq!(document.path_at(u32::MAX), []);
}

#[test]
fn what_cannot_be_edited_is_refused_with_a_place_and_a_hint() {
    for (text, operation, kind) in [
        (
            "a: !!int 5\n",
            json!({"op": "set", "path": ["a"], "value": 6}),
            EditErrorKind::Unsupported,
        ),
        (
            "? a\n: 1\nb: 2\n",
            json!({"op": "set", "path": ["a"], "value": 6}),
            EditErrorKind::Unsupported,
        ),
        (
            "- [a: 1]\n",
            json!({"op": "set", "path": [0, 0, "a"], "value": 6}),
            EditErrorKind::Unsupported,
        ),
        (
            "a: {}\n",
            json!({"op": "set", "path": ["a", "<<"], "value": {}}),
            EditErrorKind::Unsupported,
        ),
        (
            "a: 1\rb: 2\r",
            json!({"op": "set", "path": ["a"], "value": 6}),
            EditErrorKind::Unsupported,
        ),
        (
            "a: &x {p: 1}\nb: {<<: *x}\n",
            json!({"op": "rename", "path": ["b", "p"], "key": "q"}),
            EditErrorKind::Merged,
        ),
        (
            "a: &x [1]\nb: *x\n",
            json!({"op": "insert", "path": ["b"], "index": 0, "value": 1}),
            EditErrorKind::Alias,
        ),
    ] {
        let mut edited = document(text);
        let error = edited.apply(&operations(json!([operation]))).unwrap_err();
        assert_eq!(error.kind, kind, "{text}: {error}");
        assert!(error.span.is_some(), "{text}");
        assert_eq!(edited.text(), text);
    }
    // To stand beside is fine.
    let mut edited = document("? a\n: 1\nb: !!int 2\n");
    edited.apply(&operations(json!([{"op": "set", "path": ["c"], "value": 3}]))).unwrap();
    assert_eq!(edited.text(), "? a\n: 1\nb: !!int 2\nc: 3\n");
}

#[test]
fn hostile_texts_are_read_in_bounded_time() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..5 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        laughs.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    let mut edited = document(&laughs);
    let set = operations(json!([{"op": "set", "path": ["a0", 0], "value": "y"}]));
    edited.apply(&set).unwrap();
    assert!(edited.text().starts_with("a0: &a0 [y, x,"));
    assert!(Document::parse(Source::new("t", "[".repeat(10_000))).is_err());
    let long = format!("a: {}\nb: 1\n", "x".repeat(1 << 20));
    let mut edited = document(&long);
    edited.apply(&operations(json!([{"op": "set", "path": ["b"], "value": 2}]))).unwrap();
    assert!(edited.text().ends_with("\nb: 2\n"));
}

#[test]
fn operations_are_json() {
    let text =
        r#"[{"op":"set","path":["a",0],"value":null,"after":"b"},{"op":"copy","path":[1],"to":0}]"#;
    let operations: Vec<Operation> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&operations).unwrap(), text);
    assert!(serde_json::from_str::<Operation>(r#"{"op": "burn", "path": []}"#).is_err());
}

/// Blank lines that an entry leaves behind would go to the block scalar above.
#[test]
fn blank_lines_do_not_move_into_what_is_above() {
    let text = "- >\n a\n- b\n\n  \n\n- c\n";
    let mut document = document(text);
    let _ = document.apply(&operations(json!([{"op": "remove", "path": [1]}])));
    let read = Document::parse(Source::new("t", document.text())).unwrap().value(&[]);
    let is_refused = document.text() == text;
    assert!(is_refused || read == Some(json!(["a\n", "c"])), "{:?}", document.text());
}
