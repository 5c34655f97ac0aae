//! HTTP: what is asked for, what is remembered, and what is not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_agent::sources::SourceEvent;
use ccm_testkit::{Server, answer};

use crate::bed::{Bed, PATIENCE, archive, manifest, names, place, record};

/// A server whose answer can be changed.
fn changeable(first: Vec<u8>) -> (Server, Arc<Mutex<Vec<u8>>>) {
    let shared = Arc::new(Mutex::new(first));
    let bytes = Arc::clone(&shared);
    let server = Server::start(move |_, stream| {
        let bytes = bytes.lock().unwrap().clone();
        let _ = stream.write_all(&bytes);
    });
    (server, shared)
}

#[test]
fn what_is_known_is_not_fetched_again() {
    let version = Arc::new(AtomicUsize::new(1));
    let current = Arc::clone(&version);
    let server = Server::start(move |head, stream| {
        let version = current.load(Ordering::SeqCst);
        let tag = format!("\"v{version}\"");
        let _ = stream.write_all(&if head.contains(&format!("if-none-match: {tag}\n")) {
            b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_vec()
        } else {
            let headers =
                format!("ETag: {tag}\r\nLast-Modified: Mon, 01 Jan 2024 00:00:0{version} GMT\r\n");
            answer("200 OK", &headers, &archive(version))
        });
    });
    let bed = Bed::new();
    let cache = bed.cache();
    let url = server.url("/m.tar.gz");
    let watch = bed.manifest(&cache, &url);
    let first = watch.wait_for_text(&manifest(1));
    let fetched = |event: &SourceEvent| *event == SourceEvent::Fetched;
    for _ in 0..3 {
        watch.source.fetch_once(PATIENCE).unwrap();
    }
    assert_eq!(watch.count(fetched), 1, "{:?}", server.requests());
    version.store(2, Ordering::SeqCst);
    watch.source.fetch_once(PATIENCE).unwrap();
    let second = watch.wait_for_text(&manifest(2));
    assert_ne!(first.digest, second.digest);
    assert!(watch.has(&SourceEvent::Changed { digest: second.digest.unwrap() }));
    let last = server.requests().pop().unwrap();
    assert!(last.contains("if-none-match: \"v1\"\n"), "{last}");
    assert!(last.contains("if-modified-since: Mon, 01 Jan 2024 00:00:01 GMT\n"), "{last}");
    assert_eq!(record(&bed, &url)["validators"]["etag"], "\"v2\"");
    // The next agent knows it too.
    drop((watch, first, second, cache));
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    assert_eq!(watch.text().unwrap(), manifest(2));
    watch.source.fetch_once(PATIENCE).unwrap();
    assert_eq!(watch.count(fetched), 0);
    assert_eq!(watch.events(), []);
}

#[test]
fn without_validators_the_digest_tells() {
    let (server, bytes) = changeable(answer("200 OK", "", &archive(1)));
    let bed = Bed::new();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &server.url("/m.tgz"));
    watch.wait_for_text(&manifest(1));
    watch.source.fetch_once(PATIENCE).unwrap();
    let changed = |event: &SourceEvent| matches!(event, SourceEvent::Changed { .. });
    assert_eq!(watch.count(changed), 1);
    *bytes.lock().unwrap() = answer("200 OK", "", &archive(2));
    watch.source.fetch_once(PATIENCE).unwrap();
    watch.wait_for_text(&manifest(2));
    assert_eq!(watch.count(changed), 2);
}

/// Validators of a download that turned out bad would hide the good one.
#[test]
fn a_bad_archive_leaves_the_last_good_one_and_is_fetched_again() {
    let tag = "ETag: \"same\"\r\n";
    let (server, bytes) = changeable(answer("200 OK", "ETag: \"old\"\r\n", &archive(1)));
    let bed = Bed::new();
    let cache = bed.cache();
    let url = server.url("/m.tar.gz");
    let watch = bed.manifest(&cache, &url);
    watch.wait_for_text(&manifest(1));
    let hostile = ccm_testkit::tarball(&[("../../escaped", b"x"), ("manifest.yaml", b"ccm: {}")]);
    let mut bomb = vec![("manifest.yaml", &b"ccm: {}"[..])];
    let zeros = vec![0_u8; 257 << 20];
    bomb.push(("zeros", &zeros));
    let several = [("a/manifest.yaml", &b"ccm: {}"[..]), ("b/manifest.yaml", b"ccm: {}")];
    for (body, reason) in [
        (b"not an archive".to_vec(), "m.tar.gz"),
        (archive(2)[..40].to_vec(), "m.tar.gz"),
        (hostile, "escaped"),
        (ccm_testkit::tarball(&bomb), "m.tar.gz"),
        (ccm_testkit::tarball(&[("other.yaml", b"x")]), "there is no manifest.yaml in it"),
        (ccm_testkit::tarball(&several), "it contains several"),
        (ccm_testkit::tarball(&[("manifest.yaml", b"a: [\nb")]), "manifest.yaml, line"),
    ] {
        *bytes.lock().unwrap() = answer("200 OK", tag, &body);
        let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
        assert_eq!(watch.text().unwrap(), manifest(1));
        assert_eq!(record(&bed, &url)["validators"]["etag"], "\"old\"", "{reason}");
        assert_eq!(names(&place(&bed, &url)).len(), 2, "{:?}", names(&place(&bed, &url)));
    }
    assert!(!bed.directory.path().join("escaped").exists());
    *bytes.lock().unwrap() = answer("200 OK", tag, &archive(2));
    watch.source.fetch_once(PATIENCE).unwrap();
    assert_eq!(watch.text().unwrap(), manifest(2));
    assert!(watch.has(&SourceEvent::Recovered));
    let last = server.requests().pop().unwrap();
    assert!(last.contains("if-none-match: \"old\"\n"), "{last}");
}

/// A manifest that parses and is invalid is for the run to refuse.
#[test]
fn an_invalid_manifest_is_kept() {
    let invalid = "ccm: {resources: [nonsense: [{x: {}}]]}\n";
    let body = ccm_testkit::tarball(&[("top/manifest.yaml", invalid.as_bytes())]);
    let server = Server::with_body(body);
    let bed = Bed::new();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &server.url("/m.tar.gz"));
    watch.wait_for_text(invalid);
}

#[test]
fn nothing_there_is_a_failure_not_a_deletion() {
    let (server, bytes) = changeable(answer("200 OK", "", &archive(1)));
    let bed = Bed::new();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &server.url("/m.tgz"));
    watch.wait_for_text(&manifest(1));
    for status in ["404 Not Found", "410 Gone", "500 Internal Server Error"] {
        *bytes.lock().unwrap() = answer(status, "", b"");
        let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
        assert!(error.contains(status), "{error}");
        assert_eq!(watch.text().unwrap(), manifest(1));
        assert!(!watch.source.is_suspended());
    }
    assert!(!watch.has(&SourceEvent::Deleted));
}

#[test]
fn documents_are_judged_before_they_are_used() {
    let (server, bytes) = changeable(answer("200 OK", "", b"data: {a: 1}"));
    let bed = Bed::new();
    let cache = bed.cache();
    let url = server.url("/data.yaml");
    let accept = Arc::new(|text: &str| {
        let is_bad = text.contains("bad");
        if is_bad { Err("key `a` fails its validation".to_owned()) } else { Ok(()) }
    });
    let kind = ccm_agent::sources::SourceKind::Data;
    let watch = bed.start_with(&cache, kind, &url, Some(accept));
    watch.wait_for_text("data: {a: 1}");
    for (body, reason) in [
        (&b""[..], "it is empty"),
        (b"  \n", "it is empty"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"data: [", "cannot use"),
        (b"- a list", "cannot use"),
        (b"data: {a: bad}", "key `a` fails its validation"),
    ] {
        *bytes.lock().unwrap() = answer("200 OK", "", body);
        let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("/data.yaml"), "{error}");
        assert_eq!(watch.text().unwrap(), "data: {a: 1}");
    }
    *bytes.lock().unwrap() = answer("200 OK", "", b"data: {a: 2}");
    watch.source.fetch_once(PATIENCE).unwrap();
    assert_eq!(watch.text().unwrap(), "data: {a: 2}");
    let files = names(&place(&bed, &url));
    assert_eq!(files.len(), 2, "{files:?}");
    for name in files {
        use std::os::unix::fs::MetadataExt as _;
        let mode = std::fs::metadata(place(&bed, &url).join(&name)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
}

/// Neither who asks for the copy nor another source waits for it.
#[test]
fn a_server_that_hangs_delays_nothing_else() {
    let hang = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        let _ = stream.flush();
        // This is the hang.
        std::thread::sleep(Duration::from_mins(2));
    });
    let good = Server::with_body(archive(1));
    let bed = Bed::new();
    let cache = bed.cache();
    let hanging = bed.manifest(&cache, &hang.url("/m.tgz"));
    let late = hanging.source.fetch_once(Duration::from_millis(300)).unwrap_err().to_string();
    assert!(late.contains("no answer within"), "{late}");
    let watch = bed.manifest(&cache, &good.url("/m.tgz"));
    watch.wait_for_text(&manifest(1));
    assert!(hanging.source.current().is_none());
    // Dropping it ends the download: the cache is free at once.
    drop((hanging, watch, cache));
    bed.cache();
}

#[test]
fn failures_are_tried_again_by_themselves() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = Server::start(move |_, stream| {
        let _ = stream.write_all(&match counted.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => answer("503 Service Unavailable", "", b""),
            _ => answer("200 OK", "", &archive(7)),
        });
    });
    let bed = Bed::new();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &server.url("/m.tgz"));
    watch.wait_for_text(&manifest(7));
    watch.wait_for(&SourceEvent::Recovered);
    assert_eq!(watch.failures().len(), 2);
}
