//! Performs one run in a separate thread, from its request to its report.

use std::io::Read as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ccm_engine::RunExit;
use ccm_host::{
    Cancel, CancelReason, Digest, Fetched, Host, Lookup as _, Registry, Request, System,
    WorkerControl,
};
use ccm_model::{RegistryEntry, RegistryQuery};
use ccm_nats::Nats;

use super::facts::{FRESH, FactStore};
use super::log;
use crate::Metrics;
use crate::metrics::{RunMode, RunResult};
use crate::registrar::{Registrar, Renewal};
use crate::run::{
    Applied, DataDocument, Ended, Job, JobResult, RunProcess, RunServices, Told, ValidManifest,
    registry_name,
};
use crate::schedule::RunRequest;
use crate::sources::{LastGood, Source, SourceContent};

/// What a run needs.
pub(super) struct Performance {
    pub(super) request: RunRequest,
    /// What logs and metrics call the manifest: without credentials.
    pub(super) name: String,
    pub(super) manifest: Content,
    pub(super) source: Arc<Source>,
    /// The digest of the last manifest that was invalid.
    pub(super) rejected: Arc<Mutex<Option<Digest>>>,
    pub(super) is_local: bool,
    pub(super) data: Option<Content>,
    /// What the data is called.
    pub(super) data_name: String,
    pub(super) facts: Arc<FactStore>,
    pub(super) noop: bool,
    pub(super) register: Option<Registry>,
    pub(super) renewal: Renewal,
    pub(super) registrar: Option<Arc<Registrar>>,
    pub(super) nats: Arc<Nats>,
    pub(super) system: System,
    pub(super) metrics: Arc<Metrics>,
    pub(super) args: Vec<String>,
}

/// What a run gets of a source.
pub(super) enum Content {
    /// A copy, which stays until the run has ended; `None` if there is none.
    Copy(Option<Arc<LastGood>>),
    /// A local file, which the thread of the run reads.
    Local(Arc<Source>),
}

impl Content {
    pub(super) fn of(source: &Arc<Source>, is_local: bool) -> Self {
        if is_local { Self::Local(Arc::clone(source)) } else { Self::Copy(source.current()) }
    }

    fn get(&self) -> Option<Arc<LastGood>> {
        match self {
            Self::Copy(copy) => copy.clone(),
            Self::Local(source) => source.current(),
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct RunReport {
    pub(super) request: RunRequest,
    pub(super) result: RunResult,
    pub(super) took: Duration,
    pub(super) counts: JobResult,
    /// What is to be said beside the events.
    pub(super) errors: Vec<String>,
    /// What its health checks found, if it came to its end.
    pub(super) is_critical: Option<bool>,
    /// The exit code that `apply` would have.
    pub(super) exit: u8,
    /// The digest of the manifest that was applied, if it is known.
    pub(super) applied: Option<Digest>,
}

impl RunReport {
    /// A run that was not made.
    pub(super) fn not_made(request: RunRequest, reason: String) -> Self {
        Self {
            request,
            result: RunResult::Failed,
            took: Duration::ZERO,
            counts: JobResult::default(),
            errors: vec![reason],
            is_critical: None,
            exit: 1,
            applied: None,
        }
    }
}

/// Ends a run from another thread.
#[derive(Clone, Default)]
pub(super) struct RunControl(Arc<Mutex<Controlled>>);

#[derive(Default)]
struct Controlled {
    worker: Option<WorkerControl>,
    /// Ends questions that wait for an answer.
    cancel: Cancel,
    is_stopped: bool,
}

impl RunControl {
    pub(super) fn new() -> std::io::Result<Self> {
        let controlled = Controlled { cancel: Cancel::new()?, ..Controlled::default() };
        Ok(Self(Arc::new(Mutex::new(controlled))))
    }

    /// Asks the run to stop.
    pub(super) fn stop(&self, signal: i32) {
        let mut controlled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        controlled.is_stopped = true;
        controlled.cancel.cancel(CancelReason::Signal(signal));
        if let Some(worker) = &controlled.worker {
            worker.stop(signal);
        }
    }

    /// Kills it with its process group.
    pub(super) fn kill(&self) {
        let mut controlled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        controlled.is_stopped = true;
        controlled.cancel.cancel(CancelReason::Requested);
        if let Some(worker) = &controlled.worker {
            worker.kill();
        }
    }

    fn cancel(&self) -> Cancel {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel.clone()
    }

    /// Takes note of the process; false if the run was stopped before.
    fn started(&self, worker: WorkerControl) -> bool {
        let mut controlled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        controlled.worker = Some(worker);
        !controlled.is_stopped
    }
}

impl Performance {
    /// Makes the run.
    pub(super) fn perform(self, control: &RunControl) -> RunReport {
        // It downloads for the run, which has no connection.
        let host = self.system.begin(control.cancel());
        let begin = host.since_boot();
        let ended = self.follow(control, &host);
        let took = host.since_boot().saturating_sub(begin);
        let request = self.request;
        let failed = |result, exit, errors| RunReport {
            request: request.clone(),
            result,
            took,
            counts: JobResult::default(),
            errors,
            is_critical: None,
            exit,
            applied: None,
        };
        match ended {
            Err(reason) => failed(RunResult::Failed, 1, vec![reason]),
            Ok((Ended::Crashed { reason }, _)) => {
                failed(RunResult::Crashed, 1, vec![format!("the run crashed: {reason}")])
            }
            Ok((Ended::Killed { signal, is_out_of_memory }, _)) => {
                let because = if is_out_of_memory { ": the machine is out of memory" } else { "" };
                let error = format!("the run was killed by signal {signal}{because}");
                let exit = RunExit::Interrupted(signal).code(false);
                failed(RunResult::Killed, exit, vec![error])
            }
            Ok((Ended::Finished(counts), applied)) => {
                let result = if counts.exit == 0 { RunResult::Ok } else { RunResult::Failed };
                let (exit, errors) = (counts.exit, counts.errors.clone());
                let is_whole = counts.errors.is_empty();
                let is_critical = is_whole.then_some(counts.summary.health_checks.critical > 0);
                RunReport {
                    request,
                    result,
                    took,
                    counts: *counts,
                    errors,
                    is_critical,
                    exit,
                    applied,
                }
            }
        }
    }

    /// How the run ended, and the digest of the manifest that it has applied.
    fn follow(&self, control: &RunControl, host: &Host) -> Result<(Ended, Option<Digest>), String> {
        let is_apply = self.request.mode == RunMode::Apply;
        let copy = self.manifest.get().ok_or("there is no manifest to apply")?;
        let SourceContent::Manifest(manifest) = &copy.content else {
            return Err("the download is not a manifest".to_owned());
        };
        let data =
            match self.data.as_ref().map(|data| data.get().ok_or("there is no external data")) {
                Some(copy) => match &copy?.content {
                    SourceContent::Document(text) => {
                        Some(DataDocument { name: self.data_name.clone(), text: text.clone() })
                    }
                    SourceContent::Manifest(_) => {
                        return Err("the external data is not data".to_owned());
                    }
                },
                None => None,
            };
        // Health checks use what is there.
        let facts = if is_apply { self.facts.get(FRESH) } else { self.facts.at_hand() };
        let facts = facts.ok_or("there are no facts about the machine")?;
        let last_valid = self.source.last_valid(&copy, host);
        let job = Job {
            manifest: manifest.clone(),
            url: (!self.is_local).then(|| self.name.clone()),
            last_valid: last_valid.as_deref().map(|last| match &last.content {
                SourceContent::Manifest(path) => ValidManifest::Copy(path.clone()),
                SourceContent::Document(text) => ValidManifest::Text(text.clone()),
            }),
            is_known_invalid: copy.digest.is_some() && *self.rejected() == copy.digest,
            facts: (*facts).clone(),
            data,
            noop: self.noop,
            health_check_only: !is_apply,
            register: self.register.map(|to| registry_name(to).to_owned()),
        };
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let process = RunProcess::start(&args).map_err(|error| ccm_engine::chain(&error))?;
        if !control.started(process.control()) {
            process.control().kill();
        }
        let mut answering = Answering { run: self, host, waiting: Vec::new(), download: None };
        let ended = process.follow(&job, &mut answering);
        answering.publish(false);
        let Ended::Finished(result) = &ended else { return Ok((ended, None)) };
        let applied = match result.applied {
            Some(Applied::Newest) => {
                self.source.confirm(&copy, host);
                copy.digest
            }
            Some(Applied::LastValid) => last_valid.and_then(|last| last.digest),
            None => None,
        };
        *self.rejected() = copy.digest.filter(|_| result.invalid.is_some());
        Ok((ended, applied))
    }

    fn rejected(&self) -> MutexGuard<'_, Option<Digest>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agent as its run sees it.
struct Answering<'a> {
    run: &'a Performance,
    host: &'a Host,
    /// Entries of the resource at work.
    waiting: Vec<(RegistryEntry, Registry)>,
    /// The download that the run reads.
    download: Option<(usize, Fetched)>,
}

impl Answering<'_> {
    fn publish(&mut self, has_checks: bool) {
        let Some(registrar) = &self.run.registrar else { return };
        for (entry, to) in self.waiting.drain(..) {
            registrar.publish(entry, to, has_checks, self.run.renewal);
        }
    }
}

impl RunServices for Answering<'_> {
    fn kv_get(&mut self, bucket: &str, key: &str) -> ccm_host::Result<String> {
        self.run.nats.kv_get(bucket, key, self.host)
    }

    fn registrations(&mut self, query: &RegistryQuery) -> ccm_host::Result<Vec<RegistryEntry>> {
        let found = self.run.nats.registrations(query, self.host);
        for warning in self.host.take_warnings() {
            tracing::warn!(manifest = self.run.name, "{warning}");
        }
        found
    }

    fn fetch(&mut self, number: usize, url: &str) -> ccm_host::Result<u64> {
        // One at a time, as a run reads one at a time.
        self.download = None;
        let fetched = self.host.fetch_file(&Request::new(url))?;
        let size = fetched.size;
        self.download = Some((number, fetched));
        Ok(size)
    }

    fn read(&mut self, number: usize, most: usize) -> ccm_host::Result<Vec<u8>> {
        let failed = |reason: &dyn std::fmt::Display| {
            let message = format!("cannot read the download: {reason}");
            ccm_host::Error::Network { message, hint: None }
        };
        let download = self.download.as_mut().filter(|(current, _)| *current == number);
        let (_, fetched) = download.ok_or_else(|| failed(&"another one has begun"))?;
        let mut part = Vec::new();
        let read = (&mut fetched.file).take(most as u64).read_to_end(&mut part);
        read.map_err(|error| failed(&error))?;
        Ok(part)
    }

    fn told(&mut self, told: Told) {
        let name = &self.run.name;
        match told {
            Told::Event(event) => {
                self.run.metrics.event(&event, self.host.now());
                log::event(name, &event);
                self.publish(!event.health_check.is_empty());
            }
            Told::Diagnostic(diagnostic) => log::diagnostic(name, &diagnostic),
            Told::Line(line) => log::line(name, &line),
            Told::Publish(entry, to) => self.waiting.push((entry, to)),
        }
    }
}
