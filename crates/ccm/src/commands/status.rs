//! `ccm status TYPE NAME`

use ccm_engine::{Arguments, find_type};
use ccm_host::Host;
use ccm_model::{Reader, did_you_mean};
use ccm_resources::TYPES;
use clap::{Arg, ArgMatches, Command};

use super::{Result, example, flags, type_names};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("status")
        .visible_alias("info")
        .about("Show the current state of one resource")
        .after_help(example("ccm status file /etc/motd"))
        .arg(
            Arg::new("type")
                .value_name("TYPE")
                .required(true)
                .help("Resource type, such as `file`"),
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("Name of the resource"))
        .arg(flags::json("Print the state as JSON"))
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let text = |name| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let (kind, name) = (text("type"), text("name"));
    let kind = find_type(TYPES, kind).ok_or_else(|| Error::Usage {
        message: format!("unknown resource type `{kind}`"),
        hint: did_you_mean(kind, type_names())
            .or_else(|| Some(format!("the types are {}", type_names().join(", ")))),
    })?;
    if let Some(reason) = kind.no_status() {
        let message = format!("the state of {}#{name} cannot be shown: {reason}", kind.name());
        return Err(Error::Invalid { message, hint: None });
    }
    let host = Host::new();
    let mut arguments = Arguments::default();
    arguments.set("name", name);
    (kind.command_line().prepare)(&mut arguments, &host)
        .map_err(|message| Error::Invalid { message, hint: None })?;
    let resource = kind.declare(arguments.into_entries(), None, &mut Reader::default());
    if let Some(finding) = resource.findings().into_iter().next() {
        let message = format!("{}#{name}: {}", kind.name(), finding.message);
        return Err(Error::Invalid { message, hint: finding.hint });
    }
    let status = resource.status(&host, &host.current_dir()?)?;
    if matches.get_flag("json") {
        ui.print_json(&status);
    } else {
        ui.print(&ccm_yaml::to_yaml(&status));
    }
    Ok(Exit::Done)
}
