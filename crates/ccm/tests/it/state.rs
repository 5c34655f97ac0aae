//! The state directory: who may use it, and that runs do not meet.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::TestEnv;

/// A run that is at work until there is a file `go`, or the test is over.
const AT_WORK: &str = "ccm: {resources: [{exec: [{wait: {provider: shell, command: \"touch \
                       [DIR]/at-work; while [ -e [DIR]/at-work ] && [ ! -e [DIR]/go ]; do \
                       sleep 0.01; done\"}}]}]}";

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What a run says first on stderr; waits for it. Also gives back the rest,
/// which must stay open for the run to go on talking.
pub(crate) fn first_line(
    run: &mut std::process::Child,
) -> (String, std::io::BufReader<std::process::ChildStderr>) {
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(run.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    (line, stderr)
}

/// The names below the state directory.
fn names(env: &TestEnv) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(env.state())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_second_run_waits_and_names_the_first() {
    let env = TestEnv::new();
    env.manifest(AT_WORK);
    let first = env.start();
    wait_until("the first run", || env.path("at-work").exists());
    let busy = env.run(["ensure", "file", "[DIR]/f", "--lock-timeout", "50ms"]);
    let text = said(&busy);
    assert_eq!(busy.status.code(), Some(75), "{text}");
    let pid = format!("process {}", first.id());
    assert!(text.contains(&pid) && text.contains("apply manifest.yaml"), "{text}");
    assert!(text.contains("started 20") && text.contains("--lock-timeout"), "{text}");
    assert!(!env.path("f").exists());
    // What changes nothing does not wait.
    for args in [
        ["ensure", "file", "[DIR]/f", "--noop"],
        ["apply", "manifest.yaml", "--noop", "--no-report"],
        ["apply", "manifest.yaml", "--monitor-only", "--no-report"],
        ["apply", "manifest.yaml", "--render", "--no-report"],
        ["status", "file", "[DIR]/f", "--json"],
        ["ensure", "file", "[DIR]/without", "--no-state"],
    ] {
        let begin = Instant::now();
        let output = env.run(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        assert!(begin.elapsed() < Duration::from_secs(20), "{args:?}");
    }
    assert!(env.path("without").exists());
    let mut waiting = env.command(["ensure", "file", env.path("f").to_str().unwrap()]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (line, _rest) = first_line(&mut waiting);
    assert!(line.contains("waiting for another run: process"), "{line}");
    assert!(!env.path("f").exists());
    env.write("go", "");
    assert!(first.wait_with_output().unwrap().status.success());
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(env.path("f").exists());
}

#[test]
fn waiting_ends_with_a_signal() {
    let env = TestEnv::new();
    env.manifest(AT_WORK);
    let first = env.start();
    wait_until("the first run", || env.path("at-work").exists());
    let mut second = env.start();
    let (line, _rest) = first_line(&mut second);
    assert!(line.contains("waiting for another run"), "{line}");
    kill(Pid::from_raw(second.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(143));
    env.write("go", "");
    assert!(first.wait_with_output().unwrap().status.success());
}

#[test]
fn a_killed_run_leaves_no_lock() {
    let env = TestEnv::new();
    env.manifest(AT_WORK);
    let mut first = env.start();
    wait_until("the first run", || env.path("at-work").exists());
    first.kill().unwrap();
    first.wait().unwrap();
    let output = env.run(["ensure", "file", "[DIR]/f", "--lock-timeout", "0"]);
    env.write("go", "");
    assert!(output.status.success(), "{}", said(&output));
}

/// Every run says when it begins and ends; no other may in between.
#[test]
fn twenty_runs_at_once_do_not_meet() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{mark: {provider: shell, command: \"echo begin $PPID >> \
         [DIR]/log; sleep 0.02; echo end $PPID >> [DIR]/log\"}}]}]}",
    );
    let runs: Vec<_> = (0..20).map(|_| env.start()).collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let log = env.read("log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 40);
    for pair in lines.chunks(2) {
        assert_eq!(pair[0].strip_prefix("begin "), pair[1].strip_prefix("end "), "{log}");
    }
}

#[test]
fn ccm_within_a_run_works_under_its_lock() {
    let env = TestEnv::new();
    let ccm = env!("CARGO_BIN_EXE_ccm");
    // Deeper, and two at once, which wait for each other but not for the run.
    let inner = "ccm: {resources: [{exec: [{deeper: {provider: shell, command: \"$CCM ensure file \
                 [DIR]/deep --lock-timeout 5s\"}}]}]}";
    env.write("inner.yaml", inner);
    env.manifest(
        "ccm: {resources: [{exec: [{nested: {provider: shell, command: \"$CCM apply [DIR]/inner.yaml \
         --lock-timeout 5s & $CCM ensure file [DIR]/beside --lock-timeout 5s; one=$?; wait $! && \
         exit $one\"}}]}]}",
    );
    let output = env.command(["apply", "manifest.yaml"]).env("CCM", ccm).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(env.path("deep").exists() && env.path("beside").exists());
    // A token is worth nothing when its run does not hold the lock.
    env.manifest(AT_WORK);
    let first = env.start();
    wait_until("the first run", || env.path("at-work").exists());
    for token in ["1:1", &format!("{}:1", first.id()), "nonsense", "/"] {
        let args = ["ensure", "exec", "true", "--lock-timeout", "0"];
        let output = env.command(args).env("CCM_RUN", token).output().unwrap();
        assert_eq!(output.status.code(), Some(75), "{token}: {}", said(&output));
    }
    env.write("go", "");
    assert!(first.wait_with_output().unwrap().status.success());
}

#[test]
fn requests_of_a_pipe_let_others_in_between() {
    use std::io::{BufRead as _, Write as _};
    let env = TestEnv::new();
    let mut pipe = env
        .command(["ensure", "api", "pipe", "--stream", "--lock-timeout", "50ms"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = pipe.stdin.take().unwrap();
    let mut lines = std::io::BufReader::new(pipe.stdout.take().unwrap()).lines();
    let mut ask = || -> Value {
        let request = r#"{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec", "properties": {"name": "true"}}"#;
        writeln!(input, "{request}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(ask()["error"], Value::Null);
    let between = env.run(["ensure", "file", "[DIR]/f", "--lock-timeout", "0"]);
    assert!(between.status.success(), "{}", said(&between));
    env.manifest(AT_WORK);
    let run = env.start();
    wait_until("the run", || env.path("at-work").exists());
    let refused = ask();
    assert!(refused["error"].as_str().unwrap().contains("another run is in progress"), "{refused}");
    env.write("go", "");
    assert!(run.wait_with_output().unwrap().status.success());
    assert_eq!(ask()["error"], Value::Null);
    drop(input);
    assert_eq!(pipe.wait().unwrap().code(), Some(75));
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{file: [{\"[DIR]/f\": {[ME], mode: \"0644\"}}]}]}");
    std::fs::set_permissions(env.state(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for args in [["apply", "manifest.yaml", "--no-report"], ["ensure", "file", "[DIR]/f"]] {
        let output = env.run(args);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("refusing to keep state in") && text.contains("0777"), "{text}");
        assert!(!env.path("f").exists());
    }
    assert!(names(&env).is_empty());
    let noop = env.run(["apply", "manifest.yaml", "--noop"]);
    assert!(noop.status.success(), "{}", said(&noop));
    std::fs::set_permissions(env.state(), std::fs::Permissions::from_mode(0o750)).unwrap();
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
    let mode = std::fs::metadata(env.state()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "closed to those who could only read it");
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let theirs = env.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
    std::fs::create_dir(theirs.join("state")).unwrap();
    for place in ["theirs", "theirs/state"] {
        let place = env.path(place);
        let output = env.run(["ensure", "file", "[DIR]/f", "--state-dir", place.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("refusing to keep state in"), "{}", said(&output));
        assert!(!env.path("f").exists());
    }
    // Their symlink to a directory of ours is no better.
    std::os::unix::fs::symlink(env.state(), theirs.join("link")).unwrap();
    std::os::unix::fs::lchown(theirs.join("link"), Some(65534), None).unwrap();
    let link = theirs.join("link");
    let output = env.run(["ensure", "file", "[DIR]/f", "--state-dir", link.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

/// Wherever no state can be kept, a run goes on and says so in its result.
#[test]
fn a_run_goes_on_without_state_unless_it_is_required() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{file: [{\"[DIR]/f\": {[ME], mode: \"0644\"}}]}]}");
    env.write("file", "");
    let place = env.path("file/state");
    let place = place.to_str().unwrap();
    let required = env.run(["apply", "manifest.yaml", "--state-dir", place, "--require-state"]);
    assert_eq!(required.status.code(), Some(1), "{}", said(&required));
    assert!(said(&required).contains("--require-state"), "{}", said(&required));
    assert!(!env.path("f").exists());
    let output = env.run(["apply", "manifest.yaml", "--state-dir", place, "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = report["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("runs without a lock"), "{warning}");
    assert!(env.path("f").exists());
}

#[test]
fn a_read_only_file_system_is_no_obstacle() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let script = format!(
        "cd {d} && mkdir small && mount -t tmpfs -o ro,mode=700 none small || exit 99; \
         {ccm} ensure file {d}/f --state-dir {d}/small; echo \"exit $?\"; \
         {ccm} ensure file {d}/g --state-dir {d}/small/state; echo \"exit $?\"; \
         {ccm} ensure file {d}/h --state-dir {d}/small --require-state; echo \"exit $?\"",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(99) {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    let text = said(&output);
    let exits: Vec<_> = text.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(exits, ["exit 0", "exit 0", "exit 1"], "{text}");
    assert_eq!(text.matches("Read-only file system").count(), 3, "{text}");
    assert!(env.path("f").exists() && env.path("g").exists() && !env.path("h").exists());
}

#[test]
fn users_keep_their_state_at_home() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let home = env.path("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let ccm = env.copy_of_ccm();
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(&ccm);
        command.args(["ensure", "exec", "true"]).current_dir("/").env_clear();
        command.env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
        command.uid(65534).gid(65534).output().unwrap()
    };
    let text = home.to_str().unwrap();
    let output = run(&[("HOME", text)]);
    assert!(output.status.success(), "{}", said(&output));
    let place = home.join(".local/state/ccm");
    assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(place.join("lock").exists());
    let output = run(&[("HOME", text), ("XDG_STATE_HOME", &format!("{text}/xdg"))]);
    assert!(output.status.success() && home.join("xdg/ccm/lock").exists(), "{}", said(&output));
    // Without a home there is no place, which is worth a warning only.
    let output = run(&[]);
    assert!(output.status.success() && said(&output).contains("no home"), "{}", said(&output));
}

#[test]
fn a_run_that_changes_nothing_writes_nothing() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{file: [{\"[DIR]/f\": {[ME], mode: \"0644\"}}]}]}");
    env.write("f", "");
    std::fs::set_permissions(env.path("f"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = || assert!(env.run(["apply", "manifest.yaml"]).status.success());
    run();
    assert_eq!(names(&env), ["lock"]);
    let times = || {
        [env.state().to_owned(), env.state().join("lock")]
            .map(|path| std::fs::metadata(path).unwrap().modified().unwrap())
    };
    let before = times();
    run();
    assert_eq!(times(), before);
}
