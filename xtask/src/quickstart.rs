//! The first command that a newcomer runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, cargo, run, target_directory};

/// Builds ccm with the profile that compiles fastest, and applies
/// `examples/quickstart` to a directory of the user's.
pub(crate) fn apply(root: &Path, directory: Option<&Path>) -> Result {
    cargo(&["build", "--locked", "--profile", "quickstart", "--package", "ccm"])?;
    let directory = directory.map_or_else(|| root.join("quickstart"), Path::to_owned);
    let manifest = write(root, &directory)?;
    let ccm = target_directory()?.join("quickstart/ccm");
    // The example leaves nothing outside of its directory.
    let state = directory.join(".state");
    run(Command::new(&ccm).arg("apply").arg(&manifest).arg("--diff").arg("--state-dir").arg(state))
}

/// Writes the example's manifest into a directory of the user's, for that
/// directory and its owner.
fn write(root: &Path, directory: &Path) -> Result<PathBuf> {
    let say = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(directory).map_err(say)?;
    let directory = directory.canonicalize().map_err(say)?;
    let meta = std::fs::metadata(&directory).map_err(say)?;
    let example = root.join("examples/quickstart/manifest.yaml");
    let manifest = std::fs::read_to_string(example).map_err(say)?;
    let (uid, gid) = (meta.uid().to_string(), meta.gid().to_string());
    let manifest = manifest
        .replace("/srv/quickstart", &directory.to_string_lossy())
        .replace("owner: root", &format!("owner: {uid:?}"))
        .replace("group: root", &format!("group: {gid:?}"));
    let copy = directory.join("manifest.yaml");
    std::fs::write(&copy, manifest).map_err(say)?;
    Ok(copy)
}
