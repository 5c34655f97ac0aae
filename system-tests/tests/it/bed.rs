//! The machines themselves.

use crate::{Layer, Machine};

#[test]
fn a_machine_has_systemd_and_is_not_the_host() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    assert_eq!(machine.read("/proc/1/comm"), "systemd");
    machine.put("/etc/ccm-bed-test", "x");
    assert_eq!(machine.read("/etc/ccm-bed-test"), "x");
    assert!(!std::path::Path::new("/etc/ccm-bed-test").exists());
    assert!(machine.ccm(&["--version"]).stdout.starts_with("ccm "));
}

#[test]
fn nothing_of_a_machine_is_left() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let name = machine.ok("cat /proc/sys/kernel/hostname");
    machine.ok("systemd-run --unit ccm-bed-sleeper sleep 12345");
    let processes = || {
        let found = std::process::Command::new("pgrep").args(["-f", "sleep 12345"]).output();
        found.unwrap().stdout
    };
    assert_ne!(processes(), b"");
    drop(machine);
    assert_eq!(processes(), b"");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("ccm-bed"), "{mounts}");
    let groups =
        std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output();
    assert_eq!(groups.unwrap().stdout, b"");
}
