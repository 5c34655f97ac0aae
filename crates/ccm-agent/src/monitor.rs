//! The monitoring endpoint: `/metrics` and `/healthz`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ccm_host::{Host, ListenSocket};
use ccm_http::{Limits, Method, Request, Response, Server, StatusCode, header};

use crate::Metrics;

/// The text format of Prometheus.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A scrape is small and quick. What is not is closed.
const SCRAPE_LIMITS: Limits = Limits {
    header_bytes: 8 * 1024,
    body_bytes: 0,
    connections: 16,
    guests: None,
    header_time: Duration::from_secs(5),
    body_time: Duration::from_secs(5),
    write_time: Duration::from_secs(5),
    end_time: Duration::from_secs(1),
    threads: 1,
};

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be bound.
    #[error("cannot serve metrics on port {port}")]
    Listen {
        /// The configured port.
        port: u16,
        /// The error of the system call.
        source: ccm_host::Error,
    },
    /// There was no thread or descriptor left.
    #[error("cannot start the thread that serves metrics")]
    Start(#[source] std::io::Error),
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen { .. } => {
                Some("choose a free port with `monitor_port`, or another `monitor_address`")
            }
            Self::Start(_) => None,
        }
    }
}

/// An endpoint, which ends when this is dropped. Nothing in it wakes up unless
/// someone is connected.
#[derive(Debug)]
pub struct Monitor {
    server: Server,
}

impl Monitor {
    /// Serves metrics and health. Without an address, on all of the machine's.
    /// `health` says what is wrong; it is asked in the server's thread and must
    /// not wait for anything.
    ///
    /// # Errors
    ///
    /// Returns an error if the port is taken or the address is not of this
    /// machine.
    pub fn start(
        address: Option<IpAddr>,
        port: u16,
        metrics: Arc<Metrics>,
        health: impl Fn() -> Result<(), Vec<String>> + Send + Sync + 'static,
        host: &Host,
    ) -> Result<Self, Error> {
        let socket = listen(address, port).map_err(|source| Error::Listen { port, source })?;
        let host = host.clone();
        let handler = move |request: Request| {
            let response = answer(&request, &metrics, &health, &host);
            async move { response }
        };
        let server = Server::start(socket, SCRAPE_LIMITS, handler).map_err(Error::Start)?;
        Ok(Self { server })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.address()
    }
}

fn listen(address: Option<IpAddr>, port: u16) -> ccm_host::Result<ListenSocket> {
    let Some(address) = address else {
        // Where there is IPv6, this is IPv4 too.
        let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        return match ListenSocket::bind(all) {
            Err(ccm_host::Error::Io { source, .. })
                if source.kind() != std::io::ErrorKind::AddrInUse
                    && source.kind() != std::io::ErrorKind::PermissionDenied =>
            {
                ListenSocket::bind((Ipv4Addr::UNSPECIFIED, port).into())
            }
            listening => listening,
        };
    };
    ListenSocket::bind((address, port).into())
}

fn answer(
    request: &Request,
    metrics: &Metrics,
    health: &impl Fn() -> Result<(), Vec<String>>,
    host: &Host,
) -> Response {
    let is_known = matches!(&*request.path, "/metrics" | "/healthz");
    if !is_known {
        let text = "not found: this server has /metrics and /healthz\n";
        return Response::text(StatusCode::NOT_FOUND, text);
    }
    if request.method != Method::GET {
        return Response::text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n")
            .with(header::ALLOW, "GET");
    }
    if request.path == "/metrics" {
        return Response::new(StatusCode::OK, TEXT_FORMAT, metrics.render(host.now()));
    }
    match health() {
        Ok(()) => Response::text(StatusCode::OK, "ok\n"),
        Err(reasons) => {
            let json = format!("{}\n", serde_json::json!({ "reasons": reasons }));
            Response::new(StatusCode::SERVICE_UNAVAILABLE, "application/json", json)
        }
    }
}

#[cfg(test)]
mod tests;
