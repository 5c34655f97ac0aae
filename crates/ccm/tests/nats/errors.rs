//! What is said when there is no connection.

use std::io::Write as _;
use std::net::TcpListener;
use std::time::Instant;

use ccm_testkit::nats::{NatsServer, Wire, lacks_nats};

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
        ("nats://no-such-host.invalid:4222", "the name of the server cannot be resolved"),
        ("127.0.0.1:1,127.0.0.1:2", "nats://127.0.0.1:1,nats://127.0.0.1:2"),
    ] {
        context(&env, "CCM", &format!("\"url\": \"{url}\""));
        let began = Instant::now();
        let ran = query(&env);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(words) && ran.err.contains("context \"CCM\""), "{url}: {ran:?}");
        assert!(ran.err.contains("hint: check that the server runs, and `url`"), "{url}: {ran:?}");
        assert!(began.elapsed().as_secs() < 16, "{url}");
    }
}

/// In a network of its own that has no way to anywhere.
#[test]
fn servers_that_cannot_be_reached() {
    if ccm_testkit::lacks_root() || ccm_testkit::lacks_program("unshare") {
        return;
    }
    let env = TestEnv::new();
    context(&env, "CCM", "\"url\": \"nats://192.0.2.1:4222\"");
    let ccm = env.command(["registration", "query"]);
    let mut command = std::process::Command::new("unshare");
    command.arg("--net").arg(ccm.get_program()).args(ccm.get_args());
    for (name, value) in ccm.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ran = Ran::of(&command.output().unwrap());
    let words = "cannot connect to NATS: there is no route to the server (NATS context \"CCM\"";
    assert!(ran.code == 1 && ran.err.contains(words), "{ran:?}");
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
    let words = "cannot connect to NATS: the server there is not a NATS server";
    assert!(ran.code == 1 && ran.err.contains(words), "{ran:?}");
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

/// Every error says which context and server, what was asked, what happened and
/// what to do.
#[test]
fn errors_name_the_server_and_what_to_do() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::with(
        "authorization { users = [ { user: a, password: right-word }, { user: b, password: \
         b-word, permissions: { publish: [nothing], subscribe: [\"_INBOX.>\"] } } ] }",
    );
    let url = bed.server.url();
    let login = |user: &str, word: &str| {
        let members = format!("\"url\": \"{url}\", \"user\": \"{user}\", \"password\": \"{word}\"");
        context(&bed.env, "CCM", &members);
    };
    let mut wire = Wire::login(&bed.server.address, "\"user\":\"a\",\"pass\":\"right-word\"");
    wire.make_bucket("DATA", 1);
    wire.make_object_bucket("M", 1);
    let entry = ["--cluster", "c", "--service", "s", "--protocol", "p", "--address", "1.2.3.4"];
    let create = [&["registration", "create"], &entry[..]].concat();
    let no_stream = ("no stream `REGISTRATION`", "create it with `ccm registration init`");
    let refused = ("NATS refused the credentials of context \"CCM\"", "check user, password");
    let key = ["hiera", "parse", "kv://DATA/k"];
    // Who asks, for what, what is said and what to do about it.
    type Case<'a> = (&'a str, &'a str, &'a [&'a str], (&'a str, &'a str));
    let cases: [Case<'_>; 11] = [
        ("a", "right-word", &["registration", "query"], no_stream),
        ("a", "right-word", &create, no_stream),
        ("a", "right-word", &["registration", "watch"], no_stream),
        ("a", "right-word", &key, ("no key `k` in bucket `DATA`", "nats kv put DATA k VALUE")),
        (
            "a",
            "right-word",
            &["hiera", "parse", "kv://NO/k"],
            ("no bucket `NO`", "create it with `nats kv add NO`"),
        ),
        (
            "a",
            "right-word",
            &["validate", "obj://NO/x.tgz"],
            ("no bucket `NO`", "create it with `nats object add NO`"),
        ),
        (
            "a",
            "right-word",
            &["validate", "obj://M/x.tgz"],
            ("no object \"x.tgz\" in bucket \"M\"", "nats object put M FILE"),
        ),
        ("a", "wrong-word", &["registration", "query"], refused),
        ("a", "wrong-word", &key, refused),
        (
            "b",
            "b-word",
            &["registration", "query"],
            ("no permission for subject $JS.API.DIRECT.GET.REGISTRATION", "allow the user"),
        ),
        (
            "b",
            "b-word",
            &key,
            ("no permission for subject $JS.API.DIRECT.GET.KV_DATA.$KV.DATA.k", "allow the user"),
        ),
    ];
    for (user, word, args, (what, hint)) in cases {
        login(user, word);
        let ran = Ran::of(&bed.env.command(args).output().unwrap());
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        for wanted in [what, hint, "context \"CCM\"", &url] {
            assert!(ran.err.contains(wanted), "{args:?}: {wanted}: {ran:?}");
        }
        assert!(!ran.err.contains("-word"), "{args:?}: {ran:?}");
    }
}

/// A server that answers with what was not asked for, without end.
#[test]
fn servers_that_do_not_stop_are_left() {
    use std::io::{BufRead as _, BufReader};
    let env = TestEnv::new();
    let hostile = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", hostile.local_addr().unwrap()));
    let speak = std::thread::spawn(move || {
        let (mut stream, _) = hostile.accept().unwrap();
        let info = "INFO {\"server_id\":\"x\",\"version\":\"2.12.0\",\"max_payload\":1048576,\"headers\":true}\r\n";
        stream.write_all(info.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        let mut id = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["PING"] => stream.write_all(b"PONG\r\n").unwrap(),
                ["SUB", _, sid] => id = (*sid).to_owned(),
                ["PUB", _, inbox, _] => {
                    // The same message for ever: one entry, always the first.
                    let head = "NATS/1.0\r\nNats-Subject: a.b\r\nNats-Sequence: 1\r\n\r\n";
                    let length = head.len();
                    let message = format!("HMSG {inbox} {id} {length} {length}\r\n{head}\r\n");
                    while stream.write_all(message.repeat(50).as_bytes()).is_ok() {}
                    return;
                }
                _ => {}
            }
            line.clear();
        }
    });
    let ran = query(&env);
    let words = "NATS refused to read stream REGISTRATION: it sent an unexpected answer";
    assert!(ran.code == 1 && ran.err.contains(words), "{ran:?}");
    speak.join().unwrap();
}

/// A server that says in its greeting that it is old.
#[test]
fn old_servers_are_told_by_their_version() {
    let env = TestEnv::new();
    let old = TcpListener::bind("127.0.0.1:0").unwrap();
    context(&env, "CCM", &format!("\"url\": \"{}\"", old.local_addr().unwrap()));
    std::thread::spawn(move || {
        // Open until the client has read the greeting, however long that takes.
        let mut held = Vec::new();
        for (version, stream) in ["2.10.7", "2.9.1"].into_iter().zip(old.incoming()) {
            let mut stream = stream.unwrap();
            let info = format!(
                "INFO {{\"server_id\":\"x\",\"version\":\"{version}\",\"max_payload\":1048576,\"headers\":true}}\r\n"
            );
            let _ = stream.write_all(info.as_bytes());
            let _ = stream.write_all(b"PONG\r\n");
            held.push(stream);
        }
        loop {
            std::thread::park();
        }
    });
    let ran = query(&env);
    assert!(
        ran.err.contains("NATS server 2.10.7 is too old: registration needs 2.11 or newer"),
        "{ran:?}"
    );
    assert!(ran.err.contains("hint: use a server of version 2.11 or newer"), "{ran:?}");
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
