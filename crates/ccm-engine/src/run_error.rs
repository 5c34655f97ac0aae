//! Why a run did not begin, and what the end of one means.

use std::path::PathBuf;

use ccm_host::{CancelReason, LockError};
use ccm_model::{Diagnostic, Severity, Summary};

use crate::manifest::ManifestError;
use crate::run::{Finished, Stop};
use crate::saved_plan::{Difference, SavedPlanError, VerifyError};
use crate::selection::SelectionError;
use crate::session::SessionError;
use crate::state_access::StateError;
use crate::undo::UndoError;

/// Why a run did not begin. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// The state directory cannot be used, or another run goes on.
    #[error(transparent)]
    State(#[from] StateError),
    /// The inputs cannot be read.
    #[error("{0}")]
    Inputs(E),
    /// The manifest cannot be read, or is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A selector that matches nothing.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The saved plan cannot be used.
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    /// The machine or the sources are no longer as they were when planned.
    #[error("the plan is stale: nothing was changed{}", listed(differences))]
    Stale {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// The session cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session was removed.
    #[error("there is no session in {}", path.display())]
    NoSession {
        /// Its directory.
        path: PathBuf,
    },
    /// There is nothing to undo, or not as requested.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// An error from `ccm_host`.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

impl<E> From<VerifyError> for RunError<E> {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Manifest(error) => error.into(),
            VerifyError::Selection(error) => error.into(),
        }
    }
}

impl<E> RunError<E> {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::State(error) => error.hint(),
            Self::Manifest(error) => error.hint(),
            Self::Selection(error) => Some(error.hint().to_owned()),
            Self::SavedPlan(error) => error.hint(),
            Self::Stale { .. } => {
                Some("make a new plan with `ccm plan MANIFEST --out FILE`".to_owned())
            }
            Self::NoSession { .. } => Some(
                "it was removed: run `unset CCM_SESSION_STORE`, or start one with `eval \"$(ccm \
                 session new)\"`"
                    .to_owned(),
            ),
            Self::Undo(error) => error.hint(),
            Self::Host(error) => error.hint(),
            Self::Inputs(_) | Self::Session(_) => None,
        }
    }

    /// What it means for the exit code.
    pub fn exit(&self) -> RunExit {
        match self {
            Self::Manifest(ManifestError::Interrupted { reason, .. })
            | Self::State(StateError::Lock(LockError::Cancelled(reason))) => (*reason).into(),
            Self::State(StateError::Lock(LockError::Busy { .. })) => RunExit::Busy,
            _ => RunExit::Failed,
        }
    }
}

/// One difference per line.
fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  {difference}")).collect()
}

/// What the end of a run means for the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// It came to its end, or stopped at a failure.
    Finished {
        /// Something changed.
        changed: bool,
        /// A resource failed, or a requirement was not met.
        failed: bool,
    },
    /// A signal ended it.
    Interrupted(i32),
    /// It did not begin, was cancelled, or its records may be lost.
    Failed,
    /// Another run went on for too long.
    Busy,
}

impl From<CancelReason> for RunExit {
    fn from(reason: CancelReason) -> Self {
        match reason {
            CancelReason::Signal(signal) => Self::Interrupted(signal),
            CancelReason::Requested | CancelReason::Deadline => Self::Failed,
        }
    }
}

impl RunExit {
    pub(crate) fn of(finished: &Finished) -> Self {
        if let Some(Stop::Cancelled(reason)) = finished.stop {
            return reason.into();
        }
        let Summary { changed, failed, requirements_unmet, .. } = finished.report.summary;
        let failed = failed + requirements_unmet > 0;
        if !finished.losses.is_empty() && !failed {
            return Self::Failed;
        }
        Self::Finished { changed: changed > 0, failed }
    }

    /// The exit code; a detailed one tells changes and failures apart.
    pub fn code(self, is_detailed: bool) -> u8 {
        match self {
            Self::Finished { changed, failed } if is_detailed => {
                u8::from(changed) * 2 + u8::from(failed) * 4
            }
            Self::Finished { failed, .. } => u8::from(failed),
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Self::Failed => 1,
            Self::Busy => 75,
        }
    }
}

impl<E: std::fmt::Display> RunError<E> {
    /// Everything that went wrong, as other programs read it. `name` is what was
    /// to be run.
    pub fn diagnostics(&self, name: &str) -> Vec<Diagnostic>
    where
        Self: std::error::Error,
    {
        match self {
            Self::Manifest(error) => error.diagnostics(name),
            error => vec![Diagnostic {
                hint: error.hint(),
                severity: Severity::Error,
                ..Diagnostic::warning(crate::chain(error))
            }],
        }
    }
}
