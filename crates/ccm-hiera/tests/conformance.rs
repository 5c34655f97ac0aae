//! The recorded cases of the reference implementation.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has to fail")]

use ccm_hiera::{DATA, Document, Resolution, mapmerge, validator};
use ccm_template::Facts;
use govalue::{Map, Value};
use serde_json::{Value as Json, json};
use vectors::{Vectors, typed};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn map(json: &Json) -> Map {
    typed::decode(json).as_map().cloned().unwrap_or_default()
}

fn resolve(input: &Json) -> Result<Resolution, ccm_hiera::Error> {
    let key = input["data_key"].as_str().unwrap_or(DATA);
    let document = Document::parse_keyed("case", input["text"].as_str().unwrap(), key)?;
    let over = input.get("data_overrides").map(map);
    document.resolve(&ccm_host::Host::new(), &Facts::known(map(&input["facts"])), over.as_ref())
}

#[test]
fn conformance_hiera() {
    Vectors::new("hiera.jsonl", CRATE).run(|case| {
        let resolved = match (resolve(&case["input"]), case["want_error"] == true) {
            (Err(_), true) => return Ok(()),
            (Err(error), false) => return Err(error.to_string()),
            (Ok(resolved), true) => return Err(Value::from(resolved.data).to_string()),
            (Ok(resolved), false) => resolved,
        };
        let rules: Vec<_> = resolved
            .rules
            .iter()
            .map(|rule| {
                let validation = rule.validation.as_deref().unwrap_or_default();
                json!({"key": rule.key, "required": rule.required, "validation": validation})
            })
            .collect();
        if case.get("rules").is_some_and(|want| *want != Json::from(rules.clone())) {
            return Err(format!("rules {rules:?}"));
        }
        let warnings: Vec<_> = resolved
            .warnings
            .iter()
            .map(|warning| format!("{}: {}", warning.key, warning.annotation))
            .collect();
        if case.get("warnings").unwrap_or(&json!([])) != &Json::from(warnings.clone()) {
            return Err(format!("warnings {warnings:?}"));
        }
        let data = Value::from(resolved.data);
        let fits = typed::same(&data, &typed::decode(&case["want"]));
        if fits { Ok(()) } else { Err(data.to_string()) }
    });
}

#[test]
fn conformance_validator() {
    Vectors::new("validator.jsonl", CRATE).run(|case| {
        let text = |name: &str| case["input"][name].as_str().unwrap();
        match validator::check(text("value"), text("expr")) {
            Err(_) if case["want_error"] == true => Ok(()),
            Ok(holds) if case["want"] == holds => Ok(()),
            got => Err(format!("{got:?}")),
        }
    });
}

#[test]
fn conformance_mapmerge() {
    Vectors::new("mapmerge.jsonl", CRATE).run(|case| {
        let input = &case["input"];
        let (mut target, over) = (map(&input["target"]), map(&input["source"]));
        match input["mode"].as_str() {
            Some("deep") => mapmerge::deep(&mut target, &over),
            _ => mapmerge::shallow(&mut target, &over),
        }
        let merged = Value::from(target);
        let fits = typed::same(&merged, &typed::decode(&case["want"]));
        if fits { Ok(()) } else { Err(merged.to_string()) }
    });
}
