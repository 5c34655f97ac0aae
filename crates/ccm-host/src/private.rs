//! Directories for the caller alone, which are gone when they are done with.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::{Error, Host, Result, Stat};

/// Names of such directories: this and 24 hexadecimal digits.
const PREFIX: &str = "ccm-tree-";

/// A private directory. It goes with this value, on a panic and on a signal
/// too; what a killed run left is removed when the next one is made.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    host: Host,
    /// Held while somebody uses it.
    _lock: OwnedFd,
}

impl PrivateDirectory {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a temporary directory is left");
        }
        self.host.interrupt().forget(&self.path);
    }
}

impl Host {
    /// Makes a directory (0700) under an unguessable name.
    pub fn private_tree(&self) -> Result<PrivateDirectory> {
        sweep(&self.temp_dir());
        let path = self.private_directory(PREFIX)?;
        self.interrupt().remember(&path);
        let lock = open_locked(&path);
        let lock = lock.ok_or_else(|| Error::NotADirectory { path: path.clone() })?;
        Ok(PrivateDirectory { path, host: self.clone(), _lock: lock })
    }
}

/// Removes what killed runs of the same user left.
fn sweep(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| {
            let digits = name.strip_prefix(PREFIX);
            digits.is_some_and(|digits| {
                digits.len() == 24 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            })
        });
        let path = entry.path();
        // The lock is held until it is gone.
        if is_ours && let Some(_lock) = open_locked(&path) {
            tracing::debug!(path = %path.display(), "removing what a killed run left");
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// A directory of this user, locked: nobody uses it.
fn open_locked(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = Stat::of(&directory, path).ok()?;
    if stat.uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_directories_go_with_their_value() {
        let private = Host::new().private_tree().unwrap();
        let path = private.path().to_owned();
        std::fs::create_dir(path.join("d")).unwrap();
        std::fs::write(path.join("d/f"), "x").unwrap();
        let other = Host::new().private_tree().unwrap();
        assert!(path.exists(), "the work of a living run stays");
        drop((private, other));
        assert!(!path.exists());
    }

    #[test]
    fn what_killed_runs_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join("ccm-tree-0123456789abcdef01234567");
        let alive = dir.path().join("ccm-tree-aaaaaaaaaaaaaaaaaaaaaaaa");
        let foreign = dir.path().join("ccm-tree-other");
        for path in [&dead, &alive, &foreign] {
            std::fs::create_dir(path).unwrap();
        }
        let _held = open_locked(&alive).unwrap();
        sweep(dir.path());
        assert_eq!([dead.exists(), alive.exists(), foreign.exists()], [false, true, true]);
    }
}
