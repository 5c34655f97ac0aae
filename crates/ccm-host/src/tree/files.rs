//! Files that users edit in a tree: read with their metadata, saved only if
//! they have not changed since.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::{Tree, TreeEntry, not_a_directory};
use crate::atomic::is_temporary_name;
use crate::beneath::{self, Links};
use crate::file::{check_regular, read_all};
use crate::{Attributes, Content, Error, FileKind, Result, Stat};

/// How saving went.
#[derive(Debug, PartialEq, Eq)]
pub enum Saved {
    /// The file has the new content.
    Done,
    /// It has other content than expected: this. Nothing was written.
    Differs(Vec<u8>),
    /// There is no file. Nothing was written.
    Gone,
}

/// A file in a listing.
#[derive(Debug)]
pub struct FoundFile {
    /// Where it is in the tree.
    pub place: PathBuf,
    /// Its metadata; symlinks within the tree are followed.
    pub stat: Stat,
    /// Whether this process may replace it.
    pub writable: bool,
}

/// Limits of a search.
#[derive(Clone, Copy, Debug)]
pub struct FindLimits {
    /// The most files that are found.
    pub files: usize,
    /// Directories inside one another.
    pub depth: usize,
}

impl Tree {
    /// Reads a regular file; `None` when there is nothing.
    ///
    /// # Errors
    ///
    /// Fails if the path is outside the tree, is not a regular file, is larger
    /// than `limit` or cannot be read.
    pub fn read(&self, place: &Path, limit: u64) -> Result<Option<(Vec<u8>, Stat)>> {
        let path = self.path.join(place);
        match self.open(place)? {
            TreeEntry::Nothing => Ok(None),
            TreeEntry::Astray => Err(Error::LeadsOutside { path }),
            TreeEntry::Other(stat) => check_regular(&path, stat).map(|()| None),
            TreeEntry::File(file, stat) => {
                let bytes = read_all(file, stat, &path, limit)?;
                Ok(Some((bytes, stat)))
            }
        }
    }

    /// Replaces a file atomically if it has the expected content. Keeps mode,
    /// owner and extended attributes, and follows a symlink within the tree.
    /// The new content is on disk when this returns.
    pub fn save(
        &self,
        place: &Path,
        content: &[u8],
        limit: u64,
        is_expected: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Saved> {
        let Some((now, stat)) = self.read(place, limit)? else { return Ok(Saved::Gone) };
        if !is_expected(&now) {
            return Ok(Saved::Differs(now));
        }
        let Some(place) = self.real_place(place, stat)? else { return Ok(Saved::Gone) };
        let wanted = Attributes { uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o777 };
        self.replace(&place, Content::Bytes(content), &wanted)?;
        self.host.sync()?;
        Ok(Saved::Done)
    }

    /// Makes a new file; false if there is something already. Its directory must
    /// be there. It is on disk when this returns.
    pub fn create(&self, place: &Path, content: &[u8], mode: u32) -> Result<bool> {
        let path = self.path.join(place);
        let (parent, name) = self.parent(place).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => not_a_directory(&path),
            Errno::XDEV | Errno::LOOP => Error::LeadsOutside { path: path.clone() },
            errno => Error::io("open", &path)(errno),
        })?;
        let (uid, gid) = self.host.whoami();
        let wanted = Attributes { uid, gid, mode };
        let is_new = self.host.create_in(&parent, name, &path, Content::Bytes(content), &wanted)?;
        if is_new {
            self.host.sync()?;
        }
        Ok(is_new)
    }

    /// Whether this process may replace a file or make one there.
    pub fn is_writable(&self, place: &Path) -> bool {
        let Ok(found) = self.open_at(place, OFlags::PATH) else {
            return self.parent(place).is_ok_and(|(parent, _)| may_write(&parent, Path::new(".")));
        };
        let Ok(stat) = Stat::of(&found, place) else { return false };
        let real = self.real_place(place, stat).ok().flatten();
        real.is_some_and(|real| self.may_replace(&real, stat))
    }

    fn may_replace(&self, place: &Path, stat: Stat) -> bool {
        let me = self.host.whoami().0;
        let Ok((parent, name)) = self.parent(place) else { return false };
        (me == 0 || stat.uid == me)
            && may_write(&parent, Path::new("."))
            && may_write(&parent, name)
    }

    /// Where the file really is that a place leads to, without links on the way.
    /// `None` if it is not there any more.
    fn real_place(&self, place: &Path, stat: Stat) -> Result<Option<PathBuf>> {
        let path = self.path.join(place);
        let found = match self.open_at(place, OFlags::PATH) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::XDEV | Errno::LOOP) => return Err(Error::LeadsOutside { path }),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let (root, real) = (where_is(&self.root, &path)?, where_is(&found, &path)?);
        let Ok(real) = real.strip_prefix(&root) else { return Ok(None) };
        // The kernel's name for it must lead to it, and by no link.
        let again = match beneath::open(&self.root, real, OFlags::PATH, Links::Refuse) {
            Ok(again) => Stat::of(&again, &path)?,
            Err(_) => return Ok(None),
        };
        let is_same = (again.dev, again.ino) == (stat.dev, stat.ino);
        Ok(is_same.then(|| real.to_owned()))
    }

    /// Files whose names `is_wanted` takes, sorted, and whether there are more
    /// than the limits allow. Hidden names, other mounts and directories that
    /// cannot be read are left out.
    pub fn find(
        &self,
        limits: FindLimits,
        is_wanted: &dyn Fn(&OsStr) -> bool,
    ) -> Result<(Vec<FoundFile>, bool)> {
        let mut search = Search { found: Vec::new(), is_truncated: false, limits, is_wanted };
        self.search(&self.root, Path::new(""), 0, &mut search)?;
        search.found.sort_by(|one, other| one.place.cmp(&other.place));
        Ok((search.found, search.is_truncated))
    }

    fn search(
        &self,
        directory: &OwnedFd,
        place: &Path,
        depth: usize,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let path = self.path.join(place);
        let entries = rustix::fs::Dir::read_from(directory).map_err(Error::io("list", &path))?;
        let mut folders = Vec::new();
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name.as_bytes().starts_with(b".") || is_temporary_name(name.as_bytes()) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            match kind {
                FileType::Directory => folders.push(name.to_owned()),
                FileType::RegularFile | FileType::Symlink if (search.is_wanted)(name) => {
                    if search.found.len() == search.limits.files {
                        search.is_truncated = true;
                        return Ok(());
                    }
                    let place = place.join(name);
                    let Ok(TreeEntry::File(_, stat)) = self.open_quietly(&place) else { continue };
                    let writable = self.is_writable(&place);
                    search.found.push(FoundFile { place, stat, writable });
                }
                _ => {}
            }
        }
        folders.sort();
        for name in folders {
            if depth + 1 >= search.limits.depth {
                search.is_truncated = true;
                break;
            }
            // A mount, one that others own, or gone since the listing.
            let Ok(below) = beneath::open_directory(directory, Path::new(&name)) else { continue };
            self.search(&below, &place.join(&name), depth + 1, search)?;
        }
        Ok(())
    }

    /// What is at a place, without opening it to read.
    fn open_quietly(&self, place: &Path) -> Result<TreeEntry> {
        let path = self.path.join(place);
        let found = self.open_at(place, OFlags::PATH).map_err(Error::io("open", &path))?;
        let stat = Stat::of(&found, &path)?;
        Ok(match stat.kind {
            FileKind::File => TreeEntry::File(found.into(), stat),
            _ => TreeEntry::Other(stat),
        })
    }
}

struct Search<'a> {
    found: Vec<FoundFile>,
    is_truncated: bool,
    limits: FindLimits,
    is_wanted: &'a dyn Fn(&OsStr) -> bool,
}

/// A place in a tree as someone wrote it: relative, without `.` and `..`, each
/// name once.
pub fn tree_place(text: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    (text.split('/').all(is_plain) && !text.contains('\0')).then(|| PathBuf::from(text))
}

fn may_write(directory: &OwnedFd, name: &Path) -> bool {
    rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// Where the kernel says that an open file is.
fn where_is(file: &OwnedFd, path: &Path) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).map_err(Error::std_io("find", path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::Host;

    const LIMIT: u64 = 1000;

    fn fixture() -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        std::fs::create_dir_all(inside.join("sub/deep")).unwrap();
        std::fs::write(dir.path().join("out"), "outside").unwrap();
        std::fs::write(inside.join("a.yaml"), "a").unwrap();
        std::fs::write(inside.join("sub/b.yaml"), "b").unwrap();
        std::fs::write(inside.join("sub/deep/c.yaml"), "c").unwrap();
        std::fs::write(inside.join(".hidden.yaml"), "h").unwrap();
        symlink("sub/b.yaml", inside.join("link.yaml")).unwrap();
        symlink("../out", inside.join("away.yaml")).unwrap();
        let tree = Host::new().open_tree(&inside).unwrap().unwrap();
        (dir, tree)
    }

    #[test]
    fn files_are_saved_through_links_that_stay_in_the_tree() {
        let (dir, tree) = fixture();
        let b = dir.path().join("in/sub/b.yaml");
        std::fs::set_permissions(&b, PermissionsExt::from_mode(0o640)).unwrap();
        let save = |place: &str, old: &'static [u8]| {
            tree.save(Path::new(place), b"new", LIMIT, |now| now == old)
        };
        assert_eq!(save("link.yaml", b"other").unwrap(), Saved::Differs(b"b".to_vec()));
        assert_eq!(save("link.yaml", b"b").unwrap(), Saved::Done);
        assert_eq!(std::fs::read(&b).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&b).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(dir.path().join("in/link.yaml").is_symlink());
        assert_eq!(save("none.yaml", b"").unwrap(), Saved::Gone);
        assert!(matches!(save("away.yaml", b"outside"), Err(Error::LeadsOutside { .. })));
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"outside");
        assert!(save("sub", b"").is_err());
    }

    #[test]
    fn nothing_is_created_over() {
        let (dir, tree) = fixture();
        let create = |place: &str| tree.create(Path::new(place), b"new", 0o644);
        assert!(create("sub/new.yaml").unwrap());
        assert!(!create("sub/new.yaml").unwrap());
        assert!(!create("a.yaml").unwrap());
        assert!(!create("away.yaml").unwrap());
        assert!(create("none/x.yaml").is_err());
        assert_eq!(std::fs::read(dir.path().join("in/a.yaml")).unwrap(), b"a");
        let left = std::fs::read_dir(dir.path().join("in/sub")).unwrap().count();
        assert_eq!(left, 3, "no temporary file stays");
    }

    #[test]
    fn listings_have_limits() {
        let (_dir, tree) = fixture();
        let find = |files, depth| {
            let is_yaml = |name: &OsStr| name.as_bytes().ends_with(b".yaml");
            let (found, more) = tree.find(FindLimits { files, depth }, &is_yaml).unwrap();
            let names: Vec<String> =
                found.iter().map(|file| file.place.display().to_string()).collect();
            (names.join(" "), more)
        };
        assert_eq!(find(10, 8), ("a.yaml link.yaml sub/b.yaml sub/deep/c.yaml".into(), false));
        assert_eq!(find(10, 2), ("a.yaml link.yaml sub/b.yaml".into(), true));
        assert!(find(1, 8).1);
    }

    #[test]
    fn special_files_are_not_read() {
        let (dir, tree) = fixture();
        let fifo = dir.path().join("in/fifo.yaml");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = tree.read(Path::new("fifo.yaml"), LIMIT).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
        std::fs::write(dir.path().join("in/large.yaml"), "x".repeat(1001)).unwrap();
        let error = tree.read(Path::new("large.yaml"), LIMIT).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }

    #[test]
    fn places_are_plain() {
        for good in ["a", "a/b.yaml", "..a", "a..", ".hidden/x"] {
            assert_eq!(tree_place(good), Some(PathBuf::from(good)), "{good}");
        }
        for bad in ["", "/", "/a", "..", "../a", "a/../b", ".", "a/", "a//b", "a/./b", "a\0b"] {
            assert_eq!(tree_place(bad), None, "{bad}");
        }
    }
}
