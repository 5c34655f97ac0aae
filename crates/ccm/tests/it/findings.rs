//! What is said of wrong manifests, requests and command lines, and how much
//! of them is looked at.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::TestEnv;

#[test]
fn a_duplicate_key_hides_nothing() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - a: {command: x, command: y, timeout: soon}\n        \
         - b: {comand: z}\n    - file:\n        - /f: {owner: a, owner: b}\n",
    );
    let text = env.ccm(["validate", "manifest.yaml"]);
    for words in [
        "duplicate key `command`",
        "exec#a: timeout: `soon` is not a duration",
        "exec#b: unknown property `comand`",
        "duplicate key `owner`",
        "file#/f: property `group` is required",
    ] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
}

#[test]
fn an_error_in_the_data_hides_nothing_that_is_known_without_it() {
    let env = TestEnv::new();
    env.manifest(
        "hierarchy: {merge: deep}\ndata: {mode: \"0644\"}\nccm:\n  resources:\n    - exec:\n        \
         - a: {comand: x, timeout: soon, require: [\"exec#later\"]}\n    - file:\n        \
         - /f: {owner: a, group: b, mode: \"{{ Data.mode }}\"}\n",
    );
    let text = env.ccm(["validate", "manifest.yaml"]);
    for words in [
        "`hierarchy.order` must be a list",
        "exec#a: unknown property `comand`",
        "exec#a: timeout: `soon` is not a duration",
    ] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
    assert!(!text.contains("Data.mode"), "there is no data to resolve with: {text}");
}

#[test]
fn the_caret_is_at_the_reference_that_is_wrong() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - a: {}\n        - b:\n            require:\n              \
         - exec#a\n              - exec#nope\n            subscribe: [exec#a, exec#gone]\n",
    );
    let text = env.ccm(["validate", "manifest.yaml"]);
    assert!(text.contains("manifest.yaml:8:17"), "{text}");
    assert!(text.contains("manifest.yaml:9:33"), "{text}");
}

#[test]
fn wrong_values_name_the_resource_and_the_property() {
    let env = TestEnv::new();
    let request = "{\"protocol\": \"io.choria.ccm.v1.resource.ensure.request\", \"type\": \"file\", \
                   \"properties\": {\"name\": \"/x\", \"content\": [1]}}\n";
    let mut child = env
        .command(["ensure", "api", "pipe", "--noop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    let answer = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(answer.contains("file#/x: content: expected a string, found a list"), "{answer}");

    let output = env.run(["ensure", "exec", "true", "--returns", "many"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{stderr}");
    assert!(stderr.contains("--returns") && stderr.contains("many"), "{stderr}");
}

#[test]
fn an_event_tells_what_the_guards_said() {
    let env = TestEnv::new();
    let event = |args: &[&str]| -> serde_json::Value {
        let output = env.command(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let ran = event(&["ensure", "exec", "true", "--exec-if", "true", "--json"]);
    assert_eq!(ran["changed"], true);
    assert_eq!(ran["status"]["onlyif_satisfied"], true);
    assert_eq!(ran["status"]["unless_satisfied"], false);
    let kept = event(&["ensure", "exec", "true", "--exec-unless", "true", "--json"]);
    assert_eq!(kept["changed"], false);
    assert_eq!(kept["status"]["unless_satisfied"], true);
}

#[test]
fn empty_names_and_commands_are_told_in_known_words() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{file: [{/a: {owner: \"\", group: \"\", mode: \"0644\"}}]}, {exec: [{a: \
         {provider: shell, command: \" \"}}, {b: {command: \" \"}}]}]}",
    );
    let text = env.ccm(["validate", "manifest.yaml"]);
    for words in [
        "owner: user name cannot be empty",
        "group: group name cannot be empty",
        "exec#a: command: no command to execute",
        "exec#b: command: no command specified",
    ] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
}

#[test]
fn manifests_that_are_too_large_are_refused() {
    let env = TestEnv::new();
    let file = std::fs::File::create(env.path("long.yaml")).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    let text = env.ccm(["validate", "long.yaml"]);
    assert!(text.starts_with("exit: 1\n"), "{text}");
    assert!(text.contains("larger than 268435456 bytes") && text.contains("split it"), "{text}");
}

#[test]
fn diffs_of_long_texts_are_only_counted() {
    let env = TestEnv::new();
    let lines = |from: usize| {
        (from..from + 150_000).fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    };
    env.write("f", &lines(0));
    env.write("new", &lines(75_000));
    let begin = Instant::now();
    let output = env.run([
        "ensure",
        "file",
        "[DIR]/f",
        "--content-file",
        "[DIR]/new",
        "--noop",
        "--diff=all",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("too long for a diff, +75000 -75000 lines"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
