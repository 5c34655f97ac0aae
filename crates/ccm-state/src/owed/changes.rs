//! Changes that child manifests may still have to react to.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A change that was made while manifests were still to come. Who in them must
/// react is known for certain only when they run: the change may be the one that
/// writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The changed resource, as `type#name`.
    pub by: String,
    /// Everything that subscribers can call it, and what applies its manifest.
    pub names: Vec<String>,
    /// When it was about to be made.
    pub since: Timestamp,
}

/// Changes, and how many of them each manifest has taken note of.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) list: Vec<Change>,
    pub(super) seen: BTreeMap<Vec<String>, usize>,
    /// The manifests that the last run has entered: they have taken note of
    /// later changes by themselves.
    pub(super) entered: BTreeSet<Vec<String>>,
    /// Changed resources that no subscriber has reacted to yet.
    pub(super) unseen: HashSet<String>,
    /// All that were ever in the list. What else the file has is from a run
    /// within this run.
    pub(super) known: HashSet<(String, Timestamp)>,
}

impl Changes {
    pub(super) fn add(&mut self, change: Change) {
        self.unseen.insert(change.by.clone());
        self.known.insert((change.by.clone(), change.since));
        self.list.push(change);
    }

    pub(super) fn enter(&mut self, path: Vec<String>) {
        self.entered.insert(path.clone());
        self.see(path);
    }

    /// A manifest has taken note of all changes so far, in an earlier run.
    pub(super) fn see(&mut self, path: Vec<String>) {
        self.seen.insert(path, self.list.len());
        self.unseen.clear();
    }

    /// Takes the last change of a resource back.
    pub(super) fn take_back(&mut self, by: &str) -> bool {
        if !self.unseen.remove(by) {
            return false;
        }
        let Some(at) = self.list.iter().rposition(|change| change.by == by) else { return false };
        self.list.remove(at);
        true
    }

    /// Ends a run: a manifest that was entered in it has taken note of all.
    pub(super) fn end_run(&mut self) {
        for path in std::mem::take(&mut self.entered) {
            self.see(path);
        }
        let seen = self.seen.values().copied().max().unwrap_or_default();
        self.unseen = self.list.iter().skip(seen).map(|change| change.by.clone()).collect();
    }
}
