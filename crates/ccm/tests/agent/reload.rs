//! A configuration that is replaced while the agent works.

use nix::sys::signal::Signal;

use crate::bed::{Bed, pid_in};

const A: &str = "exec: [{\"sh -c 'echo a >> [DIR]/ran'\": {}}]";
const B: &str = "exec: [{\"sh -c 'echo b >> [DIR]/ran'\": {}}]";

#[test]
fn a_wrong_configuration_leaves_the_old_one() {
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied"]);
    bed.configure("manifests: [a.yaml]\nintervall: 1h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["ERROR", "unknown setting `intervall`", "config.yaml:4:1"]);
    agent.wait_for(&["the configuration stays as it was"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applied", "reason=\"signal\""]);
    // Nothing, half a file, another kind of thing: never the end of the agent.
    for text in ["", "manifests: [", "[]", "\u{0}"] {
        std::fs::write(bed.env.path("config.yaml"), text).unwrap();
        let before = agent.count(&["the configuration stays as it was"]);
        agent.signal(Signal::SIGHUP);
        agent.wait_for_times(&["the configuration stays as it was"], before + 1);
    }
    std::fs::remove_file(bed.env.path("config.yaml")).unwrap();
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["cannot read the configuration"]);
    agent.stop();
}

#[test]
fn manifests_come_and_go() {
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    bed.manifest("b.yaml", B);
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied", "a.yaml"]);
    bed.configure("manifests: [[DIR]/a.yaml, [DIR]/b.yaml]\ninterval: 1h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["applied", "b.yaml"]);
    assert_eq!(bed.env.read("ran"), "a\nb\n", "what stays keeps its times");
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1h\nlog_level: error\n");
    agent.signal(Signal::SIGHUP);
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for_times(&["the configuration was read again"], 2);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for_times(&["applied", "b.yaml"], 2);
    assert_eq!(bed.env.read("ran"), "a\nb\nb\n");
    agent.stop();
}

#[test]
fn a_run_at_work_goes_on_when_its_manifest_leaves() {
    let bed = Bed::new();
    bed.manifest(
        "a.yaml",
        "exec: [{\"sh -c 'echo $$ > [DIR]/pid; while [ ! -e [DIR]/go ]; do sleep 0.1; done; echo a >> \
         [DIR]/ran'\": {}}]",
    );
    bed.manifest("b.yaml", B);
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1h\n");
    let mut agent = bed.start(&[]);
    pid_in(&bed.env.path("pid"));
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1h\ncache_dir: [DIR]/other\n");
    // The line above is the one that counts.
    bed.env.write(
        "config.yaml",
        "cache_dir: [DIR]/other\nsplay: 0\nmanifests: [[DIR]/b.yaml]\ninterval: 1h\n",
    );
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["the configuration was read again"]);
    std::fs::write(bed.env.path("go"), "").unwrap();
    agent.wait_for(&["applied", "a.yaml"]);
    agent.wait_for(&["applied", "b.yaml"]);
    assert_eq!(bed.env.read("ran"), "a\nb\n");
    assert!(bed.env.path("other").is_dir());
    agent.stop();
}
