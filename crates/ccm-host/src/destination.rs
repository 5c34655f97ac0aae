//! A directory below which files are made, and never elsewhere.
//!
//! Every name is resolved by the kernel beneath the directory that is held
//! open: a link that leads out is an error, whoever put it there and when.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::file::mode;
use crate::{Error, FileKind, Host, Result, Stat};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory to make files below. Names are relative, without `..`; the empty
/// name is the directory itself.
#[derive(Debug)]
pub struct Destination {
    top: Rc<OwnedFd>,
    path: PathBuf,
    host: Host,
    dev: u64,
    /// What is made must survive a power failure.
    is_durable: bool,
    /// The directory that was used last.
    last: Option<(PathBuf, Rc<OwnedFd>)>,
}

/// What something that was made gets besides its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Permission bits; those it was made with when not said.
    pub mode: Option<u32>,
    /// Owner and group; the caller when not said.
    pub owner: Option<(u32, u32)>,
    /// When it was last changed: seconds and nanoseconds.
    pub mtime: Option<(i64, u32)>,
}

impl Restored {
    fn times(&self) -> Option<Timestamps> {
        let (seconds, nanoseconds) = self.mtime?;
        Some(Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) as _ },
        })
    }
}

impl Host {
    /// Opens a directory to make files below. Symlinks to it are followed, as
    /// root only those that lead to what their owner owns.
    pub fn open_destination(&self, path: &Path) -> Result<Destination> {
        let top = self.open_managed(path)?;
        self.forget_parent();
        let dev = Stat::of(&top, path)?.dev;
        let (path, host) = (path.to_owned(), self.clone());
        Ok(Destination { top: Rc::new(top), path, host, dev, is_durable: true, last: None })
    }

    /// The permission bits that new files do not get.
    pub fn umask(&self) -> u32 {
        // Asking the system would change it for a moment.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|bits| u32::from_str_radix(bits.trim(), 8).ok()).unwrap_or(0o022)
    }
}

impl Destination {
    /// Says that nothing of it need survive a power failure.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.is_durable = false;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is at a name itself; a name that leads out is an error.
    pub fn lstat(&mut self, name: &Path) -> Result<Option<Stat>> {
        if name.as_os_str().is_empty() {
            return Stat::of(&*self.top, &self.path).map(Some);
        }
        let Some(parent) = self.existing_parent(name)? else { return Ok(None) };
        match rustix::fs::statat(&*parent, base(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stat::new(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(self.io("inspect", name)(errno)),
        }
    }

    /// What a link at a name says; `None` for everything else.
    pub fn read_link(&mut self, name: &Path) -> Result<Option<PathBuf>> {
        use std::os::unix::ffi::OsStringExt as _;
        let Some(parent) = self.existing_parent(name)? else { return Ok(None) };
        match rustix::fs::readlinkat(&*parent, base(name), Vec::new()) {
            Ok(target) => {
                Ok(Some(PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes()))))
            }
            Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(self.io("read the link", name)(errno)),
        }
    }

    /// Makes a directory; one that is there stays, anything else gives way.
    pub fn directory(&mut self, name: &Path) -> Result<()> {
        if name.as_os_str().is_empty() {
            return Ok(());
        }
        let parent = self.parent(name)?;
        // Others may enter when it is complete.
        self.make(&parent, name, |parent, base| {
            match rustix::fs::mkdirat(parent, base, mode(0o700)) {
                Err(Errno::EXIST) if is_directory(parent, base) => Ok(()),
                other => other,
            }
        })
    }

    /// Makes a file, in place of what is there, to be written now.
    pub fn file(&mut self, name: &Path, bits: u32) -> Result<NewFile> {
        let parent = self.parent(name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.make(&parent, name, |parent, base| {
            rustix::fs::openat(parent, base, flags, mode(bits))
        })?;
        Ok(NewFile { file: file.into(), path: self.path.join(name), ends_in_hole: false })
    }

    /// Makes a symbolic link, in place of what is there.
    pub fn symlink(&mut self, name: &Path, target: &Path) -> Result<()> {
        let parent = self.parent(name)?;
        self.make(&parent, name, |parent, base| rustix::fs::symlinkat(target, parent, base))
    }

    /// Makes another name for what is at `existing`, in place of what is there.
    pub fn hard_link(&mut self, name: &Path, existing: &Path) -> Result<()> {
        let from = self.parent(existing)?;
        let parent = self.parent(name)?;
        let is_itself = match (
            rustix::fs::statat(&*from, base(existing), AtFlags::SYMLINK_NOFOLLOW),
            rustix::fs::statat(&*parent, base(name), AtFlags::SYMLINK_NOFOLLOW),
        ) {
            (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
            _ => false,
        };
        if is_itself {
            return Ok(());
        }
        self.make(&parent, name, |parent, name| {
            rustix::fs::linkat(&*from, base(existing), parent, name, AtFlags::empty())
        })
    }

    /// Gives a directory or link its attributes. The mode of a link means
    /// nothing.
    pub fn restore(&mut self, name: &Path, restored: &Restored) -> Result<()> {
        let Some(parent) = self.existing_parent(name)? else { return Ok(()) };
        let base = base(name);
        if let Some((uid, gid)) = restored.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(&*parent, base, Some(uid), Some(gid), flags)
                .map_err(self.io("set the owner of", name))?;
        }
        if let Some(bits) = restored.mode {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&*parent, base, flags, Mode::empty()) {
                Ok(directory) => rustix::fs::fchmod(directory, mode(bits)),
                // A link, or something that took the directory's place.
                Err(Errno::LOOP | Errno::NOTDIR) => Ok(()),
                Err(errno) => Err(errno),
            }
            .map_err(self.io("set the mode of", name))?;
        }
        if let Some(times) = restored.times() {
            rustix::fs::utimensat(&*parent, base, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(self.io("set the time of", name))?;
        }
        Ok(())
    }

    /// Makes something at a name; what is there and in the way gives way, unless
    /// it is a directory with entries.
    fn make<T>(
        &mut self,
        parent: &OwnedFd,
        name: &Path,
        make: impl Fn(BorrowedFd<'_>, &Path) -> Result<T, Errno>,
    ) -> Result<T> {
        let last = base(name);
        let result = match make(parent.as_fd(), last) {
            Err(Errno::EXIST) => {
                self.give_way(parent, name)?;
                make(parent.as_fd(), last)
            }
            other => other,
        };
        let thing = result.map_err(self.io("create", name))?;
        if self.is_durable {
            let path = self.path.join(name);
            self.host.inner.barrier.borrow_mut().file_changed(&path, self.dev);
        }
        Ok(thing)
    }

    fn give_way(&mut self, parent: &OwnedFd, name: &Path) -> Result<()> {
        // It may be what leads to the directory that was used last.
        self.last = None;
        let removed = match rustix::fs::unlinkat(parent, base(name), AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if is_directory(parent.as_fd(), base(name)) => {
                rustix::fs::unlinkat(parent, base(name), AtFlags::REMOVEDIR)
            }
            other => other,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(Error::InTheWay { path: self.path.join(name) })
            }
            Err(errno) => Err(self.io("replace", name)(errno)),
        }
    }

    /// The directory that a name lies in, made if need be.
    fn parent(&mut self, name: &Path) -> Result<Rc<OwnedFd>> {
        if let Some(found) = self.existing_parent(name)? {
            return Ok(found);
        }
        let missing = name.parent().unwrap_or(Path::new(""));
        let above = self.parent(missing)?;
        match rustix::fs::mkdirat(&*above, base(missing), mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.io("create directory", missing)(errno)),
        }
        if self.is_durable {
            let path = self.path.join(missing);
            self.host.inner.barrier.borrow_mut().file_changed(&path, self.dev);
        }
        self.existing_parent(name)?
            .ok_or_else(|| Error::NotADirectory { path: self.path.join(missing) })
    }

    /// The directory that a name lies in, `None` if it is not there.
    fn existing_parent(&mut self, name: &Path) -> Result<Option<Rc<OwnedFd>>> {
        let parent = name.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok(Some(Rc::clone(&self.top)));
        }
        if let Some((known, directory)) = &self.last
            && known == parent
        {
            return Ok(Some(Rc::clone(directory)));
        }
        match open_beneath(&self.top, parent) {
            Ok(directory) => {
                let directory = Rc::new(directory);
                self.last = Some((parent.to_owned(), Rc::clone(&directory)));
                Ok(Some(directory))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) => Err(Error::NotADirectory { path: self.path.join(parent) }),
            Err(Errno::XDEV | Errno::LOOP) => {
                Err(Error::LeadsOutside { path: self.path.join(parent) })
            }
            Err(errno) => Err(self.io("open", parent)(errno)),
        }
    }

    fn io(&self, action: &'static str, name: &Path) -> impl FnOnce(Errno) -> Error + use<> {
        Error::io(action, &self.path.join(name))
    }
}

/// The last part of a name; of the tree itself, its own entry.
fn base(name: &Path) -> &Path {
    name.file_name().map_or(Path::new("."), Path::new)
}

fn is_directory(parent: BorrowedFd<'_>, name: &Path) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| Stat::new(&stat).kind == FileKind::Directory)
}

/// Opens a directory; links are followed as long as they stay beneath.
fn open_beneath(top: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(top, name, DIRECTORY, Mode::empty(), resolve) {
        // An old kernel, or a sandbox that knows only old calls.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(top, name),
        // The kernel could not be sure while something was being renamed.
        Err(Errno::AGAIN) => rustix::fs::openat2(top, name, DIRECTORY, Mode::empty(), resolve),
        other => other,
    }
}

/// Opens a directory without following any link.
fn open_step_by_step(top: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    let mut at = rustix::fs::openat(top, ".", flags, Mode::empty())?;
    for part in name.components() {
        let std::path::Component::Normal(part) = part else { return Err(Errno::XDEV) };
        at = match rustix::fs::openat(&at, part, flags, Mode::empty()) {
            // With both flags the system says so of a link too.
            Err(Errno::NOTDIR) if !is_directory(at.as_fd(), Path::new(part)) => {
                let stat = rustix::fs::statat(&at, part, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_link = Stat::new(&stat).kind == FileKind::Symlink;
                return Err(if is_link { Errno::LOOP } else { Errno::NOTDIR });
            }
            other => other?,
        };
    }
    Ok(at)
}

/// A file that is being written.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    ends_in_hole: bool,
}

impl NewFile {
    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.ends_in_hole = false;
        self.file.write_all(bytes).map_err(Error::std_io("write", &self.path))
    }

    /// Leaves out bytes, which read as zero.
    pub fn hole(&mut self, length: u64) -> Result<()> {
        let skip = i64::try_from(length).map_err(io::Error::other);
        let skipped = skip.and_then(|length| self.file.seek(SeekFrom::Current(length)));
        skipped.map_err(Error::std_io("write", &self.path))?;
        self.ends_in_hole |= length > 0;
        Ok(())
    }

    /// Gives it its attributes, when its content is complete.
    pub fn finish(mut self, restored: &Restored) -> Result<()> {
        if self.ends_in_hole {
            let end = self.file.stream_position();
            let sized = end.and_then(|end| self.file.set_len(end));
            sized.map_err(Error::std_io("write", &self.path))?;
        }
        if let Some((uid, gid)) = restored.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            rustix::fs::fchown(&self.file, Some(uid), Some(gid))
                .map_err(Error::io("set the owner of", &self.path))?;
        }
        if let Some(bits) = restored.mode {
            rustix::fs::fchmod(&self.file, mode(bits))
                .map_err(Error::io("set the mode of", &self.path))?;
        }
        if let Some(times) = restored.times() {
            rustix::fs::futimens(&self.file, &times)
                .map_err(Error::io("set the time of", &self.path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn destination() -> (tempfile::TempDir, Destination) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        let into = Host::new().open_destination(&dir.path().join("in")).unwrap();
        (dir, into)
    }

    fn write(into: &mut Destination, name: &str) -> Result<()> {
        let mut file = into.file(Path::new(name), 0o600)?;
        file.write(b"x")?;
        file.finish(&Restored::default())
    }

    #[test]
    fn files_are_made_with_their_parents_and_in_place_of_others() {
        let (dir, mut into) = destination();
        write(&mut into, "a/b/c").unwrap();
        write(&mut into, "a/b/c").unwrap();
        assert_eq!(std::fs::read(dir.path().join("in/a/b/c")).unwrap(), b"x");
        into.symlink(Path::new("a/b/c"), Path::new("elsewhere")).unwrap();
        into.hard_link(Path::new("h"), Path::new("a/b/c")).unwrap();
        into.hard_link(Path::new("h"), Path::new("a/b/c")).unwrap();
        assert_eq!(into.read_link(Path::new("h")).unwrap().unwrap(), Path::new("elsewhere"));
        into.directory(Path::new("h")).unwrap();
        assert!(dir.path().join("in/h").is_dir());
        write(&mut into, "h").unwrap();
        assert!(dir.path().join("in/h").is_file());
        let error = write(&mut into, "a").unwrap_err();
        assert!(matches!(error, Error::InTheWay { .. }), "{error}");
        let error = write(&mut into, "h/x").unwrap_err();
        assert!(matches!(error, Error::NotADirectory { .. }), "{error}");
    }

    #[test]
    fn links_lead_within_but_never_out() {
        let (dir, mut into) = destination();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("in/real")).unwrap();
        symlink("real", at("in/inner")).unwrap();
        symlink("../out", at("in/outer")).unwrap();
        symlink(at("out"), at("in/absolute")).unwrap();
        symlink(at("in/real"), at("in/back")).unwrap();
        write(&mut into, "inner/f").unwrap();
        assert!(at("in/real/f").exists());
        for name in ["outer/f", "absolute/f", "back/f", "outer/new/f", "inner/../../out/f"] {
            let error = write(&mut into, name).unwrap_err();
            assert!(matches!(error, Error::LeadsOutside { .. }), "{name}: {error}");
        }
        for name in ["outer/f", "absolute/f"] {
            assert!(into.hard_link(Path::new("h"), Path::new(name)).is_err());
            assert!(into.directory(Path::new(name)).is_err());
            assert!(into.symlink(Path::new(name), Path::new("x")).is_err());
            assert!(into.lstat(Path::new(name)).is_err());
        }
        assert_eq!(std::fs::read_dir(at("out")).unwrap().count(), 0);
    }

    #[test]
    fn without_the_new_call_no_link_is_followed_at_all() {
        let (dir, into) = destination();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("in/real/deep")).unwrap();
        std::fs::write(at("in/file"), "").unwrap();
        symlink("real", at("in/inner")).unwrap();
        let open = |name: &str| open_step_by_step(&into.top, Path::new(name)).map(drop);
        assert_eq!(open("real/deep"), Ok(()));
        assert_eq!(open("inner/deep"), Err(Errno::LOOP));
        assert_eq!(open("file"), Err(Errno::NOTDIR));
        assert_eq!(open("none"), Err(Errno::NOENT));
        assert_eq!(open("real/../.."), Err(Errno::XDEV));
    }

    #[test]
    fn holes_and_attributes() {
        use std::os::unix::fs::MetadataExt as _;
        let (dir, mut into) = destination();
        let mut file = into.file(Path::new("f"), 0o600).unwrap();
        file.hole(1 << 20).unwrap();
        file.write(b"x").unwrap();
        file.hole(5).unwrap();
        let restored = Restored { mode: Some(0o444), owner: None, mtime: Some((1_000_000_000, 5)) };
        file.finish(&restored).unwrap();
        let meta = std::fs::metadata(dir.path().join("in/f")).unwrap();
        assert_eq!((meta.len(), meta.mode() & 0o7777), ((1 << 20) + 6, 0o444));
        assert_eq!((meta.mtime(), meta.mtime_nsec()), (1_000_000_000, 5));
        assert!(meta.blocks() < 64, "{}", meta.blocks());
        into.restore(Path::new(""), &restored).unwrap();
        let meta = std::fs::metadata(dir.path().join("in")).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.mtime()), (0o444, 1_000_000_000));
    }
}
