//! Temporary files that do not have their final name yet, which other users
//! cannot change.

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::atomic::Temporary;
use crate::{Attributes, Error, Host, Image, Result, Stat};

/// A file that is complete but does not have its name yet. Until it has, it
/// belongs to the caller alone; dropped, it is gone.
#[derive(Debug)]
pub struct Incoming {
    host: Host,
    temporary: Temporary<Arc<OwnedFd>>,
    created: Stat,
    path: PathBuf,
    size: u64,
}

impl Incoming {
    /// The file, at its beginning, and its size.
    pub fn file(&self) -> Result<(File, u64)> {
        let rewound = self.temporary.file.try_clone().and_then(|mut file| {
            file.rewind()?;
            Ok(file)
        });
        Ok((rewound.map_err(Error::std_io("read", &self.path))?, self.size))
    }

    /// Gives it these attributes and its name, in place of what has it.
    pub fn place(self, wanted: &Attributes) -> Result<()> {
        let Self { host, temporary, created, path, size } = self;
        let name = Path::new(path.file_name().unwrap_or_default());
        if host.journal().is_some() {
            let failed = || Error::std_io("read", &path);
            let mut file = temporary.file.try_clone().map_err(failed())?;
            file.rewind().map_err(failed())?;
            let digest = host.digest(&file, &path, size)?;
            let after = Image::file(*wanted, size, Some(digest));
            host.record_change(temporary.directory(), name, &path, |_| Some(after))?;
        }
        temporary.take_the_name(name, &path, created, wanted)?;
        host.inner.barrier.hold().file_changed(&path, created.dev);
        Ok(())
    }
}

impl Host {
    /// Makes a file beside a path, to take its name later. `write` says how many
    /// bytes it wrote.
    pub(crate) fn incoming(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> Result<u64>,
    ) -> Result<Incoming> {
        let (parent, _) = self.open_parent(path)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        self.sweep(&parent, directory);
        let (mut temporary, created) = Temporary::create(self, parent, directory)?;
        let size = write(&mut temporary.file)?;
        Ok(Incoming { host: self.clone(), temporary, created, path: path.to_owned(), size })
    }

    /// Opens a regular file to be read more than once, with its size. What
    /// other users can write is copied first: what they change then is not what
    /// is read.
    pub fn open_unchanging(&self, path: &Path) -> Result<(File, u64)> {
        let (mut file, stat) = self.open(path)?;
        let is_ours = stat.uid == 0 || stat.uid == self.whoami().0;
        if is_ours && stat.mode & 0o022 == 0 {
            return Ok((file, stat.size));
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        let mut copy = self.unnamed_file(directory)?;
        let copied = io::copy(&mut file, &mut copy).and_then(|size| {
            copy.rewind()?;
            Ok(size)
        });
        let size = copied.map_err(Error::std_io("copy", path))?;
        Ok((copy, size))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn it_has_its_name_and_owner_only_when_it_is_placed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let host = Host::new();
        let (uid, gid) = host.whoami();
        let wanted = Attributes { uid, gid, mode: 0o640 };
        let incoming = || {
            host.incoming(&path, |file| {
                file.write_all(b"new").unwrap();
                Ok(3)
            })
        };
        drop(incoming().unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let placed = incoming().unwrap();
        let mut text = String::new();
        assert_eq!(placed.file().unwrap().1, 3);
        placed.file().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), std::fs::read(&path).unwrap().as_slice()), ("new", &b"old"[..]));
        placed.place(&wanted).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_can_write_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (mode, is_copied) in [(0o644, false), (0o666, true), (0o620, true)] {
            std::fs::write(&path, "one").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let (mut file, size) = Host::new().open_unchanging(&path).unwrap();
            std::fs::write(&path, "two").unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            let wanted = if is_copied { "one" } else { "two" };
            assert_eq!((text.as_str(), size), (wanted, 3), "{mode:o}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
