//! Snapshots of directories, for comparison.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Every path below a directory with kind, mode, owner, time and content.
pub fn snapshot(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    walk(top, top, &mut all, &|meta| format!("{}.{:09}", meta.mtime(), meta.mtime_nsec()));
    all
}

/// As [`snapshot`], without times.
pub fn snapshot_of_content(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    walk(top, top, &mut all, &|_| String::new());
    all
}

fn walk(
    top: &Path,
    path: &Path,
    all: &mut BTreeMap<PathBuf, String>,
    time: &dyn Fn(&Metadata) -> String,
) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let owner = format!("{:o} {}:{} {}", meta.mode(), meta.uid(), meta.gid(), time(&meta));
    let content = if meta.is_symlink() {
        format!("-> {}", std::fs::read_link(path).unwrap().display())
    } else if meta.is_file() {
        let mut hasher = DefaultHasher::new();
        std::fs::read(path).unwrap().hash(&mut hasher);
        format!("{} bytes {:016x} {} links", meta.len(), hasher.finish(), meta.nlink())
    } else {
        String::new()
    };
    let relative = path.strip_prefix(top).unwrap().to_owned();
    all.insert(relative, format!("{owner} {content}"));
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            walk(top, &entry.unwrap().path(), all, time);
        }
    }
}
