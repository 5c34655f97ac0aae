//! Hierarchical data of a manifest for chosen facts: values, their origins, and
//! why entries of the hierarchy did not match.

use std::collections::HashSet;

use ccm_engine::Inputs;
use ccm_hiera::{Document, EntryState, Error, Explanation, Provider};
use ccm_host::{Cancel, Host};
use ccm_http::{Response, StatusCode};
use ccm_model::REDACTED;
use ccm_yaml::Source;
use ccm_yaml::edit::{Document as EditDocument, Step};
use govalue::{Map, Value};
use serde_json::{Value as Json, json};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::facts::as_json;
use crate::texts::TextRequest;

/// More keys than this are not listed one by one.
const MAX_KEYS: usize = 5000;

pub(crate) fn data(app: &App, cancel: &Cancel, request: &TextRequest) -> ApiResult<Response> {
    let (path, known) = request.checked(app)?;
    let (_, mut options) = app.quiet(cancel.clone())?;
    request.choose_facts(app, &mut options)?;
    let (host, inputs) = (&options.host, &options.inputs);
    let source = Source::new(request.path.as_str(), known.text.as_str());
    let document = Document::parse(&request.path, &known.text);
    let document = document.map_err(|error| not_data(&source, &error))?;
    let explained = inputs.explain(host, &document).map_err(|error| not_data(&source, &error))?;
    let directory = path.parent().unwrap_or(&path);
    let checked = inputs.templates_for(host, &document, directory);
    let mut shown = Shown {
        source: &source,
        explained: &explained,
        host,
        keys: Vec::new(),
        is_truncated: false,
    };
    let values = explained.data();
    shown.add(&values, &mut Vec::new());
    let (keys, truncated) = (shown.keys, shown.is_truncated);
    let (findings, failed) = findings(&source, &checked);
    let mut answer = json!({
        "order": order(&source, &explained),
        "merge": merge(&source),
        "data": as_json(&Value::from(values)),
        "origins": keys,
        "rules": rules(&source, &document, &failed),
        "facts_used": facts_used(&explained, inputs),
        "findings": findings,
        "truncated": truncated,
    });
    host.redactor().value(&mut answer);
    answer["revision"] = request.revision.into();
    Ok(json_response(StatusCode::OK, &answer))
}

fn not_data(source: &Source, error: &Error) -> ApiError {
    let range = range_of(source, error);
    let mut refused = ApiError::conflict("not_valid", error.to_string()).maybe_hint(error.hint());
    if let Some(range) = range {
        refused = refused.with("range", json!(range));
    }
    refused
}

fn range_of(source: &Source, error: &Error) -> Option<[usize; 4]> {
    match error {
        Error::Yaml { source: syntax, .. } => Some(source.range(syntax.span)),
        Error::Located { error, .. } => range_of(source, error),
        error => {
            let root = ccm_yaml::parse(source).ok()?;
            Some(source.range(error.locate(&root, source)?))
        }
    }
}

/// What is wrong with the data, and the keys whose rules do not hold.
fn findings<T>(source: &Source, checked: &Result<T, Error>) -> (Vec<Json>, HashSet<String>) {
    let Err(error) = checked else { return (Vec::new(), HashSet::new()) };
    let inner = match error {
        Error::Located { error, .. } => error,
        other => other,
    };
    if let Error::Rules { failures } = inner {
        let found = failures.iter().map(|failure| {
            json!({"severity": "error", "message": failure.to_string(),
                   "range": source.range(failure.span)})
        });
        return (found.collect(), failures.iter().map(|failure| failure.key.clone()).collect());
    }
    let found = json!({"severity": "error", "message": error.brief(), "hint": error.hint(),
                       "range": range_of(source, error)});
    (vec![found], HashSet::new())
}

fn order(source: &Source, explained: &Explanation) -> Vec<Json> {
    let document = EditDocument::parse(Source::new(source.name(), source.text())).ok();
    let own = document.as_ref().and_then(|document| {
        Some(document.value(&["hierarchy".into(), "order".into()])?.as_array()?.len())
    });
    let own = own.unwrap_or(0);
    let range = |index: usize| {
        let path: [Step; 3] = ["hierarchy".into(), "order".into(), index.into()];
        let place = document.as_ref()?.locate(&path).filter(|_| index < own)?;
        Some(source.range(place.value))
    };
    let entries = explained.entries.iter().enumerate();
    let entry = |(index, entry): (usize, &ccm_hiera::HierarchyEntry)| {
        let matched = entry.state == EntryState::Applied;
        let mut shown = json!({"written": entry.written, "matched": matched});
        if let Some(name) = &entry.name {
            shown["entry"] = name.as_str().into();
        }
        if !matched {
            shown["why"] = entry.state.to_string().into();
        }
        if let Some(range) = range(index) {
            shown["range"] = json!(range);
        }
        shown
    };
    entries.map(entry).collect()
}

fn merge(source: &Source) -> Json {
    let document = EditDocument::parse(Source::new(source.name(), source.text())).ok();
    let written = document.and_then(|found| found.value(&["hierarchy".into(), "merge".into()]));
    written.filter(|merge| !merge.is_null()).unwrap_or_else(|| "first".into())
}

fn rules(source: &Source, document: &Document, failed: &HashSet<String>) -> Vec<Json> {
    let rule = |rule: &ccm_hiera::Rule| {
        json!({
            "key": rule.key,
            "required": rule.required,
            "validation": rule.validation,
            "secret": rule.secret,
            "holds": !failed.contains(&rule.key),
            "range": source.range(rule.span),
        })
    };
    document.rules().iter().map(rule).collect()
}

fn facts_used(explained: &Explanation, inputs: &Inputs) -> Vec<Json> {
    let known = inputs.facts.get();
    let fact = |name: &String| {
        let mut at = Some(known);
        for step in name.split('.') {
            at = at.and_then(Value::as_map).and_then(|map| map.get(step));
        }
        json!({"name": name, "value": at.map(as_json), "is_set": at.is_some()})
    };
    explained.facts.iter().map(fact).collect()
}

/// The keys of the data, one by one.
struct Shown<'a> {
    source: &'a Source,
    explained: &'a Explanation,
    host: &'a Host,
    keys: Vec<Json>,
    is_truncated: bool,
}

impl Shown<'_> {
    fn add(&mut self, map: &Map, path: &mut Vec<String>) {
        for (key, value) in map.sorted() {
            path.push(key.value().to_string());
            let inner = value.as_map().filter(|inner| !inner.is_empty());
            let is_secret = self.explained.is_secret(path);
            if is_secret {
                self.learn(value);
            }
            match inner {
                Some(inner) if !is_secret => self.add(inner, path),
                _ if self.keys.len() >= MAX_KEYS => self.is_truncated = true,
                _ => {
                    let shown = self.key(path, value, is_secret);
                    self.keys.push(shown);
                }
            }
            path.pop();
        }
    }

    /// Makes the redactor know a secret, also where it is part of other values.
    fn learn(&self, value: &Value) {
        match value {
            Value::Map(map) => map.values().for_each(|inner| self.learn(inner)),
            Value::Array(items) => items.iter().for_each(|inner| self.learn(inner)),
            scalar => self.host.add_secrets([scalar.to_string()]),
        }
    }

    fn key(&self, path: &[String], value: &Value, is_secret: bool) -> Json {
        let origin = self.explained.origin(path);
        let kind = type_name(value);
        let value = if is_secret { REDACTED.into() } else { as_json(value) };
        let replaced = |from: &Provider| {
            let mut shown = self.provider(from);
            if let Some(value) = &from.value {
                shown["value"] = self.without_secrets(&mut path.to_vec(), value);
            }
            shown
        };
        let replaced: Vec<Json> = origin.overrode.iter().map(replaced).collect();
        let mut shown = json!({
            "key": path.join("."),
            "path": path,
            "value": value,
            "type": kind,
            "secret": is_secret,
            "replaced": replaced,
        });
        if let Some(from) = origin.supplied.last() {
            let mut from = self.provider(from);
            if let (Some(into), Some(from)) = (shown.as_object_mut(), from.as_object_mut()) {
                into.append(from);
            }
        }
        if origin.supplied.len() > 1 {
            shown["merged"] = origin.supplied.iter().map(|from| self.provider(from)).collect();
        }
        shown
    }

    /// A value that something else has replaced. It is not part of the data, so
    /// the redactor may not know what is secret in it.
    fn without_secrets(&self, path: &mut Vec<String>, value: &Value) -> Json {
        if self.explained.is_secret(path) {
            self.learn(value);
            return REDACTED.into();
        }
        let Value::Map(map) = value else { return as_json(value) };
        let mut shown = serde_json::Map::new();
        for (key, inner) in map.sorted() {
            path.push(key.value().to_string());
            let inner = self.without_secrets(path, inner);
            shown.extend(path.pop().map(|key| (key, inner)));
        }
        Json::Object(shown)
    }

    fn provider(&self, from: &Provider) -> Json {
        let mut shown = json!({"layer": from.level, "file": from.file, "line": from.line});
        let is_own = from.file.as_deref() == Some(self.source.name());
        if let Some(line) = from.line.filter(|_| is_own) {
            let text = self.source.text().lines().nth(line - 1).unwrap_or_default();
            let indent = text.len() - text.trim_start().len();
            let width = text.encode_utf16().count();
            shown["range"] = json!([line - 1, indent, line - 1, width]);
        }
        if let Some(template) = &from.template {
            shown["template"] = template.as_str().into();
        }
        shown
    }
}

/// What people call the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Bool(_) => "boolean",
        Value::Map(_) => "map",
        Value::Array(_) => "list",
        Value::String(_) => "string",
        Value::Int(_) => "integer",
        Value::Float(_) => "number",
        _ => "value",
    }
}
