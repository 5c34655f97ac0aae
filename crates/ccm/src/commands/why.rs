//! `ccm why MANIFEST TARGET`

mod tree;

use ccm_engine::Stop;
use ccm_engine::why::WhyTarget;
use clap::{Arg, ArgMatches, Command};

use super::{Result, example, flags, inputs, manifest};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("why")
        .about("Explain where a value comes from, and what a run would do")
        .before_help(
            "For each property, ccm prints the value, the line that sets it, and the data, facts \
             and variables that it reads. Then it prints what a run would do now. Guards of `exec` \
             resources run, nothing else.",
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
        .next_help_heading("Data and facts")
        .args(inputs::flags())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "why");
    let mut options = flags::options(&engine)?;
    let source = manifest::source(matches)?;
    options.inputs = inputs::inputs(&options, matches)?;
    let loaded = engine.load(&source, &options)?;
    let target = matches.get_one::<String>("target").map(String::as_str).unwrap_or_default();
    let found = engine.find_why(target, loaded, &options)?;
    ui.warnings(&options.host);
    let mut decisions = None;
    if matches!(found.target, WhyTarget::Resource { .. }) {
        // A preview uses its manifest up.
        let (all, finished) = engine.decisions(engine.load(&source, &options)?, &options);
        if let Some(Stop::Cancelled(reason)) = finished.stop {
            return Ok(reason.into());
        }
        decisions = Some(all);
    }
    let why = engine.why(found, &options, decisions.as_ref())?;
    if matches.get_flag("json") {
        ui.print_json(&why);
    } else {
        ui.print(&tree::render(&why));
    }
    Ok(Exit::Done)
}
