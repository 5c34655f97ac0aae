//! Scaffolds in previews: targets that earlier steps would change, and what
//! rendering would leave behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ccm_engine::{Error, Result};
use ccm_host::{Attributes, FileKind, Host, NewContent};

use super::compare::{Comparison, FileStatus, in_the_way};
use super::stage::Stage;
use super::{Properties, Remove, Render};

/// Compares a target that earlier steps of the preview would change.
pub(super) fn compare(
    host: &Host,
    stage: &Stage,
    want: &Properties,
    is_removal: bool,
) -> Result<(Comparison, bool)> {
    let target = want.target();
    // What is purged, or keeps a directory from being removed, is in the way of
    // the comparison if only the run can know it.
    if let Some(by) = host.unsettled(target).filter(|_| want.purge || is_removal) {
        return Err(ccm_host::Error::Unpredictable { path: target.to_owned(), by }.into());
    }
    let kind = |path: &Path| Ok::<_, Error>(host.stat(path)?.map(|stat| stat.kind));
    let target_exists = kind(target)? == Some(FileKind::Directory);
    let mut compared = Comparison::default();
    let top = host.followed(target);
    for place in &stage.directories {
        let path = target.join(place);
        if !is_removal && !host.followed(&path).starts_with(&top) {
            return Err(ccm_host::Error::LeadsOutside { path }.into());
        }
        if !is_removal && kind(&path)? != Some(FileKind::Directory) {
            compared.missing_directories.push(place.clone());
        }
    }
    for (place, wanted) in &stage.files {
        let path = target.join(place);
        let status = match host.stat(&path)? {
            // Symlinks to paths outside the target are replaced.
            _ if !host.followed(&path).starts_with(&top) => FileStatus::Updated,
            None if host.lstat(&path)?.is_some() => FileStatus::Updated,
            None => FileStatus::Added,
            Some(stat) if stat.kind == FileKind::File => {
                let file = host.open_found(&path, stat)?;
                let is_equal = stat.size == wanted.bytes.len() as u64
                    && host.holds(&file, &path, &wanted.bytes)?;
                if is_equal { FileStatus::Equal } else { FileStatus::Updated }
            }
            Some(_) if is_removal => FileStatus::Added,
            Some(_) => return Err(in_the_way(&path)),
        };
        compared.files.push((place.clone(), status));
    }
    let foreign = foreign(host, stage, target)?;
    compared.files.extend(foreign.into_iter().map(|place| (place, FileStatus::Foreign)));
    compared.files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok((compared, target_exists))
}

/// What will be in the target and is not of the scaffold.
fn foreign(host: &Host, stage: &Stage, target: &Path) -> Result<BTreeSet<PathBuf>> {
    let all = crate::tree::predicted(host, target)?.files.into_iter();
    // A symlink that serves as one of the directories belongs to the scaffold,
    // and what is reached by it is found under another name too.
    let is_foreign =
        |place: &PathBuf| !stage.files.contains_key(place) && !stage.directories.contains(place);
    let mut foreign: BTreeSet<PathBuf> = all.filter(is_foreign).collect();
    let top = host.followed(target);
    let is_link = |place: &PathBuf| host.followed(&target.join(place)) != top.join(place);
    if stage.directories.iter().any(is_link) {
        let reached = stage.files.keys().map(|place| host.followed(&target.join(place)));
        let reached: BTreeSet<PathBuf> = reached.collect();
        foreign.retain(|place| !reached.contains(&top.join(place)));
    }
    Ok(foreign)
}

/// Records what rendering would leave behind.
pub(super) fn render(host: &Host, render: &Render) -> Result<()> {
    let (uid, gid) = host.whoami();
    let target = &render.target;
    if host.stat(target)?.is_none() {
        host.predict_directory(target, &Attributes { uid, gid, mode: 0o755 })?;
    }
    for place in &render.directories {
        let path = target.join(place);
        if host.stat(&path)?.is_none() {
            host.predict_made_directory(&path)?;
        }
    }
    for (place, file) in &render.write {
        let path = target.join(place);
        let old = host.stat(&path)?.filter(|_| host.is_root());
        let (uid, gid) = old.map_or((uid, gid), |old| (old.uid, old.gid));
        let attributes = Attributes { uid, gid, mode: file.mode };
        host.predict_file(&path, NewContent::Bytes(&file.bytes), &attributes)?;
    }
    let _kept = host.must_keep();
    for place in &render.remove {
        host.predict_removal(&target.join(place), false)?;
    }
    Ok(())
}

/// Records what a removal would leave behind.
pub(super) fn remove(host: &Host, remove: &Remove) -> Result<()> {
    let mut directories = BTreeSet::from([remove.target.clone()]);
    for place in &remove.files {
        let path = remove.target.join(place);
        host.predict_removal(&path, false)?;
        let parents = path.ancestors().skip(1);
        let below = parents.take_while(|parent| parent.starts_with(&remove.target));
        directories.extend(below.map(Path::to_owned));
    }
    // What is inside comes before what it is in.
    for path in directories.into_iter().rev() {
        if host.is_empty_directory(&path).unwrap_or(false) {
            host.predict_removal(&path, false)?;
        }
    }
    Ok(())
}
