//! The decision table row by row without a machine, then real commands.

#![expect(clippy::disallowed_methods, reason = "tests set their stage by themselves")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ccm_engine::{
    Arguments, Declare as _, MemorySession, Observer, ResourceType as _, Session as _, Step,
    Trigger,
};
use ccm_host::Exit;
use ccm_model::{Change, Event, Verb};

use super::assignment::Assignment;
use super::retry::{Attempt, End};
use super::{Exec, Execute, Properties, State};
use crate::testing;

#[test]
fn the_decision_table() {
    let guarded = || Some("guard".into());
    let plain = Properties::default();
    let creates = Properties { creates: Some("/x".into()), ..Properties::default() };
    let onlyif = Properties { onlyif: guarded(), ..Properties::default() };
    let unless = Properties { unless: guarded(), ..Properties::default() };
    let refresh_only = Properties { refresh_only: true, ..Properties::default() };
    let none = State::default();
    let made = State { creates_satisfied: true, ..State::default() };
    let if_true = State { onlyif_satisfied: true, ..State::default() };
    let unless_true = State { unless_satisfied: true, ..State::default() };
    let (run, refreshed) = (Some(false), Some(true));
    for (row, want, have, why, via_subscribe) in [
        ("no guards", &plain, &none, Trigger::Turn, run),
        ("creates exists", &creates, &made, Trigger::Turn, None),
        ("creates missing", &creates, &none, Trigger::Turn, run),
        ("onlyif exits non-zero", &onlyif, &none, Trigger::Turn, None),
        ("onlyif exits 0", &onlyif, &if_true, Trigger::Turn, run),
        ("unless exits 0", &unless, &unless_true, Trigger::Turn, None),
        ("unless exits non-zero", &unless, &none, Trigger::Turn, run),
        ("refresh_only, no trigger", &refresh_only, &none, Trigger::Turn, None),
        ("triggered", &plain, &none, Trigger::Refresh, refreshed),
        ("triggered, creates exists", &creates, &made, Trigger::Refresh, refreshed),
        ("triggered, onlyif", &onlyif, &none, Trigger::Refresh, refreshed),
        ("triggered, unless", &unless, &unless_true, Trigger::Refresh, refreshed),
        ("triggered, refresh_only", &refresh_only, &none, Trigger::Refresh, refreshed),
    ] {
        let steps = Exec::decide(want, have, why).unwrap();
        assert!(steps.len() <= 1 && steps.iter().all(|step| step.verb == Verb::Executed));
        let decided = steps.first().map(|step| step.action.via_subscribe);
        assert_eq!(decided, via_subscribe, "{row}");
    }
}

#[test]
fn a_step_holds_what_the_command_needs() {
    let want = Properties {
        command: Some("touch /x".into()),
        cwd: Some("/tmp".into()),
        timeout: Some("3s".into()),
        environment: vec![Assignment::new("TOKEN=hush")],
        ..Properties::default()
    };
    let steps = Exec::decide(&want, &State::default(), Trigger::Turn).unwrap();
    assert_eq!(steps[0].changes, [Change::of("command").to("touch /x")]);
    let kept = serde_json::to_string(&steps).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Step<Execute>>>(&kept).unwrap(), steps);
    assert!(!format!("{steps:?}").contains("hush"), "{steps:?}");
}

#[test]
fn returns_decide_about_success() {
    let ended = |exit| {
        let attempt = Attempt { end: End::Exit(exit), last_words: String::new(), tries: 1 };
        State { finished: Some(attempt), ..State::default() }
    };
    let returns = |codes: &[i32]| Properties { returns: codes.to_vec(), ..Properties::default() };
    assert_eq!(Exec::mismatch(&returns(&[]), &ended(Exit::Code(0))), None);
    assert_eq!(Exec::mismatch(&returns(&[1, 2]), &ended(Exit::Code(2))), None);
    assert_eq!(
        Exec::mismatch(&returns(&[1, 2]), &ended(Exit::Code(0))).unwrap(),
        "the command exited with code 0, not 1 or 2"
    );
    assert_eq!(
        Exec::mismatch(&returns(&[]), &ended(Exit::Signal(9))).unwrap(),
        "the command was killed by signal 9"
    );
}

#[test]
fn a_failure_tells_how_often_it_was_tried() {
    let want = Properties {
        command: Some("migrate".into()),
        tries: Some(5),
        returns: vec![0, 2],
        ..Properties::default()
    };
    let after = |end, tries| {
        let attempt = Attempt { end, last_words: "no database".into(), tries };
        Exec::mismatch(&want, &State { finished: Some(attempt), ..State::default() })
    };
    let code = |code| End::Exit(Exit::Code(code));
    assert_eq!(after(code(2), 3), None);
    assert_eq!(
        after(code(7), 5).unwrap(),
        "`migrate` exited with code 7 after 5 tries\nno database"
    );
    assert_eq!(after(code(7), 1).unwrap(), "`migrate` exited with code 7 after 1 try\nno database");
    assert_eq!(
        after(End::Timeout(Duration::from_secs(2)), 5).unwrap(),
        "`migrate` exceeded its timeout of 2s after 5 tries\nno database"
    );
}

#[test]
fn long_retries_warn() {
    let warned = |tries, timeout: &str, sleep: &str| {
        let want = Properties {
            tries: Some(tries),
            timeout: Some(timeout.into()),
            try_sleep: Some(sleep.into()),
            ..Properties::default()
        };
        let mut findings = ccm_engine::Findings::default();
        Exec::validate(&want, ccm_model::Stage::Apply, &mut findings);
        format!("{findings:?}").contains("may take more than an hour")
    };
    assert!(!warned(60, "50s", "10s"));
    assert!(warned(60, "50s", "11s"));
    assert!(warned(100, "1h", "0s"));
}

/// A stage for real commands.
struct Stage {
    directory: tempfile::TempDir,
    session: MemorySession,
    lines: Lines,
}

#[derive(Default)]
struct Lines(Vec<(String, Instant)>);

impl Observer for Lines {
    fn output(&mut self, line: &str) {
        self.0.push((line.to_owned(), Instant::now()));
    }
}

type Given<'a> = (&'a str, &'a [&'a str]);

impl Stage {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            session: MemorySession::default(),
            lines: Lines::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn try_apply(&mut self, properties: &[Given<'_>], noop: bool) -> Result<Event, String> {
        let mut arguments = Arguments::default();
        for (key, values) in properties {
            match (*key, values) {
                ("refresh_only" | "logoutput", _) => arguments.switch_on(key),
                ("environment" | "returns" | "subscribe", values) => {
                    arguments.set_list(key, values.iter().map(ToString::to_string).collect());
                }
                (key, [value]) => arguments.set(key, *value),
                (key, _) => panic!("{key} takes one value"),
            }
        }
        let Self { directory, session, lines } = self;
        testing::ensure_in("exec", arguments, directory.path(), noop, session, lines)
    }

    fn apply(&mut self, properties: &[Given<'_>]) -> Event {
        self.try_apply(properties, false).unwrap()
    }

    /// Says that something has changed, for subscriptions.
    fn change(&mut self, name: &str) {
        let event =
            Event { kind: "file".into(), name: name.into(), changed: true, ..Event::default() };
        self.session.record(&event).unwrap();
    }
}

#[test]
fn the_name_is_the_command_unless_there_is_one() {
    let mut stage = Stage::new();
    let (a, b) = (stage.path("a"), stage.path("b"));
    let touch = format!("touch {}", a.display());
    assert!(stage.apply(&[("name", &[&touch])]).changed);
    assert!(a.exists());
    let touch = format!("touch '{}'", b.display());
    let event = stage.apply(&[("name", &["make b"]), ("command", &[&touch])]);
    assert!(b.exists());
    assert_eq!(event.status["exitcode"], 0);
    assert_eq!(event.final_ensure, "present");
}

#[test]
fn posix_has_no_shell_and_shell_has_one() {
    let mut stage = Stage::new();
    let echo = "echo $HOME | cat";
    stage.apply(&[("name", &[echo]), ("logoutput", &[])]);
    assert_eq!(stage.lines.0[0].0, "$HOME | cat");
    stage.apply(&[
        ("name", &["echo $((1 + 2)) | cat"]),
        ("provider", &["shell"]),
        ("logoutput", &[]),
    ]);
    assert_eq!(stage.lines.0[1].0, "3");
    let event = stage.apply(&[("name", &["true"]), ("provider", &["powershell"])]);
    assert!(
        event.error[0].contains("provider not found: type `exec` has no provider `powershell`"),
        "{event:?}"
    );
}

#[test]
fn a_shell_keeps_its_own_variables() {
    let mut stage = Stage::new();
    let command = "V=x; echo ${V}${V}";
    let base: [Given<'_>; 3] = [("name", &["x"]), ("command", &[command]), ("logoutput", &[])];
    let shell = [&base[..], &[("provider", &["shell"])]].concat();
    assert!(!stage.apply(&shell).failed);
    assert_eq!(stage.lines.0[0].0, "xx");
    let posix = stage.apply(&base);
    assert!(posix.error[0].contains("cannot resolve property `command`"), "{posix:?}");
    let ours = [("name", &["x"][..]), ("command", &["echo ${ x }"]), ("provider", &["shell"])];
    assert!(stage.apply(&ours).failed, "a blank makes it a placeholder");
}

#[test]
fn creates_skips_the_guards_too() {
    let mut stage = Stage::new();
    let (marker, guarded) = (stage.path("marker"), stage.path("guarded"));
    std::fs::write(&marker, "").unwrap();
    let guard = format!("touch {}", guarded.display());
    let marker = marker.to_str().unwrap().to_owned();
    let event =
        stage.apply(&[("name", &["false"]), ("creates", &[&marker]), ("onlyif", &[&guard])]);
    assert!(!event.changed && !event.failed, "{event:?}");
    assert_eq!(event.status["creates_satisfied"], true);
    assert!(!guarded.exists(), "the guard ran");
}

#[test]
fn guards_run_in_noop_and_share_the_surroundings() {
    let mut stage = Stage::new();
    let directory = stage.directory.path().to_str().unwrap().to_owned();
    let base: [Given<'_>; 4] = [
        ("name", &["touch made"]),
        ("cwd", &[&directory]),
        ("environment", &["ANSWER=42"]),
        ("onlyif", &["sh -c 'touch guard-ran; test $ANSWER = 42'"]),
    ];
    let event = stage.try_apply(&base, true).unwrap();
    assert_eq!(event.noop_message.as_deref(), Some("Would have executed"));
    assert!(event.changed && stage.path("guard-ran").exists() && !stage.path("made").exists());
    assert!(stage.apply(&base).changed && stage.path("made").exists());
    let kept = stage.apply(&[("name", &["false"]), ("unless", &["true"])]);
    assert!(!kept.changed && !kept.failed);
    assert_eq!(kept.status["unless_satisfied"], true);
    let broken = stage.apply(&[("name", &["true"]), ("onlyif", &["no-such-guard"])]);
    assert!(broken.failed && broken.error[0].contains("command not found: no-such-guard"));
}

#[test]
fn subscriptions_override_everything() {
    let mut stage = Stage::new();
    let marker = stage.path("m");
    std::fs::write(&marker, "").unwrap();
    let marker = marker.to_str().unwrap().to_owned();
    let base: [Given<'_>; 6] = [
        ("name", &["echo ran"]),
        ("creates", &[&marker]),
        ("onlyif", &["false"]),
        ("unless", &["no-such-guard"]),
        ("refresh_only", &[]),
        ("subscribe", &["file#/etc/app.conf"]),
    ];
    let unknown = stage.apply(&base);
    assert!(
        unknown.error[0]
            .contains("no resource with this name or alias ran earlier in this run or session"),
        "{unknown:?}"
    );
    let event = Event { kind: "file".into(), name: "/etc/app.conf".into(), ..Event::default() };
    stage.session.record(&event).unwrap();
    let quiet = stage.apply(&base);
    assert!(!quiet.changed && !quiet.refreshed && !quiet.failed, "{quiet:?}");
    stage.change("/etc/app.conf");
    let noop = stage.try_apply(&base, true).unwrap();
    assert_eq!(noop.noop_message.as_deref(), Some("Would have executed via subscribe"));
    let event = stage.apply(&base);
    assert!(event.changed && event.refreshed && !event.failed, "{event:?}");
    assert_eq!(event.log_words(), "refreshed");
}

#[test]
fn a_first_run_with_a_trigger_runs_once() {
    let mut stage = Stage::new();
    stage.change("/a");
    let log = stage.path("log");
    let command = format!("echo x >> {}", log.display());
    let event = stage.apply(&[
        ("name", &[&command]),
        ("provider", &["shell"]),
        ("subscribe", &["file#/a"]),
    ]);
    assert!(event.refreshed);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "x\n");
}

#[test]
fn failures_carry_the_last_words() {
    let mut stage = Stage::new();
    let event = stage.apply(&[
        ("name", &["echo useless; echo first >&2; echo last >&2; exit 3"]),
        ("provider", &["shell"]),
    ]);
    assert!(event.failed);
    assert_eq!(
        event.error[0],
        "desired state not achieved: the command exited with code 3, not 0\nfirst\nlast"
    );
    assert_eq!(event.status["exitcode"], 3);
    let killed = stage.apply(&[("name", &["kill -9 $$"]), ("provider", &["shell"])]);
    assert!(killed.error[0].contains("killed by signal 9"), "{killed:?}");
    let accepted =
        stage.apply(&[("name", &["exit 3"]), ("provider", &["shell"]), ("returns", &["0", "3"])]);
    assert!(accepted.changed && !accepted.failed);
}

#[test]
fn timeouts_end_the_command() {
    let mut stage = Stage::new();
    let begin = Instant::now();
    let event = stage.apply(&[("name", &["sleep 60"]), ("timeout", &["200ms"])]);
    assert!(event.failed && event.error[0].contains("exceeded its timeout of 200ms"), "{event:?}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn output_appears_while_it_arrives() {
    let mut stage = Stage::new();
    let script = "echo one; sleep 0.5; echo two";
    stage.apply(&[("name", &[script]), ("provider", &["shell"]), ("logoutput", &[])]);
    let [(one, first), (two, second)] = stage.lines.0.as_slice() else {
        panic!("{:?}", stage.lines.0)
    };
    assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
    assert!(second.duration_since(*first) > Duration::from_millis(300));
}

#[test]
fn the_path_finds_the_command_and_reaches_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut stage = Stage::new();
    let tool = stage.path("my-tool");
    std::fs::write(&tool, "#!/bin/sh\necho \"$PATH\"\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", stage.directory.path().display());
    let event = stage.apply(&[("name", &["my-tool"]), ("path", &[&path]), ("logoutput", &[])]);
    assert!(!event.failed, "{event:?}");
    assert_eq!(stage.lines.0[0].0, path);
    assert!(stage.apply(&[("name", &["my-tool"])]).failed);
}

#[test]
fn secrets_in_the_environment_are_not_recorded() {
    let mut stage = Stage::new();
    let event = stage.apply(&[("name", &["true"]), ("environment", &["TOKEN=hunter2"])]);
    let json = serde_json::to_string(&event).unwrap();
    assert!(json.contains("TOKEN=[redacted]") && !json.contains("hunter2"), "{json}");
}

#[test]
fn wrong_properties_are_found_before_anything_runs() {
    let mut stage = Stage::new();
    for (properties, words) in [
        (&[("name", &["echo 'oops"][..])][..], "Unterminated single-quoted string"),
        (&[("name", &["x"]), ("command", &["echo \"oops"])], "Unterminated double-quoted string"),
        (&[("name", &["x"]), ("command", &[" "])], "no command specified"),
        (&[("name", &["x"]), ("onlyif", &[" "])], "empty guard command"),
        (&[("name", &["x"]), ("unless", &["'"])], "invalid guard command"),
        (&[("name", &["x"]), ("timeout", &["soon"])], "is not a duration"),
        (&[("name", &["x"]), ("timeout", &["-5s"])], "is not a duration"),
        (&[("name", &["x"]), ("user", &[""])], "user name cannot be empty"),
        (&[("name", &["x"]), ("user", &["app:web"])], "`app:web` is not a name or ID"),
        (&[("name", &["x"]), ("group", &[""])], "group name cannot be empty"),
        (&[("name", &["x"]), ("group", &["a:b"])], "`a:b` is not a name or ID"),
        (&[("name", &["x"]), ("umask", &["1000"])], "is not an octal number"),
        (&[("name", &["x"]), ("umask", &["0089"])], "is not an octal number"),
        (&[("name", &["x"]), ("umask", &["u=rwx"])], "is not an octal number"),
        (&[("name", &["x"]), ("tries", &["0"])], "tries must be from 1 to 100, not 0"),
        (&[("name", &["x"]), ("tries", &["101"])], "tries must be from 1 to 100, not 101"),
        (&[("name", &["x"]), ("tries", &["2"]), ("try_sleep", &["61m"])], "longer than an hour"),
        (&[("name", &["x"]), ("tries", &["2"]), ("try_sleep", &["-1s"])], "is not a duration"),
        (&[("name", &["x"]), ("try_sleep", &["1s"])], "no effect without `tries` above 1"),
        (&[("name", &["x"]), ("path", &["/bin:usr/bin"])], "must be absolute"),
        (&[("name", &["x"]), ("environment", &["NOVALUE"])], "`[redacted]` is not `KEY=value`"),
        (&[("name", &["x"]), ("environment", &["KEY="])], "`KEY=[redacted]` is not `KEY=value`"),
        (&[("name", &["x"]), ("cwd", &["tmp"])], "must be absolute"),
        (&[("name", &["x"]), ("creates", &["/a/../b"])], "must be clean"),
        (&[("name", &["x"]), ("returns", &["zero"])], "expected a whole number"),
        (&[("name", &["x"]), ("subscribe", &["nothing"])], "is not a reference"),
        (&[("name", &["x"]), ("ensure", &["absent"])], "ensure cannot be `absent`"),
    ] {
        let error = stage.try_apply(properties, false).unwrap_err();
        assert!(error.contains(words), "{properties:?}: {error:?} lacks {words:?}");
    }
}
