//! The file `~/.ssh/authorized_keys`, reached by open directories only: its user
//! can swap whatever is in the home directory at any moment.

use std::path::Path;

use ccm_engine::{Error, Result};
use ccm_host::{Attributes, Content, FileKind, Host, NewContent, Stat, Tree, TreeEntry};

use super::keys::{self, KeyLine, Merged};

const DIRECTORY: &str = ".ssh";
const FILE: &str = "authorized_keys";
const MAX_FILE: u64 = 16 << 20;
/// Permissions of what ccm makes: sshd wants no others to write.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Whoever else may write decides who logs in.
const NOT_OTHERS: u32 = 0o755;

/// Whose key file it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) home: &'a Path,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The open directory of the key file, and what is in the file.
struct Opened {
    ssh: Tree,
    /// The content of the file and its attributes, if there is one.
    file: Option<(Vec<u8>, Stat)>,
}

fn refused(path: &Path, what: &str) -> Error {
    Error::Refused {
        reason: format!("refusing to use {}: {what}", path.display()),
        hint: Some("remove it, or let the user own it".to_owned()),
    }
}

impl Owner<'_> {
    fn is_owner(self, stat: &Stat) -> bool {
        stat.uid == self.uid || stat.uid == 0
    }

    /// Fails if somebody else could change what is in a directory.
    fn check_directory(self, tree: &Tree) -> Result<()> {
        let stat = tree.stat()?;
        if self.is_owner(&stat) {
            return Ok(());
        }
        Err(refused(tree.path(), &format!("it belongs to the ID {}", stat.uid)))
    }

    fn open_home(self, host: &Host) -> Result<Option<Tree>> {
        let Some(home) = host.tree_on_disk(self.home)? else { return Ok(None) };
        let home = home.without_symlinks();
        self.check_directory(&home)?;
        Ok(Some(home))
    }

    /// Opens `.ssh`; `None` if there is none.
    fn open_ssh(self, home: &Tree) -> Result<Option<Tree>> {
        let place = Path::new(DIRECTORY);
        let path = home.path().join(place);
        match home.lstat(place)? {
            None => return Ok(None),
            Some(stat) if stat.kind == FileKind::Symlink => {
                return Err(refused(&path, "it is a symlink"));
            }
            Some(stat) if stat.kind != FileKind::Directory => {
                return Err(refused(&path, "it is not a directory"));
            }
            Some(_) => {}
        }
        let Some(ssh) = home.below(place)? else { return Ok(None) };
        self.check_directory(&ssh)?;
        Ok(Some(ssh))
    }

    fn open_file(self, ssh: Tree) -> Result<Opened> {
        let place = Path::new(FILE);
        let path = ssh.path().join(place);
        let file = match ssh.open(place)? {
            TreeEntry::Nothing => None,
            TreeEntry::Astray => return Err(refused(&path, "it is a symlink")),
            TreeEntry::Other(_) => return Err(refused(&path, "it is not a regular file")),
            TreeEntry::File(_, stat) if !self.is_owner(&stat) => {
                return Err(refused(&path, &format!("it belongs to the ID {}", stat.uid)));
            }
            TreeEntry::File(file, stat) => {
                // Another name may be that of a file that the user may not read.
                if ssh.has_other_names(&file) {
                    return Err(refused(&path, "it has several names (hard links)"));
                }
                Some((ssh.read_opened(place, file, stat, MAX_FILE)?, stat))
            }
        };
        Ok(Opened { ssh, file })
    }

    /// What is in the key file; empty if there is none.
    pub(super) fn read(self, host: &Host) -> Result<Vec<u8>> {
        let Some(home) = self.open_home(host)? else { return Ok(Vec::new()) };
        let Some(ssh) = self.open_ssh(&home)? else { return Ok(Vec::new()) };
        Ok(self.open_file(ssh)?.file.map(|(content, _)| content).unwrap_or_default())
    }

    /// Puts keys into the key file, as it is now.
    pub(super) fn write(self, host: &Host, wanted: &[KeyLine], exact: bool) -> Result<()> {
        let Some(home) = self.open_home(host)? else {
            return Err(Error::refused(format!("{} does not exist", self.home.display())));
        };
        let ssh = match self.open_ssh(&home)? {
            Some(ssh) => ssh,
            None => {
                let attributes = self.attributes(DIRECTORY_MODE);
                home.create_directory(Path::new(DIRECTORY), &attributes)?;
                let made = self.open_ssh(&home)?;
                made.ok_or_else(|| refused(&self.home.join(DIRECTORY), "it is gone again"))?
            }
        };
        let Opened { ssh, file } = self.open_file(ssh)?;
        let (content, stat) = file.map_or((Vec::new(), None), |(text, stat)| (text, Some(stat)));
        let merged = keys::merge(&content, wanted, exact);
        if merged.is_stable() {
            return Ok(());
        }
        let attributes = self.file_attributes(stat);
        ssh.replace(Path::new(FILE), Content::Bytes(&merged.content), &attributes)?;
        Ok(())
    }

    fn attributes(self, mode: u32) -> Attributes {
        Attributes { uid: self.uid, gid: self.gid, mode }
    }

    /// A file that is there keeps its owner, so that nobody may read more than
    /// before.
    fn file_attributes(self, stat: Option<Stat>) -> Attributes {
        stat.map_or_else(
            || self.attributes(FILE_MODE),
            |stat| Attributes { uid: stat.uid, gid: stat.gid, mode: stat.mode & NOT_OTHERS },
        )
    }

    /// Records what [`Owner::write`] would leave behind.
    pub(super) fn predict(self, host: &Host, merged: &Merged) -> Result<()> {
        let directory = self.home.join(DIRECTORY);
        if host.lstat(&directory)?.is_none() {
            host.predict_directory(&directory, &self.attributes(DIRECTORY_MODE))?;
        }
        let file = directory.join(FILE);
        let attributes = self.file_attributes(host.lstat(&file)?);
        host.predict_file(&file, NewContent::Bytes(&merged.content), &attributes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "the test sets its stage"
    )]

    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::super::keys::parse;
    use super::super::keys::tests::{ANN, BOB};
    use super::*;

    fn owner(home: &Path) -> Owner<'_> {
        let (uid, gid) = Host::new().whoami();
        Owner { home, uid, gid }
    }

    fn write(home: &Path, exact: bool) -> Result<()> {
        owner(home).write(&Host::new(), &[parse(ANN).unwrap()], exact)
    }

    #[test]
    fn directory_and_file_are_made_for_the_user_alone() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), false).unwrap();
        let mode = |name: &str| std::fs::metadata(home.path().join(name)).unwrap().mode() & 0o7777;
        assert_eq!((mode(".ssh"), mode(".ssh/authorized_keys")), (0o700, 0o600));
        let content = owner(home.path()).read(&Host::new()).unwrap();
        assert_eq!(content, format!("{ANN}\n").as_bytes());
    }

    #[test]
    fn a_file_that_is_there_keeps_what_others_wrote_and_its_mode() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".ssh/authorized_keys");
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(&file, format!("# mine\n{BOB}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o664)).unwrap();
        write(home.path(), false).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("# mine\n{BOB}\n{ANN}\n"));
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
        write(home.path(), true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("# mine\n{ANN}\n"));
    }

    #[test]
    fn what_a_user_can_put_there_is_refused() {
        type Stage = fn(&Path, &Path);
        let stages: [(&str, Stage); 7] = [
            ("it is a symlink", |home, out| symlink(out, home.join(".ssh")).unwrap()),
            ("it is not a directory", |home, _| std::fs::write(home.join(".ssh"), "").unwrap()),
            ("it is a symlink", |home, out| {
                std::fs::create_dir(home.join(".ssh")).unwrap();
                symlink(out.join("secret"), home.join(".ssh/authorized_keys")).unwrap();
            }),
            ("it is a symlink", |home, _| {
                std::fs::create_dir(home.join(".ssh")).unwrap();
                symlink("nothing", home.join(".ssh/authorized_keys")).unwrap();
            }),
            ("it is not a regular file", |home, _| {
                std::fs::create_dir(home.join(".ssh")).unwrap();
                let fifo = home.join(".ssh/authorized_keys");
                assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
            }),
            ("it is not a regular file", |home, _| {
                std::fs::create_dir_all(home.join(".ssh/authorized_keys")).unwrap();
            }),
            ("it has several names", |home, out| {
                std::fs::create_dir(home.join(".ssh")).unwrap();
                let file = home.join(".ssh/authorized_keys");
                std::fs::hard_link(out.join("secret"), file).unwrap();
            }),
        ];
        for (words, stage) in stages {
            let dir = tempfile::tempdir().unwrap();
            let (home, out) = (dir.path().join("home"), dir.path().join("out"));
            std::fs::create_dir(&home).unwrap();
            std::fs::create_dir(&out).unwrap();
            std::fs::write(out.join("secret"), "secret\n").unwrap();
            stage(&home, &out);
            for failed in [write(&home, true), owner(&home).read(&Host::new()).map(drop)] {
                let error = failed.unwrap_err().to_string();
                assert!(error.contains(words), "{words}: {error}");
            }
            assert_eq!(std::fs::read(out.join("secret")).unwrap(), b"secret\n");
            assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1, "{words}");
        }
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !Host::new().is_root() {
            ccm_testkit::not_run("needs root");
            return;
        }
        let stranger = |path: &Path| std::os::unix::fs::chown(path, Some(4_000_001), None).unwrap();
        for place in ["", ".ssh", ".ssh/authorized_keys"] {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir(home.path().join(".ssh")).unwrap();
            std::fs::write(home.path().join(".ssh/authorized_keys"), "").unwrap();
            stranger(&home.path().join(place));
            let error = write(home.path(), false).unwrap_err().to_string();
            assert!(error.contains("belongs to the ID 4000001"), "{place}: {error}");
        }
    }
}
