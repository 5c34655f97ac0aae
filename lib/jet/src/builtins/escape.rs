//! Escaping for HTML, URLs and JavaScript.

use govalue::{Str, escape};

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
            Self::JavaScript => escape::javascript(text.as_bytes(), usize::MAX).into(),
        }
    }
}

pub(super) fn html(text: &Str) -> Str {
    html_with(text, "\0")
}

fn html_with(text: &Str, nul: &str) -> Str {
    escape::html(text.as_bytes(), nul, usize::MAX).into()
}

pub(super) fn url(text: &Str) -> Str {
    escape::url_query(text.as_bytes(), usize::MAX).into()
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
