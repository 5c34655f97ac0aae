//! Errors that end a command.

use std::path::PathBuf;
use std::sync::Arc;

use ccm_author::why::WhyError;
use ccm_engine::{
    Diagnosis, Difference, EnsureError, Loss, ManifestError, RunError, SavedPlanError,
    SelectionError, SessionError, StateError, StatusError, UndoError,
};
use ccm_host::LockError;
use ccm_model::{Diagnostic, RequestError, Severity};

use crate::exit::Exit;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    #[error("{message}")]
    Invalid { message: String, hint: Option<String> },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    #[error("the plan is stale: nothing was changed{}", listed(differences))]
    Stale { differences: Vec<Difference> },
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Resource(#[from] ccm_engine::Error),
    #[error(transparent)]
    Why(#[from] WhyError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error(transparent)]
    Facts(#[from] ccm_facts::Error),
    #[error("cannot resolve data")]
    Data(#[from] ccm_hiera::Error),
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
    #[error(transparent)]
    Lock(#[from] ccm_host::LockError),
    #[error("cannot write to standard output")]
    Output { source: std::io::Error },
    #[error("cannot write {}", path.display())]
    File { path: PathBuf, source: ccm_host::Error },
    #[error("cannot write report {}", path.display())]
    Report { path: PathBuf, source: ccm_host::Error },
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::Manifest(ManifestError::Interrupted { reason, .. })
            | Self::Lock(LockError::Cancelled(reason))
            | Self::State(StateError::Lock(LockError::Cancelled(reason))) => (*reason).into(),
            Self::Lock(LockError::Busy { .. })
            | Self::State(StateError::Lock(LockError::Busy { .. })) => Exit::Busy,
            _ => Exit::Failed,
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } | Self::Invalid { hint, .. } => hint.clone(),
            Self::Manifest(error) => error.hint(),
            Self::Selection(error) => Some(error.hint().to_owned()),
            Self::SavedPlan(error) => error.hint(),
            Self::Stale { .. } => {
                Some("make a new plan with `ccm plan MANIFEST --out FILE`".to_owned())
            }
            Self::Resource(error) => error.hint(),
            Self::Host(error) => error.hint(),
            Self::File { source, .. } | Self::Report { source, .. } => match source {
                ccm_host::Error::Symlink { .. } | ccm_host::Error::NotAFile { .. } => {
                    Some("give the path of a regular file, or `-` for standard output".to_owned())
                }
                ccm_host::Error::NotADirectory { .. } => {
                    Some("create the directory first".to_owned())
                }
                source => source.hint(),
            },
            Self::Lock(LockError::Busy { .. }) => {
                Some("try again when it is done, or wait longer with --lock-timeout".to_owned())
            }
            Self::State(error) => error.hint(),
            Self::Why(error) => error.hint.clone(),
            Self::Undo(error) => error.hint(),
            Self::Facts(error) => error.hint(),
            Self::Data(error) => error.hint(),
            Self::Request(_) | Self::Session(_) | Self::Lock(_) | Self::Output { .. } => None,
        }
    }

    /// Everything that went wrong, as other programs read it. `name` is what the
    /// command was about.
    pub(crate) fn diagnostics(&self, name: &str) -> Vec<Diagnostic> {
        match (self, self.diagnosis()) {
            (Self::Manifest(error), _) => error.diagnostics(name),
            (_, Some(diagnosis)) => diagnosis.diagnostics().collect(),
            _ => vec![Diagnostic {
                hint: self.hint(),
                severity: Severity::Error,
                ..Diagnostic::warning(ccm_engine::chain(self))
            }],
        }
    }

    /// The findings to show instead of a message.
    pub(crate) fn diagnosis(&self) -> Option<Diagnosis> {
        match self {
            Self::Manifest(ManifestError::Invalid(diagnosis)) => Some(diagnosis.clone()),
            Self::Data(error) => {
                let (source, findings) = error.findings()?;
                Some(Diagnosis { source: Arc::clone(source), findings })
            }
            Self::Facts(ccm_facts::Error::Syntax { document, finding }) => {
                let findings = vec![(**finding).clone()];
                Some(Diagnosis { source: Arc::clone(document), findings })
            }
            _ => None,
        }
    }
}

/// One difference per line.
fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  {difference}")).collect()
}

impl From<RunError<Error>> for Error {
    fn from(error: RunError<Error>) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            RunError::State(error) => error.into(),
            RunError::Inputs(error) => error,
            RunError::Manifest(error) => error.into(),
            RunError::Selection(error) => error.into(),
            RunError::SavedPlan(error) => error.into(),
            RunError::Stale { differences } => Self::Stale { differences },
            RunError::Session(error) => error.into(),
            RunError::NoSession { .. } => Self::Invalid { message, hint },
            RunError::Undo(error) => error.into(),
            RunError::Host(error) => error.into(),
        }
    }
}

impl From<Loss> for Error {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Session(error) => error.into(),
            Loss::Disk(error) => error.into(),
        }
    }
}

impl From<EnsureError> for Error {
    fn from(error: EnsureError) -> Self {
        match error {
            EnsureError::Request(error) => error.into(),
            EnsureError::Data(error) => error.into(),
            EnsureError::State(error) => error.into(),
        }
    }
}

impl From<StatusError> for Error {
    fn from(error: StatusError) -> Self {
        match error {
            StatusError::Request(error) => error.into(),
            StatusError::Data(error) => error.into(),
            StatusError::Resource(error) => error.into(),
        }
    }
}
