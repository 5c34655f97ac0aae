//! Trees that are looked at while they are replaced, and disks that fill up
//! meanwhile.
//!
//! `CCM_ATTACKS` says of how many looks there are to be a two-hundredth at least.

use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ccm_archive::{Error, Extraction, Format, Limits};
use ccm_host::Host;
use ccm_testkit::{is_whole_version, versioned_content, versioned_name};

use crate::build::{Tar, gzip};

const FILES: usize = 48;

/// The tree in a version, with a symlink and a hard link in it.
fn archive(version: usize) -> Vec<u8> {
    let mut tar = Tar::default().directory("app");
    for n in 0..4 {
        tar = tar.directory(&format!("app/d{n}"));
    }
    for n in 0..FILES {
        tar = tar.file(&versioned_name(n), &versioned_content(version, n));
    }
    tar = tar.symlink("app/link", "d1/f01").hard_link("app/z-hard", &versioned_name(2));
    gzip(&tar.end())
}

fn extract(archive: Vec<u8>, into: &Path) -> Result<(), Error> {
    let size = archive.len() as u64;
    let extraction = Extraction {
        format: Format::of("a.tar.gz").unwrap(),
        destination: into,
        limits: Limits::ARCHIVE,
        checksum: None,
        creates: None,
        allows_setuid: false,
        subject: Path::new("/a.tar.gz"),
    };
    extraction.run(&Host::new(), Cursor::new(archive), size, "a.tar.gz")?.complete()
}

/// How many files of a tree are there. Each is whole.
fn count_whole(top: &Path) -> usize {
    let is_there = |n: &usize| match std::fs::read_to_string(top.join(versioned_name(*n))) {
        Ok(text) => {
            assert!(is_whole_version(&text, *n), "{} is torn", versioned_name(*n));
            true
        }
        Err(_) => false,
    };
    (0..FILES).filter(is_there).count()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn a_looker_sees_every_file_old_or_new() {
    let attacks = std::env::var("CCM_ATTACKS").ok().and_then(|text| text.parse().ok());
    let wanted = attacks.unwrap_or(40) * 200;
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("in");
    let versions = [archive(1), archive(2)];
    extract(versions[0].clone(), &top).unwrap();
    let (is_over, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    let look = || {
        let (mut missing, mut torn) = (0, 0);
        while !is_over.load(Ordering::Relaxed) {
            let files = (0..FILES).map(|n| (versioned_name(n), n));
            let links = [("app/link".to_owned(), 1), ("app/z-hard".to_owned(), 2)];
            for (name, n) in files.chain(links) {
                match std::fs::read_to_string(top.join(name)) {
                    Ok(text) => torn += usize::from(!is_whole_version(&text, n)),
                    Err(_) => missing += 1,
                }
                looks.fetch_add(1, Ordering::Relaxed);
            }
        }
        (missing, torn)
    };
    let mut upgrades = 0;
    let seen = std::thread::scope(|scope| {
        let looker = scope.spawn(look);
        while looks.load(Ordering::Relaxed) < wanted || upgrades < 2 {
            upgrades += 1;
            extract(versions[upgrades % 2].clone(), &top).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        looker.join().unwrap()
    });
    let looks = looks.load(Ordering::Relaxed);
    println!("{looks} looks during {upgrades} upgrades: {} missing, {} torn", seen.0, seen.1);
    assert_eq!(seen, (0, 0), "of {looks} looks");
}

/// What a disk without room leaves is whole, and made good when there is room.
#[test]
fn a_disk_that_fills_up_half_way_tears_nothing() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.tar.gz"), archive(2)).unwrap();
    // There is room for the bytes, but not for all the pages that they lie in.
    let bytes: usize = (0..FILES).map(|n| versioned_content(2, n).len()).sum();
    let script = format!(
        "cd {dir} && mkdir small && mount -t tmpfs -o size={size} none small || exit 99\n\
         run() {{ CCM_EXTRACT_IN={dir} {program} --exact --nocapture \
         attacks::extracts_for_the_test_before_it; echo \"exit $?\"; }}\n\
         run; mkdir seen && cp -a small/. seen && mount -o remount,size=16m none small && \
         run && mkdir done && cp -a small/. done",
        dir = dir.path().display(),
        size = bytes + (40 << 10),
        program = std::env::current_exe().unwrap().display(),
    );
    // In a mount namespace of its own: the machine never sees the mount.
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(99) || !dir.path().join("seen").exists() {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let exits: Vec<_> = said.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(exits, ["exit 101", "exit 0"], "{said}{errors}");
    assert!(errors.contains("No space left"), "{errors}");
    let left = count_whole(&dir.path().join("seen/in"));
    assert!((1..FILES).contains(&left), "{left} files were there: the test shows nothing");
    assert_eq!(count_whole(&dir.path().join("done/in")), FILES);
}

/// Only of use to the test before it.
#[test]
fn extracts_for_the_test_before_it() {
    let Some(place) = std::env::var_os("CCM_EXTRACT_IN") else { return };
    let place = Path::new(&place);
    let archive = std::fs::read(place.join("a.tar.gz")).unwrap();
    extract(archive, &place.join("small/in")).unwrap_or_else(|error| panic!("{error:?}"));
}
