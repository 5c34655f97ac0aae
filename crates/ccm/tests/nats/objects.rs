//! `obj://` as manifests.

use ccm_testkit::nats::{Wire, lacks_nats};

use crate::bed::{Bed, digest, encoded, put_object, tarball};

const MANIFEST: &str = "ccm: {resources: [exec: [{\"echo from-an-object\": {logoutput: true}}]]}";

fn bed() -> (Bed, Wire) {
    let bed = Bed::new();
    let mut wire = bed.wire();
    wire.make_object_bucket("M", 1);
    (bed, wire)
}

#[test]
fn manifests_come_from_objects() {
    if lacks_nats() {
        return;
    }
    let (bed, mut wire) = bed();
    for name in ["app.tar.gz", "a/b c.tgz", "../*>.tgz", "é.tgz"] {
        put_object(&mut wire, "M", name, &tarball(MANIFEST));
        let url = format!("obj://M/{name}");
        let ran = bed.run(["apply", &url]);
        assert!(ran.code == 0 && ran.out.contains("from-an-object"), "{name}: {ran:?}");
        bed.ok(["validate", &url]);
        bed.ok(["plan", &url]);
    }
    // Many chunks, in order.
    let padding: String = (0..60_000_u64)
        .map(|n| format!("# {:016x}\n", (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let large = tarball(&format!("{MANIFEST}\n{padding}"));
    assert!(large.len() > 400_000, "{}", large.len());
    put_object(&mut wire, "M", "large.tgz", &large);
    let ran = bed.run(["apply", "obj://M/large.tgz"]);
    assert!(ran.code == 0 && ran.out.contains("from-an-object"), "{ran:?}");
}

#[test]
fn archives_and_scaffolds_come_from_objects_too() {
    if lacks_nats() {
        return;
    }
    let (bed, mut wire) = bed();
    put_object(&mut wire, "M", "x.tgz", &tarball("a: 1\n"));
    let manifest = "ccm: {resources: [archive: [{\"[DIR]/x.tgz\": {url: \"obj://M/x.tgz\", \
                    extract_parent: \"[DIR]/out\", creates: \"[DIR]/out/manifest.yaml\", [ME]}}]]}";
    std::fs::create_dir(bed.env.path("out")).unwrap();
    let ran = bed.apply(manifest, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(bed.env.read("out/manifest.yaml"), "a: 1\n");
}

#[test]
fn what_is_wrong_with_an_object_is_said() {
    if lacks_nats() {
        return;
    }
    let (bed, mut wire) = bed();
    let content = tarball(MANIFEST);
    let chunks = wire.put_chunks("M", "good", &content, 100);
    let size = content.len();
    let good = digest(&content);
    let wrong = digest(b"something else");
    let mut put = |name: &str, metadata: String| {
        wire.put_metadata("M", &encoded(&format!("{name}.tgz")), &metadata);
    };
    let meta = |size: usize, chunks: usize, digest: &str, more: &str| {
        format!(
            "{{\"nuid\":\"good\",\"size\":{size},\"chunks\":{chunks},\"digest\":\"{digest}\"{more}}}"
        )
    };
    put("right", meta(size, chunks, &good, ""));
    put("wrong", meta(size, chunks, &wrong, ""));
    put("none", meta(size, chunks, "", ""));
    put("md5", meta(size, chunks, "MD5=abc", ""));
    put("short", meta(size, chunks, "SHA-256=abc", ""));
    put("larger", meta(size - 5, chunks, &good, ""));
    put("smaller", meta(size + 5, chunks + 1, &good, ""));
    put("huge", meta(10 << 30, 80_000, &good, ""));
    put("deleted", meta(size, chunks, &good, ",\"deleted\":true"));
    put("noid", format!("{{\"size\":{size},\"chunks\":1,\"digest\":\"{good}\"}}"));
    put(
        "hostile",
        format!("{{\"nuid\":\">\",\"size\":{size},\"chunks\":1,\"digest\":\"{good}\"}}"),
    );
    put("garbage", "not json".to_owned());
    put(
        "empty",
        format!("{{\"nuid\":\"e\",\"size\":0,\"chunks\":0,\"digest\":\"{}\"}}", digest(b"")),
    );
    put(
        "link",
        meta(0, 0, "", ",\"options\":{\"link\":{\"bucket\":\"M\",\"name\":\"right.tgz\"}}"),
    );
    put(
        "twice",
        meta(0, 0, "", ",\"options\":{\"link\":{\"bucket\":\"M\",\"name\":\"link.tgz\"}}"),
    );
    put("bucket", meta(0, 0, "", ",\"options\":{\"link\":{\"bucket\":\"M\"}}"));
    put("out", meta(0, 0, "", ",\"options\":{\"link\":{\"bucket\":\"a.>\",\"name\":\"x\"}}"));
    put(
        "dangling",
        meta(0, 0, "", ",\"options\":{\"link\":{\"bucket\":\"M\",\"name\":\"no.tgz\"}}"),
    );
    for name in ["right", "link"] {
        bed.ok(["validate", &format!("obj://M/{name}.tgz")]);
    }
    for (name, words) in [
        ("missing", "no object \"missing.tgz\" in bucket \"M\""),
        ("deleted", "no object \"deleted.tgz\" in bucket \"M\""),
        ("wrong", "does not have the digest of its metadata"),
        ("none", "has no digest"),
        ("md5", "has a digest that is not SHA-256"),
        ("short", "has a digest that is not SHA-256"),
        ("larger", "is larger than its metadata says"),
        ("smaller", "was replaced or deleted while it was read"),
        ("huge", "it is larger than"),
        ("noid", "has metadata without an id"),
        ("hostile", "has metadata without an id"),
        ("garbage", "has no metadata"),
        ("empty", "empty.tgz"),
        ("twice", "is a link to another link"),
        ("bucket", "is a link to a whole bucket"),
        ("out", "is a link to something that is not a bucket"),
        ("dangling", "no object \"no.tgz\" in bucket \"M\""),
    ] {
        let said = bed.fails(["apply", &format!("obj://M/{name}.tgz")]);
        assert!(said.contains(words), "{name}: {said}");
        assert!(said.contains(&format!("obj://M/{name}.tgz")), "{name}: {said}");
    }
    let said = bed.fails(["apply", "obj://NONE/a.tgz"]);
    assert!(said.contains("no bucket `NONE`"), "{said}");
    for url in ["obj://M", "obj://M/", "obj://M/a", "obj://M/a.zip", "obj://M.N/a.tgz"] {
        let said = bed.fails(["apply", url]);
        assert!(said.contains("cannot download"), "{url}: {said}");
    }
}
