//! Watches a registry for changes.

use std::time::{Duration, Instant};

use ccm_host::Host;
use ccm_model::{RegistryChange, RegistryMessageError, RegistryQuery};

use crate::error::{Problem, Result};
use crate::link::CONNECT_ALL;
use crate::registry::{self, Consumer, Next, Start};
use crate::{Error, Nats};

/// A stream that is silent for longer is not there any more.
const SILENCE: Duration = Duration::from_secs(15);
/// How often a watcher looks whether it is still connected.
const LOOK: Duration = Duration::from_millis(250);
/// The longest time between two attempts to take a lost connection up.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// A change or warning for a watcher.
#[derive(Debug)]
pub enum Watched {
    /// An entry is new, renewed or gone.
    Change(RegistryChange),
    /// A message that is not an entry.
    Garbage(RegistryMessageError),
    /// The connection is lost; ccm tries to take it up again.
    Lost(Error),
    /// The connection is back.
    Back,
}

impl Nats {
    /// Sends the existing entries, then all changes, until the run is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// Fails if watching cannot start. Later problems are sent as events.
    pub fn watch(
        &self,
        query: &RegistryQuery,
        host: &Host,
        tell: &mut dyn FnMut(Watched),
    ) -> ccm_host::Result<()> {
        match self.follow(query, host, tell) {
            Err(error) if matches!(error.problem, Problem::Cancelled) => Ok(()),
            other => other.map_err(Into::into),
        }
    }

    fn follow(
        &self,
        query: &RegistryQuery,
        host: &Host,
        tell: &mut dyn FnMut(Watched),
    ) -> Result<()> {
        let filter = query.filter_subject();
        let mut last: Option<u64> = None;
        let mut failures = 0;
        loop {
            match self.consume(&filter, host, &mut last, &mut failures, tell) {
                Ok(()) => {}
                Err(error) if matches!(error.problem, Problem::Cancelled) || last.is_none() => {
                    return Err(error);
                }
                Err(error) => {
                    if failures == 0 {
                        tell(Watched::Lost(error));
                    }
                    failures += 1;
                    let delay = Duration::from_millis(500 << failures.min(6)).min(MAX_DELAY);
                    host.cancel().pause(delay);
                }
            }
        }
    }

    /// Reads from one consumer until it must be replaced.
    fn consume(
        &self,
        filter: &str,
        host: &Host,
        last: &mut Option<u64>,
        failures: &mut u32,
        tell: &mut dyn FnMut(Watched),
    ) -> Result<()> {
        let link = self.connect(host, *failures > 0, CONNECT_ALL)?;
        link.check_version(registry::WHAT, registry::NEEDS)?;
        let start = last.map_or(Start::LastOfEach, |last| Start::At(last + 1));
        let mut consumer =
            self.wait(host, Consumer::create(&link, self.stream(), filter, start))?;
        if *failures > 0 {
            tell(Watched::Back);
            *failures = 0;
        }
        last.get_or_insert(0);
        let connects = link.connects();
        let mut heard = Instant::now();
        loop {
            let message = match self.wait(host, consumer.next(&link, LOOK))? {
                Next::Message(message) => message,
                // The server may have forgotten the consumer with the connection.
                _ if !link.is_connected() || link.connects() != connects => {
                    return Err(link.error(Problem::Lost));
                }
                Next::Gap => return Ok(()),
                Next::Silence if heard.elapsed() > SILENCE => return Ok(()),
                Next::Silence => continue,
                Next::Heartbeat => {
                    heard = Instant::now();
                    continue;
                }
            };
            heard = Instant::now();
            *last = Some(message.sequence);
            let marker = message.header("Nats-Marker-Reason");
            tell(match RegistryChange::read(&message.subject, marker, &message.payload) {
                Ok(change) => Watched::Change(change),
                Err(error) => Watched::Garbage(error),
            });
        }
    }
}
