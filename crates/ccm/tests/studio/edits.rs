//! The cases of edits, through the server.

use serde_json::{Value, json};

use crate::{Studio, read};

#[test]
fn conformance_yaml_edit_through_the_server() {
    let studio = Studio::start(&[]);
    let vectors = vectors::Vectors::new("yaml-edit.jsonl", env!("CARGO_MANIFEST_DIR"));
    vectors.run(|case| check(&studio, case));
}

fn check(studio: &Studio, case: &Value) -> Result<(), String> {
    let before = as_sent(case["before"].as_str().unwrap());
    let body = json!({"text": before, "operations": [case["operation"]], "revision": 7});
    let answer = studio.try_post("edit", &body);
    let (status, answer) = (answer.status, read(&answer));
    if let Some(wanted) = case["want_error"].as_str() {
        let error = &answer["error"];
        return match (status, error["code"].as_str(), error["kind"].as_str()) {
            (422, Some("edit"), Some(kind)) if kind == wanted => Ok(()),
            _ => Err(format!("{status} {answer} instead of {wanted}, {case}")),
        };
    }
    if status != 200 || answer["revision"] != 7 {
        return Err(format!("{status} {answer}, {case}"));
    }
    let text = applied(&before, answer["changes"].as_array().unwrap());
    let after = as_sent(case["after"].as_str().unwrap());
    if text == after {
        return Ok(());
    }
    Err(format!("{}\n--- wanted\n{after}\n--- got\n{text}---", case["note"]))
}

/// A text as pages have it: with LF, and without a byte order mark.
fn as_sent(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

/// A text with changes as the server writes them, the last one first.
fn applied(text: &str, changes: &[Value]) -> String {
    let mut text = text.to_owned();
    for change in changes.iter().rev() {
        let number = |at: usize| change["range"][at].as_u64().unwrap() as usize;
        let start = offset(&text, number(0), number(1));
        let end = offset(&text, number(2), number(3));
        text.replace_range(start..end, change["text"].as_str().unwrap());
    }
    text
}

/// The byte at a line and a column in UTF-16 units, from 0.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut units = 0;
    let before = text[start..].chars().take_while(|found| {
        let is_before = units < column;
        units += found.len_utf16();
        is_before
    });
    start + before.map(char::len_utf8).sum::<usize>()
}
