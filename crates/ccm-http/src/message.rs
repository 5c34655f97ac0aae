//! Requests and responses of handlers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode};
use tokio::sync::mpsc;

/// A request whose body was not read yet.
#[derive(Debug)]
pub struct Request {
    /// Method of the request.
    pub method: Method,
    /// The path, as it was sent: percent-encoded, beginning with `/`.
    pub path: String,
    /// The query after the first `?`, not decoded.
    pub query: String,
    /// Host and port of a request line that has them before the path.
    pub authority: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: RequestBody,
    pub(crate) client: Client,
}

/// What is known of the client of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client(Arc<AtomicBool>);

impl Client {
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Request {
    /// Says that the client has shown who it is, so that its connection may stay.
    pub fn know_client(&self) {
        self.client.0.store(true, Ordering::Relaxed);
    }

    /// The value of a header; `None` if it is missing, occurs more than once or
    /// is not text.
    pub fn header(&self, name: impl hyper::header::AsHeaderName) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?.to_str().ok()?;
        all.next().is_none().then_some(first)
    }
}

/// A body that has still to be read.
#[derive(Debug)]
pub struct RequestBody {
    pub(crate) incoming: Incoming,
    pub(crate) limit: usize,
    pub(crate) time: Duration,
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than the server takes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// It did not arrive in time.
    #[error("the body did not arrive within {0:?}")]
    TooSlow(Duration),
    /// The connection ended, or what was sent is no body.
    #[error("the body is incomplete")]
    Incomplete,
}

impl RequestBody {
    /// The same with a lower limit, for those whose name is not known yet.
    #[must_use]
    pub fn at_most(self, bytes: usize) -> Self {
        Self { limit: self.limit.min(bytes), ..self }
    }

    /// Reads all of it, within the limits of the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is too large, too slow or incomplete.
    pub async fn read(self) -> Result<Bytes, BodyError> {
        let Self { incoming, limit, time } = self;
        if incoming.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLarge(limit));
        }
        match tokio::time::timeout(time, Limited::new(incoming, limit).collect()).await {
            Ok(Ok(read)) => Ok(read.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                Err(BodyError::TooLarge(limit))
            }
            Ok(Err(_)) => Err(BodyError::Incomplete),
            Err(_) => Err(BodyError::TooSlow(time)),
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// Whether it worked.
    pub status: StatusCode,
    /// Headers beside those that the server makes: date and length.
    pub headers: HeaderMap,
    body: ResponseBody,
}

impl Response {
    /// An answer with this body.
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { status, headers, body: ResponseBody::Full(Some(body.into())) }
    }

    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        let body = ResponseBody::Full(None);
        Self { status, headers: HeaderMap::new(), body }
    }

    /// Plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", text.into())
    }

    /// An answer whose body is sent piece by piece, and the sender of the pieces.
    /// The body ends when all senders are dropped. At most `waiting` pieces wait
    /// for the reader.
    pub fn stream(content_type: &'static str, waiting: usize) -> (Self, StreamSender) {
        let (sender, pieces) = mpsc::channel(waiting.max(1));
        let mut response = Self::new(StatusCode::OK, content_type, Bytes::new());
        response.body = ResponseBody::Stream(pieces);
        (response, StreamSender { sender })
    }

    /// The same with one more header; one that cannot be sent is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// The body, unless it is a stream.
    pub fn body(&self) -> Option<&[u8]> {
        match &self.body {
            ResponseBody::Full(bytes) => Some(bytes.as_deref().unwrap_or_default()),
            ResponseBody::Stream(_) => None,
        }
    }

    pub(crate) fn into_hyper(self, is_head: bool) -> hyper::Response<ResponseBody> {
        let Self { status, headers, body } = self;
        let length = match &body {
            ResponseBody::Full(bytes) => Some(bytes.as_ref().map_or(0, Bytes::len)),
            ResponseBody::Stream(_) => None,
        };
        let body = if is_head { ResponseBody::Full(None) } else { body };
        let mut response = hyper::Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(length) = length.filter(|_| is_head) {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response
    }
}

/// Sends the pieces of a body, from any thread. Clones send to the same body.
#[derive(Clone, Debug)]
pub struct StreamSender {
    sender: mpsc::Sender<Bytes>,
}

impl StreamSender {
    /// Sends a piece without waiting; false if the reader is gone or too slow.
    pub fn try_send(&self, piece: impl Into<Bytes>) -> bool {
        self.sender.try_send(piece.into()).is_ok()
    }

    /// Sends a piece as soon as there is room; false if the reader is gone.
    pub async fn send(&self, piece: impl Into<Bytes>) -> bool {
        self.sender.send(piece.into()).await.is_ok()
    }

    /// Whether the client has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the client has closed the connection.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }
}

/// A body that is there, or that comes piece by piece.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Full(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Full(bytes) => Poll::Ready(bytes.take()),
            Self::Stream(pieces) => pieces.poll_recv(context),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
