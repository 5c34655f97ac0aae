//! The type `edit` through the binary: conflicts, plans, undo, kills.

use std::process::Stdio;

use ccm_testkit::wait_until;

use crate::TestEnv;
use crate::history::{fails, newest, ok, said};

/// A manifest of edits, in flow style.
fn edits(env: &TestEnv, entries: &str) {
    env.manifest(&format!("ccm: {{resources: [{{edit: [{entries}]}}]}}"));
}

#[test]
fn validate_finds_edits_of_what_is_written_whole() {
    let env = TestEnv::new();
    let file = "file: [{\"[DIR]/f\": {content: x, [ME], mode: \"0644\"CONTROL}}]";
    let edit = "edit: [{\"[DIR]/f\": {format: line, line: x}}]";
    for (file, edit, is_wrong) in [
        (file.replace("CONTROL", ""), edit.to_owned(), true),
        (file.replace("content: x, ", "").replace("CONTROL", ""), edit.to_owned(), false),
        (file.replace("CONTROL", ", control: {if: \"true\"}"), edit.to_owned(), false),
        (file.replace("CONTROL", ""), edit.replace("/f", "/g"), false),
    ] {
        for resources in [format!("{{{file}}}, {{{edit}}}"), format!("{{{edit}}}, {{{file}}}")] {
            env.manifest(&format!("ccm: {{resources: [{resources}]}}"));
            let output = env.run(["validate", "manifest.yaml"]);
            assert_eq!(!output.status.success(), is_wrong, "{resources}: {}", said(&output));
            let message = "/f writes the whole content; this edit would be lost";
            assert_eq!(said(&output).contains(message), is_wrong, "{}", said(&output));
        }
    }
}

#[test]
fn validate_warns_if_match_does_not_match_line() {
    let env = TestEnv::new();
    edits(&env, "{\"[DIR]/f\": {format: line, line: Port 1, match: \"^#Port\"}}");
    let said = ok(&env, ["validate", "manifest.yaml"]);
    let warning = "a later change of this line would not be recognised";
    assert!(said.contains(warning), "{said}");
    edits(&env, "{\"[DIR]/f\": {format: line, line: Port 1, match: \"^#?Port\"}}");
    assert!(!ok(&env, ["validate", "manifest.yaml"]).contains(warning));
}

#[test]
fn an_edit_that_undoes_another_fails_before_it_writes() {
    let env = TestEnv::new();
    env.write("f", "x 1\n");
    edits(
        &env,
        "{one: {path: \"[DIR]/f\", format: line, line: x 2, match: ^x}}, \
         {two: {path: \"[DIR]/f\", format: line, line: x 3, match: ^x}}",
    );
    for _ in 0..2 {
        let said = fails(&env, ["apply", "manifest.yaml"]);
        assert!(said.contains("this edit undoes edit#one of"), "{said}");
        assert_eq!(env.read("f"), "x 2\n");
    }
}

#[test]
fn a_scaffold_that_writes_the_file_is_found_in_the_run() {
    let env = TestEnv::new();
    env.write("source/f", "text\n");
    env.manifest(
        "ccm: {resources: [{scaffold: [{\"[DIR]/t\": {source: source}}]}, \
         {edit: [{\"[DIR]/t/f\": {format: line, line: x}}]}]}",
    );
    for _ in 0..2 {
        let said = fails(&env, ["apply", "manifest.yaml"]);
        assert!(said.contains("/t writes the whole content; this edit would be lost"), "{said}");
    }
    assert_eq!(env.read("t/f"), "text\n");
}

/// A saved plan looks at the entries of the edit.
#[test]
fn foreign_changes_elsewhere_do_not_make_a_plan_stale() {
    let env = TestEnv::new();
    let text = "[s]\nk = 1\n[t]\nl = 1\n";
    env.write("f", text);
    edits(&env, "{\"[DIR]/f\": {format: ini, set: {s: {k: 2}}}}");
    ok(&env, ["plan", "manifest.yaml", "--out", "one.plan"]);
    env.write("f", &text.replace("l = 1", "l = 9"));
    ok(&env, ["apply", "one.plan"]);
    assert_eq!(env.read("f"), "[s]\nk = 2\n[t]\nl = 9\n");
    env.write("f", text);
    ok(&env, ["plan", "manifest.yaml", "--out", "two.plan"]);
    env.write("f", &text.replace("k = 1", "k = 3"));
    let output = env.run(["apply", "two.plan"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(env.read("f"), "[s]\nk = 3\n[t]\nl = 1\n");
}

#[test]
fn undo_gives_back_the_file() {
    let env = TestEnv::new();
    env.write("f", "a\n");
    edits(
        &env,
        "{\"[DIR]/f\": {format: line, line: x}}, \
         {\"[DIR]/g\": {format: json, set: {a: 1}, create: true, [ME], mode: \"0644\"}}",
    );
    ok(&env, ["apply", "manifest.yaml"]);
    assert_eq!((env.read("f"), env.read("g")), ("a\nx\n".into(), "{\n  \"a\": 1\n}\n".into()));
    ok(&env, ["undo"]);
    assert_eq!(env.read("f"), "a\n");
    assert!(!env.path("g").exists());
    ok(&env, ["apply", "manifest.yaml"]);
    env.write("f", "a\nx\nmore\n");
    let output = env.run(["undo"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(env.read("f"), "a\nx\nmore\n");
}

#[test]
fn values_of_a_private_file_are_nowhere() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    env.write("f", "[s]\nk = former3\n");
    std::fs::set_permissions(env.path("f"), std::fs::Permissions::from_mode(0o600)).unwrap();
    edits(&env, "{\"[DIR]/f\": {format: ini, set: {s: {k: hunter2}}}}");
    for args in [
        &["plan", "manifest.yaml"][..],
        &["plan", "manifest.yaml", "--json"],
        &["apply", "manifest.yaml", "--events", "--verbose"],
        &["history", "show", "newest"],
    ] {
        let newest = if args[0] == "history" { newest(&env) } else { String::new() };
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "newest" { &newest } else { *arg }).collect();
        let output = env.command(&args).output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{args:?}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("former3"), "{args:?}: {said}");
    }
    assert_eq!(env.read("f"), "[s]\nk = hunter2\n");
}

#[test]
fn the_helps_of_both_edits_name_each_other() {
    let env = TestEnv::new();
    assert!(ok(&env, ["edit", "--help"]).contains("ccm ensure edit"));
    assert!(ok(&env, ["ensure", "edit", "--help"]).contains("ccm edit"));
}

#[test]
fn structured_formats_at_the_command_line() {
    let env = TestEnv::new();
    env.write("f", "a: 1 # one\n");
    let path = env.path("f");
    let path = path.to_str().unwrap();
    let set = ["--set", "{b: {c: [1, x]}}", "--add", "{/l: [z]}", "--remove", "/a"];
    let args = [&["ensure", "edit", path, "--format", "yaml"][..], &set].concat();
    let output = env.command(&args).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(env.read("f"), "b:\n  c: [1, x]\nl: [z]\n");
    let output = env.command(&args).arg("--json").output().unwrap();
    assert!(
        said(&output).contains("\"changed\": false")
            || !said(&output).contains("\"changed\": true")
    );
}

/// A file has whole edits after a run was killed, and the next run makes the rest.
#[test]
fn killed_runs() {
    let env = TestEnv::new();
    let lines = |text: &str| text.lines().count();
    let entries: Vec<String> = (0..40)
        .map(|n| format!("{{e{n}: {{path: \"[DIR]/f\", format: line, line: line {n}}}}}"))
        .collect();
    edits(&env, &entries.join(", "));
    let whole: Vec<String> = (0..40).map(|n| format!("line {n}\n")).collect();
    for kill in 0..40 {
        env.write("f", "");
        let mut run = env.command(["apply", "manifest.yaml"]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("some lines", || {
            lines(&env.read("f")) >= kill || run.try_wait().unwrap().is_some()
        });
        let _ = run.kill();
        run.wait().unwrap();
        let text = env.read("f");
        assert!(whole.concat().starts_with(&text), "{text}");
        ok(&env, ["apply", "manifest.yaml"]);
        assert_eq!(env.read("f"), whole.concat());
    }
    let left = std::fs::read_dir(env.dir()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".ccm")), "{left:?}");
}
