//! Counts resources by outcome.

use ccm_model::{Event, PlanOutcome, PlanSummary, PlannedResource};

/// How many resources have which outcome. A resource that applies a manifest is
/// not counted beside the resources of that manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) counts: PlanSummary,
    /// Skipped because something they require failed; not among the skipped.
    pub(super) unmet: usize,
    /// Would have changed, in a part of a real run that is only a preview.
    pub(super) previewed: usize,
}

impl Tally {
    /// Counts what became of one resource of a real run.
    pub(super) fn add(&mut self, event: &Event) {
        let outcome = PlanOutcome::of(event);
        if !event.unmet_requirements.is_empty() && !event.failed {
            self.unmet += 1;
        } else if event.noop && event.changed && !event.failed {
            self.previewed += 1;
        } else {
            self.counts.add(outcome);
        }
    }

    /// Counts what would become of resources.
    pub(super) fn add_planned(&mut self, resource: &PlannedResource) {
        let is_unmet = resource.outcome == PlanOutcome::Skipped && !resource.because.is_empty();
        if !resource.children.is_empty() {
            resource.children.iter().for_each(|child| self.add_planned(child));
        } else if is_unmet {
            self.unmet += 1;
        } else {
            self.counts.add(resource.outcome);
        }
    }

    /// `2 to create, 1 failed; 48 already right`.
    pub(super) fn planned(&self) -> String {
        let counts = &self.counts;
        let work = listed(&[
            (counts.create, "to create"),
            (counts.change, "to change"),
            (counts.remove, "to remove"),
            (counts.refresh, "to refresh"),
            (counts.run, "to run"),
            (counts.provisional, "provisional"),
            (counts.failed, "failed"),
            (self.unmet, "skipped for unmet requirements"),
        ]);
        let rest = listed(&[
            (counts.stable, "already right"),
            (counts.skipped, "skipped"),
            (counts.not_selected, "not selected"),
        ]);
        match (work.is_empty(), rest.is_empty()) {
            (false, false) => format!("{work}; {rest}"),
            (false, true) => work,
            (true, false) => format!("Nothing to do; {rest}"),
            (true, true) => "Nothing to do".to_owned(),
        }
    }

    /// `2 created, 1 failed, 48 stable`.
    pub(super) fn done(&self) -> String {
        let counts = &self.counts;
        let text = listed(&[
            (counts.create, "created"),
            (counts.change, "changed"),
            (counts.remove, "removed"),
            (counts.refresh, "refreshed"),
            (counts.run, "ran"),
            (self.previewed + counts.provisional, "previewed"),
            (counts.failed, "failed"),
            (self.unmet, "skipped for unmet requirements"),
            (counts.stable, "stable"),
            (counts.skipped, "skipped"),
            (counts.not_selected, "not selected"),
        ]);
        if text.is_empty() { "no resources".to_owned() } else { text }
    }
}

/// The counts that are not zero.
pub(super) fn listed(counts: &[(usize, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ccm_model::{ResourceRef, Verb};

    use super::*;

    #[test]
    fn every_event_is_counted_once() {
        let mut tally = Tally::default();
        let changed = Event { changed: true, ..Event::default() };
        for event in [
            Event { verbs: vec![Verb::Created], ..changed.clone() },
            Event { noop: true, ..changed.clone() },
            Event { failed: true, noop: true, ..changed },
            Event {
                skipped: true,
                unmet_requirements: vec![ResourceRef::new("file", "/x")],
                ..Event::default()
            },
            Event { skipped: true, ..Event::default() },
            Event::default(),
        ] {
            tally.add(&event);
        }
        assert_eq!(
            tally.done(),
            "1 created, 1 previewed, 1 failed, 1 skipped for unmet requirements, 1 stable, \
             1 skipped"
        );
        assert_eq!(Tally::default().done(), "no resources");
    }

    #[test]
    fn plans_say_what_is_to_do_first() {
        let row = |outcome, because: &[&str]| PlannedResource {
            outcome,
            because: because.iter().map(ToString::to_string).collect(),
            ..PlannedResource::default()
        };
        let mut tally = Tally::default();
        assert_eq!(tally.planned(), "Nothing to do");
        tally.add_planned(&row(PlanOutcome::Stable, &[]));
        tally.add_planned(&row(PlanOutcome::Skipped, &[]));
        assert_eq!(tally.planned(), "Nothing to do; 1 already right, 1 skipped");
        let children = vec![row(PlanOutcome::Create, &[]), row(PlanOutcome::Failed, &[])];
        tally.add_planned(&PlannedResource { children, ..row(PlanOutcome::Failed, &[]) });
        tally.add_planned(&row(PlanOutcome::Skipped, &["file#/x"]));
        tally.add_planned(&row(PlanOutcome::Refresh, &["file#/x"]));
        tally.counts.not_selected = 4;
        assert_eq!(
            tally.planned(),
            "1 to create, 1 to refresh, 1 failed, 1 skipped for unmet requirements; \
             1 already right, 1 skipped, 4 not selected"
        );
    }
}
