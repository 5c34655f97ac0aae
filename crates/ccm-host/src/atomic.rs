//! Atomic replacement of files.
//!
//! ccm writes content, owner and mode to a temporary file beside the target and
//! renames it. The writer holds a lock on the temporary file, so that a later
//! run can distinguish leftovers of a killed run from files in use, and remove
//! them.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::digest::copy_digested;
use crate::extended::{AccessList, is_foreign, keep_extended_attributes, name_of, remove_lists};
use crate::file::mode;
use crate::{Digest, Error, FileKind, Host, Image, Result, Stat};

/// Names of temporary files: this and 24 hexadecimal digits.
const PREFIX: &str = ".ccm-";
const NAME_LENGTH: usize = PREFIX.len() + 24;

/// Owner, group and permission bits of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attributes {
    /// Numeric ID of the owner.
    pub uid: u32,
    /// Numeric ID of the group.
    pub gid: u32,
    /// The nine permission bits.
    pub mode: u32,
}

impl Attributes {
    /// Whether users other than root can write a file with these attributes.
    pub fn is_writable_by_others(&self) -> bool {
        let by_owner = self.uid != 0;
        let by_group = self.mode & 0o020 != 0 && self.gid != 0;
        let by_all = self.mode & 0o002 != 0;
        by_owner || by_group || by_all
    }

    pub(crate) fn ids(&self) -> (rustix::fs::Uid, rustix::fs::Gid) {
        (rustix::fs::Uid::from_raw(self.uid), rustix::fs::Gid::from_raw(self.gid))
    }
}

/// New content of a file.
pub enum Content<'a> {
    /// Content that is in memory already.
    Bytes(&'a [u8]),
    /// The content of this file, from its current position.
    Copy(File),
}

impl Host {
    /// Makes `path` a regular file with this content and these attributes,
    /// atomically. The content is on disk after [`Host::sync`].
    pub fn replace(&self, path: &Path, content: Content<'_>, wanted: &Attributes) -> Result<()> {
        let (parent, name) = self.open_parent(path)?;
        self.replace_in(&parent, name, path, content, wanted)
    }

    /// As [`Host::replace`], for a path at which nothing existed a moment ago:
    /// saves one system call. If a file has appeared since, it is replaced.
    pub fn create(&self, path: &Path, content: Content<'_>, wanted: &Attributes) -> Result<()> {
        let (parent, name) = self.open_parent(path)?;
        let (temporary, created, written) = self.write_beside(&parent, path, content)?;
        let after = written.map(|written| written.image(wanted));
        self.record_new(path, || after.clone())?;
        temporary.take_free_or_any_name(name, path, created, wanted, after)?;
        self.inner.barrier.hold().file_changed(path, created.dev);
        Ok(())
    }

    /// As [`Host::replace`], for ccm's own files: they need not survive a power
    /// failure, and no history keeps them.
    pub fn replace_unsynced(
        &self,
        path: &Path,
        content: Content<'_>,
        wanted: &Attributes,
    ) -> Result<Stat> {
        let (parent, name) = self.open_parent(path)?;
        let (temporary, created, _) = self.write_beside(&parent, path, content)?;
        temporary.take_the_name(name, path, created, wanted)?;
        Ok(created)
    }

    /// As [`Host::replace`], in a directory that is held open; `path` is where it
    /// leads.
    pub(crate) fn replace_in(
        &self,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        content: Content<'_>,
        wanted: &Attributes,
    ) -> Result<()> {
        let (temporary, created, written) = self.write_beside(parent, path, content)?;
        self.record_change(parent, name, path, |_| written.map(|written| written.image(wanted)))?;
        temporary.take_the_name(name, path, created, wanted)?;
        self.inner.barrier.hold().file_changed(path, created.dev);
        Ok(())
    }

    /// Makes a new file in a directory that is held open; false if something has
    /// the name already.
    pub(crate) fn create_in(
        &self,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        content: Content<'_>,
        wanted: &Attributes,
    ) -> Result<bool> {
        let (temporary, created, written) = self.write_beside(parent, path, content)?;
        self.record_new(path, || written.map(|written| written.image(wanted)))?;
        temporary.set_owner(path, created, wanted)?;
        rustix::fs::fchmod(&temporary.file, mode(wanted.mode))
            .map_err(Error::io("set the mode of", path))?;
        match temporary.rename(name, path, false) {
            Ok(()) => {}
            Err(Error::Rename { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.inner.barrier.hold().file_changed(path, created.dev);
        Ok(true)
    }

    /// Writes the content for `path` to a temporary file in the same directory.
    fn write_beside<'a>(
        &self,
        parent: &'a OwnedFd,
        path: &Path,
        content: Content<'_>,
    ) -> Result<(Temporary<&'a OwnedFd>, Stat, Option<Written>)> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.sweep(parent, directory);
        let (mut temporary, created) = Temporary::create(self, parent, directory)?;
        let failed = Error::std_io("write", path);
        let is_recorded = self.journal().is_some();
        let written = match content {
            Content::Bytes(bytes) => {
                temporary.file.write_all(bytes).map_err(failed)?;
                let size = bytes.len() as u64;
                is_recorded.then(|| Written { size, digest: Digest::of(bytes) })
            }
            Content::Copy(mut from) if is_recorded => {
                let copied = copy_digested(&mut from, &mut temporary.file).map_err(failed)?;
                Some(Written { size: copied.0, digest: copied.1 })
            }
            Content::Copy(mut from) => {
                io::copy(&mut from, &mut temporary.file).map_err(failed)?;
                None
            }
        };
        Ok((temporary, created, written))
    }

    /// Sets owner, group and the nine permission bits of an existing file or
    /// directory, and keeps other bits, except that setuid and setgid bits do
    /// not survive a change of owner. Refuses a symlink, so that nothing is
    /// changed through it.
    ///
    /// Access control lists stay only if root or the wanted owner can have set
    /// them: another user's would allow that user what the mode denies.
    pub fn set_attributes(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = if path.file_name().is_some() {
            let (parent, name) = self.open_parent(path)?;
            rustix::fs::openat(&*parent, name, flags, Mode::empty())
        } else {
            rustix::fs::open(path, flags, Mode::empty())
        };
        let file = file.map_err(Error::io("open", path))?;
        let have = Stat::of(&file, path)?;
        if have.kind == FileKind::Symlink {
            return Err(Error::NotAFile { path: path.to_owned(), found: "a symlink" });
        }
        let after = Attributes { mode: resulting_mode(&have, wanted), ..*wanted };
        self.record_attributes(path, Some(&file), &have, after, true)?;
        set_attributes_of(&file, path, &have, wanted)?;
        self.inner.barrier.hold().file_changed(path, have.dev);
        Ok(())
    }

    /// Opens the directory that a path lies in, for use as a base.
    pub(crate) fn open_parent<'a>(&self, path: &'a Path) -> Result<(Arc<OwnedFd>, &'a Path)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::io("manage", path)(Errno::INVAL));
        };
        if let Some((known, directory)) = &*self.inner.parent.hold()
            && known == parent
        {
            return Ok((Arc::clone(directory), Path::new(name)));
        }
        let directory = Arc::new(self.open_managed(parent)?);
        self.inner.parent.set(Some((parent.to_owned(), Arc::clone(&directory))));
        Ok((directory, Path::new(name)))
    }

    /// Removes leftover temporary files of killed runs from a directory.
    pub fn remove_leftovers(&self, directory: &Path) -> Result<()> {
        let open = self.open_managed(directory)?;
        self.sweep(&open, directory);
        Ok(())
    }

    /// The names of leftover temporary files of killed runs in a directory.
    pub fn leftovers(&self, directory: &Path) -> Result<Vec<std::ffi::OsString>> {
        let open = self.open_managed(directory)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::openat(&open, ".", flags, Mode::empty())
            .map_err(Error::io("open", directory))?;
        let names = crate::remove::list(&open, directory)?;
        let is_left = |name: &std::ffi::CString| {
            is_temporary_name(name.to_bytes()) && abandoned(&open, name).is_some()
        };
        Ok(names.into_iter().filter(is_left).map(|name| crate::remove::lossless(&name)).collect())
    }

    /// Removes what killed runs left in a directory, once per run.
    pub(crate) fn sweep(&self, directory: &OwnedFd, path: &Path) {
        if self.inner.swept.hold().contains(path) {
            return;
        }
        self.inner.swept.hold().insert(path.to_owned());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(listing) = rustix::fs::openat(directory, ".", flags, Mode::empty()) else { return };
        let Ok(entries) = rustix::fs::Dir::new(listing) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !is_temporary_name(name.to_bytes()) {
                continue;
            }
            // The lock is held until the name is gone: nobody can take it for
            // the file of a living run in between.
            if let Some(_lock) = abandoned(directory, name) {
                tracing::debug!(directory = %path.display(), name = ?name, "removing a leftover temporary file of a killed run");
                let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
            }
        }
    }
}

/// What was written to a file that has no name yet.
#[derive(Clone, Copy, Debug)]
struct Written {
    size: u64,
    digest: Digest,
}

impl Written {
    /// The file that it becomes.
    fn image(self, wanted: &Attributes) -> Image {
        Image::file(*wanted, self.size, Some(self.digest))
    }
}

/// The bits that a file has when its attributes are set. Those beyond the nine
/// permissions vouched for the owner.
fn resulting_mode(have: &Stat, wanted: &Attributes) -> u32 {
    let is_same_owner = (have.uid, have.gid) == (wanted.uid, wanted.gid);
    (have.mode & if is_same_owner { 0o7000 } else { 0o1000 }) | wanted.mode
}

/// As [`Host::set_attributes`], of what a path descriptor names.
pub(crate) fn set_attributes_of(
    file: &OwnedFd,
    path: &Path,
    have: &Stat,
    wanted: &Attributes,
) -> Result<()> {
    let (uid, gid) = wanted.ids();
    let mut bits = have.mode;
    if (have.uid, have.gid) != (wanted.uid, wanted.gid) {
        let is_foreign = is_foreign(have, wanted);
        let clear =
            || remove_lists(file, have.kind).map_err(Error::io("remove access lists of", path));
        // Before, so that a run that is killed in between leaves none. Until
        // then the old owner can set them again, so afterwards too.
        if is_foreign {
            clear()?;
        }
        rustix::fs::chownat(file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
            .map_err(Error::io("set the owner of", path))?;
        if is_foreign {
            clear()?;
        }
        bits = Stat::of(file, path)?.mode;
    }
    let target = resulting_mode(have, wanted);
    if bits != target {
        // A path descriptor cannot be changed itself; its name in /proc can.
        rustix::fs::chmod(name_of(file), mode(target))
            .map_err(Error::io("set the mode of", path))?;
    }
    Ok(())
}

/// Removes access lists that a new file has from a directory of another user.
fn clear_foreign_lists(
    parent: impl AsFd,
    path: &Path,
    to: &File,
    wanted: &Attributes,
) -> Result<()> {
    if is_foreign(&Stat::of(&parent, path)?, wanted) {
        remove_lists(to, FileKind::File).map_err(Error::io("remove access lists of", path))?;
    }
    Ok(())
}

/// Gives a new file what the one that it will replace has of extended
/// attributes, and gives back its access list. What another user could have set
/// is left out.
fn inherit(
    host: &Host,
    parent: impl AsFd,
    name: &Path,
    path: &Path,
    to: &File,
    wanted: &Attributes,
) -> Result<Option<AccessList>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let old = match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
        Ok(old) => old,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Error::io("open", path)(errno)),
    };
    let have = Stat::of(&old, path)?;
    if have.kind == FileKind::Symlink || is_foreign(&have, wanted) {
        return Ok(None);
    }
    Ok(keep_extended_attributes(host, &old, path, to))
}

pub(crate) fn is_temporary_name(name: &[u8]) -> bool {
    name.len() == NAME_LENGTH
        && name.strip_prefix(PREFIX.as_bytes()).is_some_and(|digits| {
            digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        })
}

/// A locked temporary file whose writer has ended.
fn abandoned(directory: &OwnedFd, name: &std::ffi::CStr) -> Option<OwnedFd> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if Stat::new(&stat).kind != FileKind::File {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// A temporary file that removes itself unless it takes the target's name.
#[derive(Debug)]
pub(crate) struct Temporary<D: AsFd> {
    pub(crate) file: File,
    directory: D,
    name: String,
    path: PathBuf,
    host: Host,
    in_place: bool,
}

impl<D: AsFd> Temporary<D> {
    pub(crate) fn create(host: &Host, directory: D, path: &Path) -> Result<(Self, Stat)>
    where
        D: Clone,
    {
        loop {
            let name = host.random_name(PREFIX);
            let full = path.join(&name);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let created =
                rustix::fs::openat(&directory, &name, flags | OFlags::CLOEXEC, mode(0o600));
            let file = match created {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(Error::io("create a file in", path)(errno)),
            };
            let (host, directory) = (host.clone(), directory.clone());
            host.cancel().remember(&full);
            let this = Self { file, directory, name, path: full, host, in_place: false };
            // A sweeping run may have taken the new file for a remainder in
            // the moment before the lock: then there is no name left, try again.
            let _ = rustix::fs::flock(&this.file, FlockOperation::LockExclusive);
            let stat = rustix::fs::fstat(&this.file).map_err(Error::io("inspect", &this.path))?;
            if stat.st_nlink > 0 {
                return Ok((this, Stat::new(&stat)));
            }
        }
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &D {
        &self.directory
    }

    /// Takes the target's name, with these attributes. Until then nobody but
    /// the caller can read or write what is in it.
    pub(crate) fn take_the_name(
        self,
        name: &Path,
        path: &Path,
        created: Stat,
        wanted: &Attributes,
    ) -> Result<()> {
        clear_foreign_lists(&self.directory, path, &self.file, wanted)?;
        let access_list = inherit(&self.host, &self.directory, name, path, &self.file, wanted)?;
        self.set_owner(path, created, wanted)?;
        // After the owner: a change of owner may clear bits. An access list
        // says the same mode and more, so it takes its place.
        let has_list = access_list.is_some_and(|list| list.set(&self.file, wanted.mode));
        if !has_list {
            rustix::fs::fchmod(&self.file, mode(wanted.mode))
                .map_err(Error::io("set the mode of", path))?;
        }
        self.rename(name, path, true)
    }

    /// As [`Temporary::take_the_name`], where the name was free a moment ago: as
    /// long as it is, nothing has attributes that could be inherited.
    fn take_free_or_any_name(
        mut self,
        name: &Path,
        path: &Path,
        created: Stat,
        wanted: &Attributes,
        after: Option<Image>,
    ) -> Result<()> {
        clear_foreign_lists(&self.directory, path, &self.file, wanted)?;
        self.set_owner(path, created, wanted)?;
        let set_mode = |bits| {
            rustix::fs::fchmod(&self.file, mode(bits)).map_err(Error::io("set the mode of", path))
        };
        set_mode(wanted.mode)?;
        let (directory, old) = (&self.directory, Path::new(&self.name));
        match rustix::fs::renameat_with(directory, old, directory, name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.in_place = true;
                Ok(())
            }
            // Something is there by now, or the file system cannot do this.
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                set_mode(0o600)?;
                if let Some(journal) = self.host.journal() {
                    // It was not absent after all.
                    journal.complete(path, &Image::Absent)?;
                    self.host.record_change(&self.directory, name, path, |_| after)?;
                }
                let owned = Stat { uid: wanted.uid, gid: wanted.gid, ..created };
                self.take_the_name(name, path, owned, wanted)
            }
            Err(errno) => Err(not_renamed(path, errno)),
        }
    }

    fn set_owner(&self, path: &Path, created: Stat, wanted: &Attributes) -> Result<()> {
        if (created.uid, created.gid) == (wanted.uid, wanted.gid) {
            return Ok(());
        }
        let (uid, gid) = wanted.ids();
        rustix::fs::fchown(&self.file, Some(uid), Some(gid))
            .map_err(Error::io("set the owner of", path))
    }

    /// Takes a name, in place of what has it if that may be replaced.
    pub(crate) fn rename(mut self, name: &Path, path: &Path, replace: bool) -> Result<()> {
        let (directory, old) = (&self.directory, Path::new(&self.name));
        let renamed = if replace {
            rustix::fs::renameat(directory, old, directory, name)
        } else {
            rename_to_free(directory, old, directory, name)
        };
        renamed.map_err(|errno| not_renamed(path, errno))?;
        self.in_place = true;
        Ok(())
    }

    /// Takes a name that nothing has; false when something has it.
    pub(crate) fn take_free_name(&mut self, name: &str) -> Result<bool> {
        let (from, to) = (&self.directory, &self.directory);
        match rename_to_free(from, Path::new(&self.name), to, Path::new(name)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(errno) => return Err(Error::io("rename", &self.path)(errno)),
        }
        self.in_place = true;
        Ok(true)
    }
}

/// Why a new file could not take the name of what is at a path.
fn not_renamed(path: &Path, errno: Errno) -> Error {
    let path = path.to_owned();
    match errno {
        Errno::ISDIR => Error::NotAFile { path, found: "a directory" },
        Errno::BUSY => Error::MountedFile { path },
        errno => Error::Rename { path, source: errno.into() },
    }
}

/// Renames to a name that nothing has.
pub(crate) fn rename_to_free(
    from: impl AsFd,
    old: &Path,
    to: impl AsFd,
    new: &Path,
) -> Result<(), Errno> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Not every file system can. A directory with entries is not replaced
        // either way, and a second name is only given when it is free.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::linkat(from, old, to, new, AtFlags::empty()) {
                Ok(()) => rustix::fs::unlinkat(from, old, AtFlags::empty()),
                Err(Errno::PERM | Errno::OPNOTSUPP) => rustix::fs::renameat(from, old, to, new),
                Err(errno) => Err(errno),
            }
        }
        other => other,
    }
}

impl<D: AsFd> Drop for Temporary<D> {
    fn drop(&mut self) {
        if !self.in_place {
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
        self.host.cancel().forget(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use rustix::fs::XattrFlags;

    use super::*;

    fn mine(mode: u32) -> Attributes {
        let (uid, gid) = Host::new().whoami();
        Attributes { uid, gid, mode }
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn creates_and_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let host = Host::new();
        host.replace(&path, Content::Bytes(b"one"), &mine(0o640)).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        host.replace(&path, Content::Bytes(b"two"), &mine(0o600)).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(meta.permissions().mode() & 0o7777, 0o600);
        assert_ne!(meta.ino(), inode, "replaced, not rewritten");
        assert_eq!(names(dir.path()), ["f"]);
        host.sync().unwrap();
    }

    #[test]
    fn a_link_is_replaced_and_its_target_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("l"), dir.path().join("t"));
        std::fs::write(&target, "t").unwrap();
        symlink(&target, &path).unwrap();
        Host::new().replace(&path, Content::Bytes(b"new"), &mine(0o644)).unwrap();
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(std::fs::read(&target).unwrap(), b"t");
    }

    #[test]
    fn failures_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let occupied = dir.path().join("d");
        std::fs::create_dir(&occupied).unwrap();
        let error = host.replace(&occupied, Content::Bytes(b"x"), &mine(0o644)).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
        let missing = dir.path().join("no/f");
        let error = host.replace(&missing, Content::Bytes(b"x"), &mine(0o644)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("directory {} does not exist", dir.path().join("no").display())
        );
        assert_eq!(names(dir.path()), ["d"]);
    }

    #[test]
    fn remains_of_killed_runs_are_swept_but_not_the_work_of_living_ones() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join(".ccm-0123456789abcdef01234567");
        let alive = dir.path().join(".ccm-aaaaaaaaaaaaaaaaaaaaaaaa");
        let foreign = dir.path().join(".ccm-notours");
        for path in [&dead, &alive, &foreign] {
            std::fs::write(path, "").unwrap();
        }
        let held = File::open(&alive).unwrap();
        rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
        Host::new().replace(&dir.path().join("f"), Content::Bytes(b"x"), &mine(0o644)).unwrap();
        assert_eq!(names(dir.path()), [".ccm-aaaaaaaaaaaaaaaaaaaaaaaa", ".ccm-notours", "f"]);
    }

    #[test]
    fn attributes_keep_special_bits_and_refuse_links() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        Host::new().set_attributes(&path, &mine(0o700)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o4700);
        let link = dir.path().join("l");
        symlink(&path, &link).unwrap();
        let error = Host::new().set_attributes(&link, &mine(0o777)).unwrap_err();
        assert!(error.to_string().contains("symlink"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn extended_attributes_survive_where_there_are_any() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "x").unwrap();
        if rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()).is_err() {
            return ccm_testkit::not_run("this file system has no extended attributes");
        }
        Host::new().replace(&path, Content::Bytes(b"y"), &mine(0o644)).unwrap();
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.note", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
        for n in 0..60 {
            let name = format!("user.many-{n:04}");
            rustix::fs::setxattr(&path, &name, b"x", XattrFlags::empty()).unwrap();
        }
        Host::new().replace(&path, Content::Bytes(b"z"), &mine(0o644)).unwrap();
        assert!(rustix::fs::getxattr(&path, "user.many-0059", &mut value).is_ok());
    }

    #[test]
    fn what_came_meanwhile_is_replaced_as_usual() {
        let dir = tempfile::tempdir().unwrap();
        let (path, host) = (dir.path().join("f"), Host::new());
        host.create(&path, Content::Bytes(b"new"), &mine(0o640)).unwrap();
        let stat = host.stat(&path).unwrap().unwrap();
        assert_eq!((stat.mode, std::fs::read(&path).unwrap()), (0o640, b"new".to_vec()));
        // It is there now: its extended attributes are kept, its mode is not.
        let value = b"kept";
        let has_attributes =
            rustix::fs::setxattr(&path, "user.ccm-test", value, XattrFlags::empty()).is_ok();
        host.create(&path, Content::Bytes(b"newer"), &mine(0o600)).unwrap();
        let stat = host.stat(&path).unwrap().unwrap();
        assert_eq!((stat.mode, std::fs::read(&path).unwrap()), (0o600, b"newer".to_vec()));
        if has_attributes {
            let mut buffer = [0; 16];
            let length = rustix::fs::getxattr(&path, "user.ccm-test", &mut buffer[..]).unwrap();
            assert_eq!(&buffer[..length], value);
        }
        // Neither a directory nor what a dangling symlink names is touched.
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let error = host.create(&dir.path().join("d"), Content::Bytes(b"x"), &mine(0o600));
        assert!(matches!(error, Err(Error::NotAFile { .. })), "{error:?}");
        symlink("nowhere", dir.path().join("link")).unwrap();
        host.create(&dir.path().join("link"), Content::Bytes(b"x"), &mine(0o600)).unwrap();
        assert_eq!(host.lstat(&dir.path().join("link")).unwrap().unwrap().kind, FileKind::File);
        assert!(!dir.path().join("nowhere").exists());
        let names = std::fs::read_dir(dir.path()).unwrap().flatten();
        assert!(
            names.into_iter().all(|entry| !is_temporary_name(entry.file_name().as_encoded_bytes()))
        );
    }
}
