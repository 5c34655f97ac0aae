//! Sessions that several commands share.

use std::process::Command;

use crate::TestEnv;

#[test]
fn a_script_with_a_session() {
    let env = TestEnv::with_session();
    assert!(
        env.run(["ensure", "file", "[DIR]/f", "--content", "x", "--alias", "conf"])
            .status
            .success()
    );
    let args = ["ensure", "exec", "touch [DIR]/r", "--refresh-only", "-S", "file#conf"];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      ↻ exec#touch [DIR]/r  ran, because file#conf changed
    ");
    assert!(env.path("r").exists());
    assert!(
        env.run(["ensure", "file", "[DIR]/f", "--content", "x", "--alias", "conf"])
            .status
            .success()
    );
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      = exec#touch [DIR]/r  stable
    ");
    assert_eq!(env.run(["ensure", "exec", "false"]).status.code(), Some(1));
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--require", "exec#false"]), @"
    exit: 1
    --- stdout ---
      · exec#true  skipped, requires exec#false
    ");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--require", "exec#other"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#true
            cannot check exec#other: no resource with this name or alias ran earlier in this run or session
    ");
    insta::assert_snapshot!(env.ccm(["session", "report"]), @"
    exit: 0
    --- stdout ---
    Failures
      ✗ exec#false
            desired state not achieved: the command exited with code 1, not 0
      ✗ exec#true
            cannot check exec#other: no resource with this name or alias ran earlier in this run or session

    Applied [DIR]/session in [TIME]: 1 created, 1 refreshed, 2 failed, 1 skipped for unmet requirements, 2 stable
    ");
    let report = env.run(["session", "report", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["protocol"], "io.choria.ccm.v1.report");
    assert_eq!(report["events"].as_array().unwrap().len(), 7);
    assert!(env.run(["session", "report", "--remove"]).status.success());
    assert!(!env.path("session").exists());
}

#[test]
fn a_new_session_is_ready_for_eval() {
    let env = TestEnv::new();
    let output = env.run(["session", "new"]);
    let line = String::from_utf8(output.stdout).unwrap();
    let script =
        format!("{line}test -d \"$CCM_SESSION_STORE\" && stat -c %a \"$CCM_SESSION_STORE\"");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "700\n");
}

#[test]
fn references_need_a_session() {
    let env = TestEnv::new();
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--require", "file#/x"]), @r#"
    exit: 64
    --- stderr ---
    error: --require needs a session
    hint: start one with `eval "$(ccm session new)"` or give --session DIR
    "#);
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--subscribe", "file#/x"]), @r#"
    exit: 64
    --- stderr ---
    error: --subscribe needs a session
    hint: start one with `eval "$(ccm session new)"` or give --session DIR
    "#);
    insta::assert_snapshot!(env.ccm(["session", "report"]), @r#"
    exit: 64
    --- stderr ---
    error: there is no session
    hint: start one with `eval "$(ccm session new)"` or give --session DIR
    "#);
}

#[test]
fn two_processes_share_one_session() {
    let env = TestEnv::with_session();
    for worker in 0..2 {
        let files: String = (0..100)
            .map(|n| {
                format!(
                    "        - [DIR]/w{worker}-{n}: {{content: \"{n}\", [ME], mode: \"0644\"}}\n"
                )
            })
            .collect();
        env.write(&format!("w{worker}.yaml"), &format!("ccm:\n  resources:\n    - file:\n{files}"));
    }
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            env.command(["apply", &format!("w{worker}.yaml"), "--no-report", "--json"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let report = env.run(["session", "report", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["summary"]["total"], 200);
    assert_eq!(report["summary"]["changed"], 200);
    let ids: Vec<_> = report["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event_id"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted());
}

#[test]
fn a_session_that_is_no_directory_is_an_error() {
    let env = TestEnv::new();
    env.write("file", "");
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "true", "--session", "file"]), @"
    exit: 1
    --- stderr ---
    error: cannot open session [DIR]/file
    caused by: cannot list [DIR]/file
    caused by: Not a directory (os error 20)
    ");
    insta::assert_snapshot!(env.ccm(["session", "report", "--session", "missing"]), @"
    exit: 1
    --- stderr ---
    error: there is no session in [DIR]/missing
    ");
}

#[test]
fn a_preview_moves_nothing_but_previews() {
    let env = TestEnv::with_session();
    assert!(env.run(["ensure", "file", "[DIR]/f", "--content", "x", "--noop"]).status.success());
    let react = ["ensure", "exec", "touch [DIR]/r", "--refresh-only", "-S", "file#[DIR]/f"];
    assert!(env.run(react).status.success());
    assert!(!env.path("r").exists(), "a real command ran because of a preview");
}

#[test]
fn a_session_that_goes_away_does_not_end_the_run() {
    let env = TestEnv::with_session();
    env.manifest(
        "ccm: {resources: [{exec: [{first: {command: rm -r [DIR]/session}}, {second: {command: \
         touch [DIR]/second}}]}]}",
    );
    let output = env.run(["apply", "manifest.yaml", "--report-file", "report.json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("  » exec#second ") && text.ends_with(": 2 ran\n"), "{text}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write session"));
    assert!(env.path("second").exists() && env.path("report.json").exists());
}

#[test]
fn relative_and_empty_sessions() {
    let env = TestEnv::new();
    assert!(env.run(["ensure", "exec", "true", "--session", "new"]).status.success());
    assert!(env.path("new").is_dir());
    let mut command = env.command(["ensure", "exec", "true"]);
    assert!(command.env("CCM_SESSION_STORE", "").status().unwrap().success());
}
