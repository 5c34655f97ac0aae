//! What reacts to what an undo restores, and what an undone run owes.

use std::collections::{BTreeSet, HashSet};

use ccm_model::ResourceRef;
use ccm_state::OwedRecord;
use ccm_state::OwedStore;
use ccm_state::history::{self, RecordedRun, RecordedTurn};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::blocked::{Pass, causes};
use super::{display, is_called};
use crate::engine::Engine;
use crate::options::RunOptions;
use crate::{chain, resource::find_type};

/// A resource that has reacted to the run and is to react to its undo.
pub(super) struct Reaction {
    pub(super) turn: RecordedTurn,
    /// Its number, if it is one of the undone run.
    number: Option<usize>,
    /// The properties of the request that makes it react.
    pub(super) properties: Value,
    /// What it has reacted to, of what the undo can restore.
    pub(super) causes: BTreeSet<usize>,
}

impl Reaction {
    /// Whether it is to react: to what is restored, unless it was only started
    /// after that.
    pub(super) fn is_due(&self, pass: &Pass) -> bool {
        let is_started = self.number.is_some_and(|number| pass.started.contains(&number));
        !is_started && self.causes.iter().any(|at| pass.restored.contains(at))
    }

    fn key(&self) -> (&[String], String) {
        (&self.turn.route, display(&self.turn))
    }
}

impl Engine {
    /// The properties of a request that makes a resource react. Only a type knows
    /// whether that is safe.
    pub(super) fn reaction_of(&self, turn: &RecordedTurn) -> Option<Value> {
        let (before, _) = turn.state.as_ref()?;
        let verbs = turn.event.as_ref().map_or(&[][..], |event| &event.verbs);
        find_type(self.types(), &turn.kind)?.reaction(before, verbs)
    }

    /// The resources that have reacted to a run, or in a later run of the same
    /// manifest to what it owed, each once.
    pub(super) fn reactions(&self, run: &RecordedRun, options: &RunOptions) -> Vec<Reaction> {
        let mut known: HashSet<(Vec<String>, String)> = HashSet::new();
        let later = later_runs(run, options);
        let later = later.iter().flat_map(|run| &run.turns);
        let later = later.filter(|turn| turn.event.as_ref().is_some_and(|it| it.owed.is_some()));
        let mut found = Vec::new();
        let own = run.turns.iter().enumerate().map(|(number, turn)| (Some(number), turn));
        for (number, turn) in own.chain(later.map(|turn| (None, turn))) {
            let causes = roots(run, turn);
            let Some(properties) = self.reaction_of(turn).filter(|_| !causes.is_empty()) else {
                continue;
            };
            if known.insert((turn.route.clone(), display(turn))) {
                found.push(Reaction { turn: turn.clone(), number, properties, causes });
            }
        }
        found
    }
}

/// What a resource has reacted to, also by way of steps that cannot be undone.
fn roots(run: &RecordedRun, turn: &RecordedTurn) -> BTreeSet<usize> {
    let (mut pending, mut seen) = (causes(run, turn), BTreeSet::new());
    while let Some(at) = pending.pop() {
        if seen.insert(at) && !run.turns[at].lost.is_empty() {
            pending.extend(causes(run, &run.turns[at]));
        }
    }
    seen.retain(|at| run.turns[*at].lost.is_empty());
    seen
}

/// The runs of the same manifest after a run that nobody has undone, without undos.
fn later_runs(run: &RecordedRun, options: &RunOptions) -> Vec<RecordedRun> {
    let Some(state) = &options.state.directory else { return Vec::new() };
    let all = history::list(state).unwrap_or_default();
    let is_undone = |id: &String| {
        all.iter().any(|undo| undo.info.undo_of.as_ref() == Some(id) && undo.failed == 0)
    };
    let later = all.iter().filter(|later| {
        later.info.id > run.info.id
            && later.info.manifest == run.info.manifest
            && later.info.undo_of.is_none()
            && !is_undone(&later.info.id)
    });
    later.filter_map(|later| history::open(state, &later.info.id).ok().flatten()).collect()
}

/// The owed reactions of the manifest of an undone run.
pub(super) struct OwedByRun<'r> {
    run: &'r RecordedRun,
    options: &'r RunOptions,
    store: Option<OwedStore>,
    /// What this undo owes itself, until it is done.
    own: HashSet<(Vec<String>, String)>,
}

impl<'r> OwedByRun<'r> {
    pub(super) fn open(run: &'r RecordedRun, options: &'r RunOptions) -> Self {
        let noop = options.mode.noop;
        let state = options.state.directory.as_ref();
        let store =
            state.and_then(|state| match OwedStore::open(state, &run.info.manifest, noop) {
                Ok(store) => Some(store),
                Err(error) => {
                    let error = chain(&error);
                    options.host.warn(format!("{error}; ccm does not know what the run owes"));
                    None
                }
            });
        Self { run, options, store, own: HashSet::new() }
    }

    /// Whether an earlier undo was killed before this reaction.
    pub(super) fn has(&self, reaction: &Reaction) -> bool {
        let (route, subscriber) = reaction.key();
        self.store.as_ref().is_some_and(|store| store.find(route, &subscriber).is_some())
    }

    /// Records what is owed from now on until it is done.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded; then nothing may be restored.
    pub(super) fn record(&mut self, reactions: &[Reaction]) -> ccm_host::Result<()> {
        let Some(store) = self.store.as_mut().filter(|_| !self.options.mode.noop) else {
            return Ok(());
        };
        let since = self.options.host.now();
        let record = |reaction: &Reaction| {
            let (path, subscriber) = reaction.key();
            let first = reaction.causes.first()?;
            let by = display(&self.run.turns[*first]);
            Some(OwedRecord { path: path.to_vec(), subscriber, by, since })
        };
        store.owe(reactions.iter().filter_map(record).collect())?;
        let keys = reactions.iter().map(Reaction::key);
        self.own = keys.map(|(route, subscriber)| (route.to_vec(), subscriber)).collect();
        Ok(())
    }

    pub(super) fn mark_done(&mut self, reaction: &Reaction) {
        let (route, subscriber) = reaction.key();
        self.own.remove(&(route.to_vec(), subscriber.clone()));
        self.strike_out(route, &subscriber);
    }

    fn strike_out(&mut self, route: &[String], subscriber: &str) {
        let Some(store) = self.store.as_mut().filter(|_| !self.options.mode.noop) else { return };
        if let Err(error) = store.pay(route, subscriber) {
            let error = chain(&error);
            let message = format!("{error}; the next run may repeat the reaction of {subscriber}");
            self.options.host.warn(message);
        }
    }

    /// Strikes out what is owed for nothing but the run, if all of it is as it
    /// was. A record names only the first change that its subscriber has missed,
    /// so where anything else of the run or of a later one stays, it stays too: to
    /// react once too often does no harm.
    pub(super) fn clear_undone(&mut self, pass: &Pass) {
        if self.options.mode.noop || self.store.is_none() {
            return;
        }
        let run = self.run;
        let is_back = |(at, turn): (usize, &RecordedTurn)| {
            let has_acted = !turn.paths.is_empty() || turn.state.is_some();
            pass.back.contains(&at) || !has_acted || !turn.lost.is_empty()
        };
        let is_whole = run.turns.iter().enumerate().all(is_back);
        if !is_whole || !later_runs(run, self.options).is_empty() {
            return;
        }
        let begun = self.begun();
        let back = || pass.back.iter().map(|at| &run.turns[*at]);
        let is_paid = |record: &&OwedRecord| {
            let is_of_run = run.finished.is_none_or(|finished| record.since <= finished);
            let is_own = self.own.contains(&(record.path.clone(), record.subscriber.clone()));
            let is_of_run = is_of_run && record.since >= begun && !is_own;
            is_of_run && back().any(|turn| is_called(turn, &record.by))
        };
        let records = self.store.iter().flat_map(OwedStore::records);
        let paid: Vec<OwedRecord> = records.filter(is_paid).cloned().collect();
        for record in &paid {
            self.strike_out(&record.path, &record.subscriber);
        }
        let names: Vec<String> = back().map(display).collect();
        let Some(store) = &mut self.store else { return };
        for name in names {
            if let Err(error) = store.take_back(&name) {
                self.options
                    .host
                    .warn(format!("{}; the next run may react to {name}", chain(&error)));
            }
        }
    }

    /// When the run began to owe: an owed reaction is recorded just before its change, and
    /// with it before the first record of the run, but after the run before it.
    fn begun(&self) -> Timestamp {
        let info = &self.run.info;
        let state = self.options.state.directory.as_ref();
        let all = state.and_then(|state| history::list(state).ok()).unwrap_or_default();
        let before = all.iter().filter(|run| run.info.id < info.id).filter_map(|run| run.finished);
        let earliest = info.started.saturating_sub(SignedDuration::from_secs(1));
        before.max().into_iter().chain(earliest.ok()).max().unwrap_or(info.started)
    }

    /// Leaves on disk what is still owed.
    pub(super) fn close(mut self) {
        if self.options.mode.noop {
            return;
        }
        if let Some(Err(error)) = self.store.as_mut().map(OwedStore::close) {
            let error = chain(&error);
            self.options.host.warn(format!("{error}; the next run may repeat reactions"));
        }
    }
}

/// What a resource reacts to, as references.
pub(super) fn references(run: &RecordedRun, causes: &BTreeSet<usize>) -> Vec<ResourceRef> {
    let names = causes.iter().map(|at| display(&run.turns[*at]));
    names.filter_map(|name| name.parse().ok()).collect()
}
