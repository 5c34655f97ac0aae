//! The decision table, row by row.

use ccm_engine::{ResourceType as _, Step, Trigger};
use ccm_model::{Change, Verb};

use super::compare::FileStatus::{self, Added, Equal, Foreign, Updated};
use super::render::RenderedFile;
use super::{Action, FileState, Language, Properties, Remove, Render, Scaffold, State};

fn decide(ensure: &str, purge: bool, have: &State) -> Vec<Step<Action>> {
    let mut want = Properties { purge, ..Properties::default() };
    want.common.ensure = ensure.to_owned();
    want.common.name = "/t".to_owned();
    Scaffold::decide(&want, have, Trigger::Turn).unwrap()
}

fn state(target_exists: bool, statuses: &[FileStatus], missing_directories: usize) -> State {
    let rendered = RenderedFile { bytes: (*b"x").into(), mode: 0o644 };
    let file = |(at, status): (usize, &FileStatus)| FileState {
        place: at.to_string().into(),
        status: *status,
        rendered: (*status != Foreign).then(|| rendered.clone()),
    };
    State {
        name: "/t".to_owned(),
        provider: "choria",
        engine: Language::Jet,
        target_exists,
        files: statuses.iter().enumerate().map(file).collect(),
        missing_directories: (0..missing_directories).map(|at| format!("d{at}").into()).collect(),
    }
}

#[test]
fn the_decision_table_holds() {
    let changed = |count| Some(format!("Would have changed {count} scaffold files"));
    let removed = |count| Some(format!("Would have removed {count} scaffold files"));
    for (ensure, purge, exists, statuses, missing, wanted) in [
        // Target missing.
        ("absent", false, false, &[][..], 0, None),
        ("present", false, false, &[Added, Added], 0, changed(2)),
        ("present", true, false, &[], 0, changed(1)),
        // Absent: nothing managed is left, whatever else there is.
        ("absent", false, true, &[], 0, None),
        ("absent", true, true, &[Foreign], 0, None),
        // Absent: managed files remain.
        ("absent", false, true, &[Equal, Updated], 0, removed(2)),
        ("absent", false, true, &[Equal, Foreign], 0, removed(1)),
        ("absent", true, true, &[Equal, Foreign], 0, removed(2)),
        // Present: nothing changed.
        ("present", false, true, &[Equal, Equal], 0, None),
        ("present", true, true, &[Equal], 0, None),
        ("present", false, true, &[Equal, Foreign], 0, None),
        ("present", true, true, &[Equal, Foreign], 0, changed(1)),
        // Present: something changed.
        ("present", false, true, &[Added, Updated, Equal, Foreign], 0, changed(2)),
        ("present", true, true, &[Added, Updated, Equal, Foreign], 0, changed(3)),
        // Only directories are missing.
        ("present", false, true, &[Equal], 2, changed(2)),
    ] {
        let steps = decide(ensure, purge, &state(exists, statuses, missing));
        let texts: Vec<String> = steps.iter().map(Scaffold::describe).collect();
        let row = format!("{ensure} {purge} {exists} {statuses:?}");
        assert_eq!(texts, Vec::from_iter(wanted), "{row}");
    }
}

#[test]
fn a_step_holds_what_is_written_and_removed() {
    let all = state(true, &[Added, Updated, Equal, Foreign], 1);
    let rendered = all.files[0].rendered.clone().unwrap();
    let steps = decide("present", true, &all);
    let wanted = Render {
        target: "/t".into(),
        is_new: false,
        directories: vec!["d0".into()],
        write: vec![("0".into(), rendered.clone()), ("1".into(), rendered)],
        remove: vec!["3".into()],
        validate: None,
    };
    assert_eq!(steps[0].action, Action::Render(wanted));
    let list = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    let changes = [
        Change::of("added").to(list(&["/t/0"])),
        Change::of("updated").to(list(&["/t/1"])),
        Change::of("removed").from(list(&["/t/3"])),
    ];
    assert_eq!((steps[0].verb, &steps[0].changes[..]), (Verb::Rendered, &changes[..]));
    let kept = serde_json::to_string(&steps).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Step<Action>>>(&kept).unwrap(), steps);
    let steps = decide("absent", true, &state(true, &[Equal, Updated, Foreign], 0));
    let files = vec!["0".into(), "1".into()];
    assert_eq!(steps[0].action, Action::Remove(Remove { target: "/t".into(), files, foreign: 1 }));
    assert_eq!(steps[0].changes, [Change::of("removed").from(list(&["/t/0", "/t/1"]))]);
}

#[test]
fn what_is_still_wrong_after_acting_is_named() {
    let mismatch = |ensure: &str, purge, exists, statuses: &[FileStatus]| {
        let mut want = Properties { purge, ..Properties::default() };
        want.common.ensure = ensure.to_owned();
        Scaffold::mismatch(&want, &state(exists, statuses, 0))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(mismatch("present", true, true, &[Equal]), None);
    assert_eq!(mismatch("present", false, true, &[Foreign]), None);
    assert_eq!(mismatch("absent", false, true, &[Foreign]), None);
    assert_eq!(mismatch("present", false, false, &[]), text("the target does not exist"));
    assert_eq!(
        mismatch("present", false, true, &[Equal, Updated]),
        text("/t/1 differs from what was rendered")
    );
    assert_eq!(mismatch("present", true, true, &[Foreign]), text("/t/0 should have been purged"));
    assert_eq!(mismatch("absent", false, true, &[Equal]), text("/t/0 still exists"));
}

#[test]
fn lists_have_absolute_paths_and_are_empty_without_a_target() {
    let there = serde_json::to_value(state(true, &[Added, Updated, Equal, Foreign], 0)).unwrap();
    assert_eq!(
        there,
        serde_json::json!({"metadata": {
            "name": "/t", "provider": "choria", "target_exists": true, "engine": "jet",
            "changed": ["/t/0", "/t/1"], "stable": ["/t/2"], "purged": ["/t/3"],
        }})
    );
    let gone = serde_json::to_value(state(false, &[Added], 1)).unwrap();
    assert_eq!(gone["metadata"]["changed"], serde_json::json!([]));
}
