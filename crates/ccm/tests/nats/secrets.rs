//! No secret of a context is in anything that ccm prints or records.

use ccm_testkit::nats::lacks_nats;

use crate::bed::{Bed, context, private};
use crate::jwt::{Operator, credentials};

/// Runs everything that uses a context with as much output as there is, and
/// collects it.
fn everything(bed: &Bed, name: &str) -> String {
    let manifest = "data: {x: 1}\nccm: {resources: [{exec: [{\"echo {{ kvGet('DATA', 'k') }}\": {logoutput: true, \
                    register_when_stable: [{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1}]}}]}, \
                    {file: [{\"[DIR]/f\": {ensure: present, [ME], mode: \"0600\", content: \
                    \"{{ registrations('*','*','*','*').PrometheusFileSD() }}\"}}]}]}";
    bed.env.manifest(manifest);
    let mut all = String::new();
    for args in [
        &[
            "apply",
            "manifest.yaml",
            "--register",
            "jetstream",
            "--report-file",
            "report.json",
            "--session",
            "session",
        ][..],
        &["apply", "manifest.yaml", "--register", "nats", "--json"],
        &["plan", "manifest.yaml", "--out", "plan.json"],
        &["validate", "manifest.yaml"],
        &["hiera", "parse", "kv://DATA/k"],
        &["apply", "obj://M/x.tgz"],
        &["registration", "init"],
        &[
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
        ],
        &["registration", "query"],
        &[
            "registration",
            "rm",
            "--force",
            "--cluster",
            "c",
            "--service",
            "s",
            "--protocol",
            "p",
            "--address",
            "::1",
        ],
    ] {
        for more in [&["--debug"][..], &["--debug", "--log-format", "json"]] {
            let context = ["--context", name];
            let args = args.iter().chain(more).chain(&context);
            let output = bed.env.command(args).output().unwrap();
            all.push_str(&String::from_utf8_lossy(&output.stdout));
            all.push_str(&String::from_utf8_lossy(&output.stderr));
        }
    }
    for name in bed.env.names() {
        let is_given = [".config", ".creds", ".nk"].iter().any(|part| name.contains(part));
        if let (false, Ok(bytes)) = (is_given, std::fs::read(bed.env.path(&name))) {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

/// The whole secret, and every part of it that would be worth something.
#[track_caller]
fn is_absent(all: &str, secret: &str) {
    assert!(secret.len() >= 8);
    for part in [secret, &secret[..secret.len() / 2 + 4], &secret[secret.len() / 2 - 4..]] {
        if let Some(at) = all.find(part) {
            let near: String = all[at.saturating_sub(100)..].chars().take(300).collect();
            panic!("a secret is shown: {near}");
        }
    }
}

#[test]
fn nothing_shows_a_secret() {
    if lacks_nats() {
        return;
    }
    let password = "correct-horse-battery-staple";
    let wrong = "incorrect-mule-cell-paperclip";
    let bed = Bed::with(&format!("authorization {{ user: \"ccm\", password: \"{password}\" }}"));
    let (url, address) = (bed.server.url(), bed.server.address.clone());
    let mut wire = ccm_testkit::nats::Wire::login(
        &address,
        &format!("\"user\":\"ccm\",\"pass\":\"{password}\""),
    );
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"a: 1");
    // A value that repeats the password is a leak like any other.
    context(
        &bed.env,
        "CCM",
        &format!("\"url\": \"{url}\", \"user\": \"ccm\", \"password\": \"{password}\""),
    );
    context(
        &bed.env,
        "BAD",
        &format!("\"url\": \"{url}\", \"user\": \"ccm\", \"password\": \"{wrong}\""),
    );
    context(&bed.env, "INURL", &format!("\"url\": \"nats://ccm:{password}@{address}\""));
    context(
        &bed.env,
        "BADURL",
        &format!("\"url\": \"nats://ccm:{wrong}@{address},nats://{wrong}@127.0.0.1:1\""),
    );
    context(&bed.env, "TOKEN", &format!("\"url\": \"{url}\", \"token\": \"{wrong}\""));
    context(&bed.env, "BROKEN", &format!("\"url\": \"nats://ccm:{wrong}@{address}:x:y\""));
    for name in ["CCM", "BAD", "INURL", "BADURL", "TOKEN", "BROKEN"] {
        let all = everything(&bed, name);
        assert!(all.len() > 2_000, "there is something to look through");
        is_absent(&all, password);
        is_absent(&all, wrong);
    }
    let all = everything(&bed, "CCM");
    assert!(all.contains("Registered choria"), "it did something: {all}");

    let operator = Operator::new();
    let bed = Bed::with(&operator.configuration);
    let url = format!("\"url\": \"{}\"", bed.server.url());
    let (good, expired) = (operator.user(None), operator.user(Some(1_700_000_100)));
    private(&bed.env, "good.creds", &credentials(&good));
    private(&bed.env, "expired.creds", &credentials(&expired));
    private(&bed.env, "seed.nk", &good.1);
    context(&bed.env, "CREDS", &format!("{url}, \"creds\": \"~/good.creds\""));
    context(&bed.env, "EXPIRED", &format!("{url}, \"creds\": \"~/expired.creds\""));
    context(
        &bed.env,
        "JWT",
        &format!("{url}, \"nkey\": \"~/seed.nk\", \"user_jwt\": \"{}\"", good.0),
    );
    for name in ["CREDS", "EXPIRED", "JWT"] {
        let all = everything(&bed, name);
        for (token, seed) in [&good, &expired] {
            // All tokens begin alike: their claims and signatures are what counts.
            let mut parts = token.split('.').skip(1);
            is_absent(&all, &parts.next().unwrap()[80..]);
            is_absent(&all, parts.next().unwrap());
            is_absent(&all, seed);
        }
    }
}

/// What a resource prints by itself is redacted too, once the context is used.
#[test]
fn the_run_knows_the_secrets_of_its_context() {
    if lacks_nats() {
        return;
    }
    let password = "correct-horse-battery-staple";
    let bed = Bed::with(&format!("authorization {{ user: \"ccm\", password: \"{password}\" }}"));
    let mut wire = ccm_testkit::nats::Wire::login(
        &bed.server.address,
        &format!("\"user\":\"ccm\",\"pass\":\"{password}\""),
    );
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"v");
    context(
        &bed.env,
        "CCM",
        &format!(
            "\"url\": \"{}\", \"user\": \"ccm\", \"password\": \"{password}\"",
            bed.server.url()
        ),
    );
    let ran = bed.apply(
        &format!("ccm: {{resources: [exec: [{{\"echo {{{{ kvGet('DATA', 'k') }}}} {password}\": {{logoutput: true}}}}]]}}"),
        &[],
    );
    assert!(ran.code == 0 && ran.out.contains("[redacted]"), "{ran:?}");
    is_absent(&format!("{}{}", ran.out, ran.err), password);
}
