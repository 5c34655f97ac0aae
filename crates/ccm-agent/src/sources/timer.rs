//! When to check a source next: a pure function of past events, time and
//! randomness.

use std::time::Duration;

/// How often a source is checked whose changes are told.
const NOTIFIED: Duration = Duration::from_mins(5);
/// How often a server is asked that says whether anything is new.
const POLLED: Duration = Duration::from_secs(30);
/// After a notice, a check that finds nothing new is repeated after these times,
/// the last one first: a notice is faster than the replicas.
const REPEATS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(1)];
/// The delay after the first failure; it doubles with each one.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_mins(5);
/// Notices do not cause checks in quicker succession.
const MIN_GAP: Duration = Duration::from_secs(1);

/// How the changes of a source are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Changes are announced by notifications.
    Notified,
    /// The server is asked.
    Polled,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is a new copy. `is_cheap` if the server can say next time whether
    /// anything is new.
    New {
        is_cheap: bool,
    },
    /// Nothing is new.
    Same {
        is_cheap: bool,
    },
    Failed,
}

/// When one source is checked. Times are those since the machine was started;
/// random numbers are from 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    pace: Pace,
    interval: Duration,
    splay: Duration,
    /// When to check; `None` while a check is under way.
    due: Option<Duration>,
    /// A check that a notice asked for is due: further ones ask for nothing more.
    is_noticed: bool,
    /// Repeats that are left.
    repeats: usize,
    failures: u32,
    ended: Option<Duration>,
    /// Events during the current check.
    missed: Missed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missed {
    Nothing,
    Notice,
    Order,
}

impl Timer {
    /// The first check is due at once.
    pub(super) fn new(pace: Pace, interval: Duration, splay: Duration, now: Duration) -> Self {
        Self {
            pace,
            interval,
            splay,
            due: Some(now),
            is_noticed: false,
            repeats: 0,
            failures: 0,
            ended: None,
            missed: Missed::Nothing,
        }
    }

    /// When the next check is due; `None` while one is under way.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Something may have changed: check after a random delay.
    pub(super) fn notice(&mut self, now: Duration, random: f64) {
        let Some(due) = self.due else {
            self.missed = self.missed.max(Missed::Notice);
            return;
        };
        self.repeats = REPEATS.len();
        if self.is_noticed {
            return;
        }
        self.is_noticed = true;
        let earliest = self.ended.map_or(now, |ended| now.max(ended + MIN_GAP));
        self.due = Some(due.min(earliest.max(now + self.splay.mul_f64(random))));
    }

    /// Looks at the source now.
    pub(super) fn order(&mut self, now: Duration) {
        match &mut self.due {
            Some(due) => *due = now,
            None => self.missed = Missed::Order,
        }
    }

    /// A check begins.
    pub(super) fn begin(&mut self) {
        self.due = None;
        self.is_noticed = false;
    }

    /// A check has ended.
    pub(super) fn end(&mut self, now: Duration, outcome: Outcome, random: &mut dyn FnMut() -> f64) {
        self.ended = Some(now);
        let wait = match outcome {
            Outcome::Failed => {
                let wait = retry(self.failures, random());
                self.failures = self.failures.saturating_add(1);
                wait
            }
            Outcome::Same { is_cheap } => {
                self.failures = 0;
                match self.repeats.checked_sub(1) {
                    Some(left) => {
                        self.repeats = left;
                        REPEATS[left]
                    }
                    None => self.regular(is_cheap, random()),
                }
            }
            Outcome::New { is_cheap } => {
                (self.failures, self.repeats) = (0, 0);
                self.regular(is_cheap, random())
            }
        };
        self.due = Some(now + wait);
        match std::mem::replace(&mut self.missed, Missed::Nothing) {
            Missed::Nothing => {}
            Missed::Notice => self.notice(now, random()),
            Missed::Order => self.order(now),
        }
    }

    fn regular(&self, is_cheap: bool, random: f64) -> Duration {
        let around = |whole: Duration| whole.mul_f64(0.8 + 0.4 * random);
        match self.pace {
            Pace::Notified => around(NOTIFIED),
            Pace::Polled if is_cheap => around(POLLED),
            Pace::Polled => self.interval,
        }
    }
}

/// The delay after so many failures before: uniform between half and the whole
/// of `min(0.5 s × 2ⁿ, 5 min)`.
fn retry(failures: u32, random: f64) -> Duration {
    let whole = FIRST_RETRY.saturating_mul(1 << failures.min(16)).min(MAX_RETRY);
    whole.mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: Outcome = Outcome::Same { is_cheap: true };
    const NEW: Outcome = Outcome::New { is_cheap: true };

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn timer(pace: Pace) -> Timer {
        Timer::new(pace, Duration::from_mins(10), Duration::from_secs(30), at(100_000))
    }

    /// Checks when it is due, which takes no time; the milliseconds until the next
    /// check.
    fn check(timer: &mut Timer, outcome: Outcome, random: f64) -> u128 {
        let now = timer.due().unwrap();
        timer.begin();
        assert_eq!(timer.due(), None);
        timer.end(now, outcome, &mut || random);
        timer.due().unwrap().saturating_sub(now).as_millis()
    }

    #[test]
    fn the_first_check_is_at_once_and_then_they_are_regular() {
        for (pace, is_cheap, low, high) in [
            (Pace::Notified, true, 240_000, 360_000),
            (Pace::Notified, false, 240_000, 360_000),
            (Pace::Polled, true, 24_000, 36_000),
            (Pace::Polled, false, 600_000, 600_000),
        ] {
            let mut timer = timer(pace);
            assert_eq!(timer.due(), Some(at(100_000)));
            assert_eq!(check(&mut timer, Outcome::New { is_cheap }, 0.0), low);
            assert_eq!(check(&mut timer, Outcome::Same { is_cheap }, 1.0), high);
        }
    }

    #[test]
    fn failures_are_retried_ever_more_rarely_and_for_ever() {
        let mut timer = timer(Pace::Notified);
        let waits: Vec<u128> = (0..12).map(|_| check(&mut timer, Outcome::Failed, 1.0)).collect();
        assert_eq!(waits[..4], [500, 1000, 2000, 4000]);
        assert_eq!(waits[10..], [300_000, 300_000]);
        assert_eq!(check(&mut timer, Outcome::Failed, 0.0), 150_000);
        for _ in 0..100 {
            check(&mut timer, Outcome::Failed, 0.5);
        }
        assert_eq!(check(&mut timer, SAME, 0.5), 300_000);
        assert_eq!(check(&mut timer, Outcome::Failed, 1.0), 500, "counted anew");
    }

    #[test]
    fn a_notice_is_looked_after_within_the_splay_and_twice_more() {
        let mut timer = timer(Pace::Notified);
        check(&mut timer, NEW, 0.5);
        timer.notice(at(200_000), 0.5);
        assert_eq!(timer.due(), Some(at(215_000)));
        // Others do not make it earlier, whatever they draw.
        timer.notice(at(201_000), 0.0);
        assert_eq!(timer.due(), Some(at(215_000)));
        assert_eq!(check(&mut timer, SAME, 0.5), 1000);
        assert_eq!(check(&mut timer, SAME, 0.5), 5000);
        assert_eq!(check(&mut timer, SAME, 0.5), 300_000);
        timer.notice(at(400_000), 0.0);
        assert_eq!(timer.due(), Some(at(400_000)));
        assert_eq!(check(&mut timer, NEW, 0.5), 300_000, "what is found is not looked for again");
    }

    #[test]
    fn a_notice_during_a_look_is_not_lost() {
        let mut timer = timer(Pace::Notified);
        timer.begin();
        timer.notice(at(101_000), 0.0);
        assert_eq!(timer.due(), None);
        timer.end(at(102_000), NEW, &mut || 0.5);
        assert_eq!(timer.due(), Some(at(117_000)));
        assert_eq!(check(&mut timer, SAME, 0.5), 1000);
    }

    #[test]
    fn an_order_is_obeyed_at_once() {
        let mut timer = timer(Pace::Polled);
        check(&mut timer, SAME, 0.5);
        timer.order(at(105_000));
        assert_eq!(timer.due(), Some(at(105_000)));
        timer.begin();
        timer.order(at(106_000));
        timer.notice(at(106_000), 0.5);
        timer.end(at(107_000), Outcome::Failed, &mut || 1.0);
        assert_eq!(timer.due(), Some(at(107_000)));
    }

    /// A source that changes all the time is checked once a second at most.
    #[test]
    fn many_notices_do_not_make_many_checks() {
        for outcome in [NEW, SAME, Outcome::Failed] {
            let mut timer = Timer::new(Pace::Notified, at(60_000), Duration::ZERO, at(0));
            let mut checks = 0;
            for tick in 0..1200 {
                let now = at(tick * 50);
                timer.notice(now, 0.0);
                if timer.due().is_some_and(|due| due <= now) {
                    timer.begin();
                    timer.end(now, outcome, &mut || 1.0);
                    checks += 1;
                }
            }
            assert!((50..=61).contains(&checks), "{outcome:?}: {checks}");
        }
    }
}
