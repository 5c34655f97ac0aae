//! Messages between the agent and a run: one JSON object per line.

use std::path::PathBuf;

use ccm_host::Registry;
use ccm_model::{Diagnostic, Event, RegistryEntry, Summary};
use serde::{Deserialize, Serialize};

use super::FactLayers;

/// A line of more bytes than this ends a run.
pub(super) const LONGEST_LINE: usize = 128 << 20;

/// The job of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The file to apply.
    pub manifest: PathBuf,
    /// Where it was fetched from, without credentials; `None` for a file that
    /// the configuration names.
    pub url: Option<String>,
    /// What to apply if the manifest is invalid.
    pub last_valid: Option<ValidManifest>,
    /// The agent has logged what is wrong with the manifest.
    pub is_known_invalid: bool,
    /// Facts of the machine.
    pub facts: FactLayers,
    /// Data that overrides that of the manifest.
    pub data: Option<DataDocument>,
    /// Changes nothing.
    pub noop: bool,
    /// Only runs health checks.
    pub health_check_only: bool,
    /// Where services are published: `nats` or `jetstream`.
    pub register: Option<String>,
}

/// A manifest that was valid when it was applied before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ValidManifest {
    /// The file in its copy.
    Copy(PathBuf),
    /// The text of a file that the configuration names.
    Text(String),
}

/// A document with hierarchical data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataDocument {
    /// Its display name, without credentials.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// How a run that came to its end has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobResult {
    /// The exit code of `apply`.
    pub exit: u8,
    /// How many resources have which outcome, and how long they took.
    pub summary: Summary,
    /// Why the run could not be made, or not wholly.
    pub errors: Vec<String>,
    /// What is wrong with the manifest, in short.
    pub invalid: Option<String>,
    /// Which manifest was applied, if any.
    pub applied: Option<Applied>,
}

/// Which manifest a run has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    /// The newest one.
    Newest,
    /// The last valid one, as the newest is invalid.
    LastValid,
}

/// What a run says to the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromRun {
    /// A resource is finished.
    Event(Box<Event>),
    /// Something worth knowing, or what is wrong with a manifest.
    Diagnostic(Diagnostic),
    /// A line of output of a command.
    Output(String),
    /// A message of a manifest (`pre_message`, `post_message`).
    Message(String),
    /// Asks for a key.
    KvGet { bucket: String, key: String },
    /// Asks for services.
    Registrations([String; 4]),
    /// Asks for what a URL of the network has.
    Fetch { number: usize, url: String },
    /// Asks for the next part of it.
    Read { number: usize },
    /// Hands over an entry to publish.
    Publish { entry: RegistryEntry, to: String },
    /// The last line.
    Finished(Box<JobResult>),
}

/// What the agent says to a run after its job: one answer to each question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToRun {
    Key(Result<String, Refusal>),
    Entries(Result<Vec<RegistryEntry>, Refusal>),
    Taken,
    /// The number of bytes.
    Fetched(Result<u64, Refusal>),
    /// In Base64; empty at the end.
    Part(Result<String, Refusal>),
}

/// Why a question has no answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl From<&ccm_host::Error> for Refusal {
    fn from(error: &ccm_host::Error) -> Self {
        Self { message: ccm_engine::chain(error), hint: error.hint() }
    }
}

impl Refusal {
    /// The reason, with the advice where there is no place of its own for it.
    pub(super) fn with_hint(self) -> String {
        match self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message,
        }
    }
}

impl From<Refusal> for ccm_host::Error {
    fn from(Refusal { message, hint }: Refusal) -> Self {
        Self::Network { message, hint }
    }
}

/// The word for where registrations are published.
pub(crate) fn registry_name(registry: Registry) -> &'static str {
    match registry {
        Registry::Nats => "nats",
        Registry::JetStream => "jetstream",
    }
}

pub(crate) fn registry(name: &str) -> Option<Registry> {
    [Registry::Nats, Registry::JetStream].into_iter().find(|to| registry_name(*to) == name)
}

/// How many bytes of a download go into one line.
pub(super) const PART: usize = 256 << 10;

pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // All of these have a notation in JSON, in which a line end is escaped.
    serde_json::to_vec(message).unwrap_or_default()
}
