//! Chooses the run to undo.

use ccm_host::{RunLock, StateDir};
use ccm_state::history::{self, RecordedRun, RunSummary};

use super::UndoError;
use crate::options::RunOptions;
use crate::run_error::RunError;
use crate::state_access::StateAccess;

/// The run to undo, with the lock.
pub(crate) fn choose_undo<E>(
    id: Option<&str>,
    access: &mut StateAccess,
    options: &mut RunOptions,
    waiting: &mut dyn FnMut(&str),
) -> Result<(RecordedRun, Option<RunLock>), RunError<E>> {
    // Before the lock: what another undo leaves meanwhile is not meant.
    let last = match id {
        None => last_run(options.state.directory.as_ref())?,
        Some(_) => None,
    };
    let mut has_waited = false;
    let lock = access.lock(options, &mut |text| {
        has_waited = true;
        waiting(text);
    })?;
    // Nor is an undo that was at work already: both mean the same run.
    let last = last.map(|run| match run.info.undo_of {
        Some(of) if has_waited && run.finished.is_none() => of,
        _ => run.info.id,
    });
    let directory = options.state.directory.as_ref();
    let run = chosen(directory, id, last.as_deref())?;
    if !options.mode.noop {
        if let Some(directory) = directory {
            history::repair(directory, &run)?;
        }
        if let Some(history) = &mut options.state.history {
            history.undo_of = Some(run.info.id.clone());
        }
    }
    Ok((run, lock))
}

/// The last run that changed something.
fn last_run(directory: Option<&StateDir>) -> Result<Option<RunSummary>, ccm_host::Error> {
    let Some(directory) = directory else { return Ok(None) };
    Ok(history::list(directory)?.into_iter().find(|run| run.changed > 0))
}

/// `last` was the last run before the lock was taken; it may have been at work
/// still, and changed nothing in the end.
fn chosen(
    directory: Option<&StateDir>,
    id: Option<&str>,
    last: Option<&str>,
) -> Result<RecordedRun, UndoError> {
    if let Some(id) = id {
        return find_run(directory, id);
    }
    if let (Some(directory), Some(last)) = (directory, last)
        && let Some(run) = history::open(directory, last)?
    {
        return Ok(run);
    }
    match last_run(directory)? {
        Some(run) => find_run(directory, &run.info.id),
        None => Err(UndoError::none()),
    }
}

/// The recorded run of this id, or the only one whose id begins with it.
///
/// # Errors
///
/// Returns why there is none.
pub fn find_run(directory: Option<&StateDir>, id: &str) -> Result<RecordedRun, UndoError> {
    let unknown = |message: String| UndoError::NoRun { message };
    let Some(directory) = directory else {
        return Err(unknown("there is no history".to_owned()));
    };
    if let Some(run) = history::open(directory, id)? {
        return Ok(run);
    }
    let runs = history::list(directory)?;
    let mut found = runs.iter().filter(|run| !id.is_empty() && run.info.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(run), None) => history::open(directory, &run.info.id)?
            .ok_or_else(|| unknown(format!("the run `{id}` is gone"))),
        (Some(_), Some(_)) => Err(unknown(format!("more than one run begins with `{id}`"))),
        (None, _) => Err(unknown(format!("there is no run `{id}` in the history"))),
    }
}

/// Says that a run needs no undo, and what has undone it.
pub(crate) fn already_undone(id: &str, directory: Option<&StateDir>) -> String {
    let all = directory.map(history::list).and_then(Result::ok).unwrap_or_default();
    match all.iter().find(|later| later.info.undo_of.as_deref() == Some(id)) {
        Some(undo) => format!("The run {id} is already undone, by the run {}", undo.info.id),
        None => format!("Nothing of the run {id} is left to undo"),
    }
}
