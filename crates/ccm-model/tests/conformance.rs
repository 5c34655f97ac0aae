//! Shell quoting and durations against the reference's results.

use ccm_model::{duration, shellquote};
use serde_json::{Value, json};
use vectors::Vectors;

fn compare(case: &Value, got: Result<Value, String>) -> Result<(), String> {
    match (case["want_error"].as_bool().unwrap_or(false), got) {
        (true, Err(_)) => Ok(()),
        (false, Ok(got)) if got == case["want"] => Ok(()),
        (_, Ok(got)) => Err(got.to_string()),
        (_, Err(error)) => Err(format!("error: {error}")),
    }
}

#[test]
fn conformance_shellquote() {
    Vectors::new("shellquote.jsonl", env!("CARGO_MANIFEST_DIR")).run(|case| {
        let input = &case["input"];
        let got = if case["op"] == "shelljoin" {
            let words = input.as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(json!(shellquote::join(words)))
        } else {
            let text = input.as_str().unwrap_or_default();
            shellquote::split(text).map(|words| json!(words)).map_err(|error| error.to_string())
        };
        compare(case, got)
    });
}

#[test]
fn conformance_duration() {
    Vectors::new("duration.jsonl", env!("CARGO_MANIFEST_DIR")).run(|case| {
        let text = case["input"].as_str().unwrap_or_default();
        let got = duration::parse(text).map(|ns| json!(ns)).map_err(|error| error.to_string());
        compare(case, got)
    });
}
