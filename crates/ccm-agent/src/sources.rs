//! Where manifests and data come from: each source is watched in the background
//! and has a last good copy.
//!
//! [`Cache`] is the directory that the copies are in, with one thread that knows
//! when to look at which source. A look that fetches something has a thread of
//! its own for as long as it lasts, so a server that hangs delays nothing but its
//! own source. A [`Source`] never blocks who asks for its copy.

mod error;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ccm_host::{Digest, Host, System};
use ccm_nats::Nats;

pub use error::{Error, Result};

/// The directory with the last good copies, which one agent at a time uses.
#[derive(Clone, Debug)]
pub struct Cache(());

impl Cache {
    /// Makes the directory if it is not there, mode 0700, and locks it for as
    /// long as this value, a clone of it or a source lives.
    ///
    /// # Errors
    ///
    /// Fails if another agent uses it, or others can change it.
    pub fn open(directory: &Path, host: &Host) -> Result<Self> {
        let _ = (directory, host);
        Ok(Self(()))
    }

    /// Removes the copies of all sources but these. What cannot be removed is
    /// logged and tried again the next time.
    pub fn retain(&self, urls: &[&str]) {
        let _ = urls;
    }
}

/// What a source is expected to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A manifest: a local file, or an archive with a manifest in it.
    Manifest,
    /// A document with hierarchical data.
    Data,
}

/// Judges a document that parses, before it becomes the last good one: resolves
/// and validates it, for example. The error is the reason for people.
pub type Accept = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// How a source is watched.
#[derive(Clone)]
pub struct SourceSettings {
    /// What it is expected to hold.
    pub kind: SourceKind,
    /// A path, or a URL of any scheme that the [`System`] can fetch.
    pub url: String,
    /// How often a server is asked that does not say whether anything is new.
    pub interval: Duration,
    /// The longest random delay between a notice of a change and the look.
    pub splay: Duration,
    /// Only for [`SourceKind::Data`]; called in a background thread.
    pub accept: Option<Accept>,
}

/// The copy of a source that is applied. As long as this value lives, its files
/// stay where they are.
#[derive(Debug)]
pub struct LastGood {
    /// What was fetched.
    pub content: SourceContent,
    /// The SHA-256 digest of the archive or document; `None` for a local
    /// manifest, which only the run reads.
    pub digest: Option<Digest>,
    /// When it was fetched, in seconds since 1970; now for local files.
    pub fetched: i64,
}

/// What a copy holds.
#[derive(Debug)]
pub enum SourceContent {
    /// The path of the manifest: in a tree of the cache, or the local file.
    Manifest(PathBuf),
    /// The text of the document.
    Document(String),
}

/// Something that happened to a source. Events are told in background threads,
/// one at a time per source; who gets them must not take long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// There is a new last good copy, which [`Source::current`] returns from now on.
    Changed {
        /// Its digest.
        digest: Digest,
    },
    /// The object was deleted: the source is suspended, [`Source::current`]
    /// returns `None`. Also told when the agent starts with a copy of an object
    /// that was deleted before.
    Deleted,
    /// The object is back. [`SourceEvent::Changed`] follows if it is another one.
    Restored,
    /// Something was fetched, good or not.
    Fetched,
    /// A look failed; told for every attempt.
    Failed {
        /// What was tried and what went wrong, without credentials.
        message: String,
    },
    /// The first look that did not fail after some that did.
    Recovered,
}

/// Watches one source in the background and keeps its last good copy. Dropping
/// it ends the watching.
#[derive(Debug)]
pub struct Source(());

impl Source {
    /// Begins to watch. A good copy from an earlier agent is there at once. Files
    /// are not watched: they are read when they are asked for.
    ///
    /// # Errors
    ///
    /// Fails if the URL cannot be a source of this kind, or is watched already.
    pub fn start(
        settings: SourceSettings,
        cache: &Cache,
        system: &System,
        network: Option<&Nats>,
        events: impl Fn(SourceEvent) + Send + Sync + 'static,
    ) -> Result<Self> {
        let _ = (settings, cache, system, network, events);
        Ok(Self(()))
    }

    /// The last good copy; `None` while there is none or the object is deleted.
    pub fn current(&self) -> Option<Arc<LastGood>> {
        None
    }

    /// Whether the object was deleted and is not back yet.
    pub fn is_suspended(&self) -> bool {
        false
    }

    /// Asks for a look as soon as possible. Does not wait for it.
    pub fn look_now(&self) {}

    /// Looks once and waits for it, for `agent --once`.
    ///
    /// # Errors
    ///
    /// Returns why the look failed, or that it took too long. The last good copy,
    /// if there is one, is still there then.
    pub fn fetch_once(&self, limit: Duration) -> Result<Arc<LastGood>> {
        Err(Error::Late { source_name: String::new(), limit })
    }
}
