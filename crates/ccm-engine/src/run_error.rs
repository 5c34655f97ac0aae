//! Why a run did not begin, and what the end of one means.

use std::path::PathBuf;

use ccm_host::{CancelReason, LockError};
use ccm_model::Summary;

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
    /// It was cancelled, or its time was over.
    Cancelled,
    /// It did not begin, or its records may be lost.
    Failed,
    /// Another run went on for too long.
    Busy,
}

impl From<CancelReason> for RunExit {
    fn from(reason: CancelReason) -> Self {
        match reason {
            CancelReason::Signal(signal) => Self::Interrupted(signal),
            CancelReason::Requested | CancelReason::Deadline => Self::Cancelled,
        }
    }
}

impl RunExit {
    pub(crate) fn of(finished: &Finished) -> Self {
        if let Some(Stop::Cancelled(reason)) = finished.stop {
            return reason.into();
        }
        let Summary { changed, failed, requirements_unmet, .. } = finished.report.summary;
        // A preview of an undo may have an error that is none of a resource.
        let has_errors = !finished.report.errors.is_empty();
        let failed = failed + requirements_unmet > 0 || has_errors;
        if !finished.losses.is_empty() && !failed {
            return Self::Failed;
        }
        Self::Finished { changed: changed > 0, failed }
    }

    /// The end in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished { failed: false, .. } => "done",
            Self::Finished { failed: true, .. } | Self::Failed => "failed",
            Self::Interrupted(_) | Self::Cancelled => "stopped",
            Self::Busy => "busy",
        }
    }

    /// Whether it was stopped before its end.
    pub fn is_stopped(self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Cancelled)
    }

    /// The exit code; a detailed one tells changes and failures apart.
    pub fn code(self, is_detailed: bool) -> u8 {
        match self {
            Self::Finished { changed, failed } if is_detailed => {
                u8::from(changed) * 2 + u8::from(failed) * 4
            }
            Self::Finished { failed, .. } => u8::from(failed),
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Self::Failed | Self::Cancelled => 1,
            Self::Busy => 75,
        }
    }
}

#[cfg(test)]
mod tests {
    use ccm_model::Report;

    use super::*;
    use crate::run::Loss;

    fn finished(summary: Summary) -> Finished {
        let report = Report::refused(String::new(), false, jiff::Timestamp::UNIX_EPOCH, Vec::new());
        let report = Report { summary, ..report };
        Finished { report, stop: None, losses: Vec::new(), post_message: None }
    }

    fn summary(changed: usize, failed: usize, requirements_unmet: usize) -> Summary {
        let mut summary = Summary::default();
        (summary.changed, summary.failed) = (changed, failed);
        summary.requirements_unmet = requirements_unmet;
        summary
    }

    #[test]
    fn the_end_of_a_run_has_one_meaning() {
        for (counts, code, detailed) in
            [((0, 0, 0), 0, 0), ((2, 0, 0), 0, 2), ((0, 1, 0), 1, 4), ((3, 0, 1), 1, 6)]
        {
            let (changed, failed, unmet) = counts;
            let exit = RunExit::of(&finished(summary(changed, failed, unmet)));
            assert_eq!(
                exit,
                RunExit::Finished { changed: changed > 0, failed: failed + unmet > 0 }
            );
            assert_eq!((exit.code(false), exit.code(true)), (code, detailed));
        }
    }

    #[test]
    fn a_run_that_was_stopped_or_lost_records_did_not_finish() {
        let stopped =
            |reason| Finished { stop: Some(Stop::Cancelled(reason)), ..finished(summary(0, 1, 0)) };
        let exit = RunExit::of(&stopped(CancelReason::Signal(15)));
        assert_eq!((exit, exit.code(true)), (RunExit::Interrupted(15), 143));
        assert!(exit.is_stopped());
        let exit = RunExit::of(&stopped(CancelReason::Requested));
        assert_eq!((exit, exit.code(true)), (RunExit::Cancelled, 1));
        assert!(exit.is_stopped());
        let disk = ccm_host::Error::Network { message: "no disk".to_owned(), hint: None };
        let lost = Finished { losses: vec![Loss::Disk(disk)], ..finished(Summary::default()) };
        assert_eq!(RunExit::of(&lost), RunExit::Failed);
        // A failure of a resource says more.
        let both = Finished { report: finished(summary(0, 1, 0)).report, ..lost };
        assert_eq!(RunExit::of(&both), RunExit::Finished { changed: false, failed: true });
        assert_eq!(RunExit::Busy.code(true), 75);
    }

    #[test]
    fn a_run_that_did_not_begin_says_why() {
        let busy = StateError::Lock(LockError::Busy { holder: None });
        assert_eq!(RunError::<String>::State(busy).exit(), RunExit::Busy);
        let stopped = StateError::Lock(LockError::Cancelled(CancelReason::Signal(2)));
        assert_eq!(RunError::<String>::State(stopped).exit(), RunExit::Interrupted(2));
        let stale = RunError::<String>::Stale { differences: Vec::new() };
        assert_eq!(stale.exit(), RunExit::Failed);
        assert!(stale.hint().is_some());
    }
}
