//! A directory below which files are created, and never elsewhere.
//!
//! Every name is resolved beneath the open directory, so a symlink to a path
//! outside it is an error, even if another process creates it at the last moment. Every entry is completed under a temporary name and replaces the old
//! one atomically.

mod begin;
mod new_file;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::file::mode;
use crate::journal::DigestsByInode;
use crate::marker::Marker;
use crate::{Error, FileKind, Host, Image, Result, Stat};
use begin::Made;
pub use new_file::NewFile;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How often others may get in between before it is no coincidence.
const MAX_ATTEMPTS: usize = 100;

/// A directory to create files in. Names are relative, without `..`; the empty
/// name is the directory itself.
#[derive(Debug)]
pub struct Destination {
    top: Arc<OwnedFd>,
    path: PathBuf,
    host: Host,
    dev: u64,
    /// Whether created files must survive a power failure.
    is_durable: bool,
    /// The directory that was used last.
    last: Option<(PathBuf, Arc<OwnedFd>)>,
    /// The name that things have until they are complete. There is one of them
    /// at a time.
    temporary: String,
    /// The name of the marker that says that not everything is in place.
    marker_name: Option<String>,
    marker: Option<Marker>,
    /// The directories that were made to have this one, while they are empty.
    made: Option<Made>,
    /// The path that appears last, after everything else is in place.
    final_name: Option<PathBuf>,
    /// The same when it is made.
    held: Option<Held>,
    /// Digests of files that got further names, for the history.
    linked: DigestsByInode,
}

/// Something complete under its temporary name.
#[derive(Debug)]
struct Held {
    parent: Arc<OwnedFd>,
    temporary: String,
    name: PathBuf,
    after: Option<Image>,
}

/// Owner, mode and times of a created entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryMetadata {
    /// Permission bits; those it was made with when not said.
    pub mode: Option<u32>,
    /// Owner and group; the caller when not said.
    pub owner: Option<(u32, u32)>,
    /// When it was last changed: seconds and nanoseconds.
    pub mtime: Option<(i64, u32)>,
}

impl EntryMetadata {
    fn times(&self) -> Option<Timestamps> {
        let (seconds, nanoseconds) = self.mtime?;
        Some(Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) as _ },
        })
    }
}

impl Host {
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

    /// The path that the destination was opened by, for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry at a name, symlinks not followed; a name that leads outside is
    /// an error.
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

    /// The target of the symlink at a name; `None` for everything else.
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

    /// Creates a directory. An existing directory stays, anything else is
    /// replaced.
    pub fn directory(&mut self, name: &Path) -> Result<()> {
        if name.as_os_str().is_empty() {
            return Ok(());
        }
        let parent = self.parent(name)?;
        if self.held.as_ref().is_some_and(|held| held.name == name) {
            self.discard_held();
        }
        let path = self.path.join(name);
        self.host.record_directory(&*parent, base(name), &path)?;
        for _ in 0..MAX_ATTEMPTS {
            // Others may enter when it is complete.
            match rustix::fs::mkdirat(&*parent, base(name), mode(0o700)) {
                Ok(()) => {
                    self.host.complete_record_at(&*parent, base(name), &path)?;
                    self.note(name);
                    return Ok(());
                }
                Err(Errno::EXIST) => {
                    // What cannot be inspected may be a directory full of files.
                    match rustix::fs::statat(&*parent, base(name), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) if Stat::new(&stat).kind == FileKind::Directory => return Ok(()),
                        Ok(_) => self.exchange_for_directory(&parent, name)?,
                        Err(Errno::NOENT) => {}
                        Err(errno) => return Err(self.io("inspect", name)(errno)),
                    }
                }
                Err(errno) => return Err(self.io("create", name)(errno)),
            }
        }
        Err(self.io("create", name)(Errno::EXIST))
    }

    /// Puts a directory where something else is, without a moment in which
    /// nothing is there, if the file system can do that.
    fn exchange_for_directory(&mut self, parent: &OwnedFd, name: &Path) -> Result<()> {
        // It may be what leads to the directory that was used last.
        self.last = None;
        let temporary = Path::new(&self.temporary);
        self.make(parent, &self.temporary, name, |parent, temporary| {
            rustix::fs::mkdirat(parent, temporary, mode(0o700))
        })?;
        let exchange = RenameFlags::EXCHANGE;
        match rustix::fs::renameat_with(parent, temporary, parent, base(name), exchange) {
            Ok(()) => {
                self.host.complete_record_at(parent, base(name), &self.path.join(name))?;
                self.note(name);
                // Another process has created a directory there meanwhile: keep it.
                if is_directory(parent.as_fd(), temporary) {
                    rustix::fs::renameat_with(parent, temporary, parent, base(name), exchange)
                        .map_err(self.io("replace", name))?;
                }
                remove(parent, temporary).map_err(self.io("replace", name))
            }
            // It is gone meanwhile, or the file system cannot.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
                remove(parent, temporary).map_err(self.io("replace", name))?;
                self.give_way(parent, name)
            }
            Err(errno) => Err(self.io("replace", name)(errno)),
        }
    }

    /// Makes a file that is written now, and takes the place of what is there
    /// by [`NewFile::finish`].
    pub fn file(&mut self, name: &Path) -> Result<NewFile<'_>> {
        let parent = self.parent(name)?;
        let temporary = self.temporary_for(name);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // No other user can read it before it is complete and has its owner.
        let file = self.make(&parent, &temporary, name, |parent, temporary| {
            rustix::fs::openat(parent, temporary, flags, mode(0o600))
        })?;
        Ok(NewFile::new(self, file.into(), parent, temporary, name))
    }

    /// Creates a symlink, replacing what exists. The mode of a symlink has no
    /// meaning.
    pub fn symlink(&mut self, name: &Path, target: &Path, restored: &EntryMetadata) -> Result<()> {
        let parent = self.parent(name)?;
        let temporary = self.temporary_for(name);
        self.make(&parent, &temporary, name, |parent, temporary| {
            rustix::fs::symlinkat(target, parent, temporary)
        })?;
        let restored = EntryMetadata { mode: None, ..*restored };
        let result = self.restore_in(&parent, Path::new(&temporary), name, &restored);
        let (uid, gid) = restored.owner.unwrap_or_else(|| self.host.whoami());
        let after = Image::Symlink { uid, gid, target: target.to_owned() };
        let placed = result.and_then(|()| self.place(&parent, &temporary, name, Some(after)));
        self.last = None;
        if placed.is_err() {
            let _ = remove(&parent, Path::new(&temporary));
        }
        placed
    }

    /// Creates a hard link to `existing`, replacing what exists.
    pub fn hard_link(&mut self, name: &Path, existing: &Path) -> Result<()> {
        let from = self.parent(existing)?;
        let parent = self.parent(name)?;
        let held = self
            .held
            .as_ref()
            .filter(|held| base(&held.name) == base(existing) && is_same(&*held.parent, &*from));
        let source =
            held.map_or_else(|| base(existing).to_owned(), |held| PathBuf::from(&held.temporary));
        let find = |at: &OwnedFd, name: &Path| {
            rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| (stat.st_dev, stat.st_ino))
        };
        if let (Ok(one), Ok(other)) = (find(&from, &source), find(&parent, base(name)))
            && one == other
        {
            return Ok(());
        }
        if held.is_some_and(|held| held.name == name) {
            return Ok(());
        }
        let temporary = self.temporary_for(name);
        self.make(&parent, &temporary, name, |parent, temporary| {
            let link = || rustix::fs::linkat(&*from, &source, parent, temporary, AtFlags::empty());
            // What is just being replaced has no name to begin with.
            let mut linked = link();
            for _ in 0..MAX_ATTEMPTS {
                if linked != Err(Errno::NOENT) || find(&from, &source).is_err() {
                    break;
                }
                linked = link();
            }
            linked
        })?;
        let path = self.path.join(name);
        let (host, linked) = (&self.host, &mut self.linked);
        let after = host.journal().is_some().then(|| {
            host.image_at(&*parent, Path::new(&temporary), &path, |file, stat| {
                if let Some(digest) = linked.find(stat) {
                    return Ok(Some(digest));
                }
                let digest = Some(host.digest(file, &path, stat.size)?);
                linked.add(stat, digest);
                Ok(digest)
            })
        });
        let placed =
            after.transpose().and_then(|after| self.place(&parent, &temporary, name, after));
        self.last = None;
        // Renaming changes nothing where both are names of one file by now.
        if self.held.as_ref().is_none_or(|held| held.temporary != temporary) {
            let _ = remove(&parent, Path::new(&temporary));
        }
        placed
    }

    /// Sets the name that must appear last, when everything else is in place.
    pub fn set_final(&mut self, name: &Path) {
        self.final_name = Some(name.to_owned());
    }

    /// Gives the last name to what is to have it; what it is, if there is
    /// anything.
    pub fn place_final(&mut self) -> Result<Option<PathBuf>> {
        self.final_name = None;
        let Some(held) = self.held.take() else { return Ok(None) };
        let placed = self.place(&held.parent, &held.temporary, &held.name, held.after.clone());
        if placed.is_err() {
            self.held = Some(held);
            return placed.map(|()| None);
        }
        Ok(Some(held.name))
    }

    /// Marks the extraction as complete. Unless syncing is off, everything is
    /// on disk before the marker is removed.
    pub fn complete(mut self) -> Result<()> {
        self.place_final()?;
        let Some(marker) = self.marker.take() else { return Ok(()) };
        if self.is_durable {
            self.host.sync()?;
        }
        marker.remove()?;
        self.host.inner.barrier.hold().directory_changed(&self.path, self.dev);
        Ok(())
    }

    fn discard_held(&mut self) {
        if let Some(held) = self.held.take() {
            let _ = remove(&held.parent, Path::new(&held.temporary));
        }
    }

    /// The name that something has until it takes this one.
    fn temporary_for(&self, name: &Path) -> String {
        if self.final_name.as_deref() == Some(name) {
            return format!("{}-final", self.temporary);
        }
        self.temporary.clone()
    }

    /// Gives something complete its name, or keeps it for the end.
    fn place(
        &mut self,
        parent: &Arc<OwnedFd>,
        temporary: &str,
        name: &Path,
        after: Option<Image>,
    ) -> Result<()> {
        if self.final_name.as_deref() == Some(name) {
            let (parent, temporary, name) =
                (Arc::clone(parent), temporary.to_owned(), name.to_owned());
            // What was held under this name before was replaced under its
            // temporary name already.
            self.held = Some(Held { parent, temporary, name, after });
            return Ok(());
        }
        self.host.record_change(&**parent, base(name), &self.path.join(name), |_| after)?;
        let rename = || rustix::fs::renameat(&**parent, temporary, &**parent, base(name));
        let renamed = match rename() {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                self.give_way(parent, name)?;
                rename()
            }
            other => other,
        };
        renamed.map_err(self.io("create", name))?;
        self.note(name);
        Ok(())
    }

    /// Gives a directory or link its attributes. The mode of a link means
    /// nothing.
    pub fn restore(&mut self, name: &Path, restored: &EntryMetadata) -> Result<()> {
        let Some(parent) = self.existing_parent(name)? else { return Ok(()) };
        let path = self.path.join(name);
        if self.host.journal().is_some()
            && let Some(stat) = self.lstat(name)?
        {
            self.host.record_attributes(&path, None, &stat, stat.attributes(), false)?;
        }
        self.restore_in(&parent, base(name), name, restored)?;
        self.host.complete_record_at(&*parent, base(name), &path)
    }

    fn restore_in(
        &self,
        parent: &OwnedFd,
        base: &Path,
        name: &Path,
        restored: &EntryMetadata,
    ) -> Result<()> {
        if let Some((uid, gid)) = restored.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(parent, base, Some(uid), Some(gid), flags)
                .map_err(self.io("set the owner of", name))?;
        }
        if let Some(bits) = restored.mode {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(parent, base, flags, Mode::empty()) {
                Ok(directory) => rustix::fs::fchmod(directory, mode(bits)),
                // A link, or something that took the directory's place.
                Err(Errno::LOOP | Errno::NOTDIR) => Ok(()),
                Err(errno) => Err(errno),
            }
            .map_err(self.io("set the mode of", name))?;
        }
        if let Some(times) = restored.times() {
            rustix::fs::utimensat(parent, base, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(self.io("set the time of", name))?;
        }
        Ok(())
    }

    /// Makes something under its temporary name; what a killed run left there
    /// goes.
    fn make<T>(
        &self,
        parent: &OwnedFd,
        temporary: &str,
        name: &Path,
        make: impl Fn(BorrowedFd<'_>, &Path) -> Result<T, Errno>,
    ) -> Result<T> {
        let temporary = Path::new(temporary);
        let result = match make(parent.as_fd(), temporary) {
            Err(Errno::EXIST) => {
                remove(parent, temporary).map_err(self.io("create", name))?;
                make(parent.as_fd(), temporary)
            }
            other => other,
        };
        result.map_err(self.io("create", name))
    }

    /// Something has a new name.
    fn note(&self, name: &Path) {
        if self.is_durable {
            let path = self.path.join(name);
            self.host.inner.barrier.hold().file_changed(&path, self.dev);
        }
    }

    fn give_way(&mut self, parent: &OwnedFd, name: &Path) -> Result<()> {
        // It may be what leads to the directory that was used last.
        self.last = None;
        match remove(parent, base(name)) {
            Ok(()) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(Error::InTheWay { path: self.path.join(name) })
            }
            Err(errno) => Err(self.io("replace", name)(errno)),
        }
    }

    /// The directory that a name lies in, made if need be.
    fn parent(&mut self, name: &Path) -> Result<Arc<OwnedFd>> {
        if let Some(found) = self.existing_parent(name)? {
            return Ok(found);
        }
        let missing = name.parent().unwrap_or(Path::new(""));
        let above = self.parent(missing)?;
        let path = self.path.join(missing);
        self.host.record_directory(&*above, base(missing), &path)?;
        match rustix::fs::mkdirat(&*above, base(missing), mode(0o777)) {
            Ok(()) => self.host.complete_record_at(&*above, base(missing), &path)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.io("create directory", missing)(errno)),
        }
        self.note(missing);
        self.existing_parent(name)?
            .ok_or_else(|| Error::NotADirectory { path: self.path.join(missing) })
    }

    /// The directory that a name lies in, `None` if it is not there.
    fn existing_parent(&mut self, name: &Path) -> Result<Option<Arc<OwnedFd>>> {
        let parent = name.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok(Some(Arc::clone(&self.top)));
        }
        if let Some((known, directory)) = &self.last
            && known == parent
        {
            return Ok(Some(Arc::clone(directory)));
        }
        match beneath::open(&self.top, parent, DIRECTORY, Links::Follow) {
            Ok(directory) => {
                let directory = Arc::new(directory);
                self.last = Some((parent.to_owned(), Arc::clone(&directory)));
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

fn is_same(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Removes what has a name, be it an empty directory; nothing there is fine.
fn remove(parent: &OwnedFd, name: &Path) -> Result<(), Errno> {
    let removed = match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) if is_directory(parent.as_fd(), name) => {
            rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
        }
        other => other,
    };
    if removed == Err(Errno::NOENT) { Ok(()) } else { removed }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.discard_held();
        // Nothing was begun: what was made for nothing goes again.
        if let Some(made) = self.made.take() {
            if let Some(marker) = self.marker.take() {
                let _ = marker.remove();
            }
            made.undo();
        }
    }
}
