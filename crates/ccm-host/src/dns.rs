//! DNS queries to a server of the caller's choice.
//!
//! The system's resolver only knows the servers of the system and only addresses.
//! This asks one server for one type of record, by UDP, and by TCP where the
//! answer does not fit.

mod message;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::Host;
use message::Answer;

/// How often a question is asked by UDP before the server is given up.
const TRIES: u32 = 3;
/// How often a wait looks whether the run was cancelled.
const SLICE: Duration = Duration::from_millis(50);

/// The types of records that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    /// An IPv4 address.
    A,
    /// An IPv6 address.
    Aaaa,
    /// The name that a name is another one for.
    Cname,
    /// A mail server with its preference.
    Mx,
    /// A name server.
    Ns,
    /// The name of an address.
    Ptr,
    /// A service: priority, weight, port and name.
    Srv,
    /// Text.
    Txt,
    /// Which authorities may issue certificates.
    Caa,
}

/// All types of records with their names.
const TYPES: [(&str, RecordType, u16); 9] = [
    ("A", RecordType::A, 1),
    ("AAAA", RecordType::Aaaa, 28),
    ("CNAME", RecordType::Cname, 5),
    ("MX", RecordType::Mx, 15),
    ("NS", RecordType::Ns, 2),
    ("PTR", RecordType::Ptr, 12),
    ("SRV", RecordType::Srv, 33),
    ("TXT", RecordType::Txt, 16),
    ("CAA", RecordType::Caa, 257),
];

impl RecordType {
    /// The type of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).map(|&(_, kind, _)| kind)
    }

    /// The names of all types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TYPES.iter().map(|&(name, ..)| name)
    }

    fn code(self) -> u16 {
        TYPES.iter().find(|(_, kind, _)| *kind == self).map_or(0, |&(.., code)| code)
    }
}

impl Host {
    /// The records of a name as a server has them, sorted; names in them end
    /// with a dot. None if the server knows no such name or no such record. The
    /// error is a message for users.
    pub fn query_dns(
        &self,
        server: SocketAddr,
        kind: RecordType,
        name: &str,
        timeout: Duration,
    ) -> Result<Vec<String>, String> {
        let asked = match (kind, name.parse::<IpAddr>()) {
            (RecordType::Ptr, Ok(ip)) => reverse(ip),
            _ => name.to_owned(),
        };
        let deadline = Instant::now() + timeout;
        let id = u16::from_ne_bytes(self.random());
        let query = message::query(id, &asked, kind.code())
            .ok_or_else(|| format!("{name} is not a name that DNS can have"))?;
        let question = Question { host: self, server, id, query: &query, deadline };
        let late = || format!("{server} did not answer within {timeout:?}");
        let said = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => late(),
            io::ErrorKind::Interrupted => "the run was interrupted".to_owned(),
            _ => format!("{server}: {error}"),
        };
        let answer = match question.by_udp(timeout).map_err(said)? {
            Answer::Truncated => question.by_tcp().map_err(said)?,
            answer => answer,
        };
        match answer {
            Answer::Records(records) => {
                let mut found: Vec<String> = records
                    .into_iter()
                    .filter(|record| record.kind == kind.code())
                    .map(|record| record.text)
                    .collect();
                found.sort_unstable();
                Ok(found)
            }
            Answer::NoSuchName => Ok(Vec::new()),
            Answer::Refused(code) => Err(format!("{server} answered with error {code}")),
            Answer::Truncated => Err(format!("{server} truncated its answer, even over TCP")),
            Answer::Malformed => Err(format!("{server} sent an answer that is not DNS")),
        }
    }
}

/// A question to one server, until it is answered or its time is up.
struct Question<'a> {
    host: &'a Host,
    server: SocketAddr,
    id: u16,
    query: &'a [u8],
    deadline: Instant,
}

impl Question<'_> {
    /// Whatever is left of the time, in pieces, so that a cancelled run ends soon.
    fn patience(&self, until: Instant) -> io::Result<Duration> {
        if self.host.cancel().is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let left = until.min(self.deadline).saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.min(SLICE)) }
    }

    fn by_udp(&self, timeout: Duration) -> io::Result<Answer> {
        let any = if self.server.is_ipv4() {
            IpAddr::from(Ipv4Addr::UNSPECIFIED)
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0))?;
        // Then only this server can respond.
        socket.connect(self.server)?;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for tries in 1..=TRIES {
            // The tries share the time, so that a lost packet is not the end.
            let later = timeout * (TRIES - tries) / TRIES;
            let until = self.deadline.checked_sub(later).unwrap_or(self.deadline);
            match self.ask_once(&socket, until) {
                Ok(answer) => return Ok(answer),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn ask_once(&self, socket: &UdpSocket, until: Instant) -> io::Result<Answer> {
        socket.send(self.query)?;
        let mut buffer = [0; 4096];
        loop {
            socket.set_read_timeout(Some(self.patience(until)?))?;
            match socket.recv(&mut buffer) {
                // An answer to another question is none.
                Ok(count) => {
                    if let Some(answer) = message::answer(&buffer[..count], self.id, self.query) {
                        return Ok(answer);
                    }
                }
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn by_tcp(&self) -> io::Result<Answer> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut stream = TcpStream::connect_timeout(&self.server, left)?;
        stream.set_write_timeout(Some(left))?;
        let length = u16::try_from(self.query.len()).unwrap_or(u16::MAX);
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend_from_slice(self.query);
        stream.write_all(&framed)?;
        let mut length = [0; 2];
        self.fill(&mut stream, &mut length)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        self.fill(&mut stream, &mut answer)?;
        Ok(message::answer(&answer, self.id, self.query).unwrap_or(Answer::Malformed))
    }

    fn fill(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            stream.set_read_timeout(Some(self.patience(self.deadline)?))?;
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a wait only ended so that someone can look around.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// The name under which an address has its own name.
fn reverse(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(ip) => {
            let bytes = ip.octets();
            let nibbles = bytes.iter().rev().flat_map(|byte| [byte & 0xf, byte >> 4]);
            let digits: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
            format!("{digits}ip6.arpa")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_names_to_ask_for() {
        assert_eq!(reverse([192, 0, 2, 7].into()), "7.2.0.192.in-addr.arpa");
        let name = reverse("2001:db8::1".parse().unwrap());
        assert!(name.starts_with("1.0.0.0."), "{name}");
        assert!(name.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"), "{name}");
    }

    #[test]
    fn a_server_that_is_not_there_is_said_so() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = socket.local_addr().unwrap();
        let host = Host::new();
        let ask = |name: &str| {
            host.query_dns(server, RecordType::A, name, Duration::from_millis(120)).unwrap_err()
        };
        let begin = Instant::now();
        assert!(ask("x.test").contains("did not answer within 120ms"));
        assert!(begin.elapsed() < Duration::from_secs(5));
        let mut buffer = [0; 512];
        let asked = (0..3).filter(|_| socket.recv(&mut buffer).is_ok()).count();
        assert_eq!(asked, 3, "it was asked three times");
        assert!(ask(&"x".repeat(64)).contains("not a name"));
        drop(socket);
        assert!(!ask("x.test").is_empty());
    }
}
