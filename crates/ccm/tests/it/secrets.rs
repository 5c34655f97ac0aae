//! What ccm must not say, wherever it says anything.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::TestEnv;

const SECRET: &str = "hunter2-s3cret";

fn everything(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn content_that_others_may_not_read_is_not_reported() {
    for (mode, is_shown) in [("0600", false), ("0640", false), ("0644", true)] {
        for noop in [false, true] {
            let env = TestEnv::with_session();
            let child = "ccm:\n  resources:\n    - file:\n        - [DIR]/f: {content: \"SECRET\", \
                         mode: \"MODE\", [ME]}\n        - [DIR]/g: {content: \"{{ 'SECRET' }}\", \
                         mode: \"{{ 'MODE' }}\", [ME]}\n";
            env.write("child.yaml", &child.replace("SECRET", SECRET).replace("MODE", mode));
            env.manifest("ccm: {resources: [{apply: [{child.yaml: {}}]}]}\n");
            let noop = noop.then_some("--noop");
            let mut command =
                env.command(["apply", "manifest.yaml", "--json", "--report-file", "report.json"]);
            let output = command.args(noop).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let mut texts = vec![everything(&output), env.read("report.json")];
            let session = env.run(["session", "report", "--json"]);
            texts.push(everything(&session));
            for entry in std::fs::read_dir(env.path("session")).unwrap() {
                texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
            }
            let rendered = env.command(["apply", "child.yaml", "--render"]).output().unwrap();
            texts.push(everything(&rendered));
            let all = texts.concat();
            assert_eq!(all.contains(SECRET), is_shown, "{mode} {noop:?}: {all}");
            let report: Value = serde_json::from_str(&env.read("report.json")).unwrap();
            let wanted = if is_shown { SECRET } else { "[redacted]" };
            for event in 0..2 {
                assert_eq!(report["events"][event]["properties"]["content"], wanted, "{report}");
            }
            if noop.is_none() {
                assert_eq!(env.read("f"), SECRET);
            }
        }
    }
}

/// A digest lets others try out what a short text may be.
#[test]
fn digests_of_secrets_are_not_reported() {
    let env = TestEnv::with_session();
    let digest = ccm_host::Digest::of(b"hunter2").to_string();
    for (mode, content, is_shown) in
        [("0600", "{{ Data.token }}", false), ("0600", "hunter2", true), ("0644", "hunter2", true)]
    {
        env.write("f", "hunter2");
        let data = if is_shown { "" } else { "data:\n  # @secret\n  token: hunter2\n" };
        env.manifest(&format!(
            "{data}ccm:\n  resources:\n    - file:\n        - [DIR]/f: {{content: \"{content}\", \
             mode: \"{mode}\", [ME]}}\n"
        ));
        let run = env.run(["apply", "manifest.yaml", "--json", "--report-file", "report.json"]);
        assert!(run.status.success(), "{run:?}");
        let again = env.run(["apply", "manifest.yaml", "--json"]);
        let plan = env.run(["plan", "manifest.yaml", "--json"]);
        let events = env.run(["apply", "manifest.yaml", "--events"]);
        let session = env.run(["session", "report", "--json"]);
        let mut all = env.read("report.json");
        for output in [&again, &plan, &events, &session] {
            all.push_str(&everything(output));
        }
        assert_eq!(all.contains(&digest), is_shown, "{mode}: {all}");
        // Whoever can read the file can have its digest.
        let status = env.run(["status", "file", env.path("f").to_str().unwrap(), "--json"]);
        assert!(everything(&status).contains(&digest), "{status:?}");
        let saved = env.run(["plan", "manifest.yaml", "--out", "x.plan"]);
        let shown = env.run(["plan", "show", "x.plan", "--json"]);
        assert!(!everything(&saved).contains(&digest));
        assert!(!everything(&shown).contains(&digest));
        std::fs::remove_dir_all(env.path("session")).unwrap();
        std::fs::create_dir(env.path("session")).unwrap();
    }
}

/// Base64 hides nothing, and a short secret is one where it stands alone.
#[test]
fn encoded_and_short_secrets_are_redacted() {
    let env = TestEnv::new();
    env.manifest(
        "data:\n  # @secret\n  token: hunter2\n  # @secret\n  pin: \"471\"\nccm:\n  resources:\n    \
         - exec:\n        - sh:\n            command: \"sh -c 'printf me:{{ Data.token }} | base64; \
         echo pin={{ Data.pin }} 14712'\"\n            logoutput: true\n",
    );
    let output = env.run(["apply", "manifest.yaml"]);
    let all = everything(&output);
    assert!(output.status.success(), "{all}");
    for secret in ["hunter2", "bWU6aHVudGVyMg", "aHVudGVyMg", "pin=471"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    assert!(all.contains("pin=[redacted] 14712"), "{all}");
}

/// A value that is secret in one place is secret in all of them: in the output
/// and the errors of commands, in diffs, in properties that are not secret.
#[test]
fn secrets_are_followed_to_wherever_they_go() {
    let manifest = "data:\n  # @secret\n  token: SECRET\nccm:\n  resources:\n    - file:\n        \
                    - [DIR]/f: {content: \"token={{ Data.token }}\\n\", mode: \"0644\", [ME]}\n    \
                    - exec:\n        - echo {{ Data.token }}: {logoutput: true}\n        \
                    - shown: {command: printenv DB_PASSWORD, logoutput: true, environment: \
                    [DB_PASSWORD=OTHER]}\n        \
                    - fails: {command: \"sh -c 'echo OTHER {{ Data.token }} >&2; exit 3'\"}\n";
    let env = TestEnv::with_session();
    let other = "0ther-s3cret";
    env.manifest(
        &manifest
            .replace("SECRET", SECRET)
            .replace("=OTHER", &format!("={other}"))
            .replace("OTHER", other),
    );
    let report = ["--report-file", "report.json"];
    for flags in [&["--noop", "--diff=all"][..], &["--json"], &["--diff=all", "--debug"]] {
        let mut command = env.command(["apply", "manifest.yaml"]);
        let output = command.args(report).args(flags).output().unwrap();
        let mut all = everything(&output);
        // What ran may be logged in full at this level; what it said may not.
        if flags.contains(&"--debug") {
            all = String::from_utf8(output.stdout).unwrap();
        }
        all.push_str(&env.read("report.json"));
        for entry in std::fs::read_dir(env.path("session")).unwrap() {
            all.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
        }
        assert!(!all.contains(SECRET) && !all.contains(other), "{flags:?}: {all}");
    }
    let rendered = everything(&env.run(["apply", "manifest.yaml", "--render"]));
    assert!(rendered.contains("token: '[redacted]'"), "{rendered}");
    assert!(!rendered.contains(SECRET) && !rendered.contains(other), "{rendered}");
    assert_eq!(env.read("f"), format!("token={SECRET}\n"));
}

#[test]
fn the_api_does_not_repeat_such_content() {
    let env = TestEnv::new();
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let request = format!(
        r#"{{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{{"name":"{}","content":"{SECRET}","owner":"{uid}","group":"{gid}","mode":"0600"}}}}"#,
        env.path("f").display()
    );
    let mut child = env
        .command(["ensure", "api", "pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(env.read("f"), SECRET);
    assert!(!everything(&output).contains(SECRET), "{output:?}");
}

#[test]
fn malformed_entries_of_the_environment_are_not_shown() {
    let env = TestEnv::new();
    for entry in [SECRET.to_owned(), format!("={SECRET}")] {
        env.manifest(&format!(
            "ccm:\n  resources:\n    - exec:\n        - 'true': {{environment: [\"{entry}\"]}}\n"
        ));
        for args in [["apply", "manifest.yaml", "--json"], ["validate", "manifest.yaml", "--json"]]
        {
            let output = env.run(args);
            let text = everything(&output);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains("is not `KEY=value`") && !text.contains(SECRET), "{text}");
        }
        let output = env.run(["ensure", "exec", "true", "--environment", &entry]);
        let text = everything(&output);
        assert!(text.contains("is not `KEY=value`") && !text.contains(SECRET), "{text}");
        // Only known when the command is about to run.
        env.manifest(&format!(
            "ccm:\n  resources:\n    - exec:\n        - 'true': {{environment: [\"{{{{ '{entry}' }}}}\"]}}\n"
        ));
        let text = everything(&env.run(["apply", "manifest.yaml", "--json"]));
        assert!(!text.contains(&format!("`{entry}")), "{text}");
    }
}

#[test]
fn credentials_in_urls_are_not_shown() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{exec: [{'true': {}}]}]}\n");
    let secret =
        "http://127.0.0.1:1/x.tgz?version=1&token=hunter2-s3cret&X-Amz-Date=hunter2-s3cret";
    let path = format!("{}/x.tgz", env.dir().display());
    for args in [
        vec!["apply", "manifest.yaml", "--facts", "http://u:hunter2-s3cret@127.0.0.1:1/f"],
        vec!["apply", "manifest.yaml", "--facts", secret],
        vec!["apply", "manifest.yaml", "--hiera", secret, "--debug"],
        vec!["apply", secret, "--debug"],
        vec!["validate", secret, "--json"],
        vec!["ensure", "archive", &path, secret, "--debug"],
        vec!["ensure", "exec", secret],
    ] {
        let output = env.command(&args).output().unwrap();
        let text = everything(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(!text.contains(SECRET), "{args:?}: {text}");
    }
}

#[test]
fn tokens_do_not_reach_logs_of_what_succeeds() {
    let env = TestEnv::new();
    let server = ccm_testkit::Server::with_body("data: {a: 1}\n");
    let url = format!("{}?access_token={SECRET}", server.url("/data.yaml"));
    let output = env.command(["ensure", "exec", "true", "--debug", "--hiera", &url]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(server.requests()[0].contains(SECRET), "the server gets it");
    let text = everything(&output);
    assert!(text.contains("access_token=[redacted]") && !text.contains(SECRET), "{text}");
}

#[test]
fn provider_commands_do_not_see_the_environment() {
    let env = TestEnv::new();
    // Other package managers are not configured by the environment.
    if ["dpkg-query", "apt-get"].into_iter().any(ccm_testkit::lacks_program) {
        return;
    }
    let mut command = env.command(["status", "package", "dpkg", "--json"]);
    let output = command.env("DPKG_ADMINDIR", env.path("none")).output().unwrap();
    let state: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(state["ensure"], "absent", "{state}");
}
