//! A marker in a directory for an incomplete extraction.
//!
//! An extraction holds the marker's lock and removes the marker when everything
//! is in place. If a marker is left, the next run extracts again. The marker
//! contains the name of the extraction's temporary file, so that the next run
//! can remove it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::Temporary;
use crate::{Digest, Error, FileKind, Host, Result, Stat};

const PREFIX: &str = ".ccm-incomplete-";
/// Names of temporary files: this and 24 hexadecimal digits. They carry no lock
/// of their own, so they are not named like those that have one.
pub(crate) const TEMPORARY: &str = ".ccm-part-";
/// How often others may get in between before it is no coincidence.
const MAX_ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// The name of the marker for a subject: different extractions into one
/// directory have different markers.
pub(crate) fn name_for(subject: &Path) -> String {
    let digest = Digest::of(subject.as_os_str().as_encoded_bytes()).to_string();
    format!("{PREFIX}{}", &digest[..24])
}

impl Host {
    /// Whether an extraction into this directory began and did not end, or has
    /// not ended yet. `subject` is what [`crate::Destination::open_marked`] was given.
    ///
    /// A marker counts when it belongs to root, to the caller, or to the owner
    /// of the directory, who could remove any file in it as well.
    pub fn is_incomplete(&self, directory: &Path, subject: &Path) -> Result<bool> {
        let Some(marker) = self.lstat(&directory.join(name_for(subject)))? else {
            return Ok(false);
        };
        let is_trusted = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
        Ok(marker.kind == FileKind::File
            && (is_trusted(marker.uid)
                || self.stat(directory)?.is_some_and(|found| found.uid == marker.uid)))
    }
}

/// A marker, locked by this process.
#[derive(Debug)]
pub(crate) struct Marker {
    directory: Arc<OwnedFd>,
    path: PathBuf,
    name: String,
    /// The name of temporary files.
    pub(crate) temporary: String,
    _lock: File,
}

impl Marker {
    /// Takes the marker of this name; waits while another process holds it.
    pub(crate) fn take(
        host: &Host,
        directory: &Arc<OwnedFd>,
        path: &Path,
        name: &str,
    ) -> Result<Self> {
        let full = path.join(name);
        host.sweep(directory, path);
        for _ in 0..MAX_ATTEMPTS {
            let found = match open(directory, name) {
                Err(Errno::NOENT) => None,
                // A link, a socket, or unreadable: none of ours.
                Err(_) => Some(None),
                Ok(file) => Some(Some(file)),
            };
            let is_free = found.is_none();
            let held = match found {
                None => Self::create(host, directory, path, name)?,
                Some(None) => None,
                Some(Some(file)) if !is_ours(&file, &full)? => None,
                Some(Some(file)) => {
                    wait(host, &file, path)?;
                    if !is_at(&file, directory, name) {
                        // The other extraction has ended.
                        continue;
                    }
                    content(&file).map(|temporary| (file, temporary))
                }
            };
            if let Some((lock, temporary)) = held {
                let (directory, name) = (Arc::clone(directory), name.to_owned());
                return Ok(Self { directory, path: full, name, temporary, _lock: lock });
            }
            if !is_free {
                // Planted or damaged.
                remove(directory, name, &full)?;
            }
        }
        Err(Error::io("create", &full)(Errno::EXIST))
    }

    /// Makes a marker that is locked and has its content when it appears;
    /// `None` when somebody else was faster.
    fn create(
        host: &Host,
        directory: &Arc<OwnedFd>,
        path: &Path,
        name: &str,
    ) -> Result<Option<(File, String)>> {
        let temporary = host.random_name(TEMPORARY);
        let (mut file, _) = Temporary::create(host, &**directory, path)?;
        let full = path.join(name);
        file.file.write_all(temporary.as_bytes()).map_err(Error::std_io("write", &full))?;
        // A clone shares the lock.
        let lock = file.file.try_clone().map_err(Error::std_io("open", &full))?;
        Ok(file.take_free_name(name)?.then_some((lock, temporary)))
    }

    /// Says that everything is in place.
    pub(crate) fn remove(self) -> Result<()> {
        remove(&self.directory, &self.name, &self.path)
    }
}

fn open(directory: &OwnedFd, name: &str) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from)
}

/// Whether a marker was made by this user: nobody else can have written to it
/// or hold its lock.
fn is_ours(file: &File, path: &Path) -> Result<bool> {
    let stat = Stat::of(file, path)?;
    let me = rustix::process::geteuid().as_raw();
    Ok(stat.kind == FileKind::File && stat.uid == me && stat.mode & 0o777 == 0o600)
}

/// Waits until the other extraction has ended.
fn wait(host: &Host, file: &File, path: &Path) -> Result<()> {
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            // Or the file system has no locks.
            _ => return Ok(()),
        }
        if host.cancel().is_cancelled() {
            let command = format!("the extraction into {}", path.display());
            return Err(Error::Interrupted { command });
        }
        host.cancel().pause(PAUSE);
    }
}

/// Whether a file still has its name.
fn is_at(file: &File, directory: &OwnedFd, name: &str) -> bool {
    let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    match (rustix::fs::fstat(file.as_fd()), named) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// The name in a marker, if that is what it holds.
fn content(mut file: &File) -> Option<String> {
    let mut text = String::new();
    (&mut file).take(100).read_to_string(&mut text).ok()?;
    let digits = text.strip_prefix(TEMPORARY)?;
    let is_name = digits.len() == 24 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_name.then_some(text)
}

fn remove(directory: &OwnedFd, name: &str, path: &Path) -> Result<()> {
    let removed = match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
        }
        other => other,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::io("remove", path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    const SUBJECT: &str = "/a.tar";

    fn open_directory(path: &Path) -> Arc<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Arc::new(rustix::fs::open(path, flags, Mode::empty()).unwrap())
    }

    fn take(path: &Path) -> Marker {
        let name = name_for(Path::new(SUBJECT));
        Marker::take(&Host::new(), &open_directory(path), path, &name).unwrap()
    }

    #[test]
    fn a_marker_that_is_left_is_found_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let is_incomplete =
            |subject: &str| Host::new().is_incomplete(dir.path(), Path::new(subject)).unwrap();
        assert!(!is_incomplete(SUBJECT));
        let marker = take(dir.path());
        let name = marker.temporary.clone();
        assert!(is_incomplete(SUBJECT) && !is_incomplete("/other.tar"));
        drop(marker);
        let again = take(dir.path());
        assert_eq!(again.temporary, name);
        again.remove().unwrap();
        assert!(!is_incomplete(SUBJECT));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_planted_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(name_for(Path::new(SUBJECT)));
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "text").unwrap();
        let plant: [&dyn Fn(); 5] = [
            &|| std::os::unix::fs::symlink(&victim, &at).unwrap(),
            &|| std::fs::hard_link(&victim, &at).unwrap(),
            &|| std::fs::create_dir(&at).unwrap(),
            &|| std::fs::write(&at, "../victim").unwrap(),
            &|| {
                let mode = crate::file::mode(0o600);
                rustix::fs::mknodat(rustix::fs::CWD, &at, rustix::fs::FileType::Fifo, mode, 0)
                    .unwrap();
            },
        ];
        for plant in plant {
            plant();
            let marker = take(dir.path());
            assert!(marker.temporary.starts_with(TEMPORARY));
            let meta = std::fs::symlink_metadata(&at).unwrap();
            assert!(meta.is_file() && meta.nlink() == 1);
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "text");
            marker.remove().unwrap();
        }
    }

    #[test]
    fn a_strangers_marker_counts_only_in_his_own_directory() {
        if ccm_testkit::lacks_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(name_for(Path::new(SUBJECT)));
        std::fs::write(&at, "").unwrap();
        std::os::unix::fs::chown(&at, Some(65534), Some(65534)).unwrap();
        let is_incomplete = || Host::new().is_incomplete(dir.path(), Path::new(SUBJECT)).unwrap();
        assert!(!is_incomplete());
        std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
        assert!(is_incomplete());
    }

    /// One after the other, however many come at once.
    #[test]
    fn those_who_come_at_once_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (path, busy) = (dir.path(), std::sync::atomic::AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let marker = take(path);
                        assert_eq!(busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        // Long enough for another to come in between, if one could.
                        std::thread::sleep(Duration::from_millis(2));
                        busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        marker.remove().unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 0);
    }
}
