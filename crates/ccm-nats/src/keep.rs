//! The agent's connection, which reconnects in the background, and the
//! notifications that arrive on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ccm_host::Host;
use futures_util::StreamExt as _;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::context::Context;
use crate::error::{Error, Problem, Result};
use crate::link::{CONNECT_ALL, Link, WhenLost};
use crate::source::{Key, ObjectName};
use crate::{ContextChoice, Nats, is_key};

/// The delay after the first failed attempt; it doubles with each one.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// An event of the kept connection, delivered in a background thread. Handlers
/// must return quickly.
#[derive(Clone, Debug)]
pub enum ConnectionEvent {
    /// It was made, for the first time or again.
    Connected,
    /// It was lost.
    Lost,
    /// An attempt to connect failed. Sent for every attempt.
    Failed(Error),
}

/// The state of a connection that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Whether there is one now.
    pub is_connected: bool,
    /// How often it was made.
    pub connects: u64,
}

/// A notification for the watcher of a key or an object, delivered in a
/// background thread.
#[derive(Clone, Debug)]
pub enum Notice {
    /// It may have changed.
    Changed,
    /// A connection was made: changes before it went unnoticed.
    Connected,
    /// The server does not allow to listen. The error names the subject.
    Refused(Error),
}

type Tell = Arc<dyn Fn(Notice) + Send + Sync>;

/// The connection of an agent, and who listens to what over it.
#[derive(Default)]
pub(crate) struct Keep {
    state: Mutex<State>,
    /// Counts changes of the state.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    is_active: bool,
    link: Option<Arc<Link>>,
    /// Why the last attempt failed.
    failure: Option<Error>,
    connects: u64,
    watches: BTreeMap<u64, Watch>,
    last_watch: u64,
}

/// One who wants to be told.
struct Watch {
    subject: String,
    tell: Tell,
    /// The task that listens, on the present connection.
    task: Option<AbortHandle>,
}

impl Keep {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state().is_active
    }

    pub(crate) fn take_link(&self) -> Option<Arc<Link>> {
        self.state().link.take()
    }

    /// The connection. Waits for the first attempt to end, and a moment for a
    /// connection that was lost.
    pub(crate) async fn link(&self, limit: Duration) -> Result<Arc<Link>> {
        let mut changes = self.changes.subscribe();
        let found = timeout(limit, async {
            loop {
                {
                    let state = self.state();
                    if let Some(link) = &state.link {
                        return Ok(Arc::clone(link));
                    }
                    if let Some(failure) = &state.failure {
                        return Err(failure.clone());
                    }
                }
                if changes.changed().await.is_err() {
                    return Err(Error::before("", Problem::Lost));
                }
            }
        });
        let late = || {
            let what = "the connection".to_owned();
            Error::before("", Problem::NoAnswer { what, after: limit })
        };
        found.await.unwrap_or_else(|_| Err(late()))
    }

    /// Makes the connection whenever there is none.
    async fn run(
        self: Arc<Self>,
        choice: ContextChoice,
        command: String,
        host: Host,
        tell: Box<dyn Fn(ConnectionEvent) + Send + Sync>,
    ) {
        let mut failures = 0;
        let mut warned = Vec::new();
        loop {
            // Read anew: what is in the files may be what was missing.
            let on = host.anew();
            let context = Context::read(&choice, &on);
            let warnings = on.take_warnings();
            // A state that lasts is logged once, not with every attempt.
            for warning in warnings.iter().filter(|warning| !warned.contains(*warning)) {
                tracing::warn!("{warning}");
            }
            warned = warnings;
            let made = match context {
                Ok(context) => Link::connect(context, &command, CONNECT_ALL, WhenLost::End).await,
                Err(error) => Err(error),
            };
            match made {
                Ok(link) => {
                    failures = 0;
                    tracing::debug!("connected to NATS");
                    self.use_link(&link, &tell).await;
                    tell(ConnectionEvent::Lost);
                    // Callers wait for the next attempt, but not for long.
                    sleep(delay(0, fraction(&host))).await;
                    continue;
                }
                Err(error) => {
                    self.change(|state| state.failure = Some(error.clone()));
                    tell(ConnectionEvent::Failed(error));
                }
            }
            sleep(delay(failures, fraction(&host))).await;
            failures += 1;
        }
    }

    /// Lets others use a connection until it is lost.
    async fn use_link(
        self: &Arc<Self>,
        link: &Arc<Link>,
        tell: &(dyn Fn(ConnectionEvent) + Send + Sync),
    ) {
        let violations = link.violations();
        let watchers = self.change(|state| {
            state.link = Some(Arc::clone(link));
            state.failure = None;
            state.connects += 1;
            for watch in state.watches.values_mut() {
                watch.listen(link);
            }
            state.watches.values().map(|watch| Arc::clone(&watch.tell)).collect::<Vec<_>>()
        });
        tell(ConnectionEvent::Connected);
        for tell in watchers {
            tell(Notice::Connected);
        }
        tokio::select! {
            () = link.lost() => {}
            () = self.tell_refused(link, violations) => {}
        }
        self.change(|state| {
            state.link = None;
            for watch in state.watches.values_mut() {
                watch.stop();
            }
        });
    }

    /// Tells those whose subjects the server refuses.
    async fn tell_refused(
        &self,
        link: &Link,
        mut violations: broadcast::Receiver<crate::link::Violation>,
    ) {
        use broadcast::error::RecvError;
        loop {
            let violation = match violations.recv().await {
                Ok(violation) if violation.is_subscription => violation,
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return std::future::pending().await,
            };
            let concerned: Vec<Tell> = {
                let state = self.state();
                let watches = state.watches.values();
                let concerned = watches.filter(|watch| watch.subject == violation.subject);
                concerned.map(|watch| Arc::clone(&watch.tell)).collect()
            };
            let subject = violation.subject;
            let error = link.error(Problem::NoPermission { subject });
            for tell in concerned {
                tell(Notice::Refused(error.clone()));
            }
        }
    }
}

impl Watch {
    /// Listens over a connection. Called in the runtime.
    fn listen(&mut self, link: &Arc<Link>) {
        self.stop();
        let (client, subject) = (link.client.clone(), self.subject.clone());
        let tell = Arc::clone(&self.tell);
        let listen = async move {
            let Ok(mut messages) = client.subscribe(subject).await else { return };
            // It holds no connection open that others have given up.
            drop(client);
            while messages.next().await.is_some() {
                tell(Notice::Changed);
            }
        };
        self.task = Some(tokio::spawn(listen).abort_handle());
    }

    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Keeps a connection for as long as it lives.
#[must_use]
pub struct KeptConnection {
    keep: Arc<Keep>,
    task: AbortHandle,
}

impl std::fmt::Debug for KeptConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptConnection").finish_non_exhaustive()
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        self.task.abort();
        self.keep.change(|state| {
            state.is_active = false;
            state.watches.values_mut().for_each(Watch::stop);
        });
    }
}

/// Listens for as long as it lives.
#[must_use]
pub struct Notices {
    keep: Arc<Keep>,
    id: u64,
}

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        if let Some(mut watch) = self.keep.state().watches.remove(&self.id) {
            watch.stop();
        }
    }
}

impl Nats {
    /// Makes the connection in the background and keeps it until the result is
    /// dropped: tries for ever, also after refused credentials, with the context
    /// and all its files read again for every attempt. From now on nothing else
    /// makes a connection; without one, requests fail at once with the reason of
    /// the last attempt. Does not wait.
    ///
    /// `host` should know nothing of this `Nats`, or it lives as long as the
    /// result does.
    ///
    /// # Errors
    ///
    /// Fails if the runtime cannot be started.
    pub fn keep_connected(
        &self,
        host: &Host,
        tell: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> ccm_host::Result<KeptConnection> {
        let keep = Arc::clone(&self.0.keep);
        keep.change(|state| state.is_active = true);
        let (choice, command) = (self.0.choice.clone(), self.0.command.clone());
        let run = Arc::clone(&keep).run(choice, command, host.clone(), Box::new(tell));
        let task = self.runtime()?.spawn(run);
        Ok(KeptConnection { keep, task })
    }

    /// The state of the connection that is kept.
    pub fn connection(&self) -> Connection {
        let state = self.0.keep.state();
        let is_connected = state.link.as_ref().is_some_and(|link| link.is_connected());
        Connection { is_connected, connects: state.connects }
    }

    /// Subscribes to changes of the key or object that a URL names, over the
    /// connection of [`Nats::keep_connected`], with a plain subscription. A
    /// notification can arrive before all replicas have the change. For an
    /// object that is a link, only changes of the link itself are notified.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the URL.
    pub fn notices(
        &self,
        url: &str,
        tell: impl Fn(Notice) + Send + Sync + 'static,
    ) -> std::result::Result<Notices, String> {
        let subject = if is_key(url) {
            Key::parse(url)?.subject()
        } else {
            ObjectName::parse(url)?.subject()
        };
        let keep = Arc::clone(&self.0.keep);
        let mut watch = Watch { subject, tell: Arc::new(tell), task: None };
        let id = {
            let mut state = keep.state();
            if let (Some(link), Some(runtime)) = (&state.link, self.0.runtime.get()) {
                let _entered = runtime.enter();
                watch.listen(link);
            }
            state.last_watch += 1;
            let id = state.last_watch;
            state.watches.insert(id, watch);
            id
        };
        Ok(Notices { keep, id })
    }
}

/// The delay before the next attempt after so many failures, uniform between
/// half and the whole of `min(0.5 s × 2ⁿ, 30 s)`.
fn delay(failures: u32, fraction: f64) -> Duration {
    let whole = FIRST_DELAY.saturating_mul(1 << failures.min(16)).min(MAX_DELAY);
    whole.mul_f64(0.5 + fraction / 2.0)
}

/// A random number from 0 to 1.
fn fraction(host: &Host) -> f64 {
    f64::from(u32::from_ne_bytes(host.random())) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_up_to_half_a_minute() {
        let bounds =
            |failures| (delay(failures, 0.0).as_millis(), delay(failures, 1.0).as_millis());
        assert_eq!(bounds(0), (250, 500));
        assert_eq!(bounds(3), (2000, 4000));
        assert_eq!(bounds(6), (15_000, 30_000));
        assert_eq!(bounds(u32::MAX), (15_000, 30_000));
    }
}
