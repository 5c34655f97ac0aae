//! The decision table row by row, the words of noop, and what is refused
//! before any command runs. Real package managers are in the system tests.

use std::cmp::Ordering;

use ccm_engine::{AnyType as _, Arguments, Erased, ResourceType as _, Step, Trigger};
use ccm_model::{Change, Common, Reader, Verb};

use super::{Action, Details, Installed, Package, PackageStatus, Properties, State, Target};

fn want(ensure: &str) -> Properties {
    Properties { common: Common { ensure: ensure.into(), name: "p".into(), ..Common::default() } }
}

fn state(version: Option<&str>, order: Ordering) -> State {
    let installed =
        version.map(|version| Installed { version: version.into(), ..Installed::default() });
    let found = PackageStatus { installed, ..PackageStatus::default() };
    State { name: "p".into(), provider: "apt", found, order, details: Details::default() }
}

#[test]
fn the_decision_table() {
    let absent = state(None, Ordering::Equal);
    let same = state(Some("1.5"), Ordering::Equal);
    let older = state(Some("1.0"), Ordering::Less);
    let newer = state(Some("2.0"), Ordering::Greater);
    let package = || "p".to_owned();
    let version = || Target::Version("1.5".into());
    let install = |target| Some((Verb::Installed, Action::Install { package: package(), target }));
    let upgrade = |target| Some((Verb::Upgraded, Action::Upgrade { package: package(), target }));
    let downgrade = Action::Downgrade { package: package(), version: "1.5".into() };
    let uninstall = Action::Uninstall { package: package() };
    for (ensure, have, wanted, noop) in [
        ("present", &same, None, ""),
        ("present", &absent, install(Target::Any), "Would have installed latest"),
        ("absent", &absent, None, ""),
        ("absent", &same, Some((Verb::Removed, uninstall)), "Would have uninstalled"),
        ("latest", &absent, install(Target::Latest), "Would have installed latest"),
        ("latest", &same, upgrade(Target::Latest), "Would have upgraded to latest"),
        ("1.5", &same, None, ""),
        ("1.5", &older, upgrade(version()), "Would have upgraded to 1.5"),
        ("1.5", &newer, Some((Verb::Downgraded, downgrade)), "Would have downgraded to 1.5"),
        ("1.5", &absent, install(version()), "Would have installed version 1.5"),
    ] {
        let steps = Package::decide(&want(ensure), have, Trigger::Turn).unwrap();
        let kept = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Step<Action>>>(&kept).unwrap(), steps);
        let text: String = steps.iter().map(Package::describe).collect();
        assert_eq!(text, noop, "{ensure} with {have:?}");
        let from = ccm_engine::State::ensure(have);
        let change = Change::of("ensure").from(from).to(ensure);
        let wanted = wanted.map(|(verb, action)| Step::new(verb, action).change(change));
        assert_eq!(steps, Vec::from_iter(wanted), "{ensure} with {have:?}");
    }
}

#[test]
fn a_change_ends_with_the_version_that_was_chosen() {
    let mut changes = [Change::of("ensure").from("absent").to("latest")];
    Package::complete(&mut changes, &state(Some("1.5"), Ordering::Equal));
    assert_eq!(changes, [Change::of("ensure").from("absent").to("1.5")]);
}

#[test]
fn what_is_verified() {
    let absent = state(None, Ordering::Equal);
    let older = state(Some("1.0"), Ordering::Less);
    let same = state(Some("1.5"), Ordering::Equal);
    for (ensure, have, reason) in [
        ("present", &older, None),
        ("present", &absent, Some("ensure is absent, should be present")),
        ("absent", &absent, None),
        ("absent", &older, Some("ensure is 1.0, should be absent")),
        ("latest", &older, None),
        ("latest", &absent, Some("ensure is absent, should be latest")),
        ("1.5", &same, None),
        ("1.5", &older, Some("ensure is 1.0, should be 1.5")),
        ("1.5", &absent, Some("ensure is absent, should be 1.5")),
    ] {
        assert_eq!(Package::mismatch(&want(ensure), have).as_deref(), reason, "{ensure}");
    }
    assert!(Package::has_changed(&older, &same));
    assert!(Package::has_changed(&absent, &same));
    assert!(!Package::has_changed(&same, &same));
}

fn problem(name: &str, ensure: &str) -> Option<String> {
    let mut arguments = Arguments::default();
    arguments.set("name", name);
    arguments.set("ensure", ensure);
    let mut reader = Reader::default();
    let resource = Erased::<Package>::NEW.declare(arguments.into_entries(), None, &mut reader);
    assert!(reader.findings.is_empty());
    resource.findings(&ccm_host::Host::new()).into_iter().next().map(|finding| match finding.hint {
        Some(hint) => format!("{} ({hint})", finding.message),
        None => finding.message,
    })
}

#[test]
fn what_is_refused_before_any_command_runs() {
    for (name, ensure) in [
        ("nginx", "present"),
        ("g++", "absent"),
        ("libc6:i386", "latest"),
        ("python3.11-minimal", "1:3.11.2-6+deb12u3"),
        ("kernel", "6.1^20230101git.fc39"),
    ] {
        assert_eq!(problem(name, ensure), None, "{name} {ensure}");
    }
    for name in ["", "a;b", "$(reboot)", "a b", "-y", "--purge", "../x", "a/b", "~i", "`x`"] {
        assert!(problem(name, "present").is_some(), "{name:?}");
    }
    for version in ["1.0;reboot", "1.0 2.0", "-1.0", "1/0", "1.0|x", "1.0\n", "1=2", "'1'", "1*"] {
        assert!(problem("nginx", version).is_some(), "{version:?}");
    }
    assert_eq!(
        problem("nginx", "latst").unwrap(),
        "ensure: `latst` is neither a state nor a version (did you mean `latest`?)"
    );
    // What a package manager makes of these, only it knows.
    for (name, ensure) in [("vim-", "absent"), ("zsh+", "present"), ("a:b:c", "1.0-")] {
        assert_eq!(problem(name, ensure), None, "{name}");
    }
}
