//! Files that decide what a run does: manifests, data, templates, sources.
//!
//! As root, such a file must belong to root and nobody else may be able to
//! change it: not by writing it, not by replacing it in its directory, not by
//! replacing a directory above it. The file is judged by the descriptor that
//! is read. Directories that only root can change stay what they were when
//! they were judged, so they are judged once.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::extended::has_access_list;
use crate::file::{check_regular, read_all, utf8};
use crate::forecast::Seen;
use crate::walk::{Step, Walk};
use crate::{Error, FileKind, Folder, Host, Result, Stat};

/// The reason why ccm does not trust a file: a user other than root can change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The file, or the directory or symlink on the way to it.
    pub path: PathBuf,
    kind: FileKind,
    uid: u32,
    mode: u32,
}

impl Doubt {
    pub(crate) fn new(path: &Path, stat: &Stat) -> Self {
        Self { path: path.to_owned(), kind: stat.kind, uid: stat.uid, mode: stat.mode }
    }

    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> String {
        let path = self.path.display();
        match self.kind {
            FileKind::Symlink => format!("chown -h root:root {path}"),
            _ => format!("chown root:root {path} && chmod go-w {path}"),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, uid, mode, .. } = self;
        let path = path.display();
        match self.kind {
            FileKind::Symlink => write!(f, "the symlink {path} belongs to user {uid}"),
            FileKind::Directory => write!(
                f,
                "the directory {path} is writable by other users (owner {uid}, mode {mode:04o})"
            ),
            FileKind::File | FileKind::Other => {
                write!(f, "{path} is writable by other users (owner {uid}, mode {mode:04o})")
            }
        }
    }
}

/// When something untrusted is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuse {
    /// With `CCM_STRICT=1`; otherwise ccm logs a warning.
    IfStrict,
    /// In every run, because ccm reads these files without being told to.
    Always,
}

impl Host {
    /// Opens a regular file that decides what is done. As root, a file that
    /// others can change is refused with `CCM_STRICT=1` and logged otherwise.
    pub fn open_trusted(&self, path: &Path) -> Result<(File, Stat)> {
        let (file, stat, doubt) = self
            .open_judged(path, self.is_strict())
            .inspect_err(|error| self.note_missed(error))?;
        self.judge(path, doubt, Refuse::IfStrict)?;
        Ok((file, stat))
    }

    /// Reads such a file of at most `limit` bytes.
    pub fn read_trusted(&self, path: &Path, limit: u64) -> Result<String> {
        let (file, stat) = self.open_trusted(path)?;
        utf8(read_all(file, stat, path, limit)?, path)
    }

    /// As [`Host::read_trusted`], for any bytes.
    pub fn read_trusted_bytes(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let (file, stat) = self.open_trusted(path)?;
        read_all(file, stat, path, limit)
    }

    /// As [`Host::read_trusted`], with the doubt given back instead of logged.
    /// With `CCM_STRICT=1` there is no text beside a doubt.
    pub fn read_judged(&self, path: &Path, limit: u64) -> Result<(Option<String>, Option<Doubt>)> {
        let (file, stat, doubt) = match self.open_judged(path, self.is_strict()) {
            Err(Error::Untrusted { doubt, .. }) => return Ok((None, Some(doubt))),
            other => other.inspect_err(|error| self.note_missed(error))?,
        };
        if doubt.is_some() && self.is_strict() {
            return Ok((None, doubt));
        }
        Ok((Some(utf8(read_all(file, stat, path, limit)?, path)?), doubt))
    }

    /// Opens a directory whose files decide what is done; `None` when there is
    /// nothing. Everything that is read through it is judged too.
    pub fn open_trusted_folder(&self, path: &Path, refuse: Refuse) -> Result<Option<Folder>> {
        self.open_source_folder(path, refuse, false)
    }

    /// The same for a directory that is copied. As root, no symlink of another
    /// user leads to what that user does not own: its files could be secret.
    pub fn open_copied_folder(&self, path: &Path, refuse: Refuse) -> Result<Option<Folder>> {
        self.open_source_folder(path, refuse, true)
    }

    fn open_source_folder(
        &self,
        path: &Path,
        refuse: Refuse,
        is_copied: bool,
    ) -> Result<Option<Folder>> {
        if let Some(by) = self.predicted_below(path) {
            let error = Error::Unpredictable { path: path.to_owned(), by };
            self.note_missed(&error);
            return Err(error);
        }
        let absolute = self.absolute(path)?;
        if let Some(copy) = self.replayed_tree(&absolute) {
            return self.open_folder(&copy);
        }
        let folder =
            if is_copied { self.open_managed_folder(path)? } else { self.open_folder(path)? };
        let Some(folder) = folder else { return Ok(None) };
        self.record_tree(&absolute);
        if !self.is_root() {
            return Ok(Some(folder));
        }
        self.judge(path, self.directory_doubt(path)?, refuse)?;
        Ok(Some(folder.guarded(self, refuse)))
    }

    /// Checks a directory, and those above it, as files in it are checked.
    pub fn check_trusted_directory(&self, path: &Path) -> Result<()> {
        if !self.is_root() {
            return Ok(());
        }
        self.judge(path, self.directory_doubt(path)?, Refuse::IfStrict)
    }

    /// As root, a file with a secret that other users can read is refused with
    /// `CCM_STRICT=1` and logged otherwise.
    pub fn check_private(&self, path: &Path) -> Result<()> {
        if !self.is_root() {
            return Ok(());
        }
        let Some(stat) = self.stat(path)?.filter(|stat| stat.mode & 0o044 != 0) else {
            return Ok(());
        };
        if self.is_strict() {
            return Err(Error::Exposed { path: path.to_owned(), mode: stat.mode });
        }
        let (path, mode) = (path.display(), stat.mode);
        self.warn(format!(
            "{path} holds a secret and is readable by other users (mode {mode:04o})"
        ));
        Ok(())
    }

    /// Opens a file, and says who can change it. A directory on the way that
    /// others can change ends it at once if `is_strict`: what is behind it may
    /// be another file by then.
    fn open_judged(&self, path: &Path, is_strict: bool) -> Result<(File, Stat, Option<Doubt>)> {
        let absolute = self.absolute(path)?;
        if let Some(copy) = self.replayed_file(&absolute) {
            let (file, stat) = self.open(&copy)?;
            return Ok((file, stat, None));
        }
        let opened = self.open_and_judge(path, &absolute, is_strict)?;
        // What an earlier step of the preview would write comes with its resource.
        if matches!(self.seen_target(path)?, Seen::OnDisk) {
            self.record_file(&absolute, &opened.0, opened.1)?;
        }
        Ok(opened)
    }

    fn open_and_judge(
        &self,
        path: &Path,
        absolute: &Path,
        is_strict: bool,
    ) -> Result<(File, Stat, Option<Doubt>)> {
        // In a preview, what ccm itself would write is not on disk yet.
        let is_predicted = !matches!(self.seen_target(path)?, Seen::OnDisk);
        if is_predicted || !self.is_root() {
            let (file, stat) = self.open(path)?;
            return Ok((file, stat, None));
        }
        // Nor are the symlinks on the way that ccm itself would make.
        let place = self.on_disk(absolute, true);
        let (path, absolute) = match &place {
            Cow::Borrowed(_) => (path, absolute),
            Cow::Owned(place) => (place.as_path(), place.as_path()),
        };
        let doubt = match absolute.parent() {
            Some(parent) => self.directory_doubt(parent)?,
            None => None,
        };
        if let Some(doubt) = doubt {
            if is_strict {
                return Err(Error::Untrusted { path: path.to_owned(), doubt });
            }
            let (file, stat) = self.open(path)?;
            return Ok((file, stat, Some(doubt)));
        }
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let found = self.lstat(path)?.ok_or_else(|| Error::io("open", path)(Errno::NOENT))?;
        let (file, stat, on_the_way) = if found.kind == FileKind::Symlink {
            let walk = Walk::from_root(absolute).map_err(Error::io("open", path))?;
            let (file, stat) = walk.open_file(path)?;
            (file, stat, walk.way.iter().find_map(step_doubt))
        } else {
            check_regular(path, found)?;
            let file =
                rustix::fs::open(path, flags, Mode::empty()).map_err(Error::io("open", path))?;
            let stat = Stat::of(&file, path)?;
            check_regular(path, stat)?;
            (File::from(file), stat, None)
        };
        let doubt = on_the_way.or_else(|| file_doubt(&file, &stat, path));
        Ok((file, stat, doubt))
    }

    /// Who can change what a directory holds, or replace it or one above it.
    fn directory_doubt(&self, path: &Path) -> Result<Option<Doubt>> {
        let path = self.absolute(path)?;
        if let Some(known) = self.inner.trusted.hold().get(&path) {
            return Ok(known.clone());
        }
        let doubt = match Walk::from_root(&path) {
            Ok(walk) => walk.way.iter().find_map(step_doubt),
            // A missing file is reported when it is opened.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(Error::io("open", &path)(errno)),
        };
        self.inner.trusted.hold().insert(path, doubt.clone());
        Ok(doubt)
    }

    fn judge(&self, path: &Path, doubt: Option<Doubt>, refuse: Refuse) -> Result<()> {
        self.judge_doubt(path, doubt, refuse == Refuse::Always || self.is_strict())
    }

    /// An error, or a warning, where there is a doubt.
    pub(crate) fn judge_doubt(
        &self,
        path: &Path,
        doubt: Option<Doubt>,
        is_refused: bool,
    ) -> Result<()> {
        let Some(doubt) = doubt else { return Ok(()) };
        if is_refused {
            return Err(Error::Untrusted { path: path.to_owned(), doubt });
        }
        self.warn(format!("{doubt}, and ccm reads {} as root", path.display()));
        Ok(())
    }
}

/// A directory must be root's alone, except that everybody may make files in a
/// sticky one: they cannot replace those of root.
pub(crate) fn step_doubt(step: &Step) -> Option<Doubt> {
    let stat = &step.stat;
    let is_doubtful = match stat.kind {
        FileKind::Directory => is_directory_doubtful(stat, step.is_listed),
        _ => stat.uid != 0,
    };
    is_doubtful.then(|| Doubt::new(&step.path, stat))
}

/// `is_listed`: the group's bits are what an access list allows at most, so they
/// do not stand for root's group.
fn is_directory_doubtful(stat: &Stat, is_listed: bool) -> bool {
    let is_sticky = stat.mode & 0o1000 != 0;
    stat.uid != 0 || (stat.is_writable_by_others() || is_listed) && !is_sticky
}

/// The doubt about an open file.
pub(crate) fn file_doubt(file: impl AsFd, stat: &Stat, path: &Path) -> Option<Doubt> {
    // The group's bit may stand for an access list.
    let is_listed = || stat.mode & 0o020 != 0 && has_access_list(&file);
    (stat.is_writable_by_others() || is_listed()).then(|| Doubt::new(path, stat))
}

/// The doubt about an open directory alone.
pub(crate) fn folder_doubt(folder: impl AsFd, stat: &Stat, path: &Path) -> Option<Doubt> {
    let is_listed = stat.mode & 0o020 != 0 && has_access_list(folder);
    is_directory_doubtful(stat, is_listed).then(|| Doubt::new(path, stat))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;

    const NOBODY: u32 = 65534;

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn doubt(path: &Path) -> Option<Doubt> {
        Host::new().open_judged(path, false).unwrap().2
    }

    #[test]
    fn files_directories_and_symlinks_of_others_are_doubted() {
        if ccm_testkit::lacks_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        let file = at("a/b/f");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(doubt(&file), None);
        for mode in [0o664, 0o600, 0o755] {
            chmod(&file, mode);
            assert_eq!(doubt(&file), None, "{mode:o}");
        }
        chmod(&file, 0o646);
        assert_eq!(doubt(&file).unwrap().path, file);
        chmod(&file, 0o644);
        chmod(&at("a"), 0o777);
        assert_eq!(doubt(&file).unwrap().path, at("a"));
        chmod(&at("a"), 0o1777);
        assert_eq!(doubt(&file), None, "sticky");
        chown(at("a"), Some(NOBODY), None).unwrap();
        assert_eq!(doubt(&file).unwrap().path, at("a"), "a sticky directory of theirs");
        chown(at("a"), Some(0), None).unwrap();
        for (name, target) in [("a/link", "b/f"), ("a/way", "b")] {
            symlink(target, at(name)).unwrap();
            let file = if name == "a/way" { at("a/way/f") } else { at(name) };
            assert_eq!(doubt(&file), None, "{name}");
            lchown(at(name), Some(NOBODY), None).unwrap();
            assert_eq!(doubt(&file).unwrap().path, at(name), "{name}");
        }
        chown(&file, Some(NOBODY), None).unwrap();
        assert_eq!(doubt(&file).unwrap().path, file);
        let host = Host::new();
        assert!(host.read_trusted(&file, 10).is_ok(), "a warning is no error");
        assert!(host.open_judged(&at("a/none"), true).is_err());
        let folder = host.open_trusted_folder(&at("a/b"), Refuse::Always).unwrap().unwrap();
        let error = folder.read(OsStr::new("f"), 10).unwrap_err();
        assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    }
}
