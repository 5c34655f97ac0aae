//! What a run would do to each resource now: for commands that show it beside
//! something else, such as `ccm graph --plan` and `ccm why`.

use std::collections::HashMap;

use ccm_model::{Change, Event, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::manifest::Manifest;
use crate::options::RunOptions;
use crate::run::{Finished, Observer};

/// The word for what a run would do to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecisionOutcome {
    /// The resource is absent and a run creates it
    Create,
    /// The resource exists and a run changes it
    Change,
    /// A run removes the resource
    Remove,
    /// The resource reacts to the change of another
    Refresh,
    /// A run executes the command
    Run,
    /// Only the run itself can decide it
    Provisional,
    /// The run cannot reach the desired state
    Failed,
    /// A run does not manage the resource
    Skipped,
    /// The current state is the desired state
    Stable,
}

impl DecisionOutcome {
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

    /// A sign that tells it from the others without colour.
    pub fn glyph(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Remove => '-',
            Self::Refresh => '↻',
            Self::Run => '>',
            Self::Provisional => '?',
            Self::Failed => '✗',
            Self::Skipped => '○',
            Self::Stable => '✓',
        }
    }

    /// The outcome that a preview's event stands for.
    fn of_event(event: &Event) -> Self {
        let has = |verbs: &[Verb]| event.verbs.iter().any(|verb| verbs.contains(verb));
        if event.failed {
            Self::Failed
        } else if event.skipped || !event.unmet_requirements.is_empty() {
            Self::Skipped
        } else if event.refreshed {
            Self::Refresh
        } else if !event.changed {
            Self::Stable
        } else if has(&[Verb::Created, Verb::Installed]) {
            Self::Create
        } else if has(&[Verb::Removed]) {
            Self::Remove
        } else if has(&[Verb::Executed]) {
            Self::Run
        } else {
            Self::Change
        }
    }
}

/// What a run would do to one resource, and by which differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// What would be done
    pub outcome: DecisionOutcome,
    /// Each property that differs, before and after
    pub changes: Vec<Change>,
    /// Why it cannot be done, or is not done
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

    /// The decision about a resource of the first manifest.
    pub fn first_manifest(&self, resource: &str) -> Option<&Decision> {
        self.nth(resource, 0, 0)
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
            (true, true) => None,
        };
        let outcome = DecisionOutcome::of_event(event);
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
    fn events_become_the_words_of_a_plan() {
        let changed = |verb| {
            event(|event| {
                event.changed = true;
                event.verbs = vec![verb];
            })
        };
        for (event, wanted) in [
            (event(|_| ()), "stable"),
            (changed(Verb::Created), "create"),
            (changed(Verb::Installed), "create"),
            (changed(Verb::Updated), "change"),
            (changed(Verb::Started), "change"),
            (changed(Verb::Removed), "remove"),
            (changed(Verb::Executed), "run"),
            (event(|event| (event.changed, event.refreshed) = (true, true)), "refresh"),
            (event(|event| event.skipped = true), "skipped"),
            (event(|event| (event.failed, event.changed) = (true, true)), "failed"),
        ] {
            assert_eq!(DecisionOutcome::of_event(&event).word(), wanted);
        }
        for outcome in DecisionOutcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{}\"", outcome.word()));
        }
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
        let skipped = decisions.first_manifest("file#/x").unwrap();
        assert_eq!(skipped.outcome, DecisionOutcome::Skipped);
        let failed = decisions.nth("file#/x", 1, 0).unwrap();
        assert_eq!(failed.error.as_deref(), Some("no\nnever"));
        assert_eq!(decisions.nth("file#/x", 1, 1), None);
        assert_eq!(decisions.first_manifest("file#/y"), None);
    }
}
