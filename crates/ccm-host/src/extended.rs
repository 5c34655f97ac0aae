//! Extended attributes: those of a file that is about to be replaced, and
//! access control lists that somebody else has set.

use std::os::fd::{AsFd, AsRawFd as _};
use std::path::Path;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::{Attributes, FileKind, Host, Stat};

const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// What new files in a directory get for an access list.
const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";
/// The kernel's own bound on names and values.
const LARGEST: usize = 64 << 10;

/// A name for what a descriptor holds. Descriptors that only name something
/// have no extended attributes themselves.
pub(crate) fn name_of(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Whether its owner could have set access lists that outlive a change to the
/// wanted owner: they vouch for nothing then.
pub(crate) fn has_other_owner(have: &Stat, wanted: &Attributes) -> bool {
    have.uid != 0 && have.uid != wanted.uid
}

/// Whether there is an access list, which allows more than the mode says.
pub(crate) fn has_access_list(file: impl AsFd) -> bool {
    rustix::fs::getxattr(name_of(file), ACCESS_LIST, &mut [0; 0][..]).is_ok()
}

/// Removes access lists, of a directory the default one too.
pub(crate) fn remove_lists(file: impl AsFd, kind: FileKind) -> Result<(), Errno> {
    let name = name_of(file);
    let lists: &[&[u8]] =
        if kind == FileKind::Directory { &[ACCESS_LIST, DEFAULT_LIST] } else { &[ACCESS_LIST] };
    for list in lists {
        match rustix::fs::removexattr(&name, *list) {
            // None there, or none supported.
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Copies labels and other attributes to the new file. An access list is given
/// back, to be set when content and owner are. File capabilities are not kept,
/// as setuid bits are not: they vouched for the old content.
pub(crate) fn keep_extended_attributes(
    host: &Host,
    from: impl AsFd,
    path: &Path,
    to: impl AsFd,
) -> Option<AccessList> {
    let from = name_of(from);
    // None there or none supported: nothing to keep.
    let names = whole(|buffer| rustix::fs::listxattr(&from, buffer)).ok()?;
    let mut access_list = None;
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        if name == b"security.capability" {
            continue;
        }
        let value = whole(|buffer| rustix::fs::getxattr(&from, name, buffer));
        let kept = match value {
            Ok(value) if name == ACCESS_LIST => {
                access_list = Some(AccessList(value));
                Ok(())
            }
            Ok(value) => rustix::fs::fsetxattr(&to, name, &value, XattrFlags::empty()),
            Err(errno) => Err(errno),
        };
        if let Err(errno) = kept {
            let name = String::from_utf8_lossy(name);
            let path = path.display();
            host.warn(format!("cannot keep the extended attribute {name} of {path}: {errno}"));
        }
    }
    access_list
}

/// Calls with a small buffer first, then with the largest that can be needed.
fn whole(get: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    let length = match get(&mut buffer) {
        Err(Errno::RANGE) => {
            buffer.resize(LARGEST, 0);
            get(&mut buffer)?
        }
        other => other?,
    };
    buffer.truncate(length);
    Ok(buffer)
}

/// A POSIX access list as the kernel keeps it: a version, then entries of tag,
/// permissions and id.
pub(crate) struct AccessList(Vec<u8>);

impl AccessList {
    const HEADER: usize = 4;
    const ENTRY: usize = 8;

    /// Sets the list with the mode's permissions for owner, group or mask, and
    /// others, in one step: at no moment does it allow more than the mode.
    pub(crate) fn set(mut self, to: impl AsFd, mode: u32) -> bool {
        const OWNER: u16 = 0x01;
        const GROUP: u16 = 0x04;
        const MASK: u16 = 0x10;
        const OTHERS: u16 = 0x20;
        let entries = self.0.get_mut(Self::HEADER..).unwrap_or_default();
        let tag = |entry: &[u8]| u16::from_le_bytes([entry[0], entry[1]]);
        let has_mask = entries.chunks_exact(Self::ENTRY).any(|entry| tag(entry) == MASK);
        for entry in entries.chunks_exact_mut(Self::ENTRY) {
            let permissions = match tag(entry) {
                OWNER => mode >> 6,
                MASK => mode >> 3,
                GROUP if !has_mask => mode >> 3,
                OTHERS => mode,
                _ => continue,
            };
            entry[2] = (permissions & 0o7) as u8;
            entry[3] = 0;
        }
        rustix::fs::fsetxattr(to, ACCESS_LIST, &self.0, XattrFlags::empty()).is_ok()
    }
}
