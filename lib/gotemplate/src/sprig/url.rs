//! URLs taken apart and put together.

use std::fmt::Write as _;

use super::dicts::text_member;
use crate::functions::Native;
use crate::functions::Type::{Dict as D, String};
use crate::val::{Dict, Val};

type Text = std::string::String;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("urlJoin", &[D], |context, a| {
        let dict = a.dict(0);
        let member = |name: &str| text_member(&dict, name);
        let userinfo = member("userinfo")?;
        let user = if userinfo.is_empty() {
            None
        } else {
            Url::parse(&format!("proto://{userinfo}@host"))?.user
        };
        let url = Url {
            scheme: member("scheme")?,
            opaque: member("opaque")?,
            user,
            host: member("host")?,
            path: member("path")?,
            query: Some(member("query")?).filter(|query| !query.is_empty()),
            fragment: member("fragment")?,
        };
        let text = url.to_string();
        context.budget.spend_bytes(text.len())?;
        Ok(text.into())
    }),
    Native::new("urlParse", &[String], |_, a| {
        let url = Url::parse(&a.text(0))?;
        let members = [
            ("scheme", url.scheme.as_str()),
            ("host", &url.host),
            ("hostname", url.hostname()),
            ("path", &url.path),
            ("query", url.query.as_deref().unwrap_or_default()),
            ("opaque", &url.opaque),
            ("fragment", &url.fragment),
            ("userinfo", url.user.as_deref().unwrap_or_default()),
        ];
        Ok(members.map(|(name, text)| (name, Val::from(text))).into_iter().collect::<Dict>().into())
    }),
];

/// Its parts as text without escapes, but the query and the user as written.
#[derive(Debug, Default)]
struct Url {
    scheme: Text,
    opaque: Text,
    user: Option<Text>,
    host: Text,
    path: Text,
    query: Option<Text>,
    fragment: Text,
}

/// Which characters a part may hold unescaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Path,
    Fragment,
}

impl Part {
    fn allows(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            return true;
        }
        let extra: &[u8] = match self {
            Self::User => b"$&+,;=",
            Self::Host => b"!$&'()*+,;=:[]<>\"",
            Self::Path => b"$&+,/:;=@",
            Self::Fragment => b"$&+,/:;=?@!()*",
        };
        extra.contains(&byte)
    }

    fn escape(self, text: &str) -> Text {
        let mut out = Text::with_capacity(text.len());
        for byte in text.bytes() {
            if self.allows(byte) {
                out.push(byte.into());
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    }

    fn unescape(self, text: &str) -> Result<Text, Text> {
        let mut out = Vec::with_capacity(text.len());
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                if self == Self::Host && byte.is_ascii() && !self.allows(byte) {
                    return Err(format!("invalid character {:?} in host name", char::from(byte)));
                }
                out.push(byte);
                continue;
            }
            let rest = &text[text.len() - bytes.len()..];
            let code = rest.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
            let code = code.filter(|_| !rest.starts_with('+'));
            match code {
                // A host name has escapes only beyond ASCII.
                Some(code) if self != Self::Host || !code.is_ascii() || code == b'%' => {
                    out.push(code);
                }
                _ => return Err(format!("invalid URL escape {:?}", format!("%{rest:.2}"))),
            }
            bytes.nth(1);
        }
        Ok(Text::from_utf8_lossy(&out).into_owned())
    }
}

impl Url {
    fn parse(text: &str) -> Result<Self, Text> {
        let wrong = |reason: &str| format!("unable to parse url: parse {text:?}: {reason}");
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(wrong("invalid control character in URL"));
        }
        let mut url = Self::default();
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        url.fragment = Part::Fragment.unescape(fragment).map_err(|error| wrong(&error))?;
        if body == "*" {
            body.clone_into(&mut url.path);
            return Ok(url);
        }
        let (scheme, rest) = scheme(body).map_err(wrong)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        url.query = query.map(str::to_owned);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err(wrong("first path segment in URL cannot contain colon"));
            }
        }
        if rest.starts_with("//") && (!url.scheme.is_empty() || !rest.starts_with("///")) {
            let authority = rest[2..].split('/').next().unwrap_or_default();
            rest = &rest[2 + authority.len()..];
            url.authority(authority).map_err(|error| wrong(&error))?;
        }
        url.path = Part::Path.unescape(rest).map_err(|error| wrong(&error))?;
        Ok(url)
    }

    fn authority(&mut self, text: &str) -> Result<(), Text> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        let port = match host.rfind(']') {
            _ if !host.starts_with('[') => host.rfind(':').map_or("", |at| &host[at..]),
            Some(end) => &host[end + 1..],
            None => return Err("missing ']' in host".to_owned()),
        };
        let digits = port.strip_prefix(':').unwrap_or(if port.is_empty() { "" } else { "x" });
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("invalid port {port:?} after host"));
        }
        self.host = Part::Host.unescape(host)?;
        if let Some(user) = user {
            let allowed =
                |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            let escaped =
                |text: &str| Ok::<_, Text>(Part::User.escape(&Part::User.unescape(text)?));
            self.user = Some(match user.split_once(':') {
                Some((name, password)) => format!("{}:{}", escaped(name)?, escaped(password)?),
                None => escaped(user)?,
            });
        }
        Ok(())
    }

    /// The host without its port and brackets.
    fn hostname(&self) -> &str {
        let host = &self.host;
        if let Some(inside) = host.strip_prefix('[')
            && let Some((inside, _)) = inside.split_once(']')
        {
            return inside;
        }
        let port = host.rfind(':').filter(|at| host[at + 1..].bytes().all(|b| b.is_ascii_digit()));
        port.map_or(host, |at| &host[..at])
    }
}

/// The scheme, if there is one, and what follows its colon.
fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let authority = !self.host.is_empty() || self.user.is_some();
            if authority || !self.scheme.is_empty() && !self.path.is_empty() {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&Part::Host.escape(&self.host))?;
            let path =
                if self.path == "*" { "*".to_owned() } else { Part::Path.escape(&self.path) };
            if !self.host.is_empty() && !path.is_empty() && !path.starts_with('/') {
                f.write_str("/")?;
            }
            let bare = self.scheme.is_empty() && !authority;
            if bare && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                // Otherwise it would be read as a scheme.
                f.write_str("./")?;
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", Part::Fragment.escape(&self.fragment))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in [
            "http://admin:secret@server.com:8080/api?list=false#anchor",
            "mailto:x@y",
            "/a/b?c=d",
            "//host/path",
            "https://[::1]:8443/x",
            "a/b",
            "",
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Url::parse("https://[::1]:8443/x").unwrap().hostname(), "::1");
        assert_eq!(Url::parse("HTTP://h/a%20b").unwrap().path, "/a b");
        for bad in
            ["http://h:x/", "a b:c/d", ":x", "http://[::1/", "http://h/%zz", "1:2", "http://a b/"]
        {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
