//! The state directory of a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_engine::StateRequest;
use ccm_host::Host;
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::flags;

/// Where root's state is.
const SYSTEM: &str = "/var/lib/ccm";

/// The flag that says where a command reads the state of runs.
pub(super) fn directory_flag() -> Arg {
    kept_flag().help("State directory of the runs [env: CCM_STATE_DIR]")
}

/// The flag that says where a run keeps its state.
fn kept_flag() -> Arg {
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
        kept_flag(),
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

/// What the flags say about the state of a run.
pub(super) fn request(host: &Host, matches: &ArgMatches) -> StateRequest {
    // Not every command has all of these flags.
    let is_on = |name| matches.try_get_one(name).ok().flatten() == Some(&true);
    let timeout = matches.try_get_one("lock-timeout").ok().flatten();
    StateRequest {
        path: path(host, matches),
        is_off: is_on("no-state"),
        is_required: is_on("require-state"),
        is_read_only: is_on("render"),
        has_no_history: is_on("no-history"),
        lock_timeout: timeout.copied().unwrap_or_default(),
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
