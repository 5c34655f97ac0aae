//! Requests and responses, as other programs send and read them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use ccm_testkit::{handles, wait_until};
use serde_json::{Value, json};

use crate::TestEnv;

const REQUEST: &str = "io.choria.ccm.v1.resource.ensure.request";
const RESPONSE: &str = "io.choria.ccm.v1.resource.ensure.response";

/// Sends a text; the exit code and what came back.
fn pipe(env: &TestEnv, flags: &[&str], text: &str) -> (i32, String) {
    let mut child = env
        .command(["ensure", "api", "pipe"].iter().chain(flags))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = text.to_owned();
    // Whoever does not read answers while asking waits for ever.
    let asking = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    asking.join().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn file(env: &TestEnv, name: &str, content: &str) -> Value {
    let (uid, gid) = (nix::unistd::geteuid().to_string(), nix::unistd::getegid().to_string());
    json!({"protocol": REQUEST, "type": "file", "properties": {
        "name": env.path(name), "content": content, "owner": uid, "group": gid, "mode": "0644",
    }})
}

#[test]
fn one_request_gets_one_response() {
    let env = TestEnv::new();
    env.write(".hiera", "data: {x: 5}\n");
    let request = file(&env, "f", "{{ Data.x }}").to_string();
    let (code, text) = pipe(&env, &[], &request);
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, text.lines().count()), (0, 1));
    assert_eq!(response["protocol"], RESPONSE);
    assert_eq!(response["state"]["changed"], true);
    assert_eq!(response["state"]["properties"]["content"], "5");
    assert_eq!(env.read("f"), "5");
    let (code, text) = pipe(&env, &["--yaml"], &request);
    assert_eq!(code, 0);
    assert!(text.contains("\nstate:\n") && text.contains("  changed: false\n"), "{text}");
    // The same as YAML, as a preview.
    let yaml = format!(
        "protocol: {REQUEST}\ntype: file\nproperties:\n  name: {}\n  ensure: absent\n",
        env.path("f").display()
    );
    let (code, text) = pipe(&env, &["--noop"], &yaml);
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0);
    assert_eq!(response["state"]["noop_message"], "Would have removed the file");
    assert!(env.path("f").exists());
}

#[test]
fn data_is_a_plain_map_or_hierarchical() {
    let env = TestEnv::new();
    env.write("plain.yaml", "x: {y: plain}\n");
    env.write(
        "deep.yaml",
        "data: {x: {y: deep}}\nhierarchy: {order: [a]}\noverrides: {a: {x: {y: over}}}\n",
    );
    let request = file(&env, "f", "{{ Data.x.y }}").to_string();
    for (data, wanted) in [("plain.yaml", "plain"), ("deep.yaml", "over")] {
        let (code, _) = pipe(&env, &["--data", data], &request);
        assert_eq!((code, env.read("f").as_str()), (0, wanted));
    }
    let (code, text) = pipe(
        &env,
        &["--data", "plain.yaml", "--fact", "a=b"],
        &file(&env, "f", "{{ Facts.a }}").to_string(),
    );
    assert_eq!((code, env.read("f").as_str()), (0, "b"), "{text}");
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    let env = TestEnv::new();
    let error = |request: &str| {
        let (code, text) = pipe(&env, &[], request);
        let response: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &response["protocol"]), (1, &json!(RESPONSE)), "{request}");
        assert!(response.get("state").is_none());
        response["error"].as_str().unwrap().to_owned()
    };
    let with = |text: &str| format!("{{\"protocol\": \"{REQUEST}\", {text}}}");
    insta::assert_snapshot!(error(""), @"a request must be one map about one resource, not null");
    insta::assert_snapshot!(error("{\"protocol\": "), @"cannot parse the request: unclosed bracket '{' (line 1, column 1)");
    insta::assert_snapshot!(error("[]"), @"a request must be one map about one resource, not a list");
    insta::assert_snapshot!(error("[{}, {}]"), @"a request must be one map about one resource, not a list");
    insta::assert_snapshot!(error("{}"), @"the protocol is missing, expected `io.choria.ccm.v1.resource.ensure.request`");
    insta::assert_snapshot!(error("{\"protocol\": \"x\"}"), @"wrong protocol `x`, expected `io.choria.ccm.v1.resource.ensure.request`");
    insta::assert_snapshot!(error(&with("\"properties\": {}")), @"the type is missing");
    insta::assert_snapshot!(error(&with("\"type\": \"fiel\", \"properties\": {}")), @"the type `fiel` is not available here (did you mean `file`?)");
    // The types follow, and this test stays as it is when there is a new one.
    let not_offered = error(&with("\"type\": \"apply\", \"properties\": {\"name\": \"x\"}"));
    let wanted = "the type `apply` is not available here (available types: archive, ";
    assert!(not_offered.starts_with(wanted), "{not_offered}");
    insta::assert_snapshot!(error(&with("\"type\": \"file\"")), @"the properties are missing");
    insta::assert_snapshot!(error(&with("\"type\": \"file\", \"properties\": []")), @"the properties must be a map, not a list");
    insta::assert_snapshot!(error(&with("\"type\": \"file\", \"properties\": {}")), @"
    file#: a resource needs a name
    file#: property `owner` is required (owner: Owner, as user name or ID)
    file#: property `group` is required (group: Group, as name or ID)
    file#: property `mode` is required (mode: Permissions in octal, `0777` at most)
    ");
    insta::assert_snapshot!(error(&with("\"type\": \"file\", \"properties\": {\"name\": \"/x\", \"contnet\": 1}")), @"file#/x: unknown property `contnet` (did you mean `content`?)");
    insta::assert_snapshot!(error(&with("\"type\": \"exec\", \"properties\": {\"name\": \"{{ nope }}\"}")), @"
    exec#{{ nope }}: name: unknown name nope
     --> template:1:4
      |
    1 | {{ nope }}
      |    ^^^^
    ");
    insta::assert_snapshot!(error(&with("\"typ\": 1")), @"unknown key `typ` in the request (did you mean `type`?)");
    insta::assert_snapshot!(error(&with("\"type\": \"exec\", \"type\": \"exec\"")), @"cannot parse the request: duplicate key `type` (line 1, column 74)");
}

#[test]
fn a_resource_that_failed_is_a_state() {
    let env = TestEnv::new();
    let request = json!({"protocol": REQUEST, "type": "exec", "properties": {"name": "false"}});
    let (code, text) = pipe(&env, &[], &request.to_string());
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &response["state"]["failed"]), (1, &json!(true)));
    assert!(response.get("error").is_none());
}

#[test]
fn a_stream_answers_each_request_before_the_next_comes() {
    let env = TestEnv::new();
    let mut child = env
        .command(["ensure", "api", "pipe", "--stream"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |request: &Value| -> Value {
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let subscriber = |extra: Value| {
        let mut properties = json!({"name": "echo", "logoutput": true, "refresh_only": true, "subscribe": [format!("file#{}", env.path("f").display())]});
        properties.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"protocol": REQUEST, "type": "exec", "properties": properties})
    };
    assert_eq!(
        ask(&subscriber(json!({})))["state"]["failed"],
        true,
        "nothing of that name has run"
    );
    assert_eq!(ask(&file(&env, "f", "1"))["state"]["changed"], true);
    assert_eq!(env.read("f"), "1");
    assert_eq!(ask(&subscriber(json!({})))["state"]["refreshed"], true);
    assert_eq!(ask(&file(&env, "f", "1"))["state"]["changed"], false);
    assert_eq!(ask(&subscriber(json!({})))["state"]["changed"], false);
    assert!(ask(&json!({"x": 1}))["error"].is_string());
    let requiring = json!({"require": ["exec#missing"]});
    assert_eq!(ask(&subscriber(requiring))["state"]["failed"], true);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1), "something failed");
}

#[test]
fn many_requests_in_a_row_are_answered_in_order() {
    let env = TestEnv::new();
    let mut text = String::new();
    for n in 0..300 {
        text += &format!("{}\n\n", file(&env, &format!("f{n}"), &"x".repeat(5000)));
    }
    text.truncate(text.trim_end().len());
    let (code, out) = pipe(&env, &["--stream"], &text);
    let names: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["state"]["name"].clone())
        .collect();
    let wanted: Vec<Value> = (0..300).map(|n| json!(env.path(&format!("f{n}")))).collect();
    assert_eq!((code, names), (0, wanted));
    let yaml = "---\nprotocol: io.choria.ccm.v1.resource.ensure.request\ntype: exec\nproperties:\n  name: \"true\"\n---\n[]\n...\n";
    let (code, out) = pipe(&env, &["--stream", "--yaml"], yaml);
    assert_eq!((code, out.matches("---\n").count()), (1, 2), "{out}");
}

#[test]
fn the_clients_in_other_languages_work() {
    let env = TestEnv::new();
    let run = |program: &str, script: &str| {
        let script = format!("{}/../../examples/api/{script}", env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(program)
            .args([&script, env.path("greeting").to_str().unwrap()])
            .env("CCM", env!("CARGO_BIN_EXE_ccm"))
            .env("CCM_STATE_DIR", env.state())
            .current_dir(env.dir())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    insta::assert_snapshot!(run("python3", "ensure.py"), @"
    greeting: changed
    reader: ran
    refused: file#relative: name: file path must be absolute, `relative` is not
    ");
    insta::assert_snapshot!(run("python3", "ensure.py"), @"
    greeting: stable
    reader: not needed
    refused: file#relative: name: file path must be absolute, `relative` is not
    ");
    insta::assert_snapshot!(run("sh", "ensure.sh"), @"greeting: changed");
    insta::assert_snapshot!(run("sh", "ensure.sh"), @"greeting: stable");
}

#[test]
fn a_signal_ends_the_wait_for_requests() {
    let env = TestEnv::new();
    for flags in [&[][..], &["--stream"], &["--stream", "--yaml"]] {
        let mut child = env
            .command(["ensure", "api", "pipe"].iter().chain(flags))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // Not a whole request: it must not be acted on.
        write!(input, "{{\"protocol\": ").unwrap();
        let (pid, signal) = (child.id().cast_signed(), nix::sys::signal::Signal::SIGTERM);
        wait_until("ccm to wait for requests", || handles(pid, signal));
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(143), "{flags:?}");
        assert_eq!(output.stdout, b"", "{flags:?}");
        drop(input);
    }
}

#[test]
fn a_stream_whose_reader_is_gone_does_nothing_more() {
    let env = TestEnv::new();
    let mut child = env
        .command(["ensure", "api", "pipe", "--stream"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    writeln!(input, "{}", file(&env, "f0", "x")).unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    drop(output);
    for n in 1..20 {
        if writeln!(input, "{}", file(&env, &format!("f{n}"), "x")).is_err() {
            break;
        }
        // A client with its own pace: answers to requests that are there already come
        // together.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(env.path("f0").exists() && !env.path("f5").exists(), "{:?}", env.names());
}
