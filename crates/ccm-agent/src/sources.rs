//! Sources of manifests and data. The agent watches each source in the
//! background and keeps its last good copy.
//!
//! [`Cache`] is the directory of the copies, with one thread that schedules the
//! checks. Each download has a separate thread, so a server that hangs delays
//! only its own source. Reading the copy of a [`Source`] never blocks.

mod cache;
mod error;
mod local;
mod poll;
mod store;
mod timer;
mod watcher;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_host::{Cancel, CancelReason, Digest, Host, System, local_path};
use ccm_nats::{Nats, Notice, Notices};
use serde::{Deserialize, Serialize};

pub use cache::Cache;
pub use error::{Error, Result};

use local::Local;
use poll::{Remote, State};
use store::Store;
use timer::{Pace, Timer};
use watcher::{Unseen, Watcher};

/// The kind of content that a source must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A manifest: a local file, or an archive with a manifest in it.
    Manifest,
    /// A document with hierarchical data.
    Data,
}

/// Checks a parsed document before it becomes the last good one, for example by
/// resolving and validating it. The error is a message for the log.
pub type Accept = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// How a source is watched.
#[derive(Clone)]
pub struct SourceSettings {
    /// The kind of content that it must have.
    pub kind: SourceKind,
    /// A path, or a URL of any scheme that the [`System`] can fetch.
    pub url: String,
    /// How often a server is asked that does not say whether anything is new.
    pub interval: Duration,
    /// The longest random delay between a notice of a change and the check.
    pub splay: Duration,
    /// Only for [`SourceKind::Data`]; called in a background thread.
    pub accept: Option<Accept>,
}

/// The copy of a source that is applied. As long as this value lives, its files
/// stay where they are.
#[derive(Debug)]
pub struct LastGood {
    /// The downloaded content.
    pub content: SourceContent,
    /// The SHA-256 digest of the archive, the document or the local manifest.
    pub digest: Option<Digest>,
    /// When it was fetched, in seconds since 1970; now for local files.
    pub fetched: i64,
    /// The digest of the extracted files and their names.
    files: Option<Digest>,
    /// Keeps the files, and the cache locked.
    _store: Option<Arc<Store>>,
}

/// The content of a copy.
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
    /// The files of the copy are not those that were fetched: [`Source::current`]
    /// returns `None` until they were fetched again.
    Withdrawn,
    /// Something was fetched, good or not.
    Fetched,
    /// A check failed; told for every attempt.
    Failed {
        /// The failed action and its reason, without credentials.
        message: String,
        /// Something new was fetched, and it is no manifest.
        is_invalid: bool,
    },
    /// The first check that did not fail after some that did.
    Recovered,
}

/// Watches one source in the background and keeps its last good copy. Dropping
/// it ends the watching.
pub struct Source(Inner);

enum Inner {
    Local(Local),
    Remote {
        remote: Arc<Remote>,
        watcher: Arc<Watcher>,
        id: u64,
        /// Dropped first, so that no more notifications arrive.
        notices: Option<Notices>,
    },
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Source").field(&self.name()).finish()
    }
}

impl Source {
    /// Begins to watch. A good copy from an earlier agent is there at once. Local
    /// files are not watched: they are read when they are asked for.
    ///
    /// `system` fetches the URL. `network` tells of changes over the connection
    /// that [`Nats::keep_connected`] keeps; without it the server is asked once
    /// per interval.
    ///
    /// # Errors
    ///
    /// Fails if the URL cannot be fetched, or is watched already.
    pub fn start(
        settings: SourceSettings,
        cache: &Cache,
        system: &System,
        network: Option<&Nats>,
        events: impl Fn(SourceEvent) + Send + Sync + 'static,
    ) -> Result<Self> {
        let SourceSettings { kind, url, interval, splay, accept } = settings;
        let events = Box::new(events);
        if let Some(path) = local_path(&url) {
            let store = cache.store(&url, SourceKind::Data);
            let local = Local::new(kind, path, accept, system.clone(), store, events);
            return Ok(Self(Inner::Local(local)));
        }
        let cancel = Cancel::new().map_err(|error| Error::Start { reason: error.to_string() })?;
        let host = system.begin(cancel.clone());
        host.fetchers().check(&url)?;
        let store = cache.store(&url, kind);
        if !store.watch() {
            return Err(Error::Twice { source_name: store.shown().to_owned() });
        }
        let network = network.filter(|_| Nats::serves(&url));
        let copy = store.load(&host);
        let is_suspended = copy.as_ref().is_some_and(|(record, _)| record.deleted);
        let checked = host.since_boot();
        let last_valid = copy.as_ref().and_then(|(record, _)| store.load_valid(&host, record));
        let state = State { copy, last_valid, is_suspended, is_failing: false, checked };
        let state = Mutex::new(state);
        let system = system.clone();
        let remote = Arc::new(Remote { kind, url, accept, system, cancel, store, events, state });
        if is_suspended {
            (remote.events)(SourceEvent::Deleted);
        }
        let watcher = Arc::clone(&cache.0.watcher);
        let pace = if network.is_some() { Pace::Notified } else { Pace::Polled };
        let timer = Timer::new(pace, interval, splay, watcher.now());
        let id = watcher.add(timer, Arc::clone(&remote) as Arc<dyn watcher::Work>);
        let id = id.map_err(|error| {
            remote.store.is_watched.store(false, Ordering::SeqCst);
            Error::Start { reason: error.to_string() }
        })?;
        let notices = network.map(|nats| listen(nats, &remote, &watcher, id)).transpose();
        // From here on dropping the source undoes everything.
        let mut source = Self(Inner::Remote { remote, watcher, id, notices: None });
        if let Inner::Remote { notices: place, .. } = &mut source.0 {
            *place = notices?;
        }
        Ok(source)
    }

    /// The source without credentials.
    pub fn name(&self) -> String {
        match &self.0 {
            Inner::Local(local) => local.path().display().to_string(),
            Inner::Remote { remote, .. } => remote.store.shown().to_owned(),
        }
    }

    /// The last good copy; `None` while there is none or the object is deleted.
    /// A local file is read, or found, now.
    pub fn current(&self) -> Option<Arc<LastGood>> {
        match &self.0 {
            Inner::Local(local) => local.current(),
            Inner::Remote { remote, .. } => {
                let state = remote.state();
                let copy = state.copy.as_ref().filter(|_| !state.is_suspended);
                copy.map(|(_, copy)| Arc::clone(copy))
            }
        }
    }

    /// The last manifest that [`Source::confirm`] was told of, if it is another
    /// one than this. Its files are compared with what was fetched.
    pub fn last_valid(&self, newest: &LastGood, host: &Host) -> Option<Arc<LastGood>> {
        let last = match &self.0 {
            Inner::Local(local) => local.last_valid(host),
            Inner::Remote { remote, .. } => remote.last_valid(host),
        };
        last.filter(|last| last.digest != newest.digest)
    }

    /// Takes note that a manifest was valid when a run applied it. The agent
    /// keeps it until it is told of another one.
    pub fn confirm(&self, manifest: &Arc<LastGood>, host: &Host) {
        let kept = match &self.0 {
            Inner::Local(local) => local.confirm(manifest, host),
            Inner::Remote { remote, .. } => remote.confirm(manifest, host),
        };
        if let Err(reason) = kept {
            tracing::warn!(source = self.name(), "cannot keep the last valid manifest: {reason}");
        }
    }

    /// Whether the object was deleted and is not back yet.
    pub fn is_suspended(&self) -> bool {
        match &self.0 {
            Inner::Local(_) => false,
            Inner::Remote { remote, .. } => remote.state().is_suspended,
        }
    }

    /// Asks for a check as soon as possible. Does not wait for it.
    pub fn check_now(&self) {
        if let Inner::Remote { watcher, id, .. } = &self.0 {
            watcher.order(*id);
        }
    }

    /// Looks once and waits for it, for `agent --once`.
    ///
    /// # Errors
    ///
    /// Returns why the check failed, or that it took too long. The last good copy,
    /// if there is one, is still there then.
    pub fn fetch_once(&self, limit: Duration) -> Result<Arc<LastGood>> {
        let (watcher, id) = match &self.0 {
            Inner::Local(local) => return local.read(),
            Inner::Remote { watcher, id, .. } => (watcher, *id),
        };
        watcher.check_once(id, limit).map_err(|unseen| match unseen {
            Unseen::Failed(message) => Error::Look { message },
            Unseen::Late => Error::Late { source_name: self.name(), limit },
        })?;
        let gone = || Error::Look { message: format!("there is no copy of {}", self.name()) };
        self.current().ok_or_else(gone)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Self::Remote { remote, watcher, id, notices } = self {
            *notices = None;
            remote.cancel.cancel(CancelReason::Requested);
            watcher.remove(*id);
            remote.store.is_watched.store(false, Ordering::SeqCst);
        }
    }
}

/// Listens for changes.
fn listen(nats: &Nats, remote: &Remote, watcher: &Arc<Watcher>, id: u64) -> Result<Notices> {
    let watcher = Arc::downgrade(watcher);
    let name = remote.store.shown().to_owned();
    let is_refused = Mutex::new(false);
    let notices = nats.notices(&remote.url, move |notice| {
        let mut is_refused = is_refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Notice::Refused(error) = &notice {
            if !std::mem::replace(&mut *is_refused, true) {
                tracing::error!(source = name, "cannot subscribe to changes, so ccm finds them only at its regular checks: {error}");
            }
            return;
        }
        if matches!(notice, Notice::Changed) {
            *is_refused = false;
        }
        if let Some(watcher) = watcher.upgrade() {
            watcher.notice(id);
        }
    });
    notices.map_err(|reason| Error::Look { message: reason })
}
