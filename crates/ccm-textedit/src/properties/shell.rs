//! Assignments as a shell reads them, one per line.

use super::Entry;
use crate::change::{Refusal, Result};
use crate::lines::{self, Line};

/// The entries of a file. Lines that are no assignment are passed; so is one that
/// goes on behind its value.
pub(super) fn entries(text: &[u8], lines: &[Line<'_>]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = &lines[index];
        let Some((key, value_start)) = assignment(line.text) else {
            index += 1;
            continue;
        };
        let start = line.start + value_start;
        let word = word(text, start);
        let Some(word) = word else {
            return Err(Refusal::new(format!("the quote in line {} has no end", index + 1)));
        };
        let last = lines[index..]
            .iter()
            .position(|line| word.stop <= line.stop())
            .map_or(index, |at| index + at);
        let rest = &lines[last].text;
        let behind = lines::trim(&rest[(word.stop - lines[last].start).min(rest.len())..]);
        let is_whole = behind.is_empty() || behind.starts_with(b"#");
        entries.push(Entry {
            key,
            first: index,
            last,
            written: start..word.stop,
            value: word.value.filter(|_| is_whole),
            delimiter: "=".to_owned(),
        });
        index = last + 1;
    }
    Ok(entries)
}

/// The name in `NAME=` or `export NAME=`, and where the value begins.
fn assignment(line: &[u8]) -> Option<(String, usize)> {
    let mut at = lines::indent(line);
    if let Some(rest) = line[at..].strip_prefix(b"export") {
        let blanks = lines::indent(rest);
        if blanks > 0 {
            at += "export".len() + blanks;
        }
    }
    let rest = &line[at..];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = rest.iter().take_while(|byte| is_part(byte)).count();
    if length == 0 || rest[0].is_ascii_digit() || rest.get(length) != Some(&b'=') {
        return None;
    }
    let key = String::from_utf8_lossy(&rest[..length]).into_owned();
    Some((key, at + length + 1))
}

/// A word of a shell.
struct Word {
    /// Behind it.
    stop: usize,
    /// What it means; none if it contains what a shell expands.
    value: Option<String>,
}

/// The word that begins at a place; none if a quote has no end.
fn word(text: &[u8], start: usize) -> Option<Word> {
    let mut value = Vec::new();
    let mut is_plain = true;
    let mut at = start;
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
            b'\r' if text.get(at + 1) == Some(&b'\n') => break,
            b'\'' => {
                let length = text[at + 1..].iter().position(|byte| *byte == b'\'')?;
                value.extend_from_slice(&text[at + 1..=at + length]);
                at += length + 2;
            }
            b'"' => {
                at = quoted(text, at + 1, &mut value, &mut is_plain)?;
            }
            b'\\' => {
                match text.get(at + 1) {
                    Some(b'\n') | None => {}
                    Some(byte) => value.push(*byte),
                }
                at = (at + 2).min(text.len());
            }
            b'$' | b'`' | b'*' | b'?' | b'[' | b'~' => {
                is_plain = false;
                value.push(*byte);
                at += 1;
            }
            byte => {
                value.push(*byte);
                at += 1;
            }
        }
    }
    let value = String::from_utf8(value).ok().filter(|_| is_plain);
    Some(Word { stop: at, value })
}

/// Reads up to the closing double quote; gives the place behind it.
fn quoted(text: &[u8], start: usize, value: &mut Vec<u8>, is_plain: &mut bool) -> Option<usize> {
    let mut at = start;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                let next = *text.get(at + 1)?;
                match next {
                    b'\n' => {}
                    b'"' | b'\\' | b'$' | b'`' => value.push(next),
                    other => value.extend_from_slice(&[b'\\', other]),
                }
                at += 2;
            }
            byte => {
                *is_plain &= !matches!(byte, b'$' | b'`');
                value.push(*byte);
                at += 1;
            }
        }
    }
}

/// A value in the quotes of the former one, if they can express it.
pub(super) fn written(value: &str, former: &[u8]) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,@%+=".contains(&byte);
    let is_bare = !value.is_empty() && value.bytes().all(is_safe);
    let needs_escape = |found: char| matches!(found, '"' | '\\' | '$' | '`');
    match former.first() {
        Some(b'"') if !value.contains(needs_escape) => return format!("\"{value}\""),
        Some(b'\'') if !value.contains('\'') => return format!("'{value}'"),
        Some(b'"' | b'\'') => {}
        _ if is_bare => return value.to_owned(),
        _ => {}
    }
    if !value.contains('\'') {
        return format!("'{value}'");
    }
    let escaped: String = value
        .chars()
        .flat_map(|found| needs_escape(found).then_some('\\').into_iter().chain([found]))
        .collect();
    format!("\"{escaped}\"")
}
