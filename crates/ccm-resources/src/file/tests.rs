//! The decision table row by row without a machine, then the same rows on real
//! files: noop first, which must change nothing, then for real, then again,
//! which must find nothing to do.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests set their stage by themselves"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use ccm_engine::{AnyType as _, Arguments, Erased, ResourceType as _, Step, Trigger};
use ccm_host::{Attributes, Digest, FileKind, Host, Stat};
use ccm_model::{Change, Event, Properties as _, Reader, Verb};

use super::link::Link;
use super::{Action, Content, ContentState, CurrentFile, File, Properties, State, WriteMethod};
use crate::testing;

/// A property that the arguments of a stage set and a test does not want.
const NONE: &str = "\0";

const WANTED: Attributes = Attributes { uid: 1, gid: 2, mode: 0o644 };

fn want(ensure: &str, content: Option<&str>, force: bool) -> Properties {
    let mut properties =
        Properties { content: content.map(str::to_owned), force, ..Properties::default() };
    properties.common_mut().name = "/x".into();
    properties.common_mut().ensure = ensure.into();
    properties
}

fn have(ensure: &str, found: CurrentFile, content: ContentState, matching: bool) -> State {
    let stat = Stat {
        kind: FileKind::File,
        uid: 1,
        gid: 2,
        mode: if matching { 0o644 } else { 0o600 },
        size: 0,
        mtime: jiff_epoch(),
        ctime: jiff_epoch(),
        dev: 0,
        ino: 0,
    };
    State {
        found,
        stat: (found != CurrentFile::Nothing).then_some(stat),
        content,
        source: None,
        lines: None,
        is_link: false,
        link: None,
        copy: None,
        checksum: None,
        shows_checksum: true,
        wanted_checksum: None,
        wanted: (ensure != "absent").then_some(WANTED),
        name: "/x".into(),
        provider: "posix",
        owner: None,
        group: None,
    }
}

fn jiff_epoch() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

/// ensure, content, force, what is found, how its content compares, whether its
/// attributes match, and what is to be done.
type Row = (
    &'static str,
    Option<&'static str>,
    bool,
    CurrentFile,
    ContentState,
    bool,
    Result<Vec<Action>, &'static str>,
);

#[test]
fn the_decision_table() {
    use ContentState::{Differs, Same, Unmanaged};
    use CurrentFile::{Directory, File as Regular, Nothing, Other, Symlink};
    const EMPTY: CurrentFile = Directory { empty: Some(true) };
    const FULL: CurrentFile = Directory { empty: Some(false) };
    const DIR: CurrentFile = Directory { empty: None };
    let path = || PathBuf::from("/x");
    let attributes = WANTED;
    let set = Action::SetAttributes { path: path(), attributes };
    let store = Action::Store {
        path: path(),
        content: Content::Text("c".into()),
        attributes,
        write: WriteMethod::Replace,
        validate: None,
    };
    let empty = Action::Store {
        path: path(),
        content: Content::Empty,
        attributes,
        write: WriteMethod::Replace,
        validate: None,
    };
    let mkdir = Action::CreateDirectory { path: path(), attributes };
    let remove = || vec![Action::Remove { path: path() }];
    let rmdir = vec![Action::RemoveDirectory { path: path() }];
    let rmtree = vec![Action::RemoveTree { path: path() }];
    let rows: Vec<Row> = vec![
        ("absent", None, false, Nothing, Unmanaged, true, Ok(vec![])),
        ("absent", None, false, Regular, Unmanaged, true, Ok(remove())),
        ("absent", None, false, Symlink, Unmanaged, true, Ok(remove())),
        ("absent", None, false, Other, Unmanaged, true, Ok(remove())),
        ("absent", None, false, EMPTY, Unmanaged, true, Ok(rmdir)),
        (
            "absent",
            None,
            false,
            FULL,
            Unmanaged,
            true,
            Err("directory is not empty, set 'force: true'"),
        ),
        ("absent", None, true, DIR, Unmanaged, true, Ok(rmtree)),
        ("absent", None, true, Regular, Unmanaged, true, Ok(remove())),
        ("directory", None, false, DIR, Unmanaged, true, Ok(vec![])),
        ("directory", None, false, Nothing, Unmanaged, true, Ok(vec![mkdir.clone()])),
        ("directory", None, false, DIR, Unmanaged, false, Ok(vec![mkdir])),
        ("directory", None, false, Regular, Unmanaged, true, Err("exists and is not a directory")),
        ("directory", None, false, Other, Unmanaged, true, Err("exists and is not a directory")),
        ("present", Some("c"), false, Regular, Same, true, Ok(vec![])),
        ("present", Some("c"), false, Nothing, Differs, true, Ok(vec![store.clone()])),
        ("present", Some("c"), false, Regular, Differs, true, Ok(vec![store.clone()])),
        ("present", Some("c"), false, Regular, Same, false, Ok(vec![store])),
        ("present", None, false, Regular, Unmanaged, true, Ok(vec![])),
        ("present", None, false, Regular, Unmanaged, false, Ok(vec![set])),
        ("present", None, false, Nothing, Unmanaged, true, Ok(vec![empty])),
        ("present", Some("c"), false, DIR, Unmanaged, true, Err("path exists as a directory")),
        ("present", None, false, DIR, Unmanaged, true, Err("path exists as a directory")),
        ("present", Some("c"), false, Other, Unmanaged, true, Err("not a file")),
    ];
    for (ensure, content, force, found, state, matching, wanted) in rows {
        let row =
            format!("{ensure} content={content:?} force={force} {found:?} {state:?} {matching}");
        let got = File::decide(
            &want(ensure, content, force),
            &have(ensure, found, state, matching),
            Trigger::Turn,
        );
        match (got, wanted) {
            (Ok(got), Ok(wanted)) => {
                let got: Vec<Action> = got.into_iter().map(|step| step.action).collect();
                assert_eq!(got, wanted, "{row}");
            }
            (Err(got), Err(wanted)) => assert!(got.to_string().contains(wanted), "{row}: {got}"),
            (got, wanted) => panic!("{row}: {got:?}, wanted {wanted:?}"),
        }
    }
}

#[test]
fn the_decision_table_of_symlinks() {
    use CurrentFile::{Directory, File as Regular, Nothing, Other, Symlink};
    const EMPTY: CurrentFile = Directory { empty: Some(true) };
    const FULL: CurrentFile = Directory { empty: Some(false) };
    const UNREAD: CurrentFile = Directory { empty: None };
    let path = PathBuf::from("/x");
    let link_by =
        |force| Action::Link { path: path.clone(), target: "to".into(), owner: 1, group: 2, force };
    let link = || link_by(false);
    let rmdir = || Action::RemoveDirectory { path: path.clone() };
    let decide = |found, text: Option<&str>, owner: u32, force| {
        let mut want = want("link", None, force);
        want.target = Some("to".into());
        let mut have = have("link", found, ContentState::Unmanaged, true);
        have.wanted = Some(Attributes { mode: 0o777, ..WANTED });
        if let Some(stat) = &mut have.stat {
            (stat.mode, stat.uid) = (0o777, owner);
        }
        have.link = text.map(|text| Link { target: text.into(), kind: None });
        let steps = File::decide(&want, &have, Trigger::Turn);
        let told = |step: &Step<Action>| (step.action.clone(), File::describe(step));
        steps.map(|steps| steps.iter().map(told).collect::<Vec<_>>())
    };
    let created = || vec![(link(), "Would have created symlink".to_owned())];
    for force in [false, true] {
        assert_eq!(decide(Nothing, None, 1, force).unwrap(), created());
        assert_eq!(decide(Symlink, Some("to"), 1, force).unwrap(), []);
        let owner = decide(Symlink, Some("to"), 7, force).unwrap();
        assert_eq!(owner, [(link(), "Would have updated attributes".to_owned())]);
        for text in ["other", "./to", "to/"] {
            let other = decide(Symlink, Some(text), 1, force).unwrap();
            assert_eq!(other, [(link(), "Would have updated target".to_owned())], "{text}");
        }
        for found in [FULL, UNREAD] {
            let error = decide(found, None, 1, force).unwrap_err().to_string();
            assert_eq!(error, "/x: path exists as a directory");
        }
    }
    for found in [Regular, Other] {
        let error = decide(found, None, 1, false).unwrap_err();
        assert_eq!(error.to_string(), "/x exists and is not a symlink");
        assert_eq!(error.hint().as_deref(), Some("set `force: true` to replace it"));
        let replaced = [(link_by(true), "Would have created symlink".to_owned())];
        assert_eq!(decide(found, None, 1, true).unwrap(), replaced);
    }
    let error = decide(EMPTY, None, 1, false).unwrap_err().to_string();
    assert_eq!(error, "/x: path exists as a directory");
    let removed = (rmdir(), "Would have removed the directory".to_owned());
    assert_eq!(decide(EMPTY, None, 1, true).unwrap(), [vec![removed], created()].concat());
}

#[test]
fn a_directory_that_becomes_a_symlink_is_a_change() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("d")).unwrap();
    let properties = [("ensure", "link"), ("mode", NONE), ("target", "x"), ("force", "")];
    for noop in [true, false] {
        let event = stage.apply("d", &properties, noop);
        assert_eq!(event.outcome(), ccm_model::Outcome::Change, "{event:?}");
        let ensure: Vec<_> =
            event.changes.iter().filter(|change| change.property == "ensure").collect();
        assert_eq!(ensure, [&Change::of("ensure").from("directory").to("link")]);
    }
}

#[test]
fn symlinks_on_a_real_disk() {
    let stage = Stage::new();
    let link = |name: &str| std::fs::read_link(stage.path(name)).unwrap();
    let to = |target: &'static str| [("ensure", "link"), ("mode", NONE), ("target", target)];
    stage.converges("l", &to("nowhere"), "Would have created symlink");
    assert_eq!(link("l"), Path::new("nowhere"));
    stage.converges("l", &to("/absolute"), "Would have updated target");
    assert_eq!(link("l"), Path::new("/absolute"));
    std::fs::write(stage.path("f"), "x").unwrap();
    std::fs::create_dir(stage.path("empty")).unwrap();
    std::fs::create_dir_all(stage.path("full/sub")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(stage.path("pipe")).status();
    assert!(pipe.unwrap().success());
    for name in ["f", "pipe"] {
        stage.fails(name, &to("x"), "exists and is not a symlink");
    }
    for name in ["empty", "full"] {
        stage.fails(name, &to("x"), "path exists as a directory");
    }
    let forced = |target| [("ensure", "link"), ("mode", NONE), ("target", target), ("force", "")];
    stage.fails("full", &forced("x"), "path exists as a directory");
    stage.fails("no/l", &to("x"), "is not a directory");
    for name in ["f", "pipe"] {
        stage.converges(name, &forced("x"), "Would have created symlink");
    }
    let both = "Would have removed the directory. Would have created symlink";
    stage.converges("empty", &forced("full"), both);
    assert_eq!(link("empty"), Path::new("full"));
    // What it points to is as it was.
    assert!(stage.path("full/sub").is_dir());
}

#[test]
fn content_is_checked_before_it_is_written() {
    let stage = Stage::new();
    let checked = |content: &'static str, command: &'static str| {
        [("content", content), ("validate", command)]
    };
    let good = checked("good\n", "grep -q good {}");
    stage.converges("f", &good, "Would have created the file");
    // Equal content is not checked again: this would fail.
    let equal = stage.apply("f", &checked("good\n", "false {}"), false);
    assert!(!equal.failed && !equal.changed, "{equal:?}");
    let path = stage.path("f");
    let words = format!("validation failed: grep -q good {} exited with code 1", path.display());
    stage.fails("f", &checked("bad\n", "grep -q good {}"), &words);
    stage.fails("new", &checked("bad\n", "grep -q good {}"), "exited with code 1");
    let said = format!("exited with code 2: ls: cannot access '{}/x'", path.display());
    stage.fails("f", &checked("bad\n", "ls {}/x"), &said);
    stage.fails("f", &checked("bad\n", "sed -i s/bad/good/ {}"), "changed the file");
    stage.fails("f", &checked("bad\n", "no-such-program {}"), "no-such-program");
    let hidden = [("content", "bad\n"), ("mode", "0600"), ("validate", "ls {}/x")];
    let event = stage.apply("f", &hidden, false);
    assert!(event.error.iter().any(|error| error.ends_with("exited with code 2")), "{event:?}");
    let mode = [("content", "ok\n"), ("mode", "0600"), ("validate", "find {} -perm 0600 -quit")];
    stage.converges("g", &mode, "Would have created the file");
}

#[test]
fn links_are_refused_only_where_something_would_change() {
    let decide = |ensure: &str, found, matching| {
        let state =
            State { is_link: true, ..have(ensure, found, ContentState::Unmanaged, matching) };
        File::decide(&want(ensure, None, false), &state, Trigger::Turn)
    };
    for (ensure, found) in
        [("present", CurrentFile::File), ("directory", CurrentFile::Directory { empty: None })]
    {
        assert_eq!(decide(ensure, found, true).unwrap(), vec![], "{ensure}");
        let error = decide(ensure, found, false).unwrap_err().to_string();
        assert!(error.contains("symlink"), "{error}");
    }
}

#[test]
fn special_bits_are_not_compared() {
    let mut state = have("present", CurrentFile::File, ContentState::Unmanaged, true);
    state.stat.as_mut().unwrap().mode = 0o6644;
    assert_eq!(File::decide(&want("present", None, false), &state, Trigger::Turn).unwrap(), vec![]);
    assert_eq!(File::mismatch(&want("present", None, false), &state), None);
}

#[test]
fn a_mismatch_names_the_attribute() {
    let reason = |state: &State| File::mismatch(&want("present", Some("c"), false), state).unwrap();
    let mut state = have("present", CurrentFile::File, ContentState::Same, false);
    assert_eq!(reason(&state), "mode is 0600, should be 0644");
    state.stat.as_mut().unwrap().uid = 7;
    assert_eq!(reason(&state), "owner is 7, should be 1");
    state.content = ContentState::Differs;
    assert_eq!(reason(&state), "content is not what was written");
    state.found = CurrentFile::Nothing;
    assert_eq!(reason(&state), "ensure is absent, should be present");
}

#[test]
fn steps_say_what_they_change() {
    let change = |property: &'static str| Change::of(property);
    let steps = |ensure: &str, content, have: &State| {
        let mut want = want(ensure, content, false);
        (want.owner, want.group) = ("root".into(), "wheel".into());
        File::decide(&want, have, Trigger::Turn).unwrap()
    };
    let mode_only = have("present", CurrentFile::File, ContentState::Same, false);
    let [step] = &steps("present", Some("c"), &mode_only)[..] else { panic!() };
    assert_eq!(step.verb, Verb::Updated);
    assert_eq!(step.changes, [change("mode").from("0600").to("0644")]);
    assert_eq!(File::describe(step), "Would have updated attributes");
    let new = have("present", CurrentFile::Nothing, ContentState::Differs, true);
    let [step] = &steps("present", Some("a\nb\n"), &new)[..] else { panic!() };
    assert_eq!(step.verb, Verb::Created);
    let wanted = [
        change("ensure").from("absent").to("present"),
        change("content").lines((2, 0)),
        change("owner").to("root"),
        change("group").to("wheel"),
        change("mode").to("0644"),
    ];
    assert_eq!(step.changes, wanted);
    assert_eq!(File::describe(step), "Would have created the file");
    let mut hidden = have("present", CurrentFile::File, ContentState::Differs, false);
    (hidden.lines, hidden.checksum) = (Some((3, 1)), Some(Digest::of(b"x")));
    let [step] = &steps("present", Some("c"), &hidden)[..] else { panic!() };
    assert_eq!(step.changes[0], Change::secret("content"), "0600 hides it from others");
    let mut shown = have("present", CurrentFile::File, ContentState::Differs, true);
    shown.lines = Some((3, 1));
    let [step] = &steps("present", Some("c"), &shown)[..] else { panic!() };
    assert_eq!(step.changes, [change("content").lines((3, 1))]);
    let gone = have("absent", CurrentFile::File, ContentState::Unmanaged, true);
    let [step] = &steps("absent", None, &gone)[..] else { panic!() };
    assert_eq!(step.verb, Verb::Removed);
    assert_eq!(step.changes, [change("ensure").from("present").to("absent")]);
}

#[test]
fn steps_can_be_kept() {
    let new = have("present", CurrentFile::Nothing, ContentState::Differs, true);
    let steps = File::decide(&want("present", Some("c"), false), &new, Trigger::Turn).unwrap();
    let json = serde_json::to_string(&steps).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Step<Action>>>(&json).unwrap(), steps);
}

#[test]
fn how_to_write_is_one_of_two_words_and_for_files() {
    let problem = |properties: &[(&str, &str)]| {
        let arguments = Stage::new().arguments("f", properties);
        let resource =
            Erased::<File>::NEW.declare(arguments.into_entries(), None, &mut Reader::default());
        resource.findings(&Host::new()).into_iter().next().map(|finding| finding.message)
    };
    for word in ["replace", "in_place"] {
        assert_eq!(problem(&[("content", "x"), ("write", word)]), None);
        for ensure in ["absent", "directory"] {
            let message = "write: only `ensure: present` writes content";
            assert_eq!(problem(&[("ensure", ensure), ("write", word)]).as_deref(), Some(message));
        }
    }
    let message = "write: unknown way to write `inplace`";
    assert_eq!(problem(&[("write", "inplace")]).as_deref(), Some(message));
}

#[test]
fn in_place_keeps_the_inode() {
    let stage = Stage::new();
    let properties = [("content", "new"), ("write", "in_place")];
    stage.converges("new", &properties, "Would have created the file");
    std::fs::write(stage.path("f"), "old and longer").unwrap();
    let inode = std::fs::metadata(stage.path("f")).unwrap().ino();
    stage.converges("f", &properties, "Would have created the file");
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), b"new");
    // Only the mode differs: the content is not written again.
    let mtime = std::fs::metadata(stage.path("f")).unwrap().modified().unwrap();
    let mode = [("content", "new"), ("write", "in_place"), ("mode", "0600")];
    stage.converges("f", &mode, "Would have updated attributes");
    let meta = std::fs::metadata(stage.path("f")).unwrap();
    assert_eq!((meta.ino(), meta.modified().unwrap()), (inode, mtime));
    std::fs::write(stage.path("source"), "copied").unwrap();
    let copy = [("source", "source"), ("write", "in_place")];
    stage.converges("f", &copy, "Would have created the file");
    assert_eq!(std::fs::metadata(stage.path("f")).unwrap().ino(), inode);

    symlink("f", stage.path("link")).unwrap();
    stage.fails("link", &properties, "is a symlink, not a regular file");
    symlink("nowhere", stage.path("dangling")).unwrap();
    stage.fails("dangling", &properties, "is a symlink, not a regular file");
}

/// A stage for real files.
struct Stage {
    directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn arguments(&self, name: &str, properties: &[(&str, &str)]) -> Arguments {
        let mut arguments = Arguments::default();
        let (uid, gid) = Host::new().whoami();
        for (key, value) in [
            ("name", self.path(name).to_str().unwrap()),
            ("owner", uid.to_string().as_str()),
            ("group", gid.to_string().as_str()),
            ("mode", "0644"),
        ] {
            arguments.set(key, value);
        }
        for (key, value) in properties {
            match *key {
                key if *value == NONE => drop(arguments.take(key)),
                "force" => arguments.switch_on("force"),
                key => arguments.set(key, *value),
            }
        }
        arguments
    }

    fn apply(&self, name: &str, properties: &[(&str, &str)], noop: bool) -> Event {
        testing::ensure("file", self.arguments(name, properties), self.directory.path(), noop)
    }

    /// Everything below the stage: what it is, its mode, its content.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut tree = BTreeMap::new();
        let mut pending = vec![self.directory.path().to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let meta = std::fs::symlink_metadata(&path).unwrap();
                let content = if meta.is_symlink() {
                    format!("{:?}", std::fs::read_link(&path).unwrap())
                } else if meta.is_file() {
                    format!("{:?}", std::fs::read(&path).unwrap())
                } else {
                    String::new()
                };
                let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec());
                let line =
                    format!("{:o} {} {} {times:?} {content}", meta.mode(), meta.uid(), meta.ino());
                tree.insert(path.clone(), line);
                if meta.is_dir() {
                    pending.push(path);
                }
            }
        }
        tree
    }

    /// Noop must say `message` and change nothing; the real run must change;
    /// the one after it must be stable.
    fn converges(&self, name: &str, properties: &[(&str, &str)], message: &str) {
        let before = self.tree();
        let noop = self.apply(name, properties, true);
        assert_eq!(noop.noop_message.as_deref(), Some(message), "{noop:?}");
        assert!(noop.changed && noop.noop && !noop.failed);
        assert_eq!(self.tree(), before, "noop changed something");
        let first = self.apply(name, properties, false);
        assert!(first.changed && !first.failed, "{first:?}");
        let after = self.tree();
        let second = self.apply(name, properties, false);
        assert!(!second.changed && !second.failed, "{second:?}");
        assert_eq!(self.tree(), after, "a stable run changed something");
        let leftovers = after.keys().filter(|path| path.to_string_lossy().contains(".ccm-"));
        assert_eq!(leftovers.count(), 0, "temporary files were left");
    }

    fn fails(&self, name: &str, properties: &[(&str, &str)], words: &str) {
        for noop in [true, false] {
            let before = self.tree();
            let event = self.apply(name, properties, noop);
            assert!(event.failed && !event.changed, "{event:?}");
            assert!(event.error[0].contains(words), "{:?} lacks {words:?}", event.error);
            assert_eq!(self.tree(), before, "a failure changed something");
        }
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn content_is_created_and_kept() {
    let stage = Stage::new();
    stage.converges("f", &[("content", "hello\n")], "Would have created the file");
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), b"hello\n");
    assert_eq!(mode(&stage.path("f")), 0o644);
    stage.converges("f", &[("content", "hullo\n")], "Would have created the file");
    stage.converges(
        "f",
        &[("contents", "hullo\n"), ("mode", "600")],
        "Would have updated attributes",
    );
    assert_eq!(mode(&stage.path("f")), 0o600);
    stage.converges("empty", &[("content", "")], "Would have created the file");
    assert_eq!(std::fs::read(stage.path("empty")).unwrap(), b"");
}

#[test]
fn sources_are_copied_from_the_working_directory() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("files")).unwrap();
    let large: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(stage.path("files/large"), &large).unwrap();
    stage.converges("f", &[("source", "files/large")], "Would have created the file");
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), large);
    stage.fails("g", &[("source", "files/missing")], "files/missing");
    stage.fails("f", &[("source", "files/missing")], "files/missing");
    stage.fails("f", &[("source", "files")], "is a directory, not a regular file");
}

#[test]
fn attributes_alone_leave_the_content_alone() {
    let stage = Stage::new();
    let message = "Would have created an empty file with requested attributes";
    stage.converges("f", &[("mode", "0640")], message);
    std::fs::write(stage.path("f"), "produced elsewhere").unwrap();
    stage.converges("f", &[("mode", "0600")], "Would have updated attributes");
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), b"produced elsewhere");
    let event = stage.apply("f", &[("mode", "0600")], false);
    assert_eq!(event.status["metadata"]["checksum"], serde_json::Value::Null, "content was read");
    std::fs::set_permissions(stage.path("f"), std::fs::Permissions::from_mode(0o4600)).unwrap();
    stage.converges("f", &[("mode", "0700")], "Would have updated attributes");
    assert_eq!(mode(&stage.path("f")), 0o4700, "bits that someone else set are kept");
    stage.converges("f", &[("content", "x"), ("mode", "0700")], "Would have created the file");
    assert_eq!(mode(&stage.path("f")), 0o700, "and cleared by a new file");
}

#[test]
fn links_are_not_changed_through() {
    let stage = Stage::new();
    std::fs::write(stage.path("target"), "t").unwrap();
    symlink(stage.path("target"), stage.path("link")).unwrap();
    stage.fails("link", &[("mode", "0600")], "symlink");
    assert!(!stage.apply("link", &[("content", "t")], false).changed, "counts as its target");
    stage.converges("link", &[("content", "new")], "Would have created the file");
    assert!(std::fs::symlink_metadata(stage.path("link")).unwrap().is_file());
    assert_eq!(std::fs::read(stage.path("target")).unwrap(), b"t");
}

#[test]
fn directories_are_made_with_their_parents() {
    let stage = Stage::new();
    stage.converges("a/b", &[("ensure", "directory")], "Would have created directory");
    assert_eq!(mode(&stage.path("a/b")), 0o755, "0644 lets readers enter");
    let private = [("ensure", "directory"), ("mode", "0700")];
    stage.converges("a/b", &private, "Would have updated attributes");
    assert_eq!(mode(&stage.path("a/b")), 0o700);
    std::fs::write(stage.path("f"), "").unwrap();
    stage.fails("f", &[("ensure", "directory")], "exists and is not a directory");
    stage.fails("a", &[("content", "x")], "path exists as a directory");
    stage.fails("a", &[], "path exists as a directory");
}

#[test]
fn removal_in_every_form() {
    let stage = Stage::new();
    let absent = [("ensure", "absent")];
    let forced = [("ensure", "absent"), ("force", "")];
    std::fs::write(stage.path("f"), "").unwrap();
    stage.converges("f", &absent, "Would have removed the file");
    symlink("/nonexistent", stage.path("dangling")).unwrap();
    stage.converges("dangling", &absent, "Would have removed the file");
    std::fs::create_dir(stage.path("empty")).unwrap();
    stage.converges("empty", &absent, "Would have removed the directory");
    std::fs::create_dir_all(stage.path("full/sub")).unwrap();
    std::fs::write(stage.path("full/sub/f"), "").unwrap();
    stage.fails("full", &absent, "directory is not empty, set 'force: true'");
    stage.converges("full", &forced, "Would have recursively removed the directory");
    std::fs::create_dir(stage.path("kept")).unwrap();
    std::fs::write(stage.path("kept/f"), "").unwrap();
    symlink(stage.path("kept"), stage.path("to-kept")).unwrap();
    stage.converges("to-kept", &forced, "Would have removed the file");
    assert!(stage.path("kept/f").exists());
    make_fifo(&stage.path("fifo"));
    stage.fails("fifo", &[("content", "x")], "socket, FIFO or device");
    stage.converges("fifo", &absent, "Would have removed the file");
}

fn make_fifo(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

#[test]
fn what_cannot_be_done_is_a_failure_and_changes_nothing() {
    let stage = Stage::new();
    stage.fails("f", &[("content", "x"), ("owner", "no-such-user")], "could not lookup user");
    stage.fails("f", &[("content", "x"), ("group", "no-such-group")], "could not lookup group");
    let event = stage.apply("missing/f", &[("content", "x")], false);
    assert!(
        event.failed && event.error[0].contains("missing is not a directory: it does not exist"),
        "{event:?}"
    );
    assert!(stage.tree().is_empty());
}

#[test]
fn ids_without_a_name_are_fine_for_root() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let stage = Stage::new();
    let foreign = [("content", "x"), ("owner", "4000123"), ("group", "4000456")];
    stage.converges("f", &foreign, "Would have created the file");
    let meta = std::fs::metadata(stage.path("f")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (4_000_123, 4_000_456));
}

#[test]
fn the_status_tells_what_the_design_lists() {
    let stage = Stage::new();
    std::fs::write(stage.path("f"), "abc").unwrap();
    let status = testing::status("file", stage.arguments("f", &[]));
    assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.file.state");
    assert_eq!(status["ensure"], "present");
    assert_eq!(status["metadata"]["checksum"], Digest::of(b"abc").to_string());
    assert_eq!(status["metadata"]["size"], 3);
    assert_eq!(status["metadata"]["provider"], "posix");
    for name in ["owner", "group", "mode", "mtime", "name"] {
        assert!(status["metadata"][name].is_string(), "{name}");
    }
}

#[test]
fn the_status_of_a_symlink_is_its_own() {
    let stage = Stage::new();
    std::fs::write(stage.path("f"), "abc").unwrap();
    std::fs::create_dir(stage.path("d")).unwrap();
    for (name, target, kind) in
        [("to-f", "f", Some("file")), ("to-d", "./d", Some("directory")), ("dangling", "no", None)]
    {
        symlink(target, stage.path(name)).unwrap();
        let status = testing::status("file", stage.arguments(name, &[]));
        assert_eq!(status["ensure"], "link", "{status}");
        let metadata = &status["metadata"];
        assert_eq!(metadata["target"], target, "{status}");
        assert_eq!(metadata["target_exists"], kind.is_some(), "{status}");
        assert_eq!(metadata["target_kind"].as_str(), kind, "{status}");
        assert!(metadata.get("checksum").is_none(), "{status}");
    }
}

#[test]
fn wrong_properties_are_found_before_anything_runs() {
    let findings = |properties: &[(&str, &str)]| {
        let mut arguments = Arguments::default();
        for (key, value) in properties {
            match *key {
                "force" => arguments.switch_on("force"),
                key => arguments.set(key, *value),
            }
        }
        let mut reader = Reader::default();
        let resource = Erased::<File>::NEW.declare(arguments.into_entries(), None, &mut reader);
        let all = reader.findings.into_iter().chain(resource.findings(&Host::new()));
        all.map(|finding| finding.message).collect::<Vec<_>>().join("; ")
    };
    let base = [("owner", "root"), ("group", "root"), ("mode", "0644")];
    let with = |more: &[(&'static str, &'static str)]| findings(&[&base[..], more].concat());
    assert_eq!(with(&[("name", "/x")]), "");
    for (properties, words) in [
        (&[("name", "x")][..], "file path must be absolute"),
        (&[("name", "/a/../b")], "must be clean"),
        (&[("name", "/a/")], "must be clean"),
        (&[("name", "/a\0b")], "NUL"),
        (&[("name", "/x"), ("mode", "1777")], "above 0777"),
        (&[("name", "/x"), ("mode", "rw-r--r--")], "not an octal mode"),
        (&[("name", "/x"), ("owner", "")], "owner: user name cannot be empty"),
        (&[("name", "/x"), ("content", "a"), ("source", "b")], "cannot both be set"),
        (
            &[("name", "/x"), ("force", "")],
            "only `ensure: absent` and `ensure: link` can be forced",
        ),
        (&[("name", "/"), ("ensure", "absent"), ("force", "")], "root directory cannot be removed"),
        (
            &[("name", "/x"), ("ensure", "directory"), ("content", "a")],
            "a directory has no content",
        ),
        (&[("name", "/x"), ("ensure", "gone")], "ensure cannot be `gone`"),
        (&[("name", "")], "needs a name"),
    ] {
        let got = with(properties);
        assert!(got.contains(words), "{properties:?}: {got:?} lacks {words:?}");
    }
    let link = |properties: &[(&str, &str)]| {
        findings(&[&[("name", "/x"), ("ensure", "link")], properties].concat())
    };
    let long = "x".repeat(4096);
    for (properties, words) in [
        (&[][..], "target: a symlink needs a target"),
        (&[("target", "")], "target: cannot be empty"),
        (&[("target", "a\0b")], "target: contains a NUL byte"),
        (&[("target", &long)], "target: is longer than 4095 bytes"),
        (&[("target", "a"), ("mode", "0644")], "mode: a symlink has no mode"),
        (&[("target", "a"), ("content", "x")], "content: a symlink has no content"),
        (&[("target", "a"), ("source", "x")], "source: a symlink has no content"),
        (&[("target", "a"), ("write", "replace")], "write: a symlink has no content"),
    ] {
        let got = link(properties);
        assert!(got.contains(words), "{properties:?}: {got:?} lacks {words:?}");
    }
    for (properties, words) in [
        (&[("name", "/x"), ("content", "a"), ("validate", "true")], "does not contain `{}`"),
        (&[("name", "/x"), ("content", "a"), ("validate", "{}")], "does not contain `{}`"),
        (&[("name", "/x"), ("mode", "0644"), ("validate", "true {}")], "no `content` or `source`"),
    ] {
        let got = with(properties);
        assert!(got.contains(words), "{properties:?}: {got:?} lacks {words:?}");
    }
    assert!(link(&[("target", "a"), ("validate", "true {}")]).contains("has no content"));
    assert_eq!(link(&[("target", &long[1..])]), "");
    assert!(with(&[("name", "/x"), ("target", "a")]).contains("only `ensure: link`"));
    let missing = findings(&[("name", "/x")]);
    for property in ["owner", "group", "mode"] {
        assert!(missing.contains(&format!("property `{property}` is required")), "{missing}");
    }
    assert_eq!(findings(&[("name", "/x"), ("ensure", "absent")]), "");
}

mod paths {
    use ccm_engine::Findings;
    use proptest::prelude::*;

    proptest! {
        /// Whatever passes the check means the same file to every tool.
        #[test]
        fn accepted_paths_are_absolute_and_clean(path in "(/|[a-z.]{1,3}){0,8}") {
            let mut findings = Findings::default();
            findings.check_path("name", &path);
            let components: Vec<_> = std::path::Path::new(&path).components().collect();
            let is_clean = path.starts_with('/')
                && !path.contains("//")
                && (path == "/" || !path.ends_with('/'))
                && path.split('/').all(|part| part != "." && part != "..");
            prop_assert_eq!(findings.is_empty(), is_clean, "{}", path);
            if is_clean && path != "/" {
                prop_assert_eq!(components.len(), path.matches('/').count() + 1);
            }
        }
    }
}
