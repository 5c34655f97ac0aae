use std::os::unix::fs::PermissionsExt;

use super::*;

#[derive(Clone)]
struct Bed {
    dir: Arc<tempfile::TempDir>,
    /// The handle of the run that the preview belongs to.
    run: Host,
    host: Host,
    own: Attributes,
}

impl Bed {
    fn new() -> Self {
        let run = Host::new();
        let host = run.preview();
        host.begin_prediction("file#one");
        let (uid, gid) = host.whoami();
        let own = Attributes { uid, gid, mode: 0o644 };
        Self { dir: Arc::new(tempfile::tempdir().unwrap()), run, host, own }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn file(&self, name: &str, text: &str) -> Result<()> {
        self.host.predict_file(&self.path(name), NewContent::Bytes(text.as_bytes()), &self.own)
    }

    fn directory(&self, name: &str) -> Result<()> {
        let wanted = Attributes { mode: 0o755, ..self.own };
        self.host.predict_directory(&self.path(name), &wanted)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.host.read_text(&self.path(name), 1000).ok().map(|(text, _)| text)
    }

    fn kind(&self, name: &str) -> Option<FileKind> {
        self.host.stat(&self.path(name)).unwrap().map(|stat| stat.kind)
    }
}

#[test]
fn later_reads_see_what_earlier_steps_would_leave() {
    let bed = Bed::new();
    bed.write("old/f", "old");
    bed.write("gone/deep/f", "x");
    bed.file("new", "text").unwrap();
    bed.file("old/f", "changed").unwrap();
    bed.directory("a/b/c").unwrap();
    bed.file("a/b/c/f", "deep").unwrap();
    bed.host.predict_removal(&bed.path("gone"), true).unwrap();
    assert_eq!(bed.text("new").as_deref(), Some("text"));
    assert_eq!(bed.text("old/f").as_deref(), Some("changed"));
    assert_eq!(bed.text("a/b/c/f").as_deref(), Some("deep"));
    assert_eq!(bed.kind("a/b"), Some(FileKind::Directory));
    assert_eq!(bed.kind("a/b/other"), None);
    assert_eq!(bed.kind("gone/deep/f"), None);
    assert_eq!(bed.kind("gone"), None);
    let stat = bed.host.stat(&bed.path("new")).unwrap().unwrap();
    assert_eq!((stat.mode, stat.size), (0o644, 4));
    // Nothing of it is on disk, and real runs do not see it.
    assert!(!bed.path("new").exists() && !bed.path("a").exists());
    assert!(bed.path("gone/deep/f").exists());
    let bed = Bed { host: bed.run.clone(), ..bed };
    assert_eq!(bed.text("old/f").as_deref(), Some("old"));
    assert_eq!(bed.kind("new"), None);
    assert_eq!(bed.kind("gone"), Some(FileKind::Directory));
}

#[test]
fn attributes_change_and_the_content_stays() {
    let bed = Bed::new();
    bed.write("f", "old");
    std::fs::set_permissions(bed.path("f"), PermissionsExt::from_mode(0o600)).unwrap();
    bed.host.predict_attributes(&bed.path("f"), &bed.own).unwrap();
    assert_eq!(bed.host.stat(&bed.path("f")).unwrap().unwrap().mode, 0o644);
    assert_eq!(bed.text("f").as_deref(), Some("old"));
    bed.file("f", "new").unwrap();
    bed.host.predict_attributes(&bed.path("f"), &Attributes { mode: 0o640, ..bed.own }).unwrap();
    assert_eq!(bed.host.stat(&bed.path("f")).unwrap().unwrap().mode, 0o640);
    assert_eq!(bed.text("f").as_deref(), Some("new"));
}

#[test]
fn copies_hold_what_their_source_would_hold() {
    let bed = Bed::new();
    bed.write("disk", "on disk");
    bed.file("source", "predicted").unwrap();
    for (name, source, text) in
        [("a", "source", "predicted"), ("b", "disk", "on disk"), ("c", "b", "on disk")]
    {
        let source = bed.path(source);
        let content = NewContent::CopyOf(&source);
        bed.host.predict_file(&bed.path(name), content, &bed.own).unwrap();
        assert_eq!(bed.text(name).as_deref(), Some(text), "{name}");
    }
    // A later change of the source does not reach the copy.
    bed.file("source", "later").unwrap();
    assert_eq!(bed.text("a").as_deref(), Some("predicted"));
}

#[test]
fn symlinked_directories_are_one() {
    let bed = Bed::new();
    bed.write("real/x", "");
    std::os::unix::fs::symlink("real", bed.path("link")).unwrap();
    bed.file("link/f", "by link").unwrap();
    assert_eq!(bed.text("real/f").as_deref(), Some("by link"));
    bed.host.predict_removal(&bed.path("real/f"), false).unwrap();
    assert_eq!(bed.text("link/f"), None);
}

#[test]
fn visible_reasons_to_fail_are_told() {
    let bed = Bed::new();
    bed.write("file", "");
    bed.write("full/f", "");
    for (error, words) in [
        (bed.file("missing/f", "x").unwrap_err(), "missing is not a directory: it does not exist"),
        (bed.file("file/f", "x").unwrap_err(), "file is not a directory"),
        (bed.directory("file/d").unwrap_err(), "file is not a directory"),
        (bed.host.predict_removal(&bed.path("full"), false).unwrap_err(), "is not empty"),
        (bed.host.predict_removal(Path::new("/proc"), true).unwrap_err(), "is mounted"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    bed.host.predict_removal(&bed.path("full/f"), false).unwrap();
    bed.host.predict_removal(&bed.path("full"), false).unwrap();
    assert!(bed.file("full/f", "x").is_err(), "its directory would be gone");
    let missing = bed.file("missing/f", "x").unwrap_err();
    assert!(missing.is_about_something_missing());
    assert!(!bed.file("file/f", "x").unwrap_err().is_about_something_missing());
}

#[test]
fn what_only_the_run_knows_is_no_answer() {
    let bed = Bed::new();
    bed.write("tree/f", "x");
    bed.host.begin_prediction("archive#a");
    bed.host.predict_unknown_content(&bed.path("tree"));
    bed.host.predict_something(&bed.path("tree/bin"));
    for name in ["tree/f", "tree/other/deep", "tree/bin", "tree/bin/x"] {
        let error = bed.host.stat(&bed.path(name)).unwrap_err();
        let by = matches!(&error, Error::Unpredictable { by, .. } if &**by == "archive#a");
        assert!(by && error.is_about_something_missing(), "{name}: {error}");
    }
    assert_eq!(bed.kind("tree"), Some(FileKind::Directory));
    assert!(bed.host.exists(&bed.path("tree/bin")).unwrap());
    assert!(bed.host.exists(&bed.path("tree/other")).is_err());
    let command = format!("test -f {}", bed.path("tree/x").display());
    assert_eq!(bed.host.predicted_in(&command, Path::new("/")).as_deref(), Some("archive#a"));
    let other = format!("test -f {}x", bed.path("tree").display());
    assert_eq!(bed.host.predicted_in(&other, Path::new("/")), None);
    let here = bed.host.predicted_in("test -f tree/x", bed.dir.path());
    assert_eq!(here.as_deref(), Some("archive#a"));
    assert_eq!(bed.host.predicted_in("test -f tree/x", Path::new("/")), None);
}

#[test]
fn users_other_than_root_are_told_what_they_may_not_do() {
    if ccm_testkit::runs_as_nobody() {
        return;
    }
    let bed = Bed::new();
    let other = Attributes { uid: 0, ..bed.own };
    let error = bed.host.predict_file(&bed.path("f"), NewContent::Bytes(b""), &other).unwrap_err();
    assert!(error.to_string().contains("set the owner of"), "{error}");
    for path in ["/etc/ccm-test", "/ccm-test"] {
        let content = NewContent::Bytes(b"");
        assert!(bed.host.predict_file(Path::new(path), content, &bed.own).is_err(), "{path}");
    }
    let error = bed.host.predict_attributes(Path::new("/etc/passwd"), &bed.own).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn programs_may_come_with_earlier_steps() {
    let bed = Bed::new();
    let path = bed.path("tool");
    let command = crate::Command::new(&path, [""; 0]);
    assert!(bed.host.check_command(&command).is_err());
    bed.host
        .predict_file(
            &path,
            NewContent::Bytes(b"#!/bin/sh\n"),
            &Attributes { mode: 0o755, ..bed.own },
        )
        .unwrap();
    bed.host.check_command(&command).unwrap();
    let elsewhere = command.clone().directory(bed.path("no"));
    assert!(bed.host.check_command(&elsewhere).is_err());
    bed.directory("no").unwrap();
    bed.host.check_command(&elsewhere).unwrap();
}

#[test]
fn symlinks_lead_where_earlier_steps_leave_them() {
    let bed = Bed::new();
    bed.write("real/f", "on disk");
    bed.write("target", "on disk");
    for (target, link) in [("real", "link"), ("target", "to"), ("nothing", "dangling")] {
        std::os::unix::fs::symlink(target, bed.path(link)).unwrap();
    }
    assert_eq!(bed.text("link/f").as_deref(), Some("on disk"));
    bed.file("target", "changed").unwrap();
    assert_eq!(bed.text("to").as_deref(), Some("changed"));
    bed.file("nothing", "made").unwrap();
    assert_eq!(bed.text("dangling").as_deref(), Some("made"));
    bed.host.predict_removal(&bed.path("target"), false).unwrap();
    assert_eq!((bed.kind("to"), bed.text("to")), (None, None));
    bed.host.predict_removal(&bed.path("link"), false).unwrap();
    assert_eq!(bed.kind("link/f"), None);
    bed.directory("link").unwrap();
    bed.file("link/f", "elsewhere").unwrap();
    assert_eq!(bed.text("real/f").as_deref(), Some("on disk"));
    bed.host.predict_removal(&bed.path("real"), true).unwrap();
    assert_eq!(bed.text("link/f").as_deref(), Some("elsewhere"));
    // Symlinks that lead in a circle end somewhere.
    std::os::unix::fs::symlink("b", bed.path("a")).unwrap();
    std::os::unix::fs::symlink("a", bed.path("b")).unwrap();
    assert!(bed.host.stat(&bed.path("a")).is_err());
    assert!(bed.file("a/f", "x").is_err());
}

#[test]
fn predicted_symlinks_are_followed_to_what_is_on_disk() {
    let bed = Bed::new();
    bed.write("one/f", "first");
    bed.write("two/f", "second");
    let own = (bed.own.uid, bed.own.gid);
    let link = |name: &str, target: &str| {
        bed.host.predict_symlink(&bed.path(name), Path::new(target), own).unwrap();
    };
    link("current", "one");
    assert_eq!(bed.text("current/f").as_deref(), Some("first"));
    let kind = |name: &str| bed.host.lstat(&bed.path(name)).unwrap().map(|stat| stat.kind);
    assert_eq!(kind("current"), Some(FileKind::Symlink));
    assert_eq!(bed.kind("current"), Some(FileKind::Directory));
    assert_eq!(bed.host.read_link(&bed.path("current")).unwrap(), Path::new("one"));
    bed.file("current/new", "made").unwrap();
    assert_eq!(bed.text("one/new").as_deref(), Some("made"));
    link("current", "two");
    assert_eq!(bed.text("current/f").as_deref(), Some("second"));
    assert_eq!(bed.kind("current/new"), None);
    link("to-file", "current/f");
    assert_eq!(bed.text("to-file").as_deref(), Some("second"));
    link("dangling", "nothing");
    assert_eq!((bed.kind("dangling"), kind("dangling")), (None, Some(FileKind::Symlink)));
    assert!(bed.file("dangling/f", "x").is_err());
    link("circle", "circle");
    assert!(bed.host.stat(&bed.path("circle")).is_err());
    bed.host.predict_removal(&bed.path("current"), false).unwrap();
    assert_eq!((kind("current"), bed.kind("current/f")), (None, None));
    assert_eq!(bed.text("two/f").as_deref(), Some("second"));
}

#[test]
fn a_file_changes_under_all_of_its_names() {
    let bed = Bed::new();
    bed.write("one", "text");
    std::fs::hard_link(bed.path("one"), bed.path("two")).unwrap();
    let mode = |name: &str| bed.host.stat(&bed.path(name)).unwrap().unwrap().mode;
    bed.host.predict_attributes(&bed.path("one"), &Attributes { mode: 0o640, ..bed.own }).unwrap();
    assert_eq!((mode("one"), mode("two")), (0o640, 0o640));
    // A file that takes the name of another is another file.
    bed.file("one", "new").unwrap();
    assert_eq!((mode("one"), mode("two")), (0o644, 0o640));
    assert_eq!(bed.text("two").as_deref(), Some("text"));
}

#[test]
fn what_a_command_names_is_uncertain() {
    let bed = Bed::new();
    bed.write("d/f", "x");
    bed.write("d/g", "x");
    bed.write("e/f", "x");
    bed.file("d/new", "x").unwrap();
    bed.host.begin_prediction("exec#fill");
    let command = format!("--to={} f -x", bed.path("d").display());
    bed.host.predict_touched(&command, &bed.path("e"));
    for name in ["d", "d/f", "d/new", "d/other", "e/f"] {
        let error = bed.host.stat(&bed.path(name)).unwrap_err();
        assert!(
            matches!(&error, Error::Unpredictable { by, .. } if &**by == "exec#fill"),
            "{name}"
        );
    }
    assert_eq!((bed.kind("e"), bed.kind("e/g")), (Some(FileKind::Directory), None));
    // Directories right below the root are too much to be meant.
    bed.host.predict_touched("/ /tmp /etc", Path::new("/"));
    assert!(bed.host.stat(Path::new("/etc/passwd")).unwrap().is_some());
}

#[test]
fn a_preview_within_another_leaves_no_trace() {
    #[derive(Clone, Default)]
    struct Count(Arc<std::sync::Mutex<usize>>);
    let outer = Bed::new();
    outer.file("before", "x").unwrap();
    let bed = Bed { host: outer.host.preview(), ..outer.clone() };
    assert_eq!(bed.text("before").as_deref(), Some("x"));
    bed.file("within", "x").unwrap();
    bed.host.predict_removal(&bed.path("before"), false).unwrap();
    bed.host.predict_more(Reach::Anything, Some("package#p"));
    *bed.host.predicted::<Count>().0.lock().unwrap() += 1;
    assert_eq!(&*bed.host.suppliers()[0].origin, "package#p");
    assert_eq!(bed.host.file_changers().len(), 1, "one resource, however much it changes");
    assert_eq!((bed.text("before"), bed.text("within").as_deref()), (None, Some("x")));
    assert_eq!((outer.text("before").as_deref(), outer.text("within")), (Some("x"), None));
    assert!(outer.host.suppliers().is_empty());
    assert_eq!(*outer.host.predicted::<Count>().0.lock().unwrap(), 0);
}
