//! Crashes and hangs of servers, alone and in a cluster of three.
//! `CCM_NATS_ROUNDS=20` repeats the tests on the cluster.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::nats::{Cluster, lacks_nats};
use ccm_testkit::wait_until;

use crate::bed::{Bed, Ran, context, private, put_object, tarball};
use crate::env::TestEnv;
use crate::jwt::{Operator, credentials};

fn rounds() -> usize {
    std::env::var("CCM_NATS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn run(env: &TestEnv, args: &[&str]) -> Ran {
    Ran::of(&env.command(args).output().unwrap())
}

const MANIFEST: &str = "ccm: {resources: [exec: [{\"echo from-an-object\": {logoutput: true}}]]}";

/// Waits until ccm does something again, which it must within a minute.
fn comes_back(env: &TestEnv, args: &[&str]) -> Ran {
    wait_until("ccm to do it again", || {
        let ran = run(env, args);
        (ran.code == 0).then_some(ran)
    })
}

/// A watcher that has seen the entry; `None` if the cluster was not ready.
fn watcher(env: &TestEnv) -> Option<(Child, BufReader<ChildStdout>)> {
    let mut command = env.command(["registration", "watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    if line.is_empty() {
        child.wait().unwrap();
        return None;
    }
    assert!(line.contains("\"action\":\"register\""), "{line}");
    Some((child, lines))
}

/// The leader of the registry, of a bucket of keys and of objects crashes, and
/// hangs, while ccm publishes, reads and watches.
#[test]
fn a_cluster_loses_its_leader() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(directory.path());
    let env = TestEnv::new();
    context(&env, "CCM", &format!("\"url\": \"{}\"", cluster.urls()));
    let mut wire = cluster.wire(0);
    wire.make_bucket("DATA", 3);
    wire.put("DATA", "k", b"a: 1");
    wire.make_object_bucket("M", 3);
    put_object(&mut wire, "M", "m.tgz", &tarball(MANIFEST));
    comes_back(&env, &["registration", "init", "--replicas", "3"]);
    env.manifest(
        "ccm: {resources: [exec: [{\"true\": {register_when_stable: [{cluster: c, service: s, protocol: p, \
         address: 1.2.3.4, port: 1, priority: 1, ttl: 1h}]}}]]}",
    );
    let apply = ["apply", "manifest.yaml", "--register", "jetstream"];
    comes_back(&env, &apply);
    let uses: [&[&str]; 3] = [
        &["hiera", "parse", "kv://DATA/k"],
        &["apply", "obj://M/m.tgz"],
        &["registration", "query", "c", "p", "s"],
    ];
    for round in 0..rounds() {
        for (stream, hangs) in
            [("REGISTRATION", false), ("REGISTRATION", true), ("KV_DATA", true), ("OBJ_M", true)]
        {
            let (child, mut lines) = wait_until("a watcher", || watcher(&env));
            let mut line = String::new();
            let leader = cluster.leader(stream);
            if hangs {
                cluster.hang(leader);
            } else {
                cluster.kill(leader);
            }
            // Never longer than the limits: connecting, and two reads or a publish
            // and its repetition.
            let began = Instant::now();
            let ran = run(&env, &apply);
            assert_eq!(ran.code, 0, "a registration never fails a run: {ran:?}");
            assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
            for line in uses {
                comes_back(&env, line);
            }
            let lost = format!("{stream}, which lost n{leader} in round {round}, to store again");
            wait_until(lost, || run(&env, &apply).err.is_empty());
            if hangs {
                cluster.wake(leader);
            } else {
                cluster.restart(leader);
            }
            // The watcher sees a renewal that came after the fault.
            lines.read_line(&mut line).unwrap();
            assert!(line.contains("\"action\":\"register\""), "{line}");
            let pid = nix::unistd::Pid::from_raw(child.id() as i32);
            nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM).unwrap();
            let watched = Ran::of(&child.wait_with_output().unwrap());
            assert_eq!(watched.code, 0, "{watched:?}");
        }
        wait_until("all servers", || {
            let ran = run(&env, &["registration", "init", "--replicas", "3"]);
            (ran.code == 0).then_some(())
        });
        eprintln!("round {round} of the cluster passed");
    }
}

/// A server is gone at the start, for longer than a time to live, and comes
/// back with other data.
#[test]
fn a_server_goes_and_comes_back_with_other_data() {
    if lacks_nats() {
        return;
    }
    let mut bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"data: {a: 1}");
    bed.ok(["registration", "init"]);
    let create = [
        "registration",
        "create",
        "--cluster",
        "c",
        "--service",
        "s",
        "--protocol",
        "p",
        "--address",
        "::1",
        "--ttl",
        "1s",
    ];
    bed.ok(create);
    bed.server.kill();
    for args in [&["hiera", "parse", "kv://DATA/k"][..], &["registration", "query"]] {
        let ran = run(&bed.env, args);
        assert!(ran.code == 1 && ran.err.contains("connection refused"), "{ran:?}");
    }
    // The time of the entry passes while there is no server.
    std::thread::sleep(Duration::from_millis(1500));
    bed.server.restart();
    wait_until("the entry to expire", || {
        (bed.ok(["registration", "query", "--json"]) == "[]\n").then_some(())
    });
    bed.wire().put("DATA", "k", b"data: {a: 2}");
    assert_eq!(bed.ok(["hiera", "parse", "kv://DATA/k"]), "{\n  \"a\": 2\n}\n");
    bed.wire().api("STREAM.DELETE.KV_DATA", "");
    assert!(bed.fails(["hiera", "parse", "kv://DATA/k"]).contains("no bucket `DATA`"));
}

/// A server that hangs costs a run no more than its limits.
#[test]
fn a_server_hangs() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"one");
    bed.ok(["registration", "init"]);
    // It hangs once the run has its connection.
    bed.env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - \"touch [DIR]/began {{ kvGet('DATA', 'k') }}\": {}\n        \
         - wait: {command: \"sh -c 'while [ ! -e [DIR]/go ]; do sleep 0.05; done'\"}\n    \
         - file:\n        - \"[DIR]/out\": {ensure: present, [ME], mode: \"0600\", content: \"{{ kvGet('DATA', 'other') }}\"}\n    \
         - exec:\n        - last: {command: \"touch [DIR]/last\", register_when_stable: [{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1}]}\n",
    );
    let child = bed
        .env
        .command(["apply", "manifest.yaml", "--register", "jetstream"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the run to begin", || bed.env.path("began").exists());
    bed.server.signal(nix::sys::signal::SIGSTOP);
    let began = Instant::now();
    bed.env.write("go", "");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    let took = began.elapsed();
    bed.server.signal(nix::sys::signal::SIGCONT);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(bed.env.path("last").exists(), "the run went on: {ran:?}");
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("no answer from NATS within 5s"), "{said}");
    assert!(said.contains("1 registration was not published"), "{said}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

/// Credentials that are revoked and rotated work with the next connection.
#[test]
fn credentials_are_rotated() {
    if lacks_nats() {
        return;
    }
    let operator = Operator::new();
    let bed = Bed::with(&operator.configuration);
    let good = operator.user(None);
    private(&bed.env, "user.creds", &credentials(&good));
    context(
        &bed.env,
        "CCM",
        &format!("\"url\": \"{}\", \"creds\": \"~/user.creds\"", bed.server.url()),
    );
    bed.ok(["registration", "init"]);
    private(&bed.env, "user.creds", &credentials(&operator.user(Some(1_700_000_100))));
    assert!(bed.fails(["registration", "query"]).contains("NATS refused the credentials"));
    // A watcher whose server goes away reads its credentials again.
    private(&bed.env, "user.creds", &credentials(&operator.user(None)));
    bed.ok(["registration", "query"]);
}

/// An object that is replaced all the time is either read whole, or not at all.
#[test]
fn objects_that_are_replaced_meanwhile() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "m.tgz", &tarball(MANIFEST));
    let stop = std::sync::atomic::AtomicBool::new(false);
    // How long a run takes on this machine: an object lasts for about as long.
    let pause = std::sync::atomic::AtomicU64::new(50);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut wire = bed.wire();
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                let content = tarball(&format!("{MANIFEST}\n# {number}\n"));
                let id = format!("new{number}");
                let chunks = wire.put_chunks("M", &id, &content, 50);
                let metadata = format!(
                    "{{\"nuid\":\"{id}\",\"size\":{},\"chunks\":{chunks},\"digest\":\"{}\"}}",
                    content.len(),
                    crate::bed::digest(&content)
                );
                wire.put_metadata("M", &crate::bed::encoded("m.tgz"), &metadata);
                let old = format!("{{\"filter\":\"$O.M.C.new{}\"}}", number - 1);
                wire.api("STREAM.PURGE.OBJ_M", &old);
                let pause = pause.load(std::sync::atomic::Ordering::Relaxed);
                // The pace of the changes.
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        let mut good = 0;
        for _ in 0..20 {
            let began = Instant::now();
            let ran = bed.run(["apply", "obj://M/m.tgz"]);
            let took = (began.elapsed().as_millis() as u64).max(50);
            pause.store(took, std::sync::atomic::Ordering::Relaxed);
            match ran.code {
                0 => good += 1,
                _ => assert!(
                    ran.err.contains("was replaced or deleted while it was read"),
                    "{ran:?}"
                ),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(good > 10, "{good} of 20");
    });
}
