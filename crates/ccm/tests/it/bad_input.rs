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
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: unknown top-level key `dta`
     --> manifest.yaml:2:1
      |
    2 | dta: {}
      | ^^^
      |
      = hint: did you mean `data`?

    error: unknown property `ownr`
     --> manifest.yaml:6:22
      |
    6 |         - defaults: {ownr: root, group: root}
      |                      ^^^^
      |
      = hint: did you mean `owner`?

    error: a block has at most one `defaults`
     --> manifest.yaml:7:11
      |
    7 |         - defaults: {}
      |           ^^^^^^^^

    error: file#tmp/x: name: file path must be absolute, `tmp/x` is not
     --> manifest.yaml:8:11
      |
    8 |         - tmp/x: {content: a, source: b, owner: root, mode: "999"}
      |           ^^^^^

    error: file#tmp/x: `content` and `source` cannot both be set
     --> manifest.yaml:8:28
      |
    8 |         - tmp/x: {content: a, source: b, owner: root, mode: "999"}
      |                            ^

    error: file#tmp/x: mode: `999` is not an octal mode such as "0644"
     --> manifest.yaml:8:61
      |
    8 |         - tmp/x: {content: a, source: b, owner: root, mode: "999"}
      |                                                             ^^^^^

    error: file#/x/../y: name: path must be clean: without `.`, `..`, `//` or a trailing `/`
     --> manifest.yaml:9:11
      |
    9 |         - /x/../y: {ensure: presnt, owner: root, mode: "0644"}
      |           ^^^^^^^
      |
      = hint: write it as `/y`

    error: file#/x/../y: ensure cannot be `presnt` for a file
     --> manifest.yaml:9:29
      |
    9 |         - /x/../y: {ensure: presnt, owner: root, mode: "0644"}
      |                             ^^^^^^
      |
      = hint: did you mean `present`?

    error: file#/a: file#/a is declared twice
      --> manifest.yaml:11:11
       |
    11 |         - /a: {owner: root, mode: "0644", alias: /b}
       |           ^^
       |
       = hint: the first one is in line 10; two are allowed if each has `control` and only one applies

    error: the key above already sets the name
      --> manifest.yaml:12:43
       |
    12 |         - /b: {owner: root, mode: "0644", name: /c}
       |                                           ^^^^

    error: unknown resource type `servce`
      --> manifest.yaml:13:7
       |
    13 |     - servce: {}
       |       ^^^^^^
       |
       = hint: did you mean `service`?

    error: an entry must have one type, not `exec` and `file`
      --> manifest.yaml:15:7
       |
    15 |       file: {}
       |       ^^^^
       |
       = hint: begin each type with its own `-`; indent properties below the name

    error: exec#late: exec#later comes later in the manifest
      --> manifest.yaml:17:28
       |
    17 |         - late: {require: ["exec#later"], timeout: soon}
       |                            ^^^^^^^^^^^^
       |
       = hint: resources run in the order written: move it up

    error: exec#late: timeout: `soon` is not a duration: write numbers with units, such as `30s`, `5m` or `1h30m`
      --> manifest.yaml:17:52
       |
    17 |         - late: {require: ["exec#later"], timeout: soon}
       |                                                    ^^^^

    error: exec#later: exec#ltae is not in this manifest
      --> manifest.yaml:18:31
       |
    18 |         - later: {subscribe: ["exec#ltae", "fle#/a", "exec#later"]}
       |                               ^^^^^^^^^^^
       |
       = hint: did you mean `exec#late`?

    error: exec#later: fle#/a has an unknown resource type
      --> manifest.yaml:18:44
       |
    18 |         - later: {subscribe: ["exec#ltae", "fle#/a", "exec#later"]}
       |                                            ^^^^^^^^
       |
       = hint: did you mean `file`?

    error: exec#later: exec#later refers to itself
      --> manifest.yaml:18:54
       |
    18 |         - later: {subscribe: ["exec#ltae", "fle#/a", "exec#later"]}
       |                                                      ^^^^^^^^^^^^

    error: exec#echo 'oops: name: Unterminated single-quoted string
      --> manifest.yaml:19:11
       |
    19 |         - "echo 'oops": {environment: [*]}
       |           ^^^^^^^^^^^^

    error: exec#echo 'oops: environment: `[redacted]` is not `KEY=value`
      --> manifest.yaml:19:39
       |
    19 |         - "echo 'oops": {environment: [*]}
       |                                       ^^^

    error: expected a name with its properties, found a list
      --> manifest.yaml:20:11
       |
    20 |         - [1, 2]
       |           ^^^^^^

    error: unknown `ccm` key `resource`
      --> manifest.yaml:21:3
       |
    21 |   resource: []
       |   ^^^^^^^^
       |
       = hint: did you mean `resources`?
    "#);
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
        ("", "a manifest must be a map, not null"),
        ("[]", "a manifest must be a map, not a list"),
        ("hello", "a manifest must be a map, not a string"),
        ("data: {}", "a manifest needs `ccm:`"),
        ("ccm: []", "expected a map with `resources`, found a list"),
        ("ccm: {}", "there are no `resources`"),
        ("ccm: {resources: []}", "there are no resources"),
        ("ccm: {resources: {}}", "expected a list of resources, found a map"),
        ("ccm: {resources: [1]}", "expected a map with the resource type as its key"),
        ("ccm: {resources: [{}]}", "an entry needs a resource type"),
        ("ccm: {resources: [{file: }]}", "`file` needs resources below it"),
        ("ccm: {resources: [{file: x}]}", "`file` needs resources below it"),
        ("ccm: {resources: [{exec: [{a: b}]}]}", "expected a map of properties, found a string"),
        ("ccm: {resources: [{exec: [{a: , b: }]}]}", "found 2 keys"),
        ("ccm: {resources: [{exec: [{defaults: {name: x}}, a]}]}", "a name cannot be a default"),
        ("ccm: {resources: [{exec: a}], fail_on_error: maybe}", "expected `true` or `false`"),
        ("ccm: {resources: [{exec: [\"\"]}]}", "a name with its properties"),
        ("a: 1\na: 2\n", "duplicate key `a`"),
        ("a: [1", "unclosed bracket"),
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
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: unclosed bracket '['
     --> manifest.yaml:3:17
      |
    3 |     - file: {a: [1, 2
      |                 ^
    ");
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
    insta::assert_snapshot!(env.ccm(["apply", "latin1.yaml"]), @"
    exit: 1
    --- stderr ---
    error: cannot read manifest latin1.yaml
    caused by: latin1.yaml is not UTF-8: byte 9 of line 2 cannot be read
    ");
    insta::assert_snapshot!(env.ccm(["apply", "directory.yaml"]), @"
    exit: 1
    --- stderr ---
    error: cannot read manifest directory.yaml
    caused by: directory.yaml is a directory, not a regular file
    ");
    insta::assert_snapshot!(env.ccm(["apply", "fifo.yaml"]), @"
    exit: 1
    --- stderr ---
    error: cannot read manifest fifo.yaml
    caused by: fifo.yaml is a socket, FIFO or device, not a regular file
    ");
    insta::assert_snapshot!(env.ccm(["apply", "missing.yaml"]), @"
    exit: 1
    --- stderr ---
    error: cannot read manifest missing.yaml
    caused by: cannot open missing.yaml
    caused by: No such file or directory (os error 2)
    ");
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
        // The kernel ends what takes longer. Time of the processor does not depend on
        // what else the machine does.
        let script = "ulimit -t 20; exec \"$0\" validate manifest.yaml";
        let output = env.shell(script).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {}", output.status);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.len() < 20_000, "{name}: {} bytes of error", stderr.len());
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
    if ccm_testkit::lacks_root() {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let env = TestEnv::new();
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(env.path("locked")).unwrap();
    env.write("secret", "s");
    std::fs::set_permissions(env.path("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let ccm = env.copy_of_ccm();
    let nobody = |args: &[&str]| {
        let output = std::process::Command::new(&ccm)
            .args(args)
            .arg("--no-state")
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

#[test]
fn secrets_are_not_shown_with_what_is_wrong() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - archive:
        - /a.tgz: {url: "http://h/a.tgz", headers: {Authorization: "Bearer hush"}, password: hush, ownr: me}
        - /b.tgz:
            pasword: hush
            headers:
              Not valid: hush
              Authorization: [hush]
            password: [hush]
    - exec: {a: {environment: ["A=hush"], ownr: me}}
    - exec: {b: {environment: "A=hush"}}
"#,
    );
    let output = env.run(["validate", "manifest.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("unknown property `pasword`"), "{text}");
    assert!(text.contains("{Authorization: *************}, password: ****, ownr: me}"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}
