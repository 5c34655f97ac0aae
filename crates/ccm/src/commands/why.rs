//! `ccm why MANIFEST TARGET`

mod tree;

use ccm_author::Decisions;
use ccm_author::why::{WhyTarget, find_why, why};
use ccm_engine::Stop;
use clap::{Arg, ArgMatches, Command};

use super::{Result, example, flags, inputs, manifest, state};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("why")
        .about("Explain where a value comes from, and what a run would do")
        .before_help(
            "For each property, ccm prints the value, the line that sets it, and the data, facts \
             and variables that it reads. Then it prints what a run would do now. Guards of `exec` \
             resources run, and `post` commands of scaffolds on private copies; no other command.",
        )
        .after_help(example(
            "ccm why manifest.yaml file#/etc/app.conf\n  \
             ccm why manifest.yaml file#/etc/app.conf.content --json\n  \
             ccm why manifest.yaml data:port",
        ))
        .arg(manifest::argument())
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .required(true)
                .help("What to explain: `type#name`, `type#name.property` or `data:KEY`"),
        )
        .arg(flags::json("Print the explanation as JSON"))
        .arg(state::directory_flag())
        .next_help_heading("Data and facts")
        .args(inputs::flags())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "why");
    let mut options = flags::options(&engine)?;
    let source = manifest::source(matches)?;
    options.inputs = inputs::inputs(&options, matches)?;
    // What earlier runs owe decides what a run would do.
    options.state.directory = state::request(&options.host, matches).read_only(&options.host);
    let loaded = engine.load(&source, &options)?;
    let target = matches.get_one::<String>("target").map(String::as_str).unwrap_or_default();
    let found = find_why(&engine, target, loaded, &options)?;
    ui.warnings(&options.host);
    let mut decisions = None;
    if matches!(found.target, WhyTarget::Resource { .. }) {
        // A preview uses its manifest up.
        let (all, finished) =
            Decisions::preview(&engine, engine.load(&source, &options)?, &options);
        if let Some(Stop::Cancelled(reason)) = finished.stop {
            return Ok(reason.into());
        }
        decisions = Some(all);
    }
    let why = why(&engine, found, &options, decisions.as_ref())?;
    if matches.get_flag("json") {
        ui.print_json(&why);
    } else {
        ui.print(&tree::render(&why));
    }
    Ok(Exit::Done)
}
