//! Writes values as YAML text.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes a value as YAML in block style, in its own order.
///
/// ```
/// let value = serde_json::json!({"name": "zsh", "ensure": "5.9", "tags": ["a", "b: c"]});
/// assert_eq!(ccm_yaml::to_yaml(&value), "\
/// name: zsh
/// ensure: '5.9'
/// tags:
///   - a
///   - 'b: c'
/// ");
/// ```
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut out, map, 0, false),
        Value::Array(items) if !items.is_empty() => write_list(&mut out, items, 0, false),
        scalar => {
            write_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn write_map(
    out: &mut String,
    map: &serde_json::Map<String, Value>,
    depth: usize,
    mut first_is_placed: bool,
) {
    for (key, value) in map {
        if !std::mem::take(&mut first_is_placed) {
            indent(out, depth);
        }
        write_text(out, key, None);
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                write_map(out, map, depth + 1, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_list(out, items, depth + 1, false);
            }
            scalar => {
                out.push(' ');
                write_scalar(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn write_list(out: &mut String, items: &[Value], depth: usize, mut first_is_placed: bool) {
    for item in items {
        if !std::mem::take(&mut first_is_placed) {
            indent(out, depth);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => write_map(out, map, depth + 1, true),
            Value::Array(items) if !items.is_empty() => write_list(out, items, depth + 1, true),
            scalar => {
                write_scalar(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

fn write_scalar(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_text(out, text, Some(depth)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Writes text so that it reads back as exactly this text; as a block when it
/// has lines and `block_depth` says where the block stands.
fn write_text(out: &mut String, text: &str, block_depth: Option<usize>) {
    if is_plain(text) {
        out.push_str(text);
    } else if let Some(depth) = block_depth.filter(|_| is_block(text)) {
        out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
        for line in text.lines() {
            out.push('\n');
            if !line.is_empty() {
                indent(out, depth);
                out.push_str(line);
            }
        }
    } else if text.chars().any(|c| c.is_control() || is_special(c)) {
        write_escaped(out, text);
    } else {
        let _ = write!(out, "'{}'", text.replace('\'', "''"));
    }
}

/// Characters that YAML does not print or treats as line breaks.
fn is_special(c: char) -> bool {
    matches!(
        c,
        '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !body.ends_with('\n')
        && !text.chars().any(|c| (c.is_control() && c != '\n') || is_special(c))
        && !text
            .lines()
            .any(|line| line.ends_with(' ') || line.trim().is_empty() && !line.is_empty())
}

fn is_plain(text: &str) -> bool {
    let first_fits =
        text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '_'));
    first_fits
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " /_-.,:=+#@%()".contains(c))
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && !is_word_with_meaning(text)
}

fn is_word_with_meaning(text: &str) -> bool {
    const WORDS: [&str; 12] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan", "infinity"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn write_escaped(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_special(c) => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kind, Node, Source, parse};

    fn read_back(node: &Node<'_>) -> Value {
        match &node.kind {
            Kind::Scalar(scalar) if scalar.is_null() => Value::Null,
            Kind::Scalar(scalar) => match scalar.boolean() {
                Some(flag) => Value::Bool(flag),
                None if scalar.plain => serde_json::from_str(&scalar.text)
                    .unwrap_or_else(|_| scalar.text.clone().into()),
                None => scalar.text.clone().into(),
            },
            Kind::Sequence(items) => items.iter().map(read_back).collect(),
            Kind::Mapping(entries) => entries
                .iter()
                .map(|entry| (entry.key.text.to_string(), read_back(&entry.value)))
                .collect(),
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![any::<String>(), "[ -~\n\t]{0,12}", "[a-z: #'\"\n-]{0,8}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                // `<<` merges maps, quoted or not, so no key of a value is called so.
                prop::collection::vec(
                    (text.clone().prop_filter("a merge", |key| key != "<<"), inner),
                    0..5
                )
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(value in any_value()) {
            let text = to_yaml(&value);
            let source = Source::new("t", text.clone());
            let node = parse(&source).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read_back(&node), value, "{}", text);
        }
    }

    #[test]
    fn lines_become_blocks() {
        let value = serde_json::json!({"list": [{"content": "a\nb\n", "x": 1}], "raw": "a\nb"});
        assert_eq!(
            to_yaml(&value),
            "list:\n  - content: |\n      a\n      b\n    x: 1\nraw: |-\n  a\n  b\n"
        );
    }
}
