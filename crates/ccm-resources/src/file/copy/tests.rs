//! The decisions about a copied directory, without a machine.

use ccm_host::FileKind;

use super::*;
use crate::file::File as Type;
use ccm_engine::ResourceType as _;

const WANTED: Attributes = Attributes { uid: 1, gid: 2, mode: 0o755 };

fn want(purge: bool, allow_empty: bool) -> Properties {
    let mut want = Properties { purge, allow_empty, ..Properties::default() };
    want.common.name = "/t".into();
    want.common.ensure = "directory".into();
    want.source = Some("s".into());
    want
}

fn different(place: &str, member: Member, is_new: bool) -> Difference {
    Difference { place: place.into(), member, is_new }
}

fn file(place: &str, is_new: bool) -> Difference {
    different(place, Member::File { mode: 0o644 }, is_new)
}

fn foreign(place: &str, is_directory: bool) -> Foreign {
    Foreign { place: place.into(), is_directory }
}

fn state(total: usize, different: Vec<Difference>, foreign: Vec<Foreign>) -> CopyState {
    CopyState { source: "/s".into(), total, different, foreign, obstacle: None }
}

#[test]
fn the_decision_table() {
    let new = || vec![file("f", true)];
    let old = || vec![file("f", false)];
    let beside = || vec![foreign("d", true), foreign("d/x", false)];
    let one = || vec![foreign("x", false)];
    let refused = |text: &str| Err(format!("the source is empty; purge would remove {text}"));
    let some = |text: &str| Ok(Some(format!("Would have {text}")));
    for (purge, allow_empty, have, wanted) in [
        (false, false, state(1, vec![], vec![]), Ok(None)),
        (false, false, state(1, vec![], beside()), Ok(None)),
        (false, false, state(1, new(), beside()), some("created 1 entry")),
        (false, false, state(1, old(), vec![]), some("updated 1 entry")),
        (true, false, state(1, vec![], vec![]), Ok(None)),
        (true, false, state(1, vec![], beside()), some("removed 2 entries")),
        (true, false, state(1, new(), one()), some("created 1 entry, removed 1 entry")),
        (true, false, state(0, vec![], vec![]), Ok(None)),
        (true, false, state(0, vec![], beside()), refused("2 entries")),
        (true, false, state(0, vec![], one()), refused("1 entry")),
        (true, true, state(0, vec![], one()), some("removed 1 entry")),
        (false, false, state(0, vec![], one()), Ok(None)),
    ] {
        let row = format!("{purge} {allow_empty} {have:?}");
        let step = decide(&want(purge, allow_empty), &have, &WANTED);
        let told = step.map(|step| step.map(|step| Type::describe(&step)));
        assert_eq!(told.map_err(|error| error.to_string()), wanted, "{row}");
    }
}

#[test]
fn a_step_holds_what_is_written_and_removed_in_order() {
    let link = Member::Link { target: "f".into() };
    let directory = Member::Directory { mode: 0o755 };
    let have = state(
        3,
        vec![file("a", false), different("b", directory.clone(), true), file("b/c", true)],
        vec![foreign("x", true), foreign("x/y", true), foreign("x/z", false)],
    );
    let mut have = have;
    have.different.push(different("l", link.clone(), true));
    let step = decide(&want(true, false), &have, &WANTED).unwrap().unwrap();
    let copied = Member::File { mode: 0o644 };
    let Action::Copy(copy) = &step.action else { panic!("{step:?}") };
    let write: Vec<_> =
        copy.write.iter().map(|(place, one)| (place.to_str().unwrap(), one)).collect();
    assert_eq!(write, [("b", &directory), ("a", &copied), ("b/c", &copied), ("l", &link)]);
    assert_eq!(copy.remove, [PathBuf::from("x/z")]);
    assert_eq!(copy.remove_directories, [PathBuf::from("x/y"), PathBuf::from("x")]);
    assert_eq!((copy.owner, copy.group), (1, 2));
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let members = [list(&["b", "b/c", "l"]), list(&["a"]), list(&["x", "x/y", "x/z"])];
    assert_eq!(step.changes, [Change::of("files").members(members)]);
    let kept = serde_json::to_string(&step).unwrap();
    assert_eq!(serde_json::from_str::<Step<Action>>(&kept).unwrap(), step);
    assert_eq!((have.different_files(), have.foreign_files()), (3, 1));
}

#[test]
fn kinds_that_ccm_does_not_replace_are_obstacles() {
    let found = |kind| Stat {
        kind,
        uid: 1,
        gid: 2,
        mode: 0o644,
        size: 0,
        mtime: jiff::Timestamp::UNIX_EPOCH,
        ctime: jiff::Timestamp::UNIX_EPOCH,
        dev: 0,
        ino: 0,
    };
    let members = [
        Member::Directory { mode: 0o755 },
        Member::File { mode: 0o644 },
        Member::Link { target: "f".into() },
    ];
    let kinds = [FileKind::Directory, FileKind::File, FileKind::Symlink, FileKind::Other];
    let no_directory = Err("exists and is not a directory");
    let no_link = Err("exists and is not a symlink");
    let wanted = [
        [Ok(true), no_directory, no_directory, no_directory],
        [
            Err("exists as a directory"),
            Ok(true),
            Ok(false),
            Err("is a socket, FIFO or device, not a file"),
        ],
        [Err("exists as a directory"), no_link, Ok(true), no_link],
    ];
    for (member, row) in members.iter().zip(wanted) {
        assert!(check(member, None).unwrap().is_none());
        for (kind, wanted) in kinds.into_iter().zip(row) {
            let is_comparable = check(member, Some(found(kind))).map(|found| found.is_some());
            assert_eq!(is_comparable, wanted, "{member:?} {kind:?}");
        }
    }
    let have = CopyState {
        obstacle: Some(("a".into(), "exists as a directory")),
        ..state(1, vec![], vec![])
    };
    let error = decide(&want(false, false), &have, &WANTED).unwrap_err().to_string();
    assert_eq!(error, "/t/a exists as a directory");
    assert_eq!(have.mismatch(&want(false, false)).unwrap(), "/t/a exists as a directory");
}

#[test]
fn what_is_still_wrong_after_acting_is_named() {
    let beside = state(1, vec![], vec![foreign("x", false)]);
    assert_eq!(beside.mismatch(&want(false, false)), None);
    assert_eq!(beside.mismatch(&want(true, false)).unwrap(), "/t/x should have been purged");
    let differs = state(1, vec![file("f", true)], vec![]);
    assert_eq!(differs.mismatch(&want(true, false)).unwrap(), "/t/f differs from the source");
}
