//! What `apply` and `ensure` share: flags, settings, sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ccm_engine::{Diffs, DirectorySession, MemorySession, NoSession, Session};
use ccm_host::{Host, System};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::Result;
use crate::signals;

pub(super) fn noop() -> Arg {
    Arg::new("noop")
        .long("noop")
        .action(ArgAction::SetTrue)
        .help("Say what would be done, change nothing")
}

pub(super) fn diff() -> Arg {
    Arg::new("diff")
        .long("diff")
        .value_name("WHICH")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("public")
        .value_parser(["public", "all"])
        .help("Show what changes in texts; `all` includes files hidden from others")
}

pub(super) fn no_sync() -> Arg {
    Arg::new("no-sync")
        .long("no-sync")
        .action(ArgAction::SetTrue)
        .help("Do not wait until what was written is on disk")
}

pub(super) fn session() -> Arg {
    Arg::new("session")
        .long("session")
        .value_name("DIR")
        .env("CCM_SESSION_STORE")
        .hide_env_values(true)
        // An empty variable is the same as none.
        .value_parser(clap::value_parser!(OsString))
        .value_hint(ValueHint::DirPath)
        .help("Record events in this directory")
}

pub(super) fn json(help: &'static str) -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(help)
}

pub(super) fn diffs(matches: &ArgMatches) -> Diffs {
    match matches.get_one::<String>("diff").map(String::as_str) {
        None => Diffs::None,
        Some("all") => Diffs::All,
        Some(_) => Diffs::Public,
    }
}

/// What all runs of this process share. Ways to fetch URLs that other crates
/// bring are registered here.
pub(super) fn system() -> System {
    System::default()
}

/// The machine, for a command that can be interrupted.
pub(super) fn host() -> Result<Host> {
    let cancel = signals::watch().map_err(|source| ccm_host::Error::Spawn {
        command: "the signal handler".to_owned(),
        source,
    })?;
    Ok(system().begin(cancel))
}

/// The machine, for a command that may change it.
pub(super) fn host_for(matches: &ArgMatches) -> Result<Host> {
    let host = host()?;
    if matches.get_flag("no-sync") {
        host.skip_sync();
    }
    Ok(host)
}

/// The session that was asked for, if one was.
pub(super) fn session_path(matches: &ArgMatches) -> Option<PathBuf> {
    let path = matches.get_one::<OsString>("session").filter(|path| !path.is_empty())?;
    Some(from_here(&Host::new(), Path::new(path)))
}

/// An absolute path. Where there is no current directory any more, a relative
/// one leads nowhere, and whoever uses it says so.
pub(super) fn from_here(host: &Host, path: &Path) -> PathBuf {
    if path.is_absolute() {
        return path.to_owned();
    }
    host.current_dir().map_or_else(|_| path.to_owned(), |directory| directory.join(path))
}

/// Where relative paths of a resource at the command line begin.
pub(super) fn working_directory(host: &Host) -> PathBuf {
    host.current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// The session to record in; in memory only if something will ask.
pub(super) fn open_session(
    host: &Host,
    matches: &ArgMatches,
    has_references: bool,
) -> Result<Box<dyn Session>> {
    Ok(match session_path(matches) {
        Some(path) => Box::new(DirectorySession::open(host, &path)?),
        None if has_references => Box::new(MemorySession::default()),
        None => Box::new(NoSession),
    })
}
