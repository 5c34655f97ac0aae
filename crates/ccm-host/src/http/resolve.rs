//! Resolves host names to addresses, within a time limit.
//!
//! The client's own resolver does the same but panics when no thread can be
//! started.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::{self, RecvTimeoutError};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// As many addresses of a host are tried.
const MAX_ADDRESSES: usize = 16;

#[derive(Debug)]
pub(super) struct TimedResolver;

impl Resolver for TimedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let parts = uri.scheme().zip(uri.authority());
        let address = parts
            .and_then(|(scheme, authority)| DefaultResolver::host_and_port(scheme, authority))
            .ok_or(Error::HostNotFound)?;
        let found: Vec<SocketAddr> =
            if let Ok(known) = address.parse() { vec![known] } else { look_up(address, timeout)? };
        let mut addresses = self.empty();
        let family = config.ip_family();
        let wanted = family.keep_wanted(found.into_iter());
        wanted.take(MAX_ADDRESSES).for_each(|found| addresses.push(found));
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}

/// Asks the system, in a thread of its own: the question cannot be taken back.
fn look_up(address: String, timeout: NextTimeout) -> Result<Vec<SocketAddr>, Error> {
    let (sender, answer) = mpsc::sync_channel(1);
    let ask = move || drop(sender.send(address.to_socket_addrs()));
    std::thread::Builder::new().name("resolve".into()).spawn(ask)?;
    match answer.recv_timeout(*timeout.after) {
        Ok(found) => Ok(found?.collect()),
        Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(timeout.reason)),
        Err(RecvTimeoutError::Disconnected) => Err(Error::HostNotFound),
    }
}
