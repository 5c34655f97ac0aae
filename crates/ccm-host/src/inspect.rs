//! Inspects a path itself, without following a symlink.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use md5::Md5;
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;
use sha2::{Sha256, Sha512};

use crate::{Error, Host, Result};

/// Longer lines are no text that anyone looks for something in.
const LONGEST_LINE: u64 = 16 << 20;

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

/// How the content of a file is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// 32 hexadecimal digits; only good against accidents.
    Md5,
    /// 64 hexadecimal digits.
    Sha256,
    /// 128 hexadecimal digits.
    Sha512,
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

    /// Where a symlink leads, as it is written.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf> {
        std::fs::read_link(path).map_err(Error::std_io("read the symlink", path))
    }

    /// The checksum of a regular file, symlinks followed, in hexadecimal.
    pub fn checksum(&self, path: &Path, checksum: Checksum) -> Result<String> {
        match checksum {
            Checksum::Md5 => self.sum::<Md5>(path),
            Checksum::Sha256 => self.sum::<Sha256>(path),
            Checksum::Sha512 => self.sum::<Sha512>(path),
        }
    }

    fn sum<H: sha2::Digest>(&self, path: &Path) -> Result<String> {
        let (mut file, _) = self.open(path)?;
        let mut hasher = H::new();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => hasher.update(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::std_io("read", path)(error)),
            }
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads a regular file line by line, as long as `each` wants more. Lines
    /// come without their ends.
    pub fn read_lines(
        &self,
        path: &Path,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let (file, _) = self.open(path)?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = reader.by_ref().take(LONGEST_LINE);
            let count =
                limited.read_until(b'\n', &mut line).map_err(Error::std_io("read", path))?;
            if count == 0 {
                return Ok(());
            }
            if count as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
                let reason = std::io::Error::other("a line is longer than 16 MiB");
                return Err(Error::std_io("read", path)(reason));
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if each(text).is_break() {
                return Ok(());
            }
        }
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

    #[test]
    fn checksums_are_the_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        let host = Host::new();
        let sum = |checksum| host.checksum(&path, checksum).unwrap();
        assert_eq!(sum(Checksum::Md5), "900150983cd24fb0d6963f7d28e17f72");
        assert!(sum(Checksum::Sha256).starts_with("ba7816bf8f01cfea"));
        assert!(sum(Checksum::Sha512).starts_with("ddaf35a193617aba"));
        assert!(host.checksum(dir.path(), Checksum::Md5).is_err());
    }

    #[test]
    fn lines_come_without_their_ends_and_end_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "a\r\nb\n\nlast").unwrap();
        let host = Host::new();
        let read = |most: usize| {
            let mut lines = Vec::new();
            host.read_lines(&path, &mut |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                if lines.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
            lines
        };
        assert_eq!(read(9), ["a", "b", "", "last"]);
        assert_eq!(read(2), ["a", "b"]);
        std::fs::write(&path, vec![b'x'; (LONGEST_LINE + 5) as usize]).unwrap();
        assert!(host.read_lines(&path, &mut |_| ControlFlow::Continue(())).is_err());
    }
}
