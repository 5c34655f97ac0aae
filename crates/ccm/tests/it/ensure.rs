//! `ccm ensure` and `ccm status`.

use crate::TestEnv;

#[test]
fn a_file_from_the_command_line() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x", "--noop"]), @"
    exit: 0
    --- stdout ---
      + file#[DIR]/f  content +1, [ME], mode 0644  (noop)
    ");
    assert!(!env.path("f").exists());
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x"]), @"
    exit: 0
    --- stdout ---
      + file#[DIR]/f  content +1, [ME], mode 0644
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x"]), @"
    exit: 0
    --- stdout ---
      = file#[DIR]/f  stable
    ");
    assert_eq!(env.read("f"), "x");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "absent"]), @"
    exit: 0
    --- stdout ---
      - file#[DIR]/f
    ");
    assert!(!env.path("f").exists());
}

#[test]
fn owners_may_bring_their_group() {
    let env = TestEnv::new();
    let me = format!("{}:{}", nix::unistd::geteuid(), nix::unistd::getegid());
    let output = env.run(["ensure", "file", "[DIR]/d", "directory", "--owner", &me, "--json"]);
    let event: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(event["properties"]["owner"], nix::unistd::geteuid().to_string());
    assert_eq!(event["properties"]["group"], nix::unistd::getegid().to_string());
    assert_eq!(event["properties"]["mode"], "0755");
    assert_eq!(event["final_ensure"], "directory");
}

#[test]
fn content_may_come_from_a_file() {
    let env = TestEnv::new();
    env.write("in", "from a file\n");
    assert!(env.run(["ensure", "file", "[DIR]/out", "--content-file", "in"]).status.success());
    assert_eq!(env.read("out"), "from a file\n");
    assert!(env.run(["ensure", "file", "[DIR]/copy", "--source", "in"]).status.success());
    assert_eq!(env.read("copy"), "from a file\n");
    let output = env.run(["ensure", "file", "[DIR]/x", "--content", "a", "--content-file", "in"]);
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn a_command_from_the_command_line() {
    let env = TestEnv::new();
    let args = ["ensure", "exec", "touch made", "--cwd", "[DIR]", "--creates", "[DIR]/made"];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      » exec#touch made
    ");
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      = exec#touch made  stable
    ");
    insta::assert_snapshot!(
        env.ccm(["ensure", "exec", "sh -c 'echo $A; exit 3'", "-e", "A=b", "--logoutput", "--returns", "3"]), @"
    exit: 0
    --- stdout ---
      | b
      » exec#sh -c 'echo $A; exit 3'
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "sleep 9", "--timeout", "100ms"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#sleep 9
            sleep exceeded its timeout of 100ms; ccm terminated its process group
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--exec-if", "false"]), @"
    exit: 0
    --- stdout ---
      = exec#true  stable
    ");
}

#[test]
fn control_at_the_command_line() {
    let env = TestEnv::new();
    let skipped = env.run(["ensure", "exec", "touch [DIR]/x", "--if", "false"]);
    assert_eq!(skipped.status.code(), Some(0));
    assert!(!env.path("x").exists());
    assert!(env.run(["ensure", "exec", "touch [DIR]/x", "--unless", "false"]).status.success());
    assert!(env.path("x").exists());
}

#[test]
fn states_are_shown() {
    let env = TestEnv::new();
    env.write("f", "abc");
    let status = env.run(["status", "file", "[DIR]/f", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["ensure"], "present");
    assert_eq!(status["metadata"]["size"], 3);
    let yaml = String::from_utf8(env.run(["info", "file", "[DIR]/nope"]).stdout).unwrap();
    assert!(yaml.contains("ensure: absent\n"), "{yaml}");
    insta::assert_snapshot!(env.ccm(["status", "exec", "true"]), @"
    exit: 1
    --- stderr ---
    error: the state of exec#true cannot be shown: a command has no state of its own: it runs, or its guards keep it from running
    ");
    insta::assert_snapshot!(env.ccm(["status", "fil", "[DIR]/f"]), @"
    exit: 64
    --- stderr ---
    error: unknown resource type `fil`
    hint: did you mean `file`?
    ");
    insta::assert_snapshot!(env.ccm(["status", "file", "relative"]), @"
    exit: 1
    --- stderr ---
    error: file#relative: name: file path must be absolute, `relative` is not
    ");
}

#[test]
fn names_and_versions_that_could_mean_more_are_refused() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "package", "app; rm -rf /"]), @r#"
    exit: 1
    --- stderr ---
    error: package#app; rm -rf /: name: package name contains dangerous characters: "app; rm -rf /"
    "#);
    insta::assert_snapshot!(env.ccm(["ensure", "pkg", "app", "1.0$(reboot)"]), @r#"
    exit: 1
    --- stderr ---
    error: package#app: ensure: version contains dangerous characters: "1.0$(reboot)"
    "#);
    insta::assert_snapshot!(env.ccm(["ensure", "pkg", "app", "latst"]), @"
    exit: 1
    --- stderr ---
    error: package#app: ensure: `latst` is neither a state nor a version
    hint: did you mean `latest`?
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "svc", "--", "-app"]), @r#"
    exit: 1
    --- stderr ---
    error: service#-app: name: service name must start with a letter or digit: "-app"
    "#);
    insta::assert_snapshot!(env.ccm(["ensure", "service", "app@"]), @r#"
    exit: 1
    --- stderr ---
    error: service#app@: name: "app@" is a template; name an instance of it, such as `app@one`
    "#);
    insta::assert_snapshot!(env.ccm(["ensure", "service", "app", "--enable", "--disable"]), @"
    exit: 64
    --- stderr ---
    error: the argument '--enable' cannot be used with '--disable'

    Usage: ccm ensure service --enable <NAME> [ENSURE]

    For more information, try '--help'.
    ");
}

#[test]
fn a_resource_that_cannot_be_is_an_error() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/no/f", "--content", "x"]), @"
    exit: 1
    --- stdout ---
      ✗ file#[DIR]/no/f
            [DIR]/no is not a directory: it does not exist
            hint: declare it in an earlier resource, with `ensure: directory`
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "f", "--content", "x"]), @"
    exit: 1
    --- stderr ---
    error: file#f: name: file path must be absolute, `f` is not
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--mode", "999"]), @r#"
    exit: 1
    --- stderr ---
    error: file#[DIR]/f: mode: `999` is not an octal mode such as "0644"
    "#);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let env = TestEnv::new();
    insta::assert_snapshot!(
        env.ccm(["ensure", "file", "relative", "--mode", "999", "--owner", "{{ nope }}"]),
        @r#"
    exit: 1
    --- stderr ---
    error: file#relative: owner: unknown name nope
     --> template:1:4
      |
    1 | {{ nope }}
      |    ^^^^
    error: file#relative: name: file path must be absolute, `relative` is not
    error: file#relative: mode: `999` is not an octal mode such as "0644"
    "#
    );
}

#[test]
fn status_resolves_the_templates_of_names_and_properties() {
    let env = TestEnv::new();
    env.write("f", "x");
    env.write(".hiera", "data: {dir: '[DIR]'}\n");
    let output = env.run(["status", "file", "{{ Data.dir }}/f", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["name"], env.path("f").to_str().unwrap());
    assert_eq!(
        (status["ensure"].as_str(), &status["metadata"]["size"]),
        (Some("present"), &1.into())
    );
    env.write("src/a", "a\n");
    let (target, source) = ("[DIR]/t", "{{ Data.dir }}/src");
    let output = env.run(["status", "scaffold", target, "--source", source, "--json"]);
    assert!(output.status.success(), "{output:?}");
}
