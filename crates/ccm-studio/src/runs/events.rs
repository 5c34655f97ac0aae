//! The events of a run as the page receives them.

use ccm_model::{Counts, Diagnostic, Event, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use super::row::Row;
use super::shown::RunSummary;

/// `started`: the run begins.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunStarted {
    /// How many resources the manifest has.
    pub(super) total: usize,
}

/// `resource`: the turn of a resource begins.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TurnStarted<'a> {
    pub(super) number: usize,
    pub(super) r#type: &'a str,
    pub(super) name: &'a str,
}

/// `event`: the turn of a resource is over.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TurnDone {
    /// The event as sessions record it.
    pub(super) event: Event,
    pub(super) row: Row,
    /// The outcomes so far.
    pub(super) counts: Counts,
}

/// `output`: a line that a command printed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OutputLine<'a> {
    pub(super) line: &'a str,
}

/// `message`: words for people.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Message<'a> {
    pub(super) text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) severity: Option<Severity>,
}

impl<'a> Message<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, severity: None }
    }
}

/// `diagnosis`: what is wrong with a manifest.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Diagnosed {
    pub(super) findings: Vec<DiagnosedFinding>,
}

/// An error or a warning, with its frame.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DiagnosedFinding {
    #[serde(flatten)]
    pub(super) diagnostic: Diagnostic,
    /// As the command line shows it.
    pub(super) frame: String,
    /// Where it is, if that is in the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<[usize; 4]>,
}

/// `stale`: how the machine differs from the plan.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Differences {
    pub(super) differences: Vec<String>,
}

/// `finished`: the last event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunEnded {
    /// The counts of the plan or report, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<RunSummary>,
    /// Why it ended early: `cancelled` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<&'static str>,
}
