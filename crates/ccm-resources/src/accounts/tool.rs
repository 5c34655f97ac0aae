//! Runs the shadow tools, and waits for whoever holds their locks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_engine::{Error, Result};
use ccm_host::{Command, Exit, Host, Output};

/// Only one run of a process calls them at a time.
const TOOL: &str = "shadow";
/// How long ccm waits for a lock in all.
const PATIENCE: Duration = Duration::from_mins(2);
/// The tools try for a while by themselves, so the next try need not wait long.
const PAUSE: Duration = Duration::from_millis(500);
/// How the tools begin to say that something else holds a lock.
const LOCKED: &str = "cannot lock ";
/// Held by `lckpwdf`, beside the lock file of each database.
const COMMON_LOCK: &str = "/etc/.pwd.lock";
const MAX_LOCK_FILE: u64 = 4096;

/// Runs a tool that changes a database. Says when it waits for a lock.
pub(crate) fn run(host: &Host, command: Command, say: &mut dyn FnMut(&str)) -> Result<()> {
    run_code(host, command, &[], say).map(drop)
}

/// The same for a tool whose exit codes tell more: those that are given are no
/// failures. Returns the code.
pub(crate) fn run_code(
    host: &Host,
    command: Command,
    codes: &[i32],
    say: &mut dyn FnMut(&str),
) -> Result<i32> {
    let command = command.uninterruptible();
    let begin = host.since_boot();
    let mut attempt = || Ok(host.exclusively(TOOL, || host.run(&command, &mut |_, _| {}))?);
    let output = patiently(&mut attempt, &mut |locked, is_first| {
        let lock = Lock::of(host, locked);
        let is_over = host.since_boot().saturating_sub(begin) >= PATIENCE;
        if is_over || host.cancel().is_cancelled() {
            return Err(lock.error());
        }
        if is_first {
            say(&lock.waiting());
        }
        host.cancel().pause(PAUSE);
        Ok(())
    })?;
    match output.exit {
        Exit::Code(code) if code == 0 || codes.contains(&code) => Ok(code),
        _ => Err(output.failure(&command).into()),
    }
}

/// Tries until no lock is in the way. `wait` gets the database that is locked and
/// whether it is asked for the first time; its error ends the tries.
fn patiently(
    attempt: &mut dyn FnMut() -> Result<Output>,
    wait: &mut dyn FnMut(&str, bool) -> Result<()>,
) -> Result<Output> {
    let mut is_first = true;
    loop {
        let output = attempt()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let Some(database) = locked(&said).filter(|_| output.exit != Exit::Code(0)) else {
            return Ok(output);
        };
        wait(database, is_first)?;
        is_first = false;
    }
}

/// The database whose lock a tool could not get.
fn locked(said: &str) -> Option<&str> {
    let line = said.lines().find_map(|line| line.split_once(LOCKED))?.1;
    line.split(';').next().map(str::trim).filter(|path| path.starts_with('/'))
}

/// A lock of another tool.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    file: PathBuf,
    pid: Option<u32>,
}

impl Lock {
    fn of(host: &Host, database: &str) -> Self {
        let file = PathBuf::from(format!("{database}.lock"));
        if let Ok((text, _)) = host.read_text(&file, MAX_LOCK_FILE) {
            let pid = text.trim_matches(|c: char| c.is_whitespace() || c == '\0').parse().ok();
            return Self { file, pid };
        }
        let common = Path::new(COMMON_LOCK);
        let inode = host.stat(common).ok().flatten().map(|stat| stat.ino);
        let locks = host.read_text(Path::new("/proc/locks"), 1 << 20);
        let locks = locks.map(|(text, _)| text).unwrap_or_default();
        match inode.and_then(|inode| holder(&locks, inode)) {
            Some(pid) => Self { file: common.to_owned(), pid: Some(pid) },
            None => Self { file, pid: None },
        }
    }

    fn holder(&self) -> String {
        match self.pid {
            Some(pid) => format!(", held by process {pid}"),
            None => String::new(),
        }
    }

    fn waiting(&self) -> String {
        format!("waiting for {}{}", self.file.display(), self.holder())
    }

    fn error(&self) -> Error {
        let file = self.file.display();
        Error::Refused {
            reason: format!(
                "cannot lock the user database within {} seconds: {file} exists{}",
                PATIENCE.as_secs(),
                self.holder()
            ),
            hint: Some(match self.pid {
                Some(_) => "end the program that holds it, such as an open `vipw`".to_owned(),
                None => format!("if no tool runs that changes users, remove {file}"),
            }),
        }
    }
}

/// The process that holds a lock on a file, in a text such as that of `/proc/locks`.
fn holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Those who wait have an arrow in the second place.
        let [_, "POSIX" | "OFDLCK", _, _, pid, place, ..] = words[..] else { return None };
        let found: u64 = place.rsplit(':').next()?.parse().ok()?;
        (found == inode).then(|| pid.parse().ok().filter(|pid| *pid > 0))?
    })
}

/// The command that removes a user from groups.
pub(crate) fn group_members_removed(groups: &[String], user: &str) -> Command {
    Command::new("usermod", ["-r", "-G", &groups.join(","), user])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(code: i32, stderr: &str) -> Output {
        Output { exit: Exit::Code(code), stdout: Vec::new(), stderr: stderr.into() }
    }

    const BUSY: &str = "useradd: cannot lock /etc/passwd; try again later.\n";

    #[test]
    fn a_tool_that_meets_a_lock_is_tried_again() {
        let mut answers = [output(0, ""), output(1, BUSY), output(1, BUSY)].to_vec();
        let mut waits = Vec::new();
        let done = patiently(&mut || Ok(answers.pop().unwrap()), &mut |database, is_first| {
            waits.push((database.to_owned(), is_first));
            Ok(())
        });
        assert_eq!(done.unwrap().exit, Exit::Code(0));
        assert_eq!(waits, [("/etc/passwd".to_owned(), true), ("/etc/passwd".to_owned(), false)]);
    }

    #[test]
    fn patience_ends_and_other_failures_are_not_tried_again() {
        let lock = Lock { file: "/etc/passwd.lock".into(), pid: Some(77) };
        let mut tries = 0;
        let done = patiently(
            &mut || {
                tries += 1;
                Ok(output(1, BUSY))
            },
            &mut |_, is_first| if is_first { Ok(()) } else { Err(lock.error()) },
        );
        let error = done.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot lock the user database within 120 seconds: /etc/passwd.lock exists, held by \
             process 77"
        );
        assert!(error.hint().unwrap().contains("vipw"));
        assert_eq!(tries, 2);
        let never = &mut |_: &str, _| panic!("it waits");
        let failed = patiently(&mut || Ok(output(9, "useradd: user 'a' already exists\n")), never);
        assert_eq!(failed.unwrap().exit, Exit::Code(9));
    }

    #[test]
    fn locks_name_their_file_and_their_holder() {
        let stale = Lock { file: "/etc/group.lock".into(), pid: None };
        assert_eq!(stale.waiting(), "waiting for /etc/group.lock");
        assert!(stale.error().hint().unwrap().ends_with("remove /etc/group.lock"));
        let locks = "1: FLOCK  ADVISORY  WRITE 5 00:1:42 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 812 fd:00:42 0 EOF\n\
                     2: -> POSIX  ADVISORY  WRITE 9 fd:00:42 0 EOF\n";
        assert_eq!(holder(locks, 42), Some(812));
        assert_eq!(holder(locks, 43), None);
        assert_eq!(locked("groupmod: cannot lock /etc/gshadow; try again"), Some("/etc/gshadow"));
        assert_eq!(locked("useradd: something else"), None);
    }
}
