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
    let mut redacted = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let authority = text[start..].split(['/', '?', '#', ' ', '"', '\'', '\n']).next();
        let Some(end) = authority.and_then(|authority| authority.rfind('@')) else { continue };
        if start < copied {
            continue;
        }
        redacted.push_str(&text[copied..start]);
        redacted.push_str(REDACTED);
        copied = start + end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    redacted.push_str(&text[copied..]);
    Cow::Owned(redacted)
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
        }
    }
}
