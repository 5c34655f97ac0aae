//! An environment to render vectors in.

use std::sync::Arc;

use govalue::{Map, MapShape, Str, Value};
use jet::{Function, MemoryLoader, Param, Set, Variables};
use serde_json::Value as Json;

/// Facts, data, environment variables and files.
#[derive(Clone)]
pub(crate) struct Environment {
    facts: Value,
    data: Value,
    environ: Value,
    files: Arc<serde_json::Map<String, Json>>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Environment {
    pub(crate) fn new(json: &Json) -> Self {
        let environ = json["environ"].as_object().into_iter().flatten();
        let mut strings = match json.get("environ") {
            Some(_) => Map::with_shape(MapShape::Strings),
            None => Map::nil(MapShape::Strings),
        };
        for (name, value) in environ {
            strings.insert(name.as_str(), value.as_str().unwrap_or_default());
        }
        Self {
            facts: member(json, "facts"),
            data: member(json, "data"),
            environ: strings.into(),
            files: Arc::new(json["files"].as_object().cloned().unwrap_or_default()),
        }
    }

    /// A body, or the file that it names by ending in `.jet`.
    pub(crate) fn render(&self, body: &str, left: &str, right: &str) -> Result<Str, String> {
        let body = if names_a_file(body) { self.file(body)? } else { body.to_owned() };
        let set = Set::new().with_delimiters(left, right);
        let template = set.parse("input", &body).map_err(|error| error.to_string())?;
        set.render(&template, &self.variables(), &self.context()).map_err(|error| error.to_string())
    }

    pub(crate) fn render_entry<'a>(
        &self,
        templates: impl Iterator<Item = (&'a str, &'a str)>,
        entry: &str,
    ) -> Result<Str, String> {
        let loader: MemoryLoader = templates.collect();
        let set = Set::new().with_delimiters("[[", "]]").with_loader(loader);
        let template = set.get(entry).map_err(|error| error.to_string())?;
        set.render(&template, &self.variables(), &self.context()).map_err(|error| error.to_string())
    }

    fn file(&self, name: &str) -> Result<String, String> {
        let text = self.files.get(name).and_then(Json::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("there is no file {name}"))
    }

    /// Replaces `{{ Data.a.b }}`: as much of the other language as is needed.
    fn fill(&self, text: &str) -> String {
        let mut parts = text.split("{{");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (path, rest) = part.split_once("}}").unwrap_or((part, ""));
            let value = path
                .trim()
                .strip_prefix("Data.")
                .and_then(|path| path.split('.').try_fold(&self.data, |value, key| value.get(key)));
            out.push_str(&value.unwrap_or(&Value::Nil).to_string());
            out.push_str(rest);
        }
        out
    }

    fn context(&self) -> Value {
        Map::from_iter([
            ("Facts", self.facts.clone()),
            ("Data", self.data.clone()),
            ("Environ", self.environ.clone()),
            ("WorkingDir", Value::from("")),
            ("RestrictFunctions", Value::from(false)),
        ])
        .into()
    }

    fn variables(&self) -> Variables {
        let mut variables = Variables::new();
        for (lower, upper, value) in [
            ("facts", "Facts", &self.facts),
            ("data", "Data", &self.data),
            ("environ", "Environ", &self.environ),
        ] {
            variables.set(lower, value.clone()).set(upper, value.clone());
        }
        let root = Map::from_iter([
            ("facts", self.facts.clone()),
            ("data", self.data.clone()),
            ("environ", self.environ.clone()),
        ]);
        let root = Value::from(root);
        variables.set_function("lookup", Function::new(1..=2, move |args| lookup(&root, args)));
        for name in ["file", "readFile"] {
            let this = self.clone();
            let read = move |args: &[Value]| Ok(this.file(&string(&args[0])?)?.into());
            variables.set_function(name, Function::new(1..=1, read));
        }
        let this = self.clone();
        let template = move |args: &[Value]| {
            let name = string(&args[0])?;
            if names_a_file(&name) {
                return Ok(this.render(&name, "[[", "]]")?.into());
            }
            let text = match name.strip_suffix(".templ") {
                Some(_) => this.file(&name)?,
                None => name,
            };
            Ok(this.fill(&text).into())
        };
        variables.set_function("template", Function::new(1..=1, template));
        for (name, arity) in [("registrations", 4), ("kvGet", 2)] {
            let absent = |_: &[Value]| Err("there is no network".into());
            variables.set_function(name, Function::typed(&vec![Param::String; arity], absent));
        }
        variables
    }
}

fn names_a_file(body: &str) -> bool {
    body.rsplit_once('.').is_some_and(|(_, ending)| ending == "jet")
}

fn string(value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.to_string()),
        _ => Err("the argument must be a string".into()),
    }
}

/// A dotted path into the environment; numbers inside lists and maps are
/// floats, as they are after a detour through JSON.
fn lookup(root: &Value, args: &[Value]) -> Result<Value, Failure> {
    let path = string(&args[0])?;
    let found = path.split('.').try_fold(root, |value, key| match value {
        Value::Map(map) => map.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    });
    match (found, args.get(1)) {
        (Some(Value::Float(number)), _) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Ok(Value::Int(*number as i64))
        }
        (Some(value @ (Value::Array(_) | Value::Map(_))), _) => Ok(floats(value)),
        (Some(value), _) => Ok(value.clone()),
        (None, Some(default)) if !default.is_nil() => Ok(default.clone()),
        (None, _) => Err(format!("there is no {path}").into()),
    }
}

fn floats(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::Float(*number as f64),
        Value::Array(items) => Value::array(items.iter().map(floats)),
        Value::Map(map) => {
            map.iter().map(|(key, value)| (key.clone(), floats(value))).collect::<Map>().into()
        }
        _ => value.clone(),
    }
}

fn member(json: &Json, key: &str) -> Value {
    match json.get(key) {
        Some(value) => from_json(value),
        None => Map::nil(MapShape::StringAny).into(),
    }
}

pub(crate) fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => Value::array(items.iter().map(from_json)),
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| (key.as_str(), from_json(value)))
            .collect::<Map>()
            .into(),
    }
}

/// Whether what came out is what the vector wants.
pub(crate) fn judge(case: &Json, got: &Result<Str, String>) -> Result<(), String> {
    let wants_error = case["want_error"].as_bool() == Some(true);
    match got {
        Err(_) if wants_error => {}
        Ok(text) if !wants_error && Some(text.to_string().as_str()) == case["want"].as_str() => {}
        Ok(text) => return Err(format!("{text:?}")),
        Err(error) => return Err(error.clone()),
    }
    Ok(())
}
