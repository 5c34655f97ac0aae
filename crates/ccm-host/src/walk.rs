//! Resolves paths one component at a time, keeping each directory open.
//!
//! The kernel follows symlinks regardless of their owner. As root this is
//! dangerous: a user who owns a parent directory of a managed path can replace
//! it with a symlink to anything. All checks use the descriptor that is used
//! afterwards, so there is no race.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::beneath::is_no_answer;
use crate::extended::has_access_list;
use crate::file::{check_regular, read_all};
use crate::forecast::Seen;
use crate::trust::step_doubt;
use crate::{Error, FileKind, Host, Result, Stat};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory or symlink on the way.
#[derive(Debug)]
pub(crate) struct Step {
    /// Where it is, all symlinks before it resolved.
    pub(crate) path: PathBuf,
    pub(crate) stat: Stat,
    /// What a symlink leads to, where there is something.
    pub(crate) target: Option<Stat>,
    /// The group's right to write may stand for an access list.
    pub(crate) is_listed: bool,
    /// Others can put a symlink in the place of this one: the directory that it
    /// lies in.
    loose_in: Option<Stat>,
}

impl Step {
    fn new(path: &Path, stat: Stat, file: &OwnedFd) -> Self {
        let is_question = stat.kind == FileKind::Directory && stat.mode & 0o020 != 0;
        let is_listed = is_question && has_access_list(file);
        Self { path: path.to_owned(), stat, target: None, is_listed, loose_in: None }
    }

    /// Whether a symlink leads to something of whoever may have put it there.
    fn leads_to_own(&self) -> bool {
        let Some(target) = self.target.filter(|_| self.stat.kind == FileKind::Symlink) else {
            return true;
        };
        match (self.stat.uid, self.loose_in) {
            (0, None) => true,
            // Any symlink of root that lies around can be renamed to this one.
            (0, Some(directory)) if directory.uid != 0 => target.uid == directory.uid,
            (0, Some(directory)) => {
                let is_shared_with = |bit| directory.mode & bit != 0 && target.mode & bit != 0;
                is_shared_with(0o002) || is_shared_with(0o020) && target.gid == directory.gid
            }
            (owner, _) => target.uid == owner,
        }
    }
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The directories from the first to the last one.
    directories: Vec<(OwnedFd, PathBuf, Stat)>,
    /// The last component, unless it is a directory too: its name in the last
    /// directory, and what is there.
    pub(crate) last: Option<(OsString, Option<Stat>)>,
    /// Everything that was passed.
    pub(crate) way: Vec<Step>,
    links: usize,
    /// The walk must not leave the first directory.
    is_confined: bool,
}

enum Item {
    Up,
    Name(OsString),
    /// Everything that the symlink at this step stands for is resolved.
    EndOfLink(usize),
}

impl Walk {
    /// Resolves an absolute path, all symlinks in it followed. A path whose
    /// last component is missing has a `last` without `Stat`.
    pub(crate) fn from_root(path: &Path) -> Result<Self, Errno> {
        let root = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
        Self::from(root, Path::new("/"), path, false)
    }

    /// Resolves a path below a directory; fails with `XDEV` if it is outside.
    pub(crate) fn beneath(top: OwnedFd, top_path: &Path, path: &Path) -> Result<Self, Errno> {
        Self::from(top, top_path, path, true)
    }

    fn from(top: OwnedFd, at: &Path, path: &Path, is_confined: bool) -> Result<Self, Errno> {
        let stat = Stat::new(&rustix::fs::fstat(&top)?);
        let step = Step::new(at, stat, &top);
        let mut walk = Self {
            directories: vec![(top, at.to_owned(), stat)],
            last: None,
            way: vec![step],
            links: 0,
            is_confined,
        };
        walk.follow(path)?;
        Ok(walk)
    }

    /// The innermost directory, held open. Fails if the walk found none.
    pub(crate) fn directory(&self) -> Result<&OwnedFd, Errno> {
        self.directories.last().map(|(directory, _, _)| directory).ok_or(Errno::NOENT)
    }

    pub(crate) fn into_directory(mut self) -> Result<OwnedFd, Errno> {
        match (&self.last, self.directories.pop()) {
            (None, Some((directory, _, _))) => Ok(directory),
            (Some((_, None)), _) => Err(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn follow(&mut self, path: &Path) -> Result<(), Errno> {
        let mut items = VecDeque::new();
        self.push(&mut items, path)?;
        while let Some(item) = items.pop_front() {
            match item {
                Item::EndOfLink(step) => {
                    let stat = match &self.last {
                        Some((_, stat)) => *stat,
                        None => self.directories.last().map(|(_, _, stat)| *stat),
                    };
                    self.way[step].target = stat;
                }
                _ if self.last.as_ref().is_some_and(|(_, stat)| stat.is_none()) => {
                    return Err(Errno::NOENT);
                }
                _ if self.last.is_some() => return Err(Errno::NOTDIR),
                Item::Up if self.directories.len() > 1 => drop(self.directories.pop()),
                Item::Up if self.is_confined => return Err(Errno::XDEV),
                Item::Up => {}
                Item::Name(name) => self.enter(name, &mut items)?,
            }
        }
        Ok(())
    }

    /// Puts what a path consists of before everything else.
    fn push(&mut self, items: &mut VecDeque<Item>, path: &Path) -> Result<(), Errno> {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => items.push_front(Item::Name(name.to_owned())),
                Component::ParentDir => items.push_front(Item::Up),
                Component::RootDir if self.is_confined => return Err(Errno::XDEV),
                Component::RootDir => self.directories.truncate(1),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: OsString, items: &mut VecDeque<Item>) -> Result<(), Errno> {
        let Some((directory, at, _)) = self.directories.last() else { return Err(Errno::NOENT) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match rustix::fs::openat(directory, &name, flags, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) => {
                self.last = Some((name, None));
                return Ok(());
            }
            Err(errno) => return Err(errno),
        };
        let stat = Stat::new(&rustix::fs::fstat(&found)?);
        let path = at.join(&name);
        match stat.kind {
            FileKind::Directory => {
                self.way.push(Step::new(&path, stat, &found));
                self.directories.push((found, path, stat));
            }
            FileKind::Symlink => {
                self.links += 1;
                if self.links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                items.push_front(Item::EndOfLink(self.way.len()));
                let above = self.way.iter().rev().find(|step| step.path == *at);
                let loose_in = above.filter(|step| step_doubt(step).is_some()).map(|it| it.stat);
                self.way.push(Step { loose_in, ..Step::new(&path, stat, &found) });
                self.push(items, &target)?;
            }
            FileKind::File | FileKind::Other => self.last = Some((name, Some(stat))),
        }
        Ok(())
    }

    /// Fails if a symlink on the way leads to something that does not belong to
    /// whoever may have put it there.
    fn check_symlinks(&self) -> Result<()> {
        for step in &self.way {
            if let Some(target) = step.target.filter(|_| !step.leads_to_own()) {
                let (path, target) = (step.path.clone(), target.uid);
                return Err(match step.stat.uid {
                    0 => Error::LooseLink { path, target },
                    owner => Error::ForeignLink { path, owner, target },
                });
            }
        }
        Ok(())
    }

    /// Opens the file that the path leads to, which must be a regular one.
    pub(crate) fn open_file(&self, path: &Path) -> Result<(std::fs::File, Stat)> {
        let (name, found): (&OsStr, _) = match &self.last {
            Some((name, Some(stat))) => (name, *stat),
            Some((_, None)) => return Err(Error::io("open", path)(Errno::NOENT)),
            None => {
                return Err(Error::NotAFile { path: path.to_owned(), found: "a directory" });
            }
        };
        check_regular(path, found)?;
        let directory = self.directory().map_err(Error::io("open", path))?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(directory, name, flags, Mode::empty())
            .map_err(Error::io("open", path))?;
        let stat = Stat::of(&file, path)?;
        check_regular(path, stat)?;
        Ok((file.into(), stat))
    }
}

impl Host {
    /// Opens a directory that something managed lies in. As root, a symlink on
    /// the way that belongs to another user must lead to something of that same
    /// user: otherwise whoever owns a directory on the way decides what root
    /// changes. A symlink of root that others can rename counts as theirs.
    pub(crate) fn open_managed(&self, path: &Path) -> Result<OwnedFd> {
        let failed = |errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Error::NotADirectory { path: path.to_owned() },
            errno => Error::io("open", path)(errno),
        };
        if !self.is_root() {
            return rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(failed);
        }
        // Mostly there is no symlink at all, which the kernel tells in one call.
        let resolve = ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(CWD, path, DIRECTORY, Mode::empty(), resolve) {
            Ok(directory) => return Ok(directory),
            // There is one, or the kernel cannot tell.
            Err(errno) if errno == Errno::LOOP || is_no_answer(errno) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let walk = Walk::from_root(&self.absolute(path)?).map_err(failed)?;
        walk.check_symlinks()?;
        walk.into_directory().map_err(failed)
    }

    /// As root, fails if a symlink of another user on a managed path points to
    /// something that this user does not own. For previews only: functions that
    /// write check this themselves.
    pub fn check_managed_path(&self, path: &Path) -> Result<()> {
        path.parent().map_or(Ok(()), |parent| self.check_managed_directory(parent))
    }

    /// As [`Host::check_managed_path`], for a directory that itself may be
    /// reached by a symlink. Directories that do not exist are passed over.
    pub fn check_managed_directory(&self, directory: &Path) -> Result<()> {
        if !self.is_root() {
            return Ok(());
        }
        for directory in directory.ancestors() {
            if self.inner.checked.hold().contains(directory) {
                return Ok(());
            }
            // What is on disk at a place that earlier steps change says nothing.
            if matches!(self.seen(directory), Ok(Seen::Absent | Seen::File(..) | Seen::Link(_))) {
                continue;
            }
            match self.open_managed(directory) {
                Ok(open) => {
                    let open = std::sync::Arc::new(open);
                    self.inner.checked.hold().insert(directory.to_owned());
                    // Whatever is written there next need not open it again.
                    self.inner.parent.set(Some((directory.to_owned(), open)));
                    return Ok(());
                }
                Err(Error::NotADirectory { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Where a file is that symlinks may lead to, all of them followed. As root, a
    /// symlink of another user must lead to something of that same user, the last
    /// one included: otherwise whoever owns it decides what root changes. In a
    /// preview, symlinks of earlier steps are followed and not judged.
    ///
    /// # Errors
    ///
    /// Fails for such a symlink.
    pub fn managed_file(&self, path: &Path) -> Result<PathBuf> {
        let real = self.followed(path);
        if !self.is_root() || real == path {
            return Ok(real);
        }
        // What is missing, or not on disk yet, is judged when it is written.
        let Ok(mut walk) = Walk::from_root(&self.absolute(path)?) else { return Ok(real) };
        // Of a dangling symlink, the directory decides in which a file would be made.
        let directory = walk.directories.last().map(|(_, _, stat)| *stat);
        for step in walk.way.iter_mut().filter(|step| step.stat.kind == FileKind::Symlink) {
            step.target = step.target.or(directory);
        }
        walk.check_symlinks()?;
        Ok(real)
    }

    /// Reads a managed file of at most `limit` bytes, and its attributes by the
    /// descriptor that is read; `None` if nothing is there. A symlink that takes
    /// the place of the file is not followed.
    ///
    /// # Errors
    ///
    /// Fails for everything that is no regular file.
    pub fn read_managed(&self, path: &Path, limit: u64) -> Result<Option<(Vec<u8>, Stat)>> {
        let Some(found) = self.lstat(path)? else { return Ok(None) };
        check_regular(path, found)?;
        if !matches!(self.seen(path)?, Seen::OnDisk) {
            return self.read_bytes(path, limit).map(Some);
        }
        let place = self.on_disk(path, false);
        let (parent, name) = self.open_parent(&place)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&*parent, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::io("open", path)(errno)),
        };
        let stat = Stat::of(&file, path)?;
        check_regular(path, stat)?;
        Ok(Some((read_all(file.into(), stat, path, limit)?, stat)))
    }

    pub(crate) fn absolute(&self, path: &Path) -> Result<PathBuf> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        Ok(self.current_dir()?.join(path))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    const NOBODY: u32 = 65534;

    fn fixture() -> Option<tempfile::TempDir> {
        if ccm_testkit::lacks_root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["root", "theirs", "theirs/inner"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["theirs", "theirs/inner"] {
            chown(dir.path().join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Some(dir)
    }

    #[test]
    fn a_managed_file_is_reached_by_trusted_symlinks_only() {
        let Some(dir) = fixture() else { return };
        let at = |name: &str| dir.path().join(name);
        let host = Host::new();
        for (name, uid) in [("root/file", 0), ("theirs/file", NOBODY)] {
            std::fs::write(at(name), "x").unwrap();
            chown(at(name), Some(uid), Some(uid)).unwrap();
        }
        for (name, target, owner, is_allowed) in [
            ("root/a", "../root/file", 0, true),
            ("root/b", "../theirs/file", 0, true),
            ("theirs/c", "file", NOBODY, true),
            ("theirs/d", "../root/file", NOBODY, false),
            ("theirs/e", "../root/missing", NOBODY, false),
            ("theirs/f", "missing", NOBODY, true),
            // They could have renamed root's symlink to this name.
            ("theirs/g", "../root/file", 0, false),
        ] {
            symlink(target, at(name)).unwrap();
            lchown(at(name), Some(owner), Some(owner)).unwrap();
            let real = host.managed_file(&at(name));
            assert_eq!(real.is_ok(), is_allowed, "{name}: {real:?}");
            if let Ok(real) = real {
                assert!(!real.ends_with(Path::new(name).file_name().unwrap()), "{real:?}");
            }
        }
    }

    #[test]
    fn a_symlink_in_the_place_of_a_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        let host = Host::new();
        let (bytes, stat) = host.read_managed(&at("file"), 10).unwrap().unwrap();
        assert_eq!((bytes.as_slice(), stat.size), (&b"x"[..], 1));
        assert!(host.read_managed(&at("missing"), 10).unwrap().is_none());
        assert!(host.read_managed(&at("link"), 10).is_err());
        assert!(host.read_managed(dir.path(), 10).is_err());
        assert!(host.read_managed(&at("file"), 0).is_err());
    }

    #[test]
    fn a_users_symlink_leads_only_to_what_is_theirs() {
        let Some(dir) = fixture() else { return };
        let at = |name: &str| dir.path().join(name);
        let host = Host::new();
        for (name, target, owner, is_allowed) in [
            ("a", "root", 0, true),
            ("b", "theirs/inner", 0, true),
            ("c", "theirs", NOBODY, true),
            ("d", "root", NOBODY, false),
            ("e", "../root", NOBODY, false),
            ("theirs/f", "../root", NOBODY, false),
            ("theirs/g", "inner", NOBODY, true),
            // Each symlink of a chain counts.
            ("h", "d", 0, false),
            ("i", "a", NOBODY, false),
            ("j", "c", NOBODY, true),
            ("k", "/", NOBODY, false),
        ] {
            let target = if name == "e" { Path::new("theirs/../root") } else { Path::new(target) };
            symlink(target, at(name)).unwrap();
            lchown(at(name), Some(owner), Some(owner)).unwrap();
            let opened = host.open_managed(&at(name));
            assert_eq!(opened.is_ok(), is_allowed, "{name}: {opened:?}");
            if let Ok(open) = opened {
                let direct = std::fs::metadata(at(name)).unwrap();
                let found = Stat::of(open, &at(name)).unwrap();
                assert_eq!(found.ino, std::os::unix::fs::MetadataExt::ino(&direct), "{name}");
            } else {
                let below = at(name).join("no/such/file");
                let error = Host::new().check_managed_path(&below).unwrap_err();
                assert!(matches!(error, Error::ForeignLink { .. }), "{name}: {error}");
            }
        }
    }

    /// Who can rename in a directory can put any symlink of root in the place of
    /// another, so it is theirs there.
    #[test]
    fn a_symlink_of_root_is_trusted_where_others_cannot_rename_it() {
        let Some(dir) = fixture() else { return };
        let at = |name: &str| dir.path().join(name);
        let host = Host::new();
        for (place, owner, group, mode) in [
            ("closed", 0, 0, 0o755),
            ("sticky", 0, 0, 0o1777),
            ("open", 0, 0, 0o777),
            ("group", 0, NOBODY, 0o775),
            ("users", NOBODY, NOBODY, 0o755),
            ("users-sticky", NOBODY, NOBODY, 0o1777),
        ] {
            std::fs::create_dir(at(place)).unwrap();
            chown(at(place), Some(owner), Some(group)).unwrap();
            std::fs::set_permissions(at(place), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(at("shared")).unwrap();
        chown(at("shared"), Some(0), Some(NOBODY)).unwrap();
        std::fs::set_permissions(at("shared"), PermissionsExt::from_mode(0o775)).unwrap();
        for (place, target, is_allowed) in [
            ("closed", "root", true),
            ("closed", "theirs", true),
            ("sticky", "root", true),
            ("open", "root", false),
            ("open", "theirs", false),
            ("group", "root", false),
            ("group", "shared", true),
            ("users", "root", false),
            ("users", "theirs", true),
            ("users-sticky", "root", false),
        ] {
            let link = at(place).join(target);
            symlink(at(target), &link).unwrap();
            let opened = host.open_managed(&link);
            assert_eq!(opened.is_ok(), is_allowed, "{place}: {opened:?}");
            if !is_allowed {
                let error = Host::new().check_managed_path(&link.join("file")).unwrap_err();
                assert!(matches!(error, Error::LooseLink { .. }), "{place}: {error}");
            }
        }
    }

    #[test]
    fn walks_end_where_the_kernel_ends() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/f"), "").unwrap();
        symlink("a/b/../f", at("file")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let ino = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
        let walk = Walk::from_root(&at("file")).unwrap();
        assert_eq!(walk.open_file(&at("file")).unwrap().1.ino, ino(&at("a/f")));
        let above = dir.path().join("a/../../../../../../../../..");
        let directory = Walk::from_root(&above).unwrap().into_directory().unwrap();
        assert_eq!(Stat::of(directory, &above).unwrap().ino, ino(Path::new("/")));
        assert_eq!(Walk::from_root(&at("loop")).unwrap_err(), Errno::LOOP);
        assert_eq!(Walk::from_root(&at("a/f/x")).unwrap_err(), Errno::NOTDIR);
        assert_eq!(Walk::from_root(&at("no/x")).unwrap_err(), Errno::NOENT);
        let dangling = Walk::from_root(&at("dangling")).unwrap();
        assert!(matches!(dangling.last, Some((_, None))));
    }

    #[test]
    fn confined_walks_do_not_leave() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("top/sub")).unwrap();
        std::fs::write(at("top/sub/f"), "").unwrap();
        std::fs::write(at("secret"), "").unwrap();
        symlink("sub", at("top/near")).unwrap();
        symlink("../secret", at("top/out")).unwrap();
        symlink(at("secret"), at("top/absolute")).unwrap();
        let walk = |path: &str| {
            let top = rustix::fs::open(at("top"), DIRECTORY, Mode::empty()).unwrap();
            Walk::beneath(top, &at("top"), Path::new(path)).map(drop)
        };
        assert_eq!(walk("near/f"), Ok(()));
        assert_eq!(walk("sub/../near/f"), Ok(()));
        for path in ["out", "absolute", "../secret", "sub/../../secret", "/etc/passwd"] {
            assert_eq!(walk(path), Err(Errno::XDEV), "{path}");
        }
    }
}
