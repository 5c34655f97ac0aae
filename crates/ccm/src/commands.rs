//! The commands, one file each.

mod agent;
mod agent_run;
mod api;
mod apply;
mod check;
mod completion;
#[cfg(test)]
mod docs;
mod edit;
mod ensure;
mod facts;
mod flags;
mod graph;
#[cfg(test)]
mod greet;
mod hiera;
mod history;
mod inputs;
mod man;
mod manifest;
mod owed;
mod plan;
mod registration;
mod saved_plan;
mod schema;
mod session;
mod state;
mod status;
mod studio;
mod undo;
mod validate;
mod why;

use std::ffi::OsString;

use ccm_resources::TYPES;
use clap::{ArgMatches, Command};

use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

type Result<T, E = Error> = std::result::Result<T, E>;

/// A command: its name, how its arguments are parsed, and what it does.
type Entry = (&'static str, fn() -> Command, fn(&mut Ui, &ArgMatches) -> Result<Exit>);

/// Every command, in the order of the help.
const COMMANDS: &[Entry] = &[
    ("apply", apply::command, apply::run),
    ("plan", plan::command, plan::run),
    ("validate", validate::command, validate::run),
    ("ensure", ensure::command, ensure::run),
    ("status", status::command, status::run),
    ("check", check::command, check::run),
    ("undo", undo::command, undo::run),
    ("history", history::command, history::run),
    ("owed", owed::command, owed::run),
    ("why", why::command, why::run),
    ("graph", graph::command, graph::run),
    ("edit", edit::command, edit::run),
    ("studio", studio::command, studio::run),
    ("facts", facts::command, facts::run),
    ("hiera", hiera::command, hiera::run),
    ("agent", agent::command, agent::run),
    ("agent-run", agent_run::command, agent_run::run),
    ("registration", registration::command, registration::run),
    ("session", session::command, session::run),
    ("schema", schema::command, |ui, matches| Ok(schema::run(ui, matches))),
    ("completion", completion::command, completion::run),
    ("man", man::command, man::run),
];

pub(crate) fn all() -> impl Iterator<Item = Command> {
    parsers(COMMANDS)
}

/// The first command that is named among the arguments.
pub(crate) fn named_in(args: &[OsString]) -> Option<Command> {
    let known = |arg: &OsString| COMMANDS.iter().find(|(name, ..)| arg == name);
    args.iter().skip(1).find_map(known).map(|(_, command, _)| command())
}

/// Whether a command starts its log by itself.
pub(crate) fn has_own_log(matches: &ArgMatches) -> bool {
    matches.subcommand_name() == Some("agent")
}

pub(crate) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    dispatch(COMMANDS, ui, matches)
}

fn parsers(commands: &[Entry]) -> impl Iterator<Item = Command> {
    commands.iter().map(|(_, command, _)| command())
}

fn dispatch(commands: &[Entry], ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(Exit::Usage) };
    match commands.iter().find(|(known, _, _)| *known == name) {
        Some((_, _, run)) => run(ui, matches),
        None => Ok(Exit::Usage),
    }
}

/// The examples that every help ends with.
fn example(text: &str) -> String {
    format!("Examples:\n  {text}")
}

/// The names of all types.
fn type_names() -> Vec<&'static str> {
    TYPES.iter().map(|kind| kind.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::ColorChoice;

    #[test]
    fn commands_are_found_by_their_own_names() {
        for (name, command, _) in COMMANDS {
            assert_eq!(command().get_name(), *name);
        }
    }

    /// `docs/extending.md` says which lines a command needs. This adds one with
    /// just these: its module above, and its entry in a list.
    #[test]
    fn a_command_is_a_file_and_an_entry() {
        let mut commands = COMMANDS.to_vec();
        commands.push(("greet", greet::command, greet::run));
        let cli = || Command::new("ccm").subcommands(parsers(&commands));
        let run = |line: &[&str]| {
            let matches = cli().try_get_matches_from(line).unwrap();
            dispatch(&commands, &mut Ui::new(ColorChoice::Never), &matches).unwrap()
        };
        assert_eq!(run(&["ccm", "greet", "Ann"]), Exit::Done);
        assert_eq!(run(&["ccm", "greet", "Ann", "--json"]), Exit::Done);
        assert_eq!(run(&["ccm", "greet", ""]), Exit::Failed);
        assert!(cli().try_get_matches_from(["ccm", "greet"]).is_err(), "the name is required");
        cli().debug_assert();
        assert!(cli().render_help().to_string().contains("Greet someone"));
        let mut script = Vec::new();
        clap_complete::generate(clap_complete::Shell::Bash, &mut cli(), "ccm", &mut script);
        assert!(String::from_utf8_lossy(&script).contains("ccm__subcmd__greet"));
    }
}
