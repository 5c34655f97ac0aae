//! Starts this program again as a worker process.
//!
//! The worker has its own process group and communicates over two pipes, line
//! by line. If it crashes, this process continues and learns its exit status.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::lock::Lock;
use crate::{Error, Exit, Result};

/// This program, also after its file was replaced.
pub(crate) const SELF: &str = "/proc/self/exe";
/// How long output is still read after the process has ended.
const DRAIN: Duration = Duration::from_millis(250);

/// A process of this program that works for this one.
#[derive(Debug)]
pub struct Worker {
    control: WorkerControl,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Bytes read so far of an incomplete line.
    pending: Vec<u8>,
    /// Where in it to go on looking for the end of a line.
    looked_at: usize,
    longest_line: usize,
}

/// Ends a [`Worker`] from another thread.
#[derive(Clone, Debug)]
pub struct WorkerControl(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The process by its descriptor, which never means another one.
    process: OwnedFd,
    /// Its number, which is also that of its group; `None` once it has been
    /// waited for, since then the number may mean another one.
    group: Lock<Option<Pid>>,
}

impl Worker {
    /// Starts this program with these arguments, in `/`, with the environment of
    /// this one but without `removed`. Its standard error is that of this one.
    /// A line that it writes may have `longest_line` bytes.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory or no process left.
    pub fn start(args: &[&str], removed: &[&str], longest_line: usize) -> Result<Self> {
        let failed = |source| Error::Spawn { command: "ccm".to_owned(), source };
        let mut command = std::process::Command::new(SELF);
        command
            .arg0("ccm")
            .args(args)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        for name in removed {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        let group = Pid::from_child(&child);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = pidfd_open(group, PidfdFlags::empty());
        let (Ok(process), Some(output)) = (process, output) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(std::io::ErrorKind::OutOfMemory.into()));
        };
        let group = Lock::default();
        group.set(Some(Pid::from_child(&child)));
        let control = WorkerControl(Arc::new(Shared { process, group }));
        let pending = Vec::new();
        Ok(Self { control, child, input, output, pending, looked_at: 0, longest_line })
    }

    /// How many processes the kernel has ended since the machine was started
    /// because there was no memory left; `None` if it does not tell.
    pub fn oom_kills() -> Option<u64> {
        let text = std::fs::read_to_string(Path::new("/proc/vmstat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    }

    /// Returns a handle that stops the process from another thread.
    pub fn control(&self) -> WorkerControl {
        self.control.clone()
    }

    /// Sends a line, which must not contain a line break. Returns `false` once
    /// the worker has closed its input.
    pub fn send(&mut self, line: &[u8]) -> bool {
        let Some(input) = &mut self.input else { return false };
        let sent = input.write_all(line).and_then(|()| input.write_all(b"\n"));
        if sent.and_then(|()| input.flush()).is_err() {
            self.input = None;
        }
        self.input.is_some()
    }

    /// The next line without its end; `None` once the process has ended and all
    /// it wrote was read.
    ///
    /// # Errors
    ///
    /// Fails if a line is too long.
    pub fn receive(&mut self) -> Result<Option<Vec<u8>>> {
        let mut drain_until = None;
        loop {
            let unseen = &self.pending[self.looked_at..];
            if let Some(at) = unseen.iter().position(|&byte| byte == b'\n') {
                let rest = self.pending.split_off(self.looked_at + at + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                self.looked_at = 0;
                return Ok(Some(line));
            }
            self.looked_at = self.pending.len();
            if self.pending.len() > self.longest_line {
                let path = Path::new("the output of a run").to_owned();
                return Err(Error::TooLarge { path, limit: self.longest_line as u64 });
            }
            if !self.wait_for_output(&mut drain_until) {
                return Ok(None);
            }
            let mut chunk = [0; 16 * 1024];
            match self.output.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.pending.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Waits until there is something to read. `false` if the process has ended
    /// and something that it left behind keeps the pipe open.
    fn wait_for_output(&self, drain_until: &mut Option<Instant>) -> bool {
        loop {
            let mut watched = vec![PollFd::new(&self.output, PollFlags::IN)];
            if drain_until.is_none() {
                let process = self.control.0.process.as_fd();
                watched.push(PollFd::from_borrowed_fd(process, PollFlags::IN));
            }
            let left = drain_until.map(|until| until.saturating_duration_since(Instant::now()));
            let left =
                left.map(|left| Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) });
            if poll(&mut watched, left.as_ref()).is_err() {
                continue;
            }
            if !watched[0].revents().is_empty() {
                return true;
            }
            match drain_until {
                None => *drain_until = Some(Instant::now() + DRAIN),
                Some(until) if *until <= Instant::now() => return false,
                Some(_) => {}
            }
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Exit {
        self.input = None;
        let status = self.child.wait();
        self.control.0.group.set(None);
        match status.map(|status| (status.code(), status.signal())) {
            Ok((Some(code), _)) => Exit::Code(code),
            Ok((None, signal)) => Exit::Signal(signal.unwrap_or_default()),
            Err(_) => Exit::Signal(0),
        }
    }
}

impl WorkerControl {
    /// Asks it to stop: with SIGINT if that is the number, else with SIGTERM.
    pub fn stop(&self, signal: i32) {
        let is_interrupt = signal == Signal::INT.as_raw();
        let signal = if is_interrupt { Signal::INT } else { Signal::TERM };
        let _ = pidfd_send_signal(&self.0.process, signal);
    }

    /// Kills its process group, and those of the commands that it runs.
    pub fn kill(&self) {
        let group = self.0.group.hold();
        let Some(group) = *group else { return };
        // It starts nothing more while the groups are collected.
        let _ = pidfd_send_signal(&self.0.process, Signal::STOP);
        for group in groups_below(group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = pidfd_send_signal(&self.0.process, Signal::KILL);
    }
}

/// The process groups of all processes that descend from this one, except that
/// of this program itself.
fn groups_below(top: Pid) -> Vec<Pid> {
    let own = rustix::process::getpgrp();
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // `pid (name) state parent group …`, and the name may hold anything.
        let pid = stat.split(' ').next().and_then(|pid| pid.parse::<i32>().ok());
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(1);
        let mut number = || fields.next()?.parse::<i32>().ok();
        if let (Some(pid), Some(parent), Some(group)) = (pid, number(), number()) {
            processes.push((pid, parent, group));
        }
    }
    let mut found = vec![top.as_raw_nonzero().get()];
    let mut groups = Vec::new();
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        at += 1;
        for &(pid, _, group) in processes.iter().filter(|process| process.1 == parent) {
            if !found.contains(&pid) {
                found.push(pid);
                groups.extend(Pid::from_raw(group));
            }
        }
    }
    groups.retain(|group| *group != own && group.as_raw_nonzero().get() > 1);
    groups.sort_unstable_by_key(|group| group.as_raw_nonzero());
    groups.dedup();
    groups
}
