//! Text made safe for HTML, JavaScript and URLs, as Go's templates do it, and for
//! XML.
//!
//! Escapes make a text longer: the functions for templates stop once their result
//! has more bytes than `room`, for the caller to refuse it.

use crate::is_print;
use crate::string::raw_runes;

/// Replaces the five characters that mean something in HTML, and NUL by `nul`.
pub fn html(text: &[u8], nul: &str, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
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
        if out.len() > room {
            break;
        }
    }
    out
}

/// Escapes for a string of JavaScript.
pub fn javascript(text: &[u8], room: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (_, c) in raw_runes(text) {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        match c {
            '\\' | '\'' | '"' => out.extend(['\\', c]),
            _ if "<>&=".contains(c) || c < ' ' || !c.is_ascii() && !is_print(c) => {
                push!(out, "\\u{:04X}", u32::from(c));
            }
            _ => out.push(c),
        }
        if out.len() > room {
            break;
        }
    }
    out
}

/// Escapes for a query string, where a space is `+`.
pub fn url_query(text: &[u8], room: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            b' ' => out.push('+'),
            _ => push!(out, "%{byte:02X}"),
        }
        if out.len() > room {
            break;
        }
    }
    out
}

/// Escapes for text of XML. What XML cannot have at all is replaced by U+FFFD.
pub fn xml(text: &str) -> String {
    xml_with(text, false)
}

/// Escapes for a quoted attribute of XML, whose line breaks would be read as
/// blanks.
pub fn xml_attribute(text: &str) -> String {
    xml_with(text, true)
}

fn xml_with(text: &str, is_attribute: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' if is_attribute => out.push_str("&#10;"),
            '\t' if is_attribute => out.push_str("&#9;"),
            '\n' | '\t' => out.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped() {
        let text = b"<a href='x'>&\"\0</a>=\xc3\xa9\n";
        let want = "&lt;a href=&#39;x&#39;&gt;&amp;&#34;0&lt;/a&gt;=\u{e9}\n";
        assert_eq!(html(text, "0", usize::MAX), want.as_bytes());
        assert_eq!(
            javascript("a\n'</\u{e9}=\u{2028}".as_bytes(), usize::MAX),
            "a\\u000A\\'\\u003C/\u{e9}\\u003D\\u2028"
        );
        assert_eq!(url_query("a b&c=d/\u{e9}~".as_bytes(), usize::MAX), "a+b%26c%3Dd%2F%C3%A9~");
    }

    #[test]
    fn what_xml_holds() {
        let text = "<a b='\"'>&\0\u{1b}\u{ffff}\n\té";
        let want = "&lt;a b=&#39;&quot;&#39;&gt;&amp;\u{fffd}\u{fffd}\u{fffd}\n\té";
        assert_eq!(xml(text), want);
        let want = want.replace('\n', "&#10;").replace('\t', "&#9;");
        assert_eq!(xml_attribute(text), want);
    }

    #[test]
    fn no_more_is_made_than_there_is_room_for() {
        let text = vec![b'<'; 1000];
        for length in
            [html(&text, "", 10).len(), javascript(&text, 10).len(), url_query(&text, 10).len()]
        {
            assert!((11..20).contains(&length), "{length}");
        }
    }
}
