//! Credentials inside URLs.

use std::borrow::Cow;

use crate::REDACTED;

/// The text with the user part of every URL replaced.
///
/// ```
/// let text = ccm_model::redact_credentials("curl https://me:secret@host/x");
/// assert_eq!(text, "curl https://[redacted]@host/x");
/// ```
pub fn redact_credentials(text: &str) -> Cow<'_, str> {
    replace(text, |_| REDACTED.to_owned())
}

/// The same with as many bytes as before, so that places in the text stay
/// where they are.
///
/// ```
/// let text = ccm_model::mask_credentials("https://me:pw@host/x");
/// assert_eq!(text, "https://*****@host/x");
/// ```
pub fn mask_credentials(text: &str) -> Cow<'_, str> {
    replace(text, |user| "*".repeat(user.len()))
}

fn replace(text: &str, by: impl Fn(&str) -> String) -> Cow<'_, str> {
    let mut replaced = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        if start < copied {
            continue;
        }
        let Some(end) = user_end(&text[start..]) else { continue };
        replaced.push_str(&text[copied..start]);
        replaced.push_str(&by(&text[start..start + end]));
        copied = start + end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
}

/// Where the `@` behind the user part stands, in what follows a `://`. What
/// stands where the port should and is none may be a password with a slash in
/// it, which ends at the last `@` then.
fn user_end(text: &str) -> Option<usize> {
    let url = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).next()?;
    let authority = url.split(['/', '?', '#']).next()?;
    let end = authority.rfind('@');
    let host = end.map_or(authority, |end| &authority[end + 1..]);
    // The colons of an IPv6 address are inside its brackets.
    let behind = host.split_once(']').filter(|_| host.starts_with('[')).map(|(_, behind)| behind);
    let port = behind.unwrap_or(host).split_once(':').map(|(_, port)| port);
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|n| n > 0)
    };
    if port.is_none_or(is_port) { end } else { url.rfind('@') }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_credentials_go() {
        for (text, wanted) in [
            ("https://host/a@b", "https://host/a@b"),
            ("http://u@h http://u:p@h", "http://[redacted]@h http://[redacted]@h"),
            ("'ftp://u:p@w@h'", "'ftp://[redacted]@h'"),
            ("'http://u:se/cret1@h/x' a@b", "'http://[redacted]@h/x' a@b"),
            ("http://u:se?cret1@h/x", "http://[redacted]@h/x"),
            ("http://u:se#cret1@h/x", "http://[redacted]@h/x"),
            ("http://u:/cret1@h/x", "http://[redacted]@h/x"),
            ("http://u:70000/cret1@h/x", "http://[redacted]@h/x"),
            ("http://u:p@w:se/cret1@h/x", "http://[redacted]@h/x"),
            ("http://h:80/a@b http://[::1]:80/a@b", "http://h:80/a@b http://[::1]:80/a@b"),
            ("http://[::1]/a@b http://h:x/a b@c", "http://[::1]/a@b http://h:x/a b@c"),
            ("mail me@host", "mail me@host"),
        ] {
            assert_eq!(redact_credentials(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(://|@|/|[a-zé:]|.){0,20}") {
            redact_credentials(&text);
            prop_assert_eq!(mask_credentials(&text).len(), text.len());
        }
    }
}
