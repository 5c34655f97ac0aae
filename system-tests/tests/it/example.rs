//! The examples that need a machine of their own.

use crate::{Changed, Layer, Machine, Refreshed, Stable};

#[test]
fn a_package_its_configuration_and_its_service() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let manifest = include_str!("../../../examples/service/manifest.yaml");
    let preview = machine.noop(manifest);
    assert!(!machine.has("/etc/ccm-app.conf"), "{}", preview.errors());

    let report = machine.apply(manifest);
    assert_eq!(report.outcomes(), [Changed, Changed, Changed], "{}", report.errors());
    assert_eq!(machine.read("/etc/ccm-app.conf"), "workers = 4");
    assert_eq!(
        machine.ok("systemctl is-active ccm-app; systemctl is-enabled ccm-app"),
        "active\nenabled"
    );
    assert_eq!(machine.apply(manifest).outcomes(), [Stable, Stable, Stable]);

    let pid = || machine.ok("systemctl show -p MainPID --value ccm-app");
    let first = pid();
    let report = machine.apply(&manifest.replace("workers: 4", "workers: 8"));
    assert_eq!(report.outcomes(), [Stable, Changed, Refreshed], "{}", report.errors());
    assert_ne!(pid(), first);

    let second = pid();
    let report = machine.apply(
        &manifest.replace("workers: 4", "workers: 8").replace("ensure: present", "ensure: 1.1-1"),
    );
    assert_eq!(report.outcomes(), [Changed, Stable, Refreshed], "{}", report.errors());
    assert_ne!(pid(), second);
    assert_eq!(machine.ok("systemctl show -p Description --value ccm-app"), "ccm-app 1.1-1");
}
