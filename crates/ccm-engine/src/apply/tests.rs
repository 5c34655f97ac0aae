//! How the outcome of a child manifest determines the outcome of its `apply`
//! resource.

use ccm_model::{Common, Stage};

use super::*;

fn named(name: &str) -> Properties {
    Properties { common: Common { name: name.into(), ..Common::default() }, ..Default::default() }
}

#[test]
fn outcomes_of_resources_are_that_of_the_manifest() {
    let summary = |failed, unmet, stop| ChildSummary {
        resources: 4,
        failed,
        unmet,
        applied: 3,
        stop,
        ..Default::default()
    };
    for (summary, reason) in [
        (summary(0, 0, None), None),
        (summary(2, 0, None), Some("2 of 4 resources failed")),
        (
            summary(1, 1, None),
            Some("1 of 4 resources failed, 1 of 4 resources had unmet requirements"),
        ),
        (summary(0, 1, None), Some("1 of 4 resources had unmet requirements")),
        (
            summary(1, 0, Some(Stop::Failed)),
            Some("1 of 4 resources failed, Terminating manifest execution due to failed resource"),
        ),
        (
            summary(1, 0, Some(Stop::Cancelled(ccm_host::CancelReason::Requested))),
            Some("interrupted after 3 of 4 resources"),
        ),
    ] {
        assert_eq!(failure(&summary).as_deref(), reason, "{summary:?}");
    }
}

#[test]
fn properties_say_what_the_manifest_gets() {
    let want = named("sub/c.yaml");
    let child = want.child();
    assert_eq!((child.path, child.allow_apply), ("sub/c.yaml", true));
    assert!(child.data.is_none() && child.noop.is_none() && child.health_check_only.is_none());
    let want = Properties {
        noop: Some(true),
        allow_apply: Some(false),
        data: Some(Data::default()),
        ..want
    };
    let child = want.child();
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
