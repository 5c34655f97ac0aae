//! `ccm plan MANIFEST`

use ccm_engine::{Diffs, Planned, Stop};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Result, example, flags, inputs, manifest};
use crate::exit::Exit;
use crate::ui::{Output, PlanView, Show, Ui};

pub(super) fn command() -> Command {
    Command::new("plan")
        .about("Show what applying a manifest would change")
        .after_help(example("ccm plan manifest.yaml"))
        // Room for commands about saved plans beside the manifest.
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg(manifest::argument())
        .arg(flags::diff().default_value("public").hide_default_value(true))
        .arg(
            Arg::new("no-diff")
                .long("no-diff")
                .action(ArgAction::SetTrue)
                .overrides_with("diff")
                .help("Do not show what changes in texts"),
        )
        .args(flags::amount_flags())
        .arg(flags::json("Print the plan as JSON"))
        .args(flags::selection_flags())
        .args(inputs::flags())
        .arg(flags::detailed_exitcodes())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine();
    let mut options = flags::options(&engine)?;
    ui.follow(&options.host);
    options.inputs = inputs::inputs(&options, matches)?;
    options.mode.noop = true;
    let manifest = engine.load(&manifest::source(matches)?, &options)?;
    flags::select(&engine, &manifest, &mut options, matches)?;
    let is_plain = matches.get_flag("no-diff");
    options.diffs = if is_plain { Diffs::None } else { flags::diffs(matches) };
    ui.show(Show { output: Output::Nothing, ..Show::default() });
    let Planned { plan, finished } = engine.plan(manifest, &options, ui);
    if matches.get_flag("json") {
        ui.print_json(&plan);
    } else {
        let (amount, stop) = (flags::amount(matches), finished.stop);
        ui.plan(&plan, PlanView { amount, has_summary: true, stop });
    }
    Ok(match finished.stop {
        Some(Stop::Cancelled(reason)) => reason.into(),
        _ => Exit::of_run(&finished.report.summary, matches.get_flag("detailed-exitcodes")),
    })
}
