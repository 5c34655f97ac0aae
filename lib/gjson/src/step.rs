//! One component of a path. What it means depends on whether it meets an object
//! or an array, so there are two ways to read it.

use std::borrow::Cow;

use crate::found::body;
use crate::modifier::Modifier;
use crate::query::Query;
use crate::run::Run;
use crate::{Error, glob, scan, text};

/// What follows a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<'p> {
    /// Nothing: the component names the result.
    End,
    /// A path into the value.
    Down(&'p str),
    /// A path over the result.
    Pipe(&'p str),
}

impl<'p> Next<'p> {
    /// What a dot leads to: a pipe, if what follows it works on whole values.
    fn after_dot(rest: &'p str) -> Self {
        let whole = match rest.as_bytes().first() {
            Some(b'@') => Modifier::at_start(rest).is_some(),
            Some(b'[' | b'{' | b'!') => true,
            _ => false,
        };
        if whole { Self::Pipe(rest) } else { Self::Down(rest) }
    }
}

/// A component as a key of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObjectStep<'p> {
    /// The key without escapes.
    name: Cow<'p, str>,
    /// The component as a pattern, if it has wildcards.
    pattern: Option<&'p str>,
    pub(crate) next: Next<'p>,
}

impl<'p> ObjectStep<'p> {
    pub(crate) fn parse(path: &'p str) -> Self {
        let bytes = path.as_bytes();
        let (mut at, mut wild, mut escaped) = (0, false, false);
        let next = loop {
            match bytes.get(at) {
                None => break Next::End,
                Some(b'.') => break Next::after_dot(&path[at + 1..]),
                Some(b'|') => break Next::Pipe(&path[at + 1..]),
                Some(b'*' | b'?') => wild = true,
                Some(b'\\') => {
                    escaped = true;
                    at += 1;
                }
                Some(_) => {}
            }
            at += 1;
        };
        let part = path.get(..at).unwrap_or(path);
        Self {
            name: if escaped { Cow::Owned(without_escapes(part)) } else { Cow::Borrowed(part) },
            pattern: wild.then_some(part),
            next,
        }
    }

    /// Whether a key of the object, quotes included, is meant.
    pub(crate) fn matches(&self, run: &Run, key: &str) -> Result<bool, Error> {
        let key = text::unescape(body(key));
        match self.pattern {
            Some(pattern) => glob::matches(run, &key, pattern),
            None => Ok(self.name == key),
        }
    }
}

fn without_escapes(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut chars = part.chars();
    while let Some(char) = chars.next() {
        if char == '\\' {
            out.extend(chars.next());
        } else {
            out.push(char);
        }
    }
    out
}

/// Which elements of an array are meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Select<'p> {
    /// None: the component is a name.
    Nothing,
    /// The one at this index.
    Index(usize),
    /// Not the elements but their number.
    Count,
    /// What a path finds in each.
    Each(&'p str),
    /// Those that match.
    Query(Query<'p>),
}

/// A component as a selection from an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArrayStep<'p> {
    pub(crate) select: Select<'p>,
    pub(crate) next: Next<'p>,
}

impl<'p> ArrayStep<'p> {
    pub(crate) fn parse(path: &'p str) -> Self {
        if let Some(each) = path.strip_prefix("#.") {
            return Self { select: Select::Each(each), next: Next::End };
        }
        let query = if path.starts_with("#(") || path.starts_with("#[") {
            let (mut query, end) = Query::parse(path);
            query.all = path[end..].starts_with('#');
            Some((query, end))
        } else {
            None
        };
        let from = query.as_ref().map_or(0, |(_, end)| *end);
        let end = path[from..].find(['.', '|']).map_or(path.len(), |length| from + length);
        let part = &path[..end];
        let next = match path.as_bytes().get(end) {
            None => Next::End,
            Some(b'|') => Next::Pipe(&path[end + 1..]),
            // After a hash, a dot goes into each element whatever follows.
            Some(_) if part.contains('#') => Next::Down(&path[end + 1..]),
            Some(_) => Next::after_dot(&path[end + 1..]),
        };
        let select = match query {
            Some((query, _)) => Select::Query(query),
            None if part == "#" => Select::Count,
            None => index(part).map_or(Select::Nothing, Select::Index),
        };
        Self { select, next }
    }
}

/// The index that a component stands for: digits alone, zeros in front allowed.
pub(crate) fn index(part: &str) -> Option<usize> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // An index too large for the machine is one that no array has.
    digits.then(|| part.parse().unwrap_or(usize::MAX))
}

/// Splits a path that is applied to each element from the one that is applied
/// to the list of results: at the first pipe outside of brackets.
pub(crate) fn split_pipe(path: &str) -> (&str, Option<&str>) {
    match find_pipe(path) {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    }
}

/// The first pipe that is neither escaped nor inside of brackets.
pub(crate) fn find_pipe(path: &str) -> Option<usize> {
    let bytes = path.as_bytes();
    let (mut at, mut balanced) = (0, true);
    loop {
        match bytes.get(at)? {
            b'|' => return Some(at),
            b'\\' => at += 1,
            // Once one is left open, brackets are characters like others.
            b'(' | b'[' | b'{' if balanced => match scan::group_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => balanced = false,
            },
            _ => {}
        }
        at += 1;
    }
}

/// A literal such as `!"text"` or `!true`: its value and what follows it.
pub(crate) fn literal(path: &str) -> Option<(&str, &str)> {
    let text = path.strip_prefix('!')?;
    let bytes = text.as_bytes();
    let end = match bytes.first()? {
        b'"' => scan::string_end(bytes, 0).unwrap_or(bytes.len()),
        b'{' | b'[' => scan::group_end(bytes, 0).unwrap_or(bytes.len()),
        b'+' | b'-' | b'0'..=b'9' => {
            let end = text.find('|').unwrap_or(text.len());
            // A dot that no digit follows belongs to the path.
            let dot = text[..end]
                .match_indices('.')
                .find(|(at, _)| !bytes.get(at + 1).is_some_and(u8::is_ascii_digit));
            dot.map_or(end, |(at, _)| at)
        }
        _ => {
            let end = text.find(['.', '|']).unwrap_or(text.len());
            let word = ["true", "false", "null", "nan", "inf"]
                .iter()
                .any(|word| text[..end].eq_ignore_ascii_case(word));
            if !word {
                return None;
            }
            end
        }
    };
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let step = ObjectStep::parse;
        assert_eq!(
            step("a.b"),
            ObjectStep { name: "a".into(), pattern: None, next: Next::Down("b") }
        );
        assert_eq!(
            step(r"a\.b*|c"),
            ObjectStep { name: "a.b*".into(), pattern: Some(r"a\.b*"), next: Next::Pipe("c") }
        );
        assert_eq!(step("a.@this").next, Next::Pipe("@this"));
        assert_eq!(step("a.@other").next, Next::Down("@other"));
        assert_eq!(step("a.{b}").next, Next::Pipe("{b}"));
        assert_eq!(step(r"a\").name, "a");
        assert_eq!(step(r"\日.x").name, "日");
        let run = Run::new("");
        assert_eq!(step("b*").matches(&run, r#""b\u0061""#), Ok(true));
        assert_eq!(step(r"b\*").matches(&run, r#""ba""#), Ok(false));
    }

    #[test]
    fn elements() {
        let step = ArrayStep::parse;
        for (path, select, next) in [
            ("0", Select::Index(0), Next::End),
            ("007.a", Select::Index(7), Next::Down("a")),
            ("1.@this", Select::Index(1), Next::Pipe("@this")),
            ("-1", Select::Nothing, Next::End),
            ("a|b", Select::Nothing, Next::Pipe("b")),
            ("#", Select::Count, Next::End),
            ("#|a", Select::Count, Next::Pipe("a")),
            ("#.a|b", Select::Each("a|b"), Next::End),
            ("##", Select::Nothing, Next::End),
            ("99999999999999999999999", Select::Index(usize::MAX), Next::End),
        ] {
            assert_eq!(step(path), ArrayStep { select, next }, "{path}");
        }
        assert_eq!(step("#(a.b==1)#.@this").next, Next::Down("@this"));
        assert_eq!(step("#(a.b|c)|d").next, Next::Pipe("d"));
    }

    #[test]
    fn pipes() {
        assert_eq!(split_pipe("a.b|c|d"), ("a.b", Some("c|d")));
        assert_eq!(split_pipe(r"a\|b"), (r"a\|b", None));
        assert_eq!(split_pipe(r#"#(x=="|")#.{a|b}|c"#), (r#"#(x=="|")#.{a|b}"#, Some("c")));
        assert_eq!(split_pipe("a(|b"), ("a(", Some("b")));
    }

    #[test]
    fn literals() {
        for (path, want) in [
            ("!true", Some(("true", ""))),
            ("!True|x", Some(("True", "|x"))),
            ("!\"a.b\".c", Some(("\"a.b\"", ".c"))),
            ("![1,2].0", Some(("[1,2]", ".0"))),
            ("!1.5", Some(("1.5", ""))),
            ("!5.@tostr", Some(("5", ".@tostr"))),
            ("!-3|x", Some(("-3", "|x"))),
            ("!other", None),
            ("!", None),
        ] {
            assert_eq!(literal(path), want, "{path}");
        }
    }
}
