//! Packages with the real dnf and rpm. The machine has apt as well and is a
//! Debian, so the provider is asked for by its name.

use crate::{Changed, Failed, Layer, Machine, Stable};

fn package(name: &str, ensure: &str) -> String {
    format!(
        "ccm: {{resources: [{{package: [{{{name}: {{ensure: \"{ensure}\", provider: dnf}}}}]}}]}}\n"
    )
}

fn version(machine: &Machine) -> String {
    machine.sh("rpm -q ccm-app --queryformat '%{VERSION}-%{RELEASE}'").stdout
}

#[test]
fn every_row_of_the_decision_table() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    const NONE: &str = "package ccm-app is not installed";
    let app = |ensure: &str| package("ccm-app", ensure);
    for (ensure, noop, after) in [
        ("absent", "", NONE),
        ("1.0-1", "Would have installed version 1.0-1", "1.0-1"),
        ("present", "", "1.0-1"),
        ("1.1-1", "Would have upgraded to 1.1-1", "1.1-1"),
        ("1.0-1", "Would have downgraded to 1.0-1", "1.0-1"),
        ("latest", "Would have upgraded to latest", "2.0-1"),
        ("0:1.1-1", "Would have downgraded to 0:1.1-1", "1.1-1"),
        ("absent", "Would have uninstalled", NONE),
        ("present", "Would have installed latest", "2.0-1"),
        ("absent", "Would have uninstalled", NONE),
        ("latest", "Would have installed latest", "2.0-1"),
    ] {
        let before = version(&machine);
        let preview = machine.noop(&app(ensure));
        assert_eq!(preview.messages(), [noop], "{ensure} on {before:?}: {}", preview.errors());
        assert_eq!(version(&machine), before, "noop has changed something");
        let wanted = if noop.is_empty() { Stable } else { Changed };
        assert_eq!(preview.outcomes(), [wanted], "{ensure} on {before:?}");

        let report = machine.apply(&app(ensure));
        assert_eq!(report.outcomes(), [wanted], "{ensure} on {before:?}: {}", report.errors());
        assert_eq!(version(&machine), after, "{ensure} on {before:?}");
        let again = machine.apply(&app(ensure));
        assert_eq!(again.outcomes(), [Stable], "{ensure} again: {}", again.errors());
        assert_eq!(again.event(0)["provider"], "dnf");
    }
}

#[test]
fn an_epoch_is_compared_where_it_is_wanted() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    for (ensure, outcome) in
        [("1:1.0-1", Changed), ("1.0-1", Stable), ("1:1.0-1", Stable), ("0:1.0-1", Failed)]
    {
        let report = machine.apply(&package("ccm-epoch", ensure));
        assert_eq!(report.outcomes(), [outcome], "{ensure}: {}", report.errors());
        assert_eq!(report.states(), ["1.0-1"]);
    }
    let status = machine.sh("rm /etc/debian_version; touch /etc/system-release
                             ccm status package ccm-epoch --json");
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let metadata = serde_json::json!({
        "name": "ccm-epoch",
        "version": "1.0-1",
        "arch": "noarch",
        "license": "Apache-2.0",
        "url": "https://example.org/ccm-epoch",
        "summary": "ccm-epoch for tests",
        "description": "Nothing that anybody would want to have.",
        "provider": "dnf",
        "extended": {"epoch": "1", "release": "1"},
    });
    assert_eq!(status["metadata"], metadata);
}

#[test]
fn of_several_installed_versions_the_newest_counts() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    machine.ok("cd /srv/repository/rpm; rpm -i --force ccm-app-1.1-1.rpm ccm-app-1.0-1.rpm");
    assert_eq!(machine.ok("rpm -q ccm-app | wc -l"), "2");
    let report = machine.apply(&package("ccm-app", "1.1-1"));
    assert_eq!(report.outcomes(), [Stable], "{}", report.errors());
    assert_eq!(report.states(), ["1.1-1"]);
}

#[test]
fn what_dnf_refuses_fails_with_its_words_and_changes_nothing() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    machine.apply(&package("ccm-app", "1.0-1"));
    for (name, ensure, words) in [
        ("ccm-nothing", "present", "Unable to find a match: ccm-nothing"),
        ("ccm-nothing", "latest", "Unable to find a match: ccm-nothing"),
        ("ccm-app", "9.9-9", "Unable to find a match: ccm-app-9.9-9"),
        ("ccm-app", "0.1-1", "No packages marked for downgrade"),
    ] {
        let report = machine.apply(&package(name, ensure));
        assert_eq!(report.outcomes(), [Failed], "{name} {ensure}");
        let errors = report.errors();
        assert!(errors.contains(words), "{name} {ensure}: {errors}");
        assert!(errors.contains("exited with code 1\n"), "{errors}");
        assert_eq!(version(&machine), "1.0-1");
    }
    for name in ["1:ccm-app", "ccm-app:1:2"] {
        let report = machine.noop(&package(name, "present"));
        assert_eq!(report.outcomes(), [Failed], "{name}");
        assert!(report.errors().contains("with an epoch"), "{name}: {}", report.errors());
    }
    // A repository that does not answer.
    machine.ok("sed -i s,file:///srv,http://127.0.0.1:1, /etc/yum.repos.d/ccm.repo
                rm -rf /var/cache/dnf");
    let report = machine.apply(&package("ccm-app", "2.0-1"));
    assert_eq!(report.outcomes(), [Failed]);
    assert!(report.errors().contains("Failed to download metadata"), "{}", report.errors());
    assert_eq!(version(&machine), "1.0-1");
    // A database that cannot be read is not a package that is absent.
    machine.ok("echo '%_dbpath /etc/passwd' > /etc/rpm/macros.ccm");
    let report = machine.apply(&package("ccm-app", "absent"));
    assert_eq!(report.outcomes(), [Failed], "{}", report.errors());
    assert!(report.errors().contains("cannot open Packages database"), "{}", report.errors());
}

#[test]
fn a_lock_that_another_holds_is_waited_for() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    // The other lets go only when ccm has said that it waits.
    machine.ok("touch /run/ccm-slow.hold
                systemd-run --quiet --unit other dnf install -y ccm-slow
                until pgrep -x -f 'sleep 4'; do sleep 0.05; done");
    let ran = machine.sh("ccm ensure package ccm-app 1.0-1 --provider dnf > /tmp/out & ccm=$!
         until grep -q 'Waiting for process' /tmp/out; do kill -0 $ccm; sleep 0.05; done
         rm /run/ccm-slow.hold; code=0; wait $ccm || code=$?; cat /tmp/out; exit $code");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(version(&machine), "1.0-1");
}
