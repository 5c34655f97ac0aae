//! What a run would do to each resource now, for `ccm graph --plan` and `ccm
//! why`.

use std::collections::HashMap;

use ccm_engine::{Engine, Finished, Manifest, Observer, RunOptions};
use ccm_model::{Change, Event, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run would do to one resource, and the differences that lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Outcome that a run would have
    pub outcome: Outcome,
    /// Each property that differs, before and after
    pub changes: Vec<Change>,
    /// Why it would fail, or is skipped
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The decisions of one preview. A name can occur in several manifests of a run,
/// so each is kept with the route to its manifest, and in run order.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    by_resource: HashMap<String, Vec<(Vec<String>, Decision)>>,
}

impl Decisions {
    /// Previews a manifest and keeps what would be done to each resource. Changes
    /// nothing on the machine.
    pub fn preview(engine: &Engine, manifest: Manifest, options: &RunOptions) -> (Self, Finished) {
        let mut options = options.clone();
        options.mode.noop = true;
        let mut collecting = Collecting::default();
        let finished = engine.apply(manifest, &options, None, &mut collecting);
        (collecting.decisions, finished)
    }

    /// The decision about the resource of this name that is number `nth`, from 0
    /// and in run order, among those of the manifest that the route leads to.
    pub(crate) fn nth(&self, resource: &str, route: &[String], nth: usize) -> Option<&Decision> {
        let found = self.by_resource.get(resource)?.iter();
        found.filter(|(at, _)| at == route).map(|(_, decision)| decision).nth(nth)
    }
}

/// Collects decisions while a preview runs.
#[derive(Default)]
struct Collecting {
    decisions: Decisions,
}

impl Observer for Collecting {
    fn finished(&mut self, event: &Event, _diff: Option<&str>) {
        let unmet: Vec<String> = event.unmet_requirements.iter().map(ToString::to_string).collect();
        let error = match (event.error.is_empty(), unmet.is_empty()) {
            (false, _) => Some(event.error.join("\n")),
            (true, false) => Some(format!("requirements not met: {}", unmet.join(", "))),
            (true, true) if event.provisional => {
                let now = match event.outcome_now() {
                    Some(now) => format!("{} now; ", now.word()),
                    None => String::new(),
                };
                Some(match &event.waits_for[..] {
                    [] => "provisional: known at apply".to_owned(),
                    all => format!("{now}provisional: after {}", all.join(", ")),
                })
            }
            (true, true) => None,
        };
        let outcome = event.outcome();
        let decision = Decision { outcome, changes: event.changes.clone(), error };
        let of_name = self.decisions.by_resource.entry(format!("{}#{}", event.kind, event.name));
        of_name.or_default().push((event.route.clone(), decision));
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
        let child = ["child.yaml".to_owned()];
        let failed = event(|event| {
            event.route = child.to_vec();
            event.failed = true;
            event.error = vec!["no".to_owned(), "never".to_owned()];
        });
        collecting.finished(&failed, None);
        let decisions = collecting.decisions;
        let skipped = decisions.nth("file#/x", &[], 0).unwrap();
        assert_eq!(skipped.outcome, Outcome::Skipped);
        let failed = decisions.nth("file#/x", &child, 0).unwrap();
        assert_eq!(failed.error.as_deref(), Some("no\nnever"));
        assert_eq!(decisions.nth("file#/x", &["other.yaml".to_owned()], 0), None);
        assert_eq!(decisions.nth("file#/y", &[], 0), None);
    }
}
