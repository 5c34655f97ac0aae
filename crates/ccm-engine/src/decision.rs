//! What a run would do to each resource now, for `ccm graph --plan` and `ccm
//! why`.

use std::collections::HashMap;

use ccm_model::{Change, Event, PlanOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::manifest::Manifest;
use crate::options::RunOptions;
use crate::run::{Finished, Observer};

/// What a run would do to one resource, and the differences that lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Outcome that a run would have
    pub outcome: PlanOutcome,
    /// Each property that differs, before and after
    pub changes: Vec<Change>,
    /// Why it would fail, or is skipped
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The decisions of one preview. A name can occur in several manifests of a
/// run, so each is kept with its depth, in run order.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    by_resource: HashMap<String, Vec<(usize, Decision)>>,
}

impl Decisions {
    /// Adds the decision about `type#name`, `depth` manifests below the first.
    pub fn add(&mut self, resource: String, depth: usize, decision: Decision) {
        self.by_resource.entry(resource).or_default().push((depth, decision));
    }

    /// The decision about the resource of this name that is number `nth`, from 0
    /// and in run order, among those at the same depth.
    pub(crate) fn nth(&self, resource: &str, depth: usize, nth: usize) -> Option<&Decision> {
        let found = self.by_resource.get(resource)?.iter();
        found.filter(|(at, _)| *at == depth).map(|(_, decision)| decision).nth(nth)
    }
}

/// Collects decisions while a preview runs.
#[derive(Default)]
struct Collecting {
    decisions: Decisions,
    depth: usize,
}

impl Observer for Collecting {
    fn entering(&mut self, _manifest: &str) {
        self.depth += 1;
    }

    fn leaving(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn finished(&mut self, event: &Event, _diff: Option<&str>) {
        let unmet: Vec<String> = event.unmet_requirements.iter().map(ToString::to_string).collect();
        let error = match (event.error.is_empty(), unmet.is_empty()) {
            (false, _) => Some(event.error.join("\n")),
            (true, false) => Some(format!("requirements not met: {}", unmet.join(", "))),
            (true, true) if event.provisional => {
                Some(format!("provisional: after {}", event.waits_for.join(", ")))
            }
            (true, true) => None,
        };
        let outcome = PlanOutcome::of(event);
        let decision = Decision { outcome, changes: event.changes.clone(), error };
        self.decisions.add(format!("{}#{}", event.kind, event.name), self.depth, decision);
    }
}

impl Engine {
    /// Previews a manifest and keeps what would be done to each resource. Changes
    /// nothing on the machine.
    pub fn decisions(&self, manifest: Manifest, options: &RunOptions) -> (Decisions, Finished) {
        let mut options = options.clone();
        options.mode.noop = true;
        let mut collecting = Collecting::default();
        let finished = self.apply(manifest, &options, None, &mut collecting);
        (collecting.decisions, finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: impl FnOnce(&mut Event)) -> Event {
        let mut event = Event { kind: "file".into(), name: "/x".into(), ..Event::default() };
        change(&mut event);
        event
    }

    #[test]
    fn one_name_in_two_manifests_has_two_decisions() {
        let mut collecting = Collecting::default();
        collecting.finished(&event(|event| event.skipped = true), None);
        collecting.entering("child.yaml");
        let failed = event(|event| {
            event.failed = true;
            event.error = vec!["no".to_owned(), "never".to_owned()];
        });
        collecting.finished(&failed, None);
        collecting.leaving();
        let decisions = collecting.decisions;
        let skipped = decisions.nth("file#/x", 0, 0).unwrap();
        assert_eq!(skipped.outcome, PlanOutcome::Skipped);
        let failed = decisions.nth("file#/x", 1, 0).unwrap();
        assert_eq!(failed.error.as_deref(), Some("no\nnever"));
        assert_eq!(decisions.nth("file#/x", 1, 1), None);
        assert_eq!(decisions.nth("file#/y", 0, 0), None);
    }
}
