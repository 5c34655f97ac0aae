//! Where output goes and when: report files, pipes, signals.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::TestEnv;

const NOBODY: u32 = 65534;

/// Names, contents and what servers say may hold sequences that a terminal obeys.
#[test]
fn control_characters_are_escaped() {
    let env = TestEnv::new();
    let (evil, shown) = ("n\u{1b}[31m\u{9b}", "n\\u{1b}[31m\\u{9b}");
    env.write("text", &format!("{evil}\r\n"));
    env.write(
        "rules.yaml",
        "file: {\"/none/n\\e[31m\\u009b\": {exists: true}, [DIR]/text: {exists: true, contents: [x]}}\n",
    );
    let name = format!("{evil}.yaml");
    env.write(
        &name,
        "ccm: {resources: [{file: [{[DIR]/f: {content: x, [ME], mode: \"0644\"}}]}, {exec: [{\"false\": \
         {alias: \"n\\e[31m\\u009b\", subscribe: [\"file#[DIR]/f\"]}}]}]}\n",
    );
    let missing = format!("none-{evil}");
    for args in [
        &["check", "rules.yaml"][..],
        &["validate", &name],
        &["validate", &missing],
        &["apply", &name],
        &["owed"],
        &["history"],
        &["edit", &name, "set", "file#[DIR]/f", "mode", "0644"],
    ] {
        let args: Vec<String> =
            args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap())).collect();
        let output = env.command(&args).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains(shown), "{args:?}: {text}");
        let is_obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_obeyed), "{args:?}: {text:?}");
    }
}

/// A manifest whose only resource shows that it ran.
fn manifest_with_marker(env: &TestEnv) {
    env.manifest("ccm: {resources: [{exec: [{mark: {command: touch [DIR]/marker}}]}]}");
}

/// Applies the manifest with a report file; it must be refused before the run.
fn assert_refused(env: &TestEnv, report: &Path, words: &str) {
    let begin = Instant::now();
    let report = report.to_str().unwrap();
    let output = env.run(["apply", "manifest.yaml", "--report-file", report]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{report}: {stderr}");
    assert!(stderr.contains(words), "{report}: {stderr}");
    assert_eq!(output.stdout, b"", "{report}");
    assert!(!env.path("marker").exists(), "{report}: something was applied");
    assert!(begin.elapsed() < Duration::from_secs(10), "{report}: {:?}", begin.elapsed());
}

#[test]
fn reports_replace_only_regular_files() {
    let env = TestEnv::new();
    manifest_with_marker(&env);
    env.write("real.json", "old");
    symlink(env.path("real.json"), env.path("link.json")).unwrap();
    symlink(env.path("nothing"), env.path("dangling.json")).unwrap();
    std::fs::create_dir(env.path("directory")).unwrap();
    let fifo = env.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_refused(&env, &env.path("link.json"), "symlink, which ccm does not follow");
    assert_refused(&env, &env.path("dangling.json"), "`-` for standard output");
    assert_refused(&env, Path::new("/dev/null"), "is a socket, FIFO or device");
    assert_refused(&env, &fifo, "is a socket, FIFO or device");
    assert_refused(&env, &env.path("directory"), "is a directory");
    assert_refused(&env, &env.path("missing/report.json"), "create the directory first");
    assert_eq!(env.read("real.json"), "old");
    assert!(!env.path("nothing").exists());

    assert!(env.run(["apply", "manifest.yaml", "--report-file", "real.json"]).status.success());
    assert!(env.read("real.json").starts_with('{') && env.path("marker").exists());
    assert!(env.run(["apply", "manifest.yaml", "--report-file", "new.json"]).status.success());
    let mode = std::fs::metadata(env.path("new.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let left: Vec<_> = env.names().into_iter().filter(|name| name.starts_with(".ccm")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_report_file_of_another_user_is_refused() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    manifest_with_marker(&env);
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(env.dir(), mode(0o755)).unwrap();
    let shared = env.path("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, mode(0o1777)).unwrap();
    env.write("precious", "root's");
    let plant = "mkfifo fifo read.fifo; echo mine > file; ln -s ../precious link; mkdir directory";
    let nobody = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&shared).uid(NOBODY).gid(NOBODY);
        command
    };
    assert!(nobody(plant).status().unwrap().success());
    let mut reader = nobody("exec cat read.fifo").stdout(Stdio::piped()).spawn().unwrap();

    assert_refused(&env, &shared.join("fifo"), "FIFO");
    assert_refused(&env, &shared.join("read.fifo"), "FIFO");
    assert_refused(&env, &shared.join("file"), "belongs to another user (uid 65534)");
    assert_refused(&env, &shared.join("link"), "symlink");
    assert_refused(&env, &shared.join("directory"), "is a directory");
    kill(Pid::from_raw(reader.id() as i32), Signal::SIGTERM).unwrap();
    let mut seen = String::new();
    reader.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    reader.wait().unwrap();
    assert_eq!(seen, "", "the report reached the reader of the FIFO");
    assert_eq!(std::fs::read_to_string(shared.join("file")).unwrap(), "mine\n");
    assert_eq!(env.read("precious"), "root's");
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 5);

    // Planted while the run is under way, behind the check.
    env.manifest(
        "ccm: {resources: [{exec: [{mark: {provider: shell, command: \"touch [DIR]/marker; while \
         [ ! -e [DIR]/shared/late ]; do sleep 0.01; done\"}}]}]}",
    );
    let late = shared.join("late");
    let child = env
        .command(["apply", "manifest.yaml", "--report-file", late.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the run", || env.path("marker").exists());
    assert!(nobody("mkfifo late").status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("late is a socket, FIFO or device"), "{stderr}");
}

#[test]
fn a_dash_prints_the_report() {
    let env = TestEnv::new();
    manifest_with_marker(&env);
    let output = env.run(["apply", "manifest.yaml", "--no-report", "--report-file", "-"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let (line, report) = text.split_once('\n').unwrap();
    assert!(line.starts_with("  » exec#mark "), "{line}");
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["summary"]["changed"], 1);
    assert!(!env.path("-").exists());
    // Asked for twice, printed once.
    let output = env.run(["apply", "manifest.yaml", "--json", "--report-file", "-"]);
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
}

#[test]
fn a_line_reaches_a_pipe_when_its_resource_is_done() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{first: {command: \"true\"}}, {slow: {command: sleep 30}}]}]}",
    );
    let mut child = env.command(["apply", "manifest.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let waited = begin.elapsed();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("  » exec#first "), "{line}");
    assert!(waited < Duration::from_secs(20), "the line came after {waited:?}");
}

#[test]
fn a_second_signal_at_once_loses_no_line() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{first: {command: \"true\"}}, {slow: {provider: shell, command: \
         \"touch [DIR]/slow; sleep 30\"}}]}]}",
    );
    for round in 0..10 {
        let _ = std::fs::remove_file(env.path("slow"));
        let child = env.command(["apply", "manifest.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
        wait_until("the slow command", || env.path("slow").exists());
        for _ in 0..2 {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(143), "{round}: {text}");
        assert!(text.contains("  » exec#first "), "{round}: {text:?}");
    }
}

#[test]
fn a_hangup_cleans_up_like_a_termination() {
    let env = TestEnv::new();
    env.write("source/f.txt", "x");
    env.manifest(&format!(
        "ccm: {{resources: [{{scaffold: [{{[DIR]/target: {{source: [DIR]/source, engine: go, post: \
         [{{\"*.txt\": \"sh -c 'echo $$ > [DIR]/pid; exec sleep 61.{}'\"}}]}}}}]}}]}}",
        std::process::id()
    ));
    let child = env.start();
    let pid = || std::fs::read_to_string(env.path("pid")).unwrap_or_default();
    wait_until("the post command", || pid().ends_with('\n'));
    let before = env.names();
    assert!(before.iter().any(|name| name.contains("ccm-")), "no staging directory: {before:?}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGHUP).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(129), "{text}");
    assert!(text.contains("  ✗ scaffold#") && text.ends_with(": 1 failed\n"), "{text}");
    let left: Vec<_> = env.names().into_iter().filter(|name| name.contains("ccm-")).collect();
    assert_eq!(left, [""; 0], "the staging directory is left");
    let command = format!("/proc/{}/cmdline", pid().trim());
    let command = std::fs::read_to_string(command).unwrap_or_default();
    assert!(!command.contains("sleep"), "the command lives on: {command:?}");
}

#[test]
fn signals_that_are_ignored_stay_ignored() {
    let env = TestEnv::new();
    for (name, signal) in
        [("HUP", Signal::SIGHUP), ("INT", Signal::SIGINT), ("TERM", Signal::SIGTERM)]
    {
        env.manifest(
            "ccm: {resources: [{exec: [{wait: {provider: shell, command: \"touch [DIR]/at-work; \
             while [ ! -e [DIR]/go ]; do sleep 0.01; done\"}}]}]}",
        );
        let script =
            format!("trap '' {name}; exec {} apply manifest.yaml", env!("CARGO_BIN_EXE_ccm"));
        let child = Command::new("sh")
            .args(["-c", &script])
            .env("CCM_STATE_DIR", env.state())
            .current_dir(env.dir())
            .env("LC_ALL", "C.UTF-8")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the command", || env.path("at-work").exists());
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        // Nothing tells of a signal that is ignored: one that is not would end the run
        // within this time.
        std::thread::sleep(Duration::from_millis(100));
        env.write("go", "");
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{name}: {text}");
        assert!(text.contains("» exec#wait "), "{name}: {text}");
        for name in ["go", "at-work"] {
            std::fs::remove_file(env.path(name)).unwrap();
        }
    }
}
