//! Messages between the agent and a run: one JSON object per line.

use std::path::PathBuf;
use std::time::Duration;

use ccm_host::Registry;
use ccm_model::{Diagnostic, Event, RegistryEntry};
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
    /// Resources that had their turn.
    pub total: usize,
    /// Resources that changed.
    pub changed: usize,
    /// Resources that failed.
    pub failed: usize,
    /// Resources that were skipped.
    pub skipped: usize,
    /// Health checks by status: OK, warning, critical, unknown.
    pub health_checks: [usize; 4],
    /// How long the manifest took.
    pub duration: Duration,
    /// Why the run could not be made, or not wholly.
    pub errors: Vec<String>,
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
    /// Hands over an entry to publish.
    Publish { entry: RegistryEntry, to: String },
    /// The last line.
    Finished(JobResult),
}

/// What the agent says to a run after its job: one answer to each question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToRun {
    Key(Result<String, Refusal>),
    Entries(Result<Vec<RegistryEntry>, Refusal>),
    Taken,
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

pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // All of these have a notation in JSON, in which a line end is escaped.
    serde_json::to_vec(message).unwrap_or_default()
}
