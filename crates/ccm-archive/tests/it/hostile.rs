//! Archives that want out, or want too much. Around the destination there are
//! things worth reaching; whatever an archive says, they stay as they are, and
//! an archive that is refused leaves the destination as it was too.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ccm_archive::{Error, Extraction, Format, Limits};
use ccm_host::Host;
use ccm_testkit::snapshot;

use crate::build::{Header, Tar, Zipped, deflated, gzip, header, pax, seal, zip, zip_with, zipped};
use crate::unpack;

/// Tight bounds, so that bombs can be small.
const TIGHT: Limits = Limits { entries: 100, bytes: 1 << 20, ratio: 100 };

/// A destination, with things around and in it.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("out/deep")).unwrap();
        std::fs::write(at("out/secret"), "secret").unwrap();
        std::fs::write(at("out/deep/secret"), "secret").unwrap();
        std::fs::create_dir_all(at("in/there")).unwrap();
        std::fs::write(at("in/there/file"), "old").unwrap();
        std::fs::write(at("in/mine"), "old").unwrap();
        symlink("../out", at("in/escape")).unwrap();
        symlink("there", at("in/inner")).unwrap();
        symlink("../../out", at("in/there/up")).unwrap();
        Self { dir }
    }

    pub(crate) fn destination(&self) -> PathBuf {
        self.dir.path().join("in")
    }

    fn outside(&self) -> std::collections::BTreeMap<PathBuf, String> {
        snapshot(&self.dir.path().join("out"))
    }

    pub(crate) fn unpack(&self, name: &str, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
        let archives = tempfile::tempdir().unwrap();
        let archive = archives.path().join(name);
        std::fs::write(&archive, bytes).unwrap();
        let outside = self.outside();
        let names = |path: &Path| std::fs::read_dir(path).unwrap().count();
        let beside = names(self.dir.path());
        let format = Format::of(name).unwrap();
        let result = unpack(&Host::new(), &archive, format, &self.destination(), limits);
        assert_eq!(self.outside(), outside, "{name}: something outside has changed: {result:?}");
        assert_eq!(names(self.dir.path()), beside, "{name}: something is beside");
        result
    }
}

/// Every one of these is refused before anything is written, and says why.
fn refused(name: &str, bytes: &[u8], words: &str) {
    let stage = Stage::new();
    let before = snapshot(&stage.destination());
    let error = match stage.unpack(name, bytes, &TIGHT) {
        Ok(()) => panic!("{words}: was unpacked"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(words), "wanted `{words}`: {error}");
    assert_eq!(snapshot(&stage.destination()), before, "{words}: something was written");
}

fn refused_tar(tar: Tar, words: &str) {
    let bytes = tar.end();
    refused("a.tar", &bytes, words);
    refused("a.tar.gz", &gzip(&bytes), words);
}

fn tar() -> Tar {
    // Something honest first: it must not be written either.
    Tar::default().file("honest", "x")
}

#[test]
fn names_that_lead_out() {
    for name in ["../evil", "a/../../evil", "..", "a/..", "./../evil", "a/b/../../../out/secret"] {
        refused_tar(tar().file(name, "x"), "its name contains `..`");
        refused_tar(tar().directory(name), "its name contains `..`");
        refused_tar(tar().symlink(name, "x"), "its name contains `..`");
        refused("a.zip", &zip(&[zipped("honest", "x"), zipped(name, "x")]), "`..`");
    }
    for name in ["/evil", "//evil", "/", "/../evil"] {
        refused_tar(tar().file(name, "x"), "its name is absolute");
        refused("a.zip", &zip(&[zipped("honest", "x"), zipped(name, "x")]), "is absolute");
    }
    let windows = Zipped { made_by: 0, ..zipped("..\\evil", "x") };
    refused("a.zip", &zip(&[windows]), "its name contains `..`");
    refused_tar(tar().file("", "x"), "an entry has no name");
    refused("a.zip", &zip(&[zipped("", "x")]), "an entry has no name");
    refused("a.zip", &zip(&[zipped("a\0b", "x")]), "NUL");
    refused_tar(tar().raw(&Header { prefix: b"..".into(), ..header("evil", b'0') }, b""), "`..`");
    refused_tar(
        tar().raw(&Header { prefix: b"/x".into(), ..header("evil", b'0') }, b""),
        "absolute",
    );
}

#[test]
fn names_said_in_other_ways() {
    refused_tar(tar().pax(&[("path", "../evil")]).file("good", "x"), "`..`");
    refused_tar(tar().pax(&[("path", "/evil")]).file("good", "x"), "absolute");
    refused_tar(tar().pax(&[("path", "good\0/../evil")]).file("good", "x"), "NUL");
    refused_tar(tar().described(b'L', b"../evil\0").file("good", "x"), "`..`");
    refused_tar(tar().described(b'L', b"/evil").file("good", "x"), "absolute");
    let through = |tar: Tar| tar.symlink("l", "good").file("l/evil", "x");
    refused_tar(through(tar().pax(&[("linkpath", "../../out")])), "outside");
    refused_tar(through(tar().described(b'K', b"../../out\0")), "outside");
    refused_tar(tar().pax(&[("linkpath", "../out/secret")]).hard_link("h", "honest"), "`..`");
    refused_tar(tar().pax(&[("GNU.sparse.name", "../evil")]).file("good", "x"), "`..`");
    // What holds for all entries cannot name them.
    refused_tar(
        tar().described(b'g', &pax(&[("path", "../evil")])).file("good", "x"),
        "global header",
    );
    refused_tar(tar().described(b'g', &pax(&[("size", "0")])).file("good", "x"), "global header");
    refused_tar(
        tar().described(b'g', &pax(&[("linkpath", "/x")])).symlink("l", "x"),
        "global header",
    );
    // Malformed descriptions.
    refused_tar(tar().described(b'x', b"5 path").file("good", "x"), "malformed");
    refused_tar(tar().described(b'x', b"99 path=a\n").file("good", "x"), "malformed");
    refused_tar(tar().pax(&[("size", "-5")]).file("good", "x"), "malformed");
    refused_tar(tar().described(b'L', b"name"), "headers but no content");
    let huge = Header { size: 1 << 30, ..header("x", b'x') };
    refused_tar(tar().raw(&huge, b""), "larger than 1 MiB");
    // A size that hides another header in the content.
    let inner = header("../evil", b'0').block();
    let hidden =
        tar().pax(&[("size", "0")]).raw(&Header { size: 512, ..header("a", b'0') }, &inner);
    refused_tar(hidden, "`..`");
}

/// Extracts links, of a tar and a zip archive, and reads them again.
fn links_are_made(tar: Tar, links: &[(&str, &str)]) {
    let stage = Stage::new();
    stage.unpack("a.tar", &tar.end(), &TIGHT).unwrap();
    for (name, target) in links {
        let found = std::fs::read_link(stage.destination().join(name)).unwrap();
        assert_eq!(found, Path::new(target), "{name}");
    }
}

/// A link may lead anywhere: only what is written through it would be outside.
#[test]
fn symbolic_links_that_lead_out_are_links_and_nothing_more() {
    for target in ["..", "../out", "../../../../etc", "there/../../out", "/etc", "/", "/etc/passwd"]
    {
        links_are_made(tar().symlink("l", target), &[("l", target)]);
        let link = Zipped { mode: 0o120_777, ..zipped("l", target) };
        let stage = Stage::new();
        stage.unpack("a.zip", &zip(&[zipped("honest", "x"), link]), &TIGHT).unwrap();
        assert_eq!(std::fs::read_link(stage.destination().join("l")).unwrap(), Path::new(target));
    }
    links_are_made(tar().symlink("a/b/l", "../../../out"), &[("a/b/l", "../../../out")]);
    links_are_made(tar().symlink("l", "escape/secret"), &[("l", "escape/secret")]);
    links_are_made(tar().hard_link("h", "there/up"), &[("h", "../../out")]);
    let both = tar().symlink("a/b/l", "../../there").hard_link("h", "a/b/l");
    links_are_made(both, &[("a/b/l", "../../there"), ("h", "../../there")]);
    // Links in a circle lead nowhere, as `tar` makes them.
    let circle = tar().symlink("a", "b").symlink("b", "a");
    links_are_made(circle, &[("a", "b"), ("b", "a")]);
    // The next version of the archive does not get out through them either.
    let stage = Stage::new();
    stage.unpack("a.tar", &tar().symlink("l", "../out").end(), &TIGHT).unwrap();
    let before = snapshot(&stage.destination());
    for next in
        [tar().file("l/evil", "x"), tar().directory("l/evil"), tar().hard_link("h", "l/secret")]
    {
        let error = stage.unpack("a.tar", &next.end(), &TIGHT).unwrap_err().to_string();
        assert!(error.contains("outside the target directory"), "{error}");
        assert_eq!(snapshot(&stage.destination()), before);
    }
    stage.unpack("a.tar", &tar().symlink("l", "/etc").end(), &TIGHT).unwrap();
    assert_eq!(std::fs::read_link(stage.destination().join("l")).unwrap(), Path::new("/etc"));
    refused_tar(tar().symlink("l", ""), "without a valid target");
}

/// What was inside when it was written, and is outside when it gets its
/// attributes.
#[test]
fn links_that_change_their_mind() {
    let tar = tar().symlink("l", "there").directory("l/sub").symlink("l", "../out");
    refused_tar(tar, "outside");
    let twice = Tar::default().symlink("l", "there").directory("l/sub").symlink("l", "l");
    refused_tar(twice, "too many symlinks");
}

#[test]
fn setuid_bits_are_kept_where_that_is_said() {
    let stage = Stage::new();
    let archive = stage.dir.path().join("a.tar");
    let (file, directory) = (header("bin", b'0'), header("d", b'5'));
    let tar = Tar::default()
        .raw(&Header { mode: 0o4755, ..file }, b"")
        .raw(&Header { mode: 0o2770, ..directory }, b"")
        .end();
    std::fs::write(&archive, tar).unwrap();
    let host = Host::new();
    let (opened, stat) = host.open(&archive).unwrap();
    let extraction = Extraction {
        format: Format::of("a.tar").unwrap(),
        destination: &stage.destination(),
        limits: TIGHT,
        checksum: None,
        creates: None,
        allows_setuid: true,
        subject: &archive,
    };
    extraction.run(&host, opened, stat.size, "a.tar").unwrap().complete().unwrap();
    let mode = |name: &str| {
        let found = std::fs::symlink_metadata(stage.destination().join(name)).unwrap();
        std::os::unix::fs::MetadataExt::mode(&found) & 0o7777
    };
    let kept = !host.umask() | 0o7000;
    let kept = if host.is_root() { 0o7777 } else { kept };
    assert_eq!((mode("bin"), mode("d")), (0o4755 & kept, 0o2770 & kept));
}

#[test]
fn files_behind_links() {
    // Refused for the link or for the file, whichever comes first.
    refused_tar(tar().symlink("l", "../out").file("l/evil", "x"), "outside");
    refused_tar(tar().symlink("l", "/etc").file("l/evil", "x"), "outside");
    refused_tar(tar().symlink("l", "../out").directory("l/evil"), "outside");
    refused_tar(tar().symlink("l", "../out").hard_link("h", "l/secret"), "outside");
    refused_tar(tar().symlink("l", "../out").symlink("l/evil", "x"), "outside");
    refused_tar(tar().symlink("a", "b").symlink("b", "../out").file("a/evil", "x"), "outside");
    // Through links that the disk has already.
    refused_tar(tar().file("escape/evil", "x"), "outside");
    refused_tar(tar().file("escape/deep/secret", "x"), "outside");
    refused_tar(tar().file("inner/up/evil", "x"), "outside");
    refused_tar(tar().file("there/up/evil", "x"), "outside");
    refused_tar(tar().directory("escape/evil"), "outside");
    refused_tar(tar().hard_link("h", "escape/secret"), "outside");
    refused("a.zip", &zip(&[zipped("escape/evil", "x")]), "outside");
    // A link that leads back in may be, but nothing is written through it.
    let stage = Stage::new();
    let back = stage.destination().join("there");
    let bytes = tar().symlink("back", back.to_str().unwrap()).file("back/f", "x").end();
    let before = snapshot(&stage.destination());
    assert!(stage.unpack("a.tar", &bytes, &TIGHT).is_err());
    assert_eq!(snapshot(&stage.destination()), before);
    let link = Zipped { mode: 0o120_777, ..zipped("l", "../out") };
    refused("a.zip", &zip(&[link, zipped("l/evil", "x")]), "outside");
}

#[test]
fn hard_links_that_lead_out() {
    for existing in ["../out/secret", "a/../../out/secret", ".."] {
        refused_tar(tar().hard_link("h", existing), "its name contains `..`");
    }
    for existing in ["/etc/passwd", "/"] {
        refused_tar(tar().hard_link("h", existing), "its name is absolute");
    }
    refused_tar(tar().hard_link("h", "missing"), "which does not exist");
    refused_tar(tar().hard_link("h", "later").file("later", "x"), "which does not exist");
    refused_tar(tar().hard_link("h", "there"), "hard link to a directory");
    refused_tar(tar().directory("d").hard_link("h", "d"), "hard link to a directory");
    refused_tar(tar().hard_link("h", "there/up/secret"), "outside");
}

#[test]
fn what_is_no_file() {
    for (kind, words) in [
        (b'3', "device"),
        (b'4', "device"),
        (b'6', "FIFO"),
        (b'M', "several volumes"),
        (b'D', "entry type is unknown"),
        (b'Z', "entry type is unknown"),
    ] {
        refused_tar(tar().kind("dev", kind), words);
    }
    for (mode, words) in
        [(0o020_666, "device"), (0o060_666, "device"), (0o010_666, "FIFO"), (0o140_666, "unknown")]
    {
        refused("a.zip", &zip(&[Zipped { mode, ..zipped("dev", "") }]), words);
    }
    for mode in [0o4755, 0o2755, 0o6755, 0o6000] {
        refused_tar(tar().mode("bin", b'0', mode), "setuid or setgid");
        refused_tar(tar().mode("bin", b'5', mode), "setuid or setgid");
        let file = Zipped { mode: 0o100_000 | mode, ..zipped("bin", "x") };
        refused("a.zip", &zip(&[file]), "setuid or setgid");
    }
    // Content where none can be: another reader would see other entries.
    for kind in [b'1', b'2', b'5'] {
        let odd = Header { size: 512, link: b"honest".into(), ..header("odd", kind) };
        let inner = header("../evil", b'0').block();
        refused_tar(tar().raw(&odd, &inner), "entry type does not allow");
    }
    refused("a.zip", &zip(&[zipped("d/", "content")]), "directory with content");
}

#[test]
fn what_would_replace_a_directory() {
    refused_tar(tar().file(".", "x"), "the target directory itself");
    refused_tar(tar().symlink("./", "x"), "the target directory itself");
    refused_tar(tar().file("there", "x"), "would replace a directory");
    refused_tar(tar().symlink("there", "x"), "would replace a directory");
    refused_tar(tar().file("d/f", "x").file("d", "x"), "would replace a directory");
    refused_tar(tar().file("d/f", "x").symlink("d", "."), "would replace a directory");
    refused_tar(tar().file("mine/f", "x"), "mine is not a directory");
    refused_tar(tar().file("f", "x").file("f/g", "x"), "f is not a directory");
}

#[test]
fn damaged_archives() {
    let good = tar().file("a", &"x".repeat(2000)).end();
    for cut in [0, 1, 511, 512, 700, 1024, 1536, 2000, good.len() - 1025] {
        refused("a.tar", &good[..cut], "truncated");
    }
    let mut wrong = good.clone();
    wrong[0] ^= 1;
    refused("a.tar", &wrong, "invalid header checksum");
    refused("a.tar", &vec![b'x'; 2048], "header");
    refused("a.tar", b"PK\x03\x04", "truncated");
    // Sizes that are none.
    for field in [
        &b"-0000000001\0"[..],
        b"0000000000x\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let mut block = header("a", b'0').block();
        block[124..136].copy_from_slice(field);
        seal(&mut block);
        let mut bytes = tar().0;
        bytes.extend_from_slice(&block);
        refused("a.tar", &Tar(bytes).end(), "number");
    }
    // Owners that are none: to the system the largest number means nobody.
    for owner in [[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], [0x80, 0, 0, 1, 0, 0, 0, 0]] {
        for at in [108, 116] {
            let mut block = header("a", b'0').block();
            block[at..at + 8].copy_from_slice(&owner);
            seal(&mut block);
            let mut bytes = tar().0;
            bytes.extend_from_slice(&block);
            refused("a.tar", &Tar(bytes).end(), "owner");
        }
    }
    let large = Header { size: 0o77_777_777_777, ..header("a", b'0') };
    refused("a.tar", &tar().raw(&large, b"x").end(), "too many for its size");
    // Compressed: cut, changed, followed by rubbish.
    let packed = gzip(&good);
    refused("a.tgz", &packed[..packed.len() - 4], "truncated");
    refused("a.tgz", &packed[..packed.len() / 2], "truncated");
    let mut wrong = packed.clone();
    let last = wrong.len() - 6;
    wrong[last] ^= 1;
    refused("a.tgz", &wrong, "checksum");
    refused("a.tgz", &[&packed[..], b"rubbish, a whole lot of it"].concat(), "cannot extract");
    for name in ["a.tar.xz", "a.tar.zst", "a.tar.bz2", "a.tar.gz", "a.zip"] {
        refused(name, &good, "cannot extract");
        refused(name, b"", "cannot extract");
        refused(name, b"x", "cannot extract");
    }
}

#[test]
fn damaged_zips() {
    let good = zip(&[zipped("honest", "x"), deflated("b", &[b'x'; 5000])]);
    for cut in 0..good.len() {
        refused("a.zip", &good[..cut], "");
    }
    let file = zipped("a", "x");
    let with = |file: Zipped| zip(&[zipped("honest", "x"), file]);
    for (bytes, words) in [
        (with(Zipped { local_name: b"../evil".into(), ..file.clone() }), "another name"),
        (with(Zipped { local_name: b"b".into(), ..file.clone() }), "another name"),
        (with(Zipped { local_method: 8, ..file.clone() }), "another method"),
        (with(Zipped { local_size: 2, ..file.clone() }), "another size"),
        (with(Zipped { crc: 0, ..file.clone() }), "wrong checksum"),
        (with(Zipped { flags: 1, ..file.clone() }), "encrypted"),
        (with(Zipped { flags: 1 << 6, ..file.clone() }), "encrypted"),
        (with(Zipped { method: 9, local_method: 9, ..file.clone() }), "method 9"),
        (with(Zipped { size: 5, local_size: 5, ..file.clone() }), "two sizes"),
        (with(Zipped { size: 3, local_size: 3, ..deflated("b", b"xxxxxxxxx") }), "larger than"),
        (with(Zipped { size: 30, local_size: 30, ..deflated("b", b"xxxxxxxxx") }), "smaller than"),
        (with(Zipped { header: Some(0), ..file.clone() }), "overlaps with other content"),
        (with(Zipped { header: Some(1), ..file.clone() }), ""),
        (with(Zipped { header: Some(0x7fff_ffff), ..file.clone() }), "does not exist"),
        (with(zipped("honest", "y")), "appears twice"),
        (with(zipped("./honest", "y")), "appears twice"),
        (zip_with(std::slice::from_ref(&file), |end| end[10] = 2), ""),
        (zip_with(&[file.clone(), zipped("b", "y")], |end| end[10] = 1), "more records"),
        (zip_with(std::slice::from_ref(&file), |end| end[16] ^= 1), "not where it says"),
        (zip_with(std::slice::from_ref(&file), |end| end[12] ^= 1), "not where it says"),
        (zip_with(std::slice::from_ref(&file), |end| end[4] = 1), "several volumes"),
        ([zip(std::slice::from_ref(&file)), b"rubbish".to_vec()].concat(), "no central directory"),
        ([b"rubbish".to_vec(), zip(&[file])].concat(), "not where it says"),
    ] {
        refused("a.zip", &bytes, words);
    }
}

#[test]
fn bombs() {
    // By what it becomes.
    let zeros = vec![0; 40 << 20];
    let bomb = Tar::default()
        .file("honest", "x")
        .raw(&Header { size: zeros.len() as u64, ..header("zeros", b'0') }, &zeros);
    refused("a.tar.gz", &gzip(&bomb.clone().end()), "too many for its size");
    refused(
        "a.zip",
        &zip(&[zipped("honest", "x"), deflated("zeros", &zeros)]),
        "too many for its size",
    );
    // Behind the end marker, where no entry is.
    let behind = [tar().end(), zeros].concat();
    refused("a.tar.gz", &gzip(&behind), "too many bytes for its size");
    // By how many they are.
    let mut many = Tar::default();
    for n in 0..101 {
        many = many.file(&format!("f{n}"), "");
    }
    refused_tar(many, "more than 100 entries");
    let many: Vec<Zipped> = (0..101).map(|n| zipped(&format!("f{n}"), "")).collect();
    refused("a.zip", &zip(&many), "more than 100 entries");
    let mut described = Tar::default();
    for _ in 0..500 {
        described = described.described(b'L', b"name");
    }
    refused_tar(described.file("a", "x"), "more than 100 entries");
    // By holes that nobody counts.
    let holes = tar()
        .pax(&[("GNU.sparse.size", "1000000000000"), ("GNU.sparse.map", "0,0")])
        .file("sparse", "");
    refused_tar(holes, "too many for its size");
}

#[test]
fn sparse_files_that_contradict_themselves() {
    for map in ["0,5,3,5", "10,5,0,5", "0,99", "99,5", "18446744073709551615,5", "1", "x,y"] {
        let tar = tar()
            .pax(&[("GNU.sparse.size", "20"), ("GNU.sparse.map", map)])
            .file("sparse", "0123456789");
        refused_tar(tar, "");
    }
    for content in ["", "1\n0\n", "1\n0\n5", "99999999999\n", "x\n", "1\n-1\n5\n"] {
        let tar = tar()
            .pax(&[
                ("GNU.sparse.major", "1"),
                ("GNU.sparse.minor", "0"),
                ("GNU.sparse.realsize", "20"),
            ])
            .file("sparse", &format!("{content:\0<512}"));
        refused_tar(tar, "");
    }
    // GNU's own: a map that goes on for ever.
    let mut block = Header { magic: *b"ustar  \0", ..header("sparse", b'S') }.block();
    block[482] = 1;
    seal(&mut block);
    let mut bytes = tar().0;
    bytes.extend_from_slice(&block);
    for _ in 0..3000 {
        let mut more = [0; 512];
        more[504] = 1;
        bytes.extend_from_slice(&more);
    }
    refused("a.tar", &bytes, "");
}

/// What is allowed stays inside, and later entries win over earlier ones.
#[test]
fn what_is_contained() {
    let stage = Stage::new();
    let at = |name: &str| stage.destination().join(name);
    let bytes = Tar::default()
        .file("f", "first")
        .file("f", "second")
        .file("F", "other case")
        .file("inner/through", "a link within")
        .symlink("now-a-file", "there")
        .file("now-a-file", "x")
        .symlink("now-a-directory", "there")
        .directory("now-a-directory")
        .file("now-a-directory/f", "x")
        .symlink("ok", "there/../mine")
        .symlink("absolute", at("there").to_str().unwrap())
        .symlink("dangling", "not/there")
        .hard_link("again", "mine")
        .file("again", "does not reach what had two names")
        .directory("escape")
        .file("escape/f", "the link gave way to a directory")
        .file("odd\nname \x1b[31m", "x")
        .file("...", "x")
        .file("back\\slash\\..\\x", "x")
        .end();
    stage.unpack("a.tar", &bytes, &TIGHT).unwrap();
    let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!((text("f").as_str(), text("F").as_str()), ("second", "other case"));
    assert_eq!(text("there/through"), "a link within");
    assert!(std::fs::symlink_metadata(at("now-a-directory")).unwrap().is_dir());
    assert_eq!(std::fs::read_dir(at("there")).unwrap().count(), 3);
    assert_eq!(text("mine"), "old");
    assert!(std::fs::symlink_metadata(at("escape")).unwrap().is_dir());
}

/// Names that strangers choose are shown without what they do to terminals.
#[test]
fn names_are_shown_escaped() {
    let stage = Stage::new();
    let bytes = Tar::default().kind("\x1b[31mred\n", b'3').end();
    let error = stage.unpack("a.tar", &bytes, &TIGHT).unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[31mred\\n"), "{error}");
}
