//! Publishes registrations in the background, and queues them while there is no
//! connection.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ccm_host::{Cancel, Host, Publish as _, Registry, System};
use ccm_model::RegistryEntry;
use ccm_nats::Nats;

use crate::Metrics;
use crate::run::registry_name;
use crate::schedule::Moment;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an entry without a time to live waits for a connection.
const LIFE: Duration = Duration::from_mins(5);
/// How often to look for a connection while entries wait.
const LOOK: Duration = Duration::from_secs(2);
/// How long entries may take when the agent ends.
const AT_THE_END: Duration = Duration::from_secs(2);

/// How often entries are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    pub(crate) interval: Duration,
    /// Zero is never.
    pub(crate) health_check_interval: Duration,
}

enum Order {
    Publish { entry: Box<RegistryEntry>, to: Registry, has_checks: bool, renewal: Renewal },
    Finish,
}

/// A thread that publishes.
pub(crate) struct Registrar {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
    cancel: Cancel,
}

impl Registrar {
    pub(crate) fn start(
        nats: Nats,
        system: &System,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let cancel = Cancel::new()?;
        let host = system.begin(cancel.clone());
        let (orders, received) = channel();
        let mut state = State {
            nats,
            host,
            metrics,
            waiting: BTreeMap::new(),
            warned: HashSet::new(),
            max_age: None,
            has_asked_age: false,
        };
        let run = move || state.run(&received);
        let thread = std::thread::Builder::new().name("registrar".to_owned()).spawn(run)?;
        Ok(Self { orders, thread, cancel })
    }

    /// Publishes an entry of a resource, which has health checks or not.
    pub(crate) fn publish(
        &self,
        entry: RegistryEntry,
        to: Registry,
        has_checks: bool,
        renewal: Renewal,
    ) {
        let entry = Box::new(entry);
        // Fails only where the thread has ended, which it does not by itself.
        let _ = self.orders.send(Order::Publish { entry, to, has_checks, renewal });
    }

    /// Gives what waits two more seconds.
    pub(crate) fn finish(&self, host: &Host) {
        let _ = self.orders.send(Order::Finish);
        let until = host.since_boot() + AT_THE_END;
        while !self.thread.is_finished() && host.since_boot() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.cancel.cancel(ccm_host::CancelReason::Requested);
    }
}

struct State {
    nats: Nats,
    host: Host,
    metrics: Arc<Metrics>,
    /// By subject: the newest entry.
    waiting: BTreeMap<String, Waiting>,
    /// Subjects whose entries are known to expire too early.
    warned: HashSet<String>,
    /// How long the stream keeps entries.
    max_age: Option<Duration>,
    has_asked_age: bool,
}

struct Waiting {
    entry: Box<RegistryEntry>,
    to: Registry,
    until: Moment,
    /// The connection that it was last tried on.
    connection: u64,
}

impl State {
    fn run(&mut self, orders: &Receiver<Order>) {
        loop {
            let order = if self.waiting.is_empty() {
                orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                orders.recv_timeout(LOOK)
            };
            match order {
                Ok(Order::Publish { entry, to, has_checks, renewal }) => {
                    self.check_life(&entry, to, has_checks, renewal);
                    self.publish(entry, to);
                }
                Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => {
                    self.retry(true);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => self.retry(false),
            }
        }
    }

    fn publish(&mut self, entry: Box<RegistryEntry>, to: Registry) {
        let subject = entry.subject();
        // While others wait for a connection there is no need to try.
        let before = self.nats.connection();
        let published = self.nats.publish(&entry, to, PATIENCE, &self.host);
        let destination = registry_name(to);
        match published {
            Ok(()) => {
                self.waiting.remove(&subject);
                self.metrics.registrations_published(destination, 1);
            }
            Err(error) => {
                self.metrics.registrations_failed(destination, 1);
                if !self.waiting.contains_key(&subject) {
                    let reason = ccm_engine::chain(&error);
                    tracing::warn!("cannot register {}: {reason}", entry.service);
                }
                let life = entry.ttl.map_or(Some(LIFE), ccm_model::Ttl::duration);
                let until = life.map_or(Duration::MAX, |life| self.host.since_boot() + life);
                let connection = before.connects;
                self.waiting.insert(subject, Waiting { entry, to, until, connection });
            }
        }
    }

    /// Tries what waits once per connection.
    fn retry(&mut self, is_end: bool) {
        let now = self.host.since_boot();
        let connection = self.nats.connection();
        let mut published = 0;
        for (subject, waiting) in std::mem::take(&mut self.waiting) {
            if waiting.until <= now {
                let service = &waiting.entry.service;
                tracing::warn!("the registration of {service} was not published before it expired");
                continue;
            }
            let is_new = connection.connects != waiting.connection;
            if !connection.is_connected || !(is_new || is_end) {
                self.waiting.insert(subject, waiting);
                continue;
            }
            let Waiting { entry, to, until, .. } = waiting;
            match self.nats.publish(&entry, to, PATIENCE, &self.host) {
                Ok(()) => {
                    published += 1;
                    self.metrics.registrations_published(registry_name(to), 1);
                }
                Err(_) => {
                    self.metrics.registrations_failed(registry_name(to), 1);
                    let connection = connection.connects;
                    self.waiting.insert(subject, Waiting { entry, to, until, connection });
                }
            }
        }
        if published > 0 {
            tracing::info!("published {published} registrations that waited for a connection");
        }
    }

    /// How long the stream keeps entries, asked once.
    fn stream_life(&mut self) -> Option<Duration> {
        if !self.has_asked_age && self.nats.connection().is_connected {
            // Who may publish need not be allowed to ask this.
            self.max_age = self.nats.max_age(&self.host).unwrap_or_default();
            self.has_asked_age = true;
        }
        self.max_age
    }

    /// Warns once of an entry that expires before it is renewed.
    fn check_life(
        &mut self,
        entry: &RegistryEntry,
        to: Registry,
        has_checks: bool,
        renewal: Renewal,
    ) {
        let life = match entry.ttl {
            Some(ttl) => ttl.duration(),
            None if to == Registry::JetStream => self.stream_life(),
            None => None,
        };
        let Some(life) = life else { return };
        let is_checked = has_checks && !renewal.health_check_interval.is_zero();
        let every = if is_checked {
            renewal.health_check_interval.min(renewal.interval)
        } else {
            renewal.interval
        };
        if life < every && self.warned.insert(entry.subject()) {
            let (service, life, every) = (&entry.service, shown(life), shown(every));
            tracing::warn!(
                "registration of {service} expires after {life}, and is renewed every {every}"
            );
        }
    }
}

/// A duration as people write it: `1m`, not `1m0s`.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let text: String = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if text.is_empty() { format!("{}ms", duration.as_millis()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, wanted) in [(60, "1m"), (300, "5m"), (5400, "1h30m"), (61, "1m1s")] {
            assert_eq!(shown(Duration::from_secs(seconds)), wanted);
        }
        assert_eq!(shown(Duration::from_millis(20)), "20ms");
    }
}
