//! Writes entries of an ini file in the style of their neighbours.

use super::parse::{Document, Entry, Section, Text, is_comment};
use super::{Wanted, change};
use crate::change::{Change, Refusal, Result};
use crate::entries;
use crate::laws::Plan;
use crate::lines;

/// Between key and value, if the file shows no other way.
const DELIMITER: &[u8] = b" = ";
/// Before further lines of a value.
const INDENT: &[u8] = b"    ";

/// Gives a key its values.
pub(super) fn set(
    text: &[u8],
    document: &Document<'_>,
    path: &[String; 2],
    wanted: &Wanted,
) -> Plan {
    let mut plan = Plan::default();
    let target = document.target(&wanted.section, &wanted.key);
    let Some(section) = target.map(|index| &document.sections[index]) else {
        if !wanted.values.is_empty() {
            new_section(&mut plan, text, document, wanted);
            plan.changes.push(change(entries::named(path), &[], &wanted.values));
        }
        return plan;
    };
    let found: Vec<&Entry<'_>> = section.all(&wanted.key).collect();
    let former: Vec<&Text> = found.iter().map(|entry| &entry.text).collect();
    if former.iter().copied().eq(&wanted.values) {
        return plan;
    }
    for (entry, value) in found.iter().zip(&wanted.values) {
        if entry.text != *value {
            replace(&mut plan, document, section, entry, value);
        }
    }
    for entry in found.iter().skip(wanted.values.len()) {
        plan.remove(range(document, entry));
    }
    if let Some(new) = wanted.values.get(found.len()..).filter(|new| !new.is_empty()) {
        let index = found
            .last()
            .map_or_else(|| place(document, section, &wanted.key), |entry| entry.last + 1);
        let near = found.last().copied();
        let style = Style::of(document, section, near, index, &wanted.key);
        let end = lines::end_at(&document.lines, index);
        let new: Vec<Vec<u8>> =
            new.iter().map(|value| style.line(&wanted.key, value, end)).collect();
        let (at, added) = lines::inserted(text, &document.lines, index, &new);
        plan.insert(at, added);
    }
    plan.changes.push(change(entries::named(path), &former, &wanted.values));
    plan
}

/// Removes a key from all sections of a name.
pub(super) fn remove(document: &Document<'_>, section: &str, key: &str) -> Plan {
    let mut plan = Plan::default();
    let mut former = Vec::new();
    for found in document.sections.iter().filter(|found| found.name == section.as_bytes()) {
        for entry in found.all(key.as_bytes()) {
            plan.remove(range(document, entry));
            former.push(&entry.text);
        }
    }
    if !former.is_empty() {
        let path = [section.to_owned(), key.to_owned()];
        plan.changes.push(change(entries::named(&path), &former, &[]));
    }
    plan
}

/// Removes all sections of a name, with the comments in them. A comment right
/// above the next section belongs to that.
pub(super) fn remove_section(document: &Document<'_>, name: &str) -> Result<Plan> {
    if name.is_empty() {
        return Err(Refusal::new("the part before the first section cannot be removed as a whole")
            .hint("name its keys, as in `//key`"));
    }
    let mut plan = Plan::default();
    let found = document.sections.iter().filter(|section| section.name == name.as_bytes());
    for section in found {
        let Some(header) = section.header else { continue };
        let stop = own_stop(document, section);
        let start = document.lines[header].start;
        plan.remove(start..document.lines[stop - 1].stop());
        let keys = section.entries.len();
        let from = format!("{keys} {}", if keys == 1 { "key" } else { "keys" });
        plan.changes.push(Change::new(entries::named(&[name.to_owned()]), Some(from), None));
    }
    Ok(plan)
}

/// Index behind the last line of a section without the comment above the next.
fn own_stop(document: &Document<'_>, section: &Section<'_>) -> usize {
    let mut stop = section.stop;
    if stop == document.lines.len() {
        return stop;
    }
    let is_above = |index: usize| {
        let line = document.lines[index].text;
        is_comment(line) && !lines::trim(line).is_empty()
    };
    while stop > section.begin() && is_above(stop - 1) {
        stop -= 1;
    }
    stop
}

fn range(document: &Document<'_>, entry: &Entry<'_>) -> std::ops::Range<usize> {
    document.lines[entry.first].start..document.lines[entry.last].stop()
}

/// Puts another value behind a key.
fn replace(
    plan: &mut Plan,
    document: &Document<'_>,
    section: &Section<'_>,
    entry: &Entry<'_>,
    value: &Text,
) {
    let first = &document.lines[entry.first];
    let last = &document.lines[entry.last];
    let indent = lines::indent(first.text);
    let behind_key = first.start + indent + entry.key.len();
    let stop = last.start + lines::trim_end(last.text).len();
    let is_empty = lines::trim_end(entry.delimiter) == entry.delimiter;
    let style = Style::of(document, section, None, entry.first, entry.key);
    let new = match value {
        Text::Bare => Vec::new(),
        Text::Value(text) => {
            // Nothing shows how a key without a value would have one.
            let delimiter = match entry.text {
                Text::Bare => &style.delimiter,
                Text::Value(_) if is_empty && !text.is_empty() => &with_blanks(entry),
                Text::Value(_) => entry.delimiter,
            };
            let further = match document.lines.get(entry.first + 1) {
                Some(line) if entry.last > entry.first => &line.text[..lines::indent(line.text)],
                _ => &[&first.text[..indent], INDENT].concat(),
            };
            let end = lines::end_at(&document.lines, entry.first + 1);
            [delimiter, &folded(text, further, end)].concat()
        }
    };
    plan.touched.push(range(document, entry));
    plan.replace(behind_key..stop.max(behind_key), new);
}

/// The delimiter as it is before a value, of an entry that may have none.
fn with_blanks(entry: &Entry<'_>) -> Vec<u8> {
    let has_head = matches!(&entry.text, Text::Value(text) if !text.is_empty() && text[0] != b'\n');
    let needs_blank = lines::indent(entry.delimiter) > 0 && !has_head;
    [entry.delimiter, if needs_blank { b" " } else { b"" }].concat()
}

/// A value, its further lines indented.
fn folded(text: &[u8], indent: &[u8], end: &[u8]) -> Vec<u8> {
    let mut folded = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            folded.extend_from_slice(end);
            folded.extend_from_slice(indent);
        }
        folded.extend_from_slice(line);
    }
    folded
}

/// Index of the line that a new key goes before: below a commented-out line of
/// the same key, else at the end of the section.
fn place(document: &Document<'_>, section: &Section<'_>, key: &[u8]) -> usize {
    let own = section.begin()..section.stop;
    let disabled = own.clone().rev().find(|index| {
        let is_inside =
            section.entries.iter().any(|entry| (entry.first..=entry.last).contains(index));
        !is_inside && disabled(document.lines[*index].text).is_some_and(|found| found.0 == key)
    });
    if let Some(index) = disabled {
        return index + 1;
    }
    let least = section.entries.last().map_or(section.begin(), |entry| entry.last + 1);
    let mut index = own_stop(document, section).max(least);
    while index > least && lines::trim(document.lines[index - 1].text).is_empty() {
        index -= 1;
    }
    index
}

/// Key and delimiter of a commented-out entry.
fn disabled(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = lines::trim(line);
    let signs = body.iter().take_while(|byte| matches!(byte, b'#' | b';')).count();
    if signs == 0 {
        return None;
    }
    let body = &body[signs..];
    let body = &body[lines::indent(body)..];
    let Some(sign) = body.iter().position(|byte| matches!(byte, b'=' | b':')) else {
        return Some((body, b""));
    };
    let key = lines::trim_end(&body[..sign]);
    let stop = sign + 1 + lines::indent(&body[sign + 1..]);
    Some((key, &body[key.len()..stop]))
}

/// How a new entry is written.
struct Style {
    indent: Vec<u8>,
    delimiter: Vec<u8>,
}

impl Style {
    /// As in the same key, else the entry before, else another one, else a
    /// commented-out one.
    fn of(
        document: &Document<'_>,
        section: &Section<'_>,
        same: Option<&Entry<'_>>,
        index: usize,
        key: &[u8],
    ) -> Self {
        let before = section.entries.iter().rev().find(|entry| entry.last < index);
        let indented = same.or(before).or(section.entries.first());
        let indent = indented.map_or(&b""[..], |entry| {
            let line = document.lines[entry.first].text;
            &line[..lines::indent(line)]
        });
        let shows = |entry: &&Entry<'_>| matches!(&entry.text, Text::Value(text) if !text.is_empty() && text[0] != b'\n');
        let own = section.entries.iter();
        let others =
            document.sections.iter().rev().flat_map(|section| section.entries.iter().rev());
        let all = same.into_iter().chain(own.clone().rev().filter(|entry| entry.last < index));
        let entry = all.chain(own).chain(others).find(shows);
        let from_comments = || {
            let lines = document.lines.iter().map(|line| line.text);
            let found = lines.filter_map(disabled).filter(|(_, delimiter)| !delimiter.is_empty());
            let is_word = |name: &[u8]| !name.is_empty() && !name.contains(&b' ');
            found
                .filter(|(name, _)| is_word(name))
                .max_by_key(|(name, _)| *name == key)
                .map(|(_, delimiter)| delimiter)
        };
        let delimiter = entry.map(|entry| entry.delimiter).or_else(from_comments);
        Self { indent: indent.to_vec(), delimiter: delimiter.unwrap_or(DELIMITER).to_vec() }
    }

    fn line(&self, key: &[u8], value: &Text, end: &[u8]) -> Vec<u8> {
        match value {
            Text::Bare => [&self.indent, key].concat(),
            Text::Value(text) => {
                let further = [&self.indent, INDENT].concat();
                let text = folded(text, &further, end);
                let delimiter = if text.is_empty() {
                    lines::trim_end(&self.delimiter)
                } else {
                    &self.delimiter
                };
                [&self.indent, key, delimiter, &text].concat()
            }
        }
    }
}

/// A section at the end of the file, with one key.
fn new_section(plan: &mut Plan, text: &[u8], document: &Document<'_>, wanted: &Wanted) {
    let index = document.lines.len();
    let end = lines::end_at(&document.lines, index);
    let nothing = Section { name: b"", header: None, entries: Vec::new(), stop: index };
    let mut style = Style::of(document, &nothing, None, index, &wanted.key);
    let last = document.sections.last().and_then(|section| section.entries.first());
    if let Some(entry) = last {
        let line = document.lines[entry.first].text;
        style.indent = line[..lines::indent(line)].to_vec();
    }
    let mut new = Vec::new();
    if document.lines.last().is_some_and(|line| !lines::trim(line.text).is_empty()) {
        new.push(Vec::new());
    }
    new.push([b"[", wanted.section.as_slice(), b"]"].concat());
    new.extend(wanted.values.iter().map(|value| style.line(&wanted.key, value, end)));
    let (at, added) = lines::inserted(text, &document.lines, index, &new);
    plan.insert(at, added);
}
