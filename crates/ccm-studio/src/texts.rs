//! What is known about a text: findings, outline, forms, the graph. Nothing
//! here runs a command or uses the network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ccm_author::check::{CheckedBlock, CheckedFinding, CheckedResource, check_loaded};
use ccm_author::edit::ResourceId;
use ccm_author::form::{FormError, ResourceForm, resource_form};
use ccm_author::graph::{GraphDocument, GraphFormat};
use ccm_author::outline::outline_of;
use ccm_engine::{ManifestError, RunOptions, find_type};
use ccm_host::{Cancel, Digest};
use ccm_http::{Request, Response, StatusCode, header};
use ccm_model::{Diagnostic, Severity, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorDetails, json_response, redacted};
use crate::facts::FactsChoice;
use crate::files::MAX_SIZE;
use crate::known::{KnownManifest, KnownText};
use crate::members::{Beyond, Members};
use crate::routes::check_place;

/// About this studio.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Studio")]
pub(crate) struct About<'a> {
    version: &'a str,
    commit: &'a str,
    host: &'a str,
    user: &'a str,
    /// Whether it runs as root.
    root: bool,
    directory: String,
    /// The file to show first.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    apply_allowed: bool,
    read_only: bool,
    limits: StudioLimits,
}

#[derive(Serialize, JsonSchema)]
struct StudioLimits {
    file_bytes: u64,
    files: usize,
    body_bytes: usize,
    /// A picture of more than this shows a part of the graph.
    graph_nodes: usize,
    /// A plan that is older can no longer be applied.
    plan_minutes: u64,
}

pub(crate) fn studio(app: &App) -> Response {
    let settings = &app.settings;
    let host = &settings.host;
    let (version, commit) = settings.version;
    let answer = About {
        version,
        commit,
        host: &host.uname().hostname,
        user: &host.user_name(host.whoami().0),
        root: host.is_root(),
        directory: settings.directory.path().display().to_string(),
        file: settings.file.as_deref(),
        apply_allowed: settings.allow_apply,
        read_only: settings.read_only,
        limits: StudioLimits {
            file_bytes: MAX_SIZE,
            files: crate::files::LIMITS.files,
            body_bytes: crate::LIMITS.body_bytes,
            graph_nodes: 400,
            plan_minutes: crate::runs::MAX_AGE.as_secs() / 60,
        },
    };
    json_response(StatusCode::OK, &answer)
}

pub(crate) fn types(app: &App, request: &Request) -> Response {
    let table = ccm_author::form::types(app.settings.engine.types());
    let body = serde_json::to_vec(&table).unwrap_or_default();
    let tag = format!("\"{}\"", Digest::of(&body));
    let is_known = request.header(header::IF_NONE_MATCH).is_some_and(|known| known == tag);
    let response = if is_known {
        Response::empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(StatusCode::OK, "application/json", body)
    };
    response.with(header::ETAG, &tag)
}

/// Refuses a text with other line ends than LF, or with a byte order mark.
pub(crate) fn check_text(text: &str) -> ApiResult<()> {
    if text.contains('\r') || text.starts_with('\u{feff}') {
        let message = "a text has LF at the end of lines and no byte order mark here";
        return Err(ApiError::malformed(message));
    }
    Ok(())
}

/// A text that a request is about: the text itself, or the digest of the one that
/// an answer was last about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextRequest {
    pub(crate) path: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    pub(crate) facts: Option<FactsChoice>,
    #[serde(default)]
    pub(crate) revision: Option<u64>,
    #[serde(default)]
    resource: Option<ResourceId>,
    #[serde(default)]
    format: Option<String>,
}

impl TextRequest {
    /// Checks what was sent; gives the path that the text would be read from, and
    /// the text.
    pub(crate) fn checked(&self, app: &App) -> ApiResult<(PathBuf, Arc<KnownText>)> {
        let text = self.text.as_deref();
        text.map_or(Ok(()), check_text)?;
        check_place(&self.path)?;
        let path = app.settings.directory.path().join(&self.path);
        Ok((path, app.texts.find(text, self.digest.as_deref())?))
    }

    fn has_facts_file(&self) -> bool {
        self.facts.as_ref().is_some_and(FactsChoice::is_file)
    }

    pub(crate) fn choose_facts(&self, app: &App, options: &mut RunOptions) -> ApiResult<()> {
        match &self.facts {
            Some(choice) => choice.apply(app, &mut options.inputs),
            None => Ok(()),
        }
    }
}

pub(crate) fn check(app: &App, cancel: &Cancel, request: &TextRequest) -> ApiResult<Response> {
    let started = Instant::now();
    let (path, known) = request.checked(app)?;
    let inputs = app.inputs()?;
    let (engine, mut options) = app.quiet(cancel.clone())?;
    request.choose_facts(app, &mut options)?;
    options.host.record_sources();
    let (found, manifest) =
        check_loaded(engine, &request.path, &path, known.text.clone(), &options);
    let reads_files = !options.host.recorded_sources().is_empty();
    let mut members = Members::new(app, &options);
    if let Some(manifest) = &manifest {
        ccm_author::visit(engine, manifest, &options, &mut |visited| members.add(visited));
    }
    let mut findings = found.findings;
    findings.extend(options.host.take_warnings().into_iter().map(warning));
    // A text without resources is mostly one that cannot be read.
    let is_yaml = found.valid || !found.outline.is_empty() || known.document().is_ok();
    let answer = CheckAnswer {
        valid: found.valid,
        is_yaml,
        findings: redacted(&options.host, &findings),
        outline: &found.outline,
        blocks: &found.blocks,
        beyond: members.beyond(&options.host),
        micros: started.elapsed().as_micros() as u64,
        digest: &known.digest,
        revision: request.revision,
    };
    let response = json_response(StatusCode::OK, &answer);
    // Forms ask what their placeholders resolve to.
    let is_wanted = known.text.contains("{{") && !reads_files;
    if let Some(manifest) = manifest.filter(|_| is_wanted && !request.has_facts_file()) {
        let (path, facts) = (request.path.clone(), request.facts.clone());
        known.keep_manifest(KnownManifest { manifest, path, facts, inputs });
    }
    known.read_ahead();
    Ok(response)
}

/// A warning that has no place in a text.
fn warning(message: String) -> CheckedFinding {
    let frame = format!("warning: {message}");
    let diagnostic = Diagnostic {
        severity: Severity::Warning,
        message,
        file: String::new(),
        line: None,
        column: None,
        resource: None,
        hint: None,
    };
    CheckedFinding { diagnostic, range: None, frame, fixes: Vec::new() }
}

/// What is known about a text.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Check")]
pub(crate) struct CheckAnswer<'a> {
    /// Whether it can be applied.
    valid: bool,
    /// Whether it is YAML at all.
    is_yaml: bool,
    #[schemars(with = "Vec<CheckedFinding>")]
    findings: Value,
    outline: &'a [CheckedResource],
    /// Those with defaults.
    blocks: &'a [CheckedBlock],
    #[serde(flatten)]
    beyond: Beyond,
    /// The time that it took.
    micros: u64,
    /// Names the text in requests.
    digest: &'a str,
    revision: Option<u64>,
}

/// A resource with all that a form shows.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Form")]
pub(crate) struct FormAnswer<'a> {
    #[serde(flatten)]
    form: &'a ResourceForm,
    revision: Option<u64>,
}

/// A resource that is asked for alone.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ensure")]
pub(crate) struct EnsureAnswer {
    /// As a command; null for a type that `ccm ensure` does not offer.
    command: Option<String>,
    /// Properties that the command has no flag for.
    left_out: Vec<String>,
    /// As a request of the API.
    request: Value,
    /// Whether secrets were left out of both.
    redacted: bool,
}

/// A graph in another format.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GraphText {
    Svg(String),
    Dot(String),
    Mermaid(String),
}

pub(crate) fn form(app: &App, cancel: &Cancel, request: &TextRequest) -> ApiResult<Response> {
    let (path, known) = request.checked(app)?;
    let Some(resource) = &request.resource else {
        return Err(ApiError::malformed("the request does not name a `resource`"));
    };
    let document = known.document().map_err(|error| not_valid(&error.message))?;
    let (engine, mut options) = app.quiet(cancel.clone())?;
    let mut form =
        resource_form(engine.types(), document, resource).map_err(|error| match error {
            FormError::NotYaml(message) => not_valid(&message),
            FormError::Missing { message, hint } => {
                ApiError::new(StatusCode::NOT_FOUND, "not_found", message).maybe_hint(hint)
            }
        })?;
    // The host that has resolved the form knows what is secret.
    let mut host = options.host.clone();
    if form.has_placeholders() {
        let mut resolve = |manifest: &ccm_engine::Manifest| {
            form.add_resolved(manifest);
            manifest.templates.host().clone()
        };
        let facts = request.facts.as_ref();
        let kept = known.with_manifest(&request.path, facts, &app.inputs()?, &mut resolve);
        if let Some(kept) = kept {
            host = kept;
        } else {
            request.choose_facts(app, &mut options)?;
            if let Ok(manifest) = engine.load_text(&path, known.text.clone(), &options) {
                host = resolve(&manifest);
            }
        }
    }
    let answer = FormAnswer { form: &form, revision: request.revision };
    let mut answer = serde_json::to_value(&answer).unwrap_or_default();
    // What is written is in the page already; what was made of it may be secret.
    if let Some(properties) = answer["properties"].as_object_mut() {
        let redactor = host.redactor();
        for property in properties.values_mut() {
            if let Some(resolved) = property.get_mut("resolved") {
                redactor.value(resolved);
            }
        }
    }
    Ok(json_response(StatusCode::OK, &answer))
}

/// One resource as a command and as a request of the API.
pub(crate) fn ensure(app: &App, cancel: &Cancel, request: &TextRequest) -> ApiResult<Response> {
    let (path, known) = request.checked(app)?;
    let Some(wanted) = &request.resource else {
        return Err(ApiError::malformed("the request does not name a `resource`"));
    };
    let document = known.document().map_err(|error| not_valid(&error.message))?;
    let found = outline_of(document).map_err(|error| not_valid(&error.message))?;
    let (engine, mut options) = app.quiet(cancel.clone())?;
    request.choose_facts(app, &mut options)?;
    let mut manifest = engine
        .load_named(&request.path, &path, known.text.clone(), &options)
        .map_err(|error| invalid(engine.types(), &error))?;
    // Loops make several resources of one in the outline: the first one stands for it.
    let at = found.iter().position(|entry| match wanted {
        ResourceId::Number(number) => entry.number == *number,
        ResourceId::Name(name) => {
            name.split_once('#').is_some_and(|(kind, name)| entry.is_called(kind, name))
        }
    });
    let span = at.and_then(|at| found.get(at)).map(|entry| entry.span);
    let is_this = |place: ccm_model::Span| {
        span.is_some_and(|span| span.start <= place.start && place.start < span.end)
    };
    let mut resources = manifest.declarations.resources.iter_mut();
    let resource = resources.find(|resource| resource.span().is_some_and(is_this));
    let kind = resource.as_ref().and_then(|one| find_type(engine.types(), one.kind()));
    let (Some(resource), Some(kind)) = (resource, kind) else {
        return Err(ApiError::not_found("such resource"));
    };
    // What cannot be resolved now stays as it is written.
    let templates = ccm_engine::templates_of(&**resource, &manifest.templates).into_owned();
    resource.resolve(Stage::Apply, &templates);
    let secrets = resource.secret_values();
    options.host.add_secrets(secrets.run);
    options.host.set_resource_secrets(secrets.resource);
    let single = ccm_author::single_resource(kind, &**resource);
    let answer = EnsureAnswer {
        command: single.command,
        left_out: single.left_out,
        request: single.request,
        redacted: single.is_redacted,
    };
    Ok(json_response(StatusCode::OK, &redacted(&options.host, &answer)))
}

fn not_valid(message: &str) -> ApiError {
    ApiError::conflict("not_valid", format!("the text is not YAML: {message}"))
}

pub(crate) fn graph(app: &App, cancel: &Cancel, request: &TextRequest) -> ApiResult<Response> {
    let (path, known) = request.checked(app)?;
    let (engine, mut options) = app.quiet(cancel.clone())?;
    request.choose_facts(app, &mut options)?;
    let manifest = engine
        .load_named(&request.path, &path, known.text.clone(), &options)
        .map_err(|error| invalid(engine.types(), &error))?;
    let graph = ccm_author::graph::graph(engine, &manifest, &options, None);
    let answer = match request.format.as_deref() {
        None | Some("json") => {
            let document = GraphDocument::new(&graph, &graph.layout());
            return Ok(json_response(StatusCode::OK, &document));
        }
        Some("svg") => GraphText::Svg(graph.render(GraphFormat::Svg)),
        Some("dot") => GraphText::Dot(graph.render(GraphFormat::Dot)),
        Some("mermaid") => GraphText::Mermaid(graph.render(GraphFormat::Mermaid)),
        Some(_) => return Err(ApiError::malformed("`format` is json, svg, dot or mermaid")),
    };
    Ok(json_response(StatusCode::OK, &answer))
}

/// A manifest that cannot be used, with its findings.
pub(crate) fn invalid(
    types: &[&'static dyn ccm_engine::AnyType],
    error: &ManifestError,
) -> ApiError {
    let message = match error {
        ManifestError::Invalid(_) => "the manifest is not valid".to_owned(),
        other => ccm_engine::chain(other),
    };
    let findings = match error {
        ManifestError::Invalid(diagnosis) => diagnosis.diagnostics().take(50).collect(),
        _ => Vec::new(),
    };
    let frame = match error {
        ManifestError::Invalid(diagnosis) => ccm_author::frame::render(diagnosis, types, false),
        _ => String::new(),
    };
    let details =
        ErrorDetails { frame: Some(frame), findings: Some(findings), ..ErrorDetails::default() };
    ApiError::conflict("not_valid", message).with(details)
}
