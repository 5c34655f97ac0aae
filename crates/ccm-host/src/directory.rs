//! Directories.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::extended::{has_other_owner, remove_lists};
use crate::file::mode;
use crate::forecast::Seen;
use crate::stale_dirs::{LockError, lock, sweep};
use crate::{Attributes, Error, FileKind, Host, Result, Stat};

/// How many directories others may take before it is no coincidence.
const MAX_ATTEMPTS: usize = 100;

/// A private directory that is removed when this value is dropped.
#[derive(Debug)]
pub struct TemporaryDirectory {
    host: Host,
    path: PathBuf,
    /// Tells later runs that this one lives.
    _lock: Option<OwnedFd>,
}

impl TemporaryDirectory {
    /// The path, which is valid until the value is dropped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory in it, whose parent must exist.
    pub fn create_directory(&self, place: &Path) -> Result<()> {
        let path = self.path.join(place);
        match rustix::fs::mkdirat(CWD, &path, mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(Error::io("create directory", &path)(errno)),
        }
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = self.host.remove_own_tree(&self.path) {
            let path = self.path.display();
            self.host.warn(format!("cannot remove the temporary directory {path}: {error}"));
        }
        self.host.cancel().forget(&self.path);
    }
}

impl Host {
    /// Makes `path` a directory with these attributes, its parents too: they are
    /// no wider than it.
    /// A failure leaves no new directory behind. Every step is relative to a
    /// directory that is held open, so no other user can redirect it.
    pub fn create_directory(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        self.forget_parent();
        let missing = self.missing(path)?;
        let Some(first) = missing.first() else { return self.set_attributes(path, wanted) };
        let mut made = Made::default();
        let result = self.create_missing(first, &missing, wanted, &mut made);
        if result.is_err() {
            made.undo();
        }
        result
    }

    fn create_missing(
        &self,
        first: &Path,
        missing: &[&Path],
        wanted: &Attributes,
        made: &mut Made,
    ) -> Result<()> {
        let (parent, _) = self.open_parent(first)?;
        let dev = Stat::of(&*parent, first)?.dev;
        let mut parent: Arc<OwnedFd> = parent;
        let above = parent_mode(wanted.mode);
        let mut made_above: Option<(Arc<OwnedFd>, PathBuf)> = None;
        for (at, path) in missing.iter().enumerate() {
            let name = path.file_name().unwrap_or_default();
            self.record_directory(&*parent, Path::new(name), path)?;
            match rustix::fs::mkdirat(&*parent, name, mode(0o700)) {
                Ok(()) => made.0.push((Arc::clone(&parent), name.to_owned())),
                // Someone else was faster: theirs, unless it is the last one.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::io("create directory", path)(errno)),
            }
            let is_ours = made.0.len() == at + 1;
            if let Some((directory, path)) = made_above.take() {
                self.set_made_mode(&directory, &path, above)?;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = rustix::fs::openat(&*parent, name, flags, Mode::empty())
                .map_err(Error::io("open", path))?;
            // Lists come from a directory above, or from who was faster.
            let clear = || {
                remove_lists(&directory, FileKind::Directory)
                    .map_err(Error::io("remove access lists of", path))
            };
            let is_last = at + 1 == missing.len();
            if is_ours && has_other_owner(&Stat::of(&*parent, path)?, wanted) {
                clear()?;
            }
            if is_last {
                if !is_ours {
                    let have = Stat::of(&directory, path)?;
                    self.record_attributes(path, None, &have, *wanted, false)?;
                }
                let (uid, gid) = wanted.ids();
                let has_other_owner = has_other_owner(&Stat::of(&directory, path)?, wanted);
                if has_other_owner {
                    clear()?;
                }
                rustix::fs::fchown(&directory, Some(uid), Some(gid))
                    .map_err(Error::io("set the owner of", path))?;
                if has_other_owner {
                    clear()?;
                }
                rustix::fs::fchmod(&directory, mode(wanted.mode))
                    .map_err(Error::io("set the mode of", path))?;
                self.complete_record(path, &directory, None)?;
            } else if is_ours {
                // At once: a setgid bit from above would pass its group on. Its
                // owner has to make something in it first.
                self.set_made_mode(&directory, path, 0o700 | above)?;
            }
            self.inner.barrier.hold().file_changed(path, dev);
            parent = Arc::new(directory);
            let is_wider = is_ours && !is_last && above & 0o700 != 0o700;
            made_above = is_wider.then(|| (Arc::clone(&parent), path.to_path_buf()));
        }
        Ok(())
    }

    fn set_made_mode(&self, directory: &OwnedFd, path: &Path, bits: u32) -> Result<()> {
        rustix::fs::fchmod(directory, mode(bits)).map_err(Error::io("set the mode of", path))?;
        self.complete_record(path, directory, None)
    }

    /// Creates a directory for the caller alone, under the system's temporary
    /// directory and an unguessable name.
    pub fn private_directory(&self, prefix: &str) -> Result<PathBuf> {
        let path = self.temp_dir().join(self.random_name(prefix));
        rustix::fs::mkdirat(CWD, &path, mode(0o700))
            .map_err(Error::io("create directory", &path))?;
        Ok(path)
    }

    /// Creates a directory for the caller alone, which is removed with
    /// everything in it when the caller is done with it, or killed by signals.
    /// Also removes leftover directories of killed runs.
    pub fn temporary_directory(&self, prefix: &str) -> Result<TemporaryDirectory> {
        sweep(&self.temp_dir(), prefix);
        let mut attempts = 0;
        loop {
            let path = self.private_directory(prefix)?;
            self.cancel().remember(&path);
            let lock = lock(&path);
            // Another run may sweep it before it is locked. Then it is gone.
            if lock.as_ref().is_err_and(|&why| why == LockError::Taken) {
                self.cancel().forget(&path);
                attempts += 1;
                if attempts == MAX_ATTEMPTS {
                    return Err(Error::io("lock", &path)(Errno::WOULDBLOCK));
                }
                continue;
            }
            return Ok(TemporaryDirectory { host: self.clone(), path, _lock: lock.ok() });
        }
    }

    /// Whether a directory has no entries.
    pub fn is_empty_directory(&self, path: &Path) -> Result<bool> {
        if self.predicted_below(path).is_some() {
            let is_new = matches!(self.seen_target(path)?, Seen::Directory(_, true));
            return self.is_predicted_empty(path, is_new);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = self.on_disk(path, false);
        let (parent, name) = self.open_parent(&place)?;
        let directory = rustix::fs::openat(&*parent, name, flags, Mode::empty())
            .map_err(Error::io("open", path))?;
        let entries = rustix::fs::Dir::new(directory).map_err(Error::io("list", path))?;
        for entry in entries {
            let entry = entry.map_err(Error::io("list", path))?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The directories on the way to `path`, itself included, that are not
    /// there yet, outermost first.
    pub(crate) fn missing<'a>(&self, path: &'a Path) -> Result<Vec<&'a Path>> {
        let mut missing = Vec::new();
        for directory in path.ancestors() {
            match self.stat(directory)? {
                Some(stat) if stat.kind == FileKind::Directory => break,
                Some(_) => return Err(Error::NotADirectory { path: directory.to_owned() }),
                None => match self.lstat(directory)?.map(|found| found.kind) {
                    None => missing.push(directory),
                    // Made by someone else a moment ago.
                    Some(FileKind::Directory) => break,
                    Some(_) => {
                        return Err(Error::NotADirectory { path: directory.to_owned() });
                    }
                },
            }
        }
        missing.reverse();
        Ok(missing)
    }
}

/// The mode of a parent that is made for a directory of this mode: nobody gets
/// further than there, and only its owner can change it.
pub(crate) fn parent_mode(mode: u32) -> u32 {
    0o755 & mode | 0o100
}

/// The directories that were made: where, and under which name.
#[derive(Default)]
struct Made(Vec<(Arc<OwnedFd>, OsString)>);

impl Made {
    /// Removes them again; what has entries by now stays.
    fn undo(self) {
        for (parent, name) in self.0.iter().rev() {
            let _ = rustix::fs::unlinkat(&**parent, name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn parents_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let (uid, gid) = host.whoami();
        let path = dir.path().join("a/b/c");
        host.create_directory(&path, &Attributes { uid, gid, mode: 0o750 }).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
        assert_eq!(std::fs::metadata(dir.path().join("a")).unwrap().mode() & 0o7777, 0o750);
        for (mode, above) in [
            (0o755, 0o755),
            (0o777, 0o755),
            (0o770, 0o750),
            (0o700, 0o700),
            (0o711, 0o711),
            (0o555, 0o555),
            (0o077, 0o155),
            (0o000, 0o100),
        ] {
            let top = dir.path().join(format!("{mode:o}"));
            let path = top.join("a/b");
            host.create_directory(&path, &Attributes { uid, gid, mode }).unwrap();
            for (path, wanted) in [(&top, above), (&top.join("a"), above), (&path, mode)] {
                let found = std::fs::metadata(path).unwrap().mode() & 0o7777;
                assert_eq!(found, wanted, "{} is {found:o}", path.display());
            }
        }
        assert!(host.is_empty_directory(&path).unwrap());
        assert!(!host.is_empty_directory(dir.path()).unwrap());
    }

    #[test]
    fn files_in_the_way_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        std::fs::write(dir.path().join("f"), "").unwrap();
        std::os::unix::fs::symlink("/nonexistent", dir.path().join("l")).unwrap();
        let wanted = Attributes { uid: 0, gid: 0, mode: 0o755 };
        for name in ["f", "f/d", "l", "l/d"] {
            let error = host.create_directory(&dir.path().join(name), &wanted).unwrap_err();
            assert!(matches!(error, Error::NotADirectory { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn private_directories_are_private() {
        let path = Host::new().private_directory("ccm-test-").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        std::fs::remove_dir(&path).unwrap();
    }
}
