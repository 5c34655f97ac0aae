//! What a path will be, as far as the preview knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::{Forecast, MissedFile, Parent, Predicted, PredictedContent};
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
        let touched = || {
            let related = |path: &Path| path.starts_with(place) || place.starts_with(path);
            self.touched.iter().find(|(path, _)| related(path)).map(|(_, by)| by)
        };
        entry.or_else(|| self.above.get(place)).or_else(unknown).or_else(touched)
    }

    /// What an on-disk file will be if it changes under another of its names.
    fn by_other_name(&self, found: &Stat) -> Option<(Stat, PredictedContent)> {
        self.inodes.get(&(found.dev, found.ino)).cloned()
    }

    /// How the preview sees a place, a path whose symlinks are resolved.
    fn seen(&self, place: &Path, path: &Path) -> Result<Seen> {
        let inside = place.parent().map_or(Inside::OnDisk, |parent| self.inside(parent));
        self.seen_in(&inside, place, path)
    }

    /// The same, where it is known how the preview sees what is in its directory.
    fn seen_in(&self, inside: &Inside, place: &Path, path: &Path) -> Result<Seen> {
        let unpredictable =
            |by: &Arc<str>| Error::Unpredictable { path: path.to_owned(), by: Arc::clone(by) };
        let touched = self.touched.get(place).filter(|_| !self.touched.is_empty());
        if let Some(by) = touched.or(match inside {
            Inside::Touched(by) => Some(by),
            _ => None,
        }) {
            return Err(unpredictable(by));
        }
        match (self.entries.get(place), inside) {
            (Some(entry), _) => match &entry.what {
                Predicted::Something => Err(unpredictable(&entry.by)),
                Predicted::File(stat, content) => Ok(Seen::File(*stat, content.clone())),
                Predicted::Directory { stat, is_new } => Ok(Seen::Directory(*stat, *is_new)),
                Predicted::Absent => Ok(Seen::Absent),
            },
            (None, Inside::OnDisk) => Ok(Seen::OnDisk),
            (None, Inside::Absent) => Ok(Seen::Absent),
            (None, Inside::Unknown(by) | Inside::Touched(by)) => Err(unpredictable(by)),
        }
    }

    /// How the preview sees what is in a directory and has no entry of its own.
    pub(super) fn inside(&self, directory: &Path) -> Inside {
        if !self.touched.is_empty()
            && let Some(by) = directory.ancestors().find_map(|above| self.touched.get(above))
        {
            return Inside::Touched(Arc::clone(by));
        }
        for above in directory.ancestors() {
            if let Some(entry) = self.entries.get(above) {
                match entry.what {
                    Predicted::Something => return Inside::Unknown(Arc::clone(&entry.by)),
                    Predicted::Directory { is_new: false, .. } => {}
                    Predicted::Absent | Predicted::File(..) | Predicted::Directory { .. } => {
                        return Inside::Absent;
                    }
                }
            }
            if let Some((_, by)) = self.unknown.iter().rev().find(|(tree, _)| tree == above) {
                return Inside::Unknown(Arc::clone(by));
            }
        }
        Inside::OnDisk
    }

    /// Forgets what is known of directories: something that it depends on is
    /// different from now on.
    pub(super) fn forget_parents(&mut self) {
        self.parents.clear();
        self.watched.clear();
    }
}

/// How a preview sees what is in a directory.
#[derive(Clone, Debug)]
pub(super) enum Inside {
    OnDisk,
    Absent,
    /// Only the run can tell; this resource decides.
    Unknown(Arc<str>),
    /// The same, whatever was predicted before: a command names the directory.
    Touched(Arc<str>),
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
    /// Whether nothing was predicted that reads could see.
    fn is_as_on_disk(&self) -> bool {
        !self.is_preview() || self.inner.predictions.load(Ordering::Relaxed) == 0
    }

    /// How the preview sees a path itself, which may be a symlink; always as it
    /// is on disk outside of previews.
    pub(crate) fn seen(&self, path: &Path) -> Result<Seen> {
        if self.is_as_on_disk() {
            return Ok(Seen::OnDisk);
        }
        let Some((parent, place)) = self.parent_and_place(path) else { return Ok(Seen::OnDisk) };
        self.inner.forecast.hold().seen_in(&parent.inside, &place, path)
    }

    /// How the preview sees what a path leads to.
    pub(crate) fn seen_target(&self, path: &Path) -> Result<Seen> {
        Ok(match self.look_ahead(path, true)? {
            Ahead::Seen(seen) => seen,
            Ahead::OnDisk(_) => Seen::OnDisk,
        })
    }

    /// What is at a path, symlinks followed or not. In a preview: as earlier
    /// steps leave it.
    pub(crate) fn look(&self, path: &Path, follows: bool) -> Result<Option<Stat>> {
        if self.is_as_on_disk() {
            return look_on_disk(path, follows);
        }
        Ok(match self.look_ahead(path, follows)? {
            Ahead::OnDisk(found) => found,
            Ahead::Seen(Seen::File(stat, _) | Seen::Directory(stat, _)) => Some(stat),
            Ahead::Seen(Seen::Absent | Seen::OnDisk) => None,
        })
    }

    fn look_ahead(&self, path: &Path, follows: bool) -> Result<Ahead> {
        if self.is_as_on_disk() {
            return Ok(Ahead::Seen(Seen::OnDisk));
        }
        match self.seen(path)? {
            Seen::OnDisk => {}
            seen => return Ok(Ahead::Seen(seen)),
        }
        let mut found = look_on_disk(path, false)?;
        if found.is_none() {
            // Whoever makes something here need not look again.
            self.inner.forecast.hold().absent = Some(path.to_owned());
        }
        if follows && found.is_some_and(|found| found.kind == FileKind::Symlink) {
            let target = self.follow(path);
            match self.inner.forecast.hold().seen(&target, path)? {
                Seen::OnDisk => {}
                seen => return Ok(Ahead::Seen(seen)),
            }
            found = look_on_disk(path, true)?;
        }
        let other = found.and_then(|found| self.inner.forecast.hold().by_other_name(&found));
        Ok(match other {
            Some((stat, content)) => Ahead::Seen(Seen::File(stat, content)),
            None => Ahead::OnDisk(found),
        })
    }

    /// Whether something is, or in a preview will be, at a path.
    ///
    /// # Errors
    ///
    /// Returns why the path cannot be inspected, or that only the run can tell.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        if !self.is_as_on_disk() {
            let place = self.resolved(path);
            let forecast = self.inner.forecast.hold();
            let entry = forecast.entries.get(&place);
            if entry.is_some_and(|entry| matches!(entry.what, Predicted::Something)) {
                return Ok(true);
            }
        }
        Ok(self.stat(path)?.is_some())
    }

    /// The resource that decides what will be at a path or below it, if any.
    pub fn predicted_below(&self, path: &Path) -> Option<Arc<str>> {
        if self.is_as_on_disk() {
            return None;
        }
        let (place, target) = (self.resolved(path), self.follow(path));
        let forecast = self.inner.forecast.hold();
        forecast.decides_below(&place).or_else(|| forecast.decides_below(&target)).cloned()
    }

    /// The files that will be below a directory and those that will be gone, as
    /// paths below it; the first list has only what the preview adds.
    pub fn predicted_files(&self, directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        if self.is_as_on_disk() {
            return (added, gone);
        }
        let top = self.follow(directory);
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
        if self.is_as_on_disk() || !text.contains('/') {
            return None;
        }
        paths_in(text).find_map(|path| {
            let places = [self.resolved(path), self.follow(path)];
            let forecast = self.inner.forecast.hold();
            let decides = |place: &PathBuf| {
                let above = place.ancestors().find_map(|above| forecast.entries.get(above));
                above.map(|entry| &entry.by).or_else(|| forecast.decides_below(place)).cloned()
            };
            places.iter().find_map(decides)
        })
    }

    /// Records that a command may change everything that it names: absolute
    /// paths, and words that are paths in its directory. Directories right below
    /// the root are too much to be meant.
    pub fn predict_touched(&self, command: &str, directory: &Path) {
        let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>(){}=,".contains(c);
        let words = command.split(is_between).filter(|word| !word.starts_with('-'));
        let here = words.filter(|word| !word.is_empty() && !word.starts_with('/'));
        let paths: Vec<PathBuf> = paths_in(command)
            .map(Path::to_owned)
            .chain(here.map(|word| directory.join(word)))
            .filter(|path| path.components().count() > 2)
            .collect();
        for path in paths {
            let places = [self.resolved(&path), self.follow(&path)];
            let mut forecast = self.inner.forecast.hold();
            let current = Arc::clone(&forecast.current);
            for place in places {
                forecast.touched.insert(place, Arc::clone(&current));
            }
            forecast.forget_parents();
        }
        self.count_prediction();
    }

    /// The path with the symlinks in its directory resolved, as the preview sees
    /// them.
    pub(super) fn resolved(&self, path: &Path) -> PathBuf {
        self.parent_and_place(path).map_or_else(|| path.to_owned(), |(_, place)| place)
    }

    /// What is known of a path's directory, and the path with the symlinks in its
    /// directory resolved. `None` for the root.
    pub(super) fn parent_and_place(&self, path: &Path) -> Option<(Arc<Parent>, PathBuf)> {
        let (directory, name) = (path.parent()?, path.file_name()?);
        let known = self.inner.forecast.hold().parents.get(directory).cloned();
        let parent = known.unwrap_or_else(|| {
            let real = self.follow(directory);
            let mut forecast = self.inner.forecast.hold();
            forecast.watch(&real);
            let inside = forecast.inside(&real);
            let parent = Arc::new(Parent { real, inside, writable: None });
            forecast.parents.insert(directory.to_owned(), Arc::clone(&parent));
            parent
        });
        let place = parent.real.join(name);
        Some((parent, place))
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
        matches!(self.seen_target(path), Ok(Seen::File(stat, _))
            if stat.kind == FileKind::File && stat.mode & 0o111 != 0)
    }
}

/// What a preview knows of a path.
enum Ahead {
    /// Earlier steps decide.
    Seen(Seen),
    /// This is on disk, and stays.
    OnDisk(Option<Stat>),
}

fn look_on_disk(path: &Path, follows: bool) -> Result<Option<Stat>> {
    let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    match rustix::fs::statat(CWD, path, flags) {
        Ok(stat) => Ok(Some(Stat::new(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(Error::io("inspect", path)(errno)),
    }
}
