//! The schedule: a pure function of past events and the current time.
//!
//! Nothing here waits, reads a clock or starts anything. The agent tells what
//! has happened and when, and asks what to start now and when to ask again.
//! Times are those since the machine was started, time asleep included.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::metrics::{RunMode, RunReason};

/// A time since the machine was started.
pub type Moment = Duration;

/// An apply for new content begins this long after the last apply at the
/// earliest, so that content that changes all the time is not applied all the
/// time.
const AFTER_APPLY: Duration = Duration::from_secs(5);
/// How long the first remediation waits, from the start of the last apply.
const REMEDIATION: Duration = Duration::from_secs(30);

/// A run that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The manifest, as the configuration names it.
    pub manifest: String,
    /// Mode of the run.
    pub mode: RunMode,
    /// Why it was asked for.
    pub reason: RunReason,
}

/// The times of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How often each manifest is applied.
    pub interval: Duration,
    /// How often health is checked; zero is never.
    pub health_check_interval: Duration,
    /// The longest random delay.
    pub splay: Duration,
}

/// The next action of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this run. It counts as running until [`Schedule::finished`].
    Start(RunRequest),
    /// Nothing before this time, unless something happens.
    Wait(Option<Moment>),
}

/// All runs of an agent: those to come, those that wait, the one at work.
pub struct Schedule {
    times: Times,
    workers: Vec<Worker>,
    /// Runs that were asked for, in this order; one per worker at most.
    waiting: VecDeque<RunRequest>,
    running: Option<RunRequest>,
    next_health_check: Option<Moment>,
    has_data: bool,
    is_stopped: bool,
    /// A random time up to the given one.
    random: Box<dyn FnMut(Duration) -> Duration + Send>,
}

/// What is known of one manifest.
#[derive(Debug)]
struct Worker {
    manifest: String,
    /// Whether there is a manifest to apply.
    is_available: bool,
    /// How many applies of the sequence have begun; more than two are as two.
    applies: u8,
    /// The next apply of the sequence.
    tick: Option<Moment>,
    /// An apply of the sequence waits.
    is_tick_waiting: bool,
    /// An apply because of new content.
    change: Option<(Moment, RunReason)>,
    remediation: Option<Moment>,
    /// Remediations since the checks were last well.
    remediations: u32,
    /// When the last apply began.
    last_apply: Option<Moment>,
}

impl Worker {
    fn new(manifest: &str) -> Self {
        Self {
            manifest: manifest.to_owned(),
            is_available: false,
            applies: 0,
            tick: None,
            is_tick_waiting: false,
            change: None,
            remediation: None,
            remediations: 0,
            last_apply: None,
        }
    }

    /// Forgets everything that was to come.
    fn pause(&mut self) {
        (self.tick, self.change, self.remediation) = (None, None, None);
        self.is_tick_waiting = false;
    }

    /// The earliest time for an apply because of new content.
    fn change_at(&self, now: Moment, delay: Duration) -> Moment {
        let earliest = self.last_apply.map_or(now, |last| last + AFTER_APPLY);
        (now + delay).max(earliest)
    }

    fn next(&self) -> Option<Moment> {
        let change = self.change.map(|(at, _)| at);
        [self.tick, change, self.remediation].into_iter().flatten().min()
    }
}

impl Schedule {
    /// A schedule for these manifests, none of which is there yet. `random`
    /// returns a time between zero and the given one.
    pub fn new(
        times: Times,
        manifests: &[String],
        has_data: bool,
        random: impl FnMut(Duration) -> Duration + Send + 'static,
    ) -> Self {
        Self {
            times,
            workers: manifests.iter().map(|manifest| Worker::new(manifest)).collect(),
            waiting: VecDeque::new(),
            running: None,
            next_health_check: None,
            has_data,
            is_stopped: false,
            random: Box::new(random),
        }
    }

    /// The manifest of a worker is there, or is gone: then nothing of it runs
    /// until it is back.
    pub fn set_available(&mut self, manifest: &str, is_available: bool, now: Moment) {
        let Some(at) = self.position(manifest) else { return };
        if self.workers[at].is_available == is_available {
            return;
        }
        self.workers[at].is_available = is_available;
        if is_available {
            self.resume(at, now);
        } else {
            self.workers[at].pause();
            self.waiting.retain(|run| run.manifest != manifest);
        }
    }

    /// The external data is there, or is not: then nothing is applied.
    pub fn set_data(&mut self, has_data: bool, now: Moment) {
        if self.has_data == has_data {
            return;
        }
        self.has_data = has_data;
        for at in 0..self.workers.len() {
            if !has_data {
                self.workers[at].pause();
            } else if self.workers[at].is_available {
                self.resume(at, now);
            }
        }
        if !has_data {
            self.waiting.clear();
        }
    }

    /// What is needed for an apply has come, or has come back.
    fn resume(&mut self, at: usize, now: Moment) {
        if !self.has_data || self.workers[at].next().is_some() {
            return;
        }
        let delay = (self.random)(self.times.splay);
        let worker = &mut self.workers[at];
        if worker.applies == 0 {
            worker.tick = Some(now + delay);
        } else {
            worker.change = Some((worker.change_at(now, delay), RunReason::Source));
            // The sequence goes on from that apply.
            worker.is_tick_waiting = true;
        }
    }

    /// Records that the content of a manifest has changed. The caller has
    /// already waited for a random time up to `splay`.
    pub fn manifest_changed(&mut self, manifest: &str, now: Moment) {
        if let Some(at) = self.position(manifest) {
            self.changed(at, RunReason::Source, now);
        }
    }

    /// The external data is new, found as late as a manifest.
    pub fn data_changed(&mut self, now: Moment) {
        for at in 0..self.workers.len() {
            self.changed(at, RunReason::Data, now);
        }
    }

    fn changed(&mut self, at: usize, reason: RunReason, now: Moment) {
        if !self.is_ready(at) || self.workers[at].applies == 0 {
            // The first apply is to come, and uses the newest.
            return;
        }
        // A second delay would double the first.
        let worker = &mut self.workers[at];
        let due = worker.change_at(now, Duration::ZERO);
        if worker.change.is_none_or(|(before, _)| due < before) {
            worker.change = Some((due, reason));
        }
    }

    /// Applies all manifests now.
    pub fn apply_all(&mut self) {
        for at in 0..self.workers.len() {
            if self.is_ready(at) {
                self.ask(at, RunMode::Apply, RunReason::Signal);
            }
        }
    }

    /// The run at work has ended. `is_critical` says what its health checks
    /// found; `None` where they were not all asked.
    pub fn finished(&mut self, is_critical: Option<bool>, now: Moment) {
        let Some(run) = self.running.take() else { return };
        let Some(at) = self.position(&run.manifest) else { return };
        let is_ready = self.is_ready(at);
        let worker = &mut self.workers[at];
        // A tick that fell into the run is left out.
        let interval = self.times.interval;
        worker.tick =
            worker.tick.map(|due| if due > now { due } else { after(due, interval, now) });
        match (run.mode, is_critical) {
            (RunMode::Health, Some(true)) if is_ready => {
                let wait = REMEDIATION.saturating_mul(1 << worker.remediations.min(20));
                let wait = wait.min(self.times.interval);
                let due = worker.last_apply.map_or(now, |last| now.max(last + wait));
                worker.remediation.get_or_insert(due);
            }
            (RunMode::Health, Some(false)) => {
                (worker.remediation, worker.remediations) = (None, 0);
            }
            _ => {}
        }
    }

    /// No further run begins.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.waiting.clear();
    }

    /// The run at work.
    pub fn running(&self) -> Option<&RunRequest> {
        self.running.as_ref()
    }

    /// Takes over a new configuration. Workers that stay keep their times; the
    /// run at work goes on.
    pub fn reconfigure(&mut self, times: Times, manifests: &[String], now: Moment) {
        let mut before = std::mem::take(&mut self.workers);
        for manifest in manifests {
            let kept = before.iter().position(|worker| worker.manifest == *manifest);
            self.workers.push(match kept {
                Some(at) => before.swap_remove(at),
                None => Worker::new(manifest),
            });
        }
        for worker in &mut self.workers {
            worker.tick = worker.tick.map(|tick| tick.min(now + times.interval));
        }
        self.waiting.retain(|run| manifests.contains(&run.manifest));
        if times.health_check_interval != self.times.health_check_interval {
            self.next_health_check = None;
            self.waiting.retain(|run| run.mode == RunMode::Apply);
        }
        self.times = times;
    }

    /// Returns the next action. Call it again until there is nothing to start.
    pub fn next(&mut self, now: Moment) -> Next {
        if self.is_stopped {
            return Next::Wait(None);
        }
        self.ask_for_due(now);
        if self.running.is_none()
            && let Some(run) = self.waiting.pop_front()
        {
            self.started(&run, now);
            self.running = Some(run.clone());
            return Next::Start(run);
        }
        Next::Wait(self.next_due())
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Moment> {
        let workers = self.workers.iter().filter_map(Worker::next);
        workers.chain(self.next_health_check).min()
    }

    /// The next run that is foreseen.
    pub fn next_run(&self) -> Option<Moment> {
        self.next_due().filter(|_| !self.is_stopped)
    }

    /// Asks for everything whose time has come.
    fn ask_for_due(&mut self, now: Moment) {
        for at in 0..self.workers.len() {
            let is_own_apply = self.running.as_ref().is_some_and(|run| {
                run.mode == RunMode::Apply && run.manifest == self.workers[at].manifest
            });
            let interval = self.times.interval;
            let worker = &mut self.workers[at];
            if let Some((due, reason)) = worker.change
                && due <= now
            {
                worker.change = None;
                self.ask(at, RunMode::Apply, reason);
            }
            let worker = &mut self.workers[at];
            if worker.remediation.is_some_and(|due| due <= now) {
                worker.remediation = None;
                self.ask(at, RunMode::Apply, RunReason::Remediation);
            }
            let worker = &mut self.workers[at];
            if let Some(due) = worker.tick
                && due <= now
            {
                if is_own_apply {
                    worker.tick = Some(after(due, interval, now));
                } else {
                    (worker.tick, worker.is_tick_waiting) = (None, true);
                    self.ask(at, RunMode::Apply, RunReason::Schedule);
                }
            }
        }
        self.ask_for_health_checks(now);
    }

    fn ask_for_health_checks(&mut self, now: Moment) {
        let interval = self.times.health_check_interval;
        if interval.is_zero() {
            self.next_health_check = None;
            return;
        }
        let due = *self.next_health_check.get_or_insert(now + interval);
        if due > now {
            return;
        }
        self.next_health_check = Some(after(due, interval, now));
        for at in 0..self.workers.len() {
            let worker = &self.workers[at];
            let is_own_run =
                self.running.as_ref().is_some_and(|run| run.manifest == worker.manifest);
            // Before the first apply there is nothing to be well.
            if self.is_ready(at) && worker.last_apply.is_some() && !is_own_run {
                self.ask(at, RunMode::Health, RunReason::Schedule);
            }
        }
    }

    /// Adds a run to those that wait. A worker has one there at most; an apply
    /// takes the place of a health check.
    fn ask(&mut self, at: usize, mode: RunMode, reason: RunReason) {
        let manifest = self.workers[at].manifest.clone();
        let request = RunRequest { manifest, mode, reason };
        match self.waiting.iter_mut().find(|run| run.manifest == request.manifest) {
            Some(run) if run.mode == RunMode::Health && mode == RunMode::Apply => {
                *run = request;
            }
            Some(_) => {}
            None => self.waiting.push_back(request),
        }
    }

    /// Takes note of a run that begins now.
    fn started(&mut self, run: &RunRequest, now: Moment) {
        let Some(at) = self.position(&run.manifest) else { return };
        if run.mode == RunMode::Health {
            return;
        }
        let interval = self.times.interval;
        let worker = &mut self.workers[at];
        worker.last_apply = Some(now);
        // This apply does what those would have done.
        (worker.change, worker.remediation) = (None, None);
        if run.reason == RunReason::Remediation {
            worker.remediations = worker.remediations.saturating_add(1);
        }
        // An apply for another reason does not move the sequence: otherwise a new
        // manifest would make all machines of a fleet run at the same time.
        if std::mem::take(&mut worker.is_tick_waiting) || worker.applies == 0 {
            worker.applies = worker.applies.saturating_add(1).min(2);
            worker.tick = Some(match worker.applies {
                1 => now + (self.random)(interval),
                _ => now + interval,
            });
        }
    }

    fn is_ready(&self, at: usize) -> bool {
        self.has_data && self.workers[at].is_available
    }

    fn position(&self, manifest: &str) -> Option<usize> {
        self.workers.iter().position(|worker| worker.manifest == manifest)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { times, workers, waiting, running, .. } = self;
        f.debug_struct("Schedule")
            .field("times", times)
            .field("workers", workers)
            .field("waiting", waiting)
            .field("running", running)
            .finish_non_exhaustive()
    }
}

/// The first tick of a sequence after now.
fn after(due: Moment, interval: Duration, now: Moment) -> Moment {
    let behind = now.saturating_sub(due).as_nanos() / interval.as_nanos().max(1);
    let passed = u32::try_from(behind).unwrap_or(u32::MAX);
    let next = due.saturating_add(interval.saturating_mul(passed)).saturating_add(interval);
    // A machine that slept for a very long time.
    if next > now { next } else { now + interval }
}

#[cfg(test)]
mod tests;
