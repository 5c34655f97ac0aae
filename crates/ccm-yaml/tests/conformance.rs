//! The conformance vectors of edits.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use ccm_yaml::Source;
use ccm_yaml::edit::{Change, Document, Operation};
use serde_json::Value;

#[test]
fn conformance_yaml_edit() {
    vectors::Vectors::new("yaml-edit.jsonl", env!("CARGO_MANIFEST_DIR")).run(check);
}

fn check(case: &Value) -> Result<(), String> {
    let before = case["before"].as_str().unwrap();
    let operation: Operation = serde_json::from_value(case["operation"].clone()).unwrap();
    let edited = edit(before, &operation);
    if let Some(wanted) = case["want_error"].as_str() {
        return match edited {
            Err(kind) if kind == wanted => Ok(()),
            other => Err(format!("{other:?} instead of {wanted}, {case}")),
        };
    }
    let (text, changes) = edited.map_err(|error| format!("{error}, {case}"))?;
    if text != case["after"].as_str().unwrap() {
        return Err(format!(
            "{}\n--- wanted\n{}\n--- got\n{text}---",
            case["note"],
            case["after"].as_str().unwrap()
        ));
    }
    if applied(before, &changes) != text {
        return Err(format!("the changes {changes:?} make another text"));
    }
    // What is there already gives no change.
    if let Operation::Set { path, value, .. } = &operation {
        let again = Operation::Set { path: path.clone(), value: value.clone(), beside: None };
        let (_, changes) = edit(&text, &again)?;
        if !changes.is_empty() {
            return Err(format!("the same again makes {changes:?}"));
        }
    }
    Ok(())
}

fn edit(text: &str, operation: &Operation) -> Result<(String, Vec<Change>), String> {
    let Ok(mut document) = Document::parse(Source::new("t", text)) else {
        return Err("syntax".to_owned());
    };
    match document.apply(std::slice::from_ref(operation)) {
        Ok(changes) => Ok((document.text().to_owned(), changes)),
        Err(error) => {
            assert_eq!(document.text(), text, "a refused edit changes nothing");
            Err(error.kind.word().to_owned())
        }
    }
}

fn applied(text: &str, changes: &[Change]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for change in changes {
        assert!(change.span.start as usize >= at, "in order, not overlapping");
        out.push_str(&text[at..change.span.start as usize]);
        out.push_str(&change.text);
        at = change.span.end as usize;
    }
    out.push_str(&text[at..]);
    out
}
