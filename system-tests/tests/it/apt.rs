//! Packages with the real apt and dpkg.

use crate::{Changed, Failed, Layer, Machine, Stable, package};

fn version(machine: &Machine) -> String {
    machine.sh("dpkg-query -W -f '${Version} ${db:Status-Status}' ccm-app").stdout
}

#[test]
fn every_row_of_the_decision_table() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let app = |ensure: &str| package("ccm-app", ensure);
    for (ensure, noop, after) in [
        ("absent", "", ""),
        ("1.0-1", "Would have installed version 1.0-1", "1.0-1 installed"),
        ("present", "", "1.0-1 installed"),
        ("1.1-1", "Would have upgraded to 1.1-1", "1.1-1 installed"),
        ("1.0-1", "Would have downgraded to 1.0-1", "1.0-1 installed"),
        ("latest", "Would have upgraded to latest", "2.0-1 installed"),
        ("absent", "Would have uninstalled", "2.0-1 config-files"),
        ("absent", "", "2.0-1 config-files"),
        ("present", "Would have installed latest", "2.0-1 installed"),
        ("absent", "Would have uninstalled", "2.0-1 config-files"),
        ("latest", "Would have installed latest", "2.0-1 installed"),
        ("1.1-1", "Would have downgraded to 1.1-1", "1.1-1 installed"),
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
        assert_eq!(again.event(0)["provider"], "apt");
    }
    let report = machine.apply(&app("present"));
    assert_eq!(report.states(), ["1.1-1"]);
    assert_eq!(machine.read("/usr/share/ccm-app/version"), "1.1-1");
}

#[test]
fn configuration_that_someone_changed_is_kept() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.apply(&package("ccm-app", "1.0-1"));
    machine.put("/etc/ccm-app.conf", "setting = mine\n");
    for ensure in ["2.0-1", "absent", "1.1-1"] {
        let report = machine.apply(&package("ccm-app", ensure));
        assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
        assert_eq!(machine.read("/etc/ccm-app.conf"), "setting = mine", "{ensure}");
    }
}

#[test]
fn what_is_half_configured_counts_as_absent_and_is_repaired() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.put("/etc/ccm-broken.fail", "");
    let report = machine.apply(&package("ccm-broken", "present"));
    assert_eq!(report.outcomes(), [Failed]);
    let errors = report.errors();
    assert!(errors.contains("exited with code 100"), "{errors}");
    assert!(errors.contains("Sub-process /usr/bin/dpkg returned an error code"), "{errors}");

    let status = machine.ccm(&["status", "package", "ccm-broken"]);
    assert!(status.stdout.contains("ensure: absent"), "{status:?}");
    assert!(status.stdout.contains("status: half-configured"), "{status:?}");

    machine.ok("rm /etc/ccm-broken.fail");
    for ensure in ["present", "1.0-1"] {
        let report = machine.apply(&package("ccm-broken", ensure));
        let wanted = if ensure == "present" { Changed } else { Stable };
        assert_eq!(report.outcomes(), [wanted], "{}", report.errors());
        assert_eq!(report.states(), ["1.0-1"]);
    }

    machine.ok("dpkg --unpack /srv/repository/apt/ccm-app_1.0-1_all.deb");
    assert_eq!(version(&machine), "1.0-1 unpacked");
    let report = machine.apply(&package("ccm-app", "1.0-1"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    assert_eq!(version(&machine), "1.0-1 installed");
}

#[test]
fn what_apt_refuses_fails_with_its_words_and_changes_nothing() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.apply(&package("ccm-app", "1.0-1"));
    let before = machine.ok("dpkg-query -W");
    for (name, ensure, words) in [
        ("ccm-nothing", "present", "E: Unable to locate package ccm-nothing"),
        ("ccm-nothing", "latest", "apt knows no version of package ccm-nothing"),
        ("ccm-nothing", "1.0", "E: Unable to locate package ccm-nothing"),
        ("ccm-app", "9.9-9", "E: Version '9.9-9' for 'ccm-app' was not found"),
        // The index is there, the package cannot be had.
        ("ccm-gone", "present", "E: Unable to fetch some archives"),
        // Not taken for a pattern, which this would fit.
        ("c.m-slow", "present", "E: Unable to locate package c.m-slow"),
    ] {
        let report = machine.apply(&package(name, ensure));
        assert_eq!(report.outcomes(), [Failed], "{name} {ensure}");
        let errors = report.errors();
        assert!(errors.contains(words), "{name} {ensure}: {errors}");
        if !words.starts_with("apt") {
            assert!(errors.contains("apt-get install"), "{errors}");
            assert!(errors.contains("exited with code 100"), "{errors}");
        }
        assert_eq!(machine.ok("dpkg-query -W"), before, "{name} {ensure}");
    }
    machine.ok("mv /srv/repository /srv/elsewhere");
    let report = machine.apply(&package("ccm-app", "2.0-1"));
    assert_eq!(report.outcomes(), [Failed]);
    assert!(report.errors().contains("File not found"), "{}", report.errors());
    machine.ok("apt-mark hold ccm-app; mv /srv/elsewhere /srv/repository");
    let report = machine.apply(&package("ccm-app", "2.0-1"));
    assert_eq!(report.outcomes(), [Failed]);
    assert!(report.errors().contains("Held packages were changed"), "{}", report.errors());
    assert_eq!(version(&machine), "1.0-1 installed");
}

#[test]
fn a_lock_that_another_holds_is_waited_for() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    // The other lets go only when ccm has said that it waits, however slow the
    // machine is.
    machine.ok("touch /run/ccm-slow.hold
                systemd-run --quiet --unit other apt-get install -y ccm-slow
                until pgrep -f [c]cm-slow.postinst; do sleep 0.05; done");
    let ran = machine.sh("ccm ensure package ccm-app 1.0-1 > /tmp/out & ccm=$!
         until grep -q 'Waiting for cache lock' /tmp/out; do kill -0 $ccm; sleep 0.05; done
         rm /run/ccm-slow.hold; code=0; wait $ccm || code=$?; cat /tmp/out; exit $code");
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = ran.stdout.lines().find(|line| line.starts_with("  + package#ccm-app "));
    assert!(row.is_some_and(|row| row.contains(" 1.0-1")), "{ran:?}");
    assert_eq!(version(&machine), "1.0-1 installed");
}

#[test]
fn an_interrupted_run_does_not_leave_a_package_half_installed() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.put(
        "/tmp/two.yaml",
        "ccm: {resources: [{package: [{ccm-slow: {}}, {ccm-many01: {}}]}, {exec: [{\"true\": {}}]}, \
         {package: [{ccm-app: {ensure: present}}]}]}\n",
    );
    // A shell without job control starts what runs in the background with
    // SIGINT ignored, and then ccm ignores it too.
    let ran = machine.sh("ccm apply /tmp/two.yaml & ccm=$!
         until pgrep -f [c]cm-slow.postinst > /dev/null; do sleep 0.05; done
         kill -TERM $ccm; wait $ccm");
    assert_eq!(ran.code, 143, "{ran:?}");
    // The transaction of both comes to its end, and is reported.
    for name in ["ccm-slow", "ccm-many01"] {
        let start = format!("  + package#{name} ");
        let row = ran.stdout.lines().find(|line| line.starts_with(&start));
        assert!(row.is_some_and(|row| row.contains(" 1.0-1")), "{name}: {ran:?}");
        let status = format!("dpkg-query -W -f '${{db:Status-Status}}' {name}");
        assert_eq!(machine.ok(&status), "installed");
    }
    assert!(!ran.stdout.contains("ccm-app") && !ran.stdout.contains("exec#"), "{ran:?}");
    assert_eq!(version(&machine), "");
}

#[test]
fn the_status_is_asked_for_once_and_again_after_what_may_have_changed_it() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    // Counts how often dpkg-query is asked.
    machine.ok("mv /usr/bin/dpkg-query /usr/bin/dpkg-query.real");
    machine.put(
        "/usr/bin/dpkg-query",
        "#!/bin/sh\necho asked >> /tmp/asked\nexec /usr/bin/dpkg-query.real \"$@\"\n",
    );
    machine.ok("chmod 755 /usr/bin/dpkg-query");
    let asked = || machine.ok("cat /tmp/asked | wc -l; rm /tmp/asked");
    let stable = "
ccm:
  resources:
    - package: [{dpkg: {}}, {bash: {}}]
    - file: [{/tmp/f: {content: x, owner: root, group: root, mode: '0644'}}]
    - package: [{coreutils: {}}, {ccm-app: {ensure: absent}}]
";
    machine.apply(stable);
    assert_eq!(asked(), "1");

    let changing = "
ccm:
  resources:
    - package: [{dpkg: {}}, {bash: {}}]
    - exec: [{apt-get install -y ccm-broken: {}}]
    - package: [{ccm-broken: {ensure: 1.0-1}}, {coreutils: {}}]
    - package: [{ccm-app: {ensure: 1.0-1}}]
    - package: [{grep: {}}, {sed: {}}]
";
    let report = machine.apply(changing);
    let outcomes = [Stable, Stable, Changed, Stable, Stable, Changed, Stable, Stable];
    assert_eq!(report.outcomes(), outcomes, "{}", report.errors());
    // At the beginning, after the command, and after the installation.
    assert_eq!(asked(), "3");

    machine.put("/tmp/child.yaml", &package("ccm-slow", "1.0-1"));
    let parent = "
ccm:
  resources:
    - package: [{bash: {}}]
    - apply: [{/tmp/child.yaml: {}}]
    - package: [{ccm-slow: {}}]
";
    let report = machine.apply(parent);
    assert_eq!(report.outcomes().last(), Some(&Stable), "{}", report.errors());
    assert_eq!(report.states().last(), Some(&"1.0-1"));
}

#[test]
fn status_at_the_command_line() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    assert_eq!(machine.ccm(&["ensure", "pkg", "ccm-app", "1.1-1"]).code, 0);
    let status = machine.ccm(&["status", "package", "ccm-app", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["ensure"], "1.1-1");
    assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.package.state");
    let metadata = serde_json::json!({
        "name": "ccm-app",
        "version": "1.1-1",
        "arch": "all",
        "url": "https://example.org/ccm-app",
        "summary": "ccm-app for tests",
        "description": "ccm-app for tests\n Nothing that anybody would want to have.",
        "provider": "apt",
        "extended": {"status": "installed"},
    });
    assert_eq!(status["metadata"], metadata);
    let absent = machine.ccm(&["status", "pkg", "ccm-nothing"]);
    assert!(absent.stdout.contains("ensure: absent"), "{absent:?}");
}

#[test]
fn names_that_apt_reads_as_orders_are_refused_unless_they_are_names() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let refused = |name: &str, ensure: &str, words: &str| {
        let before = machine.ok("dpkg-query -W");
        for report in [machine.noop(&package(name, ensure)), machine.apply(&package(name, ensure))]
        {
            assert_eq!(report.outcomes(), [Failed], "{name} {ensure}");
            assert!(report.errors().contains(words), "{name} {ensure}: {}", report.errors());
        }
        assert_eq!(machine.ok("dpkg-query -W"), before, "{name} {ensure}");
    };
    for ensure in ["present", "absent", "latest", "1.0-1"] {
        refused("ccm-app+", ensure, "an order to install ccm-app");
    }
    machine.apply(&package("ccm-app", "1.0-1"));
    for ensure in ["present", "absent", "latest", "1.0-1"] {
        refused("ccm-app-", ensure, "an order to remove ccm-app");
        refused("ccm-app:all:x", ensure, "a package and an architecture");
    }
    for version in ["1.1-1+", "1.1-1-"] {
        refused("ccm-app", version, "as an order");
    }
    // Only the package manager can know, so this is no error in the manifest.
    machine.put("/tmp/order.yaml", &package("ccm-app+", "present"));
    assert_eq!(machine.ccm(&["validate", "/tmp/order.yaml"]).code, 0);
    for (ensure, outcome) in [("present", Changed), ("1.0-1", Stable), ("absent", Changed)] {
        let report = machine.apply(&package("ccm-plus+", ensure));
        assert_eq!(report.outcomes(), [outcome], "{ensure}: {}", report.errors());
    }
}

#[test]
fn the_environment_of_ccm_does_not_reach_apt_but_for_proxies() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.ok("mv /usr/bin/apt-get /usr/bin/apt-get.real");
    machine.put(
        "/usr/bin/apt-get",
        "#!/bin/sh\nenv | cut -d= -f1 > /tmp/seen\nexec /usr/bin/apt-get.real \"$@\"\n",
    );
    machine.ok("chmod 755 /usr/bin/apt-get");
    machine.ok("LD_PRELOAD=/nowhere.so DPKG_ADMINDIR=/nowhere PERL5LIB=/tmp RUBYOPT=x \
                http_proxy=http://127.0.0.1:1 no_proxy=x ccm ensure package ccm-app 1.0-1");
    assert_eq!(version(&machine), "1.0-1 installed");
    let seen = machine.ok("sort /tmp/seen");
    for name in ["LD_PRELOAD", "DPKG_ADMINDIR", "PERL5LIB", "RUBYOPT"] {
        assert!(!seen.lines().any(|line| line == name), "{seen}");
    }
    for name in ["DEBIAN_FRONTEND", "HOME", "LC_ALL", "PATH", "http_proxy", "no_proxy"] {
        assert!(seen.lines().any(|line| line == name), "{name}: {seen}");
    }
}

#[test]
fn what_could_mean_more_than_a_name_is_refused_before_any_command_runs() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine
        .ok("for tool in dpkg-query apt-get apt-cache; do ln -sf /bin/false /usr/bin/$tool; done");
    for (name, ensure) in [
        ("ccm-app;reboot", "present"),
        ("$(reboot)", "present"),
        ("ccm.*", "present"),
        ("~i", "present"),
        ("../ccm-app", "present"),
        ("ccm app", "present"),
        ("", "present"),
        ("ccm-app", "1.0 2.0"),
        ("ccm-app", "1.0;reboot"),
        ("ccm-app", "1.0/testing"),
        ("ccm-app", "latst"),
        ("ccm-app", "1.0:1"),
    ] {
        let ran = machine.ccm(&["ensure", "package", "--", name, ensure]);
        assert_eq!(ran.code, 1, "{name} {ensure}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("exited with code"), "{name} {ensure}: {ran:?}");
    }
    let option = machine.ccm(&["ensure", "package", "--", "--purge"]);
    assert!(option.stderr.contains("must start with a letter or digit"), "{option:?}");
}
