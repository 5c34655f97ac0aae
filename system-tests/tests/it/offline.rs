//! Services where systemd is installed and does not run: containers, chroots,
//! images that are being built.

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

#[test]
fn only_boot_is_managed_without_systemd() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put("/usr/lib/systemd/system/app.service", UNIT);
    machine.put("/usr/lib/systemd/system/pool@.service", UNIT);
    for (script, enter) in [(HIDE, ""), (CHROOT, "chroot /srv/root")] {
        let apply = |manifest: &str| machine.apply_apart(script, enter, manifest, "");
        let noop = |manifest: &str| machine.apply_apart(script, enter, manifest, "--noop");
        let enabled = || machine.sh("systemctl is-enabled app || true").stdout;
        let cannot = "service#app: cannot start app: systemd is not running here; ccm manages \
                      only `enable`";
        for (properties, outcome, message, is_warned, after) in [
            ("enable: true", Changed, "Would have enabled", true, "enabled"),
            ("enable: true", Stable, "", true, "enabled"),
            ("ensure: running", Stable, "", true, "enabled"),
            ("ensure: stopped", Stable, "", false, "enabled"),
            ("ensure: stopped, enable: false", Changed, "Would have disabled", false, "disabled"),
            ("ensure: stopped, enable: false", Stable, "", false, "disabled"),
        ] {
            let manifest = service(properties);
            let warnings: &[&str] = if is_warned { &[cannot] } else { &[] };
            let before = enabled();
            let preview = noop(&manifest);
            assert_eq!(preview.outcomes(), [outcome], "{properties}: {}", preview.errors());
            assert_eq!(preview.messages(), [message], "{properties}");
            assert_eq!(preview.warnings(), warnings, "{properties}");
            assert_eq!(enabled(), before, "noop has changed something");
            let report = apply(&manifest);
            assert_eq!(report.outcomes(), [outcome], "{properties}: {}", report.errors());
            assert_eq!(report.warnings(), warnings, "{properties}");
            assert_eq!(report.states(), ["stopped"]);
            assert_eq!(enabled(), after, "{properties}");
        }
        assert_eq!(machine.sh("systemctl is-active app || true").stdout, "inactive");

        let missing = "ccm: {resources: [{service: [{nothing: {enable: true}}]}]}\n";
        for report in [noop(missing), apply(missing)] {
            assert_eq!(report.outcomes(), [Failed], "{enter}");
            assert!(report.errors().contains("service not found: nothing"), "{}", report.errors());
        }

        let instance = "ccm: {resources: [{service: [{pool@blue: {enable: true}}]}]}\n";
        let report = apply(instance);
        assert_eq!(report.outcomes(), [Changed], "{enter}: {}", report.errors());
        machine.ok("systemctl is-enabled pool@blue; systemctl disable pool@blue");
    }
}

/// A unit that an earlier resource writes, and a subscription that has nothing
/// to restart.
#[test]
fn units_and_subscriptions_without_systemd() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let manifest = |setting: &str| {
        format!(
            "ccm:\n  resources:\n    - file:\n        - /etc/systemd/system/own.service: {{content: \
             \"[Service]\\nExecStart=/bin/sleep 9\\n{setting}[Install]\\nWantedBy=multi-user.target\\n\", \
             owner: root, group: root, mode: '0644'}}\n    - service: [{{own: {{enable: true, reload: \
             true, subscribe: ['file#/etc/systemd/system/own.service']}}}}]\n"
        )
    };
    let both = |text: &str| -> (Report, Report) {
        let preview = machine.apply_apart(HIDE, "", text, "--noop");
        (preview, machine.apply_apart(HIDE, "", text, ""))
    };
    for (setting, outcomes) in
        [("", [Changed, Changed]), ("", [Stable, Stable]), ("Nice=5\\n", [Changed, Stable])]
    {
        let (preview, report) = both(&manifest(setting));
        assert_eq!(preview.outcomes(), outcomes, "{}", preview.errors());
        assert_eq!(report.outcomes(), outcomes, "{}", report.errors());
        assert_eq!(preview.warnings(), report.warnings());
        assert_eq!(report.warnings().len(), 1, "{:?}", report.warnings());
    }
    // Once systemd runs, the same manifest starts it.
    let report = machine.apply(&manifest("Nice=5\\n"));
    assert_eq!(report.outcomes(), [Stable, Changed], "{}", report.errors());
    assert_eq!(machine.ok("systemctl is-active own; systemctl is-enabled own"), "active\nenabled");
}
