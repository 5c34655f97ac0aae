//! Undo of runs with steps that cannot be undone, and of releases.

use std::os::unix::fs::symlink;

use ccm_testkit::snapshot_of_content;
use serde_json::Value;

use crate::TestEnv;
use crate::history::{fails, newest, ok, said};
use crate::owed::owed;

/// A file that a command reacts to, one before it and one after it.
const REACTS: &str = r#"ccm: {resources: [
    {file: [{"[DIR]/t/first": {content: one, [ME], mode: "0644"}}]},
    {file: [{"[DIR]/t/conf": {content: two, [ME], mode: "0644"}}]},
    {exec: [{reload: {command: touch [DIR]/ran, refresh_only: true,
        subscribe: ["file#[DIR]/t/conf"]}}]},
    {file: [{"[DIR]/t/last": {content: three, [ME], mode: "0644"}}]}]}"#;

fn name(env: &TestEnv, path: &str) -> String {
    format!("file#{}", env.path(path).display())
}

fn stage(manifest: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("t/conf", "old");
    env.manifest(manifest);
    env
}

#[test]
fn an_undo_stops_at_a_command_that_reacted_to_what_it_would_restore() {
    let env = stage(REACTS);
    let before = snapshot_of_content(&env.path("t"));
    ok(&env, ["apply", "manifest.yaml"]);
    let after = snapshot_of_content(&env.path("t"));
    let text = fails(&env, ["undo"]);
    assert!(text.contains("nothing was changed"), "{text}");
    assert!(text.contains(&format!("exec#reload reacted to {}", name(&env, "t/conf"))), "{text}");
    assert!(text.contains("hint: ") && text.contains("--partial"), "{text}");
    assert_eq!(snapshot_of_content(&env.path("t")), after);
    // A preview shows what would be restored, and says the same.
    let text = fails(&env, ["undo", "--noop"]);
    assert!(text.contains("2 to remove"), "{text}");
    assert!(text.contains("exec#reload reacted to"), "{text}");
    let output = env.run(["undo", "--noop", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let message = report["errors"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("exec#reload reacted to"), "{report}");
    assert_eq!(snapshot_of_content(&env.path("t")), after);
    // With `--partial`, all but the command is taken back.
    let text = fails(&env, ["undo", "--noop", "--partial"]);
    assert!(!text.contains("nothing was changed"), "{text}");
    let text = fails(&env, ["undo", "--partial"]);
    assert!(text.contains("exec#reload: cannot be undone"), "{text}");
    assert_eq!(snapshot_of_content(&env.path("t")), before);
}

/// Who names resources has chosen a part: only what reacted to it counts then.
#[test]
fn a_selection_stops_only_at_what_reacted_to_it() {
    let env = stage(REACTS);
    ok(&env, ["apply", "manifest.yaml"]);
    let text = fails(&env, ["undo", "--only", &name(&env, "t/conf")]);
    assert!(text.contains("exec#reload reacted to"), "{text}");
    assert_eq!(env.read("t/conf"), "two");
    let output = env.run(["undo", "--only", &name(&env, "t/conf"), "--noop"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let applied = newest(&env);
    ok(&env, ["undo", &applied, "--only", &name(&env, "t/last")]);
    let id = newest(&env);
    let run = ok(&env, ["history", "show", &id]);
    assert!(run.contains("t/last"), "{run}");
    assert!(!env.path("t/last").exists() && env.path("t/first").exists());
    // The command came later and has nothing to do with it.
    ok(&env, ["undo", &applied, "--only", &name(&env, "t/first")]);
    assert!(!env.path("t/first").exists());
}

/// The items of a loop are chosen by what their names have in common.
#[test]
fn a_star_selects_all_names_that_begin_so() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {resources: [{for_each: [aa, ab, b],
            file: {"[DIR]/{{ Item }}": {content: x, [ME], mode: "0644"}}}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let applied = newest(&env);
    let start = |name: &str| format!("file#{}/{name}*", env.dir().display());
    let text = fails(&env, ["undo", "--only", &start("c")]);
    assert!(text.contains("did not change"), "{text}");
    ok(&env, ["undo", &applied, "--only", &start("a")]);
    let exist = ["aa", "ab", "b"].map(|name| env.path(name).exists());
    assert_eq!(exist, [false, false, true]);
    ok(&env, ["undo", &applied, "--only", "file#*"]);
    assert!(!env.path("b").exists());
}

#[test]
fn a_command_before_everything_that_is_restored_stops_nothing() {
    let env = stage(
        r#"ccm: {resources: [{exec: [{first: {command: touch [DIR]/ran}}]},
            {file: [{"[DIR]/t/conf": {content: two, [ME], mode: "0644"}}]}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let text = fails(&env, ["undo"]);
    assert!(text.contains("exec#first: cannot be undone"), "{text}");
    assert_eq!(env.read("t/conf"), "old");
    // Nothing is left to restore, so nothing can be broken by that.
    ok(&env, ["apply", "manifest.yaml"]);
    fails(&env, ["undo"]);
    assert_eq!(env.read("t/conf"), "old");
}

/// Two releases; `link` and `release` make the second one in this order.
fn release(first: &str, second: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("app/1/run", "one");
    symlink("1", env.path("app/current")).unwrap();
    env.manifest(&format!("ccm: {{resources: [{first}, {second}]}}"));
    env
}

const RELEASE: &str = r#"{file: [{"[DIR]/app/2": {ensure: directory, [ME], mode: "0755"}},
    {"[DIR]/app/2/run": {content: two, [ME], mode: "0755"}}]}"#;
const LINK: &str = r#"{file: [{"[DIR]/app/current": {ensure: link, target: "[DIR]/app/2"}}]}"#;

fn position(text: &str, name: &str) -> usize {
    text.find(name).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn a_symlink_is_put_back_before_its_release_is_removed() {
    for (first, second) in [(RELEASE, LINK), (LINK, RELEASE)] {
        let env = release(first, second);
        let before = snapshot_of_content(&env.path("app"));
        ok(&env, ["apply", "manifest.yaml"]);
        assert_eq!(env.read("app/current/run"), "two");
        let preview = ok(&env, ["undo", "--noop"]);
        let text = ok(&env, ["undo"]);
        for text in [preview, text] {
            assert!(position(&text, "app/current") < position(&text, "app/2"), "{text}");
        }
        assert_eq!(snapshot_of_content(&env.path("app")), before);
        assert_eq!(env.read("app/current/run"), "one");
        // And back again: the release is there before the symlink leads to it.
        let text = ok(&env, ["undo"]);
        assert!(position(&text, "app/2") < position(&text, "app/current"), "{text}");
        assert_eq!(env.read("app/current/run"), "two");
    }
}

/// What a command has linked is not removed behind its back.
#[test]
fn what_a_symlink_that_stays_points_to_is_not_removed() {
    let env = release(
        RELEASE,
        r#"{exec: [{switch: {command: "ln -sfn 2 [DIR]/app/current"}}]},
           {file: [{"[DIR]/app/other": {content: x, [ME], mode: "0644"}}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let text = fails(&env, ["undo"]);
    assert!(text.contains("exec#switch came after"), "{text}");
    for args in [["undo", "--partial", "--noop"], ["undo", "--partial", "--no-sync"]] {
        let text = fails(&env, args);
        assert!(text.contains("app/current points to"), "{text}");
    }
    assert_eq!(env.read("app/current/run"), "two");
    assert!(!env.path("app/other").exists(), "the rest is restored");
    // A symlink of the run that somebody has changed since stays too.
    let env = release(RELEASE, LINK);
    ok(&env, ["apply", "manifest.yaml"]);
    std::fs::remove_file(env.path("app/current")).unwrap();
    symlink("2", env.path("app/current")).unwrap();
    fails(&env, ["undo"]);
    assert_eq!(env.read("app/current/run"), "two");
    // Switched back by hand, nothing holds the release any more.
    std::fs::remove_file(env.path("app/current")).unwrap();
    symlink("1", env.path("app/current")).unwrap();
    ok(&env, ["undo"]);
    assert!(!env.path("app/2").exists());
}

/// What the run owes is owed no longer once it is undone.
#[test]
fn owed_reactions_of_an_undone_run_are_cleared() {
    let failing = r#"ccm: {resources: [
        {file: [{"[DIR]/t/conf": {content: two, [ME], mode: "0644"}}]},
        {file: [{"[DIR]/t/other": {content: x, [ME], mode: "0644"}}]},
        {exec: [{needed: {command: test -e [DIR]/works}}]},
        {exec: [{reload: {command: touch [DIR]/ran, refresh_only: true,
            require: ["exec#needed"], subscribe: ["file#[DIR]/t/conf"]}}]}]}"#;
    let env = stage(failing);
    fails(&env, ["apply", "manifest.yaml"]);
    let by = |env: &TestEnv| format!("exec#reload {}", name(env, "t/conf"));
    assert_eq!(owed(&env), (Some(2), vec![by(&env)]));
    // Another file stays as the run left it: who subscribes to that is not known.
    std::fs::write(env.path("t/other"), "mine").unwrap();
    fails(&env, ["undo", "--partial"]);
    assert_eq!((env.read("t/conf").as_str(), owed(&env).0), ("old", Some(2)));
    let env = stage(failing);
    fails(&env, ["apply", "manifest.yaml"]);
    fails(&env, ["undo", "--partial"]);
    assert_eq!((env.read("t/conf").as_str(), owed(&env)), ("old", (Some(0), vec![])));
    env.write("works", "");
    ok(&env, ["apply", "manifest.yaml"]);
    assert!(env.path("ran").exists(), "the next run changes the file, and so reacts");
}
