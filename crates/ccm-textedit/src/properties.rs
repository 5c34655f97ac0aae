//! The format `properties`: keys with values, as Java and `/etc/default` have them.

mod java;
mod shell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{Edited, Refusal, Result};
use crate::entries::{self, Entries, Pointer};
use crate::laws::Plan;
use crate::lines::{self, Line};

/// Who reads the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Java: `key = value`, with escapes.
    #[default]
    Java,
    /// A shell: `KEY='value'`, as in `/etc/default`.
    Shell,
}

/// One key with its value.
#[derive(Debug)]
struct Entry {
    key: String,
    /// Index of its first line.
    first: usize,
    /// Index of its last line.
    last: usize,
    /// The bytes of the value as it is written.
    written: std::ops::Range<usize>,
    /// What it means; none if only a shell can tell.
    value: Option<String>,
    /// The bytes between key and value.
    delimiter: String,
}

pub(crate) fn apply(text: &[u8], entries: &Entries, dialect: Dialect) -> Result<Edited> {
    let mut edited = Edited { text: text.to_vec(), changes: Vec::new() };
    let mut expected = model(&read(text, dialect)?);
    for (key, value) in &entries.set {
        let path = [key.clone()];
        if value.is_object() || value.is_array() {
            let kind = entries::kind_of(value);
            return Err(Refusal::new(format!("`{key}` cannot be {kind} in this format"))
                .hint("a properties file has no sections; write the whole key"));
        }
        let wanted = entries::scalar_text(&path, value)?;
        set(&mut edited, dialect, key, &wanted)?;
        match expected.iter_mut().find(|(known, _)| known == key) {
            Some(known) => known.1 = Some(wanted),
            None => expected.push((key.clone(), Some(wanted))),
        }
    }
    for pointer in &entries.remove {
        let [key] = pointer.keys() else {
            return Err(Refusal::new(format!("`{pointer}` is not `/key`")));
        };
        remove(&mut edited, dialect, key)?;
        expected.retain(|(known, _)| known != key);
    }
    if !edited.changes.is_empty() && model(&read(&edited.text, dialect)?) != expected {
        return Err(Refusal::unsafe_here("another program would read it differently"));
    }
    Ok(edited)
}

type Model = Vec<(String, Option<String>)>;

fn model(entries: &[Entry]) -> Model {
    entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
}

fn read(text: &[u8], dialect: Dialect) -> Result<Vec<Entry>> {
    let lines = lines::split(text);
    match dialect {
        Dialect::Java => Ok(java::entries(text, &lines)),
        Dialect::Shell => shell::entries(text, &lines),
    }
}

fn set(edited: &mut Edited, dialect: Dialect, key: &str, wanted: &str) -> Result<()> {
    let text = &edited.text;
    let lines = lines::split(text);
    let entries = read(text, dialect)?;
    let mut found = entries.iter().filter(|entry| entry.key == key);
    let mut plan = Plan::default();
    let from = match (found.next(), found.count()) {
        (Some(_), more) if more > 0 => {
            return Err(Refusal::new(format!("`{key}` is there {} times", more + 1)));
        }
        (Some(entry), _) if entry.value.as_deref() == Some(wanted) => return Ok(()),
        (Some(entry), _) => {
            let written = &text[entry.written.clone()];
            let new = match dialect {
                Dialect::Java => java::written(wanted),
                Dialect::Shell => shell::written(wanted, written),
            };
            let gap = if entry.delimiter.is_empty() && entry.written.is_empty() { "=" } else { "" };
            plan.replace(entry.written.clone(), format!("{gap}{new}"));
            Some(entry.value.clone().unwrap_or_else(|| crate::change::shown(written)))
        }
        (None, _) => {
            let mut delimiter = entries.iter().rev().map(|entry| entry.delimiter.as_str());
            let delimiter = delimiter.find(|text| !text.is_empty()).unwrap_or("=");
            let line = match dialect {
                Dialect::Java => {
                    format!("{}{delimiter}{}", java::written_key(key), java::written(wanted))
                }
                Dialect::Shell => format!("{key}={}", shell::written(wanted, b"")),
            };
            let (at, new) = lines::inserted(text, &lines, lines.len(), &[line.into_bytes()]);
            plan.insert(at, new);
            None
        }
    };
    let from = from.map(Value::from);
    edited.changes.push(entries::change(&[key.to_owned()], from.as_ref(), Some(&wanted.into())));
    edited.text = plan.carry_out(&edited.text)?.text;
    Ok(())
}

fn remove(edited: &mut Edited, dialect: Dialect, key: &str) -> Result<()> {
    let lines = lines::split(&edited.text);
    let mut plan = Plan::default();
    let mut former = Vec::new();
    for entry in read(&edited.text, dialect)?.iter().filter(|entry| entry.key == key) {
        let [first, last]: [&Line<'_>; 2] = [&lines[entry.first], &lines[entry.last]];
        plan.remove(first.start..last.stop());
        former.push(entry.value.clone().unwrap_or_default());
    }
    if !former.is_empty() {
        let name = entries::named(Pointer::of([key]).keys());
        edited.changes.push(crate::change::Change::new(name, Some(former.join(", ")), None));
        edited.text = plan.carry_out(&edited.text)?.text;
    }
    Ok(())
}
