//! Temporary directories of runs that were killed.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::Stat;

/// Removes the directories of this prefix that nobody uses any more, of the
/// same user.
pub(crate) fn sweep(directory: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| {
            let digits = name.strip_prefix(prefix);
            digits.is_some_and(|digits| {
                digits.len() == 24 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            })
        });
        let path = entry.path();
        // The lock is held until it is gone.
        if is_ours && let Ok(_lock) = lock(&path) {
            tracing::debug!(path = %path.display(), "removing a leftover directory of a killed run");
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Why a directory is not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockError {
    /// Another process uses it, or has removed it.
    Taken,
    /// Its file system has no locks, or it belongs to another user: never removed.
    Never,
}

/// Locks a directory of this user for as long as the result lives. Once it is
/// locked, nobody else removes it.
pub(crate) fn lock(path: &Path) -> Result<OwnedFd, LockError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => LockError::Taken,
        _ => LockError::Never,
    })?;
    lock_open(&directory, path)?;
    Ok(directory)
}

/// The same for a directory that is open.
pub(crate) fn lock_open(directory: &OwnedFd, path: &Path) -> Result<(), LockError> {
    let stat = Stat::of(directory, path).map_err(|_| LockError::Never)?;
    if stat.uid != rustix::process::geteuid().as_raw() {
        return Err(LockError::Never);
    }
    match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(LockError::Taken),
        Err(_) => return Err(LockError::Never),
    }
    // Who had it before may have removed it since it was opened.
    let is_there = rustix::fs::lstat(path).is_ok_and(|found| {
        let found = Stat::new(&found);
        (found.dev, found.ino) == (stat.dev, stat.ino)
    });
    if is_there { Ok(()) } else { Err(LockError::Taken) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;

    #[test]
    fn what_killed_runs_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join("ccm-x-0123456789abcdef01234567");
        let alive = dir.path().join("ccm-x-aaaaaaaaaaaaaaaaaaaaaaaa");
        let foreign = dir.path().join("ccm-x-other");
        for path in [&dead, &alive, &foreign] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(dead.join("f"), "").unwrap();
        let _held = lock(&alive).unwrap();
        sweep(dir.path(), "ccm-x-");
        assert_eq!([dead.exists(), alive.exists(), foreign.exists()], [false, true, true]);
        assert_eq!(lock(&alive).unwrap_err(), LockError::Taken);
        assert_eq!(lock(&dead).unwrap_err(), LockError::Taken);
    }

    /// Every one is made while others sweep.
    #[test]
    fn those_who_come_at_once_leave_each_other_alone() {
        const PREFIX: &str = "ccm-at-once-";
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let host = Host::new();
                    for _ in 0..200 {
                        let directory = host.temporary_directory(PREFIX).unwrap();
                        directory.create_directory(Path::new("d")).unwrap();
                        sweep(&host.temp_dir(), PREFIX);
                        assert!(directory.path().join("d").is_dir());
                    }
                });
            }
        });
        let names = std::fs::read_dir(Host::new().temp_dir()).unwrap().flatten();
        let left = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
        assert_eq!(left.count(), 0);
    }
}
