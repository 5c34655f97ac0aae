//! The state directory of a command, and its lock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_engine::{HistoryInfo, RunOptions};
use ccm_host::{Error as HostError, Host, LockError, LockHolder, RunLock, StateDir};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::{Result, flags};
use crate::error::Error;
use crate::ui::Ui;

/// Where root's state is.
const SYSTEM: &str = "/var/lib/ccm";

/// The flag that says where the state is.
pub(super) fn directory_flag() -> Arg {
    Arg::new("state-dir")
        .long("state-dir")
        .value_name("DIR")
        .value_parser(clap::value_parser!(OsString))
        .value_hint(ValueHint::DirPath)
        .help("Keep the lock, owed reactions and history in this directory [env: CCM_STATE_DIR]")
}

/// The flags of a command that changes the machine.
pub(super) fn flags() -> [Arg; 5] {
    [
        directory_flag(),
        Arg::new("lock-timeout")
            .long("lock-timeout")
            .value_name("DURATION")
            .value_parser(duration)
            .default_value("60s")
            .help("Wait this long for another run to finish"),
        Arg::new("no-state")
            .long("no-state")
            .action(ArgAction::SetTrue)
            .conflicts_with("require-state")
            .help("Use no state directory: no lock, no owed reactions, no history"),
        Arg::new("require-state")
            .long("require-state")
            .action(ArgAction::SetTrue)
            .help("Fail if the state directory cannot be used"),
        Arg::new("no-history")
            .long("no-history")
            .action(ArgAction::SetTrue)
            .help("Keep no history; you cannot undo this run"),
    ]
}

pub(super) fn duration(text: &str) -> std::result::Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let nanoseconds = ccm_model::duration::parse(text).map_err(|error| error.to_string())?;
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .map_err(|_| "must not be negative".to_owned())
}

/// Where the state is: as asked for, or where this user's belongs. `None` for a
/// user without a home.
pub(super) fn path(host: &Host, matches: &ArgMatches) -> Option<PathBuf> {
    let given = matches.get_one::<OsString>("state-dir").cloned();
    // Not through the parser, which shows what the environment gives as if the
    // user had written it.
    if let Some(given) = given.or_else(|| host.env("CCM_STATE_DIR")) {
        return Some(flags::from_here(host, Path::new(&given)));
    }
    if host.is_root() {
        return Some(SYSTEM.into());
    }
    let absolute = |name| host.env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    base.map(|base| base.join("ccm"))
}

/// The state directory of a command that changes the machine.
pub(super) struct Access {
    directory: Option<StateDir>,
    timeout: Duration,
    is_required: bool,
    /// Nothing may be written without the lock.
    is_locked: bool,
}

/// Opens the state directory of a run and takes its lock, which is held as long
/// as the second value lives. A run that changes nothing needs neither.
///
/// # Errors
///
/// Fails if other users can change the directory, if another run goes on for
/// too long, and with `--require-state` if there is no directory. Otherwise a
/// run without one gets a warning.
pub(super) fn begin(
    ui: &mut Ui,
    options: &mut RunOptions,
    matches: &ArgMatches,
) -> Result<(Access, Option<RunLock>)> {
    let mut access = Access::open(options, matches)?;
    let lock = access.lock(&mut |text| ui.waiting(text), &options.host)?;
    if access.is_lost() {
        options.state.directory = None;
    }
    Ok((access, lock))
}

/// The same for a run that shows nothing.
pub(super) fn begin_quietly(
    options: &mut RunOptions,
    matches: &ArgMatches,
) -> Result<(Access, Option<RunLock>)> {
    let mut access = Access::open(options, matches)?;
    let lock = access.lock(&mut |_| {}, &options.host)?;
    if access.is_lost() {
        options.state.directory = None;
    }
    Ok((access, lock))
}

impl Access {
    /// Opens the directory and gives it to the run, but takes no lock yet. A
    /// run that changes nothing only reads what is there.
    pub(super) fn open(options: &mut RunOptions, matches: &ArgMatches) -> Result<Self> {
        let is_on = |name| matches.try_get_one(name).ok().flatten() == Some(&true);
        let timeout = matches.get_one("lock-timeout").copied().unwrap_or_default();
        let is_required = is_on("require-state");
        let mut access = Self { directory: None, timeout, is_required, is_locked: false };
        let changes_nothing =
            options.mode.noop || options.mode.health_check_only || is_on("render");
        if is_on("no-state") {
            return Ok(access);
        }
        options.state.session = flags::session_path(matches);
        options.state.history = (!is_on("no-history")).then(HistoryInfo::default);
        let host = &options.host;
        if changes_nothing {
            options.state.directory = read_only(host, matches);
            return Ok(access);
        }
        let opened = match path(host, matches) {
            Some(path) => host.state_dir(&path, true),
            None => {
                let message = "there is no home directory to keep state in";
                access.go_without(host, message, None)?;
                return Ok(access);
            }
        };
        match opened {
            Ok(directory) => {
                access.is_locked = directory.is_some();
                options.state.directory.clone_from(&directory);
                access.directory = directory;
            }
            Err(error @ HostError::SharedState { .. }) => return Err(error.into()),
            Err(error) => {
                access.go_without(host, "cannot use the state directory", Some(&error))?;
            }
        }
        Ok(access)
    }

    /// Whether there is a directory without a lock that works: another run may
    /// write the same records then.
    pub(super) fn is_lost(&self) -> bool {
        self.is_locked && self.directory.is_none()
    }

    /// Takes the lock, for as long as the result lives.
    pub(super) fn lock(
        &mut self,
        waiting: &mut dyn FnMut(&str),
        host: &Host,
    ) -> Result<Option<RunLock>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let lock = directory.lock(self.timeout, &mut |holder| waiting(&wait_for(holder)));
        match lock {
            Ok(lock) => {
                host.set_run_token(lock.token());
                Ok(Some(lock))
            }
            Err(LockError::Host(error)) => {
                self.go_without(host, "cannot use the lock", Some(&error))?;
                self.directory = None;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A run without state is better than none, unless someone says otherwise.
    fn go_without(&self, host: &Host, what: &str, error: Option<&HostError>) -> Result<()> {
        let reason = error.map(|error| format!(": {}", ccm_engine::chain(error)));
        let reason = reason.unwrap_or_default();
        if self.is_required {
            let hint = "--require-state is set; choose another directory with --state-dir";
            let message = format!("{what}{reason}");
            return Err(Error::Invalid { message, hint: Some(hint.to_owned()) });
        }
        // Here debts would be lost that could be kept.
        if error.is_some_and(is_full) {
            let hint =
                "free some space, choose another directory with --state-dir, or give --no-state";
            let message = format!("{what}{reason}");
            return Err(Error::Invalid { message, hint: Some(hint.to_owned()) });
        }
        host.warn(format!("{what}{reason}; ccm runs without a lock and keeps no records"));
        Ok(())
    }
}

fn is_full(error: &HostError) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            use std::io::ErrorKind::{QuotaExceeded, StorageFull};
            return matches!(error.kind(), StorageFull | QuotaExceeded);
        }
        source = error.source();
    }
    false
}

/// The state directory for a command that only reads it; one that cannot be used
/// is worth a warning.
pub(super) fn read_only(host: &Host, matches: &ArgMatches) -> Option<StateDir> {
    match host.state_dir(&path(host, matches)?, false) {
        Ok(directory) => directory,
        Err(error) => {
            let error = ccm_engine::chain(&error);
            host.warn(format!("{error}; ccm does not know what earlier runs owe"));
            None
        }
    }
}

pub(super) fn wait_for(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(holder) => format!("waiting for another run: {holder}"),
        None => "waiting for another run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_wait() {
        assert_eq!(duration("60s"), Ok(Duration::from_mins(1)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert!(duration("-1s").is_err());
        assert!(duration("soon").is_err());
    }
}
