//! The decision table, row by row.

use ccm_engine::{ResourceType as _, Trigger};

use super::compare::Fate::{self, Added, Equal, Foreign, Updated};
use super::{Action, Language, Properties, Scaffold, State};

fn decide(ensure: &str, purge: bool, exists: bool, fates: &[Fate], missing: usize) -> Vec<Action> {
    let mut want = Properties { purge, ..Properties::default() };
    want.common.ensure = ensure.to_owned();
    Scaffold::decide(&want, &state(exists, fates, missing), Trigger::Turn).unwrap()
}

fn state(target_exists: bool, fates: &[Fate], missing_directories: usize) -> State {
    let file = |(at, fate): (usize, &Fate)| (format!("/t/{at}").into(), *fate);
    State {
        name: "/t".to_owned(),
        provider: "choria",
        engine: Language::Jet,
        target_exists,
        files: fates.iter().enumerate().map(file).collect(),
        missing_directories,
    }
}

#[test]
fn the_decision_table_holds() {
    use Action::{Remove, Render};
    for (ensure, purge, exists, fates, missing, wanted) in [
        // Target missing.
        ("absent", false, false, &[][..], 1, None),
        ("present", false, false, &[Added, Added], 1, Some(Render(2))),
        ("present", true, false, &[], 1, Some(Render(1))),
        // Absent: nothing managed is left, whatever else there is.
        ("absent", false, true, &[], 0, None),
        ("absent", true, true, &[Foreign], 0, None),
        // Absent: managed files remain.
        ("absent", false, true, &[Equal, Updated], 0, Some(Remove(2))),
        ("absent", false, true, &[Equal, Foreign], 0, Some(Remove(1))),
        ("absent", true, true, &[Equal, Foreign], 0, Some(Remove(2))),
        // Present: nothing changed.
        ("present", false, true, &[Equal, Equal], 0, None),
        ("present", true, true, &[Equal], 0, None),
        ("present", false, true, &[Equal, Foreign], 0, None),
        ("present", true, true, &[Equal, Foreign], 0, Some(Render(1))),
        // Present: something changed.
        ("present", false, true, &[Added, Updated, Equal, Foreign], 0, Some(Render(2))),
        ("present", true, true, &[Added, Updated, Equal, Foreign], 0, Some(Render(3))),
        // Only directories are missing.
        ("present", false, true, &[Equal], 2, Some(Render(2))),
    ] {
        let plan = decide(ensure, purge, exists, fates, missing);
        assert_eq!(plan, Vec::from_iter(wanted), "{ensure} {purge} {exists} {fates:?}");
    }
}

#[test]
fn noop_counts_files() {
    assert_eq!(Action::Render(3).to_string(), "Would have changed 3 scaffold files");
    assert_eq!(Action::Remove(1).to_string(), "Would have removed 1 scaffold files");
}

#[test]
fn what_is_still_wrong_after_acting_is_named() {
    let mismatch = |ensure: &str, purge, exists, fates: &[Fate]| {
        let mut want = Properties { purge, ..Properties::default() };
        want.common.ensure = ensure.to_owned();
        Scaffold::mismatch(&want, &state(exists, fates, 0))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(mismatch("present", true, true, &[Equal]), None);
    assert_eq!(mismatch("present", false, true, &[Foreign]), None);
    assert_eq!(mismatch("absent", false, true, &[Foreign]), None);
    assert_eq!(mismatch("present", false, false, &[]), text("the target is not there"));
    assert_eq!(
        mismatch("present", false, true, &[Equal, Updated]),
        text("/t/1 is not as it was rendered")
    );
    assert_eq!(mismatch("present", true, true, &[Foreign]), text("/t/0 should have been purged"));
    assert_eq!(mismatch("absent", false, true, &[Equal]), text("/t/0 is still there"));
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
