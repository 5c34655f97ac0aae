//! Opens what lies beneath an open directory, and nothing outside it.
//!
//! The kernel does this in one call, `openat2`. Linux before 5.6 lacks it, and
//! sandboxes that do not know it block it. There, ccm takes one component after
//! the other, which is slower and as safe.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::walk::Walk;
use crate::{FileKind, Stat};

/// Whether symlinks on the way are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// As long as they stay beneath the directory.
    Follow,
    /// Not even the last one: each fails with `LOOP`.
    Refuse,
}

/// Opens a path beneath a directory. Fails with `XDEV` if it leads outside.
pub(crate) fn open(
    top: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = match links {
        Links::Follow => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        Links::Refuse => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    };
    match rustix::fs::openat2(&top, path, flags, Mode::empty(), resolve) {
        Err(errno) if is_no_answer(errno) => open_by_component(top, path, flags, links),
        answer => answer,
    }
}

/// Opens a directory in a directory for listing: not through a symlink
/// (`LOOP` or `NOTDIR`), not into a mount (`XDEV`).
pub(crate) fn open_directory(parent: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&parent, name, flags, Mode::empty(), resolve) {
        Err(errno) if is_no_answer(errno) => {
            let mut parts = name.components();
            let (Some(std::path::Component::Normal(name)), None) = (parts.next(), parts.next())
            else {
                return Err(Errno::XDEV);
            };
            let directory = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
            if is_same_mount(&parent, &directory)? { Ok(directory) } else { Err(Errno::XDEV) }
        }
        answer => answer,
    }
}

/// Whether `openat2` is missing or blocked, or could not be sure because
/// something was being renamed.
pub(crate) fn is_no_answer(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::AGAIN)
}

fn open_by_component(
    top: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let top = rustix::io::fcntl_dupfd_cloexec(top, 0)?;
    let walk = Walk::beneath(top, Path::new(""), path)?;
    let is_link = |stat: &Stat| stat.kind == FileKind::Symlink;
    if links == Links::Refuse && walk.way.iter().any(|step| is_link(&step.stat)) {
        return Err(Errno::LOOP);
    }
    let directory = walk.directory()?;
    let name = match &walk.last {
        None => return rustix::fs::openat(directory, ".", flags, Mode::empty()),
        Some((_, None)) => return Err(Errno::NOENT),
        Some((name, Some(_))) => name,
    };
    let found = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // With `PATH` this opens a symlink that took the place of the file meanwhile.
    if is_link(&Stat::new(&rustix::fs::fstat(&found)?)) {
        return Err(Errno::LOOP);
    }
    Ok(found)
}

/// Whether two directories are in the same mount. Two mounts of one file system
/// have the same device number, so the number of the mount decides where the
/// kernel tells it.
fn is_same_mount(one: impl AsFd, other: impl AsFd) -> Result<bool, Errno> {
    if let (Some(one), Some(other)) = (mount_of(&one), mount_of(&other)) {
        return Ok(one == other);
    }
    Ok(rustix::fs::fstat(one)?.st_dev == rustix::fs::fstat(other)?.st_dev)
}

fn mount_of(file: impl AsFd) -> Option<String> {
    let info = format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd());
    let info = std::fs::read_to_string(info).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(|id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use ccm_testkit::lacks_root;

    use super::*;

    const ERROR: &str = "CCM_TEST_OPENAT2_ERROR";
    const MOUNTS: &str = "CCM_TEST_MOUNTS";

    /// `in` with files and symlinks, beside `out`.
    fn fixture() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("in/sub/deep")).unwrap();
        std::fs::create_dir(at("out")).unwrap();
        std::fs::write(at("in/sub/f"), "f").unwrap();
        std::fs::write(at("out/secret"), "").unwrap();
        for (target, name) in [
            ("sub", "near"),
            ("sub/../sub/f", "file"),
            ("../out", "away"),
            ("near/../../out/secret", "round"),
            ("/etc", "absolute"),
            ("nowhere", "dangling"),
            ("loop", "loop"),
        ] {
            symlink(target, at("in").join(name)).unwrap();
        }
        let top = std::fs::File::open(at("in")).unwrap();
        (dir, top.into())
    }

    #[test]
    fn components_give_the_answers_of_the_kernel() {
        let (_dir, top) = fixture();
        let kinds = [
            OFlags::PATH,
            OFlags::PATH | OFlags::DIRECTORY,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
        ];
        let is_there =
            rustix::fs::openat2(&top, ".", OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH);
        for path in [
            ".",
            "sub",
            "sub/f",
            "sub/deep",
            "near/f",
            "near/deep/..",
            "file",
            "sub/../near/f",
            "none",
            "none/f",
            "sub/f/x",
            "dangling",
            "dangling/x",
            "loop",
            "away",
            "away/secret",
            "round",
            "absolute",
            "absolute/passwd",
            "..",
            "../out/secret",
            "sub/../../out/secret",
            "/etc/passwd",
        ] {
            for flags in kinds {
                for links in [Links::Follow, Links::Refuse] {
                    let ino = |file: OwnedFd| rustix::fs::fstat(file).unwrap().st_ino;
                    let place = Path::new(path);
                    let by_component = open_by_component(&top, place, flags, links).map(ino);
                    if is_there.is_ok() {
                        let by_kernel = open(&top, place, flags, links).map(ino);
                        // Refused links are refused, whatever else is wrong.
                        let is_refused = |answer| {
                            matches!(
                                answer,
                                Err(Errno::LOOP | Errno::XDEV | Errno::NOENT | Errno::NOTDIR)
                            )
                        };
                        assert!(
                            by_component == by_kernel
                                || links == Links::Refuse
                                    && is_refused(by_component)
                                    && is_refused(by_kernel),
                            "{path} {flags:?} {links:?}: {by_component:?}, kernel {by_kernel:?}"
                        );
                    }
                    if path.contains("out") || path.contains("away") || path.contains("etc") {
                        assert!(by_component.is_err(), "{path}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_mount_of_the_same_file_system_is_not_entered() {
        let (dir, top) = fixture();
        let deep = dir.path().join("in/sub/deep");
        if std::env::var_os(MOUNTS).is_none() {
            if lacks_root() {
                return;
            }
            // Once more, where the mounts of the test are its own.
            let output = Command::new("unshare")
                .args(["--mount", "--propagation", "private"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", std::thread::current().name().unwrap()])
                .env(MOUNTS, "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let sub = open_directory(&top, Path::new("sub")).unwrap();
        assert!(open_directory(&sub, Path::new("deep")).is_ok());
        let mut bind = Command::new("mount");
        bind.arg("--bind").arg(dir.path().join("out")).arg(&deep);
        assert!(bind.status().unwrap().success());
        assert_eq!(open_directory(&sub, Path::new("deep")).unwrap_err(), Errno::XDEV);
        assert!(Command::new("umount").arg(&deep).status().unwrap().success());
    }

    #[test]
    fn directories_are_opened_by_name_only() {
        let (_dir, top) = fixture();
        for link in ["near", "away", "absolute"] {
            let error = open_directory(&top, Path::new(link)).unwrap_err();
            assert!(matches!(error, Errno::LOOP | Errno::NOTDIR), "{link}: {error}");
        }
        for outside in ["..", "/", "sub/../../out"] {
            assert!(open_directory(&top, Path::new(outside)).is_err(), "{outside}");
        }
    }

    /// What `openat2` answers is what the sandbox was made for.
    #[test]
    fn openat2_works_unless_it_is_blocked() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let answer =
            rustix::fs::openat2(rustix::fs::CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
        match std::env::var(ERROR) {
            Ok(errno) => assert_eq!(answer.unwrap_err().raw_os_error().to_string(), errno),
            Err(_) => assert!(answer.map_or_else(is_no_answer, |_| true)),
        }
    }
}

/// Runs the tests of everything that opens files beneath a directory once more,
/// in a sandbox.
#[cfg(test)]
mod sandbox {
    use ccm_testkit::{OPENAT2_ERRORS, without_openat2};

    #[test]
    fn tests_pass_without_openat2() {
        for (name, errno) in OPENAT2_ERRORS {
            let dir = tempfile::tempdir().unwrap();
            let test = std::env::current_exe().unwrap();
            let Some(mut command) = without_openat2(errno, &test, dir.path()) else { return };
            let output = command
                .args(["beneath::tests", "tree::", "walk::", "remove::", "destination::"])
                .args(["folder::", "journal::"])
                .env("CCM_TEST_OPENAT2_ERROR", errno.to_string())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {said}");
            for module in ["beneath", "tree", "walk", "remove", "destination"] {
                assert!(said.contains(&format!("test {module}::")), "{name}: {module}: {said}");
            }
        }
    }
}
