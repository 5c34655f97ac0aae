//! Temporary files beside their target.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{clear_lists_of_others, inherit};
use crate::file::mode;
use crate::{Attributes, Error, FileKind, Host, Image, Result, Stat};

/// Names of temporary files: this and 24 hexadecimal digits.
const PREFIX: &str = ".ccm-";
const NAME_LENGTH: usize = PREFIX.len() + 24;

pub(crate) fn is_temporary_name(name: &[u8]) -> bool {
    name.len() == NAME_LENGTH
        && name.strip_prefix(PREFIX.as_bytes()).is_some_and(|digits| {
            digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        })
}

/// What a killed run left under a temporary name.
pub(super) enum Leftover {
    /// A file, locked as long as this lives.
    File { _lock: OwnedFd },
    /// A symlink, which cannot be locked: whoever makes one tries again if it is
    /// swept away before it has its name.
    Symlink,
}

/// A temporary file or symlink whose writer has ended.
pub(super) fn abandoned(directory: &OwnedFd, name: &std::ffi::CStr) -> Option<Leftover> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match Stat::new(&stat).kind {
        FileKind::File => {}
        FileKind::Symlink => return Some(Leftover::Symlink),
        FileKind::Directory | FileKind::Other => return None,
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(Leftover::File { _lock: file })
}

/// A temporary file that removes itself unless it takes the target's name.
#[derive(Debug)]
pub(crate) struct Temporary<D: AsFd> {
    pub(crate) file: File,
    directory: D,
    name: String,
    path: PathBuf,
    host: Host,
    in_place: bool,
}

impl<D: AsFd> Temporary<D> {
    pub(crate) fn create(host: &Host, directory: D, path: &Path) -> Result<(Self, Stat)>
    where
        D: Clone,
    {
        loop {
            let name = host.random_name(PREFIX);
            let full = path.join(&name);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let created =
                rustix::fs::openat(&directory, &name, flags | OFlags::CLOEXEC, mode(0o600));
            let file = match created {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(Error::io("create a file in", path)(errno)),
            };
            let (host, directory) = (host.clone(), directory.clone());
            host.cancel().remember(&full);
            let this = Self { file, directory, name, path: full, host, in_place: false };
            // A sweeping run may have taken the new file for a remainder in
            // the moment before the lock: then there is no name left, try again.
            let _ = rustix::fs::flock(&this.file, FlockOperation::LockExclusive);
            let stat = rustix::fs::fstat(&this.file).map_err(Error::io("inspect", &this.path))?;
            if stat.st_nlink > 0 {
                return Ok((this, Stat::new(&stat)));
            }
        }
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &D {
        &self.directory
    }

    /// Takes the target's name, with these attributes. Until then nobody but
    /// the caller can read or write what is in it.
    pub(crate) fn take_the_name(
        self,
        name: &Path,
        path: &Path,
        created: Stat,
        wanted: &Attributes,
    ) -> Result<()> {
        clear_lists_of_others(&self.directory, path, &self.file, wanted)?;
        let access_list = inherit(&self.host, &self.directory, name, path, &self.file, wanted)?;
        self.set_owner(path, created, wanted)?;
        // After the owner: a change of owner may clear bits. An access list
        // says the same mode and more, so it takes its place.
        let has_list = access_list.is_some_and(|list| list.set(&self.file, wanted.mode));
        if !has_list {
            rustix::fs::fchmod(&self.file, mode(wanted.mode))
                .map_err(Error::io("set the mode of", path))?;
        }
        self.rename(name, path, true)
    }

    /// As [`Temporary::take_the_name`], where the name was free a moment ago: as
    /// long as it is, nothing has attributes that could be inherited.
    pub(super) fn take_free_or_any_name(
        mut self,
        name: &Path,
        path: &Path,
        created: Stat,
        wanted: &Attributes,
        after: Option<Image>,
    ) -> Result<()> {
        clear_lists_of_others(&self.directory, path, &self.file, wanted)?;
        self.set_owner(path, created, wanted)?;
        let set_mode = |bits| {
            rustix::fs::fchmod(&self.file, mode(bits)).map_err(Error::io("set the mode of", path))
        };
        set_mode(wanted.mode)?;
        let (directory, old) = (&self.directory, Path::new(&self.name));
        match rustix::fs::renameat_with(directory, old, directory, name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.in_place = true;
                Ok(())
            }
            // Something is there by now, or the file system cannot do this.
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                set_mode(0o600)?;
                if let Some(journal) = self.host.journal() {
                    // It was not absent after all.
                    journal.complete(path, &Image::Absent)?;
                    self.host.record_change(&self.directory, name, path, |_| after)?;
                }
                let owned = Stat { uid: wanted.uid, gid: wanted.gid, ..created };
                self.take_the_name(name, path, owned, wanted)
            }
            Err(errno) => Err(not_renamed(path, errno)),
        }
    }

    pub(super) fn set_owner(&self, path: &Path, created: Stat, wanted: &Attributes) -> Result<()> {
        if (created.uid, created.gid) == (wanted.uid, wanted.gid) {
            return Ok(());
        }
        let (uid, gid) = wanted.ids();
        rustix::fs::fchown(&self.file, Some(uid), Some(gid))
            .map_err(Error::io("set the owner of", path))
    }

    /// Takes a name, in place of what has it if that may be replaced.
    pub(crate) fn rename(mut self, name: &Path, path: &Path, replace: bool) -> Result<()> {
        let (directory, old) = (&self.directory, Path::new(&self.name));
        let renamed = if replace {
            rustix::fs::renameat(directory, old, directory, name)
        } else {
            rename_to_free(directory, old, directory, name)
        };
        renamed.map_err(|errno| not_renamed(path, errno))?;
        self.in_place = true;
        Ok(())
    }

    /// Takes a name that nothing has; false when something has it.
    pub(crate) fn take_free_name(&mut self, name: &str) -> Result<bool> {
        let (from, to) = (&self.directory, &self.directory);
        match rename_to_free(from, Path::new(&self.name), to, Path::new(name)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(errno) => return Err(Error::io("rename", &self.path)(errno)),
        }
        self.in_place = true;
        Ok(true)
    }
}

/// Why a new file could not take the name of what is at a path.
pub(crate) fn not_renamed(path: &Path, errno: Errno) -> Error {
    let path = path.to_owned();
    match errno {
        Errno::ISDIR => Error::NotAFile { path, found: "a directory" },
        Errno::BUSY => Error::MountedFile { path },
        errno => Error::Rename { path, source: errno.into() },
    }
}

/// Renames to a name that nothing has.
pub(crate) fn rename_to_free(
    from: impl AsFd,
    old: &Path,
    to: impl AsFd,
    new: &Path,
) -> Result<(), Errno> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Not every file system can. A directory with entries is not replaced
        // either way, and a second name is only given when it is free.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::linkat(from, old, to, new, AtFlags::empty()) {
                Ok(()) => rustix::fs::unlinkat(from, old, AtFlags::empty()),
                Err(Errno::PERM | Errno::OPNOTSUPP) => rustix::fs::renameat(from, old, to, new),
                Err(errno) => Err(errno),
            }
        }
        other => other,
    }
}

impl<D: AsFd> Drop for Temporary<D> {
    fn drop(&mut self) {
        if !self.in_place {
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
        self.host.cancel().forget(&self.path);
    }
}
