//! Version comparison against recorded results.

use std::cmp::Ordering;

use ccm_resources::package::version::{debian, generic};
use serde_json::{Value, json};
use vectors::Vectors;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case["input"][name].as_str().unwrap_or_default()
}

fn same(got: &Value, case: &Value) -> Result<(), String> {
    if *got == case["want"] { Ok(()) } else { Err(got.to_string()) }
}

fn number(order: Ordering) -> Value {
    json!(order as i8)
}

#[test]
fn conformance_debversion() {
    Vectors::new("debversion.jsonl", CRATE).run(|case| {
        if case["op"] != "debparse" {
            return same(&number(debian::compare(text(case, "a"), text(case, "b"))), case);
        }
        let parsed = debian::Version::parse(case["input"].as_str().unwrap_or_default());
        match (parsed, case["want_error"] == true) {
            (Err(_), true) => Ok(()),
            (Err(error), false) => Err(error.to_string()),
            (Ok(version), true) => Err(version.to_string()),
            (Ok(version), false) => {
                let string = version.to_string();
                let debian::Version { epoch, upstream, revision } = version;
                let got = json!({
                    "epoch": epoch, "revision": revision, "string": string, "upstream": upstream
                });
                same(&got, case)
            }
        }
    });
}

#[test]
fn conformance_versioncmp() {
    Vectors::new("versioncmp.jsonl", CRATE).run(|case| {
        let ignore = case["input"]["ignore_trailing_zeroes"] == true;
        same(&number(generic::compare(text(case, "a"), text(case, "b"), ignore)), case)
    });
}
