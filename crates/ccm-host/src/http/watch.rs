//! Cancels a request while the server does not respond.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use ureq::Agent;

use crate::Cancel;

/// Closes the connection when a signal comes, for as long as it lives.
pub(super) struct Watch {
    done: std::sync::Arc<OwnedFd>,
}

impl Watch {
    /// Nothing to watch for is no failure.
    pub(super) fn start(agent: &Agent, cancel: &Cancel) -> Option<Self> {
        cancel.wake()?;
        let done = std::sync::Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let (agent, cancel) = (agent.clone(), cancel.clone());
        let ended = std::sync::Arc::clone(&done);
        let watch = move || {
            let Some(wake) = cancel.wake() else { return };
            let mut both = [
                PollFd::from_borrowed_fd(wake, PollFlags::IN),
                PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
            ];
            let _ = rustix::io::retry_on_intr(|| poll(&mut both, None));
            if both[1].revents().is_empty() {
                agent.shutdown();
            }
        };
        std::thread::Builder::new().name("fetch".into()).spawn(watch).ok()?;
        Some(Self { done })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.done, &1u64.to_ne_bytes());
    }
}
