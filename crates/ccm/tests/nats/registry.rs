//! `ccm registration`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use ccm_model::RegistryEntry;
use ccm_testkit::nats::{Wire, lacks_nats};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bed::{Bed, Ran, context};

const WEB: [&str; 10] = [
    "--cluster",
    "prod",
    "--service",
    "web",
    "--protocol",
    "http",
    "--address",
    "10.0.0.1",
    "--port",
    "80",
];

fn registration(bed: &Bed, args: &[&str]) -> Ran {
    let args = ["registration"].iter().chain(args).copied();
    Ran::of(&bed.env.command(args).stdin(Stdio::null()).output().unwrap())
}

fn with<'a>(first: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [first, rest].concat()
}

fn stream(bed: &Bed, name: &str) -> Value {
    serde_json::from_str(&bed.wire().api(&format!("STREAM.INFO.{name}"), "")).unwrap()
}

#[test]
fn a_stream_is_made_ready() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let ran = registration(&bed, &["init"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            "Created stream REGISTRATION\n  Subjects: choria.ccm.registration.v1.>\n  Replicas: 1\n   \
             Max age: 15m\n"
        ),
        "{ran:?}"
    );
    let config = stream(&bed, "REGISTRATION")["config"].clone();
    for (name, wanted) in [
        ("subjects", serde_json::json!(["choria.ccm.registration.v1.>"])),
        ("retention", "limits".into()),
        ("storage", "file".into()),
        ("max_msgs_per_subject", 1.into()),
        ("discard", "old".into()),
        ("allow_rollup_hdrs", true.into()),
        ("allow_msg_ttl", true.into()),
        ("allow_direct", true.into()),
        ("deny_delete", true.into()),
        ("deny_purge", false.into()),
        ("num_replicas", 1.into()),
        ("max_age", 900_000_000_000_u64.into()),
        ("subject_delete_marker_ttl", 900_000_000_000_u64.into()),
    ] {
        assert_eq!(config[name], wanted, "{name}");
    }
    let ran = registration(&bed, &["init"]);
    assert!(ran.code == 0 && ran.out.starts_with("Unchanged stream"), "{ran:?}");
    let ran = registration(&bed, &["init", "--max-age", "20m"]);
    assert!(ran.code == 0 && ran.out.starts_with("Updated stream"), "{ran:?}");
    assert!(ran.out.contains("Changed: max_age from 900000000000 to 1200000000000"), "{ran:?}");
    assert_eq!(stream(&bed, "REGISTRATION")["config"]["max_age"], 1_200_000_000_000_u64);
    // A stream of the original, without direct reads.
    bed.wire().api(
        "STREAM.CREATE.OLD",
        r#"{"name":"OLD","subjects":["old.>"],"storage":"file","max_msgs_per_subject":1,"allow_rollup_hdrs":true,"deny_delete":true,"max_age":60000000000}"#,
    );
    bed.wire().api("STREAM.DELETE.REGISTRATION", "");
    let ran = registration(&bed, &["init", "-R", "OLD"]);
    assert!(ran.code == 0 && ran.out.contains("Changed: allow_direct"), "{ran:?}");
    // What cannot be changed.
    bed.wire().api("STREAM.DELETE.OLD", "");
    for (name, more) in
        [("MEM", "\"storage\":\"memory\",\"deny_delete\":true"), ("DEL", "\"storage\":\"file\"")]
    {
        let body = format!("{{\"name\":\"{name}\",\"subjects\":[\"{name}.>\"],{more}}}");
        bed.wire().api(&format!("STREAM.CREATE.{name}"), &body);
        let ran = registration(&bed, &["init", "-R", name]);
        assert!(ran.code == 1 && ran.err.contains("cannot be changed"), "{ran:?}");
        assert!(ran.err.contains(&format!("nats stream rm {name}")), "{ran:?}");
    }
    // What the server refuses: one server keeps no three copies.
    let ran = registration(&bed, &["init", "--replicas", "3"]);
    assert!(ran.code == 1 && ran.err.contains("NATS refused to create stream"), "{ran:?}");
}

#[test]
fn wrong_usage_is_64() {
    let env = crate::env::TestEnv::new();
    for args in [
        vec!["init", "--replicas", "0"],
        vec!["init", "--replicas", "6"],
        vec!["init", "--max-age", "500ms"],
        vec!["init", "--max-age", "soon"],
        vec!["init", "-R", "a.b"],
        vec!["init", "-R", "*"],
        vec!["init", "-R", ""],
        vec!["create", "--cluster", "a"],
        with(&["create", "--priority", "0"], &WEB),
        with(&["create", "--priority", "256"], &WEB),
        with(&["create", "--priority", "x"], &WEB),
        with(&["create", "--ttl", "500ms"], &WEB),
        with(&["create", "--ttl", "soon"], &WEB),
        with(&["create", "-A", "novalue"], &WEB),
        with(&["create", "-A", "=v"], &WEB),
        with(&["create"], &[&WEB[..8], &["--port", "0"]].concat()),
        with(&["create"], &[&WEB[..8], &["--port", "65536"]].concat()),
        with(&["create"], &[&WEB[..6], &["--address", "localhost"]].concat()),
        with(&["create"], &[&["--cluster", "a.b"], &WEB[2..]].concat()),
        with(&["create"], &[&["--cluster", "*"], &WEB[2..]].concat()),
        with(&["rm"], &WEB),
        vec!["query", "a b"],
        vec!["query", "a.b"],
        vec!["query", ">"],
        vec!["query", "a", "b", "c", "host"],
        vec!["query", "a", "b", "c", "1.2.3.4", "more"],
        vec!["query", "--json", "--yaml"],
        vec!["watch", "é"],
        vec!["nope"],
    ] {
        let all = ["registration"].iter().chain(&args).copied();
        let output = env.command(all).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
    }
    let long = "a".repeat(300);
    let output = env.run(["registration", "query", &long]);
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn entries_come_and_go() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let ran = registration(&bed, &["query"]);
    assert!(ran.code == 1 && ran.err.contains("no stream `REGISTRATION`"), "{ran:?}");
    let ran = registration(&bed, &with(&["create"], &WEB));
    assert!(ran.code == 1 && ran.err.contains("no stream `REGISTRATION`"), "{ran:?}");
    registration(&bed, &["init"]);
    let ran = registration(&bed, &["query"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "No results found\n"), "{ran:?}");
    assert_eq!(registration(&bed, &["query", "--json"]).out, "[]\n");
    assert_eq!(registration(&bed, &["q", "--prometheus"]).out, "[]\n");
    let more =
        ["-A", "version=1.2.3", "-A", "url=http://x/?a=b", "--ttl", "10m", "--priority", "10"];
    let ran = registration(&bed, &[&["c"], &WEB[..], &more[..]].concat());
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "Registered choria.ccm.registration.v1.prod.http.web.10_0_0_1.b5dab0e5bff8ac7a\n"),
        "{ran:?}"
    );
    let entry = "{\"cluster\":\"prod\",\"service\":\"web\",\"protocol\":\"http\",\"address\":\"10.0.0.1\",\"port\":80,\"priority\":10,\"annotations\":{\"url\":\"http://x/?a=b\",\"version\":\"1.2.3\"},\"ttl\":\"10m0s\"}";
    let found: Value = serde_json::from_str(&registration(&bed, &["query", "--json"]).out).unwrap();
    assert_eq!(serde_json::to_string(&found[0]).unwrap(), entry);
    let stored = bed.wire().api(
        "STREAM.MSG.GET.REGISTRATION",
        r#"{"last_by_subj":"choria.ccm.registration.v1.prod.http.web.10_0_0_1.b5dab0e5bff8ac7a"}"#,
    );
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let decode = |name: &str| {
        use base64::Engine as _;
        let text = stored["message"][name].as_str().unwrap();
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap()
    };
    assert_eq!(decode("data"), entry);
    let headers = decode("hdrs");
    for wanted in ["Nats-Rollup: sub", "Nats-TTL: 10m0s", "Nats-Expected-Stream: REGISTRATION"] {
        assert!(headers.contains(wanted), "{headers}");
    }
    assert!(registration(&bed, &["query", "--yaml"]).out.contains("service: web"));
    assert!(
        registration(&bed, &["query"])
            .out
            .starts_with("Service: web @ prod\n\n       Cluster: prod\n")
    );
    for (query, count) in [
        (vec!["prod", "http", "web", "10.0.0.1"], 1),
        (vec!["*", "*", "*", "10.0.0.1"], 1),
        (vec!["prod"], 1),
        (vec!["other"], 0),
        (vec!["prod", "http", "web", "10.0.0.2"], 0),
    ] {
        let ran = registration(&bed, &with(&["query", "--json"], &query));
        let found: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(found.as_array().unwrap().len(), count, "{query:?}");
    }
    // Removing: nobody to ask, no such entry, and the entry itself.
    let other = [&WEB[..8], &["--port", "81"]].concat();
    let ran = registration(&bed, &[&["rm", "--force"], &other[..]].concat());
    assert!(ran.code == 0 && ran.out.contains("No such entry"), "{ran:?}");
    let ran = registration(&bed, &[&["delete", "--force"], &WEB[..]].concat());
    assert!(ran.code == 0 && ran.out.starts_with("Removed choria"), "{ran:?}");
    assert_eq!(registration(&bed, &["query", "--json"]).out, "[]\n");
    let ran = registration(&bed, &[&["rm", "--force"], &WEB[..]].concat());
    assert!(ran.code == 0 && ran.out.contains("No such entry"), "{ran:?}");
    // Entries without a port, and without a time of their own.
    let ran = registration(&bed, &[&["create", "--ttl", ""], &WEB[..8]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = registration(&bed, &["query"]);
    assert!(ran.out.contains("Port: -") && !ran.out.contains("TTL"), "{ran:?}");
}

/// A person at a terminal is asked first.
#[test]
fn removal_asks_at_a_terminal() {
    if lacks_nats() || ccm_testkit::lacks_program("script") {
        return;
    }
    let bed = Bed::new();
    registration(&bed, &["init"]);
    registration(&bed, &with(&["create"], &WEB));
    let line = format!("{} registration rm {}", env!("CARGO_BIN_EXE_ccm"), WEB.join(" "));
    for (answer, count) in [("\n", 1), ("n\n", 1), ("y\n", 0)] {
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("HOME", bed.env.dir());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("? (y/N)"), "{said}");
        let found: Value =
            serde_json::from_str(&registration(&bed, &["query", "--json"]).out).unwrap();
        assert_eq!(found.as_array().unwrap().len(), count, "{answer:?}: {said}");
    }
    let line = format!("{line}; exit $?");
    let output = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("HOME", bed.env.dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let _ = output;
}

#[test]
fn garbage_is_passed_over_with_a_warning() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    registration(&bed, &["init"]);
    registration(&bed, &with(&["create"], &WEB));
    let mut wire = bed.wire();
    let huge = vec![b'x'; 500_000];
    for (index, garbage) in [
        &b"not json"[..],
        b"[]",
        b"{}",
        b"",
        b"{\"cluster\":1}",
        b"\xff\xfe",
        &huge,
        b"null",
        br#"{"cluster":"c","service":"s","protocol":"p","address":"a","port":"80"}"#,
    ]
    .iter()
    .enumerate()
    {
        wire.publish(&format!("choria.ccm.registration.v1.a.b.c.1_2_3_4.g{index}"), &[], garbage);
        wire.publish(&format!("choria.ccm.registration.v1.odd{index}"), &[], garbage);
    }
    // Subjects and fields that a terminal would obey, or that fill it.
    let long = "x".repeat(300);
    let text = format!("{{\"cluster\":\"c\",\"port\":\"{}\"}}", "y".repeat(400_000));
    wire.publish("choria.ccm.registration.v1.\x1b[31m.b.c.d.e", &[], b"x");
    wire.publish(&format!("choria.ccm.registration.v1.{long}.b.c.d.e"), &[], b"{");
    wire.publish("choria.ccm.registration.v1.a.b.c.d.long", &[], text.as_bytes());
    wire.flush();
    let ran = registration(&bed, &["query", "--json"]);
    assert!(!ran.err.contains('\x1b') && ran.err.len() < 10_000, "{ran:?}");
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1, "{ran:?}");
    assert!(ran.err.contains("is not a registration"), "{ran:?}");
    assert!(ran.err.contains("7 more messages of REGISTRATION are not registrations"), "{ran:?}");
    // A stream full of it.
    for number in 0..5_000 {
        let subject = format!("choria.ccm.registration.v1.a.b.c.1_2_3_4.full{number}");
        wire.publish(&subject, &[], b"{\"cluster\": \"a\"}");
        if number % 500 == 499 {
            wire.flush();
        }
    }
    let ran = registration(&bed, &["query", "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1, "{ran:?}");
    assert!(ran.err.contains("5007 more messages of REGISTRATION"), "{ran:?}");
    assert!(ran.err.len() < 10_000, "{ran:?}");
}

/// Servers grant subjects and do not look at payloads: a client that may only
/// publish below one service must not be able to announce another.
#[test]
fn entries_count_only_on_their_own_subject() {
    if lacks_nats() {
        return;
    }
    let mine = "choria.ccm.registration.v1.prod.http.blog.>";
    let bed = Bed::with(&format!(
        "authorization {{ users = [\n  {{ user: admin, password: adm1n-word }}\n  {{ user: blog, \
         password: blog-word, permissions: {{ publish: [\"{mine}\"], subscribe: [\"_INBOX.>\"] }} }}\n] }}"
    ));
    let login = format!(
        "\"url\": \"{}\", \"user\": \"admin\", \"password\": \"adm1n-word\"",
        bed.server.url()
    );
    context(&bed.env, "CCM", &login);
    registration(&bed, &["init"]);
    registration(&bed, &with(&["create"], &WEB));
    let entry = |service: &str, address: &str, port: i64| RegistryEntry {
        cluster: "prod".to_owned(),
        service: service.to_owned(),
        protocol: "http".to_owned(),
        address: address.to_owned(),
        port: Some(port),
        priority: 1,
        annotations: [].into(),
        ttl: None,
    };
    let honest = entry("blog", "10.0.0.2", 80);
    let place = "choria.ccm.registration.v1.prod.http.blog.10_0_0_2";
    let forged = [
        // Another service, cluster, protocol, address and port than the subject says.
        (format!("{place}.1"), entry("web", "10.6.6.6", 80)),
        (format!("{place}.2"), RegistryEntry { cluster: "x".to_owned(), ..honest.clone() }),
        (format!("{place}.3"), RegistryEntry { protocol: "x".to_owned(), ..honest.clone() }),
        (entry("blog", "10.0.0.3", 80).subject(), entry("blog", "10.6.6.6", 80)),
        (entry("blog", "10.0.0.2", 81).subject(), entry("blog", "10.0.0.2", 22)),
        // The instance of another entry, and none at all.
        (format!("{place}.{}", entry("web", "10.0.0.1", 80).instance()), honest.clone()),
        (format!("{place}.x"), honest.clone()),
        // Names that only look like the subject once they are put together.
        (entry("blog", "10.0.0.2.web", 80).subject(), entry("blog", "10.0.0.2.web", 80)),
        (entry("blog", "::x", 80).subject(), entry("blog", "::x", 80)),
    ];
    let mut wire = Wire::login(&bed.server.address, "\"user\":\"blog\",\"pass\":\"blog-word\"");
    wire.publish(&honest.subject(), &[], honest.payload().as_bytes());
    for (subject, entry) in &forged {
        wire.publish(subject, &[], entry.payload().as_bytes());
    }
    wire.flush();
    let ran = registration(&bed, &["query", "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let found: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {} {}", entry["service"], entry["address"], entry["port"]))
        .collect();
    assert_eq!(found, ["\"web\" \"10.0.0.1\" 80", "\"blog\" \"10.0.0.2\" 80"], "{ran:?}");
    assert!(ran.err.contains("is not a registration: it belongs on "), "{ran:?}");
    assert!(ran.err.contains("4 more messages of REGISTRATION"), "{ran:?}");
    // Templates and watchers see the same.
    let ran = bed.apply(
        "ccm: {resources: [exec: [{\"echo {{ len(registrations('*', '*', '*', '*')) }} found\": {logoutput: true}}]]}",
        &[],
    );
    assert!(ran.out.contains("2 found") && ran.err.contains("it belongs on"), "{ran:?}");
    let mut watcher = Watcher::start(&bed, &[]);
    let lines: Vec<String> = (0..2 + forged.len()).map(|_| watcher.line()).collect();
    let updates = lines.iter().filter(|line| line.starts_with("INFO Updated entry")).count();
    assert_eq!(updates, 2, "{lines:?}");
    watcher.end();
}

/// A stream without direct reads, as the original makes it.
#[test]
fn streams_without_direct_reads_are_read_by_a_consumer() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    bed.wire().api(
        "STREAM.CREATE.REGISTRATION",
        r#"{"name":"REGISTRATION","subjects":["choria.ccm.registration.v1.>"],"storage":"file","max_msgs_per_subject":1,"allow_rollup_hdrs":true,"allow_msg_ttl":true,"deny_delete":true}"#,
    );
    assert_eq!(registration(&bed, &["query", "--json"]).out, "[]\n");
    for port in ["80", "81", "82"] {
        let web = [&["create"], &WEB[..8], &["--port", port]].concat();
        assert_eq!(registration(&bed, &web).code, 0);
    }
    let ran = registration(&bed, &["query", "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 3, "{ran:?}");
    assert!(ran.err.contains("does not allow direct reads"), "{ran:?}");
    // It leaves nothing behind on the server.
    let consumers = bed.wire().api("CONSUMER.NAMES.REGISTRATION", "");
    let consumers: Value = serde_json::from_str(&consumers).unwrap();
    assert_eq!(consumers["total"], 0, "{consumers}");
}

/// A watcher, and the lines that it prints.
struct Watcher {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Watcher {
    fn start(bed: &Bed, args: &[&str]) -> Self {
        let args = ["registration", "watch"].iter().chain(args).copied();
        let mut child =
            bed.env.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it; what it said on standard error.
    fn end(self) -> String {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn changes_are_watched() {
    if lacks_nats() {
        return;
    }
    let mut bed = Bed::new();
    registration(&bed, &["init"]);
    registration(&bed, &[&["create", "--ttl", "10m"], &WEB[..]].concat());
    let mut text = Watcher::start(&bed, &[]);
    let mut json = Watcher::start(&bed, &["--json"]);
    let mut other = Watcher::start(&bed, &["other"]);
    let updated = "INFO Updated entry cluster=prod service=web protocol=http address=10.0.0.1 port=80 ttl=10m0s";
    assert_eq!(text.line(), updated);
    let line: Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!((&line["action"], &line["entry"]["port"]), (&"register".into(), &80.into()));
    // Renewed, removed, expired, undecodable.
    registration(&bed, &[&["create", "--ttl", "10m"], &WEB[..]].concat());
    assert_eq!(text.line(), updated);
    json.line();
    registration(&bed, &[&["rm", "--force"], &WEB[..]].concat());
    let removed =
        "WARN Removed entry cluster=prod service=web protocol=http address=10.0.0.1 reason=Remove";
    assert_eq!(text.line(), removed);
    assert_eq!(
        json.line(),
        r#"{"action":"remove","reason":"Remove","entry":{"cluster":"prod","protocol":"http","service":"web","address":"10.0.0.1"}}"#
    );
    registration(&bed, &[&["create", "--ttl", "1s"], &WEB[..]].concat());
    assert!(text.line().ends_with("ttl=1s"));
    assert_eq!(
        text.line(),
        removed.replace("Remove\0", "").replace("reason=Remove", "reason=MaxAge")
    );
    json.line();
    json.line();
    bed.wire().publish("choria.ccm.registration.v1.a.b.c.d.e", &[], b"x");
    assert!(text.line().starts_with("WARN the message on choria.ccm.registration.v1.a.b.c.d.e"));
    // What a message quotes does not reach the terminal as it is.
    let evil = "{\"cluster\":\"a\",\"ttl\":\"x\\u001b[31m\\u009b\"}";
    bed.wire().publish("choria.ccm.registration.v1.a.b.c.d.e", &[], evil.as_bytes());
    let line = text.line();
    assert!(line.contains("x\\u{1b}[31m\\u{9b}"), "{line}");
    // A lost connection is said, and taken up without repeating anything.
    bed.server.restart();
    let cluster = ["--cluster", "other", "--service", "s", "--protocol", "p", "--address", "::1"];
    ccm_testkit::wait_until("the server", || {
        (registration(&bed, &with(&["create"], &cluster)).code == 0).then_some(())
    });
    assert!(text.line().starts_with("INFO Updated entry cluster=other"));
    assert!(other.line().starts_with("INFO Updated entry cluster=other"));
    text.end();
    json.end();
    other.end();
}
