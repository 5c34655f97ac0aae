//! A configuration that is replaced while the agent works.

use std::net::{TcpListener, TcpStream};

use nix::sys::signal::Signal;

use crate::bed::{Bed, pid_in};

const A: &str = "exec: [{\"sh -c 'echo a >> [DIR]/ran'\": {}}]";
const B: &str = "exec: [{\"sh -c 'echo b >> [DIR]/ran'\": {}}]";

#[test]
fn a_wrong_configuration_leaves_the_old_one() {
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied"]);
    bed.configure("manifests: [a.yaml]\nintervall: 1h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["ERROR", "unknown setting `intervall`", "config.yaml:4:1"]);
    agent.wait_for(&["kept the old configuration"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applied", "reason=\"signal\""]);
    // Nothing, half a file, another kind of thing: never the end of the agent.
    for text in ["", "manifests: [", "[]", "\u{0}"] {
        std::fs::write(bed.env.path("config.yaml"), text).unwrap();
        let before = agent.count(&["kept the old configuration"]);
        agent.signal(Signal::SIGHUP);
        agent.wait_for_times(&["kept the old configuration"], before + 1);
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
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied", "a.yaml"]);
    bed.configure("manifests: [[DIR]/a.yaml, [DIR]/b.yaml]\ninterval: 1000h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["applied", "b.yaml"]);
    assert_eq!(bed.env.read("ran"), "a\nb\n", "what stays keeps its times");
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1000h\nlog_level: error\n");
    agent.signal(Signal::SIGHUP);
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1000h\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_for_times(&["reloaded the configuration"], 2);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for_times(&["applied", "b.yaml"], 2);
    assert_eq!(bed.env.read("ran"), "a\nb\nb\n");
    agent.stop();
}

/// The metrics are served where the configuration says, and stay where they were
/// if that cannot be.
#[test]
fn metrics_move_or_stay() {
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    let configure = |port: u16, address: &str| {
        bed.configure(&format!(
            "manifests: [[DIR]/a.yaml]\nmonitor_port: {port}\nmonitor_address: {address}\n"
        ));
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    configure(taken_port, "127.0.0.1");
    let (code, said) = bed.run(&[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&format!("cannot serve metrics on port {taken_port}")), "{said}");
    assert!(said.contains("monitor_port"), "{said}");

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let serves = |address: &str| TcpStream::connect((address, port)).is_ok();
    configure(port, "127.0.0.1");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["the agent has started"]);
    assert!(serves("127.0.0.1"));
    configure(taken_port, "127.0.0.1");
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["kept the old configuration", "cannot serve metrics"]);
    assert!(serves("127.0.0.1"));
    // The same port elsewhere, all addresses, and an address of another machine.
    for (address, times) in [("127.0.0.2", 1), ("0.0.0.0", 2), ("127.0.0.1", 3)] {
        configure(port, address);
        agent.signal(Signal::SIGHUP);
        agent.wait_for_times(&["reloaded the configuration"], times);
        assert_eq!([serves("127.0.0.1"), serves("127.0.0.2")], [times > 1, times < 3], "{address}");
    }
    configure(port, "192.0.2.1");
    agent.signal(Signal::SIGHUP);
    agent.wait_for_times(&["kept the old configuration", "cannot serve metrics"], 2);
    assert!(serves("127.0.0.1"));
    agent.stop();
}

/// Also when it is something else that cannot be as the new configuration says.
#[test]
fn metrics_stay_where_the_cache_cannot_move() {
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let metrics = |address: &str| format!("monitor_port: {port}\nmonitor_address: {address}\n");
    let manifests = "manifests: [[DIR]/a.yaml]\ninterval: 1000h\n";
    bed.configure(&format!("{manifests}{}", metrics("127.0.0.1")));
    let mut agent = bed.start(&[]);
    agent.wait_for(&["the agent has started"]);
    let rest = metrics("127.0.0.2");
    bed.env.write("config.yaml", &format!("cache_dir: [DIR]/a.yaml\n{manifests}{rest}"));
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["kept the old configuration", "as `cache_dir`"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "{}", agent.log());
    agent.stop();
}

/// Each reload looks anew at who can change the configuration.
#[test]
fn a_directory_that_was_made_safe_is_accepted() {
    use std::os::unix::fs::PermissionsExt as _;
    if ccm_testkit::lacks_root() {
        return;
    }
    let bed = Bed::new();
    bed.manifest("a.yaml", A);
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start_with(&[], |command| {
        command.env("CCM_STRICT", "1");
    });
    agent.wait_for(&["applied"]);
    let chmod = |mode| {
        std::fs::set_permissions(bed.env.dir(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(0o777);
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["ERROR", "is writable by other users"]);
    agent.wait_for(&["kept the old configuration"]);
    chmod(0o755);
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["reloaded the configuration"]);
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
    bed.configure("manifests: [[DIR]/a.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    pid_in(&bed.env.path("pid"));
    bed.configure("manifests: [[DIR]/b.yaml]\ninterval: 1000h\ncache_dir: [DIR]/other\n");
    // The line above is the one that counts.
    bed.env.write(
        "config.yaml",
        "cache_dir: [DIR]/other\nsplay: 0\nmanifests: [[DIR]/b.yaml]\ninterval: 1000h\n",
    );
    agent.signal(Signal::SIGHUP);
    agent.wait_for(&["reloaded the configuration"]);
    std::fs::write(bed.env.path("go"), "").unwrap();
    agent.wait_for(&["applied", "a.yaml"]);
    agent.wait_for(&["applied", "b.yaml"]);
    assert_eq!(bed.env.read("ran"), "a\nb\n");
    assert!(bed.env.path("other").is_dir());
    agent.stop();
}
