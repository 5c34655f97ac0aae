//! The side of the run's process: receives a job, and sends requests to the
//! agent.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Cursor, Read, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ccm_engine::{
    Diagnosis, Engine, Inputs, Manifest, ManifestError, Observer, RunError, RunExit, RunOptions,
    RunRequest, RunResult, RunSource, Selectors, StateRequest,
};
use ccm_hiera::Document;
use ccm_host::{
    Body, Cancel, CancelReason, Fetch, Host, Lookup, Publish, Registry, Request, StandardInput,
};
use ccm_model::{Diagnostic, Event, RegistryEntry, RegistryQuery};
use ccm_nats::{ContextChoice, Nats};
use ccm_template::Scope;

use super::protocol::{FromRun, ToRun, line, registry, registry_name};
use super::{Applied, Job, JobResult, ValidManifest};

/// The agent, at the other end of the pipes.
#[derive(Debug)]
pub struct Parent {
    pipe: Arc<Pipe>,
    /// Knows how its URLs are written. It is never connected.
    nats: Nats,
}

#[derive(Debug)]
struct Pipe {
    output: Mutex<std::io::Stdout>,
    answers: Mutex<Receiver<ToRun>>,
    /// How many downloads have begun.
    downloads: AtomicUsize,
}

impl Parent {
    /// Takes the job from standard input, and answers later on. When the agent
    /// is gone, the run is cancelled.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the first line.
    pub fn connect(cancel: &Cancel, host: &Host) -> Result<(Arc<Self>, Job), String> {
        let mut input = BufReader::new(StandardInput::of(host));
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
        let pipe = Arc::new(Pipe { output, answers, downloads: AtomicUsize::new(0) });
        let nats = Nats::new(ContextChoice::default(), "agent-run");
        Ok((Arc::new(Self { pipe, nats }), job))
    }

    fn tell(&self, message: &FromRun) {
        self.pipe.tell(message);
    }

    /// Says how the run ended.
    pub fn finish(&self, result: JobResult) {
        self.tell(&FromRun::Finished(Box::new(result)));
    }
}

impl Pipe {
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
        match self.pipe.ask(&question)? {
            ToRun::Key(answer) => answer.map_err(Into::into),
            _ => Err(unexpected()),
        }
    }

    fn registrations(
        &self,
        query: &RegistryQuery,
        _: &Host,
    ) -> ccm_host::Result<Vec<RegistryEntry>> {
        match self.pipe.ask(&FromRun::Registrations(query.parts().map(str::to_owned)))? {
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
        match self.pipe.ask(&FromRun::Publish { entry: entry.clone(), to })? {
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

impl Fetch for Parent {
    fn schemes(&self) -> &'static [&'static str] {
        self.nats.schemes()
    }

    fn check(&self, url: &str) -> Result<(), String> {
        self.nats.check(url)
    }

    /// The agent has the connection, so it downloads and passes the bytes on.
    fn open(&self, request: &Request<'_>, _: &Host) -> ccm_host::Result<Body> {
        let number = self.pipe.downloads.fetch_add(1, Ordering::Relaxed);
        let url = request.url().to_owned();
        let size = match self.pipe.ask(&FromRun::Fetch { number, url })? {
            ToRun::Fetched(size) => size.map_err(|refusal| request.failed(refusal.with_hint()))?,
            _ => return Err(unexpected()),
        };
        let download = Download { pipe: Arc::clone(&self.pipe), number, part: Cursor::default() };
        Ok(Body::new(download).with_length(Some(size)))
    }
}

/// A download that the agent has, read part by part.
struct Download {
    pipe: Arc<Pipe>,
    number: usize,
    part: Cursor<Vec<u8>>,
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.part.position() == self.part.get_ref().len() as u64 {
            let answer = self.pipe.ask(&FromRun::Read { number: self.number });
            let part = match answer.map_err(std::io::Error::other)? {
                ToRun::Part(part) => {
                    part.map_err(|refusal| std::io::Error::other(refusal.with_hint()))?
                }
                _ => return Err(std::io::Error::other(unexpected())),
            };
            self.part = Cursor::new(STANDARD.decode(part).map_err(std::io::Error::other)?);
        }
        self.part.read(into)
    }
}

/// Options, inputs and state of the run of a job.
fn options(job: &Job, engine: &Engine, cancel: Cancel) -> RunOptions {
    let mut options = engine.options(cancel);
    options.mode.noop = job.noop;
    options.mode.health_check_only = job.health_check_only;
    options.register = job.register.as_deref().and_then(registry);
    options
}

/// What templates see beside the manifest.
fn inputs(job: &Job, options: &RunOptions) -> Result<Inputs, String> {
    let variables = options.host.env_all();
    let external = job.data.as_ref().map(|data| Document::parse(&data.name, &data.text));
    let external = external.transpose().map_err(|error| ccm_engine::chain(&error))?;
    let (facts, environ) = (job.facts.facts(), Scope::environ(variables));
    Ok(Inputs { facts, environ, external, ..Inputs::default() })
}

/// Makes the run and tells the agent of it.
pub fn run(
    parent: &Parent,
    job: &Job,
    engine: &Engine,
    cancel: Cancel,
    state: StateRequest,
) -> JobResult {
    let invalid = RefCell::new(None);
    let prepared = engine.prepare(
        RunRequest {
            source: RunSource::Manifest(&|options| load(parent, job, engine, options, &invalid)),
            options: options(job, engine, cancel),
            inputs: &|options| inputs(job, options),
            selectors: Selectors::default(),
            state,
            session: None,
            is_saved: false,
        },
        &mut |text| parent.tell(&FromRun::Message(text.to_owned())),
    );
    let failed = |exit: RunExit, error: String| {
        let invalid = invalid.borrow().clone();
        JobResult { exit: exit.code(false), errors: vec![error], invalid, ..JobResult::default() }
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error @ RunError::Manifest(_)) => {
            return failed(error.exit(), "the manifest cannot be applied".to_owned());
        }
        Err(RunError::Inputs(message)) => return failed(RunExit::Failed, message),
        Err(error) => {
            let message = match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            };
            return failed(error.exit(), message);
        }
    };
    let mut teller = Teller(parent);
    let RunResult { finished, exit, .. } = match prepared.run(&mut teller) {
        Ok(result) => result,
        Err(error) => return failed(RunExit::Failed, error.to_string()),
    };
    if let Some(message) = &finished.post_message {
        teller.message(message);
    }
    let mut errors: Vec<String> =
        finished.losses.iter().map(|loss| ccm_engine::chain(loss)).collect();
    if exit.is_stopped() {
        errors.push("the run was interrupted".to_owned());
    }
    let invalid = invalid.take();
    let applied = if invalid.is_some() { Applied::LastValid } else { Applied::Newest };
    JobResult {
        exit: exit.code(false),
        summary: finished.report.summary,
        errors,
        invalid,
        applied: Some(applied),
    }
}

/// Loads the manifest, or the last valid one if it is invalid: then `invalid` says
/// why.
fn load(
    parent: &Parent,
    job: &Job,
    engine: &Engine,
    options: &RunOptions,
    invalid: &RefCell<Option<String>>,
) -> Result<Manifest, ManifestError> {
    let error = match load_newest(job, engine, options) {
        Ok(manifest) => return Ok(manifest),
        Err(error) => error,
    };
    let diagnostics = error.diagnostics(&name(job));
    let reason = diagnostics.first().map(|first| match first.line {
        Some(line) => format!("line {line}: {}", first.message),
        None => first.message.clone(),
    });
    if !job.is_known_invalid {
        let diagnostics = diagnostics.into_iter().map(FromRun::Diagnostic);
        diagnostics.for_each(|diagnostic| parent.tell(&diagnostic));
    }
    if !matches!(error, ManifestError::Invalid(_)) {
        return Err(error);
    }
    invalid.replace(reason);
    match &job.last_valid {
        Some(last) => load_last_valid(last, job, engine, options).map_err(|_| error),
        None => Err(error),
    }
}

fn name(job: &Job) -> String {
    job.url.clone().unwrap_or_else(|| job.manifest.display().to_string())
}

/// A manifest that was valid may not be so any more with other data or facts.
fn load_last_valid(
    manifest: &ValidManifest,
    job: &Job,
    engine: &Engine,
    options: &RunOptions,
) -> Result<Manifest, ManifestError> {
    match manifest {
        ValidManifest::Copy(path) => engine.load_copy(path, &name(job), options),
        ValidManifest::Text(text) => engine.load_text(&job.manifest, text.clone(), options),
    }
}

fn load_newest(
    job: &Job,
    engine: &Engine,
    options: &RunOptions,
) -> Result<Manifest, ManifestError> {
    match &job.url {
        Some(url) => engine.load_copy(&job.manifest, url, options),
        None => engine.load(&ccm_engine::SourceRef::Path(job.manifest.clone()), options),
    }
}
