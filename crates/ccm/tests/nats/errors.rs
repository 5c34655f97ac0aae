//! What is said when there is no connection.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::Instant;

use ccm_testkit::nats::{NatsServer, lacks_nats};

use crate::bed::{Bed, Ran, context};
use crate::env::TestEnv;

fn query(env: &TestEnv) -> Ran {
    Ran::of(&env.run(["registration", "query"]))
}

#[test]
fn servers_that_are_not_there() {
    let env = TestEnv::new();
    for (url, words) in [
        ("nats://127.0.0.1:1", "connection refused"),
        ("nats://no-such-host.invalid:4222", "the name of the server is not known"),
        ("127.0.0.1:1,127.0.0.1:2", "nats://127.0.0.1:1,nats://127.0.0.1:2"),
    ] {
        context(&env, "CCM", &format!("\"url\": \"{url}\""));
        let began = Instant::now();
        let ran = query(&env);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(words) && ran.err.contains("context \"CCM\""), "{url}: {ran:?}");
        assert!(began.elapsed().as_secs() < 16, "{url}");
    }
}

/// Something that accepts and says nothing, or says what no server says.
#[test]
fn servers_that_are_none() {
    let env = TestEnv::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", silent.local_addr().unwrap()));
    let began = Instant::now();
    let ran = query(&env);
    assert!(ran.code == 1 && ran.err.contains("no answer from NATS within 5s"), "{ran:?}");
    assert!(began.elapsed().as_secs() < 15);
    let garbage = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", garbage.local_addr().unwrap()));
    let speak = std::thread::spawn(move || {
        let (mut stream, _) = garbage.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let ran = query(&env);
    assert!(ran.code == 1 && ran.err.contains("cannot connect to NATS"), "{ran:?}");
    speak.join().unwrap();
}

#[test]
fn a_server_of_the_list_that_works_is_found() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let url = format!("nats://127.0.0.1:1,nats://127.0.0.1:2,{}", bed.server.url());
    context(&bed.env, "CCM", &format!("\"url\": \"{url}\""));
    bed.ok(["registration", "init"]);
}

#[test]
fn accounts_without_jetstream() {
    if lacks_nats() {
        return;
    }
    let servers = tempfile::tempdir().unwrap();
    let server =
        NatsServer::with(servers.path(), "accounts { A: { users: [ {user: a, password: p} ] } }");
    let env = TestEnv::new();
    context(
        &env,
        "CCM",
        &format!("\"url\": \"{}\", \"user\": \"a\", \"password\": \"p\"", server.url()),
    );
    for args in [
        &["registration", "query"][..],
        &["registration", "init"],
        &["hiera", "parse", "kv://B/k"],
        &["validate", "obj://B/x.tgz"],
    ] {
        let ran = Ran::of(&env.command(args).output().unwrap());
        assert!(
            ran.code == 1 && ran.err.contains("there is no JetStream in this account"),
            "{args:?}: {ran:?}"
        );
    }
}

/// A server that says in its greeting that it is old.
#[test]
fn old_servers_are_told_by_their_version() {
    let env = TestEnv::new();
    let old = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", old.local_addr().unwrap()));
    std::thread::spawn(move || {
        for (version, stream) in ["2.10.7", "2.9.1"].into_iter().zip(old.incoming()) {
            let mut stream = stream.unwrap();
            let info = format!(
                "INFO {{\"server_id\":\"x\",\"version\":\"{version}\",\"max_payload\":1048576,\"headers\":true}}\r\n"
            );
            let _ = stream.write_all(info.as_bytes());
            let _ = stream.write_all(b"PONG\r\n");
            std::thread::sleep(std::time::Duration::from_secs(5));
        }
    });
    let ran = query(&env);
    assert!(
        ran.err.contains("NATS server 2.10.7 is too old: registration needs 2.11 or newer"),
        "{ran:?}"
    );
    let ran = Ran::of(&env.run(["hiera", "parse", "kv://B/k"]));
    assert!(
        ran.err.contains("NATS server 2.9.1 is too old: reading keys needs 2.10 or newer"),
        "{ran:?}"
    );
}

#[test]
fn an_interrupt_ends_a_wait() {
    use nix::sys::signal::{Signal, kill};
    let env = TestEnv::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", silent.local_addr().unwrap()));
    // Others are ignored in shells that run the tests in the background.
    let (signal, code) = (Signal::SIGTERM, 143);
    {
        let began = Instant::now();
        let child = env.command(["registration", "query"]).spawn().unwrap();
        let _held = silent.accept().unwrap();
        kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
        let mut child = child;
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(began.elapsed().as_secs() < 4);
    }
}
