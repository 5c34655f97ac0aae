//! A subscriber reacts to every change, however the runs end.

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

/// What is owed, as `subscriber by`, and the exit code.
pub(crate) fn owed(env: &TestEnv) -> (Option<i32>, Vec<String>) {
    let output = env.run(["owed", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = list["owed"].as_array().unwrap().iter();
    let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
    let list = list.map(|record| format!("{} {}", text(record, "subscriber"), text(record, "by")));
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
fn what_is_owed_is_listed_by_manifest_and_shown_when_it_is_made_good() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    assert_eq!(owed(&env), (Some(0), vec![]));
    assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(1));
    let by = format!("file#{}", env.path("conf").display());
    assert_eq!(owed(&env), (Some(2), vec![format!("exec#reload {by}")]));
    assert_eq!(env.run(["owed", "manifest.yaml"]).status.code(), Some(2));
    assert_eq!(env.run(["owed", "other.yaml"]).status.code(), Some(0));
    env.write("works", "");
    let lines = said(&env.run(["apply", "manifest.yaml", "--fact", "v=1"]));
    assert!(lines.contains("owed since 20") && lines.contains(&format!(" to {by}")), "{lines}");
    assert_eq!((log(&env), owed(&env)), (2, (Some(0), vec![])));
}

#[test]
fn owed_reactions_are_forgotten_on_request() {
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
fn pipes_and_commands_of_a_session_owe_together() {
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
fn without_room_for_what_is_owed_nothing_is_changed() {
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
    assert_eq!(env.run(["owed"]).status.code(), Some(1), "what is lost may be owed");
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
    assert_eq!(env.run(["owed"]).status.code(), Some(0));
    assert!(file.with_extension("damaged").is_file(), "the first one stays");
    assert!(file.with_extension("2.damaged").is_dir());
    std::fs::write(folder.join("odd name"), "x").unwrap();
    assert_eq!(env.run(["owed"]).status.code(), Some(1), "whatever it was");
}

/// Whoever can write there can say what is owed, and what is not.
#[test]
fn a_state_directory_that_cannot_be_trusted_is_not_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    env.manifest(RELOAD);
    apply(&env, &["--fact", "v=1"]);
    assert_eq!(env.run(["owed"]).status.code(), Some(2));
    for path in [env.state().to_owned(), env.state().join("owed")] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        for args in [&["owed"][..], &["owed", "--json"], &["owed", "--forget", "exec#reload"]] {
            let output = env.command(args).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            let printed = String::from_utf8(output.stdout).unwrap();
            assert!(!printed.contains("reload"), "{args:?}: {printed}");
            assert_eq!(printed.contains("\"errors\""), args.contains(&"--json"), "{printed}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// What a check has refused is not installed: neither where the check is left
/// out, nor where it waits for a change that failed.
#[test]
fn what_a_check_has_refused_is_never_installed() {
    let manifest = |content: &str, owner: &str| {
        format!(
            r#"
ccm:
  resources:
    - file:
        - [DIR]/new: {{content: "{content}", mode: "0644", owner: {owner}, group: "0"}}
    - exec:
        - check: {{command: grep -q good [DIR]/new, refresh_only: true, subscribe: ["file#[DIR]/new"]}}
    - file:
        - [DIR]/installed: {{source: "[DIR]/new", mode: "0644", [ME], require: ["exec#check"]}}
"#
        )
    };
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let refused = |args: &[&str]| {
        let args = args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap()));
        let output = env.command(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("skipped, requires exec#check"), "{text}");
        assert!(!env.path("installed").exists(), "{text}");
    };
    let apply = ["apply", "manifest.yaml"];
    env.manifest(&manifest("bad", "root"));
    refused(&apply);
    refused(&apply);
    refused(&[&apply[..], &["--only", "file#[DIR]/installed"]].concat());
    env.manifest(&manifest("good", "nobody-has-this-name"));
    refused(&apply);
    refused(&[&apply[..], &["--noop"]].concat());
    refused(&[&apply[..], &["--no-state"]].concat());
    env.manifest(&manifest("good", "root"));
    let done = env.ccm(["apply", "manifest.yaml"]);
    assert!(done.starts_with("exit: 0\n") && env.path("installed").exists(), "{done}");
    // Where nothing changes and nothing is owed, there is nothing to wait for.
    std::fs::remove_file(env.path("installed")).unwrap();
    let done = env.ccm(["apply", "manifest.yaml"]);
    assert!(done.starts_with("exit: 0\n") && env.path("installed").exists(), "{done}");
    std::fs::remove_file(env.path("installed")).unwrap();
    let done = env.ccm(["apply", "manifest.yaml", "--no-state"]);
    assert!(done.starts_with("exit: 0\n") && env.path("installed").exists(), "{done}");
}

/// The recipe for files that a program checks needs no record of earlier runs.
#[test]
fn a_check_behind_a_guard_needs_no_state() {
    let env = TestEnv::new();
    let manifest = |content: &str| {
        format!(
            r#"
ccm:
  resources:
    - file:
        - [DIR]/.new: {{content: "{content}", mode: "0644", [ME]}}
    - exec:
        - check:
            command: grep -q good [DIR]/.new
            unless: cmp --silent [DIR]/.new [DIR]/installed
    - file:
        - [DIR]/installed: {{source: "[DIR]/.new", mode: "0644", [ME], require: ["exec#check"]}}
"#
        )
    };
    env.manifest(&manifest("bad"));
    for _ in 0..2 {
        let run = env.ccm(["apply", "manifest.yaml", "--no-state"]);
        assert!(run.contains("skipped, requires exec#check"), "{run}");
        assert!(!env.path("installed").exists(), "{run}");
    }
    env.manifest(&manifest("good"));
    let run = env.ccm(["apply", "manifest.yaml", "--no-state"]);
    assert!(run.starts_with("exit: 0\n"), "{run}");
    assert_eq!(env.read("installed"), "good");
    let run = env.ccm(["apply", "manifest.yaml", "--no-state"]);
    assert!(run.ends_with(": 3 stable\n"), "{run}");
}
