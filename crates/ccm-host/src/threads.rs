//! Threads for work that may hang. Idle threads are reused.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};

use crate::Host;
use crate::lock::Lock;

/// Work for a thread, with the thread's own address: it keeps none itself, so
/// that it ends with those who could send it more.
struct Job {
    work: Box<dyn FnOnce() + Send>,
    thread: Sender<Self>,
}

/// The threads of a run that wait for work.
#[derive(Default)]
pub(crate) struct Idle(Lock<Vec<Sender<Job>>>);

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Idle({})", self.0.hold().len())
    }
}

impl Host {
    /// Runs `work` in a detached thread: an idle one of this run, or a new one.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn in_thread(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut work: Box<dyn FnOnce() + Send> = Box::new(work);
        let idle = &self.inner.idle;
        while let Some(thread) = { idle.0.hold().pop() } {
            match thread.send(Job { work, thread: thread.clone() }) {
                Ok(()) => return Ok(()),
                Err(unsent) => work = unsent.0.work,
            }
        }
        let (thread, jobs) = channel();
        let idle = Arc::downgrade(idle);
        let run = move || follow(Job { work, thread }, &jobs, &idle);
        std::thread::Builder::new().name("work".into()).spawn(run)?;
        Ok(())
    }
}

/// Does one job after the other, idle in between, until the run is over.
fn follow(mut job: Job, jobs: &Receiver<Job>, idle: &Weak<Idle>) {
    loop {
        (job.work)();
        let Some(idle) = idle.upgrade() else { return };
        idle.0.hold().push(job.thread);
        drop(idle);
        let Ok(next) = jobs.recv() else { return };
        job = next;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::ThreadId;

    use ccm_testkit::wait_until;

    use super::*;

    fn run(host: &Host) -> ThreadId {
        let (sender, id) = channel();
        host.in_thread(move || sender.send(std::thread::current().id()).unwrap()).unwrap();
        let id = id.recv().unwrap();
        // It is idle a moment after its work.
        wait_until("the thread to be idle", || !host.inner.idle.0.hold().is_empty());
        id
    }

    #[test]
    fn threads_are_used_again_unless_they_hang() {
        let host = Host::default();
        let used: HashSet<_> = (0..10).map(|_| run(&host)).collect();
        assert_eq!(used.len(), 1);
        let (release, held) = channel::<()>();
        host.in_thread(move || held.recv().unwrap_or_default()).unwrap();
        let others: HashSet<_> = (0..10).map(|_| run(&host)).collect();
        assert!(others.len() == 1 && others.is_disjoint(&used));
        drop(release);
        let idle = Arc::downgrade(&host.inner.idle);
        drop(host);
        wait_until("idle threads to end with their run", || idle.strong_count() == 0);
    }

    #[test]
    fn work_that_panics_costs_its_thread_alone() {
        let host = Host::default();
        let (sender, ended) = channel::<()>();
        host.in_thread(move || {
            let _held = sender;
            panic!("on purpose");
        })
        .unwrap();
        assert!(ended.recv().is_err());
        run(&host);
    }
}
