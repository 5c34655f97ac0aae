//! The machines themselves.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// What the host has of the machines of a process: cgroups, a directory.
fn left_of(process: u32) -> Vec<PathBuf> {
    let pattern = format!("ccm-bed-{process}*");
    let found = Command::new("find").args(["/sys/fs/cgroup", "-name", &pattern]).output().unwrap();
    let groups = String::from_utf8_lossy(&found.stdout).into_owned();
    let directory = std::env::temp_dir().join(format!("ccm-bed-{process}"));
    groups.lines().map(PathBuf::from).chain(directory.exists().then_some(directory)).collect()
}

#[test]
fn nothing_of_a_machine_is_left() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let name = machine.ok("cat /proc/sys/kernel/hostname");
    let sleep = format!("sleep {}", 1_000_000 + std::process::id());
    machine.ok(&format!("systemd-run --unit sleeper {sleep}"));
    let processes = || Command::new("pgrep").args(["-f", &sleep]).output().unwrap().stdout;
    let is_left = || {
        let groups = left_of(std::process::id());
        groups.iter().any(|path| path.file_name().is_some_and(|file| *file == *name))
    };
    // systemd-run returns when the process exists, which may be before it has become `sleep`.
    ccm_testkit::wait_until("the process of the unit", || !processes().is_empty());
    assert!(is_left());
    drop(machine);
    assert_eq!(processes(), b"");
    assert!(!is_left());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("ccm-bed"), "{mounts}");
}

#[test]
fn nothing_is_left_of_tests_that_are_killed() {
    let Some(_bed) = Machine::up(Layer::Plain) else { return };
    let mut tests = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bed::a_machine_that_waits_to_be_killed"])
        .env("CCM_BED_WAIT", "yes")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = tests.id();
    let wait_for = |what: &str, is_so: &dyn Fn(&[PathBuf]) -> bool| {
        let shown = std::fmt::from_fn(|f| write!(f, "{what}: {:?}", left_of(process)));
        ccm_testkit::wait_until(shown, || is_so(&left_of(process)));
    };
    wait_for("a machine", &|found| found.len() > 1);
    // Nothing tells that it stays: one that is removed would be gone in this time.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!left_of(process).is_empty());
    tests.kill().unwrap();
    wait_for("nothing", &<[_]>::is_empty);
    tests.wait().unwrap();
}

/// Only of use to the test before it.
#[test]
fn a_machine_that_waits_to_be_killed() {
    if std::env::var_os("CCM_BED_WAIT").is_none() {
        return;
    }
    let _machine = Machine::up(Layer::Plain);
    // The test before it ends this.
    std::thread::sleep(Duration::from_mins(1));
}
