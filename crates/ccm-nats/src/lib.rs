//! Everything that uses NATS.
//!
//! [`Nats`] downloads `kv://` and `obj://` URLs, answers the template functions
//! `kvGet` and `registrations`, and publishes registrations, behind the
//! synchronous traits of `ccm-host`. Nothing is read, started or connected
//! before the first use. There is one connection per process.

mod context;
mod error;
mod jetstream;
mod keep;
mod kv;
mod link;
mod object;
mod registry;
mod runtime;
mod source;
mod watch;

use std::fmt;
use std::io::Cursor;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ccm_host::{Body, Fetch, Host, Lookup, Publish, Registry, Request};
use ccm_model::{RegistryEntry, RegistryQuery};
use serde_json::Value;

pub use context::ContextChoice;
pub use error::Error;
pub use keep::{Connection, ConnectionEvent, KeptConnection, Notice, Notices};
pub use watch::Watched;

use context::Context;
use error::{Problem, Result};
use keep::Keep;
use link::{Link, WhenLost};
use runtime::Runtime;
use source::{Key, ObjectName};

/// The stream that entries are in unless another is named.
pub const DEFAULT_STREAM: &str = "REGISTRATION";

/// How long one call of a template function may take.
const CALL: Duration = Duration::from_secs(10);
/// How long a connection that could not be made is not tried again.
const FAILURE: Duration = Duration::from_secs(10);
/// How long a lost connection may take to come back by itself.
const SETTLE: Duration = Duration::from_millis(2500);

/// A way to NATS. Cheap to clone; clones share one connection.
#[derive(Clone)]
pub struct Nats(Arc<Shared>);

struct Shared {
    choice: ContextChoice,
    command: String,
    stream: String,
    runtime: OnceLock<Runtime>,
    state: Mutex<State>,
    /// The connection of an agent.
    keep: Arc<Keep>,
}

/// Sends what is still to be sent.
impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let link = state.link.take().or_else(|| self.keep.take_link());
        // A task of the runtime that holds the last handle cannot wait in it.
        let is_runtime = tokio::runtime::Handle::try_current().is_ok();
        if let (Some(link), Some(runtime), false) = (link, self.runtime.get(), is_runtime) {
            let close = async {
                link.close().await;
                Ok(())
            };
            let _ = runtime.wait(&ccm_host::Cancel::default(), close);
        }
    }
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    failure: Option<(Instant, Error)>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("choice", &self.0.choice).finish_non_exhaustive()
    }
}

/// Result of preparing a stream.
#[derive(Debug)]
pub struct PreparedStream {
    /// Whether it was created.
    pub is_new: bool,
    /// The settings that were changed: name, before, after.
    pub changes: Vec<(String, Value, Value)>,
}

impl Nats {
    /// Names the context and the command that uses it. Does nothing yet.
    pub fn new(choice: ContextChoice, command: &str) -> Self {
        Self::with_stream(choice, command, DEFAULT_STREAM)
    }

    /// As [`Nats::new`], with entries in a stream of this name.
    pub fn with_stream(choice: ContextChoice, command: &str, stream: &str) -> Self {
        let (command, stream) = (command.to_owned(), stream.to_owned());
        let (runtime, state, keep) = (OnceLock::new(), Mutex::default(), Arc::default());
        Self(Arc::new(Shared { choice, command, stream, runtime, state, keep }))
    }

    fn stream(&self) -> &str {
        &self.0.stream
    }

    fn runtime(&self) -> Result<&Runtime> {
        if let Some(runtime) = self.0.runtime.get() {
            return Ok(runtime);
        }
        let started = Runtime::start()?;
        Ok(self.0.runtime.get_or_init(|| started))
    }

    fn wait<T>(&self, host: &Host, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime()?.wait(host.cancel(), work)
    }

    /// The connection, made if there is none.
    fn link(&self, host: &Host) -> Result<Arc<Link>> {
        self.connect(host, false, link::CONNECT_ALL)
    }

    /// The same within a time; `is_retry` tries also what has just failed.
    fn connect(&self, host: &Host, is_retry: bool, limit: Duration) -> Result<Arc<Link>> {
        if self.0.keep.is_active() {
            let link = self.wait(host, self.0.keep.link(limit))?;
            host.add_secrets(link.secrets.iter().cloned());
            return Ok(link);
        }
        // Held while connecting, so that there is only one connection.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = &state.link {
            let settle = async { Ok(link.settle(SETTLE).await) };
            if link.is_connected() || self.wait(host, settle)? {
                host.add_secrets(link.secrets.iter().cloned());
                return Ok(Arc::clone(link));
            }
            state.link = None;
        }
        if let Some((when, error)) = &state.failure
            && !is_retry
            && when.elapsed() < FAILURE
        {
            return Err(error.clone());
        }
        let made = Context::read(&self.0.choice, host).and_then(|context| {
            host.add_secrets(context.secrets.iter().cloned());
            self.wait(host, Link::connect(context, &self.0.command, limit, WhenLost::Resume))
        });
        match made {
            Ok(link) => {
                tracing::debug!("connected to NATS");
                state.failure = None;
                state.link = Some(Arc::clone(&link));
                Ok(link)
            }
            Err(error) => {
                if !matches!(error.problem, Problem::Cancelled) {
                    state.failure = Some((Instant::now(), error.clone()));
                }
                Err(error)
            }
        }
    }

    /// The connection, if there is one.
    fn current(&self) -> Option<Arc<Link>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).link.clone()
    }

    /// Runs a template call within its time.
    fn call<T>(
        &self,
        host: &Host,
        what: &str,
        work: impl AsyncFnOnce(&Link) -> Result<T>,
    ) -> Result<T> {
        let begin = Instant::now();
        let link = self.connect(host, false, CALL)?;
        let left = CALL.saturating_sub(begin.elapsed());
        self.wait(host, async {
            match tokio::time::timeout(left, work(&link)).await {
                Ok(result) => result,
                Err(_) => {
                    let what = what.to_owned();
                    Err(link.error(Problem::NoAnswer { what, after: CALL }))
                }
            }
        })
    }

    /// The entries that a query matches, as many as there are.
    ///
    /// # Errors
    ///
    /// Returns why they cannot be read, or that there are too many.
    pub fn query(
        &self,
        query: &RegistryQuery,
        host: &Host,
    ) -> ccm_host::Result<Vec<RegistryEntry>> {
        let link = self.link(host)?;
        let found = self.wait(host, registry::find(&link, self.stream(), query))?;
        for warning in found.warnings {
            host.warn(warning);
        }
        Ok(found.entries)
    }

    /// Removes the entry of a subject; false if there is none.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be removed.
    pub fn remove(&self, subject: &str, host: &Host) -> ccm_host::Result<bool> {
        let link = self.link(host)?;
        Ok(self.wait(host, registry::remove(&link, self.stream(), subject))?)
    }

    /// Creates or updates the stream.
    ///
    /// # Errors
    ///
    /// Returns why the stream cannot be as it must be.
    pub fn prepare(
        &self,
        replicas: u64,
        max_age: Duration,
        host: &Host,
    ) -> ccm_host::Result<PreparedStream> {
        let link = self.link(host)?;
        let wanted = registry::configuration(self.stream(), replicas, max_age);
        let prepared = self.wait(host, registry::prepare(&link, self.stream(), wanted))?;
        Ok(PreparedStream { is_new: prepared.is_new, changes: prepared.changes })
    }

    /// How long the stream keeps entries without a time to live; `None` for
    /// ever.
    ///
    /// # Errors
    ///
    /// Returns why the stream cannot be asked.
    pub fn max_age(&self, host: &Host) -> ccm_host::Result<Option<Duration>> {
        let link = self.link(host)?;
        let info = self.wait(host, link.stream_info(self.stream()))?;
        let age = info.and_then(|info| info["config"]["max_age"].as_u64());
        Ok(age.filter(|age| *age > 0).map(Duration::from_nanos))
    }

    /// Checks the name of a stream.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub fn check_stream(stream: &str) -> std::result::Result<(), String> {
        source::check_stream(stream)
    }

    /// Whether it serves the scheme of a URL.
    pub fn serves(url: &str) -> bool {
        let scheme = ccm_host::url_scheme(url).unwrap_or_default();
        SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
    }
}

const SCHEMES: &[&str] = &["kv", "obj"];

impl Fetch for Nats {
    fn schemes(&self) -> &'static [&'static str] {
        SCHEMES
    }

    fn check(&self, url: &str) -> std::result::Result<(), String> {
        if is_key(url) {
            return Key::parse(url).map(drop);
        }
        ObjectName::parse(url).map(drop)
    }

    fn open(&self, request: &Request<'_>, host: &Host) -> ccm_host::Result<Body> {
        let failed = |error: Error| request.failed(with_hint(&error));
        if is_key(request.url()) {
            let key = Key::parse(request.url()).map_err(|reason| request.failed(reason))?;
            let link = self.link(host).map_err(failed)?;
            let value = self.wait(host, kv::get(&link, &key)).map_err(failed)?;
            if value.is_empty() {
                return Err(failed(link.error(value_problem(&key, "empty"))));
            }
            let length = value.len() as u64;
            return Ok(Body::new(Cursor::new(value)).with_length(Some(length)));
        }
        let name = ObjectName::parse(request.url()).map_err(|reason| request.failed(reason))?;
        let link = self.link(host).map_err(failed)?;
        let object = match self.wait(host, object::find(&link, &name)) {
            Err(error) if error.is_deletion() => return Err(request.deleted(error.to_string())),
            found => found.map_err(failed)?,
        };
        let (length, validators) = (object.metadata.size, object.validators());
        if request.validators() == Some(&validators) {
            return Ok(Body::unchanged());
        }
        let content = object::Content::new(self, host, object);
        Ok(Body::new(content).with_length(Some(length)).with_validators(validators))
    }
}

fn is_key(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("kv://"))
}

fn value_problem(key: &Key<'_>, what: &'static str) -> Problem {
    Problem::Value { bucket: key.bucket.to_owned(), key: key.key.to_owned(), what }
}

/// Where there is no place for a hint of its own.
fn with_hint(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

impl Lookup for Nats {
    fn kv_get(&self, bucket: &str, key: &str, host: &Host) -> ccm_host::Result<String> {
        let invalid = |reason: String| {
            let reason = format!("cannot get a key: {reason}");
            ccm_host::Error::Network { message: reason, hint: None }
        };
        let key = Key::new(bucket, key).map_err(invalid)?;
        let what = jetstream::reading(&kv::described(&key));
        let value = self.call(host, &what, async |link| {
            let value = kv::get(link, &key).await?;
            String::from_utf8(value.to_vec())
                .map_err(|_| link.error(value_problem(&key, "not UTF-8")))
        })?;
        Ok(value)
    }

    fn registrations(
        &self,
        query: &RegistryQuery,
        host: &Host,
    ) -> ccm_host::Result<Vec<RegistryEntry>> {
        let what = jetstream::reading(&format!("stream {}", self.stream()));
        let find = async |link: &Link| registry::find(link, self.stream(), query).await;
        let found = self.call(host, &what, find)?;
        for warning in found.warnings {
            host.warn(warning);
        }
        Ok(found.entries)
    }
}

impl Publish for Nats {
    fn publish(
        &self,
        entry: &RegistryEntry,
        to: Registry,
        patience: Duration,
        host: &Host,
    ) -> ccm_host::Result<()> {
        let begin = Instant::now();
        let link = self.connect(host, true, patience)?;
        let left = patience.saturating_sub(begin.elapsed()).max(Duration::from_millis(100));
        let sent = self.wait(host, async {
            match to {
                Registry::JetStream => registry::store(&link, self.stream(), entry, left).await,
                Registry::Nats => registry::announce(&link, entry, left).await,
            }
        });
        Ok(sent?)
    }
}
