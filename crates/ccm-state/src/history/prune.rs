//! Retention limits of the history.

use ccm_host::{Result, StateDir};
use jiff::{SignedDuration, Timestamp};

use super::read::{brief, ids};
use super::{OBJECTS, RUNS};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest content, in bytes.
    pub content: u64,
    /// All contents, in bytes.
    pub store: u64,
    /// The number of runs.
    pub runs: usize,
    /// How old a run may be.
    pub age: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        let age = SignedDuration::from_hours(30 * 24);
        Self { content: 64 << 20, store: 1 << 30, runs: 100, age }
    }
}

/// Removed runs and contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of runs.
    pub runs: usize,
    /// The size of their contents that no other run needs, in bytes.
    pub bytes: u64,
}

/// Removes the oldest runs beyond the limits. The run named `current` stays;
/// if it has added no content, all of it is no more than before.
///
/// # Errors
///
/// Fails if something that must go cannot be removed.
pub fn prune(
    state: &StateDir,
    limits: Limits,
    now: Timestamp,
    current: Option<(&str, u64)>,
) -> Result<Pruned> {
    let mut pruned = Pruned::default();
    let Some(runs) = state.folder(RUNS, false)? else { return Ok(pruned) };
    let ids = ids(&runs)?;
    let oldest = now.checked_sub(limits.age).unwrap_or(Timestamp::MIN);
    let oldest = oldest.strftime("%Y%m%d-%H%M%S").to_string();
    let stored = |id: &String| {
        // What cannot be read counts for nothing, and goes when its time comes.
        brief(state, &runs, id, true).ok().flatten().map_or(0, |run| run.stored)
    };
    let mut left = ids.len();
    let is_grown = current.is_none_or(|(_, stored)| stored > 0);
    let mut size: u64 = if is_grown { ids.iter().map(stored).sum() } else { 0 };
    for id in &ids {
        let is_old = id.as_str() < oldest.as_str();
        let is_current = current.is_some_and(|(current, _)| current == id);
        if is_current || (!is_old && left <= limits.runs && size <= limits.store) {
            continue;
        }
        let bytes = remove_run(state, &runs, id)?;
        left -= 1;
        size = size.saturating_sub(bytes);
        pruned.runs += 1;
        pruned.bytes += bytes;
    }
    Ok(pruned)
}

/// Removes a run, and the contents that only it needs; their size.
pub(super) fn remove_run(state: &StateDir, runs: &StateDir, id: &str) -> Result<u64> {
    let mut bytes = 0;
    let Some(run) = runs.folder(id, false)? else { return Ok(bytes) };
    if let Some(kept) = run.folder(OBJECTS, false)? {
        let objects = state.folder(OBJECTS, false)?;
        for name in kept.names()? {
            // First the name in `objects`: a prune that is killed in between
            // leaves a name here, and comes back to it.
            if let Some(objects) = &objects
                && let Some((links, size)) = objects.links(&name)?
                && links <= 2
            {
                objects.remove(&name)?;
                bytes += size;
            }
            kept.remove(&name)?;
        }
        drop(kept);
        run.remove_folder(OBJECTS)?;
    }
    for name in run.names()? {
        run.remove(&name)?;
    }
    runs.remove_folder(id)?;
    Ok(bytes)
}

/// Removes contents that no run needs, as a killed run leaves them; their size.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub fn sweep(state: &StateDir) -> Result<u64> {
    let mut bytes = 0;
    let Some(objects) = state.folder(OBJECTS, false)? else { return Ok(bytes) };
    for name in objects.names()? {
        if let Some((1, size)) = objects.links(&name)? {
            objects.remove(&name)?;
            bytes += size;
        }
    }
    Ok(bytes)
}
