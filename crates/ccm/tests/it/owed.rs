//! A subscriber reacts to every change, however the runs end.

use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::TestEnv;

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Applies the manifest; the exit code and the report.
fn apply(env: &TestEnv, more: &[&str]) -> (Option<i32>, Value) {
    let output = env.command(["apply", "manifest.yaml", "--json"]).args(more).output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", said(&output))))
}

fn event<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut events = report["events"].as_array().unwrap().iter();
    events.find(|event| event["name"] == name).unwrap()
}

/// What is owed, as `subscriber by`, and the exit code.
fn owed(env: &TestEnv) -> (Option<i32>, Vec<String>) {
    let output = env.run(["owed", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = list["owed"].as_array().unwrap().iter();
    let text = |debt: &Value, key: &str| debt[key].as_str().unwrap().to_owned();
    let list = list.map(|debt| format!("{} {}", text(debt, "subscriber"), text(debt, "by")));
    (output.status.code(), list.collect())
}

/// A file, and a command that fails unless there is a file `works`.
const RELOAD: &str = r#"ccm: {resources: [
    {file: [{"[DIR]/conf": {content: "{{ Facts.v }}", [ME], mode: "0644"}}]},
    {exec: [{reload: {provider: shell, refresh_only: true, subscribe: ["file#[DIR]/conf"],
        command: "echo x >> [DIR]/log; test -e [DIR]/works"}}]}]}"#;

fn log(env: &TestEnv) -> usize {
    std::fs::read_to_string(env.path("log")).unwrap_or_default().lines().count()
}

#[test]
fn a_reaction_that_failed_is_repeated() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    assert_eq!(owed(&env), (Some(0), vec![]));
    assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(1));
    let by = format!("file#{}", env.path("conf").display());
    assert_eq!(owed(&env), (Some(2), vec![format!("exec#reload {by}")]));
    assert_eq!(env.run(["owed", "manifest.yaml"]).status.code(), Some(2));
    assert_eq!(env.run(["owed", "other.yaml"]).status.code(), Some(0));
    // A preview shows it and leaves it.
    let (code, report) = apply(&env, &["--fact", "v=1", "--noop"]);
    let reload = event(&report, "reload");
    assert_eq!((code, &reload["owed"]["by"]), (Some(0), &Value::from(&*by)), "{reload}");
    assert_eq!((&reload["changed"], log(&env)), (&Value::from(true), 1));
    // It still fails, then it works, then there is nothing left to do.
    assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(1));
    env.write("works", "");
    let lines = said(&env.run(["apply", "manifest.yaml", "--fact", "v=1"]));
    assert!(lines.contains("owed since 20") && lines.contains(&format!(" to {by}")), "{lines}");
    assert_eq!((log(&env), owed(&env)), (3, (Some(0), vec![])));
    let (code, report) = apply(&env, &["--fact", "v=1"]);
    assert_eq!((code, log(&env)), (Some(0), 3));
    assert!(event(&report, "reload").get("owed").is_none());
    let left = std::fs::read_dir(env.state().join("owed")).unwrap().count();
    assert_eq!(left, 0, "nothing is kept of what was paid");
}

#[test]
fn what_was_not_reached_or_chosen_stays_owed() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {fail_on_error: true, resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test -e [DIR]/works"}}]},
        {exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert_eq!(apply(&env, &[]).0, Some(1));
    assert_eq!(owed(&env).0, Some(2));
    env.write("works", "");
    env.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test ! -e [DIR]/works"}}]},
        {exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            require: ["exec#gate"], subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert_eq!(apply(&env, &[]).0, Some(1), "the requirement is not met");
    assert_eq!(owed(&env).0, Some(2));
    std::fs::remove_file(env.path("works")).unwrap();
    assert_eq!(apply(&env, &["--monitor-only"]).0, Some(0));
    assert_eq!(owed(&env).0, Some(2));
    assert_eq!(apply(&env, &[]).0, Some(0));
    assert!(env.path("reloaded").exists());
    assert_eq!(owed(&env).0, Some(0));
}

#[test]
fn what_a_manifest_no_longer_has_is_reported_once() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    apply(&env, &["--fact", "v=1"]);
    env.manifest("ccm: {resources: [{file: [{\"[DIR]/other\": {ensure: absent}}]}]}");
    let (code, report) = apply(&env, &[]);
    let warning = report["warnings"][0]["message"].as_str().unwrap();
    assert_eq!(code, Some(0));
    assert!(warning.contains("exec#reload owes") && warning.contains("forgets"), "{warning}");
    assert_eq!(owed(&env).0, Some(0));
    assert_eq!(apply(&env, &[]).1["warnings"], Value::Array(vec![]));
}

#[test]
fn what_control_keeps_out_owes_nothing() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{reload: {command: "false", refresh_only: true, control: {if: "false"},
            subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert_eq!(apply(&env, &[]).0, Some(0));
    assert_eq!(owed(&env), (Some(0), vec![]));
}

/// A resource that fails in every run is no reason to react in every run.
#[test]
fn nobody_reacts_to_what_keeps_failing() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {resources: [
        {exec: [{change: {provider: shell, command: "test -e [DIR]/works"}}]},
        {exec: [{reload: {provider: shell, command: "echo x >> [DIR]/log", refresh_only: true,
            subscribe: ["exec#change"]}}]}]}"#,
    );
    for _ in 0..3 {
        assert_eq!(apply(&env, &[]).0, Some(1));
    }
    assert_eq!((log(&env), owed(&env).0), (0, Some(2)), "it may have changed something");
    env.write("works", "");
    assert_eq!(apply(&env, &[]).0, Some(0));
    assert_eq!((log(&env), owed(&env).0), (1, Some(0)));
}

#[test]
fn debts_are_forgotten_on_request() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    apply(&env, &["--fact", "v=1"]);
    let output = env.run(["owed", "--forget", "exec#other"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let output = env.run(["owed", "--forget", "exec#reload"]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), "Nothing is owed\n".to_owned()));
    assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(0));
    assert_eq!(log(&env), 1);
}

#[test]
fn many_changes_and_one_subscriber_are_one_debt() {
    let env = TestEnv::new();
    let mut files = String::new();
    let mut names = String::new();
    for n in 0..200 {
        let _ = write!(files, "{{\"[DIR]/f{n}\": {{content: x, [ME], mode: \"0644\"}}}},");
        let _ = write!(names, "\"file#[DIR]/f{n}\",");
    }
    env.manifest(&format!(
        "ccm: {{resources: [{{file: [{files}]}}, {{exec: [{{reload: {{command: \"false\", \
         refresh_only: true, subscribe: [{names}]}}}}]}}]}}"
    ));
    assert_eq!(apply(&env, &[]).0, Some(1));
    assert_eq!(owed(&env).1, [format!("exec#reload file#{}", env.path("f0").display())]);
    let file = std::fs::read_dir(env.state().join("owed")).unwrap().next().unwrap().unwrap();
    let lines = std::fs::read_to_string(file.path()).unwrap().lines().count();
    assert_eq!(lines, 2, "a header and one debt");
}

#[test]
fn a_session_remembers_what_its_commands_owe() {
    let env = TestEnv::with_session();
    let conf = || env.run(["ensure", "file", "[DIR]/conf", "--content", "x"]);
    let reload = || {
        env.run([
            "ensure",
            "exec",
            "sh -c 'echo x >> [DIR]/log; test -e [DIR]/works'",
            "--refresh-only",
            "--subscribe",
            "file#[DIR]/conf",
        ])
    };
    assert!(conf().status.success());
    assert!(!reload().status.success());
    // By now the last event of the file says that it did not change.
    assert!(conf().status.success());
    let (code, list) = owed(&env);
    assert_eq!((code, list.len()), (Some(2), 1), "{list:?}");
    env.write("works", "");
    assert!(reload().status.success());
    assert_eq!((log(&env), owed(&env).0), (2, Some(0)));
    assert!(conf().status.success() && reload().status.success());
    assert_eq!(log(&env), 2);
}

#[test]
fn without_room_for_the_debt_nothing_is_changed() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(RELOAD);
    env.write("works", "");
    let script = format!(
        "cd {d} && mkdir small && mount -t tmpfs -o size=64k,mode=700 none small || exit 99; \
         mkdir small/owed && chmod 700 small/owed; head -c 1000000 /dev/zero > small/fill; \
         run() {{ {ccm} apply manifest.yaml --state-dir {d}/small --fact v=1 --no-report; \
         echo \"exit $?\"; }}; run; ls conf; rm small/fill; run; ls conf",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(99) {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    let text = said(&output);
    let steps: Vec<_> =
        text.lines().filter(|line| line.starts_with("exit ") || *line == "conf").collect();
    assert_eq!(steps, ["exit 1", "exit 0", "conf"], "{text}");
    assert!(text.contains("cannot record what subscribers owe"), "{text}");
    assert!(text.contains("No space left") && text.contains("make room"), "{text}");
}

#[test]
fn damaged_records_do_not_stop_a_run() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    apply(&env, &["--fact", "v=1"]);
    env.write("works", "");
    let folder = env.state().join("owed");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() - 20;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(env.run(["owed"]).status.code(), Some(0), "what is left of it");
    let (code, report) = apply(&env, &["--fact", "v=1"]);
    let warning = report["warnings"][0]["message"].as_str().unwrap();
    assert!(code == Some(0) && warning.contains("is damaged"), "{warning}");
    assert!(file.with_extension("damaged").exists() && !file.exists());
    // Something else in its place is set aside too.
    std::fs::create_dir(&file).unwrap();
    std::fs::write(file.join("x"), "").unwrap();
    let (code, report) = apply(&env, &["--fact", "v=2"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(env.read("conf"), "2");
    std::fs::write(folder.join("odd name"), "x").unwrap();
    assert_eq!(env.run(["owed"]).status.code(), Some(0));
}

/// A file for each of twenty commands, which copy it: whoever has reacted to
/// the last change has the same content.
fn twenty(env: &TestEnv, is_nested: bool) {
    let (mut files, mut commands) = (String::new(), String::new());
    for n in 0..20 {
        let _ = write!(
            files,
            "{{\"[DIR]/f{n}\": {{alias: f{n}, content: \"{{{{ Facts.v }}}}\", [ME], mode: \
             \"0644\"}}}},"
        );
        let reference = match (is_nested, n) {
            (true, 19) => "apply#files.yaml".to_owned(),
            _ => format!("file#f{n}"),
        };
        let _ = write!(
            commands,
            "{{e{n}: {{provider: shell, refresh_only: true, subscribe: [\"{reference}\"], command: \
             \"cp [DIR]/f{n} [DIR]/new{n} && mv [DIR]/new{n} [DIR]/seen{n}\"}}}},"
        );
    }
    if !is_nested {
        env.manifest(&format!("ccm: {{resources: [{{file: [{files}]}}, {{exec: [{commands}]}}]}}"));
        return;
    }
    // The files in one manifest, the commands in another below a third.
    env.write("files.yaml", &format!("ccm: {{resources: [{{file: [{files}]}}]}}"));
    env.write("commands.yaml", &format!("ccm: {{resources: [{{exec: [{commands}]}}]}}"));
    env.write("between.yaml", "ccm: {resources: [{apply: [{commands.yaml: {}}]}]}");
    env.manifest("ccm: {resources: [{apply: [{files.yaml: {}}, {between.yaml: {}}]}]}");
}

/// Kills runs at random moments. After each, the next run of the same manifest
/// must leave every subscriber up to date.
#[expect(clippy::print_stdout, reason = "figures")]
fn kill_at_random(is_nested: bool) {
    let times = std::env::var("CCM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let env = TestEnv::new();
    twenty(&env, is_nested);
    let version = |v: usize| format!("v={v}");
    let begin = Instant::now();
    assert_eq!(apply(&env, &["--fact", &version(0), "--no-sync"]).0, Some(0));
    let whole = begin.elapsed();
    let (mut killed, mut had_debts) = (0, 0);
    for round in 1..=times {
        let fact = version(round);
        let mut run = env
            .command(["apply", "manifest.yaml", "--no-report", "--no-sync", "--fact", &fact])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the time that a run takes, whatever the machine does.
        let at = whole.mul_f64((round * 7919 % times) as f64 / times as f64);
        std::thread::sleep(at);
        run.kill().unwrap();
        killed += usize::from(run.wait().unwrap().code().is_none());
        // A command that was at work may still be.
        std::thread::sleep(Duration::from_millis(30));
        had_debts += usize::from(owed(&env).0 == Some(2));
        let (code, report) = apply(&env, &["--fact", &fact, "--no-sync"]);
        assert_eq!(code, Some(0), "{report}");
        for n in 0..20 {
            let seen = std::fs::read_to_string(env.path(&format!("seen{n}"))).unwrap_or_default();
            assert_eq!(seen, round.to_string(), "killed after {at:?}: e{n} has not reacted");
        }
        assert_eq!(owed(&env), (Some(0), vec![]));
    }
    println!("{killed} of {times} runs killed, {had_debts} left debts");
    assert!(had_debts > 0, "no kill came at the right moment: the test shows nothing");
}

#[test]
fn killed_runs_owe_and_the_next_one_pays() {
    kill_at_random(false);
}

#[test]
fn killed_runs_of_nested_manifests_owe_and_the_next_one_pays() {
    kill_at_random(true);
}
