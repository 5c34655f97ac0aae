//! Writes rendered files to a private directory and runs their commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ccm_engine::{Context, Detail, Error, Result};
use ccm_host::{Attributes, Content, Host};

use super::post::{self, Post};
use super::render::{Output, RenderedFile};

/// The largest file that a command may leave.
const MAX_FILE: u64 = 256 << 20;

/// What the target should hold.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Each before what is in it.
    pub(super) directories: BTreeSet<PathBuf>,
    pub(super) files: BTreeMap<PathBuf, RenderedFile>,
    /// Files whose content is not known, as no command was run on them.
    pub(super) uncompared: BTreeSet<PathBuf>,
}

impl Stage {
    /// Puts rendered files together. Commands run on files in a private
    /// directory, so the target never sees what they do on the way.
    pub(super) fn new(
        host: &Host,
        outputs: Vec<Output>,
        post: &[Post],
        cx: &mut Context<'_>,
    ) -> Result<Self> {
        if post.is_empty() {
            return Ok(outputs.into_iter().collect());
        }
        // Someone who only looks runs no commands.
        if cx.detail == Detail::Inspect || cx.skips_post {
            let mut stage: Self = outputs.into_iter().collect();
            for place in stage.files.keys() {
                if post::is_for(post, place)? {
                    stage.uncompared.insert(place.clone());
                }
            }
            return Ok(stage);
        }
        let directory = host.temporary_directory("ccm-scaffold-")?;
        let (uid, gid) = host.whoami();
        let mut made = Vec::new();
        for output in outputs {
            match output {
                Output::Directory(place) => {
                    directory.create_directory(&place)?;
                    made.push(place);
                }
                Output::File(place, file) => {
                    let path = directory.path().join(&place);
                    let attributes = Attributes { uid, gid, mode: file.mode };
                    host.replace_unsynced(&path, Content::Bytes(&file.bytes), &attributes)?;
                    post::run(host, post, &path, &place, cx)?;
                }
            }
        }
        let stage = Self::read(host, directory.path())?;
        // A directory that is there but could not be listed would be missing
        // from the target, and nobody would know.
        for place in made.iter().filter(|place| !stage.directories.contains(*place)) {
            let path = directory.path().join(place);
            if host.lstat(&path)?.is_some_and(|stat| stat.kind == ccm_host::FileKind::Directory) {
                let reason = format!("cannot list the rendered directory {}", place.display());
                return Err(Error::refused(reason));
            }
        }
        Ok(stage)
    }

    /// What commands have left.
    fn read(host: &Host, directory: &Path) -> Result<Self> {
        let tree = host.open_tree(directory)?.ok_or_else(|| {
            Error::refused("a post command has removed the directory of rendered files")
        })?;
        let entries = tree.entries()?;
        let mut stage =
            Self { directories: entries.directories.into_iter().collect(), ..Self::default() };
        for place in entries.files {
            let path = directory.join(&place);
            if !host.lstat(&path)?.is_some_and(|stat| stat.kind == ccm_host::FileKind::File) {
                return Err(Error::refused(format!(
                    "a post command has made {}, which is not a regular file",
                    place.display()
                )));
            }
            let (bytes, stat) = host.read_bytes(&path, MAX_FILE)?;
            stage
                .files
                .insert(place, RenderedFile { bytes: bytes.into(), mode: stat.mode & 0o777 });
        }
        Ok(stage)
    }
}

impl FromIterator<Output> for Stage {
    fn from_iter<T: IntoIterator<Item = Output>>(outputs: T) -> Self {
        let mut stage = Self::default();
        for output in outputs {
            match output {
                Output::Directory(place) => drop(stage.directories.insert(place)),
                Output::File(place, file) => drop(stage.files.insert(place, file)),
            }
        }
        stage
    }
}
