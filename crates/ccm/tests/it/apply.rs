//! `ccm apply` from the first preview to the second, stable run.

use crate::TestEnv;

const MANIFEST: &str = r#"
ccm:
  pre_message: Setting up
  post_message: All set
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - [DIR]/app: {ensure: directory}
        - [DIR]/app/a.conf: {content: "one\ntwo\n", alias: config}
        - [DIR]/app/secret: {content: hush, mode: "0600"}
    - exec:
        reload:
          command: touch [DIR]/reloaded
          refresh_only: true
          subscribe: ["file#config"]
    - file:
        name: [DIR]/app/last
        owner: "0"
        group: "0"
        mode: 644
        ensure: absent
        require: ["exec#reload"]
"#;

#[test]
fn preview_apply_and_apply_again() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--noop", "--diff"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      + file#[DIR]/app  directory, [ME], mode 0755
      + file#[DIR]/app/a.conf (config)  content +2, [ME], mode 0644
            @@ -0,0 +1,2 @@
            +one
            +two
      + file#[DIR]/app/secret  content [redacted], [ME], mode 0600
            [DIR]/app/secret: 1 line not shown, not world-readable; use --diff=all
      ↻ exec#reload  run, because file#config changes

    3 to create, 1 to refresh; 1 stable
    ");
    assert_eq!(env.names(), ["manifest.yaml"], "noop changed something");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    Setting up
      + file#[DIR]/app  directory, [ME], mode 0755
      + file#[DIR]/app/a.conf (config)  content +2, [ME], mode 0644
      + file#[DIR]/app/secret  content [redacted], [ME], mode 0600
      ↻ exec#reload  ran, because file#config changed

    Applied manifest.yaml in [TIME]: 3 created, 1 refreshed, 1 stable
    All set
    ");
    assert_eq!(env.names(), ["app", "app/a.conf", "app/secret", "manifest.yaml", "reloaded"]);
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    Setting up
    Applied manifest.yaml in [TIME]: 5 stable
    All set
    ");
}

#[test]
fn a_change_shows_its_diff() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    env.run(["apply", "manifest.yaml"]);
    env.write("app/a.conf", "one\n2\nthree\n");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--diff", "--no-report"]), @"
    exit: 0
    --- stdout ---
    Setting up
      ~ file#[DIR]/app/a.conf (config)  content +1 −2
            @@ -1,3 +1,2 @@
             one
            -2
            -three
            +two
      ↻ exec#reload  ran, because file#config changed
    All set
    ");
}

#[test]
fn secrets_are_only_in_diffs_that_ask_for_them() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let shown = |args: [&str; 4]| String::from_utf8(env.run(args).stdout).unwrap();
    assert!(!shown(["apply", "manifest.yaml", "--noop", "--diff"]).contains("hush"));
    assert!(shown(["apply", "manifest.yaml", "--noop", "--diff=all"]).contains("+hush"));
}

#[test]
fn the_resolved_manifest_is_a_manifest() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let rendered = env.run(["apply", "manifest.yaml", "--render"]);
    assert!(rendered.status.success());
    env.write("again.yaml", std::str::from_utf8(&rendered.stdout).unwrap());
    assert_eq!(env.names(), ["again.yaml", "manifest.yaml"], "rendering changed something");
    let again = env.run(["apply", "again.yaml", "--render"]);
    assert_eq!(rendered.stdout, again.stdout);
}

#[test]
fn failures_are_told_and_do_not_stop_the_rest() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  post_message: never printed
  resources:
    - exec:
        - broken: {command: "sh -c 'echo reason >&2; exit 7'"}
        - dependent: {command: "true", require: ["exec#broken"]}
        - second: {command: "true", require: ["exec#dependent"]}
        - nowhere: {command: "no-such-command"}
        - other: {command: "true", provider: powershell}
        - fine: {command: "true"}
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#broken  sh -c 'echo reason >&2; exit 7'
            desired state not achieved: the command exited with code 7, not 0 …
      · exec#dependent  skipped, requires exec#broken
      · exec#second  skipped, requires exec#dependent
      ✗ exec#nowhere
            command not found: no-such-command …
      ✗ exec#other
            provider not found: type `exec` has no provider `powershell` …
      » exec#fine  true

    Failures
      ✗ exec#broken  sh -c 'echo reason >&2; exit 7'  (at manifest.yaml:6:11)
            desired state not achieved: the command exited with code 7, not 0
            reason
      ✗ exec#nowhere  (at manifest.yaml:9:11)
            command not found: no-such-command
            hint: searched /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
      ✗ exec#other  (at manifest.yaml:10:11)
            provider not found: type `exec` has no provider `powershell`
            hint: available providers: posix, shell

    Applied manifest.yaml in [TIME]: 1 ran, 3 failed, 2 skipped for unmet requirements
    ");
}

#[test]
fn fail_on_error_stops_at_the_first() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  fail_on_error: true\n  resources:\n    - exec:\n        - \"false\":\n        - touch [DIR]/x:\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#false
            desired state not achieved: the command exited with code 1, not 0
    Terminating manifest execution due to failed resource

    Failures
      ✗ exec#false  (at manifest.yaml:5:11)
            desired state not achieved: the command exited with code 1, not 0

    Applied manifest.yaml in [TIME]: 1 failed
    ");
    assert!(!env.path("x").exists());
}

#[test]
fn detailed_exit_codes() {
    let env = TestEnv::new();
    let code = |args: &[&str]| {
        env.command([&["apply", "manifest.yaml", "--detailed-exitcodes"], args].concat())
            .output()
            .unwrap()
            .status
            .code()
    };
    let file = "- file: [{[DIR]/f: {content: x, [ME], mode: \"0644\"}}]";
    env.manifest(&format!("ccm:\n  resources:\n    {file}\n"));
    assert_eq!(code(&["--noop"]), Some(2));
    assert_eq!(code(&[]), Some(2));
    assert_eq!(code(&[]), Some(0));
    env.manifest(&format!("ccm:\n  resources:\n    {file}\n    - exec: [\"false\"]\n"));
    assert_eq!(code(&[]), Some(4));
    std::fs::remove_file(env.path("f")).unwrap();
    assert_eq!(code(&[]), Some(6));
    env.manifest("ccm: {}\n");
    assert_eq!(code(&[]), Some(1));
}

#[test]
fn reports_for_machines() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let output = env.run(["apply", "manifest.yaml", "--json", "--report-file", "report.json"]);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written: serde_json::Value = serde_json::from_str(&env.read("report.json")).unwrap();
    assert_eq!(printed, written);
    assert_eq!(printed["protocol"], "io.choria.ccm.v1.report");
    assert_eq!(printed["manifest"], "manifest.yaml");
    assert_eq!(printed["noop"], false);
    assert_eq!(printed["summary"]["total"], 5);
    assert_eq!(printed["summary"]["changed"], 4);
    assert_eq!(printed["summary"]["stable"], 1);
    let events = printed["events"].as_array().unwrap();
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert!(names[0].ends_with("/app") && names[3] == "reload", "{names:?}");
    let ids: Vec<_> = events.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    assert_eq!(events[1]["properties"]["content"], "one\ntwo\n");
    assert_eq!(events[1]["status"]["metadata"]["size"], 8);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(env.path("report.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a report holds the content of files");
}

#[test]
fn relative_sources_begin_at_the_manifest() {
    let env = TestEnv::new();
    env.write("site/files/motd", "hello\n");
    env.write(
        "site/manifest.yaml",
        "ccm: {resources: [{file: {[DIR]/motd: {source: files/motd, [ME], mode: \"0644\"}}}]}",
    );
    assert!(env.run(["apply", "site/manifest.yaml"]).status.success());
    assert_eq!(env.read("motd"), "hello\n");
}

#[test]
fn the_slowest_resources_are_shown_on_request() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{exec: [\"true\", sleep 0.2]}]}");
    let output = env.run(["apply", "manifest.yaml", "--profile"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, slowest) = text.split_once("Slowest resources\n").unwrap();
    assert!(slowest.lines().next().unwrap().ends_with("exec#sleep 0.2"), "{slowest}");
}

#[test]
fn control_keeps_resources_from_being_managed() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{touch [DIR]/a: {control: {if: \"false\"}}}, {touch [DIR]/b: \
         {control: {unless: \"false\"}}}]}]}",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report", "-v"]), @"
    exit: 0
    --- stdout ---
      · exec#touch [DIR]/a  skipped by control
      » exec#touch [DIR]/b
    ");
    assert!(!env.path("a").exists() && env.path("b").exists());
}
