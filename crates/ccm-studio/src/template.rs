//! Tries out templates. Nothing is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ccm_author::frame;
use ccm_engine::Diagnosis;
use ccm_hiera::Document;
use ccm_host::Cancel;
use ccm_http::{Response, StatusCode};
use ccm_model::{Finding, Span};
use ccm_template::placeholder::{Openers, scan};
use ccm_template::{Error, Resolver, Scope};
use ccm_yaml::Source;
use govalue::{Map, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::app::App;
use crate::data::type_name;
use crate::error::{ApiError, ApiResult, ErrorDetails, json_response, redacted};
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

/// What a template gives.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rendered {
    r#type: &'static str,
    text: String,
    /// The value, if it is not a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    /// Whether the text is longer than this.
    truncated: bool,
    placeholders: Vec<PlaceholderShown>,
    warnings: Vec<String>,
    /// What a scaffold of it would write.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<RenderedFile>>,
    /// The time that it took.
    micros: u64,
    revision: Option<u64>,
}

/// A placeholder with its value, or with what is wrong with it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Placeholder")]
pub(crate) struct PlaceholderShown {
    range: [usize; 4],
    expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A file that a scaffold would write.
#[derive(Serialize, JsonSchema)]
struct RenderedFile {
    path: String,
    bytes: usize,
    /// Null if it is not text, or too long.
    text: Option<String>,
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
        let answer = scaffold(app, &options, (place, request), delimiters, &resolver)?;
        return Ok(finished(&options.host, request, started, &answer));
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
            rendered
                .map(Value::from)
                .map_err(|error| Failed::Go(error.message().to_owned(), Some(error.span())))
        }
    };
    let mut answer = match result {
        Err(failed) => {
            let mut refused = refused(&options.host, text, &failed);
            refused.details.placeholders = Some(redacted(&options.host, &placeholders));
            return Err(refused);
        }
        Ok(value) => shown(&value),
    };
    answer.placeholders = placeholders;
    answer.warnings = options.host.take_warnings();
    Ok(finished(&options.host, request, started, &answer))
}

/// The answer without secrets.
fn finished(
    host: &ccm_host::Host,
    request: &TemplateRequest,
    started: Instant,
    answer: &Rendered,
) -> Response {
    let mut answer = redacted(host, answer);
    answer["micros"] = (started.elapsed().as_micros() as u64).into();
    answer["revision"] = request.revision.into();
    json_response(StatusCode::OK, &answer)
}

/// Renders a directory of templates, or a text as if it stood there.
fn scaffold(
    app: &App,
    options: &ccm_engine::RunOptions,
    (place, request): (&str, &TemplateRequest),
    delimiters: Option<(&str, &str)>,
    resolver: &Resolver,
) -> ApiResult<Rendered> {
    check_place(place)?;
    let host = &options.host;
    let root = app.settings.directory.path();
    if matches!(host.stat(&root.join(place)), Ok(None)) {
        return Err(ApiError::not_found("such directory"));
    }
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
    let files = made
        .files
        .iter()
        .map(|(path, bytes)| {
            let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= left);
            left -= text.map_or(0, str::len);
            let path = path.display().to_string();
            RenderedFile { path, bytes: bytes.len(), text: text.map(str::to_owned) }
        })
        .collect();
    let text = made.text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut answer = shown(&Value::from(text.unwrap_or_default()));
    answer.files = Some(files);
    answer.warnings = host.take_warnings();
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
        beneath: Some(root.to_owned()),
    };
    if let Some(data) = &request.data {
        let data = Map::deserialize(Json::Object(data.clone()));
        let data = data.map_err(|_| ApiError::malformed("`data` is not a map"))?;
        return Ok(Resolver::new(scope(data)));
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
    Ok(resolved.map_err(not_valid)?.0.confined(root))
}

/// Each placeholder with its value or what is wrong with it.
fn placeholders(resolver: &Resolver, text: &str) -> Vec<PlaceholderShown> {
    let source = Source::new("template", text);
    let mut found = Vec::new();
    for placeholder in scan(text, Openers::All).flatten().take(MAX_PLACEHOLDERS) {
        let span = Span { start: placeholder.start as u32, end: placeholder.end as u32 };
        let (r#type, value, error) = match resolver.evaluate(placeholder.inner) {
            Ok(value) => (Some(type_name(&value)), Some(as_json(&value)), None),
            Err(error) => (None, None, Some(error.brief())),
        };
        let (range, expression) = (source.range(span), placeholder.inner.to_owned());
        found.push(PlaceholderShown { range, expression, r#type, value, error });
    }
    found
}

fn shown(value: &Value) -> Rendered {
    let is_text = matches!(value, Value::String(_));
    let mut text = value.to_string();
    let truncated = is_text && text.len() > MAX_OUTPUT;
    if truncated {
        text.truncate(text.floor_char_boundary(MAX_OUTPUT));
    }
    Rendered {
        r#type: type_name(value),
        text,
        value: (!is_text).then(|| as_json(value)),
        truncated,
        placeholders: Vec::new(),
        warnings: Vec::new(),
        files: None,
        micros: 0,
        revision: None,
    }
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
            // The place may be in a file that the template includes.
            let is_here = error.file() == source.name();
            (error.message().to_owned(), None, is_here.then(|| error.span()))
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
    let range = span.map(|span| source.range(span));
    let details = ErrorDetails { range, frame: Some(frame), ..ErrorDetails::default() };
    ApiError::new(status, "template", message).maybe_hint(hint).with(details)
}
