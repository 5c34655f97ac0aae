//! Commands as other users: what the child is, and what it does not get.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::time::{Duration, Instant};

use ccm_testkit::{children, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::TestEnv;

/// A user and group that no machine has.
const UID: &str = "4000123";
const GID: &str = "4000456";

fn must_be_root() {
    assert!(nix::unistd::geteuid().is_root(), "these tests run as root");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Applies one shell command with these properties; returns what it printed.
fn shown(env: &TestEnv, properties: &str, command: &str) -> Vec<String> {
    env.manifest(&format!(
        "ccm: {{resources: [{{exec: [{{x: {{provider: shell, logoutput: true, {properties}, \
         command: \"{command}\"}}}}]}}]}}\n"
    ));
    let output = env.command(["apply", "manifest.yaml"]).env("TOKEN", "hush").output().unwrap();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("| "));
    lines.map(|line| line.strip_prefix("exec#x: ").unwrap_or(line).to_owned()).collect()
}

const WHO: &str = "id -u; id -g; id -G; umask";

#[test]
fn a_user_has_its_ids_its_umask_and_its_environment() {
    must_be_root();
    let env = TestEnv::new();
    assert_eq!(shown(&env, "user: daemon", WHO), ["1", "1", "1", "0022"]);
    let names = "env | grep -v '^_=\\\\|^PWD=\\\\|^SHLVL=' | sort";
    let lines = shown(&env, "user: daemon, environment: [MORE=1]", names);
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(
        lines,
        [
            "HOME=/usr/sbin",
            "LC_ALL=C.UTF-8",
            "LOGNAME=daemon",
            "MORE=[redacted]",
            path,
            "SHELL=/usr/sbin/nologin",
            "USER=daemon"
        ]
        .map(|line| line.replace("[redacted]", "1"))
    );
}

#[test]
fn ids_without_an_entry_need_a_group_and_have_no_name() {
    must_be_root();
    let env = TestEnv::new();
    let both = format!("user: '{UID}', group: '{GID}', umask: '0077'");
    assert_eq!(shown(&env, &both, WHO), [UID, GID, GID, "0077"]);
    let variables = "echo $HOME ${USER-none} ${LOGNAME-none} ${TOKEN-none} ${CCM_RUN-none}";
    assert_eq!(shown(&env, &both, variables), ["/ none none none none"]);
    env.manifest(&format!("ccm: {{resources: [{{exec: [{{'true': {{user: '{UID}'}}}}]}}]}}\n"));
    let output = env.run(["apply", "manifest.yaml"]);
    let text = said(&output);
    assert!(
        !output.status.success() && text.contains("has no entry in the user database"),
        "{text}"
    );
    assert!(text.contains("set `group`"), "{text}");
}

#[test]
fn a_group_alone_drops_the_others_and_keeps_the_environment() {
    must_be_root();
    let env = TestEnv::new();
    let group = format!("group: '{GID}'");
    assert_eq!(shown(&env, &group, WHO), ["0", GID, GID, "0022"]);
    assert_eq!(shown(&env, &group, "echo $TOKEN ${CCM_RUN:+run}"), ["hush run"]);
    assert_eq!(shown(&env, "umask: '0027'", "umask; echo $TOKEN"), ["0027", "hush"]);
}

#[test]
fn the_command_leads_a_session_without_a_terminal_or_input() {
    must_be_root();
    let env = TestEnv::new();
    // pid, name, state, parent, group, session, terminal
    let lines = shown(&env, "user: nobody", "cat /proc/$$/stat; readlink /proc/$$/fd/0");
    let fields: Vec<&str> = lines[0].split(' ').collect();
    assert_eq!(fields[0], fields[4], "{lines:?}");
    assert_eq!(fields[0], fields[5], "{lines:?}");
    assert_eq!(fields[6], "0", "{lines:?}");
    assert_eq!(lines[1], "/dev/null");
    // Of ccm's descriptors, no more than any command gets.
    let descriptors = "cd /proc/$$/fd; echo *";
    assert_eq!(shown(&env, "user: nobody", descriptors), shown(&env, "cwd: /", descriptors));
}

#[test]
fn guards_run_as_the_user_too() {
    must_be_root();
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{'true': {user: daemon, onlyif: sh -c 'test $(id -u) = 1'}}, \
         {'false': {user: daemon, unless: sh -c 'test $(id -un) = daemon'}}]}]}\n",
    );
    let output = env.run(["apply", "manifest.yaml", "--events"]);
    let text = said(&output);
    assert!(output.status.success() && text.contains("\"onlyif_satisfied\":true"), "{text}");
    assert!(text.contains("\"unless_satisfied\":true"), "{text}");
}

#[test]
fn directories_and_programs_are_those_that_the_user_may_use() {
    must_be_root();
    let env = TestEnv::new();
    let failure = |properties: &str, command: &str| {
        env.manifest(&format!(
            "ccm: {{resources: [{{exec: [{{x: {{command: '{command}', {properties}}}}}]}}]}}\n"
        ));
        let output = env.run(["apply", "manifest.yaml"]);
        assert!(!output.status.success(), "{}", said(&output));
        said(&output)
    };
    std::fs::create_dir(env.path("inner")).unwrap();
    std::fs::set_permissions(env.path("inner"), std::fs::Permissions::from_mode(0o755)).unwrap();
    // It is open to all, the directory above it to root alone.
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let text = failure("user: nobody, cwd: '[DIR]/inner'", "true").to_lowercase();
    let inner = env.path("inner").display().to_string().to_lowercase();
    assert!(
        text.contains(&format!("cannot enter {inner} as user nobody: permission denied")),
        "{text}"
    );
    let tool = env.write("inner/tool", "#!/bin/sh\n");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
    let text = failure("user: nobody", &tool.display().to_string()).to_lowercase();
    assert!(text.contains("permission denied"), "{text}");
    let text = failure("user: no-such-user", "true");
    assert!(text.contains("could not lookup user `no-such-user`"), "{text}");
}

#[test]
fn only_root_may_choose_another_user() {
    must_be_root();
    let env = TestEnv::new();
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ccm = env.copy_of_ccm();
    let run = |user: &str| {
        use std::os::unix::process::CommandExt as _;
        std::process::Command::new(&ccm)
            .args(["ensure", "exec", "id -u", "--no-state", "--logoutput", "--user", user])
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .uid(1)
            .gid(1)
            .output()
            .unwrap()
    };
    let other = run("nobody");
    assert!(!other.status.success());
    assert!(
        said(&other).contains("cannot run as user nobody: ccm does not run as root"),
        "{}",
        said(&other)
    );
    let same = run("daemon");
    assert!(same.status.success() && said(&same).contains('1'), "{}", said(&same));
}

#[test]
fn tries_end_with_the_first_success() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{x: {provider: shell, tries: 5, try_sleep: 10ms, \
         command: 'echo x >> [DIR]/log; test $(wc -l < [DIR]/log) = 3 || exit 7'}}]}]}\n",
    );
    let output = env.run(["apply", "manifest.yaml", "--events", "--info"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(env.read("log"), "x\nx\nx\n");
    assert!(text.contains("\"tries\":3"), "{text}");
    assert!(text.contains("exec#x: try 1 of 5 exited with code 7, next in 10ms"), "{text}");
}

#[test]
fn tries_end_with_the_file_or_with_the_last_one() {
    let env = TestEnv::new();
    let apply = |properties: &str| {
        env.manifest(&format!(
            "ccm: {{resources: [{{exec: [{{x: {{provider: shell, try_sleep: 0s, {properties}}}}}]}}]}}\n"
        ));
        env.run(["apply", "manifest.yaml", "--events"])
    };
    let made = apply("tries: 4, creates: '[DIR]/made', command: 'touch [DIR]/made; exit 1'");
    assert!(made.status.success() && said(&made).contains("\"tries\":1"), "{}", said(&made));
    let failed = apply("tries: 3, command: exit 7");
    let text = said(&failed);
    assert!(!failed.status.success(), "{text}");
    assert!(text.contains("`exit 7` exited with code 7 after 3 tries"), "{text}");
    let late = apply("tries: 2, timeout: 50ms, command: sleep 60");
    let text = said(&late);
    assert!(text.contains("exceeded its timeout of 50ms after 2 tries"), "{text}");
}

#[test]
fn a_signal_ends_the_wait_between_tries() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{x: {provider: shell, tries: 9, try_sleep: 1h, \
         command: 'echo x >> [DIR]/log; exit 1'}}]}]}\n",
    );
    let child = env.start();
    wait_until("the first try", || env.path("log").exists());
    // The wait begins when the command has ended.
    wait_until("its end", || children(child.id().cast_signed()).is_empty());
    let begin = Instant::now();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5), "{}", said(&output));
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
    assert_eq!(env.read("log"), "x\n");
}
