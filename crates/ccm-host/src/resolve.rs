//! Resolves host names to addresses with the system's resolver, within a time
//! limit.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::Host;

/// How often a wait looks whether the run was cancelled.
const SLICE: Duration = Duration::from_millis(50);

impl Host {
    /// The addresses of a host name, sorted, or the reason why there are none.
    ///
    /// The question cannot be taken back, so it is asked in a thread of its own,
    /// and only once at a time for each name.
    pub fn resolve(&self, name: &str, timeout: Duration) -> Result<Vec<IpAddr>, String> {
        if let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(vec![ip]);
        }
        let late = || format!("{name} was not resolved within {timeout:?}");
        let deadline = Instant::now() + timeout;
        let query = self.query_until("resolve", Path::new(name), deadline).ok_or_else(late)?;
        let (sender, answer) = mpsc::sync_channel(1);
        let asked = name.to_owned();
        let ask = move || {
            let found = (asked.as_str(), 0).to_socket_addrs();
            drop(query);
            let _ = sender.send(found.map(Iterator::collect::<Vec<_>>));
        };
        std::thread::Builder::new()
            .name("resolve".into())
            .spawn(ask)
            .map_err(|error| format!("{name} cannot be resolved: {error}"))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match answer.recv_timeout(left.min(SLICE)) {
                Ok(Ok(found)) => {
                    let mut found: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
                    found.sort_unstable_by_key(ToString::to_string);
                    found.dedup();
                    return Ok(found);
                }
                Ok(Err(error)) => return Err(format!("{name} cannot be resolved: {error}")),
                Err(RecvTimeoutError::Disconnected) => return Err(late()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.cancel().is_cancelled() {
                return Err("the run was interrupted".to_owned());
            }
            if left.is_zero() {
                return Err(late());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_themselves_and_names_are_looked_up() {
        let host = Host::new();
        let second = Duration::from_secs(5);
        assert_eq!(host.resolve("127.0.0.1", second), Ok(vec![[127, 0, 0, 1].into()]));
        assert_eq!(host.resolve("[::1]", second).unwrap().len(), 1);
        let localhost = host.resolve("localhost", second).unwrap();
        assert!(localhost.iter().all(IpAddr::is_loopback) && !localhost.is_empty());
        let error = host.resolve("no-such-host.invalid", second).unwrap_err();
        assert!(error.contains("no-such-host.invalid"), "{error}");
    }
}
