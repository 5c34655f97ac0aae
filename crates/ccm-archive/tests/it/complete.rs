//! What is extracted is what was checked, and all of it or marked as not all.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use ccm_archive::{Extraction, Format, Limits};
use ccm_host::{Digest, Host};

use crate::build::{Tar, gzip};

const SUBJECT: &str = "/a.tar";

/// A file that holds something else when it is read again.
struct Fickle {
    readings: Vec<Vec<u8>>,
    now: Cursor<Vec<u8>>,
}

impl Fickle {
    fn new(readings: &[&[u8]]) -> Self {
        let readings = readings.iter().rev().map(|bytes| bytes.to_vec()).collect();
        Self { readings, now: Cursor::new(Vec::new()) }
    }
}

impl Read for Fickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.now.read(into)
    }
}

impl Seek for Fickle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to == SeekFrom::Start(0)
            && let Some(next) = self.readings.pop()
        {
            self.now = Cursor::new(next);
        }
        self.now.seek(to)
    }
}

fn extraction<'a>(destination: &'a Path, name: &str) -> Extraction<'a> {
    Extraction {
        format: Format::of(name).unwrap(),
        destination,
        limits: Limits::ARCHIVE,
        checksum: None,
        creates: None,
        allows_setuid: false,
        subject: Path::new(SUBJECT),
    }
}

fn is_incomplete(path: &Path) -> bool {
    Host::new().is_incomplete(path, Path::new(SUBJECT)).unwrap()
}

#[test]
fn both_readings_must_be_the_same() {
    for (name, pack) in
        [("a.tar", Vec::clone as fn(&Vec<u8>) -> Vec<u8>), ("a.tgz", |tar| gzip(tar))]
    {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("in");
        let tar = |text: &str| pack(&Tar::default().file("f", text).file("g", "x").end());
        let (good, evil) = (tar("good"), tar("evil"));
        let run = |readings: &[&[u8]], checksum: Option<Digest>| {
            let size = readings[0].len() as u64;
            let extraction =
                Extraction { checksum, creates: Some(&into.join("g")), ..extraction(&into, name) };
            extraction.run(&Host::new(), Fickle::new(readings), size, name)?.complete()
        };
        let sum = Digest::of(&good);
        let error = run(&[&evil, &evil], Some(sum)).unwrap_err().to_string();
        assert!(error.contains(&sum.to_string()), "{error}");
        assert!(!into.exists(), "{name}: nothing is begun");
        for checksum in [None, Some(sum)] {
            let error = run(&[&good, &evil], checksum).unwrap_err().to_string();
            assert!(error.contains("changed during"), "{error}");
            assert!(is_incomplete(&into) && !into.join("g").exists(), "{name}");
        }
        run(&[&good, &good], Some(sum)).unwrap();
        assert!(!is_incomplete(&into));
        assert_eq!(std::fs::read_to_string(into.join("f")).unwrap(), "good");
        assert_eq!(std::fs::read_dir(&into).unwrap().count(), 2);
    }
}

#[test]
fn bytes_behind_the_end_count_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let tar = Tar::default().file("f", "x").end();
    let mut longer = tar.clone();
    longer.extend_from_slice(&[0; 1024]);
    longer.extend_from_slice(b"more");
    let size = tar.len() as u64;
    let run = |readings: &[&[u8]]| {
        let file = Fickle::new(readings);
        extraction(dir.path(), "a.tar").run(&Host::new(), file, size, "a.tar")?.complete()
    };
    assert!(run(&[&tar, &longer]).is_err());
    run(&[&longer, &longer]).unwrap();
}

#[test]
fn it_is_marked_until_it_is_said_to_be_complete() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("in");
    let tar = Tar::default().directory("d").file("d/done", "x").file("d/f", "x").end();
    let size = tar.len() as u64;
    let creates = into.join("d/done");
    let run = |tar: &[u8]| {
        let extraction = Extraction { creates: Some(&creates), ..extraction(&into, "a.tar") };
        extraction.run(&Host::new(), Cursor::new(tar.to_vec()), size, "a.tar")
    };
    let extracted = run(&tar).unwrap();
    assert!(is_incomplete(&into) && creates.exists());
    extracted.complete().unwrap();
    assert!(!is_incomplete(&into));
    // An archive that is refused has changed nothing, so nothing is marked.
    assert!(run(&tar[..tar.len() - 1024]).is_err());
    assert!(!is_incomplete(&into));
}

#[test]
fn the_name_of_the_marker_is_not_the_archives() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of(SUBJECT.as_bytes()).to_string();
    let name = format!(".ccm-incomplete-{}", &digest[..24]);
    for name in [name.clone(), format!("{name}/f")] {
        let tar = Tar::default().file(&name, "x").end();
        let size = tar.len() as u64;
        let result =
            extraction(dir.path(), "a.tar").run(&Host::new(), Cursor::new(tar), size, "a.tar");
        let error = result.unwrap_err().to_string();
        assert!(error.contains("needs this name"), "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
