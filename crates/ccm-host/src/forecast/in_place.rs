//! Predicts in-place writes, and replacements that would fail.

use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Statx, StatxAttributes};
use rustix::io::Errno;

use super::check::mount_points;
use super::{NewContent, Predicted, Seen};
use crate::in_place::{check_target, has_attributes};
use crate::{Attributes, Error, FileKind, Host, Result, Stat};

impl Host {
    /// Records what a file will hold. Fails where [`Host::write_in_place`] would.
    pub fn predict_in_place(
        &self,
        path: &Path,
        content: Option<NewContent<'_>>,
        wanted: &Attributes,
    ) -> Result<()> {
        let (have, content) = match (self.lstat(path)?, content) {
            (Some(have), content) => (have, content),
            (None, Some(content)) => return self.predict_file(path, content, wanted),
            (None, None) => return Err(Error::io("open", path)(Errno::NOENT)),
        };
        let is_on_disk = matches!(self.seen(path)?, Seen::OnDisk);
        let links = if is_on_disk {
            rustix::fs::statat(CWD, &*self.on_disk(path, false), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(Error::io("inspect", path))?
                .st_nlink
        } else {
            1
        };
        let parent = path.parent().unwrap_or(Path::new("/"));
        let parent = self.stat(parent)?.unwrap_or(have);
        check_target(path, &have, links, &parent, wanted)?;
        let Some(content) = content else { return self.predict_attributes(path, wanted) };
        if !has_attributes(&have, wanted) {
            self.check_changeable(path, &have, wanted)?;
        }
        if is_on_disk {
            let place = self.on_disk(path, false);
            rustix::fs::accessat(CWD, &*place, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(Error::io("open", path))?;
        } else if !self.may(&have, 0o2) {
            return Err(Error::io("open", path)(Errno::ACCESS));
        }
        let (size, content) = self.predicted_content(content)?;
        let stat = self.new_stat(FileKind::File, wanted, size, have.dev);
        let what = Predicted::File(Stat { ino: have.ino, ..stat }, content);
        self.record_inode(&have, &what);
        self.record(self.resolved(path), what);
        Ok(())
    }

    /// Fails if something is mounted at a path: nothing else can take its name.
    /// `found` is what the kernel says of it.
    pub(super) fn check_not_mounted(&self, path: &Path, found: Option<&Statx>) -> Result<()> {
        let is_mounted = match found.and_then(is_mount_root) {
            Some(is_mounted) => is_mounted,
            None => {
                let place = self.resolved(path);
                mount_points().any(|point| point == place)
            }
        };
        if is_mounted { Err(Error::MountedFile { path: path.to_owned() }) } else { Ok(()) }
    }
}

/// Whether something is mounted there; `None` where the kernel does not tell.
pub(crate) fn is_mount_root(found: &Statx) -> Option<bool> {
    let is_told = found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    is_told.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(test)]
mod tests {
    use rustix::fs::StatxFlags;

    use super::*;

    #[test]
    fn both_ways_to_find_mounts_agree() {
        for (path, is_mounted) in [("/proc", true), ("/proc/self", false), ("/etc/passwd", false)] {
            let path = Path::new(path);
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let found = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE).unwrap();
            assert!(is_mount_root(&found).is_none_or(|found| found == is_mounted), "{path:?}");
            assert_eq!(mount_points().any(|point| point == path), is_mounted, "{path:?}");
        }
    }
}
