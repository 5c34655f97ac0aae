//! `ccm status TYPE NAME`

use ccm_engine::{AnyType, Arguments, find_type};
use ccm_model::{Field, did_you_mean};
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
        .before_help(
            "ccm reads the state through the provider of the type and changes nothing. For a \
             scaffold it renders the source; commands of `--post` run on copies.",
        )
        .after_help(example("ccm status file /etc/motd\n  ccm status service nginx --json"))
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
        let needed = kind.command_line().map_or(&[][..], |view| view.status);
        let is_needed = move |field: &&Field| needed.contains(&field.name);
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
    let engine = flags::engine(matches, "status");
    let mut options = flags::options(&engine)?;
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
    if let Some(view) = kind.command_line() {
        (view.prepare)(&mut arguments, &options.host)
            .map_err(|message| Error::Invalid { message, hint: None })?;
    }
    options.inputs = inputs::inputs_here(&options, matches)?;
    let status = engine.status(arguments.into_request(kind.name()), &options)?;
    ui.warnings(&options.host);
    if matches.get_flag("json") {
        ui.print_json(&status);
    } else {
        ui.print(&ccm_yaml::to_yaml(&status));
    }
    Ok(Exit::Done)
}
