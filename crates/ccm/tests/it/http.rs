//! Manifests from tarballs over HTTP, served on the loopback interface.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ccm_testkit::{Authority, Server, answer, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::TestEnv;

/// What an entry of a tarball is, by its letter in the header.
const FILE: u8 = b'0';
const LINK: u8 = b'2';

/// A gzipped tarball of these entries: name, kind, content or target.
fn tarball(entries: &[(&str, u8, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, content) in entries {
        let is_file = *kind == FILE;
        let size = if is_file { content.len() } else { 0 };
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = *kind;
        if !is_file {
            header[157..157 + content.len()].copy_from_slice(content.as_bytes());
        }
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        if is_file {
            tar.extend_from_slice(content.as_bytes());
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
    }
    tar.resize(tar.len() + 1024, 0);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar).unwrap();
    gzip.finish().unwrap()
}

fn serve(entries: &[(&str, u8, &str)]) -> Server {
    Server::with_body(tarball(entries))
}

/// What ccm says of `[URL]`, with the server's port out of the way.
fn ccm<const N: usize>(env: &TestEnv, server: &Server, args: [&str; N]) -> String {
    let url = format!("http://me:hunter2@{}/site.tar.gz", server.address);
    let picture = env.ccm(args.map(|arg| if arg == "[URL]" { &*url } else { arg }));
    assert!(!picture.contains("hunter2"), "{picture}");
    picture.replace(&server.address, "[SERVER]")
}

/// Nothing of a fetched tree is left.
fn assert_clean(env: &TestEnv) {
    let names = env.names();
    assert!(!names.iter().any(|name| name.contains("ccm-")), "{names:?}");
}

#[test]
fn a_tarball_with_its_files_and_children() {
    let env = TestEnv::new();
    let directory = env.dir().display().to_string();
    let me =
        format!("owner: \"{}\", group: \"{}\"", nix::unistd::geteuid(), nix::unistd::getegid());
    let manifest = format!(
        "ccm:\n  resources:\n    - file: {{name: {directory}/a, source: files/a, {me}, mode: \"0644\"}}\n    \
         - apply: {{name: sub/child.yaml}}\n"
    );
    let child = format!(
        "ccm:\n  resources:\n    - file: {{name: {directory}/b, source: b, {me}, mode: \"0644\"}}\n"
    );
    for top in ["", "./", "site-1.0/"] {
        let name = |name: &str| format!("{top}{name}");
        let server = serve(&[
            (&name("manifest.yaml"), FILE, &manifest),
            (&name("files/a"), FILE, "from afar\n"),
            (&name("sub/child.yaml"), FILE, &child),
            (&name("sub/b"), FILE, "from below\n"),
        ]);
        let picture = ccm(&env, &server, ["apply", "[URL]"]);
        assert!(picture.starts_with("exit: 0\n"), "{picture}");
        assert!(picture.contains("Applied http://[redacted]@[SERVER]/site.tar.gz in"), "{picture}");
        assert_eq!(env.read("a"), "from afar\n");
        assert_eq!(env.read("b"), "from below\n");
        assert_clean(&env);
        let request = server.requests().remove(0);
        // `me:hunter2`
        assert!(request.contains("authorization: Basic bWU6aHVudGVyMg=="), "{request}");
        let picture = ccm(&env, &server, ["validate", "[URL]"]);
        assert!(
            picture.contains("site.tar.gz is valid: 2 resources, 1 manifest below"),
            "{picture}"
        );
        assert_clean(&env);
        let picture = ccm(&env, &server, ["apply", "[URL]", "--detailed-exitcodes"]);
        assert!(picture.starts_with("exit: 0\n"), "the second run is stable: {picture}");
    }
}

#[test]
fn reports_and_sessions_hold_no_credentials() {
    let env = TestEnv::with_session();
    let server = serve(&[("manifest.yaml", FILE, "ccm: {resources: [{exec: [\"true\"]}]}\n")]);
    let url = format!("http://me:hunter2@{}/m.tgz", server.address);
    let output = env.run(["--debug", "apply", &url, "--report-file", "report.json"]);
    assert!(output.status.success());
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("/m.tgz") && !log.contains("hunter2"), "{log}");
    let report: Value = serde_json::from_str(&env.read("report.json")).unwrap();
    assert_eq!(report["manifest"], format!("http://[redacted]@{}/m.tgz", server.address));
    let events: Vec<_> =
        env.names().into_iter().filter(|name| name.starts_with("session/")).collect();
    assert_eq!(events.len(), 2, "the start and one event");
    for name in &events {
        assert!(!env.read(name).contains("hunter2"), "{name}");
    }
}

#[test]
fn certificates_are_verified() {
    let env = TestEnv::new();
    let authority = Authority::new();
    env.write("authority.pem", &authority.pem);
    let body = tarball(&[("manifest.yaml", FILE, "ccm: {resources: [{exec: [\"true\"]}]}\n")]);
    let server = Server::start_secure(&authority, "localhost", move |_, stream| {
        let _ = stream.write_all(&answer("200 OK", "", &body));
    });
    let url = format!("https://localhost:{}/m.tgz", server.port());
    let code = |trusted: bool| {
        let mut command = env.command(["apply", &url]);
        if trusted {
            command.env("SSL_CERT_FILE", env.path("authority.pem"));
        }
        command.output().unwrap().status.code()
    };
    assert_eq!(code(true), Some(0));
    assert_eq!(code(false), Some(1));
    assert_clean(&env);
}

#[test]
fn what_is_wrong_is_shown_with_its_place_in_the_tarball() {
    let env = TestEnv::new();
    let server = serve(&[(
        "site/manifest.yaml",
        FILE,
        "ccm:\n  resources:\n    - exec:\n        - ls: {comand: x}\n",
    )]);
    insta::assert_snapshot!(ccm(&env, &server, ["apply", "[URL]"]), @"
    exit: 1
    --- stderr ---
    error: exec#ls: unknown property `comand`
     --> http://[redacted]@[SERVER]/site.tar.gz:site/manifest.yaml:4:16
      |
    4 |         - ls: {comand: x}
      |                ^^^^^^
      |
      = hint: did you mean `command`?
    ");
    let child = "ccm:\n  resources:\n    - exec:\n        - ls: {comand: x}\n";
    let server = serve(&[
        ("manifest.yaml", FILE, "ccm: {resources: [{apply: {name: sub/c.yaml}}]}\n"),
        ("sub/c.yaml", FILE, child),
    ]);
    insta::assert_snapshot!(ccm(&env, &server, ["apply", "[URL]", "--no-report"]), @"
    exit: 1
    --- stdout ---
      ✗ apply#sub/c.yaml
            manifest http://[redacted]@[SERVER]/site.tar.gz:sub/c.yaml is invalid
            http://[redacted]@[SERVER]/site.tar.gz:sub/c.yaml:4:16: exec#ls: unknown property `comand` (did you mean `command`?)
    --- stderr ---
    error: exec#ls: unknown property `comand`
     --> http://[redacted]@[SERVER]/site.tar.gz:sub/c.yaml:4:16
      |
    4 |         - ls: {comand: x}
      |                ^^^^^^
      |
      = hint: did you mean `command`?
    ");
    let server =
        serve(&[("manifest.yaml", FILE, "ccm: {resources: [{apply: {name: manifest.yaml}}]}\n")]);
    let picture = ccm(&env, &server, ["apply", "[URL]", "--no-report"]);
    assert!(
        picture.contains("11 http://[redacted]@[SERVER]/site.tar.gz:manifest.yaml\n"),
        "{picture}"
    );
    assert_clean(&env);
}

#[test]
fn what_is_no_tree_of_manifests_is_refused() {
    let env = TestEnv::new();
    let empty = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    let server = serve(&[("readme", FILE, "x")]);
    insta::assert_snapshot!(ccm(&env, &server, ["apply", "[URL]"]), @"
    exit: 1
    --- stderr ---
    error: cannot find the manifest in http://[redacted]@[SERVER]/site.tar.gz: there is no manifest.yaml in it
    hint: put one manifest.yaml at its top or one directory down
    ");
    let server = serve(&[("a/manifest.yaml", FILE, empty), ("b/manifest.yaml", FILE, empty)]);
    insta::assert_snapshot!(ccm(&env, &server, ["apply", "[URL]"]), @"
    exit: 1
    --- stderr ---
    error: cannot find the manifest in http://[redacted]@[SERVER]/site.tar.gz: it contains several: a/manifest.yaml, b/manifest.yaml
    hint: put one manifest.yaml at its top or one directory down
    ");
    let server = serve(&[("a/b/manifest.yaml", FILE, empty)]);
    assert!(ccm(&env, &server, ["apply", "[URL]"]).contains("there is no manifest.yaml in it"));
    for entries in [
        [("manifest.yaml", FILE, empty), ("../escape", FILE, "x")],
        [("manifest.yaml", FILE, empty), ("/escape", FILE, "x")],
        [("manifest.yaml", FILE, empty), ("link", LINK, "manifest.yaml")],
        [("other.yaml", FILE, empty), ("manifest.yaml", LINK, "/etc/passwd")],
    ] {
        let server = serve(&entries);
        let picture = ccm(&env, &server, ["apply", "[URL]"]);
        assert!(picture.starts_with("exit: 1\n"), "{picture}");
        assert!(picture.contains("refusing to extract http://"), "{picture}");
        assert_clean(&env);
    }
    let many: Vec<String> = (0..10_001).map(|n| format!("f{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), FILE, "")).collect();
    let picture = ccm(&env, &serve(&many), ["apply", "[URL]"]);
    assert!(
        picture.starts_with("exit: 1\n") && picture.contains("refusing to extract"),
        "{picture}"
    );
    let server = Server::with_body("no archive");
    let picture = ccm(&env, &server, ["apply", "[URL]"]);
    assert!(picture.starts_with("exit: 1\n") && picture.contains("cannot extract"), "{picture}");
    let picture = ccm(&env, &server, ["validate", "[URL]", "--json"]);
    let json = picture.strip_prefix("exit: 1\n--- stdout ---\n").unwrap();
    let verdict: Value = serde_json::from_str(json).unwrap();
    assert_eq!(verdict["valid"], false);
    assert_eq!(verdict["findings"][0]["file"], "http://[redacted]@[SERVER]/site.tar.gz");
    let server = Server::with_bytes(answer("401 Unauthorized", "", b""));
    let picture = ccm(&env, &server, ["apply", "[URL]"]);
    assert!(picture.starts_with("exit: 1\n") && picture.contains("401"), "{picture}");
    assert_clean(&env);
}

#[test]
fn other_addresses_are_refused() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["apply", "ftp://BUCKET/m.tgz"]), @"
    exit: 1
    --- stderr ---
    error: cannot download ftp://BUCKET/m.tgz: `ftp` is not available in this version
    hint: available schemes: file, http, https, kv, obj
    ");
    insta::assert_snapshot!(env.ccm(["apply", "http://me:hunter2@127.0.0.1:1/manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: archive type not supported: http://127.0.0.1:1/manifest.yaml
    hint: supported: .tar.gz, .tgz, .tar, .tar.xz, .txz, .tar.zst, .tar.zstd, .tzst, .tar.bz2, .tbz2, .tbz, .tb2
    ");
    let picture = env.ccm(["apply", "http://me:hunter2@127.0.0.1:1/m.tgz"]);
    assert!(picture.starts_with("exit: 1\n") && !picture.contains("hunter2"), "{picture}");
}

#[test]
fn file_urls_work_wherever_urls_do() {
    let env = TestEnv::new();
    let here = env.dir().to_str().unwrap().to_owned();
    let (uid, gid) = own_ids();
    let manifest = format!(
        "ccm:\n  resources:\n    - archive:\n        - {here}/copy.tgz:\n            \
         url: file://{here}/a%20b/app.tgz\n            extract_parent: {here}/app\n            \
         creates: {here}/app/run\n            owner: \"{uid}\"\n            group: \"{gid}\"\n    \
         - scaffold:\n        - {here}/etc: {{source: 'FILE://localhost{here}/a%20b/etc.tgz'}}\n"
    );
    std::fs::create_dir(env.path("a b")).unwrap();
    for (name, entries) in [
        ("site.tgz", [("site/manifest.yaml", FILE, manifest.as_str())]),
        ("app.tgz", [("run", FILE, "run")]),
        ("etc.tgz", [("conf", FILE, "port = [[ data.port ]]")]),
    ] {
        std::fs::write(env.path("a b").join(name), tarball(&entries)).unwrap();
    }
    env.write("a b/data.yaml", "data: {port: 8080}\n");
    let (site, data) =
        (format!("file://{here}/a%20b/site.tgz"), format!("file://{here}/a%20b/data.yaml"));
    let args = ["apply", &site, "--hiera", &data, "--no-report"];
    let picture = env.ccm(args);
    assert!(picture.starts_with("exit: 0\n"), "{picture}");
    assert_eq!(std::fs::read_to_string(env.path("app/run")).unwrap(), "run");
    assert_eq!(std::fs::read_to_string(env.path("etc/conf")).unwrap(), "port = 8080");
    let picture = env.ccm(args);
    assert_eq!(picture, "exit: 0\n", "the second run is stable");
    let picture = env.ccm(["apply", "file:///nowhere/m.tgz"]);
    assert!(picture.contains("error: cannot open /nowhere/m.tgz\n"), "{picture}");
    let picture = env.ccm(["hiera", "parse", &data]);
    assert!(picture.contains("\"port\": 8080"), "{picture}");
    let picture = env.ccm(["hiera", "parse", "ftp://u:hunter2@BUCKET/key"]);
    let error = "caused by: cannot download ftp://BUCKET/key: `ftp` is not available in this version\n\
                 hint: available schemes: file, http, https, kv, obj";
    assert!(picture.contains(error), "{picture}");
}

fn own_ids() -> (u32, u32) {
    (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw())
}

#[test]
fn an_interrupt_while_fetching_leaves_nothing() {
    let env = TestEnv::new();
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nslow");
        let _ = stream.flush();
        // Silence longer than the test.
        std::thread::sleep(Duration::from_mins(1));
    });
    let child = env
        .command(["apply", &server.url("/m.tgz")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    wait_until("the request", || !server.requests().is_empty());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_clean(&env);
}

#[test]
fn an_interrupt_while_applying_removes_the_tree() {
    let env = TestEnv::new();
    let manifest = format!(
        "ccm: {{resources: [{{exec: [{{wait: {{command: \"sh -c 'touch {}/begun; sleep 60'\"}}}}]}}]}}\n",
        env.dir().display()
    );
    let server = serve(&[("manifest.yaml", FILE, &manifest)]);
    let child =
        env.command(["apply", &server.url("/m.tgz")]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the run", || env.path("begun").exists());
    assert!(
        env.names().iter().any(|name| name.contains("ccm-")),
        "the tree is there while it runs"
    );
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    assert_clean(&env);
}
