//! One connection and its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, Request, RequestErrorKind,
    ServerError, Subscriber,
};
use bytes::Bytes;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::context::Context;
use crate::error::{Error, Problem, Result};

/// One server may take this long to greet and let in.
const CONNECT: Duration = Duration::from_secs(5);
/// All servers of a list may take this long.
pub(crate) const CONNECT_ALL: Duration = Duration::from_secs(15);
/// A request to JetStream may take this long.
pub(crate) const REQUEST: Duration = Duration::from_secs(5);
/// Reads are asked twice, as any replica answers them, also one that hangs.
pub(crate) const READ: Duration = Duration::from_millis(2500);
/// A connection at rest learns from pings alone that the server hangs. The
/// library gives up with the third one unanswered: within a minute.
const PING: Duration = Duration::from_secs(20);
const CLOSE: Duration = Duration::from_secs(2);
/// Attempts to take up a lost connection with the same credentials, before
/// everything is read again.
const RECONNECTS: usize = 20;
/// How often a connection is looked at that nothing is heard of.
const LOST_LOOK: Duration = Duration::from_secs(30);
/// Messages that wait for a reader.
const CAPACITY: usize = 65_536;

/// A connection that was made.
pub(crate) struct Link {
    context: String,
    url: String,
    pub(crate) client: Client,
    pub(crate) api_prefix: String,
    pub(crate) secrets: Vec<String>,
    /// Prefix of reply subjects.
    inbox_prefix: String,
    /// Subjects that the server rejected.
    violations: broadcast::Sender<Violation>,
    is_lost: watch::Receiver<bool>,
}

/// What becomes of a connection that is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenLost {
    /// The library takes it up with the same credentials.
    Resume,
    /// It is given up: whoever keeps it makes a new one, with everything read
    /// again.
    End,
}

/// A subject that a server refused.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) subject: String,
    pub(crate) is_subscription: bool,
}

impl Link {
    /// Tries each server of the context once.
    pub(crate) async fn connect(
        context: Context,
        command: &str,
        limit: Duration,
        when_lost: WhenLost,
    ) -> Result<Arc<Self>> {
        let url = context.servers.shown();
        let name = context.name.clone();
        let fail = |problem: Problem| Error::at(&name, &url, problem);
        let (violations, _) = broadcast::channel(64);
        let tell = violations.clone();
        let (lost, is_lost) = watch::channel(false);
        let was_connected = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&was_connected);
        let Context { servers, login, token, certificate, authority, .. } = context;
        let secrets = context.secrets;
        let login = Arc::new((login, token));
        let answer = move |nonce: Vec<u8>| {
            let login = Arc::clone(&login);
            let is_over = when_lost == WhenLost::End && is_over.load(Ordering::Relaxed);
            async move {
                if is_over {
                    return Err(async_nats::AuthError::new("the connection is not taken up"));
                }
                login.0.answer(login.1.as_ref(), &nonce)
            }
        };
        let reconnects = match when_lost {
            WhenLost::Resume => servers.addresses.len() + RECONNECTS,
            WhenLost::End => servers.addresses.len(),
        };
        let mut options = ConnectOptions::with_auth_callback(answer)
            .name(format!("choria-ccm {command}"))
            .connection_timeout(CONNECT)
            .request_timeout(None)
            .ping_interval(PING)
            .subscription_capacity(CAPACITY)
            .max_reconnects(reconnects)
            .reconnect_delay_callback(|attempt| {
                Duration::from_millis(match attempt {
                    0 | 1 => 0,
                    attempt => (20 * attempt as u64).min(500),
                })
            })
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(text)) = &event
                    && let Some(violation) = violation(text)
                {
                    let _ = tell.send(violation);
                }
                if event == Event::Disconnected {
                    lost.send_replace(true);
                }
                std::future::ready(())
            })
            .require_tls(servers.is_tls || authority.is_some());
        if context.is_tls_first {
            options = options.tls_first();
        }
        if let Some(authority) = authority {
            options = options.add_root_certificates(authority);
        }
        if let Some((cert, key)) = certificate {
            options = options.add_client_certificate(cert, key);
        }
        let inbox_prefix = context.inbox_prefix.clone().unwrap_or_else(|| "_INBOX".to_owned());
        if let Some(prefix) = context.inbox_prefix {
            options = options.custom_inbox_prefix(prefix);
        }
        let addresses: Vec<String> = servers.addresses;
        let limit = limit.min(CONNECT_ALL);
        let client = match timeout(limit, options.connect(addresses)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(fail(connect_problem(&name, &error))),
            Err(_) => return Err(fail(Problem::NoGreeting { after: limit })),
        };
        was_connected.store(true, Ordering::Relaxed);
        let api_prefix = context.api_prefix;
        Ok(Arc::new(Self {
            context: name,
            url,
            client,
            api_prefix,
            secrets,
            inbox_prefix,
            violations,
            is_lost,
        }))
    }

    /// Ends when the connection is lost.
    pub(crate) async fn lost(&self) {
        let mut is_lost = self.is_lost.clone();
        // The library may drop what it has to say, but its state is right.
        while self.is_connected() {
            let told = is_lost.wait_for(|lost| *lost);
            if matches!(timeout(LOST_LOOK, told).await, Ok(Ok(_))) {
                return;
            }
        }
    }

    /// The subjects that the server refuses from now on.
    pub(crate) fn violations(&self) -> broadcast::Receiver<Violation> {
        self.violations.subscribe()
    }

    /// An error of this connection.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error::at(&self.context, &self.url, problem)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits a moment for a connection that was lost to come back.
    pub(crate) async fn settle(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while !self.is_connected() {
            if Instant::now() >= until {
                return false;
            }
            sleep(Duration::from_millis(20)).await;
        }
        true
    }

    /// Fails if the server is older than `needs`.
    pub(crate) fn check_version(&self, what: &'static str, needs: (i64, i64)) -> Result<()> {
        if self.is_at_least(needs) {
            return Ok(());
        }
        let version = self.client.server_info().version;
        let needs = if needs == (2, 11) { "2.11" } else { "2.10" };
        Err(self.error(Problem::TooOld { version, what, needs }))
    }

    pub(crate) fn is_at_least(&self, (major, minor): (i64, i64)) -> bool {
        self.client.is_server_compatible(major, minor, 0)
    }

    /// Sends a request and waits for its answer. `what` is for messages.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: impl Into<Bytes>,
        limit: Duration,
        what: &str,
    ) -> Result<Option<Message>> {
        let mut violations = self.violations.subscribe();
        let mut request = Request::new().payload(payload.into()).timeout(None);
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        let answer = self.client.send_request(subject.to_owned(), request);
        tokio::select! {
            answer = answer => match answer {
                Ok(message) => Ok(Some(message)),
                Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
                Err(error) if error.kind() == RequestErrorKind::Other => {
                    Err(self.error(Problem::Lost))
                }
                Err(error) => {
                    let (what, reason) = (what.to_owned(), error.to_string());
                    Err(self.error(Problem::Refused { what, reason }))
                }
            },
            refused = self.refused(&mut violations, subject) => {
                Err(self.error(Problem::NoPermission { subject: refused }))
            }
            () = sleep(limit) => {
                Err(self.error(Problem::NoAnswer { what: what.to_owned(), after: limit }))
            }
        }
    }

    /// As [`Self::request`] for what any replica answers: asked once more if
    /// there is no answer.
    pub(crate) async fn read(
        &self,
        subject: &str,
        payload: &Bytes,
        what: &str,
    ) -> Result<Option<Message>> {
        match self.request(subject, None, payload.clone(), READ, what).await {
            Err(error) if error.is_passing() => {
                self.settle(READ).await;
                self.request(subject, None, payload.clone(), READ, what).await.map_err(|error| {
                    match error.problem {
                        Problem::NoAnswer { what, .. } => {
                            self.error(Problem::NoAnswer { what, after: REQUEST })
                        }
                        _ => error,
                    }
                })
            }
            answer => answer,
        }
    }

    /// Sends a request whose answer is several messages.
    pub(crate) async fn ask_for_many(&self, subject: &str, payload: Bytes) -> Result<Answers<'_>> {
        let violations = self.violations.subscribe();
        let inbox = self.client.new_inbox();
        let lost = |_| self.error(Problem::Lost);
        let messages =
            self.client.subscribe(inbox.clone()).await.map_err(|_| self.error(Problem::Lost))?;
        let subject = subject.to_owned();
        self.client.publish_with_reply(subject.clone(), inbox, payload).await.map_err(lost)?;
        Ok(Answers { link: self, subject, messages, violations })
    }

    /// Publishes to whoever listens, and waits until the server has seen it or
    /// refused it.
    pub(crate) async fn announce(
        &self,
        subject: &str,
        payload: String,
        limit: Duration,
    ) -> Result<()> {
        let mut violations = self.violations.subscribe();
        let sent = self.client.publish(subject.to_owned(), payload.into()).await;
        sent.map_err(|_| self.error(Problem::Lost))?;
        // The second time, what the server said of the message has certainly been
        // read.
        for _ in 0..2 {
            self.round_trip(limit).await?;
        }
        while let Ok(violation) = violations.try_recv() {
            if violation.subject == subject {
                let subject = subject.to_owned();
                return Err(self.error(Problem::NoPermission { subject }));
            }
        }
        Ok(())
    }

    /// Waits until the server has looked at everything that was sent before. The
    /// library does not tell of the answer to a ping, so this connection sends
    /// itself a message. A server that refuses it has looked at the rest too.
    async fn round_trip(&self, limit: Duration) -> Result<()> {
        use futures_util::StreamExt as _;
        let mut violations = self.violations.subscribe();
        let inbox = self.client.new_inbox();
        let mut echo =
            self.client.subscribe(inbox.clone()).await.map_err(|_| self.error(Problem::Lost))?;
        let sent = self.client.publish(inbox.clone(), Bytes::new()).await;
        sent.map_err(|_| self.error(Problem::Lost))?;
        tokio::select! {
            message = echo.next() => message.map(drop).ok_or_else(|| self.error(Problem::Lost)),
            _ = self.refused(&mut violations, &inbox) => Ok(()),
            () = sleep(limit) => {
                let what = "a message".to_owned();
                Err(self.error(Problem::NoAnswer { what, after: limit }))
            }
        }
    }

    /// The subject that the server refused: this one, or that of the answers.
    async fn refused(
        &self,
        violations: &mut broadcast::Receiver<Violation>,
        subject: &str,
    ) -> String {
        loop {
            match violations.recv().await {
                Ok(violation)
                    if violation.subject == subject
                        || violation.is_subscription
                            && violation.subject.starts_with(&self.inbox_prefix) =>
                {
                    return violation.subject;
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// How often the connection was made.
    pub(crate) fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Sends what is still to be sent.
    pub(crate) async fn close(&self) {
        if self.is_connected() {
            let _ = timeout(CLOSE, self.client.flush()).await;
        }
    }
}

/// The messages that answer one request.
pub(crate) struct Answers<'l> {
    link: &'l Link,
    subject: String,
    messages: Subscriber,
    violations: broadcast::Receiver<Violation>,
}

impl Answers<'_> {
    /// The next message; an error if none comes for so long.
    pub(crate) async fn next(&mut self, limit: Duration, what: &str) -> Result<Message> {
        use futures_util::StreamExt as _;
        let Self { link, subject, messages, violations } = self;
        tokio::select! {
            message = messages.next() => message.ok_or_else(|| link.error(Problem::Lost)),
            refused = link.refused(violations, subject) => {
                Err(link.error(Problem::NoPermission { subject: refused }))
            }
            () = sleep(limit) => {
                Err(link.error(Problem::NoAnswer { what: what.to_owned(), after: limit }))
            }
        }
    }
}

/// What a server says when it refuses a subject.
fn violation(text: &str) -> Option<Violation> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("permissions violation for ")?;
    let rest = &text[at + "permissions violation for ".len()..];
    let is_subscription = rest.to_ascii_lowercase().starts_with("subscription");
    let subject = rest.split('"').nth(1)?.to_owned();
    Some(Violation { subject, is_subscription })
}

/// Why there is no connection, in words of ours.
fn connect_problem(context: &str, error: &async_nats::ConnectError) -> Problem {
    let text = crate::context::chain(error);
    let lower = text.to_ascii_lowercase();
    let refused = ["authorization violation", "authentication", "user jwt", "nkey"];
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            Problem::Credentials { context: context.to_owned() }
        }
        _ if refused.iter().any(|words| lower.contains(words)) => {
            Problem::Credentials { context: context.to_owned() }
        }
        ConnectErrorKind::Dns => Problem::Connect { reason: UNKNOWN_NAME.to_owned() },
        ConnectErrorKind::TimedOut => Problem::NoGreeting { after: CONNECT },
        _ => known_problem(&lower).unwrap_or(Problem::Connect { reason: text }),
    }
}

const UNKNOWN_NAME: &str = "the name of the server cannot be resolved";
const TLS_HINT: &str = "set `ca`, or `cert` and `key`, in the context";
const PAIR_HINT: &str = "use the certificate and the key of one pair";
const NAME_HINT: &str = "use a name in `url` that the certificate has";
const RENEW_HINT: &str = "renew the certificate of the server, and check the clock";
const PLAIN_HINT: &str = "use `nats://` without `ca` and `tls_first` for a server without TLS";

/// What the libraries below say, in words of ours; all of it in lower case.
fn known_problem(error: &str) -> Option<Problem> {
    let has = |words: &[&str]| words.iter().any(|words| error.contains(words));
    let tls = |reason: &str, hint| Some(Problem::Tls { reason: reason.to_owned(), hint });
    let connect = |reason: &str| Some(Problem::Connect { reason: reason.to_owned() });
    if has(&["unknownissuer", "unknown issuer", "selfsigned", "self-signed", "badsignature"]) {
        return tls("the certificate of the server is not trusted", TLS_HINT);
    }
    if has(&["notvalidforname", "not valid for name"]) {
        return tls("the certificate of the server is for another name", NAME_HINT);
    }
    if has(&["expired", "notvalidyet", "not valid yet"]) {
        return tls("the certificate of the server is not valid at this time", RENEW_HINT);
    }
    if has(&["certificaterequired", "certificate required", "handshakefailure", "badcertificate"]) {
        return tls("the server demands a certificate that it trusts", TLS_HINT);
    }
    if has(&["could not add certificate or key"]) {
        return tls("`cert` and `key` of the context do not match", PAIR_HINT);
    }
    if has(&["root certificate", "could not load", "pem"]) {
        return tls("the certificates in `ca` of the context cannot be read", "check that file");
    }
    if has(&["corrupt message", "invalidcontenttype", "invalid content type"]) {
        return tls("the server does not use TLS on this port", PLAIN_HINT);
    }
    if has(&["protocolversion", "nocommon", "not compatible", "peerincompatible"]) {
        return tls("the server offers no TLS 1.2 or newer", "update the server");
    }
    if has(&["refused"]) {
        return connect("connection refused");
    }
    if has(&["network is unreachable", "no route to host"]) {
        return connect("there is no route to the server");
    }
    if has(&[
        "expected info",
        "invalid info",
        "invalid server operation",
        "parse error",
        "unable to parse",
        "utf-8",
    ]) {
        return Some(Problem::NotNats);
    }
    if has(&["eof", "reset by peer", "broken pipe", "closed"]) {
        return connect("the server closed the connection");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_subjects_are_read_from_what_servers_say() {
        let found = violation("Permissions Violation for Publish to \"$JS.API.X\"").unwrap();
        assert_eq!((found.subject.as_str(), found.is_subscription), ("$JS.API.X", false));
        let found = violation("permissions violation for subscription to \"_INBOX.a.*\"").unwrap();
        assert_eq!((found.subject.as_str(), found.is_subscription), ("_INBOX.a.*", true));
        assert!(violation("Permissions Violation for Publish").is_none());
        assert!(violation("Unknown Protocol Operation").is_none());
        assert!(violation("Permissions Violation for é").is_none());
    }
}
