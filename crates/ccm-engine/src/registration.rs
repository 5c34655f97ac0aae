//! Publishes services to a registry, once their resources are in the desired
//! state.
//!
//! If a registration cannot be published, ccm warns and retries at the end of
//! the run. It never fails a resource or a run.

use std::time::{Duration, Instant};

use ccm_host::Registry;
use ccm_model::{Common, Event, Health, RegistryEntry};

use crate::chain;
use crate::lifecycle::LifecycleContext;
use crate::resource::AnyResource;

/// How long one attempt may take, and all of those at the end together.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// What could not be published yet.
#[derive(Debug, Default)]
pub(crate) struct Unpublished {
    /// One entry per subject, the newest.
    entries: Vec<RegistryEntry>,
    reason: String,
}

impl Unpublished {
    fn keep(&mut self, entry: RegistryEntry) {
        let subject = entry.subject();
        self.entries.retain(|other| other.subject() != subject);
        self.entries.push(entry);
    }
}

/// Whether the service of a resource is known to be there.
fn is_due(common: &Common, event: &Event) -> bool {
    let was_checked = !event.health_check.is_empty();
    !event.noop
        && !event.failed
        && !event.skipped
        && event.health_check.iter().all(|result| result.status == Health::Ok)
        && !matches!(common.ensure.as_str(), "absent" | "stopped")
        // Otherwise nothing was looked at.
        && (!event.health_check_only || was_checked)
}

impl LifecycleContext<'_, '_> {
    /// Publishes the entries of a resource that are due.
    pub(crate) fn register(&mut self, resource: &dyn AnyResource, event: &Event) {
        // Before the first boot, no service is there.
        let Some(registry) = self.options.register.filter(|_| !self.options.mode.offline) else {
            return;
        };
        let common = resource.common();
        if common.register_when_stable.is_empty() || !is_due(common, event) {
            return;
        }
        let entries = common.register_when_stable.iter();
        // What is wrong with an entry was said when the manifest was read.
        let entries: Vec<_> = entries.filter_map(|entry| entry.value.entry().ok()).collect();
        for entry in entries {
            // A registry that does not answer costs a run its patience once.
            if !self.record.unpublished.entries.is_empty() {
                self.record.unpublished.keep(entry);
                continue;
            }
            if let Err(reason) = self.publish(&entry, registry, PATIENCE) {
                let message = format!("cannot register {}: {reason}", entry.service);
                self.warn(Some(&resource.display()), &message);
                self.record.unpublished.reason = reason;
                self.record.unpublished.keep(entry);
            }
        }
    }

    /// Tries once more what could not be published, and says what still cannot.
    pub(crate) fn finish_registrations(&mut self) {
        let Some(registry) = self.options.register else { return };
        let entries = std::mem::take(&mut self.record.unpublished.entries);
        if entries.is_empty() {
            return;
        }
        let until = Instant::now() + PATIENCE;
        let mut entries = entries;
        loop {
            let is_over = || until <= Instant::now() || self.options.host.cancel().is_cancelled();
            let mut failed = Vec::new();
            let mut last = None;
            for entry in entries {
                let patience = until.saturating_duration_since(Instant::now());
                if is_over() {
                    failed.push(entry);
                } else if let Err(reason) = self.publish(&entry, registry, patience) {
                    last = Some(reason);
                    failed.push(entry);
                }
            }
            entries = failed;
            if entries.is_empty() || is_over() {
                self.record.unpublished.reason =
                    last.unwrap_or_else(|| std::mem::take(&mut self.record.unpublished.reason));
                break;
            }
            if let Some(reason) = last {
                self.record.unpublished.reason = reason;
            }
            // A server that refuses connections does so at once.
            self.options.host.cancel().pause(PAUSE);
        }
        let left = entries.len();
        if left > 0 {
            let reason = std::mem::take(&mut self.record.unpublished.reason);
            let what = if left == 1 { "registration was" } else { "registrations were" };
            self.warn(None, &format!("{left} {what} not published: {reason}"));
        }
    }

    fn publish(
        &self,
        entry: &RegistryEntry,
        registry: Registry,
        patience: Duration,
    ) -> Result<(), String> {
        let host = &self.options.host;
        let Some(publisher) = host.publisher() else {
            return Err("this program cannot publish registrations".to_owned());
        };
        publisher.publish(entry, registry, patience, host).map_err(|error| {
            let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            chain(&error) + &hint
        })
    }
}

#[cfg(test)]
mod tests {
    use ccm_model::HealthCheckResult;

    use super::*;

    fn checks(statuses: &[Health]) -> Vec<HealthCheckResult> {
        let result = |status: &Health| HealthCheckResult { status: *status, ..Default::default() };
        statuses.iter().map(result).collect()
    }

    #[test]
    fn only_what_is_known_to_work_is_registered() {
        let event = Event::default;
        let with = |statuses: &[Health]| Event { health_check: checks(statuses), ..event() };
        for (ensure, event, wanted) in [
            ("present", event(), true),
            ("running", Event { changed: true, ..event() }, true),
            ("1.2.3", with(&[Health::Ok, Health::Ok]), true),
            ("running", with(&[Health::Ok, Health::Warning]), false),
            ("running", with(&[Health::Unknown]), false),
            ("running", Event { failed: true, ..with(&[Health::Critical]) }, false),
            ("running", Event { failed: true, ..event() }, false),
            ("running", Event { skipped: true, ..event() }, false),
            ("running", Event { noop: true, ..event() }, false),
            ("absent", event(), false),
            ("stopped", event(), false),
            ("running", Event { health_check_only: true, ..event() }, false),
            ("running", Event { health_check_only: true, ..with(&[Health::Ok]) }, true),
        ] {
            let common = Common { ensure: ensure.to_owned(), ..Common::default() };
            assert_eq!(is_due(&common, &event), wanted, "{ensure} {event:?}");
        }
    }

    #[test]
    fn the_newest_entry_of_a_subject_waits() {
        let entry = |priority, port| RegistryEntry {
            cluster: "c".into(),
            service: "s".into(),
            protocol: "p".into(),
            address: "::1".into(),
            port: Some(port),
            priority,
            annotations: std::collections::BTreeMap::default(),
            ttl: None,
        };
        let mut waiting = Unpublished::default();
        for (priority, port) in [(1, 80), (2, 81), (3, 80)] {
            waiting.keep(entry(priority, port));
        }
        let priorities: Vec<_> = waiting.entries.iter().map(|entry| entry.priority).collect();
        assert_eq!(priorities, [2, 3]);
    }
}
