//! Scaffolds in previews: targets that earlier steps would change, and what
//! rendering would leave behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ccm_engine::{Error, Result};
use ccm_host::{Attributes, FileKind, Host, NewContent};

use super::compare::{Comparison, FileStatus, in_the_way};
use super::stage::Stage;
use super::{Remove, Render};

/// Compares a target that earlier steps of the preview would change.
pub(super) fn compare(
    host: &Host,
    stage: &Stage,
    target: &Path,
    is_removal: bool,
) -> Result<(Comparison, bool)> {
    let kind = |path: &Path| Ok::<_, Error>(host.stat(path)?.map(|stat| stat.kind));
    let target_exists = kind(target)? == Some(FileKind::Directory);
    let mut compared = Comparison::default();
    for place in &stage.directories {
        if !is_removal && kind(&target.join(place))? != Some(FileKind::Directory) {
            compared.missing_directories.push(place.clone());
        }
    }
    for (place, wanted) in &stage.files {
        let path = target.join(place);
        let status = match host.stat(&path)? {
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
    let (added, gone) = host.predicted_files(target);
    let is_gone = |place: &Path| gone.iter().any(|gone| place.starts_with(gone));
    let on_disk = match host.tree_on_disk(target)? {
        Some(tree) => tree.entries()?.files,
        None => Vec::new(),
    };
    let left = on_disk.into_iter().filter(|place| !is_gone(place));
    let all = left.chain(added);
    Ok(all.filter(|place| !stage.files.contains_key(place)).collect())
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
