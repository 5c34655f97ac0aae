//! Runs as the page sees them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Mode;

/// A plan, an apply or an undo of this studio.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub(crate) struct RunShown {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    /// The manifest.
    pub(crate) path: String,
    /// The digest of its text.
    pub(crate) digest: String,
    pub(crate) state: &'static str,
    pub(crate) started: String,
    /// Which diffs are shown: `public` or `all`.
    pub(crate) diffs: &'static str,
    /// Whether a plan can no longer be applied.
    pub(crate) stale: bool,
    /// The run that an undo takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undo_of: Option<String>,
    /// The plan that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    /// The plan or report, in the answer about one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Value>,
    /// The summary of the plan or report, in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<Value>,
}

/// The runs of this studio, the last one first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub(crate) struct RunList {
    pub(crate) runs: Vec<RunShown>,
}

/// A run that was started, or asked to stop.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Started {
    pub(crate) id: String,
}
