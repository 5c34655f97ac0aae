//! Services where systemd is installed and does not run: containers, chroots,
//! images that are being built.

use serde_json::json;
use system_tests::Report;

use crate::{Changed, Failed, Layer, Machine, Stable};

const UNIT: &str =
    "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";

/// As in a container whose first process is not systemd.
const HIDE: &str = "mount -t tmpfs none /run/systemd";

/// A root directory of its own, with the machine's /run in it.
const CHROOT: &str = "mkdir -p /srv/root; mount -t tmpfs none /srv/root; \
                      for d in usr etc run proc dev tmp var; do mkdir /srv/root/$d; \
                      mount --rbind /$d /srv/root/$d; done; \
                      for d in bin sbin lib lib64; do ln -s usr/$d /srv/root/$d; done";

fn service(properties: &str) -> String {
    format!("ccm: {{resources: [{{service: [{{app: {{{properties}}}}}]}}]}}\n")
}

/// What is left to the first boot, of the first resource.
fn left(report: &Report) -> Vec<&str> {
    let deferred = report.event(0)["deferred"].as_array();
    deferred.into_iter().flatten().filter_map(|step| step.as_str()).collect()
}

#[test]
fn what_cannot_be_started_fails_unless_the_first_boot_starts_it() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put("/usr/lib/systemd/system/app.service", UNIT);
    machine.put("/usr/lib/systemd/system/pool@.service", UNIT);
    for (script, enter) in [(HIDE, ""), (CHROOT, "chroot /srv/root")] {
        let apply =
            |manifest: &str, flags: &str| machine.apply_apart(script, enter, manifest, flags);
        let enabled = || machine.sh("systemctl is-enabled app || true").stdout;
        for properties in ["ensure: running", "enable: true"] {
            for flags in ["--noop", ""] {
                let report = apply(&service(properties), flags);
                assert_eq!(report.outcomes(), [Failed], "{properties} {flags}");
                let errors = report.errors();
                assert!(
                    errors.contains("cannot start app: systemd is not running here\nhint: "),
                    "{errors}"
                );
                assert!(errors.contains("--offline"), "{errors}");
                assert_eq!(enabled(), "disabled");
            }
        }
        for (properties, outcome, message, steps, after) in [
            ("enable: true", Changed, "Would have enabled", &["start"][..], "enabled"),
            ("enable: true", Stable, "", &["start"], "enabled"),
            ("ensure: running", Stable, "", &["start"], "enabled"),
            ("ensure: stopped", Stable, "", &[], "enabled"),
            ("ensure: stopped, enable: false", Changed, "Would have disabled", &[], "disabled"),
            ("ensure: stopped, enable: false", Stable, "", &[], "disabled"),
        ] {
            let manifest = service(properties);
            let before = enabled();
            let preview = apply(&manifest, "--noop --offline");
            assert_eq!(preview.outcomes(), [outcome], "{properties}: {}", preview.errors());
            assert_eq!(preview.messages(), [message], "{properties}");
            assert_eq!(left(&preview), steps, "{properties}");
            assert_eq!(enabled(), before, "noop has changed something");
            let report = apply(&manifest, "--offline");
            assert_eq!(report.outcomes(), [outcome], "{properties}: {}", report.errors());
            assert_eq!(left(&report), steps, "{properties}");
            assert_eq!(report.warnings(), [""; 0], "{properties}");
            assert_eq!(report.states(), ["stopped"]);
            assert_eq!(enabled(), after, "{properties}");
        }
        assert_eq!(machine.sh("systemctl is-active app || true").stdout, "inactive");

        let missing = "ccm: {resources: [{service: [{nothing: {enable: true}}]}]}\n";
        for report in [apply(missing, "--noop --offline"), apply(missing, "--offline")] {
            assert_eq!(report.outcomes(), [Failed], "{enter}");
            assert!(report.errors().contains("service not found: nothing"), "{}", report.errors());
        }

        let instance = "ccm: {resources: [{service: [{pool@blue: {enable: true}}]}]}\n";
        let report = apply(instance, "--offline");
        assert_eq!(report.outcomes(), [Changed], "{enter}: {}", report.errors());
        machine.ok("systemctl is-enabled pool@blue; systemctl disable pool@blue");
    }
}

/// A unit that an earlier resource writes, a subscription that has nothing to
/// restart, and a health check that has nothing to ask.
#[test]
fn units_and_subscriptions_before_the_first_boot() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let manifest = |setting: &str| {
        format!(
            "ccm:\n  resources:\n    - file:\n        - /etc/systemd/system/own.service: {{content: \
             \"[Service]\\nExecStart=/bin/sleep 9\\n{setting}[Install]\\nWantedBy=multi-user.target\\n\", \
             owner: root, group: root, mode: '0644'}}\n    - service: [{{own: {{enable: true, reload: \
             true, subscribe: ['file#/etc/systemd/system/own.service'], health_checks: [{{command: \
             systemctl is-active own}}]}}}}]\n"
        )
    };
    let both = |text: &str| -> (Report, Report) {
        let preview = machine.apply_apart(HIDE, "", text, "--offline --noop");
        (preview, machine.apply_apart(HIDE, "", text, "--offline"))
    };
    for (setting, outcomes) in
        [("", [Changed, Changed]), ("", [Stable, Stable]), ("Nice=5\\n", [Changed, Stable])]
    {
        let (preview, report) = both(&manifest(setting));
        assert_eq!(preview.outcomes(), outcomes, "{}", preview.errors());
        assert_eq!(report.outcomes(), outcomes, "{}", report.errors());
        for report in [preview, report] {
            assert_eq!(report.event(1)["deferred"], json!(["start"]));
        }
        // The first boot starts the new state: nobody owes a restart.
        assert_eq!(machine.ok("ccm owed"), "Nothing is owed");
    }
    // Once systemd runs, the same manifest starts it.
    let report = machine.apply(&manifest("Nice=5\\n"));
    assert_eq!(report.outcomes(), [Stable, Changed], "{}", report.errors());
    assert_eq!(machine.ok("systemctl is-active own; systemctl is-enabled own"), "active\nenabled");
}

/// The word counts where systemd runs too: services stay as they are.
#[test]
fn services_of_a_running_system_are_left_alone() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put("/etc/systemd/system/app.service", UNIT);
    let offline = |properties: &str| {
        machine.put("/tmp/m.yaml", &service(properties));
        machine.ccm(&["apply", "/tmp/m.yaml", "--offline", "--no-report"])
    };
    let ran = offline("ensure: running, enable: true");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("start left for the first boot"), "{ran:?}");
    assert_eq!(machine.sh("systemctl is-active app || true").stdout, "inactive");
    assert_eq!(machine.ok("systemctl is-enabled app"), "enabled");
    machine.ok("systemctl start app");
    let ran = offline("ensure: stopped");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("stop left for the first boot"), "{ran:?}");
    assert_eq!(machine.ok("systemctl is-active app"), "active");

    // A saved plan knows what it was made for.
    machine.put("/tmp/m.yaml", &service("ensure: stopped, enable: false"));
    machine.ok("ccm plan /tmp/m.yaml --offline --out /tmp/m.plan");
    let refused = machine.ccm(&["apply", "/tmp/m.plan", "--offline"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    machine.ok("ccm apply /tmp/m.plan");
    assert_eq!(machine.ok("systemctl is-active app"), "active");
    assert_eq!(machine.sh("systemctl is-enabled app || true").stdout, "disabled");

    let ran = machine.ccm(&["ensure", "service", "app", "stopped", "--offline"]);
    assert!(ran.stdout.contains("stop left for the first boot"), "{ran:?}");
    for flags in [&["--register", "nats"][..], &["--monitor-only"]] {
        let args: Vec<&str> = ["apply", "/tmp/m.yaml", "--offline"]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        assert_eq!(machine.ccm(&args).code, 64, "{flags:?}");
    }
}
