//! Facts beside a file system that never answers.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use ccm_facts::{Options, gather};
use ccm_host::{Cancel, Host, System};
use govalue::Value;

/// Where the test that runs again in a name space of its own finds its stage.
const STAGE: &str = "CCM_TEST_HANGING_STAGE";

/// Mounts a FUSE file system whose server never reads a request, then runs the
/// test again beside it. Leaving the name space unmounts it.
const MOUNT: &str = r#"
    exec 3<>/dev/fuse || exit
    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$1/hangs" || exit
    exec timeout 60 "$2" --exact nothing_that_hangs_keeps_the_facts_waiting
"#;

#[test]
fn nothing_that_hangs_keeps_the_facts_waiting() {
    if let Some(stage) = std::env::var_os(STAGE) {
        return beside(&PathBuf::from(stage));
    }
    let stage = tempfile::tempdir().unwrap();
    std::fs::create_dir(stage.path().join("hangs")).unwrap();
    std::fs::create_dir(stage.path().join("answers")).unwrap();
    std::fs::write(stage.path().join("answers/facts.yaml"), "mine: 1\n").unwrap();
    let ran = Command::new("unshare")
        .args(["--mount", "sh", "-c", MOUNT, "sh"])
        .arg(stage.path())
        .arg(std::env::current_exe().unwrap())
        .env(STAGE, stage.path())
        .output();
    let Ok(ran) = ran else { return };
    let said = String::from_utf8_lossy(&ran.stdout);
    // Only root may mount, not in every container, and not without FUSE.
    let started = said.contains("running 1 test");
    assert!(!started || ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
}

fn beside(stage: &std::path::Path) {
    let directories = ["hangs/choria", "answers"].map(|name| stage.join(name)).to_vec();
    let timeout = Options::new(&Host::new()).timeout;
    assert!(timeout < Duration::from_secs(2));
    // As a process does that lives long: each time a new run.
    let system = System::default();
    let options = Options { directories, timeout };
    for _ in 0..3 {
        let start = Instant::now();
        let facts = gather(&system.begin(Cancel::default()), &options);
        let took = start.elapsed();
        assert!(timeout <= took && took < Duration::from_secs(10), "{took:?}");
        // The others are all there.
        assert_eq!(facts.get("mine"), Some(&Value::Int(1)));
        let partition = facts.get("partition").unwrap();
        let places = partition.get("partitions").and_then(Value::as_array).unwrap();
        assert_eq!(partition.get("usage").and_then(Value::as_array).unwrap().len(), places.len());
    }
    assert_eq!(waiting_threads(), 1, "one thread waits for the one that hangs");
}

/// How many threads of this process gather facts.
fn waiting_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.flatten().filter(|name| name.starts_with("facts")).count()
}
