//! Services with the real systemd.

use crate::{Changed, Failed, Layer, Machine, Refreshed, Stable};

const SLEEPER: &str = "[Service]\nExecStart=/bin/sleep infinity\n";
const INSTALL: &str = "[Install]\nWantedBy=multi-user.target\n";

/// A machine with a service `app` that can be enabled.
fn machine() -> Option<Machine> {
    let machine = Machine::up(Layer::Plain)?;
    machine.put("/usr/lib/systemd/system/app.service", &format!("{SLEEPER}{INSTALL}"));
    Some(machine)
}

/// A manifest of one service.
fn service(name: &str, properties: &str) -> String {
    format!("ccm: {{resources: [{{service: [{{{name}: {{{properties}}}}}]}}]}}\n")
}

/// What systemd says of a service, in two words.
fn state(machine: &Machine, name: &str) -> String {
    let words = machine.sh(&format!(
        "systemctl is-active {name} || true; systemctl is-enabled {name} 2>/dev/null || true"
    ));
    words.stdout.replace('\n', " ")
}

#[test]
fn every_row_of_the_decision_table() {
    let Some(machine) = machine() else { return };
    for (properties, noop, after) in [
        ("ensure: stopped", "", "inactive disabled"),
        ("ensure: running", "Would have started", "active disabled"),
        ("", "", "active disabled"),
        ("enable: true", "Would have enabled", "active enabled"),
        ("ensure: stopped", "Would have stopped", "inactive enabled"),
        ("ensure: stopped, enable: true", "", "inactive enabled"),
        ("enable: false", "Would have started. Would have disabled", "active disabled"),
        ("enable: false", "", "active disabled"),
        (
            "ensure: stopped, enable: true",
            "Would have stopped. Would have enabled",
            "inactive enabled",
        ),
        ("ensure: stopped, enable: false", "Would have disabled", "inactive disabled"),
        (
            "ensure: running, enable: true",
            "Would have started. Would have enabled",
            "active enabled",
        ),
    ] {
        let before = state(&machine, "app");
        let manifest = service("app", properties);
        let preview = machine.noop(&manifest);
        assert_eq!(preview.messages(), [noop], "{properties} on {before}: {}", preview.errors());
        assert_eq!(state(&machine, "app"), before, "noop has changed something");

        let wanted = if noop.is_empty() { Stable } else { Changed };
        let report = machine.apply(&manifest);
        assert_eq!(report.outcomes(), [wanted], "{properties} on {before}: {}", report.errors());
        assert_eq!(state(&machine, "app"), after, "{properties} on {before}");
        assert_eq!(machine.apply(&manifest).outcomes(), [Stable], "{properties} again");
    }
}

#[test]
fn a_change_restarts_what_runs_and_should() {
    let Some(machine) = machine() else { return };
    let manifest = |content: &str, ensure: &str| {
        format!(
            "ccm:\n  resources:\n    - file: [{{/etc/app.conf: {{content: {content}, owner: root, \
             group: root, mode: '0644'}}}}]\n    - service: [{{app: {{ensure: {ensure}, \
             subscribe: ['file#/etc/app.conf']}}}}]\n"
        )
    };
    let pid = || machine.ok("systemctl show -p MainPID --value app");

    // Not running: started, not restarted.
    let report = machine.apply(&manifest("a", "running"));
    assert_eq!(report.outcomes(), [Changed, Changed], "{}", report.errors());
    let first = pid();
    assert_eq!(machine.apply(&manifest("a", "running")).outcomes(), [Stable, Stable]);
    assert_eq!(pid(), first);

    let preview = machine.noop(&manifest("b", "running"));
    assert_eq!(preview.messages()[1], "Would have restarted");
    assert_eq!(pid(), first);
    let report = machine.apply(&manifest("b", "running"));
    assert_eq!(report.outcomes(), [Changed, Refreshed], "{}", report.errors());
    assert_ne!(pid(), first);
    assert_eq!(machine.apply(&manifest("b", "running")).outcomes(), [Stable, Stable]);

    // Should not run: stopped once, then left alone whatever changes.
    let report = machine.apply(&manifest("c", "stopped"));
    assert_eq!(report.outcomes(), [Changed, Changed], "{}", report.errors());
    assert_eq!(machine.apply(&manifest("d", "stopped")).outcomes(), [Changed, Stable]);
    assert_eq!(state(&machine, "app"), "inactive disabled");
}

#[test]
fn a_change_reloads_what_can_be_reloaded() {
    let Some(machine) = machine() else { return };
    let unit = |name: &str, reload: &str| {
        let path = format!("/etc/systemd/system/{name}");
        machine.put(&path, &format!("{SLEEPER}{reload}{INSTALL}"));
    };
    unit("gentle@.service", "ExecReload=/bin/sh -c 'echo %i >> /tmp/reloads'\n");
    unit("broken.service", "ExecReload=/bin/false\n");
    let manifest = |name: &str, content: &str| {
        format!(
            "ccm:\n  resources:\n    - file: [{{/etc/app.conf: {{content: {content}, owner: root, \
             group: root, mode: '0644'}}}}]\n    - service: [{{{name}: {{reload: true, \
             subscribe: ['file#/etc/app.conf']}}}}]\n"
        )
    };
    let pid = |name: &str| machine.ok(&format!("systemctl show -p MainPID --value {name}"));

    // An instance of a template, and one that systemd has by its full name.
    let name = "gentle@blue.service";
    assert_eq!(machine.apply(&manifest(name, "a")).outcomes(), [Changed, Changed]);
    let first = pid(name);
    let preview = machine.noop(&manifest(name, "b"));
    assert_eq!(preview.messages()[1], "Would have reloaded", "{}", preview.errors());
    assert!(!machine.has("/tmp/reloads"));
    let report = machine.apply(&manifest(name, "b"));
    assert_eq!(report.outcomes(), [Changed, Refreshed], "{}", report.errors());
    assert_eq!(report.event(1)["verbs"], serde_json::json!(["reloaded"]));
    assert_eq!(report.warnings(), [""; 0]);
    assert_eq!((machine.read("/tmp/reloads"), pid(name)), ("blue".to_owned(), first));
    assert_eq!(machine.apply(&manifest(name, "b")).outcomes(), [Stable, Stable]);

    // It cannot: a restart, with a warning in the preview too.
    assert_eq!(machine.apply(&manifest("app", "c")).outcomes(), [Changed, Changed]);
    let first = pid("app");
    let warning =
        "service#app: app has no reload command; ccm restarts it although `reload` is true";
    let preview = machine.noop(&manifest("app", "d"));
    assert_eq!(
        (preview.messages()[1], preview.warnings()),
        ("Would have restarted", &[warning.to_owned()][..])
    );
    let report = machine.apply(&manifest("app", "d"));
    assert_eq!(report.outcomes(), [Changed, Refreshed], "{}", report.errors());
    assert_eq!(report.warnings(), [warning]);
    assert_ne!(pid("app"), first);

    // A unit file that comes with the same run says how.
    let edited = "
ccm:
  resources:
    - file: [{/etc/systemd/system/app.service: {content: \"[Service]\\nExecStart=/bin/sleep infinity\\nExecReload=/bin/true\\n\", owner: root, group: root, mode: '0644'}}]
    - service: [{app: {reload: true, subscribe: ['file#/etc/systemd/system/app.service']}}]
";
    assert_eq!(machine.noop(edited).messages()[1], "Would have reloaded");
    let report = machine.apply(edited);
    assert_eq!(report.event(1)["verbs"], serde_json::json!(["reloaded"]), "{}", report.errors());

    assert_eq!(machine.apply(&manifest("broken", "e")).outcomes(), [Changed, Changed]);
    let report = machine.apply(&manifest("broken", "f"));
    assert_eq!(report.outcomes(), [Changed, Failed]);
    assert!(report.errors().contains("systemctl reload --system broken"), "{}", report.errors());
}

#[test]
fn the_states_of_units() {
    let Some(machine) = machine() else { return };
    machine.put("/etc/systemd/system/fixed.service", SLEEPER);
    machine.ok("systemctl mask app");
    // Masked: it does not start at boot, and cannot be made to.
    let stopped = service("app", "ensure: stopped, enable: false");
    assert_eq!(machine.apply(&stopped).outcomes(), [Stable]);
    for properties in ["ensure: running", "ensure: stopped, enable: true"] {
        let report = machine.apply(&service("app", properties));
        assert_eq!(report.outcomes(), [Failed], "{properties}");
        assert!(report.errors().contains("exited with code 1"), "{}", report.errors());
        assert!(report.errors().contains("masked"), "{}", report.errors());
        assert_eq!(report.states(), ["stopped"]);
    }
    // Static: it counts as enabled, and nothing can disable it.
    assert_eq!(machine.apply(&service("fixed", "enable: true")).outcomes(), [Changed]);
    assert_eq!(machine.apply(&service("fixed", "enable: true")).outcomes(), [Stable]);
    let report = machine.apply(&service("fixed", "enable: false"));
    assert_eq!(report.outcomes(), [Failed]);
    assert!(
        report.errors().contains("enable is true (static), should be false"),
        "{}",
        report.errors()
    );

    for properties in ["ensure: running", "ensure: stopped, enable: false"] {
        let report = machine.apply(&service("nothing", properties));
        assert_eq!(report.outcomes(), [Failed]);
        assert!(report.errors().contains("service not found: nothing"), "{}", report.errors());
    }
}

#[test]
fn what_does_not_start_fails_with_what_it_said() {
    let Some(machine) = machine() else { return };
    let unit = |kind: &str, script: &str| {
        format!("[Service]\nType={kind}\nExecStart=/bin/sh -c '{script}'\n{INSTALL}")
    };
    // systemctl itself fails.
    machine.put("/etc/systemd/system/refuses.service", &unit("oneshot", "echo no port; exit 3"));
    let report = machine.apply(&service("refuses", "ensure: running"));
    assert_eq!(report.outcomes(), [Failed]);
    let errors = report.errors();
    assert!(errors.contains("`systemctl start --system refuses` exited with code 1"), "{errors}");
    assert!(errors.contains("no port"), "{errors}");
    assert!(errors.contains("status=3"), "{errors}");

    // systemctl is content, and the service is not there a moment later.
    machine.put("/etc/systemd/system/dies.service", &unit("simple", "echo bad config; exit 4"));
    let report = machine.apply(&service("dies", "ensure: running"));
    assert_eq!(report.outcomes(), [Failed]);
    let errors = report.errors();
    assert!(errors.contains("ensure is stopped (failed), should be running"), "{errors}");
    assert!(errors.contains("bad config"), "{errors}");

    // Fixed, it starts from its failed state.
    machine.put("/etc/systemd/system/dies.service", &unit("simple", "sleep infinity"));
    assert_eq!(machine.apply(&service("dies", "ensure: running")).outcomes(), [Changed]);
}

/// Writes down every call of systemctl.
fn spy(machine: &Machine) {
    machine.ok("mv /usr/bin/systemctl /usr/bin/systemctl.real; : > /tmp/calls");
    machine.put(
        "/usr/bin/systemctl",
        "#!/bin/sh\necho \"$@\" >> /tmp/calls\nexec /usr/bin/systemctl.real \"$@\"\n",
    );
    machine.ok("chmod 755 /usr/bin/systemctl");
}

fn calls(machine: &Machine) -> Vec<String> {
    let calls = machine.ok("cat /tmp/calls; : > /tmp/calls");
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn units_are_loaded_once_and_again_when_they_have_changed() {
    let Some(machine) = machine() else { return };
    for name in ["one", "two", "three"] {
        machine.put(&format!("/etc/systemd/system/{name}.service"), &format!("{SLEEPER}{INSTALL}"));
    }
    spy(&machine);
    let reloads = || calls(&machine).iter().filter(|call| *call == "daemon-reload").count();
    let three = "ccm: {resources: [{service: [{one: {enable: true}}, {two: {}}, {three: {enable: true}}]}]}\n";
    machine.noop(three);
    assert_eq!(reloads(), 0, "a preview leaves systemd alone");
    assert_eq!(machine.apply(three).outcomes(), [Changed, Changed, Changed]);
    assert_eq!(reloads(), 1);
    assert_eq!(machine.apply(three).outcomes(), [Stable, Stable, Stable]);
    assert_eq!(reloads(), 0, "nothing is to be changed");
    machine.ccm(&["status", "service", "one"]);
    assert_eq!(reloads(), 0);

    // A unit file by a file resource, a drop-in by a command, and a file that
    // is none of systemd's.
    let changing = "
ccm:
  resources:
    - service: [{one: {}}]
    - file: [{/etc/elsewhere: {content: x, owner: root, group: root, mode: '0644'}}]
    - service: [{two: {}}]
    - file:
        - /etc/systemd/system/late.service:
            content: |
              [Service]
              Environment=A=late
              ExecStart=/bin/sleep infinity
            owner: root
            group: root
            mode: '0644'
    - service: [{late: {}}]
    - exec:
        - drop-in:
            provider: shell
            command: mkdir -p /etc/systemd/system/app.service.d; printf '[Service]\\nEnvironment=A=dropped\\n' > /etc/systemd/system/app.service.d/a.conf
    - service: [{app: {}}]
    - service: [{three: {}}]
";
    let report = machine.apply(changing);
    let outcomes = [Stable, Changed, Stable, Changed, Changed, Changed, Changed, Stable];
    assert_eq!(report.outcomes(), outcomes, "{}", report.errors());
    assert_eq!(reloads(), 2, "for the unit file and for the drop-in");
    let environment =
        |name: &str| machine.ok(&format!("systemctl.real show -p Environment --value {name}"));
    assert_eq!(environment("late"), "A=late");
    assert_eq!(environment("app"), "A=dropped");
}

/// Puts a generator in place that makes `NAME.service` of `/etc/made/NAME`.
fn generator(machine: &Machine, source_path: &str) {
    let path = "/etc/systemd/system-generators/make";
    machine.put(
        path,
        &format!(
            "#!/bin/sh\nfor f in /etc/made/*; do\n  [ -e \"$f\" ] || continue\n  \
             {{ printf '[Unit]\\n{source_path}\\n[Service]\\nExecStart=/bin/sleep infinity\\n' \"$f\"; \
             cat \"$f\"; }} > \"$1/${{f##*/}}.service\"\ndone\n"
        ),
    );
    machine.ok(&format!("chmod 755 {path}; mkdir -p /etc/made"));
}

/// Units that systemd makes of other files when it reloads: of fstab, init
/// scripts, container descriptions.
#[test]
fn units_of_generators_are_made_anew() {
    // With `SourcePath=`, systemd itself knows that they are out of date.
    for source_path in ["SourcePath=%s", "#%s"] {
        let Some(machine) = machine() else { return };
        generator(&machine, source_path);
        let manifest = |setting: &str, reload: bool| {
            format!(
                "ccm:\n  resources:\n    - service: [{{app: {{}}}}]\n    - file: [{{/etc/made/job: \
                 {{content: \"{setting}\\n\", owner: root, group: root, mode: '0644'}}}}]\n    \
                 - service: [{{job: {{reload: {reload}, subscribe: [file#/etc/made/job]}}}}]\n"
            )
        };
        let environment = || {
            machine.ok("tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value job)/environ")
        };
        let first = manifest("Environment=ROUND=one", false);
        let preview = machine.noop(&first);
        assert_eq!(preview.outcomes(), [Changed, Changed, Changed], "{}", preview.errors());
        assert_eq!(preview.event(2)["waits_for"], serde_json::json!(["file#/etc/made/job"]));
        let report = machine.apply(&first);
        assert_eq!(report.outcomes(), [Changed, Changed, Changed], "{}", report.errors());
        assert!(environment().contains("ROUND=one"), "{}", environment());

        let second = manifest("Environment=ROUND=two", false);
        let preview = machine.noop(&second);
        assert_eq!(preview.messages()[2], "Would have restarted", "{}", preview.errors());
        let report = machine.apply(&second);
        assert_eq!(report.outcomes(), [Stable, Changed, Refreshed], "{}", report.errors());
        assert!(environment().contains("ROUND=two"), "{}", environment());

        // Whether it can be reloaded stands in the new unit too.
        let third = manifest("Environment=ROUND=three\\nExecReload=/bin/touch /tmp/reloaded", true);
        let report = machine.apply(&third);
        assert_eq!(report.outcomes(), [Stable, Changed, Refreshed], "{}", report.errors());
        assert_eq!(report.event(2)["verbs"], serde_json::json!(["reloaded"]));
        assert!(machine.has("/tmp/reloaded"));
        assert_eq!(machine.apply(&third).outcomes(), [Stable, Stable, Stable]);
    }
}

/// A unit that nothing makes fails, in a preview too if nothing changes before.
#[test]
fn a_mount_of_fstab_is_a_unit() {
    let Some(machine) = machine() else { return };
    let manifest = |entry: &str| {
        format!(
            "ccm:\n  resources:\n    - service: [{{app: {{}}}}]\n    - file:\n        - /etc/fstab: \
             {{content: \"{entry}\", owner: root, group: root, mode: '0644'}}\n        - /mnt/data: \
             {{ensure: directory, owner: root, group: root, mode: '0755'}}\n    - service: \
             [{{mnt-data.mount: {{subscribe: [file#/etc/fstab]}}}}]\n"
        )
    };
    let alone = service("mnt-data.mount", "");
    for report in [machine.noop(&alone), machine.apply(&alone)] {
        assert_eq!(report.outcomes(), [Failed]);
        assert!(report.errors().contains("service not found: mnt-data.mount"));
    }
    let report = machine.apply(&manifest("tmpfs /mnt/data tmpfs noauto,mode=755,size=1m 0 0\\n"));
    assert_eq!(report.outcomes(), [Changed, Changed, Changed, Changed], "{}", report.errors());
    let size = || machine.ok("findmnt -n -b -o SIZE /mnt/data").trim().to_owned();
    assert_eq!(size(), "1048576");
    let report = machine.apply(&manifest("tmpfs /mnt/data tmpfs noauto,mode=755,size=2m 0 0\\n"));
    assert_eq!(report.outcomes(), [Stable, Changed, Stable, Refreshed], "{}", report.errors());
    assert_eq!(size(), "2097152");
}

#[test]
fn commands_are_those_of_the_design() {
    let Some(machine) = machine() else { return };
    spy(&machine);
    machine.apply(&service("app", "ensure: running, enable: true"));
    assert_eq!(
        calls(&machine),
        [
            "is-active --system app",
            "is-enabled --system app",
            "daemon-reload",
            "show --system --property=NeedDaemonReload --property=FragmentPath \
             --property=DropInPaths -- app",
            "start --system app",
            "enable --system app",
            "is-active --system app",
            "is-enabled --system app",
        ]
    );
    machine.apply(&service("app", "ensure: stopped, enable: false"));
    let made: Vec<String> =
        calls(&machine).into_iter().filter(|call| !call.starts_with("is-")).collect();
    assert_eq!(made, ["daemon-reload", "stop --system app", "disable --system app"]);
}

#[test]
fn the_command_line() {
    let Some(machine) = machine() else { return };
    for (args, after) in [
        (&["service", "app", "--enable"][..], "active enabled"),
        (&["svc", "app", "stopped", "--disable"], "inactive disabled"),
        (&["svc", "app", "running"], "active disabled"),
    ] {
        let args: Vec<&str> = ["ensure"].into_iter().chain(args.iter().copied()).collect();
        let ran = machine.ccm(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(state(&machine, "app"), after, "{args:?}");
    }
    let status = machine.ccm(&["status", "svc", "app", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["ensure"], "running");
    let metadata = serde_json::json!({
        "name": "app", "provider": "systemd", "enabled": false, "running": true
    });
    assert_eq!(status["metadata"], metadata);

    // A session of several commands: only a change restarts.
    let script = "
        export CCM_SESSION_STORE=/tmp/session; mkdir -m 700 /tmp/session
        pid() { systemctl show -p MainPID --value app; }
        first=$(pid)
        ccm ensure file /etc/app.conf --content a
        ccm ensure service app --subscribe file#/etc/app.conf
        second=$(pid)
        ccm ensure file /etc/app.conf --content a
        ccm ensure service app --subscribe file#/etc/app.conf
        third=$(pid)
        test $first != $second; test $second = $third";
    machine.ok(script);

    for args in [
        &["ensure", "service", "app", "--enable", "--disable"][..],
        &["ensure", "service", "app", "sleeping"],
    ] {
        assert_eq!(machine.ccm(args).code, 64, "{args:?}");
    }
    for name in ["app@", "app; reboot", "a/b", "*", ""] {
        let refused = machine.ccm(&["ensure", "service", name]);
        assert_eq!(refused.code, 1, "{name}: {refused:?}");
        assert_eq!(refused.stdout, "", "{name}");
    }
}
