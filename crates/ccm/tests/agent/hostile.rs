//! Runs that crash, are killed, fork, fill memory or attack their agent: a
//! failed run each, and the agent goes on.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use ccm_testkit::{is_alive, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bed::{Bed, pid_in};

/// How many moments a run is killed at; `CCM_AGENT_KILLS` for more.
fn kills() -> u64 {
    std::env::var("CCM_AGENT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

const SLEEP: &str = "exec: [{\"sh -c 'echo $$ > [DIR]/pid; exec sleep 1000'\": {}}]";
const WELL: &str = "exec: [{\"echo well\": {}}]";

#[test]
fn a_killed_run_is_a_failed_run() {
    let bed = Bed::new();
    bed.manifest("m.yaml", SLEEP);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    pid_in(&bed.env.path("pid"));
    kill(Pid::from_raw(agent.run_pid()), Signal::SIGKILL).unwrap();
    agent.wait_for(&["the run was killed by signal 9"]);
    let line = agent.wait_for(&["killed", "reason=\"schedule\""]);
    assert!(line.contains("ERROR"), "{line}");
    assert!(!agent.log().contains("out of memory"), "{}", agent.log());
    bed.manifest("m.yaml", WELL);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["exec#echo well changed"]);
    agent.stop();
}

#[test]
fn a_crashed_run_is_told_from_a_killed_one() {
    let bed = Bed::new();
    bed.manifest("m.yaml", SLEEP);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    pid_in(&bed.env.path("pid"));
    kill(Pid::from_raw(agent.run_pid()), Signal::SIGABRT).unwrap();
    agent.wait_for(&["the run crashed: its process was killed by signal 6"]);
    agent.wait_for(&["crashed", "reason=\"schedule\""]);
    agent.stop();
}

#[test]
fn a_run_kills_the_process_group_of_its_parent() {
    let bed = Bed::new();
    // The fifth field is the process group.
    let attack = "exec: [{\"sh -c 'read a b c d e f < /proc/$PPID/stat; kill -9 -$e'\": {}}]";
    bed.manifest("m.yaml", attack);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["the run was killed by signal 9"]);
    bed.manifest("m.yaml", WELL);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["exec#echo well changed"]);
    agent.stop();
}

#[test]
fn what_a_run_leaves_behind_does_not_hold_up_the_next() {
    let bed = Bed::new();
    // The first keeps all its descriptors, in a session of its own.
    let fork = "exec: [{\"sh -c 'setsid sleep 300 & echo $! > [DIR]/pid'\": {}}]";
    if ccm_testkit::lacks_program("setsid") {
        return;
    }
    bed.manifest("m.yaml", fork);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied", "reason=\"schedule\""]);
    let left = pid_in(&bed.env.path("pid"));
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applied", "reason=\"signal\""]);
    agent.stop();
    for pid in [left, pid_in(&bed.env.path("pid"))] {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

#[test]
fn a_run_that_fills_memory_dies_alone() {
    let bed = Bed::new();
    let file = "file: [{\"[DIR]/big\": {ensure: present, [ME], mode: \"0600\", content: \"{{ repeat('x', \
                1000000000) + repeat('y', 1000000000) }}\"}}]";
    bed.manifest("m.yaml", file);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    // Every process of the agent may use this much.
    let mut agent = bed.start_with(&[], |command| {
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let limited = Command::new("sh");
        let envs: Vec<_> = command
            .get_envs()
            .map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        let directory = command.get_current_dir().map(ToOwned::to_owned);
        *command = limited;
        command.arg("-c").arg("ulimit -v 1500000; exec \"$0\" \"$@\"").arg(program).args(args);
        command.env_clear();
        command.envs(envs.into_iter().filter_map(|(key, value)| Some((key, value?))));
        command.current_dir(directory.unwrap());
        let log = std::fs::OpenOptions::new().append(true).open(bed.env.path("log")).unwrap();
        command.stderr(log).process_group(0);
    });
    // A template may be refused for its size before the memory ends; what must
    // not happen is that the agent ends.
    agent.wait_for(&["ERROR", "m.yaml"]);
    bed.manifest("m.yaml", WELL);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["exec#echo well changed"]);
    agent.stop();
}

#[test]
fn a_run_without_its_agent_ends() {
    let bed = Bed::new();
    bed.manifest("m.yaml", SLEEP);
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let mut agent = bed.start(&[]);
    let command = pid_in(&bed.env.path("pid"));
    let run = agent.run_pid();
    agent.signal(Signal::SIGKILL);
    agent.ends();
    wait_until("the run to end", || !is_alive(run) && !is_alive(command));
    // The next agent can begin at once.
    bed.manifest("m.yaml", WELL);
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#echo well changed"]);
    agent.stop();
}

/// Whatever the moment, the next run does what is left.
#[test]
fn a_run_is_killed_at_random_moments() {
    let bed = Bed::new();
    let files: Vec<String> = (0..30)
        .map(|n| {
            format!(
                "{{\"[DIR]/out/{n}\": {{ensure: present, [ME], mode: \"0600\", content: \"new {n}\"}}}}"
            )
        })
        .collect();
    let manifest = format!(
        "file: [{{\"[DIR]/out\": {{ensure: directory, [ME], mode: \"0700\"}}}}, {}], exec: [{{\"sh -c 'echo x \
         >> [DIR]/reacted'\": {{refresh_only: true, subscribe: [\"file#[DIR]/out/29\"]}}}}]",
        files.join(", ")
    );
    bed.manifest("m.yaml", &manifest);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied"]);
    assert!(bed.env.path("reacted").exists(), "{}", agent.log());
    let mut random = 88_172_645_463_325_252_u64;
    for round in 1..=kills() {
        for n in 0..30 {
            std::fs::write(bed.env.path(&format!("out/{n}")), "old").unwrap();
        }
        std::fs::remove_file(bed.env.path("reacted")).unwrap();
        agent.signal(Signal::SIGUSR1);
        let run = agent.run_pid();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // A random moment of the run.
        std::thread::sleep(Duration::from_micros(random % 150_000));
        let _ = kill(Pid::from_raw(run), Signal::SIGKILL);
        wait_until("the run to end", || !is_alive(run));
        let times = usize::try_from(round).unwrap();
        wait_until("its report", || {
            (agent.count(&["reason=\"signal\""]) >= times * 2 - 1).then_some(())
        });
        for n in 0..30 {
            let text = bed.env.read(&format!("out/{n}"));
            assert!(text == "old" || text == format!("new {n}"), "a torn file: {text:?}");
        }
        agent.signal(Signal::SIGUSR1);
        wait_until("the next run", || {
            (agent.count(&["reason=\"signal\""]) >= times * 2).then_some(())
        });
        for n in 0..30 {
            assert_eq!(bed.env.read(&format!("out/{n}")), format!("new {n}"));
        }
        assert!(bed.env.path("reacted").exists(), "round {round}: {}", agent.log());
    }
    agent.stop();
}
