//! State directories that are not as they should be, and what runs that meet
//! may do. `CCM_FLIPS=all` flips a bit in every byte of a record, and cuts it at
//! every byte; by default a sample.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ccm_testkit::wait_until;

use crate::TestEnv;
use crate::owed::{apply, owed, said};
use crate::planted::{ACCESS, DEFAULT, NO_LISTS, chmod, plant};
use crate::state::first_line;

const FILE: &str = "ccm: {resources: [{file: [{\"[DIR]/f\": {[ME], mode: \"0644\"}}]}]}";

/// A file and a command that reacts to it, and says so.
const RELOAD: &str = r#"ccm: {resources: [
    {file: [{"[DIR]/conf": {content: "{{ Facts.v }}", [ME], mode: "0644"}}]},
    {exec: [{reload: {provider: shell, refresh_only: true, subscribe: ["file#[DIR]/conf"],
        command: "echo x >> [DIR]/log; test ! -e [DIR]/broken"}}]}]}"#;

/// A run that is at work until there is a file `go`, or the test is over.
const AT_WORK: &str = "ccm: {resources: [{exec: [{wait: {provider: shell, command: \"touch \
                       [DIR]/at-work; while [ -e [DIR]/at-work ] && [ ! -e [DIR]/go ]; do \
                       sleep 0.01; done\"}}]}]}";

/// The run is refused and changes nothing; what only reads warns and goes on.
fn assert_refused(env: &TestEnv, state: &str) {
    let state = env.path(state);
    let state = state.to_str().unwrap();
    let output = env.run(["apply", "manifest.yaml", "--state-dir", state]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("refusing to keep state in") && text.contains("hint: "), "{text}");
    assert!(!env.path("f").exists());
    for args in [
        ["apply", "manifest.yaml", "--noop", "--state-dir", state],
        ["plan", "manifest.yaml", "--no-diff", "--state-dir", state],
    ] {
        let output = env.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
        assert!(said(&output).contains("does not know what earlier runs owe"), "{}", said(&output));
    }
    let listed = env.run(["owed", "--state-dir", state]);
    assert_eq!(listed.status.code(), Some(1), "that nothing is owed is not known");
    let without = env.run(["apply", "manifest.yaml", "--no-state"]);
    assert_eq!(without.status.code(), Some(0), "{}", said(&without));
    std::fs::remove_file(env.path("f")).unwrap();
}

#[test]
fn an_access_list_makes_a_directory_shared() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(FILE);
    for (name, list) in [("access", ACCESS), ("default", DEFAULT)] {
        std::fs::create_dir(env.path(name)).unwrap();
        chmod(&env.path(name), 0o700);
        if !plant(&env.path(name), list) {
            return ccm_testkit::not_run(NO_LISTS);
        }
    }
    assert_refused(&env, "access");
    // A list for what is made in it gives nobody access: the mode masks it.
    let output = env.run(["apply", "manifest.yaml", "--state-dir", "default"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let lock = std::fs::metadata(env.path("default/lock")).unwrap();
    assert_eq!(lock.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_directory_that_others_can_replace_is_refused() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(FILE);
    std::fs::create_dir_all(env.path("open/state")).unwrap();
    chmod(&env.path("open/state"), 0o700);
    chmod(&env.path("open"), 0o777);
    assert_refused(&env, "open/state");
    assert_refused(&env, "open/not-there-yet");
    assert!(!env.path("open/not-there-yet").exists());
    // A sticky bit keeps others from replacing it.
    chmod(&env.path("open"), 0o1777);
    let output = env.run(["apply", "manifest.yaml", "--state-dir", "open/state"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(env.path("open/state/lock").exists());
}

#[test]
fn without_state_nothing_is_made() {
    let env = TestEnv::new();
    env.manifest(RELOAD);
    env.write("broken", "");
    let (code, _) = apply(&env, &["--fact", "v=1", "--no-state"]);
    assert_eq!(code, Some(1));
    assert_eq!(std::fs::read_dir(env.state()).unwrap().count(), 0);
    let both = env.run(["apply", "manifest.yaml", "--no-state", "--require-state"]);
    assert_eq!(both.status.code(), Some(64), "{}", said(&both));
}

/// No inode is left for the lock: reactions would be lost that could be kept.
#[test]
fn a_full_disk_is_not_taken_for_a_place_without_state() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(FILE);
    let script = format!(
        "cd {d} && mkdir small && mount -t tmpfs -o nr_inodes=1,mode=700 none small || exit 99; \
         run() {{ {ccm} apply manifest.yaml \"$@\"; echo \"exit $?\"; ls f; }}; \
         run --state-dir {d}/small; run --state-dir {d}/small/below; run --no-state",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(99) {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    let text = said(&output);
    let steps: Vec<_> =
        text.lines().filter(|line| line.starts_with("exit ") || *line == "f").collect();
    assert_eq!(steps, ["exit 1", "exit 1", "exit 0", "f"], "{text}");
    assert_eq!(text.matches("No space left on device").count(), 2, "{text}");
    assert!(text.contains("hint: free some space"), "{text}");
}

/// Some network file systems have no locks.
#[test]
fn a_file_system_without_locks_is_said_so() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(RELOAD);
    for error in ["ENOLCK", "EOPNOTSUPP"] {
        let run = |more: &[&str]| -> Output {
            let ccm = env.command(["apply", "manifest.yaml", "--fact", &format!("v={error}")]);
            let inject = format!("inject=flock:error={error}:when=1");
            let mut command = Command::new("strace");
            command.args(["-qq", "-o"]).arg(env.path("trace")).args(["-e", "trace=flock", "-e"]);
            command.arg(inject).arg(ccm.get_program()).args(ccm.get_args()).args(more);
            command.current_dir(env.dir()).env_clear();
            command.envs(ccm.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.output().unwrap()
        };
        let required = run(&["--require-state"]);
        assert_eq!(required.status.code(), Some(1), "{}", said(&required));
        assert!(said(&required).contains("cannot use the lock"), "{}", said(&required));
        let conf = || std::fs::read_to_string(env.path("conf")).unwrap_or_default();
        assert!(!conf().contains(error));
        let output = run(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = said(&output);
        assert!(text.contains("runs without a lock and keeps no records"), "{text}");
        assert!(conf().contains(error) && env.read("trace").contains("INJECTED"));
        // Records that another run may write at the same time are left alone.
        assert!(!env.state().join("owed").exists());
    }
}

/// Puts something where the lock should be.
type Maker = fn(&TestEnv, &PathBuf);

#[test]
fn what_has_the_place_of_the_lock_is_set_aside() {
    let env = TestEnv::new();
    env.manifest(FILE);
    let lock = env.state().join("lock");
    let damaged = env.state().join("lock.damaged");
    let kinds: [(&str, Maker); 3] = [
        ("symlink", |env, lock| symlink(env.path("elsewhere"), lock).unwrap()),
        ("directory", |_, lock| std::fs::create_dir(lock).unwrap()),
        ("socket", |_, lock| drop(UnixListener::bind(lock).unwrap())),
    ];
    for (kind, make) in kinds {
        let _ = std::fs::remove_file(&lock);
        make(&env, &lock);
        let output = env.run(["apply", "manifest.yaml", "--require-state"]);
        assert_eq!(output.status.code(), Some(0), "{kind}: {}", said(&output));
        assert!(said(&output).contains("ccm sets it aside"), "{kind}: {}", said(&output));
        assert!(lock.is_file() && damaged.symlink_metadata().is_ok(), "{kind}");
        assert!(!env.path("elsewhere").exists());
        let _ = std::fs::remove_file(&damaged);
        let _ = std::fs::remove_dir(&damaged);
    }
    // What is in it does not matter.
    for content in [&b""[..], b"\0", b"4711\n", &[0xff; 4096]] {
        std::fs::write(&lock, content).unwrap();
        let output = env.run(["apply", "manifest.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(!said(&output).contains("warning"), "{}", said(&output));
    }
}

/// The file that holds what the manifest owes.
fn record(env: &TestEnv) -> PathBuf {
    let mut names = std::fs::read_dir(env.state().join("owed")).unwrap();
    names.next().unwrap().unwrap().path()
}

fn log(env: &TestEnv) -> usize {
    std::fs::read_to_string(env.path("log")).unwrap_or_default().lines().count()
}

/// Places in a record to damage.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let step = if std::env::var("CCM_FLIPS").as_deref() == Ok("all") { 1 } else { 29 };
    (0..length).step_by(step)
}

/// A manifest with something owed, and the bytes of its record.
fn owing(env: &TestEnv) -> (PathBuf, Vec<u8>) {
    env.manifest(RELOAD);
    env.write("broken", "");
    assert_eq!(apply(env, &["--fact", "v=1"]).0, Some(1));
    std::fs::remove_file(env.path("broken")).unwrap();
    let file = record(env);
    let bytes = std::fs::read(&file).unwrap();
    (file, bytes)
}

/// Clears what a round has left, and puts a record in its place.
fn place(env: &TestEnv, file: &PathBuf, bytes: &[u8]) {
    for entry in std::fs::read_dir(env.state().join("owed")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_flipped_bit_is_reported_and_stops_nothing() {
    let env = TestEnv::new();
    let (file, whole) = owing(&env);
    for at in places(whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        place(&env, &file, &bytes);
        let before = log(&env);
        let listed = env.run(["owed"]);
        // What cannot be read may be owed.
        assert!(matches!(listed.status.code(), Some(1 | 2)), "byte {at}: {}", said(&listed));
        let (code, report) = apply(&env, &["--fact", "v=1"]);
        assert_eq!(code, Some(0), "byte {at}: {report}");
        let is_reported = report["warnings"].to_string().contains("is damaged");
        assert!(is_reported, "byte {at}: {report}");
        assert!(file.with_extension("damaged").exists(), "byte {at}");
        let header = whole.iter().position(|&byte| byte == b'\n').unwrap();
        assert!(at >= header || log(&env) == before + 1, "byte {at}: the record itself was whole");
        assert_eq!(owed(&env).1.len(), 0, "byte {at}");
    }
}

#[test]
fn a_record_cut_anywhere_is_reported_and_stops_nothing() {
    let env = TestEnv::new();
    let (file, whole) = owing(&env);
    let garbage = [&b"garbage"[..], b"\0\0\0\0", b"garbage\n"];
    for bytes in places(whole.len()).map(|end| &whole[..end]).chain(garbage) {
        let end = bytes.len();
        place(&env, &file, bytes);
        let listed = env.run(["owed"]);
        let lines = bytes.split(|&byte| byte == b'\n').count() - 1;
        // Between two records nobody can tell.
        let is_whole = lines > 1 && bytes.ends_with(b"\n");
        let says = said(&listed);
        assert!(is_whole || says.contains("is damaged"), "cut at {end}: {says}");
        assert!(!says.contains("Nothing is owed"), "cut at {end}: {says}");
        assert_eq!(
            listed.status.code(),
            Some(if lines > 1 { 2 } else { 1 }),
            "cut at {end}: {says}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "a list leaves it alone");
        let (code, report) = apply(&env, &["--fact", "v=1"]);
        assert_eq!(code, Some(0), "cut at {end}: {report}");
        let is_reported = report["warnings"].to_string().contains("is damaged");
        assert_eq!(is_reported, !is_whole, "cut at {end}: {report}");
        let aside = file.with_extension("damaged");
        assert!(is_whole || std::fs::read(aside).unwrap() == bytes, "cut at {end}");
        // And it can be written again.
        env.write("broken", "");
        place(&env, &file, &whole[..end]);
        assert_eq!(apply(&env, &["--fact", &format!("v=x{end}")]).0, Some(1), "cut at {end}");
        assert_eq!(owed(&env).1.len(), 1, "cut at {end}");
        std::fs::remove_file(env.path("broken")).unwrap();
        assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(0), "cut at {end}");
        assert_eq!(owed(&env).1.len(), 0, "cut at {end}");
    }
}

#[test]
fn a_record_of_a_newer_version_is_kept_aside() {
    let env = TestEnv::new();
    let (file, _) = owing(&env);
    let manifest = env.path("manifest.yaml").canonicalize().unwrap();
    let json = format!(r#"{{"header":{{"format":2,"manifest":"{}"}}}}"#, manifest.display());
    let sum = ccm_host::Digest::of(json.as_bytes()).to_string();
    let bytes = format!("{} {json}\n", &sum[..16]);
    place(&env, &file, bytes.as_bytes());
    let noop = apply(&env, &["--fact", "v=2", "--noop"]).1;
    assert!(noop["warnings"].to_string().contains("newer ccm"), "{noop}");
    assert!(file.exists(), "a preview leaves it where it is");
    let (code, report) = apply(&env, &["--fact", "v=2"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report["warnings"].to_string().contains("newer ccm"), "{report}");
    assert_eq!(std::fs::read_to_string(file.with_extension("newer")).unwrap(), bytes);
}

/// Everything that a stable run does in its state directory: it opens the lock,
/// takes it, and looks for another one and for records.
#[test]
fn a_stable_run_costs_a_few_calls() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let env = TestEnv::new();
    env.manifest(RELOAD);
    assert_eq!(apply(&env, &["--fact", "v=1"]).0, Some(0));
    let before = ccm_testkit::snapshot(env.state());
    let ccm = env.command(["apply", "manifest.yaml", "--fact", "v=1"]);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-o"]).arg(env.path("trace"));
    command.arg(ccm.get_program()).args(ccm.get_args()).current_dir(env.dir()).env_clear();
    command.envs(ccm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(ccm_testkit::snapshot(env.state()), before);
    let trace = env.read("trace");
    let state = env.state().to_str().unwrap();
    let calls: Vec<&str> = trace.lines().filter(|line| line.contains(state)).collect();
    let count = |needle: &str| calls.iter().filter(|line| line.contains(needle)).count();
    assert_eq!((count("\"lock\""), count("flock(")), (1, 1), "{calls:#?}");
    for writing in ["write(", "rename", "unlink", "mkdir", "sync(", "chmod", "ftruncate"] {
        assert_eq!(count(writing), 0, "{writing}: {calls:#?}");
    }
    assert!(calls.len() <= 20, "{calls:#?}");
}

/// Every run says when it begins and ends; no other may in between. With a
/// short time to wait some give up, and those have done nothing.
#[test]
fn runs_that_do_not_wait_long_either_run_alone_or_not_at_all() {
    for (count, session) in [(2, false), (20, false), (20, true)] {
        let env = if session { TestEnv::with_session() } else { TestEnv::new() };
        let mark = env.write(
            "mark",
            "echo begin $PPID >> [DIR]/log; sleep 0.05; echo end $PPID >> [DIR]/log",
        );
        let mark = format!("sh {}", mark.display());
        let runs: Vec<_> = (0..count)
            .map(|_| {
                let mut command = env.command(["ensure", "exec", &mark, "--lock-timeout", "300ms"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let ended: Vec<Output> =
            runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
        let done = ended.iter().filter(|output| output.status.code() == Some(0)).count();
        let busy = ended.iter().filter(|output| output.status.code() == Some(75)).count();
        assert!(done > 0 && done + busy == count, "{done} done, {busy} busy of {count}");
        let log = env.read("log");
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), 2 * done, "who exits with 75 has done nothing: {log}");
        for pair in lines.chunks(2) {
            assert_eq!(pair[0].strip_prefix("begin "), pair[1].strip_prefix("end "), "{log}");
        }
        if session {
            let events = std::fs::read_dir(env.path("session")).unwrap();
            let events = events.filter(|entry| {
                entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "event")
            });
            assert!(events.count() >= done);
        }
    }
}

#[test]
fn a_token_of_a_run_that_is_over_opens_nothing() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{keep: {provider: shell, command: \"printenv CCM_RUN > \
         [DIR]/token\"}}]}]}",
    );
    assert_eq!(apply(&env, &[]).0, Some(0));
    let stale = env.read("token").trim().to_owned();
    assert!(!stale.is_empty());
    env.manifest(AT_WORK);
    let first = env.start();
    wait_until("the run", || env.path("at-work").exists());
    let holder = format!("{}:1", first.id());
    for token in [stale.clone(), holder.clone(), format!("{stale}/{holder}"), "x".repeat(100_000)] {
        let mut command = env.command(["ensure", "exec", "true", "--lock-timeout", "0"]);
        let output = command.env("CCM_RUN", &token).output().unwrap();
        assert_eq!(output.status.code(), Some(75), "{}", said(&output));
    }
    env.write("go", "");
    assert!(first.wait_with_output().unwrap().status.success());
    // Where nobody holds the lock, it does no harm.
    let mut command = env.command(["ensure", "exec", "true", "--lock-timeout", "0"]);
    assert!(command.env("CCM_RUN", &stale).output().unwrap().status.success());
}

/// A killed run may leave a ccm that one of its commands has started, here two
/// levels below. The next run must not begin while that is at work.
#[test]
fn what_a_killed_run_has_started_is_waited_for() {
    let env = TestEnv::new();
    let ccm = env!("CARGO_BIN_EXE_ccm");
    env.write("deepest.yaml", AT_WORK);
    env.write(
        "inner.yaml",
        "ccm: {resources: [{exec: [{deeper: {provider: shell, command: \"$CCM apply \
         [DIR]/deepest.yaml\"}}]}]}",
    );
    env.manifest(
        "ccm: {resources: [{exec: [{nested: {provider: shell, command: \"$CCM apply \
         [DIR]/inner.yaml; echo $? > [DIR]/inner-exit\"}}]}]}",
    );
    let mut command = env.command(["apply", "manifest.yaml"]);
    let mut run =
        command.env("CCM", ccm).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the deepest run", || env.path("at-work").exists());
    run.kill().unwrap();
    run.wait().unwrap();
    let busy = env.run(["ensure", "file", "[DIR]/f", "--lock-timeout", "100ms"]);
    assert_eq!(busy.status.code(), Some(75), "{}", said(&busy));
    assert!(said(&busy).contains("inner.yaml"), "{}", said(&busy));
    let mut waiting = env.command(["ensure", "file", env.path("f").to_str().unwrap()]);
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    let (line, _rest) = first_line(&mut waiting);
    assert!(line.contains("waiting for another run"), "{line}");
    assert!(!env.path("f").exists());
    env.write("go", "");
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success() && env.path("f").exists());
    wait_until("the end of the inner run", || env.path("inner-exit").exists());
}
