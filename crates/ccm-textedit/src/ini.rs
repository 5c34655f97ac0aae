//! The format `ini`: sections with keys, as systemd, Git, Samba and others read
//! them.

mod model;
mod parse;
mod write;

use serde_json::Value;

use crate::change::{Change, Edited, Refusal, Result, shown};
use crate::entries::{self, Entries};
use crate::laws::Plan;
use parse::{Document, Text};

/// The wanted values of one key, in order.
pub(crate) struct Wanted {
    section: Vec<u8>,
    key: Vec<u8>,
    values: Vec<Text>,
}

pub(crate) fn apply(text: &[u8], entries: &Entries) -> Result<Edited> {
    let mut edited = Edited { text: text.to_vec(), changes: Vec::new() };
    let mut expected = model::Model::of(&Document::parse(text));
    for (section, keys) in &entries.set {
        let Value::Object(keys) = keys else {
            let message = format!("`{section}` is a section, not {}", entries::kind_of(keys));
            return Err(Refusal::new(message)
                .hint(format!("write `{section}: {{KEY: VALUE}}`, or `\"\": {{KEY: VALUE}}` for keys before the first section")));
        };
        for (key, value) in keys {
            let path = [section.clone(), key.clone()];
            let plan = {
                let document = Document::parse(&edited.text);
                let wanted = wanted(&document, &path, value)?;
                expected.set(&wanted);
                write::set(&edited.text, &document, &path, &wanted)
            };
            step(&mut edited, plan)?;
        }
    }
    for pointer in &entries.remove {
        let document = Document::parse(&edited.text);
        let plan = match pointer.keys() {
            [section] => {
                expected.remove_section(section.as_bytes());
                write::remove_section(&document, section)?
            }
            [section, key] => {
                expected.remove(section.as_bytes(), key.as_bytes());
                write::remove(&document, section, key)
            }
            _ => return Err(Refusal::new(format!("`{pointer}` is not `/section/key`"))),
        };
        step(&mut edited, plan)?;
    }
    if !edited.changes.is_empty() && model::Model::of(&Document::parse(&edited.text)) != expected {
        return Err(Refusal::unsafe_here("another program would read it differently"));
    }
    Ok(edited)
}

fn step(edited: &mut Edited, mut plan: Plan) -> Result<()> {
    if plan.splices.is_empty() {
        return Ok(());
    }
    edited.changes.append(&mut plan.changes);
    edited.text = plan.carry_out(&edited.text)?.text;
    Ok(())
}

/// The values that a key must have. `true` is a key without a value where the
/// file writes it so.
fn wanted(document: &Document<'_>, path: &[String; 2], value: &Value) -> Result<Wanted> {
    let [section, key] = path;
    let (section, key) = (section.as_bytes(), key.as_bytes());
    let values = match value {
        Value::Array(items) => items
            .iter()
            .map(|item| entries::scalar_text(path, item).map(|text| Text::Value(text.into())))
            .collect::<Result<_>>()?,
        Value::Bool(true) if document.writes_bare(section, key) => vec![Text::Bare],
        value => {
            let found = document.target(section, key);
            let count = found.map_or(0, |found| document.sections[found].all(key).count());
            if count > 1 {
                return Err(Refusal::new(format!(
                    "`{}` is there {count} times, and the value is no list",
                    entries::named(path)
                ))
                .hint("a list sets all of them in order"));
            }
            vec![Text::Value(entries::scalar_text(path, value)?.into())]
        }
    };
    Ok(Wanted { section: section.to_vec(), key: key.to_vec(), values })
}

fn change(name: String, from: &[&Text], to: &[Text]) -> Change {
    let joined = |texts: &mut dyn Iterator<Item = &Text>| {
        let texts: Vec<String> = texts.map(Text::shown).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let from = joined(&mut from.iter().copied());
    Change::new(name, from, joined(&mut to.iter()))
}

impl Text {
    fn shown(&self) -> String {
        match self {
            Self::Bare => "true".to_owned(),
            Self::Value(text) => shown(text),
        }
    }
}
