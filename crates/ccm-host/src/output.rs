//! Files that ccm writes results to, such as reports.
//!
//! The path comes from the command line and may be in a directory that other
//! users can write to. ccm does not open FIFOs or follow symlinks there: a FIFO
//! would pass the report to another process, a symlink would overwrite another
//! file.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::atomic::Temporary;
use crate::file::{check_regular, mode};
use crate::{Error, FileKind, Host, Result, Stat};

/// A file to be written later, checked now.
#[derive(Debug)]
pub struct OutputFile {
    host: Host,
    parent: Arc<OwnedFd>,
    path: PathBuf,
}

impl OutputFile {
    /// Checks that a result can be written to `path`: it is in a directory, and
    /// is nothing yet or a regular file of the user running ccm or of root.
    /// Nothing is opened, created or changed.
    pub fn new(host: &Host, path: &Path) -> Result<Self> {
        let (parent, _) = host.open_parent(path)?;
        let file = Self { host: host.clone(), parent, path: path.to_owned() };
        file.check()?;
        Ok(file)
    }

    /// Replaces the file atomically by one that only its owner can read, whatever
    /// permissions it had.
    pub fn write_private(&self, bytes: &[u8]) -> Result<()> {
        self.replace_with(bytes, |_| 0o600)
    }

    /// Replaces the file atomically. A new one gets `new_mode`, one that is
    /// there keeps its permissions.
    pub fn write(&self, bytes: &[u8], new_mode: u32) -> Result<()> {
        self.replace_with(bytes, |kept| kept.unwrap_or(new_mode))
    }

    fn replace_with(&self, bytes: &[u8], bits: impl Fn(Option<u32>) -> u32) -> Result<()> {
        let (path, directory) = (&*self.path, self.path.parent().unwrap_or(Path::new("/")));
        let before = self.check()?;
        let (mut temporary, _) = Temporary::create(&self.host, &self.parent, directory)?;
        temporary.file.write_all(bytes).map_err(Error::std_io("write", path))?;
        // A second name of the file may be how someone made it look like ours.
        let kept = before.filter(|&(_, is_linked)| !is_linked).map(|(found, _)| found.mode & 0o777);
        rustix::fs::fchmod(&temporary.file, mode(bits(kept)))
            .map_err(Error::io("set the mode of", path))?;
        // Fails if another user has created something there since the check.
        let replace = self.check()?.is_some();
        temporary.rename(self.name(), path, replace)
    }

    fn name(&self) -> &Path {
        self.path.file_name().map_or(Path::new(""), Path::new)
    }

    /// What is there, and whether it has another name, if it may be replaced.
    fn check(&self) -> Result<Option<(Stat, bool)>> {
        let path = &*self.path;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let (found, is_linked) = match rustix::fs::statat(&*self.parent, self.name(), flags) {
            Ok(found) => (Stat::new(&found), found.st_nlink > 1),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::io("inspect", path)(errno)),
        };
        if found.kind == FileKind::Symlink {
            return Err(Error::Symlink { path: path.to_owned() });
        }
        check_regular(path, found)?;
        if found.uid != 0 && found.uid != self.host.whoami().0 {
            return Err(Error::OtherOwner { path: path.to_owned(), uid: found.uid });
        }
        Ok(Some((found, is_linked)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn permissions(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let host = Host::new();
        OutputFile::new(&host, &path).unwrap().write(b"one", 0o600).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), permissions(&path)), (b"one".into(), 0o600));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        OutputFile::new(&host, &path).unwrap().write(b"two", 0o600).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), permissions(&path)), (b"two".into(), 0o644));
        std::fs::hard_link(&path, dir.path().join("other")).unwrap();
        OutputFile::new(&host, &path).unwrap().write(b"three", 0o600).unwrap();
        assert_eq!(permissions(&path), 0o600);
        assert_eq!(std::fs::read(dir.path().join("other")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_appears_after_the_check_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let output = OutputFile::new(&Host::new(), &path).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(output.write(b"x", 0o600), Err(Error::Symlink { .. })));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
