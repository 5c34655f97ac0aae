//! Signals: the first one asks the run to stop, the second ends it at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Error, Result};

/// How long to wait before a system call that failed is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Whether, and by which signal, the run was asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    signal: AtomicI32,
    /// Readable once a signal came, so that waits can end early.
    wake: Option<OwnedFd>,
    /// The process group of the command that runs now; 0 for none.
    command: AtomicI32,
    /// Temporary files and directories to remove if the end is sudden.
    temporary: Mutex<Vec<PathBuf>>,
}

impl Interrupt {
    /// Watches for SIGHUP, SIGINT and SIGTERM from now on. Those that are
    /// ignored, as `nohup` does, stay ignored.
    pub fn watch() -> Result<Self> {
        let failed = |source| Error::Spawn { command: "the signal handler".into(), source };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed(errno.into()))?;
        let shared = Arc::new(Shared { wake: Some(wake), ..Shared::default() });
        let ignored = ignored_signals();
        let is_watched = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        let watched = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(is_watched);
        let pipes = watched.map(watch_signal).collect::<std::io::Result<Vec<_>>>();
        let pipes = pipes.map_err(failed)?;
        let receiver = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || receiver.receive_from(&pipes))
            .map_err(failed)?;
        Ok(Self { shared })
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        Some(self.shared.signal.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }

    /// Lets time pass, but not after a signal came.
    pub fn pause(&self, duration: Duration) {
        let until = Instant::now().checked_add(duration);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.signal().is_some() || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let mut wake: Vec<PollFd<'_>> = self
                .wake()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .into_iter()
                .collect();
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            // However it ends, the loop looks at both reasons to stop.
            let _ = poll(&mut wake, left.as_ref());
        }
    }

    /// Readable once a signal came.
    pub(crate) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.shared.wake.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn remember(&self, temporary: &Path) {
        self.shared.temporary().push(temporary.to_owned());
    }

    pub(crate) fn forget(&self, temporary: &Path) {
        self.shared.temporary().retain(|known| known != temporary);
    }

    /// Says which process group must not outlive a sudden end.
    pub(crate) fn set_command(&self, group: i32) {
        self.shared.command.store(group, Ordering::Relaxed);
    }
}

impl Shared {
    fn temporary(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.temporary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the signal handlers write, for as long as the process lives.
    fn receive_from(&self, pipes: &[(i32, UnixStream)]) {
        if pipes.is_empty() {
            return;
        }
        loop {
            let mut ready: Vec<PollFd<'_>> =
                pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
            if poll(&mut ready, None).is_err_and(|errno| errno != Errno::INTR) {
                // Without memory for a moment: the signals wait in their pipes.
                std::thread::sleep(RETRY);
                continue;
            }
            let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
            for ((signal, pipe), is_ready) in pipes.iter().zip(ready) {
                // Signals of one kind that came at once are one.
                if is_ready && rustix::io::read(pipe, &mut [0_u8; 64]).is_ok_and(|got| got > 0) {
                    self.receive(*signal);
                }
            }
        }
    }

    /// The first signal is remembered, the second ends the process at once.
    fn receive(&self, signal: i32) {
        if self.signal.swap(signal, Ordering::Relaxed) == 0 {
            if let Some(wake) = &self.wake {
                let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
            }
            return;
        }
        if let Some(group) = rustix::process::Pid::from_raw(self.command.load(Ordering::Relaxed)) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        for path in self.temporary().iter() {
            if rustix::fs::unlink(path).is_err() {
                let _ = std::fs::remove_dir_all(path);
            }
        }
        std::process::exit(128 + signal);
    }
}

/// Lets the handler of a signal write into a pipe; gives back its other end.
fn watch_signal(signal: i32) -> std::io::Result<(i32, UnixStream)> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok((signal, read))
}

/// The signals that this process ignores, one bit each from 1 on.
///
/// Asking for the disposition itself takes `unsafe` code; the kernel also
/// prints it. Where it cannot be read, nothing counts as ignored.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_unless_a_signal_ends_it() {
        let calm = Interrupt::default();
        let begin = Instant::now();
        calm.pause(Duration::from_millis(50));
        assert!(begin.elapsed() >= Duration::from_millis(50));
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let shared = Arc::new(Shared { wake: Some(wake), ..Shared::default() });
        let interrupt = Interrupt { shared: Arc::clone(&shared) };
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            shared.receive(SIGINT);
        });
        let begin = Instant::now();
        interrupt.pause(Duration::from_mins(1));
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(interrupt.signal(), Some(SIGINT));
        sender.join().unwrap();
    }
}
