//! The run lock: one run at a time. The kernel releases it when the process
//! ends.
//!
//! A command of a run may start ccm again. That ccm must not wait for the run,
//! because the run waits for the command. So a run passes its commands a token
//! that names its process. The token is valid only while the kernel reports
//! that this process holds the lock. The nested ccm takes a lock one level
//! further down, so that two nested runs do not overlap either.
//!
//! A run that was killed may leave a ccm below it that is still at work. So who
//! takes a lock also looks whether those further down are free, and who takes
//! one further down looks again who is above: of two, at least one notices.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::file::mode;
use crate::{CancelReason, Error, Host, Result, StateDir};

/// The variable that hands the token down.
pub(crate) const VARIABLE: &str = "CCM_RUN";
/// How often to look whether the lock is free.
const POLL: Duration = Duration::from_millis(20);

/// The right to change the machine, for as long as this value lives.
#[derive(Debug)]
pub struct RunLock {
    _file: OwnedFd,
    token: Option<String>,
}

impl RunLock {
    /// The token that identifies commands of this run; `None` if the kernel
    /// does not show who holds a lock.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

/// The right to use a directory, for as long as this value lives.
#[derive(Debug)]
pub struct DirectoryLock {
    _directory: OwnedFd,
}

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process ID.
    pub pid: u32,
    /// Its command line, shortened; empty if it cannot be seen.
    pub command: String,
    /// When it was started.
    pub since: Option<Timestamp>,
    /// When it was started, in ticks since the machine was.
    ticks: Option<u64>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if !self.command.is_empty() {
            write!(f, " ({})", self.command)?;
        }
        match self.since {
            Some(since) => write!(f, ", started {since:.0}"),
            None => Ok(()),
        }
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run held it for too long.
    #[error("another run is in progress: {}", holder.as_ref().map_or("its process is not visible".to_owned(), ToString::to_string))]
    Busy {
        /// The last holder, if known.
        holder: Option<LockHolder>,
    },
    /// The run was cancelled while it waited.
    #[error("interrupted while waiting for another run")]
    Cancelled(CancelReason),
    /// The lock cannot be used.
    #[error(transparent)]
    Host(#[from] Error),
}

impl Host {
    /// Lets every command that is started from now on carry this token.
    pub fn set_run_token(&self, token: Option<&str>) {
        self.inner.run_token.set(token.map(str::to_owned));
    }
}

impl StateDir {
    /// Takes the lock of this directory. Waits up to `timeout` while another
    /// process holds it, and calls `on_wait` once per holder.
    ///
    /// # Errors
    ///
    /// Fails on timeout, if the run is cancelled, or if the lock cannot be
    /// opened.
    pub fn lock(
        &self,
        timeout: Duration,
        on_wait: &mut dyn FnMut(Option<&LockHolder>),
    ) -> Result<RunLock, LockError> {
        let handed_down = self.host().env(VARIABLE).and_then(|token| token.into_string().ok());
        self.lock_below(handed_down.as_deref(), timeout, on_wait)
    }

    fn lock_below(
        &self,
        handed_down: Option<&str>,
        timeout: Duration,
        on_wait: &mut dyn FnMut(Option<&LockHolder>),
    ) -> Result<RunLock, LockError> {
        let until = Instant::now().checked_add(timeout);
        let mut wait =
            Wait { host: self.host(), until, tell: on_wait, has_told: false, last: None };
        let claims: Vec<&str> = handed_down.into_iter().flat_map(|t| t.split('/')).collect();
        let (file, level) = loop {
            let (file, above) = self.first_free(&claims, &mut wait)?;
            let is_claimed = |(file, claim): (&OwnedFd, &&str)| token_of(file) == **claim;
            if !above.iter().zip(&claims).all(is_claimed) {
                continue;
            }
            match self.busy_below(above.len(), &claims)? {
                Below::Free => break (file, above.len()),
                Below::Busy(holder) => {
                    // What that run starts may need this lock.
                    drop(file);
                    wait.pause(holder)?;
                }
            }
        };
        // A stream of requests takes the lock for each of them.
        let own = self.host().inner.own_token.get_or_init(own_token);
        let token = own.as_deref().map(|own| {
            let above = claims.iter().take(level).copied();
            above.chain([own]).collect::<Vec<_>>().join("/")
        });
        Ok(RunLock { _file: file, token })
    }

    /// Takes the first lock that nobody holds whom this run belongs to; also
    /// gives back the ones above it.
    fn first_free(
        &self,
        claims: &[&str],
        wait: &mut Wait<'_>,
    ) -> Result<(OwnedFd, Vec<OwnedFd>), LockError> {
        let mut above = Vec::new();
        loop {
            let file = self.open_lock(above.len())?;
            if self.try_lock(&file)? {
                return Ok((file, above));
            }
            let holder = holder_of(&file);
            let token = holder.as_ref().and_then(LockHolder::token);
            if token.is_some() && token.as_deref() == claims.get(above.len()).copied() {
                above.push(file);
            } else {
                wait.pause(holder)?;
            }
        }
    }

    /// Whether somebody holds a lock further down who is not above this run.
    fn busy_below(&self, mut level: usize, claims: &[&str]) -> Result<Below, LockError> {
        loop {
            level += 1;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let name = lock_name(level);
            let file = match rustix::fs::openat(self.descriptor(), &*name, flags, mode(0)) {
                Ok(file) => file,
                Err(Errno::NOENT | Errno::LOOP) => return Ok(Below::Free),
                Err(errno) => return Err(Error::io("open", &self.path().join(name))(errno).into()),
            };
            if self.try_lock(&file)? {
                continue;
            }
            let holder = holder_of(&file);
            let token = holder.as_ref().and_then(LockHolder::token);
            if !token.is_some_and(|token| claims.contains(&&*token)) {
                return Ok(Below::Busy(holder));
            }
        }
    }

    /// Locks the directory itself, for one process that uses it for as long as
    /// it lives. Works on a read-only file system too.
    ///
    /// # Errors
    ///
    /// Fails with [`LockError::Busy`] at once if another process has it.
    pub fn lock_whole(&self) -> Result<DirectoryLock, LockError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.descriptor(), ".", flags, mode(0))
            .map_err(Error::io("open", self.path()))?;
        if self.try_lock(&directory)? {
            return Ok(DirectoryLock { _directory: directory });
        }
        Err(LockError::Busy { holder: holder_of(&directory) })
    }

    fn try_lock(&self, file: &OwnedFd) -> Result<bool> {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(errno) => Err(Error::io("lock", &self.path().join("lock"))(errno)),
        }
    }

    fn open_lock(&self, level: usize) -> Result<OwnedFd> {
        let name = lock_name(level);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(self.descriptor(), &*name, flags, mode(0o600));
        let opened = match open() {
            // Something else has its name: a symlink, a directory, a socket.
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                let path = self.path().join(&name);
                self.rename(&name, format!("{name}.damaged"))?;
                let path = path.display();
                self.host().warn(format!("{path} is not a regular file; ccm sets it aside"));
                open()
            }
            opened => opened,
        };
        opened.map_err(Error::io("open", &self.path().join(name)))
    }
}

fn lock_name(level: usize) -> String {
    if level == 0 { "lock".to_owned() } else { format!("lock.{level}") }
}

/// The locks further down.
enum Below {
    Free,
    /// Held, by whom cannot always be told.
    Busy(Option<LockHolder>),
}

/// Waiting for others, until it takes too long.
struct Wait<'a> {
    host: &'a Host,
    until: Option<Instant>,
    tell: &'a mut dyn FnMut(Option<&LockHolder>),
    has_told: bool,
    last: Option<LockHolder>,
}

impl Wait<'_> {
    fn pause(&mut self, holder: Option<LockHolder>) -> Result<(), LockError> {
        if let Some(reason) = self.host.cancel().reason() {
            return Err(LockError::Cancelled(reason));
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(LockError::Busy { holder });
        }
        // It may have let go between the two questions.
        if holder.is_some() && self.last != holder || !self.has_told {
            (self.tell)(holder.as_ref());
            (self.has_told, self.last) = (true, holder);
        }
        self.host.cancel().pause(POLL);
        Ok(())
    }
}

/// What the process that holds a lock is known by; empty if that cannot be told.
fn token_of(file: &OwnedFd) -> String {
    holder_of(file).as_ref().and_then(LockHolder::token).unwrap_or_default()
}

impl LockHolder {
    /// Names this process, and no later one with the same ID.
    fn token(&self) -> Option<String> {
        Some(format!("{}:{}", self.pid, self.ticks?))
    }
}

/// Who holds the lock on an open file, as far as the kernel tells.
fn holder_of(file: impl AsFd) -> Option<LockHolder> {
    let stat = rustix::fs::fstat(file).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    find_holder(&locks, device, stat.st_ino).map(describe)
}

/// The process in a text such as that of `/proc/locks`.
fn find_holder(locks: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    let mut by_inode = None;
    for line in locks.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Those who wait have an arrow in the second place.
        let [_, "FLOCK", _, _, pid, place, ..] = words[..] else { continue };
        let mut place = place.split(':');
        let mut number = |radix| u64::from_str_radix(place.next()?, radix).ok();
        let (Some(major), Some(minor), Some(found)) = (number(16), number(16), number(10)) else {
            continue;
        };
        let Some(pid) = pid.parse().ok().filter(|&pid| pid > 0) else { continue };
        if found != inode {
            continue;
        }
        if (major, minor) == (device.0.into(), device.1.into()) {
            return Some(pid);
        }
        // Some file systems show programs another device than the kernel.
        by_inode = by_inode.or(Some(pid));
    }
    by_inode
}

/// The token of this process.
fn own_token() -> Option<String> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let ticks = start_ticks(&String::from_utf8_lossy(&stat))?;
    Some(format!("{}:{ticks}", std::process::id()))
}

/// What can be seen of a process.
fn describe(pid: u32) -> LockHolder {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let words = read("cmdline");
    let words = words.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let command = ccm_model::redact_credentials(&words.join(" ")).into_owned();
    let command: String =
        command.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect();
    let ticks = start_ticks(&String::from_utf8_lossy(&read("stat")));
    let since = ticks.and_then(|ticks| {
        let boot = std::fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?;
        let ticks = ticks / rustix::param::clock_ticks_per_second().max(1);
        Timestamp::from_second(boot.trim().parse::<i64>().ok()?.checked_add_unsigned(ticks)?).ok()
    });
    LockHolder { pid, command, since, ticks }
}

/// The start of a process in a text such as `/proc/PID/stat`. The name in it
/// may hold anything, brackets included.
fn start_ticks(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, System};

    fn state(host: &Host) -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = host.state_dir(&dir.path().join("state"), true).unwrap().unwrap();
        (dir, state)
    }

    fn take(state: &StateDir, token: Option<&str>) -> Result<RunLock, LockError> {
        state.lock_below(token, Duration::from_millis(50), &mut |_| {})
    }

    #[test]
    fn one_holds_it_and_others_learn_who() {
        let (_dir, state) = state(&Host::new());
        let lock = take(&state, None).unwrap();
        let mut seen = Vec::new();
        let busy = state
            .lock_below(None, Duration::from_millis(200), &mut |holder| seen.push(holder.cloned()));
        let Err(LockError::Busy { holder: Some(holder) }) = busy else { panic!("{busy:?}") };
        assert_eq!(holder.pid, std::process::id());
        assert!(!holder.command.is_empty() && holder.since.is_some());
        assert_eq!(seen, [Some(holder)], "told once");
        drop(lock);
        take(&state, None).unwrap();
    }

    #[test]
    fn a_token_counts_while_its_process_holds_the_lock() {
        let (_dir, state) = state(&Host::new());
        let outer = take(&state, None).unwrap();
        let token = outer.token().unwrap().to_owned();
        let inner = take(&state, Some(&token)).unwrap();
        assert_eq!(inner.token().unwrap().split('/').count(), 2);
        assert!(take(&state, Some(&token)).is_err(), "one at a time below too");
        let innermost = take(&state, inner.token()).unwrap();
        assert_eq!(innermost.token().unwrap().split('/').count(), 3);
        for forged in ["1:1", "", "x", &format!("{}:1", std::process::id()), "/", "1:1/1:1"] {
            assert!(take(&state, Some(forged)).is_err(), "{forged}");
        }
        drop(outer);
        let orphans = take(&state, None);
        assert!(matches!(orphans, Err(LockError::Busy { .. })), "a run below is at work");
        drop((inner, innermost));
        let again = take(&state, Some(&token)).unwrap();
        assert_eq!(again.token().unwrap().split('/').count(), 1, "nobody is above any more");
    }

    #[test]
    fn waiting_can_be_cancelled() {
        let cancel = Cancel::new().unwrap();
        let (_dir, state) = state(&System::default().begin(cancel.clone()));
        let _held = take(&state, None).unwrap();
        let begin = Instant::now();
        let ended = state.lock_below(None, Duration::from_mins(1), &mut |_| {
            cancel.cancel(CancelReason::Requested);
        });
        assert!(matches!(ended, Err(LockError::Cancelled(CancelReason::Requested))), "{ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_kernel_s_tables_are_read() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 08:01:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 6 08:01:42 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 7 00:1f:42 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 8 08:01:42 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 0 08:01:43 0 EOF\n\
                     6: FLOCK\nnonsense\n";
        assert_eq!(find_holder(locks, (8, 1), 42), Some(8));
        assert_eq!(find_holder(locks, (9, 9), 42), Some(7), "by the inode alone");
        assert_eq!(find_holder(locks, (8, 1), 43), None, "a process that cannot be seen");
        assert_eq!(find_holder(locks, (8, 1), 1), None);
        let fields = (4..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_ticks(&format!("1 (a) b) S {fields}")), Some(22));
        assert_eq!(start_ticks("1 (a"), None);
    }

    #[test]
    fn a_whole_directory_is_locked_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d");
        let open = || Host::new().state_dir(&path, true).unwrap().unwrap();
        let lock = open().lock_whole().unwrap();
        let Err(LockError::Busy { holder }) = open().lock_whole() else { panic!("locked twice") };
        assert_eq!(holder.map(|holder| holder.pid), Some(std::process::id()));
        drop(lock);
        open().lock_whole().unwrap();
    }
}
