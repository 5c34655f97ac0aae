//! Prediction for previews: what earlier steps of a preview would leave on the
//! machine.
//!
//! A preview changes nothing. Instead of acting, its steps record here what they
//! would create, change or remove. The handle of a preview ([`Host::preview`])
//! answers as if that had happened, so that the next resource is decided against
//! the machine as the run would leave it.
//!
//! Recording a step fails where the step itself would fail for a reason that is
//! visible beforehand: a missing parent directory, a directory that the user
//! cannot write, a read-only file system, an owner that the user cannot set.

mod accounts;
mod check;
mod in_place;
mod links;
mod lookup;
mod values;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;

pub(crate) use accounts::GivenIds;
pub use accounts::{AccountKind, NewAccount};
pub(crate) use in_place::is_mount_root;
pub use lookup::PredictedEntries;
pub(crate) use lookup::Seen;

use crate::cache::RunCache;
use crate::directory::parent_mode;
use crate::lock::Lock;
use crate::{Attributes, Error, FileKind, Host, Result, Stat, View};

/// What the steps of a preview have recorded so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forecast {
    entries: HashMap<PathBuf, Entry>,
    /// Where the symlinks among them lead.
    links: HashMap<PathBuf, PathBuf>,
    /// Every directory above an entry, with the resource that was the first to
    /// record one there.
    above: HashMap<PathBuf, Arc<str>>,
    /// Directories whose content only the run can know, and what changes them.
    unknown: Vec<(PathBuf, Arc<str>)>,
    /// Paths that a command names, and the resource that runs it.
    touched: HashMap<PathBuf, Arc<str>>,
    /// Every directory above such a path: something may be made in it.
    above_touched: HashMap<PathBuf, Arc<str>>,
    /// Files on disk with several names of which one changes, by device and inode.
    inodes: HashMap<(u64, u64), (Stat, PredictedContent)>,
    /// Resources that may change more than what is recorded.
    suppliers: Vec<Supplier>,
    /// Resources that change files, in order.
    changers: Vec<Arc<str>>,
    /// The resource that is previewed now.
    current: Arc<str>,
    /// Cached directories, by path as written.
    parents: HashMap<PathBuf, Arc<Parent>>,
    /// Every directory and symlink that this knowledge depends on.
    watched: HashSet<PathBuf>,
    /// The path at which the current resource found nothing on disk, last.
    absent: Option<PathBuf>,
    /// A file that something wanted to read is not there, or not yet.
    missed: Option<MissedFile>,
    /// Users and groups.
    accounts: accounts::PredictedAccounts,
    /// Predictions of providers.
    values: values::Values,
}

/// What is known of a directory that something is to be done in.
#[derive(Clone, Debug)]
struct Parent {
    /// Its path with symlinks resolved.
    real: PathBuf,
    /// How the preview sees what is in it and has no entry of its own.
    inside: lookup::Inside,
    /// Its attributes, if entries can be made in it.
    writable: Option<Stat>,
}

/// A resource that may change more than a preview can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplier {
    /// The resource.
    pub name: Arc<str>,
    /// What it waits for itself: the resource that makes the difference. Its own
    /// name if it waits for nothing.
    pub origin: Arc<str>,
    /// What it may change.
    pub reach: Reach,
}

/// What a resource may change beyond what a preview has recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Files at places that are recorded, such as those of an archive.
    Files,
    /// Whatever packages bring: files below the directories that packages use,
    /// users, services. Their scripts can do anything else.
    Packages,
    /// Anything, anywhere: it runs a command.
    Anything,
}

/// The directories that packages use.
const PACKAGE_DIRECTORIES: [&str; 13] = [
    "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/run", "/sbin",
    "/srv", "/usr", "/var",
];

/// One path, and the resource that decides what is there.
#[derive(Clone, Debug)]
struct Entry {
    by: Arc<str>,
    what: Predicted,
}

/// What will be at a path.
#[derive(Clone, Debug)]
enum Predicted {
    Absent,
    File(Stat, PredictedContent),
    /// With `is_new`, nothing of what is on disk below it counts.
    Directory {
        stat: Stat,
        is_new: bool,
    },
    /// A symlink, whose text is among the `links`.
    Link(Stat),
    /// Something; what it is, only the run can know.
    Something,
}

/// What a predicted file will hold.
#[derive(Clone, Debug)]
pub(crate) enum PredictedContent {
    Bytes(Arc<[u8]>),
    /// The same as this file on disk.
    CopyOf(PathBuf),
    /// The content on disk: only attributes change.
    Unchanged,
}

/// A file that something wanted to read in a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissedFile {
    /// It is not there.
    Missing,
    /// This resource decides about it, and only the run can tell how.
    Awaited(Arc<str>),
}

/// New content of a file in a preview.
#[derive(Clone, Copy, Debug)]
pub enum NewContent<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// The content of this file.
    CopyOf(&'a Path),
}

impl Host {
    /// A handle of the same run for a preview. Reads through it see what is
    /// predicted through it, and what was predicted through this handle so far.
    /// This handle sees nothing of it.
    #[must_use]
    pub fn preview(&self) -> Self {
        let View { forecast, predictions, .. } = &*self.view;
        let view = View {
            is_preview: true,
            forecast: Lock::new(forecast.hold().clone()),
            predictions: predictions.load(Ordering::Relaxed).into(),
            cache: RunCache::default(),
        };
        Self { inner: Arc::clone(&self.inner), view: Arc::new(view) }
    }

    /// In a preview: this resource makes the predictions from now on.
    pub fn begin_prediction(&self, resource: &str) {
        if self.is_preview() {
            let mut forecast = self.view.forecast.hold();
            forecast.current = resource.into();
            forecast.missed = None;
            forecast.absent = None;
        }
    }

    /// Whether reads see what earlier steps would leave behind.
    pub(crate) fn is_preview(&self) -> bool {
        self.view.is_preview
    }

    /// Records that the resource previewed now may change more of the machine
    /// than a preview can tell: a package, a command, an archive. With `origin`,
    /// it waits itself for that resource.
    pub fn predict_more(&self, reach: Reach, origin: Option<&str>) {
        let mut forecast = self.view.forecast.hold();
        let name = Arc::clone(&forecast.current);
        let origin = origin.map_or_else(|| Arc::clone(&name), Arc::from);
        let supplier = Supplier { name, origin, reach };
        if forecast.suppliers.last() != Some(&supplier) {
            forecast.suppliers.push(supplier);
        }
        drop(forecast);
        self.count_prediction();
    }

    /// The resources of this preview that may change more than can be told.
    pub fn suppliers(&self) -> Vec<Supplier> {
        self.view.forecast.hold().suppliers.clone()
    }

    /// The resources of this preview that change files, in order.
    pub fn file_changers(&self) -> Vec<Arc<str>> {
        self.view.forecast.hold().changers.clone()
    }

    /// The last resource of this preview that may change anything, and what it
    /// waits for.
    pub fn changer(&self) -> Option<Supplier> {
        let forecast = self.view.forecast.hold();
        forecast.suppliers.iter().rfind(|supplier| supplier.reach != Reach::Files).cloned()
    }

    /// In a preview: the resource after which a package may have brought something
    /// to a path where nothing is now.
    pub fn packager(&self, path: &Path) -> Option<Arc<str>> {
        let is_used = PACKAGE_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
        if !is_used {
            return None;
        }
        let forecast = self.view.forecast.hold();
        let supplier = forecast.suppliers.iter().rfind(|one| one.reach == Reach::Packages)?;
        Some(Arc::clone(&supplier.origin))
    }

    /// Whether a file that something wanted to read since the resource began
    /// was missing.
    pub fn missed_file(&self) -> Option<MissedFile> {
        self.view.forecast.hold().missed.clone()
    }

    /// Records a file. Fails where [`Host::replace`] would.
    pub fn predict_file(
        &self,
        path: &Path,
        content: NewContent<'_>,
        wanted: &Attributes,
    ) -> Result<()> {
        let (parent, place) = self.predicted_parent(path)?;
        self.check_replaceable(path, &parent)?;
        self.check_owner(path, wanted)?;
        let (size, content) = self.predicted_content(content)?;
        let stat = self.new_stat(FileKind::File, wanted, size, parent.dev);
        self.record(place, Predicted::File(stat, content));
        Ok(())
    }

    /// Records a symlink. Fails where [`Host::replace_with_symlink`] would.
    pub fn predict_symlink(
        &self,
        path: &Path,
        target: &Path,
        (uid, gid): (u32, u32),
    ) -> Result<()> {
        let (parent, place) = self.predicted_parent(path)?;
        self.check_replaceable(path, &parent)?;
        self.check_owner(path, &Attributes { uid, gid, mode: 0 })?;
        if let Some(have) = self.lstat(path)? {
            self.check_keepable(path, &have)?;
        }
        let size = target.as_os_str().len() as u64;
        let wanted = Attributes { uid, gid, mode: 0o777 };
        let stat = self.new_stat(FileKind::Symlink, &wanted, size, parent.dev);
        self.record(place.clone(), Predicted::Link(stat));
        self.view.forecast.hold().links.insert(place, target.to_owned());
        Ok(())
    }

    /// Records owner, group and mode of what is there. Fails where
    /// [`Host::set_attributes`] would.
    pub fn predict_attributes(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        let have = self.lstat(path)?.ok_or_else(|| Error::io("open", path)(Errno::NOENT))?;
        self.check_changeable(path, &have, wanted)?;
        let mut stat = have;
        let kept = if (have.uid, have.gid) == (wanted.uid, wanted.gid) { 0o7000 } else { 0o1000 };
        (stat.uid, stat.gid) = (wanted.uid, wanted.gid);
        stat.mode = have.mode & kept | wanted.mode;
        let place = self.resolved(path);
        let known = self.view.forecast.hold().entries.get(&place).map(|entry| entry.what.clone());
        let what = match (have.kind, known) {
            (FileKind::Directory, Some(Predicted::Directory { is_new, .. })) => {
                Predicted::Directory { stat, is_new }
            }
            (FileKind::Directory, _) => Predicted::Directory { stat, is_new: false },
            (_, Some(Predicted::File(_, content))) => Predicted::File(stat, content),
            _ => Predicted::File(stat, self.content_by_other_name(&have)),
        };
        self.record_inode(&have, &what);
        self.record(place, what);
        Ok(())
    }

    /// What a file on disk holds, which another of its names may have changed.
    fn content_by_other_name(&self, have: &Stat) -> PredictedContent {
        let forecast = self.view.forecast.hold();
        let other = forecast.inodes.get(&(have.dev, have.ino));
        other.map_or(PredictedContent::Unchanged, |(_, content)| content.clone())
    }

    /// Records what happens to a file for all of its names. Files that are not
    /// on disk have one.
    fn record_inode(&self, have: &Stat, what: &Predicted) {
        if let (true, Predicted::File(stat, content)) = (have.ino != 0, what) {
            let key = (have.dev, have.ino);
            self.view.forecast.hold().inodes.insert(key, (*stat, content.clone()));
        }
    }

    /// Records a directory, and its parents where they are missing. Fails where
    /// [`Host::create_directory`] would.
    pub fn predict_directory(&self, path: &Path, wanted: &Attributes) -> Result<()> {
        let missing: Vec<PathBuf> = self.missing(path)?.into_iter().map(Path::to_owned).collect();
        let Some(first) = missing.first() else { return self.predict_attributes(path, wanted) };
        let (mut parent, _) = self.predicted_parent(first)?;
        self.check_owner(path, wanted)?;
        for directory in &missing {
            let is_last = directory == path;
            let mode = parent_mode(wanted.mode);
            let attributes =
                if is_last { *wanted } else { Attributes { mode, ..self.made_in(&parent) } };
            let stat = self.new_stat(FileKind::Directory, &attributes, 0, parent.dev);
            self.record(self.resolved(directory), Predicted::Directory { stat, is_new: true });
            parent = stat;
        }
        Ok(())
    }

    /// Records a directory that would be created with default attributes. Fails
    /// where [`Tree::make_directory`](crate::Tree::make_directory) would.
    pub fn predict_made_directory(&self, path: &Path) -> Result<()> {
        let (parent, _) = self.predicted_parent(path)?;
        self.predict_directory(path, &self.made_in(&parent))
    }

    /// Owner, group and mode of a directory that is made in another: the setgid
    /// bit passes the group on.
    fn made_in(&self, parent: &Stat) -> Attributes {
        let (uid, gid) = self.whoami();
        let gid = if parent.mode & 0o2000 == 0 { gid } else { parent.gid };
        Attributes { uid, gid, mode: 0o755 }
    }

    /// Records that nothing will be at a path. Fails where [`Host::remove`] or,
    /// with `is_recursive`, [`Host::remove_tree`] would.
    pub fn predict_removal(&self, path: &Path, is_recursive: bool) -> Result<()> {
        let place = self.resolved(path);
        let known = self.view.forecast.hold().entries.get(&place).map(|entry| entry.what.clone());
        if matches!(known, Some(Predicted::Something)) {
            // Whatever it is: the step before this one makes it.
            self.record(place, Predicted::Absent);
            return Ok(());
        }
        let Some(have) = self.lstat(path)? else { return Ok(()) };
        let (parent, place) = self.predicted_parent(path)?;
        self.check_keepable(path, &have)?;
        match self.check_replaceable(path, &parent) {
            Err(Error::MountedFile { path }) => return Err(Error::MountPoint { path }),
            checked => checked?,
        }
        if have.kind == FileKind::Directory {
            if !is_recursive && !self.is_empty_directory(path)? {
                return Err(Error::NotEmpty { path: path.to_owned() });
            }
            self.check_no_mount(path)?;
            self.check_removable(path)?;
            self.forget_below(&place);
        }
        self.record(place, Predicted::Absent);
        Ok(())
    }

    /// Records that something will be at a path, of which only the run can tell
    /// what it is.
    pub fn predict_something(&self, path: &Path) {
        self.record(self.resolved(path), Predicted::Something);
    }

    /// Records that the content of a directory will be known only to the run.
    pub fn predict_unknown_content(&self, directory: &Path) {
        let place = self.resolved(directory);
        self.forget_below(&place);
        let mut forecast = self.view.forecast.hold();
        let current = Arc::clone(&forecast.current);
        forecast.unknown.push((place, current));
        forecast.forget_parents();
        drop(forecast);
        self.count_prediction();
    }

    /// The content of a predicted file, opened for reading.
    pub(crate) fn open_predicted(&self, path: &Path, content: &PredictedContent) -> Result<File> {
        match content {
            PredictedContent::Bytes(bytes) => {
                let file = rustix::fs::memfd_create("ccm-preview", MemfdFlags::CLOEXEC)
                    .map_err(Error::io("open", path))?;
                let mut file = File::from(file);
                let written = file.write_all(bytes).and_then(|()| file.rewind());
                written.map_err(Error::std_io("open", path))?;
                Ok(file)
            }
            PredictedContent::CopyOf(source) => self.open_on_disk(source),
            PredictedContent::Unchanged => self.open_on_disk(&self.on_disk(path, true)),
        }
    }

    /// What a file will hold, and how many bytes that are.
    fn predicted_content(&self, content: NewContent<'_>) -> Result<(u64, PredictedContent)> {
        Ok(match content {
            NewContent::Bytes(bytes) => {
                (bytes.len() as u64, PredictedContent::Bytes(Arc::from(bytes)))
            }
            NewContent::CopyOf(source) => {
                // What a saved plan holds is not where it was.
                let source = self.absolute(source)?;
                let source = self.replayed_file(&source).unwrap_or(source);
                let size = self.stat(&source)?.map_or(0, |stat| stat.size);
                (size, self.copy_of(&source)?)
            }
        })
    }

    /// What a copy of this file holds, should the file itself be changed later.
    fn copy_of(&self, source: &Path) -> Result<PredictedContent> {
        Ok(match self.seen_target(source)? {
            Seen::File(_, content @ (PredictedContent::Bytes(_) | PredictedContent::CopyOf(_))) => {
                content
            }
            _ => PredictedContent::CopyOf(source.to_owned()),
        })
    }

    fn new_stat(&self, kind: FileKind, wanted: &Attributes, size: u64, dev: u64) -> Stat {
        let Attributes { uid, gid, mode } = *wanted;
        let now = self.now();
        Stat { kind, uid, gid, mode, size, mtime: now, ctime: now, dev, ino: 0 }
    }

    fn record(&self, place: PathBuf, what: Predicted) {
        let mut forecast = self.view.forecast.hold();
        let by = Arc::clone(&forecast.current);
        for directory in place.ancestors().skip(1) {
            // What is above a known directory is known.
            if forecast.above.contains_key(directory) {
                break;
            }
            forecast.above.insert(directory.to_owned(), Arc::clone(&by));
        }
        if forecast.watched.contains(&place) || forecast.touched.remove(&place).is_some() {
            forecast.forget_parents();
        }
        forecast.links.remove(&place);
        if forecast.changers.last() != Some(&by) {
            forecast.changers.push(Arc::clone(&by));
        }
        forecast.entries.insert(place, Entry { by, what });
        drop(forecast);
        self.count_prediction();
    }

    fn forget_below(&self, place: &Path) {
        let mut forecast = self.view.forecast.hold();
        if forecast.above.contains_key(place) {
            forecast.entries.retain(|path, _| path == place || !path.starts_with(place));
            forecast.links.retain(|path, _| path == place || !path.starts_with(place));
        }
        forecast.unknown.retain(|(path, _)| !path.starts_with(place));
        let touched = forecast.touched.len();
        forecast.touched.retain(|path, _| !path.starts_with(place));
        if forecast.touched.len() < touched {
            forecast.note_above_touched();
        }
        forecast.forget_parents();
    }

    /// What is cached of the machine is no longer true in the preview.
    fn count_prediction(&self) {
        self.view.predictions.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
