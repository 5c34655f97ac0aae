//! The directory with the last good copies.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ccm_host::{DirectoryLock, Host, LockError, StateDir};

use super::store::{Store, directory_name};
use super::watcher::Watcher;
use super::{Error, Result, SourceKind};

/// The directory with the last good copies, which one agent at a time uses.
#[derive(Clone, Debug)]
pub struct Cache(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) directory: StateDir,
    pub(super) watcher: Arc<Watcher>,
    /// By the names of their directories.
    stores: Mutex<HashMap<String, Weak<Store>>>,
    _lock: DirectoryLock,
}

impl Cache {
    /// Makes the directory if it is not there, mode 0700, and locks it for as
    /// long as this value, a clone of it, a source or a copy lives.
    ///
    /// # Errors
    ///
    /// Fails if another agent uses it, or others can change it.
    pub fn open(directory: &Path, host: &Host) -> Result<Self> {
        let failed = |source| Error::Cache { path: directory.to_owned(), source };
        let found = host.state_dir(directory, true).map_err(failed)?;
        let not_there = || ccm_host::Error::NotADirectory { path: directory.to_owned() };
        let directory = found.ok_or_else(|| failed(not_there()))?;
        let lock = directory.lock_whole().map_err(|error| match error {
            LockError::Host(source) => Error::Cache { path: directory.path().to_owned(), source },
            LockError::Busy { holder } => {
                Error::CacheInUse { path: directory.path().to_owned(), holder }
            }
            LockError::Cancelled(_) => {
                Error::CacheInUse { path: directory.path().to_owned(), holder: None }
            }
        })?;
        let watcher = Watcher::new(host);
        let stores = Mutex::default();
        Ok(Self(Arc::new(Shared { directory, watcher, stores, _lock: lock })))
    }

    /// Removes the copies of all sources but these. A copy that a source or a run
    /// still uses goes when it is not used any more. What cannot be removed is
    /// logged, and tried again the next time.
    pub fn retain(&self, urls: &[&str]) {
        let wanted: BTreeSet<String> = urls.iter().map(|url| directory_name(url)).collect();
        let names = match self.0.directory.names() {
            Ok(names) => names,
            Err(error) => {
                return tracing::warn!("cannot remove old copies: {}", ccm_engine::chain(&error));
            }
        };
        for name in names {
            let is_copy = name.to_str().filter(|name| {
                name.len() == 16 && name.bytes().all(|digit| digit.is_ascii_hexdigit())
            });
            // What is not ours stays.
            let Some(name) = is_copy.filter(|name| !wanted.contains(*name)) else { continue };
            let stores = self.0.stores();
            if let Some(store) = stores.get(name).and_then(Weak::upgrade) {
                store.remove_when_unused();
                // The last one may be dropped here, and needs the list.
                drop(stores);
                drop(store);
                continue;
            }
            if let Err(error) = self.0.directory.remove_tree(name) {
                tracing::warn!("cannot remove an old copy: {}", ccm_engine::chain(&error));
            }
        }
    }

    /// The place for the copies of a source.
    pub(super) fn store(&self, url: &str, kind: SourceKind) -> Arc<Store> {
        let name = directory_name(url);
        let mut stores = self.0.stores();
        stores.retain(|_, store| store.strong_count() > 0);
        if let Some(store) = stores.get(&name).and_then(Weak::upgrade) {
            return store;
        }
        let store = Arc::new(Store::new(self, &name, url, kind));
        stores.insert(name, Arc::downgrade(&store));
        store
    }
}

impl Shared {
    fn stores(&self) -> std::sync::MutexGuard<'_, HashMap<String, Weak<Store>>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
