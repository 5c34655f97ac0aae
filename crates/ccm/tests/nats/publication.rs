//! `register_when_stable`: what is published, and when.

use ccm_testkit::nats::lacks_nats;
use serde_json::Value;

use crate::bed::{Bed, context};

const ENTRY: &str = "register_when_stable: [{cluster: prod, service: SERVICE, protocol: http, \
                     address: 10.0.0.1, port: \"{{ Data.port }}\", priority: 10, ttl: 10m, \
                     annotations: {version: \"{{ Data.version }}\"}}]";

fn bed() -> Bed {
    let bed = Bed::new();
    bed.ok(["registration", "init"]);
    bed
}

fn services(bed: &Bed) -> Vec<String> {
    let found: Value = serde_json::from_str(&bed.ok(["registration", "query", "--json"])).unwrap();
    let mut names: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["service"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// A manifest of these resources; `@name` is an entry for a service.
fn manifest(resources: &str) -> String {
    let mut text =
        format!("data: {{port: 8080, version: \"1.2\"}}\nccm:\n  resources:\n{resources}");
    while let Some(at) = text.find('@') {
        let name: String = text[at + 1..].chars().take_while(char::is_ascii_alphanumeric).collect();
        text.replace_range(at..=at + name.len(), &ENTRY.replace("SERVICE", &name));
    }
    text
}

const RESOURCES: &str = "    - exec:
        - stable: {command: \"false\", creates: /etc, @stable}
        - changed: {command: \"true\", @changed}
        - failed: {command: \"false\", @failed}
        - skipped: {command: \"true\", control: {if: \"false\"}, @skipped}
        - unmet: {command: \"true\", require: [\"exec#failed\"], @unmet}
        - healthy: {command: \"true\", health_checks: [{command: \"true\"}], @healthy}
        - warned: {command: \"true\", health_checks: [{command: \"sh -c 'exit 1'\"}], @warned}
        - critical: {command: \"true\", health_checks: [{command: \"sh -c 'exit 2'\"}], @critical}
    - file:
        - \"[DIR]/gone\": {ensure: absent, @absent}
        - \"[DIR]/there\": {ensure: present, [ME], mode: \"0600\", content: x, @present}
";

#[test]
fn only_what_is_known_to_work_is_published() {
    if lacks_nats() {
        return;
    }
    let bed = bed();
    let text = manifest(RESOURCES);
    // Not without the flag, and not in noop.
    assert_eq!(bed.apply(&text, &[]).code, 1);
    assert_eq!(bed.apply(&text, &["--register", "jetstream", "--noop"]).code, 0);
    assert_eq!(services(&bed), [""; 0]);
    let ran = bed.apply(&text, &["--register", "jetstream"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(services(&bed), ["changed", "healthy", "present", "stable"]);
    let found: Value = serde_json::from_str(&bed.ok(["registration", "query", "--json"])).unwrap();
    assert_eq!(found[0]["port"], 8080);
    assert_eq!(found[0]["annotations"]["version"], "1.2");
    assert_eq!(found[0]["ttl"], "10m0s");
    // Only health checks: only what has some was looked at.
    let bed = self::bed();
    bed.apply(&text, &["--register", "jetstream", "--monitor-only"]);
    assert_eq!(services(&bed), ["healthy"]);
}

#[test]
fn children_and_requests_count_like_others() {
    if lacks_nats() {
        return;
    }
    let bed = bed();
    bed.env
        .write("child.yaml", &manifest("    - exec:\n        - c: {command: \"true\", @child}\n"));
    let text = manifest("    - apply:\n        - \"[DIR]/child.yaml\": {@parent}\n");
    let ran = bed.apply(&text, &["--register", "jetstream"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(services(&bed), ["child", "parent"]);
    let request = r#"{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exec","properties":{"name":"true","register_when_stable":[{"cluster":"c","service":"piped","protocol":"p","address":"::1","priority":1}]}}"#;
    let ran = bed.piped(["ensure", "api", "pipe"], request);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(services(&bed), ["child", "parent"]);
    let ran = bed.piped(["ensure", "api", "pipe", "--register", "jetstream"], request);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(services(&bed), ["child", "parent", "piped"]);
}

#[test]
fn listeners_get_entries_without_headers() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.subscribe("choria.ccm.registration.v1.>");
    let text = manifest("    - exec:\n        - c: {command: \"true\", @web}\n");
    let ran = bed.apply(&text, &["--register", "nats"]);
    assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
    let message = wire.next_message();
    assert!(message.subject.starts_with("choria.ccm.registration.v1.prod.http.web.10_0_0_1."));
    assert!(message.headers.is_empty(), "{message:?}");
    assert_eq!(
        String::from_utf8(message.payload).unwrap(),
        r#"{"cluster":"prod","service":"web","protocol":"http","address":"10.0.0.1","port":8080,"priority":10,"annotations":{"version":"1.2"},"ttl":"10m0s"}"#
    );
}

/// Who listens to everything also takes the messages by which ccm learns that
/// the server has seen an entry.
#[test]
fn a_listener_to_everything_delays_nothing() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.subscribe(">");
    wire.flush();
    let text = manifest("    - exec:\n        - c: {command: \"true\", @web}\n");
    let begin = std::time::Instant::now();
    let ran = bed.apply(&text, &["--register", "nats"]);
    assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
    assert!(begin.elapsed().as_secs() < 4, "{:?}", begin.elapsed());
    wire.publish("the.end", &[], b"");
    let mut entries = 0;
    loop {
        let message = wire.next_message();
        entries += usize::from(message.subject.starts_with("choria.ccm.registration.v1."));
        if message.subject == "the.end" {
            break;
        }
    }
    assert_eq!(entries, 1);
}

/// `apply` publishes to another stream, and templates read from it.
#[test]
fn a_stream_of_another_name() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    bed.ok(["registration", "init", "-R", "OTHER"]);
    let text = manifest("    - exec:\n        - c: {command: \"true\", @web}\n");
    let ran = bed.apply(&text, &["--register", "jetstream"]);
    assert!(ran.err.contains("another stream than REGISTRATION"), "{ran:?}");
    let ran = bed.apply(&text, &["--register", "jetstream", "-R", "OTHER"]);
    assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
    let found = bed.ok(["registration", "query", "--json", "--registration", "OTHER"]);
    assert!(found.contains("\"web\""), "{found}");
    let echo = "echo {{ registrations('*', '*', '*', '*')[0].service }} found";
    let printed = bed.ok(["ensure", "exec", echo, "--logoutput", "--registration", "OTHER"]);
    assert!(printed.contains("web found"), "{printed}");
    let ran = bed.run(["apply", "manifest.yaml", "-R", "a.b"]);
    assert_eq!(ran.code, 64, "{ran:?}");
}

/// What cannot be published never fails a run.
#[test]
fn a_registry_that_is_not_there_only_warns() {
    if lacks_nats() {
        return;
    }
    let mut bed = Bed::new();
    let text = manifest(
        "    - exec:\n        - a: {command: \"true\", @one}\n        - b: {command: \"true\", @two}\n",
    );
    let ran = bed.apply(&text, &["--register", "jetstream"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("cannot register one: no stream `REGISTRATION`"), "{ran:?}");
    assert!(ran.err.contains("2 registrations were not published"), "{ran:?}");
    bed.server.kill();
    let ran = bed.apply(&text, &["--register", "jetstream", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(
        report["warnings"].to_string().contains("2 registrations were not published"),
        "{report}"
    );
    assert!(ran.err.contains("connection refused"), "{ran:?}");
    std::fs::remove_file(bed.env.path(".config/nats/context/CCM.json")).unwrap();
    let ran = bed.apply(&text, &["--register", "nats"]);
    assert!(ran.code == 0 && ran.err.contains("unknown NATS context"), "{ran:?}");
    context(&bed.env, "CCM", "\"url\": \"nats://127.0.0.1:1\"");
    let began = std::time::Instant::now();
    bed.apply(&text, &["--register", "nats"]);
    assert!(began.elapsed().as_secs() < 20);
}

#[test]
fn wrong_entries_make_the_manifest_invalid_with_their_place() {
    let env = crate::env::TestEnv::new();
    for (entry, words) in [
        (
            "{cluster: a.b, service: s, protocol: p, address: 1.2.3.4, priority: 1}",
            "cluster: `a.b` is not a name",
        ),
        ("{service: s, protocol: p, address: 1.2.3.4, priority: 1}", "`cluster` is required"),
        (
            "{cluster: c, service: s, protocol: p, address: host, priority: 1}",
            "address: `host` is not an IPv4",
        ),
        ("{cluster: c, service: s, protocol: p, address: 1.2.3.4}", "`priority` is required"),
        (
            "{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 300}",
            "priority: must be a whole number from 1 to 255",
        ),
        (
            "{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1, port: 0}",
            "port: must be a whole number from 1 to 65535",
        ),
        (
            "{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1, ttl: 1ms}",
            "ttl: `1ms` is not a time to live",
        ),
        (
            "{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1, prot: 1}",
            "unknown property `prot`",
        ),
        (
            "{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1, annotations: [1]}",
            "expected a map",
        ),
    ] {
        env.manifest(&format!("ccm:\n  resources:\n    - exec:\n        - \"touch [DIR]/ran\":\n            register_when_stable:\n              - {entry}\n"));
        let output = env.run(["apply", "manifest.yaml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{entry}: {said}");
        assert!(said.contains(words), "{entry}: {said}");
        assert!(
            said.contains("manifest.yaml:6:") || said.contains("--> manifest.yaml:6"),
            "{entry}: {said}"
        );
        assert!(!env.path("ran").exists());
    }
    let large = "x".repeat(33 << 10);
    env.manifest(&format!("ccm:\n  resources:\n    - exec:\n        - a: {{command: \"true\", register_when_stable: [{{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1, annotations: {{a: {large}}}}}]}}\n"));
    let output = env.run(["validate", "manifest.yaml"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("at most 32 KiB"));
}
