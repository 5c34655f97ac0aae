//! Runs the recorded cases of the reference implementation.
#![expect(clippy::disallowed_methods, reason = "the recordings are files outside of the project")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the outcome is for people")]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use govalue::Value;
use govalue::json::{Numbers, decode};
use support::{World, typed};

/// Where the recordings are, unless they are not there.
fn directory() -> Option<PathBuf> {
    let directory = std::env::var_os("CCM_CONFORMANCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
        PathBuf::from,
    );
    if directory.is_dir() {
        return Some(directory);
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no recordings in {}",
        directory.display()
    );
    eprintln!("conformance expr.jsonl: the recordings are not here, so they are not run");
    None
}

/// The cases that differ on purpose, by id, with the reason.
fn deviations() -> BTreeMap<&'static str, &'static str> {
    include_str!("deviations.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .filter_map(|line| line.split_once(' '))
        .collect()
}

/// What is wrong with a case's outcome.
fn judge(case: &Value, world: &World) -> Option<String> {
    let input = case.get("input").and_then(Value::as_str).unwrap_or_default();
    let outcome = world.evaluate(input);
    let wants_error = case.get("want_error") == Some(&Value::Bool(true));
    match outcome {
        Err(_) if wants_error => None,
        Err(error) => Some(format!("{:?}: {error}", error.kind())),
        Ok(value) if wants_error => Some(format!("{} {value}", typed::word(&value))),
        Ok(value) => {
            let type_fits =
                case.get("want_type").and_then(Value::as_str) == Some(typed::word(&value));
            let value_fits = typed::same(&value, case.get("want").unwrap_or(&Value::Nil));
            let text_fits =
                typed::same_text(&value, case.get("want_string").unwrap_or(&Value::Nil));
            (!(type_fits && value_fits && text_fits))
                .then(|| format!("{} {value}", typed::word(&value)))
        }
    }
}

#[test]
fn conformance_expr() {
    let Some(directory) = directory() else { return };
    let read = |name: &str| {
        std::fs::read_to_string(directory.join(name)).expect("the recordings can be read")
    };
    let environments =
        decode(&read("expr.env.json"), Numbers::Ints).expect("environments are JSON");
    let worlds: HashMap<&str, World> = environments
        .as_map()
        .expect("environments by name")
        .iter()
        .filter_map(|(name, recorded)| Some((name.as_str()?, World::new(recorded))))
        .collect();
    let listed = deviations();
    let (mut passed, mut total, mut elsewhere) = (0, 0, 0);
    let mut failures = Vec::new();
    for line in read("expr.jsonl").lines() {
        let case = decode(line, Numbers::Ints).expect("a case is JSON");
        let text = |name: &str| case.get(name).map(ToString::to_string).unwrap_or_default();
        let input = text("input");
        // Jet is another language, with a crate of its own.
        total += 1;
        if input.contains("jet(") || input.contains(".jet\"") {
            elsewhere += 1;
            continue;
        }
        let world = &worlds[text("env_ref").as_str()];
        match judge(&case, world) {
            None => passed += 1,
            Some(_) if listed.contains_key(text("id").as_str()) => {}
            Some(got) => {
                let want = if case.get("want_error") == Some(&Value::Bool(true)) {
                    format!("error: {}", text("error").lines().next().unwrap_or_default())
                } else {
                    format!("{} {}", text("want_type"), text("want_string"))
                };
                failures.push(format!(
                    "{}\n  input {input}\n  want  {want}\n  got   {got}",
                    text("id")
                ));
            }
        }
    }
    println!(
        "conformance expr.jsonl: {passed} of {total} passed, {} listed, {elsewhere} with jet not run here",
        listed.len()
    );
    let most: usize =
        std::env::var("CONFORMANCE_FAILURES").ok().and_then(|most| most.parse().ok()).unwrap_or(20);
    for failure in failures.iter().take(most) {
        println!("{failure}");
    }
    assert!(failures.is_empty(), "{} cases failed that are not listed", failures.len());
    assert!(listed.len() * 100 <= total, "more than 1 % are listed");
}
