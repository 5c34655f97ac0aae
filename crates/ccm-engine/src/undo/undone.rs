//! Events for what an undo has restored.

use std::path::{Path, PathBuf};

use ccm_host::{Host, Image};
use ccm_model::{Change, Verb};

/// Outcomes of the paths of a resource.
#[derive(Debug, Default)]
pub(super) struct Undone {
    /// Each path that is as it was again: what it was just now, and is.
    pub(super) restored: Vec<(PathBuf, Image, Image)>,
    /// What is left as it is, and why.
    pub(super) errors: Vec<String>,
    /// Something of it stays because a symlink leads to it.
    pub(super) is_held: bool,
    /// Something of it cannot be restored, whatever its present state is.
    pub(super) has_lost: bool,
}

impl Undone {
    pub(super) fn is_nothing(&self) -> bool {
        self.restored.is_empty()
    }

    pub(super) fn verbs(&self) -> Vec<Verb> {
        if self.restored.is_empty() {
            return Vec::new();
        }
        let all = |test: fn(&(PathBuf, Image, Image)) -> bool| self.restored.iter().all(test);
        vec![if all(|(_, _, to)| *to == Image::Absent) {
            Verb::Removed
        } else if all(|(_, from, _)| *from == Image::Absent) {
            Verb::Created
        } else {
            Verb::Updated
        }]
    }

    /// What it changed: property by property of a single path, else lists.
    pub(super) fn changes(&self, host: &Host) -> Vec<Change> {
        let Some((first, from, _)) = self.restored.first() else { return Vec::new() };
        if self.restored.iter().all(|(path, ..)| path == first)
            && let Some((_, _, to)) = self.restored.last()
        {
            return changes_of(from, to, host);
        }
        let list = |property: &'static str, test: fn(&Image) -> bool| {
            let paths = self.restored.iter().filter(|(_, _, to)| test(to));
            let paths: Vec<String> =
                paths.map(|(path, ..)| path.to_string_lossy().into_owned()).collect();
            (!paths.is_empty()).then(|| match property {
                "removed" => Change::of(property).from(paths),
                _ => Change::of(property).to(paths),
            })
        };
        let restored = list("restored", |to| *to != Image::Absent);
        restored.into_iter().chain(list("removed", |to| *to == Image::Absent)).collect()
    }
}

fn changes_of(from: &Image, to: &Image, host: &Host) -> Vec<Change> {
    let ensure = |image: &Image| match image {
        Image::Absent => "absent",
        Image::Directory { .. } => "directory",
        Image::Symlink { .. } => "symlink",
        Image::File { .. } | Image::Other => "present",
    };
    let mut changes = Vec::new();
    if ensure(from) != ensure(to) {
        changes.push(Change::of("ensure").from(ensure(from)).to(ensure(to)));
    }
    let is_hidden = |image: &Image| image.attributes().is_some_and(|it| it.mode & 0o004 == 0);
    if let (Some(old), Some(new)) = (from.digest(), to.digest())
        && old != new
    {
        changes.push(if is_hidden(from) || is_hidden(to) {
            Change::secret("content")
        } else {
            Change::of("content").from(old.to_string()).to(new.to_string())
        });
    }
    if let (Image::Symlink { target: old, .. }, Image::Symlink { target: new, .. }) = (from, to) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        changes.push(Change::of("target").from(text(old)).to(text(new)));
    }
    if let (Some(old), Some(new)) = (from.attributes(), to.attributes()) {
        let mut add = |property: &'static str, old: String, new: String| {
            if old != new {
                changes.push(Change::of(property).from(old).to(new));
            }
        };
        let user = |uid| host.user_name(uid).to_string();
        let group = |gid| host.group_name(gid).to_string();
        add("owner", user(old.uid), user(new.uid));
        add("group", group(old.gid), group(new.gid));
        add("mode", format!("{:04o}", old.mode), format!("{:04o}", new.mode));
    }
    changes
}
