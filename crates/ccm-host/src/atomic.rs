//! Atomic replacement of files.
//!
//! ccm writes content, owner and mode to a temporary file beside the target and
//! renames it. The writer holds a lock on the temporary file, so that a later
//! run can distinguish leftovers of a killed run from files in use, and remove
//! them.

mod temporary;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::digest::copy_digested;
use crate::extended::{
    AccessList, has_other_owner, keep_extended_attributes, name_of, remove_lists,
};
use crate::file::mode;
use crate::{Digest, Error, FileKind, Host, Image, Result, Stat};

use temporary::abandoned;
pub(crate) use temporary::{Temporary, is_temporary_name, not_renamed, rename_to_free};

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
                let shown = self.redactor().text(&path.to_string_lossy()).into_owned();
                tracing::debug!(directory = shown, name = ?name, "removing a leftover temporary file of a killed run");
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
pub(crate) fn resulting_mode(have: &Stat, wanted: &Attributes) -> u32 {
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
        let has_other_owner = has_other_owner(have, wanted);
        let clear =
            || remove_lists(file, have.kind).map_err(Error::io("remove access lists of", path));
        // Before, so that a run that is killed in between leaves none. Until
        // then the old owner can set them again, so afterwards too.
        if has_other_owner {
            clear()?;
        }
        rustix::fs::chownat(file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
            .map_err(Error::io("set the owner of", path))?;
        if has_other_owner {
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
fn clear_lists_of_others(
    parent: impl AsFd,
    path: &Path,
    to: &File,
    wanted: &Attributes,
) -> Result<()> {
    if has_other_owner(&Stat::of(&parent, path)?, wanted) {
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
    if have.kind == FileKind::Symlink || has_other_owner(&have, wanted) {
        return Ok(None);
    }
    Ok(keep_extended_attributes(host, &old, path, to))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use rustix::fs::{FlockOperation, XattrFlags};

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
            format!("{} is not a directory: it does not exist", dir.path().join("no").display())
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
