//! Objects and keys of a real NATS server.

use std::time::{Duration, Instant};

use ccm_agent::sources::SourceEvent;
use ccm_testkit::nats::{NatsServer, lacks_nats};
use ccm_testkit::wait_until;

use crate::bed::{Bed, archive, manifest, names, place, record};

const URL: &str = "obj://M/web/app.tar.gz";
const NAME: &str = "web/app.tar.gz";

#[test]
fn a_change_is_noticed_fetched_and_told() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::start(directory.path());
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    wire.make_bucket("DATA", 1);
    wire.put_object("M", NAME, &archive(1));
    wire.put("DATA", "all", b"data: {a: 1}");
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    let object = bed.manifest(&cache, URL);
    let key = bed.data(&cache, "kv://DATA/all");
    object.wait_for_text(&manifest(1));
    key.wait_for_text("data: {a: 1}");
    // Neither would be looked at again within minutes.
    for version in 2..4 {
        wire.put_object("M", NAME, &archive(version));
        object.wait_for_text(&manifest(version));
        wire.put("DATA", "all", format!("data: {{a: {version}}}").as_bytes());
        key.wait_for_text(&format!("data: {{a: {version}}}"));
    }
    assert_eq!(object.failures(), [""; 0]);
    assert_eq!(names(&place(&bed, URL)).len(), 2);
    // No consumer on any stream, ever.
    for stream in ["OBJ_M", "KV_DATA"] {
        let info = wire.api(&format!("STREAM.INFO.{stream}"), "");
        assert!(info.contains("\"consumer_count\":0"), "{info}");
    }
    // A key that is deleted or made unusable leaves the last good document.
    wire.request("$KV.DATA.all", &[("KV-Operation", "DEL")], b"");
    let failure = key.wait_for_failure();
    assert!(failure.contains("no key `all` in bucket `DATA`"), "{failure}");
    assert_eq!(key.text().unwrap(), "data: {a: 3}");
    assert!(!key.source.is_suspended());
    wire.put("DATA", "all", b"data: {a: 4}");
    key.wait_for_text("data: {a: 4}");
    key.wait_for(&SourceEvent::Recovered);
}

#[test]
fn a_deleted_object_suspends_until_it_is_back() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::start(directory.path());
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    // One that never was is missing, not deleted.
    let watch = bed.manifest(&cache, URL);
    let failure = watch.wait_for_failure();
    assert!(failure.contains("no object \"web/app.tar.gz\" in bucket \"M\""), "{failure}");
    let id = wire.put_object("M", NAME, &archive(1));
    watch.wait_for_text(&manifest(1));
    wire.delete_object("M", NAME, &id);
    watch.wait_for(&SourceEvent::Deleted);
    assert!(watch.source.is_suspended() && watch.source.current().is_none());
    wait_until("the mark", || record(&bed, URL)["deleted"] == true);
    assert_eq!(names(&place(&bed, URL)).len(), 2, "the copy is kept");
    // The next agent is suspended from its start.
    drop((watch, cache));
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    assert!(watch.source.is_suspended() && watch.source.current().is_none());
    assert!(watch.has(&SourceEvent::Deleted));
    let id = wire.put_object("M", NAME, &archive(1));
    watch.wait_for(&SourceEvent::Restored);
    assert_eq!(watch.text().unwrap(), manifest(1));
    assert_eq!(record(&bed, URL).get("deleted"), None);
    let changed = |event: &SourceEvent| matches!(event, SourceEvent::Changed { .. });
    assert_eq!(watch.count(changed), 0, "it is the same");
    // Back with other content.
    wire.delete_object("M", NAME, &id);
    wait_until("the deletion", || watch.source.is_suspended());
    wire.put_object("M", NAME, &archive(2));
    watch.wait_for_text(&manifest(2));
    wait_until("what is told of it", || watch.count(changed) == 1);
    assert_eq!(watch.count(|event| *event == SourceEvent::Restored), 2);
}

/// As fast as it comes: every copy is whole, the last one wins, and the disk does
/// not fill.
#[test]
fn an_object_that_changes_all_the_time() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::start(directory.path());
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    let mut last = wire.put_object("M", NAME, &archive(0));
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    let watch = bed.manifest(&cache, URL);
    watch.wait_for_text(&manifest(0));
    let until = Instant::now() + Duration::from_secs(10);
    let mut version = 0;
    while Instant::now() < until {
        version += 1;
        let id = wire.put_object("M", NAME, &archive(version));
        wire.purge_chunks("M", &last);
        last = id;
        let seen = watch.text().unwrap();
        assert!(seen.starts_with("ccm: ") && seen.ends_with('\n'), "{seen:?}");
        // The pace of the changes.
        std::thread::sleep(Duration::from_millis(50));
    }
    watch.wait_for_text(&manifest(version));
    let changed = watch.count(|event| matches!(event, SourceEvent::Changed { .. }));
    assert!(changed <= 30, "{changed} fetches of {version} versions: about one a second");
    wait_until("only the last copy to stay", || names(&place(&bed, URL)).len() == 2);
}

/// One subscription per source and one for replies, however often it changes.
#[test]
fn subscriptions_stay_few() {
    if lacks_nats() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = NatsServer::with(directory.path(), "http: \"127.0.0.1:-1\"");
    let mut wire = server.wire();
    wire.make_object_bucket("M", 1);
    wire.make_bucket("DATA", 1);
    wire.put_object("M", NAME, &archive(1));
    wire.put("DATA", "all", b"data: {a: 1}");
    let bed = Bed::with_nats(&server.url());
    let cache = bed.cache();
    let object = bed.manifest(&cache, URL);
    let key = bed.data(&cache, "kv://DATA/all");
    for version in 2..5 {
        wire.put_object("M", NAME, &archive(version));
        object.wait_for_text(&manifest(version));
        wire.put("DATA", "all", format!("data: {{a: {version}}}").as_bytes());
        key.wait_for_text(&format!("data: {{a: {version}}}"));
    }
    let monitor = server.monitor();
    let subscriptions = || {
        let text = ccm_host::Host::new()
            .fetch_text(&format!("http://{monitor}/connz?subs=1"), 1 << 20)
            .unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        let connections = all["connections"].as_array().unwrap().clone();
        let ours = connections.iter().find(|one| one["name"] == "choria-ccm agent").unwrap();
        ours["subscriptions"].as_u64().unwrap()
    };
    wait_until("three subscriptions", || subscriptions() == 3);
    drop(key);
    wait_until("two subscriptions", || subscriptions() == 2);
}
