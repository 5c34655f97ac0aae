//! The decision tables row by row without a machine, then the same on real
//! files with a server beside them: noop first, which must change nothing, then
//! for real, then again, which must find nothing to do.

#![expect(clippy::disallowed_methods, reason = "tests set their stage by themselves")]

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use ccm_engine::{AnyType as _, Arguments, Erased, ResourceType as _, Step, Trigger};
use ccm_host::{Attributes, Digest, FileKind, Host, Stat};
use ccm_model::{Change, Event, Reader, Verb};
use ccm_testkit::{Server, answer, snapshot};

use super::{Action, Archive, CurrentArchive, Properties, State};
use crate::testing;

const WANTED: Attributes = Attributes { uid: 1, gid: 2, mode: 0o600 };

fn want(ensure: &str, creates: bool, unpacks: bool, cleanup: bool) -> Properties {
    let mut want = Properties {
        url: "http://h/a.tar".to_owned(),
        creates: creates.then(|| "/d/c".to_owned()),
        extract_parent: unpacks.then(|| "/d".to_owned()),
        cleanup,
        ..Properties::default()
    };
    want.common.name = "/a.tar".to_owned();
    want.common.ensure = ensure.to_owned();
    want
}

fn have(
    ensure: &str,
    found: CurrentArchive,
    creates: Option<bool>,
    is_right: Option<bool>,
) -> State {
    let stat = Stat {
        kind: FileKind::File,
        uid: 1,
        gid: 2,
        mode: 0o644,
        size: 0,
        mtime: jiff::Timestamp::UNIX_EPOCH,
        ctime: jiff::Timestamp::UNIX_EPOCH,
        dev: 0,
        ino: 0,
    };
    State {
        found,
        stat: (found != CurrentArchive::Nothing).then_some(stat),
        checksum: None,
        is_right,
        creates,
        is_incomplete: false,
        extracted: None,
        wanted: (ensure != "absent").then_some(WANTED),
        name: "/a.tar".to_owned(),
        provider: "http",
        owner: None,
        group: None,
    }
}

/// A kind of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Download,
    SetOwner,
    Extract,
    CleanUp,
    Remove,
}

fn kinds(steps: &[Step<Action>]) -> Vec<Kind> {
    let kind = |step: &Step<Action>| match &step.action {
        Action::Download(_) => Kind::Download,
        Action::SetOwner { .. } => Kind::SetOwner,
        Action::Extract(_) => Kind::Extract,
        Action::CleanUp { .. } => Kind::CleanUp,
        Action::Remove { .. } => Kind::Remove,
    };
    steps.iter().map(kind).collect()
}

/// ensure; creates set, unpacks, cleanup; found, creates there, checksum right,
/// owner right; what to do.
type Row = (&'static str, [bool; 3], CurrentArchive, Option<bool>, Option<bool>, bool, Vec<Kind>);

#[test]
fn the_decision_tables() {
    use CurrentArchive::{File, Link, Nothing, Other};
    use Kind::{CleanUp, Download, Extract, Remove, SetOwner};
    let (yes, no) = (Some(true), Some(false));
    let rows: Vec<Row> = vec![
        // The type's table.
        ("absent", [false; 3], Nothing, None, None, true, vec![]),
        ("absent", [false; 3], File, None, None, true, vec![Remove]),
        ("absent", [false; 3], Link, None, None, true, vec![Remove]),
        ("absent", [false; 3], Other, None, None, true, vec![Remove]),
        ("absent", [true, true, true], File, yes, None, true, vec![Remove]),
        ("present", [true, true, false], Nothing, yes, None, true, vec![]),
        ("present", [true, true, false], File, yes, None, false, vec![]),
        ("present", [true, true, false], File, no, None, true, vec![Extract]),
        ("present", [false, false, false], Nothing, None, None, true, vec![Download]),
        ("present", [false, false, false], File, None, no, true, vec![Download]),
        ("present", [false, false, false], File, None, None, false, vec![SetOwner]),
        ("present", [false, false, false], Link, None, None, false, vec![Download]),
        ("present", [false, false, false], File, None, None, true, vec![]),
        ("present", [false, false, false], File, None, yes, true, vec![]),
        ("present", [false, false, false], Link, None, yes, true, vec![]),
        // The provider's matrix.
        ("present", [true, true, false], Nothing, no, None, true, vec![Download, Extract]),
        ("present", [true, true, false], File, no, yes, true, vec![Extract]),
        ("present", [true, true, false], File, yes, yes, true, vec![]),
        ("present", [true, true, true], Nothing, yes, None, true, vec![]),
        ("present", [true, true, true], File, yes, yes, true, vec![CleanUp]),
        // What follows from both.
        ("present", [true, true, true], Nothing, no, None, true, vec![Download, Extract, CleanUp]),
        ("present", [true, true, true], File, no, yes, true, vec![Extract, CleanUp]),
        ("present", [true, true, true], File, no, no, true, vec![Download, Extract, CleanUp]),
        ("present", [true, true, true], File, no, yes, false, vec![Extract, CleanUp]),
        ("present", [true, true, false], File, no, yes, false, vec![Extract, SetOwner]),
        ("present", [false, true, false], Nothing, None, None, true, vec![Download, Extract]),
        ("present", [false, true, false], File, None, no, true, vec![Download, Extract]),
        ("present", [false, true, false], File, None, yes, true, vec![]),
        // An archive that is there with a wrong checksum is of another version.
        ("present", [true, true, false], File, yes, no, true, vec![Download, Extract]),
        ("present", [true, true, false], Link, yes, no, true, vec![Download, Extract]),
        ("present", [true, true, true], File, yes, no, true, vec![Download, Extract, CleanUp]),
        ("present", [true, false, false], File, yes, no, true, vec![Download]),
        // Someone else unpacks.
        ("present", [true, false, false], Nothing, no, None, true, vec![Download]),
        ("present", [true, false, false], File, no, no, true, vec![Download]),
        ("present", [true, false, false], Nothing, yes, None, true, vec![]),
    ];
    for (ensure, [creates, unpacks, cleanup], found, there, right, owned, wanted) in rows {
        let want = want(ensure, creates, unpacks, cleanup);
        let mut have = have(ensure, found, there, right);
        if let (false, Some(stat)) = (owned, have.stat.as_mut()) {
            stat.gid = 7;
        }
        let plan = Archive::decide(&want, &have, Trigger::Turn).unwrap();
        assert_eq!(kinds(&plan), wanted, "{want:?} {have:?}");
    }
    // An extraction that was not ended, whatever else is there.
    for ([creates, unpacks, cleanup], found, there, right, wanted) in [
        ([true, true, false], Nothing, yes, None, vec![Download, Extract]),
        ([true, true, false], File, yes, None, vec![Extract]),
        ([true, true, false], File, yes, no, vec![Download, Extract]),
        ([true, true, true], Nothing, yes, None, vec![Download, Extract, CleanUp]),
        ([true, true, true], File, yes, yes, vec![Extract, CleanUp]),
        ([false, true, false], File, None, yes, vec![Extract]),
        ([false, true, false], File, None, None, vec![Extract]),
    ] {
        let want = want("present", creates, unpacks, cleanup);
        let have = State { is_incomplete: true, ..have("present", found, there, right) };
        let steps = Archive::decide(&want, &have, Trigger::Turn).unwrap();
        assert_eq!(kinds(&steps), wanted, "{have:?}");
    }
    // What was extracted last, as far as that is known.
    let sum = Digest::of(b"wanted");
    let (same, other) = (Some(sum), Some(Digest::of(b"other")));
    for ([creates, unpacks, cleanup], found, there, right, extracted, wanted) in [
        ([true, true, true], Nothing, yes, None, same, vec![]),
        ([true, true, true], Nothing, yes, None, None, vec![]),
        ([true, true, true], Nothing, yes, None, other, vec![Download, Extract, CleanUp]),
        ([true, true, true], Nothing, no, None, same, vec![Download, Extract, CleanUp]),
        ([true, true, true], File, yes, yes, other, vec![Extract, CleanUp]),
        ([true, true, true], File, yes, yes, same, vec![CleanUp]),
        ([true, true, true], File, yes, no, same, vec![Download, Extract, CleanUp]),
        // An archive that stays speaks for itself.
        ([true, true, false], File, yes, yes, other, vec![]),
        ([true, true, false], Nothing, yes, None, other, vec![]),
    ] {
        let mut want = want("present", creates, unpacks, cleanup);
        want.checksum = Some(sum.to_string());
        let have = State { extracted, ..have("present", found, there, right) };
        let steps = Archive::decide(&want, &have, Trigger::Turn).unwrap();
        assert_eq!(kinds(&steps), wanted, "{have:?}");
        want.checksum = None;
        if right.is_none() {
            let steps = Archive::decide(&want, &have, Trigger::Turn).unwrap();
            assert_eq!(steps.is_empty(), there == yes, "nothing tells of another version");
        }
    }
    // Nobody but ccm can be asked for what is to be there.
    for right in [None, yes] {
        let have = have("present", File, no, right);
        let error = Archive::decide(&want("present", true, false, false), &have, Trigger::Turn);
        let error = error.unwrap_err();
        assert!(error.to_string().contains("/d/c does not exist"), "{error}");
        assert!(error.hint().unwrap().contains("extract_parent"), "{error:?}");
    }
    for (ensure, found, words) in [
        ("present", CurrentArchive::Directory, "is a directory"),
        ("absent", CurrentArchive::Directory, "is a directory"),
        ("present", CurrentArchive::Other, "socket, FIFO or device"),
    ] {
        let have = have(ensure, found, None, None);
        let error = Archive::decide(&want(ensure, false, false, false), &have, Trigger::Turn);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn steps_say_what_they_change() {
    let decide = |want: &Properties, have: &State| {
        let steps = Archive::decide(want, have, Trigger::Turn).unwrap();
        let json = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Step<Action>>>(&json).unwrap(), steps);
        steps
    };
    let mut all = want("present", true, true, true);
    all.password = Some("hush".to_owned());
    let steps = decide(&all, &have("present", CurrentArchive::Nothing, Some(false), None));
    assert!(!format!("{steps:?}").contains("hush"));
    let verbs: Vec<Verb> = steps.iter().map(|step| step.verb).collect();
    assert_eq!(verbs, [Verb::Created, Verb::Created, Verb::Removed]);
    assert_eq!(steps[1].changes, [Change::of("extract_parent").to("/d")]);
    assert!(!steps[0].touches("ensure"), "it does not stay");
    let mut kept = want("present", false, false, false);
    (kept.owner, kept.group) = ("root".to_owned(), "wheel".to_owned());
    let steps = decide(&kept, &have("present", CurrentArchive::Nothing, None, None));
    let wanted = [
        Change::of("ensure").from("absent").to("present"),
        Change::of("owner").to("root"),
        Change::of("group").to("wheel"),
    ];
    assert_eq!(steps[0].changes, wanted);
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new").to_string());
    let upgraded = Properties { checksum: Some(new.clone()), ..all };
    let gone = have("present", CurrentArchive::Nothing, Some(true), None);
    let steps = decide(&upgraded, &State { extracted: Some(old), ..gone });
    assert_eq!(steps[0].verb, Verb::Updated);
    assert_eq!(steps[0].changes[0], Change::of("checksum").from(old.to_string()).to(new));
    let mut foreign = have("present", CurrentArchive::File, None, None);
    foreign.stat.as_mut().unwrap().gid = 7;
    let steps = decide(&kept, &foreign);
    assert_eq!(steps[0].changes, [Change::of("group").from("7").to("wheel")]);
}

#[test]
fn a_mismatch_names_what_is_wrong() {
    let reason = |want: &Properties, have: &State| Archive::mismatch(want, have).unwrap();
    let plain = want("present", false, false, false);
    let missing = have("present", CurrentArchive::Nothing, None, None);
    assert_eq!(reason(&plain, &missing), "archive is absent, should be present");
    let wrong = have("present", CurrentArchive::File, None, Some(false));
    assert_eq!(reason(&plain, &wrong), "the checksum differs");
    let mut foreign = have("present", CurrentArchive::File, None, None);
    foreign.stat.as_mut().unwrap().uid = 9;
    assert_eq!(reason(&plain, &foreign), "owner is 9, should be 1");
    let unpacking = want("present", true, true, true);
    let nothing = have("present", CurrentArchive::Nothing, Some(false), None);
    let words = "the archive did not create /d/c";
    assert_eq!(reason(&unpacking, &nothing), words);
    let left_to_others = want("present", true, false, false);
    let fetched = have("present", CurrentArchive::File, Some(false), None);
    let words = "/d/c does not exist, and ccm extracts nothing without `extract_parent`";
    assert_eq!(reason(&left_to_others, &fetched), words);
    let left = have("present", CurrentArchive::File, Some(true), None);
    assert_eq!(reason(&unpacking, &left), "archive is present, should be absent");
}

/// A directory and a server beside it.
struct Stage {
    directory: tempfile::TempDir,
    server: Server,
}

/// A tar archive with one file and one program.
fn tarball() -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, mode, content) in [
        ("app/", b'5', 0o755, ""),
        ("app/run", b'0', 0o755, "#!/bin/sh\n"),
        ("app/conf", b'0', 0o640, "x"),
    ] {
        let mut block = [0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        let (uid, gid) = Host::new().whoami();
        let fields = format!(
            "{mode:07o}\0{uid:07o}\0{gid:07o}\0{:011o}\0{:011o}\0",
            content.len(),
            1_000_000_000
        );
        block[100..100 + fields.len()].copy_from_slice(fields.as_bytes());
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&block);
        tar.extend_from_slice(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

impl Stage {
    fn new(server: Server) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), server }
    }

    fn serving() -> Self {
        Self::new(Server::with_body(tarball()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `[DIR]` in values is the stage, a key that ends in `+` a switch.
    fn arguments(&self, properties: &[(&str, &str)]) -> Arguments {
        let mut arguments = Arguments::default();
        let (uid, gid) = Host::new().whoami();
        arguments.set("name", self.path("a.tar.gz").to_str().unwrap());
        arguments.set("url", format!("http://me:hidden@{}/a.tar.gz", self.server.address));
        arguments.set("owner", uid.to_string());
        arguments.set("group", gid.to_string());
        for (key, value) in properties {
            match key.strip_suffix('+') {
                Some(switch) => arguments.switch_on(switch),
                None => match key.strip_prefix("header ") {
                    Some(name) => arguments.set_in("headers", name, *value),
                    None => {
                        let here = self.directory.path().to_str().unwrap();
                        arguments.set(key, value.replace("[DIR]", here));
                    }
                },
            }
        }
        arguments
    }

    fn apply(&self, properties: &[(&str, &str)], noop: bool) -> Event {
        let arguments = self.arguments(properties);
        let event = testing::ensure("archive", arguments, self.directory.path(), noop);
        let told = serde_json::to_string(&event).unwrap();
        assert!(!told.contains("hidden"), "{told}");
        event
    }

    /// Noop must say `message` and change nothing; the real run must change;
    /// the one after it must be stable and ask nobody.
    fn converges(&self, properties: &[(&str, &str)], message: &str) {
        let before = snapshot(self.directory.path());
        let asked = self.server.requests().len();
        let noop = self.apply(properties, true);
        assert_eq!(noop.noop_message.as_deref(), Some(message), "{noop:?}");
        assert!(noop.changed && !noop.failed);
        assert_eq!(snapshot(self.directory.path()), before, "noop changed something");
        assert_eq!(self.server.requests().len(), asked, "noop asked the server");
        let first = self.apply(properties, false);
        assert!(first.changed && !first.failed, "{first:?}");
        let after = snapshot(self.directory.path());
        let asked = self.server.requests().len();
        let second = self.apply(properties, false);
        assert!(!second.changed && !second.failed, "{second:?}");
        assert_eq!(snapshot(self.directory.path()), after, "a stable run changed something");
        assert_eq!(self.server.requests().len(), asked, "a stable run asked the server");
        self.is_tidy();
    }

    fn fails(&self, properties: &[(&str, &str)], words: &str) {
        let before = snapshot(self.directory.path());
        let event = self.apply(properties, false);
        assert!(event.failed && !event.changed, "{event:?}");
        assert!(event.error[0].contains(words), "{:?} lacks {words:?}", event.error);
        let mut after = snapshot(self.directory.path());
        // Its time tells of temporary files that came and went.
        after.insert(PathBuf::new(), before[Path::new("")].clone());
        assert_eq!(after, before, "a failure changed something");
    }

    fn is_tidy(&self) {
        let names = snapshot(self.directory.path());
        assert!(!names.keys().any(|name| name.to_string_lossy().contains(".ccm-")), "{names:?}");
    }
}

#[test]
fn an_archive_is_fetched_and_kept() {
    let stage = Stage::serving();
    stage.converges(&[], "Would have downloaded");
    let path = stage.path("a.tar.gz");
    assert_eq!(std::fs::read(&path).unwrap(), tarball());
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert!(stage.server.requests()[0].contains("authorization: Basic bWU6aGlkZGVu"));
    std::fs::write(&path, "other").unwrap();
    assert!(!stage.apply(&[], false).changed, "without a checksum its content is not managed");
    let sum = Digest::of(&tarball()).to_string();
    stage.converges(&[("checksum", &sum)], "Would have downloaded");
    let loud = format!("SHA256:{}", sum.to_uppercase());
    assert!(!stage.apply(&[("checksum", &loud)], false).changed);
}

#[test]
fn an_archive_is_unpacked_and_cleaned_up() {
    let stage = Stage::serving();
    let into = [("extract_parent", "[DIR]/deep/into")];
    stage.converges(&into, "Would have downloaded. Would have extracted");
    let run = stage.path("deep/into/app/run");
    let meta = std::fs::metadata(&run).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o755, 1_000_000_000));
    assert_eq!(std::fs::metadata(stage.path("deep/into")).unwrap().mode() & 0o7777, 0o755);
    let creating = [("extract_parent", "[DIR]/deep/into"), ("creates", "[DIR]/deep/into/app/conf")];
    assert!(!stage.apply(&creating, false).changed);
    std::fs::remove_file(stage.path("deep/into/app/conf")).unwrap();
    stage.converges(&creating, "Would have extracted");
    let cleaning = [&creating[..], &[("cleanup+", "")]].concat();
    stage.converges(&cleaning, "Would have cleaned up");
    assert!(!stage.path("a.tar.gz").exists());
    std::fs::remove_file(stage.path("deep/into/app/conf")).unwrap();
    let all = "Would have downloaded. Would have extracted. Would have cleaned up";
    stage.converges(&cleaning, all);
    assert!(!stage.path("a.tar.gz").exists() && run.exists());
    // Kept or not, what is unpacked needs no archive.
    assert!(!stage.apply(&creating, false).changed);
}

/// The usual upgrade: another URL and checksum, the same `creates`.
#[test]
fn an_archive_of_another_version_is_fetched_and_unpacked() {
    let stage = Stage::serving();
    let sum = Digest::of(&tarball()).to_string();
    let properties = [
        ("extract_parent", "[DIR]/into"),
        ("creates", "[DIR]/into/app/run"),
        ("checksum", sum.as_str()),
    ];
    std::fs::create_dir_all(stage.path("into/app")).unwrap();
    std::fs::write(stage.path("into/app/run"), "old").unwrap();
    std::fs::write(stage.path("a.tar.gz"), "the old version").unwrap();
    stage.converges(&properties, "Would have downloaded. Would have extracted");
    assert_eq!(std::fs::read(stage.path("into/app/run")).unwrap(), b"#!/bin/sh\n");
    assert_eq!(std::fs::read(stage.path("a.tar.gz")).unwrap(), tarball());
    let lost = [("creates", "[DIR]/missing")];
    let event = stage.apply(&lost, false);
    assert!(event.failed && event.error[0].contains("missing does not exist"), "{event:?}");
    let event = stage.apply(&lost, true);
    assert!(event.failed, "a preview says so too: {event:?}");
}

#[test]
fn an_archive_is_removed() {
    let stage = Stage::serving();
    let absent = [("ensure", "absent")];
    assert!(!stage.apply(&absent, false).changed);
    std::fs::write(stage.path("a.tar.gz"), "x").unwrap();
    stage.converges(&absent, "Would have removed");
    symlink("/nonexistent", stage.path("a.tar.gz")).unwrap();
    stage.converges(&absent, "Would have removed");
    std::fs::create_dir(stage.path("a.tar.gz")).unwrap();
    stage.fails(&absent, "is a directory");
    stage.fails(&[], "is a directory");
    assert!(stage.server.requests().is_empty());
}

#[test]
fn links_are_replaced_and_owners_set_without_a_download() {
    let stage = Stage::serving();
    std::fs::write(stage.path("target"), "t").unwrap();
    symlink("target", stage.path("a.tar.gz")).unwrap();
    assert!(!stage.apply(&[], false).changed, "counts as what it leads to");
    let sum = Digest::of(&tarball()).to_string();
    stage.converges(&[("checksum", &sum)], "Would have downloaded");
    assert_eq!(std::fs::read(stage.path("target")).unwrap(), b"t");
    if ccm_testkit::lacks_root() {
        return;
    }
    let asked = stage.server.requests().len();
    let foreign = [("owner", "4000123"), ("group", "4000456")];
    stage.converges(&foreign, "Would have updated attributes");
    let meta = std::fs::metadata(stage.path("a.tar.gz")).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (4_000_123, 4_000_456, 0o600));
    assert_eq!(stage.server.requests().len(), asked);
}

#[test]
fn what_is_sent_is_sent_and_not_told() {
    let stage = Stage::serving();
    let event = stage.apply(
        &[("username", "deploy"), ("password", "hidden"), ("header X-Token", "hidden")],
        false,
    );
    assert_eq!(event.properties["password"], "[redacted]");
    assert_eq!(event.properties["headers"]["X-Token"], "[redacted]");
    let request = &stage.server.requests()[0];
    assert!(request.contains("authorization: Basic ZGVwbG95OmhpZGRlbg=="), "{request}");
    assert!(request.contains("x-token: hidden"), "{request}");
}

/// Half of a pair is not sent, and a header that says it all comes first.
#[test]
fn credentials_are_sent_as_a_pair_or_not_at_all() {
    let bearer = ("header Authorization", "Bearer hidden");
    for (properties, sent) in [
        (&[("username", "deploy")][..], None),
        (&[("password", "hidden")], None),
        (&[("username", ""), ("password", "hidden")], None),
        (&[("username", "deploy"), ("password", "")], None),
        (&[("username", "deploy"), ("password", "hidden")], Some("Basic ZGVwbG95OmhpZGRlbg==")),
        (&[("username", "deploy"), bearer], Some("Bearer hidden")),
        (&[("username", "deploy"), ("password", "hidden"), bearer], Some("Bearer hidden")),
        (&[("password", "hidden"), bearer], Some("Bearer hidden")),
    ] {
        let stage = Stage::serving();
        let url = format!("http://{}/a.tar.gz", stage.server.address);
        let event = stage.apply(&[&[("url", &*url)], properties].concat(), false);
        assert!(event.changed && !event.failed, "{event:?}");
        let request = stage.server.requests().remove(0);
        let found: Vec<&str> =
            request.lines().filter_map(|line| line.strip_prefix("authorization: ")).collect();
        assert_eq!(found, sent.into_iter().collect::<Vec<_>>(), "{properties:?}");
    }
}

#[test]
fn failures_leave_the_old_archive_and_nothing_else() {
    let sum = Digest::of(b"what it should be").to_string();
    for (server, words) in [
        (Server::with_bytes(answer("404 Not Found", "", b"")), "404 Not Found"),
        (Server::with_bytes(answer("500 Internal Server Error", "", b"")), "500"),
        (
            Server::with_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"),
            "cannot download",
        ),
        (Server::with_body(tarball()), "checksum mismatch, expected \""),
    ] {
        let stage = Stage::new(server);
        stage.fails(&[("checksum", &sum)], words);
        std::fs::write(stage.path("a.tar.gz"), "old").unwrap();
        stage.fails(&[("checksum", &sum)], words);
    }
    let stage = Stage::serving();
    stage.fails(&[("owner", "no-such-user")], "could not lookup user");
    let event = stage.apply(&[("checksum", &sum)], false);
    let both = [sum, Digest::of(&tarball()).to_string()];
    assert!(both.iter().all(|sum| event.error[0].contains(sum)), "{:?}", event.error);
}

#[test]
fn an_archive_that_cannot_be_unpacked_leaves_nothing_unpacked() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&[b'x'; 4096]).unwrap();
    let stage = Stage::new(Server::with_body(encoder.finish().unwrap()));
    let properties =
        [("extract_parent", "[DIR]/deep/into"), ("creates", "[DIR]/deep/into/app/conf")];
    let event = stage.apply(&properties, false);
    assert!(event.failed && event.error[0].contains("cannot extract"), "{event:?}");
    assert!(!stage.path("deep").exists(), "directories were left");
    assert!(!stage.path("a.tar.gz").exists(), "the next run could not tell");
    let without_witness = [("extract_parent", "[DIR]/into")];
    assert!(stage.apply(&without_witness, false).failed);
    assert!(stage.apply(&without_witness, false).failed);
    // The archive holds something else than is said.
    let stage = Stage::serving();
    let properties = [("extract_parent", "[DIR]/into"), ("creates", "[DIR]/into/other")];
    let event = stage.apply(&properties, false);
    assert!(event.failed && event.error[0].contains("did not create"), "{event:?}");
    stage.is_tidy();
}

#[test]
fn the_status_tells_what_the_design_lists() {
    let stage = Stage::serving();
    std::fs::write(stage.path("a.tar.gz"), "abc").unwrap();
    let arguments = stage.arguments(&[("creates", "[DIR]/a.tar.gz")]);
    let status = testing::status("archive", arguments);
    assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.archive.state");
    assert_eq!(status["ensure"], "present");
    let metadata = &status["metadata"];
    assert_eq!(metadata["checksum"], Digest::of(b"abc").to_string());
    assert_eq!(metadata["size"], 3);
    assert_eq!(metadata["provider"], "http");
    assert_eq!(metadata["archive_exists"], true);
    assert_eq!(metadata["creates_exists"], true);
    for name in ["owner", "group", "mtime", "name"] {
        assert!(metadata[name].is_string(), "{name}");
    }
}

#[test]
fn wrong_properties_are_found_before_anything_is_asked_for() {
    let findings = |properties: &[(&str, &str)]| {
        let mut arguments = Arguments::default();
        for (key, value) in properties {
            match key.strip_suffix('+') {
                Some(switch) => arguments.switch_on(switch),
                None => match key.strip_prefix("header ") {
                    Some(name) => arguments.set_in("headers", name, *value),
                    None => arguments.set(key, *value),
                },
            }
        }
        let mut reader = Reader::default();
        let resource = Erased::<Archive>::NEW.declare(arguments.into_entries(), None, &mut reader);
        let all = reader.findings.into_iter().chain(resource.findings(&Host::new()));
        all.map(|finding| finding.message).collect::<Vec<_>>().join("; ")
    };
    let base = [
        ("name", "/tmp/a.tgz"),
        ("url", "https://u:secret@h/a.tar.gz?x"),
        ("owner", "root"),
        ("group", "root"),
    ];
    let with = |more: &[(&'static str, &'static str)]| findings(&[&base[..], more].concat());
    assert_eq!(with(&[]), "");
    let sum = "AB".repeat(32);
    let prefixed = format!("sha256:{sum}");
    for good in [&sum, &prefixed] {
        assert_eq!(findings(&[&base[..], &[("checksum", good)]].concat()), "");
    }
    for (properties, words) in [
        (&[("name", "a.tgz")][..], "must be absolute"),
        (&[("name", "/a/../a.tgz")], "must be clean"),
        (&[("name", "/tmp/a")], "archive type not supported"),
        (&[("name", "/tmp/a.zip")], "are of different formats"),
        (&[("url", "")], "url: cannot be empty"),
        (&[("url", "ftp://u:secret@h/a.tgz")], "`ftp` is not available"),
        (&[("url", "file://a.tgz")], "write file:///path"),
        (&[("url", "/a.tgz")], "it is not a URL"),
        (&[("url", "https:///a.tgz")], "it has no host"),
        (&[("url", "https://h/a.rar")], "archive type not supported"),
        (&[("url", "https://h/a?a.tgz")], "archive type not supported"),
        (&[("url", "https://h/a.tar")], "are of different formats"),
        (&[("cleanup+", "")], "cleanup: without `extract_parent`"),
        (&[("cleanup+", ""), ("creates", "/x")], "cleanup: without `extract_parent`"),
        (
            &[("cleanup+", ""), ("extract_parent", "/x")],
            "whether the deleted archive was extracted",
        ),
        (&[("extract_parent", "x")], "extract_parent: path must be absolute"),
        (&[("creates", "x")], "creates: path must be absolute"),
        (&[("checksum", "abc")], "64 hexadecimal digits"),
        (&[("checksum", "md5:abc")], "64 hexadecimal digits"),
        (&[("username", "a:b"), ("password", "secret")], "contain a colon"),
        (&[("header bad name", "secret")], "is not a header's name"),
        (&[("header X", "secret\r\nY: 1")], "control characters"),
        (&[("owner", "")], "owner: user name cannot be empty"),
        (&[("ensure", "latest")], "ensure cannot be `latest`"),
    ] {
        let got = with(properties);
        assert!(got.contains(words), "{properties:?}: {got:?} lacks {words:?}");
        assert!(!got.contains("secret"), "{got}");
    }
    let missing = findings(&[("name", "/tmp/a.tgz")]);
    for property in ["url", "owner", "group"] {
        assert!(missing.contains(&format!("property `{property}` is required")), "{missing}");
    }
    assert_eq!(findings(&[("name", "/tmp/a.tgz"), ("ensure", "absent")]), "");
}
