//! The thread that schedules the checks of all sources.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ccm_host::Host;

use super::timer::{Outcome, Timer};

/// A machine that slept notices after waking that something is due: the clock
/// that waits go by does not count that time.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// A source, as far as time is concerned.
pub(super) trait Work: Send + Sync {
    /// Looks at the source, which may take long.
    fn check(&self) -> (Outcome, Result<(), String>);
}

/// Sources by number, and a thread that waits for the next check while there are
/// any. Each check has a thread of its own.
pub(super) struct Watcher {
    host: Host,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<u64, Job>,
    last: u64,
    is_running: bool,
}

struct Job {
    timer: Timer,
    work: Arc<dyn Work>,
    /// How many checks have begun, and which one was the last to end, how.
    begun: u64,
    ended: u64,
    result: Result<(), String>,
}

/// Why no check ended well.
pub(super) enum Unseen {
    Failed(String),
    Late,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

impl Watcher {
    pub(super) fn new(host: &Host) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { host: host.clone(), state, changed })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.host.since_boot()
    }

    /// A random number from 0 to 1.
    fn random(&self) -> f64 {
        f64::from(u32::from_ne_bytes(self.host.random())) / f64::from(u32::MAX)
    }

    /// Adds a source; its number.
    pub(super) fn add(self: &Arc<Self>, timer: Timer, work: Arc<dyn Work>) -> std::io::Result<u64> {
        let mut state = self.state();
        state.last += 1;
        let id = state.last;
        state.jobs.insert(id, Job { timer, work, begun: 0, ended: 0, result: Ok(()) });
        if !state.is_running {
            let watcher = Arc::clone(self);
            let spawned = std::thread::Builder::new()
                .name("ccm-sources".to_owned())
                .spawn(move || watcher.run());
            if let Err(error) = spawned {
                state.jobs.remove(&id);
                return Err(error);
            }
            state.is_running = true;
        }
        drop(state);
        self.changed.notify_all();
        Ok(id)
    }

    /// Forgets a source. A check that is under way changes nothing any more.
    pub(super) fn remove(&self, id: u64) {
        // Dropped when the lock is free: it may hold whatever.
        let removed = self.state().jobs.remove(&id);
        self.changed.notify_all();
        drop(removed);
    }

    /// Something may have changed.
    pub(super) fn notice(&self, id: u64) {
        let (now, random) = (self.now(), self.random());
        self.update(id, |timer| timer.notice(now, random));
    }

    /// Looks at the source now.
    pub(super) fn order(&self, id: u64) {
        let now = self.now();
        self.update(id, |timer| timer.order(now));
    }

    fn update(&self, id: u64, change: impl FnOnce(&mut Timer)) {
        if let Some(job) = self.state().jobs.get_mut(&id) {
            change(&mut job.timer);
        }
        self.changed.notify_all();
    }

    /// Waits for the check that is under way, or for a new one.
    pub(super) fn check_once(&self, id: u64, limit: Duration) -> Result<(), Unseen> {
        let until = Instant::now() + limit;
        let now = self.now();
        let mut state = self.state();
        let Some(job) = state.jobs.get_mut(&id) else { return Err(Unseen::Late) };
        let wanted = if job.timer.due().is_some() {
            job.timer.order(now);
            job.begun + 1
        } else {
            job.begun
        };
        self.changed.notify_all();
        loop {
            match state.jobs.get(&id) {
                Some(job) if job.ended >= wanted => {
                    return job.result.clone().map_err(Unseen::Failed);
                }
                Some(_) => {}
                None => return Err(Unseen::Late),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Unseen::Late);
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Begins checks when they are due, until there are no sources.
    fn run(self: Arc<Self>) {
        let mut state = self.state();
        loop {
            if state.jobs.is_empty() {
                state.is_running = false;
                return;
            }
            let now = self.now();
            let mut next = now + MAX_WAIT;
            let mut begun = Vec::new();
            for (id, job) in &mut state.jobs {
                match job.timer.due() {
                    Some(due) if due <= now => {
                        job.timer.begin();
                        job.begun += 1;
                        begun.push((*id, Arc::clone(&job.work)));
                    }
                    Some(due) => next = next.min(due),
                    None => {}
                }
            }
            if begun.is_empty() {
                let woken = self.changed.wait_timeout(state, next.saturating_sub(now));
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            for (id, work) in begun {
                self.begin(id, work);
            }
            state = self.state();
        }
    }

    fn begin(self: &Arc<Self>, id: u64, work: Arc<dyn Work>) {
        let watcher = Arc::clone(self);
        let check = move || {
            let ended = work.check();
            drop(work);
            watcher.end(id, ended);
        };
        let spawned = std::thread::Builder::new().name("ccm-check".to_owned()).spawn(check);
        if let Err(error) = spawned {
            self.end(id, (Outcome::Failed, Err(format!("cannot start a thread: {error}"))));
        }
    }

    fn end(&self, id: u64, (outcome, result): (Outcome, Result<(), String>)) {
        let now = self.now();
        if let Some(job) = self.state().jobs.get_mut(&id) {
            job.timer.end(now, outcome, &mut || self.random());
            job.ended = job.begun;
            job.result = result;
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::timer::Pace;
    use super::*;

    struct Count(AtomicUsize, Result<(), String>);

    impl Work for Count {
        fn check(&self) -> (Outcome, Result<(), String>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            let outcome = match &self.1 {
                Ok(()) => Outcome::Same { is_cheap: true },
                Err(_) => Outcome::Failed,
            };
            (outcome, self.1.clone())
        }
    }

    fn timer(watcher: &Watcher) -> Timer {
        let hour = Duration::from_hours(1);
        Timer::new(Pace::Polled, hour, Duration::ZERO, watcher.now())
    }

    #[test]
    fn checks_are_made_when_they_are_asked_for() {
        let watcher = Watcher::new(&Host::new());
        let good = Arc::new(Count(AtomicUsize::new(0), Ok(())));
        let bad = Arc::new(Count(AtomicUsize::new(0), Err("no".to_owned())));
        let first = watcher.add(timer(&watcher), good.clone()).unwrap();
        let second = watcher.add(timer(&watcher), bad.clone()).unwrap();
        let limit = Duration::from_mins(1);
        assert!(watcher.check_once(first, limit).is_ok());
        assert!(matches!(watcher.check_once(second, limit), Err(Unseen::Failed(no)) if no == "no"));
        let before = good.0.load(Ordering::SeqCst);
        assert!(watcher.check_once(first, limit).is_ok());
        assert_eq!(good.0.load(Ordering::SeqCst), before + 1);
        watcher.remove(first);
        watcher.remove(second);
        assert!(matches!(watcher.check_once(first, limit), Err(Unseen::Late)));
        ccm_testkit::wait_until("the end of the thread", || {
            (Arc::strong_count(&watcher) == 1).then_some(())
        });
        // A thread of its own for those who come later.
        let third = watcher.add(timer(&watcher), good).unwrap();
        assert!(watcher.check_once(third, limit).is_ok());
        watcher.remove(third);
    }

    #[test]
    fn one_that_hangs_delays_no_other() {
        struct Hang(Arc<Mutex<()>>);
        impl Work for Hang {
            fn check(&self) -> (Outcome, Result<(), String>) {
                drop(self.0.lock());
                (Outcome::Failed, Ok(()))
            }
        }
        let watcher = Watcher::new(&Host::new());
        let held = Arc::new(Mutex::new(()));
        let guard = held.lock().unwrap();
        let hanging = watcher.add(timer(&watcher), Arc::new(Hang(Arc::clone(&held)))).unwrap();
        let good = Arc::new(Count(AtomicUsize::new(0), Ok(())));
        let other = watcher.add(timer(&watcher), good).unwrap();
        assert!(watcher.check_once(other, Duration::from_mins(1)).is_ok());
        let late = watcher.check_once(hanging, Duration::from_millis(50));
        assert!(matches!(late, Err(Unseen::Late)));
        watcher.remove(hanging);
        watcher.remove(other);
        drop(guard);
    }
}
