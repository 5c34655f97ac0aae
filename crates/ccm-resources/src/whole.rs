//! The files that resources of a run write as a whole, for those that change a
//! part of one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ccm_host::Host;

/// The resources by what they write.
#[derive(Debug, Default)]
struct Written(Mutex<Paths>);

#[derive(Debug, Default)]
struct Paths {
    /// As they were declared, while nobody has asked.
    declared: Vec<(PathBuf, String)>,
    /// Symlinks followed.
    real: HashMap<PathBuf, String>,
}

/// Notes that a resource writes the whole content of files.
pub(crate) fn note(host: &Host, by: &str, paths: impl IntoIterator<Item = PathBuf>) {
    let written = host.cached::<Written>();
    let mut written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    written.declared.extend(paths.into_iter().map(|path| (path, by.to_owned())));
}

/// The resource that writes a file, whatever path it was declared with.
pub(crate) fn writer(host: &Host, real: &Path) -> Option<String> {
    let written = host.cached::<Written>();
    let mut written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    for (path, by) in std::mem::take(&mut written.declared) {
        written.real.insert(host.followed(&path), by);
    }
    written.real.get(real).cloned()
}
