//! An open directory, read without following symlinks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::is_temporary_name;
use crate::beneath::{self, Links};
use crate::file::{check_regular, read_all, utf8};
use crate::trust::{file_doubt, folder_doubt, step_doubt};
use crate::walk::Walk;
use crate::{Doubt, Error, FileKind, Host, Refuse, Result, Stat};

/// A directory held open: whatever happens to its path, what is read through it
/// stays in it, and no link in it leads anywhere else.
#[derive(Debug)]
pub struct Folder {
    host: Host,
    directory: OwnedFd,
    path: PathBuf,
    guard: Guard,
}

/// Something below a folder.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    /// Where it is below the folder.
    pub place: PathBuf,
    /// Its kind; a symlink is a symlink.
    pub kind: FileKind,
    /// Attributes of a regular file.
    pub stat: Option<Stat>,
    /// The text of a symlink.
    pub target: Option<PathBuf>,
}

/// Directories inside one another that are walked.
const MAX_DEPTH: usize = 200;

/// Whether what is read through a folder may be changed by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// Anyone may have written it.
    None,
    /// A warning is logged.
    Warn,
    /// Reading fails with [`Error::Untrusted`].
    Refuse,
}

impl Host {
    /// Opens a directory, links on the way to it followed; `None` when there
    /// is nothing at the path.
    pub fn open_folder(&self, path: &Path) -> Result<Option<Folder>> {
        let Some(stat) = self.stat(path)? else { return Ok(None) };
        if stat.kind != FileKind::Directory {
            return Err(Error::NotADirectory { path: path.to_owned() });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(Error::io("open", path))?;
        Ok(Some(self.folder_of(directory, path)))
    }

    /// The same by way of [`Host::open_managed`].
    pub(crate) fn open_managed_folder(&self, path: &Path) -> Result<Option<Folder>> {
        match self.stat(path)? {
            None => return Ok(None),
            Some(stat) if stat.kind != FileKind::Directory => {
                return Err(Error::NotADirectory { path: path.to_owned() });
            }
            Some(_) => {}
        }
        let directory = self.open_managed(&self.on_disk(path, true))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&directory, ".", flags, Mode::empty())
            .map_err(Error::io("open", path))?;
        Ok(Some(self.folder_of(directory, path)))
    }

    fn folder_of(&self, directory: OwnedFd, path: &Path) -> Folder {
        let path = path.to_owned();
        Folder { host: self.clone(), directory, path, guard: Guard::None }
    }
}

impl Folder {
    pub(crate) fn guarded(mut self, host: &Host, refuse: Refuse) -> Self {
        let is_refused = refuse == Refuse::Always || host.is_strict();
        self.guard = if is_refused { Guard::Refuse } else { Guard::Warn };
        self
    }

    fn judge(&self, path: &Path, doubt: impl FnOnce() -> Option<Doubt>) -> Result<()> {
        if self.guard == Guard::None {
            return Ok(());
        }
        self.host.judge_doubt(path, doubt(), self.guard == Guard::Refuse)
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a text of at most `limit` bytes at a place below this directory.
    /// Symlinks are followed as long as they stay below it.
    pub fn read_beneath(&self, place: &Path, limit: u64) -> Result<String> {
        let path = self.path.join(place);
        let open = |errno| match errno {
            Errno::XDEV => Error::LeadsOutside { path: path.clone() },
            errno => Error::io("open", &path)(errno),
        };
        let top = self.directory.try_clone().map_err(Error::std_io("open", &path))?;
        let walk = Walk::beneath(top, &self.path, place).map_err(open)?;
        let (file, stat) = walk.open_file(&path)?;
        self.judge(&path, || {
            // The directory itself was judged with those above it.
            let passed = walk.way.iter().skip(1).find_map(step_doubt);
            passed.or_else(|| file_doubt(&file, &stat, &path))
        })?;
        utf8(read_all(file, stat, &path, limit)?, &path)
    }

    /// The names in it, sorted.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let listing = Error::io("list", &self.path);
        let entries = rustix::fs::Dir::read_from(&self.directory).map_err(listing)?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(Error::io("list", &self.path))?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The names in it with what is there, sorted by name; a link is a link.
    pub fn entries(&self) -> Result<Vec<(OsString, FileKind)>> {
        let entries =
            rustix::fs::Dir::read_from(&self.directory).map_err(Error::io("list", &self.path))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(Error::io("list", &self.path))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                FileType::Symlink => FileKind::Symlink,
                FileType::Unknown => {
                    match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => Stat::new(&stat).kind,
                        Err(Errno::NOENT) => continue,
                        Err(errno) => {
                            return Err(Error::io("inspect", &self.path.join(name))(errno));
                        }
                    }
                }
                _ => FileKind::Other,
            };
            found.push((name.to_owned(), kind));
        }
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    /// Reads a regular file of at most `limit` bytes; a link is an error.
    pub fn read(&self, name: &OsStr, limit: u64) -> Result<(Vec<u8>, Stat)> {
        let path = self.path.join(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP) => return Err(Error::Symlink { path }),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let stat = Stat::of(&file, &path)?;
        check_regular(&path, stat)?;
        self.judge(&path, || file_doubt(&file, &stat, &path))?;
        Ok((read_all(file.into(), stat, &path, limit)?, stat))
    }

    /// Opens a regular file below this directory; no symlink is followed.
    pub fn open_beneath(&self, place: &Path) -> Result<(File, Stat)> {
        let path = self.path.join(place);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match beneath::open(&self.directory, place, flags, Links::Refuse) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::XDEV) => return Err(Error::Symlink { path }),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let stat = Stat::of(&file, &path)?;
        check_regular(&path, stat)?;
        self.judge(&path, || file_doubt(&file, &stat, &path))?;
        Ok((file.into(), stat))
    }

    /// The text of a symlink in it.
    pub fn read_link(&self, name: &OsStr) -> Result<PathBuf> {
        let path = self.path.join(name);
        let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(Error::io("inspect", &path))?;
        let stat = Stat::new(&stat);
        self.judge(&path, || (stat.uid != 0).then(|| Doubt::new(&path, &stat)))?;
        let target = rustix::fs::readlinkat(&self.directory, name, Vec::new())
            .map_err(Error::io("read the link", &path))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Everything below this directory, each before what is in it and in the
    /// order of names. Symlinks are not followed.
    ///
    /// # Errors
    ///
    /// Fails if something cannot be listed, or there is more than the limit.
    pub fn walk(&self, limit: usize) -> Result<Vec<FolderEntry>> {
        let mut found = Vec::new();
        self.walk_into(Path::new(""), 0, limit, &mut found)?;
        Ok(found)
    }

    fn walk_into(
        &self,
        place: &Path,
        depth: usize,
        limit: usize,
        found: &mut Vec<FolderEntry>,
    ) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep { path: self.path.clone(), limit: MAX_DEPTH });
        }
        for (name, kind) in self.entries()? {
            // What another program is about to put in place is not there yet.
            if is_temporary_name(name.as_bytes()) {
                continue;
            }
            if found.len() == limit {
                return Err(Error::TooMany { path: self.path.clone(), limit });
            }
            let inner = place.join(&name);
            let mut entry = FolderEntry { place: inner, kind, stat: None, target: None };
            match kind {
                FileKind::File => entry.stat = Some(self.stat_of(&name)?),
                FileKind::Symlink => entry.target = Some(self.read_link(&name)?),
                FileKind::Directory | FileKind::Other => {}
            }
            let is_directory = kind == FileKind::Directory;
            let inner = entry.place.clone();
            found.push(entry);
            if is_directory && let Some(below) = self.folder(&name)? {
                below.walk_into(&inner, depth + 1, limit, found)?;
            }
        }
        Ok(())
    }

    fn stat_of(&self, name: &OsStr) -> Result<Stat> {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| Stat::new(&stat))
            .map_err(Error::io("inspect", &self.path.join(name)))
    }

    /// Whether what is read is judged: as root, and not of a private copy.
    pub fn is_judged(&self) -> bool {
        self.guard != Guard::None
    }

    /// Judges a file as if it was read; nothing of this name is fine.
    pub fn check(&self, name: &OsStr) -> Result<()> {
        let path = self.path.join(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let stat = Stat::of(&file, &path)?;
        self.judge(&path, || file_doubt(&file, &stat, &path))
    }

    /// Reads a text of at most `limit` bytes; `None` when there is nothing of
    /// this name. Links and everything else but regular files are errors.
    pub fn read_text(&self, name: &OsStr, limit: u64) -> Result<Option<(String, Stat)>> {
        let path = self.path.join(name);
        let Some(found) = self.lstat(name, &path)? else { return Ok(None) };
        check_regular(&path, found)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty())
            .map_err(Error::io("open", &path))?;
        let stat = Stat::of(&file, &path)?;
        check_regular(&path, stat)?;
        self.judge(&path, || file_doubt(&file, &stat, &path))?;
        let bytes = read_all(file.into(), stat, &path, limit)?;
        Ok(Some((utf8(bytes, &path)?, stat)))
    }

    /// Opens a directory in this one, which must not be a link; `None` when
    /// there is nothing of this name.
    pub fn folder(&self, name: &OsStr) -> Result<Option<Self>> {
        let path = self.path.join(name);
        let Some(found) = self.lstat(name, &path)? else { return Ok(None) };
        if found.kind != FileKind::Directory {
            return Err(Error::NotADirectory { path });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.directory, name, flags, Mode::empty())
            .map_err(Error::io("open", &path))?;
        if self.guard != Guard::None {
            let stat = Stat::of(&directory, &path)?;
            self.judge(&path, || folder_doubt(&directory, &stat, &path))?;
        }
        Ok(Some(Self { host: self.host.clone(), directory, path, guard: self.guard }))
    }

    fn lstat(&self, name: &OsStr, path: &Path) -> Result<Option<Stat>> {
        let stat = match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stat::new(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::io("inspect", path)(errno)),
        };
        if stat.kind == FileKind::Symlink {
            return Err(Error::Symlink { path: path.to_owned() });
        }
        Ok(Some(stat))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn files_and_directories_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/b"), "text").unwrap();
        std::fs::write(dir.path().join("d/a"), "").unwrap();
        let folder = Host::new().open_folder(dir.path()).unwrap().unwrap();
        assert_eq!(folder.path(), dir.path());
        let inner = folder.folder(name("d")).unwrap().unwrap();
        assert_eq!(inner.names().unwrap(), ["a", "b"]);
        assert_eq!(inner.read_text(name("b"), 10).unwrap().unwrap().0, "text");
        assert!(matches!(inner.read_text(name("b"), 3), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn nothing_is_not_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Host::new().open_folder(&dir.path().join("x")).unwrap().is_none());
        let folder = Host::new().open_folder(dir.path()).unwrap().unwrap();
        assert!(folder.read_text(name("x"), 10).unwrap().is_none());
        assert!(folder.folder(name("x")).unwrap().is_none());
    }

    #[test]
    fn links_are_followed_to_it_and_never_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/f"), "").unwrap();
        symlink(at("real"), at("link")).unwrap();
        symlink(at("real/f"), at("file")).unwrap();
        assert!(Host::new().open_folder(&at("link")).unwrap().is_some());
        let folder = Host::new().open_folder(dir.path()).unwrap().unwrap();
        assert!(matches!(folder.folder(name("link")), Err(Error::Symlink { .. })));
        assert!(matches!(folder.read_text(name("file"), 10), Err(Error::Symlink { .. })));
    }

    #[test]
    fn a_walk_sees_everything_and_follows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("b/c")).unwrap();
        std::fs::write(at("b/c/f"), "text").unwrap();
        std::fs::write(at("a"), "").unwrap();
        symlink("b", at("l")).unwrap();
        symlink("c/f", at("b/near")).unwrap();
        let folder = Host::new().open_folder(dir.path()).unwrap().unwrap();
        let shown = |entry: &FolderEntry| {
            let target = entry.target.as_ref().map(|target| format!(" -> {}", target.display()));
            format!("{}{}", entry.place.display(), target.unwrap_or_default())
        };
        let all: Vec<String> = folder.walk(6).unwrap().iter().map(shown).collect();
        assert_eq!(all, ["a", "b", "b/c", "b/c/f", "b/near -> c/f", "l -> b"]);
        assert!(matches!(folder.walk(5), Err(Error::TooMany { limit: 5, .. })));
        let (file, stat) = folder.open_beneath(Path::new("b/c/f")).unwrap();
        assert_eq!((std::io::read_to_string(file).unwrap(), stat.size), ("text".into(), 4));
        for link in ["l/c/f", "b/near", "../x"] {
            assert!(folder.open_beneath(Path::new(link)).is_err(), "{link}");
        }
        assert!(matches!(folder.open_beneath(Path::new("b")), Err(Error::NotAFile { .. })));
    }

    #[test]
    fn kinds_must_fit() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        assert!(Host::new().open_folder(&dir.path().join("f")).is_err());
        let folder = Host::new().open_folder(dir.path()).unwrap().unwrap();
        assert!(matches!(folder.folder(name("f")), Err(Error::NotADirectory { .. })));
        assert!(matches!(folder.read_text(name("d"), 10), Err(Error::NotAFile { .. })));
    }
}
