//! Secrets in manifests: which bytes of a source must not be shown.
//!
//! A source with something wrong in it may be no YAML at all, so this looks at
//! the text alone. Where that leaves a doubt, more is hidden.

use std::ops::Range;

use crate::closest;

/// How far above a line the property that it belongs to is looked for.
const REACH: usize = 64 << 10;

/// What may be shown of the value of a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MaskPolicy {
    Nothing,
    /// The name at the beginning of each entry, up to this byte.
    Names(u8),
}

/// A line of a text, with as many bytes as before and the values of these
/// properties replaced by stars.
pub(super) fn masked_line(text: &str, line: Range<usize>, secrets: &[&'static str]) -> String {
    let bytes = &text.as_bytes()[..line.end];
    let from = match line.start.checked_sub(REACH) {
        None | Some(0) => 0,
        Some(far) => far + line_end(&bytes[far..line.start], 0),
    };
    let mut mask = Mask { bytes: bytes[from..].to_vec(), secrets };
    mask.all();
    String::from_utf8_lossy(&mask.bytes[line.start - from..]).into_owned()
}

fn shown_of(property: &str, secrets: &[&'static str]) -> Option<MaskPolicy> {
    // Most words are far too short or too long, and this is asked of each.
    let is_near = |name: &&str| property.len().abs_diff(name.len()) <= name.len() / 3;
    let rules = ["password", "request-headers"];
    let names = secrets.iter().copied().chain(["headers", "environment"]).chain(rules);
    let names = names.filter(is_near);
    let property = property.to_ascii_lowercase();
    // What is misspelt is a secret all the same.
    match closest(&property, names)? {
        "headers" | "request-headers" => Some(MaskPolicy::Names(b':')),
        "environment" => Some(MaskPolicy::Names(b'=')),
        _ => Some(MaskPolicy::Nothing),
    }
}

struct Mask<'s> {
    bytes: Vec<u8>,
    secrets: &'s [&'static str],
}

impl Mask<'_> {
    fn all(&mut self) {
        let mut at = 0;
        while at < self.bytes.len() {
            let end = at + self.bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
            let value = if end > at { self.value_of(at, end) } else { None };
            at = match value {
                Some((value, shown)) => self.value(at, value, shown).max(value),
                None => end.max(at + 1),
            };
        }
    }

    /// Where the value begins, if this word is the key of a secret.
    fn value_of(&self, start: usize, end: usize) -> Option<(usize, MaskPolicy)> {
        let quote = start.checked_sub(1).map(|at| self.bytes[at]).filter(|byte| is_quote(*byte));
        let behind = match quote {
            Some(quote) if self.bytes.get(end) == Some(&quote) => end + 1,
            _ => end,
        };
        let colon = self.behind_blanks(behind);
        let is_key = self.bytes.get(colon) == Some(&b':')
            && (behind > end || self.bytes.get(colon + 1).is_none_or(u8::is_ascii_whitespace));
        if !is_key {
            return None;
        }
        let word = std::str::from_utf8(&self.bytes[start..end]).ok()?;
        let shown = shown_of(word, self.secrets)?;
        let is_path = self.is_path(start) && self.is_map(colon + 1);
        (!is_path).then_some((colon + 1, shown))
    }

    /// Where the key begins that a word is the last part of.
    fn key_start(&self, word: usize) -> usize {
        let is_outside = |byte: u8| byte.is_ascii_whitespace() || b"{[,\"'".contains(&byte);
        let outside = self.bytes[..word].iter().rposition(|&byte| is_outside(byte));
        outside.map_or(0, |at| at + 1)
    }

    /// Whether a word is the last part of a path such as `/etc/passwd`: the name
    /// of a file, and not of a secret.
    fn is_path(&self, word: usize) -> bool {
        let key = &self.bytes[self.key_start(word)..word];
        key.ends_with(b"/") && (key.starts_with(b"/") || key.starts_with(b"~"))
    }

    /// Whether a value clearly is a map, whose own keys tell what of it is a
    /// secret.
    fn is_map(&self, value: usize) -> bool {
        let at = self.behind_blanks(value);
        let mut rest = self.bytes.get(at..).unwrap_or_default();
        match rest.first() {
            None => return true,
            Some(b'{') => rest = &rest[1..],
            Some(b'\r' | b'\n') => {}
            Some(_) => return false,
        }
        let rest = rest.trim_ascii_start();
        let word = rest.iter().take_while(|byte| is_word(**byte)).count();
        let behind = rest.get(word + 1);
        rest.is_empty()
            || word > 0
                && rest.get(word) == Some(&b':')
                && behind.is_none_or(u8::is_ascii_whitespace)
    }

    /// Hides a value; where it ends.
    fn value(&mut self, key: usize, value: usize, shown: MaskPolicy) -> usize {
        let line = self.bytes[..key].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let before = self.bytes[line..key].trim_ascii_end();
        let before = before.strip_suffix(b"\"").or(before.strip_suffix(b"'")).unwrap_or(before);
        let is_flow =
            before.trim_ascii_end().ends_with(b"{") || before.trim_ascii_end().ends_with(b",");
        let mut at = self.behind_blanks(value);
        // Anchors and tags.
        while self.bytes.get(at).is_some_and(|byte| b"&!".contains(byte)) {
            let end = self.bytes[at..].iter().position(u8::is_ascii_whitespace);
            let end = end.map_or(self.bytes.len(), |length| at + length);
            self.hide(at..end);
            at = self.behind_blanks(end);
        }
        let is_empty = self.bytes.get(at).is_none_or(|&byte| byte == b'\n' || byte == b'\r');
        let mut is_quoted = false;
        match self.bytes.get(at) {
            Some(b'{' | b'[') => return self.collection(at, shown),
            Some(&quote) if is_quote(quote) => {
                let end = self.quote_end(at + 1, quote);
                self.hide(at..end);
                at = end;
                is_quoted = true;
            }
            _ => {}
        }
        if is_flow {
            let rest = &self.bytes[at..];
            let ends = |at: usize| match rest[at] {
                b'}' | b']' | b'\n' => true,
                b',' => is_quoted || rest.get(at + 1).is_none_or(u8::is_ascii_whitespace),
                _ => false,
            };
            let end = at + (0..rest.len()).find(|&at| ends(at)).unwrap_or(rest.len());
            self.hide(at..end);
            return end;
        }
        let end = line_end(&self.bytes, at);
        self.hide(at..end);
        self.block(end, self.key_start(key) - line, is_empty, shown)
    }

    /// Hides the lines of a value that stand below its key, from the start of
    /// a line on.
    fn block(&mut self, mut at: usize, column: usize, is_list: bool, shown: MaskPolicy) -> usize {
        let mut first = None;
        while at < self.bytes.len() {
            let end = line_end(&self.bytes, at);
            let start = self.behind_blanks(at);
            let indent = start - at;
            let is_blank = self.bytes[at..end].trim_ascii().is_empty();
            let is_item = is_list && indent == column && self.bytes[start..].starts_with(b"- ");
            if !is_blank && indent <= column && !is_item {
                break;
            }
            if !is_blank {
                let is_entry = *first.get_or_insert(indent) == indent && is_list;
                let dash = if self.bytes[start..].starts_with(b"- ") { 2 } else { 0 };
                let name = if is_entry { self.name(start + dash, shown).0 } else { start };
                self.hide(name..end);
            }
            at = end;
        }
        at
    }

    /// Hides what is in brackets; where they end.
    fn collection(&mut self, mut at: usize, shown: MaskPolicy) -> usize {
        let mut depth = 0_usize;
        let (mut is_start, mut is_fresh) = (true, true);
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    depth += 1;
                    (is_start, is_fresh) = (depth == 1, true);
                }
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                b',' => (is_start, is_fresh) = (depth == 1, true),
                byte if byte.is_ascii_whitespace() && is_fresh => {}
                byte if is_start || is_quote(byte) && is_fresh => {
                    let (end, quote) = if is_start { self.name(at, shown) } else { (at, None) };
                    let is_named = end > at;
                    is_start = false;
                    let quote = match quote {
                        Some(quote) => Some((end, quote)),
                        None if !is_named && is_quote(byte) => Some((end + 1, byte)),
                        None => None,
                    };
                    if let Some((inner, quote)) = quote {
                        let close = self.quote_end(inner, quote);
                        self.hide(end..close);
                        at = close;
                        is_fresh = false;
                        continue;
                    }
                    if is_named {
                        at = end;
                        continue;
                    }
                    is_fresh = false;
                    self.hide(at..at + 1);
                }
                _ => {
                    is_fresh = false;
                    self.hide(at..at + 1);
                }
            }
            at += 1;
        }
        at
    }

    /// Where the name ends that an entry may begin with, and the quote that is
    /// open there.
    fn name(&self, start: usize, shown: MaskPolicy) -> (usize, Option<u8>) {
        let MaskPolicy::Names(separator) = shown else { return (start, None) };
        let quote = self.bytes.get(start).copied().filter(|byte| is_quote(*byte));
        let word = start + usize::from(quote.is_some());
        let rest = self.bytes.get(word..).unwrap_or_default();
        let end = word + rest.iter().take_while(|byte| is_word(**byte)).count();
        if end == word {
            return (start, None);
        }
        if separator == b'=' {
            let is_name = self.bytes.get(end) == Some(&b'=');
            return if is_name { (end + 1, quote) } else { (start, None) };
        }
        let behind = match quote {
            Some(quote) if self.bytes.get(end) != Some(&quote) => return (start, None),
            Some(_) => end + 1,
            None => end,
        };
        let colon = self.behind_blanks(behind);
        let is_name = self.bytes.get(colon) == Some(&separator)
            && (quote.is_some() || self.bytes.get(colon + 1).is_none_or(u8::is_ascii_whitespace));
        if is_name { (self.behind_blanks(colon + 1), None) } else { (start, None) }
    }

    /// Behind the quote that ends a text.
    fn quote_end(&self, mut at: usize, quote: u8) -> usize {
        while let Some(&byte) = self.bytes.get(at) {
            let is_pair = byte == b'\\' && quote == b'"'
                || byte == b'\'' && quote == byte && self.bytes.get(at + 1) == Some(&quote);
            if is_pair {
                at += 2;
                continue;
            }
            at += 1;
            if byte == quote {
                return at;
            }
        }
        self.bytes.len()
    }

    fn behind_blanks(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| b" \t".contains(byte)).count()
    }

    fn hide(&mut self, range: Range<usize>) {
        let bytes = self.bytes[range].iter_mut();
        bytes.filter(|byte| !b"\r\n".contains(byte)).for_each(|byte| *byte = b'*');
    }
}

/// Behind the next end of a line.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..].iter().position(|&byte| byte == b'\n');
    end.map_or(bytes.len(), |length| at + length + 1)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every line as it would be shown.
    fn masked(text: &str) -> String {
        let mut start = 0;
        let mut lines = Vec::new();
        for line in text.split('\n') {
            lines.push(masked_line(text, start..start + line.len(), &["password"]));
            start += line.len() + 1;
        }
        lines.join("\n")
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        for (text, wanted) in [
            ("password: x", "password: *"),
            ("- password: a, b} # c", "- password: *********"),
            ("{password: hush, ownr: me}", "{password: ****, ownr: me}"),
            ("{a: b, \"password\": \"h, u\", ownr: me}", "{a: b, \"password\": ******, ownr: me}"),
            ("{\"password\":\"h\",\"a\":1}", "{\"password\":***,\"a\":1}"),
            ("{password: 'it''s', a: b}", "{password: *******, a: b}"),
            ("{password: !t \"a, b\", a: b}", "{password: ** ******, a: b}"),
            ("pasword: hush\nowner: me", "pasword: ****\nowner: me"),
            ("  Password: hush\n  owner: me", "  Password: ****\n  owner: me"),
            ("password: |\n  a\n\n  b\nowner: me", "password: *\n  *\n\n  *\nowner: me"),
            ("password: \"open\n and", "password: *****\n****"),
            ("password: [a, {b: c}]\nx: y", "password: [*, {****}]\nx: y"),
            (
                "headers: {Authorization: \"Bearer x, Y: z\", X-A: b c, d}, ownr: x",
                "headers: {Authorization: ****************, X-A: ***, *}, ownr: x",
            ),
            (
                "headers:\n  Authorization: Bearer x\n  \"X-B\": y\nurl: z",
                "headers:\n  Authorization: ********\n  \"X-B\": *\nurl: z",
            ),
            ("headers:\n  A: >\n    b: c\n  D: e", "headers:\n  A: *\n    ****\n  D: *"),
            ("environment: [A=b, \"C=d, e\", f]", "environment: [A=*, \"C=*****, *]"),
            ("environment:\n- A=b c\n- 'D=e'\nx: y", "environment:\n- A=***\n- 'D=**\nx: y"),
            ("the password is x", "the password is x"),
            ("passwords_of: x", "passwords_of: x"),
            ("request-headers: [\"X-A: b\"]", "request-headers: [********]"),
            // The last part of a path is no secret, what is below it may be.
            ("/etc/passwd: {exists: yes}", "/etc/passwd: {exists: yes}"),
            ("- /etc/passwd:\n    mode: a\n", "- /etc/passwd:\n    mode: a\n"),
            ("{~/password: {mode: a, password: b}}", "{~/password: {mode: a, password: *}}"),
            ("/a/password:\n\n  x: y\n  password: z", "/a/password:\n\n  x: y\n  password: *"),
            ("/a/password: hush", "/a/password: ****"),
            ("/a/password:\n  hush", "/a/password:\n  ****"),
            ("/a/password: {hush}", "/a/password: {****}"),
            ("/a/password: \"b: c\"", "/a/password: ******"),
            ("/a/password: |\n  b: c", "/a/password: *\n  ****"),
            ("a/password: {x: y}", "a/password: {****}"),
        ] {
            assert_eq!(masked(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn lengths_stay(text in "(password: |headers:|environment: |[\\[\\]{},'\"\\\\:=&! \n-]|[aé]){0,30}") {
            prop_assert_eq!(masked(&text).len(), text.len());
        }
    }
}
