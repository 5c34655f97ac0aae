//! A directory that is a copy of another: what it lacks, what differs, and what
//! it has beside.

mod act;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ccm_engine::{Context, Error, Result, Step};
use ccm_host::{Attributes, FileKind, Host, Stat, Tree, TreeEntry};
use ccm_model::{Change, Verb};
use serde::{Deserialize, Serialize};

use super::{Action, Properties, mode};
use crate::tree::{self, Kept, check_apart};

pub(super) use act::{apply, predict};
pub(super) use source::SourceTree;

/// What to do about a source in the target, or the reverse.
const APART: &str = "use separate directories for the source and its copy";

/// A copied directory, compared with its source. Places are below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyState {
    /// Where the source is.
    pub(super) source: PathBuf,
    /// How many files the source has, symlinks included.
    pub(super) total: usize,
    /// What is missing or differs, each before what is in it.
    pub(super) different: Vec<Difference>,
    /// What the source does not have and, with `purge`, no resource declares;
    /// each directory before what is in it.
    pub(super) foreign: Vec<Foreign>,
    /// Something that ccm does not replace, and what is wrong with it.
    pub(super) obstacle: Option<(PathBuf, &'static str)>,
}

/// Something in a copied directory that is not as in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    place: PathBuf,
    member: Member,
    is_new: bool,
}

/// Something that is in a copied directory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    place: PathBuf,
    is_directory: bool,
}

/// What is to be at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// A directory.
    Directory {
        /// Its permissions.
        mode: u32,
    },
    /// A copy of the file at this place in the source.
    File {
        /// Its permissions.
        mode: u32,
    },
    /// A symlink.
    Link {
        /// Its text.
        target: PathBuf,
    },
}

/// The step that makes a directory a copy of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The directory.
    pub(super) path: PathBuf,
    source: PathBuf,
    owner: u32,
    group: u32,
    /// Directories first, each before what is in it; then the rest by name.
    write: Vec<(PathBuf, Member)>,
    /// Files to remove, and directories, each after what is in it.
    remove: Vec<PathBuf>,
    remove_directories: Vec<PathBuf>,
}

impl CopyState {
    pub(super) fn differs(&self, want: &Properties) -> bool {
        !self.different.is_empty() || (want.purge && !self.foreign.is_empty())
    }

    /// How many files and symlinks of the source are missing or differ.
    pub(super) fn different_files(&self) -> usize {
        let is_file = |one: &&Difference| !matches!(one.member, Member::Directory { .. });
        self.different.iter().filter(is_file).count()
    }

    pub(super) fn foreign_files(&self) -> usize {
        self.foreign.iter().filter(|one| !one.is_directory).count()
    }

    /// What a saved plan compares with its content: files that would be replaced
    /// or removed.
    pub(super) fn at_stake<'a>(&'a self, want: &Properties) -> impl Iterator<Item = &'a Path> {
        let different = self.different.iter().filter(|one| !one.is_new);
        let foreign = self.foreign.iter().filter(|one| want.purge && !one.is_directory);
        different.map(|one| &*one.place).chain(foreign.map(|one| &*one.place))
    }

    /// What is still wrong after acting.
    pub(super) fn mismatch(&self, want: &Properties) -> Option<String> {
        let path = |place: &Path| want.path().join(place).display().to_string();
        if let Some((place, reason)) = &self.obstacle {
            return Some(format!("{} {reason}", path(place)));
        }
        if let Some(one) = self.different.first() {
            return Some(format!("{} differs from the source", path(&one.place)));
        }
        let foreign = self.foreign.first().filter(|_| want.purge)?;
        Some(format!("{} should have been purged", path(&foreign.place)))
    }
}

/// The step from a directory to a copy; `None` if it is one.
pub(super) fn decide(
    want: &Properties,
    have: &CopyState,
    wanted: &Attributes,
) -> Result<Option<Step<Action>>> {
    if let Some((place, reason)) = &have.obstacle {
        let path = want.path().join(place);
        return Err(Error::Refused {
            reason: format!("{} {reason}", path.display()),
            hint: Some("remove it first; ccm never replaces it on its own".to_owned()),
        });
    }
    if !have.differs(want) {
        return Ok(None);
    }
    let foreign: &[Foreign] = if want.purge { &have.foreign } else { &[] };
    if have.total == 0 && !foreign.is_empty() && !want.allow_empty {
        let count = foreign.len();
        let entries = if count == 1 { "entry" } else { "entries" };
        return Err(Error::Refused {
            reason: format!("the source is empty; purge would remove {count} {entries}"),
            hint: Some("set `allow_empty: true` if that is what you want".to_owned()),
        });
    }
    let (directories, files): (Vec<_>, Vec<_>) = have
        .different
        .iter()
        .map(|one| (one.place.clone(), one.member.clone()))
        .partition(|(_, member)| matches!(member, Member::Directory { .. }));
    let places = |is_directory: bool| {
        let those = foreign.iter().filter(move |one| one.is_directory == is_directory);
        those.map(|one| one.place.clone())
    };
    let copy = Copy {
        path: want.path().to_owned(),
        source: have.source.clone(),
        owner: wanted.uid,
        group: wanted.gid,
        write: directories.into_iter().chain(files).collect(),
        remove: places(false).collect(),
        remove_directories: places(true).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    let named = |place: &Path| place.to_string_lossy().into_owned();
    let of = |is_new: bool| {
        let those = have.different.iter().filter(|one| one.is_new == is_new);
        those.map(|one| named(&one.place)).collect::<Vec<String>>()
    };
    let removed = foreign.iter().map(|one| named(&one.place)).collect();
    let change = Change::of("files").members([of(true), of(false), removed]);
    Ok(Some(Step::new(Verb::Updated, Action::Copy(copy)).change(change)))
}

/// What noop says of a step.
pub(super) fn describe(step: &Step<Action>) -> Option<String> {
    let change = step.changes.iter().find(|change| change.property == "files")?;
    let counts = [
        (change.created.len(), "created"),
        (change.updated.len(), "updated"),
        (change.removed_members().len(), "removed"),
    ];
    let word = |count| if count == 1 { "entry" } else { "entries" };
    let those = counts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        those.map(|(count, verb)| format!("{verb} {count} {}", word(count))).collect();
    Some(format!("Would have {}", parts.join(", ")))
}

/// Compares a directory, which is there unless `is_new`, with its source.
pub(super) fn compare(
    host: &Host,
    source: &SourceTree,
    want: &Properties,
    wanted: &Attributes,
    is_new: bool,
    cx: &Context<'_>,
) -> Result<CopyState> {
    let path = want.path();
    check_apart(host, source.path(), path, APART)?;
    let target = Target::open(host, path, is_new)?;
    if let (Target::Predicted(..), true) = (&target, want.purge)
        && let Some(by) = host.unsettled(path)
    {
        return Err(ccm_host::Error::Unpredictable { path: path.to_owned(), by }.into());
    }
    let mut state = CopyState {
        source: source.path().to_owned(),
        total: source.files(),
        ..CopyState::default()
    };
    let file_mode = mode::parse(&want.mode).map_err(Error::refused)?;
    for (place, member) in source.members(file_mode) {
        let found = target.lstat(place)?;
        let is_same = match check(&member, found) {
            Err(reason) => {
                state.obstacle = Some((place.to_owned(), reason));
                return Ok(state);
            }
            Ok(None) => false,
            Ok(Some(stat)) => target.is_same(host, source, place, &member, stat, wanted)?,
        };
        if !is_same {
            let is_new = found.is_none();
            state.different.push(Difference { place: place.to_owned(), member, is_new });
        }
    }
    state.foreign = foreign(host, &target, source, want, cx)?;
    Ok(state)
}

/// What is found, if it can be as wanted; an error if ccm does not replace it.
fn check(member: &Member, found: Option<Stat>) -> Result<Option<Stat>, &'static str> {
    let Some(found) = found else { return Ok(None) };
    match (member, found.kind) {
        (Member::Directory { .. }, FileKind::Directory)
        | (Member::File { .. }, FileKind::File)
        | (Member::Link { .. }, FileKind::Symlink) => Ok(Some(found)),
        (Member::File { .. }, FileKind::Symlink) => Ok(None),
        (Member::Directory { .. }, _) => Err("exists and is not a directory"),
        (_, FileKind::Directory) => Err("exists as a directory"),
        (Member::Link { .. }, _) => Err("exists and is not a symlink"),
        (Member::File { .. }, _) => Err("is a socket, FIFO or device, not a file"),
    }
}

/// What is in the directory and not in the source.
fn foreign(
    host: &Host,
    target: &Target,
    source: &SourceTree,
    want: &Properties,
    cx: &Context<'_>,
) -> Result<Vec<Foreign>> {
    let entries = match target {
        Target::Nothing => return Ok(Vec::new()),
        Target::OnDisk(tree) => tree.entries()?,
        Target::Predicted(_, path) => tree::predicted(host, path)?,
    };
    // What cannot be listed may hold what is to be purged.
    if let Some(error) = entries.unknown.filter(|_| want.purge) {
        return Err(error.into());
    }
    let is_foreign = |place: &PathBuf| !source.has(place);
    let found = |place, is_directory| Foreign { place, is_directory };
    let directories = entries.directories.into_iter().filter(is_foreign);
    let files = entries.files.into_iter().filter(is_foreign);
    let mut all: Vec<Foreign> = directories
        .map(|place| found(place, true))
        .chain(files.map(|place| found(place, false)))
        .collect();
    if want.purge && !all.is_empty() {
        let own = format!("file#{}", want.common.name);
        let mut kept = Kept::new(host, want.path(), cx.declared, &own, Some(source.path()))?;
        for mount in &entries.mounts {
            kept.add_mount(mount);
        }
        for one in all.iter().filter(|one| !one.is_directory && target.is_mount(&one.place)) {
            kept.add_mount(&one.place);
        }
        all.retain(|one| !kept.has(&one.place));
    }
    all.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(all)
}

/// The directory, as this handle sees it.
enum Target {
    Nothing,
    OnDisk(Tree),
    /// Earlier steps of the preview change something in it.
    Predicted(Host, PathBuf),
}

impl Target {
    fn open(host: &Host, path: &Path, is_new: bool) -> Result<Self> {
        if is_new {
            return Ok(Self::Nothing);
        }
        if host.predicted_below(path).is_some() {
            return Ok(Self::Predicted(host.clone(), path.to_owned()));
        }
        let tree = host.open_tree(path)?;
        Ok(tree.map_or(Self::Nothing, |tree| Self::OnDisk(tree.without_symlinks())))
    }

    fn lstat(&self, place: &Path) -> Result<Option<Stat>> {
        Ok(match self {
            Self::Nothing => None,
            Self::OnDisk(tree) => tree.lstat(place)?,
            Self::Predicted(host, path) => host.lstat(&path.join(place))?,
        })
    }

    fn read_link(&self, place: &Path) -> Result<PathBuf> {
        Ok(match self {
            Self::Nothing => PathBuf::new(),
            Self::OnDisk(tree) => tree.read_link(place)?,
            Self::Predicted(host, path) => host.read_link(&path.join(place))?,
        })
    }

    fn is_mount(&self, place: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::OnDisk(tree) => tree.is_mount_point(place),
            Self::Predicted(host, path) => {
                let tree = host.tree_on_disk(path).ok().flatten();
                tree.is_some_and(|tree| tree.is_mount_point(place))
            }
        }
    }

    /// Whether something of the right kind is as wanted. Sizes are compared
    /// before contents.
    fn is_same(
        &self,
        host: &Host,
        source: &SourceTree,
        place: &Path,
        member: &Member,
        found: Stat,
        wanted: &Attributes,
    ) -> Result<bool> {
        if (found.uid, found.gid) != (wanted.uid, wanted.gid) {
            return Ok(false);
        }
        let has_mode = |mode: u32| found.mode & 0o777 == mode;
        Ok(match member {
            Member::Directory { mode } => has_mode(*mode),
            Member::Link { target } => self.read_link(place)? == *target,
            Member::File { mode } => {
                if !has_mode(*mode) || source.size(place) != Some(found.size) {
                    return Ok(false);
                }
                let file = match self {
                    Self::Nothing => return Ok(false),
                    Self::OnDisk(tree) => match tree.open(place)? {
                        TreeEntry::File(file, stat)
                            if (stat.dev, stat.ino) == (found.dev, found.ino) =>
                        {
                            file
                        }
                        // Something else by now.
                        _ => return Ok(false),
                    },
                    Self::Predicted(host, path) => host.open_found(&path.join(place), found)?,
                };
                let (from, _) = source.folder().open_beneath(place)?;
                let from_path = source.path().join(place);
                host.is_same([&from, &file], [&from_path, place])?
            }
        })
    }
}
