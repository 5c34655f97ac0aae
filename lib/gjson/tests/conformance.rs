//! The conformance vectors.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use govalue::{Map, Value};
use serde_json::Value as Json;

/// A value of the vectors: floats are written with a point or an exponent.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::array(items.iter().map(value)),
        Json::Object(members) => match members.get("$float").and_then(Json::as_str) {
            Some(float) => Value::Float(govalue::parse_float(float).unwrap()),
            None => members.iter().map(|(key, item)| (&**key, value(item))).collect::<Map>().into(),
        },
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        _ => "other",
    }
}

fn check(json: &str, path: &str, want: &Json) -> Result<(), String> {
    let found = gjson::get(json, path).map_err(|error| error.to_string())?;
    let got = format!("{found:?}");
    let same = found.exists() == want["exists"]
        && format!("{:?}", found.kind()).eq_ignore_ascii_case(want["type"].as_str().unwrap())
        && found.raw() == want["raw"]
        && found.text() == want["string"].as_str().unwrap()
        && found.value() == Ok(value(&want["value"]));
    if !same {
        return Err(got);
    }
    if let Some(lookup) = want.get("lookup") {
        let got = found.lookup().map_err(|error| error.to_string())?;
        if got != value(lookup) || type_name(&got) != want["lookup_type"] {
            return Err(format!("lookup {got:?}"));
        }
    }
    same_over_values(json, path)
}

/// The same path over the text, and over the value, that the JSON stands for.
fn same_over_values(json: &str, path: &str) -> Result<(), String> {
    let Ok(root) = govalue::json::decode(json, govalue::json::Numbers::Ints) else { return Ok(()) };
    let document = gjson::Document::new(root.clone());
    let path = gjson::Path::compile(path);
    let found = path.get(document.text().unwrap()).unwrap();
    let from_text = found.exists().then(|| found.lookup().unwrap());
    let from_value = path.lookup(&root).unwrap();
    let from_document = document.lookup(&path).unwrap();
    if from_text == from_value && from_text == from_document {
        Ok(())
    } else {
        Err(format!("text {from_text:?}, value {from_value:?}, document {from_document:?}"))
    }
}

#[test]
fn conformance_gjson() {
    let vectors = vectors::Vectors::new("gjson.jsonl", env!("CARGO_MANIFEST_DIR"));
    let texts = vectors.environment("gjson.env.json");
    vectors.run(|case| {
        let input = &case["input"];
        let (json, path) = match case["env_ref"].as_str() {
            Some(name) => (&texts[name], input),
            None => (&input["json"], &input["path"]),
        };
        check(json.as_str().unwrap(), path.as_str().unwrap(), &case["want"])
    });
}
