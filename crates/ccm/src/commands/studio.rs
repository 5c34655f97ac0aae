//! `ccm studio [DIR|FILE]`

#[cfg(feature = "studio")]
mod serve;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags, inputs};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let command = Command::new("studio")
        .about("Edit, preview and apply manifests in the browser")
        .before_help(
            "ccm serves the page itself, on this machine only, and prints a link that works once. \
             Without `--allow-apply`, it changes nothing but files below the directory.",
        )
        .after_help(example("ccm studio ~/site --open\n  ccm studio ~/site --allow-apply"))
        .arg(
            Arg::new("path")
                .value_name("DIR|FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::AnyPath)
                .default_value(".")
                .help("Directory with the manifests, or one of them"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDR:PORT")
                .default_value("127.0.0.1:0")
                .help("Listen on this loopback address; port 0 is any free port"),
        )
        .arg(
            Arg::new("socket")
                .long("socket")
                .value_name("PATH")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .conflicts_with("listen")
                .help("Listen on a unix socket that only you can open"),
        )
        .arg(flag("open", "Open the link in the browser").conflicts_with("socket"))
        .arg(flag("allow-apply", "Allow applying manifests from the page"))
        .arg(flag("read-only", "Do not save files").conflicts_with("allow-apply"))
        .arg(
            Arg::new("idle")
                .long("idle")
                .value_name("DURATION")
                .default_value("8h")
                .value_parser(super::state::duration)
                .help("Exit after this time without a request; 0 for never"),
        )
        .arg(flags::json("Print the link as JSON"))
        .next_help_heading("Data and facts")
        .args(inputs::flags())
        .next_help_heading("State")
        .arg(flags::session())
        .args(super::state::flags());
    if cfg!(debug_assertions) {
        return command.arg(
            Arg::new("assets")
                .long("assets")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .hide(true)
                .help("Serve the page from this directory"),
        );
    }
    command
}

#[cfg(feature = "studio")]
pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    serve::run(ui, matches)
}

#[cfg(not(feature = "studio"))]
pub(super) fn run(_: &mut Ui, _: &ArgMatches) -> Result<Exit> {
    Err(crate::error::Error::Invalid {
        message: "this ccm was built without the studio".to_owned(),
        hint: Some("build it with the feature `studio`, which is on by default".to_owned()),
    })
}
