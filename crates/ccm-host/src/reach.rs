//! Tests whether an address is reachable.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, socket,
    sockopt::SocketError,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::Host;

/// How to reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By a connection.
    Tcp,
    /// Tests only for a route; sends nothing.
    Udp,
}

impl Host {
    /// Connects to a port of a host, from a local address if one is given, and
    /// hangs up. The error is a message for users.
    pub fn reach(
        &self,
        transport: Transport,
        (name, port): (&str, u16),
        local: Option<IpAddr>,
        timeout: Duration,
    ) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        let mut last = format!("{name} has no address");
        for ip in self.resolve(name, timeout)? {
            if local.is_some_and(|local| local.is_ipv4() != ip.is_ipv4()) {
                last = format!("{ip} is not in the address family of `local-address`");
                continue;
            }
            match self.attempt(transport, SocketAddr::new(ip, port), local, deadline) {
                Ok(()) => return Ok(()),
                Err(Errno::ETIMEDOUT) => last = format!("no answer within {timeout:?}"),
                Err(Errno::ECANCELED) => return Err("the run was interrupted".to_owned()),
                Err(errno) => last = errno.desc().to_lowercase(),
            }
        }
        Err(last)
    }

    fn attempt(
        &self,
        transport: Transport,
        to: SocketAddr,
        local: Option<IpAddr>,
        deadline: Instant,
    ) -> nix::Result<()> {
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
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) => return Ok(()),
            Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno),
        }
        self.wait_until_connected(&fd, deadline)
    }

    fn wait_until_connected(&self, fd: &OwnedFd, deadline: Instant) -> nix::Result<()> {
        loop {
            if self.cancel().is_cancelled() {
                return Err(Errno::ECANCELED);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Errno::ETIMEDOUT);
            }
            let mut watched = vec![PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT)];
            watched
                .extend(self.cancel().wake().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            // An interrupted wait is a short one.
            let _ = poll(&mut watched, Some(&left));
            if !watched[0].revents().is_empty() {
                return match getsockopt(fd, SocketError)? {
                    0 => Ok(()),
                    code => Err(Errno::from_raw(code)),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SECOND: Duration = Duration::from_secs(5);

    #[test]
    fn what_listens_is_reached_and_what_does_not_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let host = Host::new();
        let tcp = |port, local| host.reach(Transport::Tcp, ("127.0.0.1", port), local, SECOND);
        assert_eq!(tcp(port, None), Ok(()));
        assert_eq!(tcp(port, Some([127, 0, 0, 2].into())), Ok(()));
        let (_, from) = {
            let _ = listener.accept().unwrap();
            listener.accept().unwrap()
        };
        assert_eq!(from.ip(), IpAddr::from([127, 0, 0, 2]), "it came from there");
        assert!(tcp(port, Some(std::net::Ipv6Addr::LOCALHOST.into())).is_err());
        drop(listener);
        assert_eq!(tcp(port, None), Err("connection refused".to_owned()));
        assert_eq!(host.reach(Transport::Udp, ("127.0.0.1", port), None, SECOND), Ok(()));
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
        let port = address.as_sockaddr_in().unwrap().port();
        let host = Host::new();
        let short = Duration::from_millis(150);
        let mut outcomes = Vec::new();
        let mut held = Vec::new();
        for _ in 0..8 {
            let to = SocketAddr::from(([127, 0, 0, 1], port));
            held.push(std::net::TcpStream::connect_timeout(&to, short));
            outcomes.push(host.reach(Transport::Tcp, ("127.0.0.1", port), None, short));
        }
        let late = Err(format!("no answer within {short:?}"));
        assert!(outcomes.contains(&late), "{outcomes:?}");
    }
}
