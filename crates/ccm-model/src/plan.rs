//! Plans: what a run would do, as data.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, Counts, Diagnostic, Event, ItemPlace, Outcome, OwedReaction, Verb};

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
    pub summary: Counts,
    /// The resources, in the order in which they run
    pub resources: Vec<PlannedResource>,
    /// Warnings
    pub warnings: Vec<Diagnostic>,
    /// Why there is no plan
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Diagnostic>,
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
    /// The item of a `for_each` that it was made for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<ItemPlace>>,
    /// Outcome
    pub outcome: Outcome,
    /// Outcome of a provisional one as things are now, if that is known
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Outcome>,
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
    /// Steps that `--offline` leaves to the first boot, such as `start`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<String>,
    /// Why it would fail
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where it is declared, if it would fail: file, line and column
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Unified diff of a text file
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The resources of its manifest are counted instead of it
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aggregate: bool,
    /// The resources of the manifest that it applies
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PlannedResource>,
}

impl PlannedResource {
    /// What an event says about its resource. `diff` is what changes in texts.
    pub fn new(event: &Event, diff: Option<&str>) -> Self {
        let unmet = event.unmet_requirements.iter();
        Self {
            kind: event.kind.clone(),
            name: event.name.clone(),
            alias: event.alias.clone(),
            item: event.item.clone(),
            outcome: event.outcome(),
            now: event.outcome_now(),
            verbs: event.verbs.clone(),
            changes: event.changes.clone(),
            waits_for: event.waits_for.clone(),
            because: event.because.iter().chain(unmet).map(ToString::to_string).collect(),
            owed: event.owed.clone(),
            deferred: event.deferred.clone(),
            error: (!event.error.is_empty()).then(|| event.error.join("\n")),
            location: event.location.clone(),
            diff: diff.map(str::to_owned),
            aggregate: event.aggregate,
            children: Vec::new(),
        }
    }
}

/// The resources of a plan as a tree, made from events in run order: those of a
/// child manifest come before the resource that applies it.
#[derive(Debug, Default)]
pub struct PlanTree {
    /// The rows of the first manifest.
    rows: Vec<PlannedResource>,
    /// Rows whose parent has not come yet, by the route to their manifest.
    waiting: HashMap<Vec<String>, Vec<PlannedResource>>,
}

impl PlanTree {
    /// Adds the row of an event, with the rows of the manifest that it applies.
    pub fn add(&mut self, event: &Event, diff: Option<&str>) {
        let mut row = PlannedResource::new(event, diff);
        if !self.waiting.is_empty() {
            let mut below = event.route.clone();
            below.push(event.name.clone());
            row.children = self.waiting.remove(&below).unwrap_or_default();
        }
        if event.route.is_empty() {
            self.rows.push(row);
        } else {
            self.waiting.entry(event.route.clone()).or_default().push(row);
        }
    }

    /// The rows of the first manifest.
    pub fn into_rows(self) -> Vec<PlannedResource> {
        self.rows
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
    /// Whether another plan says the same, children aside. A new item moves those
    /// behind it, which changes nothing about them.
    fn is_alike(&self, other: &Self) -> bool {
        let item = self.item.clone();
        self.alone() == Self { item, ..other.alone() }
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
        let (stable, create) = (Outcome::Stable, Outcome::Create);
        let one = plan(vec![leaf("a", stable), leaf("b", stable), apply(vec![leaf("x", create)])]);
        let two = plan(vec![leaf("a", stable), apply(vec![leaf("x", stable)]), leaf("n", create)]);
        let names: Vec<_> = one.diff(&two).into_iter().map(|found| found.resource).collect();
        assert_eq!(names, ["file#b", "apply#c / file#x", "file#n"]);
        assert_eq!(one.diff(&one), []);
        // A new item before it makes no difference.
        let of_item = |index| PlannedResource {
            item: Some(Box::new(ItemPlace { index, ..ItemPlace::default() })),
            ..leaf("a", stable)
        };
        assert_eq!(plan(vec![of_item(0)]).diff(&plan(vec![of_item(1)])), []);
    }

    #[test]
    fn rows_of_child_manifests_are_below_their_parent() {
        let event = |route: &[&str], name: &str| Event {
            route: route.iter().map(ToString::to_string).collect(),
            name: name.into(),
            kind: "file".into(),
            ..Event::default()
        };
        let mut tree = PlanTree::default();
        for event in [
            event(&[], "a"),
            event(&["c", "d"], "deep"),
            event(&["c"], "d"),
            event(&["c"], "e"),
            event(&[], "c"),
            event(&["c"], "again"),
            event(&[], "c"),
        ] {
            tree.add(&event, None);
        }
        fn names(rows: &[PlannedResource]) -> String {
            let name = |row: &PlannedResource| format!("{}({})", row.name, names(&row.children));
            rows.iter().map(name).collect::<Vec<_>>().join(" ")
        }
        assert_eq!(names(&tree.into_rows()), "a() c(d(deep()) e()) c(again())");
    }
}
