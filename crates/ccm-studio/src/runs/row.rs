//! The resources of plans, runs and reports as the page lists them.

use ccm_model::{Change, Event, HealthCheckResult, Outcome, PlannedResource};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One resource of a plan or run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Row {
    #[serde(flatten)]
    resource: PlannedResource,
    /// The reason of its outcome in one line.
    short: String,
    /// How many child manifests lead to it.
    depth: usize,
    /// What of the diff is not for everybody to see, such as `12 lines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<String>,
    /// The time that it took.
    micros: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    health_check: Vec<HealthCheckResult>,
    /// Why parts of it cannot be undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cannot_undo: Vec<String>,
    /// Properties and state at the end, in the history.
    #[serde(skip_serializing_if = "Value::is_null")]
    properties: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    status: Value,
}

impl Row {
    /// What an event says, of a preview or of a real run.
    pub(crate) fn of(event: &Event, diff: Option<&str>) -> Self {
        Self {
            depth: event.route.len(),
            micros: event.duration.as_micros() as u64,
            health_check: event.health_check.clone(),
            ..Self::planned(PlannedResource::new(event, diff), 0)
        }
    }

    /// What an event says, with all that is known about the resource.
    pub(crate) fn in_full(event: &Event, diff: Option<&str>, cannot_undo: Vec<String>) -> Self {
        Self {
            cannot_undo,
            properties: event.properties.clone(),
            status: event.status.clone(),
            ..Self::of(event, diff)
        }
    }

    fn planned(resource: PlannedResource, depth: usize) -> Self {
        Self {
            depth,
            short: short(&resource),
            hidden: hidden(&resource),
            micros: 0,
            health_check: Vec::new(),
            cannot_undo: Vec::new(),
            properties: Value::Null,
            status: Value::Null,
            resource,
        }
    }
}

/// The rows of a plan in run order: those of a child manifest come before the
/// resource that applies it.
pub(crate) fn rows_of(resources: Vec<PlannedResource>, depth: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for mut resource in resources {
        let children = std::mem::take(&mut resource.children);
        rows.extend(rows_of(children, depth + 1));
        rows.push(Row::planned(resource, depth));
    }
    rows
}

/// One line about a resource: why it fails, waits or reacts, or what changes.
fn short(resource: &PlannedResource) -> String {
    if let Some(error) = &resource.error {
        return error.lines().next().unwrap_or_default().to_owned();
    }
    if !resource.waits_for.is_empty() {
        let now = resource.now.map(|now| format!("{} now; ", now.word())).unwrap_or_default();
        return format!("{now}after {}", resource.waits_for.join(", "));
    }
    if !resource.because.is_empty() {
        return format!("because {}", resource.because.join(", "));
    }
    if resource.outcome == Outcome::Stable {
        return "as desired".to_owned();
    }
    let changes = resource.changes.iter();
    let changes: Vec<String> =
        changes.map(|change| format!("{} {}", change.property, told(change))).collect();
    changes.join(", ").chars().take(200).collect()
}

/// The values of a property before and after.
fn told(change: &Change) -> String {
    if change.secret {
        return "secret".to_owned();
    }
    if let Some(counts) = change.member_counts() {
        return counts;
    }
    if let Some((added, removed)) = change.line_counts() {
        return format!("+{added} −{removed}");
    }
    match (&change.from, &change.to) {
        (None, None) => String::new(),
        (None, Some(to)) => to.to_string(),
        (Some(from), None) => format!("{from} → absent"),
        (Some(from), Some(to)) => format!("{from} → {to}"),
    }
}

/// What of a diff is not for everybody to see.
fn hidden(resource: &PlannedResource) -> Option<String> {
    let diff = resource.diff.as_deref()?;
    if let Some(part) = ccm_resources::hidden_part(diff) {
        return Some(part.to_owned());
    }
    if !resource.changes.iter().any(|change| change.secret) {
        return None;
    }
    let is_changed = |line: &&str| {
        line.starts_with(['-', '+']) && !line.starts_with("---") && !line.starts_with("+++")
    };
    match diff.lines().filter(is_changed).count() {
        1 => Some("1 line".to_owned()),
        lines => Some(format!("{lines} lines")),
    }
}
