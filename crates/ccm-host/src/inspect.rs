//! Inspects a path itself, without following a symlink.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

use crate::{Error, Host, Result};

/// Every kind of thing that a path can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink, wherever it leads.
    Symlink,
    /// A socket that programs meet at.
    Socket,
    /// A FIFO.
    Pipe,
    /// A device that is read byte by byte, such as a terminal.
    CharacterDevice,
    /// A device that is read in blocks, such as a disk.
    BlockDevice,
}

/// The attributes of what lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Its type; symlinks are not followed.
    pub kind: NodeKind,
    /// Numeric ID of the owner.
    pub uid: u32,
    /// Numeric ID of the group.
    pub gid: u32,
    /// The twelve permission bits.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
}

impl Host {
    /// Returns what exists at a path on disk, regardless of predictions of a
    /// preview; `None` if nothing exists.
    pub fn inspect(&self, path: &Path) -> Result<Option<Inspected>> {
        let found = match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(Error::io("inspect", path)(errno)),
        };
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => NodeKind::Directory,
            FileType::Symlink => NodeKind::Symlink,
            FileType::Socket => NodeKind::Socket,
            FileType::Fifo => NodeKind::Pipe,
            FileType::CharacterDevice => NodeKind::CharacterDevice,
            FileType::BlockDevice => NodeKind::BlockDevice,
            _ => NodeKind::File,
        };
        Ok(Some(Inspected {
            kind,
            uid: found.st_uid,
            gid: found.st_gid,
            mode: found.st_mode & 0o7777,
            size: u64::try_from(found.st_size).unwrap_or_default(),
        }))
    }

    /// The text of a symlink. In a preview: as earlier steps leave it.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf> {
        if let Some(target) = self.predicted_link(path) {
            return Ok(target);
        }
        std::fs::read_link(path).map_err(Error::std_io("read the symlink", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "abc").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let host = Host::new();
        let kind = |path: &Path| host.inspect(path).unwrap().map(|found| found.kind);
        assert_eq!(kind(&at("file")), Some(NodeKind::File));
        assert_eq!(kind(dir.path()), Some(NodeKind::Directory));
        assert_eq!(kind(&at("link")), Some(NodeKind::Symlink));
        assert_eq!(kind(&at("socket")), Some(NodeKind::Socket));
        assert_eq!(kind(&at("pipe")), Some(NodeKind::Pipe));
        assert_eq!(kind(Path::new("/dev/null")), Some(NodeKind::CharacterDevice));
        assert_eq!(kind(&at("none")), None);
        assert_eq!(kind(&at("file/below")), None);
        assert_eq!(host.inspect(&at("file")).unwrap().unwrap().size, 3);
        assert_eq!(host.read_link(&at("link")).unwrap(), Path::new("nowhere"));
        assert!(host.read_link(&at("file")).is_err());
    }
}
