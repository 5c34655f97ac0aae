//! The summary of a run: a function of its events.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::is_zero;
use crate::{Counts, Event, Health};

/// How many resources became what.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Events of the run, one for each time that a resource was managed.
    pub total: usize,
    /// Different `type#name` among the events.
    pub unique: usize,
    /// Resources that were in the desired state already.
    pub stable: usize,
    /// Resources with steps that `--offline` leaves to the first boot. Those with
    /// other changes are counted beside the others.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: usize,
    /// Changed, or in noop would have been.
    pub changed: usize,
    /// Only previewed within a run that is none, and would have changed.
    pub previewed: usize,
    /// Resources that failed.
    pub failed: usize,
    /// Resources that `control` or an unmet requirement held back.
    pub skipped: usize,
    /// Not chosen by `--only` and `--skip`, and not looked at.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_selected: usize,
    /// Reacted to a change elsewhere; counted beside the others.
    pub refreshed: usize,
    /// Skipped because a requirement was not met; counted beside the others.
    pub requirements_unmet: usize,
    /// Results of health checks by status.
    pub health_checks: HealthChecks,
    /// Resources by outcome. Child manifests count by their resources, not beside
    /// them.
    pub outcomes: Counts,
    /// Error messages in all.
    pub errors: usize,
    /// When the run or session began.
    pub start: Timestamp,
    /// When its last resource was finished.
    pub end: Timestamp,
    /// From start to end.
    #[serde(with = "crate::event::nanoseconds")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// Whether nothing at all was really done.
    #[serde(skip)]
    pub noop: bool,
    #[serde(skip)]
    seen: HashSet<u64>,
}

/// Results of health checks by status.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HealthChecks {
    /// Checks with the result OK.
    pub ok: usize,
    /// Fine, with a warning.
    pub warning: usize,
    /// Checks with the result CRITICAL.
    pub critical: usize,
    /// Could not be told.
    pub unknown: usize,
}

impl HealthChecks {
    fn of(&mut self, health: Health) -> &mut usize {
        match health {
            Health::Ok => &mut self.ok,
            Health::Warning => &mut self.warning,
            Health::Critical => &mut self.critical,
            Health::Unknown => &mut self.unknown,
        }
    }
}

impl Summary {
    /// The summary of nothing yet.
    pub fn starting(start: Timestamp) -> Self {
        Self { start, end: start, ..Self::default() }
    }

    /// Counts one event: in exactly one of failed, skipped, previewed, changed,
    /// stable, or as deferred alone.
    pub fn add(&mut self, event: &Event) {
        self.total += 1;
        let mut hasher = DefaultHasher::new();
        (&event.kind, &event.name).hash(&mut hasher);
        if self.seen.insert(hasher.finish()) {
            self.unique += 1;
        }
        *if event.failed {
            &mut self.failed
        } else if event.skipped {
            &mut self.skipped
        } else if event.changed && event.noop && !self.noop {
            &mut self.previewed
        } else if event.changed {
            &mut self.changed
        } else if event.deferred.is_empty() {
            &mut self.stable
        } else {
            &mut self.deferred
        } += 1;
        self.deferred += usize::from(event.changed && !event.deferred.is_empty());
        self.refreshed += usize::from(event.refreshed);
        self.requirements_unmet += usize::from(!event.unmet_requirements.is_empty());
        self.outcomes.add(event, self.noop);
        self.errors += event.error.len();
        for check in &event.health_check {
            *self.health_checks.of(check.status) += 1;
        }
        self.finish(event.timestamp);
    }

    /// Moves the end of the run.
    pub fn finish(&mut self, end: Timestamp) {
        self.end = self.end.max(end);
        self.duration = self.end.duration_since(self.start).try_into().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HealthCheckResult, ResourceRef};

    #[test]
    fn every_resource_is_counted_once() {
        let event =
            |name: &str| Event { name: name.into(), kind: "file".into(), ..Event::default() };
        let mut summary = Summary::starting(Timestamp::UNIX_EPOCH);
        for event in [
            event("a"),
            event("a"),
            Event { changed: true, refreshed: true, ..event("b") },
            Event { changed: true, failed: true, error: vec!["x".into()], ..event("c") },
            Event {
                skipped: true,
                unmet_requirements: vec![ResourceRef::new("file", "c")],
                ..event("d")
            },
            Event { deferred: vec!["start".into()], ..event("e") },
            Event { changed: true, deferred: vec!["start".into()], ..event("f") },
        ] {
            summary.add(&event);
        }
        assert_eq!((summary.total, summary.unique, summary.deferred), (7, 6, 2));
        assert_eq!(
            (summary.stable, summary.changed, summary.failed, summary.skipped),
            (2, 2, 1, 1)
        );
        assert_eq!((summary.refreshed, summary.requirements_unmet, summary.errors), (1, 1, 1));
    }

    #[test]
    fn a_preview_within_a_run_changes_nothing() {
        let event = Event { changed: true, noop: true, ..Event::default() };
        for (noop, wanted) in [(false, (0, 1)), (true, (1, 0))] {
            let mut summary = Summary { noop, ..Summary::starting(Timestamp::UNIX_EPOCH) };
            summary.add(&event);
            assert_eq!((summary.changed, summary.previewed), wanted);
        }
    }

    #[test]
    fn health_is_counted_by_check() {
        let result = |status| HealthCheckResult { status, ..HealthCheckResult::default() };
        let mut summary = Summary::starting(Timestamp::UNIX_EPOCH);
        let all = [Health::Ok, Health::Warning, Health::Critical, Health::Unknown, Health::Ok];
        let health_check = all.map(result).into();
        summary.add(&Event { health_check, ..Event::default() });
        let HealthChecks { ok, warning, critical, unknown } = summary.health_checks;
        assert_eq!((ok, warning, critical, unknown), (2, 1, 1, 1));
    }
}
