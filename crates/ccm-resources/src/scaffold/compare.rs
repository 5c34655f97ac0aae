//! Compares the target with the rendered files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ccm_engine::{Error, Result};
use ccm_host::{Host, Tree, TreeEntry};

use super::stage::Stage;

/// What would become of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileStatus {
    /// It is not there.
    Added,
    /// It is there and differs.
    Updated,
    /// It is as it should be.
    Equal,
    /// It is there and is not of the scaffold.
    Foreign,
    /// There, and to be changed by commands that were not run.
    Uncompared,
}

/// The result of a comparison; places are below the target.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Sorted.
    pub(super) files: Vec<(PathBuf, FileStatus)>,
    /// Each before what is in it.
    pub(super) missing_directories: Vec<PathBuf>,
    /// Why the target may hold more.
    pub(super) unknown: Option<ccm_host::Error>,
}

impl Comparison {
    /// `is_removal` says that only what is there matters: what could not be
    /// rendered over is not of the scaffold.
    pub(super) fn new(
        host: &Host,
        stage: &Stage,
        target: Option<&Tree>,
        is_removal: bool,
    ) -> Result<Self> {
        let Some(target) = target else {
            return Ok(Self {
                files: stage.files.keys().map(|place| (place.clone(), FileStatus::Added)).collect(),
                missing_directories: stage.directories.iter().cloned().collect(),
                unknown: None,
            });
        };
        let entries = target.entries()?;
        let directories: HashSet<&PathBuf> = entries.directories.iter().collect();
        let mut this = Self { unknown: entries.unknown, ..Self::default() };
        // Files that are reached by a link are found under another name too.
        let mut has_links = false;
        for place in &stage.directories {
            if directories.contains(place) || is_removal {
                continue;
            }
            if target.is_directory(place)? {
                has_links = true;
            } else {
                this.missing_directories.push(place.clone());
            }
        }
        let mut managed = HashSet::new();
        for (place, wanted) in &stage.files {
            let (status, found) =
                match status(host, target, place, &wanted.bytes) {
                    Err(
                        Error::Refused { .. } | Error::Host(ccm_host::Error::NotADirectory { .. }),
                    ) if is_removal => (FileStatus::Added, None),
                    other => other?,
                };
            managed.extend(found.filter(|_| has_links));
            this.files.push((place.clone(), status));
        }
        // A link that serves as one of the directories belongs to the scaffold.
        let is_foreign = |place: &PathBuf| {
            !stage.files.contains_key(place) && !stage.directories.contains(place)
        };
        let mut foreign: Vec<PathBuf> = entries.files.into_iter().filter(is_foreign).collect();
        if has_links {
            let is_managed = |place: &PathBuf| {
                let stat = target.lstat(place).ok().flatten();
                stat.is_some_and(|stat| managed.contains(&(stat.dev, stat.ino)))
            };
            foreign.retain(|place| !is_managed(place));
        }
        this.files.extend(foreign.into_iter().map(|place| (place, FileStatus::Foreign)));
        this.files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(this)
    }
}

/// What would become of a file, and which file is there now.
fn status(
    host: &Host,
    target: &Tree,
    place: &Path,
    wanted: &[u8],
) -> Result<(FileStatus, Option<(u64, u64)>)> {
    Ok(match target.open(place)? {
        TreeEntry::Nothing => (FileStatus::Added, None),
        TreeEntry::Astray => (FileStatus::Updated, None),
        TreeEntry::File(file, stat) => {
            let is_equal = stat.size == wanted.len() as u64
                && host.holds(&file, &target.path().join(place), wanted)?;
            let status = if is_equal { FileStatus::Equal } else { FileStatus::Updated };
            (status, Some((stat.dev, stat.ino)))
        }
        TreeEntry::Other(_) => {
            return Err(in_the_way(&target.path().join(place)));
        }
    })
}

/// Something other than a file where a file is to be written.
pub(super) fn in_the_way(path: &Path) -> Error {
    Error::Refused {
        reason: format!("{} exists and is not a regular file", path.display()),
        hint: Some("remove it first; ccm never replaces it on its own".to_owned()),
    }
}
