//! The order in which an undo takes resources back.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use ccm_host::{Host, Image};
use ccm_state::history::{PathChange, RecordedRun, RecordedTurn};

/// The numbers of the turns to take back, the last one first. A symlink that
/// leads into something that the undo removes comes before it, also where the
/// run made the symlink first: at no moment does it lead nowhere.
pub(super) fn order(
    run: &RecordedRun,
    host: &Host,
    is_selected: impl Fn(&RecordedTurn) -> bool,
) -> Vec<usize> {
    let selected = |at: &usize| run.turns.get(*at).is_some_and(&is_selected);
    let order: Vec<usize> = (0..run.turns.len()).rev().filter(selected).collect();
    let turns = || order.iter().filter_map(|at| run.turns.get(*at)).enumerate();
    if !turns().any(|(_, turn)| is_link(turn)) {
        return order;
    }
    let (mut removed, mut places, mut paths) =
        (ByPath::default(), ByPath::default(), ByPath::default());
    for (position, turn) in turns() {
        for change in &turn.paths {
            places.add(&change.place, position);
            paths.add(&change.path, position);
            if is_removed(change) {
                removed.add(&change.place, position);
            }
        }
    }
    // Each one with its position and what comes before others of that position.
    let mut moved: Vec<((usize, bool), usize)> =
        order.iter().enumerate().map(|(position, at)| ((position, true), *at)).collect();
    for (position, turn) in turns().filter(|(_, turn)| is_link(turn)) {
        let Some(change) = turn.paths.first() else { continue };
        let target = host.followed(&change.place);
        if target == change.place {
            continue;
        }
        // Those that come first anyway are behind it in the run.
        let removal = removed.above(&target).chain(removed.below(&target)).copied().min();
        let Some(first) = removal.filter(|first| *first < position) else { continue };
        // What makes its directory, changes it again or was reached by way of it
        // stays ahead of it.
        let reached = paths.at(&change.place).chain(paths.below(&change.place));
        let mut needed = places.above(&change.place).chain(reached);
        if !needed.any(|other| (first..position).contains(other)) {
            moved[position].0 = (first, false);
        }
    }
    moved.sort_by_key(|(key, _)| *key);
    moved.into_iter().map(|(_, at)| at).collect()
}

/// Values by path, found by what is above and below it without looking at all.
#[derive(Debug)]
pub(super) struct ByPath<T>(BTreeMap<PathBuf, BTreeSet<T>>);

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> ByPath<T> {
    pub(super) fn add(&mut self, path: &Path, value: T) {
        self.0.entry(path.to_owned()).or_default().insert(value);
    }

    pub(super) fn remove(&mut self, path: &Path, value: &T) {
        if let Some(values) = self.0.get_mut(path) {
            values.remove(value);
        }
    }

    /// The values at a path.
    fn at(&self, path: &Path) -> impl Iterator<Item = &T> {
        self.0.get(path).into_iter().flatten()
    }

    /// The values at a path and above it.
    pub(super) fn above(&self, path: &Path) -> impl Iterator<Item = &T> {
        path.ancestors().filter_map(|above| self.0.get(above)).flatten()
    }

    /// The values below a path.
    pub(super) fn below(&self, path: &Path) -> impl Iterator<Item = &T> {
        let behind = (Bound::Excluded(path), Bound::Unbounded);
        let range = self.0.range::<Path, _>(behind);
        range.take_while(move |(below, _)| below.starts_with(path)).flat_map(|(_, values)| values)
    }
}

/// Whether a resource is nothing but one symlink.
fn is_link(turn: &RecordedTurn) -> bool {
    let is_symlink = |image: &Image| matches!(image, Image::Symlink { .. });
    matches!(turn.paths.as_slice(), [change] if change.after.as_ref().is_some_and(is_symlink))
}

/// Whether taking a change back removes what is at its path.
pub(super) fn is_removed(change: &PathChange) -> bool {
    change.before == Image::Absent && change.after != Some(Image::Absent)
}

/// What a symlink at `place` with this target leads to.
pub(super) fn led_to(host: &Host, place: &Path, target: &Path) -> PathBuf {
    let parent = place.parent().unwrap_or(Path::new("/"));
    host.followed(&parent.join(target))
}
