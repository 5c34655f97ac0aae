//! Temporary directories of runs that were killed.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

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
        if is_ours && let Some(_lock) = lock(&path) {
            tracing::debug!(path = %path.display(), "removing what a killed run left");
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Locks a directory of this user for as long as the result lives; `None` when
/// somebody else has.
pub(crate) fn lock(path: &Path) -> Option<OwnedFd> {
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
    }
}
