//! Runs as the page sees them.

use ccm_model::{Counts, Plan, Report, Summary};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// What its end means: `done`, `failed`, `stopped` or `busy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit: Option<&'static str>,
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
    pub(crate) report: Option<RunReport>,
    /// The summary of the plan or report, in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<RunSummary>,
}

/// What a run leaves.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RunReport {
    Plan(Plan),
    Report(Report),
}

impl RunReport {
    pub(super) fn summary(&self) -> RunSummary {
        match self {
            Self::Plan(plan) => RunSummary::Plan(plan.summary),
            Self::Report(report) => RunSummary::Report(Box::new(report.summary.clone())),
        }
    }
}

/// The counts of a plan or of a report.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RunSummary {
    Plan(Counts),
    Report(Box<Summary>),
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
