//! Regular expressions in the syntax of RE2, which Go uses.
//!
//! The `regex` crate shares nearly all of that syntax. [`compile`] rewrites
//! what only RE2 has, and rejects what only the crate has.

use std::fmt::Write as _;

pub use regex::bytes::Regex;
use regex::bytes::RegexBuilder;

use crate::Str;

/// Bounds the compiled size, so that counted repetitions cannot eat the memory.
const SIZE_LIMIT: usize = 4 << 20;

/// Bounds the depth of groups, and with it the stack that compiling takes.
const NEST_LIMIT: u32 = 200;

/// RE2 refuses counts beyond this.
const MAX_REPEAT: u32 = 1000;

/// Compiles a pattern.
///
/// # Errors
///
/// Returns what Go's parser says, as far as it is known, if RE2 rejects the
/// pattern or if it is too large.
pub fn compile(pattern: &Str) -> Result<Regex, String> {
    let failed = |reason: String| format!("error parsing regexp: {reason}");
    let text = pattern.as_str().ok_or_else(|| failed("invalid UTF-8".to_owned()))?;
    let translated = translate(text).map_err(|reason| failed(reason.to_owned()))?;
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(SIZE_LIMIT).nest_limit(NEST_LIMIT).build().map_err(|error| {
        failed(match error {
            regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
            error => error.to_string().lines().last().unwrap_or("invalid").trim().to_owned(),
        })
    })
}

/// About how many states a pattern has once its repetitions are written out,
/// which is what compiling it takes. Never more than 500,000: larger patterns
/// are refused.
///
/// ```
/// use govalue::regexp::cost;
///
/// assert_eq!(cost(&"abc".into()), 3);
/// assert_eq!(cost(&"(a{100}b){20}".into()), 2020);
/// assert_eq!(cost(&r"(\pL{40}\p{Greek}){2}".into()), 8200);
/// assert_eq!(cost(&"((a{1000}){1000}){1000}".into()), 500_000);
/// ```
pub fn cost(pattern: &Str) -> u64 {
    const MOST: u64 = 500_000;
    /// A class of Unicode has many ranges.
    const UNICODE: u64 = 100;
    let bytes: &[u8] = pattern.as_bytes();
    // What the groups that are open cost so far, the innermost last, and the
    // last part, which a repetition is about.
    let mut groups = vec![0_u64];
    let mut last = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let mut length = 1;
        match byte {
            b'(' => {
                groups.push(0);
                last = 0;
            }
            b')' if groups.len() > 1 => last = groups.pop().unwrap_or_default(),
            b'{' => {
                length = rest.iter().position(|&byte| byte == b'}').map_or(1, |end| end + 1);
                let bounds = std::str::from_utf8(&rest[1..length.max(2) - 1]).unwrap_or_default();
                let most = bounds.split(',').filter_map(|bound| bound.parse::<u64>().ok()).max();
                // The part itself is counted already.
                last = last.saturating_mul(most.unwrap_or(2).saturating_sub(1));
            }
            b'[' => {
                length =
                    rest.iter().skip(2).position(|&byte| byte == b']').map_or(1, |end| end + 3);
                let has_unicode =
                    rest[..length].windows(2).any(|pair| matches!(pair, b"\\p" | b"\\P" | b"[^"));
                last = length as u64 + if has_unicode { UNICODE } else { 0 };
            }
            b'\\' => {
                let is_class = matches!(rest.get(1), Some(b'p' | b'P'));
                let name = rest.iter().position(|&byte| byte == b'}').map(|end| end + 1);
                length = match (is_class, rest.get(2)) {
                    (false, _) => 2,
                    (true, Some(b'{')) => name.unwrap_or(3),
                    (true, _) => 3,
                };
                last = if is_class { UNICODE } else { 1 };
            }
            _ => last = 1,
        }
        if let Some(group) = groups.last_mut() {
            *group = group.saturating_add(if byte == b'(' { 0 } else { last });
        }
        at += length;
    }
    groups.into_iter().fold(0, u64::saturating_add).min(MOST)
}

/// What the last operator was: RE2 does not repeat a repetition.
#[derive(Clone, Copy, PartialEq)]
enum Repetition {
    None,
    Greedy,
    Lazy,
}

fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut class = false;
    let mut last = Repetition::None;
    while let Some(c) = rest.chars().next() {
        let before = std::mem::replace(&mut last, Repetition::None);
        let len = match c {
            '*' | '+' | '?' if !class => {
                last = match (before, c) {
                    (Repetition::None, _) => Repetition::Greedy,
                    (Repetition::Greedy, '?') => Repetition::Lazy,
                    _ => return Err("invalid nested repetition operator"),
                };
                out.push(c);
                1
            }
            '\\' => escape(rest, class, &mut out)?,
            '[' if class => {
                // `[:alpha:]` is a class in a class; any other bracket is itself.
                match posix_class(rest) {
                    Some(len) => {
                        out.push_str(&rest[..len]);
                        len
                    }
                    None => {
                        out.push_str("\\[");
                        1
                    }
                }
            }
            '[' => {
                class = true;
                let mut len = 1;
                out.push('[');
                if rest[1..].starts_with('^') {
                    out.push('^');
                    len += 1;
                }
                // A closing bracket right after the opening one is itself.
                if rest[len..].starts_with(']') {
                    out.push_str("\\]");
                    len += 1;
                }
                len
            }
            ']' if class => {
                class = false;
                out.push(']');
                1
            }
            // Operators on sets that RE2 does not have: take them literally.
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
                1
            }
            '-' if class && rest.starts_with("--") => {
                out.push_str("\\-");
                1
            }
            '(' if !class => group(rest, &mut out)?,
            '{' if !class => {
                let len = repeat(rest, &mut out)?;
                if len > 1 {
                    if before != Repetition::None {
                        return Err("invalid nested repetition operator");
                    }
                    last = Repetition::Greedy;
                }
                len
            }
            _ => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    Ok(out)
}

/// The length of `[:alpha:]` or `[:^alpha:]`, if the pattern begins with one.
fn posix_class(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix("[:")?;
    let end = body.find(":]")?;
    let is_name = body[..end].chars().all(|c| c.is_ascii_lowercase() || c == '^');
    is_name.then_some(end + 4)
}

/// An escape, with its length in the pattern.
fn escape(rest: &str, class: bool, out: &mut String) -> Result<usize, &'static str> {
    let Some(c) = rest[1..].chars().next() else {
        return Err("trailing backslash at end of expression");
    };
    let copy = |out: &mut String, len: usize| {
        out.push_str(&rest[..len]);
        len
    };
    match c {
        'Q' if !class => {
            let body = &rest[2..];
            let (quoted, len) = match body.find("\\E") {
                Some(at) => (&body[..at], at + 4),
                None => (body, rest.len()),
            };
            out.push_str(&regex::escape(quoted));
            Ok(len)
        }
        'C' if !class => {
            out.push_str("(?s-u:.)");
            Ok(2)
        }
        '0'..='7' => octal(rest, out),
        'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
            Ok(perl(c, class, out))
        }
        'A' | 'z' | 'b' | 'B' if !class => {
            // Word boundaries are ASCII in RE2.
            match c {
                'b' => out.push_str("(?-u:\\b)"),
                'B' => out.push_str("(?-u:\\B)"),
                _ => {
                    copy(out, 2);
                }
            }
            Ok(2)
        }
        'p' | 'P' => Ok(property(rest, c, out)),
        'x' => {
            let len = if rest[2..].starts_with('{') {
                rest.find('}').map_or(rest.len(), |at| at + 1)
            } else {
                rest.len().min(4)
            };
            match rest.get(..len) {
                Some(_) => Ok(copy(out, len)),
                None => Err("invalid escape sequence"),
            }
        }
        // `\<` is itself here, but the start of a word to the other engine.
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => {
            out.push_str(&regex::escape(&c.to_string()));
            Ok(2)
        }
        _ => Err("invalid escape sequence"),
    }
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`
fn property(rest: &str, c: char, out: &mut String) -> usize {
    let Some(body) = rest[2..].strip_prefix('{') else {
        let len = 2 + rest[2..].chars().next().map_or(0, char::len_utf8);
        out.push_str(&rest[..len]);
        return len;
    };
    let end = body.find('}').unwrap_or(body.len());
    // A caret inside turns the sense, as the other letter does outside.
    let (turned, name) = match body[..end].strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, &body[..end]),
    };
    let letter = if (c == 'P') == turned { 'p' } else { 'P' };
    let close = &body[end..(end + 1).min(body.len())];
    let _ = write!(out, "\\{letter}{{{name}{close}");
    3 + end + close.len()
}

/// Perl's classes are ASCII in RE2.
fn perl(c: char, class: bool, out: &mut String) -> usize {
    let text = match (c, class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('s', true) => "\\t\\n\\x0C\\r ",
        ('s', false) => "[\\t\\n\\x0C\\r ]",
        ('S', _) => "[^\\t\\n\\x0C\\r ]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        _ => {
            out.push('\\');
            out.push(c);
            return 2;
        }
    };
    out.push_str(text);
    2
}

/// `\0`, `\123`: a single digit other than zero would be a backreference.
fn octal(rest: &str, out: &mut String) -> Result<usize, &'static str> {
    let digits = rest[1..].bytes().take(3).take_while(|c| matches!(c, b'0'..=b'7')).count();
    if digits == 1 && !rest.starts_with("\\0") {
        return Err("invalid escape sequence");
    }
    let code = u32::from_str_radix(&rest[1..=digits], 8).map_err(|_| "invalid escape sequence")?;
    // Writing to a string cannot fail.
    let _ = write!(out, "\\x{{{code:x}}}");
    Ok(digits + 1)
}

/// `(?flags)` with flags that RE2 has, or a plain group.
fn group(rest: &str, out: &mut String) -> Result<usize, &'static str> {
    out.push('(');
    if !rest.starts_with("(?") {
        return Ok(1);
    }
    let named = rest.starts_with("(?P<") || rest.starts_with("(?<");
    if named && !rest.starts_with("(?<=") && !rest.starts_with("(?<!") {
        return Ok(1);
    }
    let flags = rest[2..].find([':', ')']).map(|at| &rest[2..2 + at]);
    match flags {
        Some(flags) if flags.chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')) => Ok(1),
        _ => Err("invalid or unsupported Perl syntax"),
    }
}

/// `{2,5}` repeats; any other brace is itself.
fn repeat(rest: &str, out: &mut String) -> Result<usize, &'static str> {
    let body = rest[1..].find('}').map(|at| &rest[1..=at]);
    let bounds = body.and_then(|body| {
        let (low, high) = body.split_once(',').unwrap_or((body, body));
        let number = |text: &str| {
            text.bytes()
                .all(|c| c.is_ascii_digit())
                .then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let low = if low.is_empty() { None } else { number(low) }?;
        let high = if high.is_empty() { Some(low) } else { number(high) }?;
        Some((low, high, body.len() + 2))
    });
    match bounds {
        Some((low, high, _)) if low.max(high) > MAX_REPEAT || high < low => {
            Err("invalid repeat count")
        }
        Some((_, _, len)) => {
            out.push_str(&rest[..len]);
            Ok(len)
        }
        None => {
            out.push_str("\\{");
            Ok(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(&pattern.into())
            .unwrap_or_else(|error| panic!("{pattern}: {error}"))
            .is_match(text.as_bytes())
    }

    #[test]
    fn shared_and_rewritten_syntax() {
        for (pattern, text) in [
            ("^web[0-9]+$", "web01"),
            (r"^\d+\z", "12"),
            (r"\Qa.b\E+", "a.b"),
            (r"\bfoo\b", "a foo b"),
            (r"[]a]", "]"),
            (r"[a[]", "["),
            (r"[[:alpha:]]+", "abc"),
            (r"[&&]", "&"),
            (r"a{,2}", "a{,2}"),
            (r"x{", "x{"),
            (r"\p{Han}+", "日本"),
            (r"(?P<n>f)(?:o)(?i)O", "foo"),
            (r"\101", "A"),
            (r"[\d-]+", "1-2"),
            (r"^\<\ \_\>$", "< _>"),
            (r"^\p{^Greek}\P{^Greek}$", "aα"),
            (r"^\pL\PL$", "a1"),
            (r"^[a&&b]+$", "&a"),
            (r"^[^]a]$", "b"),
            (r"^[a-]$", "-"),
            (r"^[-a]$", "-"),
            (r"^[[:digit:]x]+$", "4x"),
            (r"^[[:^digit:]]$", "x"),
            (r"^[A-Za-z0-9._%+-]+@", "a-b@"),
            (r"^[\d\-.]+$", "1-.2"),
            (r"^[\w.]+$", "a.b"),
            (r"^\Qa.b*\E+$", "a.b**"),
            (r"\<x\>", "<x>"),
            (r"[^\s]", "\u{a0}"),
        ] {
            assert!(matches(pattern, text), "{pattern}");
        }
        assert!(!matches(r"\d", "\u{0663}"), "digits are ASCII");
        assert!(!matches(r"^\w+$", "é"), "words are ASCII");
        assert!(!matches("a.b", "a\nb"));
    }

    #[test]
    fn what_re2_refuses() {
        for pattern in [
            "[", "[a", "(", "a**", r"(a)\1", "(?=a)", "(?<=a)b", "(?x) a", r"\Z", r"\q", "a{1001}",
            "a{2,1}", r"\", "(?P<n", r"\u0041",
        ] {
            assert!(compile(&pattern.into()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn huge_patterns_are_refused() {
        assert!(compile(&"((a{1000}){1000}){1000}".into()).is_err());
    }
}
