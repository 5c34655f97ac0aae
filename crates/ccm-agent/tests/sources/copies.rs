//! Last good copies: where they are, who may use them, and when they go.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use ccm_agent::sources::{Error, Source, SourceKind, SourceSettings};
use ccm_host::Digest;
use ccm_testkit::wait_until;
use ccm_testkit::{Server, answer, snapshot_of_content};

use crate::bed::{Bed, PATIENCE, archive, manifest, names, place, record, text};

#[test]
fn a_copy_is_used_at_once_and_without_its_server() {
    let bed = Bed::new();
    let server = Server::with_body(archive(1));
    let url = server.url("/m.tgz");
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    let copy = watch.wait_for_text(&manifest(1));
    assert_eq!(std::fs::metadata(bed.cache_path()).unwrap().mode() & 0o7777, 0o700);
    let digest = Digest::of(&archive(1));
    assert_eq!(copy.digest, Some(digest));
    assert_eq!(names(&place(&bed, &url)), [digest.to_string(), "current.json".to_owned()]);
    let record = record(&bed, &url);
    assert_eq!(record["source"], url.as_str());
    assert_eq!(record["digest"], digest.to_string());
    assert_eq!(record["time"], copy.fetched);
    assert_eq!(record.get("deleted"), None);
    drop((watch, copy, cache, server));
    let cache = bed.cache();
    let before = snapshot_of_content(&bed.cache_path());
    let watch = bed.manifest(&cache, &url);
    assert_eq!(watch.text().unwrap(), manifest(1), "at once");
    watch.wait_for_failure();
    assert_eq!(watch.text().unwrap(), manifest(1));
    assert_eq!(snapshot_of_content(&bed.cache_path()), before, "a failure changes nothing");
}

#[test]
fn one_agent_at_a_time() {
    let bed = Bed::new();
    let cache = bed.cache();
    let error = bed.try_cache().unwrap_err();
    assert!(matches!(error, Error::CacheInUse { .. }), "{error}");
    let wanted = format!("another agent uses {}", bed.cache_path().display());
    assert!(error.to_string().starts_with(&wanted), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(error.hint().is_some());
    let server = Server::with_body(archive(1));
    let watch = bed.manifest(&cache, &server.url("/m.tgz"));
    let copy = watch.wait_for_text(&manifest(1));
    // Whoever uses a copy keeps others from removing it.
    drop((cache, watch));
    // Time for the threads of the watch to end: what keeps the lock then is the copy.
    std::thread::sleep(Duration::from_millis(200));
    assert!(bed.try_cache().is_err());
    drop(copy);
    bed.cache();
}

#[test]
fn a_source_is_watched_once() {
    let bed = Bed::new();
    let cache = bed.cache();
    let server = Server::with_body(archive(1));
    let url = |password: &str| format!("http://me:{password}@{}/m.tgz", server.address);
    let first = bed.manifest(&cache, &url("one"));
    let settings = |url: String| SourceSettings {
        kind: SourceKind::Manifest,
        url,
        interval: Duration::from_mins(5),
        splay: Duration::ZERO,
        accept: None,
    };
    let second = Source::start(settings(url("two")), &cache, &bed.system, None, |_| {});
    let error = second.unwrap_err().to_string();
    assert!(error.ends_with("is already a source of this agent"), "{error}");
    drop(first);
    Source::start(settings(url("two")), &cache, &bed.system, None, |_| {}).unwrap();
    for bad in ["obj://B/m.tgz", "http://h:x/m.tgz", "nonsense://x"] {
        let wrong = Source::start(settings(bad.to_owned()), &cache, &bed.system, None, |_| {});
        assert!(matches!(wrong, Err(Error::Host(_))), "{bad}");
    }
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let bed = Bed::new();
    let server = Server::with_body(ccm_testkit::tarball(&[
        ("manifest.yaml", manifest(1).as_bytes()),
        ("files/a", b"a"),
    ]));
    let url = server.url("/m.tgz");
    let tree = |watch: &crate::bed::Watch| {
        let copy = watch.wait_for_text(&manifest(1));
        place(&bed, &url).join(copy.digest.unwrap().to_string())
    };
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    let path = tree(&watch);
    drop((watch, cache));
    type Damage = fn(&std::path::Path);
    let damages: [Damage; 6] = [
        |tree| std::fs::write(tree.join("files/a"), "b").unwrap(),
        |tree| std::fs::remove_file(tree.join("files/a")).unwrap(),
        |tree| std::fs::write(tree.join("files/more"), "").unwrap(),
        |tree| {
            std::fs::remove_file(tree.join("files/a")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", tree.join("files/a")).unwrap();
        },
        |tree| std::fs::remove_dir_all(tree).unwrap(),
        |tree| std::fs::write(tree.join("../current.json"), "{").unwrap(),
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage(&path);
        let cache = bed.cache();
        let watch = bed.manifest(&cache, &url);
        assert_eq!(tree(&watch), path, "{number}");
        assert_eq!(std::fs::read(path.join("files/a")).unwrap(), b"a", "{number}");
        assert_eq!(names(&path), ["files", "manifest.yaml"], "{number}");
        assert_eq!(names(&path.join("files")), ["a"], "{number}");
        drop((watch, cache));
    }
}

#[test]
fn a_damaged_copy_is_not_used() {
    let bed = Bed::new();
    let server = Server::with_body(archive(1));
    let url = server.url("/m.tgz");
    let cache = bed.cache();
    let copy = bed.manifest(&cache, &url).wait_for_text(&manifest(1));
    let tree = place(&bed, &url).join(copy.digest.unwrap().to_string());
    drop((copy, cache, server));
    std::fs::write(tree.join("manifest.yaml"), manifest(66)).unwrap();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    assert!(watch.source.current().is_none());
    watch.wait_for_failure();
    assert!(watch.source.current().is_none());
}

#[test]
fn old_trees_go_when_nobody_uses_them() {
    let version = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let current = std::sync::Arc::clone(&version);
    let server = Server::start(move |_, stream| {
        let version = current.load(std::sync::atomic::Ordering::SeqCst);
        let _ = stream.write_all(&answer("200 OK", "", &archive(version)));
    });
    let bed = Bed::new();
    let url = server.url("/m.tgz");
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    let first = watch.wait_for_text(&manifest(1));
    for number in 2..5 {
        version.store(number, std::sync::atomic::Ordering::SeqCst);
        watch.source.fetch_once(PATIENCE).unwrap();
        watch.wait_for_text(&manifest(number));
    }
    assert_eq!(text(&first), manifest(1), "a run may still read it");
    assert_eq!(names(&place(&bed, &url)).len(), 3, "the first, the last, and current.json");
    drop(first);
    version.store(5, std::sync::atomic::Ordering::SeqCst);
    watch.source.fetch_once(PATIENCE).unwrap();
    assert_eq!(names(&place(&bed, &url)).len(), 2);
    // What a killed agent left half made goes with the start of the next.
    std::fs::create_dir(place(&bed, &url).join("new-0123456789abcdef")).unwrap();
    drop((watch, cache));
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    assert_eq!(watch.text().unwrap(), manifest(5));
    assert_eq!(names(&place(&bed, &url)).len(), 2);
}

#[test]
fn copies_of_sources_that_are_gone_are_removed() {
    let bed = Bed::new();
    let server = Server::with_body(archive(1));
    let (stays, goes, used) = (server.url("/a.tgz"), server.url("/b.tgz"), server.url("/c.tgz"));
    let cache = bed.cache();
    for url in [&stays, &goes] {
        bed.manifest(&cache, url).wait_for_text(&manifest(1));
    }
    let watch = bed.manifest(&cache, &used);
    let copy = watch.wait_for_text(&manifest(1));
    let foreign = bed.cache_path().join("not-ours");
    std::fs::create_dir(&foreign).unwrap();
    wait_until("looks to end", || {
        cache.retain(&[&stays, &used]);
        (!place(&bed, &goes).exists()).then_some(())
    });
    assert!(place(&bed, &stays).exists() && place(&bed, &used).exists() && foreign.exists());
    // A run still uses it.
    drop(watch);
    cache.retain(&[&stays]);
    assert_eq!(text(&copy), manifest(1));
    drop(copy);
    wait_until("its end", || !place(&bed, &used).exists());
    assert!(place(&bed, &stays).exists());
}
