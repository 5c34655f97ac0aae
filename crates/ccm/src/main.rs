//! The `ccm` binary: parses arguments, calls the engine, prints, and chooses
//! exit codes.

mod commands;
mod error;
mod exit;
mod logging;
mod signals;
mod ui;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use crate::exit::Exit;
use crate::ui::{ColorChoice, Ui};

/// Manifests are many small allocations that live for one run: this allocator
/// takes their memory in large pages, which spares thousands of page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("CCM_COMMIT"), ", ", env!("CCM_DATE"), ")");

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == ccm_host::RUN_AS) {
        return ccm_host::become_command();
    }
    let matches = match parse(args) {
        Ok(matches) => matches,
        Err(error) => {
            if let Some(error) = usage::explain(&error) {
                Ui::new(ColorChoice::Auto).error(&error);
                return error.exit().into();
            }
            // Help and version are not errors.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return exit.into();
        }
    };
    let color = match matches.get_one::<String>("color").map(String::as_str) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    };
    // The agent's logs are as its configuration says.
    if !commands::has_own_log(&matches) {
        logging::start(
            matches.get_flag("debug"),
            matches.get_flag("info"),
            matches.get_one::<String>("log-format").is_some_and(|format| format == "json"),
        );
    }
    let mut ui = Ui::new(color);
    let exit = commands::run(&mut ui, &matches).unwrap_or_else(|error| {
        ui.error(&error);
        error.exit()
    });
    ui.flush();
    match ui.take_loss() {
        None => exit.into(),
        Some(error) => {
            ui.error(&error);
            exit.or_failed().into()
        }
    }
}

/// Parses the command line.
///
/// Describing the arguments of every command takes longer than most commands run,
/// so this describes those of the named command alone. Help and errors may list
/// other commands: they need all.
fn parse(args: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    match parse_with(cli_of(commands::named_in(&args)), args.clone()) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => parse_with(cli(), args),
        known => known,
    }
}

/// Parses with these commands. Only a line with `ensure` may need its flags moved.
fn parse_with(mut cli: Command, args: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let ensure = args.iter().position(|arg| arg == "ensure");
    let next = ensure.and_then(|at| args.get(at + 1)).map(|arg| arg.as_encoded_bytes());
    if !next.is_some_and(|next| next.starts_with(b"-")) {
        return cli.try_get_matches_from(args);
    }
    cli.build();
    let args = usage::flags_behind_type(&cli, args);
    cli.try_get_matches_from(args)
}

/// What most people do first.
const EXAMPLES: &str = "Examples:
  ccm validate site.yaml
  ccm plan site.yaml
  ccm apply site.yaml
  ccm undo
  ccm ensure file /etc/motd --content 'Welcome'";

/// The whole command line.
fn cli() -> Command {
    let cli = cli_of(commands::all());
    let help = commands::main_help(&cli);
    cli.help_template(help)
}

/// The command line with some of the commands.
fn cli_of(commands: impl IntoIterator<Item = Command>) -> Command {
    let global = |arg: Arg| arg.global(true).help_heading("Global options");
    Command::new("ccm")
        .version(VERSION)
        .about("Configure a Linux machine from a YAML manifest")
        .after_help(EXAMPLES)
        .arg_required_else_help(true)
        .subcommand_required(true)
        .infer_long_args(true)
        .arg(global(
            Arg::new("debug")
                .long("debug")
                .action(ArgAction::SetTrue)
                .help("Log each step in detail"),
        ))
        .arg(global(
            Arg::new("info").long("info").action(ArgAction::SetTrue).help("Log the main steps"),
        ))
        .arg(global(
            Arg::new("color")
                .long("color")
                .value_name("WHEN")
                .value_parser(["auto", "always", "never"])
                .default_value("auto")
                .value_hint(ValueHint::Other)
                .help("When to use color"),
        ))
        .arg(global(
            Arg::new("log-format")
                .long("log-format")
                .value_name("FORMAT")
                .value_parser(["text", "json"])
                .default_value("text")
                .help("Set the log format"),
        ))
        .subcommands(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        super::cli().debug_assert();
    }

    /// What the fast way accepts, it reads as the whole command line does; all
    /// else is left to that.
    #[test]
    fn a_command_alone_parses_like_all_of_them() {
        for line in [
            "apply site.yaml --noop",
            "--debug --color never plan site.yaml",
            "ensure file /etc/motd --content x",
            "ensure --noop package zsh",
            "ensure api pipe",
            "registration query",
            "hiera parse data.yaml",
            "agent --once",
            "apply plan",
        ] {
            let args =
                || std::iter::once("ccm").chain(line.split(' ')).map(OsString::from).collect();
            let (fast, whole) = (parse(args()).unwrap(), parse_with(cli(), args()).unwrap());
            assert!(
                format!("{:?}", fast.subcommand()) == format!("{:?}", whole.subcommand()),
                "{line}"
            );
        }
        for line in
            ["", "bogus apply", "--color apply plan x", "help apply", "apply --help", "aply x"]
        {
            let args =
                || std::iter::once("ccm").chain(line.split(' ')).map(OsString::from).collect();
            let (fast, whole) =
                (parse(args()).unwrap_err(), parse_with(cli(), args()).unwrap_err());
            assert_eq!(fast.to_string(), whole.to_string(), "{line}");
        }
        let version = parse(vec!["ccm".into(), "--version".into()]).unwrap_err();
        assert_eq!(version.to_string(), format!("ccm {VERSION}\n"));
    }

    #[test]
    fn the_main_help_lists_each_visible_command_once() {
        let mut cli = super::cli();
        let help = cli.render_help().to_string();
        for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
            let start = format!("\n  {} ", command.get_name());
            let wanted = usize::from(!command.is_hide_set());
            assert_eq!(help.matches(&start).count(), wanted, "{}\n{help}", command.get_name());
        }
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let path = format!("{path} {}", sub.get_name());
                let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Examples:\n  "), "{path} has no example");
                assert!(sub.get_about().is_some(), "{path} says nothing about itself");
                check(sub, &path);
            }
        }
        check(&super::cli(), "ccm");
    }
}
