//! Directories.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::file::mode;
use crate::{Attributes, Error, FileKind, Host, Result};

impl Host {
    /// Makes `path` a directory with these attributes, its parents (0755) too.
    /// A failure leaves no new directory behind.
    pub fn create_directory(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        self.forget_parent();
        let missing = self.missing(path)?;
        for (made, directory) in missing.iter().enumerate() {
            let bits = if *directory == path { 0o700 } else { 0o755 };
            match rustix::fs::mkdirat(CWD, *directory, mode(bits)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => {
                    remove_empty(&missing[..made]);
                    return Err(Error::io("create directory", directory)(errno));
                }
            }
            // Whatever the umask says: parents are reachable.
            if *directory != path {
                let _ = rustix::fs::chmod(*directory, mode(bits));
            }
        }
        let finished = self.set_attributes(path, wanted);
        if finished.is_err() {
            remove_empty(&missing);
        }
        finished
    }

    /// Creates a directory for the caller alone, under the system's temporary
    /// directory and an unguessable name.
    pub fn private_directory(&self, prefix: &str) -> Result<PathBuf> {
        let path = self.temp_dir().join(self.random_name(prefix));
        rustix::fs::mkdirat(CWD, &path, mode(0o700))
            .map_err(Error::io("create directory", &path))?;
        Ok(path)
    }

    /// Whether a directory has no entries.
    pub fn is_empty_directory(&self, path: &Path) -> Result<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(Error::io("open", path))?;
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
    fn missing<'a>(&self, path: &'a Path) -> Result<Vec<&'a Path>> {
        let mut missing = Vec::new();
        for directory in path.ancestors() {
            match self.stat(directory)? {
                Some(stat) if stat.kind == FileKind::Directory => break,
                Some(_) => return Err(Error::NotADirectory { path: directory.to_owned() }),
                None if self.lstat(directory)?.is_some() => {
                    return Err(Error::NotADirectory { path: directory.to_owned() });
                }
                None => missing.push(directory),
            }
        }
        missing.reverse();
        Ok(missing)
    }
}

/// Undoes the making of directories; what has entries by now stays.
fn remove_empty(directories: &[&Path]) {
    for directory in directories.iter().rev() {
        let _ = rustix::fs::rmdir(*directory);
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
        assert_eq!(std::fs::metadata(dir.path().join("a")).unwrap().mode() & 0o7777, 0o755);
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
