//! What the studio answers, as types for the page: `web/answers.d.ts` is made of
//! the Rust types, so that `tsc` finds a page that expects something else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ccm_author::form::TypesForm;
use ccm_author::graph::GraphDocument;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::runs::events;
use crate::{
    data, edit, error, facts, files, history, names, routes, runs, template, texts, watch,
};

/// Lines of comments are not longer.
const WIDTH: usize = 90;

/// The type of `{}` alone.
const NO_PROPERTIES: &str = "Record<string, never>";

/// The answers: for each method and path the name of its type.
fn answers(generator: &mut SchemaGenerator) -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
        generator.subschema_for::<T>().to_value()
    }
    let g = generator;
    // Any answer can be the first, and a graph in another format the second.
    let _ = (of::<error::Failure<'_>>(g), of::<texts::GraphText>(g));
    vec![
        (
            "Get",
            vec![
                ("studio", of::<texts::About<'_>>(g)),
                ("types", of::<TypesForm>(g)),
                ("files", of::<files::Files>(g)),
                ("files/${string}", of::<files::FileRead<'_>>(g)),
                ("names", of::<names::Names>(g)),
                ("facts", of::<facts::FactsShown>(g)),
                ("facts?environ=${string}", of::<facts::Variable>(g)),
                ("runs", of::<runs::RunList>(g)),
                ("runs/${string}", of::<runs::RunShown>(g)),
                ("history", of::<history::History>(g)),
                ("history/${string}", of::<history::HistoryShown>(g)),
            ],
        ),
        ("Put", vec![("files/${string}", of::<files::FileSaved>(g))]),
        (
            "Post",
            vec![
                ("session", of::<routes::Session>(g)),
                ("check", of::<texts::CheckAnswer<'_>>(g)),
                ("form", of::<texts::FormAnswer<'_>>(g)),
                ("ensure", of::<texts::EnsureAnswer>(g)),
                ("graph", of::<GraphDocument>(g)),
                ("data", of::<data::DataShown>(g)),
                ("template", of::<template::Rendered>(g)),
                ("edit", of::<edit::Edited>(g)),
                ("yaml", of::<edit::YamlValue>(g)),
                ("runs", of::<runs::Started>(g)),
                ("history/${string}/undo", of::<runs::Started>(g)),
            ],
        ),
        ("Delete", vec![("runs/${string}", of::<runs::Started>(g))]),
        (
            "RunEvents",
            vec![
                ("started", of::<events::RunStarted>(g)),
                ("resource", of::<events::TurnStarted<'_>>(g)),
                ("event", of::<events::TurnDone>(g)),
                ("output", of::<events::OutputLine<'_>>(g)),
                ("message", of::<events::Message<'_>>(g)),
                ("warning", of::<ccm_model::Diagnostic>(g)),
                ("diagnosis", of::<events::Diagnosed>(g)),
                ("stale", of::<events::Differences>(g)),
                ("finished", of::<events::RunEnded>(g)),
            ],
        ),
        (
            "WatchEvents",
            vec![
                ("file", of::<watch::FileChanged<'_>>(g)),
                ("files", of::<watch::Nothing>(g)),
                ("stopping", of::<watch::Nothing>(g)),
            ],
        ),
    ]
}

fn declarations() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let answers = answers(&mut generator);
    let schemas: BTreeMap<String, Value> = generator.take_definitions(true).into_iter().collect();
    let mut text = String::from(
        "// Made by `cargo xtask docs` from the Rust types of the answers; never edited.\n\n\
         declare namespace Api {\n",
    );
    for (table, entries) in answers {
        let _ = writeln!(text, "  interface {table} {{");
        for (path, schema) in entries {
            let is_pattern = path.contains("${");
            let key = if is_pattern { format!("[path: `{path}`]") } else { format!("{path:?}") };
            let _ = writeln!(text, "    {key}: {};", type_of(&schema, 2));
        }
        text.push_str("  }\n\n");
    }
    for (name, schema) in &schemas {
        comment(&mut text, schema, 1);
        let kind = type_of(schema, 1);
        let space = if kind.starts_with('\n') { "" } else { " " };
        let _ = writeln!(text, "  type {name} ={space}{kind};\n");
    }
    text.truncate(text.trim_end().len());
    text.push_str("\n}\n");
    text
}

/// The description of a schema as a comment.
fn comment(text: &mut String, schema: &Value, depth: usize) {
    let Some(description) = schema["description"].as_str() else { return };
    let indent = "  ".repeat(depth);
    let mut lines = vec![String::new()];
    for word in description.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if let [line] = lines.as_slice() {
        let _ = writeln!(text, "{indent}/** {line} */");
        return;
    }
    let _ = writeln!(text, "{indent}/**");
    for line in lines {
        let _ = writeln!(text, "{indent} * {line}");
    }
    let _ = writeln!(text, "{indent} */");
}

/// The type that a schema describes. What may be anything is `any`.
fn type_of(schema: &Value, depth: usize) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.trim_start_matches("#/$defs/").to_owned();
    }
    if let Some(word) = schema.get("const") {
        return word.to_string();
    }
    if let Some(words) = schema["enum"].as_array() {
        return union(words.iter().map(Value::to_string).collect(), depth);
    }
    let choices = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    let choices =
        choices.map(|all| union(all.iter().map(|one| type_of(one, depth)).collect(), depth));
    // Of what may be flattened into an object or not, nothing is no property.
    let choices = choices.map(|choices| match choices.strip_suffix(" | any") {
        Some(rest) => format!("{rest} | {{}}"),
        None => choices,
    });
    let own = match &schema["type"] {
        Value::String(kind) => Some(single(kind, schema, depth)),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            Some(union(kinds.map(|kind| single(kind, schema, depth)).collect(), depth))
        }
        _ => None,
    };
    match (own, choices) {
        (Some(own), Some(choices)) if own == NO_PROPERTIES => choices,
        (Some(own), Some(choices)) => format!("{own} & ({choices})"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => "any".to_owned(),
    }
}

fn union(mut types: Vec<String>, depth: usize) -> String {
    types.dedup();
    let line = types.join(" | ");
    if line.len() <= WIDTH || line.contains('\n') {
        return line;
    }
    let indent = "  ".repeat(depth + 1);
    types.iter().map(|one| format!("\n{indent}| {one}")).collect()
}

fn single(kind: &str, schema: &Value, depth: usize) -> String {
    match kind {
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "null" => "null".to_owned(),
        "array" => list(schema, depth),
        "object" => object(schema, depth),
        other => panic!("no type for {other}"),
    }
}

fn list(schema: &Value, depth: usize) -> String {
    let items = schema.get("items").map_or_else(|| "any".to_owned(), |items| type_of(items, depth));
    match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
        (Some(least), Some(most)) if least == most => {
            format!("[{}]", vec![items.as_str(); least as usize].join(", "))
        }
        _ if items.contains([' ', '|']) => format!("({items})[]"),
        _ => format!("{items}[]"),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return match schema.get("additionalProperties") {
            Some(Value::Object(values)) => {
                format!("Record<string, {}>", type_of(&Value::Object(values.clone()), depth))
            }
            Some(Value::Bool(true)) => "Record<string, any>".to_owned(),
            _ => NO_PROPERTIES.to_owned(),
        };
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::from("{\n");
    for (name, schema) in properties {
        let is_required = required.contains(&name.as_str());
        comment(&mut text, schema, depth + 1);
        let mut kind = type_of(schema, depth + 1);
        if !is_required {
            // What can be absent is left out instead of being null.
            kind = kind.trim_end_matches(" | null").to_owned();
        }
        let mark = if is_required { "" } else { "?" };
        let _ = writeln!(text, "{}{name}{mark}: {kind};", "  ".repeat(depth + 1));
    }
    let _ = write!(text, "{}}}", "  ".repeat(depth));
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test compares with the file itself")]
fn the_page_has_the_types_of_all_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/answers.d.ts");
    let made = declarations();
    if std::env::var_os("CCM_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == kept, "web/answers.d.ts is not current; run `cargo xtask docs`");
}
