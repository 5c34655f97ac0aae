//! A directory of ccm's own, such as the one that holds locks and records of
//! runs.
//!
//! The directory belongs to the user running ccm, and no other user can change
//! its content, so names in it need no protection. It is kept open, so reads
//! and writes stay in it even if its path is replaced.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::{Temporary, is_temporary_name};
use crate::digest::copy_digested;
use crate::file::{check_regular, mode, read_all};
use crate::trust::{Doubt, folder_doubt, step_doubt};
use crate::walk::Walk;
use crate::{Attributes, Digest, Error, FileKind, FormerFile, Host, Result, Stat};

const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// For how long what is appended may be in memory only while more depends on it:
/// far less than the seconds after which the kernel writes changed files.
const MAX_UNSYNCED: Duration = Duration::from_millis(100);

/// A directory that only the user running ccm can change, held open.
#[derive(Clone, Debug)]
pub struct StateDir {
    host: Host,
    directory: Arc<OwnedFd>,
    path: PathBuf,
}

impl Host {
    /// Opens a directory of ccm's own. One that is not there is made, with mode
    /// 0700, or is `None` unless `create` is set. With `create`, one that others
    /// may read but not write is closed to them.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::SharedState`] if other users can change it or, as
    /// root, replace it or a directory above it.
    pub fn state_dir(&self, path: &Path, create: bool) -> Result<Option<StateDir>> {
        let path = self.absolute(path)?;
        if let Some(found) = self.open_state_dir(&path, create)? {
            return Ok(Some(found));
        }
        if !create {
            return Ok(None);
        }
        let (uid, gid) = self.whoami();
        self.create_directory(&path, &Attributes { uid, gid, mode: 0o700 })?;
        self.open_state_dir(&path, create)
    }

    fn open_state_dir(&self, path: &Path, is_closed: bool) -> Result<Option<StateDir>> {
        let shared = |doubt| Error::SharedState { path: path.to_owned(), doubt };
        let directory = if self.is_root() {
            let walk = match Walk::from_root(path) {
                Ok(walk) => walk,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(Error::io("open", path)(errno)),
            };
            if let Some(doubt) = walk.way.iter().find_map(step_doubt) {
                return Err(shared(doubt));
            }
            match walk.into_directory() {
                Ok(directory) => directory,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(Error::io("open", path)(errno)),
            }
        } else {
            match rustix::fs::open(path, LIST, Mode::empty()) {
                Ok(directory) => directory,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(Error::io("open", path)(errno)),
            }
        };
        StateDir::checked(self, directory, path.to_owned(), is_closed).map(Some)
    }
}

impl StateDir {
    /// Judges an open directory. With `is_closed`, closes it to those who may
    /// only read it.
    fn checked(host: &Host, directory: OwnedFd, path: PathBuf, is_closed: bool) -> Result<Self> {
        let stat = Stat::of(&directory, &path)?;
        if stat.kind != FileKind::Directory {
            return Err(Error::NotADirectory { path });
        }
        let me = host.whoami().0;
        if stat.uid == 0 && me != 0 {
            return Err(Error::OtherOwner { path, uid: 0 });
        }
        // A sticky bit protects names, but not from new ones.
        let doubt = folder_doubt(&directory, &Stat { mode: stat.mode & 0o777, ..stat }, &path);
        let is_ours = stat.uid == me && stat.mode & 0o022 == 0;
        if !is_ours || (me == 0 && doubt.is_some()) {
            let doubt = doubt.unwrap_or_else(|| Doubt::new(&path, &stat));
            return Err(Error::SharedState { path, doubt });
        }
        if is_closed && stat.mode & 0o777 != 0o700 {
            let open = rustix::fs::openat(&directory, ".", LIST, Mode::empty())
                .map_err(Error::io("open", &path))?;
            rustix::fs::fchmod(open, mode(0o700)).map_err(Error::io("set the mode of", &path))?;
        }
        Ok(Self { host: host.clone(), directory: Arc::new(directory), path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that it was opened for.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// A directory in this one. One that is not there is made if `create` is
    /// set, and is `None` otherwise.
    pub fn folder(&self, name: &str, create: bool) -> Result<Option<Self>> {
        let path = self.path.join(name);
        let flags = LIST | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(&*self.directory, name, flags, Mode::empty());
        let directory = match open() {
            Err(Errno::NOENT) if create => {
                match rustix::fs::mkdirat(&*self.directory, name, mode(0o700)) {
                    Ok(()) => self.sync()?,
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(Error::io("create", &path)(errno)),
                }
                open()
            }
            Err(Errno::NOENT) => return Ok(None),
            opened => opened,
        };
        let directory = directory.map_err(Error::io("open", &path))?;
        Self::checked(&self.host, directory, path, create).map(Some)
    }

    /// The names in it, sorted, without those of files that are being written.
    pub fn names(&self) -> Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let failed = || Error::io("list", &self.path);
        let listing =
            rustix::fs::openat(&*self.directory, ".", LIST, Mode::empty()).map_err(failed())?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(listing).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && !is_temporary_name(name) {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a regular file; `None` when there is nothing of this name.
    pub fn open(&self, name: impl AsRef<Path>) -> Result<Option<(File, Stat)>> {
        let path = self.path.join(&name);
        let file = match rustix::fs::openat(&*self.directory, name.as_ref(), READ, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        let stat = Stat::of(&file, &path)?;
        check_regular(&path, stat)?;
        Ok(Some((file.into(), stat)))
    }

    /// Reads a file of at most `limit` bytes; `None` when there is none.
    pub fn read(&self, name: impl AsRef<Path>, limit: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(&name);
        let Some((file, stat)) = self.open(name)? else { return Ok(None) };
        read_all(file, stat, &path, limit).map(Some)
    }

    /// Replaces a file as a whole. It is on disk when this returns.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut new = self.new_file(name)?;
        new.write(bytes)?;
        new.finish()?;
        self.sync()
    }

    /// Begins a file that gets its name when it is finished.
    pub fn new_file(&self, name: &str) -> Result<NewStateFile> {
        self.host.sweep(&self.directory, &self.path);
        let (temporary, _) =
            Temporary::create(&self.host, Arc::clone(&self.directory), &self.path)?;
        let path = self.path.join(name);
        Ok(NewStateFile { temporary, path, is_synced: !self.is_passing() })
    }

    /// Gives a file of this directory a second name in another one; `false`
    /// when there is no such file. One that has it already is fine.
    pub fn link_to(&self, name: &str, other: &Self) -> Result<bool> {
        match rustix::fs::linkat(&*self.directory, name, &*other.directory, name, AtFlags::empty())
        {
            Ok(()) | Err(Errno::EXIST) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(Error::io("link", &self.path.join(name))(errno)),
        }
    }

    /// How many names a file has, and its size; `None` when there is none.
    pub fn links(&self, name: impl AsRef<Path>) -> Result<Option<(u64, u64)>> {
        match rustix::fs::statat(&*self.directory, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((wide(stat.st_nlink), stat.st_size as u64))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io("inspect", &self.path.join(name))(errno)),
        }
    }

    /// Lets [`Host::sync`] wait until a file of this directory is on disk.
    pub fn sync_later(&self, name: &str) {
        if let Ok(stat) = Stat::of(&*self.directory, &self.path) {
            self.host.inner.barrier.hold().file_changed(&self.path.join(name), stat.dev);
        }
    }

    /// Makes a directory in this one, unless it is there. It need not be on disk
    /// before [`Host::sync`].
    pub fn make_folder(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&*self.directory, name, mode(0o700)) {
            Ok(()) => self.sync_later(name),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::io("create", &path)(errno)),
        }
        self.folder(name, false)?.ok_or(Error::NotADirectory { path })
    }

    /// Opens a file to append to, new or as it is. The name of a new one is on
    /// disk when this returns.
    pub fn append_to(&self, name: &str) -> Result<AppendFile> {
        let file = self.append_later(name)?;
        if file.is_new {
            self.sync()?;
        }
        Ok(file)
    }

    /// The same for a file that need not be on disk before [`Host::sync`].
    pub fn append_later(&self, name: &str) -> Result<AppendFile> {
        let path = self.path.join(name);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open =
            |more: OFlags| rustix::fs::openat(&*self.directory, name, flags | more, mode(0o600));
        let (file, is_new) = match open(OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => (open(OFlags::empty()), false),
            created => (created, true),
        };
        let file = file.map_err(Error::io("open", &path))?;
        let stat = Stat::of(&file, &path)?;
        check_regular(&path, stat)?;
        let is_synced = !self.is_passing();
        let (file, length) = (file.into(), stat.size);
        Ok(AppendFile { file, path, length, is_new, is_synced, unsynced_since: None })
    }

    /// Removes a file; nothing of this name is fine.
    pub fn remove(&self, name: impl AsRef<Path>) -> Result<()> {
        match rustix::fs::unlinkat(&*self.directory, name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io("remove", &self.path.join(name))(errno)),
        }
    }

    /// Removes an empty directory; nothing of this name is fine.
    pub fn remove_folder(&self, name: impl AsRef<Path>) -> Result<()> {
        match rustix::fs::unlinkat(&*self.directory, name.as_ref(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io("remove", &self.path.join(name))(errno)),
        }
    }

    /// Removes a file, or a directory with everything in it; nothing of this name
    /// is fine. Symlinks are not followed, mounts not entered.
    pub fn remove_tree(&self, name: impl AsRef<Path>) -> Result<()> {
        self.host.remove_own_tree(&self.path.join(name))
    }

    /// Gives a file another name, in place of what has it.
    pub fn rename(&self, old: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<()> {
        let directory = &*self.directory;
        rustix::fs::renameat(directory, old.as_ref(), directory, new.as_ref())
            .map_err(Error::io("rename", &self.path.join(old)))
    }

    /// Waits until a file of this directory is on disk; nothing of this name is
    /// fine.
    pub fn sync_file(&self, name: &str) -> Result<()> {
        match self.open(name)? {
            Some((file, _)) if !self.is_passing() => sync_data(&file, &self.path.join(name)),
            _ => Ok(()),
        }
    }

    /// Waits until the names in it are on disk.
    pub fn sync(&self) -> Result<()> {
        if self.is_passing() {
            return Ok(());
        }
        let open = rustix::fs::openat(&*self.directory, ".", LIST, Mode::empty())
            .map_err(Error::io("open", &self.path))?;
        match rustix::fs::fsync(open) {
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(Error::io("write to disk", &self.path)(errno)),
        }
    }

    /// Nothing of this run need survive a power failure.
    fn is_passing(&self) -> bool {
        self.host.inner.is_passing.load(Ordering::Relaxed)
    }

    /// The same directory for another run.
    #[must_use]
    pub fn with_host(&self, host: &Host) -> Self {
        Self { host: host.clone(), directory: Arc::clone(&self.directory), path: self.path.clone() }
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.directory
    }
}

/// A file that is being written. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub struct NewStateFile {
    temporary: Temporary<Arc<OwnedFd>>,
    path: PathBuf,
    is_synced: bool,
}

impl NewStateFile {
    /// Writes on.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.temporary.file.write_all(bytes).map_err(Error::std_io("write", &self.path))
    }

    /// Copies a file from its beginning, as far as it was there when it was
    /// opened: it may grow for ever. The digest of what was copied.
    pub fn copy(&mut self, from: &mut FormerFile<'_>) -> Result<Digest> {
        let rewound = from.file.rewind();
        let mut limited = (&*from.file).take(from.size());
        let copied = rewound.and_then(|()| copy_digested(&mut limited, &mut self.temporary.file));
        copied.map(|(_, digest)| digest).map_err(Error::std_io("keep a copy of", from.path))
    }

    /// Gives the file this name. It need not be on disk: see
    /// [`StateDir::sync_later`].
    pub fn finish_as(self, name: &str) -> Result<()> {
        self.temporary.rename(Path::new(name), &self.path.with_file_name(name), true)
    }

    /// Puts the content on disk, then gives the file its name.
    pub fn finish(self) -> Result<()> {
        if self.is_synced {
            sync_data(&self.temporary.file, &self.path)?;
        }
        let name = self.path.file_name().map_or_else(PathBuf::new, PathBuf::from);
        self.temporary.rename(&name, &self.path, true)
    }
}

/// A file that only grows.
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    path: PathBuf,
    length: u64,
    is_new: bool,
    is_synced: bool,
    /// When something was appended that is not on disk yet.
    unsynced_since: Option<Instant>,
}

impl AppendFile {
    /// Whether it is put on disk at all: not every run need survive a power
    /// failure.
    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Whether something that was appended has not been on disk for so long that
    /// what depends on it may be there before it.
    pub fn is_due(&self) -> bool {
        self.is_synced && self.unsynced_since.is_some_and(|since| since.elapsed() >= MAX_UNSYNCED)
    }

    /// Whether it was made when it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file was renamed, removed or replaced.
    pub fn is_replaced(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Whether no other process has written to it or replaced it.
    pub fn is_untouched(&self) -> bool {
        rustix::fs::fstat(&self.file)
            .is_ok_and(|stat| stat.st_nlink > 0 && stat.st_size.cast_unsigned() == self.length)
    }

    /// Appends everything or, as far as the disk lets, nothing.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(source) = self.file.write_all(bytes) {
            // Readers pass over half a record, but more would follow it.
            let _ = self.file.set_len(self.length);
            return Err(Error::Io { action: "write", path: self.path.clone(), source });
        }
        self.length += bytes.len() as u64;
        if self.is_synced && self.unsynced_since.is_none() {
            self.unsynced_since = Some(Instant::now());
        }
        Ok(())
    }

    /// Waits until what was appended is on disk.
    pub fn sync(&mut self) -> Result<()> {
        if self.is_synced {
            sync_data(&self.file, &self.path)?;
        }
        self.unsynced_since = None;
        Ok(())
    }
}

/// The type of the count differs between processors.
fn wide(count: impl Into<u64>) -> u64 {
    count.into()
}

fn sync_data(file: &File, path: &Path) -> Result<()> {
    match rustix::fs::fdatasync(file) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(Error::io("write to disk", path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, bits: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    }

    fn mode_of(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn it_is_made_private_and_kept_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/state");
        let host = Host::new();
        assert!(host.state_dir(&path, false).unwrap().is_none());
        let state = host.state_dir(&path, true).unwrap().unwrap();
        assert_eq!(mode_of(&path), 0o700);
        state.write("f", b"one").unwrap();
        state.write("f", b"two").unwrap();
        assert_eq!(mode_of(&path.join("f")), 0o600);
        assert_eq!(state.read("f", 10).unwrap().unwrap(), b"two");
        assert_eq!(state.names().unwrap(), ["f"]);
        set_mode(&path, 0o755);
        host.state_dir(&path, false).unwrap().unwrap();
        assert_eq!(mode_of(&path), 0o755, "reading changes nothing");
        host.state_dir(&path, true).unwrap().unwrap();
        assert_eq!(mode_of(&path), 0o700);
    }

    #[test]
    fn one_that_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        std::fs::create_dir(&path).unwrap();
        for bits in [0o770, 0o702, 0o777, 0o1777] {
            set_mode(&path, bits);
            let refused = Host::new().state_dir(&path, true);
            assert!(matches!(refused, Err(Error::SharedState { .. })), "{bits:o}: {refused:?}");
            assert_eq!(mode_of(&path), bits, "nothing was changed");
        }
        set_mode(&path, 0o700);
        std::fs::create_dir(path.join("owed")).unwrap();
        set_mode(&path.join("owed"), 0o777);
        let state = Host::new().state_dir(&path, true).unwrap().unwrap();
        assert!(matches!(state.folder("owed", true), Err(Error::SharedState { .. })));
    }

    #[test]
    fn links_and_special_files_in_it_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("target"), "secret").unwrap();
        let path = dir.path().join("state");
        let state = Host::new().state_dir(&path, true).unwrap().unwrap();
        symlink(dir.path().join("target"), path.join("link")).unwrap();
        symlink(dir.path(), path.join("folder")).unwrap();
        std::fs::create_dir(path.join("directory")).unwrap();
        assert!(state.read("link", 10).is_err());
        assert!(state.append_to("link").is_err());
        assert!(state.folder("folder", true).is_err());
        assert!(matches!(state.read("directory", 10), Err(Error::NotAFile { .. })));
        state.write("link", b"x").unwrap();
        assert_eq!(std::fs::read(dir.path().join("target")).unwrap(), b"secret");
        assert!(state.read("nothing", 10).unwrap().is_none());
    }

    #[test]
    fn what_waited_too_long_is_due() {
        for is_passing in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let host = Host::new();
            if is_passing {
                host.skip_sync();
            }
            let state = host.state_dir(&dir.path().join("s"), true).unwrap().unwrap();
            let mut file = state.append_later("j").unwrap();
            assert!(!file.is_due(), "nothing is in it");
            file.append(b"a\n").unwrap();
            // This is the wait after which it is due.
            std::thread::sleep(MAX_UNSYNCED);
            assert_eq!(file.is_due(), !is_passing);
            file.sync().unwrap();
            assert!(!file.is_due());
            state.sync_file("j").unwrap();
            state.sync_file("nothing").unwrap();
        }
    }

    #[test]
    fn what_is_appended_stays_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let state = Host::new().state_dir(&dir.path().join("s"), true).unwrap().unwrap();
        let mut file = state.append_to("j").unwrap();
        assert!(file.is_new());
        file.append(b"a\n").unwrap();
        assert!(!file.is_replaced());
        let mut again = state.append_to("j").unwrap();
        assert!(!again.is_new());
        again.append(b"b\n").unwrap();
        again.sync().unwrap();
        assert_eq!(again.length(), 4);
        assert_eq!(state.read("j", 10).unwrap().unwrap(), b"a\nb\n");
        state.rename("j", "k").unwrap();
        state.remove("k").unwrap();
        assert!(file.is_replaced());
        state.remove("k").unwrap();
        assert!(state.names().unwrap().is_empty());
    }
}
