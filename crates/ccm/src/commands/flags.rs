//! Flags, run options and sessions that commands share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_engine::{Diffs, Engine, RunOptions, Selectors, SessionRequest};
use ccm_host::{Fetch, Host, Lookup, OutputFile, Publish, Registry, System};
use ccm_nats::{ContextChoice, DEFAULT_STREAM, Nats};
use ccm_resources::TYPES;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::Result;
use crate::error::Error;
use crate::signals;
use crate::ui::Amount;

pub(super) fn noop() -> Arg {
    Arg::new("noop")
        .long("noop")
        .action(ArgAction::SetTrue)
        .help("Preview changes without applying them (dry run)")
}

pub(super) fn offline() -> Arg {
    Arg::new("offline")
        .long("offline")
        .action(ArgAction::SetTrue)
        .help("Enable services but leave starts and restarts to the first boot, as in image builds")
}

pub(super) fn diff() -> Arg {
    Arg::new("diff")
        .long("diff")
        .value_name("WHICH")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("public")
        .value_parser(["public", "all"])
        .help("Show diffs; `all` includes files that are not world-readable")
}

/// The flags that say how many rows are printed.
pub(super) fn amount_flags() -> [Arg; 2] {
    let flag = |name: &'static str, short: char, help: &'static str| {
        Arg::new(name).long(name).short(short).action(ArgAction::SetTrue).help(help)
    };
    [
        flag("verbose", 'v', "Also show stable and skipped resources"),
        flag("quiet", 'q', "Show only failures and the final line").conflicts_with("verbose"),
    ]
}

pub(super) fn amount(matches: &ArgMatches) -> Amount {
    match (matches.get_flag("quiet"), matches.get_flag("verbose")) {
        (true, _) => Amount::Quiet,
        (false, true) => Amount::Verbose,
        (false, false) => Amount::Normal,
    }
}

pub(super) fn events() -> Arg {
    Arg::new("events")
        .long("events")
        .action(ArgAction::SetTrue)
        .conflicts_with("json")
        .help("Print one event per line as JSON, as it happens")
}

pub(super) fn detailed_exitcodes() -> Arg {
    Arg::new("detailed-exitcodes")
        .long("detailed-exitcodes")
        .action(ArgAction::SetTrue)
        .help("Exit with 2 for changes, 4 for failures, 6 for both")
}

/// The flags that choose a part of a manifest.
pub(super) fn selection_flags() -> [Arg; 2] {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("SELECTOR").action(ArgAction::Append).help(help)
    };
    [
        flag("only", "Select only this `type#name`, alias or tag; may end with `*`; repeatable"),
        flag("skip", "Skip this `type#name`, alias or tag; may end with `*`; repeatable"),
    ]
}

/// The values of a flag that can be repeated.
pub(super) fn given(matches: &ArgMatches, name: &str) -> Vec<String> {
    matches.get_many::<String>(name).into_iter().flatten().cloned().collect()
}

/// The parts of a manifest that the flags select and skip.
pub(super) fn selectors(matches: &ArgMatches) -> Selectors {
    Selectors { only: given(matches, "only"), skip: given(matches, "skip") }
}

pub(super) fn no_groups() -> Arg {
    Arg::new("no-groups")
        .long("no-groups")
        .action(ArgAction::SetTrue)
        .help("Manage adjacent packages and services one by one")
}

/// Whether steps of adjacent resources are taken together.
pub(super) fn has_groups(matches: &ArgMatches) -> bool {
    // Not every command that runs something has neighbours.
    !matches.try_get_one::<bool>("no-groups").ok().flatten().copied().unwrap_or_default()
}

pub(super) fn no_sync() -> Arg {
    Arg::new("no-sync")
        .long("no-sync")
        .action(ArgAction::SetTrue)
        .help("Skip the final sync to disk")
}

/// How deep child manifests may be nested.
pub(super) fn max_depth() -> Arg {
    Arg::new("max-depth")
        .long("max-depth")
        .value_name("N")
        .env("CCM_MAX_DEPTH")
        .value_parser(clap::value_parser!(u16))
        .default_value("10")
        .help("Reject child manifests that are nested deeper than N")
}

pub(super) fn given_depth(matches: &ArgMatches) -> usize {
    matches.get_one::<u16>("max-depth").map_or(ccm_engine::MAX_DEPTH, |&depth| depth.into())
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
        .help("Record events in this session directory")
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

pub(super) fn context() -> Arg {
    Arg::new("context").long("context").value_name("NAME").help(
        "Use this NATS context, '' for the selected one; defaults to `NATS_CONTEXT`, else `CCM`",
    )
}

/// The stream that entries are read from and published to.
pub(super) fn registration() -> Arg {
    Arg::new("registration")
        .long("registration")
        .short('R')
        .value_name("STREAM")
        .value_parser(|text: &str| Nats::check_stream(text).map(|()| text.to_owned()))
        .default_value(DEFAULT_STREAM)
        .help("Stream that holds the registry")
}

pub(super) fn register() -> Arg {
    Arg::new("register")
        .long("register")
        .value_name("WHERE")
        .value_parser(["nats", "jetstream"])
        .help("Publish the services that resources in their desired state register")
}

/// Where services are to be published.
pub(super) fn registry(matches: &ArgMatches) -> Option<Registry> {
    match matches.get_one::<String>("register")?.as_str() {
        "nats" => Some(Registry::Nats),
        _ => Some(Registry::JetStream),
    }
}

/// The context that the flags name.
pub(super) fn context_choice(matches: &ArgMatches) -> ContextChoice {
    let flag = matches.try_get_one::<String>("context").ok().flatten().cloned();
    ContextChoice { flag, configured: None }
}

/// What all runs of a process share, with the network that the process has. Every
/// command builds its system here, so all of them know a source scheme that is
/// added here. Nothing is connected before it is used.
pub(super) fn with_network<N>(system: System, network: &Arc<N>) -> System
where
    N: Fetch + Lookup + Publish + 'static,
{
    system.with_network(network)
}

/// The same with the network that the flags choose.
pub(super) fn system(matches: &ArgMatches, command: &str) -> System {
    let stream = matches.try_get_one::<String>("registration").ok().flatten();
    let stream = stream.map_or(DEFAULT_STREAM, String::as_str);
    let nats = Arc::new(Nats::with_stream(context_choice(matches), command, stream));
    with_network(System::default(), &nats)
}

/// The engine that all commands use.
pub(super) fn engine(matches: &ArgMatches, command: &str) -> Engine {
    Engine::new(system(matches, command), TYPES)
}

/// What a command that can be interrupted gives its run.
pub(super) fn options(engine: &Engine) -> Result<RunOptions> {
    let cancel = signals::watch().map_err(|source| ccm_host::Error::Spawn {
        command: "the signal handler".to_owned(),
        source,
    })?;
    Ok(engine.options(cancel))
}

/// The same for a command that may change the machine.
pub(super) fn run_options(engine: &Engine, matches: &ArgMatches) -> Result<RunOptions> {
    let mut options = options(engine)?;
    if matches.get_flag("no-sync") {
        options.host.skip_sync();
    }
    options.mode.noop = matches.get_flag("noop");
    options.mode.offline = is_offline(matches);
    options.groups = has_groups(matches);
    options.has_history = session_path(matches).is_some();
    Ok(options)
}

/// Whether the run leaves services to the first boot.
pub(super) fn is_offline(matches: &ArgMatches) -> bool {
    // Not every command that runs something manages services.
    matches.try_get_one::<bool>("offline").ok().flatten().copied().unwrap_or_default()
}

/// Where the session is that was asked for, if one was.
pub(super) fn session_path(matches: &ArgMatches) -> Option<PathBuf> {
    // Not every command that runs something has sessions.
    let path = matches.try_get_one::<OsString>("session").ok().flatten();
    let path = path.filter(|path| !path.is_empty())?;
    Some(from_here(&Host::new(), Path::new(path)))
}

/// Where results go beside the terminal.
pub(super) enum OutputTarget {
    StandardOutput,
    File(OutputFile, PathBuf),
}

impl OutputTarget {
    /// Checks before the run that its results can be written. Fails with the
    /// path and the reason.
    pub(super) fn check(host: &Host, path: &Path) -> Result<Self, (PathBuf, ccm_host::Error)> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        let path = from_here(host, path);
        match OutputFile::new(host, &path) {
            Ok(file) => Ok(Self::File(file, path)),
            Err(source) => Err((path, source)),
        }
    }
}

/// Makes a path absolute. If the current directory no longer exists, returns
/// the relative path, and the caller fails when it uses it.
pub(super) fn from_here(host: &Host, path: &Path) -> PathBuf {
    if path.is_absolute() {
        return path.to_owned();
    }
    host.current_dir().map_or_else(|_| path.to_owned(), |directory| directory.join(path))
}

/// The session that was asked for, if one was. `CCM_SESSION_STORE` may still
/// name one that was removed: making it anew would hide that.
pub(super) fn session_request(matches: &ArgMatches) -> Option<SessionRequest> {
    let path = session_path(matches)?;
    let must_exist = matches.value_source("session") == Some(ValueSource::EnvVariable);
    Some(SessionRequest { path, must_exist })
}

/// Refuses to write a result over a file that it was made from. The host must
/// have recorded what was read.
pub(super) fn check_not_read(host: &Host, out: &Path) -> Result<()> {
    let place = |path: &Path| host.canonicalize(path).ok();
    let Some(target) = place(out) else { return Ok(()) };
    let sources = host.recorded_sources().files;
    if sources.keys().any(|source| place(source).as_ref() == Some(&target)) {
        return Err(Error::usage(
            format!("{} is a source of this graph", out.display()),
            "write to another file",
        ));
    }
    Ok(())
}
