//! Hierarchical data of a manifest for chosen facts: values, their origins, and
//! why entries of the hierarchy did not match.

use std::collections::HashSet;

use ccm_engine::Inputs;
use ccm_hiera::{Document, EntryState, Error, Explanation, Provider};
use ccm_host::{Cancel, Host};
use ccm_http::{Response, StatusCode};
use ccm_model::{REDACTED, Severity};
use ccm_yaml::Source;
use ccm_yaml::edit::{Document as EditDocument, Step};
use govalue::{Map, Value};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorDetails, json_response, redacted};
use crate::facts::as_json;
use crate::texts::TextRequest;

/// More keys than this are not listed one by one.
const MAX_KEYS: usize = 5000;

/// The data of a manifest.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Data")]
pub(crate) struct DataShown {
    /// The hierarchy, the strongest entry first.
    order: Vec<OrderEntry>,
    /// How levels are merged, as written.
    merge: Json,
    data: Json,
    /// The keys one by one, with where they come from.
    origins: Vec<DataKey>,
    rules: Vec<DataRule>,
    facts_used: Vec<FactUsed>,
    findings: Vec<DataFinding>,
    /// Whether there are more keys than are listed.
    truncated: bool,
    revision: Option<u64>,
}

/// An entry of the hierarchy.
#[derive(Serialize, JsonSchema)]
struct OrderEntry {
    written: String,
    matched: bool,
    /// The name that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// Why it did not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[usize; 4]>,
}

/// A rule for a key.
#[derive(Serialize, JsonSchema)]
struct DataRule {
    key: String,
    required: bool,
    validation: Option<String>,
    secret: bool,
    holds: bool,
    range: [usize; 4],
}

/// A fact that the hierarchy asks for.
#[derive(Serialize, JsonSchema)]
struct FactUsed {
    name: String,
    value: Json,
    is_set: bool,
}

/// What is wrong with the data.
#[derive(Serialize, JsonSchema)]
struct DataFinding {
    severity: Severity,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[usize; 4]>,
}

/// A key of the data.
#[derive(Serialize, JsonSchema)]
struct DataKey {
    /// Its path with dots.
    key: String,
    path: Vec<String>,
    value: Json,
    r#type: &'static str,
    secret: bool,
    /// The weaker levels that have it.
    replaced: Vec<ReplacedLevel>,
    /// The level that it comes from.
    #[serde(flatten)]
    from: Option<DataLevel>,
    /// All levels that it comes from, if they were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged: Option<Vec<DataLevel>>,
}

/// A level of the hierarchy that has a key.
#[derive(Serialize, JsonSchema)]
struct DataLevel {
    layer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[usize; 4]>,
    /// The text with placeholders that the value was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
}

/// A level whose value something else has replaced.
#[derive(Serialize, JsonSchema)]
struct ReplacedLevel {
    #[serde(flatten)]
    level: DataLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

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
    let answer = DataShown {
        order: order(&source, &explained),
        merge: merge(&source),
        data: as_json(&Value::from(values)),
        origins: keys,
        rules: rules(&source, &document, &failed),
        facts_used: facts_used(&explained, inputs),
        findings,
        truncated,
        revision: None,
    };
    let mut answer = redacted(host, &answer);
    answer["revision"] = request.revision.into();
    Ok(json_response(StatusCode::OK, &answer))
}

fn not_data(source: &Source, error: &Error) -> ApiError {
    let range = range_of(source, error);
    ApiError::conflict("not_valid", error.to_string())
        .maybe_hint(error.hint())
        .with(ErrorDetails { range, ..ErrorDetails::default() })
}

fn range_of(source: &Source, error: &Error) -> Option<[usize; 4]> {
    match error {
        Error::Located { span, .. } => Some(source.range(*span)),
        error => {
            let root = ccm_yaml::parse(source).ok()?;
            Some(source.range(error.locate(&root, source)?))
        }
    }
}

/// What is wrong with the data, and the keys whose rules do not hold.
fn findings<T>(source: &Source, checked: &Result<T, Error>) -> (Vec<DataFinding>, HashSet<String>) {
    let Err(error) = checked else { return (Vec::new(), HashSet::new()) };
    let inner = match error {
        Error::Located { error, .. } => error,
        other => other,
    };
    if let Error::Rules { failures } = inner {
        let found = failures.iter().map(|failure| DataFinding {
            severity: Severity::Error,
            message: failure.to_string(),
            hint: None,
            range: Some(source.range(failure.span)),
        });
        return (found.collect(), failures.iter().map(|failure| failure.key.clone()).collect());
    }
    let found = DataFinding {
        severity: Severity::Error,
        message: error.brief(),
        hint: error.hint(),
        range: range_of(source, error),
    };
    (vec![found], HashSet::new())
}

fn order(source: &Source, explained: &Explanation) -> Vec<OrderEntry> {
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
        OrderEntry {
            written: entry.written.clone(),
            matched,
            entry: entry.name.clone(),
            why: (!matched).then(|| entry.state.to_string()),
            range: range(index),
        }
    };
    entries.map(entry).collect()
}

fn merge(source: &Source) -> Json {
    let document = EditDocument::parse(Source::new(source.name(), source.text())).ok();
    let written = document.and_then(|found| found.value(&["hierarchy".into(), "merge".into()]));
    written.filter(|merge| !merge.is_null()).unwrap_or_else(|| "first".into())
}

fn rules(source: &Source, document: &Document, failed: &HashSet<String>) -> Vec<DataRule> {
    let rule = |rule: &ccm_hiera::Rule| DataRule {
        key: rule.key.clone(),
        required: rule.required,
        validation: rule.validation.clone(),
        secret: rule.secret,
        holds: !failed.contains(&rule.key),
        range: source.range(rule.span),
    };
    document.rules().iter().map(rule).collect()
}

fn facts_used(explained: &Explanation, inputs: &Inputs) -> Vec<FactUsed> {
    let known = inputs.facts.get();
    let fact = |name: &String| {
        let mut at = Some(known);
        for step in name.split('.') {
            at = at.and_then(Value::as_map).and_then(|map| map.get(step));
        }
        let value = at.map(as_json).unwrap_or_default();
        FactUsed { name: name.clone(), value, is_set: at.is_some() }
    };
    explained.facts.iter().map(fact).collect()
}

/// The keys of the data, one by one.
struct Shown<'a> {
    source: &'a Source,
    explained: &'a Explanation,
    host: &'a Host,
    keys: Vec<DataKey>,
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

    fn key(&self, path: &[String], value: &Value, is_secret: bool) -> DataKey {
        let origin = self.explained.origin(path);
        let kind = type_name(value);
        let value = if is_secret { REDACTED.into() } else { as_json(value) };
        let replaced = |from: &Provider| {
            let value = from.value.as_ref();
            let value = value.map(|value| self.without_secrets(&mut path.to_vec(), value));
            ReplacedLevel { level: self.provider(from), value }
        };
        let supplied = &origin.supplied;
        let is_merged = supplied.len() > 1;
        DataKey {
            key: path.join("."),
            path: path.to_vec(),
            value,
            r#type: kind,
            secret: is_secret,
            replaced: origin.overrode.iter().map(replaced).collect(),
            from: supplied.last().map(|from| self.provider(from)),
            merged: is_merged.then(|| supplied.iter().map(|from| self.provider(from)).collect()),
        }
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

    fn provider(&self, from: &Provider) -> DataLevel {
        let is_own = from.file.as_deref() == Some(self.source.name());
        let range = from.line.filter(|_| is_own).map(|line| {
            let text = self.source.text().lines().nth(line - 1).unwrap_or_default();
            let indent = text.len() - text.trim_start().len();
            [line - 1, indent, line - 1, text.encode_utf16().count()]
        });
        DataLevel {
            layer: from.level.clone(),
            file: from.file.clone(),
            line: from.line,
            range,
            template: from.template.clone(),
        }
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
