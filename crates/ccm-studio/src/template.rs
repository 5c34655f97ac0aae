//! Tries out templates. Nothing is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ccm_engine::{Diagnosis, frame};
use ccm_hiera::Document;
use ccm_host::Cancel;
use ccm_http::{Response, StatusCode};
use ccm_model::{Finding, Span};
use ccm_template::placeholder::{Openers, scan};
use ccm_template::{Error, Resolver, Scope};
use ccm_yaml::Source;
use govalue::{Map, Value};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::app::App;
use crate::data::type_name;
use crate::error::{ApiError, ApiResult, json_response};
use crate::facts::{FactsChoice, as_json};
use crate::files::{FileText, MAX_SIZE};
use crate::routes::check_place;
use crate::texts::check_text;

/// Bytes of a result that are sent.
const MAX_OUTPUT: usize = 16 << 20;
/// Placeholders that are shown one by one.
const MAX_PLACEHOLDERS: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateRequest {
    /// The manifest or data file whose data the template sees, and from whose
    /// directory it reads files.
    #[serde(default)]
    path: Option<String>,
    language: Language,
    text: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    left: Option<String>,
    #[serde(default)]
    right: Option<String>,
    #[serde(default)]
    facts: Option<FactsChoice>,
    /// A directory of templates: `render` and `write` work as in a scaffold of
    /// it, and without a text all of it is rendered.
    #[serde(default)]
    scaffold: Option<String>,
    /// Data to see, instead of that of `path`.
    #[serde(default)]
    data: Option<serde_json::Map<String, Json>>,
    #[serde(default)]
    revision: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    Expr,
    Jet,
    Go,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    String,
    Typed,
}

pub(crate) fn template(
    app: &App,
    cancel: &Cancel,
    request: &TemplateRequest,
) -> ApiResult<Response> {
    let started = Instant::now();
    check_text(&request.text)?;
    if let Some(path) = &request.path {
        check_place(path)?;
    }
    let (_, mut options) = app.quiet(cancel.clone())?;
    if let Some(choice) = &request.facts {
        choice.apply(app, &mut options.inputs)?;
    }
    let resolver = resolver(app, &options, request)?;
    let delimiters = match (&request.left, &request.right) {
        (Some(left), Some(right)) if !left.is_empty() && !right.is_empty() => {
            Some((left.as_str(), right.as_str()))
        }
        (None, None) => None,
        _ => return Err(ApiError::malformed("delimiters come in pairs: `left` and `right`")),
    };
    let placeholders = match request.language {
        Language::Expr => placeholders(&resolver, &request.text),
        _ => Vec::new(),
    };
    let text = &request.text;
    if let Some(place) = request.scaffold.as_deref().filter(|_| request.language != Language::Expr)
    {
        let mut answer = scaffold(app, &options, (place, request), delimiters, &resolver)?;
        answer["micros"] = (started.elapsed().as_micros() as u64).into();
        return Ok(json_response(StatusCode::OK, &answer));
    }
    let result = match (request.language, request.mode) {
        (Language::Expr, Mode::Typed) => resolver.value(text).map_err(Failed::Template),
        (Language::Expr, Mode::String) => {
            resolver.text(text).map(|done| done.text.into()).map_err(Failed::Template)
        }
        (Language::Jet, _) => {
            resolver.jet(text, delimiters).map(Value::from).map_err(Failed::Template)
        }
        (Language::Go, _) => {
            let (go, data) = resolver.go_scope();
            let go = match delimiters {
                Some((left, right)) => go.delimiters(left, right),
                None => go,
            };
            let rendered = go.render("template", text, &data);
            rendered.map(Value::from).map_err(|error| {
                let place = at(text, error.line(), error.column(), 1);
                Failed::Go(error.message().to_owned(), place)
            })
        }
    };
    let mut answer = match result {
        Err(failed) => {
            let mut more = json!(placeholders);
            options.host.redactor().value(&mut more);
            return Err(refused(&options.host, text, &failed).with("placeholders", more));
        }
        Ok(value) => shown(&value),
    };
    answer["placeholders"] = json!(placeholders);
    let warnings = options.host.take_warnings();
    answer["warnings"] = json!(warnings);
    options.host.redactor().value(&mut answer);
    answer["micros"] = (started.elapsed().as_micros() as u64).into();
    answer["revision"] = request.revision.into();
    Ok(json_response(StatusCode::OK, &answer))
}

/// Renders a directory of templates, or a text as if it stood there.
fn scaffold(
    app: &App,
    options: &ccm_engine::RunOptions,
    (place, request): (&str, &TemplateRequest),
    delimiters: Option<(&str, &str)>,
    resolver: &Resolver,
) -> ApiResult<Json> {
    check_place(place)?;
    let host = &options.host;
    let root = app.settings.directory.path();
    // A symlink must not point outside the directory.
    let real = host.canonicalize(&root.join(place)).map_err(|error| ApiError::file(&error))?;
    let beneath = host.canonicalize(root).map_err(|error| ApiError::file(&error))?;
    if !real.starts_with(&beneath) {
        return Err(ApiError::forbidden("outside", "this path is outside the directory"));
    }
    let text = Some(request.text.as_str()).filter(|text| !text.is_empty());
    let is_go = request.language == Language::Go;
    let made = ccm_resources::scaffold::preview(host, &real, is_go, delimiters, resolver, text);
    let made = made.map_err(|error| {
        let message = host.redactor().text(&ccm_engine::chain(&error)).into_owned();
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "template", message)
    })?;
    let mut left = MAX_OUTPUT;
    let files: Vec<Json> = made
        .files
        .iter()
        .map(|(path, bytes)| {
            let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= left);
            left -= text.map_or(0, str::len);
            json!({"path": path.display().to_string(), "bytes": bytes.len(), "text": text})
        })
        .collect();
    let text = made.text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut answer = shown(&Value::from(text.unwrap_or_default()));
    answer["files"] = files.into();
    answer["placeholders"] = json!([]);
    answer["warnings"] = json!(host.take_warnings());
    host.redactor().value(&mut answer);
    answer["revision"] = request.revision.into();
    Ok(answer)
}

/// What the template sees.
fn resolver(
    app: &App,
    options: &ccm_engine::RunOptions,
    request: &TemplateRequest,
) -> ApiResult<Resolver> {
    let root = app.settings.directory.path();
    let directory = match &request.path {
        Some(path) => root.join(path).parent().map_or_else(|| root.to_owned(), PathBuf::from),
        None => root.to_owned(),
    };
    let scope = |data: Map| Scope {
        facts: options.inputs.facts.clone(),
        data,
        environ: options.inputs.environ.clone(),
        directory: directory.clone(),
        host: options.host.clone(),
    };
    if let Some(data) = &request.data {
        let text = Json::Object(data.clone()).to_string();
        let decoded = govalue::json::decode(&text, govalue::json::Numbers::Ints);
        let Ok(Value::Map(map)) = decoded else {
            return Err(ApiError::malformed("`data` is not a map"));
        };
        return Ok(Resolver::new(scope((*map).clone())));
    }
    let data_file = request.path.as_deref().filter(|path| {
        let extension = Path::new(path).extension().and_then(|kind| kind.to_str());
        matches!(extension, Some("yaml" | "yml" | "json"))
    });
    let Some(path) = data_file else { return Ok(Resolver::new(scope(Map::new()))) };
    let read = app.settings.directory.read(Path::new(path), MAX_SIZE);
    let Some((bytes, _)) = read.map_err(|error| ApiError::file(&error))? else {
        return Ok(Resolver::new(scope(Map::new())));
    };
    let text = FileText::of(&String::from_utf8_lossy(&bytes)).text;
    let not_valid = |error: ccm_hiera::Error| {
        let message = format!("the data of {path} cannot be resolved: {error}");
        ApiError::conflict("not_valid", message).maybe_hint(error.hint())
    };
    let document = Document::parse(path, &text).map_err(not_valid)?;
    let resolved = options.inputs.templates_for(&options.host, &document, &directory);
    Ok(resolved.map_err(not_valid)?.0)
}

/// Each placeholder with its value or what is wrong with it.
fn placeholders(resolver: &Resolver, text: &str) -> Vec<Json> {
    let source = Source::new("template", text);
    let mut found = Vec::new();
    for placeholder in scan(text, Openers::All).flatten().take(MAX_PLACEHOLDERS) {
        let span = Span { start: placeholder.start as u32, end: placeholder.end as u32 };
        let mut shown = json!({"range": source.range(span), "expression": placeholder.inner});
        match resolver.evaluate(placeholder.inner) {
            Ok(value) => {
                shown["type"] = type_name(&value).into();
                shown["value"] = as_json(&value);
            }
            Err(error) => shown["error"] = error.brief().into(),
        }
        found.push(shown);
    }
    found
}

fn shown(value: &Value) -> Json {
    let mut answer = json!({"type": type_name(value), "truncated": false});
    if let Value::String(text) = value {
        let mut text = text.to_string();
        if text.len() > MAX_OUTPUT {
            text.truncate(text.floor_char_boundary(MAX_OUTPUT));
            answer["truncated"] = true.into();
        }
        answer["text"] = text.into();
        return answer;
    }
    answer["text"] = value.to_string().into();
    answer["value"] = as_json(value);
    answer
}

/// Why a template has no result.
enum Failed {
    Template(Error),
    Go(String, Option<Span>),
}

fn refused(host: &ccm_host::Host, text: &str, failed: &Failed) -> ApiError {
    let source = Arc::new(Source::new("template", text));
    let whole = Span { start: 0, end: text.len() as u32 };
    let (message, hint, span) = match failed {
        Failed::Template(Error::Jet(error)) => {
            let place = at(text, error.line(), error.column(), error.width());
            (error.message().to_owned(), None, place)
        }
        Failed::Template(error) => {
            let place = error.place(text).and_then(|place| place.within(&source, whole));
            let message = match place {
                Some(_) => error.brief(),
                None => error.to_string(),
            };
            (message, error.hint(), place)
        }
        Failed::Go(message, place) => (message.clone(), None, *place),
    };
    let redactor = host.redactor();
    let message = redactor.text(&message).into_owned();
    let finding = Finding::error(span, message.clone()).hint(hint.clone());
    let diagnosis = Diagnosis { source: Arc::clone(&source), findings: vec![finding] };
    let frame = frame::render(&diagnosis, &[], false);
    let frame = redactor.text(frame.trim_end()).into_owned();
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let mut refused = ApiError::new(status, "template", message).maybe_hint(hint);
    if let Some(span) = span {
        refused = refused.with("range", json!(source.range(span)));
    }
    refused.with("frame", frame)
}

/// The bytes at a line and column in characters, both from 1.
fn at(text: &str, line: usize, column: usize, width: usize) -> Option<Span> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let written = text.get(start..)?.lines().next().unwrap_or_default();
    let byte =
        |index: usize| written.char_indices().nth(index).map_or(written.len(), |(byte, _)| byte);
    let (begin, end) =
        (byte(column.saturating_sub(1)), byte(column.saturating_sub(1) + width.max(1)));
    Some(Span { start: (start + begin) as u32, end: (start + end) as u32 })
}
