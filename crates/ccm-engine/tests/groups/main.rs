//! Groups: the results are those of one resource after the other.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the test and its type work on files"
)]

mod part;
mod random;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ccm_engine::{
    AnyType, Detail, Engine, Erased, HistoryInfo, NoObserver, RunOptions, SourceRef, Stop,
    UndoOptions,
};
use ccm_host::{Cancel, System};
use ccm_model::{Event, Outcome};
use ccm_state::history;
use ccm_testkit::snapshot_of_content;

static TYPES: &[&dyn AnyType] = &[
    &Erased::<ccm_resources::exec::Exec>::NEW,
    &Erased::<ccm_resources::file::File>::NEW,
    &Erased::<part::Part>::NEW,
];

/// A directory for parts, with a state directory beside it.
struct Bed {
    directory: tempfile::TempDir,
    engine: Engine,
}

struct Ended {
    events: Vec<Event>,
    stop: Option<Stop>,
}

impl Ended {
    fn outcomes(&self) -> Vec<(String, Outcome)> {
        self.events.iter().map(|event| (event.name.clone(), event.outcome())).collect()
    }
}

impl Bed {
    fn new(present: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["parts", "state"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        for name in present {
            std::fs::write(directory.path().join("parts").join(name), "").unwrap();
        }
        Self { directory, engine: Engine::new(System::default(), TYPES) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The transactions since the last call.
    fn transactions(&self) -> Vec<String> {
        let path = self.path("parts.log");
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        log.lines().map(str::to_owned).collect()
    }

    fn parts(&self) -> BTreeMap<PathBuf, String> {
        snapshot_of_content(&self.path("parts"))
    }

    fn options(&self) -> RunOptions {
        let mut options = self.engine.options(Cancel::default());
        options.host.skip_sync();
        options.detail = Detail::Report;
        options.working_directory = self.path("");
        options.state.directory = options.host.state_dir(&self.path("state"), true).unwrap();
        options.state.history = Some(HistoryInfo::default());
        options
    }

    /// Applies a manifest in which `[DIR]` is the directory of the test.
    fn apply(&self, text: &str, set: impl FnOnce(&mut RunOptions)) -> Ended {
        let path = self.path("manifest.yaml");
        std::fs::write(&path, text.replace("[DIR]", self.path("").to_str().unwrap())).unwrap();
        let mut options = self.options();
        set(&mut options);
        let manifest = self.engine.load(&SourceRef::new(path), &options);
        let manifest = manifest.unwrap_or_else(|error| panic!("{}", ccm_engine::chain(&error)));
        let finished = self.engine.apply(manifest, &options, None, &mut NoObserver);
        Ended { events: finished.report.events, stop: finished.stop }
    }

    fn undo(&self) -> Vec<Event> {
        let options = self.options();
        let state = options.state.directory.clone().unwrap();
        let last = history::list(&state).unwrap().remove(0);
        let run = history::open(&state, &last.info.id).unwrap().unwrap();
        let undone = self.engine.undo(
            &run,
            &UndoOptions { partial: true, ..UndoOptions::default() },
            &options,
            &mut NoObserver,
        );
        undone.unwrap().finished.report.events
    }
}

/// Parts in the block style of manifests, and what follows them.
fn parts(names: &[&str], more: &str) -> String {
    let entries: String =
        names.iter().map(|name| format!("      - {name}: {{at: \"[DIR]/parts\"}}\n")).collect();
    format!("ccm:\n  resources:\n    - part:\n{entries}{more}")
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn neighbours_are_one_transaction_and_each_has_its_event() {
    let bed = Bed::new(&["b"]);
    let manifest = parts(&["a", "b", "c"], "");
    let ended = bed.apply(&manifest, |_| {});
    assert_eq!(bed.transactions(), ["a c"]);
    let places = ended.events.iter().map(|event| event.group.map(|it| (it.index, it.size)));
    assert_eq!(places.collect::<Vec<_>>(), [Some((0, 2)), None, Some((1, 2))]);
    let outcomes = [Outcome::Create, Outcome::Stable, Outcome::Create];
    assert!(ended.outcomes().iter().map(|(_, outcome)| *outcome).eq(outcomes));
    let second = bed.apply(&manifest, |_| {});
    assert!(bed.transactions().is_empty());
    assert!(second.events.iter().all(|event| event.outcome() == Outcome::Stable));
}

#[test]
fn without_groups_each_is_a_transaction() {
    let bed = Bed::new(&[]);
    let ended = bed.apply(&parts(&["a", "b"], ""), |options| options.groups = false);
    assert_eq!(bed.transactions(), ["a", "b"]);
    assert!(ended.events.iter().all(|event| event.group.is_none()));
}

#[test]
fn a_preview_looks_at_a_group_once() {
    let bed = Bed::new(&["c"]);
    let manifest = parts(&["a", "b", "c"], "");
    let ended = bed.apply(&manifest, |options| options.mode.noop = true);
    assert_eq!(bed.transactions(), ["foresee 2"]);
    assert_eq!(names(&bed.path("parts")), ["c"]);
    let verbs: Vec<_> = ended.outcomes();
    let done = bed.apply(&manifest, |_| {}).outcomes();
    assert_eq!(verbs, done);
}

/// A part that does not exist fails by itself, and spoils nothing else.
#[test]
fn what_spoils_a_transaction_fails_alone() {
    for spoiler in ["missing", "half", "stubborn"] {
        let bed = Bed::new(&[]);
        let ended = bed.apply(&parts(&["a", spoiler, "z"], ""), |_| {});
        let fails = spoiler != "half";
        let failed = ended.events.iter().map(|event| event.failed);
        assert_eq!(failed.collect::<Vec<_>>(), [false, fails, false], "{spoiler}");
        let there: &[&str] = if fails { &["a", "z"] } else { &["a", "half", "z"] };
        assert_eq!(names(&bed.path("parts")), there, "{spoiler}");
        let expected: &[&str] = match spoiler {
            "missing" => &["a missing z", "a", "missing", "z"],
            "half" => &["a half z", "half", "z"],
            _ => &["a stubborn z", "stubborn"],
        };
        assert_eq!(bed.transactions(), expected);
    }
}

#[test]
fn a_failure_stops_the_run_where_it_would_have_stopped() {
    let bed = Bed::new(&[]);
    let manifest = parts(&["a", "missing", "z"], "").replace("ccm:", "ccm:\n  fail_on_error: true");
    let ended = bed.apply(&manifest, |_| {});
    assert_eq!(ended.stop, Some(Stop::Failed));
    assert_eq!(names(&bed.path("parts")), ["a"]);
}

/// Installing and removing are two transactions, in the order written; another
/// type in between ends a group.
#[test]
fn groups_end_where_the_order_would_change() {
    let bed = Bed::new(&["old", "older"]);
    let manifest = "ccm:
  resources:
    - part:
      - defaults: {at: \"[DIR]/parts\"}
      - a: {}
      - b: {}
      - old: {ensure: absent}
      - older: {ensure: absent}
      - c: {}
    - exec: [\"true\": {}]
    - part:
      - defaults: {at: \"[DIR]/parts\"}
      - d: {}
";
    bed.apply(manifest, |_| {});
    assert_eq!(bed.transactions(), ["a b", "old older", "c", "d"]);
}

#[test]
fn who_has_no_turn_is_no_member() {
    let bed = Bed::new(&[]);
    let manifest = "ccm:
  resources:
    - part:
      - defaults: {at: \"[DIR]/parts\"}
      - a: {}
      - closed: {control: {if: \"false\"}}
      - missing: {}
      - unmet: {require: [part#missing]}
      - met: {require: [part#a]}
";
    let ended = bed.apply(manifest, |_| {});
    assert_eq!(bed.transactions(), ["a missing unmet met", "a", "missing", "met"]);
    let skipped = ended.events.iter().map(|event| event.skipped).collect::<Vec<_>>();
    assert_eq!(skipped, [false, true, false, true, false]);
    assert_eq!(names(&bed.path("parts")), ["a", "met"]);
    let again = bed.apply(manifest, |options| options.mode.noop = false);
    assert_eq!(bed.transactions(), ["missing unmet", "missing"], "{:?}", again.outcomes());
}

/// A subscriber of one member reacts to that member, once.
#[test]
fn subscribers_react_to_their_member() {
    let bed = Bed::new(&["b"]);
    let manifest = parts(
        &["a", "b", "c"],
        "    - exec:
      - of a: {command: touch [DIR]/reacted-a, refresh_only: true, subscribe: [part#a]}
      - of b: {command: touch [DIR]/reacted-b, refresh_only: true, subscribe: [part#b]}
",
    );
    bed.apply(&manifest, |_| {});
    assert!(bed.path("reacted-a").exists() && !bed.path("reacted-b").exists());
    let state = bed.options().state.directory.unwrap();
    assert!(ccm_state::list(&state).unwrap().owed.is_empty());
}

#[test]
fn a_group_is_undone_member_by_member() {
    let bed = Bed::new(&["old", "older", "stays"]);
    let before = bed.parts();
    let manifest = parts(&["a", "b", "missing"], "").replace("missing", "missing1")
        + "    - part:
      - old: {at: \"[DIR]/parts\", ensure: absent}
      - older: {at: \"[DIR]/parts\", ensure: absent}
";
    bed.apply(&manifest, |_| {});
    assert_eq!(names(&bed.path("parts")), ["a", "b", "stays"]);
    let events = bed.undo();
    assert!(events.iter().all(|event| !event.failed), "{events:?}");
    assert_eq!(bed.parts(), before);
}
