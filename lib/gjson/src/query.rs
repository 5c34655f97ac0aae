//! Queries: `#(age>40)`.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::found::{Found, Kind, number};
use crate::run::Run;
use crate::{Error, glob, scan, text};

/// How a query compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    /// Not at all: it is enough that there is something.
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
    /// A lone `!`, which nothing matches.
    Never,
}

impl Operator {
    /// The operator that a text begins with, and what follows it.
    fn parse(text: &str) -> (Self, &str) {
        const OPERATORS: [(&str, Operator); 9] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("!%", Operator::NotLike),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("%", Operator::Like),
        ];
        OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))
            .unwrap_or((if text == "!" { Self::Never } else { Self::Exists }, text))
    }

    /// Whether the operator accepts an order of its two sides.
    fn accepts(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Self::Exists | Self::Like | Self::NotLike | Self::Never => false,
        }
    }
}

/// A condition on the elements of an array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query<'p> {
    /// What to look at in each element; empty for the element itself.
    pub(crate) path: &'p str,
    operator: Operator,
    value: Cow<'p, str>,
    /// Whether all matches are wanted, not the first.
    pub(crate) all: bool,
}

impl<'p> Query<'p> {
    /// Reads the query that a path begins with; says where it ends.
    ///
    /// A query without its closing bracket takes all of the path and, like an
    /// empty one, only asks that there is an element.
    pub(crate) fn parse(path: &'p str) -> (Self, usize) {
        let bytes = path.as_bytes();
        let Some((operator_at, close)) = outline(bytes) else {
            return (Self::new("", Operator::Exists, ""), path.len());
        };
        let query = match operator_at {
            None => Self::new(trim(&path[2..close]), Operator::Exists, ""),
            Some(at) => {
                let (operator, value) = Operator::parse(trim(&path[at..close]));
                Self::new(trim(&path[2..at]), operator, trim(value))
            }
        };
        (query, close + 1)
    }

    fn new(path: &'p str, operator: Operator, value: &'p str) -> Self {
        let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
        let value =
            if quoted { text::unescape(&value[1..value.len() - 1]) } else { Cow::Borrowed(value) };
        Self { path, operator, value, all: false }
    }

    /// Whether the value found in an element is one the query asks for.
    pub(crate) fn matches(&self, run: &Run, found: &Found<'_>) -> Result<bool, Error> {
        if let Some(word) = self.value.strip_prefix('~') {
            let answer = match word {
                "*" => found.exists(),
                "null" => found.kind() == Kind::Null,
                "true" => found.is_trueish(),
                "false" => found.is_falseish(),
                _ => return Ok(false),
            };
            return Ok(self.matches_bool(answer, "true"));
        }
        if !found.exists() || self.operator == Operator::Exists {
            return Ok(found.exists());
        }
        Ok(match found.kind() {
            Kind::String => {
                let text = found.text();
                match self.operator {
                    Operator::Like => glob::matches(run, &text, &self.value)?,
                    Operator::NotLike => !glob::matches(run, &text, &self.value)?,
                    operator => operator.accepts(Some((*text).cmp(&*self.value))),
                }
            }
            Kind::Number => self.operator.accepts(found.number().partial_cmp(&number(&self.value))),
            Kind::True => self.matches_bool(true, &self.value),
            Kind::False => self.matches_bool(false, &self.value),
            Kind::Null | Kind::Json => false,
        })
    }

    /// Booleans know only the words for each other, but true is at least
    /// anything, and false at most.
    fn matches_bool(&self, value: bool, wanted: &str) -> bool {
        let (own, other) = if value { ("true", "false") } else { ("false", "true") };
        match self.operator {
            Operator::Equal => wanted == own,
            Operator::NotEqual => wanted != own,
            Operator::Greater => value && wanted == other,
            Operator::GreaterOrEqual => value,
            Operator::Less => !value && wanted == other,
            Operator::LessOrEqual => !value,
            Operator::Exists | Operator::Like | Operator::NotLike | Operator::Never => false,
        }
    }
}

/// Where in `#(…)` the operator is, if there is one, and the closing bracket.
fn outline(bytes: &[u8]) -> Option<(Option<usize>, usize)> {
    let (mut at, mut depth, mut operator) = (2, 1usize, None);
    loop {
        match bytes.get(at)? {
            b'!' | b'=' | b'<' | b'>' | b'%' if depth == 1 && operator.is_none() => {
                operator = Some(at);
            }
            b'\\' => at += 1,
            b'"' => {
                at = scan::string_end(bytes, at)?;
                continue;
            }
            b'(' | b'[' => depth += 1,
            b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some((operator, at));
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(|char| char <= ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing() {
        for (path, want, end) in [
            ("#(a)", ("a", Operator::Exists, ""), 4),
            ("#( a == \"x\\\"\" ).b", ("a", Operator::Equal, "x\""), 15),
            ("#[a!=1]#", ("a", Operator::NotEqual, "1"), 7),
            ("#(%\"a)*\")", ("", Operator::Like, "a)*"), 9),
            ("#(!%x)", ("", Operator::NotLike, "x"), 6),
            ("#(a.#(b==1)>=2)", ("a.#(b==1)", Operator::GreaterOrEqual, "2"), 15),
            (r"#(a\=b=c)", ("a\\=b", Operator::Equal, "c"), 9),
            ("#(!)", ("", Operator::Never, "!"), 4),
            ("#()", ("", Operator::Exists, ""), 3),
            ("#(a==\"x", ("", Operator::Exists, ""), 7),
        ] {
            let (query, at) = Query::parse(path);
            assert_eq!((query.path, query.operator, &*query.value), want, "{path}");
            assert_eq!(at, end, "{path}");
        }
    }

    #[test]
    fn matching() {
        for (query, json, want) in [
            ("#(=\"a\")", "\"a\"", true),
            ("#(<b)", "\"a\"", true),
            ("#(>=2)", "2.0", true),
            ("#(=x)", "0", true),
            ("#(!=1)", "nan", true),
            ("#(<=1)", "nan", false),
            ("#(>false)", "true", true),
            ("#(>=true)", "true", true),
            ("#(>=false)", "false", false),
            ("#(<=x)", "false", true),
            ("#(!=x)", "null", false),
            ("#(=~null)", "null", true),
            ("#(=~true)", "\"1\"", true),
            ("#(!=~true)", "2", false),
            ("#(<~true)", "0", true),
            ("#(=~other)", "1", false),
            ("#(!%\"a*\")", "\"ba\"", true),
            ("#(%\"1\")", "1", false),
        ] {
            let found = Found::parse(json.into());
            let matched = Query::parse(query).0.matches(&Run::new(""), &found);
            assert_eq!(matched, Ok(want), "{query} {json}");
        }
    }
}
