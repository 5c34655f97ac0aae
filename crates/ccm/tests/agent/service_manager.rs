//! What systemd is told.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::bed::Bed;

struct Manager(UnixDatagram);

impl Manager {
    fn new(path: &std::path::Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Self(socket)
    }

    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// Everything up to a message that begins so.
    fn until(&self, start: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let until = Instant::now() + Duration::from_mins(2);
        loop {
            seen.push(self.next());
            if seen.last().unwrap().starts_with(start) {
                return seen;
            }
            assert!(Instant::now() < until, "{seen:?}");
        }
    }
}

#[test]
fn systemd_is_told_how_the_agent_is() {
    let bed = Bed::new();
    let manager = Manager::new(&bed.env.path("notify"));
    bed.manifest(
        "m.yaml",
        "exec: [{\"sh -c 'echo \\\"[$NOTIFY_SOCKET]\\\" > [DIR]/seen; sleep 3'\": {}}]",
    );
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start_with(&[], |command| {
        command.env("NOTIFY_SOCKET", bed.env.path("notify")).env("WATCHDOG_USEC", "2000000");
    });
    assert_eq!(manager.next(), "READY=1");
    // The watchdog is fed while a run is at work.
    let seen = manager.until("STATUS=running: apply of");
    let seen = [seen, manager.until("WATCHDOG=1")].concat();
    let seen = [seen, manager.until("WATCHDOG=1")].concat();
    assert!(!seen.iter().any(|message| message.contains("last run")), "{seen:?}");
    let status = manager.until("STATUS=next run in").pop().unwrap();
    assert!(status.contains("last run: apply of") && status.ends_with("ok"), "{status}");
    assert_eq!(bed.env.read("seen"), "[]\n", "the socket is not for runs");
    agent.signal(Signal::SIGHUP);
    manager.until("RELOADING=1");
    manager.until("READY=1");
    agent.wait_for(&["reloaded the configuration"]);
    agent.signal(Signal::SIGTERM);
    manager.until("STOPPING=1");
    assert_eq!(agent.ends().code(), Some(0));
}

#[test]
fn the_journal_gets_priorities_and_no_times() {
    let bed = Bed::new();
    bed.manifest("m.yaml", "exec: [{\"true\": {}}, {\"false\": {}}]");
    bed.configure("manifests: [[DIR]/m.yaml]\nlog_level: debug\n");
    let mut agent = bed.start_with(&[], |command| {
        use std::os::unix::fs::MetadataExt as _;
        let log = std::fs::metadata(bed.env.path("log")).unwrap();
        command.env("JOURNAL_STREAM", format!("{}:{}", log.dev(), log.ino()));
    });
    agent.wait_for(&["applied"]);
    let log = agent.stop();
    let line = |words: &str| {
        log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{log}"))
    };
    assert!(line("exec#true changed").starts_with("<4>"), "{log}");
    assert!(line("exec#false failed").starts_with("<3>"), "{log}");
    assert!(line("the agent has started").starts_with("<6> INFO"), "{log}");
    assert!(line("starting a run").starts_with("<7>"), "{log}");
}
