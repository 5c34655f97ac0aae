//! Reads file metadata, and text files that ccm uses itself.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::forecast::Seen;
use crate::{Error, Host, Result};

/// The type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file, the only kind that ccm opens to read.
    File,
    /// A directory, whatever it holds.
    Directory,
    /// A symlink, which only [`Host::lstat`] reports.
    Symlink,
    /// A socket, FIFO or device.
    Other,
}

/// The attributes of what is at a path.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// The kind of the file, after symlinks as far as the caller followed them.
    pub kind: FileKind,
    /// Numeric ID of the owner.
    pub uid: u32,
    /// Numeric ID of the group.
    pub gid: u32,
    /// The twelve permission bits.
    pub mode: u32,
    /// Size in bytes; 0 for files that the kernel generates, such as those in `/proc`.
    pub size: u64,
    /// When its content last changed.
    pub mtime: jiff::Timestamp,
    /// When it last changed in any way, its name included.
    pub ctime: jiff::Timestamp,
    /// The file system it lies on.
    pub dev: u64,
    /// The inode number, unique within `dev`.
    pub ino: u64,
}

impl Stat {
    pub(crate) fn new(stat: &rustix::fs::Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            _ => FileKind::Other,
        };
        let mtime = jiff::Timestamp::new(stat.st_mtime, stat.st_mtime_nsec as i32);
        let ctime = jiff::Timestamp::new(stat.st_ctime, stat.st_ctime_nsec as i32);
        Self {
            kind,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: stat.st_mode & 0o7777,
            size: stat.st_size as u64,
            mtime: mtime.unwrap_or_default(),
            ctime: ctime.unwrap_or_default(),
            dev: stat.st_dev,
            ino: stat.st_ino,
        }
    }

    /// Whether anyone but root can write it.
    pub fn is_writable_by_others(&self) -> bool {
        self.attributes().is_writable_by_others()
    }

    pub(crate) fn of(file: impl AsFd, path: &Path) -> Result<Self> {
        let stat = rustix::fs::fstat(file).map_err(Error::io("inspect", path))?;
        Ok(Self::new(&stat))
    }
}

/// `mode_t` of permission bits.
pub(crate) fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as RawMode)
}

impl Host {
    /// The attributes of a path, symlinks followed; `None` if nothing exists.
    pub fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        self.look(path, true)
    }

    /// The attributes of a path, symlinks not followed.
    pub fn lstat(&self, path: &Path) -> Result<Option<Stat>> {
        self.look(path, false)
    }

    /// Opens a regular file for reading. Refuses everything else: opening a
    /// FIFO would hang, and opening a device can have side effects.
    pub fn open(&self, path: &Path) -> Result<(File, Stat)> {
        let found = self.stat(path)?.ok_or_else(|| Error::io("open", path)(Errno::NOENT))?;
        let file = self.open_found(path, found)?;
        let stat = match self.seen_target(path)? {
            Seen::File(stat, _) => stat,
            _ => Stat::of(&file, path)?,
        };
        check_regular(path, stat)?;
        Ok((file, stat))
    }

    /// Opens what was a regular file a moment ago. Should it have become a FIFO
    /// since, nothing hangs.
    pub fn open_found(&self, path: &Path, found: Stat) -> Result<File> {
        check_regular(path, found)?;
        match self.seen_target(path)? {
            Seen::File(_, content) => self.open_predicted(path, &content),
            Seen::Absent => Err(Error::io("open", path)(Errno::NOENT)),
            Seen::OnDisk | Seen::Directory(..) | Seen::Link(_) => {
                self.open_on_disk(&self.on_disk(path, true))
            }
        }
    }

    /// Opens what is on disk, whatever a preview says.
    pub(crate) fn open_on_disk(&self, path: &Path) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(Error::io("open", path))?;
        Ok(file.into())
    }

    /// Reads a text of at most `limit` bytes.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<(String, Stat)> {
        let (bytes, stat) = self.read_bytes(path, limit)?;
        Ok((utf8(bytes, path)?, stat))
    }

    /// Reads a file of at most `limit` bytes.
    pub fn read_bytes(&self, path: &Path, limit: u64) -> Result<(Vec<u8>, Stat)> {
        let (file, stat) = self.open(path)?;
        Ok((read_all(file, stat, path, limit)?, stat))
    }

    /// The names in a directory, in no order.
    pub fn list(&self, path: &Path) -> Result<Vec<std::ffi::OsString>> {
        let entries = std::fs::read_dir(path).map_err(Error::std_io("list", path))?;
        entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()
            .map_err(Error::std_io("list", path))
    }

    /// The path with every link in it followed.
    pub fn canonicalize(&self, path: &Path) -> Result<std::path::PathBuf> {
        path.canonicalize().map_err(Error::std_io("find", path))
    }
}

/// The largest parameter below `/proc/sys` that ccm reads whole.
const KERNEL_FILE: u64 = 64 << 10;

/// Reads an open file of at most `limit` bytes.
pub(crate) fn read_all(file: File, stat: Stat, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let too_large = || Error::TooLarge { path: path.to_owned(), limit };
    if stat.size > limit {
        return Err(too_large());
    }
    // Files of the kernel have no size, and it gives some of them only to the
    // first read.
    let room = if stat.size == 0 { limit.min(KERNEL_FILE) } else { stat.size };
    let mut bytes = Vec::with_capacity(room as usize + 1);
    let first = rustix::io::retry_on_intr(|| {
        rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes))
    });
    first.map_err(Error::io("read", path))?;
    // A first read of just the known size has met the end: there was room for
    // one byte more. Files without a size, and those that grow, go on.
    if bytes.len() as u64 != stat.size || stat.size == 0 {
        let rest = (limit + 1).saturating_sub(bytes.len() as u64);
        file.take(rest).read_to_end(&mut bytes).map_err(Error::std_io("read", path))?;
    }
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The text that bytes are, or where they are not text.
pub(crate) fn utf8(bytes: Vec<u8>, path: &Path) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|&byte| byte == b'\n').count();
        let last = good.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let offset = last.len() + 1;
        Error::NotUtf8 { path: path.to_owned(), line, offset }
    })
}

pub(crate) fn check_regular(path: &Path, stat: Stat) -> Result<()> {
    let found = match stat.kind {
        FileKind::File => return Ok(()),
        FileKind::Directory => "a directory",
        FileKind::Symlink => "a symlink",
        FileKind::Other => "a socket, FIFO or device",
    };
    Err(Error::NotAFile { path: path.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, mode(0o600), 0).unwrap();
        for (path, words) in [(fifo.as_path(), "FIFO"), (dir.path(), "a directory")] {
            let error = host.read_text(path, 10).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_located() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"one\nab\xffc").unwrap();
        let error = Host::new().read_text(&path, 100).unwrap_err();
        assert!(matches!(error, Error::NotUtf8 { line: 2, offset: 3, .. }), "{error}");
    }

    /// The kernel gives many of its parameters only to the first read of a file.
    #[test]
    fn parameters_of_the_kernel_are_read_whole() {
        let at_once = |path: &Path| {
            let mut buffer = vec![0; 1 << 20];
            let file = File::open(path).ok()?;
            let count = rustix::io::read(&file, &mut *buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
        };
        let mut compared = 0;
        for directory in ["/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs", "/proc/sys/net/ipv4"]
        {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let before = at_once(&path);
                let Ok((text, _)) = Host::new().read_text(&path, 1 << 20) else { continue };
                // Some change all the time.
                if before.is_some() && before == at_once(&path) {
                    assert_eq!(Some(text), before, "{}", path.display());
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
    }

    #[test]
    fn the_bound_on_size_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(Host::new().read_text(&path, 5).unwrap().0, "12345");
        assert!(matches!(Host::new().read_text(&path, 4), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn nothing_is_not_an_error() {
        let host = Host::new();
        assert!(host.stat(Path::new("/nonexistent/x")).unwrap().is_none());
        assert!(host.stat(Path::new("/etc/passwd/x")).unwrap().is_none());
    }
}
