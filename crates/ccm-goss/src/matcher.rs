//! Matchers: conditions on a value.

mod lines;
mod pattern;
mod read;
mod semver;

use std::borrow::Cow;
use std::path::PathBuf;

use ccm_host::Host;
use govalue::{Value, json};

pub(crate) use pattern::{Pattern, Regexp};
pub(crate) use read::read;
pub use read::{MATCHERS, MatcherInfo};
use semver::Constraint;

/// What the machine said.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Any value; lines are one string.
    Value(Value),
    /// The content of a file that is not world-readable: matched, but not told.
    Hidden(Value),
    /// The content of a file that is too large to be held.
    LargeFile(Host, PathBuf),
}

/// What a value must be like.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Text(String),
    Number(Number),
    Bool(bool),
    Equal(Value),
    Prefix(String),
    Suffix(String),
    Substring(String),
    /// An expression that is wrong fails the test of whatever meets it.
    Regexp(Regexp),
    Compare(Order, Result<Number, String>),
    Patterns(Vec<Pattern>),
    Element(Box<Self>),
    Elements(Vec<Self>),
    ConsistOf(Vec<Self>),
    Len(Number),
    Key(Box<Self>),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Semver(Result<Constraint, String>),
    Gjson(Vec<(String, Self)>),
    /// A placeholder decides when the check runs.
    Open,
}

/// Which side is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A number, exact where it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// The number that a value is, or says.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Sized(kind, bits) if kind.is_unsigned() => {
                Some(Self::Int(bits.cast_unsigned().into()))
            }
            Value::Int(number) | Value::Sized(_, number) => Some(Self::Int((*number).into())),
            Value::Float(number) => Some(Self::Float(*number)),
            Value::String(text) => Self::parse(text.as_str()?.trim()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let whole = text.parse().ok().map(Self::Int);
        whole.or_else(|| govalue::parse_float(text).ok().map(Self::Float))
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    fn compare(self, other: Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => Some(one.cmp(&two)),
            _ => self.float().partial_cmp(&other.float()),
        }
    }
}

/// The text of a value: lists one element per line, everything else as Go
/// prints it.
fn text(value: &Value) -> Cow<'_, [u8]> {
    match value {
        Value::String(text) => Cow::Borrowed(text.as_bytes()),
        Value::Bytes(bytes) => Cow::Borrowed(bytes),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(text).collect();
            Cow::Owned(items.join(&b'\n'))
        }
        other => Cow::Owned(other.to_string().into_bytes()),
    }
}

/// The elements of a list, the values of a map, the lines of text.
fn elements(value: &Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items.to_vec()),
        Value::Map(map) => Ok(map.values().cloned().collect()),
        Value::String(text) => {
            let bytes = text.as_bytes();
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let lines = bytes.split(|&byte| byte == b'\n');
            Ok(lines.map(|line| Value::String(govalue::Str::from_bytes(line))).collect())
        }
        other => Err(format!("{} is not a list", shown(other))),
    }
}

/// A value in a sentence.
fn shown(value: &Value) -> String {
    shorten(&crate::tree::to_json(value).to_string())
}

/// Only the beginning of what is long.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Matcher {
    /// Whether it holds. A value that cannot be compared is an error, with the
    /// reason for people, and an error is no match even below `not`.
    pub(crate) fn holds(&self, found: &Found) -> Result<bool, String> {
        match (self, found) {
            (_, Found::Value(value)) => self.holds_for(value),
            // A reason would quote the content.
            (_, Found::Hidden(value)) => self
                .holds_for(value)
                .map_err(|_| "the content, which ccm redacts, cannot be compared".to_owned()),
            (Self::Patterns(patterns), Found::LargeFile(host, path)) => {
                pattern::hold_in_file(patterns, host, path)
            }
            (Self::Not(inner), _) => inner.holds(found).map(|holds| !holds),
            (Self::And(all), _) => all_hold(all, |one| one.holds(found)),
            (Self::Or(any), _) => any_holds(any, |one| one.holds(found)),
            _ => Err("the file is larger than 64 MiB: use a list of patterns".to_owned()),
        }
    }

    fn holds_for(&self, value: &Value) -> Result<bool, String> {
        let number =
            || Number::of(value).ok_or_else(|| format!("{} is not a number", shown(value)));
        Ok(match self {
            Self::Text(wanted) => *text(value) == *wanted.as_bytes(),
            Self::Number(wanted) => number()?.compare(*wanted) == Some(std::cmp::Ordering::Equal),
            Self::Bool(wanted) => value.as_bool() == Some(*wanted),
            Self::Equal(wanted) => value == wanted,
            Self::Prefix(wanted) => text(value).starts_with(wanted.as_bytes()),
            Self::Suffix(wanted) => text(value).ends_with(wanted.as_bytes()),
            Self::Substring(wanted) => {
                memchr::memmem::find(&text(value), wanted.as_bytes()).is_some()
            }
            Self::Regexp(regexp) => regexp.get()?.is_match(&text(value)),
            Self::Compare(order, wanted) => {
                let wanted = wanted.as_ref().map_err(Clone::clone)?;
                order.holds(number()?.compare(*wanted))
            }
            Self::Patterns(patterns) => pattern::hold_in_text(patterns, &text(value))?,
            Self::Element(matcher) => any_element(elements(value)?.iter(), matcher)?,
            Self::Elements(matchers) => {
                let elements = elements(value)?;
                pair(matchers, &elements)?.is_some()
            }
            Self::ConsistOf(matchers) => {
                let elements = elements(value)?;
                elements.len() == matchers.len() && pair(matchers, &elements)?.is_some()
            }
            Self::Len(wanted) => {
                let length = match value {
                    Value::String(text) => text.len(),
                    Value::Array(items) => items.len(),
                    Value::Map(map) => map.len(),
                    other => return Err(format!("{} has no length", shown(other))),
                };
                Number::Int(length as i128).compare(*wanted) == Some(std::cmp::Ordering::Equal)
            }
            Self::Key(matcher) => match value {
                Value::Map(map) => {
                    let keys: Vec<Value> = map.keys().map(|key| key.value().clone()).collect();
                    any_element(keys.iter(), matcher)?
                }
                other => return Err(format!("{} is not a map", shown(other))),
            },
            Self::Not(inner) => !inner.holds_for(value)?,
            Self::And(all) => all_hold(all, |one| one.holds_for(value))?,
            Self::Or(any) => any_holds(any, |one| one.holds_for(value))?,
            Self::Semver(constraint) => {
                let constraint = constraint.as_ref().map_err(Clone::clone)?;
                semver::all_satisfy(constraint, value)?
            }
            Self::Gjson(paths) => gjson_holds(paths, value)?,
            Self::Open => return Err("a placeholder was not resolved".to_owned()),
        })
    }
}

impl Order {
    fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        // What cannot be ordered is neither larger nor smaller.
        order.is_some_and(|order| match self {
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
        })
    }
}

fn all_hold<T>(
    all: &[T],
    mut holds: impl FnMut(&T) -> Result<bool, String>,
) -> Result<bool, String> {
    for one in all {
        if !holds(one)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any_holds<T>(
    any: &[T],
    mut holds: impl FnMut(&T) -> Result<bool, String>,
) -> Result<bool, String> {
    for one in any {
        if holds(one)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one of the elements matches. One that cannot be compared is no match;
/// if there is no other, it is the reason.
fn any_element<'a>(
    mut elements: impl Iterator<Item = &'a Value>,
    matcher: &Matcher,
) -> Result<bool, String> {
    let mut reason = None;
    let is_there = elements.any(|element| {
        matcher.holds_for(element).unwrap_or_else(|error| {
            reason = Some(error);
            false
        })
    });
    match reason {
        Some(reason) if !is_there => Err(reason),
        _ => Ok(is_there),
    }
}

/// Finds an element of its own for each matcher: the element of each, or none
/// if there is no way.
fn pair(matchers: &[Matcher], elements: &[Value]) -> Result<Option<Vec<usize>>, String> {
    if matchers.len() > elements.len() {
        return Ok(None);
    }
    let mut reason = None;
    let mut fits = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        let row: Vec<usize> = elements
            .iter()
            .enumerate()
            .filter(|(_, element)| {
                matcher.holds_for(element).unwrap_or_else(|error| {
                    reason = Some(error);
                    false
                })
            })
            .map(|(at, _)| at)
            .collect();
        fits.push(row);
    }
    let mut owner: Vec<Option<usize>> = vec![None; elements.len()];
    for matcher in 0..matchers.len() {
        if !assign(matcher, &fits, &mut owner) {
            return reason.map_or(Ok(None), Err);
        }
    }
    let mut pairs = vec![0; matchers.len()];
    for (element, owner) in owner.iter().enumerate() {
        if let Some(matcher) = owner {
            pairs[*matcher] = element;
        }
    }
    Ok(Some(pairs))
}

/// Gives a matcher an element, moving others to elements that they fit as well.
/// Breadth first, so that long lists do not nest deeply.
fn assign(matcher: usize, fits: &[Vec<usize>], owner: &mut [Option<usize>]) -> bool {
    // For each element, the matcher that would take it.
    let mut taker: Vec<Option<usize>> = vec![None; owner.len()];
    let mut queue = std::collections::VecDeque::from([matcher]);
    while let Some(current) = queue.pop_front() {
        for &element in &fits[current] {
            if taker[element].is_some() {
                continue;
            }
            taker[element] = Some(current);
            if let Some(holder) = owner[element] {
                queue.push_back(holder);
                continue;
            }
            // A free element: everyone on the way moves up by one.
            let mut free = element;
            while let Some(next) = taker[free] {
                let before = owner.iter().position(|held| *held == Some(next));
                owner[free] = Some(next);
                match before {
                    Some(before) if next != matcher => free = before,
                    _ => return true,
                }
            }
        }
    }
    false
}

fn gjson_holds(paths: &[(String, Matcher)], value: &Value) -> Result<bool, String> {
    let document = text(value);
    let document = std::str::from_utf8(&document).ok();
    let is_json = |text: &&str| json::decode(text, json::Numbers::Ints).is_ok();
    let document =
        document.filter(is_json).ok_or_else(|| format!("{} is not JSON", shown(value)))?;
    all_hold(paths, |(path, matcher)| {
        let found = gjson::get(document, path).map_err(|error| format!("{path}: {error}"))?;
        if !found.exists() {
            return Err(format!("there is nothing at {path}"));
        }
        let found = json::decode(found.raw(), json::Numbers::Ints)
            .or_else(|_| found.lookup())
            .map_err(|error| format!("{path}: {error}"))?;
        matcher.holds_for(&found).map_err(|reason| format!("{path}: {reason}"))
    })
}
