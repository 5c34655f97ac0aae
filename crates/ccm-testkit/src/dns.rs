//! A minimal DNS server that can send invalid responses.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How a DNS server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsManner {
    /// As it should.
    Normal,
    /// As if the first questions had been lost.
    LosesFirst(usize),
    /// By UDP only that the answer does not fit.
    Truncates,
    /// With bytes that are no DNS.
    Babbles,
    /// To another question, and then to this one.
    Confused,
}

/// A record: the name without a final dot, the code of its type, its data as
/// bytes.
pub type DnsRecord = (&'static str, u16, Vec<u8>);

/// A server on a free port of the loopback interface, until it is dropped.
pub struct DnsServer {
    /// Where it listens, by UDP and TCP.
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl DnsServer {
    /// Answers with these records, and that there is no such name to the rest.
    ///
    /// # Panics
    ///
    /// When no port is free for both UDP and TCP.
    pub fn start(manner: DnsManner, records: Vec<DnsRecord>) -> Self {
        let (udp, tcp) = (0..50)
            .find_map(|_| {
                let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
                let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
                Some((udp, tcp))
            })
            .unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicUsize::new(0));
        let server = Self {
            address: udp.local_addr().unwrap(),
            is_over: Arc::clone(&is_over),
            asked: Arc::clone(&asked),
        };
        udp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let by_tcp = records.clone();
        let tcp_is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                if tcp_is_over.load(Ordering::Relaxed) {
                    return;
                }
                serve(stream, &by_tcp);
            }
        });
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while !is_over.load(Ordering::Relaxed) {
                let Ok((count, from)) = udp.recv_from(&mut buffer) else { continue };
                let query = &buffer[..count];
                let asked = asked.fetch_add(1, Ordering::Relaxed);
                let mut reply = answer(query, &records);
                match manner {
                    DnsManner::LosesFirst(lost) if asked < lost => continue,
                    DnsManner::Truncates => {
                        reply = query.to_vec();
                        reply[2] |= 0x82;
                    }
                    DnsManner::Babbles => {
                        reply.truncate(query.len());
                        reply.extend([0xc0; 7]);
                    }
                    DnsManner::Confused => {
                        let mut other = reply.clone();
                        other[0] ^= 0xff;
                        let _ = udp.send_to(&other, from);
                    }
                    _ => {}
                }
                let _ = udp.send_to(&reply, from);
            }
        });
        server
    }

    /// How many questions came by UDP.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, records: &[DnsRecord]) {
    let mut length = [0; 2];
    if stream.read_exact(&mut length).is_err() {
        return;
    }
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    if stream.read_exact(&mut query).is_err() {
        return;
    }
    let reply = answer(&query, records);
    let _ = stream.write_all(&(reply.len() as u16).to_be_bytes());
    let _ = stream.write_all(&reply);
}

/// The bytes of a name.
pub fn dns_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.trim_end_matches('.').split('.').filter(|label| !label.is_empty()) {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn answer(query: &[u8], records: &[DnsRecord]) -> Vec<u8> {
    let question = query.get(12..query.len().saturating_sub(4)).unwrap_or_default();
    let kind = query.get(query.len().saturating_sub(4)..query.len().saturating_sub(2));
    let kind = kind.map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
    let of_name = |record: &&DnsRecord| dns_name(record.0).eq_ignore_ascii_case(question);
    let known = records.iter().any(|record| of_name(&record));
    let found: Vec<_> = records.iter().filter(of_name).filter(|record| record.1 == kind).collect();
    let mut reply = query.to_vec();
    reply[2] |= 0x80;
    reply[3] = if known { 0 } else { 3 };
    reply[7] = found.len() as u8;
    for (_, kind, data) in found {
        // The name is that of the question.
        reply.extend([0xc0, 12]);
        for word in [*kind, 1, 0, 60, data.len() as u16] {
            reply.extend(word.to_be_bytes());
        }
        reply.extend(data);
    }
    reply
}
