//! Several paths at once: `[a,b]` and `{a,"k":b}`.

use crate::run::{Output, Run};
use crate::valid::is_valid;
use crate::{Error, scan, text};

/// The selectors between the brackets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Multipath<'p> {
    object: bool,
    selectors: Vec<Selector<'p>>,
}

/// One path, with the key its result goes under.
#[derive(Debug, PartialEq, Eq)]
struct Selector<'p> {
    name: Option<&'p str>,
    path: &'p str,
}

impl<'p> Multipath<'p> {
    /// Reads the multipath that a path begins with; says what follows it.
    pub(crate) fn parse(path: &'p str) -> Option<(Self, &'p str)> {
        let bytes = path.as_bytes();
        let mut selectors = Vec::new();
        let (mut at, mut start) = (1, 1);
        let end = loop {
            match bytes.get(at)? {
                b'\\' => at += 1,
                b'"' => {
                    at = scan::string_end(bytes, at)?;
                    continue;
                }
                b'[' | b'(' | b'{' => {
                    at = scan::group_end(bytes, at)?;
                    continue;
                }
                b',' => {
                    selectors.push(Selector::parse(&path[start..at]));
                    start = at + 1;
                }
                b']' | b')' | b'}' => break at,
                _ => {}
            }
            at += 1;
        };
        selectors.push(Selector::parse(&path[start..end]));
        let rest = &path[end + 1..];
        // Brackets with more behind them are part of a name.
        let whole = rest.is_empty() || rest.starts_with(['.', '|']);
        whole.then_some((Self { object: bytes[0] == b'{', selectors }, rest))
    }
}

impl<'p> Selector<'p> {
    fn parse(text: &'p str) -> Self {
        match name_end(text.as_bytes()) {
            Some(colon) => Self { name: Some(&text[..colon]), path: &text[colon + 1..] },
            None => Self { name: None, path: text },
        }
    }

    /// The key for the result, as JSON.
    fn key(&self) -> String {
        match self.name {
            Some(name) if name.starts_with('"') && is_valid(name) => name.to_owned(),
            Some(name) if !name.is_empty() => text::quote(name),
            _ => match last_component(self.path) {
                last if is_simple(last) => text::quote(last),
                _ => text::quote("_"),
            },
        }
    }
}

/// Where the colon is that ends the name of a selector: right behind a quoted
/// name, otherwise the last one before brackets and before any modifier, whose
/// argument has a colon too.
fn name_end(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b'"') {
        let end = scan::string_end(bytes, 0)?;
        if bytes.get(end) == Some(&b':') {
            return Some(end);
        }
    }
    let (mut at, mut colon, mut before) = (0, None, b'.');
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b':' => colon = Some(at),
            b'@' if matches!(before, b'.' | b'|' | b':') => break,
            b'"' | b'[' | b'(' | b'{' => break,
            _ => {}
        }
        before = *byte;
        at += 1;
    }
    colon
}

fn last_component(path: &str) -> &str {
    let bytes = path.as_bytes();
    let separator = (0..bytes.len())
        .rev()
        .find(|at| matches!(bytes[*at], b'.' | b'|') && (*at == 0 || bytes[*at - 1] != b'\\'));
    separator.map_or(path, |at| &path[at + 1..])
}

/// Whether a component can be the name of its result.
fn is_simple(component: &str) -> bool {
    !component.contains(|char: char| char < ' ' || "[]{}()#|!".contains(char))
}

/// The results of all the paths that find something.
pub(crate) fn collect(run: &Run, json: &str, multipath: &Multipath<'_>) -> Result<String, Error> {
    let (open, close) = if multipath.object { ("{", "}") } else { ("[", "]") };
    let mut out = Output::new(run);
    out.push(open)?;
    for selector in &multipath.selectors {
        let found = run.get(json, selector.path)?;
        if !found.exists() {
            continue;
        }
        if out.as_str().len() > 1 {
            out.push(",")?;
        }
        if multipath.object {
            out.push(&selector.key())?;
            out.push(":")?;
        }
        out.push(found.raw())?;
    }
    out.push(close)?;
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(path: &str) -> Vec<(Option<&str>, &str)> {
        let (multipath, _) = Multipath::parse(path).unwrap();
        multipath.selectors.iter().map(|selector| (selector.name, selector.path)).collect()
    }

    #[test]
    fn selectors_and_their_names() {
        assert_eq!(selectors("[a.b,c]"), [(None, "a.b"), (None, "c")]);
        assert_eq!(selectors(r#"{"x":a,y:b}"#), [(Some("\"x\""), "a"), (Some("y"), "b")]);
        assert_eq!(selectors(r#"{"x":{"y":{a}}}"#), [(Some("\"x\""), r#"{"y":{a}}"#)]);
        assert_eq!(selectors(r#"{{"y":a}}"#), [(None, r#"{"y":a}"#)]);
        assert_eq!(
            selectors(r#"[a.@flatten:{"deep":true},b]"#),
            [(None, r#"a.@flatten:{"deep":true}"#), (None, "b")]
        );
        assert_eq!(selectors("{k:@dig:x}"), [(Some("k"), "@dig:x")]);
        assert_eq!(selectors(r#"[a.#(b==",]")#.c]"#), [(None, r#"a.#(b==",]")#.c"#)]);
    }

    #[test]
    fn ends() {
        assert_eq!(Multipath::parse("[a].0").unwrap().1, ".0");
        for path in ["[a", "{a,\"b", "[a]x", "[a(]"] {
            assert_eq!(Multipath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn keys() {
        for (selector, want) in [
            ("a.b", "\"b\""),
            (r"a.b\.c", r#""b\\.c""#),
            ("a.#", "\"_\""),
            ("a.#(b>1)#.c", "\"c\""),
            ("x y:b", "\"x y\""),
            (":b", "\"b\""),
        ] {
            assert_eq!(Selector::parse(selector).key(), want, "{selector}");
        }
    }
}
