//! URLs: their parts, their redacted form, and the targets of redirects.

use ccm_model::redact_credentials;
use ureq::http::StatusCode;

/// An `http` or `https` address, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    is_secure: bool,
    /// Host and port as written.
    authority: String,
    /// User and password as basic authentication sends them.
    pub credentials: Option<String>,
    /// From the first slash on, without fragment.
    path: String,
}

impl Url {
    /// Reads an address. The error never shows a part of it that may be secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("it is not a URL")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(format!("`{scheme}` is not supported, only http and https are")),
        };
        if rest.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err("it contains blanks or control characters".to_owned());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        let (host, port) = host_and_port(authority);
        if host.is_empty() || authority.contains('\\') {
            return Err("it has no host".to_owned());
        }
        // Never said which: it may be the start of a password.
        if port.is_some_and(|port| !is_port(port)) {
            let words = "its port is not a number from 1 to 65535 (in a password, `/` is \
                         written %2F, `?` %3F and `#` %23)";
            return Err(words.to_owned());
        }
        let credentials = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let text = |part| String::from_utf8_lossy(&percent_decoded(part)).into_owned();
            format!("{}:{}", text(name), text(password))
        });
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_secure, authority: authority.to_ascii_lowercase(), credentials, path })
    }

    /// The address that an answer with this status leads to.
    ///
    /// # Errors
    ///
    /// Returns why ccm does not go there.
    pub(super) fn redirect(&self, status: StatusCode, location: &str) -> Result<Self, String> {
        let next = self.join(location).map_err(|reason| {
            format!("the server answered {status}, with an invalid `Location` header: {reason}")
        })?;
        if self.is_secure && !next.is_secure {
            let next = next.shown();
            return Err(format!(
                "the server redirects from https to {next}, which ccm does not follow"
            ));
        }
        Ok(next)
    }

    /// The address that a redirect names, which may be relative.
    fn join(&self, location: &str) -> Result<Self, String> {
        let scheme = self.scheme();
        let is_absolute = location
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        if is_absolute {
            return Self::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}"));
        }
        let own = self.path.split('?').next().unwrap_or_default();
        let path = if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{own}{location}")
        } else {
            let folder = own.rfind('/').map_or("", |at| &own[..at]);
            format!("{folder}/{location}")
        };
        let mut joined = Self::parse(&format!("{scheme}://{}{path}", self.authority))?;
        joined.credentials.clone_from(&self.credentials);
        joined.path = without_dots(&joined.path);
        Ok(joined)
    }

    /// Whether credentials for this address may go to another: the same host,
    /// by the same way or a safer one.
    pub fn trusts(&self, other: &Self) -> bool {
        let is_same = self.is_secure == other.is_secure && self.origin() == other.origin();
        let is_upgrade = !self.is_secure
            && other.is_secure
            && self.origin() == (self.host(), "80")
            && other.origin() == (self.host(), "443");
        is_same || is_upgrade
    }

    /// The address as it may be shown: secrets in the query redacted.
    pub fn shown(&self) -> String {
        redact_credentials(&self.to_string()).into_owned()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Host and port as written.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// What is asked of the host.
    pub(super) fn path_and_query(&self) -> &str {
        &self.path
    }

    /// Host without brackets, and port.
    pub(super) fn endpoint(&self) -> (&str, &str) {
        let (host, port) = self.origin();
        (host.trim_start_matches('[').trim_end_matches(']'), port)
    }

    /// The path without query.
    pub(super) fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    fn host(&self) -> &str {
        self.origin().0
    }

    fn origin(&self) -> (&str, &str) {
        let default = if self.is_secure { "443" } else { "80" };
        let (host, port) = host_and_port(&self.authority);
        (host, port.unwrap_or(default))
    }
}

/// The colons of an IPv6 address are inside its brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    let end = if authority.starts_with('[') { authority.find(']').unwrap_or_default() } else { 0 };
    match authority[end..].find(':') {
        Some(colon) => (&authority[..end + colon], Some(&authority[end + colon + 1..])),
        None => (authority, None),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse().is_ok_and(|port: u16| port > 0)
}

/// The address without credentials.
impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority, self.path)
    }
}

/// An address as it may be shown, even one that is none: what stands where the
/// port should may be a password with a slash in it.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_host = host_and_port(host).1.is_none_or(is_port);
    let shown = match rest.rsplit_once('@') {
        Some((_, rest)) if !is_host => format!("{scheme}://{rest}"),
        _ => format!("{scheme}://{host}{path}"),
    };
    redact_credentials(&shown).into_owned()
}

/// The value of an `Authorization` header.
pub(super) fn basic(credentials: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = "Basic ".to_owned();
    for chunk in credentials.as_bytes().chunks(3) {
        let byte = |at| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            value.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    value
}

/// The bytes that a part of a URL stands for. What is no escape stays.
pub(crate) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A path with its `.` and `..` resolved; the query stays.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for part in path.split('/').skip(1) {
        ends_open = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if ends_open { "/" } else { "" };
    format!("/{}{end}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn parts() {
        for (text, shown, credentials) in [
            ("http://h", "http://h/", None),
            ("HTTPS://H:8443/a?b#c", "https://h:8443/a?b", None),
            ("http://u:p%40ss@h/a@b", "http://h/a@b", Some("u:p@ss")),
            ("http://u@h?q", "http://h/?q", Some("u:")),
            ("http://a:b@c:d@h/", "http://h/", Some("a:b@c:d")),
            ("http://[::1]:80/x", "http://[::1]:80/x", None),
            ("http://u:%zz@h/", "http://h/", Some("u:%zz")),
        ] {
            let url = url(text);
            assert_eq!(url.to_string(), shown, "{text}");
            assert_eq!(url.credentials.as_deref(), credentials, "{text}");
        }
        for text in ["", "h/x", "ftp://h/x", "http://", "http:///x", "http://u@/x", "http://a b/"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn passwords_that_look_like_ports_are_not_shown() {
        for (text, shown) in [
            ("http://u:se/cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://u:se?cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://u:se#cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://u:/cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://u:70000/cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://u:p@w:se/cret1@h/x.tgz", "http://h/x.tgz"),
            ("http://h:se/x", "http://h:se/x"),
            ("http://h:+1/x", "http://h:+1/x"),
            ("http://h:0/x", "http://h:0/x"),
        ] {
            let Err(error) = Url::parse(text) else { panic!("{text}") };
            assert!(error.contains("port") && !error.contains("cret1"), "{text}: {error}");
            assert_eq!(without_credentials(text), shown);
        }
        for text in ["http://h/a@b", "http://h:80/a@b", "http://[::1]:80/a@b", "http://[::1]/a@b"] {
            assert_eq!(without_credentials(text), text);
            assert_eq!(url(text).to_string(), text);
        }
    }

    #[test]
    fn redirects_lead_where_browsers_go() {
        let base = url("http://u:p@h/a/b/c?q=1");
        for (location, wanted) in [
            ("https://other/x", "https://other/x"),
            ("//other/x", "http://other/x"),
            ("/x", "http://h/x"),
            ("x", "http://h/a/b/x"),
            ("../x?y", "http://h/a/x?y"),
            ("../../../../x", "http://h/x"),
            ("..", "http://h/a/"),
            ("?z", "http://h/a/b/c?z"),
            ("x?next=http://y", "http://h/a/b/x?next=http://y"),
        ] {
            assert_eq!(base.join(location).unwrap().to_string(), wanted, "{location}");
        }
        assert_eq!(base.join("x").unwrap().credentials.as_deref(), Some("u:p"));
        assert_eq!(base.join("//h/x").unwrap().credentials, None);
        assert!(base.join("file:///etc/passwd").is_err());
    }

    #[test]
    fn trust_ends_at_the_host() {
        for (from, to, wanted) in [
            ("http://h/a", "http://h/b", true),
            ("http://h/a", "http://H:80/b", true),
            ("http://h/a", "https://h/b", true),
            ("https://h/a", "http://h/b", false),
            ("http://h/a", "http://h:81/b", false),
            ("http://h:8080/a", "https://h/b", false),
            ("http://h/a", "http://h.evil/b", false),
            ("http://[::1]/a", "http://[::1]:80/b", true),
        ] {
            assert_eq!(url(from).trusts(&url(to)), wanted, "{from} {to}");
        }
    }

    #[test]
    fn basic_authentication() {
        assert_eq!(basic("me:secret"), "Basic bWU6c2VjcmV0");
        assert_eq!(basic("a"), "Basic YQ==");
        assert_eq!(basic("ab"), "Basic YWI=");
        assert_eq!(basic(""), "Basic ");
    }
}
