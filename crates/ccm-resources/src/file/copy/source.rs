//! The directory that is copied.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ccm_engine::{Error, Result};
use ccm_host::{FileKind, Folder, FolderEntry, Host, Refuse};

use super::Member;
use crate::file::mode;

/// Entries of a source.
const MAX_ENTRIES: usize = 100_000;
/// Bytes of all its files.
const MAX_SIZE: u64 = 1 << 30;
/// As many symlinks as the kernel follows.
const MAX_LINKS: usize = 40;

/// Everything in a source, held open.
#[derive(Debug)]
pub(crate) struct SourceTree {
    folder: Folder,
    path: PathBuf,
    entries: BTreeMap<PathBuf, FolderEntry>,
}

impl SourceTree {
    /// Reads what is in a directory, without the content of its files.
    ///
    /// # Errors
    ///
    /// Fails if it has anything that cannot be copied.
    pub(crate) fn read(host: &Host, path: &Path) -> Result<Self> {
        let folder = match host.open_copied_folder(path, Refuse::IfStrict) {
            Err(ccm_host::Error::NotADirectory { .. }) => {
                return Err(Error::Refused {
                    reason: format!("the source {} is not a directory", path.display()),
                    hint: Some("use `ensure: present` to copy a file".to_owned()),
                });
            }
            opened => opened?,
        };
        let folder = folder.ok_or_else(|| Error::Missing {
            reason: format!("the source directory {} does not exist", path.display()),
            hint: Some("a relative source begins in the directory of the manifest".to_owned()),
            by: None,
        })?;
        let entries = folder.walk(MAX_ENTRIES)?;
        let size: u64 = entries.iter().filter_map(|one| one.stat).map(|stat| stat.size).sum();
        if size > MAX_SIZE {
            let (path, limit) = (path.display(), MAX_SIZE >> 30);
            let reason = format!("the files in {path} are larger than {limit} GiB in all");
            return Err(Error::refused(reason));
        }
        let refused = |place: &Path, reason: &str, hint: &str| Error::Refused {
            reason: format!("{} {reason}", path.join(place).display()),
            hint: Some(hint.to_owned()),
        };
        let links = entries.iter().filter_map(|one| Some((&*one.place, &**one.target.as_ref()?)));
        let links: HashMap<&Path, &Path> = links.collect();
        for entry in &entries {
            match (entry.kind, &entry.target) {
                (FileKind::Other, _) => {
                    let hint = "a source has directories, regular files and symlinks";
                    let reason = "is a socket, FIFO or device, which ccm does not copy";
                    return Err(refused(&entry.place, reason, hint));
                }
                (_, Some(target)) if target.is_absolute() => {
                    let hint = "use a relative symlink, or a `file` with `ensure: link`";
                    return Err(refused(&entry.place, "is an absolute symlink", hint));
                }
                (_, Some(_)) if !stays_inside(&entry.place, &links) => {
                    let hint = "copy what it points to, or use a `file` with `ensure: link`";
                    let reason = "is a symlink to a path outside the source";
                    return Err(refused(&entry.place, reason, hint));
                }
                _ => {}
            }
        }
        let entries = entries.into_iter().map(|entry| (entry.place.clone(), entry)).collect();
        Ok(Self { folder, path: path.to_owned(), entries })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many files it has, symlinks included.
    pub(super) fn files(&self) -> usize {
        self.entries.values().filter(|one| one.kind != FileKind::Directory).count()
    }

    pub(super) fn has(&self, place: &Path) -> bool {
        self.entries.contains_key(place)
    }

    pub(super) fn size(&self, place: &Path) -> Option<u64> {
        Some(self.entries.get(place)?.stat?.size)
    }

    /// The open directory.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What a copy has, each directory before what is in it. An executable file
    /// can be executed by whoever can read it.
    pub(super) fn members(&self, file_mode: u32) -> impl Iterator<Item = (&Path, Member)> {
        self.entries.values().map(move |entry| {
            let is_executable = entry.stat.is_some_and(|stat| stat.mode & 0o111 != 0);
            let executable = if is_executable { (file_mode & 0o444) >> 2 } else { 0 };
            let member = match (&entry.target, entry.kind) {
                (Some(target), _) => Member::Link { target: target.clone() },
                (None, FileKind::Directory) => {
                    Member::Directory { mode: mode::for_directory(file_mode) }
                }
                (None, _) => Member::File { mode: file_mode | executable },
            };
            (&*entry.place, member)
        })
    }
}

/// Whether the symlink at a place leads to something in the tree, or to where
/// nothing is, by way of the other symlinks.
fn stays_inside(place: &Path, links: &HashMap<&Path, &Path>) -> bool {
    let mut pending: VecDeque<OsString> = names(place).collect();
    let mut at = PathBuf::new();
    let mut followed = 0;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            if !at.pop() {
                return false;
            }
            continue;
        }
        at.push(name);
        let Some(target) = links.get(&*at) else { continue };
        followed += 1;
        if target.is_absolute() {
            return false;
        }
        if followed > MAX_LINKS {
            // The kernel follows no more either: it leads nowhere.
            return true;
        }
        at.pop();
        for name in names(target).collect::<Vec<_>>().into_iter().rev() {
            pending.push_front(name);
        }
    }
    true
}

/// The names in a relative path, with `..` where it goes up.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_are_resolved_by_way_of_each_other() {
        let links = [
            ("near", "f"),
            ("d/up", "../f"),
            ("d/top", ".."),
            ("d/out", "../.."),
            ("d/e/round", "../../d/../f"),
            ("s", "d/e"),
            ("through", "s/../x"),
            ("deep/c", ".."),
            ("away", "deep/c/../../x"),
            ("beyond", "d/top/../x"),
            ("dangling", "none/../x"),
            ("loop", "loop"),
            ("abs", "/etc"),
            ("by-abs", "abs/passwd"),
        ];
        let map = links.iter().map(|(place, target)| (Path::new(*place), Path::new(*target)));
        let map: HashMap<&Path, &Path> = map.collect();
        let outside = ["d/out", "away", "beyond", "abs", "by-abs"];
        for (place, _) in links {
            let is_inside = stays_inside(Path::new(place), &map);
            assert_eq!(is_inside, !outside.contains(&place), "{place}");
        }
    }
}
