//! What copying a directory into a tree needs: attributes, symlinks, and no
//! symlink that is followed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{Tree, not_a_directory};
use crate::atomic::set_attributes_of;
use crate::beneath::{self, Links};
use crate::forecast::is_mount_root;
use crate::{Attributes, Error, Result, Stat};

impl Tree {
    /// The same tree, in which no symlink is followed, wherever it points to.
    #[must_use]
    pub fn without_symlinks(mut self) -> Self {
        self.links = Links::Refuse;
        self
    }

    /// The text of a symlink.
    pub fn read_link(&self, place: &Path) -> Result<PathBuf> {
        let path = self.path.join(place);
        let failed = Error::io("read the link", &path);
        let target = self
            .parent(place)
            .and_then(|(parent, name)| rustix::fs::readlinkat(parent, name, Vec::new()))
            .map_err(failed)?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Makes a directory with these attributes, or sets those of the one that is
    /// there; its parent must be there.
    pub fn create_directory(&self, place: &Path, wanted: &Attributes) -> Result<()> {
        if self.make(place, wanted, true)? { Ok(()) } else { self.set_attributes(place, wanted) }
    }

    /// Sets owner, group and mode of a directory.
    pub fn set_attributes(&self, place: &Path, wanted: &Attributes) -> Result<()> {
        let path = self.path.join(place);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = beneath::open(&self.root, place, flags, Links::Refuse).map_err(
            |errno| match errno {
                Errno::LOOP | Errno::XDEV => Error::LeadsOutside { path: path.clone() },
                Errno::NOENT | Errno::NOTDIR => Error::NotADirectory { path: path.clone() },
                errno => Error::io("open", &path)(errno),
            },
        )?;
        let have = Stat::of(&directory, &path)?;
        let after = Attributes { mode: crate::atomic::resulting_mode(&have, wanted), ..*wanted };
        self.host.record_attributes(&path, Some(&directory), &have, after, true)?;
        set_attributes_of(&directory, &path, &have, wanted)?;
        self.host.inner.barrier.hold().file_changed(&path, have.dev);
        Ok(())
    }

    /// Replaces a path atomically with a symlink. Its directory must exist.
    pub fn symlink(&self, place: &Path, target: &Path, owner: (u32, u32)) -> Result<()> {
        let path = self.path.join(place);
        let (parent, name) = self.parent(place).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => not_a_directory(&path),
            Errno::XDEV | Errno::LOOP => Error::LeadsOutside { path: path.clone() },
            errno => Error::io("open", &path)(errno),
        })?;
        self.host.replace_with_symlink_in(&parent, name, &path, target, owner)
    }

    /// Removes a directory if nothing but leftovers of killed runs is in it;
    /// tells whether it is gone.
    pub fn remove_left_empty(&self, place: &Path) -> Result<bool> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        if let Ok(directory) = beneath::open(&self.root, place, flags, Links::Refuse) {
            self.host.sweep(&directory, &self.path.join(place));
        }
        self.remove_empty(place)
    }

    /// Whether something is mounted on a file.
    pub fn is_mount_point(&self, place: &Path) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = self
            .parent(place)
            .and_then(|(parent, name)| rustix::fs::statx(parent, name, flags, StatxFlags::empty()));
        found.ok().as_ref().and_then(is_mount_root).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;
    use crate::{Content, Host, TreeEntry};

    /// A tree `in` with a symlink `near` to its directory `sub`, beside `out`.
    fn fixture() -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("in/sub")).unwrap();
        std::fs::create_dir(at("out")).unwrap();
        symlink("sub", at("in/near")).unwrap();
        symlink("../out", at("in/away")).unwrap();
        let tree = Host::new().open_tree(&at("in")).unwrap().unwrap().without_symlinks();
        (dir, tree)
    }

    fn mine(mode: u32) -> Attributes {
        let (uid, gid) = Host::new().whoami();
        Attributes { uid, gid, mode }
    }

    #[test]
    fn no_symlink_is_followed_not_even_one_that_stays_in_the_tree() {
        let (dir, tree) = fixture();
        for link in ["near", "away"] {
            let place = Path::new(link);
            assert!(matches!(tree.open(place).unwrap(), TreeEntry::Astray), "{link}");
            let inner = place.join("f");
            let owner = Host::new().whoami();
            let failures = [
                tree.replace(&inner, Content::Bytes(b"x"), &mine(0o644)).is_err(),
                tree.create_directory(&inner, &mine(0o755)).is_err(),
                tree.create_directory(place, &mine(0o755)).is_err(),
                tree.set_attributes(place, &mine(0o700)).is_err(),
                tree.symlink(&inner, Path::new("t"), owner).is_err(),
            ];
            assert_eq!(failures, [true; 5], "{link}");
            assert!(tree.lstat(&inner).unwrap().is_none());
            tree.remove_file(&inner).unwrap();
        }
        for directory in ["in/sub", "out"] {
            let path = dir.path().join(directory);
            assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "{directory}");
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o755, "{directory}");
        }
    }

    #[test]
    fn directories_and_symlinks_are_made_and_set() {
        let (dir, tree) = fixture();
        let mode = |name: &str| {
            std::fs::metadata(dir.path().join("in").join(name)).unwrap().mode() & 0o7777
        };
        tree.create_directory(Path::new("new"), &mine(0o750)).unwrap();
        tree.create_directory(Path::new("sub"), &mine(0o711)).unwrap();
        assert_eq!((mode("new"), mode("sub")), (0o750, 0o711));
        let owner = Host::new().whoami();
        for text in ["a", "b"] {
            tree.symlink(Path::new("new/l"), Path::new(text), owner).unwrap();
            assert_eq!(tree.read_link(Path::new("new/l")).unwrap(), Path::new(text));
        }
        assert!(!tree.remove_left_empty(Path::new("new")).unwrap());
        tree.remove_file(Path::new("new/l")).unwrap();
        std::fs::write(dir.path().join("in/new/.ccm-0123456789abcdef01234567"), "").unwrap();
        let tree = Host::new().open_tree(&dir.path().join("in")).unwrap().unwrap();
        assert!(tree.without_symlinks().remove_left_empty(Path::new("new")).unwrap());
        assert!(!dir.path().join("in/new").exists());
    }
}
