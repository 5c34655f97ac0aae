//! The agent with real NATS servers, when all is well and when things are bad.

use std::time::{Duration, Instant};

use ccm_testkit::nats::lacks_nats;
use ccm_testkit::wait_until;
use nix::sys::signal::Signal;

use crate::bed::Bed;
use crate::nats_bed::{self, context, put_object, tarball};

fn echo(word: &str) -> Vec<u8> {
    tarball(&format!("ccm: {{resources: [exec: [{{\"echo {word}\": {{logoutput: true}}}}]]}}\n"))
}

fn entry(service: &str, ttl: &str) -> String {
    format!(
        "register_when_stable: [{{cluster: c, service: {service}, protocol: http, address: 10.0.0.5, port: \
         80, priority: 1, ttl: {ttl}}}]"
    )
}

#[test]
fn objects_are_applied_followed_and_suspended() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "m.tgz", &echo("one"));
    let bed = Bed { env: nats.env };
    bed.manifest(
        "control.yaml",
        "file: [{\"[DIR]/c\": {ensure: directory, [ME], mode: \"0700\"}}]",
    );
    bed.configure("manifests: ['obj://M/m.tgz', '[DIR]/control.yaml']\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#echo one changed", "manifest=\"obj://M/m.tgz\""]);
    agent.wait_for(&["applied", "obj://M/m.tgz"]);
    agent.wait_for(&["applied", "control.yaml"]);
    put_object(&mut wire, "M", "m.tgz", &echo("two"));
    agent.wait_for(&["exec#echo two changed"]);
    agent.wait_for(&["applied", "reason=\"source\""]);
    let deleted = "{\"name\":\"m.tgz\",\"bucket\":\"M\",\"nuid\":\"x\",\"size\":0,\"chunks\":0,\"deleted\":true}";
    wire.put_metadata("M", &ccm_testkit::nats::encoded("m.tgz"), deleted);
    agent.wait_for(&["the object was deleted"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applying all manifests"]);
    // Manifests are applied in their order, so this one's turn has passed.
    agent.wait_for(&["applied", "control.yaml", "reason=\"signal\""]);
    assert_eq!(agent.count(&["exec#"]), 2, "a suspended manifest is not applied");
    put_object(&mut wire, "M", "m.tgz", &echo("three"));
    agent.wait_for(&["the object exists again"]);
    agent.wait_for(&["exec#echo three changed"]);
    agent.stop();
}

/// A run has no connection of its own, and knows the same URLs as `ccm apply`.
#[test]
fn resources_download_objects_through_the_agent() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_object_bucket("M", 1);
    // More than one part of the pipe between agent and run.
    let noise: Vec<u8> =
        (0..900_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let archive = ccm_testkit::tarball(&[("app/noise", &noise)]);
    put_object(&mut wire, "M", "app.tgz", &archive);
    let bed = Bed { env: nats.env };
    std::fs::create_dir(bed.env.path("into")).unwrap();
    let archive = |url: &str| {
        bed.manifest(
            "m.yaml",
            &format!(
                "archive: [{{[DIR]/app.tgz: {{url: '{url}', extract_parent: [DIR]/into, \
                 creates: [DIR]/into/app/noise, owner: {}, group: {}}}}}]",
                nix::unistd::geteuid(),
                nix::unistd::getegid()
            ),
        );
    };
    archive("obj://M/app.tgz");
    bed.configure("manifests: ['[DIR]/m.yaml']\n");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{said}");
    assert!(std::fs::read(bed.env.path("into/app/noise")).unwrap() == noise, "every byte of it");
    std::fs::remove_dir_all(bed.env.path("into/app")).unwrap();
    std::fs::remove_file(bed.env.path("app.tgz")).unwrap();
    archive("obj://M/none.tgz");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("obj://M/none.tgz") && said.contains("no object"), "{said}");
}

#[test]
fn a_broken_archive_and_an_invalid_manifest() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "m.tgz", &echo("good"));
    let bed = Bed { env: nats.env };
    bed.configure("manifests: ['obj://M/m.tgz']\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#echo good changed"]);
    for bad in [b"not an archive".to_vec(), tarball("ccm: [\n")] {
        let before = agent.count(&["ERROR", "obj://M/m.tgz"]);
        put_object(&mut wire, "M", "m.tgz", &bad);
        agent.wait_for_times(&["ERROR", "obj://M/m.tgz"], before + 1);
    }
    // The last good one goes on being applied.
    let before = agent.count(&["exec#echo good changed"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for_times(&["exec#echo good changed"], before + 1);
    // One that parses and is invalid is not applied either.
    let invalid = tarball("ccm: {resources: [exec: [{\"echo invalid\": {no_such: 1}}]]}\n");
    put_object(&mut wire, "M", "m.tgz", &invalid);
    agent.wait_for(&["ERROR", "no_such", "obj://M/m.tgz:manifest.yaml:1:"]);
    agent.wait_for(&["ERROR", "the manifest is invalid", "keeps applying the last valid one"]);
    let before = agent.count(&["exec#echo good changed"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for_times(&["exec#echo good changed"], before + 1);
    assert_eq!(agent.count(&["exec#echo invalid changed"]), 0);
    assert_eq!(agent.count(&["ERROR", "no_such", "obj://M/m.tgz:manifest.yaml:1:"]), 1);
    put_object(&mut wire, "M", "m.tgz", &echo("better"));
    agent.wait_for(&["exec#echo better changed"]);
    agent.stop();
}

#[test]
fn the_broker_is_down_at_the_start() {
    if lacks_nats() {
        return;
    }
    let mut nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "a.tgz", &echo("a"));
    put_object(&mut wire, "M", "b.tgz", &echo("b"));
    let bed = Bed { env: nats.env };
    bed.configure("manifests: ['obj://M/a.tgz']\n");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{said}");
    nats.server.kill();
    // One attempt, then the copy.
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("exec#echo a changed"), "{said}");
    bed.configure("manifests: ['obj://M/a.tgz', 'obj://M/b.tgz']\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#echo a changed"]);
    agent.wait_for(&["there is no manifest to apply yet", "b.tgz"]);
    agent.wait_for(&["ERROR", "cannot connect to NATS"]);
    nats.server.restart();
    agent.wait_for(&["exec#echo b changed"]);
    agent.wait_for(&["connected to NATS again"]);
    agent.stop();
}

const FUNCTIONS: &str =
    "exec: [{\"echo runs\": {}}, {\"echo {{ kvGet('D', 'k') }}\": {alias: eager}}]";
const DEFERRED: &str = "exec: [{\"echo before\": {}}, {\"echo gated\": {control: {if: \"kvGet('D', 'k') == \
                        'v'\"}}}, {\"echo after\": {}}]";

#[test]
fn the_broker_is_lost_and_hangs() {
    if lacks_nats() {
        return;
    }
    let mut nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_bucket("D", 1);
    wire.put("D", "k", b"v");
    let made = nats.env.run(["registration", "init"]);
    assert!(made.status.success(), "{made:?}");
    let bed = Bed { env: nats.env };
    bed.manifest("eager.yaml", FUNCTIONS);
    bed.manifest("gated.yaml", DEFERRED);
    bed.manifest("web.yaml", &format!("exec: [{{\"true\": {{{}}}}}]", entry("web", "1h")));
    bed.configure(
        "manifests: [[DIR]/eager.yaml, [DIR]/gated.yaml, [DIR]/web.yaml]\ninterval: 1000h\nregistration: \
         jetstream\n",
    );
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#eager changed"]);
    agent.wait_for(&["exec#echo gated changed"]);
    agent.wait_for(&["applied", "web.yaml"]);
    let query = |bed: &Bed| {
        let output = bed.env.run(["registration", "query", "--json"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    wait_until("the entry", || query(&bed).contains("\"web\""));
    let removed = bed.env.run([
        "registration",
        "rm",
        "--force",
        "--cluster",
        "c",
        "--service",
        "web",
        "--protocol",
        "http",
        "--address",
        "10.0.0.5",
        "--port",
        "80",
    ]);
    assert!(removed.status.success(), "{removed:?}");
    nats.server.kill();
    agent.wait_for(&["the connection to NATS was lost"]);
    agent.signal(Signal::SIGUSR1);
    let begin = Instant::now();
    agent.wait_for(&["applied", "reason=\"signal\"", "web.yaml"]);
    assert!(begin.elapsed() < Duration::from_secs(100), "functions fail within ten seconds each");
    let log = agent.log();
    let signalled = |name: &str| {
        let line =
            log.lines().find(|line| line.contains("reason=\"signal\"") && line.contains(name));
        line.unwrap_or_else(|| panic!("{log}")).to_owned()
    };
    // In a template of the first phase: the whole run. Elsewhere: the resource.
    assert!(signalled("eager.yaml").contains("ERROR"), "{log}");
    assert!(log.contains("exec#echo gated failed"), "{log}");
    assert_eq!(agent.count(&["exec#echo after changed"]), 2, "{log}");
    assert_eq!(agent.count(&["exec#echo runs changed"]), 1, "{log}");
    agent.wait_for(&["WARN", "cannot register web"]);
    // What waited is published with the next connection.
    nats.server.restart();
    agent.wait_for(&["connected to NATS again"]);
    wait_until("the entry that waited", || query(&bed).contains("\"web\""));
    // A server that hangs: every question ends within its time.
    nats.server.signal(Signal::SIGSTOP);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for_times(&["applied", "reason=\"signal\"", "web.yaml"], 2);
    nats.server.signal(Signal::SIGCONT);
    agent.stop();
}

#[test]
fn credentials_are_refused_then_right() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::with("authorization { user: ann, password: s3cret }");
    let url = nats.server.url();
    let bed = Bed { env: nats.env };
    let members = |password: &str| {
        format!("\"url\": \"{url}\", \"user\": \"ann\", \"password\": \"{password}\"")
    };
    context(&bed.env, "CCM", &members("wr0ng"));
    bed.manifest("m.yaml", "exec: [{\"true\": {}}]");
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\nregistration: nats\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["ERROR", "refused the credentials of context"]);
    agent.wait_for(&["applied"]);
    let refused = || nats.server.log().matches("authentication error").count();
    wait_until("more attempts", || refused() > 3);
    assert_eq!(agent.count(&["refused the credentials"]), 1, "once per change of state");
    context(&bed.env, "CCM", &members("s3cret"));
    agent.wait_for(&["connected to NATS again"]);
    let log = agent.stop();
    assert!(!log.contains("s3cret") && !log.contains("wr0ng"), "{log}");
}

/// Once per change of state, however often the agent connects.
#[test]
fn a_context_that_others_can_write_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    if lacks_nats() || ccm_testkit::lacks_root() {
        return;
    }
    let nats = nats_bed::Bed::with("authorization { user: ann, password: s3cret }");
    let url = nats.server.url();
    let bed = Bed { env: nats.env };
    let login = format!("\"url\": \"{url}\", \"user\": \"ann\", \"password\": \"wr0ng\"");
    let file = context(&bed.env, "CCM", &login);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    bed.manifest("m.yaml", "exec: [{\"true\": {}}]");
    bed.configure(
        "manifests: [[DIR]/m.yaml]\ninterval: 1000h\nregistration: nats\nlog_level: debug\n",
    );
    let mut agent = bed.start(&[]);
    agent.wait_for(&["WARN", "is writable by other users"]);
    agent.wait_for(&["WARN", "holds a secret and is readable by other users"]);
    agent.wait_for(&["ERROR", "refused the credentials of context"]);
    let login = login.replace("wr0ng", "s3cret");
    let file = context(&bed.env, "CCM", &login);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    agent.wait_for(&["connected to NATS again"]);
    let log = agent.stop();
    assert_eq!(log.matches("is writable by other users").count(), 1, "{log}");
}

#[test]
fn a_missing_permission_is_named() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::with(
        "authorization { users: [{user: ann, password: pw, permissions: {publish: {deny: \
         [\"choria.ccm.registration.v1.>\"]}}}] }",
    );
    let url = nats.server.url();
    let bed = Bed { env: nats.env };
    context(
        &bed.env,
        "CCM",
        &format!("\"url\": \"{url}\", \"user\": \"ann\", \"password\": \"pw\""),
    );
    bed.manifest("m.yaml", &format!("exec: [{{\"true\": {{{}}}}}]", entry("web", "1m")));
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 5m\nregistration: nats\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&[
        "cannot register web",
        "no permission for subject choria.ccm.registration.v1.c.",
    ]);
    agent.wait_for(&["WARN", "registration of web expires after 1m, and is renewed every 5m"]);
    agent.wait_for(&["applied", "failed=0"]);
    agent.stop();
}

/// Data that is replaced all the time is applied every five seconds at most.
#[test]
fn data_is_followed_but_not_too_closely() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::new();
    let mut wire = nats.server.wire();
    wire.make_bucket("D", 1);
    wire.put("D", "k", b"data: {n: 0}");
    let bed = Bed { env: nats.env };
    bed.env.write(
        "m.yaml",
        "data: {n: none}\nccm: {resources: [exec: [{\"echo n={{ Data.n }}\": {alias: e, logoutput: true}}]]}\n",
    );
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\nexternal_data_url: kv://D/k\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["n=0"]);
    let begin = Instant::now();
    let mut last = 0;
    while begin.elapsed() < Duration::from_secs(20) {
        last += 1;
        wire.put("D", "k", format!("data: {{n: {last}}}").as_bytes());
        // The pace of the changes.
        std::thread::sleep(Duration::from_millis(50));
    }
    agent.wait_for(&[&format!("n={last} ")]);
    let applies = agent.count(&["applied", "reason=\"data\""]);
    let most = usize::try_from(begin.elapsed().as_secs() / 5 + 1).unwrap();
    assert!((1..=most).contains(&applies), "{applies} applies, {most} at most");
    // What cannot be used leaves the last good one.
    wire.put("D", "k", b"data: [");
    agent.wait_for(&["ERROR", "kv://D/k"]);
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applied", "reason=\"signal\"", "failed=0"]);
    assert!(agent.log().lines().rev().any(|line| line.contains(&format!("n={last} "))));
    agent.stop();
}

/// No consumer, and a subscription for replies and one per watched source.
#[test]
fn an_agent_costs_a_server_little() {
    if lacks_nats() {
        return;
    }
    let nats = nats_bed::Bed::with("http: \"127.0.0.1:-1\"");
    let monitor = nats.server.monitor();
    let mut wire = nats.server.wire();
    wire.make_bucket("D", 1);
    wire.put("D", "k", b"data: {n: 0}");
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "m.tgz", &echo("one"));
    let bed = Bed { env: nats.env };
    bed.configure("manifests: ['obj://M/m.tgz']\ninterval: 1000h\nexternal_data_url: kv://D/k\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["exec#echo one changed"]);
    let connections: serde_json::Value =
        serde_json::from_str(&get(&monitor, "/connz?subs=1")).unwrap();
    let connections = connections["connections"].as_array().unwrap().clone();
    let ours: Vec<_> = connections.iter().filter(|one| one["name"] == "choria-ccm agent").collect();
    assert_eq!(ours.len(), 1, "{connections:?}");
    assert!(ours[0]["subscriptions"].as_u64().unwrap() <= 3, "{ours:?}");
    let streams = get(&monitor, "/jsz?consumers=1");
    let streams: serde_json::Value = serde_json::from_str(&streams).unwrap();
    assert_eq!(streams["consumers"], 0, "{streams}");
    agent.stop();
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}
