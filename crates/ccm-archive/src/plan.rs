//! The first pass: checks an archive for errors.
//!
//! It builds the resulting tree in memory, on top of the files on disk, so that
//! it can resolve symlinks as they will be when an entry is written. A symlink
//! may lead anywhere, but nothing is written through one that leads outside.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::{Component, Path, PathBuf};

use ccm_host::{Destination, FileKind, Host};

use crate::entry::{Contents, Entry, EntryKind, Piece, Visitor};
use crate::{Error, ExtractMode, Extractor, Result};

/// How many links are followed in one name, as the system does.
const MAX_LINKS: usize = 40;
pub(crate) const SET_ID: u32 = 0o6000;

/// What would be at a name.
#[derive(Clone, Debug)]
enum Node {
    /// With the room that it takes on the disk now.
    File {
        room: u64,
    },
    Directory {
        /// If not, nothing below it is on the disk either.
        on_disk: bool,
    },
    Symlink(PathBuf),
}

pub(crate) struct Plan {
    host: Host,
    into: Destination,
    extract_mode: ExtractMode,
    allows_setuid: bool,
    nodes: HashMap<PathBuf, Node>,
    /// Directories of the archive, by the names that it has for them.
    directories: Vec<PathBuf>,
    /// The archive has symlinks.
    has_links: bool,
    /// The directory that was found good last.
    last: Option<PathBuf>,
    entries: u64,
    bytes: u64,
    /// Bytes that take room, less those of files that gave way: holes take
    /// none.
    taken: i128,
    /// The most that were taken at once: a file gives way when the new one is
    /// complete.
    peak: i128,
    most_entries: u64,
    most_bytes: u64,
    checked: Checked,
}

/// What was checked, entry by entry, so that nothing else is written should the
/// archive change meanwhile.
#[derive(Default)]
pub(crate) struct Checked {
    hasher: RandomState,
    entries: Vec<u64>,
}

impl Checked {
    fn add(&mut self, entry: &Entry) {
        self.entries.push(self.hasher.hash_one(entry));
    }

    pub(crate) fn is(&self, at: usize, entry: &Entry) -> bool {
        self.entries.get(at) == Some(&self.hasher.hash_one(entry))
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }
}

impl Plan {
    pub(crate) fn new(job: &Extractor<'_>, into: Destination, size: u64) -> Self {
        Self {
            host: job.host.clone(),
            into,
            extract_mode: job.extract_mode,
            allows_setuid: job.allows_setuid,
            nodes: HashMap::new(),
            directories: Vec::new(),
            has_links: false,
            last: None,
            entries: 0,
            bytes: 0,
            taken: 0,
            peak: 0,
            most_entries: job.limits.entries,
            most_bytes: job.limits.bytes_from(size),
            checked: Checked::default(),
        }
    }

    /// Asks for room.
    pub(crate) fn finish(mut self) -> Result<(Checked, Destination)> {
        // Directories get their attributes in the end, by the same names.
        let directories = std::mem::take(&mut self.directories);
        for name in if self.has_links { &directories[..] } else { &[] } {
            self.resolve(name, Follow::Parents).map_err(|reason| reason.of(name, "it is"))?;
        }
        let space = self.host.space(self.into.path())?;
        let room = if self.host.is_root() { space.free } else { space.available };
        let needed = self.peak;
        if needed > i128::from(room) {
            let path = self.into.path().display();
            return Err(Error::excessive(format!(
                "it needs {needed} bytes, but {path} has only {room} bytes free"
            )));
        }
        Ok((self.checked, self.into))
    }

    fn count(&mut self, entry: &Entry) -> Result<()> {
        self.entries += 1;
        if self.entries > self.most_entries {
            return Err(Error::excessive(format!(
                "it has more than {} entries",
                self.most_entries
            )));
        }
        self.bytes = self.bytes.saturating_add(entry.size);
        if self.bytes > self.most_bytes {
            return Err(Error::excessive(format!(
                "it expands to more than {} bytes, too many for its size",
                self.most_bytes
            )));
        }
        Ok(())
    }

    /// The directory that an entry lies in must be one, and inside.
    fn check_parent(&mut self, name: &Path) -> Result<()> {
        let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(());
        };
        if self.last.as_deref() == Some(parent) {
            return Ok(());
        }
        let real = self.resolve(parent, Follow::All).map_err(|reason| reason.of(name, "it is"))?;
        let mut missing = Vec::new();
        for directory in real.ancestors().filter(|path| !path.as_os_str().is_empty()) {
            match self.node(directory)? {
                Some(Node::Directory { .. }) => break,
                None => missing.push(directory.to_owned()),
                Some(_) => {
                    let below = directory.display();
                    return Err(Error::refused(name, format!("{below} is not a directory")));
                }
            }
        }
        for directory in missing {
            self.nodes.insert(directory, Node::Directory { on_disk: false });
        }
        self.last = Some(parent.to_owned());
        Ok(())
    }

    /// What would be at a name now, whose directory is a real one.
    fn node(&mut self, name: &Path) -> Result<Option<Node>> {
        if name.as_os_str().is_empty() {
            return Ok(Some(Node::Directory { on_disk: true }));
        }
        if let Some(node) = self.nodes.get(name) {
            return Ok(Some(node.clone()));
        }
        let parent = name.parent().and_then(|parent| self.nodes.get(parent));
        if matches!(parent, Some(Node::Directory { on_disk: false })) {
            return Ok(None);
        }
        let Some(stat) = self.into.lstat(name)? else { return Ok(None) };
        Ok(Some(match stat.kind {
            FileKind::Directory => Node::Directory { on_disk: true },
            FileKind::Symlink => match self.into.read_link(name)? {
                Some(target) => Node::Symlink(target),
                None => Node::File { room: 0 },
            },
            FileKind::File | FileKind::Other => Node::File { room: stat.size },
        }))
    }

    /// Where a name leads when the links in it are followed.
    fn resolve(&mut self, name: &Path, follow: Follow) -> Result<PathBuf, ResolveError> {
        let mut real = PathBuf::new();
        let mut links = 0;
        let mut pending: Vec<PathBuf> =
            name.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
        while let Some(part) = pending.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => {
                    if !real.pop() {
                        return Err(ResolveError::Out);
                    }
                    continue;
                }
                Some(Component::Normal(_)) => {}
                _ => continue,
            }
            let next = real.join(&part);
            let is_last = pending.is_empty();
            match self.node(&next).map_err(ResolveError::Error)? {
                Some(Node::Symlink(target)) if follow != Follow::Parents || !is_last => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(ResolveError::Endless);
                    }
                    // The writer follows no absolute link, also if it leads back in.
                    if target.is_absolute() {
                        return Err(ResolveError::Out);
                    }
                    let parts = target.components().rev();
                    pending.extend(parts.map(|part| PathBuf::from(part.as_os_str())));
                }
                _ => real = next,
            }
        }
        Ok(real)
    }

    /// Takes an entry into the tree; the room that it frees.
    fn add(&mut self, entry: &Entry) -> Result<u64> {
        let name = &entry.name;
        let refused = |reason: String| Err(Error::refused(name, reason));
        if entry.mode.bits() & SET_ID != 0 && !self.allows_setuid {
            let reason = match self.extract_mode {
                ExtractMode::AsStored => crate::error::SET_ID,
                ExtractMode::Private => "setuid and setgid bits are not allowed here",
            };
            return refused(reason.to_owned());
        }
        let is_plain = matches!(entry.kind, EntryKind::File | EntryKind::Directory);
        if self.extract_mode == ExtractMode::Private && !is_plain {
            return refused("only regular files and directories are allowed here".to_owned());
        }
        if self.into.is_reserved(name) {
            return refused("ccm needs this name for itself".to_owned());
        }
        self.check_parent(name)?;
        if name.as_os_str().is_empty() {
            return match entry.kind {
                EntryKind::Directory => Ok(0),
                _ => refused("it would replace the target directory itself".to_owned()),
            };
        }
        // Where the name really is, should a link be on the way.
        let real =
            self.resolve(name, Follow::Parents).map_err(|reason| reason.of(name, "it is"))?;
        let there = self.node(&real)?;
        let node = match &entry.kind {
            EntryKind::Directory => Node::Directory {
                on_disk: matches!(there, Some(Node::Directory { on_disk: true })),
            },
            _ if matches!(there, Some(Node::Directory { .. })) => {
                return refused("it would replace a directory".to_owned());
            }
            EntryKind::File => Node::File { room: 0 },
            EntryKind::Symlink(target) => Node::Symlink(target.clone()),
            EntryKind::HardLink(existing) => {
                let existing = self
                    .resolve(existing, Follow::Parents)
                    .map_err(|reason| reason.of(name, "it is a hard link that points"))?;
                match self.node(&existing)? {
                    Some(Node::Directory { .. }) => {
                        return refused("it is a hard link to a directory".to_owned());
                    }
                    Some(node) => node,
                    None => {
                        let existing = existing.display();
                        return refused(format!(
                            "it is a hard link to {existing}, which does not exist"
                        ));
                    }
                }
            }
        };
        match &entry.kind {
            EntryKind::Directory => self.directories.push(name.clone()),
            EntryKind::Symlink(_) => self.has_links = true,
            EntryKind::File | EntryKind::HardLink(_) => {}
        }
        let freed = if let Some(Node::File { room }) = there { room } else { 0 };
        // What was a link may be a directory now, and the other way round.
        if matches!(node, Node::Symlink(_)) || matches!(there, Some(Node::Symlink(_))) {
            self.last = None;
        }
        self.nodes.insert(real, node);
        Ok(freed)
    }
}

impl Visitor for Plan {
    fn visit(&mut self, entry: Entry, contents: &mut dyn Contents) -> Result<()> {
        if self.host.cancel().is_cancelled() {
            return Err(Error::interrupted());
        }
        self.count(&entry)?;
        let freed = self.add(&entry)?;
        self.checked.add(&entry);
        let mut size = 0u64;
        while let Some(piece) = contents.next()? {
            size += match piece {
                Piece::Data(bytes) => {
                    self.taken += bytes.len() as i128;
                    bytes.len() as u64
                }
                Piece::Hole(length) => length,
            };
        }
        self.peak = self.peak.max(self.taken);
        self.taken -= i128::from(freed);
        if entry.kind == EntryKind::File && size != entry.size {
            return Err(Error::refused(&entry.name, "its content does not have the declared size"));
        }
        Ok(())
    }
}

/// Which links of a name are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// All of them.
    All,
    /// All but the last part.
    Parents,
}

/// Why a name in the archive cannot be resolved.
enum ResolveError {
    Out,
    Endless,
    Error(Error),
}

impl ResolveError {
    fn of(self, entry: &Path, words: &str) -> Error {
        match self {
            Self::Out => Error::refused(entry, format!("{words} outside the target directory")),
            Self::Endless => Error::refused(entry, format!("{words} through too many symlinks")),
            Self::Error(error) => error,
        }
    }
}
