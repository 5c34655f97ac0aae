//! The protocol of NATS, as far as tests need it to fill a server: lines of
//! text, written by hand, so that nothing of what is tested takes part.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A message that came.
#[derive(Debug)]
pub struct Message {
    /// What it was published on.
    pub subject: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What it says.
    pub payload: Vec<u8>,
}

/// A connection of a test to a server.
pub struct Wire {
    stream: BufReader<TcpStream>,
    subscriptions: usize,
}

impl Wire {
    /// Connects without credentials.
    pub fn connect(address: &str) -> Self {
        Self::login(address, "")
    }

    /// Connects with more in the first message, such as `"user":"u"`.
    pub fn login(address: &str, more: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut wire = Self { stream: BufReader::new(stream), subscriptions: 0 };
        wire.line();
        let comma = if more.is_empty() { "" } else { "," };
        wire.send(
            format!(
                "CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true{comma}{more}}}\r\n\
                 PING\r\n"
            )
            .as_bytes(),
        );
        while wire.line() != "PONG" {}
        wire
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the server has closed the connection");
        let line = line.trim_end().to_owned();
        assert!(!line.starts_with("-ERR"), "{line}");
        if line == "PING" {
            self.send(b"PONG\r\n");
            return self.line();
        }
        line
    }

    /// A number that this connection has not given before.
    pub(super) fn next_number(&mut self) -> usize {
        self.subscriptions += 1;
        self.subscriptions
    }

    /// Listens to a subject.
    pub fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        self.send(format!("SUB {subject} {}\r\nPING\r\n", self.subscriptions).as_bytes());
        while self.line() != "PONG" {}
    }

    fn message(subject: &str, reply: &str, headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut block = String::new();
        if !headers.is_empty() {
            block.push_str("NATS/1.0\r\n");
            for (name, value) in headers {
                let _ = write!(block, "{name}: {value}\r\n");
            }
            block.push_str("\r\n");
        }
        let space = if reply.is_empty() { "" } else { " " };
        let mut bytes = if headers.is_empty() {
            format!("PUB {subject}{space}{reply} {}\r\n", payload.len()).into_bytes()
        } else {
            let size = block.len() + payload.len();
            format!("HPUB {subject}{space}{reply} {} {size}\r\n{block}", block.len()).into_bytes()
        };
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// Publishes without waiting; [`Wire::flush`] waits for all of it.
    pub fn publish(&mut self, subject: &str, headers: &[(&str, &str)], payload: &[u8]) {
        let bytes = Self::message(subject, "", headers, payload);
        self.send(&bytes);
    }

    /// Waits until the server has seen everything.
    pub fn flush(&mut self) {
        self.send(b"PING\r\n");
        while self.line() != "PONG" {}
    }

    /// The next message of any subscription.
    pub fn next_message(&mut self) -> Message {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split(' ').collect();
            let number = |from_end: usize| words[words.len() - from_end].parse::<usize>().unwrap();
            let (head, size) = match words[0] {
                "MSG" => (0, number(1)),
                "HMSG" => (number(2), number(1)),
                _ => continue,
            };
            let mut bytes = vec![0; size + 2];
            self.stream.read_exact(&mut bytes).unwrap();
            bytes.truncate(size);
            let payload = bytes.split_off(head);
            let text = String::from_utf8(bytes).unwrap();
            let mut headers = Vec::new();
            for line in text.lines() {
                match line.split_once(':') {
                    Some((name, value)) => {
                        headers.push((name.to_owned(), value.trim().to_owned()));
                    }
                    None if line.starts_with("NATS/1.0 ") => {
                        headers.push(("Status".to_owned(), line[9..].to_owned()));
                    }
                    None => {}
                }
            }
            return Message { subject: words[1].to_owned(), headers, payload };
        }
    }

    /// Asks and waits for the answer.
    pub fn request(&mut self, subject: &str, headers: &[(&str, &str)], payload: &[u8]) -> String {
        let inbox = format!("_INBOX.test.{}", self.subscriptions + 1);
        self.subscribe(&inbox);
        let id = self.subscriptions;
        let bytes = Self::message(subject, &inbox, headers, payload);
        self.send(&bytes);
        let answer = loop {
            let message = self.next_message();
            if message.subject == inbox {
                break message;
            }
        };
        self.send(format!("UNSUB {id}\r\n").as_bytes());
        let status = answer.headers.iter().find(|(name, _)| name == "Status");
        match status {
            Some((_, status)) => status.clone(),
            None => String::from_utf8(answer.payload).unwrap(),
        }
    }

    /// Asks over a connection of its own; `None` if there is no answer for two
    /// seconds, as from a cluster without a leader.
    pub fn ask(address: &str, subject: &str, payload: &[u8]) -> Option<String> {
        let mut wire = Self::try_connect(address)?;
        let inbox = "_INBOX.test.ask";
        let mut bytes = format!("SUB {inbox} 1\r\n").into_bytes();
        bytes.extend(Self::message(subject, inbox, &[], payload));
        wire.stream.get_mut().write_all(&bytes).ok()?;
        loop {
            let mut line = String::new();
            wire.stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.starts_with("MSG ") {
                let size: usize = line.trim_end().rsplit(' ').next()?.parse().ok()?;
                let mut bytes = vec![0; size];
                wire.stream.read_exact(&mut bytes).ok()?;
                return String::from_utf8(bytes).ok();
            }
            if line.starts_with("HMSG ") || line.starts_with("-ERR") {
                return None;
            }
        }
    }

    fn try_connect(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let mut wire = Self { stream: BufReader::new(stream), subscriptions: 0 };
        let connect = b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n";
        wire.stream.get_mut().write_all(connect).ok()?;
        let mut line = String::new();
        wire.stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(wire)
    }

    /// As [`Wire::request`] to the API of JetStream, which must not refuse.
    pub fn api(&mut self, operation: &str, body: &str) -> String {
        let answer = self.request(&format!("$JS.API.{operation}"), &[], body.as_bytes());
        assert!(answer.starts_with('{') && !answer.contains("\"error\""), "{operation}: {answer}");
        answer
    }

    /// Makes a bucket of keys.
    pub fn make_bucket(&mut self, bucket: &str, replicas: usize) {
        self.api(
            &format!("STREAM.CREATE.KV_{bucket}"),
            &format!(
                "{{\"name\":\"KV_{bucket}\",\"subjects\":[\"$KV.{bucket}.>\"],\
                 \"max_msgs_per_subject\":1,\"storage\":\"file\",\"num_replicas\":{replicas},\
                 \"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true,\
                 \"discard\":\"new\"}}"
            ),
        );
    }

    /// Stores a value.
    pub fn put(&mut self, bucket: &str, key: &str, value: &[u8]) {
        self.store(&format!("$KV.{bucket}.{key}"), &[], value);
    }

    /// Stores a message in the stream of its subject. A cluster that has just
    /// started or lost a node may be without a leader for a moment: like other
    /// clients, this one then tries again. Nothing was stored if it says so.
    fn store(&mut self, subject: &str, headers: &[(&str, &str)], payload: &[u8]) {
        crate::wait_until("a leader", || {
            let answer = self.request(subject, headers, payload);
            let is_stored = answer.contains("\"seq\"");
            assert!(is_stored || answer == "503", "{subject}: {answer}");
            is_stored
        });
    }

    /// Makes a bucket of objects.
    pub fn make_object_bucket(&mut self, bucket: &str, replicas: usize) {
        self.api(
            &format!("STREAM.CREATE.OBJ_{bucket}"),
            &format!(
                "{{\"name\":\"OBJ_{bucket}\",\"subjects\":[\"$O.{bucket}.C.>\",\"$O.{bucket}.M.>\"],\
                 \"storage\":\"file\",\"num_replicas\":{replicas},\"allow_direct\":true,\
                 \"allow_rollup_hdrs\":true,\"discard\":\"new\"}}"
            ),
        );
    }

    /// Stores the chunks of an object.
    pub fn put_chunks(&mut self, bucket: &str, id: &str, content: &[u8], size: usize) -> usize {
        let mut count = 0;
        for chunk in content.chunks(size) {
            self.store(&format!("$O.{bucket}.C.{id}"), &[], chunk);
            count += 1;
        }
        count
    }

    /// Stores the metadata of an object; `encoded` is its name in base64url.
    pub fn put_metadata(&mut self, bucket: &str, encoded: &str, metadata: &str) {
        let subject = format!("$O.{bucket}.M.{encoded}");
        self.store(&subject, &[("Nats-Rollup", "sub")], metadata.as_bytes());
    }
}
