//! Predicted state of a path in a preview.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use super::links::Route;
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
    /// A symlink will be there that is not on disk.
    Link(Stat),
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
        let seen = match (self.entries.get(place), inside) {
            (Some(entry), _) => match &entry.what {
                Predicted::Something => return Err(unpredictable(&entry.by)),
                Predicted::File(stat, content) => Seen::File(*stat, content.clone()),
                Predicted::Directory { stat, is_new } => Seen::Directory(*stat, *is_new),
                Predicted::Link(stat) => Seen::Link(*stat),
                Predicted::Absent => Seen::Absent,
            },
            (None, Inside::OnDisk) => Seen::OnDisk,
            (None, Inside::Absent) => Seen::Absent,
            (None, Inside::Unknown(by) | Inside::Touched(by)) => return Err(unpredictable(by)),
        };
        // What is made below it makes it too.
        match self.above_touched.get(place).filter(|_| matches!(seen, Seen::Absent)) {
            Some(by) => Err(unpredictable(by)),
            None => Ok(seen),
        }
    }

    /// The resource that may put something into a directory, or take something
    /// out of it, of which only the run can tell.
    fn unsettles(&self, place: &Path) -> Option<&Arc<str>> {
        let touched = || place.ancestors().find_map(|above| self.touched.get(above));
        let related = |tree: &Path| tree.starts_with(place) || place.starts_with(tree);
        let unknown = || self.unknown.iter().find(|(tree, _)| related(tree)).map(|(_, by)| by);
        self.above_touched.get(place).or_else(touched).or_else(unknown)
    }

    /// Takes note of all directories above paths that commands name.
    pub(super) fn note_above_touched(&mut self) {
        let mut above = HashMap::new();
        for (path, by) in &self.touched {
            note_above(&mut above, path, by);
        }
        self.above_touched = above;
    }

    /// How the preview sees what is in a directory and has no entry of its own.
    pub(super) fn inside(&self, directory: &Path) -> Inside {
        if !self.touched.is_empty()
            && let Some(by) = directory.ancestors().find_map(|above| self.touched.get(above))
        {
            return Inside::Touched(Arc::clone(by));
        }
        for above in directory.ancestors() {
            // A directory that is made only to be filled is here too.
            if let Some((_, by)) = self.unknown.iter().rev().find(|(tree, _)| tree == above) {
                return Inside::Unknown(Arc::clone(by));
            }
            if let Some(entry) = self.entries.get(above) {
                match entry.what {
                    Predicted::Something => return Inside::Unknown(Arc::clone(&entry.by)),
                    Predicted::Directory { is_new: false, .. } => {}
                    Predicted::Absent
                    | Predicted::File(..)
                    | Predicted::Link(_)
                    | Predicted::Directory { .. } => {
                        return Inside::Absent;
                    }
                }
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

/// Adds the directories above a path. What is above a known one is known.
fn note_above(above: &mut HashMap<PathBuf, Arc<str>>, path: &Path, by: &Arc<str>) {
    for directory in path.ancestors().skip(1) {
        if above.contains_key(directory) {
            break;
        }
        above.insert(directory.to_owned(), Arc::clone(by));
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

impl Inside {
    /// Whether only the run can tell.
    fn is_open(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Touched(_))
    }
}

/// Predicted entries below a directory, as relative paths.
#[derive(Debug, Default)]
pub struct PredictedEntries {
    /// Files that will be there.
    pub files: Vec<PathBuf>,
    /// Directories that will be there.
    pub directories: Vec<PathBuf>,
    /// Places at which and below which nothing of what is on disk counts.
    pub gone: Vec<PathBuf>,
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

/// The words of a command line that may be paths in its directory.
fn words_below(text: &str, directory: &Path) -> impl Iterator<Item = PathBuf> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>(){}=,".contains(c);
    let words = text.split(is_between).filter(|word| !word.starts_with('-'));
    let here = words.filter(|word| !word.is_empty() && !word.starts_with('/'));
    here.map(|word| directory.join(word))
}

impl Host {
    /// Whether nothing was predicted that reads could see.
    fn is_as_on_disk(&self) -> bool {
        !self.is_preview() || self.view.predictions.load(Ordering::Relaxed) == 0
    }

    /// How the preview sees a path itself, which may be a symlink; always as it
    /// is on disk outside of previews.
    pub(crate) fn seen(&self, path: &Path) -> Result<Seen> {
        if self.is_as_on_disk() {
            return Ok(Seen::OnDisk);
        }
        let Some((parent, place)) = self.parent_and_place(path) else { return Ok(Seen::OnDisk) };
        self.view.forecast.hold().seen_in(&parent.inside, &place, path)
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
            Ahead::Seen(Seen::File(stat, _) | Seen::Directory(stat, _) | Seen::Link(stat)) => {
                Some(stat)
            }
            Ahead::Seen(Seen::Absent | Seen::OnDisk) => None,
        })
    }

    fn look_ahead(&self, path: &Path, follows: bool) -> Result<Ahead> {
        if self.is_as_on_disk() {
            return Ok(Ahead::Seen(Seen::OnDisk));
        }
        let mut found = match self.seen(path)? {
            Seen::OnDisk => look_on_disk(&self.on_disk(path, false), false)?,
            Seen::Link(stat) if follows => Some(stat),
            seen => return Ok(Ahead::Seen(seen)),
        };
        if found.is_none() {
            self.check_nothing_is_made(path, || self.resolved(path))?;
            // Cached, so that a prediction for this path needs no second lookup.
            self.view.forecast.hold().absent = Some(path.to_owned());
        }
        if follows && found.is_some_and(|found| found.kind == FileKind::Symlink) {
            let target = self.followed(path);
            match self.view.forecast.hold().seen(&target, path)? {
                Seen::OnDisk => {}
                Seen::Link(_) => return Err(Error::io("inspect", path)(Errno::LOOP)),
                seen => return Ok(Ahead::Seen(seen)),
            }
            found = look_on_disk(&self.on_disk(path, true), true)?;
            if found.is_none() {
                self.check_nothing_is_made(path, || target)?;
            }
        }
        let other = found.and_then(|found| self.view.forecast.hold().by_other_name(&found));
        Ok(match other {
            Some((stat, content)) => Ahead::Seen(Seen::File(stat, content)),
            None => Ahead::OnDisk(found),
        })
    }

    /// Where nothing is on disk, a command that names something below may make
    /// it.
    fn check_nothing_is_made(&self, path: &Path, place: impl FnOnce() -> PathBuf) -> Result<()> {
        if self.view.forecast.hold().above_touched.is_empty() {
            return Ok(());
        }
        let place = place();
        match self.view.forecast.hold().above_touched.get(&place) {
            None => Ok(()),
            Some(by) => Err(Error::Unpredictable { path: path.to_owned(), by: Arc::clone(by) }),
        }
    }

    /// Whether something is, or in a preview will be, at a path.
    ///
    /// # Errors
    ///
    /// Returns why the path cannot be inspected, or that only the run can tell.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        if !self.is_as_on_disk() {
            let place = self.resolved(path);
            let forecast = self.view.forecast.hold();
            let entry = forecast.entries.get(&place);
            if entry.is_some_and(|entry| matches!(entry.what, Predicted::Something)) {
                return Ok(true);
            }
        }
        Ok(self.stat(path)?.is_some())
    }

    /// Whether something is at a path now, whatever a preview has predicted.
    pub fn exists_now(&self, path: &Path) -> Result<bool> {
        Ok(look_on_disk(path, true)?.is_some())
    }

    /// The resource that decides what will be at a path or below it, if any.
    pub fn predicted_below(&self, path: &Path) -> Option<Arc<str>> {
        if self.is_as_on_disk() {
            return None;
        }
        let (place, target) = (self.resolved(path), self.followed(path));
        let forecast = self.view.forecast.hold();
        forecast.decides_below(&place).or_else(|| forecast.decides_below(&target)).cloned()
    }

    /// In a preview: the resource that may change what is in a directory in a way
    /// that only the run can tell.
    pub fn unsettled(&self, directory: &Path) -> Option<Arc<str>> {
        if self.is_as_on_disk() {
            return None;
        }
        let (place, target) = (self.resolved(directory), self.followed(directory));
        let forecast = self.view.forecast.hold();
        forecast.unsettles(&place).or_else(|| forecast.unsettles(&target)).cloned()
    }

    /// Returns the predicted entries below a directory.
    pub fn predicted_entries(&self, directory: &Path) -> PredictedEntries {
        let mut found = PredictedEntries::default();
        if self.is_as_on_disk() {
            return found;
        }
        let top = self.followed(directory);
        for (path, entry) in &self.view.forecast.hold().entries {
            let Ok(below) = path.strip_prefix(&top) else { continue };
            let below = below.to_owned();
            match entry.what {
                Predicted::Absent => found.gone.push(below),
                Predicted::File(..) | Predicted::Link(_) | Predicted::Something => {
                    found.files.push(below.clone());
                    found.gone.push(below);
                }
                Predicted::Directory { is_new, .. } => {
                    found.directories.push(below.clone());
                    found.gone.extend(is_new.then_some(below));
                }
            }
        }
        found
    }

    /// A resource of the preview whose predicted path stands in a text, such as
    /// a command line that runs in `directory`.
    pub fn predicted_in(&self, text: &str, directory: &Path) -> Option<Arc<str>> {
        if self.is_as_on_disk() {
            return None;
        }
        let paths = paths_in(text).map(Path::to_owned);
        // Right below the root, most words are none.
        let here = words_below(text, directory).filter(|path| path.components().count() > 2);
        paths.chain(here).find_map(|path| {
            let places = [self.resolved(&path), self.followed(&path)];
            let forecast = self.view.forecast.hold();
            let decides = |place: &PathBuf| {
                // A directory that stays keeps what is in it.
                let above = place.ancestors().filter_map(|above| {
                    let entry = forecast.entries.get(above)?;
                    let stays = matches!(entry.what, Predicted::Directory { is_new: false, .. });
                    (above == place || !stays).then_some(&entry.by)
                });
                { above }.next().or_else(|| forecast.decides_below(place)).cloned()
            };
            places.iter().find_map(decides)
        })
    }

    /// Records that a command may change everything that it names: absolute
    /// paths, and words that are paths in its directory. Directories right below
    /// the root are too much to be meant.
    pub fn predict_touched(&self, command: &str, directory: &Path) {
        let paths: Vec<PathBuf> = paths_in(command)
            .map(Path::to_owned)
            .chain(words_below(command, directory))
            // Whatever else it makes, it may make there.
            .chain([directory.join("*")])
            .filter(|path| path.components().count() > 2)
            .collect();
        for path in paths {
            let places = [self.resolved(&path), self.followed(&path)];
            let mut forecast = self.view.forecast.hold();
            let current = Arc::clone(&forecast.current);
            for place in places {
                note_above(&mut forecast.above_touched, &place, &current);
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
        let known = self.view.forecast.hold().parents.get(directory).cloned();
        let parent = known.unwrap_or_else(|| {
            let Route { end: real, links } = self.route(directory);
            let mut forecast = self.view.forecast.hold();
            forecast.watch(&real);
            // The target of a symlink that may change is unknown.
            let above = links.iter().filter_map(|(link, _)| link.parent());
            let unknown = above.map(|above| forecast.inside(above)).find(Inside::is_open);
            let inside = unknown.unwrap_or_else(|| forecast.inside(&real));
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
        self.view.forecast.hold().missed = Some(missed);
    }

    /// Whether a directory will have no entries.
    pub(crate) fn is_predicted_empty(&self, path: &Path, is_new: bool) -> Result<bool> {
        let place = self.resolved(path);
        let forecast = self.view.forecast.hold();
        let is_child = |other: &Path, what: &Predicted| {
            other.parent() == Some(&place)
                && !matches!(what, Predicted::Absent)
                && !forecast.touched.contains_key(other)
        };
        if forecast.entries.iter().any(|(path, entry)| is_child(path, &entry.what)) {
            return Ok(false);
        }
        let mut unsettled = forecast.unsettles(&place).cloned();
        drop(forecast);
        let on_disk = if is_new { Vec::new() } else { self.list(&self.on_disk(path, true))? };
        for name in on_disk {
            match self.seen(&path.join(name)) {
                Ok(Seen::Absent) => {}
                Ok(_) => return Ok(false),
                Err(Error::Unpredictable { by, .. }) => unsettled = Some(by),
                Err(error) => return Err(error),
            }
        }
        match unsettled {
            Some(by) => Err(Error::Unpredictable { path: path.to_owned(), by }),
            None => Ok(true),
        }
    }

    /// Whether what will be at a path can be executed; `None` where earlier steps
    /// do not decide that.
    pub(crate) fn is_predicted_program(&self, path: &Path) -> Option<bool> {
        match self.seen_target(path) {
            Ok(Seen::File(stat, _)) => {
                // Root needs anybody's permission, others need their own.
                let may = if self.is_root() { stat.mode & 0o111 != 0 } else { self.may(&stat, 1) };
                Some(stat.kind == FileKind::File && may)
            }
            Ok(Seen::Absent | Seen::Directory(..) | Seen::Link(_)) => Some(false),
            Ok(Seen::OnDisk) | Err(_) => None,
        }
    }
}

/// What a preview knows of a path.
enum Ahead {
    /// Earlier steps decide.
    Seen(Seen),
    /// This is on disk, and stays.
    OnDisk(Option<Stat>),
}

pub(super) fn look_on_disk(path: &Path, follows: bool) -> Result<Option<Stat>> {
    let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    match rustix::fs::statat(CWD, path, flags) {
        Ok(stat) => Ok(Some(Stat::new(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(Error::io("inspect", path)(errno)),
    }
}
