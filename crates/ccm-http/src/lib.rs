//! An HTTP/1 server with limits on headers, bodies, connections and time. The
//! metrics of the agent and the studio are served by it.
//!
//! [`Server::start`] takes a socket that `ccm-host` opened and a handler, and
//! serves it in a thread of its own. A handler is asynchronous and must not
//! block; work that does goes through [`blocking`]. A panic in a handler is a
//! 500 for its request and nothing else.

mod connection;
mod message;
mod server;

pub use bytes::Bytes;
pub use hyper::{HeaderMap, Method, StatusCode, header};
pub use message::{BodyError, Request, RequestBody, Response, StreamSender};
pub use server::{Limits, Server, blocking};
