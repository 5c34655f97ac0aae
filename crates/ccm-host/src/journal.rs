//! The journal: images of paths before ccm changes them.
//!
//! While a run keeps a history, every function of this crate that changes the
//! file system for a resource first records an image of the path in the
//! journal. If recording fails, the change is not made.

mod image;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::not_renamed;
use crate::{Attributes, Digest, Error, FileKind, Host, Result, Stat};

pub use image::{Image, path_text};

/// Directories inside one another that are recorded before they are removed.
const MAX_DEPTH: usize = 200;
/// Larger files are not read to recognize them after a change of their owner.
const MAX_RECOGNIZED: u64 = 64 << 20;

impl Stat {
    /// Owner, group and all twelve permission bits.
    pub fn attributes(&self) -> Attributes {
        Attributes { uid: self.uid, gid: self.gid, mode: self.mode }
    }
}

/// An open file that is about to be replaced or removed.
#[derive(Debug)]
pub struct FormerFile<'a> {
    host: &'a Host,
    pub(crate) path: &'a Path,
    pub(crate) file: &'a mut File,
    size: u64,
}

impl FormerFile<'_> {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The digest of its content, as far as it was there when it was opened.
    /// Called once.
    pub fn digest(&self) -> Result<Digest> {
        self.host.digest_of_first(self.file, self.path, self.size)
    }
}

/// Digests of files with several names, so that each of them is read once while
/// a resource changes. The time tells that a file was written to meanwhile.
#[derive(Debug, Default)]
pub(crate) struct DigestsByInode(HashMap<(u64, u64), (u64, jiff::Timestamp, Digest)>);

impl DigestsByInode {
    pub(crate) fn find(&self, stat: &Stat) -> Option<Digest> {
        let (size, mtime, digest) = self.0.get(&(stat.dev, stat.ino))?;
        ((*size, *mtime) == (stat.size, stat.mtime)).then_some(*digest)
    }

    fn forget(&mut self, stat: &Stat) {
        self.0.remove(&(stat.dev, stat.ino));
    }

    pub(crate) fn add(&mut self, stat: &Stat, digest: Option<Digest>) {
        if let Some(digest) = digest {
            self.0.insert((stat.dev, stat.ino), (stat.size, stat.mtime, digest));
        }
    }
}

/// As long as it lives, ccm changes nothing whose former content the history
/// cannot keep. Without a history it has no effect.
#[derive(Debug)]
pub struct MustKeep(Host);

impl Drop for MustKeep {
    fn drop(&mut self) {
        self.0.inner.must_keep.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why the history does not keep something.
const NO_SPECIAL_FILES: &str = "ccm cannot create sockets, FIFOs and devices";

pub(crate) fn has_other_names(file: &File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 1)
}

/// Where a change is made.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The path, as it was given.
    pub path: &'a Path,
    /// The directory that it lies in, if symlinks on the way lead elsewhere than
    /// the path says.
    pub directory: Option<&'a Path>,
}

/// Keeps images of what is changed.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Keeps the content of a file and gives back its digest. `None` if it is
    /// not kept, which the journal has reported then.
    fn keep(&self, file: &mut FormerFile<'_>) -> Result<Option<Digest>>;
    /// Records a change that is about to be made. What there will be afterwards
    /// is `None` where only the change itself can tell.
    fn record(&self, place: Place<'_>, before: &Image, after: Option<&Image>) -> Result<()>;
    /// Completes the last record of a path. One whose image is the same before
    /// and after counts for nothing.
    fn complete(&self, path: &Path, after: &Image) -> Result<()>;
    /// Says that a change cannot be taken back, or not all of it.
    fn give_up(&self, path: &Path, reason: &str) -> Result<()>;
}

impl Host {
    /// Records all changes from now on, or none.
    pub fn set_journal(&self, journal: Option<Arc<dyn Journal>>) {
        self.inner.kept.set(DigestsByInode::default());
        self.inner.is_recorded.store(journal.is_some(), Ordering::Relaxed);
        self.inner.journal.set(journal);
    }

    /// The run keeps a history, or the run that is previewed does: contents up to
    /// this size.
    pub fn keep_images(&self, limit: u64) {
        self.inner.max_image.store(limit, Ordering::Relaxed);
    }

    /// From now on, a change fails if the history cannot keep what was there. In
    /// a preview, so does its prediction.
    #[must_use]
    pub fn must_keep(&self) -> MustKeep {
        self.inner.must_keep.fetch_add(1, Ordering::Relaxed);
        MustKeep(self.clone())
    }

    /// Fails if something must be kept and cannot be, as its attributes tell.
    ///
    /// # Errors
    ///
    /// Says why it cannot be kept.
    pub fn check_keepable(&self, path: &Path, stat: &Stat) -> Result<()> {
        let limit = self.inner.max_image.load(Ordering::Relaxed);
        if limit == 0 || self.inner.must_keep.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let reason = match stat.kind {
            FileKind::Other => NO_SPECIAL_FILES.to_owned(),
            FileKind::File if stat.size > limit => {
                let limit = limit >> 20;
                format!("it is larger than {limit} MiB, and ccm could not restore it later")
            }
            _ => return Ok(()),
        };
        Err(Error::NotKept { path: path.to_owned(), reason })
    }

    /// Where changes are recorded, if they are.
    pub(crate) fn journal(&self) -> Option<Arc<dyn Journal>> {
        if self.inner.is_recorded.load(Ordering::Relaxed) {
            self.inner.journal.hold().clone()
        } else {
            None
        }
    }

    /// Returns the current image of a path, including its content.
    pub fn image(&self, path: &Path) -> Result<Image> {
        self.image_below(CWD, path, path)
    }

    /// The same, without the digest of a file whose size is none of these: it
    /// may be of any size.
    pub fn image_of_sizes(&self, path: &Path, sizes: &[u64]) -> Result<Image> {
        self.image_at(CWD, path, path, |file, stat| {
            let is_read = sizes.contains(&stat.size);
            is_read.then(|| self.digest_of_first(file, path, stat.size)).transpose()
        })
    }

    /// Records a change of a path whose directory may be known by another name.
    fn record_at(
        &self,
        journal: &dyn Journal,
        path: &Path,
        before: &Image,
        after: Option<&Image>,
    ) -> Result<()> {
        let Some(parent) = path.parent() else {
            return journal.record(Place { path, directory: None }, before, after);
        };
        let mut known = self.inner.real_parent.hold();
        let directory = match &*known {
            Some((known, directory)) if known == parent => directory.as_deref(),
            _ => {
                let real = self.followed(parent);
                let directory = (real != parent).then_some(real);
                known.insert((parent.to_owned(), directory)).1.as_deref()
            }
        };
        journal.record(Place { path, directory }, before, after)
    }

    /// What has a name in an open directory, content included.
    pub(crate) fn image_below(&self, parent: impl AsFd, name: &Path, path: &Path) -> Result<Image> {
        self.image_at(parent, name, path, |file, stat| self.digest(file, path, stat.size).map(Some))
    }

    /// What has a name in an open directory. `digest` gets files to read.
    pub(crate) fn image_at(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
        digest: impl FnOnce(&mut File, &Stat) -> Result<Option<Digest>>,
    ) -> Result<Image> {
        let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stat::new(&stat),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Image::Absent),
            Err(errno) => return Err(Error::io("inspect", path)(errno)),
        };
        match stat.kind {
            FileKind::File => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let mut file = match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
                    Ok(file) => File::from(file),
                    Err(Errno::NOENT) => return Ok(Image::Absent),
                    // Who may replace a file need not be allowed to read it.
                    Err(Errno::ACCESS | Errno::PERM) => return Ok(Image::of(&stat)),
                    Err(errno) => return Err(Error::io("open", path)(errno)),
                };
                let stat = Stat::of(&file, path)?;
                if stat.kind != FileKind::File {
                    return Ok(Image::of(&stat));
                }
                let digest = digest(&mut file, &stat)?;
                Ok(Image::file(stat.attributes(), stat.size, digest))
            }
            FileKind::Symlink => {
                use std::os::unix::ffi::OsStringExt as _;
                let target = rustix::fs::readlinkat(&parent, name, Vec::new())
                    .map_err(Error::io("read the link", path))?;
                let target = std::ffi::OsString::from_vec(target.into_bytes()).into();
                Ok(Image::Symlink { uid: stat.uid, gid: stat.gid, target })
            }
            FileKind::Directory | FileKind::Other => Ok(Image::of(&stat)),
        }
    }

    /// The image of what is about to change, its content kept.
    fn keep_image(
        &self,
        journal: &dyn Journal,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
    ) -> Result<Image> {
        let mut is_read = false;
        let must_keep = self.inner.must_keep.load(Ordering::Relaxed) > 0;
        let not_kept =
            |reason: &str| Error::NotKept { path: path.to_owned(), reason: reason.into() };
        let image = self.image_at(parent, name, path, |file, stat| {
            is_read = true;
            self.check_keepable(path, stat)?;
            let has_other_names = has_other_names(file);
            let mut kept = self.inner.kept.hold();
            if let Some(digest) = kept.find(stat) {
                if !has_other_names {
                    // Its number is free for another file soon.
                    kept.forget(stat);
                }
                return Ok(Some(digest));
            }
            drop(kept);
            let digest =
                journal.keep(&mut FormerFile { host: self, path, file, size: stat.size })?;
            if has_other_names {
                self.inner.kept.hold().add(stat, digest);
            }
            if must_keep && digest.is_none() {
                return Err(not_kept("the history of this run is full"));
            }
            Ok(digest)
        })?;
        match &image {
            Image::Other if must_keep => return Err(not_kept(NO_SPECIAL_FILES)),
            Image::Other => journal.give_up(path, NO_SPECIAL_FILES)?,
            Image::File { .. } if !is_read && must_keep => {
                return Err(not_kept("its content cannot be read"));
            }
            Image::File { .. } if !is_read => {
                journal.give_up(path, "its former content could not be read")?;
            }
            _ => {}
        }
        Ok(image)
    }

    /// Records that what has a name in an open directory is about to change;
    /// `after` says into what, where that is known.
    pub(crate) fn record_change(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
        after: impl FnOnce(&Image) -> Option<Image>,
    ) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let before = self.keep_image(&*journal, parent, name, path).map_err(unrecorded(path))?;
        let after = after(&before);
        if after.as_ref() == Some(&before) {
            return Ok(());
        }
        self.record_at(&*journal, path, &before, after.as_ref()).map_err(unrecorded(path))
    }

    /// Records that only the owner, group or mode of an open file is about to
    /// change. Gives back the digest of a file whose owner changes: the new one
    /// may write to it, so it is given back only if it is still the same.
    pub(crate) fn record_attributes(
        &self,
        path: &Path,
        file: Option<&OwnedFd>,
        have: &Stat,
        after: Attributes,
        is_known: bool,
    ) -> Result<Option<Digest>> {
        let Some(journal) = self.journal() else { return Ok(None) };
        let is_given = (have.uid, have.gid) != (after.uid, after.gid);
        let digest = match file.filter(|_| is_given && have.size <= MAX_RECOGNIZED) {
            Some(file) if have.kind == FileKind::File => self.digest_of(file, path, have),
            _ => None,
        };
        let image = |stat: &Stat| match Image::of(stat) {
            Image::File { attributes, size, .. } => Image::file(attributes, size, digest),
            image => image,
        };
        let (before, after) = (
            image(have),
            image(&Stat { uid: after.uid, gid: after.gid, mode: after.mode, ..*have }),
        );
        self.record_at(&*journal, path, &before, is_known.then_some(&after))
            .map_err(unrecorded(path))?;
        Ok(digest)
    }

    /// The digest of a file that is open by its path alone; `None` if it cannot
    /// be read.
    fn digest_of(&self, file: &OwnedFd, path: &Path, stat: &Stat) -> Option<Digest> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = rustix::fs::open(crate::extended::name_of(file), flags, Mode::empty()).ok()?;
        self.digest_of_first(&file.into(), path, stat.size).ok()
    }

    /// Records that a directory is about to be made, unless one is there.
    pub(crate) fn record_directory(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
    ) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        match self.keep_image(&*journal, parent, name, path).map_err(unrecorded(path))? {
            Image::Directory { .. } => Ok(()),
            before => self.record_at(&*journal, path, &before, None).map_err(unrecorded(path)),
        }
    }

    /// Records that something is about to be made where nothing is.
    pub(crate) fn record_new(
        &self,
        path: &Path,
        after: impl FnOnce() -> Option<Image>,
    ) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let after = after();
        self.record_at(&*journal, path, &Image::Absent, after.as_ref()).map_err(unrecorded(path))
    }

    /// Completes a record with what there is now, as an open file says.
    pub(crate) fn complete_record(
        &self,
        path: &Path,
        file: impl AsFd,
        digest: Option<Digest>,
    ) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let stat = Stat::of(file, path)?;
        let image = match Image::of(&stat) {
            Image::File { attributes, size, .. } => Image::file(attributes, size, digest),
            image => image,
        };
        journal.complete(path, &image)
    }

    /// Completes a record with what has a name in an open directory now.
    pub(crate) fn complete_record_at(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
    ) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        journal.complete(path, &self.image_at(parent, name, path, |_, _| Ok(None))?)
    }

    /// Records that a directory is about to go with everything in it: what is
    /// inside comes first, as it goes first.
    pub(crate) fn record_removal(&self, parent: &OwnedFd, name: &Path, path: &Path) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        self.record_removal_in(&*journal, parent, name, path, 0).map_err(unrecorded(path))
    }

    fn record_removal_in(
        &self,
        journal: &dyn Journal,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        depth: usize,
    ) -> Result<()> {
        let image = self.keep_image(journal, parent, name, path)?;
        if matches!(image, Image::Directory { .. }) {
            if depth > MAX_DEPTH {
                return journal.give_up(path, "it is too deep");
            }
            // A mount, or what may not be entered, will not be removed either.
            if let Ok(directory) = crate::remove::open_below(parent, name, path) {
                for name in crate::remove::list(&directory, path)? {
                    let name = PathBuf::from(crate::remove::lossless(&name));
                    let inner = path.join(&name);
                    self.record_removal_in(journal, &directory, &name, &inner, depth + 1)?;
                }
            }
        }
        match image {
            Image::Absent => Ok(()),
            image => self.record_at(journal, path, &image, Some(&Image::Absent)),
        }
    }

    /// Records a directory that a command has made where nothing was, with
    /// everything in it.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded.
    pub fn record_made_tree(&self, path: &Path) -> Result<()> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let (parent, name) = self.open_parent(path)?;
        self.record_made_in(&*journal, &parent, name, path, 0)
    }

    fn record_made_in(
        &self,
        journal: &dyn Journal,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        depth: usize,
    ) -> Result<()> {
        let image = self.image_below(parent, name, path)?;
        if matches!(image, Image::Absent | Image::Other) || depth > MAX_DEPTH {
            return Ok(());
        }
        self.record_at(journal, path, &Image::Absent, Some(&image))?;
        if matches!(image, Image::Directory { .. }) {
            let directory = crate::remove::open_below(parent, name, path)?;
            for name in crate::remove::list(&directory, path)? {
                let name = PathBuf::from(crate::remove::lossless(&name));
                self.record_made_in(journal, &directory, &name, &path.join(&name), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Replaces `path` atomically with a symlink.
    pub fn replace_with_symlink(
        &self,
        path: &Path,
        target: &Path,
        owner: (u32, u32),
    ) -> Result<()> {
        let (parent, name) = self.open_parent(path)?;
        self.replace_with_symlink_in(&parent, name, path, target, owner)?;
        self.forget_parent();
        Ok(())
    }

    /// The same in a directory that is held open; `path` is where it leads.
    pub(crate) fn replace_with_symlink_in(
        &self,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        target: &Path,
        (uid, gid): (u32, u32),
    ) -> Result<()> {
        self.sweep(parent, path.parent().unwrap_or(Path::new("/")));
        self.record_change(parent, name, path, |_| {
            Some(Image::Symlink { uid, gid, target: target.to_owned() })
        })?;
        let owner = Attributes { uid, gid, mode: 0 }.ids();
        let mut attempts = 0;
        while !self.try_symlink(parent, name, path, target, owner)? {
            attempts += 1;
            if attempts == MAX_SWEPT {
                return Err(not_renamed(path, Errno::NOENT));
            }
        }
        let dev = Stat::of(parent, path)?.dev;
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.inner.barrier.hold().directory_changed(directory, dev);
        Ok(())
    }

    /// Makes a symlink under a temporary name, and gives it its own; false if
    /// another run took it for a leftover in between.
    fn try_symlink(
        &self,
        parent: &OwnedFd,
        name: &Path,
        path: &Path,
        target: &Path,
        (uid, gid): (rustix::fs::Uid, rustix::fs::Gid),
    ) -> Result<bool> {
        let temporary = self.random_name(".ccm-");
        rustix::fs::symlinkat(target, parent, &*temporary)
            .map_err(Error::io("create a symlink in", path.parent().unwrap_or(path)))?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let made = match rustix::fs::chownat(parent, &*temporary, Some(uid), Some(gid), flags) {
            Ok(()) => rustix::fs::renameat(parent, &*temporary, parent, name)
                .map_err(|errno| (errno, not_renamed(path, errno))),
            Err(errno) => Err((errno, Error::io("set the owner of", path)(errno))),
        };
        match made {
            Ok(()) => Ok(true),
            Err((Errno::NOENT, _)) => Ok(false),
            Err((_, error)) => {
                let _ = rustix::fs::unlinkat(parent, &*temporary, AtFlags::empty());
                Err(error)
            }
        }
    }
}

/// How often in a row a new symlink may be taken for a leftover.
const MAX_SWEPT: u32 = 100;

/// Why something is left as it is.
fn unrecorded(path: &Path) -> impl FnOnce(Error) -> Error {
    move |source| match source {
        kept @ Error::NotKept { .. } => kept,
        source => Error::Unrecorded { path: path.to_owned(), source: Box::new(source) },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Mutex;

    use super::*;
    use crate::Content;

    /// Keeps records in memory, without contents.
    #[derive(Debug, Default)]
    struct Memory(Mutex<Vec<(PathBuf, Image, Option<Image>)>>);

    impl Journal for Memory {
        fn keep(&self, file: &mut FormerFile<'_>) -> Result<Option<Digest>> {
            assert_eq!(file.size(), file.file.metadata().unwrap().len());
            file.digest().map(Some)
        }

        fn record(&self, place: Place<'_>, before: &Image, after: Option<&Image>) -> Result<()> {
            let record = (place.path.to_owned(), before.clone(), after.cloned());
            self.0.lock().unwrap().push(record);
            Ok(())
        }

        fn complete(&self, path: &Path, after: &Image) -> Result<()> {
            let mut records = self.0.lock().unwrap();
            let last = records.iter_mut().rev().find(|record| record.0 == path);
            if let Some(record) = last {
                record.2 = Some(after.clone());
            }
            Ok(())
        }

        fn give_up(&self, path: &Path, reason: &str) -> Result<()> {
            panic!("{}: {reason}", path.display());
        }
    }

    /// Every way to change a path says before what was there, and then what is.
    /// Other runs take a symlink that is being made for a leftover.
    #[test]
    fn symlinks_are_made_while_others_sweep() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("link");
        let host = Host::new();
        let owner = host.whoami();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    Host::new().remove_leftovers(dir.path()).unwrap();
                }
            });
            let made = (0..2_000).try_for_each(|number: i32| {
                host.replace_with_symlink(&path, Path::new(&number.to_string()), owner)
            });
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            made.unwrap();
        });
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("1999"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        // That of a killed run.
        symlink("nowhere", dir.path().join(".ccm-0123456789abcdef01234567")).unwrap();
        Host::new().remove_leftovers(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn images_are_what_was_and_what_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let host = Host::new();
        let (uid, gid) = host.whoami();
        let mine = |mode| Attributes { uid, gid, mode };
        std::fs::write(at("replaced"), "old").unwrap();
        std::fs::write(at("in-place"), "old").unwrap();
        std::fs::write(at("attributes"), "same").unwrap();
        std::fs::write(at("removed"), "old").unwrap();
        std::fs::create_dir_all(at("tree/deep")).unwrap();
        std::fs::write(at("tree/deep/f"), "deep").unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("f", at("tree/deep/l")).unwrap();
        type Act = fn(&Host, &Path, &dyn Fn(u32) -> Attributes) -> Result<()>;
        let acts: [(&str, Act); 11] = [
            ("new", |h, p, m| h.create(p, Content::Bytes(b"new"), &m(0o644))),
            ("dangling", |h, p, m| h.create(p, Content::Bytes(b"new"), &m(0o600))),
            ("replaced", |h, p, m| h.replace(p, Content::Bytes(b"new"), &m(0o640))),
            ("in-place", |h, p, m| h.write_in_place(p, Some(Content::Bytes(b"n")), &m(0o600))),
            ("attributes", |h, p, m| h.set_attributes(p, &m(0o600))),
            ("made", |h, p, m| h.create_directory(&p.join("a/b"), &m(0o750))),
            ("removed", |h, p, _| h.remove(p)),
            ("tree", |h, p, _| h.remove_tree(p)),
            ("by-command", |h, p, _| {
                std::fs::create_dir_all(p.join("a/b")).unwrap();
                std::fs::write(p.join("a/f"), "made").unwrap();
                symlink("f", p.join("a/l")).unwrap();
                h.record_made_tree(p)
            }),
            ("link", |h, p, _| h.replace_with_symlink(p, Path::new("to"), h.whoami())),
            ("extracted", |h, p, _| {
                let mut into = crate::Destination::open_marked(h, p, Path::new("x.tar"))?;
                into.begin()?;
                let mut file = into.file(Path::new("sub/f"))?;
                file.write(b"content")?;
                file.finish(&crate::EntryMetadata::default())?;
                into.symlink(Path::new("l"), Path::new("sub/f"), &crate::EntryMetadata::default())?;
                into.hard_link(Path::new("h"), Path::new("sub/f"))?;
                into.complete()
            }),
        ];
        for (name, act) in acts {
            let journal = Arc::new(Memory::default());
            host.set_journal(Some(Arc::clone(&journal) as Arc<dyn Journal>));
            let known = |path: &Path| host.image(path).unwrap();
            let everything = || -> std::collections::BTreeMap<PathBuf, Image> {
                let mut all = std::collections::BTreeMap::new();
                let mut pending = vec![dir.path().to_owned()];
                while let Some(path) = pending.pop() {
                    all.insert(path.clone(), known(&path));
                    if matches!(known(&path), Image::Directory { .. }) {
                        let names = std::fs::read_dir(&path).unwrap();
                        pending.extend(names.map(|entry| entry.unwrap().path()));
                    }
                }
                all
            };
            let before = everything();
            act(&host, &at(name), &mine).unwrap();
            host.set_journal(None);
            let after = everything();
            let records = journal.0.lock().unwrap();
            // Everything that differs is recorded, as it was and as it is.
            let paths: Vec<&PathBuf> = before.keys().chain(after.keys()).collect();
            for path in paths {
                let was = before.get(path).cloned().unwrap_or(Image::Absent);
                let is = after.get(path).cloned().unwrap_or(Image::Absent);
                let own: Vec<_> = records
                    .iter()
                    .filter(|record| record.0 == *path && record.2.as_ref() != Some(&record.1))
                    .collect();
                if was == is {
                    continue;
                }
                let (Some(first), Some(last)) = (own.first(), own.last()) else {
                    panic!("{name}: {} is not recorded: {records:#?}", path.display());
                };
                assert!(first.1.is_like(&was), "{name}: {first:?} was {was:?}");
                let left = last.2.as_ref().unwrap();
                assert!(left.is_like(&is), "{name}: {last:?} is {is:?}");
            }
        }
    }
}
