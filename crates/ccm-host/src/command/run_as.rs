//! Starts commands as another user, with another group or umask.
//!
//! Without `unsafe`, a child of this process can get neither supplementary
//! groups nor a session nor a umask of its own. So ccm starts itself once more:
//! that process has a single thread, drops its rights, and becomes the command.
//! What it is to become arrives through a socket. In its own environment,
//! `LD_PRELOAD` for a service account would be loaded while it is still root's.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use nix::unistd::{Gid, Uid};
use serde::{Deserialize, Serialize};

use super::{Command, Environment, Output, Stream, wait};
use crate::{Account, Error, Host, Result};

/// The argument by which a program becomes the process that drops its rights:
/// see [`become_command`].
pub const RUN_AS: &str = "run-as";

/// The umask of a command as another user or group, unless it says otherwise.
const UMASK: u32 = 0o022;
/// What passes from ccm's environment to another user, beside `LC_*`.
const PASSED: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];
/// Said by the process once it knows what to become.
const READY: &[u8] = b"ready\n";

/// Who a command runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name or ID; the user running ccm by default.
    pub user: Option<String>,
    /// Name or ID; the primary group of the user by default.
    pub group: Option<String>,
    /// Permissions that new files do not get.
    pub umask: Option<u32>,
}

impl Identity {
    /// Whether it says anything.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// For messages.
    fn who(&self) -> String {
        match (&self.user, &self.group) {
            (Some(user), _) => format!("user {user}"),
            (None, Some(group)) => format!("group {group}"),
            (None, None) => "this user".to_owned(),
        }
    }
}

/// An [`Identity`] in numbers.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The entry of the user in the user database.
    account: Option<Account>,
    /// `None` if the process has them already.
    ids: Option<Ids>,
    umask: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ids {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

/// What the other process becomes.
#[derive(Serialize, Deserialize)]
struct Job {
    program: OsString,
    arg0: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: OsString,
    ids: Option<Ids>,
    umask: Option<u32>,
}

/// Why it did not become the command, with the number of the system's error.
#[derive(Debug, Serialize, Deserialize)]
enum Refusal {
    /// It cannot get its user and groups.
    Ids(i32),
    /// It got other ones.
    OtherIds,
    /// It may not enter its directory.
    Directory(i32),
    /// The directory is not the one that ccm looked at.
    OtherDirectory,
    /// It cannot execute the program.
    Program(i32),
}

impl Host {
    /// Looks up who a command runs as.
    pub(super) fn resolve_identity(&self, identity: &Identity) -> Result<Resolved> {
        let account = match &identity.user {
            None => None,
            Some(name) => {
                let uid = self.uid(name)?;
                Some((uid, self.account_of(uid)?))
            }
        };
        let group = identity.group.as_deref().map(|name| self.gid(name)).transpose()?;
        let own = self.whoami();
        let (uid, account) = match account {
            Some((uid, account)) => (uid, account),
            None => (own.0, None),
        };
        let is_same = uid == own.0 && group.is_none_or(|gid| gid == own.1);
        if !self.is_root() && !is_same {
            return Err(Error::NotRoot { who: identity.who() });
        }
        let mut resolved = Resolved { account, ids: None, umask: identity.umask };
        if identity.user.is_none() && group.is_none() {
            return Ok(resolved);
        }
        resolved.umask.get_or_insert(UMASK);
        if !self.is_root() {
            return Ok(resolved);
        }
        let known = resolved.account.as_ref().map(|account| account.gid);
        let Some(gid) = group.or(known) else { return Err(Error::NoPrimaryGroup { uid }) };
        let groups = match &resolved.account {
            Some(account) => self.group_ids(&account.name, gid)?,
            None => Vec::new(),
        };
        resolved.ids = Some(Ids { uid, gid, groups });
        Ok(resolved)
    }

    /// Runs a command through a process that drops its rights first. It starts
    /// in `held`, which leads to the directory that ccm has looked at.
    pub(super) fn run_as(
        &self,
        command: &Command,
        identity: &Identity,
        program: PathBuf,
        held: PathBuf,
        on_line: &mut dyn FnMut(Stream, &str),
    ) -> Result<Output> {
        let failed = |source| Error::Spawn { command: command.name(), source };
        if let Some(user) = &identity.user {
            self.check_not_predicted(user, &command.name())?;
        }
        let resolved = self.resolve_identity(identity)?;
        let job = Job {
            program: program.into_os_string(),
            arg0: command.program.clone(),
            args: command.args.clone(),
            environment: self.environment_as(command, identity, &resolved),
            directory: command.directory.clone().into_os_string(),
            ids: resolved.ids,
            umask: resolved.umask,
        };
        let job = serde_json::to_vec(&job).map_err(|error| failed(error.into()))?;
        let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
        let child = std::process::Command::new(crate::worker::SELF)
            .arg0("ccm")
            .arg(RUN_AS)
            .env_clear()
            .current_dir(held)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| self.spawn_error(command, source))?;
        // If the process has ended already, it has said why.
        let _ = ours.write_all(&job).and_then(|()| ours.shutdown(std::net::Shutdown::Write));
        let output = wait::wait(self.cancel(), child, command, on_line)?;
        let mut said = Vec::new();
        ours.read_to_end(&mut said).map_err(failed)?;
        let Some(refusal) = said.strip_prefix(READY) else {
            let reason = "this program cannot start commands as another user";
            return Err(failed(std::io::Error::other(reason)));
        };
        if refusal.is_empty() {
            return Ok(output);
        }
        let refusal = serde_json::from_slice(refusal).map_err(|error| failed(error.into()))?;
        Err(refused(command, identity, &refusal))
    }

    /// The environment of a command with an identity. A user gets its own, and
    /// nothing of ccm's that could be a secret.
    fn environment_as(
        &self,
        command: &Command,
        identity: &Identity,
        resolved: &Resolved,
    ) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = Vec::new();
        let mut set = |name: &OsStr, value: &OsStr| {
            variables.retain(|(other, _)| other != name);
            variables.push((name.to_owned(), value.to_owned()));
        };
        if identity.user.is_some() {
            for (name, value) in std::env::vars_os() {
                let is_passed = PASSED.iter().any(|passed| name == *passed)
                    || name.as_encoded_bytes().starts_with(b"LC_");
                if is_passed {
                    set(&name, &value);
                }
            }
            match &resolved.account {
                Some(account) => {
                    set("HOME".as_ref(), account.home.as_ref());
                    set("USER".as_ref(), account.name.as_ref());
                    set("LOGNAME".as_ref(), account.name.as_ref());
                    set("SHELL".as_ref(), account.shell.as_ref());
                }
                None => set("HOME".as_ref(), "/".as_ref()),
            }
        } else {
            std::env::vars_os().for_each(|(name, value)| set(&name, &value));
            if let Some(token) = &*self.inner.run_token.hold() {
                set(crate::run_lock::VARIABLE.as_ref(), token.as_ref());
            }
        }
        if let Environment::Inherited { add, path } = &command.environment {
            for (name, value) in add {
                set(name.as_ref(), value.as_ref());
            }
            if let Some(path) = path {
                set("PATH".as_ref(), path.as_ref());
            }
        }
        variables
    }
}

/// The error that a refusal means.
fn refused(command: &Command, identity: &Identity, refusal: &Refusal) -> Error {
    let who = identity.who();
    let error = |number: &i32| std::io::Error::from_raw_os_error(*number);
    match refusal {
        Refusal::Ids(number) => Error::Become { who, source: error(number) },
        Refusal::OtherIds => {
            let source = std::io::Error::other("the system gave it other user and group IDs");
            Error::Become { who, source }
        }
        Refusal::Directory(number) => {
            Error::Enter { path: command.directory.clone(), who, source: error(number) }
        }
        Refusal::OtherDirectory => {
            let source = std::io::Error::other("it is another directory for this user");
            Error::Enter { path: command.directory.clone(), who, source }
        }
        Refusal::Program(number) => Error::Spawn { command: command.name(), source: error(number) },
    }
}

/// Drops the rights of this process and becomes the command that arrives on
/// standard input. A program whose first argument is [`RUN_AS`] calls this before
/// it does anything else. Returns only if that fails.
pub fn become_command() -> ExitCode {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let mut text = Vec::new();
    let job = socket.and_then(|mut socket| {
        socket.read_to_end(&mut text)?;
        let job: Job = serde_json::from_slice(&text)?;
        socket.write_all(READY)?;
        Ok((socket, job))
    });
    if let Ok((mut socket, job)) = job {
        let refusal = become_job(job);
        let text = serde_json::to_vec(&refusal).unwrap_or_default();
        // There is nobody else to tell.
        let _ = socket.write_all(&text);
    }
    ExitCode::FAILURE
}

/// Returns why it did not work.
fn become_job(job: Job) -> Refusal {
    // Without a controlling terminal, nothing can push input into one. It fails
    // only for a process that leads a session already.
    let _ = rustix::process::setsid();
    if let Some(umask) = job.umask {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    }
    if let Some(ids) = &job.ids {
        if let Err(errno) = drop_rights(ids) {
            return Refusal::Ids(errno as i32);
        }
        if !has_ids(ids) {
            return Refusal::OtherIds;
        }
    }
    let here = || rustix::fs::stat(".").map(|stat| (stat.st_dev, stat.st_ino)).ok();
    let looked_at = here();
    if let Err(errno) = rustix::process::chdir(Path::new(&job.directory)) {
        return Refusal::Directory(errno.raw_os_error());
    }
    if looked_at.is_none() || looked_at != here() {
        return Refusal::OtherDirectory;
    }
    let error = std::process::Command::new(job.program)
        .arg0(job.arg0)
        .args(job.args)
        .env_clear()
        .envs(job.environment)
        .stdin(Stdio::null())
        .exec();
    Refusal::Program(error.raw_os_error().unwrap_or_default())
}

fn drop_rights(ids: &Ids) -> nix::Result<()> {
    let groups: Vec<Gid> = ids.groups.iter().copied().map(Gid::from_raw).collect();
    nix::unistd::setgroups(&groups)?;
    nix::unistd::setgid(Gid::from_raw(ids.gid))?;
    nix::unistd::setuid(Uid::from_raw(ids.uid))
}

/// Whether the process has these IDs and no others.
fn has_ids(ids: &Ids) -> bool {
    let (uid, gid) = (Uid::from_raw(ids.uid), Gid::from_raw(ids.gid));
    let sorted = |mut groups: Vec<u32>| {
        groups.sort_unstable();
        groups.dedup();
        groups
    };
    let are_users = nix::unistd::getresuid()
        .is_ok_and(|has| [has.real, has.effective, has.saved].iter().all(|has| *has == uid));
    let are_groups = nix::unistd::getresgid()
        .is_ok_and(|has| [has.real, has.effective, has.saved].iter().all(|has| *has == gid));
    let are_others = nix::unistd::getgroups().is_ok_and(|has| {
        sorted(has.into_iter().map(Gid::as_raw).collect()) == sorted(ids.groups.clone())
    });
    are_users && are_groups && are_others
}
