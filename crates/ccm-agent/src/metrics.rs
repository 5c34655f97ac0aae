//! The agent's metrics in the text format of Prometheus.
//!
//! A [`Metrics`] belongs to one agent; there is no global. Recording never
//! fails and never waits for anything but another recording.

mod registry;
mod table;

use std::time::Duration;

use ccm_model::{Event, redact_credentials};
use jiff::Timestamp;

use registry::Registry;
pub use table::{METRICS, Metric, MetricType, PREFIX};

/// How long the series of a resource stay after it was last seen.
pub const RESOURCE_SERIES_LIFE: Duration = Duration::from_hours(24);

/// The mode of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunMode {
    /// Applies the manifest.
    Apply,
    /// Only runs health checks.
    Health,
}

/// Why a run was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunReason {
    /// Its time had come.
    Schedule,
    /// There was a new manifest.
    Source,
    /// There was new external data.
    Data,
    /// A health check was critical.
    Remediation,
    /// The agent got SIGUSR1.
    Signal,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunResult {
    /// Nothing failed.
    Ok,
    /// Something failed, or there was nothing that could be run.
    Failed,
    /// A signal from outside ended it: the agent's, or the kernel's.
    Killed,
    /// The process crashed.
    Crashed,
}

impl RunMode {
    /// The value of the label `mode`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Health => "health",
        }
    }
}

impl RunReason {
    /// The value of the label `reason`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Source => "source",
            Self::Data => "data",
            Self::Remediation => "remediation",
            Self::Signal => "signal",
        }
    }
}

impl RunResult {
    /// The value of the label `result`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Crashed => "crashed",
        }
    }
}

/// The metrics of one agent. Sources and URLs are redacted here: callers pass
/// them as they are.
#[derive(Debug, Default)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// Metrics of a program of this version, built from this commit.
    pub fn new(version: &str, commit: &str) -> Self {
        let metrics = Self::default();
        metrics.registry.set(&table::BUILD_INFO, &[version, commit], 1.0);
        metrics
    }

    /// Whether there are series per resource, as `resource_metrics` of the
    /// configuration says. Without, those that there are go.
    pub fn set_resource_metrics(&self, enabled: bool) {
        self.registry.set_resource_series(enabled);
    }

    /// Counts one event of a run: of its states `total` and exactly one
    /// outcome, its duration, and each of its health checks.
    pub fn event(&self, event: &Event, now: Timestamp) {
        let name = event.alias.as_deref().unwrap_or(&event.name);
        let name = &*redact_credentials(name);
        let kind = &*event.kind;
        let count = |metric| self.registry.add_for_resource(metric, &[kind, name], 1, now);
        count(&table::RESOURCE_TOTAL);
        count(outcome(event));
        if event.refreshed {
            count(&table::RESOURCE_REFRESHED);
        }
        if !event.health_check_only {
            let labels = [kind, &*event.provider, name];
            let metric = &table::RESOURCE_APPLY_DURATION;
            self.registry.observe_for_resource(metric, &labels, event.duration, now);
        }
        for check in &event.health_check {
            let labels = [kind, name, &*check.status.to_string(), &*check.name];
            self.registry.add_for_resource(&table::HEALTHCHECK_STATUS, &labels, 1, now);
            let labels = [kind, name, &*check.name];
            let metric = &table::HEALTHCHECK_DURATION;
            self.registry.observe_for_resource(metric, &labels, check.duration, now);
        }
    }

    /// Measures applying a whole manifest, in the run's own time.
    pub fn manifest_apply_duration(&self, source: &str, took: Duration) {
        self.observe(&table::MANIFEST_APPLY_DURATION, &[source], took);
    }

    /// Measures gathering facts.
    pub fn facts_gather_duration(&self, took: Duration) {
        self.observe(&table::FACTS_GATHER_DURATION, &[], took);
    }

    /// Measures an apply as the agent sees it, with the start of its process.
    pub fn apply_duration(&self, manifest: &str, took: Duration) {
        self.observe(&table::APPLY_DURATION, &[manifest], took);
    }

    /// Measures a run of health checks as the agent sees it.
    pub fn health_run_duration(&self, manifest: &str, took: Duration) {
        self.observe(&table::HEALTHCHECK_RUN_DURATION, &[manifest], took);
    }

    /// Counts an apply that a critical health check asked for.
    pub fn remediation(&self, manifest: &str) {
        self.add(&table::REMEDIATIONS, &[manifest], 1);
    }

    /// Measures resolving external data.
    pub fn data_resolve_duration(&self, took: Duration) {
        self.observe(&table::DATA_RESOLVE_DURATION, &[], took);
    }

    /// Counts external data that could not be fetched, parsed or resolved.
    pub fn data_resolve_error(&self, url: &str) {
        self.add(&table::DATA_RESOLVE_ERROR, &[url], 1);
    }

    /// Measures resolving facts for a run.
    pub fn facts_resolve_duration(&self, took: Duration) {
        self.observe(&table::FACTS_RESOLVE_DURATION, &[], took);
    }

    /// Counts facts that could not be gathered.
    pub fn facts_resolve_error(&self) {
        self.add(&table::FACTS_RESOLVE_ERROR, &[], 1);
    }

    /// Counts a manifest that was fetched.
    pub fn manifest_fetched(&self, manifest: &str) {
        self.add(&table::MANIFEST_FETCH, &[manifest], 1);
    }

    /// Counts a manifest that could not be fetched.
    pub fn manifest_fetch_error(&self, manifest: &str) {
        self.add(&table::MANIFEST_FETCH_ERROR, &[manifest], 1);
    }

    /// Whether the configuration uses the network. Only then are there series
    /// about the connection.
    pub fn set_network(&self, used: bool) {
        for metric in [&table::NATS_CONNECTED, &table::NATS_RECONNECTS] {
            if used {
                self.add(metric, &[], 0);
            } else {
                self.registry.remove(metric, &[]);
            }
        }
    }

    /// Whether there is a connection.
    pub fn nats_connected(&self, connected: bool) {
        self.set(&table::NATS_CONNECTED, &[], f64::from(connected));
    }

    /// Counts a connection after the first.
    pub fn nats_reconnected(&self) {
        self.add(&table::NATS_RECONNECTS, &[], 1);
    }

    /// Counts entries that reached their destination, `nats` or `jetstream`.
    /// With 0 the series begins.
    pub fn registrations_published(&self, destination: &str, entries: u64) {
        self.add(&table::REGISTRATIONS_PUBLISHED, &[destination], entries);
    }

    /// Counts entries that did not reach their destination. With 0 the series
    /// begins.
    pub fn registrations_failed(&self, destination: &str, entries: u64) {
        self.add(&table::REGISTRATIONS_ERROR, &[destination], entries);
    }

    /// Whether there is a manifest to apply.
    pub fn manifest_available(&self, manifest: &str, available: bool) {
        self.set(&table::MANIFEST_AVAILABLE, &[manifest], f64::from(available));
    }

    /// Whether the newest manifest is valid.
    pub fn manifest_valid(&self, manifest: &str, valid: bool) {
        self.set(&table::MANIFEST_VALID, &[manifest], f64::from(valid));
    }

    /// Which manifest was applied.
    pub fn manifest_applied(&self, manifest: &str, digest: &str) {
        self.registry.remove_all(&table::MANIFEST_APPLIED, "manifest", manifest);
        self.set(&table::MANIFEST_APPLIED, &[manifest, digest], 1.0);
    }

    /// When the copy of a manifest that is in use was fetched.
    pub fn manifest_fetched_at(&self, manifest: &str, at: Timestamp) {
        self.set(&table::MANIFEST_FETCHED, &[manifest], seconds(at));
    }

    /// When the copy of external data that is in use was fetched.
    pub fn data_fetched_at(&self, url: &str, at: Timestamp) {
        self.set(&table::DATA_FETCHED, &[url], seconds(at));
    }

    /// Counts a run, and notes when it ended and how.
    pub fn run(
        &self,
        manifest: &str,
        mode: RunMode,
        reason: RunReason,
        result: RunResult,
        end: Timestamp,
    ) {
        let labels = [manifest, mode.name(), reason.name(), result.name()];
        self.add(&table::RUNS, &labels, 1);
        let success = f64::from(result == RunResult::Ok);
        self.set(&table::LAST_RUN, &[manifest, mode.name()], seconds(end));
        self.set(&table::LAST_RUN_SUCCESS, &[manifest, mode.name()], success);
    }

    /// Whether the last reload of the configuration was accepted.
    pub fn config_reload(&self, success: bool) {
        self.set(&table::CONFIG_RELOAD_SUCCESS, &[], f64::from(success));
    }

    /// Removes every series of a manifest that is no longer configured.
    pub fn forget_manifest(&self, manifest: &str) {
        let manifest = redact_credentials(manifest);
        self.registry.forget("manifest", &manifest);
        self.registry.forget("source", &manifest);
    }

    /// Removes every series of external data that is no longer configured.
    pub fn forget_data(&self, url: &str) {
        self.registry.forget("url", &redact_credentials(url));
    }

    /// All series in the text format 0.0.4. Those of resources that were last
    /// seen more than [`RESOURCE_SERIES_LIFE`] before `now` end here.
    pub fn render(&self, now: Timestamp) -> String {
        self.registry.render(now, RESOURCE_SERIES_LIFE)
    }

    fn add(&self, metric: &'static Metric, labels: &[&str], by: u64) {
        self.registry.add(metric, &redacted(labels), by);
    }

    fn set(&self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.registry.set(metric, &redacted(labels), value);
    }

    fn observe(&self, metric: &'static Metric, labels: &[&str], took: Duration) {
        self.registry.observe(metric, &redacted(labels), took);
    }
}

/// The one outcome that is counted of an event.
fn outcome(event: &Event) -> &'static Metric {
    if event.noop {
        &table::RESOURCE_NOOP
    } else if event.failed {
        &table::RESOURCE_FAILED
    } else if event.skipped || !event.unmet_requirements.is_empty() {
        &table::RESOURCE_SKIPPED
    } else if event.changed {
        &table::RESOURCE_CHANGED
    } else if !event.error.is_empty() {
        &table::RESOURCE_ERROR
    } else {
        &table::RESOURCE_STABLE
    }
}

fn redacted(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| redact_credentials(label).into_owned()).collect()
}

fn seconds(at: Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests;
