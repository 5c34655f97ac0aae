//! Values that threads share, behind a lock.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that a panic does not poison: every value behind one of these is
/// complete whenever it can be seen, as none is changed in several steps.
#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn hold(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, value: T) {
        *self.hold() = value;
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hold().fmt(f)
    }
}
