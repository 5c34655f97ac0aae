//! `ccm ensure` and `ccm status`.

use crate::TestEnv;

#[test]
fn a_file_from_the_command_line() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x", "--noop"]), @"");
    assert!(!env.path("f").exists());
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x"]), @"");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--content", "x"]), @"");
    assert_eq!(env.read("f"), "x");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "absent"]), @"");
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
    insta::assert_snapshot!(env.ccm(args), @"");
    insta::assert_snapshot!(env.ccm(args), @"");
    insta::assert_snapshot!(
        env.ccm(["ensure", "exec", "sh -c 'echo $A; exit 3'", "-e", "A=b", "--logoutput", "--returns", "3"]), @"");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "sleep 9", "--timeout", "100ms"]), @"");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--exec-if", "false"]), @"");
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
    insta::assert_snapshot!(env.ccm(["status", "exec", "true"]), @"");
    insta::assert_snapshot!(env.ccm(["status", "fil", "[DIR]/f"]), @"");
    insta::assert_snapshot!(env.ccm(["status", "file", "relative"]), @"");
}

#[test]
fn a_resource_that_cannot_be_is_an_error() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/no/f", "--content", "x"]), @"");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "f", "--content", "x"]), @"");
    insta::assert_snapshot!(env.ccm(["ensure", "file", "[DIR]/f", "--mode", "999"]), @"");
}
