//! The second pass: writes an archive that has been checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ccm_host::{Destination, EntryMetadata, Host};

use crate::entry::{Contents, Entry, EntryKind, Mode, Owner, Piece, Visitor};
use crate::plan::{Checked, SET_ID};
use crate::{Error, ExtractMode, Extractor, Result};

pub(crate) struct Writer {
    host: Host,
    into: Destination,
    extract_mode: ExtractMode,
    allows_setuid: bool,
    checked: Checked,
    written: usize,
    is_root: bool,
    umask: u32,
    /// Directories get their attributes when nothing is written to them any
    /// more.
    directories: BTreeMap<PathBuf, EntryMetadata>,
}

impl Writer {
    /// From here on the destination is not complete.
    pub(crate) fn new(
        job: &Extractor<'_>,
        mut into: Destination,
        checked: Checked,
    ) -> Result<Self> {
        into.begin()?;
        if let Some(creates) = job.creates {
            into.set_final(creates);
        }
        Ok(Self {
            host: job.host.clone(),
            into,
            extract_mode: job.extract_mode,
            allows_setuid: job.allows_setuid,
            checked,
            written: 0,
            is_root: job.host.is_root(),
            umask: job.host.umask(),
            directories: BTreeMap::new(),
        })
    }

    /// Gives directories their attributes, the innermost first, and what is to
    /// come last its name.
    pub(crate) fn finish(mut self) -> Result<Destination> {
        if self.written != self.checked.count() {
            return Err(changed());
        }
        for (name, restored) in self.directories.iter().rev() {
            self.into.restore(name, restored)?;
        }
        if let Some(placed) = self.into.place_final()? {
            // Its directory has changed once more.
            let parent = placed.parent().unwrap_or(Path::new(""));
            if let Some(restored) = self.directories.get(parent) {
                self.into.restore(parent, restored)?;
            }
        }
        Ok(self.into)
    }

    /// The bits that an entry gets in the end.
    fn mode(&self, entry: &Entry) -> u32 {
        if self.extract_mode == ExtractMode::Private {
            let is_executable =
                entry.mode.bits() & 0o111 != 0 || entry.kind == EntryKind::Directory;
            return if is_executable { 0o700 } else { 0o600 };
        }
        let set_id = if self.allows_setuid { SET_ID } else { 0 };
        match entry.mode {
            Mode::Tar(bits) if self.is_root => bits & (0o1777 | set_id),
            Mode::Exact(bits) => bits & (0o777 | set_id),
            Mode::Tar(bits) | Mode::Unknown(bits) => bits & (0o777 | set_id) & !self.umask,
        }
    }

    /// The owner by name where there is one, else by number.
    fn owner(&self, owner: Option<&Owner>) -> Option<(u32, u32)> {
        let owner = owner.filter(|_| self.is_root && self.extract_mode == ExtractMode::AsStored)?;
        let find = |name: &str, find: &dyn Fn(&str) -> Option<u32>, id| {
            if name.is_empty() { id } else { find(name).unwrap_or(id) }
        };
        let uid = find(&owner.user, &|name| self.host.find_user(name), owner.uid);
        let gid = find(&owner.group, &|name| self.host.find_group(name), owner.gid);
        Some((uid, gid))
    }

    fn write(&mut self, entry: &Entry, contents: &mut dyn Contents) -> Result<()> {
        let mode = self.mode(entry);
        let owner = self.owner(entry.owner.as_ref());
        let restored = EntryMetadata { mode: Some(mode), owner, mtime: entry.mtime };
        let name = &entry.name;
        match &entry.kind {
            // The destination itself is not the archive's to change.
            EntryKind::Directory if name.as_os_str().is_empty() => {}
            EntryKind::Directory => {
                self.into.directory(name)?;
                self.directories.insert(name.clone(), restored);
            }
            EntryKind::File => {
                let mut file = self.into.file(name)?;
                while let Some(piece) = contents.next()? {
                    match piece {
                        Piece::Data(bytes) => file.write(bytes)?,
                        Piece::Hole(length) => file.hole(length)?,
                    }
                    if self.host.cancel().is_cancelled() {
                        return Err(Error::interrupted());
                    }
                }
                file.finish(&restored)?;
            }
            EntryKind::Symlink(target) => {
                self.into.symlink(name, target, &restored)?;
            }
            EntryKind::HardLink(existing) => self.into.hard_link(name, existing)?,
        }
        Ok(())
    }
}

impl Visitor for Writer {
    fn visit(&mut self, entry: Entry, contents: &mut dyn Contents) -> Result<()> {
        if self.host.cancel().is_cancelled() {
            return Err(Error::interrupted());
        }
        if !self.checked.is(self.written, &entry) {
            return Err(changed());
        }
        self.written += 1;
        self.write(&entry, contents)
    }
}

pub(crate) fn changed() -> Error {
    Error::damaged("it changed during extraction")
}
