//! What is in the target against what should be.

use std::path::{Path, PathBuf};

use ccm_engine::{Error, Result};
use ccm_host::{Host, Occupant, Tree};

use super::stage::Stage;

/// What would become of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is not there.
    Added,
    /// It is there and differs.
    Updated,
    /// It is as it should be.
    Equal,
    /// It is there and is not of the scaffold.
    Foreign,
}

/// The result of a comparison; places are below the target.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Sorted.
    pub(super) files: Vec<(PathBuf, Fate)>,
    /// Each before what is in it.
    pub(super) missing_directories: Vec<PathBuf>,
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
                files: stage.files.keys().map(|place| (place.clone(), Fate::Added)).collect(),
                missing_directories: stage.directories.iter().cloned().collect(),
            });
        };
        let entries = target.entries()?;
        let mut this = Self::default();
        for place in &stage.directories {
            let is_there =
                entries.directories.contains(place) || is_removal || target.is_directory(place)?;
            if !is_there {
                this.missing_directories.push(place.clone());
            }
        }
        for (place, wanted) in &stage.files {
            let fate = match fate(host, target, place, &wanted.bytes) {
                Err(_) if is_removal => Fate::Added,
                other => other?,
            };
            this.files.push((place.clone(), fate));
        }
        // A link that serves as one of the directories belongs to the scaffold.
        let is_foreign = |place: &PathBuf| {
            !stage.files.contains_key(place) && !stage.directories.contains(place)
        };
        let foreign = entries.files.into_iter().filter(is_foreign);
        this.files.extend(foreign.map(|place| (place, Fate::Foreign)));
        this.files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(this)
    }
}

fn fate(host: &Host, target: &Tree, place: &Path, wanted: &[u8]) -> Result<Fate> {
    Ok(match target.open(place)? {
        Occupant::Nothing => Fate::Added,
        Occupant::Astray => Fate::Updated,
        Occupant::File(_, stat) if stat.size != wanted.len() as u64 => Fate::Updated,
        Occupant::File(file, _) => {
            if host.holds(&file, &target.path().join(place), wanted)? {
                Fate::Equal
            } else {
                Fate::Updated
            }
        }
        Occupant::Other(_) => {
            return Err(Error::Refused {
                reason: format!(
                    "{} is there and is not a regular file",
                    target.path().join(place).display()
                ),
                hint: Some("remove it first, nothing is removed silently".to_owned()),
            });
        }
    })
}
