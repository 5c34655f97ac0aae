//! What an agent at rest costs.

use std::time::Duration;

use crate::bed::Bed;

fn status(pid: i32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// How often the threads of a process were woken.
fn switches(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let count = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    tasks.map(count).sum()
}

#[test]
fn an_agent_at_rest_sleeps() {
    let bed = Bed::new();
    bed.manifest("m.yaml", "exec: [{\"true\": {}}]");
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied"]);
    // What the run leaves to do is not part of the rest.
    std::thread::sleep(Duration::from_secs(1));
    let before = switches(agent.pid());
    // Wake-ups are counted over this time.
    std::thread::sleep(Duration::from_secs(10));
    let wakes = switches(agent.pid()) - before;
    assert!(wakes <= 10, "{wakes} wake-ups in ten seconds");
    // A test build has more code than what is shipped, whose figure the
    // documentation gives.
    let resident = status(agent.pid(), "VmRSS:");
    assert!(resident < 64 * 1024, "{resident} KiB");
    agent.stop();
}
