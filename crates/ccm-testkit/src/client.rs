//! An HTTP client that sends the exact bytes of a test, for tests of servers.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// At an address.
    Tcp(SocketAddr),
    /// At a path.
    Unix(PathBuf),
}

/// A connection of either kind.
pub trait Connection: Read + Write + Send {}

impl<T: Read + Write + Send> Connection for T {}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// All headers, names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Target {
    /// Connects.
    pub fn connect(&self) -> Box<dyn Connection> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
        }
    }

    /// Sends a request with these headers and nothing else, and reads the whole
    /// answer. `Content-Length` and `Connection: close` are added.
    pub fn send(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = self.connect();
        let _ = connection.write_all(&request(line, headers, body));
        let mut reader = BufReader::new(connection);
        let (status, headers) = read_head(&mut reader);
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        Answer { status, headers, body: if is_chunked { unchunk(&bytes) } else { bytes } }
    }

    /// Sends a request and gives the answer's lines as they arrive, without the
    /// sizes of chunks.
    pub fn lines(
        &self,
        line: &str,
        headers: &[(&str, &str)],
    ) -> (u16, impl Iterator<Item = String> + use<>) {
        let mut connection = self.connect();
        connection.write_all(&request(line, headers, b"")).unwrap();
        let mut reader = BufReader::new(connection);
        let (status, _) = read_head(&mut reader);
        let lines = Chunks { reader, left: 0 };
        (status, BufReader::new(lines).lines().map_while(Result::ok))
    }
}

fn request(line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n").into_bytes();
    for (name, value) in headers {
        request.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    if !body.is_empty() {
        request.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
    }
    request.extend(b"\r\n");
    request.extend(body);
    request
}

fn read_head(reader: &mut impl std::io::BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    let _ = reader.read_line(&mut line);
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            return (status, headers);
        }
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
}

fn unchunk(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    let _ = Chunks { reader: bytes, left: 0 }.read_to_end(&mut whole);
    whole
}

/// The content of a chunked body.
struct Chunks<R> {
    reader: R,
    left: usize,
}

impl<R: std::io::BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut size = String::new();
            while size.trim().is_empty() {
                size.clear();
                if self.reader.read_line(&mut size)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = self.left.min(buffer.len());
        let count = self.reader.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}
