//! The format `yaml`, by the editor of `ccm_yaml`.

use std::ops::Range;

use ccm_yaml::Source;
use ccm_yaml::edit::{Document, EditError, Operation, Step};
use serde_json::{Map, Value};

use crate::change::{Refusal, Result};
use crate::{lines, typed};

/// One document of a stream.
pub(crate) struct Yaml {
    /// Which one, from 0.
    pub(crate) document: usize,
}

impl typed::Format for Yaml {
    fn read(&self, text: &[u8]) -> Result<Value> {
        let part = self.part(text)?;
        if is_empty(part.text) {
            return Ok(Value::Object(Map::new()));
        }
        let document = open(part.text)?;
        let value = document.value(&[]).ok_or_else(|| Refusal::new("ccm cannot read this YAML"))?;
        Ok(value)
    }

    fn set(&self, text: &[u8], path: &[String], value: &Value) -> Result<Vec<u8>> {
        let part = self.part(text)?;
        if is_empty(part.text) {
            return Ok(part.with(text, &first(part.text, &typed::nested(path, value))?));
        }
        // A map that is missing is set as a whole.
        let known = open(part.text)?.value(&[]).unwrap_or_default();
        let depth = typed::depth(&known, path);
        let (path, rest) = path.split_at(depth + 1);
        let operation =
            Operation::Set { path: steps(path), value: typed::nested(rest, value), beside: None };
        self.edit(text, &[operation])
    }

    fn add(&self, text: &[u8], path: &[String], members: &[Value]) -> Result<Vec<u8>> {
        let known = self.read(text)?;
        let known = typed::lookup(&known, path).and_then(Value::as_array).map_or(0, Vec::len);
        let insert = |(index, value): (usize, &Value)| Operation::Insert {
            path: steps(path),
            index: known + index,
            value: value.clone(),
        };
        let operations: Vec<Operation> = members.iter().enumerate().map(insert).collect();
        self.edit(text, &operations)
    }

    fn remove(&self, text: &[u8], path: &[String]) -> Result<Vec<u8>> {
        self.edit(text, &[Operation::Remove { path: steps(path) }])
    }
}

impl Yaml {
    fn edit(&self, text: &[u8], operations: &[Operation]) -> Result<Vec<u8>> {
        let part = self.part(text)?;
        let mut document = open(part.text)?;
        document.apply(operations).map_err(refused)?;
        Ok(part.with(text, document.text()))
    }

    /// The document, with the marker line that it begins with.
    fn part<'t>(&self, text: &'t [u8]) -> Result<Part<'t>> {
        let (skipped, body) = typed::as_str(text)?;
        let starts = starts(body);
        let Some(start) = starts.get(self.document).copied() else {
            let count = starts.len();
            let noun = if count == 1 { "document" } else { "documents" };
            return Err(Refusal::new(format!(
                "there is no document {}: the file has {count} {noun}",
                self.document
            )));
        };
        let stop = starts.get(self.document + 1).copied().unwrap_or(body.len());
        let text = &body[start..stop];
        Ok(Part { range: skipped + start..skipped + stop, text })
    }
}

/// A document in a stream.
struct Part<'t> {
    range: Range<usize>,
    text: &'t str,
}

impl Part<'_> {
    /// The stream with another text in the place of the document.
    fn with(&self, stream: &[u8], new: &str) -> Vec<u8> {
        [&stream[..self.range.start], new.as_bytes(), &stream[self.range.end..]].concat()
    }
}

/// Where the documents of a stream begin. A line that begins with `---` is never
/// part of a value.
fn starts(text: &str) -> Vec<usize> {
    let is_marker = |line: &lines::Line<'_>| {
        let rest = line.text.strip_prefix(b"---");
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| lines::is_blank(*byte)))
    };
    let lines = lines::split(text.as_bytes());
    let markers: Vec<usize> =
        lines.iter().filter(|line| is_marker(line)).map(|line| line.start).collect();
    match markers.split_first() {
        // What stands before the first marker is a document only if it says something.
        Some((first, rest))
            if is_empty(&text[..*first]) || text[..*first].trim_start().starts_with('%') =>
        {
            [&[0], rest].concat()
        }
        _ => [&[0], &markers[..]].concat(),
    }
}

/// Whether nothing but comments and a marker is in a document.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.strip_prefix("---").unwrap_or(line).trim();
        line.is_empty() || line.starts_with('#')
    })
}

/// The first entry of a document without any.
fn first(text: &str, value: &Value) -> Result<String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut document = open("x: 1\n")?;
    let key = value.as_object().and_then(|map| map.iter().next());
    let Some((key, value)) = key else { return Ok(text.to_owned()) };
    let set = Operation::Set {
        path: steps(std::slice::from_ref(key)),
        value: value.clone(),
        beside: None,
    };
    let gone = Operation::Remove { path: steps(&["x".to_owned()]) };
    document.apply(&[set, gone]).map_err(refused)?;
    let new = document.text().replace('\n', end);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    Ok(format!("{text}{gap}{new}"))
}

fn open(text: &str) -> Result<Document> {
    let source = Source::new("file", text.to_owned());
    Document::parse(source).map_err(|error| {
        let line = lines::number_at(text.as_bytes(), error.span.start as usize);
        Refusal::new(format!("the file is not YAML (line {line}): {}", error.message))
    })
}

fn steps(path: &[String]) -> Vec<Step> {
    path.iter().map(|key| Step::from(key.as_str())).collect()
}

fn refused(error: EditError) -> Refusal {
    let hint = error.hint;
    Refusal {
        message: format!("the edit cannot be expressed safely in this file: {}", error.message),
        hint,
    }
}
