//! The servers of a context.

/// Addresses of servers, without credentials, and the credentials that were in
/// their URLs.
#[derive(Clone, Default)]
pub(crate) struct Servers {
    pub(crate) addresses: Vec<String>,
    /// Whether one of them demands TLS.
    pub(crate) is_tls: bool,
    pub(crate) user: Option<(String, String)>,
    pub(crate) token: Option<String>,
}

impl Servers {
    /// Reads one URL, or several with commas between them. An error does not
    /// repeat what may be a password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut servers = Self::default();
        for url in text.split(',').map(str::trim).filter(|url| !url.is_empty()) {
            servers.add(url)?;
        }
        if servers.addresses.is_empty() {
            return Err("it names no server".to_owned());
        }
        Ok(servers)
    }

    fn add(&mut self, url: &str) -> Result<(), String> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
        let scheme = scheme.to_ascii_lowercase();
        match scheme.as_str() {
            "nats" | "tls" => {}
            "ws" | "wss" => return Err("WebSockets are not supported".to_owned()),
            _ => return Err("a URL begins with nats:// or tls://".to_owned()),
        }
        let rest = rest.trim_end_matches('/');
        let (credentials, address) = match rest.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, rest),
        };
        match credentials.map(|credentials| credentials.split_once(':')) {
            Some(Some((user, password))) if self.user.is_none() => {
                self.user = Some((decoded(user), decoded(password)));
            }
            Some(None) if self.token.is_none() => self.token = credentials.map(decoded),
            _ => {}
        }
        let address = with_port(address).ok_or("an address is `host` or `host:port`")?;
        self.is_tls |= scheme == "tls";
        self.addresses.push(format!("{scheme}://{address}"));
        Ok(())
    }

    /// The URLs as they may be shown.
    pub(crate) fn shown(&self) -> String {
        self.addresses.join(",")
    }

    pub(crate) fn secrets(&self) -> Vec<String> {
        let password = self.user.as_ref().map(|(_, password)| password.clone());
        password.into_iter().chain(self.token.clone()).collect()
    }
}

/// An address with its port.
fn with_port(address: &str) -> Option<String> {
    const PORT: &str = "4222";
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '?' | '#');
    if address.is_empty() || address.contains(is_bad) {
        return None;
    }
    let (host, port) = match address.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((_, port)) if port.ends_with(']') => (address, PORT),
        Some((host, port)) => (host, port),
        None => (address, PORT),
    };
    let is_ipv6 = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (is_ipv6 || !host.contains([':', '[', ']']));
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    is_host.then(|| format!("{host}:{port}"))
}

/// `%41` is `A`.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_scheme_and_port() {
        for (text, wanted) in [
            ("nats://a", "nats://a:4222"),
            ("a", "nats://a:4222"),
            ("a:1", "nats://a:1"),
            ("TLS://a:5/", "tls://a:5"),
            ("[::1]", "nats://[::1]:4222"),
            ("nats://[::1]:7", "nats://[::1]:7"),
            ("a, nats://b:2,", "nats://a:4222,nats://b:2"),
            ("nats://u:p@a", "nats://a:4222"),
            ("nats://t@a:9", "nats://a:9"),
            ("nats://u:p@ss@a", "nats://a:4222"),
        ] {
            let servers = Servers::parse(text).map(|servers| servers.shown());
            assert_eq!(servers.as_deref(), Ok(wanted), "{text}");
        }
        for (text, words) in [
            ("", "no server"),
            (" , ", "no server"),
            ("ws://a", "WebSockets"),
            ("wss://a", "WebSockets"),
            ("http://a", "nats://"),
            ("nats://", "host"),
            ("nats://a:x", "host"),
            ("nats://a:0", "host"),
            ("nats://a:70000", "host"),
            ("nats://::1", "host"),
            ("nats://u:hunter2@a b", "host"),
            ("nats://a/path", "host"),
        ] {
            let reason = Servers::parse(text).err().unwrap_or_default();
            assert!(reason.contains(words), "{text}: {reason}");
            assert!(!reason.contains("hunter2"), "{text}: {reason}");
        }
    }

    #[test]
    fn credentials_are_taken_out_and_known_as_secrets() {
        let servers = Servers::parse("nats://ann:p%40ss@a,nats://bob:other@b").unwrap();
        assert_eq!(servers.user, Some(("ann".to_owned(), "p@ss".to_owned())));
        assert_eq!(servers.secrets(), ["p@ss"]);
        let servers = Servers::parse("nats://s3cr3t@a").unwrap();
        assert_eq!((servers.user, servers.token.as_deref()), (None, Some("s3cr3t")));
    }
}
