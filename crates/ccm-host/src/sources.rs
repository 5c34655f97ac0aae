//! The files that decide what a run does, recorded for a saved plan and
//! replayed when the plan is applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};

use crate::directory::TemporaryDirectory;
use crate::{Attributes, Content, Digest, Error, Host, Result, Stat};

/// Contents up to this size are recorded, all together.
const MAX_RECORDED: u64 = 64 << 20;
/// Directory trees that are rendered or copied have no more files and are not
/// deeper.
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 200;

/// The files and downloads that a run has read.
#[derive(Clone, Debug, Default)]
pub struct RecordedSources {
    /// Files by their absolute path.
    pub files: BTreeMap<PathBuf, RecordedFile>,
    /// Directories of which everything was recorded.
    pub trees: Vec<PathBuf>,
    /// The directories in them.
    pub directories: BTreeSet<PathBuf>,
    /// The symlinks in them, with their texts.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// The sockets, FIFOs and devices in them, which nothing can be made of.
    pub special: BTreeSet<PathBuf>,
    /// Downloads, by the digest of their URL.
    pub fetched: BTreeMap<String, RecordedFetch>,
    size: u64,
}

impl RecordedSources {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.trees.is_empty() && self.fetched.is_empty()
    }
}

/// One file that was read.
#[derive(Clone, Debug)]
pub struct RecordedFile {
    /// The digest of its content.
    pub digest: Digest,
    /// Its content; `None` where all contents together are too large.
    pub content: Option<Vec<u8>>,
    /// Its permissions: what is copied from a tree stays executable.
    pub mode: u32,
}

/// One thing that was fetched.
#[derive(Clone, Debug)]
pub enum RecordedFetch {
    /// A text.
    Text(String),
    /// A tree of files, which are recorded below this path.
    Tree(PathBuf),
}

/// What is read from a saved plan instead of from where it was.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    recorded: Option<RecordedSources>,
    /// Where recorded files are now.
    files: HashMap<PathBuf, PathBuf>,
    trees: HashMap<PathBuf, PathBuf>,
    fetched: HashMap<String, RecordedFetch>,
}

/// Keeps the files of a saved plan for as long as it is applied.
#[derive(Debug)]
pub struct Replay {
    _directory: TemporaryDirectory,
}

/// The digest of a file, whose position stays where it is: whoever opened the
/// file is about to read it.
fn digest_in_place(file: &File) -> std::io::Result<Digest> {
    struct At<'a>(&'a File, u64);
    impl std::io::Read for At<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read_at(into, self.1)?;
            self.1 += count as u64;
            Ok(count)
        }
    }
    let (_, digest) = crate::Digesting::new(At(file, 0)).finish()?;
    Ok(digest)
}

impl Host {
    /// From now on, keeps what is read to know what to do.
    pub fn record_sources(&self) {
        self.inner.sources.hold().recorded = Some(RecordedSources::default());
    }

    /// Returns everything read since [`Host::record_sources`].
    pub fn recorded_sources(&self) -> RecordedSources {
        self.inner.sources.hold().recorded.clone().unwrap_or_default()
    }

    /// Gives back recorded files and fetches from now on, wherever they were.
    /// Files without content are read from their place.
    pub fn replay(&self, recorded: &RecordedSources) -> Result<Replay> {
        let directory = self.temporary_directory("ccm-plan-")?;
        let (uid, gid) = self.whoami();
        let private = Attributes { uid, gid, mode: 0o700 };
        let copy = |path: &Path| {
            // Whatever a plan says, nothing is put outside.
            let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
            let below: PathBuf = path.components().filter(is_name).collect();
            directory.path().join("files").join(below)
        };
        let mut files = HashMap::new();
        for (path, file) in &recorded.files {
            let Some(content) = &file.content else { continue };
            let to = copy(path);
            if let Some(parent) = to.parent() {
                self.create_directory(parent, &private)?;
            }
            let attributes = Attributes { mode: 0o600 | file.mode & 0o111, ..private };
            self.replace_unsynced(&to, Content::Bytes(content), &attributes)?;
            files.insert(path.clone(), to);
        }
        for tree in recorded.trees.iter().chain(&recorded.directories) {
            self.create_directory(&copy(tree), &private)?;
        }
        // Last, so that nothing is written through them.
        for (link, target) in &recorded.links {
            self.replace_with_symlink(&copy(link), target, (uid, gid))?;
        }
        // A tree whose files are too large for the plan, or not files, is read from
        // its place.
        let is_whole = |tree: &&PathBuf| {
            let lacks = |(path, file): (&PathBuf, &RecordedFile)| {
                path.starts_with(tree) && file.content.is_none()
            };
            let is_special = |path: &PathBuf| path.starts_with(tree);
            !recorded.files.iter().any(lacks) && !recorded.special.iter().any(is_special)
        };
        let trees = recorded.trees.iter().filter(is_whole);
        let trees = trees.map(|tree| (tree.clone(), copy(tree))).collect();
        let fetched = recorded.fetched.iter().map(|(url, fetched)| {
            let fetched = match fetched {
                RecordedFetch::Tree(tree) => RecordedFetch::Tree(copy(tree)),
                text @ RecordedFetch::Text(_) => text.clone(),
            };
            (url.clone(), fetched)
        });
        let mut sources = self.inner.sources.hold();
        sources.fetched = fetched.collect();
        sources.files = files;
        sources.trees = trees;
        drop(sources);
        Ok(Replay { _directory: directory })
    }

    /// Where a file of a saved plan is now.
    pub(crate) fn replayed_file(&self, path: &Path) -> Option<PathBuf> {
        self.inner.sources.hold().files.get(path).cloned()
    }

    /// Where a directory of a saved plan is now.
    pub(crate) fn replayed_tree(&self, path: &Path) -> Option<PathBuf> {
        self.inner.sources.hold().trees.get(path).cloned()
    }

    /// Returns the recorded download of a URL in a saved plan.
    pub fn replayed_fetch(&self, url: &str) -> Option<RecordedFetch> {
        let sources = self.inner.sources.hold();
        if sources.fetched.is_empty() {
            return None;
        }
        sources.fetched.get(&Digest::of(url.as_bytes()).to_string()).cloned()
    }

    /// Records what was fetched from a URL; a tree with everything in it.
    pub fn record_fetch(&self, url: &str, fetched: RecordedFetch) {
        if self.inner.sources.hold().recorded.is_none() {
            return;
        }
        if let RecordedFetch::Tree(tree) = &fetched {
            self.record_tree(tree);
        }
        if let Some(recorded) = &mut self.inner.sources.hold().recorded {
            recorded.fetched.insert(Digest::of(url.as_bytes()).to_string(), fetched);
        }
    }

    /// Records a text as that of a file, where it was not read from there.
    pub fn record_text(&self, path: &Path, text: &str) {
        if let Some(recorded) = &mut self.inner.sources.hold().recorded {
            let (digest, content) = (Digest::of(text.as_bytes()), text.as_bytes().to_vec());
            recorded.size += content.len() as u64;
            let file = RecordedFile { digest, content: Some(content), mode: 0o644 };
            recorded.files.insert(path.to_owned(), file);
        }
    }

    /// Records a file that was opened, from its beginning to its end.
    pub(crate) fn record_file(&self, path: &Path, file: &File, stat: Stat) -> Result<()> {
        let mut sources = self.inner.sources.hold();
        let Some(recorded) = &mut sources.recorded else { return Ok(()) };
        if recorded.files.contains_key(path) {
            return Ok(());
        }
        let failed = || Error::std_io("read", path);
        let size = stat.size;
        let content = if recorded.size + size > MAX_RECORDED {
            None
        } else {
            let mut content = vec![0; size as usize];
            file.read_exact_at(&mut content, 0).map_err(failed())?;
            recorded.size += size;
            Some(content)
        };
        drop(sources);
        let digest = match &content {
            Some(content) => Digest::of(content),
            None => digest_in_place(file).map_err(failed())?,
        };
        if let Some(recorded) = &mut self.inner.sources.hold().recorded {
            let mode = stat.mode & 0o777;
            recorded.files.insert(path.to_owned(), RecordedFile { digest, content, mode });
        }
        Ok(())
    }

    /// Records every file below a directory. What cannot be read is left out: if
    /// it matters, whatever reads it fails.
    pub(crate) fn record_tree(&self, directory: &Path) {
        {
            let mut sources = self.inner.sources.hold();
            let Some(recorded) = &mut sources.recorded else { return };
            if recorded.trees.iter().any(|tree| tree == directory) {
                return;
            }
            recorded.trees.push(directory.to_owned());
        }
        let mut pending = vec![(directory.to_owned(), 0)];
        let mut count = 0;
        while let Some((folder, depth)) = pending.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && depth < MAX_DEPTH {
                    self.record_entry(|recorded| {
                        recorded.directories.insert(path.clone());
                    });
                    pending.push((path, depth + 1));
                } else if kind.is_symlink() {
                    let target = std::fs::read_link(&path).unwrap_or_default();
                    self.record_entry(|recorded| drop(recorded.links.insert(path, target)));
                } else if !kind.is_file() {
                    self.record_entry(|recorded| {
                        recorded.special.insert(path);
                    });
                } else if count < MAX_FILES {
                    count += 1;
                    if let Ok((file, stat)) = self.open(&path) {
                        let _ = self.record_file(&path, &file, stat);
                    }
                }
            }
        }
    }

    /// Records something in a tree that is no regular file.
    fn record_entry(&self, record: impl FnOnce(&mut RecordedSources)) {
        if let Some(recorded) = &mut self.inner.sources.hold().recorded {
            record(recorded);
        }
    }
}
