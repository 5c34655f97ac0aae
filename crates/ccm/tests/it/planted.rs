//! What another user of the machine prepares for root: access lists, symlinks.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, XattrFlags};

use crate::TestEnv;

pub(crate) const NOBODY: u32 = 65534;

pub(crate) const NO_LISTS: &str = "this file system has no access control lists";

/// A place that others can enter, unless the test is not run by root.
pub(crate) fn shared_place() -> Option<TestEnv> {
    if ccm_testkit::lacks_root() {
        return None;
    }
    let env = TestEnv::new();
    chmod(env.dir(), 0o755);
    Some(env)
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn give_away(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// How often the attacks with a race in them are tried.
pub(crate) fn attempts() -> usize {
    let wanted = std::env::var("CCM_ATTACKS").ok().and_then(|count| count.parse().ok());
    wanted.unwrap_or(25)
}

/// An access list that allows `nobody` everything: tag, permissions, id.
fn list() -> Vec<u8> {
    let all = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 7, all), (0x02, 7, NOBODY), (0x04, 0, all), (0x10, 7, all), (0x20, 0, all)];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

pub(crate) const ACCESS: &str = "system.posix_acl_access";
pub(crate) const DEFAULT: &str = "system.posix_acl_default";

/// Whether the file system has such lists; without them there is no attack.
pub(crate) fn plant(path: &Path, name: &str) -> bool {
    rustix::fs::setxattr(path, name, &list(), XattrFlags::empty()).is_ok()
}

fn has(path: &Path, name: &str) -> bool {
    rustix::fs::getxattr(path, name, &mut [0u8; 256][..]).is_ok()
}

fn nobody(program: &str, args: &[&Path]) -> bool {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(program);
    command.args(args).uid(NOBODY).gid(NOBODY).current_dir("/");
    command.output().unwrap().status.success()
}

/// The user takes a symlink that root has left in their directory, and gives it
/// the name that root is about to pass.
#[test]
fn a_symlink_of_root_that_a_user_renames_is_not_followed() {
    let Some(env) = shared_place() else { return };
    let home = env.path("home");
    fs::create_dir(&home).unwrap();
    fs::create_dir(env.path("etc")).unwrap();
    symlink(env.path("etc"), home.join("link")).unwrap();
    give_away(&home);
    assert!(nobody("mv", &[&home.join("link"), &home.join("app")]));
    env.manifest(
        "ccm: {resources: [{file: [{[DIR]/home/app/x: {content: y, mode: '0644', [ME]}}]}]}\n",
    );
    for args in [["apply", "manifest.yaml"], ["plan", "manifest.yaml"]] {
        let output = env.run(args);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success(), "{shown}");
        assert!(shown.contains("does not follow it as root"), "{shown}");
        assert!(!env.path("etc/x").exists());
    }
}

#[test]
fn access_lists_of_another_user_do_not_survive() {
    let Some(env) = shared_place() else { return };
    let drop_box = env.path("box");
    fs::create_dir(&drop_box).unwrap();
    chmod(&drop_box, 0o1777);
    let at = |name: &str| drop_box.join(name);
    fs::write(at("content"), "").unwrap();
    fs::write(at("attributes"), "old").unwrap();
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("kept"), "").unwrap();
    for name in ["content", "attributes", "directory", "kept"] {
        if !plant(&at(name), ACCESS) {
            return ccm_testkit::not_run(NO_LISTS);
        }
    }
    assert!(plant(&at("directory"), DEFAULT));
    for name in ["content", "attributes", "directory"] {
        give_away(&at(name));
    }
    env.manifest(
        "ccm:
  resources:
    - file:
        - [DIR]/box/content: {content: secret, owner: root, group: root, mode: '0660'}
        - [DIR]/box/attributes: {owner: root, group: root, mode: '0660'}
        - [DIR]/box/directory: {ensure: directory, owner: root, group: root, mode: '0770'}
        - [DIR]/box/kept: {content: secret, owner: root, group: root, mode: '0660'}
",
    );
    let changed = env.run(["apply", "manifest.yaml"]);
    assert!(changed.status.success(), "{changed:?}");
    for name in ["content", "attributes", "directory"] {
        assert!(!has(&at(name), ACCESS), "{name}");
        assert_eq!(fs::metadata(at(name)).unwrap().uid(), 0, "{name}");
    }
    assert!(!has(&at("directory"), DEFAULT));
    for name in ["content", "attributes"] {
        assert!(!nobody("cat", &[&at(name)]), "{name}");
    }
    assert!(!nobody("ls", &[&at("directory")]));
    assert!(has(&at("kept"), ACCESS), "root's own list stays");
    assert!(nobody("cat", &[&at("kept")]));
    let stable = env.ccm(["apply", "manifest.yaml"]);
    assert!(stable.ends_with(" in [TIME]: 4 stable\n"), "{stable}");
}

#[test]
fn new_files_get_no_list_from_a_directory_of_another_user() {
    let Some(env) = shared_place() else { return };
    let theirs = env.path("theirs");
    fs::create_dir(&theirs).unwrap();
    if !plant(&theirs, DEFAULT) {
        return ccm_testkit::not_run(NO_LISTS);
    }
    give_away(&theirs);
    for args in [
        vec!["file", "[DIR]/theirs/f", "--content", "s", "--mode", "0660"],
        vec!["file", "[DIR]/theirs/d/e", "directory", "--mode", "0770"],
    ] {
        let args = args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap()));
        let args = std::iter::once("ensure".to_owned()).chain(args);
        let output = env.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    for name in ["f", "d", "d/e"] {
        assert!(!has(&theirs.join(name), ACCESS), "{name}");
        assert!(!has(&theirs.join(name), DEFAULT), "{name}");
    }
}

#[test]
fn a_list_that_is_planted_again_and_again_does_not_survive() {
    let Some(env) = shared_place() else { return };
    let drop_box = env.path("box");
    fs::create_dir(&drop_box).unwrap();
    chmod(&drop_box, 0o1777);
    let path = drop_box.join("f");
    fs::write(&path, "").unwrap();
    if !plant(&path, ACCESS) {
        return ccm_testkit::not_run(NO_LISTS);
    }
    let (is_over, target) = (AtomicBool::new(false), path.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            nix::unistd::setfsuid(NOBODY.into());
            while !is_over.load(Ordering::Relaxed) {
                plant(&target, ACCESS);
            }
        });
        for _ in 0..attempts() {
            give_away(&path);
            let args = ["ensure", "file", "[DIR]/box/f", "--owner", "root:root", "--mode", "0660"];
            let output = env.run(args);
            let survived = has(&path, ACCESS);
            if survived || !output.status.success() {
                is_over.store(true, Ordering::Relaxed);
            }
            assert!(!survived);
            assert!(output.status.success(), "{output:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// `home/app` of nobody with a file, `etc` of root with one of the same name,
/// and `home/lure`: a symlink of nobody to root's directory.
pub(crate) fn lured() -> Option<TestEnv> {
    let env = shared_place()?;
    for directory in ["home", "home/app", "etc"] {
        fs::create_dir(env.path(directory)).unwrap();
    }
    for (file, text) in [("etc/passwd", "root's"), ("home/app/passwd", "theirs")] {
        env.write(file, text);
    }
    for name in ["home", "home/app", "home/app/passwd"] {
        give_away(&env.path(name));
    }
    symlink("../etc", env.path("home/lure")).unwrap();
    give_away(&env.path("home/lure"));
    Some(env)
}

pub(crate) fn is_untouched(env: &TestEnv) -> bool {
    let meta = fs::symlink_metadata(env.path("etc/passwd"));
    let names = fs::read_dir(env.path("etc")).unwrap().count();
    let is_same =
        meta.is_ok_and(|meta| meta.is_file() && meta.uid() == 0 && meta.mode() & 0o7777 == 0o644);
    is_same && env.read("etc/passwd") == "root's" && names == 1
}

#[test]
fn a_users_symlink_does_not_lead_root_elsewhere() {
    let Some(env) = lured() else { return };
    env.write("src/passwd", "scaffold");
    let owner = ["--owner", "nobody:nogroup", "--mode", "0600"];
    let lured = |name: &str| format!("{}/home/lure{name}", env.dir().display());
    let source = env.path("src").display().to_string();
    let url = "http://127.0.0.1:1/x.tgz".to_owned();
    let cases: Vec<Vec<String>> = vec![
        [&["file".into(), lured("/passwd")][..], &owner.map(String::from)].concat(),
        vec!["file".into(), lured("/new"), "--content".into(), "x".into()],
        vec!["file".into(), lured("/a/b/new"), "directory".into()],
        vec!["file".into(), lured("/passwd"), "absent".into()],
        vec!["scaffold".into(), lured(""), source.clone()],
        vec!["scaffold".into(), lured("/sub"), source],
        vec!["exec".into(), "touch new".into(), "--cwd".into(), lured("")],
        vec!["archive".into(), lured("/x.tgz"), url],
    ];
    for args in cases {
        for noop in [true, false] {
            let mut command = env.command(["ensure"]);
            command.args(&args).args(noop.then_some("--noop"));
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(1), "{args:?} {noop}: {output:?}");
            assert!(text.contains("home/lure is a symlink that belongs to user 65534"), "{text}");
            assert!(is_untouched(&env), "{args:?} {noop}");
        }
    }
    // To what is theirs, a symlink of theirs may lead; and root's own anywhere.
    symlink("app", env.path("home/own")).unwrap();
    give_away(&env.path("home/own"));
    symlink("etc", env.path("of-root")).unwrap();
    for path in ["[DIR]/home/own/f", "[DIR]/of-root/f"] {
        let output = env.run(["ensure", "file", path, "--content", "x"]);
        assert!(output.status.success(), "{path}: {output:?}");
    }
}

/// Swaps two names as nobody, as fast as the kernel can, while `work` runs.
pub(crate) fn while_swapping(a: &Path, b: &Path, work: impl FnOnce()) {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swap = || {
            nix::unistd::setfsuid(NOBODY.into());
            while !is_over.load(Ordering::Relaxed) {
                let _ = rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
            }
        };
        scope.spawn(swap);
        let _end = End(&is_over);
        work();
    });
}

#[test]
fn a_directory_that_turns_into_a_symlink_and_back_does_not_lead_root_elsewhere() {
    let Some(env) = lured() else { return };
    env.write("src/passwd", "scaffold");
    let path = |name: &str| format!("{}/home/app{name}", env.dir().display());
    let source = env.path("src").display().to_string();
    let runs: [&[&str]; 6] = [
        &["file", &path("/passwd"), "--owner", "nobody:nogroup", "--mode", "0600"],
        &["file", &path("/passwd"), "--content", "evil", "--owner", "nobody:nogroup"],
        &["file", &path("/new/dir"), "directory"],
        &["file", &path("/passwd"), "absent"],
        &["scaffold", &path(""), &source],
        &["exec", "touch touched", "--cwd", &path("")],
    ];
    let mut outcomes = [0, 0];
    while_swapping(&env.path("home/app"), &env.path("home/lure"), || {
        for round in 0..attempts() {
            for args in runs {
                let output = env.command(["ensure"]).args(args).output().unwrap();
                outcomes[usize::from(output.status.success())] += 1;
                assert!(is_untouched(&env), "round {round}: {args:?}: {output:?}");
            }
        }
    });
    assert!(outcomes[0] > 0, "the swap never came in between");
}

#[test]
fn a_user_follows_symlinks_as_before() {
    use std::os::unix::process::CommandExt as _;
    let Some(env) = lured() else { return };
    let copy = env.copy_of_ccm();
    chown(env.path("home"), Some(0), Some(0)).unwrap();
    chmod(&env.path("etc"), 0o777);
    let output = Command::new(copy)
        .args(["ensure", "file"])
        .arg(env.path("home/lure/mine"))
        .args(["--content", "x"])
        .uid(NOBODY)
        .gid(NOBODY)
        .env("HOME", "/")
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success(), "what a user may do, the user may do: {output:?}");
    assert_eq!(env.read("etc/mine"), "x");
}
