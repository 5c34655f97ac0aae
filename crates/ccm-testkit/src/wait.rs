//! Waiting for a condition.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine. It bounds a test that hangs, and
/// says nothing about speed.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// An answer that may not be there yet.
pub trait Sign {
    /// What it is when it is there.
    type Value;

    /// The value, or nothing if it is still to come.
    fn value(self) -> Option<Self::Value>;
}

impl Sign for bool {
    type Value = ();

    fn value(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Sign for Option<T> {
    type Value = T;

    fn value(self) -> Self {
        self
    }
}

/// Looks until a condition is true, or until there is a value, and returns it.
/// Panics after [`PATIENCE`]; `what` is for the message and only shown then.
///
/// ```
/// let begin = std::time::Instant::now();
/// ccm_testkit::wait_until("a moment to pass", || begin.elapsed().as_millis() > 3);
/// assert_eq!(ccm_testkit::wait_until("a number", || "7".parse::<u8>().ok()), 7);
/// ```
pub fn wait_until<S: Sign>(what: impl Display, look: impl FnMut() -> S) -> S::Value {
    let found = wait_within(PATIENCE, look);
    found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for {what}"))
}

fn wait_within<S: Sign>(limit: Duration, mut look: impl FnMut() -> S) -> Option<S::Value> {
    let until = Instant::now() + limit;
    loop {
        // The last look comes after the limit, however long the thread was away.
        let is_last = Instant::now() >= until;
        let found = look().value();
        if found.is_some() || is_last {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_until_it_finds_and_gives_up_in_the_end() {
        let mut looks = 0;
        let third = wait_within(PATIENCE, || {
            looks += 1;
            (looks == 3).then_some("there")
        });
        assert_eq!((third, looks), (Some("there"), 3));
        assert_eq!(wait_within(Duration::from_millis(20), || false), None);
        assert_eq!(wait_within(Duration::ZERO, || true), Some(()), "it looks at least once");
    }
}
