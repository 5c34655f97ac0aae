//! Cached facts of the agent.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ccm_host::{Cancel, System};

use crate::Metrics;
use crate::run::FactLayers;
use crate::schedule::Moment;

/// An apply gathers facts when those at hand are older.
pub(super) const FRESH: Duration = Duration::from_mins(2);
/// Gathering ends within two seconds by itself; more is a failure.
const LIMIT: Duration = Duration::from_secs(30);

/// The facts that were gathered last, shared between threads.
pub(super) struct FactStore {
    system: System,
    metrics: Arc<Metrics>,
    last: Mutex<Option<(Moment, Arc<FactLayers>)>>,
}

impl FactStore {
    pub(super) fn new(system: System, metrics: Arc<Metrics>) -> Self {
        Self { system, metrics, last: Mutex::default() }
    }

    /// What is there; gathered if there is nothing.
    pub(super) fn at_hand(&self) -> Option<Arc<FactLayers>> {
        self.get(Duration::MAX)
    }

    /// Facts that are not older than this; the last ones if new ones cannot be
    /// had.
    pub(super) fn get(&self, oldest: Duration) -> Option<Arc<FactLayers>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let host = self.system.begin(Cancel::default());
        let begin = host.since_boot();
        if let Some((when, facts)) = &*last
            && begin.saturating_sub(*when) <= oldest
        {
            return Some(Arc::clone(facts));
        }
        match gather(&host) {
            Some(facts) => {
                let took = host.since_boot().saturating_sub(begin);
                self.metrics.facts_gather_duration(took);
                self.metrics.facts_resolve_duration(took);
                for warning in host.take_warnings() {
                    tracing::warn!("{warning}");
                }
                *last = Some((begin, Arc::new(facts)));
            }
            None => {
                self.metrics.facts_resolve_error();
                let rest = if last.is_some() { "; the last ones are used" } else { "" };
                tracing::warn!("cannot gather facts{rest}");
            }
        }
        last.as_ref().map(|(_, facts)| Arc::clone(facts))
    }
}

/// Gathers in a thread of its own: whatever becomes of it, the agent goes on.
fn gather(host: &ccm_host::Host) -> Option<FactLayers> {
    let (sender, receiver) = sync_channel(1);
    let on = host.clone();
    let work = move || {
        let layers = ccm_facts::gather_layers(&on, &ccm_facts::Options::new(&on));
        let _ = sender.send(FactLayers::new(layers));
    };
    std::thread::Builder::new().name("facts".to_owned()).spawn(work).ok()?;
    receiver.recv_timeout(LIMIT).ok()
}
