//! Finding placeholders in text.
//!
//! ```
//! use ccm_template::placeholder::{Openers, scan};
//!
//! let found: Result<Vec<_>, _> = scan("a {{ b }} ${ c }", Openers::All).collect();
//! let found = found?;
//! assert_eq!(found[0].inner, "b");
//! assert_eq!((found[1].start, found[1].end), (10, 16));
//! # Ok::<(), ccm_template::placeholder::ScanError>(())
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

/// The delimiters that begin a placeholder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Openers {
    /// `{{` and `${`.
    #[default]
    All,
    /// `{{`, and `${` only when a blank follows: for texts that a shell will
    /// read, whose own `${HOME}` must reach it.
    Shell,
}

/// Why the placeholders of a text cannot be told from the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// A placeholder without an end.
    #[error("`{opener}` is never closed{}", if *.in_quotes { ", because a quote after it is never closed" } else { "" })]
    Unclosed {
        /// Offset of its first byte.
        start: usize,
        /// The opening delimiter, `{{` or `${`.
        opener: &'static str,
        /// Whether a quote hides everything that could close it.
        in_quotes: bool,
    },
    /// So many openers without an end that looking for all of them would take
    /// too long.
    #[error("too many placeholders are opened and never closed")]
    TooMany,
}

/// How many bytes may be read in vain. An opener that never closes costs a look
/// at the whole rest of the text.
const SCAN_LIMIT: usize = 64 << 20;

/// Finds the placeholders of a text from left to right.
///
/// Inside, quotes hide closers. `{{` ends at the next `}}`, `${` at its matching
/// brace. An opener that never closes is an error, but for these, which are
/// text: `${` without a blank behind it, `${` whose braces do not match, and an
/// opener that only its quotes keep open while complete placeholders follow.
/// The search goes on behind each of them, and behind each error.
pub fn scan(text: &str, openers: Openers) -> Scan<'_> {
    Scan { text, openers, at: 0, closers: None, unclosed: None, patience: SCAN_LIMIT }
}

/// The placeholders of a text; made by [`scan`].
#[derive(Clone, Debug)]
pub struct Scan<'t> {
    text: &'t str,
    openers: Openers,
    at: usize,
    /// Behind the last closers; looked up with the first opener.
    closers: Option<Closers>,
    /// An opener that its quotes keep open, unless another placeholder follows.
    unclosed: Option<ScanError>,
    patience: usize,
}

/// Where a text has its last `}` and its last `}}`, the ends of them.
#[derive(Clone, Copy, Debug)]
struct Closers {
    single: usize,
    double: usize,
}

impl Closers {
    fn find(bytes: &[u8]) -> Self {
        let single = memchr::memrchr(b'}', bytes).map_or(0, |at| at + 1);
        let double = memchr::memmem::rfind(&bytes[..single], b"}}").map_or(0, |at| at + 2);
        Self { single, double }
    }
}

#[derive(Clone, Copy)]
enum Opener {
    Braces,
    Dollar,
}

/// Why an opener does not close.
enum Open {
    /// The string ends, and no quote is open.
    End,
    /// The text ends within a quote.
    Quote,
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<Placeholder<'t>, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            let Some((start, opener)) = self.opener() else {
                return self.unclosed.take().map(Err);
            };
            let inside = start + 2;
            let closers = *self.closers.get_or_insert_with(|| Closers::find(bytes));
            let is_blank = bytes.get(inside).is_some_and(u8::is_ascii_whitespace);
            let unclosed = |in_quotes| match opener {
                Opener::Braces => Some(ScanError::Unclosed { start, opener: "{{", in_quotes }),
                Opener::Dollar if is_blank => {
                    Some(ScanError::Unclosed { start, opener: "${", in_quotes })
                }
                Opener::Dollar => None,
            };
            let last = match opener {
                Opener::Braces => closers.double,
                Opener::Dollar => closers.single,
            };
            if last <= inside {
                self.at = inside;
                match unclosed(false) {
                    Some(error) => return Some(Err(error)),
                    None => continue,
                }
            }
            match close(bytes, inside, opener) {
                Ok((inner_end, end)) => {
                    self.at = end;
                    self.unclosed = None;
                    let inner = self.text[inside..inner_end].trim();
                    return Some(Ok(Placeholder { start, end, inner }));
                }
                Err(Open::Quote) if self.unclosed.is_none() => self.unclosed = unclosed(true),
                Err(Open::Quote | Open::End) => {}
            }
            self.at = inside;
            match self.patience.checked_sub(bytes.len() - inside) {
                Some(left) => self.patience = left,
                None => {
                    self.at = bytes.len();
                    return Some(Err(ScanError::TooMany));
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
fn close(bytes: &[u8], from: usize, opener: Opener) -> Result<(usize, usize), Open> {
    let mut depth = 0usize;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            quote @ (b'"' | b'\'' | b'`') => {
                at = end_of_quoted(bytes, at + 1, quote).ok_or(Open::Quote)?;
            }
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                match opener {
                    Opener::Braces if bytes.get(at + 1) == Some(&b'}') => return Ok((at, at + 2)),
                    Opener::Dollar if depth == 0 => return Ok((at, at + 1)),
                    Opener::Braces | Opener::Dollar => {}
                }
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    Err(Open::End)
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

    /// Where the openers stand that never close.
    fn unclosed(text: &str, openers: Openers) -> Vec<(usize, &'static str, bool)> {
        let errors = scan(text, openers).filter_map(Result::err);
        let place = |error| match error {
            ScanError::Unclosed { start, opener, in_quotes } => (start, opener, in_quotes),
            ScanError::TooMany => (0, "", false),
        };
        errors.map(place).collect()
    }

    #[test]
    fn openers_that_never_close_are_errors() {
        for (text, wanted) in [
            ("{{", vec![(0, "{{", false)]),
            ("a {{ b }", vec![(2, "{{", false)]),
            ("{{ a }} {{ b", vec![(8, "{{", false)]),
            ("${{ a }", vec![(1, "{{", false)]),
            ("${ a", vec![(0, "${", false)]),
            ("${\ta", vec![(0, "${", false)]),
            ("{{ a ${ b }", vec![(0, "{{", false)]),
            ("{{ a + 'b }}", vec![(0, "{{", true)]),
            ("${ a + \"b }", vec![(0, "${", true)]),
            ("${a {{ b", vec![(4, "{{", false)]),
            // Text: the shell's, braces that do not match, quotes with placeholders behind.
            ("${", vec![]),
            ("${a", vec![]),
            ("${'a}", vec![]),
            ("${ { }", vec![]),
            ("{{ 'a }} {{ b }}", vec![]),
        ] {
            assert_eq!(unclosed(text, Openers::All), wanted, "{text}");
        }
        assert_eq!(unclosed("echo ${HOME ${ a", Openers::Shell), [(12, "${", false)]);
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
        assert!(scan(&tangled, Openers::All).any(|found| found == Err(ScanError::TooMany)));
    }

    proptest! {
        #[test]
        fn any_text_is_scanned(text in r#"([{}$"'`\\ a]|\PC){0,60}"#) {
            for openers in [Openers::All, Openers::Shell] {
                let mut end = 0;
                for placeholder in scan(&text, openers).filter_map(Result::ok) {
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
