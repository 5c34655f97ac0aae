//! Handles changes of sources and of the connection.

use std::sync::Arc;

use ccm_hiera::Document;
use ccm_host::Cancel;
use ccm_model::redact_credentials;
use ccm_nats::ConnectionEvent;

use super::perform::RunReport;
use super::{Agent, AgentError, Invalid, Message, Worker, is_local, log, timestamp};
use crate::problems::Severity;
use crate::schedule::Moment;
use crate::sources::{Accept, Source, SourceEvent, SourceKind, SourceSettings};

impl Agent {
    pub(super) fn manifest_event(&mut self, url: &str, event: &SourceEvent, now: Moment) {
        let Some(worker) = self.workers.iter().find(|worker| worker.url == url) else { return };
        let name = worker.name.clone();
        match event {
            SourceEvent::Changed { digest } => {
                tracing::info!(manifest = name, %digest, "received a new manifest");
                self.note_validity(url, |known| known.source = false);
                self.note_availability();
                self.schedule.manifest_changed(url, now);
            }
            SourceEvent::Deleted => {
                self.note_availability();
                let message = "the object was deleted: the manifest is suspended until the object exists again".to_owned();
                let key = (&*name, "deleted");
                log::problems(self.problems.set(key, Severity::Warning, message, now));
            }
            SourceEvent::Restored => {
                log::problems(self.problems.end((&name, "deleted"), "the object exists again"));
                self.note_availability();
            }
            SourceEvent::Withdrawn => self.note_availability(),
            SourceEvent::Fetched => self.metrics.manifest_fetched(&name),
            SourceEvent::Failed { message, is_invalid } => {
                self.metrics.manifest_fetch_error(&name);
                let (key, message) = ((&*name, "source"), message.clone());
                if *is_invalid {
                    self.note_validity(url, |known| known.source = true);
                }
                log::problems(self.problems.set(key, Severity::Error, message, now));
            }
            SourceEvent::Recovered => {
                self.note_validity(url, |known| known.source = false);
                log::problems(
                    self.problems.end((&name, "source"), "the source is available again"),
                );
            }
        }
    }

    /// Tells metrics and health whether the newest manifest is valid.
    pub(super) fn note_validity(&mut self, url: &str, change: impl FnOnce(&mut Invalid)) {
        let Some(worker) = self.workers.iter_mut().find(|worker| worker.url == url) else { return };
        change(&mut worker.invalid);
        let Invalid { source, run } = worker.invalid;
        self.metrics.manifest_valid(&worker.name, !source && !run);
        self.health.set_invalid(&worker.name, source || run);
    }

    /// Takes in what a run says of its manifest.
    pub(super) fn manifest_run(&mut self, url: &str, report: &RunReport, now: Moment) {
        let invalid = &report.counts.invalid;
        if report.counts.applied.is_none() && invalid.is_none() {
            return;
        }
        self.note_validity(url, |known| known.run = invalid.is_some());
        let name = redact_credentials(url);
        if let Some(digest) = report.applied {
            self.metrics.manifest_applied(&name, &digest.to_string());
        }
        let key = (&*name, "invalid");
        log::problems(match (invalid, report.applied) {
            (None, _) => self.problems.end(key, "the manifest is valid again"),
            (Some(reason), applied) => {
                let rest = applied.map_or_else(
                    || "ccm applies nothing, as it has no valid one".to_owned(),
                    |digest| format!("ccm keeps applying the last valid one, {digest}"),
                );
                let message = format!("the manifest is invalid: {reason}; {rest}");
                self.problems.set(key, Severity::Error, message, now)
            }
        });
    }

    pub(super) fn data_event(&mut self, url: &str, event: &SourceEvent, now: Moment) {
        if self.config.external_data_url.as_deref() != Some(url) {
            return;
        }
        let name = redact_credentials(url).into_owned();
        match event {
            SourceEvent::Changed { digest } => {
                tracing::info!(%digest, "received new external data");
                self.note_availability();
                self.schedule.data_changed(now);
            }
            // What a deleted key said stays.
            SourceEvent::Deleted | SourceEvent::Restored | SourceEvent::Withdrawn => {
                self.note_availability();
            }
            SourceEvent::Fetched => {}
            SourceEvent::Failed { message, .. } => {
                self.metrics.data_resolve_error(&name);
                let (key, message) = (("", "data"), message.clone());
                log::problems(self.problems.set(key, Severity::Error, message, now));
            }
            SourceEvent::Recovered => {
                log::problems(self.problems.end(("", "data"), "external data is available again"));
            }
        }
    }

    pub(super) fn connection_event(&mut self, event: &ConnectionEvent, now: Moment) {
        let key = ("", "connection");
        let entry = match event {
            ConnectionEvent::Connected => {
                self.metrics.nats_connected(true);
                if self.network.nats.connection().connects > 1 {
                    self.metrics.nats_reconnected();
                }
                self.problems.end(key, "connected to NATS again")
            }
            ConnectionEvent::Lost => {
                self.metrics.nats_connected(false);
                let message = "the connection to NATS was lost".to_owned();
                self.problems.set(key, Severity::Error, message, now)
            }
            ConnectionEvent::Failed(error) => {
                self.metrics.nats_connected(false);
                self.problems.set(key, Severity::Error, error.to_string(), now)
            }
        };
        log::problems(entry);
    }

    /// Tells schedule, metrics and log which manifests and data are there.
    pub(super) fn note_availability(&mut self) {
        let now = self.host.since_boot();
        let mut without = Vec::new();
        for worker in &self.workers {
            // Each run looks for a local file by itself: here it could keep the
            // loop waiting.
            let copy = if worker.is_local { None } else { worker.source.current() };
            let is_there = worker.is_local || copy.is_some();
            self.schedule.set_available(&worker.url, is_there, now);
            self.metrics.manifest_available(&worker.name, is_there);
            if let Some(at) = copy.and_then(|copy| timestamp(copy.fetched)) {
                self.metrics.manifest_fetched_at(&worker.name, at);
            }
            let key = (&*worker.name, "manifest");
            let entry = if is_there || worker.source.is_suspended() {
                self.problems.end(key, "there is a manifest to apply now")
            } else {
                let message = "there is no manifest to apply yet".to_owned();
                self.problems.set(key, Severity::Warning, message, now)
            };
            log::problems(entry);
            if !is_there {
                without.push(worker.name.clone());
            }
        }
        let Some((url, data)) = self.config.external_data_url.as_ref().zip(self.data.as_ref())
        else {
            self.schedule.set_data(true, now);
            return self.health.set_missing(without, self.config.interval, now);
        };
        let copy = if is_local(url) { None } else { data.current() };
        let is_there = is_local(url) || copy.is_some();
        let name = redact_credentials(url);
        if let Some(at) = copy.and_then(|copy| timestamp(copy.fetched)) {
            self.metrics.data_fetched_at(&name, at);
        }
        self.schedule.set_data(is_there, now);
        let key = ("", "no data");
        log::problems(if is_there {
            self.problems.end(key, "there is external data now")
        } else {
            let message = format!("nothing is applied: there is no external data from {name} yet");
            without.push(name.into_owned());
            self.problems.set(key, Severity::Error, message, now)
        });
        self.health.set_missing(without, self.config.interval, now);
    }

    pub(super) fn watch_manifest(&self, url: &str) -> Result<Worker, AgentError> {
        let (sender, owned) = (self.sender.clone(), url.to_owned());
        let events = move |event| {
            let _ = sender.send(Message::Manifest(owned.clone(), event));
        };
        let source = self.watch(SourceKind::Manifest, url, None, events)?;
        let name = redact_credentials(url).into_owned();
        let source = Arc::new(source);
        self.metrics.manifest_valid(&name, true);
        self.health.set_invalid(&name, false);
        let (rejected, invalid) = (Arc::default(), Invalid::default());
        Ok(Worker { url: url.to_owned(), name, is_local: is_local(url), source, rejected, invalid })
    }

    pub(super) fn watch_data(&mut self) -> Result<(), AgentError> {
        self.data = None;
        let Some(url) = self.config.external_data_url.clone() else { return Ok(()) };
        let (sender, owned) = (self.sender.clone(), url.clone());
        let events = move |event| {
            let _ = sender.send(Message::Data(owned.clone(), event));
        };
        let accept = self.accept(&url);
        self.data = Some(Arc::new(self.watch(SourceKind::Data, &url, Some(accept), events)?));
        Ok(())
    }

    pub(super) fn watch(
        &self,
        kind: SourceKind,
        url: &str,
        accept: Option<Accept>,
        events: impl Fn(SourceEvent) + Send + Sync + 'static,
    ) -> Result<Source, AgentError> {
        let (interval, splay) = (self.config.interval, self.config.splay());
        let settings = SourceSettings { kind, url: url.to_owned(), interval, splay, accept };
        let network = self.network.kept.as_ref().map(|_| &*self.network.nats);
        Ok(Source::start(settings, &self.cache, &self.network.system, network, events)?)
    }

    /// Judges external data with the facts at hand.
    pub(super) fn accept(&self, url: &str) -> Accept {
        let (facts, metrics) = (Arc::clone(&self.facts), Arc::clone(&self.metrics));
        let (system, name) = (self.system.clone(), redact_credentials(url).into_owned());
        Arc::new(move |text: &str| {
            let host = system.begin(Cancel::default());
            let layers = facts.at_hand().ok_or("there are no facts to resolve it with")?;
            let begin = host.since_boot();
            let failed = |error: ccm_hiera::Error| ccm_engine::chain(&error);
            let document = Document::parse(&name, text).map_err(failed)?;
            let resolved = document.resolve(&host, &layers.facts(), None).map_err(failed)?;
            metrics.data_resolve_duration(host.since_boot().saturating_sub(begin));
            if resolved.data.is_empty() {
                return Err("it resolves to nothing".to_owned());
            }
            Ok(())
        })
    }

    /// Removes copies of what is not configured any more.
    pub(super) fn retain_copies(&self) {
        let manifests = self.config.manifests.iter().map(String::as_str);
        let urls: Vec<&str> = manifests.chain(self.config.external_data_url.as_deref()).collect();
        self.cache.retain(&urls);
    }
}
