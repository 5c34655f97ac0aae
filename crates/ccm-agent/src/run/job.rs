//! The side of the run's process: receives a job, and sends requests to the
//! agent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ccm_engine::{Diagnosis, Engine, Inputs, Manifest, Observer, RunOptions, Stop};
use ccm_hiera::Document;
use ccm_host::{Cancel, CancelReason, Host, Lookup, Publish, Registry};
use ccm_model::{Diagnostic, Event, RegistryEntry, RegistryQuery};
use ccm_template::Scope;

use super::protocol::{FromRun, ToRun, line, registry, registry_name};
use super::{Job, JobResult};

/// The agent, at the other end of the pipes.
#[derive(Debug)]
pub struct Parent {
    output: Mutex<std::io::Stdout>,
    answers: Mutex<Receiver<ToRun>>,
}

impl Parent {
    /// Takes the job from standard input, and answers later on. When the agent
    /// is gone, the run is cancelled.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the first line.
    pub fn connect(cancel: &Cancel, host: &Host) -> Result<(Arc<Self>, Job), String> {
        let mut input = BufReader::new(host.standard_input());
        let mut first = String::new();
        input.read_line(&mut first).map_err(|error| error.to_string())?;
        let job = serde_json::from_str(&first)
            .map_err(|error| format!("only the agent starts this command: {error}"))?;
        let (sender, answers) = channel();
        let cancel = cancel.clone();
        let read = move || read_answers(input, &sender, &cancel);
        let spawned = std::thread::Builder::new().name("agent".to_owned()).spawn(read);
        spawned.map_err(|error| error.to_string())?;
        let (output, answers) = (Mutex::new(std::io::stdout()), Mutex::new(answers));
        Ok((Arc::new(Self { output, answers }), job))
    }

    fn tell(&self, message: &FromRun) {
        let mut text = line(message);
        text.push(b'\n');
        let mut output = hold(&self.output);
        // Without an agent the run is cancelled where its answers are read.
        let _ = output.write_all(&text).and_then(|()| output.flush());
    }

    fn ask(&self, question: &FromRun) -> ccm_host::Result<ToRun> {
        // Held until the answer has come: questions do not cross.
        let answers = hold(&self.answers);
        self.tell(question);
        answers.recv().map_err(|_| ccm_host::Error::Network {
            message: "the run was interrupted".to_owned(),
            hint: None,
        })
    }

    /// Says how the run ended.
    pub fn finish(&self, result: JobResult) {
        self.tell(&FromRun::Finished(result));
    }
}

fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_answers(
    input: BufReader<ccm_host::StandardInput>,
    sender: &Sender<ToRun>,
    cancel: &Cancel,
) {
    for line in input.split(b'\n') {
        let Some(answer) = line.ok().and_then(|line| serde_json::from_slice(&line).ok()) else {
            break;
        };
        if sender.send(answer).is_err() {
            break;
        }
    }
    // The agent has closed the pipe, so no output would be read.
    cancel.cancel(CancelReason::Requested);
}

fn unexpected() -> ccm_host::Error {
    let message = "unexpected answer from the agent".to_owned();
    ccm_host::Error::Network { message, hint: None }
}

impl Lookup for Parent {
    fn kv_get(&self, bucket: &str, key: &str, _: &Host) -> ccm_host::Result<String> {
        let question = FromRun::KvGet { bucket: bucket.to_owned(), key: key.to_owned() };
        match self.ask(&question)? {
            ToRun::Key(answer) => answer.map_err(Into::into),
            _ => Err(unexpected()),
        }
    }

    fn registrations(
        &self,
        query: &RegistryQuery,
        _: &Host,
    ) -> ccm_host::Result<Vec<RegistryEntry>> {
        match self.ask(&FromRun::Registrations(query.parts().map(str::to_owned)))? {
            ToRun::Entries(answer) => answer.map_err(Into::into),
            _ => Err(unexpected()),
        }
    }
}

impl Publish for Parent {
    /// Hands the entry over: from here on it is the agent that tries.
    fn publish(
        &self,
        entry: &RegistryEntry,
        to: Registry,
        _: Duration,
        _: &Host,
    ) -> ccm_host::Result<()> {
        let to = registry_name(to).to_owned();
        match self.ask(&FromRun::Publish { entry: entry.clone(), to })? {
            ToRun::Taken => Ok(()),
            _ => Err(unexpected()),
        }
    }
}

/// Tells the agent what happens.
struct Teller<'a>(&'a Parent);

impl Observer for Teller<'_> {
    fn output(&mut self, line: &str) {
        self.0.tell(&FromRun::Output(line.to_owned()));
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        for diagnostic in diagnosis.diagnostics() {
            self.0.tell(&FromRun::Diagnostic(diagnostic));
        }
    }

    fn warning(&mut self, warning: &Diagnostic) {
        self.0.tell(&FromRun::Diagnostic(warning.clone()));
    }

    fn message(&mut self, text: &str) {
        self.0.tell(&FromRun::Message(text.to_owned()));
    }

    fn finished(&mut self, event: &Event, _diff: Option<&str>) {
        self.0.tell(&FromRun::Event(Box::new(event.clone())));
    }
}

/// Sets the options that the job names.
///
/// # Errors
///
/// Returns what is wrong with its data.
pub fn prepare(job: &Job, options: &mut RunOptions) -> Result<(), String> {
    options.mode.noop = job.noop;
    options.mode.health_check_only = job.health_check_only;
    options.register = job.register.as_deref().and_then(registry);
    let variables = options.host.env_all();
    let external = job.data.as_ref().map(|data| Document::parse(&data.name, &data.text));
    let external = external.transpose().map_err(|error| ccm_engine::chain(&error))?;
    let (facts, environ) = (job.facts.facts(), Scope::environ(variables));
    options.inputs = Inputs { facts, environ, external, ..Inputs::default() };
    Ok(())
}

/// Makes the run and tells the agent of it.
pub fn run(parent: &Parent, job: &Job, engine: &Engine, options: &RunOptions) -> JobResult {
    let mut teller = Teller(parent);
    let manifest = match load(job, engine, options) {
        Ok(manifest) => manifest,
        Err(error) => {
            for diagnostic in error.diagnostics(&name(job)) {
                parent.tell(&FromRun::Diagnostic(diagnostic));
            }
            let exit = match options.host.cancel().reason() {
                Some(CancelReason::Signal(signal)) => interrupted(signal),
                _ => 1,
            };
            let errors = vec!["the manifest cannot be applied".to_owned()];
            return JobResult { exit, errors, ..JobResult::default() };
        }
    };
    let finished = if job.noop {
        engine.preview(manifest, options, None, &mut teller).finished
    } else {
        engine.apply(manifest, options, None, &mut teller)
    };
    if let Some(message) = finished.post_message.as_ref().filter(|_| finished.is_without_errors()) {
        teller.message(message);
    }
    let summary = &finished.report.summary;
    let mut errors: Vec<String> =
        finished.losses.iter().map(|loss| ccm_engine::chain(loss)).collect();
    let has_failed = summary.failed + summary.requirements_unmet > 0 || !errors.is_empty();
    let exit = match finished.stop {
        Some(Stop::Cancelled(CancelReason::Signal(signal))) => interrupted(signal),
        Some(Stop::Cancelled(_)) => 1,
        _ => u8::from(has_failed),
    };
    if let Some(Stop::Cancelled(_)) = finished.stop {
        errors.push("the run was interrupted".to_owned());
    }
    let checks = summary.health_checks;
    JobResult {
        exit,
        total: summary.total,
        changed: summary.changed,
        failed: summary.failed + summary.requirements_unmet,
        skipped: summary.skipped,
        health_checks: [checks.ok, checks.warning, checks.critical, checks.unknown],
        duration: summary.duration,
        errors,
    }
}

fn interrupted(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}

fn name(job: &Job) -> String {
    job.url.clone().unwrap_or_else(|| job.manifest.display().to_string())
}

fn load(
    job: &Job,
    engine: &Engine,
    options: &RunOptions,
) -> Result<Manifest, ccm_engine::ManifestError> {
    match &job.url {
        Some(url) => engine.load_copy(&job.manifest, url, options),
        None => engine.load(&ccm_engine::SourceRef::Path(job.manifest.clone()), options),
    }
}
