//! What the outcome of a manifest means for the resource that brought it.

use ccm_engine::{Findings, ResourceType as _, Stop, Tally, Trigger};
use ccm_model::{Common, Stage};

use super::*;

fn named(name: &str) -> Properties {
    Properties { common: Common { name: name.into(), ..Common::default() }, ..Default::default() }
}

#[test]
fn a_manifest_is_always_applied() {
    for why in [Trigger::Turn, Trigger::Refresh] {
        let plan = Apply::decide(&named("c.yaml"), &State::default(), why).unwrap();
        assert_eq!(plan, [ApplyManifest]);
    }
    assert_eq!(Apply::describe(&[ApplyManifest]), "Would have applied the manifest");
}

#[test]
fn outcomes_of_resources_are_that_of_the_manifest() {
    let tally = |changed, failed, unmet, stop| Tally {
        resources: 4,
        changed,
        failed,
        unmet,
        applied: 3,
        stop,
    };
    for (tally, is_changed, reason) in [
        (tally(0, 0, 0, None), false, None),
        (tally(2, 0, 0, None), true, None),
        (tally(1, 2, 0, None), true, Some("2 of 4 resources failed")),
        (
            tally(0, 1, 1, None),
            false,
            Some("1 of 4 resources failed, 1 of 4 resources had unmet requirements"),
        ),
        (tally(0, 0, 1, None), false, Some("1 of 4 resources had unmet requirements")),
        (
            tally(0, 1, 0, Some(Stop::Failed)),
            false,
            Some("1 of 4 resources failed, Terminating manifest execution due to failed resource"),
        ),
        (
            tally(1, 1, 0, Some(Stop::Cancelled(ccm_host::CancelReason::Requested))),
            true,
            Some("interrupted after 3 of 4 resources"),
        ),
    ] {
        let state = State::from(tally);
        assert_eq!(Apply::has_changed(&state, &state), is_changed, "{tally:?}");
        assert_eq!(Apply::mismatch(&named("c.yaml"), &state).as_deref(), reason, "{tally:?}");
    }
}

#[test]
fn properties_say_what_the_manifest_gets() {
    let want = named("sub/c.yaml");
    let child = Apply::child(&want).unwrap();
    assert_eq!((child.path, child.allow_apply), ("sub/c.yaml", true));
    assert!(child.data.is_none() && child.noop.is_none() && child.health_check_only.is_none());
    let want = Properties {
        noop: Some(true),
        allow_apply: Some(false),
        data: Some(Data::default()),
        ..want
    };
    let child = Apply::child(&want).unwrap();
    assert!(child.noop == Some(true) && !child.allow_apply);
    assert!(child.data.unwrap().is_empty());
}

#[test]
fn urls_and_contradictions_are_refused() {
    let is_fine = |want: &Properties| {
        let mut findings = Findings::default();
        Apply::validate(want, Stage::Parse, &mut findings);
        findings.is_empty()
    };
    for (name, wanted) in [
        ("c.yaml", true),
        ("../c.yaml", true),
        ("/etc/ccm/c.yaml", true),
        ("https://me:pw@host/c.yaml", false),
        ("obj://BUCKET/c.tgz", false),
        ("file:///c.yaml", false),
        ("a\0b", false),
    ] {
        assert_eq!(is_fine(&named(name)), wanted, "{name:?}");
    }
    for (noop, health, wanted) in [(true, true, false), (true, false, true), (false, true, true)] {
        let want =
            Properties { noop: Some(noop), health_check_only: Some(health), ..named("c.yaml") };
        assert_eq!(is_fine(&want), wanted);
    }
}
