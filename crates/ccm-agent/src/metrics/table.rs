//! Every metric of the agent, with type, labels and help. The documentation's
//! table is made from this one, and the examples are compared with it.

/// Prefix of all metric names.
pub const PREFIX: &str = "choria_ccm_";

/// How a metric behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Only grows, until the agent starts anew.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A sum and a count of observations, without quantiles.
    Summary,
}

impl MetricType {
    /// The word of the exposition format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
        }
    }
}

/// One metric: a family of series, one per set of label values.
#[derive(Debug)]
pub struct Metric {
    /// Its name without [`PREFIX`].
    pub name: &'static str,
    /// Its type.
    pub kind: MetricType,
    /// The names of its labels, in the order in which they are written.
    pub labels: &'static [&'static str],
    /// Help text of the metric.
    pub help: &'static str,
    /// Whether it has series per resource, which `resource_metrics` switches
    /// off and which end when their resource is no longer seen.
    pub is_per_resource: bool,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal $($resource:ident)?;)*) => {
        $(
            #[doc = $help]
            pub(super) const $constant: Metric = Metric {
                name: $name,
                kind: MetricType::$kind,
                labels: &[$($label),*],
                help: $help,
                is_per_resource: metrics!(@resource $($resource)?),
            };
        )*
        /// All metrics, in the order in which they are written.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
    (@resource resource) => { true };
    (@resource) => { false };
}

metrics! {
    MANIFEST_APPLY_DURATION: Summary "manifest_apply_duration_seconds" ["source"]
        "Time taken to apply an entire manifest";
    RESOURCE_APPLY_DURATION: Summary "resource_apply_duration_seconds" ["type", "provider", "name"]
        "Time taken to apply a particular resource" resource;
    HEALTHCHECK_DURATION: Summary "healthcheck_duration_seconds" ["type", "name", "check"]
        "Time taken to health check a particular resource" resource;
    HEALTHCHECK_STATUS: Counter "healthcheck_status_count" ["type", "name", "status", "check"]
        "How many resources are in a certain state" resource;
    RESOURCE_TOTAL: Counter "resource_state_total_count" ["type", "name"]
        "How many resources were processed" resource;
    RESOURCE_STABLE: Counter "resource_state_stable_count" ["type", "name"]
        "How many resources were stable" resource;
    RESOURCE_CHANGED: Counter "resource_state_changed_count" ["type", "name"]
        "How many resources were changed" resource;
    RESOURCE_REFRESHED: Counter "resource_state_refreshed_count" ["type", "name"]
        "How many resources were refreshed" resource;
    RESOURCE_FAILED: Counter "resource_state_failed_count" ["type", "name"]
        "How many resources were failed" resource;
    RESOURCE_ERROR: Counter "resource_state_error_count" ["type", "name"]
        "How many resources had errors" resource;
    RESOURCE_SKIPPED: Counter "resource_state_skipped_count" ["type", "name"]
        "How many resources were skipped" resource;
    RESOURCE_NOOP: Counter "resource_state_noop_count" ["type", "name"]
        "How many resources were in noop mode" resource;
    FACTS_GATHER_DURATION: Summary "facts_gather_duration_seconds" []
        "Time taken to gather facts";
    APPLY_DURATION: Summary "agent_apply_duration_seconds" ["manifest"]
        "Time taken to apply manifests in agents";
    HEALTHCHECK_RUN_DURATION: Summary "agent_healthcheck_duration_seconds" ["manifest"]
        "How long health check runs took";
    REMEDIATIONS: Counter "agent_healthcheck_remediations_count" ["manifest"]
        "How many times health checks triggered remediating runs";
    DATA_RESOLVE_DURATION: Summary "agent_data_resolve_duration_seconds" []
        "Time taken to resolve data in agents";
    DATA_RESOLVE_ERROR: Counter "agent_data_resolve_error_count" ["url"]
        "How many times resolving data failed in agents";
    FACTS_RESOLVE_DURATION: Summary "agent_facts_resolve_duration_seconds" []
        "Time taken to resolve facts in agents";
    FACTS_RESOLVE_ERROR: Counter "agent_facts_resolve_error_count" []
        "How many times resolving facts failed in agents";
    MANIFEST_FETCH: Counter "agent_manifest_fetch_count" ["manifest"]
        "How many times manifests were fetched from remote";
    MANIFEST_FETCH_ERROR: Counter "agent_manifest_fetch_error_count" ["manifest"]
        "How many times fetching manifests failed in agents";
    BUILD_INFO: Gauge "build_info" ["version", "commit"]
        "Version of this program";
    NATS_CONNECTED: Gauge "agent_nats_connected" []
        "1 while connected";
    NATS_RECONNECTS: Counter "agent_nats_reconnects_count" []
        "Connections made after the first";
    REGISTRATIONS_PUBLISHED: Counter "agent_registrations_published_count" ["destination"]
        "Registration entries that were published";
    REGISTRATIONS_ERROR: Counter "agent_registrations_published_error_count" ["destination"]
        "Registration entries that were not published";
    MANIFEST_AVAILABLE: Gauge "agent_manifest_available" ["manifest"]
        "1 when there is a manifest to apply";
    MANIFEST_VALID: Gauge "agent_manifest_valid" ["manifest"]
        "0 while the newest manifest is invalid";
    MANIFEST_APPLIED: Gauge "agent_manifest_applied_info" ["manifest", "digest"]
        "1 with the SHA-256 digest of the manifest that was applied last";
    MANIFEST_FETCHED: Gauge "agent_manifest_fetched_timestamp_seconds" ["manifest"]
        "When the copy of the manifest in use was fetched";
    DATA_FETCHED: Gauge "agent_data_fetched_timestamp_seconds" ["url"]
        "When the copy of the data in use was fetched";
    LAST_RUN: Gauge "agent_last_run_timestamp_seconds" ["manifest", "mode"]
        "End of the last run";
    LAST_RUN_SUCCESS: Gauge "agent_last_run_success" ["manifest", "mode"]
        "1 when nothing failed in the last run";
    RUNS: Counter "agent_runs_count" ["manifest", "mode", "reason", "result"]
        "Runs by mode, reason and result";
    CONFIG_RELOAD_SUCCESS: Gauge "agent_config_reload_success" []
        "0 after a refused reload";
}
