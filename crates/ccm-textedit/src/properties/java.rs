//! Properties as Java reads them.

use super::Entry;
use crate::lines::Line;

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

fn indent(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(**byte)).count()
}

fn ends_with_backslash(line: &[u8]) -> bool {
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Where an entry's text is, piece by piece: a backslash at the end of a line
/// joins it with the next, whose indentation does not count.
struct Logical {
    bytes: Vec<u8>,
    /// Where each byte is in the file.
    places: Vec<usize>,
}

pub(super) fn entries(text: &[u8], lines: &[Line<'_>]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let first = index;
        index += 1;
        let line = lines[first].text;
        if matches!(line.get(indent(line)), None | Some(b'#' | b'!')) {
            continue;
        }
        while ends_with_backslash(lines[index - 1].text) && index < lines.len() {
            index += 1;
        }
        entries.push(entry(text, lines, first, index - 1));
    }
    entries
}

fn logical(lines: &[Line<'_>], first: usize, last: usize) -> Logical {
    let mut made = Logical { bytes: Vec::new(), places: Vec::new() };
    for (index, line) in lines.iter().enumerate().take(last + 1).skip(first) {
        let start = indent(line.text);
        let joins = index < last || ends_with_backslash(line.text);
        let stop = line.text.len() - usize::from(joins);
        for at in start..stop.max(start) {
            made.bytes.push(line.text[at]);
            made.places.push(line.start + at);
        }
    }
    made
}

fn entry(text: &[u8], lines: &[Line<'_>], first: usize, last: usize) -> Entry {
    let whole = logical(lines, first, last);
    let bytes = &whole.bytes;
    let mut key_stop = 0;
    while let Some(byte) = bytes.get(key_stop) {
        if is_blank(*byte) || matches!(byte, b'=' | b':') {
            break;
        }
        key_stop += if *byte == b'\\' { 2 } else { 1 };
    }
    let key_stop = key_stop.min(bytes.len());
    let mut start = key_stop + indent(&bytes[key_stop..]);
    if matches!(bytes.get(start), Some(b'=' | b':')) {
        start += 1;
        start += indent(&bytes[start..]);
    }
    let end = lines[last].start + lines[last].text.len();
    let place = |at: usize| whole.places.get(at).copied().unwrap_or(end);
    let delimiter = if place(start) - place(key_stop) == start - key_stop {
        String::from_utf8_lossy(&text[place(key_stop)..place(start)]).into_owned()
    } else {
        "=".to_owned()
    };
    Entry {
        key: unescaped(&bytes[..key_stop]),
        first,
        last,
        written: place(start)..end,
        value: Some(unescaped(&bytes[start..])),
        delimiter,
    }
}

/// Text without its escapes. Bytes that are no UTF-8 are those of Latin-1.
fn unescaped(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes)
        .map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned);
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text.chars();
    while let Some(found) = rest.next() {
        let mut meant = found;
        if found == '\\' {
            match rest.next() {
                None => break,
                Some('t') => meant = '\t',
                Some('n') => meant = '\n',
                Some('r') => meant = '\r',
                Some('f') => meant = '\x0c',
                Some('u') => {
                    let digits: String = rest.clone().take(4).collect();
                    match u16::from_str_radix(&digits, 16) {
                        Ok(unit) if digits.len() == 4 => {
                            units.push(unit);
                            rest.by_ref().take(4).for_each(drop);
                            continue;
                        }
                        _ => meant = 'u',
                    }
                }
                Some(other) => meant = other,
            }
        }
        units.extend_from_slice(meant.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

/// A value with the escapes that it needs.
pub(super) fn written(value: &str) -> String {
    let mut made = escaped(value, &[]);
    if value.starts_with(' ') {
        made.insert(0, '\\');
    }
    made
}

pub(super) fn written_key(key: &str) -> String {
    escaped(key, &[' ', '=', ':', '#', '!'])
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut made = String::new();
    for found in text.chars() {
        match found {
            '\\' => made.push_str("\\\\"),
            '\t' => made.push_str("\\t"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\x0c' => made.push_str("\\f"),
            found if special.contains(&found) => {
                made.push('\\');
                made.push(found);
            }
            ' '..='~' => made.push(found),
            found => {
                for unit in found.encode_utf16(&mut [0; 2]) {
                    made.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    made
}
