//! The format `toml`.
//!
//! `toml_edit` says where values are, and lays out new keys and tables. It gives
//! back the whole document, so the new text is held against the old one: all that
//! may be different is one piece that was added.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, TableLike};

use crate::change::{Refusal, Result};
use crate::laws::Plan;
use crate::typed;

/// The key that a date has in the model: no file has it.
const DATE: &str = "\0date";

pub(crate) struct Toml;

impl typed::Format for Toml {
    fn read(&self, text: &[u8]) -> Result<Value> {
        let (_, text) = typed::as_str(text)?;
        Ok(value_of(open(text)?.as_item()))
    }

    fn set(&self, text: &[u8], path: &[String], value: &Value) -> Result<Vec<u8>> {
        let (skipped, body) = typed::as_str(text)?;
        let document = open(body)?;
        let found = reach(document.as_item(), path).and_then(|(_, item)| item.as_value());
        if let Some(span) = found.and_then(toml_edit::Value::span) {
            let mut plan = Plan::default();
            plan.replace(span, written(path, value)?.to_string());
            let made = plan.carry_out(body.as_bytes())?;
            return Ok([&text[..skipped], &made.text].concat());
        }
        added(text, |document| {
            insert(document.as_table_mut(), path, written(path, value)?, body.trim().is_empty())
        })
    }

    fn add(&self, text: &[u8], path: &[String], members: &[Value]) -> Result<Vec<u8>> {
        members.iter().try_fold(text.to_vec(), |text, member| {
            added(&text, |document| {
                let item = path.iter().try_fold(document.as_item_mut(), |item, key| {
                    item.as_table_like_mut()?.get_mut(key)
                });
                let list = item.and_then(Item::as_array_mut);
                let list =
                    list.ok_or_else(|| Refusal::unsafe_here("the list consists of tables"))?;
                push(list, written(path, member)?);
                Ok(())
            })
        })
    }

    fn remove(&self, text: &[u8], path: &[String]) -> Result<Vec<u8>> {
        let (skipped, body) = typed::as_str(text)?;
        let document = open(body)?;
        let found = reach(document.as_item(), path);
        let mut plan = Plan::default();
        match found {
            Some((Some(key), item)) if item.is_value() => {
                let value = item.as_value().and_then(toml_edit::Value::span);
                let Some(value) = value else {
                    return Err(Refusal::unsafe_here("the key has no place of its own"));
                };
                plan.remove(own_lines(body, key.start..value.end)?);
            }
            _ => {
                return Err(
                    Refusal::unsafe_here("the entry is a table").hint("remove its keys instead")
                );
            }
        }
        let made = plan.carry_out(body.as_bytes())?;
        Ok([&text[..skipped], &made.text].concat())
    }
}

fn open(text: &str) -> Result<Document<&str>> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = crate::lines::number_at(text.as_bytes(), at);
        let reason = error.message().lines().next().unwrap_or_default().to_owned();
        Refusal::new(format!("the file is not TOML (line {line}): {reason}"))
    })
}

/// What is at a path, and where its key is.
fn reach<'d>(root: &'d Item, path: &[String]) -> Option<(Option<Range<usize>>, &'d Item)> {
    let mut found = (None, root);
    for key in path {
        let (key, item) = found.1.as_table_like()?.get_key_value(key)?;
        found = (key.span(), item);
    }
    Some(found)
}

/// The lines that an entry takes, with the comment behind it. Nothing else may be
/// in them.
fn own_lines(text: &str, span: Range<usize>) -> Result<Range<usize>> {
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[span.end..];
    let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
    let behind = rest[..length].trim();
    let is_alone =
        text[start..span.start].trim().is_empty() && (behind.is_empty() || behind.starts_with('#'));
    if !is_alone {
        return Err(Refusal::unsafe_here("other entries are in the same line"));
    }
    Ok(start..span.end + length)
}

fn value_of(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => scalar(value),
        Item::Table(table) => map_of(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| map_of(table)).collect(),
    }
}

fn map_of(table: &dyn TableLike) -> Value {
    let entries = table.iter().map(|(key, item)| (key.to_owned(), value_of(item)));
    Value::Object(entries.collect())
}

fn scalar(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => match serde_json::Number::from_f64(*number.value()) {
            Some(number) => Value::Number(number),
            None => Value::Object(Map::from_iter([(
                DATE.to_owned(),
                number.value().to_string().into(),
            )])),
        },
        toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
        toml_edit::Value::Datetime(date) => {
            Value::Object(Map::from_iter([(DATE.to_owned(), date.value().to_string().into())]))
        }
        toml_edit::Value::Array(items) => items.iter().map(scalar).collect(),
        toml_edit::Value::InlineTable(table) => map_of(table),
    }
}

/// A value as TOML has it.
fn written(path: &[String], value: &Value) -> Result<toml_edit::Value> {
    Ok(match value {
        Value::Null => {
            let name = crate::entries::named(path);
            return Err(Refusal::new(format!("`{name}` cannot be null in this format")));
        }
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(float)) if number.is_f64() => float.into(),
            _ => return Err(Refusal::new(format!("{number} is too large for TOML"))),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| written(path, item));
            toml_edit::Value::Array(items.collect::<Result<Array>>()?)
        }
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                table.insert(key, written(path, value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
    })
}

/// Makes an addition to a text. The library writes line ends of one kind only.
fn added(text: &[u8], edit: impl Fn(&mut DocumentMut) -> Result<()>) -> Result<Vec<u8>> {
    let (skipped, body) = typed::as_str(text)?;
    let has_crlf = body.contains("\r\n");
    let plain = body.replace("\r\n", "\n");
    let mut document = open(&plain)?.into_mut();
    edit(&mut document)?;
    let made = document.to_string();
    // A last line without an end gets none.
    let made = match made.strip_suffix('\n') {
        Some(cut) if !plain.is_empty() && !plain.ends_with('\n') => cut,
        _ => &made,
    };
    let made = if has_crlf { made.replace('\n', "\r\n") } else { made.to_owned() };
    if !is_addition(body, &made) {
        return Err(Refusal::unsafe_here("bytes beside the entry would change"));
    }
    Ok([&text[..skipped], made.as_bytes()].concat())
}

/// Whether a text is another one with one piece added.
fn is_addition(old: &str, new: &str) -> bool {
    let same = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    new.len() >= old.len() && new.as_bytes().ends_with(&old.as_bytes()[same..])
}

/// Puts a new entry into the table that it belongs to. Tables that are missing on
/// the way get a header.
fn insert(
    root: &mut Table,
    path: &[String],
    value: toml_edit::Value,
    is_first: bool,
) -> Result<()> {
    let Some((key, above)) = path.split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = root;
    let mut is_inline = false;
    for (index, key) in above.iter().enumerate() {
        let is_last = index + 1 == above.len();
        if !table.contains_key(key) {
            let new = if is_inline {
                Item::Value(InlineTable::new().into())
            } else {
                let mut new = Table::new();
                new.set_implicit(!is_last);
                if !is_first {
                    new.decor_mut().set_prefix("\n");
                }
                Item::Table(new)
            };
            table.insert(key, new);
        }
        let item = table.get_mut(key);
        is_inline |= item.as_ref().is_some_and(|item| item.is_inline_table());
        table = item
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| Refusal::unsafe_here("a key on the way is no table"))?;
    }
    // As the last key is indented.
    let last = table.iter().last().map(|(key, _)| key.to_owned());
    let prefix = last.and_then(|last| {
        let key = table.get_key_value(&last)?.0;
        let prefix = key.leaf_decor().prefix()?.as_str()?;
        let indent = prefix.rsplit('\n').next()?;
        (!is_inline && indent.trim().is_empty()).then(|| indent.to_owned())
    });
    let mut value = value;
    if is_inline && let Some(last) = table.iter_mut().last() {
        // The blank before the brace stays there.
        let decor = last.1.as_value_mut().map(toml_edit::Value::decor_mut);
        if let Some(decor) = decor
            && let Some(suffix) =
                decor.suffix().and_then(|suffix| suffix.as_str()).map(str::to_owned)
        {
            decor.set_suffix("");
            value.decor_mut().set_prefix(" ");
            value.decor_mut().set_suffix(suffix);
        }
    }
    table.insert(key, Item::Value(value));
    if let (Some(prefix), Some(mut key)) =
        (prefix.filter(|prefix| !prefix.is_empty()), table.key_mut(key))
    {
        key.leaf_decor_mut().set_prefix(prefix);
    }
    Ok(())
}

/// Adds an item to a list, laid out as the last one.
fn push(list: &mut Array, mut value: toml_edit::Value) {
    let prefix = list.iter().last().and_then(|last| last.decor().prefix()?.as_str());
    let prefix = prefix.map(|prefix| match prefix.rfind('\n') {
        Some(at) => prefix[at..].to_owned(),
        None => prefix.to_owned(),
    });
    match prefix {
        Some(prefix) if prefix.starts_with('\n') => {
            value.decor_mut().set_prefix(prefix);
            list.push_formatted(value);
        }
        _ => list.push(value),
    }
}
