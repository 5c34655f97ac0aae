//! JetStream's API, as far as ccm uses it: requests in JSON and direct reads.

use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::error::{Problem, Result};
use crate::link::{Link, READ, REQUEST};

const NO_CONTENT: u16 = 204;
const NOT_FOUND: u16 = 404;
const NO_RESPONDERS: u16 = 503;

const STREAM_NOT_FOUND: u64 = 10_059;
const NO_MESSAGE: u64 = 10_037;
const NOT_ENABLED: [u64; 2] = [10_039, 10_076];
const WRONG_STREAM: u64 = 10_060;

/// Why the API refused something.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: u64,
    pub(crate) description: String,
}

impl ApiError {
    fn of(answer: &Value) -> Option<Self> {
        let error = answer.get("error").filter(|error| !error.is_null())?;
        let code = error["err_code"].as_u64().unwrap_or_default();
        let description = error["description"].as_str().unwrap_or("no reason given").to_owned();
        Some(Self { code, description })
    }

    pub(crate) fn is_no_stream(&self) -> bool {
        self.code == STREAM_NOT_FOUND
    }

    pub(crate) fn is_no_message(&self) -> bool {
        self.code == NO_MESSAGE
    }

    pub(crate) fn is_wrong_stream(&self) -> bool {
        self.code == WRONG_STREAM
    }
}

/// One message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Stored {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(async_nats::HeaderValue::as_str)
    }

    /// A message of a direct read.
    fn direct(message: Message) -> Option<Self> {
        let headers = message.headers.unwrap_or_default();
        let header = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
        let subject = header("Nats-Subject")?.to_owned();
        let sequence = header("Nats-Sequence")?.parse().ok()?;
        Some(Self { subject, sequence, payload: message.payload, headers })
    }
}

/// What a direct read found.
pub(crate) enum Direct {
    Found(Stored),
    /// There is no such message.
    Nothing,
    /// Nobody answers direct reads of this stream: it does not exist, does not
    /// allow them, or there is no JetStream.
    Nobody,
}

/// What is asked when something is read, for messages.
pub(crate) fn reading(what: &str) -> String {
    format!("a read of {what}")
}

/// A part of the messages that a direct read matches.
pub(crate) struct Page {
    pub(crate) messages: Vec<Stored>,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

/// What limits a page.
#[derive(Clone, Copy)]
pub(crate) struct PageLimit {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

impl Link {
    fn api(&self, operation: &str) -> String {
        format!("{}.{operation}", self.api_prefix)
    }

    /// Asks the API. An error of the API is an answer.
    pub(crate) async fn api_request(
        &self,
        operation: &str,
        body: &Value,
        what: &str,
    ) -> Result<Result<Value, ApiError>> {
        let payload = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let subject = self.api(operation);
        let Some(message) = self.request(&subject, None, payload, REQUEST, what).await? else {
            return Err(self.error(Problem::NoJetStream));
        };
        let answer: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
        if !answer.is_object() {
            let (what, reason) = (what.to_owned(), "the answer is not JSON".to_owned());
            return Err(self.error(Problem::Refused { what, reason }));
        }
        match ApiError::of(&answer) {
            Some(error) if NOT_ENABLED.contains(&error.code) => {
                Err(self.error(Problem::NoJetStream))
            }
            Some(error) => Ok(Err(error)),
            None => Ok(Ok(answer)),
        }
    }

    /// The information about a stream; `None` if there is no such stream.
    pub(crate) async fn stream_info(&self, stream: &str) -> Result<Option<Value>> {
        let what = format!("a request for stream {stream}");
        match self.api_request(&format!("STREAM.INFO.{stream}"), &Value::Null, &what).await? {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is_no_stream() => Ok(None),
            Err(error) => Err(self.error(Problem::Refused { what, reason: error.description })),
        }
    }

    /// The last message of a subject, whose name goes into the request's own
    /// subject, so that permissions can tell subjects apart.
    pub(crate) async fn last_by_subject(
        &self,
        stream: &str,
        subject: &str,
        what: &str,
    ) -> Result<Direct> {
        let request = self.api(&format!("DIRECT.GET.{stream}.{subject}"));
        self.direct(&request, &Bytes::new(), what).await
    }

    /// The same with a request that all subjects of a stream share.
    pub(crate) async fn last_in_stream(&self, stream: &str, subject: &str) -> Result<Direct> {
        let request = self.api(&format!("DIRECT.GET.{stream}"));
        let body = json!({"last_by_subj": subject}).to_string().into();
        self.direct(&request, &body, &format!("stream {stream}")).await
    }

    /// `what` is read, for messages.
    async fn direct(&self, request: &str, payload: &Bytes, what: &str) -> Result<Direct> {
        let Some(message) = self.read(request, payload, &reading(what)).await? else {
            return Ok(Direct::Nobody);
        };
        match message.status.map(|status| status.as_u16()) {
            Some(NOT_FOUND) => Ok(Direct::Nothing),
            Some(status) => {
                let reason = message.description.unwrap_or_else(|| status.to_string());
                Err(self.error(Problem::Refused { what: format!("read {what}"), reason }))
            }
            None => Ok(Stored::direct(message).map_or(Direct::Nothing, Direct::Found)),
        }
    }

    /// The messages of a filter from a sequence on, up to a limit. `None` if
    /// nobody answers direct reads of this stream.
    pub(crate) async fn page(
        &self,
        stream: &str,
        filter: &str,
        from: u64,
        limit: PageLimit,
    ) -> Result<Option<Page>> {
        // Older servers answer with one message, whatever is asked for.
        let is_batch = self.is_at_least((2, 11));
        let mut body = json!({"seq": from, "next_by_subj": filter});
        if is_batch {
            body["batch"] = limit.messages.into();
            body["max_bytes"] = limit.bytes.into();
        }
        let request = self.api(&format!("DIRECT.GET.{stream}"));
        let mut answers = self.ask_for_many(&request, body.to_string().into()).await?;
        let mut page = Page { messages: Vec::new(), has_more: false };
        let refused = |reason: String| {
            self.error(Problem::Refused { what: format!("read stream {stream}"), reason })
        };
        let what = reading(&format!("stream {stream}"));
        loop {
            let message = answers.next(READ, &what).await?;
            match message.status.map(|status| status.as_u16()) {
                Some(NO_CONTENT) => {
                    let pending = message.headers.as_ref().and_then(|headers| {
                        headers.get("Nats-Num-Pending")?.as_str().parse::<u64>().ok()
                    });
                    page.has_more = pending.unwrap_or_default() > 0;
                    return Ok(Some(page));
                }
                Some(NOT_FOUND) => return Ok(Some(page)),
                Some(NO_RESPONDERS) => return Ok(None),
                Some(status) => {
                    return Err(refused(message.description.unwrap_or_else(|| status.to_string())));
                }
                None => {
                    let next = Stored::direct(message);
                    // A server that does not keep to what was asked would be read
                    // for ever.
                    let last = page.messages.last().map_or(from, |last: &Stored| last.sequence + 1);
                    if next.as_ref().is_some_and(|next| next.sequence < last)
                        || page.messages.len() == limit.messages
                    {
                        return Err(refused("it sent an unexpected answer".to_owned()));
                    }
                    page.messages.extend(next);
                    if !is_batch {
                        page.has_more = true;
                        return Ok(Some(page));
                    }
                }
            }
        }
    }

    /// As [`Self::page`], asked again if there is no answer: any replica answers,
    /// also one that hangs.
    pub(crate) async fn page_again(
        &self,
        stream: &str,
        filter: &str,
        from: u64,
        limit: PageLimit,
    ) -> Result<Option<Page>> {
        match self.page(stream, filter, from, limit).await {
            Err(error) if error.is_passing() => {
                self.settle(READ).await;
                self.page(stream, filter, from, limit).await
            }
            answer => answer,
        }
    }

    /// Publishes into a stream and waits for its acknowledgement.
    pub(crate) async fn publish_stored(
        &self,
        stream: &str,
        subject: &str,
        pairs: Vec<(&'static str, String)>,
        payload: String,
        limit: Duration,
    ) -> Result<()> {
        let what = format!("a message on {subject}");
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(name, value.as_str());
        }
        let answer = self.request(subject, Some(headers), payload, limit, &what).await?;
        let Some(message) = answer else {
            return Err(self.error(Problem::NoStream { stream: stream.to_owned() }));
        };
        let answer: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
        match ApiError::of(&answer) {
            Some(error) if error.is_wrong_stream() => {
                let reason = format!("another stream than {stream} takes {subject}");
                Err(self.error(Problem::Refused { what: "store".to_owned(), reason }))
            }
            Some(error) => {
                let what = format!("store a message on {subject}");
                Err(self.error(Problem::Refused { what, reason: error.description }))
            }
            None if answer["stream"].is_string() => Ok(()),
            None => {
                let reason = "it did not acknowledge".to_owned();
                Err(self.error(Problem::Refused { what, reason }))
            }
        }
    }
}
