//! Exit codes.

use std::process::ExitCode;

use ccm_host::CancelReason;
use ccm_model::Summary;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, whatever was stable or changed.
    Done,
    /// It could not be done, or something failed.
    Failed,
    /// Detailed: changes, failures or both.
    Detailed { changed: bool, failed: bool },
    /// Rules do not hold.
    RulesFailed,
    /// Rules cannot be used.
    RulesUnusable,
    /// Wrong usage of the command line.
    Usage,
    /// Another run goes on.
    Busy,
    /// Ended by this signal.
    Interrupted(i32),
    /// As a run of the agent ended.
    OfRun(u8),
}

impl From<CancelReason> for Exit {
    fn from(reason: CancelReason) -> Self {
        match reason {
            CancelReason::Signal(signal) => Self::Interrupted(signal),
            CancelReason::Requested | CancelReason::Deadline => Self::Failed,
        }
    }
}

impl Exit {
    /// The code for a finished run.
    pub(crate) fn of_run(summary: &Summary, detailed: bool) -> Self {
        let failed = summary.failed + summary.requirements_unmet > 0;
        match (detailed, failed) {
            (true, failed) => Self::Detailed { changed: summary.changed > 0, failed },
            (false, true) => Self::Failed,
            (false, false) => Self::Done,
        }
    }
}

impl Exit {
    /// The same, but not success.
    pub(crate) fn or_failed(self) -> Self {
        match self {
            Self::Done | Self::OfRun(0) | Self::Detailed { failed: false, .. } => Self::Failed,
            other => other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Detailed { changed, failed } => u8::from(changed) * 2 + u8::from(failed) * 4,
            Exit::RulesFailed => 2,
            Exit::RulesUnusable => 3,
            Exit::Usage => 64,
            Exit::Busy => 75,
            Exit::Interrupted(signal) => (128 + signal) as u8,
            Exit::OfRun(code) => code,
        })
    }
}
