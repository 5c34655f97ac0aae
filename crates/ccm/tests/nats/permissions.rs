//! The permissions that the documentation lists are enough, and each one that
//! is taken away is named.

use ccm_testkit::nats::{Wire, lacks_nats};

use crate::bed::{Bed, context, put_object, tarball};

/// What each use needs to publish.
const KEYS: &[&str] = &["$JS.API.DIRECT.GET.KV_DATA.>", "$JS.API.STREAM.MSG.GET.KV_DATA"];
const OBJECTS: &[&str] =
    &["$JS.API.DIRECT.GET.OBJ_M.>", "$JS.API.DIRECT.GET.OBJ_M", "$JS.API.STREAM.INFO.OBJ_M"];
const PUBLISH: &[&str] = &["choria.ccm.registration.v1.>"];
const LOOKUP: &[&str] = &["$JS.API.DIRECT.GET.REGISTRATION"];

fn users(allowed: &[&str]) -> String {
    // An empty list allows everything.
    let allowed = ["nothing"].iter().chain(allowed);
    let subjects: Vec<String> = allowed.map(|subject| format!("\"{subject}\"")).collect();
    format!(
        "authorization {{ users = [\n  {{ user: admin, password: adm1n-word }}\n  {{ user: ccm, password: \
         ccm-word, permissions: {{ publish: [{}], subscribe: [\"_INBOX.>\"] }} }}\n] }}",
        subjects.join(", ")
    )
}

fn bed() -> (Bed, Wire) {
    let all: Vec<&str> = [KEYS, OBJECTS, PUBLISH, LOOKUP].concat();
    let bed = Bed::with(&users(&all));
    let url = bed.server.url();
    for (name, password) in [("CCM", "ccm"), ("ADMIN", "admin")] {
        let word = if password == "admin" { "adm1n-word" } else { "ccm-word" };
        let members =
            format!("\"url\": \"{url}\", \"user\": \"{password}\", \"password\": \"{word}\"");
        context(&bed.env, name, &members);
    }
    let wire = Wire::login(&bed.server.address, "\"user\":\"admin\",\"pass\":\"adm1n-word\"");
    (bed, wire)
}

#[test]
fn the_documented_permissions_are_enough_and_each_is_needed() {
    if lacks_nats() {
        return;
    }
    let (bed, mut wire) = bed();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "k", b"a: 1");
    wire.make_object_bucket("M", 1);
    put_object(&mut wire, "M", "m.tgz", &tarball("ccm: {resources: [exec: [{\"true\": {}}]]}"));
    bed.ok(["registration", "init", "--context", "ADMIN"]);
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
        "1.2.3.4",
    ];
    let uses: [(&[&str], &[&str]); 4] = [
        (&["hiera", "parse", "kv://DATA/k"], KEYS),
        (&["validate", "obj://M/m.tgz"], OBJECTS),
        (&create, PUBLISH),
        (&["registration", "query"], LOOKUP),
    ];
    for (line, own) in uses {
        bed.server.reconfigure(|text| replaced(text, own), true);
        let output = bed.env.command(line).output().unwrap();
        assert!(output.status.success(), "{line:?}: {output:?}");
        // Those that only tell what is missing are not needed here.
        for missing in own.iter().filter(|subject| !subject.contains("STREAM.")) {
            let left: Vec<&str> = own.iter().filter(|other| *other != missing).copied().collect();
            bed.server.reconfigure(|text| replaced(text, &left), true);
            let began = std::time::Instant::now();
            let output = bed.env.command(line).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{line:?} without {missing}: {said}");
            let prefix = missing.trim_end_matches('>');
            assert!(
                said.contains(&format!("no permission for subject {prefix}")),
                "{line:?} without {missing}: {said}"
            );
            assert!(began.elapsed().as_secs() < 5, "it is said at once");
        }
    }
    // Publishing to listeners is refused too, and only warned of.
    bed.server.reconfigure(|text| replaced(text, KEYS), true);
    let manifest = "ccm: {resources: [exec: [{\"true\": {register_when_stable: [{cluster: c, service: s, protocol: p, address: 1.2.3.4, priority: 1}]}}]]}";
    let ran = bed.apply(manifest, &["--register", "nats"]);
    assert!(ran.code == 0 && ran.err.contains("no permission for subject choria.ccm"), "{ran:?}");
    // No answers: the subject of the inbox is named.
    bed.server.reconfigure(|text| text.replace("_INBOX.>", "_OTHER.>"), true);
    let ran = bed.run(["hiera", "parse", "kv://DATA/k"]);
    assert!(ran.code == 1 && ran.err.contains("no permission for subject _INBOX."), "{ran:?}");
}

/// The configuration with other permissions for the user `ccm`.
fn replaced(text: &str, allowed: &[&str]) -> String {
    let (before, _) = text.split_once("authorization {").unwrap();
    before.to_owned() + &users(allowed)
}

#[test]
fn operators_need_no_more_than_is_documented() {
    if lacks_nats() {
        return;
    }
    let (bed, _) = bed();
    let mut allowed = vec![
        "$JS.API.STREAM.INFO.REGISTRATION",
        "$JS.API.STREAM.CREATE.REGISTRATION",
        "$JS.API.STREAM.UPDATE.REGISTRATION",
        "$JS.API.STREAM.PURGE.REGISTRATION",
        "$JS.API.CONSUMER.CREATE.REGISTRATION.>",
    ];
    allowed.extend([PUBLISH, LOOKUP].concat());
    bed.server.reconfigure(|text| replaced(text, &allowed), true);
    bed.ok(["registration", "init"]);
    bed.ok(["registration", "init", "--max-age", "20m"]);
    let entry = ["--cluster", "c", "--service", "s", "--protocol", "p", "--address", "1.2.3.4"];
    let run = |args: &[&str]| {
        let args = ["registration"].iter().chain(args).chain(&entry).copied();
        bed.env.command(args).output().unwrap()
    };
    assert!(run(&["create"]).status.success());
    let output = run(&["rm", "--force"]);
    assert!(output.status.success(), "{output:?}");
    run(&["create"]);
    let mut watch = bed.env.command(["registration", "watch"]);
    let mut child = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(line.starts_with("INFO Updated entry"), "{line}");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child.id() as i32),
        nix::sys::signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
