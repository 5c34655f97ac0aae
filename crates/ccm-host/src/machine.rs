//! Information from the kernel about the machine as a whole.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use crate::{Error, Host, Result};

/// The result of `uname`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uname {
    /// The name that the kernel holds, without a domain on most machines.
    pub hostname: String,
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub release: String,
    /// The kernel's architecture, such as `x86_64`.
    pub machine: String,
}

/// A name in a table of the kernel, such as `/proc/self/mountinfo`, which has
/// blanks and backslashes as octal numbers.
pub fn kernel_name(text: &str) -> OsString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        out.push(code.unwrap_or(byte));
        rest = if code.is_some() { &rest[4..] } else { after };
    }
    OsString::from_vec(out)
}

/// The room on a file system, in bytes and inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that the file system can hold.
    pub total: u64,
    /// Unused bytes, those reserved for root included.
    pub free: u64,
    /// Bytes available to users other than root.
    pub available: u64,
    /// How many inodes there are; none where they are made as needed.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
}

impl Host {
    /// The result of `uname`.
    pub fn uname(&self) -> Uname {
        let text = |text: &CStr| text.to_string_lossy().into_owned();
        let uname = rustix::system::uname();
        Uname {
            hostname: text(uname.nodename()),
            release: text(uname.release()),
            machine: text(uname.machine()),
        }
    }

    /// For how many seconds the machine has been up.
    pub fn uptime(&self) -> u64 {
        u64::try_from(rustix::system::sysinfo().uptime).unwrap_or_default()
    }

    /// The size of a page of memory in bytes.
    pub fn page_size(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    /// The room on the file system that a path lies on. On one whose server is
    /// gone this may block for ever.
    pub fn space(&self, path: &Path) -> Result<Space> {
        let found = rustix::fs::statvfs(path).map_err(Error::io("inspect", path))?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space {
            total: bytes(found.f_blocks),
            free: bytes(found.f_bfree),
            available: bytes(found.f_bavail),
            inodes: found.f_files,
            inodes_free: found.f_ffree,
        })
    }

    /// The caller's home directory: `$HOME`, or what the user database says
    /// where a service manager did not set it.
    pub fn home(&self) -> Option<PathBuf> {
        let home = self
            .env("HOME")
            .map(PathBuf::from)
            .or_else(|| User::from_uid(Uid::effective()).ok().flatten().map(|user| user.dir))?;
        home.is_absolute().then_some(home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_tables_of_the_kernel() {
        assert_eq!(kernel_name(r"/a\040b\134c\011"), "/a b\\c\t");
        assert_eq!(kernel_name(r"\303\244"), "ä");
        assert_eq!(kernel_name(r"\377"), OsString::from_vec(vec![0xff]));
        for text in ["", "\\", r"\04", r"\0x0", r"\999", r"\400", "plain"] {
            assert_eq!(kernel_name(text), text);
        }
    }

    fn proc(path: &str) -> String {
        std::fs::read_to_string(Path::new("/proc").join(path)).unwrap().trim().to_owned()
    }

    #[test]
    fn names_are_the_kernels() {
        let uname = Host::new().uname();
        assert_eq!(uname.hostname, proc("sys/kernel/hostname"));
        assert_eq!(uname.release, proc("sys/kernel/osrelease"));
        assert!(!uname.machine.is_empty());
    }

    #[test]
    fn uptime_is_that_of_the_machine() {
        let said: f64 = proc("uptime").split(' ').next().unwrap().parse().unwrap();
        assert!(Host::new().uptime().abs_diff(said as u64) <= 2);
    }

    #[test]
    fn pages_are_powers_of_two() {
        assert!(Host::new().page_size().is_power_of_two());
    }

    #[test]
    fn space_adds_up() {
        let space = Host::new().space(Path::new("/")).unwrap();
        assert!(space.total > 0);
        assert!(space.available <= space.free && space.free <= space.total);
        assert!(space.inodes_free <= space.inodes);
        assert!(Host::new().space(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn home_is_absolute() {
        assert!(Host::new().home().is_none_or(|home| home.is_absolute()));
    }
}
