//! Performs one run in a separate thread, from its request to its report.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ccm_host::{Cancel, CancelReason, Host, Lookup as _, Registry, System, WorkerControl};
use ccm_model::{RegistryEntry, RegistryQuery};
use ccm_nats::Nats;

use super::facts::{FRESH, FactStore};
use super::log;
use crate::Metrics;
use crate::metrics::{RunMode, RunResult};
use crate::registrar::{Registrar, Renewal};
use crate::run::{Asked, DataDocument, Ended, Job, JobResult, RunProcess, Told, registry_name};
use crate::schedule::RunRequest;
use crate::sources::{LastGood, Source, SourceContent};

/// What a run needs.
pub(super) struct Performance {
    pub(super) request: RunRequest,
    /// What logs and metrics call the manifest: without credentials.
    pub(super) name: String,
    pub(super) manifest: Content,
    pub(super) is_local: bool,
    pub(super) data: Option<Content>,
    /// What the data is called.
    pub(super) data_name: String,
    pub(super) facts: Arc<FactStore>,
    pub(super) noop: bool,
    pub(super) register: Option<Registry>,
    pub(super) renewal: Renewal,
    pub(super) registrar: Option<Arc<Registrar>>,
    pub(super) nats: Nats,
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
        };
        match ended {
            Err(reason) => failed(RunResult::Failed, 1, vec![reason]),
            Ok(Ended::Crashed { reason }) => {
                failed(RunResult::Crashed, 1, vec![format!("the run crashed: {reason}")])
            }
            Ok(Ended::Killed { signal, is_out_of_memory }) => {
                let because = if is_out_of_memory { ": the machine is out of memory" } else { "" };
                let error = format!("the run was killed by signal {signal}{because}");
                let exit = u8::try_from(128 + signal).unwrap_or(1);
                failed(RunResult::Killed, exit, vec![error])
            }
            Ok(Ended::Finished(counts)) => {
                let result = if counts.exit == 0 { RunResult::Ok } else { RunResult::Failed };
                let (exit, errors) = (counts.exit, counts.errors.clone());
                let is_whole = counts.errors.is_empty();
                let is_critical = is_whole.then_some(counts.health_checks[2] > 0);
                RunReport { request, result, took, counts, errors, is_critical, exit }
            }
        }
    }

    fn follow(&self, control: &RunControl, host: &Host) -> Result<Ended, String> {
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
        let job = Job {
            manifest: manifest.clone(),
            url: (!self.is_local).then(|| self.name.clone()),
            facts: (*facts).clone(),
            data,
            noop: self.noop,
            health_check_only: !is_apply,
            register: self.register.map(|to| registry_name(to).to_owned()),
        };
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let process = RunProcess::start(host, &args).map_err(|error| ccm_engine::chain(&error))?;
        if !control.started(process.control()) {
            process.control().kill();
        }
        let mut answering = Answering { run: self, host, waiting: Vec::new() };
        let ended = process.follow(&job, &mut answering);
        answering.publish(false);
        Ok(ended)
    }
}

/// The agent as its run sees it.
struct Answering<'a> {
    run: &'a Performance,
    host: &'a Host,
    /// Entries of the resource at work.
    waiting: Vec<(RegistryEntry, Registry)>,
}

impl Answering<'_> {
    fn publish(&mut self, has_checks: bool) {
        let Some(registrar) = &self.run.registrar else { return };
        for (entry, to) in self.waiting.drain(..) {
            registrar.publish(entry, to, has_checks, self.run.renewal);
        }
    }
}

impl Asked for Answering<'_> {
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
