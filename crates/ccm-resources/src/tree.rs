//! What `scaffold` and a copied directory have in common: a target compared with
//! what it should hold, on disk or as a preview sees it, and what a purge keeps.

mod apart;
mod kept;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ccm_engine::Result;
use ccm_host::{Entries, Host, PredictedEntries, Tree};

pub(crate) use apart::check_apart;
pub(crate) use kept::Kept;

/// Fails if the history cannot keep what is to be purged, before anything is
/// changed.
pub(crate) fn check_kept(host: &Host, tree: &Tree, purged: &[PathBuf]) -> Result<()> {
    let _kept = host.must_keep();
    for place in purged {
        if let Some(stat) = tree.lstat(place)? {
            host.check_keepable(&tree.path().join(place), &stat)?;
        }
    }
    Ok(())
}

/// Everything below a directory of which earlier steps of the preview change
/// something, as they leave it.
pub(crate) fn predicted(host: &Host, directory: &Path) -> Result<Entries> {
    let on_disk = match host.tree_on_disk(directory)? {
        Some(tree) => tree.entries()?,
        None => Entries::default(),
    };
    let PredictedEntries { files, directories, gone } = host.predicted_entries(directory);
    let gone: HashSet<PathBuf> = gone.into_iter().collect();
    let is_left = |place: &PathBuf| !place.ancestors().any(|above| gone.contains(above));
    let merged = |on_disk: Vec<PathBuf>, predicted: Vec<PathBuf>| {
        let left = on_disk.into_iter().filter(is_left).chain(predicted);
        // The directory itself is not in it.
        let all: BTreeSet<PathBuf> = left.filter(|place| !place.as_os_str().is_empty()).collect();
        all.into_iter().collect()
    };
    Ok(Entries {
        files: merged(on_disk.files, files),
        directories: merged(on_disk.directories, directories),
        mounts: on_disk.mounts,
        unknown: on_disk.unknown,
    })
}
