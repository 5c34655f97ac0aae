//! Paths made once and used often.

use govalue::{Value, json};

use crate::modifier::Modifier;
use crate::tree::{self, Segment};
use crate::{Error, Found};

/// A GJSON path. There is no wrong one: what has no meaning is a name.
#[derive(Clone, Debug)]
pub struct Path {
    text: Box<str>,
    /// The plain names and indexes that the path begins with.
    plain: Vec<Segment>,
    /// Where the rest begins that needs JSON text; `None` if all is plain.
    rest: Option<Rest>,
}

/// The part of a path that is not plain.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: usize,
    /// Whether it is applied to whatever the plain part finds, if only to
    /// nothing; otherwise it leads into an object or an array.
    piped: bool,
}

impl Path {
    /// Prepares a path.
    pub fn compile(text: &str) -> Self {
        let mut path = Self { text: text.into(), plain: Vec::new(), rest: None };
        // At the start of a path, two dots stand for lines.
        if text.starts_with("..") {
            path.rest = Some(Rest { at: 0, piped: false });
            return path;
        }
        let mut at = 0;
        loop {
            let part = &text[at..];
            let length = part.find(['.', '|']).unwrap_or(part.len());
            if let Some(piped) = special(&part[..length]) {
                path.rest = Some(Rest { at, piped });
                return path;
            }
            path.plain.push(Segment::new(&part[..length]));
            match part.as_bytes().get(length) {
                None => return path,
                Some(b'.') => at += length + 1,
                Some(_) => {
                    path.rest = Some(Rest { at: at + length + 1, piped: true });
                    return path;
                }
            }
        }
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the path is nothing but names and indexes with dots between them.
    pub fn is_plain(&self) -> bool {
        self.rest.is_none()
    }

    /// Evaluates the path over a JSON text.
    pub fn get<'a>(&self, json: &'a str) -> Result<Found<'a>, Error> {
        crate::get(json, &self.text)
    }

    /// What the path finds in a dynamic value, as if that were written as JSON
    /// with its keys sorted; typed as by [`Found::lookup`].
    ///
    /// A plain path only walks the value. Any other walks as far as it is plain
    /// and has the rest written as JSON; [`Document`](crate::Document) keeps
    /// that text between lookups.
    pub fn lookup(&self, root: &Value) -> Result<Option<Value>, Error> {
        let Some(rest) = self.rest else { return self.lookup_plain(root) };
        let text = &self.text[rest.at..];
        let Some((_, parents)) = self.plain.split_last() else {
            return find(&write(root)?, text);
        };
        match tree::walk(root, &self.plain) {
            Some(value) if rest.piped || tree::is_container(value) => find(&write(value)?, text),
            None if rest.piped && tree::walk(root, parents).is_some_and(tree::is_container) => {
                find("", text)
            }
            _ => Ok(None),
        }
    }

    /// Whether the plain part already fails, and the rest cannot mend it.
    pub(crate) fn leads_nowhere(&self, root: &Value) -> bool {
        let piped = self.rest.is_some_and(|rest| rest.piped);
        !piped
            && !self.plain.is_empty()
            && !tree::walk(root, &self.plain).is_some_and(tree::is_container)
    }

    /// What a plain path finds.
    pub(crate) fn lookup_plain(&self, root: &Value) -> Result<Option<Value>, Error> {
        tree::walk(root, &self.plain).map(tree::typed).transpose()
    }
}

/// What a path finds in the text of a value.
pub(crate) fn find(text: &str, path: &str) -> Result<Option<Value>, Error> {
    let found = crate::get(text, path)?;
    found.exists().then(|| found.lookup()).transpose()
}

/// A value as JSON with its keys sorted.
pub(crate) fn write(value: &Value) -> Result<String, Error> {
    Ok(json::encode(value, json::Options::default())?)
}

/// Whether a component is more than a name or an index, and then whether it is
/// applied to whole values.
fn special(part: &str) -> Option<bool> {
    let whole = match part.as_bytes().first() {
        Some(b'@') => Modifier::at_start(part).is_some(),
        Some(b'!' | b'[' | b'{') => true,
        _ => false,
    };
    (whole || part.contains(['*', '?', '\\', '#'])).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use govalue::Map;

    #[test]
    fn plain_parts() {
        for (path, names, rest) in [
            ("a.0.b", 3, None),
            ("", 1, None),
            ("a..b.", 4, None),
            ("a:b.x@y.@nope", 3, None),
            ("..0", 0, Some(("..0", false))),
            ("a.b|c", 2, Some(("c", true))),
            ("a.b.#.c", 2, Some(("#.c", false))),
            ("a.@keys.0", 1, Some(("@keys.0", true))),
            ("a.{b,c}", 1, Some(("{b,c}", true))),
            (r"a.b\.c.d", 1, Some((r"b\.c.d", false))),
            ("*.a", 0, Some(("*.a", false))),
        ] {
            let path = Path::compile(path);
            let found = path.rest.map(|rest| (&path.text[rest.at..], rest.piped));
            assert_eq!((path.plain.len(), found), (names, rest), "{}", path.as_str());
            assert_eq!(path.is_plain(), rest.is_none());
        }
    }

    #[test]
    fn lookups() {
        let list = Value::array([1.into(), 2.into()]);
        let root = Value::from(Map::from_iter([("list", list), ("n", 5.into())]));
        let lookup = |path| Path::compile(path).lookup(&root).unwrap();
        assert_eq!(lookup("list.1"), Some(Value::Int(2)));
        assert_eq!(lookup("list.#"), Some(Value::Int(2)));
        assert_eq!(lookup("list.#(>1)"), Some(Value::Int(2)));
        assert_eq!(lookup("list|@reverse"), Some(Value::array([2.0.into(), 1.0.into()])));
        assert_eq!(lookup("n.#"), None);
        assert_eq!(lookup("n.@tostr"), Some("5".into()));
        // A pipe goes on from nothing; a path through nothing does not.
        assert_eq!(lookup("nope|!5"), Some(Value::Int(5)));
        assert_eq!(lookup("nope.x|!5"), None);
    }

    #[test]
    fn what_json_cannot_hold() {
        let root = Value::from(Map::from_iter([("n", f64::NAN)]));
        assert!(matches!(Path::compile("*").lookup(&root), Err(Error::Unsupported(_))));
    }
}
