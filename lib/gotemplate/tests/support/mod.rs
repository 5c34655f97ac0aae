//! What the vectors expect around a template: data, and doubles for the
//! functions a host would register.

use std::sync::Arc;

use gotemplate::{Engine, Failure};
use govalue::{IntType, Map, MapShape, Value, json};
use serde_json::Value as Json;

/// The data of a case.
pub(crate) struct Environment {
    pub(crate) data: Value,
    files: Map,
}

impl Environment {
    pub(crate) fn new(environment: &Json) -> Self {
        let part = |name: &str| match environment.get(name) {
            Some(part) => value(part),
            None => Map::new().into(),
        };
        let mut environ = Map::with_shape(MapShape::Strings);
        for (key, value) in part("environ").as_map().into_iter().flat_map(Map::iter) {
            environ.insert(key.clone(), value.clone());
        }
        let (facts, data, environ) = (part("facts"), part("data"), Value::from(environ));
        let all = Map::from_iter([
            ("facts", facts.clone()),
            ("Facts", facts),
            ("data", data.clone()),
            ("Data", data),
            ("environ", environ.clone()),
            ("Environ", environ),
        ]);
        let files = part("files").as_map().cloned().unwrap_or_default();
        Self { data: all.into(), files }
    }
}

fn value(json: &Json) -> Value {
    json::decode(&json.to_string(), json::Numbers::Ints).unwrap_or_default()
}

/// The bytes a case wants.
pub(crate) fn wanted(want: &Json) -> Vec<u8> {
    match want {
        Json::String(text) => text.clone().into_bytes(),
        other => govalue::base64::decode(other["$b64"].as_str().unwrap_or_default().as_bytes())
            .unwrap_or_default(),
    }
}

/// An engine with doubles for a host's functions.
pub(crate) fn engine(environment: &Environment) -> Engine {
    let data = Arc::new(environment.data.clone());
    let files = Arc::new(environment.files.clone());
    let (jet_data, jet_files) = (Arc::clone(&data), Arc::clone(&files));
    let read = move |arguments: &[Value]| match arguments {
        [Value::String(path)] => files
            .get_str(path)
            .cloned()
            .ok_or_else(|| Failure::from(format!("failed to read file {path}"))),
        _ => Err("wrong number of args for file: want 1".into()),
    };
    Engine::new()
        .function("lookup", move |arguments| lookup(&data, arguments))
        .function("file", read.clone())
        .function("readFile", read)
        .function("jet", move |arguments| jet(&jet_data, &jet_files, arguments))
        .function("registrations", |_| Err("registrations function not available".into()))
        .function("kvGet", |_| Err("kvGet function not available".into()))
        .function("write", |_| Ok("".into()))
        .function("render", |_| Ok("".into()))
}

fn lookup(data: &Value, arguments: &[Value]) -> Result<Value, Failure> {
    let (key, default) = match arguments {
        [Value::String(key)] => (key, None),
        [Value::String(key), default] => (key, Some(default)),
        _ => return Err("lookup requires 1 or 2 arguments, the first a string".into()),
    };
    let key = key.to_str_lossy();
    let segments: Vec<&str> = key.split('.').collect();
    match (find(data, &segments), default) {
        (Some(found), _) => Ok(looked_up(&found, true)),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(format!("missing key '{key}'").into()),
    }
}

/// A dotted path; `#` goes through all items of a list.
fn find(value: &Value, path: &[&str]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value.clone()) };
    match value {
        Value::Array(items) if *first == "#" => {
            Some(Value::array(items.iter().filter_map(|item| find(item, rest))))
        }
        Value::Array(items) => find(items.get(first.parse::<usize>().ok()?)?, rest),
        other => find(other.get(first)?, rest),
    }
}

/// Numbers come out of JSON text: whole ones are integers, but only outermost.
fn looked_up(value: &Value, outermost: bool) -> Value {
    match value {
        Value::Int(number) if outermost => Value::Sized(IntType::Int64, *number),
        Value::Float(number) if outermost && number.fract() == 0.0 => {
            Value::Sized(IntType::Int64, *number as i64)
        }
        Value::Int(number) => Value::Float(*number as f64),
        Value::Array(items) => Value::array(items.iter().map(|item| looked_up(item, false))),
        Value::Map(map) => {
            let members = map.iter().map(|(key, value)| (key.clone(), looked_up(value, false)));
            members.collect::<Map>().into()
        }
        other => other.clone(),
    }
}

/// Enough of Jet to show that the text arrives: `[[ path ]]`.
fn jet(data: &Value, files: &Map, arguments: &[Value]) -> Result<Value, Failure> {
    let text = |index: usize| arguments.get(index).map(ToString::to_string);
    let body = text(0).ok_or("jet needs a body")?;
    let body = files.get(&body).map_or(body, ToString::to_string);
    let left = text(1).unwrap_or_else(|| "[[".to_owned());
    let right = text(2).unwrap_or_else(|| "]]".to_owned());
    let (before, rest) = body.split_once(&left).ok_or("no expression")?;
    let (path, after) = rest.split_once(&right).ok_or("no end of the expression")?;
    let segments: Vec<&str> = path.trim().split('.').collect();
    let found = find(data, &segments).ok_or("identifier not available")?;
    Ok(format!("{before}{found}{after}").into())
}
