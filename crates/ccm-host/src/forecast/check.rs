//! Predicts failures of a step, as far as they are visible before the run.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::Seen;
use crate::{Attributes, Error, FileKind, Host, Result, Stat, kernel_name};

/// In a directory that is to be removed, this many entries are looked at.
const MAX_CHECKED: usize = 100_000;

impl Host {
    /// The directory in which a path will be made or removed, and the path with
    /// its symlinks resolved. Fails unless entries can be made in the directory.
    pub(super) fn predicted_parent(&self, path: &Path) -> Result<(Stat, PathBuf)> {
        let none = || Error::io("manage", path)(Errno::INVAL);
        let (known, place) = self.parent_and_place(path).ok_or_else(none)?;
        if let Some(stat) = known.writable {
            return Ok((stat, place));
        }
        let directory = path.parent().ok_or_else(none)?;
        let stat = self.writable_directory(path, directory)?;
        let known = super::Parent { writable: Some(stat), ..(*known).clone() };
        let mut forecast = self.view.forecast.hold();
        forecast.parents.insert(directory.to_owned(), Arc::new(known));
        Ok((stat, place))
    }

    /// The attributes of a path's directory. Fails unless entries can be made in
    /// it.
    fn writable_directory(&self, path: &Path, parent: &Path) -> Result<Stat> {
        let refused = || Error::io("create a file in", parent);
        match self.seen_target(parent)? {
            Seen::Absent | Seen::File(..) | Seen::Link(_) => {
                Err(Error::NotADirectory { path: parent.to_owned() })
            }
            Seen::Directory(stat, true) => {
                if self.may_write(&stat) {
                    Ok(stat)
                } else {
                    Err(refused()(Errno::ACCESS))
                }
            }
            Seen::Directory(stat, false) => {
                self.open_found_parent(path, parent)?;
                if !self.may_write(&stat) {
                    return Err(refused()(Errno::ACCESS));
                }
                self.check_read_only(&self.on_disk(parent, true))?;
                Ok(stat)
            }
            Seen::OnDisk => {
                let directory = self.open_found_parent(path, parent)?;
                let access = Access::WRITE_OK | Access::EXEC_OK;
                let place = self.on_disk(parent, true);
                rustix::fs::accessat(CWD, &*place, access, AtFlags::EACCESS).map_err(refused())?;
                Stat::of(&*directory, parent)
            }
        }
    }

    /// Opens the directory of a path where it is on disk now.
    fn open_found_parent(&self, path: &Path, parent: &Path) -> Result<Arc<OwnedFd>> {
        match self.on_disk(parent, true) {
            Cow::Borrowed(_) => Ok(self.open_parent(path)?.0),
            Cow::Owned(place) => Ok(Arc::new(self.open_managed(&place)?)),
        }
    }

    /// Whether the user can make entries in a directory with these attributes.
    fn may_write(&self, directory: &Stat) -> bool {
        self.may(directory, 0o3)
    }

    /// Whether the user has these permissions, by the mode alone.
    pub(super) fn may(&self, found: &Stat, bits: u32) -> bool {
        if self.is_root() {
            return true;
        }
        let (uid, _) = self.whoami();
        let shift = if found.uid == uid {
            6
        } else if self.is_member(found.gid) {
            3
        } else {
            0
        };
        found.mode >> shift & bits == bits
    }

    /// Whether the user belongs to a group.
    fn is_member(&self, gid: u32) -> bool {
        let groups = rustix::process::getgroups().unwrap_or_default();
        self.whoami().1 == gid || groups.iter().any(|group| group.as_raw() == gid)
    }

    fn check_read_only(&self, path: &Path) -> Result<()> {
        let flags = rustix::fs::statvfs(path).map(|found| found.f_flag);
        match flags {
            Ok(flags) if flags.contains(StatVfsMountFlags::RDONLY) => {
                Err(Error::io("change", path)(Errno::ROFS))
            }
            _ => Ok(()),
        }
    }

    /// Not even root changes what is marked as immutable or append-only.
    fn check_mutable(&self, path: &Path) -> Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(CWD, path, flags, StatxFlags::empty()) {
            Ok(found) if is_immutable(&found) => Err(Error::io("change", path)(Errno::PERM)),
            _ => Ok(()),
        }
    }

    /// Nothing can take the name of what is immutable or a mount point. In a
    /// directory with the sticky bit only its owner and the owner of an entry can
    /// replace or remove the entry.
    pub(super) fn check_replaceable(&self, path: &Path, parent: &Stat) -> Result<()> {
        if self.view.forecast.hold().absent.as_deref() == Some(path) {
            return Ok(());
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(CWD, &*self.on_disk(path, false), flags, StatxFlags::UID) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Ok(found) if is_immutable(&found) => {
                return Err(Error::io("change", path)(Errno::PERM));
            }
            found => self.check_not_mounted(path, found.as_ref().ok())?,
        }
        let (uid, _) = self.whoami();
        if self.is_root() || parent.mode & 0o1000 == 0 || parent.uid == uid {
            return Ok(());
        }
        match self.lstat(path)? {
            Some(have) if have.uid != uid => Err(Error::io("replace", path)(Errno::PERM)),
            _ => Ok(()),
        }
    }

    /// Only root can give files away.
    pub(super) fn check_owner(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        let (uid, gid) = self.whoami();
        if self.is_root() || (wanted.uid, wanted.gid) == (uid, gid) {
            return Ok(());
        }
        if wanted.uid != uid || !self.is_member(wanted.gid) {
            return Err(Error::io("set the owner of", path)(Errno::PERM));
        }
        Ok(())
    }

    /// Only root and the owner can change attributes.
    pub(crate) fn check_changeable(
        &self,
        path: &Path,
        have: &Stat,
        wanted: &Attributes,
    ) -> Result<()> {
        if have.kind == FileKind::Symlink {
            return Err(Error::NotAFile { path: path.to_owned(), found: "a symlink" });
        }
        if matches!(self.seen(path)?, Seen::OnDisk) {
            let place = self.on_disk(path, false);
            self.check_read_only(&place)?;
            self.check_mutable(&place)?;
        }
        let (uid, _) = self.whoami();
        if self.is_root() {
            return Ok(());
        }
        if have.uid != uid {
            let action =
                if have.uid == wanted.uid { "set the mode of" } else { "set the owner of" };
            return Err(Error::io(action, path)(Errno::PERM));
        }
        self.check_owner(path, wanted)
    }

    /// What is in a directory can be removed with it: nothing is immutable, and
    /// the user can write every directory that has something in it.
    pub(super) fn check_removable(&self, path: &Path) -> Result<()> {
        let mut pending = vec![path.to_owned()];
        let mut left = MAX_CHECKED;
        while let Some(directory) = pending.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            let mut is_empty = true;
            for entry in entries.flatten() {
                left -= 1;
                if left == 0 {
                    return Ok(());
                }
                is_empty = false;
                self.check_mutable(&entry.path())?;
                if self.inner.must_keep.load(Ordering::Relaxed) > 0
                    && let Some(stat) = super::lookup::look_on_disk(&entry.path(), false)?
                {
                    self.check_keepable(&entry.path(), &stat)?;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(entry.path());
                }
            }
            if !is_empty && !self.is_root() {
                let access = Access::WRITE_OK | Access::EXEC_OK;
                rustix::fs::accessat(CWD, &directory, access, AtFlags::EACCESS)
                    .map_err(Error::io("remove files in", &directory))?;
            }
        }
        Ok(())
    }

    /// A directory that a file system is mounted on or below cannot be removed.
    pub(super) fn check_no_mount(&self, path: &Path) -> Result<()> {
        let place = self.resolved(path);
        for point in mount_points() {
            if point.starts_with(&place) && point != Path::new("/") {
                return Err(Error::MountPoint { path: point });
            }
        }
        Ok(())
    }
}

fn is_immutable(found: &Statx) -> bool {
    found.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND)
}

impl Host {
    /// The mount points at a path and below it.
    pub fn mounts_below(&self, path: &Path) -> Vec<PathBuf> {
        mount_points().filter(|point| point.starts_with(path)).collect()
    }
}

/// Everything that something is mounted on.
pub(super) fn mount_points() -> impl Iterator<Item = PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let path = |point: &str| PathBuf::from(kernel_name(point));
    points.map(path).collect::<Vec<_>>().into_iter()
}
