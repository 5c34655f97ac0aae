//! Writes into existing files, without replacing them. A file that is a mount
//! point, as container runtimes do with `/etc/resolv.conf`, cannot be replaced,
//! because `rename` fails for mount points.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::set_attributes_of;
use crate::extended::{has_other_owner, name_of};
use crate::file::{check_regular, mode};
use crate::{Attributes, Content, Digest, Error, Host, Result, Stat};

impl Host {
    /// Writes into the file at `path`, which keeps its inode, then sets its
    /// attributes. Without content, sets only the attributes. Creates a missing
    /// file as [`Host::create`] does.
    ///
    /// This is not atomic: a concurrent reader sees partial content, and a
    /// failure leaves partial content. During the write, only users whom both
    /// the old and the new attributes allow can open the file. Removes setuid
    /// bits and file capabilities, because they were granted to the old
    /// content.
    ///
    /// # Errors
    ///
    /// Refuses symlinks, everything else that is no regular file, and what
    /// another user may have put there: see [`Error::PlantedFile`].
    pub fn write_in_place(
        &self,
        path: &Path,
        content: Option<Content<'_>>,
        wanted: &Attributes,
    ) -> Result<()> {
        let (parent_directory, name) = self.open_parent(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            match (rustix::fs::openat(&*parent_directory, name, flags, Mode::empty()), &content) {
                (Ok(file), _) => file,
                (Err(Errno::NOENT), Some(_)) => {
                    return self.create(path, content.unwrap_or(Content::Bytes(b"")), wanted);
                }
                (Err(errno), _) => return Err(Error::io("open", path)(errno)),
            };
        let raw = rustix::fs::fstat(&file).map_err(Error::io("inspect", path))?;
        let mut have = Stat::new(&raw);
        let parent = Stat::of(&*parent_directory, path)?;
        check_target(path, &have, raw.st_nlink, &parent, wanted)?;
        if !has_attributes(&have, wanted) {
            // Before anything is written: a file with the new content and the
            // old owner would be neither.
            self.check_changeable(path, &have, wanted)?;
        }
        let (content, mut digest) = self.digested(content, path)?;
        match &content {
            Some(_) => self.record_change(&parent_directory, name, path, |_| None)?,
            None => digest = self.record_attributes(path, Some(&file), &have, *wanted, false)?,
        }
        if let Some(content) = content {
            // By the name of what was checked: the path may lead elsewhere now.
            let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
            let writer = rustix::fs::open(name_of(&file), flags, Mode::empty());
            let mut writer = File::from(writer.map_err(Error::io("open", path))?);
            let is_same_owner = (have.uid, have.gid) == (wanted.uid, wanted.gid);
            let shared = have.mode & wanted.mode & if is_same_owner { 0o777 } else { 0o700 };
            if have.mode != shared {
                rustix::fs::fchmod(&writer, mode(shared))
                    .map_err(Error::io("set the mode of", path))?;
            }
            write(&mut writer, content, &have).map_err(Error::std_io("write", path))?;
            have = Stat::of(&writer, path)?;
        }
        set_attributes_of(&file, path, &have, wanted)?;
        self.complete_record(path, &file, digest)?;
        let mut barrier = self.inner.barrier.hold();
        if have.dev == parent.dev {
            barrier.file_changed(path, have.dev);
        } else {
            barrier.mounted_file_changed(path);
        }
        Ok(())
    }
}

impl Host {
    /// The same content, with its digest if a journal wants to know it.
    fn digested<'a>(
        &self,
        content: Option<Content<'a>>,
        path: &Path,
    ) -> Result<(Option<Content<'a>>, Option<Digest>)> {
        if self.journal().is_none() {
            return Ok((content, None));
        }
        Ok(match content {
            Some(Content::Bytes(bytes)) => (Some(Content::Bytes(bytes)), Some(Digest::of(bytes))),
            Some(Content::Copy(mut file)) => {
                let digest = self.digest(&file, path, u64::MAX)?;
                file.rewind().map_err(Error::std_io("read", path))?;
                (Some(Content::Copy(file)), Some(digest))
            }
            None => (None, None),
        })
    }
}

/// Whether a file has these attributes already.
pub(crate) fn has_attributes(have: &Stat, wanted: &Attributes) -> bool {
    (have.uid, have.gid, have.mode & 0o777) == (wanted.uid, wanted.gid, wanted.mode)
}

/// Refuses what is not a regular file, and files that somebody else may have put
/// in the place of the one that is meant.
pub(crate) fn check_target(
    path: &Path,
    have: &Stat,
    links: impl Into<u64>,
    parent: &Stat,
    wanted: &Attributes,
) -> Result<()> {
    check_regular(path, *have)?;
    let links = links.into();
    let refused = |reason| Err(Error::PlantedFile { path: path.to_owned(), reason });
    if has_other_owner(have, wanted) {
        return refused(format!("it belongs to user {}", have.uid));
    }
    // Its other names are those of the same file elsewhere. Only root can have
    // given one to a file of root in a directory of root.
    if links > 1 && (have.uid != 0 || parent.is_writable_by_others()) {
        return refused(format!("it has {links} hard links"));
    }
    Ok(())
}

fn write(to: &mut File, content: Content<'_>, have: &Stat) -> io::Result<()> {
    match content {
        Content::Bytes(bytes) => {
            to.set_len(0)?;
            to.write_all(bytes)
        }
        Content::Copy(mut from) => {
            let source = Stat::new(&rustix::fs::fstat(&from)?);
            // Emptied, there would be nothing left to copy.
            if (source.dev, source.ino) == (have.dev, have.ino) {
                return Ok(());
            }
            to.set_len(0)?;
            io::copy(&mut from, to).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    fn mine(mode: u32) -> Attributes {
        let (uid, gid) = Host::new().whoami();
        Attributes { uid, gid, mode }
    }

    fn bytes(text: &str) -> Content<'_> {
        Content::Bytes(text.as_bytes())
    }

    #[test]
    fn the_inode_stays_and_content_and_mode_change() {
        let dir = tempfile::tempdir().unwrap();
        let (path, host) = (dir.path().join("f"), Host::new());
        host.write_in_place(&path, Some(bytes("created")), &mine(0o640)).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        for (content, mode) in [("longer than before", 0o600), ("short", 0o644), ("", 0o644)] {
            let source = dir.path().join("source");
            std::fs::write(&source, content).unwrap();
            for copied in [Some(bytes(content)), Some(Content::Copy(File::open(&source).unwrap()))]
            {
                std::fs::write(&path, "something in between").unwrap();
                host.write_in_place(&path, copied, &mine(mode)).unwrap();
                let meta = std::fs::metadata(&path).unwrap();
                assert_eq!((meta.ino(), meta.mode() & 0o7777), (inode, mode));
                assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
            }
        }
        host.write_in_place(&path, None, &mine(0o600)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        host.sync().unwrap();
    }

    #[test]
    fn setuid_bits_go_with_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let (path, host) = (dir.path().join("f"), Host::new());
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
        host.write_in_place(&path, Some(bytes("new")), &mine(0o755)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
    }

    #[test]
    fn a_file_is_not_emptied_to_be_copied_from_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (path, host) = (dir.path().join("f"), Host::new());
        std::fs::write(&path, "text").unwrap();
        let from = File::open(&path).unwrap();
        host.write_in_place(&path, Some(Content::Copy(from)), &mine(0o644)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
    }

    #[test]
    fn only_regular_files_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("target"), "kept").unwrap();
        symlink("target", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        std::fs::create_dir(at("d")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            mode(0o600),
            0,
        )
        .unwrap();
        for (name, found) in [
            ("link", "a symlink"),
            ("dangling", "a symlink"),
            ("d", "a directory"),
            ("fifo", "a socket, FIFO or device"),
        ] {
            let error =
                host.write_in_place(&at(name), Some(bytes("new")), &mine(0o644)).unwrap_err();
            assert!(error.to_string().contains(found), "{name}: {error}");
        }
        assert_eq!(std::fs::read(at("target")).unwrap(), b"kept");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn what_another_user_may_have_planted_is_refused() {
        const OTHER: u32 = 65534;
        if ccm_testkit::lacks_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let at = |name: &str| dir.path().join(name);
        for (name, owner, links, is_shared, wanted, refused) in [
            ("own", 0, 1, false, 0, None),
            ("given", OTHER, 1, false, OTHER, None),
            ("to-give", 0, 1, true, OTHER, None),
            ("foreign", OTHER, 1, false, 0, Some("belongs to user 65534")),
            ("third", OTHER, 1, false, 1, Some("belongs to user 65534")),
            ("linked", 0, 2, false, 0, None),
            ("linked-there", 0, 2, true, 0, Some("has 2 hard links")),
            ("linked-to-give", 0, 2, true, OTHER, Some("has 2 hard links")),
            ("linked-given", OTHER, 3, false, OTHER, Some("has 3 hard links")),
        ] {
            let directory = at(&format!("{name}.d"));
            std::fs::create_dir(&directory).unwrap();
            let path = directory.join("f");
            std::fs::write(&path, "old").unwrap();
            for link in 1..links {
                std::fs::hard_link(&path, at(&format!("{name}.{link}"))).unwrap();
            }
            chown(&path, Some(owner), Some(owner)).unwrap();
            if is_shared {
                chown(&directory, Some(OTHER), Some(OTHER)).unwrap();
            }
            let wanted = Attributes { uid: wanted, gid: wanted, mode: 0o600 };
            let preview = Host::new().preview();
            let predicted =
                preview.predict_in_place(&path, Some(crate::NewContent::Bytes(b"new")), &wanted);
            let written = host.write_in_place(&path, Some(bytes("new")), &wanted);
            let content = std::fs::read(&path).unwrap();
            let meta = std::fs::metadata(&path).unwrap();
            let Some(words) = refused else {
                predicted.unwrap();
                written.unwrap();
                assert_eq!((&*content, meta.uid()), (&b"new"[..], wanted.uid), "{name}");
                continue;
            };
            for error in [predicted.unwrap_err(), written.unwrap_err()] {
                assert!(error.to_string().contains(words), "{name}: {error}");
                assert!(error.hint().is_some());
            }
            assert_eq!((&*content, meta.uid()), (&b"old"[..], owner), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_finished_is_not_begun() {
        if ccm_testkit::runs_as_nobody() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let path = dir.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let foreign = Attributes { gid: 0, ..mine(0o644) };
        let read_only = dir.path().join("r");
        std::fs::write(&read_only, "old").unwrap();
        std::fs::set_permissions(&read_only, std::fs::Permissions::from_mode(0o444)).unwrap();
        for (path, wanted, words) in
            [(&path, foreign, "set the owner of"), (&read_only, mine(0o444), "cannot open")]
        {
            let preview = Host::new().preview();
            let content = crate::NewContent::Bytes(b"new");
            for error in [
                preview.predict_in_place(path, Some(content), &wanted).unwrap_err(),
                host.write_in_place(path, Some(bytes("new")), &wanted).unwrap_err(),
            ] {
                assert!(error.to_string().contains(words), "{error}");
            }
            assert_eq!(std::fs::read(path).unwrap(), b"old");
        }
    }
}
