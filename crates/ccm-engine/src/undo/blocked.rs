//! Finds the steps of a run after which restoring the rest may break something.

use std::collections::{BTreeMap, BTreeSet};

use ccm_model::ResourceRef;
use ccm_state::history::{RecordedRun, RecordedTurn};

use super::{display, is_called, is_selected};
use crate::undo::UndoOptions;

/// What an undo has done, or would do, by the numbers of the resources.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// What is restored now.
    pub(super) restored: BTreeSet<usize>,
    /// What would be restored if no symlink led to it.
    pub(super) held: BTreeSet<usize>,
    /// What is as it was, restored now or earlier.
    pub(super) back: BTreeSet<usize>,
    /// What is restored and has been started for it.
    pub(super) started: BTreeSet<usize>,
    /// What cannot be undone, whatever the present state is, and why if that is
    /// not in the journal.
    pub(super) lost: BTreeMap<usize, String>,
}

/// The steps that cannot be undone and came after something that is restored, or
/// reacted to it, and what that is: one line each.
///
/// With `only`, a resource that nobody has selected counts only if it has
/// reacted: who names resources has chosen a part of the run, and not its order.
pub(super) fn blocked(run: &RecordedRun, undo: &UndoOptions, pass: &Pass) -> Vec<String> {
    let wanted: BTreeSet<usize> = pass.restored.union(&pass.held).copied().collect();
    let Some(first) = wanted.first() else { return Vec::new() };
    let steps = run.turns.iter().enumerate().filter(|(at, turn)| {
        pass.lost.contains_key(at) || (!turn.lost.is_empty() && !turn.is_unknown())
    });
    let lines = steps.filter_map(|(at, turn)| {
        let is_restored = |other: &usize| wanted.contains(other) && *other != at;
        let name = display(turn);
        let reason = pass.lost.get(&at).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        if let Some(other) = causes(run, turn).into_iter().find(is_restored) {
            return Some(format!("{name} reacted to {}{reason}", display(&run.turns[other])));
        }
        let is_after = is_selected(undo, turn) && *first < at;
        is_after.then(|| {
            let earlier = wanted.range(..at).next_back().copied().unwrap_or(*first);
            format!("{name} came after {}{reason}", display(&run.turns[earlier]))
        })
    });
    lines.collect()
}

/// The resources of a run that a resource has reacted to.
pub(super) fn causes(run: &RecordedRun, turn: &RecordedTurn) -> Vec<usize> {
    let Some(event) = &turn.event else { return Vec::new() };
    let owed = event.owed.iter().map(|owed| owed.by.clone());
    let names: Vec<String> = event.because.iter().map(ResourceRef::to_string).chain(owed).collect();
    let numbers = run.turns.iter().enumerate();
    let called = numbers.filter(|(_, turn)| names.iter().any(|name| is_called(turn, name)));
    called.map(|(at, _)| at).collect()
}
