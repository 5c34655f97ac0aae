//! Writes values as YAML: scalars in every style, collections in block and flow
//! style.

use std::fmt::Write as _;

use govalue::Value as Meaning;
use serde_json::Value;

use super::tree::Style;
use crate::value::scalar_value;
use crate::{Kind, Scalar, Source};

/// How long a list on one line may be.
const LINE: usize = 60;

/// The two kinds of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    Single,
    Double,
}

/// How new text is written at some place.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// The quotes of texts that need some.
    pub(super) quotes: Quotes,
    /// Whether all texts and keys inside of braces are quoted, as in JSON.
    pub(super) quote_all: Option<Quotes>,
    /// Whether braces have blanks inside.
    pub(super) has_blanks: bool,
    /// Blanks from a key to the keys below it.
    pub(super) step: usize,
    /// Blanks from a key to the dashes below it.
    pub(super) list_step: usize,
    /// Columns from a dash to what stands behind it.
    pub(super) dash_step: usize,
    /// Quotes where there is any doubt, and no blocks of text.
    pub(super) is_careful: bool,
}

/// A value as text: what stands behind the key or dash, and lines below it with
/// their indentation.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) first: String,
    pub(super) rest: Vec<String>,
}

impl Written {
    fn inline(first: String) -> Self {
        Self { first, rest: Vec::new() }
    }
}

/// Nothing can be said for a value or key.
#[derive(Debug)]
pub(super) struct Unspeakable;

type Said<T> = Result<T, Unspeakable>;

impl Manner {
    /// A value below a key or behind a dash at `column`. `is_item` says that it
    /// stands behind a dash.
    pub(super) fn value(&self, value: &Value, column: usize, is_item: bool) -> Said<Written> {
        match value {
            Value::Object(map) if !map.is_empty() => {
                let below = column + if is_item { self.dash_step } else { self.step };
                let mut lines = Vec::new();
                for (key, value) in map {
                    lines.extend(self.entry(key, value, below)?);
                }
                Ok(hang(lines, is_item))
            }
            Value::Array(items) if !items.is_empty() => {
                if let Some(line) = self.short_list(items)? {
                    return Ok(Written::inline(line));
                }
                let below = column + if is_item { self.dash_step } else { self.list_step };
                let mut lines = Vec::new();
                for item in items {
                    lines.extend(self.item(item, below)?);
                }
                Ok(hang(lines, is_item))
            }
            Value::String(text) => {
                let below = column + if is_item { self.dash_step } else { self.step };
                match self.literal(text, below, column) {
                    Some(written) => Ok(written),
                    None => Ok(Written::inline(self.text(text, false))),
                }
            }
            other => self.flow(other).map(Written::inline),
        }
    }

    /// A value that is the whole document.
    pub(super) fn document(&self, value: &Value) -> Said<Written> {
        let mut lines = Vec::new();
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    lines.extend(self.entry(key, value, 0)?);
                }
            }
            Value::Array(items) if !items.is_empty() => match self.short_list(items)? {
                Some(line) => lines.push(line),
                None => {
                    for item in items {
                        lines.extend(self.item(item, 0)?);
                    }
                }
            },
            Value::String(text) => lines.push(self.text(text, false)),
            other => lines.push(self.flow(other)?),
        }
        Ok(hang(lines, true))
    }

    /// A key and its value as lines; the indentation is in them.
    pub(super) fn entry(&self, key: &str, value: &Value, column: usize) -> Said<Vec<String>> {
        let Written { first, rest } = self.value(value, column, false)?;
        let mut line = format!("{:column$}{}:", "", self.key(key, false)?);
        if !first.is_empty() {
            line.push(' ');
            line.push_str(&first);
        }
        Ok(std::iter::once(line).chain(rest).collect())
    }

    /// An item as lines; the indentation is in them.
    pub(super) fn item(&self, value: &Value, column: usize) -> Said<Vec<String>> {
        let Written { first, rest } = self.value(value, column, true)?;
        let gap = self.dash_step.max(2) - 1;
        let line = format!("{:column$}-{:gap$}{first}", "", "");
        Ok(std::iter::once(line).chain(rest).collect())
    }

    /// A list of scalars that fits in one line.
    fn short_list(&self, items: &[Value]) -> Said<Option<String>> {
        let is_short = |item: &Value| match item {
            Value::String(text) => text.len() <= LINE && !text.contains('\n'),
            Value::Array(inner) => inner.is_empty(),
            Value::Object(inner) => inner.is_empty(),
            _ => true,
        };
        if items.len() > LINE || !items.iter().all(is_short) {
            return Ok(None);
        }
        let line = self.flow_list(items)?;
        Ok((line.chars().count() <= LINE).then_some(line))
    }

    /// A value inside of brackets or braces, or one that is written the same
    /// everywhere.
    pub(super) fn flow(&self, value: &Value) -> Said<String> {
        match value {
            Value::Null => Ok("null".to_owned()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Number(number) => self::number(number),
            Value::String(text) => Ok(self.text(text, true)),
            Value::Array(items) => self.flow_list(items),
            Value::Object(map) => {
                let mut parts = Vec::with_capacity(map.len());
                for (key, value) in map {
                    parts.push(self.flow_entry(key, value)?);
                }
                let blank = if self.has_blanks && !parts.is_empty() { " " } else { "" };
                Ok(format!("{{{blank}{}{blank}}}", parts.join(", ")))
            }
        }
    }

    fn flow_list(&self, items: &[Value]) -> Said<String> {
        let parts: Vec<_> = items.iter().map(|item| self.flow(item)).collect::<Said<_>>()?;
        Ok(format!("[{}]", parts.join(", ")))
    }

    /// A key and its value inside of braces.
    pub(super) fn flow_entry(&self, key: &str, value: &Value) -> Said<String> {
        Ok(format!("{}: {}", self.key(key, true)?, self.flow(value)?))
    }

    /// A new text on one line.
    pub(super) fn text(&self, text: &str, in_flow: bool) -> String {
        match self.quote_all.filter(|_| in_flow) {
            Some(quotes) => quoted(text, quotes),
            None if self.is_careful => double(text),
            None if is_plain(text, in_flow, false) => text.to_owned(),
            None => quoted(text, self.quotes),
        }
    }

    /// A new key.
    pub(super) fn key(&self, key: &str, in_flow: bool) -> Said<String> {
        // In quotes it would be a merge key all the same.
        if key == "<<" {
            return Err(Unspeakable);
        }
        match self.quote_all.filter(|_| in_flow) {
            Some(quotes) => Ok(quoted(key, quotes)),
            None if is_plain(key, in_flow, true) => Ok(key.to_owned()),
            None if self.is_careful => Ok(double(key)),
            None => Ok(quoted(key, self.quotes)),
        }
    }

    /// Text in the place of one with this style: as that one, if it can be.
    pub(super) fn restyled(
        &self,
        text: &str,
        style: &Style,
        in_flow: bool,
        is_key: bool,
    ) -> Said<String> {
        if is_key && text == "<<" {
            return Err(Unspeakable);
        }
        Ok(match style {
            _ if self.is_careful => double(text),
            Style::Single => quoted(text, Quotes::Single),
            Style::Double => double(text),
            Style::Plain | Style::Block { .. } if is_key => self.key(text, in_flow)?,
            Style::Plain | Style::Block { .. } => self.text(text, in_flow),
        })
    }

    /// Text of several lines as a literal block at the column `below`, if it can
    /// be one. `parent` is the column of the key or dash that it belongs to.
    pub(super) fn literal(&self, text: &str, below: usize, parent: usize) -> Option<Written> {
        if text.contains('\n') { self.block(text, below, parent) } else { None }
    }

    /// As [`Self::literal`], also for text of one line.
    pub(super) fn block(&self, text: &str, below: usize, parent: usize) -> Option<Written> {
        let body = text.trim_end_matches('\n');
        let is_odd = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || is_special(c);
        if self.is_careful || body.is_empty() || text.contains(is_odd) {
            return None;
        }
        let mut first = "|".to_owned();
        let leads = body.split('\n').find(|line| !line.is_empty());
        if leads.is_some_and(|line| line.starts_with(' ')) {
            let indicator = below.checked_sub(parent).filter(|&width| (1..=9).contains(&width))?;
            let _ = write!(first, "{indicator}");
        }
        match text.len() - body.len() {
            0 => first.push('-'),
            1 => {}
            _ => first.push('+'),
        }
        let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let indented = |line: &str| match line {
            "" => String::new(),
            line => format!("{:below$}{line}", ""),
        };
        Some(Written { first, rest: lines.map(indented).collect() })
    }
}

/// Lines below a key stay below it; behind a dash the first goes up to it.
fn hang(mut lines: Vec<String>, is_item: bool) -> Written {
    if !is_item || lines.is_empty() {
        return Written { first: String::new(), rest: lines };
    }
    let first = lines.remove(0).trim_start_matches(' ').to_owned();
    Written { first, rest: lines }
}

/// A number that reads as this number: with a dot where it has an exponent.
fn number(number: &serde_json::Number) -> Said<String> {
    let mut text = number.to_string();
    if let Some(at) = text.find(['e', 'E'])
        && !text.contains('.')
    {
        text.insert_str(at, ".0");
    }
    let scalar = Scalar { text: text.as_str().into(), plain: true };
    let is_same = same_number(&scalar_value(&scalar), number);
    if is_same { Ok(text) } else { Err(Unspeakable) }
}

/// Whether a value of YAML is a number of JSON.
pub(super) fn same_number(value: &Meaning, number: &serde_json::Number) -> bool {
    match value {
        Meaning::Int(found) => number.as_i64() == Some(*found),
        Meaning::Sized(_, found) => number.as_u64() == Some(found.cast_unsigned()),
        Meaning::Float(found) => {
            !number.is_i64() && !number.is_u64() && number.as_f64() == Some(*found)
        }
        _ => false,
    }
}

/// Characters that YAML does not print or treats as line ends.
fn is_special(c: char) -> bool {
    matches!(
        c,
        '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Whether text without quotes reads as the same text.
pub(super) fn is_plain(text: &str, in_flow: bool, is_key: bool) -> bool {
    let scalar = Scalar { text: text.into(), plain: true };
    // What a key looks like does not matter, as all keys are texts.
    if text.is_empty() || (!is_key && !matches!(scalar_value(&scalar), Meaning::String(_))) {
        return false;
    }
    if is_key && (scalar.is_null() || scalar.boolean().is_some()) {
        return false;
    }
    let is_simple = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    if text.chars().all(is_simple) {
        let first = text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/'));
        return first || reads_same(text, in_flow, is_key);
    }
    if in_flow || text.contains(|c: char| c.is_control() || is_special(c)) {
        return false;
    }
    !text.starts_with([' ', '\t'])
        && !text.ends_with([' ', '\t', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && reads_same(text, in_flow, is_key)
}

/// Asks the parser.
fn reads_same(text: &str, in_flow: bool, is_key: bool) -> bool {
    let sample = match (in_flow, is_key) {
        (true, true) => format!("{{{text}: x}}\n"),
        (true, false) => format!("[{text}]\n"),
        (false, true) => format!("{text}: x\n"),
        (false, false) => format!("- {text}\n"),
    };
    let source = Source::new("", sample);
    let Ok(root) = crate::parse(&source) else { return false };
    match &root.kind {
        Kind::Sequence(items) => {
            let found = items.first().and_then(crate::Node::scalar);
            items.len() == 1 && found.is_some_and(|found| found.plain && found.text == text)
        }
        Kind::Mapping(entries) => entries.len() == 1 && entries[0].key.text == text,
        Kind::Scalar(_) => false,
    }
}

/// Text in quotes; in double ones if single ones cannot say it.
pub(super) fn quoted(text: &str, quotes: Quotes) -> String {
    let is_odd = text.contains(|c: char| c.is_control() || is_special(c));
    match quotes {
        Quotes::Single if !is_odd => format!("'{}'", text.replace('\'', "''")),
        _ => double(text),
    }
}

/// Text in double quotes, in a form that JSON knows too.
pub(super) fn double(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_special(c) => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
