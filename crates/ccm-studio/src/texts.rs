//! What is known about a text: findings, outline, forms, the graph. Nothing
//! here runs a command or uses the network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ccm_engine::check::{CheckedBlock, CheckedResource};
use ccm_engine::edit::ResourceId;
use ccm_engine::form::{FormError, resource_form};
use ccm_engine::graph::{GraphDocument, GraphFormat};
use ccm_engine::outline::outline_of;
use ccm_engine::{ManifestError, RunOptions, find_type};
use ccm_host::{Cancel, Digest};
use ccm_http::{Request, Response, StatusCode, header};
use ccm_model::Stage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::facts::FactsChoice;
use crate::files::MAX_SIZE;
use crate::known::{KnownManifest, KnownText};
use crate::members::Members;
use crate::routes::check_place;

pub(crate) fn studio(app: &App) -> Response {
    let settings = &app.settings;
    let host = &settings.host;
    let (version, commit) = settings.version;
    let mut answer = json!({
        "version": version,
        "commit": commit,
        "host": host.uname().hostname,
        "user": *host.user_name(host.whoami().0),
        "root": host.is_root(),
        "directory": settings.directory.path().display().to_string(),
        "apply_allowed": settings.allow_apply,
        "read_only": settings.read_only,
        "limits": {
            "file_bytes": MAX_SIZE,
            "files": crate::files::LIMITS.files,
            "body_bytes": crate::LIMITS.body_bytes,
            "graph_nodes": 400,
        },
    });
    if let Some(file) = &settings.file {
        answer["file"] = file.as_str().into();
    }
    json_response(StatusCode::OK, &answer)
}

pub(crate) fn types(app: &App, request: &Request) -> Response {
    let table = ccm_engine::form::types(app.settings.engine.types());
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
    let (found, manifest) = engine.check_loaded(&request.path, &path, known.text.clone(), &options);
    let reads_files = !options.host.recorded_sources().is_empty();
    let mut members = Members::new(app, &options);
    if let Some(manifest) = &manifest {
        engine.visit(manifest, &options, &mut |visited| members.add(visited));
    }
    let mut findings = serde_json::to_value(&found.findings).unwrap_or_default();
    let warnings = options.host.take_warnings().into_iter();
    let warnings = warnings.map(|message| {
        json!({"severity": "warning", "message": message, "file": "", "line": null,
               "column": null, "frame": format!("warning: {message}"), "fixes": []})
    });
    if let Some(findings) = findings.as_array_mut() {
        findings.extend(warnings);
    }
    {
        let redactor = options.host.redactor();
        redactor.value(&mut findings);
        members.redact(&redactor);
    }
    let answer = CheckAnswer {
        valid: found.valid,
        findings,
        outline: &found.outline,
        blocks: &found.blocks,
        members,
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

#[derive(Serialize)]
struct CheckAnswer<'a> {
    valid: bool,
    findings: Value,
    outline: &'a [CheckedResource],
    blocks: &'a [CheckedBlock],
    #[serde(flatten)]
    members: Members,
    micros: u64,
    digest: &'a str,
    revision: Option<u64>,
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
    let mut answer = serde_json::to_value(&form).unwrap_or_default();
    // What is written is in the page already; what was made of it may be secret.
    if let Some(properties) = answer["properties"].as_object_mut() {
        let redactor = host.redactor();
        for property in properties.values_mut() {
            if let Some(resolved) = property.get_mut("resolved") {
                redactor.value(resolved);
            }
        }
    }
    answer["revision"] = request.revision.into();
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
    // The outline and the manifest have the same resources in the same order.
    let at = found.iter().position(|entry| match wanted {
        ResourceId::Number(number) => entry.number == *number,
        ResourceId::Name(name) => {
            name.split_once('#').is_some_and(|(kind, name)| entry.is_called(kind, name))
        }
    });
    let resource = at.and_then(|at| manifest.declarations.resources.get_mut(at));
    let kind = resource.as_ref().and_then(|one| find_type(engine.types(), one.kind()));
    let (Some(resource), Some(kind)) = (resource, kind) else {
        return Err(ApiError::not_found("such resource"));
    };
    // What cannot be resolved now stays as it is written.
    resource.resolve(Stage::Apply, &manifest.templates);
    options.host.add_secrets(resource.secrets());
    let asked = ccm_engine::asked(kind, &**resource);
    let mut answer = json!({
        "command": asked.command,
        "left_out": asked.left_out,
        "request": asked.request,
        "redacted": asked.is_redacted,
    });
    options.host.redactor().value(&mut answer);
    Ok(json_response(StatusCode::OK, &answer))
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
    let graph = engine.graph(&manifest, &options, None);
    let answer = match request.format.as_deref() {
        None | Some("json") => {
            let document = GraphDocument::new(&graph, &graph.layout());
            serde_json::to_value(&document).unwrap_or_default()
        }
        Some("svg") => json!({"svg": graph.render(GraphFormat::Svg)}),
        Some("dot") => json!({"dot": graph.render(GraphFormat::Dot)}),
        Some("mermaid") => json!({"mermaid": graph.render(GraphFormat::Mermaid)}),
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
    let findings: Vec<Value> = match error {
        ManifestError::Invalid(diagnosis) => {
            let all = diagnosis.diagnostics().take(50);
            all.map(|found| serde_json::to_value(found).unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    };
    let frame = match error {
        ManifestError::Invalid(diagnosis) => ccm_engine::frame::render(diagnosis, types, false),
        _ => String::new(),
    };
    ApiError::conflict("not_valid", message).with("findings", findings).with("frame", frame)
}
