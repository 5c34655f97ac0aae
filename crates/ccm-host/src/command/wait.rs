//! Waits for a command: output, exit, timeout and cancellation.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{Command, Exit, Output, Stream};
use crate::{Cancel, Error, Result};

/// How long a group may take to react to SIGTERM before SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long output is still read after the command itself has ended: longer
/// only a process that it left behind keeps the pipe open.
const DRAIN: Duration = Duration::from_millis(250);
/// A line longer than this is shown in pieces.
const LONGEST_LINE: usize = 64 * 1024;

/// Why a command is being ended before its time.
#[derive(Clone, Copy)]
enum Ending {
    Timeout,
    Interrupt,
}

pub(super) fn wait(
    cancel: &Cancel,
    mut child: Child,
    command: &Command,
    on_line: &mut dyn FnMut(Stream, &str),
) -> Result<Output> {
    let capture = command.capture;
    let spawn_error = |source| Error::Spawn { command: command.name(), source };
    // A process id is positive and below 2^22.
    let group = Pid::from_child(&child);
    cancel.set_command(group.as_raw_nonzero().get());
    let begin = Instant::now();
    let ended = match pidfd_open(group, PidfdFlags::empty()) {
        Ok(ended) => ended,
        Err(errno) => {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return Err(spawn_error(errno.into()));
        }
    };
    let mut pipes = [
        Pipe::new(Stream::Stdout, child.stdout.take().map(OwnedFd::from), capture),
        Pipe::new(Stream::Stderr, child.stderr.take().map(OwnedFd::from), capture),
    ];
    let mut status = None;
    let mut drain_until = None;
    let mut ending: Option<(Ending, Instant)> = None;
    let mut killed = false;

    while !(status.is_some() && pipes.iter().all(Pipe::is_closed)) {
        let now = Instant::now();
        if drain_until.is_some_and(|until| now >= until) {
            break;
        }
        let is_interrupted = cancel.is_cancelled() && !command.is_finished;
        let reason = if is_interrupted {
            Some(Ending::Interrupt)
        } else {
            command.timeout.filter(|&timeout| now - begin >= timeout).map(|_| Ending::Timeout)
        };
        if let (None, None, Some(reason)) = (ending, status, reason) {
            let _ = kill_process_group(group, Signal::TERM);
            ending = Some((reason, now + GRACE));
        }
        if ending.is_some_and(|(_, kill_at)| now >= kill_at && !killed) {
            let _ = kill_process_group(group, Signal::KILL);
            killed = true;
        }
        let next = [
            drain_until,
            ending.map(|(_, kill_at)| kill_at).filter(|_| !killed),
            command.timeout.map(|timeout| begin + timeout).filter(|_| ending.is_none()),
        ];
        let patience = next.into_iter().flatten().min().map(|at| at.saturating_duration_since(now));
        let wake = cancel.wake().filter(|_| ending.is_none() && !command.is_finished);
        let watched = status.is_none().then(|| ended.as_fd());
        wait_for_any(&pipes, watched, wake, patience);
        for pipe in &mut pipes {
            pipe.read(on_line);
        }
        if status.is_none() {
            status = child.try_wait().map_err(spawn_error)?;
            drain_until = status.map(|_| Instant::now() + DRAIN);
        }
    }
    for pipe in &mut pipes {
        pipe.finish(on_line);
    }
    cancel.set_command(0);
    if let Some((reason, kill_at)) = ending {
        end_stragglers(group, kill_at);
        return Err(match reason {
            Ending::Timeout => Error::Timeout {
                command: command.name(),
                after: command.timeout.unwrap_or_default(),
            },
            Ending::Interrupt => Error::Interrupted { command: command.name() },
        });
    }
    let exit = match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        },
        None => Exit::Signal(0),
    };
    let [stdout, stderr] = pipes.map(|pipe| pipe.kept);
    Ok(Output { exit, stdout, stderr })
}

/// Gives what is left of a group until `kill_at`, then kills it.
fn end_stragglers(group: Pid, kill_at: Instant) {
    while has_living_members(group) {
        if Instant::now() >= kill_at {
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process of the group still runs. The group itself lasts longer:
/// until whoever inherited its dead has noticed.
fn has_living_members(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // `pid (name) state parent group …`, and the name may hold anything.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let state = fields.next();
        let of_group = fields.nth(1).and_then(|field| field.parse().ok());
        of_group == Some(group.as_raw_nonzero().get()) && !matches!(state, Some("Z" | "X"))
    })
}

fn wait_for_any(
    pipes: &[Pipe; 2],
    ended: Option<BorrowedFd<'_>>,
    wake: Option<BorrowedFd<'_>>,
    patience: Option<Duration>,
) {
    let open = pipes.iter().filter_map(|pipe| pipe.from.as_ref().map(AsFd::as_fd));
    let mut watched: Vec<PollFd<'_>> = open
        .chain(ended)
        .chain(wake)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let patience = patience.map(|patience| Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: i64::from(patience.subsec_nanos()),
    });
    // An interrupted wait is a short one; the caller looks at everything anyway.
    let _ = poll(&mut watched, patience.as_ref());
}

/// One stream of output: what is kept, and the line that is still coming.
struct Pipe {
    stream: Stream,
    from: Option<File>,
    kept: Vec<u8>,
    line: Vec<u8>,
    capture: usize,
}

impl Pipe {
    fn new(stream: Stream, from: Option<OwnedFd>, capture: usize) -> Self {
        let from = from.filter(|fd| {
            // Never wait in a read: the other stream may be the one that fills.
            rustix::io::ioctl_fionbio(fd, true).is_ok()
        });
        Self { stream, from: from.map(File::from), kept: Vec::new(), line: Vec::new(), capture }
    }

    fn is_closed(&self) -> bool {
        self.from.is_none()
    }

    /// Takes what is there now.
    fn read(&mut self, on_line: &mut dyn FnMut(Stream, &str)) {
        let mut chunk = [0; 16 * 1024];
        // A few chunks at a time, so that a flood does not starve the clock.
        for _ in 0..16 {
            let Some(from) = &mut self.from else { return };
            match from.read(&mut chunk) {
                Ok(0) => self.from = None,
                Ok(count) => self.take(&chunk[..count], on_line),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.from = None,
            }
        }
    }

    fn take(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(Stream, &str)) {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() > 2 * self.capture {
            self.kept.drain(..self.kept.len() - self.capture);
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") || self.line.len() > LONGEST_LINE {
                self.show(on_line);
            }
        }
    }

    fn show(&mut self, on_line: &mut dyn FnMut(Stream, &str)) {
        let text = String::from_utf8_lossy(&self.line);
        on_line(self.stream, text.trim_end_matches(['\n', '\r']));
        self.line.clear();
    }

    fn finish(&mut self, on_line: &mut dyn FnMut(Stream, &str)) {
        if !self.line.is_empty() {
            self.show(on_line);
        }
    }
}
