//! `ccm facts [PATH]`

use ccm_host::Host;
use clap::{Arg, ArgAction, ArgMatches, Command};
use govalue::Value;

use super::{Result, example, flags, inputs};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("facts")
        .about("Print facts about this machine")
        .after_help(example("ccm facts host.info.platformFamily"))
        .arg(Arg::new("path").value_name("PATH").help("GJSON path of the facts to show"))
        .args(inputs::fact_flags())
        .arg(yaml())
        .arg(flags::json("Print JSON (the default)"))
}

/// `--yaml`, beside `--json`.
pub(super) fn yaml() -> Arg {
    Arg::new("yaml")
        .long("yaml")
        .action(ArgAction::SetTrue)
        .conflicts_with("json")
        .help("Print YAML")
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let facts = inputs::facts(&host, matches)?;
    let path = matches.get_one::<String>("path").map(String::as_str);
    let exit = show(ui, facts.get(), path, matches.get_flag("yaml"));
    ui.warnings(&host);
    exit
}

/// Prints a value, or what a path finds in it; nothing found is a failure.
pub(super) fn show(ui: &mut Ui, value: &Value, path: Option<&str>, yaml: bool) -> Result<Exit> {
    let found = match path {
        None => Some(value.clone()),
        Some(path) => gjson::Path::compile(path).lookup(value).map_err(|error| Error::Invalid {
            message: format!("cannot evaluate the path `{path}`: {error}"),
            hint: None,
        })?,
    };
    let json = inputs::as_json(found.as_ref().unwrap_or(&Value::Nil));
    if yaml {
        ui.print(&ccm_yaml::to_yaml(&json));
    } else {
        ui.print_json(&json);
    }
    Ok(if found.is_some() { Exit::Done } else { Exit::Failed })
}
