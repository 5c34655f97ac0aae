//! Exit codes.

use std::process::ExitCode;

use ccm_engine::RunExit;
use ccm_host::CancelReason;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, whatever was stable or changed.
    Done,
    /// It could not be done, or something failed.
    Failed,
    /// Rules do not hold.
    RulesFailed,
    /// Rules cannot be used.
    RulesUnusable,
    /// Wrong usage of the command line.
    Usage,
    /// Another run goes on.
    Busy,
    /// As a run ended.
    OfRun { exit: RunExit, is_detailed: bool },
    /// A code of its own.
    Code(u8),
}

impl From<CancelReason> for Exit {
    fn from(reason: CancelReason) -> Self {
        Self::of_run(reason.into(), false)
    }
}

impl Exit {
    /// The code for a run.
    pub(crate) fn of_run(exit: RunExit, is_detailed: bool) -> Self {
        Self::OfRun { exit, is_detailed }
    }

    /// The same, but not success.
    pub(crate) fn or_failed(self) -> Self {
        match self {
            Self::Done | Self::OfRun { exit: RunExit::Finished { failed: false, .. }, .. } => {
                Self::Failed
            }
            other => other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::RulesFailed => 2,
            Exit::RulesUnusable => 3,
            Exit::Usage => 64,
            Exit::Busy => 75,
            Exit::OfRun { exit, is_detailed } => exit.code(is_detailed),
            Exit::Code(code) => code,
        })
    }
}
