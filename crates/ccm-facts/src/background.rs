//! Work that may never end.

use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Work that goes on beside its caller. A thread that is stuck in the kernel
/// cannot be ended, only left behind.
pub(crate) struct BackgroundTask<T>(Receiver<T>);

impl<T: Send + 'static> BackgroundTask<T> {
    pub(crate) fn start(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("facts".to_owned());
        let started = thread.spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(work());
        });
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start a thread");
        }
        Self(receiver)
    }

    /// The result, if it comes in time.
    pub(crate) fn wait(self, until: Instant) -> Option<T> {
        self.0.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_late_is_left_behind() {
        let soon = Instant::now() + Duration::from_millis(50);
        let stuck = BackgroundTask::start(|| std::thread::sleep(Duration::from_mins(1)));
        assert_eq!(stuck.wait(soon), None);
        assert!(soon.elapsed() < Duration::from_secs(10));
        let later = Instant::now() + Duration::from_mins(1);
        assert_eq!(BackgroundTask::start(|| 5).wait(later), Some(5));
    }
}
