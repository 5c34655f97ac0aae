//! Archives that mean well: what the system's own tools make of them is what
//! we make of them, file by file, with modes, owners, times and links.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use ccm_archive::{Format, Limits};
use ccm_host::Host;
use ccm_testkit::snapshot;

use crate::unpack;

/// Runs a tool; `false` when the machine has none.
fn run(directory: &Path, program: &str, args: &[&str]) -> bool {
    match Command::new(program).args(args).current_dir(directory).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {args:?}: {said}");
            true
        }
        Err(_) => false,
    }
}

/// A tree with everything that archives can hold.
fn populate(top: &Path) {
    let at = |name: &str| top.join(name);
    let long = "long/".repeat(30) + &"n".repeat(200);
    std::fs::create_dir_all(at(&long).parent().unwrap()).unwrap();
    std::fs::write(at(&long), "long name").unwrap();
    std::fs::create_dir_all(at("empty")).unwrap();
    std::fs::create_dir_all(at("d/e")).unwrap();
    std::fs::write(at("d/e/empty"), "").unwrap();
    std::fs::write(at("d/exact"), vec![b'x'; 512]).unwrap();
    std::fs::write(at("d/large"), (0..700_000u32).map(|n| (n / 7) as u8).collect::<Vec<_>>())
        .unwrap();
    std::fs::write(at("d/ümläut ☃ 名"), "unicode").unwrap();
    std::fs::write(top.join(std::ffi::OsStr::from_bytes(b"d/latin\xe9")), "not UTF-8").unwrap();
    std::fs::write(at("script"), "#!/bin/sh\n").unwrap();
    std::fs::write(at("read-only"), "x").unwrap();
    symlink("d/exact", at("link")).unwrap();
    symlink("../d/e", at("d/up")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("x".repeat(150), at("long-link")).unwrap();
    std::fs::hard_link(at("d/exact"), at("z-hard")).unwrap();
    std::fs::hard_link(at("d/exact"), at("empty/hard")).unwrap();
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("script", 0o755);
    mode("read-only", 0o400);
    mode("d/e", 0o1777);
    mode("empty", 0o500);
    let time = |name: &str, stamp: &str| run(top, "touch", &["-h", "-d", stamp, name]);
    time("script", "2001-02-03T04:05:06.789");
    time("read-only", "1965-01-01");
    time("link", "2010-10-10");
    time("d/large", "2040-01-01T00:00:01.5");
    time("empty", "2005-05-05");
    if Host::new().is_root() {
        run(top, "chown", &["daemon:adm", "script"]);
        run(top, "chown", &["-h", "12345:54321", "dangling"]);
        run(top, "chown", &["bin:bin", "empty"]);
    }
    let mut sparse = std::fs::File::create(at("sparse")).unwrap();
    sparse.set_len(4 << 20).unwrap();
    std::io::Seek::seek(&mut sparse, std::io::SeekFrom::Start(3 << 20)).unwrap();
    sparse.write_all(b"in the middle").unwrap();
    let all_hole = std::fs::File::create(at("hole")).unwrap();
    all_hole.set_len(1 << 20).unwrap();
    time(".", "2003-03-03");
}

/// Unpacks with the tool and by ourselves and compares. Tar unpacks into a
/// directory that has something already; unzip treats directories that it did
/// not make in its own way.
fn compare(archive: &Path, tool: &str, args: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
    for side in [&theirs, &ours] {
        std::fs::create_dir_all(side).unwrap();
        if tool == "unzip" {
            continue;
        }
        std::fs::create_dir(side.join("d")).unwrap();
        std::fs::create_dir(side.join("d/kept")).unwrap();
        std::fs::write(side.join("script"), "old").unwrap();
        run(side, "touch", &["-d", "2020-01-01", "d/kept"]);
    }
    let path = archive.to_str().unwrap();
    let args: Vec<&str> =
        args.iter().map(|&arg| if arg == "ARCHIVE" { path } else { arg }).collect();
    assert!(run(&theirs, tool, &args));
    let format = Format::of(path).unwrap();
    unpack(&Host::new(), archive, format, &ours, &Limits::ARCHIVE).unwrap();
    let (mut theirs, mut ours) = (snapshot(&theirs), snapshot(&ours));
    for side in [&mut theirs, &mut ours] {
        if tool == "unzip" {
            // It gives links the time of their making.
            side.retain(|_, what| !what.starts_with("120"));
        }
        // Its time is that of the unpacking, where the archive does not name it.
        side.remove(Path::new(""));
    }
    for (name, what) in &theirs {
        assert_eq!(ours.get(name), Some(what), "{} in {path}", name.display());
    }
    assert_eq!(theirs.len(), ours.len(), "{path}");
}

#[test]
fn tar_archives_of_every_dialect() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    populate(&source);
    for format in ["gnu", "oldgnu", "posix"] {
        for sparse in ["--sparse", "--no-xattrs"] {
            let archive = dir.path().join(format!("{format}.tar"));
            let _ = std::fs::remove_file(&archive);
            let file = archive.to_str().unwrap();
            let format = format!("--format={format}");
            assert!(run(&source, "tar", &["-cf", file, &format, sparse, "."]));
            compare(&archive, "tar", &["-xf", "ARCHIVE"]);
        }
    }
    for version in ["0.0", "0.1", "1.0"] {
        let archive = dir.path().join("sparse.tar");
        let file = archive.to_str().unwrap();
        let version = format!("--sparse-version={version}");
        assert!(run(&source, "tar", &["-cSf", file, "--format=posix", &version, "."]));
        compare(&archive, "tar", &["-xf", "ARCHIVE"]);
    }
    // Dialects that cannot hold long names.
    for format in ["ustar", "v7"] {
        let archive = dir.path().join(format!("{format}.tar"));
        let format = format!("--format={format}");
        let file = archive.to_str().unwrap();
        // Nor times before 1970.
        let args = ["-cf", file, &format, "d", "script", "link", "empty", "z-hard"];
        assert!(run(&source, "tar", &args));
        compare(&archive, "tar", &["-xf", "ARCHIVE"]);
    }
}

#[test]
fn every_compression() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    populate(&source);
    for (extension, flag) in [
        ("tar.gz", "--gzip"),
        ("tgz", "--gzip"),
        ("tar.xz", "--xz"),
        ("txz", "--xz"),
        ("tar.zst", "--zstd"),
        ("tar.bz2", "--bzip2"),
        ("tbz2", "--bzip2"),
    ] {
        let archive = dir.path().join(format!("a.{extension}"));
        assert!(run(&source, "tar", &["-cf", archive.to_str().unwrap(), flag, "."]));
        compare(&archive, "tar", &["-xf", "ARCHIVE"]);
    }
}

/// Compressed files one after the other are one, as their tools have it.
#[test]
fn compressed_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    populate(&source);
    let tar = dir.path().join("a.tar");
    assert!(run(&source, "tar", &["-cf", tar.to_str().unwrap(), "."]));
    let bytes = std::fs::read(&tar).unwrap();
    let (first, second) = bytes.split_at(bytes.len() / 3);
    for (extension, tool) in [("gz", "gzip"), ("xz", "xz"), ("zst", "zstd"), ("bz2", "bzip2")] {
        let archive = dir.path().join(format!("a.tar.{extension}"));
        let mut whole = Vec::new();
        for part in [first, second] {
            let path = dir.path().join("part");
            std::fs::write(&path, part).unwrap();
            let output = Command::new(tool).args(["-c", path.to_str().unwrap()]).output().unwrap();
            whole.extend_from_slice(&output.stdout);
        }
        if extension == "zst" {
            // A frame for others, to be skipped.
            whole.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        std::fs::write(&archive, whole).unwrap();
        compare(&archive, "tar", &["-xf", "ARCHIVE"]);
    }
}

#[test]
fn zip_archives() {
    if ["zip", "unzip"].into_iter().any(ccm_testkit::lacks_program) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    populate(&source);
    // What the tool cannot store or restore the same way twice.
    std::fs::remove_file(source.join(std::ffi::OsStr::from_bytes(b"d/latin\xe9"))).unwrap();
    std::fs::set_permissions(source.join("d/e"), std::fs::Permissions::from_mode(0o777)).unwrap();
    for (name, args) in [
        ("deflated.zip", &["-qry"][..]),
        ("stored.zip", &["-qry0"]),
        ("without-times.zip", &["-qryX"]),
        ("bzip2.zip", &["-qry", "-Zbzip2"]),
        ("large.zip", &["-qry", "-fz"]),
    ] {
        let archive = dir.path().join(name);
        let mut args = args.to_vec();
        args.extend([archive.to_str().unwrap(), "."]);
        assert!(run(&source, "zip", &args), "{name}");
        compare(&archive, "unzip", &["-qo", "ARCHIVE"]);
    }
    // Into a pipe: sizes come behind the content.
    assert!(run(&source, "sh", &["-c", "zip -qry - . > ../streamed.zip"]));
    compare(&dir.path().join("streamed.zip"), "unzip", &["-qo", "ARCHIVE"]);
}

#[test]
fn unpacking_again_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    std::fs::create_dir(&source).unwrap();
    populate(&source);
    let archive = dir.path().join("a.tgz");
    assert!(run(&source, "tar", &["-czf", archive.to_str().unwrap(), "."]));
    let into = dir.path().join("into");
    std::fs::create_dir(&into).unwrap();
    let format = Format::of("a.tgz").unwrap();
    unpack(&Host::new(), &archive, format, &into, &Limits::ARCHIVE).unwrap();
    let below = || {
        let mut below = snapshot(&into);
        below.remove(Path::new(""));
        below
    };
    let first = below();
    unpack(&Host::new(), &archive, format, &into, &Limits::ARCHIVE).unwrap();
    assert_eq!(below(), first);
}

/// Archives of a whole directory have an entry for it, but where they are
/// extracted is not theirs to change.
#[test]
fn the_destination_itself_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (source, into) = (dir.path().join("source"), dir.path().join("into"));
    std::fs::create_dir(&source).unwrap();
    std::fs::create_dir(&into).unwrap();
    std::fs::write(source.join("f"), "x").unwrap();
    std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(&into, std::fs::Permissions::from_mode(0o711)).unwrap();
    if Host::new().is_root() {
        run(&source, "chown", &["daemon:adm", "."]);
    }
    let archive = dir.path().join("a.tar");
    assert!(run(&source, "tar", &["-cf", archive.to_str().unwrap(), "."]));
    let format = Format::of("a.tar").unwrap();
    let before = std::fs::metadata(&into).unwrap();
    unpack(&Host::new(), &archive, format, &into, &Limits::ARCHIVE).unwrap();
    let after = std::fs::metadata(&into).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert!(into.join("f").exists());
}
