//! Opens a destination, creates it if it does not exist, and marks it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{Destination, MAX_ATTEMPTS, remove};
use crate::atomic::rename_to_free;
use crate::file::mode;
use crate::journal::DigestsByInode;
use crate::marker::{Marker, TEMPORARY, name_for};
use crate::{Error, Host, Image, Result, Stat, stale_dirs};

/// Directories that were made for a destination: where, and their names from
/// the outermost on.
#[derive(Debug)]
pub(super) struct Made {
    parent: Arc<OwnedFd>,
    names: Vec<PathBuf>,
}

impl Made {
    /// Removes them again; what has entries by now stays.
    pub(super) fn undo(self) {
        for name in self.names.iter().rev() {
            let _ = rustix::fs::unlinkat(&*self.parent, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Destination {
    /// Opens a directory to create files below it. Follows symlinks to it; as
    /// root, only symlinks whose target has the same owner.
    pub fn open(host: &Host, path: &Path) -> Result<Self> {
        let top = host.open_managed(path)?;
        host.forget_parent();
        let dev = Stat::of(&top, path)?.dev;
        Ok(Self {
            top: Arc::new(top),
            path: path.to_owned(),
            host: host.clone(),
            dev,
            is_durable: true,
            last: None,
            temporary: host.random_name(TEMPORARY),
            marker_name: None,
            marker: None,
            made: None,
            final_name: None,
            held: None,
            linked: DigestsByInode::default(),
        })
    }

    /// The same for something that is either all there or marked as incomplete,
    /// see [`Host::is_incomplete`]. A directory that is not there is made, with
    /// its parents; it goes again if nothing is ever begun in it.
    pub fn open_marked(host: &Host, path: &Path, subject: &Path) -> Result<Self> {
        let marker_name = name_for(subject);
        for _ in 0..MAX_ATTEMPTS {
            let missing = host.missing(path)?;
            let made = match missing.first() {
                None => None,
                Some(first) => match host.make_marked(first, &missing, &marker_name)? {
                    // Another process has created it first.
                    None => continue,
                    made => made,
                },
            };
            let mut into = Self::open(host, path)?;
            into.marker_name = Some(marker_name);
            if let Some((made, marker)) = made {
                into.made = Some(made);
                into.temporary.clone_from(&marker.temporary);
                into.marker = Some(marker);
            }
            return Ok(into);
        }
        Err(Error::io("create directory", path)(Errno::EXIST))
    }
}

impl Host {
    /// Makes directories with a marker in the innermost, all of them at one
    /// instant: nobody finds them without the marker. `None` when something has
    /// the name by now.
    fn make_marked(
        &self,
        first: &Path,
        missing: &[&Path],
        marker_name: &str,
    ) -> Result<Option<(Made, Marker)>> {
        let (parent, name) = self.open_parent(first)?;
        let dev = Stat::of(&*parent, first)?.dev;
        let beside = first.parent().unwrap_or(Path::new("/"));
        stale_dirs::sweep(beside, ".ccm-");
        let staged = Staged::make(self, &parent, beside)?;
        let mut innermost = Arc::clone(&staged.directory);
        for path in &missing[1..] {
            let failed = || Error::io("create directory", path);
            let name = path.file_name().unwrap_or_default();
            rustix::fs::mkdirat(&*innermost, name, mode(0o700)).map_err(failed())?;
            innermost = Arc::new(open(&innermost, name).map_err(failed())?);
            // Whatever the umask says.
            rustix::fs::fchmod(&*innermost, mode(0o755)).map_err(failed())?;
        }
        let inside = missing.last().unwrap_or(&first);
        let marker = Marker::take(self, &innermost, inside, marker_name)?;
        rustix::fs::fchmod(&*staged.directory, mode(0o755))
            .map_err(Error::io("set the mode of", first))?;
        for path in missing {
            self.record_new(path, || None)?;
        }
        match rename_to_free(&*parent, Path::new(&staged.name), &*parent, name) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                if let Some(journal) = self.journal() {
                    for path in missing {
                        journal.complete(path, &Image::Absent)?;
                    }
                }
                return Ok(None);
            }
            Err(errno) => return Err(Error::io("create directory", first)(errno)),
        }
        for path in missing {
            self.complete_record_at(rustix::fs::CWD, path, path)?;
        }
        self.cancel().forget(&staged.path);
        self.forget_parent();
        let mut barrier = self.inner.barrier.hold();
        for path in missing {
            barrier.file_changed(path, dev);
        }
        let relative = |path: &&Path| path.strip_prefix(beside).unwrap_or(path).to_owned();
        let names = missing.iter().map(relative).collect();
        Ok(Some((Made { parent, names }, marker)))
    }
}

/// A directory under a temporary name. Unless it was renamed, it goes when it is
/// dropped, and its lock tells other runs that it is in use until then.
struct Staged {
    host: Host,
    directory: Arc<OwnedFd>,
    name: String,
    path: PathBuf,
}

impl Staged {
    fn make(host: &Host, parent: &OwnedFd, beside: &Path) -> Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let name = host.random_name(".ccm-");
            let path = beside.join(&name);
            let failed = || Error::io("create directory", &path);
            rustix::fs::mkdirat(parent, &*name, mode(0o700)).map_err(failed())?;
            host.cancel().remember(&path);
            let directory = match open(parent, OsStr::new(&name)) {
                Ok(directory) => Arc::new(directory),
                // Another run has swept it before it is locked.
                Err(Errno::NOENT) => {
                    host.cancel().forget(&path);
                    continue;
                }
                Err(errno) => return Err(failed()(errno)),
            };
            let staged = Self { host: host.clone(), directory, name, path };
            if stale_dirs::lock_open(&staged.directory, &staged.path)
                != Err(stale_dirs::LockError::Taken)
            {
                return Ok(staged);
            }
        }
        Err(Error::io("create a directory in", beside)(Errno::EXIST))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = self.host.remove_own_tree(&self.path);
        self.host.cancel().forget(&self.path);
    }
}

fn open(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

impl Destination {
    /// Says that from now on not everything is in place, until
    /// [`Destination::complete`]. Waits for others who extract the same.
    pub fn begin(&mut self) -> Result<()> {
        self.made = None;
        if let (None, Some(name)) = (&self.marker, &self.marker_name) {
            let marker = Marker::take(&self.host, &self.top, &self.path, name)?;
            self.temporary.clone_from(&marker.temporary);
            self.marker = Some(marker);
        }
        // What a killed run left where nothing may be made this time.
        let _ = remove(&self.top, Path::new(&self.temporary));
        Ok(())
    }

    /// The name of the marker, which nothing else may have.
    pub fn is_reserved(&self, name: &Path) -> bool {
        let first = name.components().next();
        let marker = self.marker_name.as_deref().map(OsStr::new);
        first.is_some() && first.map(std::path::Component::as_os_str) == marker
    }
}
