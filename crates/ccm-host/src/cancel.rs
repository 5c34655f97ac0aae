//! Cancellation: a token that asks a run to stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::lock::Lock;

/// A token that stops a run, from any thread. Clones are the same token.
///
/// A cancelled run terminates its running command, starts no further resource
/// and reports what it did.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
}

/// Why a run was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The process received this signal.
    Signal(i32),
    /// Requested by the caller.
    Requested,
    /// Its time is up.
    Deadline,
}

#[derive(Debug, Default)]
struct Shared {
    /// 0 for none, else the number of a signal, [`REQUESTED`] or [`DEADLINE`].
    reason: AtomicI32,
    deadline: Option<Instant>,
    /// Written to when the token is cancelled.
    event: Option<OwnedFd>,
    /// Readable once the token is cancelled, so that waits can end early: the
    /// event, or both event and timer.
    wake: Option<OwnedFd>,
    /// Kept open for `wake`.
    _timer: Option<OwnedFd>,
    /// Whether commands are killed, also one that is about to be set.
    is_killing: AtomicBool,
    /// Shared with the tokens of [`Cancel::part`].
    leftovers: Arc<Leftovers>,
}

/// What must not outlive a run that is not waited for.
#[derive(Debug, Default)]
struct Leftovers {
    /// The process group of the command that runs now; 0 for none.
    command: AtomicI32,
    /// Temporary files and directories to remove if the end is sudden.
    temporary: Lock<Vec<PathBuf>>,
}

const REQUESTED: i32 = -1;
const DEADLINE: i32 = -2;

impl Cancel {
    /// A token that can be cancelled. The default one cannot wake a waiting run.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        let wake = new_event()?;
        let event = wake.try_clone()?;
        let shared = Shared { event: Some(event), wake: Some(wake), ..Shared::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Creates a token for a nested run. Cancelling it does not cancel this
    /// one, but abandoning this one abandons it.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no descriptor left.
    pub fn part(&self) -> std::io::Result<Self> {
        let wake = new_event()?;
        let event = wake.try_clone()?;
        let leftovers = Arc::clone(&self.shared.leftovers);
        let shared =
            Shared { event: Some(event), wake: Some(wake), leftovers, ..Shared::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Creates a token that is cancelled automatically after this time.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no descriptor left.
    pub fn with_deadline(after: Duration) -> std::io::Result<Self> {
        let event = new_event()?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // A timer of zero never ends.
        let after = after.max(Duration::from_nanos(1));
        let value = timespec(after);
        let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
        // Readable when either of its descriptors is.
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (data, fd) in [(0, event.as_fd()), (1, timer.as_fd())] {
            epoll::add(&wake, fd, epoll::EventData::new_u64(data), epoll::EventFlags::IN)?;
        }
        let shared = Shared {
            deadline: Instant::now().checked_add(after),
            event: Some(event),
            wake: Some(wake),
            _timer: Some(timer),
            ..Shared::default()
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Cancels; false when the token was cancelled before, whose reason stays.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let code = match reason {
            CancelReason::Signal(signal) => signal,
            CancelReason::Requested => REQUESTED,
            CancelReason::Deadline => DEADLINE,
        };
        let before =
            self.shared.reason.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        if before.is_ok()
            && let Some(event) = &self.shared.event
        {
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
        before.is_ok()
    }

    /// Why the token was cancelled, if it was.
    pub fn reason(&self) -> Option<CancelReason> {
        match self.shared.reason.load(Ordering::Relaxed) {
            0 => {
                let deadline = self.shared.deadline?;
                (Instant::now() >= deadline).then(|| {
                    self.cancel(CancelReason::Deadline);
                    CancelReason::Deadline
                })
            }
            REQUESTED => Some(CancelReason::Requested),
            DEADLINE => Some(CancelReason::Deadline),
            signal => Some(CancelReason::Signal(signal)),
        }
    }

    /// Whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Sleeps for this time, or until the token is cancelled.
    pub fn pause(&self, duration: Duration) {
        let until = Instant::now().checked_add(duration);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.is_cancelled() || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let mut wake: Vec<PollFd<'_>> = self
                .wake()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .into_iter()
                .collect();
            let left = left.map(timespec);
            // However it ends, the loop looks at both reasons to stop.
            let _ = poll(&mut wake, left.as_ref());
        }
    }

    /// Cleans up before the process exits without waiting for the run: kills
    /// the running command and removes temporary files.
    pub fn abandon(&self) {
        self.kill_command();
        for path in self.shared.leftovers.temporary.hold().iter() {
            if rustix::fs::unlink(path).is_err() {
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }

    /// Kills the command that runs now, also one that a cancelled run waits for,
    /// and every later one of this token: the run may have started one that it has
    /// not told of yet.
    pub fn kill_command(&self) {
        self.shared.is_killing.store(true, Ordering::SeqCst);
        kill_group(self.shared.leftovers.command.load(Ordering::SeqCst));
    }

    /// Readable once the token is cancelled.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.shared.wake.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn remember(&self, temporary: &Path) {
        self.shared.leftovers.temporary.hold().push(temporary.to_owned());
    }

    pub(crate) fn forget(&self, temporary: &Path) {
        self.shared.leftovers.temporary.hold().retain(|known| known != temporary);
    }

    /// Says which process group must not outlive a sudden end.
    pub(crate) fn set_command(&self, group: i32) {
        self.shared.leftovers.command.store(group, Ordering::SeqCst);
        if self.shared.is_killing.load(Ordering::SeqCst) {
            kill_group(group);
        }
    }
}

fn kill_group(group: i32) {
    if let Some(group) = rustix::process::Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

fn new_event() -> std::io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Error, Exit, System};

    #[test]
    fn a_pause_lasts_unless_the_token_is_cancelled() {
        let calm = Cancel::default();
        let begin = Instant::now();
        calm.pause(Duration::from_millis(50));
        assert!(begin.elapsed() >= Duration::from_millis(50));
        let cancel = Cancel::new().unwrap();
        let sender = cancel.clone();
        let thread = std::thread::spawn(move || {
            // Into the pause; the result is the same before it.
            std::thread::sleep(Duration::from_millis(50));
            assert!(sender.cancel(CancelReason::Signal(2)));
            assert!(!sender.cancel(CancelReason::Requested), "the first reason counts");
        });
        let begin = Instant::now();
        cancel.pause(Duration::from_mins(1));
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(cancel.reason(), Some(CancelReason::Signal(2)));
        thread.join().unwrap();
    }

    #[test]
    fn a_deadline_ends_a_command() {
        let cancel = Cancel::with_deadline(Duration::from_millis(100)).unwrap();
        assert_eq!(cancel.reason(), None);
        let host = System::default().begin(cancel.clone());
        let begin = Instant::now();
        let ended = host.run(&Command::new("sleep", ["60"]), &mut |_, _| {});
        assert!(matches!(ended, Err(Error::Interrupted { .. })), "{ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(cancel.reason(), Some(CancelReason::Deadline));
    }

    /// Whoever kills may be faster than the run that has just started a command.
    #[test]
    fn a_command_that_starts_too_late_is_killed_too() {
        let cancel = Cancel::new().unwrap();
        cancel.kill_command();
        let host = System::default().begin(cancel);
        let ended = host.run(&Command::new("sleep", ["20"]), &mut |_, _| {});
        assert!(matches!(&ended, Ok(output) if output.exit == Exit::Signal(9)), "{ended:?}");
    }

    #[test]
    fn a_command_that_is_not_interrupted_can_be_killed() {
        let whole = Cancel::new().unwrap();
        let cancel = whole.part().unwrap();
        let host = System::default().begin(cancel.clone());
        let (began, begins) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let script = "echo began; exec sleep 60";
            let command = Command::new("sh", ["-c", script]).uninterruptible();
            host.run(&command, &mut |_, _| began.send(()).unwrap())
        });
        begins.recv().unwrap();
        assert!(cancel.cancel(CancelReason::Requested));
        assert!(!whole.is_cancelled(), "a part is cancelled alone");
        // Nothing tells that it goes on: one that is interrupted would end in this time.
        std::thread::sleep(Duration::from_millis(100));
        assert!(!thread.is_finished(), "it is not interrupted");
        whole.abandon();
        let ended = thread.join().unwrap();
        assert!(matches!(&ended, Ok(output) if output.exit == Exit::Signal(9)), "{ended:?}");
    }
}
