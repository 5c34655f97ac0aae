//! A minimal HTTP server that can send invalid responses.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::Authority;

/// A connection, plain or encrypted.
pub trait Stream: Read + Write {
    /// Ends the connection with a reset, not with an orderly end.
    fn reset(&mut self);
}

impl Stream for TcpStream {
    fn reset(&mut self) {
        // What was not read yet makes the kernel say so.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
    fn reset(&mut self) {
        self.sock.reset();
    }
}

type Handler = dyn Fn(&str, &mut dyn Stream) + Send + Sync;

/// A server on a free port of the loopback interface, until it is dropped.
pub struct Server {
    /// Host and port.
    pub address: String,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    /// Answers each request, given as its head in lines, as `handle` does.
    pub fn start(handle: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static) -> Self {
        Self::run(Box::new(handle), None)
    }

    /// As [`Server::start`], encrypted with a certificate for `name`.
    pub fn start_secure(
        authority: &Authority,
        name: &str,
        handle: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
    ) -> Self {
        Self::run(Box::new(handle), Some(authority.server(name)))
    }

    /// As [`Server::start_secure`], with a certificate that has expired.
    pub fn start_expired(
        authority: &Authority,
        name: &str,
        handle: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
    ) -> Self {
        Self::run(Box::new(handle), Some(authority.expired_server(name)))
    }

    /// As [`Server::start_secure`], for clients with a certificate of the
    /// authority alone.
    pub fn start_mutual(
        authority: &Authority,
        name: &str,
        handle: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
    ) -> Self {
        Self::run(Box::new(handle), Some(authority.mutual_server(name)))
    }

    /// Answers every request with these bytes and ends the connection.
    pub fn with_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, stream| drop(stream.write_all(&bytes)))
    }

    /// Answers every request with this body.
    pub fn with_body(body: impl Into<Vec<u8>>) -> Self {
        Self::with_bytes(answer("200 OK", "", &body.into()))
    }

    fn run(handle: Box<Handler>, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Self {
            address,
            scheme,
            requests: Arc::clone(&requests),
            is_over: Arc::clone(&is_over),
        };
        let handle: Arc<Handler> = handle.into();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (handle, requests, tls) =
                    (Arc::clone(&handle), Arc::clone(&requests), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(stream, &requests, &*handle),
                    Some(config) => {
                        let connection = rustls::ServerConnection::new(config).unwrap();
                        serve(rustls::StreamOwned::new(connection, stream), &requests, &*handle);
                    }
                });
            }
        });
        server
    }

    /// The address of something on this server.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The heads of the requests so far, names of headers in lower case.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

fn serve<S: Stream>(mut stream: S, requests: &Mutex<Vec<String>>, handle: &Handler) {
    let mut head = String::new();
    let mut reader = BufReader::with_capacity(1, &mut stream);
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let line = match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
            None => line.to_owned(),
        };
        head.push_str(&line);
        head.push('\n');
    }
    requests.lock().unwrap().push(head.clone());
    handle(&head, &mut stream);
    let _ = stream.flush();
}

/// The bytes of an answer; `headers` are lines ended by `\r\n`.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
