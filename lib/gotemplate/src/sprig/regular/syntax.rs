//! From RE2's syntax to that of the library: its classes are ASCII, brackets
//! know no set operations, and a brace that repeats nothing is a brace.

use std::iter::Peekable;
use std::str::Chars;

/// The pattern for the library; what only the library would understand is
/// written so that it means what RE2 takes it for.
pub(super) fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut out, false)?,
            '[' => class(&mut rest, &mut out)?,
            '{' => {
                let remaining: String = rest.clone().collect();
                out.push_str(if repeats(&remaining)? { "{" } else { r"\{" });
            }
            '(' if rest.peek() == Some(&'?') => {
                out.push('(');
                group(&mut rest, &mut out)?;
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Only these flags exist: the library knows more.
fn group(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), &'static str> {
    let ahead: String =
        rest.clone().skip(1).take_while(|c| !matches!(c, ':' | ')' | '>')).collect();
    let named = ahead.starts_with("P<") || ahead.starts_with('<');
    if named || ahead.chars().all(|c| "imsU-".contains(c)) {
        out.extend(rest.next());
        return Ok(());
    }
    Err("invalid or unsupported Perl syntax")
}

/// Whether what follows an opening brace is `3}`, `3,}` or `3,5}`.
fn repeats(rest: &str) -> Result<bool, &'static str> {
    let Some((inside, _)) = rest.split_once('}') else { return Ok(false) };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if least.is_empty() || !digits(least) || !digits(most) {
        return Ok(false);
    }
    let large = |text: &str| text.parse::<u32>().map_or(!text.is_empty(), |count| count > 1000);
    if large(least) || large(most) {
        return Err("invalid repeat count");
    }
    Ok(true)
}

fn escape(
    rest: &mut Peekable<Chars<'_>>,
    out: &mut String,
    in_class: bool,
) -> Result<(), &'static str> {
    let Some(c) = rest.next() else { return Err("trailing backslash at end of expression") };
    let set = match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'b' if !in_class => r"(?-u:\b)",
        'B' if !in_class => r"(?-u:\B)",
        'A' | 'z' if !in_class => {
            return {
                let _: () = out.extend(['\\', c]);
                Ok(())
            };
        }
        'Q' => {
            return {
                quoted(rest, out);
                Ok(())
            };
        }
        // One digit would refer back to a group, which takes more than linear time.
        '1'..='7' if !rest.peek().is_some_and(|next| matches!(next, '0'..='7')) => {
            return Err("invalid escape sequence");
        }
        'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'x' | '0'..='7' | 'p' | 'P' => {
            return {
                let _: () = out.extend(['\\', c]);
                Ok(())
            };
        }
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => {
            return {
                literal(c, out);
                Ok(())
            };
        }
        _ => return Err("invalid escape sequence"),
    };
    out.push_str(set);
    Ok(())
}

fn literal(c: char, out: &mut String) {
    // The library gives these two a meaning when escaped.
    if !matches!(c, '<' | '>') {
        out.push('\\');
    }
    out.push(c);
}

/// `\Q...\E` takes everything in between as it is.
fn quoted(rest: &mut Peekable<Chars<'_>>, out: &mut String) {
    while let Some(c) = rest.next() {
        if c == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            return;
        }
        if c.is_ascii_punctuation() {
            literal(c, out);
        } else {
            out.push(c);
        }
    }
}

fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), &'static str> {
    out.push('[');
    if rest.peek() == Some(&'^') {
        out.extend(rest.next());
    }
    let mut first = true;
    while let Some(c) = rest.next() {
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            '\\' => escape(rest, out, true)?,
            '[' if rest.peek() == Some(&':') => posix(rest, out),
            // Set operations of the library, plain characters in RE2.
            '[' | ']' | '&' | '~' | '^' => out.extend(['\\', c]),
            '-' if first || rest.peek() == Some(&']') || rest.peek() == Some(&'-') => {
                out.push_str(r"\-");
            }
            _ => out.push(c),
        }
        first = false;
    }
    Err("missing closing ]")
}

/// `[:alpha:]`; without its end the bracket is a character like any other.
fn posix(rest: &mut Peekable<Chars<'_>>, out: &mut String) {
    let ahead: String = rest.clone().collect();
    match ahead.find(":]") {
        Some(end) if ahead[1..end].chars().all(|c| c.is_ascii_lowercase() || c == '^') => {
            out.push('[');
            out.push_str(&ahead[..end + 2]);
            for _ in 0..end + 2 {
                rest.next();
            }
        }
        _ => out.push_str(r"\["),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        regex::Regex::new(&translate(pattern).unwrap()).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_ascii() {
        assert!(matches(r"^\d+$", "42") && !matches(r"^\d+$", "٤٢"));
        assert!(!matches(r"^\w+$", "é") && matches(r"^[\w.]+$", "a.b"));
        assert!(!matches(r"\s", "\u{a0}") && matches(r"[^\s]", "\u{a0}"));
        assert!(matches(r"\bfoo\b", "é foo!"));
    }

    #[test]
    fn brackets_hold_characters() {
        assert!(matches(r"^[[a]$", "[") && matches(r"^[a&&b]+$", "&a"));
        assert!(matches(r"^[]a]$", "]") && matches(r"^[^]a]$", "b"));
        assert!(matches(r"^[a-]$", "-") && matches(r"^[-a]$", "-"));
        assert!(matches(r"^[[:digit:]x]+$", "4x") && matches(r"^[[:^digit:]]$", "x"));
        assert!(matches(r"^[A-Za-z0-9._%+-]+@", "a-b@"));
        assert!(matches(r"^[\d\-.]+$", "1-.2"));
    }

    #[test]
    fn braces_and_quotes() {
        assert!(matches("^a{2}$", "aa") && matches("^a{,2}$", "a{,2}") && matches("^{$", "{"));
        assert!(matches(r"^\Qa.b*\E+$", "a.b**"));
        assert!(matches(r"\<x\>", "<x>") && matches(r"\_\-", "_-"));
        assert!(matches(r"(?i)ABC", "abc") && matches(r"(?P<n>a)(?:b)", "ab"));
        for bad in [r"\", r"(a)\1", "[a", "a{1001}", r"\y", "(?=a)", "(?x)a"] {
            assert!(translate(bad).is_err(), "{bad}");
        }
    }
}
