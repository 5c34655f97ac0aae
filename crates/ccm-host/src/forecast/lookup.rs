//! What a path will be, as far as the preview knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Forecast, MissedFile, Predicted, PredictedContent};
use crate::{Error, FileKind, Host, Result, Stat};

/// How a preview sees a path.
#[derive(Debug)]
pub(crate) enum Seen {
    /// As it is on disk.
    OnDisk,
    /// Nothing will be there.
    Absent,
    /// A file will be there.
    File(Stat, PredictedContent),
    /// A directory will be there; with `true`, one that is not on disk.
    Directory(Stat, bool),
}

impl Forecast {
    /// The resource that decides about a place, about something below it, or
    /// about the content of a directory that it is in.
    fn decides_below(&self, place: &Path) -> Option<&Arc<str>> {
        let entry = self.entries.get(place).map(|entry| &entry.by);
        let unknown = || {
            let related = |tree: &Path| tree.starts_with(place) || place.starts_with(tree);
            self.unknown.iter().find(|(tree, _)| related(tree)).map(|(_, by)| by)
        };
        entry.or_else(|| self.above.get(place)).or_else(unknown)
    }

    /// A path whose symlinks are resolved, and what decides about it.
    fn seen(&self, place: &Path, path: &Path) -> Result<Seen> {
        let unpredictable =
            |by: &Arc<str>| Error::Unpredictable { path: path.to_owned(), by: Arc::clone(by) };
        for (depth, above) in place.ancestors().enumerate() {
            if let Some(entry) = self.entries.get(above) {
                return match (&entry.what, depth) {
                    (Predicted::Something, _) => Err(unpredictable(&entry.by)),
                    (Predicted::File(stat, content), 0) => Ok(Seen::File(*stat, content.clone())),
                    (Predicted::Directory { stat, is_new }, 0) => {
                        Ok(Seen::Directory(*stat, *is_new))
                    }
                    (Predicted::Directory { is_new: false, .. }, _) => continue,
                    (Predicted::Absent | Predicted::File(..) | Predicted::Directory { .. }, _) => {
                        Ok(Seen::Absent)
                    }
                };
            }
            if depth > 0
                && let Some((_, by)) = self.unknown.iter().rev().find(|(tree, _)| tree == above)
            {
                return Err(unpredictable(by));
            }
        }
        Ok(Seen::OnDisk)
    }
}

/// The absolute paths in a text, such as a command line. `/` alone is in no
/// question about a path.
fn paths_in(text: &str) -> impl Iterator<Item = &Path> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>(){}[]=:,$".contains(c);
    let paths = text.split(is_between).filter_map(|word| {
        let path = word.find('/').map(|at| &word[at..])?;
        Some(path.trim_end_matches(['/', '*', '?']))
    });
    paths.filter(|path| path.len() > 1).map(Path::new)
}

impl Host {
    /// How the preview sees a path; always as it is on disk outside of previews.
    pub(crate) fn seen(&self, path: &Path) -> Result<Seen> {
        if !self.is_preview() || self.inner.predictions.load(Ordering::Relaxed) == 0 {
            return Ok(Seen::OnDisk);
        }
        let place = self.resolved(path);
        self.inner.forecast.hold().seen(&place, path)
    }

    /// Whether something is, or in a preview will be, at a path.
    ///
    /// # Errors
    ///
    /// Returns why the path cannot be inspected, or that only the run can tell.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        if self.is_preview() {
            let place = self.resolved(path);
            let forecast = self.inner.forecast.hold();
            if let Some(entry) = forecast.entries.get(&place) {
                return Ok(!matches!(entry.what, Predicted::Absent));
            }
        }
        Ok(self.stat(path)?.is_some())
    }

    /// The resource that decides what will be at a path or below it, if any.
    pub fn predicted_below(&self, path: &Path) -> Option<Arc<str>> {
        if !self.is_preview() || self.inner.predictions.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let place = self.resolved(path);
        self.inner.forecast.hold().decides_below(&place).cloned()
    }

    /// The files that will be below a directory and those that will be gone, as
    /// paths below it; the first list has only what the preview adds.
    pub fn predicted_files(&self, directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        if !self.is_preview() {
            return (added, gone);
        }
        let top = self.resolved(directory);
        for (path, entry) in &self.inner.forecast.hold().entries {
            let Ok(below) = path.strip_prefix(&top) else { continue };
            match entry.what {
                Predicted::Absent => gone.push(below.to_owned()),
                Predicted::File(..) | Predicted::Something => added.push(below.to_owned()),
                Predicted::Directory { .. } => {}
            }
        }
        added.sort();
        gone.sort();
        (added, gone)
    }

    /// A resource of the preview whose predicted path stands in a text, such as
    /// a command line.
    pub fn predicted_in(&self, text: &str) -> Option<Arc<str>> {
        if !self.is_preview() || !text.contains('/') {
            return None;
        }
        paths_in(text).find_map(|path| {
            let place = self.resolved(path);
            let forecast = self.inner.forecast.hold();
            let above = place.ancestors().find_map(|above| forecast.entries.get(above));
            above.map(|entry| &entry.by).or_else(|| forecast.decides_below(&place)).cloned()
        })
    }

    /// The path with the symlinks in its directory resolved, as far as that is
    /// on disk.
    pub(super) fn resolved(&self, path: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        if let Some(known) = self.inner.forecast.hold().resolved.get(parent) {
            return known.join(name);
        }
        let found = parent.ancestors().find_map(|above| {
            let real = above.canonicalize().ok()?;
            Some(real.join(parent.strip_prefix(above).ok()?))
        });
        let found = found.unwrap_or_else(|| parent.to_owned());
        let place = found.join(name);
        self.inner.forecast.hold().resolved.insert(parent.to_owned(), found);
        place
    }

    /// Notes that a file which something wanted to read is missing.
    pub(crate) fn note_missed(&self, error: &Error) {
        if !self.is_preview() {
            return;
        }
        let missed = match error {
            Error::Unpredictable { by, .. } => MissedFile::Awaited(Arc::clone(by)),
            error if error.is_missing() => MissedFile::Missing,
            _ => return,
        };
        self.inner.forecast.hold().missed = Some(missed);
    }

    /// Whether a directory will have no entries.
    pub(crate) fn is_predicted_empty(&self, path: &Path, is_new: bool) -> Result<bool> {
        let place = self.resolved(path);
        let forecast = self.inner.forecast.hold();
        let is_child = |other: &Path| other.parent() == Some(&place);
        let has_child = forecast
            .entries
            .iter()
            .any(|(path, entry)| is_child(path) && !matches!(entry.what, Predicted::Absent));
        drop(forecast);
        if has_child || is_new {
            return Ok(!has_child);
        }
        for name in self.list(path)? {
            if !matches!(self.seen(&path.join(name))?, Seen::Absent) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether what will be at a path can be executed by anybody.
    pub(crate) fn is_predicted_program(&self, path: &Path) -> bool {
        matches!(self.seen(path), Ok(Seen::File(stat, _))
            if stat.kind == FileKind::File && stat.mode & 0o111 != 0)
    }
}
