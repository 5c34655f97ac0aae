//! What the formats with typed values have in common: JSON, YAML and TOML.

use serde_json::{Map, Value};

use crate::change::{Edited, Refusal, Result};
use crate::entries::{self, Entries, Pointer};

/// A format with typed values. Each edit gives the whole new text, in which
/// nothing but the named entry is different.
pub(crate) trait Format {
    /// What a text means. The top is a map; an empty text is an empty one.
    fn read(&self, text: &[u8]) -> Result<Value>;
    /// Gives an entry a value. Maps on the way that are missing are made.
    fn set(&self, text: &[u8], path: &[String], value: &Value) -> Result<Vec<u8>>;
    /// Adds members to a list that exists.
    fn add(&self, text: &[u8], path: &[String], members: &[Value]) -> Result<Vec<u8>>;
    /// Removes an entry that exists.
    fn remove(&self, text: &[u8], path: &[String]) -> Result<Vec<u8>>;
}

pub(crate) fn apply(format: &dyn Format, text: &[u8], entries: &Entries) -> Result<Edited> {
    let mut edited = Edited { text: text.to_vec(), changes: Vec::new() };
    let mut expected = format.read(text)?;
    if !expected.is_object() {
        let kind = entries::kind_of(&expected);
        return Err(Refusal::new(format!("the top of the document is {kind}, not a map")));
    }
    for (path, value) in entries.leaves() {
        let found = lookup(&expected, &path);
        let is_merged =
            value.as_object().is_some_and(Map::is_empty) && found.is_some_and(Value::is_object);
        if found == Some(value) || is_merged {
            continue;
        }
        edited.changes.push(entries::change(&path, found, Some(value)));
        edited.text = format.set(&edited.text, &path, value)?;
        put(&mut expected, &path, value.clone());
    }
    for (pointer, members) in &entries.add {
        add(format, &mut edited, &mut expected, pointer, members)?;
    }
    for pointer in &entries.remove {
        let path = pointer.keys();
        check_way(&expected, pointer)?;
        let Some(found) = lookup(&expected, path) else { continue };
        edited.changes.push(entries::change(path, Some(found), None));
        edited.text = format.remove(&edited.text, path)?;
        take(&mut expected, path);
    }
    if !edited.changes.is_empty() && format.read(&edited.text)? != expected {
        return Err(Refusal::unsafe_here("another program would read it differently"));
    }
    Ok(edited)
}

fn add(
    format: &dyn Format,
    edited: &mut Edited,
    expected: &mut Value,
    pointer: &Pointer,
    members: &[Value],
) -> Result<()> {
    let path = pointer.keys();
    check_way(expected, pointer)?;
    let found = lookup(expected, path).cloned();
    let known = match &found {
        None => &[][..],
        Some(Value::Array(items)) => items,
        Some(other) => {
            let kind = entries::kind_of(other);
            return Err(Refusal::new(format!("`{pointer}` is {kind}, not a list")));
        }
    };
    let mut missing: Vec<Value> = Vec::new();
    for member in members {
        if !known.contains(member) && !missing.contains(member) {
            missing.push(member.clone());
        }
    }
    if missing.is_empty() && found.is_some() {
        return Ok(());
    }
    let all = Value::Array(known.iter().chain(&missing).cloned().collect());
    edited.changes.push(entries::change(path, found.as_ref(), Some(&all)));
    edited.text = match &found {
        None => format.set(&edited.text, path, &all)?,
        Some(_) => format.add(&edited.text, path, &missing)?,
    };
    put(expected, path, all);
    Ok(())
}

/// Fails if a list is on the way: its members have no names.
fn check_way(value: &Value, pointer: &Pointer) -> Result<()> {
    let keys = pointer.keys();
    for count in 0..keys.len() {
        if lookup(value, &keys[..count]).is_some_and(Value::is_array) {
            let list = Pointer::of(keys[..count].iter().map(String::as_str));
            return Err(Refusal::new(format!("`{pointer}` leads into the list `{list}`"))
                .hint("set the whole list"));
        }
    }
    Ok(())
}

/// What is at a path of keys.
pub(crate) fn lookup<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.as_object()?.get(key))
}

/// How many keys of a path lead through maps that exist.
pub(crate) fn depth(value: &Value, path: &[String]) -> usize {
    (1..path.len())
        .take_while(|count| lookup(value, &path[..*count]).is_some_and(Value::is_object))
        .count()
}

/// A value in maps for the keys of a path.
pub(crate) fn nested(path: &[String], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |value, key| Value::Object(Map::from_iter([(key.clone(), value)])))
}

fn put(target: &mut Value, path: &[String], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(map) = target {
        put(map.entry(key.clone()).or_insert(Value::Null), rest, value);
    }
}

fn take(target: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [key] => {
            if let Some(map) = target.as_object_mut() {
                map.shift_remove(key);
            }
        }
        [key, rest @ ..] => {
            if let Some(inner) = target.as_object_mut().and_then(|map| map.get_mut(key)) {
                take(inner, rest);
            }
        }
    }
}

/// The text without a byte order mark, which is not part of any of these formats.
pub(crate) fn as_str(text: &[u8]) -> Result<(usize, &str)> {
    let skipped = crate::lines::bom(text);
    let text = std::str::from_utf8(&text[skipped..]).map_err(|error| {
        let line = crate::lines::number_at(&text[skipped..], error.valid_up_to());
        Refusal::new(format!("the file is not UTF-8 (line {line})"))
    })?;
    Ok((skipped, text))
}
