//! Edits of manifests: operations in, text changes out.

use std::sync::Arc;

use ccm_author::edit::{EditOperation, edited};
use ccm_host::Cancel;
use ccm_http::{Response, StatusCode};
use ccm_yaml::Source;
use ccm_yaml::edit::{Document, EditError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorDetails, json_response};
use crate::texts::check_text;

/// More operations in one request than this were not made by a form.
const MAX_OPERATIONS: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditRequest {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    operations: Vec<EditOperation>,
    #[serde(default)]
    revision: Option<u64>,
}

/// What an edit does to the text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Edited {
    changes: Vec<TextChange>,
    /// Names the new text in requests.
    digest: String,
    revision: Option<u64>,
}

/// A part of the text, and what comes into its place.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextChange {
    range: [usize; 4],
    text: String,
}

pub(crate) fn edit(app: &App, _: &Cancel, request: &EditRequest) -> ApiResult<Response> {
    let EditRequest { text, digest, operations, revision } = request;
    text.as_deref().map_or(Ok(()), check_text)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::malformed(format!("more than {MAX_OPERATIONS} operations")));
    }
    let known = app.texts.find(text.as_deref(), digest.as_deref())?;
    let document = known.document().map_err(|error| {
        let source = Source::new("the text", known.text.as_str());
        refused(&source, error.clone().into())
    })?;
    let source = document.source();
    let types = app.settings.engine.types();
    let (changes, edited) =
        edited(document, types, operations).map_err(|error| refused(source, error))?;
    let changes = changes
        .into_iter()
        .map(|change| TextChange { range: source.range(change.span), text: change.text })
        .collect();
    // The page goes on with the new text, and asks for a form of it next.
    let digest = match edited {
        Some(edited) => {
            let new = app.texts.keep_document(edited);
            Arc::clone(&new).read_ahead();
            new.digest.clone()
        }
        None => known.digest.clone(),
    };
    let answer = Edited { changes, digest, revision: *revision };
    Ok(json_response(StatusCode::OK, &answer))
}

/// A value as someone writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct YamlRequest {
    text: String,
}

/// What a text means.
#[derive(Serialize, JsonSchema)]
pub(crate) struct YamlValue {
    value: Value,
}

/// What a text means, for a property that is written as YAML in the form.
pub(crate) fn yaml(_: &App, _: &Cancel, request: &YamlRequest) -> ApiResult<Response> {
    check_text(&request.text)?;
    let source = Source::new("the value", request.text.as_str());
    let document = Document::parse(Source::new("the value", request.text.as_str()))
        .map_err(|error| refused(&source, error.into()))?;
    let value = document.value(&[]).unwrap_or_default();
    Ok(json_response(StatusCode::OK, &YamlValue { value }))
}

fn refused(source: &Source, error: EditError) -> ApiError {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let message = ccm_model::redact_credentials(&error.message).into_owned();
    let range = error.span.map(|span| source.range(span));
    let details = ErrorDetails { kind: Some(error.kind.word()), range, ..ErrorDetails::default() };
    ApiError::new(status, "edit", message).with(details).maybe_hint(error.hint)
}
