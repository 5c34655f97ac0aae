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
        let authority = text[start..].split(['/', '?', '#', ' ', '"', '\'', '\n']).next();
        let Some(end) = authority.and_then(|authority| authority.rfind('@')) else { continue };
        if start < copied {
            continue;
        }
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
