//! `kv://` as data.

use ccm_testkit::nats::lacks_nats;

use crate::bed::Bed;

#[test]
fn hierarchical_data_comes_from_a_key() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "app/common", b"data: {port: 80, name: web}\noverrides: {}\n");
    wire.put("DATA", "plain.1=a_b-c", b"port: 1");
    let out = bed.ok(["hiera", "parse", "kv://DATA/app/common"]);
    assert_eq!(out, "{\n  \"name\": \"web\",\n  \"port\": 80\n}\n");
    bed.ok(["hiera", "parse", "kv://DATA/plain.1=a_b-c"]);
    let manifest = "ccm: {resources: [exec: [{\"echo {{ Data.port }}\": {logoutput: true}}]]}";
    let ran = bed.apply(manifest, &["--hiera", "kv://DATA/app/common"]);
    assert!(ran.code == 0 && ran.out.contains("80"), "{ran:?}");
    bed.env.manifest(manifest);
    let output = bed
        .env
        .command(["apply", "manifest.yaml"])
        .env("CCM_HIERA_DATA", "kv://DATA/app/common")
        .output()
        .unwrap();
    assert!(output.status.success());
    // A new value is seen by the next run.
    wire.put("DATA", "app/common", b"data: {port: 81}\n");
    let ran = bed.apply(manifest, &["--hiera", "kv://DATA/app/common"]);
    assert!(ran.out.contains("81"), "{ran:?}");
}

#[test]
fn what_is_no_data_is_an_error_that_names_bucket_and_key() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_bucket("DATA", 1);
    wire.put("DATA", "empty", b"");
    wire.put("DATA", "latin", b"data: {a: \xe9}");
    wire.put("DATA", "list", b"[1]");
    wire.put("DATA", "text", b"hello");
    wire.put("DATA", "deleted", b"x: 1");
    wire.request("$KV.DATA.deleted", &[("KV-Operation", "DEL")], b"");
    wire.put("DATA", "purged", b"x: 1");
    wire.request("$KV.DATA.purged", &[("KV-Operation", "PURGE"), ("Nats-Rollup", "sub")], b"");
    for (key, words) in [
        ("none", "no key `none` in bucket `DATA`"),
        ("deleted", "no key `deleted` in bucket `DATA`"),
        ("purged", "no key `purged` in bucket `DATA`"),
        ("empty", "key `empty` in bucket `DATA` is empty"),
        ("latin", "kv://DATA/latin: it is not UTF-8"),
        ("list", "kv://DATA/list"),
        ("text", "kv://DATA/text"),
    ] {
        let said = bed.fails(["hiera", "parse", &format!("kv://DATA/{key}")]);
        assert!(said.contains(words), "{key}: {said}");
    }
    let said = bed.fails(["hiera", "parse", "kv://NONE/k"]);
    assert!(said.contains("no bucket `NONE`") && said.contains("context \"CCM\""), "{said}");
    // Nothing runs without its data.
    let manifest = "ccm: {resources: [exec: [{\"touch [DIR]/ran\": {}}]]}";
    let ran = bed.apply(manifest, &["--hiera", "kv://DATA/none"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!bed.env.path("ran").exists());
}

#[test]
fn hostile_urls_are_refused_before_anything_is_sent() {
    // There is no server, and no context: nothing is asked for them.
    let env = crate::env::TestEnv::new();
    let long = format!("kv://B/{}", "x".repeat(3000));
    for url in [
        "kv://B",
        "kv://B/",
        "kv:///k",
        "kv://B.C/k",
        "kv://B/>",
        "kv://B/*",
        "kv://B/a b",
        "kv://B/a?x=1",
        "kv://B/a#b",
        "kv://ann:hunter2@B/k",
        "kv://B:4222/k",
        "kv://B/.a",
        "kv://B/a.",
        "kv://B/%2e",
        "kv://*/k",
        &long,
        "obj://B/a.tgz",
        "kvs://B/k",
    ] {
        let output = env.run(["hiera", "parse", url]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
        let is_sent = said.contains("unknown NATS context");
        assert_eq!(is_sent, url.starts_with("obj://"), "{url}: {said}");
    }
}

/// A bucket that does not allow direct reads is read through its leader.
#[test]
fn old_buckets_work_too() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.api(
        "STREAM.CREATE.KV_OLD",
        r#"{"name":"KV_OLD","subjects":["$KV.OLD.>"],"max_msgs_per_subject":1,"allow_rollup_hdrs":true}"#,
    );
    wire.put("OLD", "k", b"data: {a: 1}");
    assert_eq!(bed.ok(["hiera", "parse", "kv://OLD/k"]), "{\n  \"a\": 1\n}\n");
    let said = bed.fails(["hiera", "parse", "kv://OLD/other"]);
    assert!(said.contains("no key `other` in bucket `OLD`"), "{said}");
    wire.request("$KV.OLD.k", &[("KV-Operation", "DEL")], b"");
    let said = bed.fails(["hiera", "parse", "kv://OLD/k"]);
    assert!(said.contains("no key `k` in bucket `OLD`"), "{said}");
}
