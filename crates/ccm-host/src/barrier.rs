//! The durability barrier: what a run wrote is on disk before it reports
//! success, with one wait at its end and not one per file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, Host, Result};

/// Up to here each file and directory is synced by itself.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// At most [`FEW`] paths; beyond that, only their file systems are kept.
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    many: bool,
    /// Files that are mounted by themselves, and need not be on the file system
    /// of their directory.
    mounted: BTreeSet<PathBuf>,
    /// One directory on each file system that was written to.
    file_systems: Vec<(u64, PathBuf)>,
    /// How many changes there were; outlives the barrier itself.
    pub(crate) changes: u64,
}

impl Barrier {
    pub(crate) fn file_changed(&mut self, path: &Path, dev: u64) {
        self.directory_changed(path.parent().unwrap_or(Path::new("/")), dev);
        if !self.many {
            self.files.insert(path.to_owned());
            self.many = self.files.len() > FEW;
        }
    }

    pub(crate) fn directory_changed(&mut self, path: &Path, dev: u64) {
        self.changes += 1;
        if !self.file_systems.iter().any(|&(known, _)| known == dev) {
            self.file_systems.push((dev, path.to_owned()));
        }
        if !self.many && !self.directories.contains(path) {
            self.directories.insert(path.to_owned());
            self.many = self.directories.len() > FEW;
        }
    }

    pub(crate) fn mounted_file_changed(&mut self, path: &Path) {
        self.changes += 1;
        self.mounted.insert(path.to_owned());
    }
}

impl Host {
    /// Turns [`Host::sync`] off: nothing of this run needs to survive a power
    /// failure.
    pub fn skip_sync(&self) {
        self.inner.is_passing.store(true, Ordering::Relaxed);
    }

    /// Waits until everything that was written is on disk.
    pub fn sync(&self) -> Result<()> {
        if self.inner.is_passing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Barrier { files, directories, many, file_systems, mounted, .. } = {
            let mut barrier = self.inner.barrier.hold();
            let changes = barrier.changes;
            std::mem::replace(&mut *barrier, Barrier { changes, ..Barrier::default() })
        };
        mounted.iter().try_for_each(|path| sync_path(path))?;
        if many {
            return file_systems.iter().try_for_each(|(_, path)| sync_file_system(path));
        }
        files.iter().chain(&directories).try_for_each(|path| sync_path(path))
    }
}

fn sync_path(path: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => match rustix::fs::fsync(file) {
            // Not every file system can, and then nothing is cached either.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(errno) => Err(Error::io("write to disk", path)(errno)),
        },
        // Written but not readable by its writer.
        Err(Errno::ACCESS) => sync_file_system(path.parent().unwrap_or(Path::new("/"))),
        // Removed or replaced by something later in the run.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => Ok(()),
        Err(errno) => Err(Error::io("open", path)(errno)),
    }
}

/// Syncs the file system that a directory, or what is left of its path, is on.
fn sync_file_system(path: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for directory in path.ancestors() {
        match rustix::fs::open(directory, flags, Mode::empty()) {
            Ok(file) => {
                return rustix::fs::syncfs(file).map_err(Error::io("write to disk", directory));
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
            Err(errno) => return Err(Error::io("open", directory)(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_remembered_one_by_one_and_many_by_file_system() {
        let mut barrier = Barrier::default();
        for n in 0..FEW {
            barrier.file_changed(&PathBuf::from(format!("/d/{n}")), 1);
        }
        assert!(!barrier.many);
        for n in 0..10_000 {
            barrier.file_changed(&PathBuf::from(format!("/d/more{n}")), 1 + n % 2);
        }
        assert!(barrier.many);
        assert!(barrier.files.len() <= FEW + 1);
        assert_eq!(barrier.file_systems.len(), 2);
    }

    #[test]
    fn what_is_gone_by_then_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        host.inner.barrier.hold().file_changed(&dir.path().join("gone/f"), 1);
        host.sync().unwrap();
        for n in 0..=FEW {
            let path = dir.path().join(format!("gone{n}/f"));
            host.inner.barrier.hold().file_changed(&path, 1);
        }
        host.sync().unwrap();
    }
}
