//! Escaping for HTML, URLs and JavaScript.

use std::fmt::Write as _;

use govalue::{Str, is_print};

/// A function that writes its arguments to the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// `raw`, `unsafe`: as they are.
    Raw,
    /// `safeHtml`
    Html,
    /// `safeJs`
    JavaScript,
}

impl Writer {
    pub(crate) fn escape(self, text: &Str) -> Str {
        match self {
            Self::Raw => text.clone(),
            Self::Html => html_with(text, "\u{FFFD}"),
            Self::JavaScript => javascript(text),
        }
    }
}

/// The five characters that mean something in HTML.
pub(super) fn html(text: &Str) -> Str {
    html_with(text, "\0")
}

fn html_with(text: &Str, nul: &str) -> Str {
    let mut out = Vec::with_capacity(text.len());
    for byte in text.as_bytes() {
        let replacement = match byte {
            b'&' => "&amp;",
            b'\'' => "&#39;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&#34;",
            0 => nul,
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(replacement.as_bytes());
    }
    Str::from(out)
}

/// The escaping of query strings, where a space is `+`.
pub(super) fn url(text: &Str) -> Str {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out.into()
}

fn javascript(text: &Str) -> Str {
    let mut out = String::with_capacity(text.len());
    for c in text.runes() {
        match c {
            '\\' | '\'' | '"' => out.extend(['\\', c]),
            _ if "<>&=".contains(c) || c < ' ' || !c.is_ascii() && !is_print(c) => {
                // Writing to memory cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped() {
        let text = Str::from("<a href='x'>&\"\0</a>=é\n");
        assert_eq!(html(&text), "&lt;a href=&#39;x&#39;&gt;&amp;&#34;\0&lt;/a&gt;=é\n");
        assert_eq!(Writer::Raw.escape(&text), text);
        assert_eq!(Writer::Html.escape(&"\0".into()), "\u{FFFD}");
        assert_eq!(
            Writer::JavaScript.escape(&"a\n'</é=\u{2028}".into()),
            "a\\u000A\\'\\u003C/é\\u003D\\u2028"
        );
        assert_eq!(url(&"a b&c=d/é~".into()), "a+b%26c%3Dd%2F%C3%A9~");
    }
}
