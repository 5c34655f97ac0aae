//! Finding placeholders in text.
//!
//! ```
//! use ccm_template::placeholder::{Openers, scan};
//!
//! let found: Result<Vec<_>, _> = scan("a {{ b }} ${ c }", Openers::All).collect();
//! let found = found?;
//! assert_eq!(found[0].inner, "b");
//! assert_eq!((found[1].start, found[1].end), (10, 16));
//! # Ok::<(), ccm_template::placeholder::TooTangled>(())
//! ```

/// One placeholder in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
    /// The expression: what stands inside, without blanks around it.
    pub inner: &'t str,
}

/// What begins a placeholder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Openers {
    /// `{{` and `${`.
    #[default]
    All,
    /// `{{`, and `${` only when a blank follows: for texts that a shell will
    /// read, whose own `${HOME}` must reach it.
    Shell,
}

/// A text has so many openers without an end that looking for them all would
/// take for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many placeholders are opened and never closed")]
pub struct TooTangled;

/// How many bytes may be read in vain. An opener that never closes costs a look
/// at the whole rest of the text.
const PATIENCE: usize = 64 << 20;

/// Finds the placeholders of a text from left to right.
///
/// Inside, quotes hide closers. `{{` ends at the next `}}`, `${` at its matching
/// brace. An opener that never closes is text, and the search goes on behind it.
pub fn scan(text: &str, openers: Openers) -> Scan<'_> {
    Scan { text, openers, at: 0, closers_end: None, patience: PATIENCE }
}

/// The placeholders of a text; made by [`scan`].
#[derive(Clone, Debug)]
pub struct Scan<'t> {
    text: &'t str,
    openers: Openers,
    at: usize,
    /// Behind the last closing brace; looked up with the first opener.
    closers_end: Option<usize>,
    patience: usize,
}

#[derive(Clone, Copy)]
enum Opener {
    Braces,
    Dollar,
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<Placeholder<'t>, TooTangled>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            let (start, opener) = self.opener()?;
            let inside = start + 2;
            let closers_end = *self
                .closers_end
                .get_or_insert_with(|| memchr::memrchr(b'}', bytes).map_or(0, |at| at + 1));
            // Without a closer ahead the rest is text.
            if closers_end <= inside {
                self.at = bytes.len();
                return None;
            }
            if let Some((inner_end, end)) = close(bytes, inside, opener) {
                self.at = end;
                let inner = self.text[inside..inner_end].trim();
                return Some(Ok(Placeholder { start, end, inner }));
            }
            self.at = inside;
            match self.patience.checked_sub(bytes.len() - inside) {
                Some(left) => self.patience = left,
                None => {
                    self.at = bytes.len();
                    return Some(Err(TooTangled));
                }
            }
        }
    }
}

impl Scan<'_> {
    fn opener(&self) -> Option<(usize, Opener)> {
        let bytes = self.text.as_bytes();
        memchr::memchr_iter(b'{', bytes.get(self.at..)?).find_map(|offset| {
            let brace = self.at + offset;
            let next = bytes.get(brace + 1);
            if next == Some(&b'{') {
                return Some((brace, Opener::Braces));
            }
            let follows_dollar = brace > self.at && bytes[brace - 1] == b'$';
            let ours = match self.openers {
                Openers::All => true,
                Openers::Shell => next.is_some_and(u8::is_ascii_whitespace),
            };
            (follows_dollar && ours).then(|| (brace - 1, Opener::Dollar))
        })
    }
}

/// Where the inside that begins at `from` ends, and where its placeholder does.
fn close(bytes: &[u8], from: usize, opener: Opener) -> Option<(usize, usize)> {
    let mut depth = 0usize;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            quote @ (b'"' | b'\'' | b'`') => at = end_of_quoted(bytes, at + 1, quote)?,
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                match opener {
                    Opener::Braces if bytes.get(at + 1) == Some(&b'}') => {
                        return Some((at, at + 2));
                    }
                    Opener::Dollar if depth == 0 => return Some((at, at + 1)),
                    Opener::Braces | Opener::Dollar => {}
                }
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    None
}

/// Behind the closing quote; only the raw quotes take backslashes literally.
fn end_of_quoted(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'\\' if quote != b'`' => 2,
            _ if byte == quote => return Some(at + 1),
            _ => 1,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, openers: Openers) -> Vec<(usize, usize, &str)> {
        let all: Result<Vec<_>, _> = scan(text, openers).collect();
        all.unwrap().into_iter().map(|p| (p.start, p.end, p.inner)).collect()
    }

    #[test]
    fn braces_end_at_the_first_closer_outside_quotes() {
        for (text, wanted) in [
            ("plain", vec![]),
            ("{{ a }}{{b}}", vec![(0, 7, "a"), (7, 12, "b")]),
            ("{{ '}}' }}", vec![(0, 10, "'}}'")]),
            (r#"{{ "\"}}" }}"#, vec![(0, 12, r#""\"}}""#)]),
            (r"{{ `\` }}", vec![(0, 9, r"`\`")]),
            ("{{ {a: {b: 1}} }}", vec![(0, 14, "{a: {b: 1")]),
            ("{{ 'open }} {{ a }}", vec![(12, 19, "a")]),
            ("{{ open", vec![]),
            ("{{}}", vec![(0, 4, "")]),
            ("ä{{ ö }}", vec![(2, 10, "ö")]),
        ] {
            assert_eq!(found(text, Openers::All), wanted, "{text}");
        }
    }

    #[test]
    fn a_dollar_counts_braces() {
        for (text, wanted) in [
            ("${ {a: {b: 1}} }", vec![(0, 16, "{a: {b: 1}}")]),
            ("$${ a }", vec![(1, 7, "a")]),
            ("${{ a }}", vec![(1, 8, "a")]),
            ("${{ a }", vec![]),
            ("${ '}' }", vec![(0, 8, "'}'")]),
            ("$ {a} {b}", vec![]),
        ] {
            assert_eq!(found(text, Openers::All), wanted, "{text}");
        }
    }

    #[test]
    fn a_shell_keeps_its_own_variables() {
        let text = "echo ${HOME} ${x:-${y}} ${ a } {{b}} ${#n} ${\tc}";
        let inner: Vec<_> = found(text, Openers::Shell).iter().map(|p| p.2).collect();
        assert_eq!(inner, ["a", "b", "c"]);
    }

    #[test]
    fn many_openers_without_an_end_do_not_take_for_ever() {
        for opener in ["{{", "${", "{{'", "${\"", "${{"] {
            let text = opener.repeat(100_000) + "}";
            let _ = scan(&text, Openers::All).count();
            let _ = scan(&opener.repeat(1_000_000), Openers::All).count();
        }
        let tangled = "${".repeat(200_000) + "}";
        assert!(scan(&tangled, Openers::All).any(|found| found.is_err()));
    }

    proptest! {
        #[test]
        fn any_text_is_scanned(text in r#"([{}$"'`\\ a]|\PC){0,60}"#) {
            for openers in [Openers::All, Openers::Shell] {
                let mut end = 0;
                for placeholder in scan(&text, openers) {
                    let placeholder = placeholder.unwrap();
                    prop_assert!(placeholder.start >= end && placeholder.end > placeholder.start);
                    end = placeholder.end;
                    let whole = &text[placeholder.start..end];
                    prop_assert!(whole.contains(placeholder.inner));
                    prop_assert_eq!(whole.as_bytes().last(), Some(&b'\x7d'));
                }
            }
        }
    }
}
