//! `ccm session new` and `ccm session report`

use std::path::PathBuf;

use ccm_engine::DirectorySession;
use ccm_host::Host;
use ccm_model::shellquote;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    let new = Command::new("new")
        .about("Start a session and print the variable that selects it")
        .aliases(["start", "create"])
        .after_help(example("eval \"$(ccm session new)\""))
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath)
                .help("Directory for the session [default: a new temporary directory]"),
        )
        // The original's way to say the same.
        .arg(
            Arg::new("directory-flag")
                .long("directory")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .conflicts_with("directory")
                .hide(true),
        );
    let report = Command::new("report")
        .about("Print the results of a session")
        .after_help(example("ccm session report --remove"))
        .arg(flags::session())
        .arg(flags::json("Print the report as JSON"))
        .arg(
            Arg::new("remove")
                .long("remove")
                .action(ArgAction::SetTrue)
                .help("Delete the session, if it is a temporary one"),
        );
    Command::new("session")
        .about("Share results between several ccm commands")
        .before_help(
            "In a session, `ccm ensure` can refer to resources of earlier commands with \
             `--require` and `--subscribe`.",
        )
        .after_help(example("eval \"$(ccm session new)\""))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([new, report])
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    match matches.subcommand() {
        Some(("new", matches)) => new(ui, matches),
        Some(("report", matches)) => report(ui, matches),
        _ => Ok(Exit::Usage),
    }
}

fn new(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let given = matches.get_one::<PathBuf>("directory");
    let path = match given.or_else(|| matches.get_one("directory-flag")) {
        Some(path) => {
            let path = flags::from_here(&host, path);
            DirectorySession::open(&host, &path)?;
            path
        }
        None => flags::from_here(&host, &DirectorySession::create(&host)?),
    };
    let path = path.to_string_lossy();
    ui.print(&format!("export CCM_SESSION_STORE={}\n", shellquote::quote(&path)));
    Ok(Exit::Done)
}

fn report(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let path = flags::session_path(matches).ok_or_else(|| {
        Error::usage(
            "there is no session",
            "start one with `eval \"$(ccm session new)\"` or give --session DIR",
        )
    })?;
    let report = DirectorySession::report_of(&host, &path)?.ok_or_else(|| {
        let message = format!("there is no session in {}", path.display());
        Error::Invalid { message, hint: None }
    })?;
    if matches.get_flag("json") {
        ui.print_json(&report);
    } else {
        ui.session(&report);
    }
    ui.warnings(&host);
    if matches.get_flag("remove") {
        DirectorySession::remove(&host, &path)?;
    }
    Ok(Exit::Done)
}
