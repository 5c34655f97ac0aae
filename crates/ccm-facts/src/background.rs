//! Background work on paths that may never respond.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use ccm_host::{Host, PendingQuery};

/// What [`Host::try_query`] calls this work.
const QUERY: &str = "facts files";

/// Work that goes on beside its caller. A thread that is stuck in the kernel
/// cannot be ended, only left behind; so no other is started for its path, by
/// this or any other run of the process.
pub(crate) struct BackgroundTask<T> {
    host: Host,
    path: PathBuf,
    work: Arc<dyn Fn(&Path) -> T + Send + Sync>,
    sender: Sender<T>,
    result: Receiver<T>,
    is_started: bool,
}

impl<T: Send + 'static> BackgroundTask<T> {
    pub(crate) fn start(
        host: &Host,
        path: &Path,
        work: impl Fn(&Path) -> T + Send + Sync + 'static,
    ) -> Self {
        let (sender, result) = channel();
        let (host, path, work) = (host.clone(), path.to_owned(), Arc::new(work));
        let mut task = Self { host, path, work, sender, result, is_started: false };
        if let Some(query) = task.host.try_query(QUERY, &task.path) {
            task.spawn(query);
        }
        task
    }

    fn spawn(&mut self, query: PendingQuery) {
        let (sender, work, path) = (self.sender.clone(), Arc::clone(&self.work), self.path.clone());
        let thread = std::thread::Builder::new().name("facts".to_owned());
        let started = thread.spawn(move || {
            let result = work(&path);
            drop(query);
            // The receiver may have stopped waiting.
            let _ = sender.send(result);
        });
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start a thread");
        }
        self.is_started = true;
    }

    /// The result, if it comes in time.
    pub(crate) fn wait(mut self, until: Instant) -> Option<T> {
        if !self.is_started {
            let query = self.host.query_until(QUERY, &self.path, until)?;
            self.spawn(query);
        }
        self.result.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use ccm_host::{Cancel, System};

    use super::*;

    #[test]
    fn what_is_late_is_left_behind_once() {
        let system = System::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let (release, gate) = channel::<()>();
        let gate = Arc::new(std::sync::Mutex::new(gate));
        for _ in 0..3 {
            let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
            let stuck = BackgroundTask::start(
                &system.begin(Cancel::default()),
                Path::new("/hangs"),
                move |_| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let _ = gate.lock().unwrap().recv();
                },
            );
            assert_eq!(stuck.wait(Instant::now() + Duration::from_millis(30)), None);
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        // When the path answers at last, it can be asked again.
        drop(release);
        let host = system.begin(Cancel::default());
        let asked = BackgroundTask::start(&host, Path::new("/hangs"), |_| 5);
        assert_eq!(asked.wait(Instant::now() + Duration::from_mins(1)), Some(5));
    }
}
