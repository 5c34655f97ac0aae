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
use std::fmt::Write as _;
use std::path::PathBuf;

use ccm_engine::SourceRef;
use ccm_host::Host;
use ccm_model::Report;
use ccm_resources::TYPES;
use clap::{ArgMatches, Command};

use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

type Result<T, E = Error> = std::result::Result<T, E>;

/// A command: its name, how its arguments are parsed, and what it does.
type Entry = (&'static str, fn() -> Command, fn(&mut Ui, &ArgMatches) -> Result<Exit>);

/// Every command, below the headings of the main help.
const COMMANDS: &[(&str, &[Entry])] = &[
    (
        "Apply",
        &[
            ("validate", validate::command, validate::run),
            ("plan", plan::command, plan::run),
            ("apply", apply::command, apply::run),
            ("ensure", ensure::command, ensure::run),
        ],
    ),
    (
        "Inspect",
        &[
            ("status", status::command, status::run),
            ("check", check::command, check::run),
            ("why", why::command, why::run),
            ("graph", graph::command, graph::run),
            ("facts", facts::command, facts::run),
            ("hiera", hiera::command, hiera::run),
        ],
    ),
    (
        "Undo",
        &[
            ("history", history::command, history::run),
            ("undo", undo::command, undo::run),
            ("owed", owed::command, owed::run),
        ],
    ),
    (
        "Write manifests",
        &[
            ("edit", edit::command, edit::run),
            ("studio", studio::command, studio::run),
            ("schema", schema::command, |ui, matches| Ok(schema::run(ui, matches))),
        ],
    ),
    (
        "Many machines",
        &[
            ("agent", agent::command, agent::run),
            ("agent-run", agent_run::command, agent_run::run),
            ("registration", registration::command, registration::run),
        ],
    ),
    (
        "Scripts and shells",
        &[
            ("session", session::command, session::run),
            ("completion", completion::command, completion::run),
            ("man", man::command, man::run),
        ],
    ),
];

/// The end of the main help.
const MORE: &str = "Run `ccm COMMAND --help` for the options and examples of a command.";

/// The layout of every help but the main one. `before_help` holds the
/// paragraphs that follow the one-line summary.
const HELP: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

fn entries() -> impl Iterator<Item = &'static Entry> {
    COMMANDS.iter().flat_map(|(_, entries)| *entries)
}

pub(crate) fn all() -> impl Iterator<Item = Command> {
    parsers(entries())
}

/// The first command that is named among the arguments.
pub(crate) fn named_in(args: &[OsString]) -> Option<Command> {
    let known = |arg: &OsString| entries().find(|(name, ..)| arg == name);
    args.iter().skip(1).find_map(known).map(|(_, command, _)| command())
}

/// The layout of the main help. The parser cannot group commands under headings,
/// so the list is part of the template.
pub(crate) fn main_help(cli: &Command) -> String {
    let (header, literal) = (cli.get_styles().get_header(), cli.get_styles().get_literal());
    let width = entries().map(|(name, ..)| name.len()).max().unwrap_or_default();
    let mut out = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, entries) in COMMANDS {
        let _ = writeln!(out, "\n{header}{heading}:{header:#}");
        let commands = entries.iter().filter_map(|(name, ..)| cli.find_subcommand(name));
        for command in commands.filter(|command| !command.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = write!(out, "  {literal}{:width$}{literal:#}  {about}", command.get_name());
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let _ = match aliases[..] {
                [] => Ok(()),
                [alias] => write!(out, " [alias: {alias}]"),
                _ => write!(out, " [aliases: {}]", aliases.join(", ")),
            };
            out.push('\n');
        }
    }
    let _ = write!(out, "\n{header}Options:{header:#}\n{{options}}{{after-help}}\n\n{MORE}");
    out
}

/// Whether a command starts its log by itself.
pub(crate) fn has_own_log(matches: &ArgMatches) -> bool {
    matches.subcommand_name() == Some("agent")
}

pub(crate) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    dispatch(entries(), ui, matches).inspect_err(|error| {
        let (mut command, mut leaf) = ("", matches);
        while let Some((name, matches)) = leaf.subcommand() {
            (command, leaf) = (name, matches);
        }
        print_refusal(ui, command, leaf, error);
    })
}

/// With `--json`, standard output holds one document, whatever happens: the errors
/// of a command that has printed none.
fn print_refusal(ui: &mut Ui, command: &str, matches: &ArgMatches, error: &Error) {
    let is_json = matches.try_get_one::<bool>("json").ok().flatten() == Some(&true);
    // `watch` prints a line per event, and its readers expect nothing else.
    if !is_json || ui.has_printed() || command == "watch" {
        return;
    }
    let manifest = matches.try_get_one::<PathBuf>("manifest").ok().flatten();
    let name = manifest.map(|path| SourceRef::new(path).name()).unwrap_or_default();
    let (host, errors) = (Host::new(), error.diagnostics(&name));
    match command {
        "apply" | "undo" => {
            let noop = matches.get_flag("noop");
            ui.print_json(&Report::refused(name, noop, host.now(), errors));
        }
        "plan" => ui.print_json(&ccm_engine::refused_plan(name, &host, errors)),
        _ => ui.print_json(&serde_json::json!({ "errors": errors })),
    }
}

fn parsers<'e>(entries: impl Iterator<Item = &'e Entry>) -> impl Iterator<Item = Command> {
    entries.map(|(_, command, _)| with_layout(command()))
}

fn with_layout(command: Command) -> Command {
    command.help_template(HELP).mut_subcommands(with_layout)
}

fn dispatch<'e>(
    mut entries: impl Iterator<Item = &'e Entry>,
    ui: &mut Ui,
    matches: &ArgMatches,
) -> Result<Exit> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(Exit::Usage) };
    match entries.find(|(known, _, _)| *known == name) {
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
        for (name, command, _) in entries() {
            assert_eq!(command().get_name(), *name);
        }
    }

    /// `docs/extending.md` says which lines a command needs. This adds one with
    /// just these: its module above, and its entry in a list.
    #[test]
    fn a_command_is_a_file_and_an_entry() {
        let mut commands: Vec<Entry> = entries().copied().collect();
        commands.push(("greet", greet::command, greet::run));
        let cli = || Command::new("ccm").subcommands(parsers(commands.iter()));
        let run = |line: &[&str]| {
            let matches = cli().try_get_matches_from(line).unwrap();
            dispatch(commands.iter(), &mut Ui::new(ColorChoice::Never), &matches).unwrap()
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
