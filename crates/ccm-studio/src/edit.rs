//! Edits of texts: operations in, changes out.

use ccm_engine::edit::{EditOperation, edit as edit_text};
use ccm_host::Cancel;
use ccm_http::{Response, StatusCode};
use ccm_yaml::Source;
use ccm_yaml::edit::{Document, EditError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::texts::check_text;

/// More operations in one request than this were not made by a form.
const MAX_OPERATIONS: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditRequest {
    text: String,
    operations: Vec<EditOperation>,
    #[serde(default)]
    revision: Option<u64>,
}

pub(crate) fn edit(app: &App, _: &Cancel, request: &EditRequest) -> ApiResult<Response> {
    let EditRequest { text, operations, revision } = request;
    check_text(text)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::malformed(format!("more than {MAX_OPERATIONS} operations")));
    }
    // One to be edited, and one for places in the text before.
    let source = Source::new("the text", text.as_str());
    let mut document = Document::parse(Source::new("the text", text.as_str()))
        .map_err(|error| refused(&source, error.into()))?;
    let types = app.settings.engine.types();
    let changes =
        edit_text(&mut document, types, operations).map_err(|error| refused(&source, error))?;
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| json!({"range": source.range(change.span), "text": change.text}))
        .collect();
    Ok(json_response(StatusCode::OK, &json!({"changes": changes, "revision": revision})))
}

fn refused(source: &Source, error: EditError) -> ApiError {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let message = ccm_model::redact_credentials(&error.message).into_owned();
    let mut refused = ApiError::new(status, "edit", message).with("kind", error.kind.word());
    if let Some(span) = error.span {
        refused = refused.with("range", json!(source.range(span)));
    }
    refused.maybe_hint(error.hint)
}
