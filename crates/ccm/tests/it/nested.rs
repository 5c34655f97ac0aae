//! `apply` resources: manifests within manifests.

use std::fmt::Write as _;

use ccm_testkit::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::TestEnv;

/// A manifest in three levels, each with files beside it.
fn site() -> TestEnv {
    let env = TestEnv::new();
    env.write("files/a", "a\n");
    env.write("sub/files/b", "b\n");
    env.write("sub/lib/files/c", "c\n");
    env.manifest(
        r#"
ccm:
  pre_message: site begins
  post_message: site ends
  resources:
    - file: {name: [DIR]/out, ensure: directory, [ME], mode: "0755"}
    - file: {name: [DIR]/out/a, source: files/a, [ME], mode: "0644"}
    - apply: {name: sub/child.yaml}
    - file: {name: [DIR]/out/a2, source: files/a, [ME], mode: "0644"}
    - exec:
        - notify: {command: touch [DIR]/out/notified, refresh_only: true, subscribe: ["apply#sub/child.yaml"]}
        - "true": {require: ["file#[DIR]/out/c", "apply#sub/child.yaml"]}
"#,
    );
    env.write(
        "sub/child.yaml",
        r#"
ccm:
  pre_message: child begins
  post_message: child ends
  resources:
    - file: {name: [DIR]/out/b, source: files/b, [ME], mode: "0644", require: ["file#[DIR]/out/a"]}
    - apply: {name: lib/grandchild.yaml}
    - file: {name: [DIR]/out/b2, source: files/b, [ME], mode: "0644"}
"#,
    );
    env.write(
        "sub/lib/grandchild.yaml",
        r#"
ccm:
  resources:
    - file: {name: [DIR]/out/c, source: files/c, alias: c, [ME], mode: "0644"}
"#,
    );
    env
}

#[test]
fn manifests_within_manifests() {
    let env = site();
    let before = env.names();
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--noop"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      + file#[DIR]/out  directory, [ME], mode 0755
      + file#[DIR]/out/a  content +1, [ME], mode 0644
        apply#sub/child.yaml
        + file#[DIR]/out/b  content +1, [ME], mode 0644
          apply#lib/grandchild.yaml
          + file#[DIR]/out/c (c)  content +1, [ME], mode 0644
        + file#[DIR]/out/b2  content +1, [ME], mode 0644
      + file#[DIR]/out/a2  content +1, [ME], mode 0644
      ↻ exec#notify  run, because apply#sub/child.yaml changes
      » exec#true

    6 to create, 1 to refresh, 1 to run
    ");
    assert_eq!(env.names(), before, "noop changed something");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    site begins
      + file#[DIR]/out  directory, [ME], mode 0755
      + file#[DIR]/out/a  content +1, [ME], mode 0644
    child begins
        apply#sub/child.yaml
        + file#[DIR]/out/b  content +1, [ME], mode 0644
          apply#lib/grandchild.yaml
          + file#[DIR]/out/c (c)  content +1, [ME], mode 0644
        + file#[DIR]/out/b2  content +1, [ME], mode 0644
    child ends
      + file#[DIR]/out/a2  content +1, [ME], mode 0644
      ↻ exec#notify  ran, because apply#sub/child.yaml changed
      » exec#true

    Applied manifest.yaml in [TIME]: 6 created, 1 refreshed, 1 ran
    site ends
    ");
    for (name, text) in [("a", "a\n"), ("b", "b\n"), ("c", "c\n"), ("a2", "a\n"), ("b2", "b\n")] {
        assert_eq!(env.read(&format!("out/{name}")), text);
    }
    assert!(env.path("out/notified").exists());
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 0
    --- stdout ---
    site begins
    child begins
    child ends
      » exec#true
    site ends
    ");
}

#[test]
fn events_of_children_come_before_that_of_their_parent() {
    let env = site();
    let output = env.run(["apply", "manifest.yaml", "--json", "--session", "[DIR]/session"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = report["events"].as_array().unwrap();
    let names: Vec<_> = events
        .iter()
        .map(|event| {
            let name = event["name"].as_str().unwrap();
            name.rsplit('/').next().unwrap()
        })
        .collect();
    let order =
        ["out", "a", "b", "c", "grandchild.yaml", "b2", "child.yaml", "a2", "notify", "true"];
    assert_eq!(names, order);
    let ids: Vec<_> = events.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert_eq!(report["summary"]["total"], 10);
    let child = &events[6];
    assert_eq!((&child["type"], &child["provider"]), (&json!("apply"), &json!("ccmmanifest")));
    assert_eq!(child["changed"], true);
    let status = &child["status"];
    assert_eq!(status["protocol"], "io.choria.ccm.v1.resource.apply.state");
    assert_eq!(
        (&status["resource_count"], &status["changed_count"], &status["failed_count"]),
        (&json!(3), &json!(3), &json!(0))
    );
    let recorded = env.run(["session", "report", "--json", "--session", "[DIR]/session"]);
    let recorded: Value = serde_json::from_slice(&recorded.stdout).unwrap();
    assert_eq!(recorded["events"], report["events"]);
}

#[test]
fn noop_goes_down_and_does_not_come_back() {
    let env = TestEnv::new();
    env.write("child.yaml", "ccm: {resources: [{exec: [touch [DIR]/child]}]}\n");
    env.manifest(
        r#"
ccm:
  resources:
    - apply: {name: child.yaml, noop: true}
    - exec:
        - touch [DIR]/parent: {}
        - touch [DIR]/refreshed: {refresh_only: true, subscribe: ["apply#child.yaml"]}
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 0
    --- stdout ---
        apply#child.yaml
        » exec#touch [DIR]/child  (noop)
      » exec#touch [DIR]/parent
    ");
    assert!(!env.path("child").exists() && env.path("parent").exists());
    assert!(!env.path("refreshed").exists(), "a preview moves nothing real");
    env.manifest(
        "ccm: {resources: [{apply: {name: child.yaml, noop: false, health_check_only: false}}]}\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report", "--noop"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

        apply#child.yaml
        » exec#touch [DIR]/child
    --- stderr ---
    warning: apply#child.yaml: `noop: false` has no effect: the mode is already on in the parent manifest
    ");
    assert!(!env.path("child").exists());
}

#[test]
fn health_checks_go_down() {
    let env = TestEnv::new();
    env.write(
        "child.yaml",
        "ccm: {resources: [{exec: [{touch [DIR]/child: {health_checks: [{command: \"sh -c 'test -e [DIR]/sign || exit 2'\", name: sign}]}}]}]}\n",
    );
    env.manifest(
        r"
ccm:
  resources:
    - apply: {name: child.yaml}
    - exec: [touch [DIR]/parent]
",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--monitor-only"]), @"
    exit: 1
    --- stdout ---
        apply#child.yaml
        ✗ exec#touch [DIR]/child
              health check sign CRITICAL

    Failures
      ✗ exec#touch [DIR]/child  (at [DIR]/child.yaml:1:28)
            health check sign CRITICAL

    Checked manifest.yaml in [TIME]: 1 failed, 1 stable; health checks: 1 critical
    ");
    assert!(!env.path("child").exists() && !env.path("parent").exists());
    env.write("sign", "");
    assert!(env.run(["apply", "manifest.yaml", "--monitor-only"]).status.success());
    env.manifest(
        "ccm: {resources: [{apply: {name: child.yaml, health_check_only: true}}, {exec: [touch [DIR]/parent]}]}\n",
    );
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let only = |at: usize| report["events"][at]["health_check_only"].clone();
    assert_eq!((only(0), only(1), only(2)), (json!(true), json!(true), Value::Null));
    assert!(!env.path("child").exists() && env.path("parent").exists());
    let preview = env.run(["apply", "manifest.yaml", "--noop", "--json"]);
    let preview: Value = serde_json::from_slice(&preview.stdout).unwrap();
    assert_eq!(preview["events"][0]["changed"], false, "it would only be looked at");
    assert_eq!(preview["summary"]["health_checks"]["ok"], 0);
    env.manifest("ccm: {resources: [{apply: {name: child.yaml, health_check_only: false}}]}\n");
    let output = env.run(["apply", "manifest.yaml", "--monitor-only"]);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("`health_check_only: false` has no effect"), "{log}");
    assert!(!env.path("child").exists());
    // Nothing is changed anyway: a child in noop is looked at too.
    env.manifest("ccm: {resources: [{apply: {name: child.yaml, noop: true}}]}\n");
    let output = env.run(["apply", "manifest.yaml", "--monitor-only", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["health_checks"]["ok"], 1, "{report}");
    assert!(!env.path("child").exists());
}

/// A chain of manifests down to a depth, each with a file of its own.
fn chain(env: &TestEnv, depth: usize) {
    for level in 0..=depth {
        let mut text = format!(
            "ccm:\n  resources:\n    - exec: [{{touch {}/ran{level}: {{}}}}]\n",
            env.dir().display()
        );
        if level < depth {
            let _ = writeln!(text, "    - apply: {{name: level{}.yaml}}", level + 1);
        }
        env.write(&format!("level{level}.yaml"), &text);
    }
}

#[test]
fn ten_levels_run_and_the_eleventh_does_not() {
    let env = TestEnv::new();
    chain(&env, 10);
    let output = env.run(["apply", "level0.yaml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!((0..=10).all(|level| env.path(&format!("ran{level}")).exists()));
    let env = TestEnv::new();
    chain(&env, 11);
    insta::assert_snapshot!(env.ccm(["apply", "level0.yaml", "--no-report"]), @"
    exit: 1
    --- stdout ---
      » exec#touch [DIR]/ran0
        apply#level1.yaml
        » exec#touch [DIR]/ran1
          apply#level2.yaml
          » exec#touch [DIR]/ran2
            apply#level3.yaml
            » exec#touch [DIR]/ran3
              apply#level4.yaml
              » exec#touch [DIR]/ran4
                apply#level5.yaml
                » exec#touch [DIR]/ran5
                  apply#level6.yaml
                  » exec#touch [DIR]/ran6
                    apply#level7.yaml
                    » exec#touch [DIR]/ran7
                      apply#level8.yaml
                      » exec#touch [DIR]/ran8
                        apply#level9.yaml
                        » exec#touch [DIR]/ran9
                          apply#level10.yaml
                          » exec#touch [DIR]/ran10
                          ✗ apply#level11.yaml
                                manifests are nested too deeply; the limit is 10 levels
                                   0 [DIR]/level0.yaml
                                   1 [DIR]/level1.yaml
                                   2 [DIR]/level2.yaml
                                   3 [DIR]/level3.yaml
                                   4 [DIR]/level4.yaml
                                   5 [DIR]/level5.yaml
                                   6 [DIR]/level6.yaml
                                   7 [DIR]/level7.yaml
                                   8 [DIR]/level8.yaml
                                   9 [DIR]/level9.yaml
                                  10 [DIR]/level10.yaml
                                  11 [DIR]/level11.yaml
                                hint: if a manifest applies itself, stop the recursion with `control`
    ");
    assert!((0..=10).all(|level| env.path(&format!("ran{level}")).exists()));
    assert!(!env.path("ran11").exists());
}

#[test]
fn the_depth_can_be_set() {
    let env = TestEnv::new();
    chain(&env, 12);
    assert!(env.run(["apply", "level0.yaml", "--max-depth", "12"]).status.success());
    assert!(env.path("ran12").exists());
    let output = env.command(["apply", "level0.yaml"]).env("CCM_MAX_DEPTH", "12").output().unwrap();
    assert!(output.status.success());
    let env = TestEnv::new();
    chain(&env, 2);
    let output = env.run(["apply", "level0.yaml", "--max-depth", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(env.path("ran1").exists() && !env.path("ran2").exists());
}

#[test]
fn whoever_is_not_trusted_applies_nothing_further() {
    let env = TestEnv::new();
    env.write("other.yaml", "ccm: {resources: [{exec: [touch [DIR]/other]}]}\n");
    env.write(
        "child.yaml",
        "ccm:\n  resources:\n    - exec: [touch [DIR]/child]\n    - apply: {name: other.yaml}\n",
    );
    env.manifest("ccm: {resources: [{apply: {name: child.yaml, allow_apply: false}}]}\n");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 1
    --- stdout ---
      ✗ apply#child.yaml
            manifest [DIR]/child.yaml is invalid
            [DIR]/child.yaml:4:7: apply#other.yaml: this manifest must not apply others: its parent sets `allow_apply: false` (remove the `apply` resource, or `allow_apply: false` in the parent)
    --- stderr ---
    error: apply#other.yaml: this manifest must not apply others: its parent sets `allow_apply: false`
     --> [DIR]/child.yaml:4:7
      |
    4 |     - apply: {name: other.yaml}
      |       ^^^^^
      |
      = hint: remove the `apply` resource, or `allow_apply: false` in the parent
    ");
    assert!(!env.path("child").exists() && !env.path("other").exists());
    env.manifest("ccm: {resources: [{apply: {name: other.yaml, allow_apply: false}}]}\n");
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
}

#[test]
fn what_fails_below_fails_above_and_leaves_the_rest_alone() {
    let env = TestEnv::new();
    env.write("sub/file", "sub\n");
    env.write("file", "top\n");
    env.write(
        "sub/child.yaml",
        "data: {which: sub}\nccm:\n  post_message: never\n  resources:\n    - exec: [\"false\", \"true\", {unmet: {command: \"true\", require: [\"exec#false\"]}}]\n",
    );
    env.manifest(
        r#"
data: {which: top}
ccm:
  resources:
    - apply: {name: sub/child.yaml, data: {which: handed}, noop: false}
    - exec:
        - echo {{ Data.which }}: {logoutput: true}
        - dependent: {command: "true", require: ["apply#sub/child.yaml"]}
    - file: {name: [DIR]/copy, source: file, [ME], mode: "0644"}
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 1
    --- stdout ---
        apply#sub/child.yaml
        ✗ exec#false
              desired state not achieved: the command exited with code 1, not 0
        » exec#true
        · exec#unmet  skipped, requires exec#false
      | exec#echo top: top
      » exec#echo top
      · exec#dependent  skipped, requires apply#sub/child.yaml
      + file#[DIR]/copy  content +1, [ME], mode 0644

    Failures
      ✗ exec#false  (at [DIR]/sub/child.yaml:5:14)
            desired state not achieved: the command exited with code 1, not 0

    Applied manifest.yaml in [TIME]: 1 created, 2 ran, 1 failed, 2 skipped for unmet requirements
    ");
    assert_eq!(env.read("copy"), "top\n");
}

#[test]
fn an_invalid_child_is_the_failure_of_its_resource() {
    let env = TestEnv::new();
    env.write("child.yaml", "ccm:\n  resources:\n    - exec:\n        - ls: {comand: x, returns: [a]}\n        - touch [DIR]/child:\n");
    env.write(
        "rules.yaml",
        "data:\n  # @require\n  port: ''\nccm: {resources: [{exec: [touch [DIR]/rules]}]}\n",
    );
    env.manifest(
        "ccm:\n  resources:\n    - apply: [child.yaml, rules.yaml, missing.yaml, {rules.yaml/../x: {}}]\n    - exec: [touch [DIR]/parent]\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 1
    --- stdout ---
      ✗ apply#child.yaml
            manifest [DIR]/child.yaml is invalid
            [DIR]/child.yaml:4:16: exec#ls: unknown property `comand` (did you mean `command`?)
            [DIR]/child.yaml:4:37: exec#ls: returns: expected a whole number, found a string
      ✗ apply#rules.yaml
            manifest [DIR]/rules.yaml is invalid
            [DIR]/rules.yaml:3:3: key `port` is required but has no value
      ✗ apply#missing.yaml
            cannot read manifest [DIR]/missing.yaml: cannot open [DIR]/missing.yaml: No such file or directory (os error 2)
      ✗ apply#rules.yaml/../x
            cannot read manifest [DIR]/rules.yaml/../x: cannot open [DIR]/rules.yaml/../x: No such file or directory (os error 2)
      » exec#touch [DIR]/parent
    --- stderr ---
    error: exec#ls: unknown property `comand`
     --> [DIR]/child.yaml:4:16
      |
    4 |         - ls: {comand: x, returns: [a]}
      |                ^^^^^^
      |
      = hint: did you mean `command`?

    error: exec#ls: returns: expected a whole number, found a string
     --> [DIR]/child.yaml:4:37
      |
    4 |         - ls: {comand: x, returns: [a]}
      |                                     ^

    error: key `port` is required but has no value
     --> [DIR]/rules.yaml:3:3
      |
    3 |   port: ''
      |   ^^^^
    ");
    assert!(!env.path("child").exists() && !env.path("rules").exists());
    assert!(env.path("parent").exists());
    env.manifest("ccm:\n  resources:\n    - apply: {name: rules.yaml, data: {port: 80}}\n");
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
}

#[test]
fn an_interrupt_in_a_child_ends_the_whole_run() {
    let env = TestEnv::new();
    env.write(
        "child.yaml",
        "ccm: {resources: [{exec: [{wait: {command: \"sh -c 'touch [DIR]/begun; sleep 60'\"}}, touch [DIR]/child]}]}\n",
    );
    env.manifest("ccm: {resources: [{apply: {name: child.yaml}}, {exec: [touch [DIR]/parent]}]}\n");
    let child = env
        .command(["apply", "manifest.yaml", "--report-file", "report.json"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the child manifest", || env.path("begun").exists());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert!(!env.path("child").exists() && !env.path("parent").exists());
    let report: Value = serde_json::from_str(&env.read("report.json")).unwrap();
    let events = report["events"].as_array().unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[1]["error"][0],
        "desired state not achieved: interrupted after 1 of 2 resources"
    );
}

#[test]
fn urls_are_refused_without_showing_credentials() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - apply: [\"https://me:hunter2@host/m.tgz\"]\n    - exec: [{x: {require: [\"apply#https://me:hunter2@host/m.tgz\"]}}]\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: apply#https://[redacted]@host/m.tgz: name: `https://[redacted]@host/m.tgz` is a URL, not a path
     --> manifest.yaml:3:15
      |
    3 |     - apply: ["https://**********@host/m.tgz"]
      |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: use the path of a local manifest
    "#);
    let output = env.run(["validate", "manifest.yaml", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn validation_looks_at_children_that_are_there() {
    let env = TestEnv::new();
    env.write("good.yaml", "ccm: {resources: [{exec: [\"true\"]}, {apply: {name: bad.yaml}}]}\n");
    env.write("bad.yaml", "ccm:\n  resources:\n    - exec:\n        - ls: {comand: x}\n");
    env.write("off.yaml", "nonsense: 1\n");
    env.manifest(
        "ccm:\n  resources:\n    - apply:\n        - good.yaml:\n        - later.yaml:\n        - off.yaml: {control: {if: \"false\"}}\n        - manifest.yaml:\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: exec#ls: unknown property `comand`
     --> [DIR]/bad.yaml:4:16
      |
    4 |         - ls: {comand: x}
      |                ^^^^^^
      |
      = hint: did you mean `command`?

    error: apply#manifest.yaml: the manifest applies itself without end
     --> manifest.yaml:7:11
      |
    7 |         - manifest.yaml:
      |           ^^^^^^^^^^^^^
      |
      = hint: stop the recursion with `control`
    ");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml", "--json"]), @r#"
    exit: 1
    --- stdout ---
    {
      "valid": false,
      "findings": [
        {
          "severity": "error",
          "message": "unknown property `comand`",
          "file": "[DIR]/bad.yaml",
          "line": 4,
          "column": 16,
          "resource": "exec#ls",
          "hint": "did you mean `command`?"
        },
        {
          "severity": "error",
          "message": "the manifest applies itself without end",
          "file": "manifest.yaml",
          "line": 7,
          "column": 11,
          "resource": "apply#manifest.yaml",
          "hint": "stop the recursion with `control`"
        }
      ]
    }
    "#);
    env.write("bad.yaml", "ccm: {resources: [{exec: [ls]}]}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: apply#manifest.yaml: the manifest applies itself without end
     --> manifest.yaml:7:11
      |
    7 |         - manifest.yaml:
      |           ^^^^^^^^^^^^^
      |
      = hint: stop the recursion with `control`
    ");
}

#[test]
fn types_are_named_with_their_article() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{apply: {name: c.yaml, ensure: absent}}]}\n");
    let output = env.run(["validate", "manifest.yaml"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("ensure cannot be `absent` for an apply"), "{text}");
}

#[test]
fn there_is_no_apply_without_a_manifest() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["status", "apply", "child.yaml"]), @"
    exit: 1
    --- stderr ---
    error: the state of apply#child.yaml cannot be shown: a manifest has no state of its own, only its resources have
    ");
    assert_eq!(env.run(["ensure", "apply", "child.yaml"]).status.code(), Some(64));
}

#[test]
fn logs_of_a_child_name_its_manifest() {
    let env = TestEnv::new();
    env.write("child.yaml", "ccm: {resources: [{exec: [\"true\"]}]}\n");
    env.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    let log = String::from_utf8(env.run(["--debug", "apply", "manifest.yaml"]).stderr).unwrap();
    let line = log.lines().find(|line| line.contains("running")).unwrap();
    assert!(line.contains("manifest=\"child.yaml\""), "{log}");
    let log = String::from_utf8(env.run(["--info", "apply", "manifest.yaml"]).stderr).unwrap();
    assert!(
        log.contains("INFO applied manifest=\"child.yaml\" resources=1 changed=1 failed=0"),
        "{log}"
    );
    env.write("child.yaml", "ccm: {resources: [{exec: [\"true\", \"false\"]}]}\n");
    let log = String::from_utf8(env.run(["--info", "apply", "manifest.yaml"]).stderr).unwrap();
    let wanted =
        "ERROR child manifest failed manifest=\"child.yaml\" resources=2 changed=1 failed=1";
    assert!(log.contains(wanted), "{log}");
    // Without a log, the rows say it.
    assert!(env.run(["apply", "manifest.yaml"]).stderr.is_empty());
}

#[test]
fn the_example_works_as_it_says() {
    let env = TestEnv::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nested");
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    for name in ["manifest.yaml", "site/blog.yaml", "site/shop.yaml", "site/page.templ"] {
        let text = std::fs::read_to_string(format!("{example}/{name}")).unwrap();
        let text = text
            .replace("/srv/nested", "[DIR]/srv")
            .replace("owner: root", &format!("owner: \"{uid}\""))
            .replace("group: root", &format!("group: \"{gid}\""));
        env.write(name, &text);
    }
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    manifest.yaml is valid: 4 resources, 2 manifests below
    ");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 0
    --- stdout ---
      + file#[DIR]/srv  directory, [ME], mode 0755
        apply#site/blog.yaml
        + file#[DIR]/srv/blog.html  content +1, [ME], mode 0644
              health check title OK
        apply#site/shop.yaml
        + file#[DIR]/srv/shop.html  content +1, [ME], mode 0644
              health check title OK
      ↻ exec#record the change  ran, because apply#site/blog.yaml, apply#site/shop.yaml changed
    ");
    assert_eq!(env.read("srv/blog.html"), "<title>My blog</title>\n");
    assert_eq!(env.read("srv/shop.html"), "<title>Shop</title>\n");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--monitor-only", "--no-report"]), @"
    exit: 0
    --- stdout ---
        apply#site/blog.yaml
        = file#[DIR]/srv/blog.html  stable
              health check title OK
        apply#site/shop.yaml
        = file#[DIR]/srv/shop.html  stable
              health check title OK
    ");
    let again = env.run(["apply", "manifest.yaml", "--detailed-exitcodes"]);
    assert_eq!(again.status.code(), Some(0), "the second run is stable");
}

#[test]
fn what_a_template_brings_below_is_checked_too() {
    let env = TestEnv::new();
    env.write("child.yaml", "ccm: {resources_jet_file: r.jet}\n");
    env.write("r.jet", "[[ if true ]]\n- apply:\n    - other.yaml:\n[[ end ]]\n");
    env.write("other.yaml", "ccm: {resources: [{exec: [touch [DIR]/other]}]}\n");
    env.manifest("ccm: {resources: [{apply: {name: child.yaml, allow_apply: false}}]}\n");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @"
    exit: 1
    --- stdout ---
      ✗ apply#child.yaml
            manifest [DIR]/child.yaml is invalid
            [DIR]/r.jet (rendered):3:7: apply#other.yaml: this manifest must not apply others: its parent sets `allow_apply: false` (remove the `apply` resource, or `allow_apply: false` in the parent)
    --- stderr ---
    error: apply#other.yaml: this manifest must not apply others: its parent sets `allow_apply: false`
     --> [DIR]/r.jet (rendered):3:7
      |
    3 |     - other.yaml:
      |       ^^^^^^^^^^
      |
      = hint: remove the `apply` resource, or `allow_apply: false` in the parent
    ");
    assert!(!env.path("other").exists());
    env.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
    assert!(env.path("other").exists());
}
