//! `file`

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ccm_host::{Error, Inspected, NodeKind, PendingQuery};

use govalue::{Str, Value};
use md5::Md5;
use sha2::{Digest, Sha256, Sha512};

use super::{Found, Machine, Probe, bytes, chain, number, path, unknown, value};
use crate::compile::Entry;

/// How long another check may be asking about the same path.
const PATIENCE: Duration = Duration::from_millis(100);
/// Larger files are read line by line only.
const LARGEST: u64 = 64 << 20;

pub(super) struct File<'a> {
    machine: &'a Machine,
    path: Result<PathBuf, String>,
    /// Kept while the file system may make us wait, so that no second thread
    /// waits for the same path.
    query: Option<PendingQuery>,
    seen: Option<Result<Option<Inspected>, String>>,
}

impl<'a> File<'a> {
    pub(super) fn new(entry: &Entry, machine: &'a Machine) -> Self {
        Self { machine, path: expand(&entry.name, machine), query: None, seen: None }
    }

    fn inspect(&mut self, path: &Path) -> Result<Option<Inspected>, String> {
        if let Some(seen) = &self.seen {
            return seen.clone();
        }
        let host = &self.machine.host;
        self.query = host.query_until("goss", path, Instant::now() + PATIENCE);
        let seen = match self.query {
            Some(_) => host.inspect(path).map_err(|error| chain(&error)),
            None => Err(format!("{} has not answered an earlier check yet", path.display())),
        };
        self.seen = Some(seen.clone());
        seen
    }

    fn contents(&self, path: &Path) -> Result<Found, String> {
        match self.machine.host.read_bytes(path, LARGEST) {
            Ok((content, stat)) if stat.mode & 0o004 == 0 => {
                Ok(Found::Hidden(Value::String(Str::from_bytes(&content))))
            }
            Ok((content, _)) => bytes(&content),
            Err(Error::TooLarge { .. }) => {
                Ok(Found::LargeFile(self.machine.host.clone(), path.to_owned()))
            }
            Err(error) => Err(chain(&error)),
        }
    }

    /// The checksum of a regular file, symlinks followed, in hexadecimal.
    fn checksum<H: Digest>(&self, path: &Path) -> Result<Found, String> {
        let (mut file, _) = self.machine.host.open(path).map_err(|error| chain(&error))?;
        let mut hasher = H::new();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => hasher.update(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
            }
        }
        value(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

impl Probe for File<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let file = self.path.clone()?;
        let seen = self.inspect(&file)?;
        if attribute == "exists" {
            return value(seen.is_some());
        }
        let seen = seen.ok_or_else(|| format!("{} does not exist", file.display()))?;
        match attribute {
            "mode" => value(format!("{:04o}", seen.mode)),
            "uid" => number(seen.uid),
            "gid" => number(seen.gid),
            "owner" => Ok(Found::Value(self.machine.user_name(seen.uid))),
            "group" => Ok(Found::Value(self.machine.group_name(seen.gid))),
            "size" => number(seen.size),
            "filetype" => value(match seen.kind {
                NodeKind::File => "file",
                NodeKind::Directory => "directory",
                NodeKind::Symlink => "symlink",
                NodeKind::Socket => "socket",
                NodeKind::Pipe => "pipe",
                NodeKind::CharacterDevice => "character-device",
                NodeKind::BlockDevice => "block-device",
            }),
            "linked-to" => {
                let target = self.machine.host.read_link(&file).map_err(|error| chain(&error))?;
                path(&target)
            }
            "contents" => self.contents(&file),
            "md5" => self.checksum::<Md5>(&file),
            "sha256" => self.checksum::<Sha256>(&file),
            "sha512" => self.checksum::<Sha512>(&file),
            other => unknown(other),
        }
    }
}

/// A path with `~` or `~user` at its beginning replaced.
fn expand(name: &str, machine: &Machine) -> Result<PathBuf, String> {
    let Some(rest) = name.strip_prefix('~') else { return Ok(name.into()) };
    let (user, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let home = if user.is_empty() {
        machine.host.home().ok_or("the user running ccm has no home directory")?
    } else {
        let account = machine.host.account(user).map_err(|error| chain(&error))?;
        account.ok_or_else(|| format!("there is no user {user}"))?.home
    };
    Ok(home.join(rest.trim_start_matches('/')))
}
