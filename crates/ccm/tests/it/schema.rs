//! The schemas: current, valid, and of one mind with the engine.

use std::fs;
use std::path::{Path, PathBuf};

use ccm_engine::{Engine, ManifestError};
use ccm_host::{Cancel, System};
use ccm_model::Severity;
use ccm_resources::TYPES;
use ccm_template::Facts;
use ccm_testkit::Random;
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

pub(crate) fn validator(name: &str) -> Validator {
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
    let engine = Engine::new(System::default(), TYPES);
    let mut options = engine.options(Cancel::default());
    options.inputs.facts = Facts::known(govalue::Map::new());
    let path = Path::new("/nonexistent/case");
    let findings = match engine.load_text(path, yaml.to_owned(), &options) {
        Ok(_) => return Vec::new(),
        Err(ManifestError::Invalid(diagnosis)) => diagnosis.findings,
        Err(error) => panic!("{error}"),
    };
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
    for name in ["manifest", "resource_ensure_request", "response", "event", "plan", "graph", "why"]
    {
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

/// What only the engine can know, by what it says.
const ENGINE_ONLY: [&str; 23] = [
    "path must be absolute",
    "is not a URL",
    "archive type not supported",
    "there are no resources",
    "is declared twice",
    "is not in this manifest",
    "is neither a state nor a version",
    "contains dangerous characters",
    "a resource needs a name",
    "version must start with",
    "cannot be empty",
    "is empty",
    "is not an IPv4 or IPv6 address",
    "must be a whole number from",
    "is not a time to live",
    "has no effect without `tries` above 1",
    "does not contain `{}`",
    "a symlink ",
    "can be forced",
    "only `ensure: ",
    "has no meaning without `purge: true`",
    "is not a path",
    "without `creates`",
];

#[test]
fn anchors_and_empty_guards_are_valid_in_both() {
    let text = "x-common: &common {onlyif: '', cwd: /tmp/}\nx-list: [1]\nccm:\n  resources:\n    \
                - exec: [{a: *common}]\n    - scaffold: {/a: {source: a, left_delimiter: '<<'}}\n";
    assert_eq!(findings(text), [""; 0]);
    assert!(validator("manifest").is_valid(&document(text)));
    assert!(!validator("manifest").is_valid(&document(&text.replace("x-list", "y-list"))));
}

/// Values that some property somewhere minds.
const VALUES: [&str; 24] = [
    "null",
    "true",
    "0",
    "1",
    "-1",
    "777",
    "1777",
    "1.5",
    "[]",
    "{}",
    "[1]",
    "[null]",
    "[\"a\"]",
    "{\"a\": 1}",
    "\"\"",
    "\" \"",
    "\"a\"",
    "\"present\"",
    "\"5s\"",
    "\"0644\"",
    "\"A=b\"",
    "\"exec#a\"",
    "\"{{ 1 }}\"",
    "\"go\"",
];

#[test]
fn no_mutation_makes_engine_and_schema_disagree() {
    let validator = validator("manifest");
    let seeds: Vec<Value> = corpus("valid.txt").iter().map(|(_, text)| document(text)).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let runs = std::env::var("CCM_MUTATIONS").map_or(1500, |count| count.parse().unwrap());
    let (mut valid, mut disagreements) = (0, Vec::new());
    for run in 0..runs {
        let mut value = seeds[run % seeds.len()].clone();
        for _ in 0..=random.below(2) {
            let mut places = count(&value);
            places = random.below(places);
            mutate(&mut value, &mut places, &mut random);
        }
        let text = ccm_yaml::to_yaml(&value);
        let (findings, is_valid) = (findings(&text), validator.is_valid(&document(&text)));
        valid += usize::from(is_valid);
        let is_known = |message: &String| {
            ENGINE_ONLY.iter().any(|word| message.contains(word))
                || (message.ends_with("is required") && text.contains("defaults:"))
        };
        // What a placeholder comes to, no schema knows.
        if is_valid && !text.contains("{{") && !findings.iter().all(is_known) {
            disagreements.push(format!("only the engine refuses: {findings:?}\n{text}"));
        }
        if !is_valid && findings.is_empty() {
            let errors: Vec<_> =
                validator.iter_errors(&document(&text)).map(|error| error.to_string()).collect();
            disagreements.push(format!("only the schema refuses: {errors:?}\n{text}"));
        }
    }
    assert!(valid > runs / 20, "only {valid} of {runs} are valid: the run shows little");
    assert!(
        disagreements.is_empty(),
        "{} of {runs}:\n{}",
        disagreements.len(),
        disagreements.join("\n")
    );
}

/// How many values there are in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value that is so many places further on.
fn mutate(value: &mut Value, place: &mut usize, random: &mut Random) {
    if *place == 0 {
        match value {
            Value::Object(map) if !map.is_empty() && random.below(2) == 0 => {
                let key = map.keys().nth(random.below(map.len())).cloned().unwrap();
                let taken = map.remove(&key).unwrap();
                if random.below(3) == 0 {
                    map.insert(format!("{key}s"), taken);
                }
            }
            Value::Array(items) if !items.is_empty() && random.below(2) == 0 => {
                drop(items.remove(random.below(items.len())));
            }
            _ => *value = serde_json::from_str(VALUES[random.below(VALUES.len())]).unwrap(),
        }
        *place = usize::MAX;
        return;
    }
    *place -= 1;
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    for value in inner {
        if *place == usize::MAX {
            return;
        }
        mutate(value, place, random);
    }
}

#[test]
fn requests_responses_and_events_are_as_their_schemas_say() {
    let env = TestEnv::new();
    let (request, response, event) =
        (validator("resource_ensure_request"), validator("response"), validator("event"));
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
