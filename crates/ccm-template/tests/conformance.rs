//! The recorded cases of the reference implementation, with the real functions.
#![expect(clippy::disallowed_methods, reason = "the files of the cases must be somewhere")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has to fail")]

use std::collections::HashMap;

use ccm_model::{Reader, Registration, Resolve as _};
use ccm_template::placeholder::{Openers, scan};
use ccm_template::{Facts, Resolver, Scope};
use govalue::{Map, MapShape, Value};
use serde_json::{Value as Json, json};
use vectors::{Vectors, typed};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The resolvers of a file's environments, by name.
struct Worlds {
    resolvers: HashMap<String, Resolver>,
    /// Keeps the files of the environments.
    _directories: Vec<tempfile::TempDir>,
}

impl Worlds {
    fn new(environments: &Json) -> Self {
        let (mut resolvers, mut directories) = (HashMap::new(), Vec::new());
        for (name, recorded) in environments.as_object().into_iter().flatten() {
            let member = |name: &str, shape: MapShape| match recorded.get(name) {
                Some(members) => {
                    let mut map = Map::with_shape(shape);
                    for (key, value) in typed::decode(members).as_map().unwrap().iter() {
                        map.insert(key.clone(), value.clone());
                    }
                    map
                }
                None => Map::nil(shape),
            };
            let mut scope = Scope {
                facts: Facts::known(member("facts", MapShape::StringAny)),
                data: member("data", MapShape::StringAny),
                environ: member("environ", MapShape::Strings),
                ..Scope::new(&ccm_host::Host::new())
            };
            if let Some(files) = recorded["files"].as_object() {
                let directory = tempfile::tempdir().unwrap();
                for (name, text) in files {
                    let path = directory.path().join(name);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text.as_str().unwrap()).unwrap();
                }
                directory.path().clone_into(&mut scope.directory);
                directories.push(directory);
            }
            let restricted = recorded["restrict"] == true;
            let resolver =
                if restricted { Resolver::restricted(scope) } else { Resolver::new(scope) };
            resolvers.insert(name.clone(), resolver);
        }
        Self { resolvers, _directories: directories }
    }

    fn of(&self, case: &Json) -> &Resolver {
        &self.resolvers[case["env_ref"].as_str().unwrap_or("main")]
    }
}

/// Compares a value, or a failure, with what a case wants.
fn judge(case: &Json, got: Result<Value, ccm_template::Error>) -> Result<(), String> {
    match (got, case["want_error"] == true) {
        (Err(_), true) => Ok(()),
        (Err(error), false) => Err(error.to_string()),
        (Ok(value), true) => Err(format!("{} {value}", typed::word(&value))),
        (Ok(value), false) => {
            let type_fits = case["want_type"].as_str() == Some(typed::word(&value));
            let value_fits = typed::same(&value, &typed::decode(&case["want"]));
            let text = case.get("want_string");
            let text_fits = text.is_none_or(|want| typed::same_text(&value, &typed::decode(want)));
            if type_fits && value_fits && text_fits {
                return Ok(());
            }
            Err(format!("{} {value}", typed::word(&value)))
        }
    }
}

#[test]
fn conformance_template() {
    let vectors = Vectors::new("template.jsonl", CRATE);
    let worlds = Worlds::new(&vectors.environment("template.env.json"));
    vectors.run(|case| {
        let resolver = worlds.of(case);
        let input = case["input"].as_str().unwrap();
        match case["mode"].as_str() {
            Some("string") => {
                let got = resolver.text(input);
                if let Ok(got) = &got {
                    let flags = (got.matched, got.has_expression);
                    if (case["matched"] == true, case["has_expression"] == true) != flags {
                        return Err(format!("(matched, has_expression) = {flags:?}"));
                    }
                }
                judge(case, got.map(|got| got.text.into()))
            }
            Some("typed") => judge(case, resolver.value(input)),
            Some("scan") => {
                // These cases are about what is complete.
                let found = scan(input, Openers::All).filter_map(Result::ok).map(|found| {
                    let offsets = [("start", found.start), ("end", found.end)];
                    let mut map = Map::from_iter(offsets);
                    map.insert("inner", found.inner);
                    map.into()
                });
                judge(case, Ok(Value::array(found)))
            }
            Some("expand") => {
                let input = typed::decode(&serde_json::from_str(input).unwrap());
                judge(case, resolver.expand(&input, false))
            }
            other => Err(format!("the mode {other:?} is not known")),
        }
    });
}

#[test]
fn conformance_expr() {
    let vectors = Vectors::new("expr.jsonl", CRATE);
    let worlds = Worlds::new(&vectors.environment("expr.env.json"));
    vectors.run(|case| judge(case, worlds.of(case).evaluate(case["input"].as_str().unwrap())));
}

#[test]
fn conformance_jet() {
    let vectors = Vectors::new("jet.jsonl", CRATE);
    let worlds = Worlds::new(&vectors.environment("jet.env.json"));
    vectors.run(|case| {
        let side = |name: &str, default| case[name].as_str().unwrap_or(default);
        let delimiters = Some((side("left", "[["), side("right", "]]")));
        let got = worlds.of(case).jet(case["input"].as_str().unwrap(), delimiters);
        judge(case, got.map(Value::from))
    });
}

/// Entries of `register_when_stable`: read, resolved and checked.
#[test]
fn conformance_registration() {
    let publish = |case: &Json| case["op"] == "publish";
    Vectors::new("registration.jsonl", CRATE).only(publish).run(|case| {
        let got = publish_entry(&case["input"]);
        match (got, case["want_error"] == true) {
            (Err(_), true) => Ok(()),
            // The order of the payload's members counts, that of the headers not.
            (Ok(got), false) if got == case["want"] => Ok(()),
            (Ok(got), _) => Err(got.to_string()),
            (Err(error), false) => Err(error),
        }
    });
}

fn publish_entry(input: &Json) -> Result<Json, String> {
    let network = Map::from_iter([("primaryIP", "10.1.2.3")]);
    let info = Map::from_iter([("info", Map::from_iter([("hostname", "web1")]))]);
    let facts = Map::from_iter([("network", network), ("host", info)]);
    let data = typed::decode(&input["data"]).as_map().cloned().unwrap_or_default();
    let host = ccm_host::Host::new();
    let templates = Resolver::new(Scope { facts: Facts::known(facts), data, ..Scope::new(&host) });
    let source = ccm_yaml::Source::new("entry", input["entry"].as_str().unwrap());
    let node = ccm_yaml::parse(&source).map_err(|error| error.to_string())?;
    let mut reader = Reader::default();
    let entry: Option<Registration> = reader.read(node);
    if let Some(finding) = reader.findings.into_iter().next() {
        return Err(finding.message);
    }
    let mut entry = entry.ok_or("not read")?;
    entry.resolve(&templates, false).map_err(|error| error.to_string())?;
    let entry = entry.entry().map_err(|problems| problems.join(", "))?;
    let headers: serde_json::Map<String, Json> = entry
        .headers("REGISTRATION")
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    Ok(json!({"subject": entry.subject(), "payload": entry.payload(), "headers": headers}))
}
