//! A directory tree, accessed only through its open root directory.
//!
//! Symlinks are followed only within the tree. Nothing outside it is read,
//! written or removed.

mod below;
mod copy;
mod files;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::is_temporary_name;
use crate::beneath::{self, Links};
use crate::extended::{has_other_owner, remove_lists};
use crate::file::mode;
use crate::forecast::Seen;
pub use files::{FindLimits, FoundFile, Saved, tree_place};

use crate::{Attributes, Content, Error, FileKind, Host, Image, Result, Stat};

/// Directories inside one another that are walked.
const MAX_DEPTH: usize = 200;

/// A directory that is held open, with everything below it.
#[derive(Debug)]
pub struct Tree {
    host: Host,
    root: OwnedFd,
    path: PathBuf,
    links: Links,
}

/// The type of an entry in a tree.
#[derive(Debug)]
pub enum TreeEntry {
    /// No file system object has this name.
    Nothing,
    /// A regular file, or a link to one in the tree.
    File(File, Stat),
    /// A dangling symlink, or one to a path outside the tree.
    Astray,
    /// Anything else: a directory, socket, FIFO or device.
    Other(Stat),
}

impl Host {
    /// In a preview: the tree that is on disk at a path now, whatever earlier
    /// steps would make of it.
    pub fn tree_on_disk(&self, path: &Path) -> Result<Option<Tree>> {
        if matches!(self.seen_target(path)?, Seen::Absent | Seen::Directory(_, true)) {
            return Ok(None);
        }
        match self.open_managed(&self.on_disk(path, true)) {
            Ok(directory) => self.tree_in(&directory, path).map(Some),
            Err(Error::NotADirectory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn tree_in(&self, directory: &OwnedFd, path: &Path) -> Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(directory, ".", flags, Mode::empty())
            .map_err(Error::io("open", path))?;
        Ok(Tree { host: self.clone(), root, path: path.to_owned(), links: Links::Follow })
    }

    /// Opens the tree at a path; `None` if nothing exists there. Follows
    /// symlinks to it; as root, only symlinks whose target has the same owner.
    pub fn open_tree(&self, path: &Path) -> Result<Option<Tree>> {
        match self.stat(path)? {
            // A dangling symlink is in the way.
            None if self.lstat(path)?.is_some() => {
                return Err(Error::NotADirectory { path: path.to_owned() });
            }
            None => return self.check_managed_path(path).map(|()| None),
            Some(stat) if stat.kind != FileKind::Directory => {
                return Err(Error::NotADirectory { path: path.to_owned() });
            }
            Some(_) => {}
        }
        self.tree_in(&self.open_managed(path)?, path).map(Some)
    }
}

impl Tree {
    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what is at a place for reading.
    pub fn open(&self, place: &Path) -> Result<TreeEntry> {
        let path = self.path.join(place);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match self.open_at(place, flags) {
            Ok(file) => file,
            Err(Errno::NOENT) => return self.without_following(place),
            Err(Errno::XDEV | Errno::LOOP) => return Ok(TreeEntry::Astray),
            Err(Errno::NOTDIR) => return Err(not_a_directory(&path)),
            Err(Errno::NXIO) => {
                let stat = rustix::fs::statat(&self.root, place, AtFlags::empty())
                    .map_err(Error::io("inspect", &path))?;
                return Ok(TreeEntry::Other(Stat::new(&stat)));
            }
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let stat = Stat::of(&file, &path)?;
        Ok(match stat.kind {
            FileKind::File => TreeEntry::File(file.into(), stat),
            _ => TreeEntry::Other(stat),
        })
    }

    /// Nothing, or a dangling symlink.
    fn without_following(&self, place: &Path) -> Result<TreeEntry> {
        match rustix::fs::statat(&self.root, place, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(TreeEntry::Astray),
            Err(Errno::NOENT) => Ok(TreeEntry::Nothing),
            Err(Errno::NOTDIR) => Err(not_a_directory(&self.path.join(place))),
            Err(errno) => Err(Error::io("inspect", &self.path.join(place))(errno)),
        }
    }

    /// Returns metadata of an entry without following a symlink.
    pub fn lstat(&self, place: &Path) -> Result<Option<Stat>> {
        let path = self.path.join(place);
        let (parent, name) = match self.parent(place) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stat::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io("inspect", &path)(errno)),
        }
    }

    /// Replaces a path atomically with a regular file of this content. Its
    /// directory must exist.
    pub fn replace(&self, place: &Path, content: Content<'_>, wanted: &Attributes) -> Result<()> {
        let path = self.path.join(place);
        let (parent, name) = self.parent(place).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => not_a_directory(&path),
            Errno::XDEV | Errno::LOOP => Error::LeadsOutside { path: path.clone() },
            errno => Error::io("open", &path)(errno),
        })?;
        self.host.replace_in(&parent, name, &path, content, wanted)
    }

    /// Makes a place a directory that all can enter; its parent must be there.
    pub fn make_directory(&self, place: &Path) -> Result<()> {
        let (uid, gid) = self.host.whoami();
        let wanted = Attributes { uid, gid, mode: 0o755 };
        if self.make(place, &wanted, false)? {
            return Ok(());
        }
        let path = || self.path.join(place);
        match self.open_at(place, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(_) => Ok(()),
            Err(Errno::XDEV | Errno::LOOP) => Err(Error::LeadsOutside { path: path() }),
            Err(_) => Err(Error::NotADirectory { path: path() }),
        }
    }

    /// Makes a directory where nothing is; false if something is there. With
    /// `sets_owner`, it does not get the group of a setgid directory above.
    fn make(&self, place: &Path, wanted: &Attributes, sets_owner: bool) -> Result<bool> {
        let path = self.path.join(place);
        let (parent, name) = self.parent(place).map_err(|errno| match errno {
            Errno::XDEV | Errno::LOOP => Error::LeadsOutside { path: path.clone() },
            errno => Error::io("create directory", &path)(errno),
        })?;
        self.host.record_directory(&parent, name, &path)?;
        match rustix::fs::mkdirat(&parent, name, mode(0o700)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(errno) => return Err(Error::io("create directory", &path)(errno)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&parent, name, flags, Mode::empty())
            .map_err(Error::io("open", &path))?;
        // A directory of another user may have made it a gift of its lists.
        if has_other_owner(&Stat::of(&parent, &path)?, wanted) {
            remove_lists(&made, FileKind::Directory)
                .map_err(Error::io("remove access lists of", &path))?;
        }
        if sets_owner {
            let (uid, gid) = wanted.ids();
            rustix::fs::fchown(&made, Some(uid), Some(gid))
                .map_err(Error::io("set the owner of", &path))?;
        }
        rustix::fs::fchmod(&made, mode(wanted.mode))
            .map_err(Error::io("set the mode of", &path))?;
        self.host.complete_record(&path, &made, None)?;
        let dev = Stat::of(&made, &path)?.dev;
        self.host.inner.barrier.hold().file_changed(&path, dev);
        Ok(true)
    }

    /// Whether a place is a directory, or a link to one in the tree.
    pub fn is_directory(&self, place: &Path) -> Result<bool> {
        match self.open_at(place, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(Errno::XDEV | Errno::LOOP) => {
                Err(Error::LeadsOutside { path: self.path.join(place) })
            }
            Err(Errno::NOTDIR) => Err(Error::NotADirectory { path: self.path.join(place) }),
            Err(errno) => Err(Error::io("open", &self.path.join(place))(errno)),
        }
    }

    /// Removes a file or link; nothing there is fine.
    pub fn remove_file(&self, place: &Path) -> Result<()> {
        self.record_unlink(place)?;
        self.unlink(place, AtFlags::empty()).or_else(|errno| match errno {
            Errno::NOENT => Ok(()),
            errno => Err(Error::io("remove", &self.path.join(place))(errno)),
        })
    }

    /// Removes a directory if nothing is in it; tells whether it is gone.
    pub fn remove_empty(&self, place: &Path) -> Result<bool> {
        self.record_unlink(place)?;
        match self.unlink(place, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(Error::io("remove", &self.path.join(place))(errno)),
        }
    }

    /// Records that something is about to be removed.
    fn record_unlink(&self, place: &Path) -> Result<()> {
        match self.parent(place) {
            Ok((parent, name)) if self.host.journal().is_some() => {
                let path = self.path.join(place);
                self.host.record_change(&parent, name, &path, |_| Some(Image::Absent))
            }
            // There is nothing, or the removal itself will say why not.
            _ => Ok(()),
        }
    }

    fn unlink(&self, place: &Path, flags: AtFlags) -> rustix::io::Result<()> {
        self.host.forget_parent();
        let (parent, name) = match self.parent(place) {
            Ok(found) => found,
            // What leads elsewhere is not in the tree.
            Err(Errno::XDEV | Errno::LOOP | Errno::NOTDIR) => return Err(Errno::NOENT),
            Err(errno) => return Err(errno),
        };
        rustix::fs::unlinkat(&parent, name, flags)?;
        if let Ok(stat) = rustix::fs::fstat(&parent) {
            let path = self.path.join(place);
            let directory = path.parent().unwrap_or(&self.path);
            self.host.inner.barrier.hold().directory_changed(directory, stat.st_dev);
        }
        Ok(())
    }

    /// Everything in the tree that is not a directory, sorted, and the same of
    /// directories. Neither links nor mounts are entered.
    pub fn entries(&self) -> Result<Entries> {
        let mut found = Entries::default();
        self.list(&self.root, Path::new(""), 0, &mut found)?;
        found.files.sort();
        Ok(found)
    }

    fn list(
        &self,
        directory: &OwnedFd,
        place: &Path,
        depth: usize,
        found: &mut Entries,
    ) -> Result<()> {
        let path = self.path.join(place);
        // No real tree is deeper, and the search must end.
        if depth > MAX_DEPTH {
            found
                .unknown
                .get_or_insert_with(|| Error::TooDeep { path: path.clone(), limit: MAX_DEPTH });
            return Ok(());
        }
        let entries = rustix::fs::Dir::read_from(directory).map_err(Error::io("list", &path))?;
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(Error::io("list", &path))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            // What another run is about to put in place is neither there nor not.
            if matches!(name.as_bytes(), b"." | b"..") || is_temporary_name(name.as_bytes()) {
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| Stat::new(&stat).kind == FileKind::Directory),
                _ => false,
            };
            if is_directory {
                folders.push(name.to_owned());
            } else {
                found.files.push(place.join(name));
            }
        }
        folders.sort();
        for name in folders {
            let inner = place.join(&name);
            let below = match beneath::open_directory(directory, Path::new(&name)) {
                Ok(below) => below,
                Err(Errno::XDEV) => {
                    found.mounts.push(inner);
                    continue;
                }
                // Gone, or swapped for a link, since the listing.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
                Err(Errno::ACCESS) => {
                    let error = || Error::io("open", &path.join(&name))(Errno::ACCESS);
                    found.unknown.get_or_insert_with(error);
                    continue;
                }
                Err(errno) => return Err(Error::io("open", &path.join(&name))(errno)),
            };
            found.directories.push(inner.clone());
            self.list(&below, &inner, depth + 1, found)?;
        }
        Ok(())
    }

    /// Opens what a place leads to, as long as that is in the tree.
    fn open_at(&self, place: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        beneath::open(&self.root, place, flags, self.links)
    }

    fn parent<'p>(&self, place: &'p Path) -> rustix::io::Result<(OwnedFd, &'p Path)> {
        let name = place.file_name().ok_or(Errno::INVAL)?;
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let directory = self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((directory, Path::new(name)))
    }
}

/// The entries of a tree, by path.
#[derive(Debug, Default)]
pub struct Entries {
    /// Files, links, sockets, FIFOs, devices.
    pub files: Vec<PathBuf>,
    /// Directories, each before what is in it.
    pub directories: Vec<PathBuf>,
    /// Directories that something is mounted on. They are not entered.
    pub mounts: Vec<PathBuf>,
    /// Why there may be more in it, where a directory could not be listed.
    pub unknown: Option<Error>,
}

/// The outermost part of the way to a path that is something else.
fn not_a_directory(path: &Path) -> Error {
    let parent = path.parent().unwrap_or(path);
    Error::NotADirectory { path: parent.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mine() -> Attributes {
        let (uid, gid) = Host::new().whoami();
        Attributes { uid, gid, mode: 0o644 }
    }

    /// A tree `in` beside a directory `out` with a file `f` in it, and links.
    fn fixture() -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        for path in [&inside, &outside, &inside.join("sub")] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(outside.join("f"), "outside").unwrap();
        std::fs::write(inside.join("sub/g"), "g").unwrap();
        symlink(&outside, inside.join("away")).unwrap();
        symlink("sub", inside.join("near")).unwrap();
        symlink("../out/f", inside.join("f")).unwrap();
        let tree = Host::new().open_tree(&inside).unwrap().unwrap();
        (dir, tree)
    }

    #[test]
    fn nothing_outside_is_read() {
        let (_dir, tree) = fixture();
        let open = |place: &str| tree.open(Path::new(place)).unwrap();
        assert!(matches!(open("sub/g"), TreeEntry::File(..)));
        assert!(matches!(open("near/g"), TreeEntry::File(..)));
        assert!(matches!(open("f"), TreeEntry::Astray));
        assert!(matches!(open("away/f"), TreeEntry::Astray));
        assert!(matches!(open("../out/f"), TreeEntry::Astray));
        assert!(matches!(open("none"), TreeEntry::Nothing));
        assert!(matches!(open("sub"), TreeEntry::Other(_)));
        assert!(tree.open(Path::new("sub/g/x")).is_err());
    }

    #[test]
    fn nothing_outside_is_changed() {
        let (dir, tree) = fixture();
        let outside = dir.path().join("out");
        let place = Path::new;
        let error = tree.replace(place("away/f"), Content::Bytes(b"x"), &mine()).unwrap_err();
        assert!(matches!(error, Error::LeadsOutside { .. }), "{error}");
        assert!(tree.make_directory(place("away/d")).is_err());
        assert!(tree.is_directory(place("away")).is_err());
        tree.remove_file(place("away/f")).unwrap();
        tree.remove_file(place("../out/f")).unwrap();
        assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"outside");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        // The link itself is in the tree.
        tree.replace(place("f"), Content::Bytes(b"new"), &mine()).unwrap();
        assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"outside");
        assert_eq!(std::fs::read(dir.path().join("in/f")).unwrap(), b"new");
        tree.replace(place("near/h"), Content::Bytes(b"h"), &mine()).unwrap();
        assert_eq!(std::fs::read(dir.path().join("in/sub/h")).unwrap(), b"h");
    }

    #[test]
    fn links_are_listed_not_entered() {
        let (_dir, tree) = fixture();
        let entries = tree.entries().unwrap();
        let names: Vec<_> = entries.files.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["away", "f", "near", "sub/g"]);
        assert_eq!(entries.directories, [Path::new("sub")]);
        assert!(!tree.remove_empty(Path::new("sub")).unwrap());
        tree.remove_file(Path::new("sub/g")).unwrap();
        assert!(tree.remove_empty(Path::new("sub")).unwrap());
    }
}
