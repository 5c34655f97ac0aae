//! Contexts: where they are found, and all ways to log in.

use ccm_testkit::nats::{NatsServer, lacks_nats};

use crate::bed::{Bed, Ran, context, private};
use crate::env::TestEnv;
use crate::jwt::{Operator, credentials};

/// Asks for a stream that does not exist: whoever is let in learns that.
const LET_IN: &str = "no stream `REGISTRATION`";

fn query(env: &TestEnv, context: &str) -> Ran {
    Ran::of(&env.run(["registration", "query", "--context", context]))
}

#[track_caller]
fn is_let_in(env: &TestEnv, context: &str) {
    let ran = query(env, context);
    assert!(ran.code == 1 && ran.err.contains(LET_IN), "{context}: {ran:?}");
}

#[track_caller]
fn is_refused(env: &TestEnv, context: &str, words: &str) {
    let ran = query(env, context);
    assert!(ran.code == 1 && ran.err.contains(words), "{context}: {ran:?}");
}

fn refused_credentials(name: &str) -> String {
    format!("NATS refused the credentials of context \"{name}\"")
}

#[test]
fn users_and_tokens() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::with("authorization { user: \"ccm\", password: \"s3cret-word\" }");
    let (env, address) = (&bed.env, &bed.server.address);
    let url = format!("\"url\": \"nats://{address}\"");
    context(env, "CCM", &format!("{url}, \"user\": \"ccm\", \"password\": \"s3cret-word\""));
    context(env, "WRONG", &format!("{url}, \"user\": \"ccm\", \"password\": \"wr0ng-word\""));
    context(env, "NOBODY", &url);
    context(env, "INURL", &format!("\"url\": \"nats://ccm:s3cret%2Dword@{address}\""));
    context(env, "MANY", &format!("\"url\": \"nats://ccm:s3cret-word@{address}, {address}\""));
    for good in ["CCM", "INURL", "MANY"] {
        is_let_in(env, good);
    }
    for bad in ["WRONG", "NOBODY"] {
        let began = std::time::Instant::now();
        is_refused(env, bad, &refused_credentials(bad));
        assert!(began.elapsed().as_secs() < 4, "it is said at once, not after a timeout");
    }
    let bed = Bed::with("authorization { token: \"t0ken-word\" }");
    let url = format!("\"url\": \"{}\"", bed.server.url());
    context(&bed.env, "CCM", &format!("{url}, \"token\": \"t0ken-word\""));
    context(&bed.env, "WRONG", &format!("{url}, \"token\": \"nope-word\""));
    context(&bed.env, "INURL", &format!("\"url\": \"nats://t0ken-word@{}\"", bed.server.address));
    is_let_in(&bed.env, "CCM");
    is_let_in(&bed.env, "INURL");
    is_refused(&bed.env, "WRONG", &refused_credentials("WRONG"));
}

#[test]
fn keys_and_credentials() {
    if lacks_nats() {
        return;
    }
    let (user, other) = (nkeys::KeyPair::new_user().unwrap(), nkeys::KeyPair::new_user().unwrap());
    let users = format!("authorization {{ users = [ {{ nkey: {} }} ] }}", user.public_key());
    let bed = Bed::with(&users);
    let (env, url) = (&bed.env, format!("\"url\": \"{}\"", bed.server.url()));
    private(env, "user.nk", &format!("# a comment\n{}\n", user.seed()));
    private(env, "other.nk", &other.seed());
    private(env, "bad.nk", "not a seed\n");
    context(env, "CCM", &format!("{url}, \"nkey\": \"~/user.nk\""));
    context(env, "RELATIVE", &format!("{url}, \"nkey\": \"user.nk\""));
    context(env, "WRONG", &format!("{url}, \"nkey\": \"[DIR]/other.nk\""));
    context(env, "BAD", &format!("{url}, \"nkey\": \"[DIR]/bad.nk\""));
    context(env, "GONE", &format!("{url}, \"nkey\": \"[DIR]/gone.nk\""));
    is_let_in(env, "CCM");
    is_let_in(env, "RELATIVE");
    is_refused(env, "WRONG", &refused_credentials("WRONG"));
    is_refused(env, "BAD", "there is no seed in");
    is_refused(env, "GONE", "gone.nk");

    let operator = Operator::new();
    let bed = Bed::with(&operator.configuration);
    let (env, url) = (&bed.env, format!("\"url\": \"{}\"", bed.server.url()));
    let good = operator.user(None);
    private(env, "user.creds", &credentials(&good));
    private(env, "expired.creds", &credentials(&operator.user(Some(1_700_000_100))));
    private(env, "half.creds", "-----BEGIN NATS USER JWT-----\nx\n------END NATS USER JWT------\n");
    private(env, "seed.nk", &good.1);
    context(env, "CCM", &format!("{url}, \"creds\": \"$HOME/user.creds\""));
    context(env, "BRACES", &format!("{url}, \"creds\": \"${{HOME}}/user.creds\""));
    context(env, "JWT", &format!("{url}, \"nkey\": \"~/seed.nk\", \"user_jwt\": \"{}\"", good.0));
    context(env, "WRONG", &format!("{url}, \"creds\": \"~/expired.creds\""));
    context(env, "HALF", &format!("{url}, \"creds\": \"~/half.creds\""));
    for good in ["CCM", "BRACES", "JWT"] {
        is_let_in(env, good);
    }
    is_refused(env, "WRONG", &refused_credentials("WRONG"));
    is_refused(env, "HALF", "has no token and seed of a user");
}

/// Certificates that openssl makes, as an administrator would.
fn certificates(env: &TestEnv) {
    let script = "set -e; cd [DIR]
        openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem
        openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=other -keyout o.key -out other.pem
        for name in server client named expired; do
          openssl req -newkey ed25519 -nodes -subj /CN=$name -keyout $name.key -out $name.csr
          names=IP:127.0.0.1,DNS:localhost
          days=2
          if [ $name = named ]; then names=DNS:elsewhere.invalid; fi
          if [ $name = expired ]; then days=-1; fi
          printf \"subjectAltName=$names\\nextendedKeyUsage=serverAuth,clientAuth\\n\" > ext
          openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $days \
            -out $name.pem -extfile ext
        done
        chmod 600 *.key";
    let script = script.replace("[DIR]", env.dir().to_str().unwrap());
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn certificates_are_verified() {
    if lacks_nats() || ccm_testkit::lacks_program("openssl") {
        return;
    }
    let env = TestEnv::new();
    certificates(&env);
    let directory = env.dir().display();
    for (kind, more) in
        [("tls", ""), ("first", "handshake_first: true,"), ("mtls", "verify: true,")]
    {
        let servers = tempfile::tempdir().unwrap();
        // A server that waits for TLS hangs up long before ccm does.
        let patience = if kind == "first" { 1 } else { 5 };
        let server = NatsServer::with(
            servers.path(),
            &format!(
                "tls {{ cert_file: \"{directory}/server.pem\", key_file: \"{directory}/server.key\", \
                 ca_file: \"{directory}/ca.pem\", {more} timeout: {patience} }}"
            ),
        );
        let address = &server.address;
        let mut good = format!("\"url\": \"tls://{address}\", \"ca\": \"[DIR]/ca.pem\"");
        if kind == "first" {
            good += ", \"tls_first\": true";
        }
        if kind == "mtls" {
            context(&env, "NOCERT", &good);
            is_refused(&env, "NOCERT", "the server demands a certificate that it trusts");
            let pair = ", \"cert\": \"~/client.pem\", \"key\": \"~/server.key\"";
            context(&env, "PAIR", &(good.clone() + pair));
            is_refused(&env, "PAIR", "`cert` and `key` of the context do not match");
            good += ", \"cert\": \"~/client.pem\", \"key\": \"~/client.key\"";
        }
        context(&env, "CCM", &good);
        is_let_in(&env, "CCM");
        // Not in the way that the server expects.
        context(&env, "PLAIN", &format!("\"url\": \"nats://{address}\""));
        let first = ["the server there is not a NATS server", "needs `tls_first`"];
        let other = ["the certificate of the server is not trusted", "set `ca`"];
        for words in if kind == "first" { first } else { other } {
            is_refused(&env, "PLAIN", words);
        }
        // The address without a scheme: the authority makes TLS required.
        context(&env, "BARE", &good.replace("tls://", ""));
        is_let_in(&env, "BARE");
        if kind == "tls" {
            let url = format!("\"url\": \"tls://{address}\"");
            context(&env, "SYSTEM", &url);
            is_refused(&env, "SYSTEM", "certificate of the server is not trusted");
            context(&env, "OTHER", &format!("{url}, \"ca\": \"~/other.pem\""));
            is_refused(&env, "OTHER", "certificate of the server is not trusted");
            for (name, words) in [
                ("named", "the certificate of the server is for another name"),
                ("expired", "the certificate of the server is not valid at this time"),
            ] {
                let servers = tempfile::tempdir().unwrap();
                let server = NatsServer::with(
                    servers.path(),
                    &format!(
                        "tls {{ cert_file: \"{directory}/{name}.pem\", key_file: \
                         \"{directory}/{name}.key\", timeout: 5 }}"
                    ),
                );
                context(&env, name, &good.replace(address, &server.address));
                is_refused(&env, name, words);
            }
            env.write("junk.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
            context(&env, "JUNK", &format!("{url}, \"ca\": \"~/junk.pem\""));
            is_refused(&env, "JUNK", "the certificates in `ca` of the context cannot be read");
            for (name, more, words) in [
                ("HALF", "\"cert\": \"~/client.pem\"", "`cert` needs `key`"),
                ("OTHERHALF", "\"key\": \"~/client.key\"", "`key` needs `cert`"),
                ("NOPEM", "\"ca\": \"~/ext\"", "there is no CERTIFICATE in"),
                ("GONE", "\"ca\": \"~/gone.pem\"", "gone.pem"),
            ] {
                context(&env, name, &format!("{url}, {more}"));
                is_refused(&env, name, words);
            }
        }
    }
}

/// A server that knows only versions of TLS that nobody should use any more.
#[test]
fn old_versions_of_tls_are_refused() {
    if lacks_nats() || ccm_testkit::lacks_program("openssl") {
        return;
    }
    let env = TestEnv::new();
    certificates(&env);
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = std::process::Command::new("openssl")
        .args(["s_server", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-quiet"])
        .args(["-accept", &address.to_string(), "-cert", "server.pem", "-key", "server.key"])
        .current_dir(env.dir())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    ccm_testkit::wait_until("openssl", || std::net::TcpStream::connect(address).ok());
    let members =
        format!("\"url\": \"tls://{address}\", \"ca\": \"~/ca.pem\", \"tls_first\": true");
    context(&env, "OLD", &members);
    is_refused(&env, "OLD", "the server offers no TLS 1.2 or newer");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// TLS where the server has none.
#[test]
fn servers_without_tls_are_told() {
    if lacks_nats() || ccm_testkit::lacks_program("openssl") {
        return;
    }
    let bed = crate::bed::Bed::new();
    certificates(&bed.env);
    let address = &bed.server.address;
    for members in [
        format!("\"url\": \"tls://{address}\""),
        format!("\"url\": \"nats://{address}\", \"ca\": \"~/ca.pem\""),
        format!("\"url\": \"{address}\", \"ca\": \"~/ca.pem\", \"tls_first\": true"),
    ] {
        context(&bed.env, "CCM", &members);
        is_refused(&bed.env, "CCM", "the server does not use TLS on this port");
        is_refused(&bed.env, "CCM", "hint: use `nats://` without `ca` and `tls_first`");
    }
}

#[test]
fn contexts_are_found_where_they_belong() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let (env, url) = (&bed.env, format!("\"url\": \"{}\"", bed.server.url()));
    let own = context(env, "OWN", &url);
    std::fs::remove_file(env.path(".config/nats/context/CCM.json")).unwrap();
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = env.command(args);
        for (name, value) in variables {
            command.env(name, value);
        }
        Ran::of(&command.output().unwrap())
    };
    let query = ["registration", "query"];
    let found = |ran: &Ran| ran.code == 1 && ran.err.contains(LET_IN);

    let ran = run(&query, &[]);
    assert!(ran.code == 1 && ran.err.contains("unknown NATS context \"CCM\""), "{ran:?}");
    assert!(ran.err.contains(".config/nats/context/CCM.json"), "{ran:?}");
    assert!(ran.err.contains("/etc/choria/ccm/context/CCM.json"), "{ran:?}");
    assert!(ran.err.contains("nats context add CCM"), "{ran:?}");

    assert!(found(&run(&query, &[("NATS_CONTEXT", "OWN")])));
    let ran = run(&["registration", "query", "--context", "NONE"], &[("NATS_CONTEXT", "OWN")]);
    assert!(ran.err.contains("unknown NATS context \"NONE\""), "the flag wins: {ran:?}");
    assert!(found(&run(&["registration", "query", "--context", own.to_str().unwrap()], &[])));
    env.write("xdg/nats/context/THERE.json", &format!("{{{url}}}"));
    let xdg = env.path("xdg");
    let there = ["registration", "query", "--context", "THERE"];
    assert!(found(&run(&there, &[("XDG_CONFIG_HOME", xdg.to_str().unwrap())])));
    assert!(!found(&run(&there, &[])));

    // The selected context, and none selected.
    let selected = ["registration", "query", "--context", ""];
    env.write(".config/nats/context.txt", "OWN\n");
    assert!(found(&run(&selected, &[])));
    std::fs::remove_file(env.path(".config/nats/context.txt")).unwrap();
    let ran = run(&selected, &[]);
    assert!(ran.code == 1 && ran.err.contains("nats://127.0.0.1:4222"), "{ran:?}");
    for bad in ["../x", "a/b", ".."] {
        let ran = run(&["registration", "query", "--context", bad], &[]);
        assert!(ran.err.contains("is not the name of a NATS context"), "{bad}: {ran:?}");
    }
}

#[test]
fn what_contexts_cannot_say_is_named() {
    let env = TestEnv::new();
    for (members, words) in [
        ("\"nsc\": \"nsc://x\"", "the context uses \"nsc\", which ccm does not support"),
        ("\"socks_proxy\": \"x\"", "the context uses \"socks_proxy\""),
        ("\"windows_cert_store\": \"x\"", "the context uses \"windows_cert_store\""),
        ("\"url\": \"ws://x\"", "WebSockets are not supported"),
        ("\"url\": \"http://x\"", "a URL begins with nats:// or tls://"),
        ("\"url\": 5", "`url` must be a string"),
        ("\"tls_first\": \"yes\"", "`tls_first` must be true or false"),
        ("\"jetstream_domain\": \"a\", \"jetstream_api_prefix\": \"b\"", "cannot both be set"),
        ("\"inbox_prefix\": \"a b\"", "`inbox_prefix` is not a subject"),
        ("\"jetstream_domain\": \"a.>\"", "`jetstream_domain` is not a subject"),
    ] {
        context(&env, "CCM", members);
        is_refused(&env, "CCM", words);
    }
    private(&env, ".config/nats/context/CCM.json", "{nope");
    is_refused(&env, "CCM", "is not JSON");
    private(&env, ".config/nats/context/CCM.json", "[]");
    is_refused(&env, "CCM", "is not a JSON object");
}

/// Domain, prefix of the API, prefix of inboxes, and members that say nothing.
#[test]
fn prefixes_reach_the_server() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::with("");
    bed.server.reconfigure(|text| text.replace("jetstream {", "jetstream { domain: hub,"), false);
    let mut bed = bed;
    bed.server.restart();
    let (env, url) = (&bed.env, format!("\"url\": \"{}\"", bed.server.url()));
    let ignored = "\"description\": \"d\", \"color_scheme\": \"x\", \"nsc\": \"\", \"new\": [1], \
                   \"windows_ca_certs_match\": null, \"socks_proxy\": \"\"";
    for members in [
        "\"jetstream_domain\": \"hub\"",
        "\"jetstream_api_prefix\": \"$JS.hub.API\"",
        "\"jetstream_api_prefix\": \"$JS.hub.API.\", \"inbox_prefix\": \"_MINE\"",
    ] {
        context(env, "CCM", &format!("{url}, {members}, {ignored}"));
        is_let_in(env, "CCM");
    }
    context(env, "CCM", &format!("{url}, \"jetstream_domain\": \"other\""));
    is_refused(env, "CCM", "there is no JetStream in this account");
}

/// As root, secrets that others can read are a warning, strict an error.
#[test]
fn exposed_secrets_are_told() {
    use std::os::unix::fs::PermissionsExt as _;
    if lacks_nats() || ccm_testkit::lacks_root() {
        return;
    }
    let bed = Bed::with("authorization { user: \"ccm\", password: \"s3cret-word\" }");
    let members = format!(
        "\"url\": \"{}\", \"user\": \"ccm\", \"password\": \"s3cret-word\"",
        bed.server.url()
    );
    let path = context(&bed.env, "CCM", &members);
    let quiet = query(&bed.env, "CCM");
    assert!(!quiet.err.contains("readable by other users"), "{quiet:?}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = query(&bed.env, "CCM");
    assert!(ran.err.contains("is readable by other users (mode 0644)"), "{ran:?}");
    assert!(ran.err.contains(LET_IN), "{ran:?}");
    let strict = bed.env.command(["registration", "query"]).env("CCM_STRICT", "1").output();
    let strict = Ran::of(&strict.unwrap());
    assert!(strict.err.contains("refusing to") && !strict.err.contains(LET_IN), "{strict:?}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
    let ran = query(&bed.env, "CCM");
    assert!(ran.err.contains("is writable by other users"), "{ran:?}");
}
