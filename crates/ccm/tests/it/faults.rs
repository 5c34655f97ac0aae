//! Killed half-way, interrupted, twice at once, no room left.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::TestEnv;

const FILES: usize = 200;

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// What file `n` holds in a version: long enough that writing takes a moment.
fn content(version: usize, n: usize) -> String {
    format!("version {version} of {n}\n").repeat(400)
}

fn manifest(directory: &Path, version: usize) -> String {
    let mut text = String::from("ccm:\n  resources:\n    - file:\n");
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let _ = writeln!(text, "        - defaults: {{owner: {uid}, group: {gid}, mode: \"0644\"}}");
    for n in 0..FILES {
        let _ = writeln!(text, "        - {}/f{n}:", directory.display());
        text.push_str("            content: |\n");
        for line in content(version, n).lines() {
            let _ = writeln!(text, "              {line}");
        }
    }
    text
}

#[test]
fn a_kill_at_any_moment_tears_no_file_and_leaves_nothing_behind() {
    let env = TestEnv::new();
    let directory = env.path("files");
    std::fs::create_dir(&directory).unwrap();
    let mut killed = 0;
    for version in 1..=30 {
        env.manifest(&manifest(&directory, version));
        let mut child = env
            .command(["apply", "manifest.yaml", "--no-sync"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the whole run, start-up included; the same every time.
        std::thread::sleep(Duration::from_micros((version as u64 * 7_919) % 40_000));
        signal(&child, Signal::SIGKILL);
        killed += usize::from(!child.wait().unwrap().success());
        for n in 0..FILES {
            if let Ok(text) = std::fs::read_to_string(directory.join(format!("f{n}"))) {
                let is_whole = (0..=version).any(|version| text == content(version, n));
                assert!(is_whole, "f{n} is torn after version {version}");
            }
        }
    }
    assert!(killed > 0, "no run was killed: the test shows nothing");
    env.manifest(&manifest(&directory, 99));
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
    let mut names: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut wanted: Vec<_> = (0..FILES).map(|n| format!("f{n}")).collect();
    wanted.sort();
    assert_eq!(names, wanted, "something was left behind");
    for n in 0..FILES {
        assert_eq!(env.read(&format!("files/f{n}")), content(99, n));
    }
}

#[test]
fn two_processes_on_the_same_files_leave_whole_ones() {
    let env = TestEnv::new();
    let directory = env.path("files");
    std::fs::create_dir(&directory).unwrap();
    for round in 0..5 {
        let versions = [2 * round, 2 * round + 1];
        let children = versions.map(|version| {
            let name = format!("m{version}.yaml");
            env.write(&name, &manifest(&directory, version));
            env.command(["apply", &name, "--no-sync"]).stdout(Stdio::piped()).spawn().unwrap()
        });
        for child in children {
            // Each writes what it wants and may find, when it verifies, that
            // the other has been faster: a failure that is told, never a torn file.
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            for line in text.lines().filter(|line| line.starts_with("      ")) {
                assert!(line.contains("content is not what was written"), "{line}");
            }
        }
        for n in 0..FILES {
            let text = env.read(&format!("files/f{n}"));
            assert!(versions.iter().any(|&version| text == content(version, n)), "f{n} is torn");
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), FILES);
    }
}

/// Starts a run with a command that takes long and waits until it is at work.
fn start_long_run(env: &TestEnv) -> Child {
    env.manifest(
        "ccm: {resources: [{exec: [{first: {command: touch [DIR]/first}}, {long: {provider: shell, \
         command: \"touch [DIR]/long; sleep 60 & wait\"}}, {last: {command: touch [DIR]/last}}]}]}",
    );
    let child = env.start();
    wait_until("the command", || env.path("long").exists());
    child
}

#[test]
fn an_interrupt_ends_the_run_with_its_report() {
    for (sent, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let env = TestEnv::new();
        let child = start_long_run(&env);
        let begin = Instant::now();
        signal(&child, sent);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(text.contains("  » exec#first ") && text.contains("  ✗ exec#long"), "{text}");
        assert!(text.contains("because the run was interrupted"), "{text}");
        assert!(text.contains("Interrupted manifest.yaml in "), "{text}");
        assert!(text.ends_with(": 1 ran, 1 failed\n"), "{text}");
        assert!(!env.path("last").exists());
    }
}

/// The first interrupt alone gives a command five seconds.
#[test]
fn a_second_interrupt_ends_it_at_once() {
    let [once, twice] = [1, 2].map(|interrupts| {
        let env = TestEnv::new();
        env.manifest(
            "ccm: {resources: [{exec: [{stubborn: {provider: shell, command: \"trap 'touch \
             [DIR]/told' TERM; touch [DIR]/long; while :; do sleep 0.1; done\"}}]}]}",
        );
        let child = env.command(["apply", "manifest.yaml"]).stdout(Stdio::null()).spawn().unwrap();
        wait_until("the command", || env.path("long").exists());
        let begin = Instant::now();
        signal(&child, Signal::SIGINT);
        wait_until("the command to be told", || env.path("told").exists());
        if interrupts == 2 {
            signal(&child, Signal::SIGINT);
        }
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        begin.elapsed()
    });
    assert!(twice < once / 2, "{twice:?} with two interrupts, {once:?} with one");
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let script = format!(
        "mkdir {d}/small && mount -t tmpfs -o size=64k none {d}/small && echo old > {d}/small/f && \
         head -c 1000000 /dev/zero | tr '\\0' x > {d}/big && \
         {ccm} ensure file {d}/small/f --content-file {d}/big; echo \"exit $?\"; \
         cat {d}/small/f; ls -A {d}/small",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    // In a mount namespace of its own: the machine never sees the mount.
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("CCM_STATE_DIR", env.state())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    assert!(text.contains("No space left on device"), "{text}");
    assert!(text.ends_with("exit 1\nold\nf\n"), "{text}");
}

#[test]
fn logs_that_cannot_be_written_do_not_end_a_run() {
    let env = TestEnv::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = env.command(["--debug", "ensure", "exec", "true"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_guard_that_is_killed_is_no_answer() {
    let env = TestEnv::new();
    for flag in ["--exec-if", "--exec-unless"] {
        let output = env.run(["ensure", "exec", "touch [DIR]/x", flag, "sh -c 'kill -9 $$'"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("was killed by signal 9"), "{text}");
    }
    assert!(!env.path("x").exists());
}

#[test]
fn a_directory_that_is_gone_matters_only_to_relative_paths() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("gone")).unwrap();
    let script = format!(
        "cd {d}/gone && rmdir {d}/gone && {ccm} ensure file {d}/f --content x",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &script]).env("CCM_STATE_DIR", env.state()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(env.read("f"), "x");
}
