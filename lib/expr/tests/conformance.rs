//! Runs the recorded cases of the reference implementation.

mod support;

use std::collections::HashMap;

use serde_json::Value as Json;
use support::World;
use vectors::{Vectors, typed};

/// What is wrong with a case's outcome.
fn judge(case: &Json, world: &World) -> Result<(), String> {
    let input = case["input"].as_str().unwrap_or_default();
    let outcome = world.evaluate(input);
    match (outcome, case["want_error"] == true) {
        (Err(_), true) => Ok(()),
        (Err(error), false) => Err(format!("{:?}: {error}", error.kind())),
        (Ok(value), true) => Err(format!("{} {value}", typed::word(&value))),
        (Ok(value), false) => {
            let type_fits = case["want_type"].as_str() == Some(typed::word(&value));
            let value_fits = typed::same(&value, &typed::decode(&case["want"]));
            let text_fits = typed::same_text(&value, &typed::decode(&case["want_string"]));
            let fits = type_fits && value_fits && text_fits;
            if fits { Ok(()) } else { Err(format!("{} {value}", typed::word(&value))) }
        }
    }
}

#[test]
fn conformance_expr() {
    // Jet is another language: its cases run where both are put together.
    let vectors = Vectors::new("expr.jsonl", env!("CARGO_MANIFEST_DIR")).only(|case| {
        let input = case["input"].as_str().unwrap_or_default();
        !input.contains("jet(") && !input.contains(".jet\"")
    });
    let environments = typed::decode(&vectors.environment("expr.env.json"));
    let worlds: HashMap<&str, World> = environments
        .as_map()
        .into_iter()
        .flat_map(govalue::Map::iter)
        .filter_map(|(name, recorded)| Some((name.as_str()?, World::new(recorded))))
        .collect();
    vectors.run(|case| judge(case, &worlds[case["env_ref"].as_str().unwrap_or_default()]));
}
