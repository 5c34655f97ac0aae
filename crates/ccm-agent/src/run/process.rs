//! The agent's side of a run: starts the process and reads its messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ccm_host::{Exit, Registry, SERVICE_VARIABLES, Worker, WorkerControl};
use ccm_model::{Diagnostic, Event, RegistryEntry, RegistryQuery};

use super::protocol::{FromRun, LONGEST_LINE, PART, Refusal, ToRun, line, registry};
use super::{Job, JobResult};

/// The hidden command of the binary that makes a run.
pub(super) const COMMAND: &str = "agent-run";

/// A message from a run.
#[derive(Debug)]
pub enum Told {
    /// A resource is finished.
    Event(Box<Event>),
    /// Something worth knowing, or what is wrong with a manifest.
    Diagnostic(Diagnostic),
    /// A line of output of a command, or what a manifest has to say.
    Line(String),
    /// An entry to publish.
    Publish(RegistryEntry, Registry),
}

/// What the agent does for a run. The answers are those of
/// [`Lookup`](ccm_host::Lookup).
pub trait RunServices {
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    fn kv_get(&mut self, bucket: &str, key: &str) -> ccm_host::Result<String>;

    /// The services that a query matches.
    ///
    /// # Errors
    ///
    /// Returns why they are not known.
    fn registrations(&mut self, query: &RegistryQuery) -> ccm_host::Result<Vec<RegistryEntry>>;

    /// Downloads a URL of the network, as the download of this number; the number
    /// of bytes.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be downloaded.
    fn fetch(&mut self, number: usize, url: &str) -> ccm_host::Result<u64>;

    /// The next bytes of that download, at most so many; none at the end.
    ///
    /// # Errors
    ///
    /// Returns why they cannot be read.
    fn read(&mut self, number: usize, most: usize) -> ccm_host::Result<Vec<u8>>;

    /// Takes note of something.
    fn told(&mut self, told: Told);
}

/// How the process of a run ended.
#[derive(Debug)]
pub enum Ended {
    /// It came to its end and said how.
    Finished(Box<JobResult>),
    /// A signal from outside ended it.
    Killed {
        /// Its number.
        signal: i32,
        /// The kernel ended a process for lack of memory meanwhile.
        is_out_of_memory: bool,
    },
    /// It ended by itself without a word, or with one that cannot be read.
    Crashed {
        /// The reason, as far as it is known.
        reason: String,
    },
}

/// A run at work.
#[derive(Debug)]
pub struct RunProcess {
    worker: Worker,
    oom_kills: Option<u64>,
}

impl RunProcess {
    /// Starts the process. It does nothing before [`RunProcess::follow`].
    ///
    /// # Errors
    ///
    /// Fails if no process can be started.
    pub fn start(args: &[&str]) -> ccm_host::Result<Self> {
        let mut all = vec![COMMAND];
        all.extend(args);
        let oom_kills = Worker::oom_kills();
        let worker = Worker::start(&all, SERVICE_VARIABLES, LONGEST_LINE)?;
        Ok(Self { worker, oom_kills })
    }

    /// A handle that stops the process from another thread.
    pub fn control(&self) -> WorkerControl {
        self.worker.control()
    }

    /// Hands it its job, answers what it asks, and waits for its end.
    pub fn follow(mut self, job: &Job, services: &mut dyn RunServices) -> Ended {
        self.worker.send(&line(job));
        let mut result = None;
        let mut broken = None;
        loop {
            let text = match self.worker.receive() {
                Ok(Some(text)) => text,
                Ok(None) => break,
                Err(error) => {
                    broken = Some(error.to_string());
                    break;
                }
            };
            match serde_json::from_slice(&text) {
                Ok(FromRun::Finished(finished)) => result = Some(finished),
                Ok(message) => {
                    if let Some(answer) = answer(message, services) {
                        self.worker.send(&line(&answer));
                    }
                }
                Err(error) => {
                    broken = Some(format!("it sent an invalid message: {error}"));
                    break;
                }
            }
        }
        if broken.is_some() {
            self.worker.control().kill();
        }
        let oom_kills = self.oom_kills;
        let exit = self.worker.wait();
        match (exit, result, broken) {
            (_, _, Some(reason)) => Ended::Crashed { reason },
            (Exit::Code(_), Some(result), None) => Ended::Finished(result),
            (Exit::Signal(signal), ..) if is_from_outside(signal) => {
                let is_out_of_memory = signal == KILL && Worker::oom_kills() > oom_kills;
                Ended::Killed { signal, is_out_of_memory }
            }
            (exit, ..) => Ended::Crashed { reason: format!("its process {exit}") },
        }
    }
}

const KILL: i32 = 9;

/// Whether a signal is one that a process does not get for what it does itself.
fn is_from_outside(signal: i32) -> bool {
    // SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
    !matches!(signal, 3..=8 | 11 | 31)
}

fn answer(message: FromRun, services: &mut dyn RunServices) -> Option<ToRun> {
    match message {
        FromRun::KvGet { bucket, key } => {
            let value = services.kv_get(&bucket, &key);
            return Some(ToRun::Key(value.map_err(|error| Refusal::from(&error))));
        }
        FromRun::Registrations([cluster, protocol, service, address]) => {
            let query = RegistryQuery::new(&cluster, &protocol, &service, &address);
            let query = query.map_err(|message| ccm_host::Error::Network { message, hint: None });
            let entries = query.and_then(|query| services.registrations(&query));
            return Some(ToRun::Entries(entries.map_err(|error| Refusal::from(&error))));
        }
        FromRun::Fetch { number, url } => {
            let fetched = services.fetch(number, &url);
            return Some(ToRun::Fetched(fetched.map_err(|error| Refusal::from(&error))));
        }
        FromRun::Read { number } => {
            let part = services.read(number, PART).map(|bytes| STANDARD.encode(bytes));
            return Some(ToRun::Part(part.map_err(|error| Refusal::from(&error))));
        }
        FromRun::Publish { entry, to } => {
            if let Some(to) = registry(&to) {
                services.told(Told::Publish(entry, to));
            }
            return Some(ToRun::Taken);
        }
        FromRun::Event(event) => services.told(Told::Event(event)),
        FromRun::Diagnostic(diagnostic) => services.told(Told::Diagnostic(diagnostic)),
        FromRun::Output(line) | FromRun::Message(line) => services.told(Told::Line(line)),
        FromRun::Finished(_) => {}
    }
    None
}
