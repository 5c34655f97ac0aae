//! DNS queries to a server of the caller's choice.
//!
//! The system's resolver only knows the servers of the system and only addresses.
//! This asks one server for one type of record, by UDP, and by TCP where the
//! answer does not fit.

mod message;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use ccm_host::{Connection, Host, Transport};

use message::Answer;

/// How often a question is asked by UDP before the server is given up.
const TRIES: u32 = 3;

/// The types of records that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordType {
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
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).map(|&(_, kind, _)| kind)
    }

    fn code(self) -> u16 {
        TYPES.iter().find(|(_, kind, _)| *kind == self).map_or(0, |&(.., code)| code)
    }
}

/// The records of a name as a server has them, sorted; names in them end with a
/// dot. None if the server knows no such name or no such record. The error is a
/// message for users.
pub(super) fn query(
    host: &Host,
    server: SocketAddr,
    kind: RecordType,
    name: &str,
    timeout: Duration,
) -> Result<Vec<String>, String> {
    let full = match (kind, name.parse::<IpAddr>()) {
        (RecordType::Ptr, Ok(ip)) => reverse(ip),
        _ => name.to_owned(),
    };
    let deadline = Instant::now() + timeout;
    let id = u16::from_ne_bytes(host.random());
    let query = message::query(id, &full, kind.code())
        .ok_or_else(|| format!("{name} is not a name that DNS can have"))?;
    let question = Question { host, server, id, query: &query, deadline };
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => format!("{server} did not answer within {timeout:?}"),
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

/// A question to one server, until it is answered or its time is up.
struct Question<'a> {
    host: &'a Host,
    server: SocketAddr,
    id: u16,
    query: &'a [u8],
    deadline: Instant,
}

impl Question<'_> {
    fn connect(&self, transport: Transport) -> io::Result<Connection> {
        self.host.connect(transport, self.server, None, self.deadline)
    }

    fn by_udp(&self, timeout: Duration) -> io::Result<Answer> {
        let connection = self.connect(Transport::Udp)?;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for tries in 1..=TRIES {
            // The tries share the time, so that a lost packet is not the end.
            let later = timeout * (TRIES - tries) / TRIES;
            let until = self.deadline.checked_sub(later).unwrap_or(self.deadline);
            match self.ask_once(&connection, until) {
                Ok(answer) => return Ok(answer),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn ask_once(&self, connection: &Connection, until: Instant) -> io::Result<Answer> {
        connection.send(self.query)?;
        let mut buffer = [0; 4096];
        loop {
            let count = connection.receive(&mut buffer, until)?;
            // An answer to another question is none.
            if let Some(answer) = message::answer(&buffer[..count], self.id, self.query) {
                return Ok(answer);
            }
        }
    }

    fn by_tcp(&self) -> io::Result<Answer> {
        let connection = self.connect(Transport::Tcp)?;
        let length = u16::try_from(self.query.len()).unwrap_or(u16::MAX);
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend_from_slice(self.query);
        connection.send(&framed)?;
        let mut length = [0; 2];
        self.fill(&connection, &mut length)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        self.fill(&connection, &mut answer)?;
        Ok(message::answer(&answer, self.id, self.query).unwrap_or(Answer::Malformed))
    }

    fn fill(&self, connection: &Connection, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match connection.receive(&mut buffer[filled..], self.deadline)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }
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
    use std::net::UdpSocket;

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
            query(&host, server, RecordType::A, name, Duration::from_millis(120)).unwrap_err()
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
