//! `ccm status TYPE NAME`

use ccm_engine::{AnyType, Arguments, find_type, read_resource};
use ccm_host::Cancel;
use ccm_model::{Field, Required, did_you_mean};
use ccm_resources::TYPES;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::{Result, ensure, example, flags, inputs, type_names};
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
        .args(needed().map(|(kind, field)| {
            ensure::flag(field).help_heading(format!("Options for {}", kind.name()))
        }))
        .args(inputs::flags().into_iter().map(|arg| arg.help_heading("Data for templates")))
        .arg(flags::json("Print the state as JSON"))
}

/// The properties that types need to show their state.
fn needed() -> impl Iterator<Item = (&'static dyn AnyType, &'static Field)> {
    TYPES.iter().copied().flat_map(|kind| {
        let is_needed = move |field: &&Field| kind.command_line().status.contains(&field.name);
        kind.fields().iter().filter(is_needed).map(move |field| (kind, field))
    })
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
    let host = flags::system().begin(Cancel::default());
    let mut arguments = Arguments::default();
    arguments.set("name", name);
    for (of, field) in needed() {
        let is_given = matches.value_source(field.name) == Some(ValueSource::CommandLine);
        if is_given && of.name() != kind.name() {
            let message = format!("--{} is for {} only", field.flag.long, of.name());
            return Err(Error::usage(message, ""));
        }
        if is_given {
            ensure::give(&mut arguments, field, matches);
        }
    }
    (kind.command_line().prepare)(&mut arguments, &host)
        .map_err(|message| Error::Invalid { message, hint: None })?;
    // What is needed only to make one is not needed to look at it.
    let is_for_making = |field: &&Field| field.required == Required::UnlessEnsure("absent");
    if kind.fields().iter().filter(is_for_making).any(|field| arguments.get(field.name).is_none()) {
        arguments.set("ensure", "absent");
    }
    let directory = flags::working_directory(&host);
    let templates = inputs::inputs_here(&host, matches)?.templates(&host, &directory)?;
    let resource = read_resource(kind, arguments.into_entries(), &templates)?;
    let status = resource.status(&host, &directory, &templates)?;
    if matches.get_flag("json") {
        ui.print_json(&status);
    } else {
        ui.print(&ccm_yaml::to_yaml(&status));
    }
    Ok(Exit::Done)
}
