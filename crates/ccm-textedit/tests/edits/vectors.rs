//! Vectors: one per line, as `EDIT | TEXT BEFORE | RESULT`.
//!
//! The edit is JSON with the properties of a manifest. Texts have `\n`, `\r`,
//! `\t`, `\\`, `\xHH` and `\p` for the bar. A result is the text after, `=` if
//! nothing changes, or `!` with a part of the message. Behind a fourth bar stand
//! the changes, as `NAME: FROM -> TO` with `-` for nothing, separated by `;`.
//!
//! Every vector that changes something is also made with other line ends and with
//! a byte order mark, and its result is edited again.

use ccm_textedit::{Change, Edit, apply};

use crate::spec;

const FILES: [(&str, &str); 8] = [
    ("line", include_str!("../vectors/line.txt")),
    ("block", include_str!("../vectors/block.txt")),
    ("ini", include_str!("../vectors/ini.txt")),
    ("json", include_str!("../vectors/json.txt")),
    ("yaml", include_str!("../vectors/yaml.txt")),
    ("toml", include_str!("../vectors/toml.txt")),
    ("properties", include_str!("../vectors/properties.txt")),
    ("shell", include_str!("../vectors/shell.txt")),
];

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'p') => bytes.push(b'|'),
            Some(b'\\') => bytes.push(b'\\'),
            Some(b'x') => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
            }
            other => panic!("unknown escape {other:?} in {text}"),
        }
    }
    bytes
}

fn escaped(text: &[u8]) -> String {
    let mut shown = String::new();
    for byte in text {
        match byte {
            b'\n' => shown.push_str("\\n"),
            b'\r' => shown.push_str("\\r"),
            b'\t' => shown.push_str("\\t"),
            b'|' => shown.push_str("\\p"),
            b'\\' => shown.push_str("\\\\"),
            b' '..=b'~' => shown.push(char::from(*byte)),
            byte => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    shown
}

fn listed(changes: &[Change]) -> String {
    let shown = |text: &Option<String>| {
        text.as_ref().map_or("-".to_owned(), |text| escaped(text.as_bytes()))
    };
    let each = |change: &Change| {
        format!("{}: {} -> {}", change.name, shown(&change.from), shown(&change.to))
    };
    changes.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// What an edit makes of a text, as the vectors write it.
fn outcome(text: &[u8], edit: &Edit) -> (String, String) {
    match apply(text, edit) {
        Err(refusal) => (format!("! {refusal}"), String::new()),
        Ok(edited) if edited.text == text => ("=".to_owned(), listed(&edited.changes)),
        Ok(edited) => (escaped(&edited.text), listed(&edited.changes)),
    }
}

fn crlf(text: &[u8]) -> Vec<u8> {
    text.iter().fold(Vec::new(), |mut made, byte| {
        if *byte == b'\n' && made.last() != Some(&b'\r') {
            made.push(b'\r');
        }
        made.push(*byte);
        made
    })
}

fn with_bom(text: &[u8]) -> Vec<u8> {
    [b"\xEF\xBB\xBF", text].concat()
}

/// What is wrong with one vector, if anything is.
fn check(format: &str, line: &str) -> Option<String> {
    // A text may begin or end with a blank.
    let fields: Vec<&str> = line.split(" | ").collect();
    let [spec, before, wanted, changes @ ..] = &fields[..] else {
        return Some("needs three fields".to_owned());
    };
    let edit = spec::edit(format, spec);
    let text = unescaped(before.trim_matches('"'));
    let (made, named) = outcome(&text, &edit);
    if let Some(part) = wanted.strip_prefix('!') {
        let found = made.strip_prefix("! ").is_some_and(|message| message.contains(part.trim()));
        return (!found).then_some(made);
    }
    if let [changes] = changes
        && *changes != named
    {
        return Some(format!("changes: {named}"));
    }
    let wanted = wanted.trim_matches('"');
    let is_same = if *wanted == *"=" {
        made == "="
    } else {
        made != "=" && unescaped(wanted) == unescaped(&made)
    };
    if made.starts_with('!') || !is_same {
        return Some(made);
    }
    if wanted == "=" {
        return None;
    }
    let result = unescaped(wanted);
    let again = outcome(&result, &edit).0;
    if again != "=" {
        return Some(format!("a second run: {again}"));
    }
    // A text whose line ends are of both kinds is not made uniform.
    if text.contains(&b'\n') && !text.contains(&b'\r') {
        let made = apply(&crlf(&text), &edit).map(|edited| edited.text);
        if made.as_deref() != Ok(&crlf(&result)) {
            return Some(format!("with CRLF: {:?}", made.map(|text| escaped(&text))));
        }
    }
    if !text.starts_with(b"\xEF") {
        let made = apply(&with_bom(&text), &edit).map(|edited| edited.text);
        if made.as_deref() != Ok(&with_bom(&result)) {
            return Some(format!("with a byte order mark: {:?}", made.map(|text| escaped(&text))));
        }
    }
    None
}

#[test]
fn vectors() {
    let mut wrong = Vec::new();
    for (format, table) in FILES {
        let lines = table.lines().enumerate();
        let vectors = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
        let mut count = 0;
        for (number, line) in vectors {
            count += 1;
            if let Some(reason) = check(format, line) {
                wrong.push(format!("{format}.txt:{}: {line}\n    made: {reason}", number + 1));
            }
        }
        println!("{format}: {count} vectors");
    }
    assert!(wrong.is_empty(), "{} vectors fail:\n{}", wrong.len(), wrong.join("\n"));
}
