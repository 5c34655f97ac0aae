//! Plans: what a run would do, as data.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, Diagnostic, Event, OwedReaction, Verb};

/// A plan: what a run of a manifest would do to one machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The name of this format
    #[schemars(extend("const" = Plan::PROTOCOL))]
    pub protocol: Cow<'static, str>,
    /// The manifest: its path, or its URL without credentials
    pub manifest: String,
    /// The machine that it was made for
    pub host: PlanHost,
    /// Time at which the plan was made
    pub created: Timestamp,
    /// The version of ccm that made it
    pub version: String,
    /// Number of resources by outcome
    pub summary: PlanSummary,
    /// The resources, in the order in which they run
    pub resources: Vec<PlannedResource>,
    /// Warnings
    pub warnings: Vec<Diagnostic>,
}

impl Plan {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.plan";
}

/// The machine that a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanHost {
    /// Its host name
    pub name: String,
    /// Machine ID, or the host name if there is none
    pub id: String,
}

/// How many resources have which outcome. A resource that applies a manifest is
/// not counted beside the resources of that manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// To be created or installed
    pub create: usize,
    /// To be changed
    pub change: usize,
    /// To be removed
    pub remove: usize,
    /// To react to a change of another resource
    pub refresh: usize,
    /// Commands to run
    pub run: usize,
    /// Provisional: only the run can decide it
    pub provisional: usize,
    /// Would fail
    pub failed: usize,
    /// Skipped, by `control` or for an unmet requirement
    pub skipped: usize,
    /// Already in the desired state
    pub stable: usize,
    /// Not selected by `--only` and `--skip`
    pub not_selected: usize,
}

impl PlanSummary {
    /// Counts one outcome.
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

/// What a run would do to one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedResource {
    /// Its type
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Its name
    pub name: String,
    /// Its alias
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Outcome
    pub outcome: PlanOutcome,
    /// Verbs of the steps, in order
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<Verb>,
    /// Changes of these steps
    pub changes: Vec<Change>,
    /// The resources on which a provisional one depends
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The changed resources that it reacts to, or the requirements that keep it
    /// from being managed
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// An owed reaction to a change in an earlier run
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<OwedReaction>,
    /// Why it would fail
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Unified diff of a text file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The resources of the manifest that it applies
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PlannedResource>,
}

/// The outcome of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanOutcome {
    /// It is created or installed
    Create,
    /// It is changed
    Change,
    /// It is removed
    Remove,
    /// It reacts to a change of another resource
    Refresh,
    /// Its command runs
    Run,
    /// Provisional: only the run can decide it
    Provisional,
    /// It fails
    Failed,
    /// It is skipped
    Skipped,
    /// Already in the desired state
    #[default]
    Stable,
}

impl PlanOutcome {
    /// Every outcome, in the order in which legends list them.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Change,
        Self::Remove,
        Self::Refresh,
        Self::Run,
        Self::Provisional,
        Self::Failed,
        Self::Skipped,
        Self::Stable,
    ];

    /// The word, as JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Remove => "remove",
            Self::Refresh => "refresh",
            Self::Run => "run",
            Self::Provisional => "provisional",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Stable => "stable",
        }
    }

    /// A sign that tells it from the others without color.
    pub fn glyph(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Remove => '-',
            Self::Refresh => '↻',
            Self::Run => '»',
            Self::Provisional => '?',
            Self::Failed => '✗',
            Self::Skipped => '·',
            Self::Stable => '=',
        }
    }

    /// The outcome that an event stands for, of a preview or of a real run.
    pub fn of(event: &Event) -> Self {
        if event.failed {
            return Self::Failed;
        }
        if event.provisional {
            return Self::Provisional;
        }
        if event.skipped {
            return Self::Skipped;
        }
        if event.refreshed {
            return Self::Refresh;
        }
        if !event.changed {
            return Self::Stable;
        }
        let is_created = event.changes.iter().any(|change| {
            let absent = |value: &crate::ChangeValue| value.to_string() == "absent";
            change.property == "ensure"
                && change.from.as_ref().is_none_or(absent)
                && !change.to.as_ref().is_some_and(absent)
        });
        match event.verbs.first() {
            Some(Verb::Executed) => Self::Run,
            Some(Verb::Removed) => Self::Remove,
            Some(Verb::Created | Verb::Installed) => Self::Create,
            Some(Verb::Rendered) if is_created => Self::Create,
            _ => Self::Change,
        }
    }
}

impl PlannedResource {
    /// What an event says about its resource. `diff` is what changes in texts.
    pub fn new(event: &Event, diff: Option<&str>) -> Self {
        let unmet = event.unmet_requirements.iter();
        Self {
            kind: event.kind.clone(),
            name: event.name.clone(),
            alias: event.alias.clone(),
            outcome: PlanOutcome::of(event),
            verbs: event.verbs.clone(),
            changes: event.changes.clone(),
            waits_for: event.waits_for.clone(),
            because: event.because.iter().chain(unmet).map(ToString::to_string).collect(),
            owed: event.owed.clone(),
            error: (!event.error.is_empty()).then(|| event.error.join("\n")),
            diff: diff.map(str::to_owned),
            children: Vec::new(),
        }
    }

    /// Counts it, or the resources of the manifest that it applies.
    pub fn count(&self, summary: &mut PlanSummary) {
        if self.children.is_empty() {
            summary.add(self.outcome);
        }
        for child in &self.children {
            child.count(summary);
        }
    }
}

/// One resource that two plans see differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    /// The resource, as `type#name`, behind the manifests that lead to it
    pub resource: String,
    /// What the first plan says; absent where it does not have the resource
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<PlannedResource>,
    /// What the second plan says; absent where it does not have the resource
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<PlannedResource>,
}

impl Plan {
    /// The resources that another plan sees differently, in the order of this
    /// plan, then those that only the other has.
    pub fn diff(&self, other: &Self) -> Vec<PlanDifference> {
        let mut before = Vec::new();
        let mut after = Vec::new();
        flatten("", &self.resources, &mut before);
        flatten("", &other.resources, &mut after);
        let index: HashMap<&str, &PlannedResource> =
            after.iter().map(|(name, resource)| (name.as_str(), *resource)).collect();
        let known: HashSet<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
        let mut differences = Vec::new();
        for (name, was) in &before {
            let is = index.get(name.as_str()).copied();
            if is.is_none_or(|is| !was.is_alike(is)) {
                let resource = name.clone();
                let (before, after) = (Some(was.alone()), is.map(PlannedResource::alone));
                differences.push(PlanDifference { resource, before, after });
            }
        }
        for (name, is) in after.iter().filter(|(name, _)| !known.contains(name.as_str())) {
            let after = Some(is.alone());
            differences.push(PlanDifference { resource: name.clone(), before: None, after });
        }
        differences
    }
}

impl PlannedResource {
    /// Whether another plan says the same, children aside.
    fn is_alike(&self, other: &Self) -> bool {
        self.alone() == other.alone()
    }

    fn alone(&self) -> Self {
        Self { children: Vec::new(), ..self.clone() }
    }
}

/// Every resource with its name behind those of the resources that lead to it.
fn flatten<'p>(
    above: &str,
    resources: &'p [PlannedResource],
    into: &mut Vec<(String, &'p PlannedResource)>,
) {
    for resource in resources {
        let name = format!("{above}{}#{}", resource.kind, resource.name);
        flatten(&format!("{name} / "), &resource.children, into);
        into.push((name, resource));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_follow_from_events() {
        let changed = |verb: Verb| Event { changed: true, verbs: vec![verb], ..Event::default() };
        let rendered = |from: &str, to: &str| Event {
            changes: vec![Change::of("ensure").from(from).to(to)],
            ..changed(Verb::Rendered)
        };
        for (event, outcome) in [
            (Event::default(), PlanOutcome::Stable),
            (changed(Verb::Created), PlanOutcome::Create),
            (changed(Verb::Installed), PlanOutcome::Create),
            (changed(Verb::Updated), PlanOutcome::Change),
            (changed(Verb::Started), PlanOutcome::Change),
            (changed(Verb::Removed), PlanOutcome::Remove),
            (changed(Verb::Executed), PlanOutcome::Run),
            (changed(Verb::Rendered), PlanOutcome::Change),
            (rendered("absent", "present"), PlanOutcome::Create),
            (Event { refreshed: true, ..changed(Verb::Executed) }, PlanOutcome::Refresh),
            (Event { provisional: true, ..changed(Verb::Created) }, PlanOutcome::Provisional),
            (Event { skipped: true, ..Event::default() }, PlanOutcome::Skipped),
            (Event { failed: true, ..changed(Verb::Created) }, PlanOutcome::Failed),
        ] {
            assert_eq!(PlanOutcome::of(&event), outcome, "{event:?}");
        }
    }

    #[test]
    fn words_are_those_of_json_and_glyphs_differ() {
        let mut glyphs = std::collections::HashSet::new();
        for outcome in PlanOutcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{}\"", outcome.word()));
            assert!(glyphs.insert(outcome.glyph()));
        }
    }

    #[test]
    fn plans_are_compared_by_resource() {
        let leaf = |name: &str, outcome| PlannedResource {
            kind: "file".into(),
            name: name.into(),
            outcome,
            ..PlannedResource::default()
        };
        let apply = |children| PlannedResource {
            kind: "apply".into(),
            name: "c".into(),
            children,
            ..PlannedResource::default()
        };
        let plan = |resources| Plan { resources, ..Plan::default() };
        let (stable, create) = (PlanOutcome::Stable, PlanOutcome::Create);
        let one = plan(vec![leaf("a", stable), leaf("b", stable), apply(vec![leaf("x", create)])]);
        let two = plan(vec![leaf("a", stable), apply(vec![leaf("x", stable)]), leaf("n", create)]);
        let names: Vec<_> = one.diff(&two).into_iter().map(|found| found.resource).collect();
        assert_eq!(names, ["file#b", "apply#c / file#x", "file#n"]);
        assert_eq!(one.diff(&one), []);
    }

    #[test]
    fn manifests_count_by_their_resources() {
        let leaf = |outcome| PlannedResource { outcome, ..PlannedResource::default() };
        let children = vec![leaf(PlanOutcome::Create), leaf(PlanOutcome::Stable)];
        let apply = PlannedResource { children, ..leaf(PlanOutcome::Change) };
        let mut summary = PlanSummary::default();
        apply.count(&mut summary);
        leaf(PlanOutcome::Failed).count(&mut summary);
        let wanted = PlanSummary { create: 1, stable: 1, failed: 1, ..PlanSummary::default() };
        assert_eq!(summary, wanted);
    }
}
