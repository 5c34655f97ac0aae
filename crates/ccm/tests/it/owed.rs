//! A subscriber reacts to every change, however the runs end.

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::TestEnv;

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Applies the manifest; the exit code and the report.
pub(crate) fn apply(env: &TestEnv, more: &[&str]) -> (Option<i32>, Value) {
    let output = env.command(["apply", "manifest.yaml", "--json"]).args(more).output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", said(&output))))
}

fn event<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut events = report["events"].as_array().unwrap().iter();
    events.find(|event| event["name"] == name).unwrap()
}

/// What is owed, as `subscriber by`, and the exit code.
pub(crate) fn owed(env: &TestEnv) -> (Option<i32>, Vec<String>) {
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

/// Requests to a pipe, and the events that answer them.
struct Pipe {
    process: std::process::Child,
    input: std::process::ChildStdin,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Pipe {
    fn start(env: &TestEnv) -> Self {
        let mut command = env.command(["ensure", "api", "pipe", "--stream"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let lines = std::io::BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, lines }
    }

    fn ask(&mut self, kind: &str, properties: &Value) -> Value {
        let protocol = "io.choria.ccm.v1.resource.ensure.request";
        let request =
            serde_json::json!({"protocol": protocol, "type": kind, "properties": properties});
        writeln!(self.input, "{request}").unwrap();
        let response: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(response["error"], Value::Null, "{response}");
        response["state"].clone()
    }

    fn conf(&mut self, env: &TestEnv) -> Value {
        let (owner, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let (owner, group) = (owner.to_string(), group.to_string());
        let properties = serde_json::json!({"name": env.path("conf"), "ensure": "present",
            "content": "x", "owner": owner, "group": group, "mode": "0644"});
        self.ask("file", &properties)
    }

    fn reload(&mut self, env: &TestEnv) -> Value {
        let dir = env.dir().display();
        let command = format!("echo x >> {dir}/log; test -e {dir}/works");
        let conf = format!("file#{dir}/conf");
        let properties = serde_json::json!({"name": "reload", "provider": "shell",
            "command": command, "refresh_only": true, "subscribe": [conf]});
        self.ask("exec", &properties)
    }

    fn end(mut self) {
        drop(self.input);
        self.process.wait().unwrap();
    }
}

/// Without a session in a directory, the session is the pipe itself.
#[test]
fn a_pipe_remembers_what_its_requests_owe() {
    let env = TestEnv::new();
    let mut pipe = Pipe::start(&env);
    assert_eq!(pipe.conf(&env)["changed"], true);
    assert_eq!(pipe.reload(&env)["failed"], true);
    assert_eq!(pipe.conf(&env)["changed"], false);
    env.write("works", "");
    let reload = pipe.reload(&env);
    let by = format!("file#{}", env.path("conf").display());
    assert_eq!((&reload["changed"], &reload["owed"]["by"]), (&true.into(), &Value::from(by)));
    assert_eq!(pipe.reload(&env)["changed"], false);
    assert_eq!((log(&env), owed(&env)), (2, (Some(0), vec![])));
    pipe.end();
    assert!(!env.state().join("owed").exists(), "it ends with the pipe");
}

#[test]
fn pipes_and_commands_of_a_session_pay_each_other_s_debts() {
    let env = TestEnv::with_session();
    let mut pipe = Pipe::start(&env);
    let mut other = Pipe::start(&env);
    assert_eq!(pipe.conf(&env)["changed"], true);
    assert_eq!(pipe.reload(&env)["failed"], true);
    assert_eq!(owed(&env).0, Some(2), "while the pipe is open");
    // Killed: the next one of the session knows.
    pipe.process.kill().unwrap();
    pipe.end();
    assert_eq!(other.conf(&env)["changed"], false);
    env.write("works", "");
    let reload = other.reload(&env);
    assert!(reload["changed"] == true && reload["owed"]["since"].is_string(), "{reload}");
    assert_eq!(owed(&env), (Some(0), vec![]));
    assert_eq!(other.reload(&env)["changed"], false);
    assert_eq!(log(&env), 2);
    other.end();
}

/// A manifest that the run itself writes has subscribers that nobody knows when
/// the change is made. Here the run ends between the two.
#[test]
fn a_manifest_that_comes_later_reacts_to_what_changed_before() {
    let env = TestEnv::new();
    env.write(
        "source.yaml",
        r#"ccm: {resources: [{exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            subscribe: ["file#conf"]}}]}]}"#,
    );
    env.manifest(
        r#"ccm: {fail_on_error: true, resources: [
        {file: [{"[DIR]/conf": {alias: conf, content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test -e [DIR]/works"}}]},
        {file: [{"[DIR]/child.yaml": {source: "[DIR]/source.yaml", [ME], mode: "0644"}}]},
        {apply: [child.yaml]}]}"#,
    );
    assert_eq!(apply(&env, &[]).0, Some(1));
    assert!(env.path("conf").exists() && !env.path("child.yaml").exists());
    env.write("works", "");
    let noop = apply(&env, &["--noop"]).1;
    assert!(!env.path("child.yaml").exists(), "{noop}");
    let (code, report) = apply(&env, &[]);
    assert_eq!(code, Some(0), "{report}");
    assert!(env.path("reloaded").exists(), "{report}");
    assert!(event(&report, "reload")["owed"]["by"].as_str().unwrap().ends_with("/conf"));
    assert_eq!(std::fs::read_dir(env.state().join("owed")).unwrap().count(), 0);
    // Once it has reacted, that is that.
    std::fs::remove_file(env.path("reloaded")).unwrap();
    assert_eq!(apply(&env, &[]).0, Some(0));
    assert!(!env.path("reloaded").exists());
}

/// What acted and made no difference is no reason for a later manifest to react.
#[test]
fn a_change_without_a_difference_is_not_kept_for_later_manifests() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {alias: conf, content: "x", [ME], mode: "0644"}}]},
        {apply: [child.yaml]}]}"#,
    );
    assert_eq!(apply(&env, &[]).0, Some(1), "there is no child yet");
    env.write(
        "child.yaml",
        r#"ccm: {resources: [{exec: [
            {other: {command: "touch [DIR]/other", refresh_only: true, subscribe: ["file#nothing"]}},
            {reload: {command: "touch [DIR]/reloaded", refresh_only: true, subscribe: ["file#conf"]}}]}]}"#,
    );
    let (_, report) = apply(&env, &[]);
    assert!(env.path("reloaded").exists() && !env.path("other").exists(), "{report}");
    assert_eq!(owed(&env), (Some(0), vec![]));
}

#[test]
fn plans_show_what_is_owed() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    apply(&env, &["--fact", "v=1"]);
    let plan = said(&env.run(["plan", "manifest.yaml", "--fact", "v=1"]));
    assert!(plan.contains("exec#reload") && plan.contains("owed since 20"), "{plan}");
    env.write("works", "");
    apply(&env, &["--fact", "v=1"]);
    let plan = said(&env.run(["plan", "manifest.yaml", "--fact", "v=1"]));
    assert!(!plan.contains("exec#reload"), "{plan}");
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
    assert!(text.contains("cannot record owed reactions"), "{text}");
    assert!(text.contains("No space left") && text.contains("free some space"), "{text}");
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
