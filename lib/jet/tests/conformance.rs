//! The conformance vectors, rendered the way a configuration tool would:
//! `facts`, `data` and `environ` as variables and in the context, and a few
//! functions on them.

mod support;

use serde_json::Value as Json;
use support::{Environment, judge};
use vectors::Vectors;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn text<'a>(json: &'a Json, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Json::as_str)
}

#[test]
fn conformance_jet() {
    let vectors = Vectors::new("jet.jsonl", CRATE);
    let environments = vectors.environment("jet.env.json");
    vectors.run(|case| {
        let environment = Environment::new(&environments[text(case, "env_ref").unwrap_or("main")]);
        let (left, right) = (text(case, "left"), text(case, "right"));
        let body = text(case, "input").unwrap_or_default();
        let got = environment.render(body, left.unwrap_or("[["), right.unwrap_or("]]"));
        judge(case, &got)
    });
}

#[test]
fn conformance_jet_multi() {
    let vectors = Vectors::new("jet_multi.jsonl", CRATE);
    let environments = vectors.environment("jet_multi.env.json");
    vectors.run(|case| {
        let environment = Environment::new(&environments[text(case, "env_ref").unwrap_or("main")]);
        let input = &case["input"];
        let templates = input["templates"].as_object().into_iter().flatten();
        let templates = templates.filter_map(|(path, body)| Some((path.as_str(), body.as_str()?)));
        let got = environment.render_entry(templates, text(input, "entry").unwrap_or_default());
        judge(case, &got)
    });
}
