//! What `apply` and `ensure` share: flags, settings, sessions.

use std::path::PathBuf;

use ccm_engine::{Diffs, DirectorySession, MemorySession, Session};
use ccm_host::{Host, Interrupt};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::Result;

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
        .value_parser(clap::value_parser!(PathBuf))
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

/// The machine, for a command that may change it.
pub(super) fn host() -> Result<Host> {
    Ok(Host::with_interrupt(Interrupt::watch()?))
}

/// The session that was asked for, if one was.
pub(super) fn session_path(matches: &ArgMatches) -> Option<&PathBuf> {
    matches.get_one::<PathBuf>("session").filter(|path| !path.as_os_str().is_empty())
}

pub(super) fn open_session(host: &Host, matches: &ArgMatches) -> Result<Box<dyn Session>> {
    Ok(match session_path(matches) {
        Some(path) => Box::new(DirectorySession::open(host, path)?),
        None => Box::new(MemorySession::default()),
    })
}
