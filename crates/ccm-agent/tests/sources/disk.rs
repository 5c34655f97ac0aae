//! Disks that are full or read-only. These tests run themselves again in a mount
//! namespace of their own.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use std::io::Write as _;

use ccm_agent::sources::{Cache, SourceEvent};
use ccm_host::{Cancel, System};
use ccm_testkit::{Server, answer, lacks_program, lacks_root};

use crate::bed::{Bed, PATIENCE, archive, manifest};

const INSIDE: &str = "CCM_TEST_SMALL_DISK";

/// Runs a test again where a small file system is mounted on a directory; `None`
/// outside, its path inside.
fn small_disk(test: &str, options: &str) -> Option<std::path::PathBuf> {
    if let Some(path) = std::env::var_os(INSIDE) {
        return Some(path.into());
    }
    if lacks_root() || lacks_program("unshare") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o {options},mode=700 none \"$1\" && shift && exec \"$@\"");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &mount, "sh"])
        .arg(directory.path())
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{output:?}");
    None
}

fn mount(arguments: &[&str], path: &Path) {
    assert!(Command::new("mount").args(arguments).arg(path).status().unwrap().success());
}

/// An archive that does not fit.
fn large(version: usize) -> Vec<u8> {
    // What cannot be compressed, so that the download is large as well.
    let mut seed = version as u64 | 1;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    })
    .take(300 << 10)
    .collect();
    ccm_testkit::tarball(&[("manifest.yaml", manifest(version).as_bytes()), ("noise", &noise)])
}

#[test]
fn a_full_disk_keeps_the_last_good_copy() {
    let Some(path) = small_disk("disk::a_full_disk_keeps_the_last_good_copy", "size=512k") else {
        return;
    };
    let body = Arc::new(Mutex::new(archive(1)));
    let current = Arc::clone(&body);
    let server = Server::start(move |_, stream| {
        let body = current.lock().unwrap().clone();
        let _ = stream.write_all(&answer("200 OK", "", &body));
    });
    let bed = Bed::new();
    let host = System::default().begin(Cancel::default());
    let cache = Cache::open(&path, &host).unwrap();
    let watch = bed.manifest(&cache, &server.url("/m.tgz"));
    watch.wait_for_text(&manifest(1));
    // The download fits, what it unpacks to does not.
    *body.lock().unwrap() = large(2);
    let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
    assert!(error.contains("bytes free"), "{error}");
    assert_eq!(watch.text().unwrap(), manifest(1));
    // Nothing of it is left, so that what fits is taken.
    *body.lock().unwrap() = archive(3);
    watch.wait_for_text(&manifest(3));
    watch.wait_for(&SourceEvent::Recovered);
    // Not a byte is free.
    let mut filler = std::fs::File::create(path.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    while filler.write_all(&[0; 1]).is_ok() {}
    *body.lock().unwrap() = archive(4);
    let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("no space left"), "{error}");
    assert_eq!(watch.text().unwrap(), manifest(3));
    drop(filler);
    std::fs::remove_file(path.join("filler")).unwrap();
    watch.wait_for_text(&manifest(4));
}

#[test]
fn a_read_only_disk_keeps_the_last_good_copy() {
    let Some(path) = small_disk("disk::a_read_only_disk_keeps_the_last_good_copy", "size=4m")
    else {
        return;
    };
    let body = Arc::new(Mutex::new(archive(1)));
    let current = Arc::clone(&body);
    let server = Server::start(move |_, stream| {
        let body = current.lock().unwrap().clone();
        let _ = stream.write_all(&answer("200 OK", "", &body));
    });
    let bed = Bed::new();
    let url = server.url("/m.tgz");
    let open = || {
        let host = System::default().begin(Cancel::default());
        ccm_testkit::wait_until("the cache", || Cache::open(&path, &host).ok())
    };
    let cache = open();
    bed.manifest(&cache, &url).wait_for_text(&manifest(1));
    drop(cache);
    mount(&["-o", "remount,ro"], &path);
    // Also an agent that starts now has it.
    let cache = open();
    let watch = bed.manifest(&cache, &url);
    assert_eq!(watch.text().unwrap(), manifest(1));
    *body.lock().unwrap() = archive(2);
    let error = watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("read-only"), "{error}");
    assert_eq!(watch.text().unwrap(), manifest(1));
    let other = bed.manifest(&cache, &server.url("/other.tgz"));
    assert!(other.wait_for_failure().to_lowercase().contains("read-only"));
    mount(&["-o", "remount,rw"], &path);
    watch.wait_for_text(&manifest(2));
    other.wait_for_text(&manifest(2));
}
