//! Where secrets come from, and every place that they must not get to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::TestEnv;

fn everything(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// All texts below a directory.
fn texts_below(directory: &Path) -> String {
    let mut all = String::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                all.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
            }
        }
    }
    all
}

const NAMES: [&str; 18] = [
    "DB_PASSWORD",
    "API_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "PGPASSWORD",
    "MYSQL_PWD",
    "REDIS_AUTH",
    "DATABASE_URL",
    "PASSPHRASE",
    "RESTIC_PASS",
    "SMTP_PASSWD",
    "SESSION_COOKIE",
    "VAULT_ADDR_PIN",
    "DSN",
    "GITHUB_PAT",
    "LICENSE",
    "STRIPE_SK",
    "JWT",
    "NPM_AUTH",
];

/// The place of `DSN` among them.
const DSN: usize = 12;

/// Which variables hold passwords cannot be told from their names, so all of
/// them count, in what belongs to the resource that sets them.
#[test]
fn values_of_the_environment_are_masked_whatever_the_name() {
    let env = TestEnv::with_session();
    let value = |number: usize| format!("v4lue-of-{number:02}");
    let mut manifest = "ccm:\n  resources:\n    - exec:\n".to_owned();
    for (number, name) in NAMES.iter().enumerate() {
        for (kind, exit) in [("works", 0), ("fails", 3)] {
            manifest += &format!(
                "        - {kind}-{number}: {{command: \"sh -c 'echo out ${name}; echo err ${name} \
                 >&2; exit {exit}'\", logoutput: true, environment: [{name}={value}, SHORT=C.UTF], \
                 health_checks: [{{command: \"sh -c 'echo {value}'\"}}]}}\n",
                value = value(number)
            );
        }
    }
    manifest += &format!(
        "        - other: {{command: \"echo other {} C.UTF\", logoutput: true}}\n",
        value(DSN)
    );
    env.manifest(&manifest);
    for flags in [&["--debug"][..], &["--json", "--debug"], &["--events"], &["--noop", "--json"]] {
        let mut command = env.command(["apply", "manifest.yaml", "--report-file", "report.json"]);
        let output = command.args(flags).output().unwrap();
        let mut all = everything(&output) + &env.read("report.json");
        all += &texts_below(&env.path("session"));
        all += &texts_below(env.state());
        for number in (0..NAMES.len()).filter(|number| *number != DSN) {
            assert!(!all.contains(&value(number)), "{flags:?} {}: {all}", NAMES[number]);
        }
        // What another resource says is its own.
        assert!(all.contains(&format!("other {} C.UTF", value(DSN))), "{flags:?}: {all}");
    }
    let history = everything(&env.run(["history", "--json"]));
    let runs: Value = serde_json::from_str(&history).unwrap();
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let shown = everything(&env.run(["history", "show", id, "--json"]));
    assert!(shown.contains("works-5") && !shown.contains("v4lue-of-05"), "{shown}");
    for args in [["why", "manifest.yaml"], ["apply", "manifest.yaml"]] {
        let more = if args[0] == "why" { "exec#works-5" } else { "--render" };
        let shown = everything(&env.run([args[0], args[1], more]));
        assert!(shown.contains("works-5") && !shown.contains("v4lue-of-05"), "{args:?}: {shown}");
    }
}

/// A value that is made from a secret is one everywhere, however it was made.
#[test]
fn what_the_environment_gets_from_a_secret_is_one_in_the_whole_run() {
    let env = TestEnv::new();
    env.manifest(
        "data:\n  # @secret\n  token: hunter2-s3cret\n  plain: h4rmless\nccm:\n  resources:\n    - exec:\n        \
         - a: {command: \"true\", environment: [\"X={{ upper(Data.token) }}\", \"Y=x-{{ Data.token }}-y\", \
         \"Z={{ upper(Data.plain) }}\"]}\n        \
         - b: {command: \"echo HUNTER2-S3CRET x-hunter2-s3cret-y H4RMLESS\", logoutput: true}\n",
    );
    let shown = everything(&env.run(["apply", "manifest.yaml", "--json"]));
    assert!(shown.contains("echo [redacted] [redacted] H4RMLESS"), "{shown}");
    let text = everything(&env.run(["apply", "manifest.yaml"]));
    assert!(text.contains("[redacted] [redacted] H4RMLESS"), "{text}");
    assert!(!(shown + &text).to_lowercase().contains("hunter2"));
}

/// One rule for headers, wherever they are.
#[test]
fn all_values_of_headers_are_secret() {
    let env = TestEnv::new();
    let server = ccm_testkit::Server::with_body("x");
    let url = server.url("/x.tgz");
    env.manifest(&format!(
        "ccm:\n  resources:\n    - archive:\n        - [DIR]/x.tgz: {{url: '{url}', [ME], headers: \
         {{X-One: first-one, X-Two: Bearer second-two, Accept: '*/*'}}}}\n    - exec:\n        \
         - \"true\": {{health_checks: [{{goss_rules: {{http: {{'{url}': {{status: 200, request-headers: \
         ['X-Three: third-three', 'Authorization: Basic fourth-four', 'X-Five: ab']}}}}}}}}]}}\n        \
         - says: {{command: \"echo first-one second-two third-three fourth-four Bearer Basic ab\", \
         logoutput: true}}\n",
    ));
    let output = env.run(["apply", "manifest.yaml", "--debug"]);
    let shown = everything(&output);
    assert!(output.status.success(), "{shown}");
    let line = "[redacted] [redacted] [redacted] [redacted] Bearer Basic ab";
    assert!(shown.contains(line), "{shown}");
    for secret in ["first-one", "second-two", "third-three", "fourth-four"] {
        assert!(server.requests().concat().contains(secret));
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// Names are part of logs and of the history.
#[test]
fn names_with_secrets_are_masked_in_logs_and_history() {
    let env = TestEnv::with_session();
    env.write(
        "child-hunter2-s3cret.yaml",
        "ccm: {resources: [{exec: [{child: {command: 'true'}}]}]}\n",
    );
    env.manifest(
        "data:\n  # @secret\n  token: hunter2-s3cret\nccm:\n  resources:\n    - file:\n        \
         - [DIR]/f-{{ Data.token }}: {content: new, mode: '0644', [ME]}\n    \
         - exec:\n        - run {{ Data.token }}: {command: 'true', subscribe: ['file#[DIR]/f-{{ Data.token }}'], \
         health_checks: [{command: 'true', name: 'check-{{ Data.token }}'}]}\n        \
         - next: {command: 'true', require: ['exec#run {{ Data.token }}']}\n    \
         - apply:\n        - child-{{ Data.token }}.yaml: {}\n",
    );
    std::fs::write(env.path("f-hunter2-s3cret"), "old").unwrap();
    let output = env.run(["apply", "manifest.yaml", "--debug"]);
    let all = everything(&output);
    assert!(output.status.success(), "{all}");
    assert!(!all.contains("hunter2"), "{all}");
    assert!(all.contains("debug") || all.contains("DEBUG"), "{all}");
    let json = everything(&env.run(["apply", "manifest.yaml", "--json"]));
    assert!(!json.contains("hunter2"), "{json}");
    let events = texts_below(&env.path("session"));
    assert!(!events.contains("hunter2"), "{events}");
    let runs: Value = serde_json::from_str(&everything(&env.run(["history", "--json"]))).unwrap();
    let runs = runs["runs"].as_array().unwrap();
    let id = runs.last().unwrap()["id"].as_str().unwrap();
    for args in
        [&["history", "show", id, "--json"][..], &["history", "show", id], &["undo", id, "--noop"]]
    {
        let shown = everything(&env.command(args).output().unwrap());
        assert!(shown.contains("f-[redacted]"), "{args:?}: {shown}");
        assert!(!shown.contains("hunter2"), "{args:?}: {shown}");
    }
    // Undo needs the path itself; nothing else is there in clear.
    let journal =
        std::fs::read_to_string(env.state().join("runs").join(id).join("journal")).unwrap();
    assert!(journal.contains("run [redacted]"), "{journal}");
    assert!(!journal.contains("run hunter2") && !journal.contains("child-hunter2"), "{journal}");
    let undone = env.run(["undo", id, "--partial"]);
    assert!(!everything(&undone).contains("hunter2"), "{undone:?}");
    assert_eq!(env.read("f-hunter2-s3cret"), "old", "{undone:?}");
}

/// What a run was killed at is shown too.
#[test]
fn an_interrupted_run_shows_no_secret_paths() {
    let env = TestEnv::new();
    env.manifest(
        "data:\n  # @secret\n  token: hunter2-s3cret\nccm:\n  resources:\n    - file:\n        - [DIR]/f-{{ Data.token }}: {content: new, mode: '0644', [ME]}\n    \
         - exec:\n        - dies {{ Data.token }}: {command: \"sh -c 'kill -9 $PPID'\"}\n",
    );
    let output = env.run(["apply", "manifest.yaml"]);
    assert!(output.status.code().is_none_or(|code| code != 0), "{output:?}");
    let list = everything(&env.run(["history", "--json"]));
    let runs: Value = serde_json::from_str(&list).unwrap();
    if let Some(id) = runs["runs"][0]["id"].as_str() {
        for args in [&["history", "show", id, "--json"][..], &["history", "show", id]] {
            let shown = everything(&env.command(args).output().unwrap());
            assert!(!shown.contains("hunter2"), "{args:?}: {shown}");
        }
    } else {
        panic!("{list}");
    }
}

/// The lines that go may hold the secret of yesterday, which nobody knows.
#[test]
fn removed_lines_of_content_with_a_secret_are_counted() {
    let env = TestEnv::new();
    env.write("t/app.conf", "user = me\npassword = [[ Data.password ]]\n");
    env.manifest(
        "data:\n  # @secret\n  password: hunter2-s3cret\nccm:\n  resources:\n    - file:\n        \
         - [DIR]/f: {content: \"user = me\\npassword = {{ Data.password }}\\nend\\n\", mode: '0644', [ME]}\n        \
         - [DIR]/g: {content: \"open = 2\\n\", mode: '0644', [ME]}\n    \
         - scaffold:\n        - [DIR]/s: {engine: jet, source: [DIR]/t}\n",
    );
    env.write("f", "user = me\npassword = yesterday-s3cret\nand = more\nend\n");
    env.write("g", "open = 1\n");
    env.write("s/app.conf", "user = me\npassword = yesterday-s3cret\n");
    for args in [
        &["plan", "manifest.yaml"][..],
        &["plan", "manifest.yaml", "--diff=all"],
        &["plan", "manifest.yaml", "--json"],
        &["apply", "manifest.yaml", "--diff"],
    ] {
        let output = env.command(args).output().unwrap();
        let shown = everything(&output);
        assert!(shown.contains("2 lines not shown"), "{args:?}: {shown}");
        assert!(shown.contains("password = [redacted]"), "{args:?}: {shown}");
        assert!(shown.contains("-open = 1"), "{args:?}: {shown}");
        assert!(!shown.contains("yesterday") && !shown.contains("and = more"), "{args:?}: {shown}");
    }
    let runs: Value = serde_json::from_str(&everything(&env.run(["history", "--json"]))).unwrap();
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let shown = everything(&env.run(["history", "show", id]));
    assert!(shown.contains("-open = 1") && !shown.contains("yesterday"), "{shown}");
}

/// Content that its mode hides stays so while the mode widens.
#[test]
fn content_stays_hidden_when_the_mode_widens() {
    let env = TestEnv::new();
    let manifest = "ccm:\n  resources:\n    - file:\n        - [DIR]/f: {content: \"NEW-hunter2\\n\", mode: '0644', [ME]}\n";
    for old in ["OLD-hunter2\n", "NEW-hunter2\n"] {
        env.write("f", old);
        std::fs::set_permissions(env.path("f"), PermissionsExt::from_mode(0o600)).unwrap();
        env.manifest(manifest);
        for args in [
            &["plan", "manifest.yaml"][..],
            &["plan", "manifest.yaml", "--json"],
            &["apply", "manifest.yaml", "--noop", "--json", "--diff"],
            &["apply", "manifest.yaml", "--json", "--diff"],
        ] {
            let shown = everything(&env.command(args).output().unwrap());
            assert!(shown.contains("0600"), "{args:?}: {shown}");
            assert!(!shown.contains("hunter2"), "{args:?}: {shown}");
        }
    }
}

#[test]
fn hiera_shows_no_secrets() {
    let env = TestEnv::new();
    env.write("d.yaml", "data:\n  # @secret\n  token: hunter2-s3cret\n  # @secret\n  pin: 4711\n  url: 'x-hunter2-s3cret'\n  open: yes-it-is\n");
    for flags in [&[][..], &["--yaml"], &["--env"], &["--query", "token"], &["--query", "url"]] {
        let output = env.command(["hiera", "parse", "d.yaml"]).args(flags).output().unwrap();
        let shown = everything(&output);
        assert!(output.status.success(), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("4711"), "{flags:?}: {shown}");
        assert!(shown.contains("[redacted]"), "{flags:?}: {shown}");
        assert_eq!(shown.contains("yes-it-is"), !flags.contains(&"--query"), "{flags:?}: {shown}");
    }
}

/// Programs print secrets as JSON and as parts of URLs.
#[test]
fn escaped_secrets_are_found() {
    let env = TestEnv::new();
    env.write("say", "{\"p\": \"a\\\"b\\\\c d@e\\/f\"} a%22b%5cc%20d%40e%2Ff a%22b%5Cc+d%40e/f\n");
    env.manifest(
        "data:\n  # @secret\n  token: 'a\"b\\c d@e/f'\nccm:\n  resources:\n    - exec:\n        \
         - cat [DIR]/say: {logoutput: true}\n",
    );
    let shown = everything(&env.run(["apply", "manifest.yaml"]));
    assert!(shown.contains("{\"p\": \"[redacted]\"} [redacted] [redacted]\n"), "{shown}");
}
