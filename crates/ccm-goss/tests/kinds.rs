//! Every kind of rule against real files, sockets, processes and servers.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod support;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;

use ccm_goss::{KINDS, Outcome};
use support::{fails, holds, run};

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    std::fs::write(dir.path().join("f"), "first line\nsecond line\n").unwrap();
    std::fs::set_permissions(dir.path().join("f"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    let group = nix::unistd::Group::from_gid(nix::unistd::getegid()).unwrap().unwrap();
    holds(&format!(
        "file:
  {at}/f:
    exists: true
    mode: '0640'
    owner: {owner}
    uid: {uid}
    group: {group}
    gid: {gid}
    filetype: file
    size: {{and: [{{gt: 5}}, 23]}}
    contents: [first, '!third', '/^second/']
  {at}/l: {{exists: true, filetype: symlink, linked-to: f, contains: [first]}}
  {at}: {{exists: true, filetype: directory}}
  {at}/none: {{exists: false}}
  other: {{path: {at}/f, exists: true, mode: 0640}}
",
        owner = user.name,
        uid = user.uid,
        group = group.name,
        gid = group.gid,
    ));
    let lines = fails(&format!(
        "file: {{{at}/f: {{exists: {{not: true}}, mode: '0600'}}, {at}/none: {{exists: true, size: 5}}}}"
    ));
    assert_eq!(
        lines,
        format!(
            "File: {at}/f: exists: expected {{\"not\":true}}, found true\n\
             File: {at}/none: exists: expected true, found false"
        )
    );
    // A first test that holds and finds `false` leaves nothing to ask.
    let report = run(&format!("file: {{{at}/none: {{exists: false, mode: '0600', size: 5}}}}"));
    assert_eq!((report.summary.failed, report.summary.skipped), (0, 2));
    let report = run(&format!(
        "file: {{{at}/f: {{exists: true, mode: '0600', size: 1, owner: nobody-here, contents: [third], \
         linked-to: x, filetype: pipe, sha256: 0}}}}"
    ));
    assert_eq!((report.summary.count, report.summary.failed), (8, 7));
    let text = report.output();
    assert!(text.contains("mode: expected \"0600\", found \"0640\""), "{text}");
    // What is not world-readable is compared, but not shown.
    assert!(text.contains("contents: expected [\"third\"], found \"[redacted]\""), "{text}");
    assert!(!text.contains("first line"), "{text}");
    assert!(text.contains("linked-to: expected \"x\": cannot read the symlink"), "{text}");
    std::fs::set_permissions(dir.path().join("f"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let text = run(&format!("file: {{{at}/f: {{exists: true, contents: [third]}}}}")).output();
    assert!(text.contains("contents: expected [\"third\"], found \"first line\\nsecond"), "{text}");
}

#[test]
fn checksums_and_home_directories() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    std::fs::write(dir.path().join("f"), "abc").unwrap();
    holds(&format!(
        "file:
  {at}/f:
    exists: true
    md5: 900150983cd24fb0d6963f7d28e17f72
    sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
    sha512: {{have-prefix: ddaf35a193617abacc417349ae204131}}
  ~root: {{exists: true, filetype: directory}}
  '~/': {{exists: true, filetype: directory}}
"
    ));
    let lines = fails("file: {~nobody-here/x: {exists: true}}");
    assert_eq!(lines, "File: ~nobody-here/x: exists: expected true: there is no user nobody-here");
}

#[test]
fn processes() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut names = String::new();
    // Between fork and exec it still has our name.
    while names.trim() != "sleep" {
        names = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
    }
    holds("process: {sleep: {running: true}, no-such-process: {running: false}}");
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = fails("process: {it: {comm: no-such-process, running: true}}");
    assert_eq!(lines, "Process: no-such-process: running: expected true, found false");
    // The kernel keeps 15 bytes of a name.
    let own = std::fs::read_to_string("/proc/self/comm").unwrap();
    let own = own.trim_end();
    holds(&format!("process: {{'{own}': {{running: true}}}}"));
    if own.len() == 15 {
        holds(&format!("process: {{'{own}-and-more': {{running: true}}}}"));
    }
}

#[test]
fn ports() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (tcp.local_addr().map(|at| (tcp, at.port())).unwrap(), udp);
    let udp = udp.local_addr().map(|at| (udp, at.port())).unwrap();
    holds(&format!(
        "port: {{{}: {{listening: true, ip: [127.0.0.1]}}, 'udp:{}': {{listening: true}}, \
         'tcp6:{}': {{listening: false}}}}",
        tcp.1, udp.1, tcp.1
    ));
    let port = tcp.1;
    drop(tcp);
    // A process that another test starts has a copy until it runs its program.
    let is_closed = || TcpStream::connect(("127.0.0.1", port)).is_err();
    ccm_testkit::wait_until("the port to be closed", is_closed);
    let lines = fails(&format!("port: {{'tcp:{port}': {{listening: true, ip: ['::']}}}}"));
    assert_eq!(lines, format!("Port: tcp:{port}: listening: expected true, found false"));
}

#[test]
fn a_socket_on_both_families_is_of_the_sixth() {
    let Ok(socket) = TcpListener::bind("[::]:0") else {
        return ccm_testkit::not_run("this machine has no IPv6");
    };
    let port = socket.local_addr().unwrap().port();
    holds(&format!(
        "port: {{'tcp6:{port}': {{listening: true, ip: {{consist-of: ['::']}}}}, \
         'tcp:{port}': {{listening: false}}}}"
    ));
}

#[test]
fn commands() {
    holds(
        "command:
  echo out; echo err >&2; exit 3:
    exit-status: 3
    stdout: [out, '!err']
    stderr: \"err\\n\"
  named:
    exec: 'echo 42'
    exit-status: {lt: 1}
    stdout: 42
  '\"$0\" -c \"pwd; echo $0\"': {exit-status: 0, stdout: [/]}
  true: {exit-status: 0, stdout: [], stderr: ''}
",
    );
    // The exit status does not decide about the others.
    let report = run("command: {'echo x; exit 1': {exit-status: 0, stdout: [x]}}");
    assert_eq!((report.summary.count, report.summary.failed, report.summary.skipped), (2, 1, 0));
    let lines = fails("command: {'kill -9 $$': {exit-status: 0}}");
    assert!(lines.ends_with("expected 0: the command was killed by signal 9"), "{lines}");
    let report = run("command: {'true': {exit-status: 0, stdout: []}}");
    assert_eq!(report.summary.count, 1, "an empty list of patterns asks nothing");
}

#[test]
fn users_and_groups() {
    let shell = nix::unistd::User::from_name("root").unwrap().unwrap().shell;
    holds(&format!(
        "user:
  root: {{exists: true, uid: 0, gid: 0, home: /root, shell: {}, groups: {{contain-element: root}}}}
  boss: {{username: root, exists: true}}
  nobody-here: {{exists: false}}
group:
  root: {{exists: true, gid: 0}}
  no-group: {{exists: false}}
",
        shell.display()
    ));
    assert_eq!(
        fails("{user: {nobody-here: {exists: true}}, group: {no-group: {exists: true, gid: 5}}}"),
        "User: nobody-here: exists: expected true, found false\n\
         Group: no-group: exists: expected true, found false"
    );
}

#[test]
fn interfaces() {
    holds(
        "interface:
  lo: {exists: true, addrs: {contain-element: 127.0.0.1/8}, mtu: {gt: 1000}}
  no-such0: {exists: false}
",
    );
    let lines = fails("interface: {no-such0: {exists: true, mtu: 1500}}");
    assert_eq!(lines, "Interface: no-such0: exists: expected true, found false");
}

#[test]
fn mounts() {
    holds(
        "mount:
  /proc: {exists: true, filesystem: proc, source: {match-regexp: .}, opts: [rw], vfs-opts: [rw], usage: 0}
  /proc/: {exists: true}
  /: {exists: true, usage: {and: [{ge: 0}, {le: 100}]}}
  /etc/passwd/none: {exists: false}
",
    );
    let lines = fails("mount: {/no-mount: {exists: true, filesystem: ext4}}");
    assert_eq!(lines, "Mount: /no-mount: exists: expected true, found false");
    let report = run("mount: {/no-mount: {exists: false, filesystem: ext4}}");
    assert_eq!((report.summary.failed, report.summary.skipped), (0, 1));
}

#[test]
fn kernel_parameters() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    holds(&format!("kernel-param: {{kernel.osrelease: {{value: '{}'}}}}", release.trim()));
    // The kernel gives these only to the first read of a file.
    for name in ["kernel.pid_max", "kernel.printk", "vm.lowmem_reserve_ratio"] {
        let output = std::process::Command::new("cat")
            .arg(format!("/proc/sys/{}", name.replace('.', "/")))
            .output()
            .unwrap();
        let value = String::from_utf8(output.stdout).unwrap();
        assert!(value.trim().len() > 1, "{name}: {value}");
        holds(&format!("kernel-param: {{{name}: {{value: {:?}}}}}", value.trim()));
    }
    let lines = fails("kernel-param: {kernel.no-such: {value: 1}}");
    assert!(
        lines.starts_with("KernelParam: kernel.no-such: value: expected 1: cannot "),
        "{lines}"
    );
}

#[test]
fn values_of_the_rules_themselves() {
    holds("matching: {x: {content: {a: [1, 2]}, matches: {have-key: a}}}");
    // `as-reader` counts wherever it is written.
    holds("matching: {x: {matches: ['/^b$/'], content: \"a\\nb\", as-reader: true}}");
    assert_eq!(
        fails("matching: {x: {content: foo, matches: bar, title: the thing}}"),
        "Matching: x (the thing): matches: expected \"bar\", found \"foo\""
    );
}

#[test]
fn what_is_skipped_counts_and_does_not_fail() {
    let report = run(
        "{file: {/none: {exists: true, mode: '0600', skip: true}, /: {exists: true, skip: false, \
         meta: {owner: [ann]}}}}",
    );
    let outcomes: Vec<_> = report.results.iter().map(|result| result.outcome).collect();
    assert_eq!(outcomes, [Outcome::Skipped, Outcome::Skipped, Outcome::Passed]);
    assert!(report.is_ok());
    assert!(report.output().starts_with("Count: 3, Failed: 0, Duration: "));
}

/// The packages of this machine, whose database this reads itself.
#[test]
fn packages() {
    let status = std::fs::read_to_string("/var/lib/dpkg/status").unwrap_or_default();
    let installed =
        status.split("\n\n").find(|entry| entry.contains("\nStatus: install ok installed"));
    let Some(entry) = installed else {
        return ccm_testkit::not_run("this machine has no packages of dpkg");
    };
    let field = |name: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    let (name, version) = (field("Package:"), field("Version:"));
    holds(&format!(
        "package: {{{name}: {{installed: true, versions: ['{version}']}}, no-such-package: \
         {{installed: false}}}}"
    ));
    let lines = fails("package: {no-such-package: {installed: true, versions: ['1']}}");
    assert_eq!(lines, "Package: no-such-package: installed: expected true, found false");
}

/// Kinds that a machine of this test cannot have are in `system-tests`.
#[test]
fn every_kind_has_its_test() {
    let own = include_str!("kinds.rs");
    let network = include_str!("network.rs");
    let elsewhere = ["service"];
    for kind in KINDS.iter().filter(|kind| !elsewhere.contains(&kind.name)) {
        let is_used = [own, network].iter().any(|text| text.contains(&format!("{}:", kind.name)));
        assert!(is_used, "{} has no test", kind.name);
    }
}
