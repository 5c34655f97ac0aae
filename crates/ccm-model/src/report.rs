//! The report of a run.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Diagnostic, Event, Summary};

/// What `--report-file` and `--json` write.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The name of this format
    pub protocol: &'static str,
    /// What was applied: a manifest or a session
    pub manifest: String,
    /// Nothing was really done
    pub noop: bool,
    /// Only the health of resources was checked.
    #[serde(skip)]
    pub health_check_only: bool,
    /// When the run began
    pub started: Timestamp,
    /// How many resources have which outcome
    pub summary: Summary,
    /// One event per resource, in run order
    pub events: Vec<Event>,
    /// What is worth knowing and stopped nothing
    pub warnings: Vec<Diagnostic>,
    /// Why nothing was run
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Diagnostic>,
    /// What subscribers owe after the run
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<StillOwed>,
}

/// A reaction that a later run must make up for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StillOwed {
    /// The resource that must react, as `type#name`
    pub subscriber: String,
    /// The child manifests on the way to it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
    /// The first change that it must react to, as `type#name`
    pub by: String,
    /// When that change was about to be made
    pub since: Timestamp,
}

impl Report {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.report";

    /// The report of a run that did not begin.
    pub fn refused(manifest: String, noop: bool, now: Timestamp, errors: Vec<Diagnostic>) -> Self {
        Self {
            protocol: Self::PROTOCOL,
            manifest,
            noop,
            health_check_only: false,
            started: now,
            summary: Summary::starting(now),
            events: Vec::new(),
            warnings: Vec::new(),
            errors,
            owed: Vec::new(),
        }
    }
}
