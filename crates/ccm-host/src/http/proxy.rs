//! Proxies that the environment names.
//!
//! The client below speaks CONNECT to every proxy. Many proxies allow that only
//! for port 443, so a plain `http` address is asked for by its absolute URI, as
//! proxies have always been asked.

use std::fmt;
use std::net::IpAddr;

use ureq::config::Config;
use ureq::http::header::{HOST, HeaderName, PROXY_AUTHORIZATION};
use ureq::typestate::WithoutBody;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};
use ureq::{Agent, ProxyProtocol, RequestBuilder};

use super::resolve::TimedResolver;
use super::url::{Url, basic};
use crate::Host;

/// The proxy for one address.
pub(super) struct Proxy(ureq::Proxy);

impl Proxy {
    /// The proxy for an address: `http_proxy` or `https_proxy` by its scheme,
    /// else `all_proxy`, in lower or upper case, unless `no_proxy` names it.
    pub(super) fn find(host: &Host, url: &Url) -> Result<Option<Self>, String> {
        let own = if url.is_secure() {
            ["https_proxy", "HTTPS_PROXY"]
        } else {
            ["http_proxy", "HTTP_PROXY"]
        };
        let variable = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, host.env(name)?)))
        };
        let Some((name, value)) = variable(own).or_else(|| variable(["all_proxy", "ALL_PROXY"]))
        else {
            return Ok(None);
        };
        let except = variable(["no_proxy", "NO_PROXY"]).map(|(_, list)| list);
        let except = except.unwrap_or_default();
        if is_excepted(&except.to_string_lossy(), url.endpoint()) {
            return Ok(None);
        }
        // The value may hold a password.
        let proxy = value.to_str().and_then(|value| ureq::Proxy::new(value).ok());
        proxy.map(|proxy| Some(Self(proxy))).ok_or_else(|| format!("{name} is not a proxy's URL"))
    }

    /// A proxy that someone names.
    pub(super) fn given(url: &str) -> Result<Self, String> {
        // The value may hold a password.
        ureq::Proxy::new(url).map(Self).map_err(|_| "proxy: is not a proxy's URL".to_owned())
    }

    /// The client's own notion of it.
    pub(super) fn inner(&self) -> &ureq::Proxy {
        &self.0
    }

    /// The agent that a plain address needs: one that asks the proxy for the
    /// whole address. `None` where the client's own way is right.
    pub(super) fn agent(&self, config: Config, url: &Url) -> Option<Agent> {
        let is_known = matches!(self.0.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
        let is_asked = is_known && !url.is_secure();
        is_asked.then(|| {
            let origin = format!("http://{}", url.authority());
            let connector = DefaultConnector::new().chain(AbsoluteForm { origin });
            Agent::with_parts(config, connector, TimedResolver)
        })
    }

    /// The request for an address through this proxy, by the agent for it.
    pub(super) fn request(&self, agent: &Agent, url: &Url) -> RequestBuilder<WithoutBody> {
        match self.absolute(url) {
            Some((target, headers)) => {
                let request = agent.get(target);
                headers
                    .into_iter()
                    .fold(request, |request, (name, value)| request.header(name, value))
            }
            None => {
                let request = agent.get(url.to_string());
                request.config().proxy(Some(self.0.clone())).build()
            }
        }
    }

    /// Where a request for a plain address goes, and the headers that tell the
    /// proxy what it is for. `None` where the client's own way is right.
    pub(super) fn absolute(&self, url: &Url) -> Option<(String, Vec<(HeaderName, String)>)> {
        let scheme = match self.0.protocol() {
            ProxyProtocol::Http if !url.is_secure() => "http",
            ProxyProtocol::Https if !url.is_secure() => "https",
            _ => return None,
        };
        let mut headers = vec![(HOST, url.authority().to_owned())];
        if let Some(name) = self.0.username() {
            let password = self.0.password().unwrap_or_default();
            headers.push((PROXY_AUTHORIZATION, basic(&format!("{name}:{password}"))));
        }
        Some((format!("{scheme}://{self}{}", url.path_and_query()), headers))
    }
}

/// Makes connections whose request names the whole address.
#[derive(Debug)]
struct AbsoluteForm {
    /// Scheme, host and port, which go before the path.
    origin: String,
}

impl<T: Transport> Connector<T> for AbsoluteForm {
    type Out = Prefixed<T>;

    fn connect(
        &self,
        _details: &ConnectionDetails<'_>,
        chained: Option<T>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let origin = Some(self.origin.clone());
        Ok(chained.map(|connection| Prefixed { connection, origin }))
    }
}

/// A connection to a proxy.
#[derive(Debug)]
struct Prefixed<T> {
    connection: T,
    /// Prefix of the request path, until the request is sent.
    origin: Option<String>,
}

impl<T: Transport> Transport for Prefixed<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.connection.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let Some(origin) = self.origin.take() else {
            return self.connection.transmit_output(amount, timeout);
        };
        let output = self.connection.buffers().output();
        let mut head = output.get(..amount).unwrap_or_default().to_vec();
        // Behind the method.
        if let Some(blank) = head.iter().position(|&byte| byte == b' ') {
            let path = head.split_off(blank + 1);
            head.extend(origin.bytes().chain(path));
        }
        let size = output.len().max(1);
        for part in head.chunks(size) {
            let output = self.connection.buffers().output();
            if let Some(output) = output.get_mut(..part.len()) {
                output.copy_from_slice(part);
            }
            self.connection.transmit_output(part.len(), timeout)?;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.connection.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        // The next request may be for another address.
        false
    }

    fn is_tls(&self) -> bool {
        self.connection.is_tls()
    }
}

/// Host and port, without credentials.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.host(), self.0.port())
    }
}

/// Whether a `no_proxy` list names a host: `*` all of them, a domain itself and
/// everything below it, an address itself, a network its addresses. Each entry
/// may name a port.
fn is_excepted(list: &str, (host, port): (&str, &str)) -> bool {
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        let address = host.parse::<IpAddr>().ok();
        if let Some((network, length)) = entry.split_once('/') {
            let (network, length) = (network.parse::<IpAddr>(), length.parse::<u32>());
            return match (network, length, address) {
                (Ok(network), Ok(length), Some(address)) => contains(network, length, address),
                _ => false,
            };
        }
        let plain = entry.trim_start_matches('[').trim_end_matches(']');
        if let (Ok(entry), Some(address)) = (plain.parse::<IpAddr>(), address) {
            return entry == address;
        }
        let (name, entry_port) = match entry.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (name, Some(port))
            }
            _ => (entry, None),
        };
        if entry_port.is_some_and(|entry_port| entry_port != port) {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let name = name.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        let is_below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
        !name.is_empty() && (host == name || is_below && address.is_none())
    })
}

fn contains(network: IpAddr, length: u32, address: IpAddr) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let Some(rest) = u32::checked_sub(width, length) else { return false };
    (network ^ address).checked_shr(rest).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_exceptions() {
        for (list, host, port, wanted) in [
            ("", "h", "80", false),
            ("*", "h", "80", true),
            ("example.com", "example.com", "80", true),
            ("example.com", "www.example.com", "80", true),
            (".example.com", "www.EXAMPLE.com", "80", true),
            ("*.example.com", "www.example.com", "80", true),
            ("example.com", "badexample.com", "80", false),
            ("a, localhost ,b", "localhost", "80", true),
            ("localhost:8080", "localhost", "8080", true),
            ("localhost:8080", "localhost", "80", false),
            ("127.0.0.1", "127.0.0.1", "80", true),
            ("127.0.0.1:80", "127.0.0.1", "80", true),
            ("127.0.0.1:81", "127.0.0.1", "80", false),
            ("10.0.0.0/8", "10.1.2.3", "80", true),
            ("10.0.0.0/8", "11.1.2.3", "80", false),
            ("0.0.0.0/0", "11.1.2.3", "80", true),
            ("10.0.0.0/99", "10.0.0.0", "80", false),
            ("::1", "::1", "80", true),
            ("[::1]:80", "::1", "80", true),
            ("fe80::/10", "fe80::1", "80", true),
            ("0.1", "10.0.0.1", "80", false),
        ] {
            assert_eq!(is_excepted(list, (host, port)), wanted, "{list} {host}:{port}");
        }
    }
}
