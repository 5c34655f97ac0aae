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
        .args(yaml())
        .arg(flags::json("Print JSON (the default)"))
}

/// `--yaml`, beside `--json`, and its negation.
pub(super) fn yaml() -> [Arg; 2] {
    let yaml = Arg::new("yaml")
        .long("yaml")
        .action(ArgAction::SetTrue)
        .conflicts_with("json")
        .help("Print YAML");
    [negation(&yaml), yaml]
}

/// The hidden `--no-SWITCH` of a switch, which scripts of the original use.
pub(super) fn negation(switch: &Arg) -> Arg {
    let name = format!("no-{}", switch.get_long().unwrap_or_default());
    Arg::new(name.clone())
        .long(name)
        .action(ArgAction::SetTrue)
        .overrides_with(switch.get_id())
        .hide(true)
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let facts = inputs::facts(&host, matches)?;
    let path = matches.get_one::<String>("path").map(String::as_str);
    let found = find(facts.get(), path)?;
    show(ui, found.as_ref().unwrap_or(&Value::Nil), matches.get_flag("yaml"));
    ui.warnings(&host);
    Ok(if found.is_some() { Exit::Done } else { Exit::Failed })
}

/// A value, or what a path finds in it.
pub(super) fn find(value: &Value, path: Option<&str>) -> Result<Option<Value>> {
    let Some(path) = path else { return Ok(Some(value.clone())) };
    gjson::Path::compile(path).lookup(value).map_err(|error| Error::Invalid {
        message: format!("cannot evaluate the path `{path}`: {error}"),
        hint: None,
    })
}

/// Prints a value.
pub(super) fn show(ui: &mut Ui, value: &Value, yaml: bool) {
    let json = inputs::as_json(value);
    if yaml {
        ui.print(&ccm_yaml::to_yaml(&json));
    } else {
        ui.print_json(&json);
    }
}
