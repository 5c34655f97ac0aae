//! The JSON Schema of rules, from the tables of kinds and matchers.

use serde_json::{Map, Value, json};

use crate::kinds::{COMMON, KINDS, RuleKind, SettingType, ValueType};

/// What `goss_rules` accepts: a map of rules, or a text that becomes one. Texts
/// and keys that match `placeholder` may become anything.
pub fn schema(placeholder: &str) -> Value {
    let kinds = KINDS.iter().map(|kind| (kind.name.to_owned(), entries(kind, placeholder)));
    let kinds: Map<String, Value> = kinds.collect();
    json!({
        "type": ["object", "string", "null"],
        "minProperties": 1,
        "properties": kinds,
        "patternProperties": {placeholder: true},
        "additionalProperties": false,
    })
}

/// A value of its own, or a placeholder.
fn or_open(schema: &Value, placeholder: &str) -> Value {
    json!({"anyOf": [schema, {"type": "string", "pattern": placeholder}]})
}

fn entries(kind: &RuleKind, placeholder: &str) -> Value {
    let tests = kind.tests.iter().flat_map(|test| {
        let expected = expected(test.value);
        std::iter::once(test.name)
            .chain(test.alias)
            .map(move |name| (name.to_owned(), expected.clone()))
    });
    let settings = kind.settings.iter().chain(&COMMON).map(|setting| {
        let value = match setting.value {
            SettingType::Text => json!({"type": ["string", "number", "boolean", "null"]}),
            SettingType::Boolean => or_open(&json!({"type": ["boolean", "null"]}), placeholder),
            SettingType::Milliseconds(_) => or_open(
                &json!({"type": ["integer", "null"], "minimum": 1, "maximum": 86_400_000}),
                placeholder,
            ),
            SettingType::Texts => or_open(
                &json!({"type": ["array", "null"], "items": {"type": ["string", "number", "boolean"]}}),
                placeholder,
            ),
            SettingType::Any => true.into(),
        };
        (setting.name.to_owned(), value)
    });
    let subject = kind
        .subject
        .map(|name| (name.to_owned(), json!({"type": ["string", "number", "boolean", "null"]})));
    let attributes: Map<String, Value> = tests.chain(settings).chain(subject).collect();
    let entry = json!({
        "type": "object",
        "minProperties": 1,
        "properties": attributes,
        "patternProperties": {placeholder: true},
        "additionalProperties": false,
    });
    json!({
        "type": ["object", "string", "null"],
        "additionalProperties": or_open(&entry, placeholder),
    })
}

/// What may be expected of a value: the rest is left to the engine.
fn expected(value: ValueType) -> Value {
    match value {
        ValueType::Boolean | ValueType::Number => {
            json!({"type": ["boolean", "number", "string", "object", "null"]})
        }
        _ => true.into(),
    }
}
