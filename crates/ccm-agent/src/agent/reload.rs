//! Reloads the configuration while the agent runs.

use ccm_engine::Diagnosis;

use super::{Agent, AgentError, start_monitor, start_network, times};
use crate::config::{Config, ConfigError};
use crate::monitor::Monitor;
use crate::sources::Cache;

impl Agent {
    /// Reads the configuration again. If it is wrong, the old one stays.
    pub(super) fn reload(&mut self) {
        self.service.tell("RELOADING=1");
        // What the agent knew of the directories may be what was wrong.
        let host = self.network.system.begin(self.host.cancel().clone());
        let done = Config::read(&host, &self.settings.config).map_err(AgentError::from).and_then(
            |(config, warnings)| {
                log_findings(&warnings);
                self.take_over(config)
            },
        );
        match done {
            Ok(()) => tracing::info!("reloaded the configuration"),
            Err(error) => {
                if let AgentError::Config(ConfigError::Invalid(diagnosis)) = &error {
                    log_findings(diagnosis);
                }
                let reason = ccm_engine::chain(&error);
                tracing::error!("kept the old configuration: {reason}");
                self.metrics.config_reload(false);
            }
        }
        self.service.tell("READY=1");
        self.tell_status();
    }

    /// Everything that can fail comes first, so that the old configuration can
    /// stay.
    fn take_over(&mut self, config: Config) -> Result<(), AgentError> {
        let old = &self.config;
        let has_new_port = (old.monitor_port, old.monitor_address)
            != (config.monitor_port, config.monitor_address);
        let has_new_cache = old.cache_dir != config.cache_dir;
        let has_new_network = old.nats_context != config.nats_context
            || old.registration_stream != config.registration_stream
            || old.registration != config.registration
            || old.needs_network() != config.needs_network();
        let has_new_times = (old.interval, old.splay()) != (config.interval, config.splay());
        let cache =
            has_new_cache.then(|| Cache::open(&config.cache_dir, &self.host)).transpose()?;
        // The last but one, as the old one may have to end before.
        let monitor = if has_new_port { Some(self.new_monitor(&config)?) } else { None };
        let network = if has_new_network {
            let (settings, system) = (&self.settings, &self.system);
            match start_network(settings, &config, system, &self.metrics, &self.sender) {
                Ok(network) => Some(network),
                Err(error) => {
                    drop(monitor);
                    self.restore_monitor();
                    return Err(error);
                }
            }
        } else {
            None
        };
        let old = std::mem::replace(&mut self.config, config);
        if let Some(monitor) = monitor {
            self.monitor = monitor;
        }
        let is_anew = has_new_cache || has_new_network || has_new_times;
        if is_anew {
            // A source is watched once at a time.
            (self.workers, self.data) = (Vec::new(), None);
        }
        if let Some(network) = network {
            let before = std::mem::replace(&mut self.network, network);
            if let Some(registrar) = &before.registrar {
                registrar.finish(&self.host);
            }
            self.problems.forget("");
        }
        if let Some(cache) = cache {
            self.cache = cache;
        }
        let now = self.host.since_boot();
        let config = self.config.clone();
        (self.on_config)(&config);
        self.metrics.set_resource_metrics(config.resource_metrics);
        self.schedule.reconfigure(times(&config), &config.manifests, now);
        for url in old.manifests.iter().filter(|url| !config.manifests.contains(url)) {
            let name = ccm_model::redact_credentials(url);
            self.metrics.forget_manifest(url);
            self.health.set_invalid(&name, false);
            self.problems.forget(&name);
        }
        let mut before = std::mem::take(&mut self.workers);
        let mut failures = Vec::new();
        for url in &config.manifests {
            let kept = before.iter().position(|worker| worker.url == *url);
            let worker = match kept {
                Some(at) => Ok(before.swap_remove(at)),
                None => self.watch_manifest(url),
            };
            match worker {
                Ok(worker) => self.workers.push(worker),
                Err(error) => failures.push(error),
            }
        }
        drop(before);
        if is_anew || old.external_data_url != config.external_data_url {
            if let Some(url) =
                old.external_data_url.filter(|url| config.external_data_url.as_ref() != Some(url))
            {
                self.metrics.forget_data(&url);
            }
            failures.extend(self.watch_data().err());
        }
        self.retain_copies();
        self.note_availability();
        self.metrics.config_reload(failures.is_empty());
        match failures.into_iter().next() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

impl Agent {
    /// Metrics where the new configuration wants them. The old ones stay where
    /// they are until then, but for a port that both need.
    fn new_monitor(&mut self, config: &Config) -> Result<Option<Monitor>, AgentError> {
        let start =
            |config: &Config| start_monitor(config, &self.metrics, &self.health, &self.host);
        if self.config.monitor_port != config.monitor_port {
            return start(config);
        }
        self.monitor = None;
        let started = start(config);
        if started.is_err() {
            self.restore_monitor();
        }
        started
    }

    /// Serves metrics where the old configuration wants them, if nothing does.
    fn restore_monitor(&mut self) {
        if self.monitor.is_none() {
            let started = start_monitor(&self.config, &self.metrics, &self.health, &self.host);
            self.monitor = started.ok().flatten();
        }
    }
}

/// Logs what was found in a configuration.
fn log_findings(diagnosis: &Diagnosis) {
    for diagnostic in diagnosis.diagnostics() {
        super::log::diagnostic("", &diagnostic);
    }
}
