//! Goss rules: in health checks, in requests, and by themselves.

use std::time::{Duration, Instant};

use ccm_testkit::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::TestEnv;

const MANIFEST: &str = r#"
data: {mode: "0644", size: 1}
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644", content: x}
        - [DIR]/fine:
            health_checks:
              - goss_rules: {file: {"[DIR]/fine": {exists: true, mode: "{{ Data.mode }}", size: "{{ Data.size }}"}}}
        - [DIR]/bad:
            health_checks:
              - name: content
                goss_rules:
                  file:
                    [DIR]/bad: {exists: true, contents: [y], title: "its content"}
                    [DIR]/none: {exists: true, mode: "0644"}
                tries: 2
                try_sleep: 10ms
              - {goss_rules: {command: {exit 3: {exit-status: 3}}}, format: goss, timeout: 30s}
"#;

/// Runs ccm with arguments of any number.
fn run(env: &TestEnv, args: &[&str]) -> std::process::Output {
    env.command(args).output().unwrap()
}

#[test]
fn rules_are_health_checks() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let steady = |text: String| {
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("Duration: ") {
            let (before, after) = rest.split_at(at + "Duration: ".len());
            out += before;
            out += "[TIME]";
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == 's');
        }
        out + rest
    };
    insta::assert_snapshot!(steady(env.ccm(["apply", "manifest.yaml"])), @r#"
    exit: 1
    --- stdout ---
      + file#[DIR]/fine  content +1, [ME], mode 0644
            health check goss OK: Count: 3, Failed: 0, Duration: [TIME]
      ✗ file#[DIR]/bad  content +1, [ME], mode 0644
            health check goss OK: Count: 1, Failed: 0, Duration: [TIME]
            health check content CRITICAL after 2 tries: Count: 4, Failed: 2, Duration: [TIME] …

    Failures
      ✗ file#[DIR]/bad  (at manifest.yaml:10:11)
            health check goss OK: Count: 1, Failed: 0, Duration: [TIME]
            health check content CRITICAL after 2 tries: Count: 4, Failed: 2, Duration: [TIME]
            File: [DIR]/bad (its content): contents: expected ["y"], found "x"
            File: [DIR]/none: exists: expected true, found false

    Applied manifest.yaml in [TIME]: 1 created, 1 failed; health checks: 2 ok, 1 critical
    "#);
    insta::assert_snapshot!(steady(env.ccm(["apply", "manifest.yaml", "--monitor-only"])), @r#"
    exit: 1
    --- stdout ---
      = file#[DIR]/fine  stable
            health check goss OK: Count: 3, Failed: 0, Duration: [TIME]
      ✗ file#[DIR]/bad
            health check goss OK: Count: 1, Failed: 0, Duration: [TIME]
            health check content CRITICAL after 2 tries: Count: 4, Failed: 2, Duration: [TIME] …

    Failures
      ✗ file#[DIR]/bad  (at manifest.yaml:10:11)
            health check goss OK: Count: 1, Failed: 0, Duration: [TIME]
            health check content CRITICAL after 2 tries: Count: 4, Failed: 2, Duration: [TIME]
            File: [DIR]/bad (its content): contents: expected ["y"], found "x"
            File: [DIR]/none: exists: expected true, found false

    Checked manifest.yaml in [TIME]: 1 failed, 1 stable; health checks: 2 ok, 1 critical
    "#);
}

#[test]
fn results_are_in_events() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = &report["events"][1]["health_check"];
    assert_eq!((&checks[0]["status"], &checks[0]["tries"]), (&json!(2), &json!(2)));
    assert_eq!(checks[0]["name"], "content");
    let said = checks[0]["output"].as_str().unwrap();
    assert!(said.starts_with("Count: 4, Failed: 2, Duration: "), "{said}");
    assert!(said.contains("(its content): contents: expected [\"y\"], found \"x\""), "{said}");
    assert_eq!((&checks[1]["status"], &checks[1]["name"]), (&json!(0), &json!("goss")));
    let rules = &report["events"][0]["properties"]["health_checks"][0]["goss_rules"];
    assert_eq!(rules["file"][env.path("fine").to_str().unwrap()]["mode"], "{{ Data.mode }}");
    let counts = json!({"ok": 2, "warning": 0, "critical": 1, "unknown": 0});
    assert_eq!(report["summary"]["health_checks"], counts);
    let output = env.run(["apply", "manifest.yaml", "--noop", "--json"]);
    assert_eq!(output.status.code(), Some(0), "a preview checks nothing");
}

#[test]
fn rules_are_tried_until_they_hold() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - goss_rules: {command: {"echo x >> [DIR]/tries; wc -l < [DIR]/tries": {exit-status: 0, stdout: {ge: 3}}}}
                tries: 5
                try_sleep: 10ms
"#,
    );
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = &report["events"][0]["health_check"][0];
    assert_eq!((&check["status"], &check["tries"]), (&json!(0), &json!(3)), "{report:#}");
}

#[test]
fn rules_out_of_a_template_and_rules_that_turn_out_wrong() {
    let env = TestEnv::new();
    env.write("rules.yaml.jet", "file:\n  [[ data.path ]]: {exists: true}\n");
    env.write("wrong.yaml.jet", "file:\n  /: {exits: true, exists: true}\n");
    env.manifest(
        r#"
data: {path: /, kind: files}
ccm:
  resources:
    - exec:
        - right: {command: "true", health_checks: [{goss_rules: "{{ template('rules.yaml.jet') }}"}]}
        - wrong: {command: "true", health_checks: [{goss_rules: "{{ template('wrong.yaml.jet') }}"}, {command: "true"}]}
        - kind: {command: "true", health_checks: [{goss_rules: {"{{ Data.kind }}": {/: {exists: true}}}}]}
        - failing: {command: "true", health_checks: [{goss_rules: {file: {/: {exists: "{{ nope }}"}}}}]}
"#,
    );
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = report["events"].as_array().unwrap();
    let failed: Vec<bool> = events.iter().map(|event| event["failed"] == true).collect();
    assert_eq!(failed, [false, true, true, true], "{report:#}");
    let error = |at: usize| events[at]["error"][0].as_str().unwrap_or_default();
    assert!(
        error(1).contains(
            "health check goss: goss_rules: file: /: unknown attribute `exits` (line 2, column 7 \
             of the text)"
        ),
        "{}",
        error(1)
    );
    assert_eq!(events[1]["health_check"].as_array().unwrap().len(), 1, "the other check ran");
    assert!(error(2).contains("unknown kind `files`"), "{}", error(2));
    assert!(error(3).contains("nope"), "{}", error(3));
}

#[test]
fn wrong_rules_are_found_with_the_manifest() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - goss_rules:
                  prot: {"tcp:80": {listening: true}}
                  file: {/a: {exists: true, size: {gt: 1, lt: 5}}}
                  http: {"http://a/": {satus: 200}}
              - {command: a, goss_rules: {file: {/: {exists: true}}}}
              - {goss_rules: [a]}
              - {goss_rules: {file: {/: {exists: true}}}, format: nagios}
"#,
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#true: health_checks: `goss`: goss_rules: unknown kind `prot`
     --> manifest.yaml:8:19
      |
    8 |                   prot: {"tcp:80": {listening: true}}
      |                   ^^^^
      |
      = hint: did you mean `port`?

    error: exec#true: health_checks: `goss`: goss_rules: file: /a: size: only one matcher is allowed in a map, found `gt` and `lt`
     --> manifest.yaml:9:59
      |
    9 |                   file: {/a: {exists: true, size: {gt: 1, lt: 5}}}
      |                                                           ^^
      |
      = hint: combine matchers with `and: […]` or `or: […]`

    error: exec#true: health_checks: `goss`: goss_rules: http: http://a/: unknown attribute `satus`
      --> manifest.yaml:10:40
       |
    10 |                   http: {"http://a/": {satus: 200}}
       |                                        ^^^^^
       |
       = hint: did you mean `status`?

    error: exec#true: health_checks: `goss`: `command` and `goss_rules` cannot both be set
      --> manifest.yaml:11:17
       |
    11 |               - {command: a, goss_rules: {file: {/: {exists: true}}}}
       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: number 3: a check needs a `command` or `goss_rules`
      --> manifest.yaml:12:17
       |
    12 |               - {goss_rules: [a]}
       |                 ^^^^^^^^^^^^^^^^^

    error: exec#true: health_checks: goss_rules: expected a map of rules, found a list
      --> manifest.yaml:12:30
       |
    12 |               - {goss_rules: [a]}
       |                              ^^^

    error: exec#true: health_checks: `goss`: format: `nagios` is for commands, rules have `goss`
      --> manifest.yaml:13:17
       |
    13 |               - {goss_rules: {file: {/: {exists: true}}}, format: nagios}
       |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

/// Arguments that make a test fail whatever the machine says, with the place of
/// each: kind, name, attributes, what is pointed at, words of the message.
const FAILING: &[(&str, &str, &str, &str, &str)] = &[
    ("file", "/a", "exists: true, contents: ['/(/']", "'/(/'", "error parsing regexp"),
    ("file", "/a", "exists: true, contents: [x, '!/[/']", "'!/[/'", "error parsing regexp"),
    ("file", "/a", "exists: true, owner: {match-regexp: '('}", "'('", "error parsing regexp"),
    ("file", "/a", "exists: true, size: {gt: '4'}", "'4'", "\"4\" is a string, not a number"),
    ("file", "/a", "exists: true, size: {not: {le: x}}", "x", "\"x\" is a string, not a number"),
    ("file", "/a", "exists: 1", "1", "expected `true` or `false`, found a number"),
    ("file", "/a", "exists: 'yes'", "'yes'", "expected `true` or `false`, found a string"),
    ("file", "/a", "exists: true, owner: true", "true", "expected a string, found a boolean"),
    ("file", "/a", "exists: true, uid: root", "root", "expected a number, found a string"),
    ("package", "a", "installed: true, versions: 5", "5", "expected a list, found a number"),
    (
        "package",
        "a",
        "installed: true, versions: {semver-constraint: '>> 1'}",
        "'>> 1'",
        "`>> 1` is not a constraint on versions",
    ),
    ("command", "x", "exit-status: zero", "zero", "expected a number, found a string"),
    (
        "command",
        "x",
        "exit-status: 0, stdout: {and: [a, {match-regexp: '*'}]}",
        "'*'",
        "error parsing regexp",
    ),
    (
        "command",
        "x",
        "exit-status: 0, stdout: {gjson: {a.b: {semver-constraint: x.y}}}",
        "x.y",
        "is not a constraint on versions",
    ),
    ("command", "x", "exit-status: 0, stdout: {have-len: '3'}", "'3'", "expected a number"),
];

#[test]
fn arguments_that_can_never_hold_are_found_with_the_manifest() {
    let env = TestEnv::new();
    for (kind, name, attributes, at, words) in FAILING {
        let rules = format!("{kind}: {{{name}: {{{attributes}}}}}");
        let line = format!("              - goss_rules: {{{rules}}}");
        env.manifest(&format!(
            "ccm:\n  resources:\n    - exec:\n        - \"true\":\n            health_checks:\n{line}\n"
        ));
        let output = env.run(["validate", "manifest.yaml", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{rules}: {report:#}");
        let found = report["findings"].as_array().unwrap();
        assert_eq!(found.len(), 1, "{rules}: {report:#}");
        let message = found[0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{rules}: {message}");
        let column = line.rfind(at).unwrap() + 1;
        assert_eq!(
            (&found[0]["line"], &found[0]["column"]),
            (&json!(6), &json!(column)),
            "{rules}"
        );
        // A file of rules by itself cannot be used.
        env.write("rules.yaml", &format!("{rules}\n"));
        let output = env.run(["check", "rules.yaml"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{rules}: {said}");
        let place = format!("rules.yaml:1:{}", rules.rfind(at).unwrap() + 1);
        assert!(said.contains(words) && said.contains(&place), "{rules}: {said}");
    }
}

/// What a placeholder gives is known when the check runs: the test fails then.
#[test]
fn arguments_that_a_placeholder_gives_wrong_fail_their_test() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data: {expression: "(", number: four}
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - goss_rules:
                  file:
                    /: {exists: true, owner: {match-regexp: "{{ Data.expression }}"}, uid: {not: {gt: "{{ Data.number }}"}}}
"#,
    );
    assert_eq!(env.run(["validate", "manifest.yaml"]).status.code(), Some(0));
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = &report["events"][0]["health_check"][0];
    assert_eq!(check["status"], 2, "{report:#}");
    let said = check["output"].as_str().unwrap();
    assert!(said.starts_with("Count: 3, Failed: 2"), "{said}");
    assert!(said.contains("\"four\" is a string, not a number"), "{said}");
}

/// Frames show rules about files with harmless names, and no secret.
#[test]
fn frames_hide_secrets_and_not_paths() {
    let env = TestEnv::new();
    env.write(
        "rules.yaml",
        "file:\n  /etc/passwd: {exists: true, mdoe: '0644'}\n  ~/password:\n    exits: true\nhttp:\n  \
         http://a/: {status: x, password: hunter2, request-headers: ['X: hunter3']}\n  \
         http://ann:hunter4@b/: {satus: 1}\n",
    );
    let output = env.run(["check", "rules.yaml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    for shown in [
        "2 |   /etc/passwd: {exists: true, mdoe: '0644'}",
        "4 |     exits: true",
        "{status: x, password: *******, request-headers: [************]}",
    ] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!said.contains("hunter"), "{said}");
}

#[test]
fn requests_have_rules_too() {
    let env = TestEnv::new();
    let request = |rules: &str| {
        format!(
            r#"{{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec",
               "properties": {{"name": "true", "health_checks": [{{"goss_rules": {rules}}}]}}}}"#
        )
    };
    let ask = |rules: &str| -> Value {
        use std::io::Write as _;
        let mut child = env
            .command(["ensure", "api", "pipe"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(request(rules).as_bytes()).unwrap();
        serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
    };
    let good = ask(r#"{"file": {"/": {"exists": true}}}"#);
    assert_eq!(good["state"]["health_check"][0]["status"], 0, "{good:#}");
    let bad = ask(r#"{"file": {"/none": {"exists": true}}}"#);
    assert_eq!(bad["state"]["health_check"][0]["status"], 2, "{bad:#}");
    let wrong = ask(r#"{"flie": {"/": {"exists": true}}}"#);
    assert!(wrong["error"].to_string().contains("unknown kind `flie`"), "{wrong:#}");
}

#[test]
fn secrets_stay_where_they_are() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "true":
            health_checks:
              - goss_rules:
                  http:
                    "http://ann:hunter2@127.0.0.1:1/?token=hunter3":
                      status: 200
                      password: hunter4
                      request-headers: ["X-Auth-Token: hunter5"]
                  command:
                    "echo hunter4 hunter5; exit 1": {exit-status: 0, stdout: [nothing]}
"#,
    );
    for args in [
        &["apply", "manifest.yaml"][..],
        &["apply", "manifest.yaml", "--json"],
        &["apply", "manifest.yaml", "--json", "--noop"],
        &["apply", "manifest.yaml", "--render"],
        &["--debug", "apply", "manifest.yaml", "--monitor-only"],
    ] {
        let output = run(&env, args);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // A command whose text repeats a secret is known to do so once the rules
        // are read, which a preview does not do.
        let is_run = !args.contains(&"--noop") && !args.contains(&"--render");
        let known: &[&str] = if is_run { &["hunter4", "hunter5"] } else { &[] };
        for secret in ["hunter2", "hunter3"].iter().chain(known) {
            assert!(!said.contains(secret), "{args:?}: {secret}: {said}");
        }
    }
}

#[test]
fn a_file_of_rules_runs_by_itself() {
    let env = TestEnv::new();
    env.write("app.conf", "workers = 4\n");
    env.write(
        "rules.yaml",
        "file:\n  app.conf: {exists: true, contents: ['workers = {{ Data.workers }}']}\n  none: \
         {exists: false, mode: '0600'}\n",
    );
    env.write("data.yaml", "workers: 4\n");
    env.write("other.yaml", "data: {workers: 5}\n");
    let code = |args: &[&str]| run(&env, args).status.code();
    let check = ["check", "rules.yaml", "--hiera"];
    assert_eq!(code(&[&check[..], &["other.yaml"]].concat()), Some(2));
    env.write("other.yaml", "data: {workers: 4}\n");
    assert_eq!(code(&[&check[..], &["other.yaml"]].concat()), Some(0));
    env.write(".hiera", "data: {workers: 4}\n");
    assert_eq!(code(&["check", "rules.yaml"]), Some(0));
    let output = env.run(["check", "rules.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["count"], 4);
    assert_eq!(
        (&report["summary"]["failed"], &report["summary"]["skipped"]),
        (&json!(0), &json!(1))
    );
    assert!(report["summary"]["duration"].as_u64().unwrap() > 0);
    let first = &report["results"][0];
    assert_eq!((&first["kind"], &first["name"]), (&json!("file"), &json!("app.conf")));
    assert_eq!((&first["property"], &first["outcome"]), (&json!("exists"), &json!("passed")));
    assert_eq!((&first["expected"], &first["found"]), (&json!(true), &json!(true)));
    assert_eq!(report["results"][3]["outcome"], "skipped");
    let output = env.run(["check", "rules.yaml", "--junit", "out.xml"]);
    assert_eq!(output.status.code(), Some(0));
    let xml = std::fs::read_to_string(env.path("out.xml")).unwrap();
    assert_eq!(xml.matches("<testcase ").count(), 4, "{xml}");
    assert_eq!(xml.matches("<skipped/>").count(), 1, "{xml}");
    let output = env.run(["check", "rules.yaml", "--junit", "-"]);
    assert!(output.stdout.starts_with(b"<?xml"), "nothing but XML");
}

#[test]
fn rules_that_cannot_be_used_exit_with_three() {
    let env = TestEnv::new();
    for (name, text) in [
        ("kind.yaml", "files: {}\n"),
        ("syntax.yaml", "file: [\n"),
        ("empty.yaml", ""),
        ("template.yaml", "file: {/: {exists: '{{ nope }}'}}\n"),
        ("late.yaml", "'{{ \"files\" }}': {/: {exists: true}}\n"),
    ] {
        env.write(name, text);
        let output = env.run(["check", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}: {said}");
        assert!(said.starts_with("error: "), "{name}: {said}");
        assert!(output.stdout.is_empty());
    }
    let code = |args: &[&str]| run(&env, args).status.code();
    assert_eq!(code(&["check", "none.yaml"]), Some(3));
    env.write("right.yaml", "file: {/: {exists: true}}\n");
    assert_eq!(code(&["check", "right.yaml", "--hiera", "none.yaml"]), Some(3));
    assert_eq!(code(&["check", "right.yaml", "--junit", "none/out.xml"]), Some(3));
    assert_eq!(code(&["check"]), Some(64));
    assert_eq!(code(&["check", "right.yaml", "--timeout", "soon"]), Some(64));
    assert_eq!(code(&["check", "right.yaml", "--fact", "x"]), Some(64));
    insta::assert_snapshot!(env.ccm(["check", "kind.yaml"]), @"
    exit: 3
    --- stderr ---
    error: unknown kind `files`
     --> kind.yaml:1:1
      |
    1 | files: {}
      | ^^^^^
      |
      = hint: did you mean `file`?
    ");
}

#[test]
fn a_signal_ends_the_rules() {
    let env = TestEnv::new();
    env.write(
        "rules.yaml",
        &format!(
            "command: {{'touch {}; sleep 60': {{exit-status: 0, timeout: 60000}}}}\n",
            env.path("asked").display()
        ),
    );
    let child = env.command(["check", "rules.yaml"]).spawn().unwrap();
    wait_until("the command", || env.path("asked").exists());
    let begin = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert!(begin.elapsed() < Duration::from_secs(30));
}
