//! Archives from servers that behave and servers that do not, as people see it.

use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::time::{Duration, Instant};

use ccm_testkit::{Authority, Server, answer, snapshot, wait_until};

use crate::TestEnv;

/// An empty tar archive.
const EMPTY: [u8; 1024] = [0; 1024];

#[test]
fn an_archive_is_ensured_shown_and_removed() {
    let env = TestEnv::new();
    let server = Server::with_body(EMPTY);
    let url = format!("http://me:secret@{}/a.tar", server.address);
    let noop = env.ccm(["ensure", "archive", "[DIR]/a.tar", &url, "--noop"]);
    assert!(noop.contains("  + archive#[DIR]/a.tar  [ME]  (noop)\n"), "{noop}");
    assert!(env.names().is_empty() && server.requests().is_empty());
    let first =
        env.ccm(["ensure", "archive", "[DIR]/a.tar", &url, "-H", "X-One: 1", "--header=X-Two:2"]);
    assert!(first.starts_with("exit: 0\n") && !first.contains("secret"), "{first}");
    let request = &server.requests()[0];
    assert!(request.contains("x-one: 1\n") && request.contains("x-two: 2\n"), "{request}");
    assert_eq!(env.names(), ["a.tar"]);
    let status = env.ccm(["status", "archive", "[DIR]/a.tar"]);
    for words in
        ["exit: 0", "ensure: present", "archive_exists: true", "size: 1024", "provider: http"]
    {
        assert!(status.contains(words), "{words}: {status}");
    }
    let absent = env.ccm(["ensure", "archive", "[DIR]/a.tar", "--absent"]);
    assert!(absent.starts_with("exit: 0\n"), "{absent}");
    assert!(env.names().is_empty());
    let status = env.ccm(["status", "archive", "[DIR]/a.tar", "--creates", "[DIR]"]);
    assert!(
        status.contains("ensure: absent") && status.contains("creates_exists: true"),
        "{status}"
    );
}

#[test]
fn what_is_wrong_is_said_before_anybody_is_asked() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "archive", "[DIR]/a.tar"]), @"
    exit: 1
    --- stderr ---
    error: archive#[DIR]/a.tar: property `url` is required
    hint: url: URL to download the archive from
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "archive", "[DIR]/a.tar", "ftp://u:secret@h/a.tar"]), @"
    exit: 1
    --- stderr ---
    error: archive#[DIR]/a.tar: url: cannot download ftp://h/a.tar: `ftp` is not available in this version
    hint: available schemes: file, http, https, kv, obj
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "archive", "[DIR]/a.tar", "http://h/a.zip", "--cleanup"]), @"
    exit: 1
    --- stderr ---
    error: archive#[DIR]/a.tar: url: its extension and that of `name` are of different formats
    error: archive#[DIR]/a.tar: cleanup: without `extract_parent`, ccm would delete the archive without extracting it
    hint: set `extract_parent`
    error: archive#[DIR]/a.tar: cleanup: without `creates`, ccm could not tell whether the deleted archive was extracted
    hint: set `creates`
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "archive", "[DIR]/a.tar", "http://h/a.tar", "-H", "x"]), @"
    exit: 1
    --- stderr ---
    error: a --header has no `:` between name and value
    ");
}

#[test]
fn certificates_are_those_of_the_system_or_of_a_file() {
    let env = TestEnv::new();
    let authority = Authority::new();
    let empty = |_: &str, stream: &mut dyn ccm_testkit::Stream| {
        let _ = stream.write_all(&answer("200 OK", "", &EMPTY));
    };
    let serve = |name: &str| Server::start_secure(&authority, name, empty);
    let (good, wrong) = (serve("localhost"), serve("elsewhere.example"));
    let expired = Server::start_expired(&authority, "localhost", empty);
    let roots = env.write("roots.pem", &authority.pem);
    let fetch = |server: &Server, trusts: bool| {
        let url = format!("https://localhost:{}/a.tar", server.port());
        let mut command =
            env.command(["ensure", "archive", env.path("a.tar").to_str().unwrap(), &url]);
        if trusts {
            command.env("SSL_CERT_FILE", &roots);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said + &String::from_utf8_lossy(&output.stderr))
    };
    for (server, trusts) in [(&good, false), (&wrong, true), (&wrong, false)] {
        let (is_fetched, said) = fetch(server, trusts);
        assert!(!is_fetched && said.contains("certificate"), "{said}");
        assert_eq!(env.names(), ["roots.pem"]);
    }
    let (is_fetched, said) = fetch(&expired, true);
    assert!(!is_fetched && said.contains("certificate expired"), "{said}");
    assert_eq!(env.names(), ["roots.pem"]);
    let (is_fetched, said) = fetch(&good, true);
    assert!(is_fetched, "{said}");
    assert_eq!(env.names(), ["a.tar", "roots.pem"]);
}

#[test]
fn proxies_come_from_the_environment() {
    let env = TestEnv::new();
    let proxy = Server::start(|head, stream| {
        if head.starts_with("CONNECT ") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let mut lines = BufReader::new(&mut *stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        }
        let _ = stream.write_all(&answer("200 OK", "", &EMPTY));
    });
    let run = |no_proxy: &str| {
        let path = env.path("a.tar");
        let args = ["ensure", "archive", path.to_str().unwrap(), "http://files.example/a.tar"];
        let mut command = env.command(args);
        command.env("http_proxy", proxy.url("")).env("no_proxy", no_proxy);
        command.output().unwrap().status.success()
    };
    assert!(run(""));
    assert!(proxy.requests()[0].contains("files.example"), "{:?}", proxy.requests());
    std::fs::remove_file(env.path("a.tar")).unwrap();
    assert!(!run("files.example"), "there is no such host");
    assert_eq!(proxy.requests().len(), 1);
}

#[test]
fn a_signal_ends_a_download_at_once_and_leaves_nothing() {
    let env = TestEnv::new();
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc");
        let _ = stream.flush();
        // Until the other side goes away.
        let _ = stream.read(&mut [0]);
    });
    std::fs::write(env.path("a.tar"), "old").unwrap();
    let before = snapshot(env.dir());
    let sum = "0".repeat(64);
    let path = env.path("a.tar");
    let args =
        ["ensure", "archive", path.to_str().unwrap(), &server.url("/a.tar"), "--checksum", &sum];
    let mut child = env.command(args).stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the download to begin", || env.names().len() >= 2);
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let signalled = Instant::now();
    let status = child.wait().unwrap();
    assert!(signalled.elapsed() < Duration::from_secs(5), "it took {:?}", signalled.elapsed());
    assert_eq!(status.code(), Some(128 + 15));
    let mut after = snapshot(env.dir());
    let top = std::path::Path::new("");
    after.insert(top.into(), before[top].clone());
    assert_eq!(after, before);
}

#[test]
fn a_manifest_is_previewed_applied_and_then_stable() {
    let env = TestEnv::new();
    // A zip archive with one file, stored.
    let mut zip = b"PK\x03\x04\x14\0\0\0\0\0\0\0\x21\x50".to_vec();
    let rest = b"\x83\x16\xdc\x8c\x01\0\0\0\x01\0\0\0\x01\0\0\0";
    zip.extend_from_slice(rest);
    zip.extend_from_slice(b"fx");
    let begin = zip.len() as u32;
    zip.extend_from_slice(b"PK\x01\x02\x1e\x03\x14\0\0\0\0\0\0\0\x21\x50");
    zip.extend_from_slice(rest);
    zip.extend_from_slice(&[0; 6]);
    zip.extend_from_slice(&(0o100_644u32 << 16).to_le_bytes());
    zip.extend_from_slice(b"\0\0\0\0f");
    let length = zip.len() as u32 - begin;
    zip.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend_from_slice(&length.to_le_bytes());
    zip.extend_from_slice(&begin.to_le_bytes());
    zip.extend_from_slice(&[0, 0]);
    let server = Server::with_body(zip);
    env.manifest(&format!(
        "data: {{mirror: 'http://{}'}}\nccm:\n  resources:\n    - archive:\n        - [DIR]/a.zip:\n            \
         {{url: '{{{{ Data.mirror }}}}/a.zip', extract_parent: '[DIR]/into', creates: '[DIR]/into/f', \
         cleanup: true, [ME]}}\n",
        server.address
    ));
    let before = snapshot(env.dir());
    let noop = env.ccm(["apply", "manifest.yaml", "--noop"]);
    assert!(noop.contains("  + archive#[DIR]/a.zip  [ME], extract_parent [DIR]/into\n"), "{noop}");
    let events = env.ccm(["apply", "manifest.yaml", "--noop", "--events"]);
    let all = "Would have downloaded. Would have extracted. Would have cleaned up";
    assert!(events.contains(all), "{events}");
    assert_eq!(snapshot(env.dir()), before);
    let applied = env.ccm(["apply", "manifest.yaml"]);
    assert!(applied.starts_with("exit: 0\n"), "{applied}");
    assert_eq!(env.names(), ["into", "into/f", "manifest.yaml"]);
    let after = snapshot(env.dir());
    env.ccm(["apply", "manifest.yaml"]);
    assert_eq!(snapshot(env.dir()), after);
    assert_eq!(server.requests().len(), 1);
}

/// Someone who is not root gets what `tar -x` gives them: no owners, no special
/// bits, and modes without what the umask hides.
#[test]
fn others_than_root_get_what_tar_gives_them() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let at = |name: &str| env.path(name);
    env.write("source/d/f", "x");
    env.write("source/run", "#!/bin/sh\n");
    env.write("source/marker", "");
    for (name, mode) in
        [("source/d", 0o1777), ("source/run", 0o777), ("source/d/f", 0o640), ("source", 0o775)]
    {
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::symlink("d/f", at("source/link")).unwrap();
    std::fs::hard_link(at("source/d/f"), at("source/hard")).unwrap();
    std::os::unix::fs::chown(at("source/run"), Some(1), Some(1)).unwrap();
    let tar = |args: &[&str]| Command::new("tar").args(args).status().unwrap().success();
    let archive = at("a.tar");
    let (archive, source) = (archive.to_str().unwrap(), at("source"));
    assert!(tar(&["-cf", archive, "-C", source.to_str().unwrap(), "."]));
    for name in ["", "a.tar", "theirs", "ours"] {
        if ["theirs", "ours"].contains(&name) {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::os::unix::fs::chown(at(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let as_nobody = |command: &mut Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 027; exec \"$0\" \"$@\""]).arg(command.get_program());
        shell.args(command.get_args()).uid(NOBODY).gid(NOBODY);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let (theirs, ours) = (at("theirs"), at("ours"));
    as_nobody(Command::new("tar").args(["-xf", archive, "-C", theirs.to_str().unwrap()]));
    let binary = env.copy_of_ccm();
    let marker = ours.join("marker");
    as_nobody(
        Command::new(&binary)
            .args([
                "ensure",
                "archive",
                archive,
                "http://127.0.0.1:1/a.tar",
                "--no-sync",
                "--no-state",
            ])
            .args(["--extract", ours.to_str().unwrap(), "--creates", marker.to_str().unwrap()]),
    );
    let [ours, theirs] = [&ours, &theirs].map(|side| {
        let mut tree = snapshot(side);
        // The directory itself is what we do not change.
        tree.remove(std::path::Path::new(""));
        tree
    });
    assert_eq!(ours, theirs);
}

/// What does not fit is refused before anything is written.
#[test]
fn a_disk_without_room_gets_nothing() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = TestEnv::new();
    let script = format!(
        "cd {d} && mkdir small src && mount -t tmpfs -o size=256k none small && \
         head -c 1000000 /dev/zero | tr '\\0' x > src/z-big && echo x > src/a && \
         tar -czf a.tar.gz -C src a z-big && \
         {ccm} ensure archive {d}/a.tar.gz http://127.0.0.1:1/a.tar.gz --extract {d}/small/into \
         --creates {d}/small/into/a; echo \"exit $?\"; ls -A small",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    // In a mount namespace of its own: the machine never sees the mount.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("CCM_STATE_DIR", env.state());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    assert!(text.contains("it needs 1000002 bytes"), "{text}");
    assert!(text.ends_with("exit 1\n"), "{text}");
}
