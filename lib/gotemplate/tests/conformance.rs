//! Every vector of the reference implementation.

mod support;

use support::{Environment, engine, wanted};
use vectors::Vectors;

#[test]
fn conformance_gotemplate() {
    let vectors = Vectors::new("gotemplate.jsonl", env!("CARGO_MANIFEST_DIR"));
    let environments = vectors.environment("gotemplate.env.json");
    vectors.run(|case| {
        let environment = Environment::new(&environments[case["env_ref"].as_str().unwrap_or("")]);
        let delimiter = |side: &str| case[side].as_str().unwrap_or_default();
        let engine = engine(&environment).delimiters(delimiter("left"), delimiter("right"));
        let input = case["input"].as_str().unwrap_or_default();
        let result = engine
            .parse("string", input)
            .and_then(|template| template.render_bytes(&environment.data));
        match result {
            Ok(_) if case["want_error"] == true => Err("no error".to_owned()),
            Err(_) if case["want_error"] == true => Ok(()),
            Ok(bytes) if bytes == wanted(&case["want"]) => Ok(()),
            Ok(bytes) => Err(format!("{:?}", String::from_utf8_lossy(&bytes))),
            Err(error) => Err(error.to_string()),
        }
    });
}
