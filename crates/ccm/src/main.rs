//! The `ccm` command: a face on the engine that parses arguments, prints, and
//! chooses exit codes.

mod commands;
mod error;
mod exit;
mod logging;
mod signals;
mod ui;

use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, ValueHint};

use crate::exit::Exit;
use crate::ui::{ColorChoice, Ui};

/// Manifests are many small allocations that live for one run: this allocator
/// takes their memory in large pages, which spares thousands of page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("CCM_COMMIT"), ", ", env!("CCM_DATE"), ")");

fn main() -> ExitCode {
    let matches = match cli().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are what was asked for; the rest is misuse.
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

/// The whole command line.
fn cli() -> Command {
    let global = |arg: Arg| arg.global(true).help_heading("Global options");
    Command::new("ccm")
        .version(VERSION)
        .about("Describe the state of a machine, preview it, apply it, trust the report")
        .after_help("Example:\n  ccm plan manifest.yaml")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .infer_long_args(true)
        .arg(global(
            Arg::new("debug")
                .long("debug")
                .action(ArgAction::SetTrue)
                .help("Log everything that is done"),
        ))
        .arg(global(
            Arg::new("info").long("info").action(ArgAction::SetTrue).help("Log what is being done"),
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
                .help("How logs are written"),
        ))
        .subcommands(commands::all())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::cli().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let path = format!("{path} {}", sub.get_name());
                let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example:\n  "), "{path} has no example");
                assert!(sub.get_about().is_some(), "{path} says nothing about itself");
                check(sub, &path);
            }
        }
        check(&super::cli(), "ccm");
    }
}
