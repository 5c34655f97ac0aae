//! Bookkeeping of system calls that may never return.
//!
//! A thread that asks a file system whose server is gone can be left behind, but
//! not ended. A process that asks again and again would collect such threads, so
//! each question is asked once at a time, by whichever run comes first.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Instant;

use crate::Host;
use crate::lock::Lock;

/// What is asked, and of which path.
type Query = (&'static str, PathBuf);

/// The questions of all runs of a process that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    pending: Lock<HashSet<Query>>,
    answered: Condvar,
}

/// A question that is being asked. It is answered when this is dropped, which
/// belongs into the thread that asks.
#[derive(Debug)]
pub struct PendingQuery {
    queries: Arc<Queries>,
    query: Query,
}

impl Host {
    /// Registers a question about a path, unless a run of this process is still
    /// waiting for the answer to the same question.
    pub fn try_query(&self, what: &'static str, path: &Path) -> Option<PendingQuery> {
        self.query_until(what, path, Instant::now())
    }

    /// As [`Host::try_query`], but waits for that answer until `deadline`.
    pub fn query_until(
        &self,
        what: &'static str,
        path: &Path,
        deadline: Instant,
    ) -> Option<PendingQuery> {
        let queries = self.inner.system.queries();
        let query = (what, path.to_owned());
        let mut pending = queries.pending.hold();
        while pending.contains(&query) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = queries.answered.wait_timeout(pending, left);
            pending = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.insert(query.clone());
        Some(PendingQuery { queries: Arc::clone(queries), query })
    }
}

impl Drop for PendingQuery {
    fn drop(&mut self) {
        self.queries.pending.hold().remove(&self.query);
        self.queries.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Cancel, System};

    #[test]
    fn a_question_is_pending_once_in_all_runs() {
        let system = System::default();
        let (one, two) = (system.begin(Cancel::default()), system.begin(Cancel::default()));
        let path = Path::new("/mnt");
        let first = one.try_query("space", path).unwrap();
        assert!(one.try_query("space", path).is_none());
        assert!(two.try_query("space", path).is_none());
        assert!(two.try_query("files", path).is_some(), "another question");
        assert!(two.try_query("space", Path::new("/srv")).is_some(), "another path");
        assert!(Host::new().try_query("space", path).is_some(), "another process");
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(two.query_until("space", path, soon).is_none());
        assert!(Instant::now() >= soon);
        drop(first);
        assert!(two.try_query("space", path).is_some());
    }

    #[test]
    fn whoever_waits_goes_on_when_the_answer_is_there() {
        let system = System::default();
        let first = system.begin(Cancel::default()).try_query("space", Path::new("/")).unwrap();
        let host = system.begin(Cancel::default());
        let late = Instant::now() + Duration::from_mins(1);
        let thread = std::thread::spawn(move || {
            host.query_until("space", Path::new("/"), late).is_some() && Instant::now() < late
        });
        drop(first);
        assert!(thread.join().unwrap());
    }
}
