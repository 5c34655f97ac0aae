//! Bad input gets a clear error and changes nothing.

use std::time::{Duration, Instant};

use crate::TestEnv;

#[test]
fn everything_wrong_is_said_at_once_with_its_place() {
    let env = TestEnv::new();
    env.manifest(
        r#"
dta: {}
ccm:
  resources:
    - file:
        - defaults: {ownr: root, group: root}
        - defaults: {}
        - tmp/x: {content: a, source: b, owner: root, mode: "999"}
        - /x/../y: {ensure: presnt, owner: root, mode: "0644"}
        - /a: {owner: root, mode: "0644"}
        - /a: {owner: root, mode: "0644", alias: /b}
        - /b: {owner: root, mode: "0644", name: /c}
    - servce: {}
    - exec: {}
      file: {}
    - exec:
        - late: {require: ["exec#later"], timeout: soon}
        - later: {subscribe: ["exec#ltae", "fle#/a", "exec#later"]}
        - "echo 'oops": {environment: [X]}
        - [1, 2]
  resource: []
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"");
    let verdict = env.run(["validate", "manifest.yaml", "--json"]);
    assert_eq!(verdict.status.code(), Some(1));
    let verdict: serde_json::Value = serde_json::from_slice(&verdict.stdout).unwrap();
    assert_eq!(verdict["valid"], false);
    let first = &verdict["findings"][0];
    assert_eq!(first["line"], 2);
    assert_eq!(first["column"], 1);
    assert_eq!(first["hint"], "did you mean `data`?");
    assert_eq!(first["file"], "manifest.yaml");
}

#[test]
fn manifests_of_a_wrong_shape() {
    let env = TestEnv::new();
    for (text, words) in [
        ("", "a manifest is a map, this is null"),
        ("[]", "a manifest is a map, this is a list"),
        ("hello", "a manifest is a map, this is text"),
        ("data: {}", "a manifest needs `ccm:`"),
        ("ccm: []", "expected a map with `resources`, found a list"),
        ("ccm: {}", "there are no `resources`"),
        ("ccm: {resources: []}", "there are no resources"),
        ("ccm: {resources: {}}", "expected a list of resources, found a map"),
        ("ccm: {resources: [1]}", "expected a map with the resource type as its key"),
        ("ccm: {resources: [{}]}", "an entry needs a resource type"),
        ("ccm: {resources: [{file: }]}", "`file` needs resources below it"),
        ("ccm: {resources: [{file: x}]}", "`file` needs resources below it"),
        ("ccm: {resources: [{exec: [{a: b}]}]}", "expected a map of properties, found text"),
        ("ccm: {resources: [{exec: [{a: , b: }]}]}", "found 2 keys"),
        ("ccm: {resources: [{exec: [{defaults: {name: x}}, a]}]}", "a name cannot be a default"),
        ("ccm: {resources: [{exec: a}], fail_on_error: maybe}", "expected `true` or `false`"),
        ("ccm: {resources: [{exec: [\"\"]}]}", "a name with its properties"),
        ("a: 1\na: 2\n", "duplicate key `a`"),
        ("a: [1", "line"),
        ("a: 1\n---\nb: 2", "a second document begins here"),
        ("a: *nothing", "anchor"),
        ("a: !custom x", "tag `!custom` is not known"),
        ("\t- x", ""),
    ] {
        env.manifest(text);
        let output = env.run(["apply", "manifest.yaml"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text:?}: {stderr}");
        assert!(stderr.contains("error") && stderr.contains(words), "{text:?}: {stderr}");
        assert!(stderr.contains("--> manifest.yaml:"), "{text:?}: {stderr}");
        assert_eq!(output.stdout, b"", "{text:?}");
    }
}

#[test]
fn a_syntax_error_points() {
    let env = TestEnv::new();
    env.manifest("ccm:\n  resources:\n    - file: {a: [1, 2\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"");
}

#[test]
fn what_is_no_readable_text() {
    let env = TestEnv::new();
    std::fs::write(env.path("latin1.yaml"), b"ccm:\n  x: caf\xe9\n").unwrap();
    std::fs::create_dir(env.path("directory.yaml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(env.path("fifo.yaml")).status().unwrap();
    assert!(made.success());
    for name in ["latin1.yaml", "directory.yaml", "fifo.yaml", "missing.yaml", "/dev/zero"] {
        let begin = Instant::now();
        let output = env.run(["apply", name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{name}");
    }
    insta::assert_snapshot!(env.ccm(["apply", "latin1.yaml"]), @"");
    insta::assert_snapshot!(env.ccm(["apply", "directory.yaml"]), @"");
    insta::assert_snapshot!(env.ccm(["apply", "fifo.yaml"]), @"");
    insta::assert_snapshot!(env.ccm(["apply", "missing.yaml"]), @"");
    let json = env.run(["validate", "--json", "missing.yaml"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["valid"], false);
}

#[test]
fn nonsense_is_refused_quickly() {
    let env = TestEnv::new();
    let noise: String = (0..50 << 20)
        .map(|n: u32| char::from(b' ' + (n.wrapping_mul(2_654_435_761) >> 25) as u8 % 94))
        .collect();
    for (name, text) in [
        ("nonsense", noise),
        ("one long word", "x".repeat(50 << 20)),
        ("deep flow", "[".repeat(10_000)),
        ("deep block", (0..10_000).map(|n| format!("{}- \n", " ".repeat(n))).collect()),
        ("deep maps", (0..10_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
        ("braces", "{".repeat(10_000)),
        ("quotes", "\"".repeat(99_999)),
        ("anchors", (0..100_000).map(|n| format!("- &a{n} x\n")).collect()),
    ] {
        env.manifest(&text);
        let begin = Instant::now();
        let output = env.run(["validate", "manifest.yaml"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.len() < 20_000, "{name}: {} bytes of error", stderr.len());
        assert!(begin.elapsed() < Duration::from_secs(20), "{name}: {:?}", begin.elapsed());
    }
}

#[test]
fn templates_are_not_taken_literally() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{file: {[DIR]/f: {content: \"{{ x }}\", [ME], mode: \"0644\"}}}]}",
    );
    let output = env.run(["apply", "manifest.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!env.path("f").exists());
}

#[test]
fn wrong_usage_is_64() {
    let env = TestEnv::new();
    for args in [
        &["--nope"][..],
        &["aply", "x"],
        &["apply"],
        &["apply", "a", "b"],
        &["ensure"],
        &["ensure", "nope", "x"],
        &["ensure", "file"],
        &["ensure", "file", "/x", "gone"],
        &["ensure", "exec", "true", "--require", "file#/x"],
        &["session", "report"],
        &["completion", "tcsh"],
        &["apply", "x", "--diff=some"],
    ] {
        let output = env.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    assert_eq!(env.run(["--help"]).status.code(), Some(0));
    assert_eq!(env.run(["--version"]).status.code(), Some(0));
}

#[test]
fn no_permission_is_said_clearly() {
    if !nix::unistd::geteuid().is_root() {
        return; // Becoming another user needs root.
    }
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let env = TestEnv::new();
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(env.path("locked")).unwrap();
    env.write("secret", "s");
    std::fs::set_permissions(env.path("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    // The binary may lie where the other user cannot go.
    std::fs::copy(env!("CARGO_BIN_EXE_ccm"), env.path("ccm")).unwrap();
    let nobody = |args: &[&str]| {
        let output = std::process::Command::new(env.path("ccm"))
            .args(args)
            .current_dir("/")
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let locked = env.path("locked/f");
    let (code, text) = nobody(&["ensure", "file", locked.to_str().unwrap(), "--content", "x"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("Permission denied") && text.contains("run ccm as a user"), "{text}");
    let secret = env.path("secret");
    let (code, text) = nobody(&["ensure", "file", secret.to_str().unwrap(), "--content", "x"]);
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = nobody(&[
        "ensure",
        "file",
        secret.to_str().unwrap(),
        "--owner",
        "root:root",
        "--content",
        "s",
    ]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(env.names(), ["ccm", "locked", "secret"]);
}
