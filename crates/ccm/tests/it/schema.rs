//! The schemas: current, valid, and of one mind with the engine.

use std::fs;
use std::path::{Path, PathBuf};

use ccm_engine::Declarations;
use ccm_model::Severity;
use ccm_resources::TYPES;
use ccm_template::{Engine, Scope};
use ccm_yaml::Source;
use jsonschema::Validator;
use serde_json::Value;

use crate::TestEnv;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(name: &str) -> Value {
    let text = fs::read_to_string(root().join(format!("schemas/v1/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn validator(name: &str) -> Validator {
    let schema = schema(name);
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A document as JSON has it.
fn document(yaml: &str) -> Value {
    let source = Source::new("case", yaml);
    let root = ccm_yaml::parse(&source).unwrap_or_else(|error| panic!("{}: {yaml}", error.message));
    let value = ccm_yaml::to_value(&root);
    let json = govalue::json::encode(&value, govalue::json::Options::default()).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// What the engine has against a manifest.
fn findings(yaml: &str) -> Vec<String> {
    let source = Source::new("case", yaml);
    let root = ccm_yaml::parse(&source).unwrap();
    let data = ccm_yaml::to_value(&root).get("data").and_then(govalue::Value::as_map).cloned();
    let engine = Engine::new(Scope { data: data.unwrap_or_default(), ..Scope::default() });
    let (_, findings) = Declarations::read(&source, TYPES, &engine, false);
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.message).collect()
}

/// The cases of a file: title and text.
fn corpus(name: &str) -> Vec<(String, String)> {
    let path = root().join("crates/ccm/tests/corpus").join(name);
    let text = fs::read_to_string(path).unwrap();
    let cases = text.split("\n=== ").skip(1).map(|case| {
        let (title, text) = case.split_once('\n').unwrap_or((case, ""));
        (title.to_owned(), text.to_owned())
    });
    cases.collect()
}

#[test]
fn the_schemas_are_current() {
    let env = TestEnv::new();
    for name in ["manifest", "request", "response", "event"] {
        let printed = env.run(["schema", name]).stdout;
        let printed: Value = serde_json::from_slice(&printed).unwrap();
        assert!(printed == schema(name), "{name} is not current: run `cargo xtask schemas`");
        validator(name);
    }
}

#[test]
fn what_is_right_passes_both() {
    let validator = validator("manifest");
    let mut cases = corpus("valid.txt");
    let examples = ["quickstart", "nested", "nested/site", "scaffold"];
    for directory in examples {
        for entry in fs::read_dir(root().join("examples").join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                cases.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(cases.len() >= 12, "{}", cases.len());
    for (title, text) in cases {
        let errors: Vec<_> =
            validator.iter_errors(&document(&text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{title}: the schema says {errors:?}");
        if !title.contains("examples/") {
            assert_eq!(findings(&text), [""; 0], "{title}");
        }
    }
}

#[test]
fn what_is_wrong_fails_both_or_is_listed() {
    let validator = validator("manifest");
    let cases = corpus("invalid.txt");
    assert!(cases.len() >= 150, "{}", cases.len());
    let mut wrong = Vec::new();
    for (title, text) in &cases {
        let is_listed = title.contains(" | engine only: ");
        if findings(text).is_empty() {
            wrong.push(format!("{title}: the engine accepts it"));
        }
        if validator.is_valid(&document(text)) != is_listed {
            let word = if is_listed { "knows, it need not be listed" } else { "accepts it" };
            wrong.push(format!("{title}: the schema {word}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn requests_responses_and_events_are_as_their_schemas_say() {
    let env = TestEnv::new();
    let (request, response, event) =
        (validator("request"), validator("response"), validator("event"));
    let check = |validator: &Validator, value: &Value| {
        let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {value}");
    };
    let protocol = "io.choria.ccm.v1.resource.ensure.request";
    for (properties, is_right) in [
        (
            r#""type": "exec", "properties": {"name": "true", "health_checks": [{"command": "true"}]}"#,
            true,
        ),
        (r#""type": "exec", "properties": {"name": "false", "alias": "x"}"#, true),
        (r#""type": "exec", "properties": {"name": "x", "command": "{{ nope }}"}"#, true),
        (
            r#""type": "pkg", "properties": {"name": "ccm-no-such-package", "ensure": "absent"}"#,
            true,
        ),
        (r#""type": "exec", "properties": {}"#, false),
        (r#""type": "exec", "properties": {"name": "a", "nope": 1}"#, false),
        (r#""type": "apply", "properties": {"name": "a"}"#, false),
        (r#""type": "exec""#, false),
        (r#""properties": {"name": "a"}"#, false),
    ] {
        let text = format!(r#"{{"protocol": "{protocol}", {properties}}}"#);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(request.is_valid(&value), is_right, "{text}");
        env.write("request.json", &text);
        let input = fs::File::open(env.path("request.json")).unwrap();
        let output =
            env.command(["ensure", "api", "pipe", "--noop"]).stdin(input).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        check(&response, &answer);
        assert_eq!(answer.get("state").is_some(), is_right, "{answer}");
        if let Some(state) = answer.get("state") {
            check(&event, state);
        }
    }
}
