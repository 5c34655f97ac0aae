//! Connections to addresses. A wait ends at its deadline, and when the run is
//! cancelled.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, recv,
    send, socket, sockopt::SocketError,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::{Cancel, Host};

/// How to reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By a connection.
    Tcp,
    /// By datagrams. Connecting tests only for a route and sends nothing.
    Udp,
}

/// A socket that is connected to one address, and hears from no other.
///
/// Errors of the kind `TimedOut` mean that the time is up, `Interrupted` that the
/// run was cancelled.
#[derive(Debug)]
pub struct Connection {
    fd: OwnedFd,
    cancel: Cancel,
    deadline: Instant,
}

impl Host {
    /// Connects to an address, from a local address if one is given. Everything
    /// that is done with the connection ends at the deadline.
    pub fn connect(
        &self,
        transport: Transport,
        to: SocketAddr,
        local: Option<IpAddr>,
        deadline: Instant,
    ) -> io::Result<Connection> {
        let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let kind = match transport {
            Transport::Tcp => SockType::Stream,
            Transport::Udp => SockType::Datagram,
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(family, kind, flags, None)?;
        if let Some(local) = local {
            bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(local, 0)))?;
        }
        let connection = Connection { fd, cancel: self.cancel().clone(), deadline };
        match connect(connection.fd.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) => {}
            Err(Errno::EINPROGRESS) => {
                connection.wait(PollFlags::OUT, deadline)?;
                match getsockopt(&connection.fd, SocketError)? {
                    0 => {}
                    code => return Err(Errno::from_raw(code).into()),
                }
            }
            Err(errno) => return Err(errno.into()),
        }
        Ok(connection)
    }
}

impl Connection {
    /// Sends all of it.
    pub fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait(PollFlags::OUT, self.deadline)?;
            match send(self.fd.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Waits for bytes, at most until `until`. Returns how many came; 0 at the
    /// end of a stream.
    pub fn receive(&self, buffer: &mut [u8], until: Instant) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN, until.min(self.deadline))?;
            match recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty()) {
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                done => return Ok(done?),
            }
        }
    }

    fn wait(&self, wanted: PollFlags, until: Instant) -> io::Result<()> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut watched = vec![PollFd::from_borrowed_fd(self.fd.as_fd(), wanted)];
            watched
                .extend(self.cancel.wake().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            // An interrupted wait is a short one.
            let _ = poll(&mut watched, Some(&crate::cancel::timespec(left)));
            if !watched[0].revents().is_empty() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;
    use crate::CancelReason;

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn what_listens_is_reached_and_what_does_not_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let host = Host::new();
        let tcp = |local| host.connect(Transport::Tcp, to, local, soon(5000));
        assert!(tcp(None).is_ok());
        assert!(tcp(Some([127, 0, 0, 2].into())).is_ok());
        let (_, from) = {
            let _ = listener.accept().unwrap();
            listener.accept().unwrap()
        };
        assert_eq!(from.ip(), IpAddr::from([127, 0, 0, 2]), "it came from there");
        assert!(tcp(Some(std::net::Ipv6Addr::LOCALHOST.into())).is_err());
        drop(listener);
        assert_eq!(tcp(None).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(host.connect(Transport::Udp, to, None, soon(5000)).is_ok());
    }

    #[test]
    fn bytes_go_both_ways_and_waits_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let cancel = Cancel::new().unwrap();
        let host = crate::System::default().begin(cancel.clone());
        let connection = host.connect(Transport::Tcp, to, None, soon(60_000)).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        connection.send(b"question").unwrap();
        let mut buffer = [0; 8];
        peer.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"question");
        peer.write_all(b"yes").unwrap();
        assert_eq!(connection.receive(&mut buffer, soon(5000)).unwrap(), 3);
        let late = connection.receive(&mut buffer, soon(20)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let stop = std::thread::spawn(move || {
            // Into the wait; the result is the same before it.
            std::thread::sleep(Duration::from_millis(20));
            cancel.cancel(CancelReason::Requested);
        });
        let stopped = connection.receive(&mut buffer, soon(60_000)).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        stop.join().unwrap();
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        // A listener with a full queue does not respond.
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
        let fd = fd.unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        bind(fd.as_raw_fd(), &SockaddrStorage::from(any)).unwrap();
        let backlog = nix::sys::socket::Backlog::new(0).unwrap();
        nix::sys::socket::listen(&fd, backlog).unwrap();
        let address: SockaddrStorage = nix::sys::socket::getsockname(fd.as_raw_fd()).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], address.as_sockaddr_in().unwrap().port()));
        let host = Host::new();
        let mut outcomes = Vec::new();
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(TcpStream::connect_timeout(&to, Duration::from_millis(150)));
            let connected = host.connect(Transport::Tcp, to, None, soon(150));
            outcomes.push(connected.map(drop).map_err(|error| error.kind()));
        }
        assert!(outcomes.contains(&Err(io::ErrorKind::TimedOut)), "{outcomes:?}");
    }
}
