//! The service registry: looks up, publishes and removes entries.

use std::collections::HashMap;
use std::time::Duration;

use ccm_model::{RegistryEntry, RegistryQuery, entries_of};
use serde_json::{Value, json};

use crate::error::{Problem, Result};
use crate::jetstream::{Direct, PageLimit, Stored, reading};
use crate::link::{Link, REQUEST};

/// Most that a look-up returns.
const MAX_ENTRIES: usize = 100_000;
const MAX_BYTES: usize = 64 << 20;
/// Most that it reads: entries are renewed meanwhile, but not for ever.
const MAX_MESSAGES: usize = 4 * MAX_ENTRIES;
/// What is asked for at once.
const PAGE: PageLimit = PageLimit { messages: 1_000, bytes: 4 << 20 };
/// How long the mark of a removed entry stays, for those who watch.
const REMOVED: &str = "1m";
/// Messages that are not entries are named up to here, then counted.
const MAX_NAMED: usize = 5;

/// The server that everything here needs.
pub(crate) const NEEDS: (i64, i64) = (2, 11);
pub(crate) const WHAT: &str = "registration";

/// What a look-up found.
pub(crate) struct Found {
    pub(crate) entries: Vec<RegistryEntry>,
    /// What is worth knowing about the registry.
    pub(crate) warnings: Vec<String>,
}

/// The entries that a query matches.
pub(crate) async fn find(link: &Link, stream: &str, query: &RegistryQuery) -> Result<Found> {
    link.check_version(WHAT, NEEDS)?;
    let filter = query.filter_subject();
    let mut warnings = Vec::new();
    let messages = match by_pages(link, stream, &filter).await? {
        Some(messages) => messages,
        None => {
            let info = link.stream_info(stream).await?;
            if info.is_none() {
                return Err(link.error(Problem::NoStream { stream: stream.to_owned() }));
            }
            warnings.push(format!(
                "stream {stream} does not allow direct reads, which are faster; `ccm registration \
                 init` enables them"
            ));
            by_consumer(link, stream, &filter).await?
        }
    };
    let stored = messages.values().map(|message| {
        (message.subject.as_str(), message.header("Nats-Marker-Reason"), &*message.payload)
    });
    let (entries, errors) = entries_of(stored);
    let mut named: Vec<String> = errors.iter().map(ToString::to_string).collect();
    named.sort_unstable();
    let more = named.len().saturating_sub(MAX_NAMED);
    warnings.extend(named.into_iter().take(MAX_NAMED));
    if more > 0 {
        warnings.push(format!("{more} more messages of {stream} are not registrations"));
    }
    Ok(Found { entries, warnings })
}

/// Messages by their subject: an entry that is renewed between two pages comes
/// twice, and the later one counts.
type Messages = HashMap<String, Stored>;

/// Collects messages, within what a look-up may return.
#[derive(Default)]
struct Collected {
    messages: Messages,
    bytes: usize,
    /// Also those that were replaced by later ones.
    count: usize,
}

impl Collected {
    fn add(&mut self, link: &Link, stream: &str, message: Stored) -> Result<()> {
        self.count += 1;
        self.bytes += message.payload.len();
        if let Some(before) = self.messages.insert(message.subject.clone(), message) {
            self.bytes -= before.payload.len();
        }
        let what = || format!("the answer from stream {stream}");
        if self.messages.len() > MAX_ENTRIES || self.count > MAX_MESSAGES {
            return Err(link.error(Problem::TooMuch { what: what(), limit: "100,000 entries" }));
        }
        if self.bytes > MAX_BYTES {
            return Err(link.error(Problem::TooMuch { what: what(), limit: "64 MiB" }));
        }
        Ok(())
    }
}

/// Direct reads, page by page. `None` if no server responds to them.
async fn by_pages(link: &Link, stream: &str, filter: &str) -> Result<Option<Messages>> {
    let mut all = Collected::default();
    let mut from = 1;
    loop {
        let Some(page) = link.page_again(stream, filter, from, PAGE).await? else {
            return Ok(None);
        };
        let Some(last) = page.messages.last().map(|message| message.sequence) else {
            return Ok(Some(all.messages));
        };
        from = last + 1;
        for message in page.messages {
            all.add(link, stream, message)?;
        }
        if !page.has_more {
            return Ok(Some(all.messages));
        }
    }
}

/// The same from a stream that does not allow direct reads.
async fn by_consumer(link: &Link, stream: &str, filter: &str) -> Result<Messages> {
    let mut consumer = Consumer::create(link, stream, filter, Start::LastOfEach).await?;
    let read = read_pending(link, stream, &mut consumer).await;
    consumer.delete(link, stream).await;
    read
}

/// The messages that were there when the consumer was made.
async fn read_pending(link: &Link, stream: &str, consumer: &mut Consumer) -> Result<Messages> {
    let mut all = Collected::default();
    while consumer.pending > 0 {
        match consumer.next(link, REQUEST).await? {
            Next::Message(message) => all.add(link, stream, message)?,
            Next::Heartbeat => {}
            Next::Gap | Next::Silence => {
                let what = reading(&format!("stream {stream}"));
                return Err(link.error(Problem::NoAnswer { what, after: REQUEST }));
            }
        }
    }
    Ok(all.messages)
}

/// What a consumer begins with.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// The last message of each subject.
    LastOfEach,
    /// This sequence.
    At(u64),
}

/// Messages that a stream sends as they come, until this is dropped.
pub(crate) struct Consumer {
    name: String,
    messages: async_nats::Subscriber,
    /// How many are still to come of those that were there at the beginning.
    pub(crate) pending: u64,
    /// The number of the last message that was delivered.
    delivered: u64,
}

/// What a consumer says.
pub(crate) enum Next {
    Message(Stored),
    /// There is nothing new.
    Heartbeat,
    /// Messages were lost: a new consumer must take over.
    Gap,
    /// Nothing came for as long as was waited.
    Silence,
}

/// How often a stream that has nothing to send says so.
const HEARTBEAT: Duration = Duration::from_secs(5);

impl Consumer {
    pub(crate) async fn create(
        link: &Link,
        stream: &str,
        filter: &str,
        start: Start,
    ) -> Result<Self> {
        let inbox = link.client.new_inbox();
        let name = format!("ccm-{}", inbox.rsplit('.').next().unwrap_or_default());
        let lost = |_| link.error(Problem::Lost);
        let messages =
            link.client.subscribe(inbox.clone()).await.map_err(|_| link.error(Problem::Lost))?;
        link.client.flush().await.map_err(lost)?;
        let mut config = json!({
            "name": name,
            "deliver_subject": inbox,
            "ack_policy": "none",
            "replay_policy": "instant",
            "filter_subject": filter,
            "idle_heartbeat": HEARTBEAT.as_nanos() as u64,
            "inactive_threshold": 30_000_000_000_u64,
            "mem_storage": true,
            "num_replicas": 1,
        });
        match start {
            Start::LastOfEach => config["deliver_policy"] = "last_per_subject".into(),
            Start::At(sequence) => {
                config["deliver_policy"] = "by_start_sequence".into();
                config["opt_start_seq"] = sequence.into();
            }
        }
        let body = json!({"stream_name": stream, "config": config, "action": "create"});
        let operation = format!("CONSUMER.CREATE.{stream}.{name}.{filter}");
        let what = format!("watch stream {stream}");
        match link.api_request(&operation, &body, &what).await? {
            Ok(answer) => {
                let pending = answer["num_pending"].as_u64().unwrap_or_default();
                Ok(Self { name, messages, pending, delivered: 0 })
            }
            Err(error) if error.is_no_stream() => {
                Err(link.error(Problem::NoStream { stream: stream.to_owned() }))
            }
            Err(error) => Err(link.error(Problem::Refused { what, reason: error.description })),
        }
    }

    /// Removes it from the server, which does so by itself after a while: so a
    /// refusal does not matter.
    async fn delete(self, link: &Link, stream: &str) {
        let operation = format!("CONSUMER.DELETE.{stream}.{}", self.name);
        let what = format!("stop watching stream {stream}");
        let deleted = link.api_request(&operation, &Value::Null, &what).await;
        if let Err(error) = deleted {
            tracing::debug!("cannot delete a consumer: {error}");
        }
    }

    /// What comes next.
    pub(crate) async fn next(&mut self, link: &Link, limit: Duration) -> Result<Next> {
        use futures_util::StreamExt as _;
        loop {
            let message = match tokio::time::timeout(limit, self.messages.next()).await {
                Ok(Some(message)) => message,
                Ok(None) => return Err(link.error(Problem::Lost)),
                Err(_) => return Ok(Next::Silence),
            };
            if message.status.is_some() {
                let header =
                    |name: &str| message.headers.as_ref()?.get(name)?.as_str().parse::<u64>().ok();
                match header("Nats-Last-Consumer") {
                    Some(last) if last != self.delivered => return Ok(Next::Gap),
                    _ => return Ok(Next::Heartbeat),
                }
            }
            // $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.consumer
            // sequence.time.pending[.token]
            let reply = message.reply.as_ref().map(ToString::to_string).unwrap_or_default();
            let tokens: Vec<&str> = reply.split('.').collect();
            let at = if tokens.len() >= 11 { 7 } else { 5 };
            let number = |index: usize| tokens.get(index).and_then(|token| token.parse().ok());
            let (Some(sequence), Some(delivered)) = (number(at), number(at + 1)) else { continue };
            if delivered != self.delivered + 1 {
                return Ok(Next::Gap);
            }
            self.delivered = delivered;
            self.pending = number(at + 3).unwrap_or_default();
            return Ok(Next::Message(Stored {
                subject: message.subject.to_string(),
                sequence,
                headers: message.headers.unwrap_or_default(),
                payload: message.payload,
            }));
        }
    }
}

/// Publishes an entry to a stream.
pub(crate) async fn store(
    link: &Link,
    stream: &str,
    entry: &RegistryEntry,
    limit: Duration,
) -> Result<()> {
    link.check_version(WHAT, NEEDS)?;
    let (subject, headers) = (entry.subject(), entry.headers(stream));
    link.publish_stored(stream, &subject, headers, entry.payload(), limit.min(REQUEST)).await
}

/// Publishes an entry to current subscribers.
pub(crate) async fn announce(link: &Link, entry: &RegistryEntry, limit: Duration) -> Result<()> {
    link.announce(&entry.subject(), entry.payload(), limit.min(REQUEST)).await
}

/// Removes the entry of a subject; false if there is none.
pub(crate) async fn remove(link: &Link, stream: &str, subject: &str) -> Result<bool> {
    link.check_version(WHAT, NEEDS)?;
    match link.last_in_stream(stream, subject).await? {
        Direct::Found(stored) if stored.header("Nats-Marker-Reason").is_some() => return Ok(false),
        Direct::Nothing => return Ok(false),
        Direct::Found(_) => {}
        Direct::Nobody => {
            if link.stream_info(stream).await?.is_none() {
                return Err(link.error(Problem::NoStream { stream: stream.to_owned() }));
            }
        }
    }
    // A purge leaves nothing for those who watch; this does.
    let headers = vec![
        ("Nats-Rollup", "sub".to_owned()),
        ("Nats-TTL", REMOVED.to_owned()),
        ("Nats-Marker-Reason", "Remove".to_owned()),
        ("Nats-Expected-Stream", stream.to_owned()),
    ];
    link.publish_stored(stream, subject, headers, String::new(), REQUEST).await?;
    Ok(true)
}

/// How a stream is to be.
pub(crate) fn configuration(stream: &str, replicas: u64, max_age: Duration) -> Value {
    let max_age = max_age.as_nanos() as u64;
    json!({
        "name": stream,
        "subjects": [format!("{}.>", ccm_model::REGISTRY_PREFIX)],
        "retention": "limits",
        "storage": "file",
        "max_msgs_per_subject": 1,
        "discard": "old",
        "num_replicas": replicas,
        "max_age": max_age,
        "subject_delete_marker_ttl": max_age,
        "allow_rollup_hdrs": true,
        "allow_msg_ttl": true,
        "allow_direct": true,
        "deny_delete": true,
        "deny_purge": false,
    })
}

/// Result of creating or updating a stream.
pub(crate) struct Prepared {
    pub(crate) is_new: bool,
    /// The settings that were changed: name, before, after.
    pub(crate) changes: Vec<(String, Value, Value)>,
}

/// Creates or updates a stream.
pub(crate) async fn prepare(link: &Link, stream: &str, wanted: Value) -> Result<Prepared> {
    link.check_version(WHAT, NEEDS)?;
    let refused = |what: String, reason: String| link.error(Problem::Refused { what, reason });
    let Some(info) = link.stream_info(stream).await? else {
        let what = format!("create stream {stream}");
        return match link.api_request(&format!("STREAM.CREATE.{stream}"), &wanted, &what).await? {
            Ok(_) => Ok(Prepared { is_new: true, changes: Vec::new() }),
            Err(error) => Err(refused(what, error.description)),
        };
    };
    let mut config = info["config"].clone();
    let mut changes = Vec::new();
    for (name, value) in wanted.as_object().into_iter().flatten() {
        // What is not there has the zero value.
        let is_zero = config[name].is_null() && matches!(value, Value::Bool(false));
        if config[name] != *value && !is_zero {
            changes.push((name.clone(), config[name].clone(), value.clone()));
            config[name] = value.clone();
        }
    }
    let is_fixed = |name: &str| matches!(name, "storage" | "retention" | "deny_delete");
    if let Some((name, before, after)) = changes.iter().find(|(name, ..)| is_fixed(name)) {
        let before = if before.is_null() { &Value::Bool(false) } else { before };
        let reason = format!(
            "its `{name}` is {before}, must be {after} and cannot be changed; remove the stream \
             with `nats stream rm {stream}` and run this again"
        );
        return Err(refused(format!("update stream {stream}"), reason));
    }
    if changes.is_empty() {
        return Ok(Prepared { is_new: false, changes });
    }
    let what = format!("update stream {stream}");
    match link.api_request(&format!("STREAM.UPDATE.{stream}"), &config, &what).await? {
        Ok(_) => Ok(Prepared { is_new: false, changes }),
        Err(error) => Err(refused(what, error.description)),
    }
}
