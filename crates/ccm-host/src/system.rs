//! State that all runs of a process share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::lock::Lock;
use crate::{Cancel, Fetch, Fetchers, Host, Lookup, Publish, pending};

/// The machine as all runs of a process share it. Cheap to clone.
///
/// It remembers nothing of the machine's state: that belongs to a run, and so to
/// the [`Host`] that the run is given.
#[derive(Clone, Debug, Default)]
pub struct System {
    shared: Arc<Shared>,
    fetchers: Fetchers,
    lookup: Option<Arc<dyn Lookup>>,
    publisher: Option<Arc<dyn Publish>>,
    is_offline: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// Tools that only one run may use at a time.
    tools: Lock<HashMap<&'static str, Arc<Mutex<()>>>>,
    queries: Arc<pending::Queries>,
}

impl System {
    /// A handle for one run, which `interrupt` stops. It knows nothing of the
    /// machine yet.
    pub fn begin(&self, cancel: Cancel) -> Host {
        Host::of(self.clone(), cancel)
    }

    /// The same with one more way to fetch URLs, which wins over others that
    /// serve its schemes.
    #[must_use]
    pub fn with_fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetchers.add(fetch);
        self
    }

    /// The same with everything that one network brings: its URLs, its answers to
    /// template functions, and a place for registrations.
    #[must_use]
    pub fn with_network<N: Fetch + Lookup + Publish + 'static>(self, network: &Arc<N>) -> Self {
        let (fetch, lookup) = (Arc::clone(network), Arc::clone(network));
        self.with_fetch(fetch).with_lookup(lookup).with_publisher(Arc::clone(network) as _)
    }

    /// The same with something that answers template functions.
    #[must_use]
    pub fn with_lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.lookup = Some(lookup);
        self
    }

    /// The same with something that publishes registrations.
    #[must_use]
    pub fn with_publisher(mut self, publisher: Arc<dyn Publish>) -> Self {
        self.publisher = Some(publisher);
        self
    }

    /// The same for checks: it knows the same schemes, and connects to nothing.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.is_offline = true;
        self
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.is_offline
    }

    pub(crate) fn lookup(&self) -> Option<&dyn Lookup> {
        self.lookup.as_deref()
    }

    pub(crate) fn publisher(&self) -> Option<&dyn Publish> {
        self.publisher.as_deref()
    }

    pub(crate) fn queries(&self) -> &Arc<pending::Queries> {
        &self.shared.queries
    }

    pub(crate) fn fetchers(&self) -> &Fetchers {
        &self.fetchers
    }

    /// Runs `work` while no other run uses this tool.
    pub(crate) fn exclusively<T>(&self, tool: &'static str, work: impl FnOnce() -> T) -> T {
        let lock = Arc::clone(self.shared.tools.hold().entry(tool).or_default());
        let _alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }
}

impl Host {
    /// Runs `work` while no other run of this process uses this tool.
    pub fn exclusively<T>(&self, tool: &'static str, work: impl FnOnce() -> T) -> T {
        self.inner.system.exclusively(tool, work)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_tool_is_used_by_one_run_at_a_time() {
        let system = System::default();
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let host = system.begin(Cancel::default());
                let (inside, most) = (&inside, &most);
                scope.spawn(move || {
                    for _ in 0..100 {
                        host.exclusively("tool", || {
                            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn handles_are_shared_between_threads() {
        fn is_shared<T: Send + Sync + Clone>() {}
        is_shared::<System>();
        is_shared::<Host>();
    }
}
