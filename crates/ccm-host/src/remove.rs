//! Recursive removal that never follows symlinks or enters mount points: every
//! step is relative to an open directory.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::{Error, Host, Image, Result, Stat, beneath};

/// How many directories are held open at once. What lies deeper is first moved
/// up, so that no depth exhausts the descriptors.
const MAX_OPEN: usize = 64;

impl Host {
    /// Removes a file, link or empty directory; nothing there is fine.
    pub fn remove(&self, path: &Path) -> Result<()> {
        let record = |parent: &OwnedFd, name: &Path| {
            self.record_change(parent, name, path, |_| Some(Image::Absent))
        };
        self.remove_with(path, record, |parent, name| {
            match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    Err(Error::NotEmpty { path: path.to_owned() })
                }
                Err(Errno::BUSY) => Err(Error::MountPoint { path: path.to_owned() }),
                other => other.map_err(Error::io("remove", path)),
            }
        })
    }

    /// Removes a file, link or directory with everything in it.
    pub fn remove_tree(&self, path: &Path) -> Result<()> {
        self.remove_tree_with(path, |parent, name| self.record_removal(parent, name, path))
    }

    /// The same for a directory that belongs to this user; fails if another one is
    /// there by now.
    pub fn remove_tree_of(&self, path: &Path, owner: u32) -> Result<()> {
        let record = |parent: &OwnedFd, name: &Path| {
            let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            match stat.map(|stat| Stat::new(&stat)) {
                Ok(stat) if stat.uid == owner && stat.kind == crate::FileKind::Directory => {}
                Err(Errno::NOENT) => return Ok(()),
                _ => return Err(Error::NotADirectory { path: path.to_owned() }),
            }
            self.record_removal(parent, name, path)
        };
        self.remove_with(path, record, |parent, name| {
            let top = open_below(parent, name, path)?;
            if Stat::of(&top, path)?.uid != owner {
                return Err(Error::NotADirectory { path: path.to_owned() });
            }
            empty(&top, path)?;
            remove_directory(parent, name, path)
        })
    }

    /// The same for what is ccm's own, which no history keeps.
    pub(crate) fn remove_own_tree(&self, path: &Path) -> Result<()> {
        self.remove_tree_with(path, |_, _| Ok(()))
    }

    fn remove_tree_with(
        &self,
        path: &Path,
        record: impl FnOnce(&OwnedFd, &Path) -> Result<()>,
    ) -> Result<()> {
        self.remove_with(path, record, |parent, name| {
            let top = open_below(parent, name, path)?;
            empty(&top, path)?;
            remove_directory(parent, name, path)
        })
    }

    fn remove_with(
        &self,
        path: &Path,
        record: impl FnOnce(&OwnedFd, &Path) -> Result<()>,
        remove_directory: impl FnOnce(&OwnedFd, &Path) -> Result<()>,
    ) -> Result<()> {
        self.forget_parent();
        let (parent, name) = match self.open_parent(path) {
            Ok(found) => found,
            Err(Error::NotADirectory { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        record(&parent, name)?;
        match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) if is_directory(&parent, name) => {
                remove_directory(&parent, name)?;
            }
            Err(Errno::BUSY) => return Err(Error::MountPoint { path: path.to_owned() }),
            Err(errno) => return Err(Error::io("remove", path)(errno)),
        }
        let dev = Stat::of(&parent, path)?.dev;
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.inner.barrier.hold().directory_changed(directory, dev);
        Ok(())
    }
}

fn is_directory(parent: &OwnedFd, name: &Path) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| Stat::new(&stat).kind == crate::FileKind::Directory)
}

/// A directory being emptied: where it hangs, and what is still to be done.
struct OpenDirectory {
    directory: OwnedFd,
    name: CString,
    path: PathBuf,
    pending: Vec<CString>,
}

/// Removes everything in a directory.
fn empty(top: &OwnedFd, top_path: &Path) -> Result<()> {
    // Directories found too deep are moved here, right below the top, and
    // emptied in turn: each pass over the top makes the tree shallower.
    let mut lifted = 0u64;
    loop {
        let mut lifted_now = false;
        let mut stack: Vec<OpenDirectory> = Vec::new();
        let mut pending = list(top, top_path)?;
        loop {
            let depth = stack.len();
            let (directory, names, path) = match stack.last_mut() {
                Some(level) => (&level.directory, &mut level.pending, level.path.as_path()),
                None => (top, &mut pending, top_path),
            };
            let Some(name) = names.pop() else {
                let Some(done) = stack.pop() else { break };
                let parent = stack.last().map_or(top, |level| &level.directory);
                remove_directory(parent, Path::new(&lossless(&done.name)), &done.path)?;
                continue;
            };
            let full = path.join(lossless(&name));
            match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM)
                    if is_directory(directory, Path::new(&lossless(&name))) => {}
                Err(errno) => return Err(Error::io("remove", &full)(errno)),
            }
            let child = open_below(directory, Path::new(&lossless(&name)), &full)?;
            if depth < MAX_OPEN {
                let pending = list(&child, &full)?;
                stack.push(OpenDirectory { directory: child, name, path: full, pending });
                continue;
            }
            lifted += 1;
            lifted_now = true;
            let place = format!(".ccm-lifted-{}-{lifted}", std::process::id());
            rustix::fs::renameat(directory, &name, top, &place)
                .map_err(Error::io("remove", &full))?;
        }
        if !lifted_now {
            return Ok(());
        }
    }
}

pub(crate) fn lossless(name: &CStr) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned()
}

/// Opens a directory for removal: not through a link, not into a mount.
pub(crate) fn open_below(parent: &OwnedFd, name: &Path, path: &Path) -> Result<OwnedFd> {
    beneath::open_directory(parent, name).map_err(|errno| match errno {
        Errno::XDEV => Error::MountPoint { path: path.to_owned() },
        errno => Error::io("open", path)(errno),
    })
}

pub(crate) fn list(directory: &OwnedFd, path: &Path) -> Result<Vec<CString>> {
    let entries = rustix::fs::Dir::read_from(directory).map_err(Error::io("list", path))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", path))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn remove_directory(parent: &OwnedFd, name: &Path, path: &Path) -> Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(Error::MountPoint { path: path.to_owned() }),
        Err(errno) => Err(Error::io("remove", path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_links_and_empty_directories() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("f"), "").unwrap();
        std::fs::create_dir(at("d")).unwrap();
        symlink("/nonexistent", at("dangling")).unwrap();
        for name in ["f", "d", "dangling", "missing", "missing/deeper"] {
            host.remove(&at(name)).unwrap();
            assert!(std::fs::symlink_metadata(at(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn full_directories_need_the_other_call() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("f"), "").unwrap();
        let error = Host::new().remove(&path).unwrap_err().to_string();
        assert!(error.contains("directory is not empty, set 'force: true'"), "{error}");
        Host::new().remove_tree(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_tree_of_another_owner_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (home, link) = (dir.path().join("home"), dir.path().join("link"));
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("f"), "").unwrap();
        symlink("home", &link).unwrap();
        let (uid, _) = Host::new().whoami();
        assert!(Host::new().remove_tree_of(&home, uid + 1).is_err());
        assert!(Host::new().remove_tree_of(&link, uid).is_err());
        assert!(home.join("f").exists() && link.exists());
        Host::new().remove_tree_of(&dir.path().join("none"), uid).unwrap();
        Host::new().remove_tree_of(&home, uid).unwrap();
        assert!(!home.exists());
    }

    #[test]
    fn links_are_removed_and_what_they_lead_to_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("keep"), "").unwrap();
        symlink(&outside, inside.join("sub/link")).unwrap();
        symlink(outside.join("keep"), inside.join("file-link")).unwrap();
        Host::new().remove_tree(&inside).unwrap();
        assert!(!inside.exists());
        assert!(outside.join("keep").exists());
        let link = dir.path().join("link");
        symlink(&outside, &link).unwrap();
        Host::new().remove_tree(&link).unwrap();
        assert!(outside.join("keep").exists());
        assert!(std::fs::symlink_metadata(&link).is_err());
    }

    #[test]
    fn depth_does_not_exhaust_descriptors() {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("deep");
        std::fs::create_dir(&top).unwrap();
        let mut at: OwnedFd = std::fs::File::open(&top).unwrap().into();
        for _ in 0..3000 {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
            rustix::fs::openat(&at, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
        }
        Host::new().remove_tree(&top).unwrap();
        assert!(!top.exists());
    }
}
