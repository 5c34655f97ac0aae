//! Directories in a tree as trees of their own.

use std::fs::File;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Tree;
use crate::beneath::{self, Links};
use crate::file::read_all;
use crate::journal::has_other_names;
use crate::{Error, Result, Stat};

impl Tree {
    /// The attributes of its root, as the open directory has them.
    pub fn stat(&self) -> Result<Stat> {
        Stat::of(&self.root, &self.path)
    }

    /// Reads a file that was opened in this tree, as that descriptor has it.
    ///
    /// # Errors
    ///
    /// Fails if it is larger than `limit`, or cannot be read.
    pub fn read_opened(&self, place: &Path, file: File, stat: Stat, limit: u64) -> Result<Vec<u8>> {
        read_all(file, stat, &self.path.join(place), limit)
    }

    /// Whether an open file has names beside the one that it was opened by.
    pub fn has_other_names(&self, file: &File) -> bool {
        has_other_names(file)
    }

    /// The tree at a directory of this one; `None` if nothing is there. What is
    /// known of it holds for what is done in it, whatever happens to its name. No
    /// symlink leads to it, and none is followed in it.
    ///
    /// # Errors
    ///
    /// Fails if something else is there, or a symlink on the way.
    pub fn below(&self, place: &Path) -> Result<Option<Self>> {
        let path = self.path.join(place);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let root = match beneath::open(&self.root, place, flags, Links::Refuse) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::XDEV) => return Err(Error::LeadsOutside { path }),
            Err(Errno::NOTDIR) => return Err(Error::NotADirectory { path }),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        Ok(Some(Self { host: self.host.clone(), root, path, links: Links::Refuse }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Attributes, Content, Host};

    #[test]
    fn a_directory_stays_the_same_whatever_happens_to_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("home/.ssh")).unwrap();
        std::fs::create_dir(at("elsewhere")).unwrap();
        let home = Host::new().open_tree(&at("home")).unwrap().unwrap();
        let ssh = home.below(Path::new(".ssh")).unwrap().unwrap();
        std::fs::rename(at("home/.ssh"), at("home/moved")).unwrap();
        symlink(at("elsewhere"), at("home/.ssh")).unwrap();
        let (uid, gid) = Host::new().whoami();
        let wanted = Attributes { uid, gid, mode: 0o600 };
        ssh.replace(Path::new("keys"), Content::Bytes(b"k"), &wanted).unwrap();
        assert_eq!(std::fs::read(at("home/moved/keys")).unwrap(), b"k");
        assert_eq!(std::fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        assert_eq!(ssh.stat().unwrap().uid, uid);
    }

    #[test]
    fn neither_symlinks_nor_files_are_trees() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let tree = Host::new().open_tree(dir.path()).unwrap().unwrap();
        assert!(tree.below(Path::new("none")).unwrap().is_none());
        assert!(tree.below(Path::new("real")).unwrap().is_some());
        for name in ["link", "file", "../x"] {
            assert!(tree.below(Path::new(name)).is_err(), "{name}");
        }
    }
}
