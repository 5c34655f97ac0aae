//! A file that is being written.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Destination, EntryMetadata, remove};
use crate::digest::PartialDigest;
use crate::file::mode;
use crate::{Error, Image, Result, Stat};

/// A file that is being written under a temporary name. Dropping it before
/// [`NewFile::finish`] removes it.
#[derive(Debug)]
pub struct NewFile<'a> {
    into: &'a mut Destination,
    file: File,
    parent: Arc<OwnedFd>,
    temporary: String,
    name: PathBuf,
    ends_in_hole: bool,
    in_place: bool,
    /// Digest for the history; `None` for sparse files, whose zeros are not read.
    digest: Option<PartialDigest>,
}

impl<'a> NewFile<'a> {
    pub(super) fn new(
        into: &'a mut Destination,
        file: File,
        parent: Arc<OwnedFd>,
        temporary: String,
        name: &Path,
    ) -> Self {
        let name = name.to_owned();
        let digest = into.host.journal().map(|_| PartialDigest::default());
        Self { into, file, parent, temporary, name, ends_in_hole: false, in_place: false, digest }
    }

    fn path(&self) -> PathBuf {
        self.into.path.join(&self.name)
    }

    /// Appends bytes to the file, which has no name in the tree yet.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.ends_in_hole = false;
        if let Some(digest) = &mut self.digest {
            digest.add(bytes);
        }
        self.file.write_all(bytes).map_err(|error| Error::std_io("write", &self.path())(error))
    }

    /// Leaves out bytes, which read as zero.
    pub fn hole(&mut self, length: u64) -> Result<()> {
        if length > 0 {
            self.digest = None;
        }
        let skip = i64::try_from(length).map_err(io::Error::other);
        let skipped = skip.and_then(|length| self.file.seek(SeekFrom::Current(length)));
        skipped.map_err(|error| Error::std_io("write", &self.path())(error))?;
        self.ends_in_hole |= length > 0;
        Ok(())
    }

    /// Gives it its attributes and then its name, when its content is complete.
    pub fn finish(mut self, restored: &EntryMetadata) -> Result<()> {
        if self.ends_in_hole {
            let end = self.file.stream_position();
            let sized = end.and_then(|end| self.file.set_len(end));
            sized.map_err(|error| Error::std_io("write", &self.path())(error))?;
        }
        if let Some((uid, gid)) = restored.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            rustix::fs::fchown(&self.file, Some(uid), Some(gid))
                .map_err(|errno| Error::io("set the owner of", &self.path())(errno))?;
        }
        if let Some(bits) = restored.mode {
            rustix::fs::fchmod(&self.file, mode(bits))
                .map_err(|errno| Error::io("set the mode of", &self.path())(errno))?;
        }
        if let Some(times) = restored.times() {
            rustix::fs::futimens(&self.file, &times)
                .map_err(|errno| Error::io("set the time of", &self.path())(errno))?;
        }
        let after = if self.into.host.journal().is_some() {
            let stat = Stat::of(&self.file, &self.path())?;
            let digest = self.digest.take().map(PartialDigest::finish);
            Some(Image::file(stat.attributes(), stat.size, digest))
        } else {
            None
        };
        self.into.place(&self.parent, &self.temporary, &self.name, after)?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.in_place {
            let _ = remove(&self.parent, Path::new(&self.temporary));
        }
    }
}
