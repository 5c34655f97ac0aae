//! The lines of an ini file and what they mean.

use crate::lines::{self, Line};

/// What stands behind a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Text {
    /// Nothing, not even a delimiter.
    Bare,
    /// This. Lines of a value with several are joined by `\n`, each without the
    /// blanks around it.
    Value(Vec<u8>),
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) key: &'t [u8],
    /// Index of its line.
    pub(crate) first: usize,
    /// Index of the last line of its value.
    pub(crate) last: usize,
    /// The bytes between key and value, blanks included.
    pub(crate) delimiter: &'t [u8],
    pub(crate) text: Text,
}

/// A section, or what stands before the first.
#[derive(Debug)]
pub(crate) struct Section<'t> {
    pub(crate) name: &'t [u8],
    /// Index of its header; none before the first section.
    pub(crate) header: Option<usize>,
    pub(crate) entries: Vec<Entry<'t>>,
    /// Index of the line behind it: the next header, or the end.
    pub(crate) stop: usize,
}

impl<'t> Section<'t> {
    /// The entries with a key.
    pub(crate) fn all(&self, key: &[u8]) -> impl Iterator<Item = &Entry<'t>> {
        self.entries.iter().filter(move |entry| entry.key == key)
    }

    /// Index of its first line behind the header.
    pub(crate) fn begin(&self) -> usize {
        self.header.map_or(0, |header| header + 1)
    }
}

/// An ini file.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    pub(crate) lines: Vec<Line<'t>>,
    pub(crate) sections: Vec<Section<'t>>,
}

impl<'t> Document<'t> {
    /// Reads a file. Every text is one: what is no key and no section is kept.
    pub(crate) fn parse(text: &'t [u8]) -> Self {
        let lines = lines::split(text);
        let mut sections = vec![Section { name: b"", header: None, entries: Vec::new(), stop: 0 }];
        let mut index = 0;
        while index < lines.len() {
            let line = lines[index].text;
            let mut next = index + 1;
            if let Some(name) = header(line) {
                last(&mut sections).stop = index;
                sections.push(Section { name, header: Some(index), entries: Vec::new(), stop: 0 });
            } else if !is_comment(line) && !lines::trim(line).starts_with(b"[") {
                let entry = entry(&lines, index);
                next = entry.last + 1;
                last(&mut sections).entries.push(entry);
            }
            index = next;
        }
        last(&mut sections).stop = lines.len();
        Self { lines, sections }
    }

    /// The section that a key belongs to: of several with this name the first
    /// that holds it, else the last.
    pub(crate) fn target(&self, name: &[u8], key: &[u8]) -> Option<usize> {
        let named = || {
            self.sections.iter().enumerate().filter(|(_, section)| {
                section.name == name && (section.header.is_some() || name.is_empty())
            })
        };
        let holder = named().find(|(_, section)| section.all(key).next().is_some());
        holder.or_else(|| named().next_back()).map(|(index, _)| index)
    }

    /// Whether `true` is a key without a value: it is one already, or it is new
    /// and the file has others.
    pub(crate) fn writes_bare(&self, name: &[u8], key: &[u8]) -> bool {
        let section = self.target(name, key).map(|index| &self.sections[index]);
        let mut same = section.into_iter().flat_map(|section| section.all(key)).peekable();
        if same.peek().is_some() {
            return same.all(|entry| entry.text == Text::Bare);
        }
        let is_flag = |entry: &Entry<'_>| {
            entry.text == Text::Bare
                && entry
                    .key
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        };
        self.sections.iter().flat_map(|section| &section.entries).any(is_flag)
    }
}

fn last<'s, 't>(sections: &'s mut [Section<'t>]) -> &'s mut Section<'t> {
    let index = sections.len() - 1;
    &mut sections[index]
}

/// Whether a line says nothing: blank, or a comment.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    matches!(lines::trim(line).first(), None | Some(b'#' | b';'))
}

fn is_blank(line: &[u8]) -> bool {
    lines::trim(line).is_empty()
}

/// The name in a header. A comment may follow it.
fn header(line: &[u8]) -> Option<&[u8]> {
    let inner = lines::trim(line).strip_prefix(b"[")?;
    let close = inner.iter().position(|byte| *byte == b']')?;
    is_comment(&inner[close + 1..]).then_some(&inner[..close])
}

/// The entry that begins in a line.
fn entry<'t>(lines: &[Line<'t>], first: usize) -> Entry<'t> {
    let line = lines[first].text;
    let indent = lines::indent(line);
    let last = last_line(lines, first, indent);
    let body = &line[indent..];
    let sign = body.iter().position(|byte| matches!(byte, b'=' | b':'));
    let Some(sign) = sign else {
        let key = lines::trim_end(body);
        let text =
            if last == first { Text::Bare } else { Text::Value(value(b"", lines, first, last)) };
        return Entry { key, first, last, delimiter: b"", text };
    };
    let key = lines::trim_end(&body[..sign]);
    let rest = &body[sign + 1..];
    let start = sign + 1 + lines::indent(rest);
    let text = Text::Value(value(lines::trim(rest), lines, first, last));
    Entry { key, first, last, delimiter: &body[key.len()..start], text }
}

fn value(head: &[u8], lines: &[Line<'_>], first: usize, last: usize) -> Vec<u8> {
    let mut value = head.to_vec();
    for line in &lines[first + 1..=last] {
        value.push(b'\n');
        value.extend_from_slice(lines::trim(line.text));
    }
    value
}

/// The last line of a value: lines that are indented further than the key belong
/// to it, and the line behind a backslash. Comments between them that are indented
/// do too.
fn last_line(lines: &[Line<'_>], first: usize, indent: usize) -> usize {
    let mut last = first;
    for (index, line) in lines.iter().enumerate().skip(first + 1) {
        if index == last + 1 && ends_with_backslash(lines[last].text) && !is_comment(line.text) {
            last = index;
        } else if is_blank(line.text) || lines::indent(line.text) <= indent {
            break;
        } else if !is_comment(line.text) {
            last = index;
        }
    }
    last
}

fn ends_with_backslash(line: &[u8]) -> bool {
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
