//! Health checks: from a manifest, from the command line, and nothing but them.

use std::time::{Duration, Instant};

use ccm_testkit::{children, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::TestEnv;

/// A plugin that says something, gives figures and exits with a code.
fn plugin(env: &TestEnv, name: &str, says: &str, code: i32) {
    let script = format!("#!/bin/sh\necho '{says} | time=1ms'\necho more\nexit {code}\n");
    let path = env.write(name, &script);
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn plugins(env: &TestEnv) {
    for (name, says, code) in [
        ("check_ok", "OK - all fine", 0),
        ("check_warn", "WARNING - slow", 1),
        ("check_crit", "CRITICAL - refused", 2),
        ("check_odd", "what?", 42),
    ] {
        plugin(env, name, says, code);
    }
}

const MANIFEST: &str = r#"
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644", content: x}
        - [DIR]/fine: {health_checks: [{command: "[DIR]/check_ok -H a"}]}
        - [DIR]/slow: {health_checks: [{command: [DIR]/check_warn, name: speed, format: nagios}]}
        - [DIR]/bad:
            health_checks:
              - {command: [DIR]/check_crit, tries: 2, try_sleep: 10ms}
              - {command: [DIR]/check_ok}
              - {command: [DIR]/check_odd}
        - [DIR]/plain: {}
    - exec:
        - after: {command: touch [DIR]/after, require: ["file#[DIR]/bad"]}
"#;

#[test]
fn warnings_are_told_and_failures_fail() {
    let env = TestEnv::new();
    plugins(&env);
    env.manifest(MANIFEST);
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 1
    --- stdout ---
      + file#[DIR]/fine  content +1, [ME], mode 0644
            health check check_ok OK: OK - all fine
      + file#[DIR]/slow  content +1, [ME], mode 0644
            health check speed WARNING: WARNING - slow
      ✗ file#[DIR]/bad  content +1, [ME], mode 0644
            health check check_ok OK: OK - all fine
            health check check_crit CRITICAL after 2 tries: CRITICAL - refused …
      + file#[DIR]/plain  content +1, [ME], mode 0644
      · exec#after  skipped, requires file#[DIR]/bad

    Failures
      ✗ file#[DIR]/bad  (at manifest.yaml:8:11)
            health check check_ok OK: OK - all fine
            health check check_crit CRITICAL after 2 tries: CRITICAL - refused
            health check check_odd UNKNOWN: what?

    Applied manifest.yaml in [TIME]: 3 created, 1 failed, 1 skipped for unmet requirements; health checks: 2 ok, 1 warning, 1 critical, 1 unknown
    ");
    assert!(!env.path("after").exists(), "it requires what is not healthy");
    let code = |args: [&str; 3]| env.run(args).status.code();
    assert_eq!(code(["apply", "manifest.yaml", "--detailed-exitcodes"]), Some(4));
}

#[test]
fn a_preview_checks_nothing() {
    let env = TestEnv::new();
    plugins(&env);
    env.manifest(MANIFEST);
    let before = env.names();
    let output = env.run(["apply", "manifest.yaml", "--noop", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        report["events"].as_array().unwrap().iter().all(|event| event["health_check"].is_null())
    );
    assert_eq!(env.names(), before);
}

#[test]
fn monitoring_changes_nothing_and_checks_everything() {
    let env = TestEnv::new();
    plugins(&env);
    env.manifest(MANIFEST);
    let before = env.names();
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--monitor-only"]), @"
    exit: 1
    --- stdout ---
      = file#[DIR]/fine  stable
            health check check_ok OK: OK - all fine
      = file#[DIR]/slow  stable
            health check speed WARNING: WARNING - slow
      ✗ file#[DIR]/bad
            health check check_ok OK: OK - all fine
            health check check_crit CRITICAL after 2 tries: CRITICAL - refused …
      · exec#after  skipped, requires file#[DIR]/bad

    Failures
      ✗ file#[DIR]/bad  (at manifest.yaml:8:11)
            health check check_ok OK: OK - all fine
            health check check_crit CRITICAL after 2 tries: CRITICAL - refused
            health check check_odd UNKNOWN: what?

    Checked manifest.yaml in [TIME]: 1 failed, 1 skipped for unmet requirements, 3 stable; health checks: 2 ok, 1 warning, 1 critical, 1 unknown
    ");
    assert_eq!(env.names(), before);
}

#[test]
fn monitoring_does_not_preview() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let output = env.run(["apply", "manifest.yaml", "--monitor-only", "--noop"]);
    assert_eq!(output.status.code(), Some(64));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("--monitor-only") && stderr.contains("--noop"), "{stderr}");
}

#[test]
fn results_are_in_events_states_and_summary() {
    let env = TestEnv::new();
    plugins(&env);
    env.manifest(MANIFEST);
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for place in ["/events/2/health_check", "/events/2/status/health_check"] {
        for result in report.pointer_mut(place).unwrap().as_array_mut().unwrap() {
            let took = result.as_object_mut().unwrap().remove("duration").unwrap();
            assert!(took.as_u64().unwrap() > 0);
        }
    }
    let event = &report["events"][2];
    let results = json!([
        {"status": 2, "tries": 2, "output": "CRITICAL - refused", "name": "check_crit"},
        {"status": 0, "tries": 1, "output": "OK - all fine", "name": "check_ok"},
        {"status": 3, "tries": 1, "output": "what?", "name": "check_odd"},
    ]);
    assert_eq!(event["health_check"], results);
    assert_eq!(event["status"]["health_check"], results);
    assert_eq!((&event["failed"], &event["changed"]), (&json!(true), &json!(true)));
    assert_eq!(event["status"]["stable"], false);
    assert_eq!(event["error"].as_array().unwrap().len(), 2);
    assert!(event.get("health_check_only").is_none());
    assert!(report["events"][3].get("health_check").is_none());
    let counts = json!({"ok": 2, "warning": 1, "critical": 1, "unknown": 1});
    assert_eq!(report["summary"]["health_checks"], counts);
    assert_eq!(
        report["events"][0]["properties"]["health_checks"][0]["command"],
        format!("{} -H a", env.path("check_ok").display())
    );

    let output = env.run(["apply", "manifest.yaml", "--json", "--monitor-only"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = report["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["health_check_only"] == true));
    assert_eq!(report["summary"]["health_checks"], counts);
}

#[test]
fn checks_at_the_command_line() {
    let env = TestEnv::new();
    plugins(&env);
    let check = "[DIR]/check_ok --where '{{ 1 + 1 }}'";
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--check", check, "--check", "[DIR]/check_warn"]), @"
    exit: 0
    --- stdout ---
      » exec#true
            health check check_ok OK: OK - all fine
            health check check_warn WARNING after 5 tries: WARNING - slow
    ");
    let script = "sh -c 'echo x >> [DIR]/tries; test $(wc -l < [DIR]/tries) = 3'";
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--check", script, "--check-tries", "5", "--check-sleep", "10ms"]), @"
    exit: 0
    --- stdout ---
      » exec#true
            health check sh OK after 3 tries
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--check", "[DIR]/check_crit"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#true
            health check check_crit CRITICAL after 5 tries: CRITICAL - refused
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--check", "x", "--check-sleep", "soon"]), @"
    exit: 1
    --- stderr ---
    error: exec#true: health_checks: `x`: try_sleep: `soon` is not a duration: write numbers with units, such as `30s`, `5m` or `1h30m`
    ");
    for args in [
        ["ensure", "exec", "true", "--check-tries", "2"],
        ["ensure", "exec", "true", "--check-sleep", "2s"],
    ] {
        assert_eq!(env.run(args).status.code(), Some(64), "{args:?}");
    }
    assert_eq!(
        env.run(["ensure", "exec", "true", "--check", "x", "--check-tries", "0"]).status.code(),
        Some(64)
    );
}

#[test]
fn wrong_checks_are_found_with_the_manifest() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - {command: check_x, tries: 0, timeout: soon}
              - {name: nothing}
              - {command: check_x, format: goss}
              - goss_rules: {port: {"tcp:80": {listening: true}}}
              - {comand: check_x}
              - check_x
"#,
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: exec#true: health_checks: `check_x`: tries: must be at least 1, not 0
     --> manifest.yaml:7:17
      |
    7 |               - {command: check_x, tries: 0, timeout: soon}
      |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: `check_x`: timeout: `soon` is not a duration: write numbers with units, such as `30s`, `5m` or `1h30m`
     --> manifest.yaml:7:17
      |
    7 |               - {command: check_x, tries: 0, timeout: soon}
      |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: `nothing`: a check needs a `command` or `goss_rules`
     --> manifest.yaml:8:17
      |
    8 |               - {name: nothing}
      |                 ^^^^^^^^^^^^^^^

    error: exec#true: health_checks: `check_x`: format: `goss` is for rules, a command has `nagios`
     --> manifest.yaml:9:17
      |
    9 |               - {command: check_x, format: goss}
      |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: number 5: a check needs a `command` or `goss_rules`
      --> manifest.yaml:11:17
       |
    11 |               - {comand: check_x}
       |                 ^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: unknown property `comand`
      --> manifest.yaml:11:18
       |
    11 |               - {comand: check_x}
       |                  ^^^^^^
       |
       = hint: did you mean `command`?

    error: exec#true: health_checks: expected a map, found a string
      --> manifest.yaml:12:17
       |
    12 |               - check_x
       |                 ^^^^^^^
    ");
}

#[test]
fn an_interrupt_ends_the_wait_between_tries() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - {command: "sh -c 'touch [DIR]/asked; exit 2'", tries: 3, try_sleep: 10m}
        - touch [DIR]/never:
"#,
    );
    let child = env.command(["apply", "manifest.yaml"]).spawn().unwrap();
    wait_until("the first try", || env.path("asked").exists());
    let pid = child.id().cast_signed();
    wait_until("the end of the first try", || children(pid).is_empty());
    let begin = Instant::now();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(!env.path("never").exists());
}
