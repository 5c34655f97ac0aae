//! Runs, from the request of the schedule to their report.

use std::sync::Arc;
use std::time::Duration;

use ccm_model::redact_credentials;

use super::perform::{Content, Performance, RunControl, RunReport};
use super::{Agent, Message, Running, TERMINATE, is_local, log};
use crate::metrics::{RunMode, RunReason, RunResult};
use crate::registrar::{Renewal, shown};
use crate::schedule::{Moment, RunRequest};

impl Agent {
    /// Starts a run, or reports at once why there is none.
    pub(super) fn begin(&mut self, request: RunRequest, now: Moment) {
        let report = match self.start_run(&request, now) {
            Ok(running) => {
                self.running = Some(running);
                self.tell_status();
                return;
            }
            Err(reason) => RunReport::not_made(request, reason),
        };
        let _ = self.sender.send(Message::RunEnded(Box::new(report)));
    }

    pub(super) fn start_run(
        &mut self,
        request: &RunRequest,
        now: Moment,
    ) -> Result<Running, String> {
        let worker = self.workers.iter().find(|worker| worker.url == request.manifest);
        let worker = worker.ok_or("the manifest is no longer configured")?;
        let manifest = Content::of(&worker.source, worker.is_local);
        let is_data_local = self.config.external_data_url.as_deref().is_some_and(is_local);
        let data = self.data.as_ref().map(|data| Content::of(data, is_data_local));
        if request.reason == RunReason::Remediation {
            self.metrics.remediation(&worker.name);
        }
        let performance = Performance {
            request: request.clone(),
            name: worker.name.clone(),
            manifest,
            source: Arc::clone(&worker.source),
            rejected: Arc::clone(&worker.rejected),
            is_local: worker.is_local,
            data,
            data_name: self.data.as_ref().map(|data| data.name()).unwrap_or_default(),
            facts: Arc::clone(&self.facts),
            noop: self.config.noop,
            register: self.config.registration,
            renewal: Renewal {
                interval: self.config.interval,
                health_check_interval: self.config.health_check_interval,
            },
            registrar: self.network.registrar.clone(),
            nats: Arc::clone(&self.network.nats),
            system: self.network.system.clone(),
            metrics: Arc::clone(&self.metrics),
            args: self.settings.run_args.clone(),
        };
        let control = RunControl::new().map_err(|error| error.to_string())?;
        let (inner, sender) = (control.clone(), self.sender.clone());
        let run = move || {
            let report = performance.perform(&inner);
            let _ = sender.send(Message::RunEnded(Box::new(report)));
        };
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(run);
        spawned.map_err(|error| format!("cannot start a run: {error}"))?;
        let (mode, reason) = (request.mode.name(), request.reason.name());
        tracing::debug!(manifest = worker.name, reason, "starting a run: {mode}");
        let limit = self.config.run_timeout;
        let stop_at = (!limit.is_zero()).then(|| now + limit);
        let request = request.clone();
        Ok(Running { request, control, stop_at, kill_at: None, is_timed_out: false })
    }

    /// Stops or kills the run whose time is up; when to look again.
    pub(super) fn check_run(&mut self, now: Moment) -> Option<Moment> {
        let stop_timeout = self.config.stop_timeout;
        let limit = self.config.run_timeout;
        let running = self.running.as_mut()?;
        let name = redact_credentials(&running.request.manifest).into_owned();
        if running.stop_at.is_some_and(|due| due <= now) {
            let limit = shown(limit);
            tracing::error!(
                manifest = name,
                "the run exceeded its timeout of {limit}: stopping it"
            );
            running.control.stop(TERMINATE);
            running.is_timed_out = true;
            (running.stop_at, running.kill_at) = (None, Some(now + stop_timeout));
        }
        if running.kill_at.is_some_and(|due| due <= now) {
            let limit = shown(stop_timeout);
            tracing::error!(manifest = name, "the run has not stopped within {limit}: killing it");
            running.control.kill();
            running.kill_at = None;
        }
        running.stop_at.or(running.kill_at)
    }

    pub(super) fn run_ended(&mut self, report: &RunReport) {
        let now = self.host.since_boot();
        let running = self.running.take();
        let is_timed_out = running.is_some_and(|running| running.is_timed_out);
        let request = &report.request;
        let name = redact_credentials(&request.manifest).into_owned();
        log::summary(&name, report);
        // A run that was ended for its time was ended from outside, however
        // gracefully.
        let result = match report.result {
            RunResult::Failed if is_timed_out || self.stopping.is_some() => RunResult::Killed,
            result => result,
        };
        self.metrics.run(&name, request.mode, request.reason, result, self.host.now());
        match request.mode {
            RunMode::Apply => {
                self.metrics.apply_duration(&name, report.took);
                if report.counts.summary.total > 0 {
                    self.metrics.manifest_apply_duration(&name, report.counts.summary.duration);
                }
            }
            RunMode::Health => self.metrics.health_run_duration(&name, report.took),
        }
        self.manifest_run(&request.manifest, report, now);
        self.schedule.finished(report.is_critical, now);
        let (mode, result) = (request.mode.name(), result.name());
        self.last_run = Some(format!("last run: {mode} of {name} {result}"));
        self.tell_status();
    }

    pub(super) fn tell_status(&self) {
        let now = self.host.since_boot();
        let running = self.running.as_ref().map(|running| {
            let (request, mode) = (&running.request, running.request.mode.name());
            format!("running: {mode} of {}", redact_credentials(&request.manifest))
        });
        let next = self.schedule.next_due().map(|due| {
            let seconds = Duration::from_secs(due.saturating_sub(now).as_secs());
            format!("next run in {}", shown(seconds.max(Duration::from_secs(1))))
        });
        let parts: Vec<String> =
            [running.or(next), self.last_run.clone()].into_iter().flatten().collect();
        let status = if parts.is_empty() { "waiting".to_owned() } else { parts.join("; ") };
        self.service.tell(&format!("STATUS={}", status.replace('\n', " ")));
    }
}
