//! Plans: what a run would do, as data.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, Diagnostic};

/// What a run would do.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Plan {
    /// The name of this format
    #[schemars(extend("const" = Plan::PROTOCOL))]
    pub protocol: Cow<'static, str>,
    /// The manifest
    pub manifest: String,
    /// The machine that the plan was made on
    pub host: PlanHost,
    /// When the plan was made
    pub created: Timestamp,
    /// The version of ccm that made it
    pub version: String,
    /// How many resources have which outcome
    pub summary: PlanSummary,
    /// The resources, in the order in which they run
    pub resources: Vec<PlanResource>,
    /// What is worth knowing
    pub warnings: Vec<Diagnostic>,
}

impl Plan {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.plan";
}

/// A machine, by what tells it from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PlanHost {
    /// Its name
    pub name: String,
    /// Its machine id; its name where it has none
    pub id: String,
}

/// What would become of one resource.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct PlanResource {
    /// Its type
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Its name
    pub name: String,
    /// Its alias
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What would become of it
    pub outcome: PlanOutcome,
    /// What would change about it
    pub changes: Vec<Change>,
    /// What it waits for, where only the run itself can tell
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The resource whose change it would react to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why it would fail
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What would change in a text, as a unified diff
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The resources of the manifest that it applies
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PlanResource>,
}

/// What would become of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlanOutcome {
    /// It is not there and would be.
    Create,
    /// It is there and would be changed.
    Change,
    /// It is there and would be removed.
    Remove,
    /// It would react to the change of another resource.
    Refresh,
    /// Its command would run.
    Run,
    /// Only the run itself can tell.
    Provisional,
    /// It would fail.
    Failed,
    /// It would be skipped.
    Skipped,
    /// It is as desired.
    #[default]
    Stable,
}

/// How many resources have which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PlanSummary {
    /// To create
    pub create: usize,
    /// To change
    pub change: usize,
    /// To remove
    pub remove: usize,
    /// To refresh
    pub refresh: usize,
    /// Commands to run
    pub run: usize,
    /// Known only when the run comes to them
    pub provisional: usize,
    /// That would fail
    pub failed: usize,
    /// That would be skipped
    pub skipped: usize,
    /// Already as desired
    pub stable: usize,
    /// Not selected
    pub not_selected: usize,
}

impl PlanSummary {
    /// Counts a resource; those of the manifest that it applies count by
    /// themselves.
    pub fn add(&mut self, outcome: PlanOutcome) {
        *match outcome {
            PlanOutcome::Create => &mut self.create,
            PlanOutcome::Change => &mut self.change,
            PlanOutcome::Remove => &mut self.remove,
            PlanOutcome::Refresh => &mut self.refresh,
            PlanOutcome::Run => &mut self.run,
            PlanOutcome::Provisional => &mut self.provisional,
            PlanOutcome::Failed => &mut self.failed,
            PlanOutcome::Skipped => &mut self.skipped,
            PlanOutcome::Stable => &mut self.stable,
        } += 1;
    }
}
