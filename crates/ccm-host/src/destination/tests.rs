//! Tests of creation and replacement below a destination.

use std::os::unix::fs::{MetadataExt as _, symlink};

use super::*;

fn destination() -> (tempfile::TempDir, Destination) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let into = Destination::open(&Host::new(), &dir.path().join("in")).unwrap();
    (dir, into)
}

fn write(into: &mut Destination, name: &str) -> Result<()> {
    let mut file = into.file(Path::new(name))?;
    file.write(b"x")?;
    file.finish(&EntryMetadata::default())
}

#[test]
fn files_are_made_with_their_parents_and_in_place_of_others() {
    let (dir, mut into) = destination();
    write(&mut into, "a/b/c").unwrap();
    write(&mut into, "a/b/c").unwrap();
    assert_eq!(std::fs::read(dir.path().join("in/a/b/c")).unwrap(), b"x");
    into.symlink(Path::new("a/b/c"), Path::new("elsewhere"), &EntryMetadata::default()).unwrap();
    into.hard_link(Path::new("h"), Path::new("a/b/c")).unwrap();
    into.hard_link(Path::new("h"), Path::new("a/b/c")).unwrap();
    assert_eq!(into.read_link(Path::new("h")).unwrap().unwrap(), Path::new("elsewhere"));
    into.directory(Path::new("h")).unwrap();
    assert!(dir.path().join("in/h").is_dir());
    write(&mut into, "h").unwrap();
    assert!(dir.path().join("in/h").is_file());
    let error = write(&mut into, "a").unwrap_err();
    assert!(matches!(error, Error::InTheWay { .. }), "{error}");
    let error = write(&mut into, "h/x").unwrap_err();
    assert!(matches!(error, Error::NotADirectory { .. }), "{error}");
}

#[test]
fn links_lead_within_but_never_out() {
    let (dir, mut into) = destination();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("in/real")).unwrap();
    symlink("real", at("in/inner")).unwrap();
    symlink("../out", at("in/outer")).unwrap();
    symlink(at("out"), at("in/absolute")).unwrap();
    symlink(at("in/real"), at("in/back")).unwrap();
    write(&mut into, "inner/f").unwrap();
    assert!(at("in/real/f").exists());
    for name in ["outer/f", "absolute/f", "back/f", "outer/new/f", "inner/../../out/f"] {
        let error = write(&mut into, name).unwrap_err();
        assert!(matches!(error, Error::LeadsOutside { .. }), "{name}: {error}");
    }
    for name in ["outer/f", "absolute/f"] {
        assert!(into.hard_link(Path::new("h"), Path::new(name)).is_err());
        assert!(into.directory(Path::new(name)).is_err());
        assert!(into.symlink(Path::new(name), Path::new("x"), &EntryMetadata::default()).is_err());
        assert!(into.lstat(Path::new(name)).is_err());
    }
    assert_eq!(std::fs::read_dir(at("out")).unwrap().count(), 0);
}

#[test]
fn holes_and_attributes() {
    let (dir, mut into) = destination();
    let mut file = into.file(Path::new("f")).unwrap();
    file.hole(1 << 20).unwrap();
    file.write(b"x").unwrap();
    file.hole(5).unwrap();
    let restored =
        EntryMetadata { mode: Some(0o444), owner: None, mtime: Some((1_000_000_000, 5)) };
    file.finish(&restored).unwrap();
    let meta = std::fs::metadata(dir.path().join("in/f")).unwrap();
    assert_eq!((meta.len(), meta.mode() & 0o7777), ((1 << 20) + 6, 0o444));
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (1_000_000_000, 5));
    assert!(meta.blocks() < 64, "{}", meta.blocks());
    into.restore(Path::new(""), &restored).unwrap();
    let meta = std::fs::metadata(dir.path().join("in")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o444, 1_000_000_000));
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const SUBJECT: &str = "/a.tar";

fn extraction(path: &Path) -> Destination {
    Destination::open_marked(&Host::new(), path, Path::new(SUBJECT)).unwrap()
}

fn is_incomplete(path: &Path) -> bool {
    Host::new().is_incomplete(path, Path::new(SUBJECT)).unwrap()
}

#[test]
fn a_file_is_complete_before_it_has_its_name() {
    let (dir, mut into) = destination();
    let at = dir.path().join("in/f");
    std::fs::write(&at, "old").unwrap();
    let mut file = into.file(Path::new("f")).unwrap();
    file.write(b"half").unwrap();
    assert_eq!(std::fs::read(&at).unwrap(), b"old");
    drop(file);
    assert_eq!(names(&dir.path().join("in")), ["f"], "what is not finished goes");
    write(&mut into, "f").unwrap();
    assert_eq!(std::fs::read(&at).unwrap(), b"x");
}

/// Whatever gives way, there is no moment without anything of that name.
#[test]
fn names_are_never_missing_while_they_change_kind() {
    let (dir, mut into) = destination();
    let at = dir.path().join("in/f");
    write(&mut into, "f").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let (mut looks, mut missing) = (0, 0);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                looks += 1;
                missing += usize::from(std::fs::symlink_metadata(&at).is_err());
            }
            (looks, missing)
        });
        let name = Path::new("f");
        for n in 0..500 {
            into.symlink(name, Path::new("g"), &EntryMetadata::default()).unwrap();
            write(&mut into, "g").unwrap();
            into.hard_link(name, Path::new("g")).unwrap();
            write(&mut into, "f").unwrap();
            if n == 499 {
                into.directory(name).unwrap();
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let (looks, missing) = looker.join().unwrap();
        assert!(looks > 0);
        assert_eq!(missing, 0, "of {looks}");
    });
    assert!(at.is_dir());
    assert_eq!(names(&dir.path().join("in")), ["f", "g"]);
}

#[test]
fn what_is_not_complete_is_marked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    // Nothing is begun, so nothing stays.
    let into = extraction(&path);
    assert!(is_incomplete(&path), "it never is without the marker");
    drop(into);
    assert_eq!(names(dir.path()), [""; 0]);
    let mut into = extraction(&path);
    into.begin().unwrap();
    write(&mut into, "f").unwrap();
    drop(into);
    assert!(is_incomplete(&path));
    let into = extraction(&path);
    drop(into);
    assert!(is_incomplete(&path), "the marker of an earlier run stays");
    let mut into = extraction(&path);
    into.begin().unwrap();
    write(&mut into, "f").unwrap();
    into.complete().unwrap();
    assert!(!is_incomplete(&path));
    assert_eq!(names(&path), ["f"]);
    let into = extraction(&path);
    assert!(!is_incomplete(&path), "nothing is begun");
    drop(into);
    assert_eq!(names(&path), ["f"]);
    for made in [&path, &dir.path().join("a")] {
        assert_eq!(std::fs::metadata(made).unwrap().mode() & 0o7777, 0o755);
    }
}

#[test]
fn what_a_killed_run_left_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in");
    for kind in 0..3 {
        let mut into = extraction(&path);
        into.begin().unwrap();
        into.directory(Path::new("d")).unwrap();
        let left = path.join("d").join(&into.temporary);
        // Like a kill: nothing is cleaned up.
        drop(into.marker.take());
        drop(into);
        match kind {
            0 => std::fs::write(&left, "half").unwrap(),
            1 => symlink("x", &left).unwrap(),
            _ => std::fs::create_dir(&left).unwrap(),
        }
        std::fs::write(left.with_file_name("l"), "").unwrap();
        let mut into = extraction(&path);
        into.begin().unwrap();
        match kind {
            0 => write(&mut into, "d/f").unwrap(),
            1 => into.directory(Path::new("d/l")).unwrap(),
            _ => into.symlink(Path::new("d/f"), Path::new("y"), &EntryMetadata::default()).unwrap(),
        }
        into.complete().unwrap();
        assert_eq!(names(&path.join("d")), ["f", "l"], "{kind}");
        let _ = std::fs::remove_dir(path.join("d/l"));
    }
}

#[test]
fn the_final_name_appears_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in");
    let mut into = extraction(&path);
    into.begin().unwrap();
    into.set_final(Path::new("d/done"));
    write(&mut into, "d/done").unwrap();
    write(&mut into, "d/done").unwrap();
    into.hard_link(Path::new("again"), Path::new("d/done")).unwrap();
    into.symlink(Path::new("l"), Path::new("d"), &EntryMetadata::default()).unwrap();
    into.hard_link(Path::new("third"), Path::new("l/done")).unwrap();
    into.hard_link(Path::new("d/done"), Path::new("d/done")).unwrap();
    write(&mut into, "d/other").unwrap();
    assert!(!path.join("d/done").exists());
    assert_eq!(into.place_final().unwrap().as_deref(), Some(Path::new("d/done")));
    assert!(path.join("d/done").exists() && is_incomplete(&path));
    into.complete().unwrap();
    assert_eq!(std::fs::metadata(path.join("third")).unwrap().nlink(), 3);
    assert_eq!(names(&path), ["again", "d", "l", "third"]);
    // Given up before the end, it goes with its temporary name.
    let mut into = extraction(&path);
    into.begin().unwrap();
    into.set_final(Path::new("new"));
    write(&mut into, "new").unwrap();
    drop(into);
    assert!(is_incomplete(&path));
    assert_eq!(names(&path).len(), 5, "{:?}", names(&path));
}

/// Many at once, into a directory that is not there.
#[test]
fn those_who_come_at_once_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = dir.path().join(format!("{round}/in"));
        std::thread::scope(|scope| {
            for n in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    // Two of the same, two of others.
                    let subject = format!("/{}.tar", n / 2);
                    let host = Host::new();
                    let mut into =
                        Destination::open_marked(&host, path, Path::new(&subject)).unwrap();
                    into.begin().unwrap();
                    for _ in 0..10 {
                        into.directory(Path::new("d")).unwrap();
                        write(&mut into, "d/f").unwrap();
                        write(&mut into, "e/g/f").unwrap();
                        into.symlink(Path::new("d/l"), Path::new("f"), &EntryMetadata::default())
                            .unwrap();
                        into.hard_link(Path::new("h"), Path::new("d/f")).unwrap();
                    }
                    into.passing().complete().unwrap();
                });
            }
        });
        assert_eq!(names(&path), ["d", "e", "h"]);
        assert_eq!(names(&path.join("d")), ["f", "l"]);
        assert_eq!(names(&dir.path().join(round.to_string())), ["in"]);
    }
    assert_eq!(names(dir.path()).len(), 20);
}

/// Counts the contents that are kept.
#[derive(Debug, Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl crate::Journal for Counting {
    fn keep(&self, file: &mut crate::FormerFile<'_>) -> Result<Option<crate::Digest>> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        file.digest().map(Some)
    }

    fn record(
        &self,
        _place: crate::journal::Place<'_>,
        before: &Image,
        after: Option<&Image>,
    ) -> Result<()> {
        let digest = |image: &Image| image.digest().is_some();
        assert!(digest(before) || *before == Image::Absent, "{before:?}");
        assert!(after.is_some_and(digest), "{after:?}");
        Ok(())
    }

    fn complete(&self, _path: &Path, _after: &Image) -> Result<()> {
        Ok(())
    }

    fn give_up(&self, path: &Path, reason: &str) -> Result<()> {
        panic!("{}: {reason}", path.display());
    }
}

/// A file with many names is read once for the history, before and after.
#[test]
fn many_names_of_a_file_are_one_content() {
    const NAMES: u64 = 64;
    const SIZE: usize = 1 << 20;
    let read = || -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        line.parse().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let host = Host::new();
    for round in 0..2 {
        let journal = Arc::new(Counting::default());
        host.set_journal(Some(Arc::clone(&journal) as Arc<dyn crate::Journal>));
        let before = read();
        let mut into = Destination::open_marked(&host, dir.path(), Path::new(SUBJECT)).unwrap();
        into.begin().unwrap();
        let mut file = into.file(Path::new("f")).unwrap();
        file.write(&vec![b'a' + round; SIZE]).unwrap();
        file.finish(&EntryMetadata::default()).unwrap();
        for name in 0..NAMES {
            into.hard_link(Path::new(&format!("l{name}")), Path::new("f")).unwrap();
        }
        into.complete().unwrap();
        host.set_journal(None);
        let kept = journal.0.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(kept, usize::from(round), "contents that were kept");
        let read = read() - before;
        assert!(read < 8 * SIZE as u64, "{read} bytes were read");
    }
    assert_eq!(std::fs::metadata(dir.path().join("f")).unwrap().nlink(), NAMES + 1);
}
