//! Credentials inside URLs.

use std::borrow::Cow;
use std::ops::Range;

use crate::REDACTED;

/// What the names of secret query parameters end with: `access_token`,
/// `apiKey`, `X-Goog-Signature`.
const SECRET_ENDINGS: [&str; 7] =
    ["token", "key", "secret", "password", "signature", "credential", "credentials"];

/// The text with the user part of every URL replaced, and the values of query
/// parameters whose names say that they are secret.
///
/// ```
/// let text = ccm_model::redact_credentials("curl https://me:secret@host/x?token=abc&v=1");
/// assert_eq!(text, "curl https://[redacted]@host/x?token=[redacted]&v=1");
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
    for range in credentials(text) {
        replaced.push_str(&text[copied..range.start]);
        replaced.push_str(&by(&text[range.clone()]));
        copied = range.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
}

/// The secret parts of all URLs in a text, in order.
pub(crate) fn credentials(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        if found.last().is_some_and(|last| start < last.end) {
            continue;
        }
        let inner = secrets(&text[start..]);
        found.extend(inner.into_iter().map(|range| start + range.start..start + range.end));
    }
    found
}

/// The secret parts of a URL, in what follows its `://`, in order.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    if let Some(end) = user_end(text) {
        found.push(0..end);
        from = end;
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    let end = text[from..].find(is_end).map_or(text.len(), |length| from + length);
    let url = &text[..end];
    // A fragment may hold parameters too.
    let Some(query) = url[from..].find(['?', '#']) else { return found };
    let mut at = from + query + 1;
    for parameter in url[at..].split(['&', ';', '?', '#']) {
        if let Some((name, value)) = parameter.split_once('=')
            && is_secret_name(name)
        {
            let value_at = at + name.len() + 1;
            // Punctuation of the sentence that the URL stands in.
            let value = value.trim_end_matches([':', ',', '.', ')']);
            if !value.is_empty() {
                found.push(value_at..value_at + value.len());
            }
        }
        at += parameter.len() + 1;
    }
    found
}

/// Whether the name of a query parameter, a header or a variable says that its
/// value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig"
        || name.starts_with("x-amz-")
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
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
            ("http://h/?a=1&token=x", "http://h/?a=1&token=[redacted]"),
            ("http://u:p@h/?key=x#y", "http://[redacted]@h/?key=[redacted]#y"),
            ("get `http://h/x?sig=s%2F&v=1`: no", "get `http://h/x?sig=[redacted]&v=1`: no"),
            ("http://h/x?Access_Token=a=b: gone", "http://h/x?Access_Token=[redacted]: gone"),
            (
                "http://h/?X-Amz-Date=1&X-Amz-Algorithm=2",
                "http://h/?X-Amz-Date=[redacted]&X-Amz-Algorithm=[redacted]",
            ),
            (
                "http://h/?client_secret=a;password=b",
                "http://h/?client_secret=[redacted];password=[redacted]",
            ),
            ("http://h/?signature=&keys=1&signed=2", "http://h/?signature=&keys=1&signed=2"),
            ("http://h/x#access_token=t", "http://h/x#access_token=[redacted]"),
            ("http://h/token=x /?key=y", "http://h/token=x /?key=y"),
        ] {
            assert_eq!(redact_credentials(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(://|@|/|[?&;#=`]|key|sig|[a-zé:]|.){0,20}") {
            redact_credentials(&text);
            prop_assert_eq!(mask_credentials(&text).len(), text.len());
        }
    }
}
