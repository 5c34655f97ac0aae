//! The outcome of one resource, in one word, and counts of outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Event, Verb};

/// What became of a resource, or in a preview what would become of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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

impl Outcome {
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

    /// The outcome that the other fields of an event give it.
    pub(crate) fn of(event: &Event) -> Self {
        if event.failed {
            return Self::Failed;
        }
        if event.provisional {
            return Self::Provisional;
        }
        Self::done(event)
    }

    /// The outcome of an event that is not failed, if nothing is provisional.
    pub(crate) fn done(event: &Event) -> Self {
        if event.skipped {
            return Self::Skipped;
        }
        if event.refreshed {
            return Self::Refresh;
        }
        if !event.changed {
            return Self::Stable;
        }
        match event.verbs.first() {
            Some(Verb::Executed) => Self::Run,
            // What makes room for something else is part of that change.
            Some(Verb::Removed) if event.verbs.iter().all(|verb| *verb == Verb::Removed) => {
                Self::Remove
            }
            Some(Verb::Created | Verb::Installed) => Self::Create,
            // A directory that is there already has no change of `ensure`.
            Some(Verb::Rendered)
                if event.changes.iter().any(|change| change.property == "ensure") =>
            {
                Self::Create
            }
            _ => Self::Change,
        }
    }
}

/// How many resources have which outcome. A resource that applies a manifest is
/// not counted beside the resources of that manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    /// Created or installed
    pub create: usize,
    /// Changed
    pub change: usize,
    /// Removed
    pub remove: usize,
    /// Reacting to a change of another resource
    pub refresh: usize,
    /// Commands that run
    pub run: usize,
    /// Provisional: only the run can decide it
    pub provisional: usize,
    /// Failed
    pub failed: usize,
    /// Skipped, by `control` or for an unmet requirement
    pub skipped: usize,
    /// Already in the desired state
    pub stable: usize,
    /// The skipped ones with an unmet requirement
    #[serde(skip_serializing_if = "is_zero")]
    pub unmet: usize,
    /// Only previewed in a real run, and would have changed
    #[serde(skip_serializing_if = "is_zero")]
    pub previewed: usize,
    /// With steps that `--offline` leaves to the first boot; those with other
    /// changes are counted beside the others
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: usize,
    /// Not selected by `--only` and `--skip`
    pub not_selected: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Counts {
    /// Counts an event of a real run, or of a preview.
    pub fn add(&mut self, event: &Event, is_preview: bool) {
        if event.aggregate {
            return;
        }
        let outcome = event.outcome();
        let is_deferred = !event.deferred.is_empty();
        self.deferred += usize::from(is_deferred);
        self.unmet += usize::from(event.is_unmet());
        if event.noop && !is_preview && event.changed && !event.failed {
            self.previewed += 1;
        } else if !is_deferred || outcome != Outcome::Stable {
            *self.of(outcome) += 1;
        }
    }

    fn of(&mut self, outcome: Outcome) -> &mut usize {
        match outcome {
            Outcome::Create => &mut self.create,
            Outcome::Change => &mut self.change,
            Outcome::Remove => &mut self.remove,
            Outcome::Refresh => &mut self.refresh,
            Outcome::Run => &mut self.run,
            Outcome::Provisional => &mut self.provisional,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Stable => &mut self.stable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, ResourceRef};

    #[test]
    fn outcomes_follow_from_events() {
        let changed = |verb: Verb| Event { changed: true, verbs: vec![verb], ..Event::default() };
        let rendered = |from: &str, to: &str| Event {
            changes: vec![Change::of("ensure").from(from).to(to)],
            ..changed(Verb::Rendered)
        };
        for (event, outcome) in [
            (Event::default(), Outcome::Stable),
            (changed(Verb::Created), Outcome::Create),
            (changed(Verb::Installed), Outcome::Create),
            (changed(Verb::Updated), Outcome::Change),
            (changed(Verb::Started), Outcome::Change),
            (changed(Verb::Removed), Outcome::Remove),
            (Event { verbs: vec![Verb::Removed; 2], ..changed(Verb::Removed) }, Outcome::Remove),
            (
                Event { verbs: vec![Verb::Removed, Verb::Updated], ..changed(Verb::Removed) },
                Outcome::Change,
            ),
            (changed(Verb::Executed), Outcome::Run),
            (changed(Verb::Rendered), Outcome::Change),
            (rendered("absent", "present"), Outcome::Create),
            (Event { refreshed: true, ..changed(Verb::Executed) }, Outcome::Refresh),
            (Event { provisional: true, ..changed(Verb::Created) }, Outcome::Provisional),
            (Event { skipped: true, ..Event::default() }, Outcome::Skipped),
            (Event { failed: true, ..changed(Verb::Created) }, Outcome::Failed),
        ] {
            assert_eq!(event.outcome(), outcome, "{event:?}");
        }
    }

    #[test]
    fn words_are_those_of_json_and_glyphs_differ() {
        let mut glyphs = std::collections::HashSet::new();
        for outcome in Outcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{}\"", outcome.word()));
            assert!(glyphs.insert(outcome.glyph()));
        }
    }

    #[test]
    fn every_event_is_counted_once() {
        let changed = Event { changed: true, ..Event::default() };
        let unmet_requirements = vec![ResourceRef::new("file", "/x")];
        let events = [
            Event { verbs: vec![Verb::Created], ..changed.clone() },
            Event { noop: true, ..changed.clone() },
            Event { failed: true, noop: true, ..changed.clone() },
            Event { skipped: true, unmet_requirements, ..Event::default() },
            Event { skipped: true, ..Event::default() },
            Event::default(),
            Event { deferred: vec!["start".into()], ..Event::default() },
            Event { deferred: vec!["start".into()], ..changed.clone() },
            Event { aggregate: true, ..changed },
        ];
        let mut counts = Counts::default();
        for event in &events {
            counts.add(event, false);
        }
        let wanted = Counts {
            create: 1,
            change: 1,
            previewed: 1,
            failed: 1,
            skipped: 2,
            unmet: 1,
            stable: 1,
            deferred: 2,
            ..Counts::default()
        };
        assert_eq!(counts, wanted);
        let mut counts = Counts::default();
        for event in &events {
            counts.add(event, true);
        }
        assert_eq!(counts, Counts { change: 2, previewed: 0, ..wanted });
    }
}
