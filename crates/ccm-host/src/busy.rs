//! Processes of a user, and how to end them.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{Error, Host, Result};

/// How often ccm looks whether processes have ended.
const PAUSE: Duration = Duration::from_millis(50);

impl Host {
    /// The processes that run with this user ID, effective or not, sorted. Empty
    /// where there is no `/proc`.
    pub fn processes_of(&self, uid: u32) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut found: Vec<u32> = pids.filter(|pid| runs_as(*pid, uid)).collect();
        found.sort_unstable();
        found
    }

    /// Terminates the processes of a user, and kills those that are still there
    /// after `patience`. Returns how many there were.
    ///
    /// # Errors
    ///
    /// Fails if some are left, or if the run is cancelled.
    pub fn end_processes_of(&self, uid: u32, patience: Duration) -> Result<usize> {
        let begin = Instant::now();
        let mut seen = HashSet::new();
        loop {
            let left = self.processes_of(uid);
            if left.is_empty() {
                return Ok(seen.len());
            }
            let spent = begin.elapsed();
            if spent > patience * 2 || self.cancel().is_cancelled() {
                let path = Path::new("/proc").join(left[0].to_string());
                return Err(Error::io("end the process", &path)(Errno::BUSY));
            }
            for pid in left {
                if spent > patience {
                    signal(pid, uid, Signal::KILL)?;
                } else if seen.insert(pid) {
                    signal(pid, uid, Signal::TERM)?;
                }
            }
            self.cancel().pause(PAUSE);
        }
    }
}

/// Whether one of the user IDs of a process is this one. What has ended and only
/// waits for its parent does nothing more.
fn runs_as(pid: u32, uid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let is_over = field("State:").is_some_and(|state| state.trim().starts_with(['Z', 'X']));
    let ids = field("Uid:").unwrap_or_default();
    !is_over && ids.split_whitespace().any(|id| id.parse() == Ok(uid))
}

/// Sends a signal to a process if it is still one of the user: its number may
/// belong to another one by now.
fn signal(pid: u32, uid: u32, signal: Signal) -> Result<()> {
    let path = Path::new("/proc").join(pid.to_string());
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let sent = pidfd_open(process, PidfdFlags::empty()).and_then(|process| {
        if runs_as(pid, uid) { pidfd_send_signal(process, signal) } else { Ok(()) }
    });
    match sent {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(Error::io("end the process", &path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A user that no machine has.
    fn child(uid: u32, script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdout(Stdio::piped()).uid(uid).current_dir("/");
        let mut child = command.spawn().unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        child
    }

    #[test]
    fn processes_of_a_user_end_and_those_of_others_do_not() {
        let host = Host::new();
        if !host.is_root() {
            ccm_testkit::not_run("needs root");
            return;
        }
        let (uid, other) = (4_000_321, 4_000_322);
        assert_eq!(host.end_processes_of(uid, Duration::from_secs(1)).unwrap(), 0);
        let mut polite = child(uid, "echo; exec sleep 1000");
        let mut stubborn = child(uid, "trap '' TERM; echo; while :; do sleep 1000; done");
        let mut foreign = child(other, "echo; exec sleep 1000");
        let found = host.processes_of(uid);
        assert!(found.contains(&polite.id()) && found.contains(&stubborn.id()), "{found:?}");
        assert_eq!(host.processes_of(other), [foreign.id()]);
        let ended = host.end_processes_of(uid, Duration::from_millis(300)).unwrap();
        assert!(ended >= 2, "{ended}");
        assert!(host.processes_of(uid).is_empty());
        assert_eq!(host.processes_of(other), [foreign.id()]);
        for child in [&mut polite, &mut stubborn] {
            assert!(!child.wait().unwrap().success());
        }
        foreign.kill().unwrap();
        foreign.wait().unwrap();
    }
}
