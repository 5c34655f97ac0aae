//! Brokers that are gone, hang, refuse, and come back with other data.

use ccm_agent::sources::SourceEvent;
use ccm_testkit::nats::{Cluster, NatsServer, lacks_nats};
use ccm_testkit::wait_until;

use crate::bed::{Bed, archive, manifest};

const URL: &str = "obj://M/m.tgz";

fn connects(bed: &Bed) -> u64 {
    bed.nats.as_ref().unwrap().connection().connects
}

fn is_connected(bed: &Bed) -> bool {
    bed.nats.as_ref().unwrap().connection().is_connected
}

#[test]
fn a_broker_that_is_down_at_the_start() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut server = NatsServer::start(directory.path());
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    wire.put_object("M", "m.tgz", &archive(1));
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    bed.manifest(&cache, URL).wait_for_text(&manifest(1));
    drop(cache);
    server.kill();
    wait_until("the loss", || !is_connected(&bed));
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    assert_eq!(watch.text().unwrap(), manifest(1), "the cached copy is applied");
    let other = bed.manifest(&cache, "obj://M/other.tgz");
    assert!(other.source.current().is_none());
    let failure = watch.wait_for_failure();
    assert!(failure.contains("NATS"), "{failure}");
    server.restart();
    // What was changed meanwhile is found after the reconnect.
    let mut wire = server.wire();
    wire.put_object("M", "m.tgz", &archive(2));
    wire.put_object("M", "other.tgz", &archive(3));
    watch.wait_for_text(&manifest(2));
    other.wait_for_text(&manifest(3));
    watch.wait_for(&SourceEvent::Recovered);
    assert!(is_connected(&bed));
}

/// Another server on the same address, with other data.
#[test]
fn a_broker_that_comes_back_with_other_data() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut server = NatsServer::start(&directory.path().join("s"));
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    wire.put_object("M", "m.tgz", &archive(1));
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    watch.wait_for_text(&manifest(1));
    server.kill();
    std::fs::remove_dir_all(directory.path().join("s/js")).unwrap();
    server.restart();
    wait_until("a second connection", || connects(&bed) >= 2);
    // Data that the broker lost is not data that somebody deleted.
    wait_until("a failure", || {
        watch.source.check_now();
        watch.failures().iter().any(|failure| failure.contains("no bucket `M`")).then_some(())
    });
    assert_eq!(watch.text().unwrap(), manifest(1));
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    wait_until("another failure", || {
        watch.source.check_now();
        watch.failures().iter().any(|failure| failure.contains("no object")).then_some(())
    });
    assert!(!watch.source.is_suspended());
    assert_eq!(watch.text().unwrap(), manifest(1));
    wire.put_object("M", "m.tgz", &archive(2));
    watch.wait_for_text(&manifest(2));
}

#[test]
fn credentials_that_are_refused_and_then_rotated() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::with(
        directory.path(),
        "authorization { users: [{user: agent, password: right}] }",
    );
    let mut wire =
        ccm_testkit::nats::Wire::login(&server.address, "\"user\":\"agent\",\"pass\":\"right\"");
    wire.make_object_bucket("M", 1);
    wire.put_object("M", "m.tgz", &archive(1));
    let members = |password: &str| {
        format!("\"url\": \"{}\", \"user\": \"agent\", \"password\": \"{password}\"", server.url())
    };
    let bed = Bed::with_context(&members("wrong-secret"));
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    let failure = watch.wait_for_failure();
    assert!(failure.contains("NATS refused the credentials"), "{failure}");
    assert!(!format!("{:?}", watch.events()).contains("wrong-secret"));
    bed.write_context(&members("right"));
    watch.wait_for_text(&manifest(1));
    // The server gets another password, then the agent does.
    server.reconfigure(|text| text.replace("password: right", "password: newer"), true);
    wait_until("the end of the connection", || !is_connected(&bed));
    bed.write_context(&members("newer"));
    wait_until("a connection with it", || is_connected(&bed));
    let mut wire =
        ccm_testkit::nats::Wire::login(&server.address, "\"user\":\"agent\",\"pass\":\"newer\"");
    wire.put_object("M", "m.tgz", &archive(2));
    watch.wait_for_text(&manifest(2));
}

/// Without the right to listen, looks still find what is new.
#[test]
fn permissions_that_are_missing() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::with(
        directory.path(),
        "authorization { users: [{user: admin, password: a}, {user: agent, password: b, \
         permissions: {publish: [\"$JS.API.DIRECT.GET.OBJ_M.>\", \"$JS.API.DIRECT.GET.OBJ_M\"], \
         subscribe: [\"_INBOX.>\"]}}] }",
    );
    let login = "\"user\":\"admin\",\"pass\":\"a\"";
    let mut wire = ccm_testkit::nats::Wire::login(&server.address, login);
    wire.make_object_bucket("M", 1);
    wire.make_object_bucket("N", 1);
    wire.put_object("M", "m.tgz", &archive(1));
    wire.put_object("N", "m.tgz", &archive(1));
    let members =
        format!("\"url\": \"{}\", \"user\": \"agent\", \"password\": \"b\"", server.url());
    let bed = Bed::with_context(&members);
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    let refused = bed.manifest(&cache, "obj://N/m.tgz");
    watch.wait_for_text(&manifest(1));
    let failure = refused.wait_for_failure();
    assert!(failure.contains("no permission for subject $JS.API.DIRECT.GET.OBJ_N"), "{failure}");
    wire.put_object("M", "m.tgz", &archive(2));
    watch.source.check_now();
    watch.wait_for_text(&manifest(2));
    assert_eq!(watch.failures(), [""; 0], "a refused subscription fails no check");
}

/// The server hangs with its connections open: another one of the list is used.
#[test]
fn a_server_of_the_list_hangs() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(directory.path());
    let mut wire = cluster.wire(0);
    wire.make_object_bucket("M", 3);
    wire.put_object("M", "m.tgz", &archive(1));
    let bed = Bed::with_nats(&cluster.urls());
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    watch.wait_for_text(&manifest(1));
    for (version, node) in (2..).zip(0..3) {
        cluster.hang(node);
        let alive = (node + 1) % 3;
        wait_until("a cluster that stores again", || {
            let mut wire = cluster.wire(alive);
            // The leader may be the one that hangs.
            let answer = ccm_testkit::nats::Wire::ask(
                cluster.url(alive).trim_start_matches("nats://"),
                "$JS.API.STREAM.INFO.OBJ_M",
                b"",
            )?;
            if answer.contains("\"error\"") || cluster.leader("OBJ_M") == node {
                return None;
            }
            wire.put_object("M", "m.tgz", &archive(version));
            Some(())
        });
        // Within a minute the hang is found out, and then one check is enough.
        let failures = std::fmt::from_fn(|f| write!(f, "a check; {:?}", watch.failures()));
        wait_until(failures, || {
            watch.source.check_now();
            watch.text().as_deref() == Some(&manifest(version))
        });
        cluster.wake(node);
    }
}

/// The leader of the stream crashes while the object is fetched in many parts.
#[test]
fn a_leader_crashes_during_a_download() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::start(directory.path());
    let noise: Vec<u8> = (0..24_000_000_u64)
        .map(|number| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect();
    let large = |version: usize| {
        let text = manifest(version);
        ccm_testkit::tarball(&[("manifest.yaml", text.as_bytes()), ("noise", &noise)])
    };
    let mut wire = cluster.wire(0);
    wire.make_object_bucket("M", 3);
    wire.put_object("M", "m.tgz", &archive(1));
    let bed = Bed::with_nats(&cluster.urls());
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    watch.wait_for_text(&manifest(1));
    wire.put_object("M", "m.tgz", &large(2));
    watch.source.check_now();
    let leader = cluster.leader("OBJ_M");
    cluster.kill(leader);
    let copy = watch.wait_for_text(&manifest(2));
    let ccm_agent::sources::SourceContent::Manifest(path) = &copy.content else {
        panic!("{copy:?}")
    };
    assert!(std::fs::read(path.with_file_name("noise")).unwrap() == noise, "every byte of it");
}
