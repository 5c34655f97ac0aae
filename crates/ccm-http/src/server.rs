//! The server: accepts connections until it is stopped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use ccm_host::{ListenSocket, SocketFile};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet, LocalSet};

use crate::connection::{Patient, Socket};
use crate::message::{Client, Request, RequestBody, Response};

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the request line and the headers; more is answered with 431.
    pub header_bytes: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Connections at a time; more are answered with 503 and closed.
    pub connections: usize,
    /// Connections of clients that are not [known](Request::know_client) yet; the
    /// oldest is closed for a new one, and each of them after its answer. They do
    /// not count as connections. `None` if all clients are alike.
    pub guests: Option<usize>,
    /// Time for the headers of a request, from the end of the request before.
    pub header_time: Duration,
    /// Time for the body of a request.
    pub body_time: Duration,
    /// Time that a write waits for a client that does not read.
    pub write_time: Duration,
    /// Time for open requests when the server ends.
    pub end_time: Duration,
    /// Threads for [`blocking`] work at a time; more of it waits.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 16 * 1024,
            body_bytes: 1024 * 1024,
            connections: 64,
            guests: None,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            end_time: Duration::from_secs(2),
            threads: 16,
        }
    }
}

/// What an overloaded server says before it hangs up.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// After an error such as "too many open files", accepting pauses.
const PAUSE: Duration = Duration::from_millis(100);

/// Templates and manifests nest deeply, and tests of the engine have this much.
const STACK: usize = 8 * 1024 * 1024;

/// A server in a thread of its own, which ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    path: Option<PathBuf>,
}

impl Server {
    /// Serves a socket with a handler.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no thread or descriptor left.
    pub fn start<H, F>(socket: ListenSocket, limits: Limits, handler: H) -> io::Result<Self>
    where
        H: Fn(Request) -> F + Send + 'static,
        F: Future<Output = Response> + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(limits.threads.max(1))
            .thread_stack_size(STACK)
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let (address, path) = match &socket {
            ListenSocket::Tcp(_, address) => (Some(*address), None),
            ListenSocket::Unix(_, file) => (None, Some(file.path().to_owned())),
        };
        let acceptor = {
            let _inside = runtime.enter();
            Acceptor::new(socket)?
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            let local = LocalSet::new();
            local.block_on(&runtime, serve(acceptor, limits, Rc::new(handler), stopped));
            drop(local);
            // Work that does not end by itself does not keep the process.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop, thread: Some(thread), address, path })
    }

    /// Where a TCP server listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where a unix socket is.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Takes no more requests, waits a little for the open ones, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs work that blocks in another thread; `None` if it panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "removes the socket at the end")] SocketFile),
}

impl Acceptor {
    fn new(socket: ListenSocket) -> io::Result<Self> {
        Ok(match socket {
            ListenSocket::Tcp(listener, _) => Self::Tcp(TcpListener::from_std(listener)?),
            ListenSocket::Unix(listener, file) => {
                Self::Unix(UnixListener::from_std(listener)?, file)
            }
        })
    }

    async fn accept(&self) -> io::Result<Box<dyn Socket>> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
        })
    }
}

async fn serve<H, F>(
    acceptor: Acceptor,
    limits: Limits,
    handler: Rc<H>,
    mut stopped: watch::Receiver<bool>,
) where
    H: Fn(Request) -> F + 'static,
    F: Future<Output = Response> + 'static,
{
    let mut connections = JoinSet::new();
    let mut clients = VecDeque::new();
    let mut stopping = stopped.clone();
    let mut stop = pin!(stopping.wait_for(|stopped| *stopped));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = acceptor.accept() => accepted,
        };
        let count = match limits.guests {
            Some(most) => make_room(&mut clients, most),
            None => connections.len(),
        };
        match accepted {
            Ok(socket) if count >= limits.connections => refuse(socket),
            Ok(socket) => {
                let socket = Patient::new(socket, limits.write_time);
                let client = Client::default();
                let connection = serve_connection(
                    socket,
                    limits,
                    Rc::clone(&handler),
                    client.clone(),
                    stopped.clone(),
                );
                let task = connections.spawn_local(connection);
                if limits.guests.is_some() {
                    clients.push_back((task, client));
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Nobody can connect from here on, and the name of a unix socket is gone.
    drop(acceptor);
    stopped.mark_unchanged();
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.end_time, all).await;
}

/// Forgets clients that are gone, and closes the oldest guests until there is room
/// for another one. Returns how many clients are known.
fn make_room(clients: &mut VecDeque<(AbortHandle, Client)>, most: usize) -> usize {
    clients.retain(|(task, _)| !task.is_finished());
    let known = clients.iter().filter(|(_, client)| client.is_known()).count();
    let mut too_many = (clients.len() - known + 1).saturating_sub(most.max(1));
    clients.retain(|(task, client)| {
        let is_closed = too_many > 0 && !client.is_known();
        if is_closed {
            task.abort();
            too_many -= 1;
        }
        !is_closed
    });
    known
}

/// Says why and hangs up, without waiting for anything.
fn refuse(mut socket: Box<dyn Socket>) {
    let write = tokio::io::AsyncWrite::poll_write;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = write(std::pin::Pin::new(&mut *socket), &mut context, BUSY);
}

async fn serve_connection<H, F>(
    socket: Patient,
    limits: Limits,
    handler: Rc<H>,
    client: Client,
    mut stopped: watch::Receiver<bool>,
) where
    H: Fn(Request) -> F + 'static,
    F: Future<Output = Response> + 'static,
{
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let is_head = request.method() == Method::HEAD;
        let client = client.clone();
        let answer = answer(&*handler, limits, &client, request);
        async move {
            let mut answer = answer.await;
            if limits.guests.is_some() && !client.is_known() {
                answer = answer.with(hyper::header::CONNECTION, "close");
            }
            Ok::<_, Infallible>(answer.into_hyper(is_head))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_header_size(limits.header_bytes)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopped.wait_for(|stopped| *stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// What the handler answers, or why it does not.
fn answer<H, F>(
    handler: &H,
    limits: Limits,
    client: &Client,
    request: hyper::Request<Incoming>,
) -> impl Future<Output = Response> + use<H, F>
where
    H: Fn(Request) -> F,
    F: Future<Output = Response> + 'static,
{
    let (head, incoming) = request.into_parts();
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        authority: head.uri.authority().map(|authority| authority.as_str().to_owned()),
        headers: head.headers,
        client: client.clone(),
        body: RequestBody { incoming, limit: limits.body_bytes, time: limits.body_time },
    };
    let begun = std::panic::catch_unwind(AssertUnwindSafe(|| handler(request)));
    async move {
        let answered = match begun {
            Ok(answer) => AssertUnwindSafe(answer).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        answered.unwrap_or_else(|_| {
            tracing::error!("a request ended in a panic");
            Response::text(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
        })
    }
}
