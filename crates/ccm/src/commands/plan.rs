//! `ccm plan MANIFEST`

use ccm_engine::{Detail, Diffs, Planned, Stop};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::saved_plan::{self, Saving};
use super::{Result, example, flags, inputs, manifest, state};
use crate::exit::Exit;
use crate::ui::{Output, PlanView, Show, Ui};

pub(super) fn command() -> Command {
    Command::new("plan")
        .about("Preview the changes that a manifest would make")
        .before_help(
            "ccm decides each resource against the machine as the resources before it would leave \
             it, and changes nothing. It runs read-only queries and the guards of `exec` resources \
             (`onlyif`, `unless`). A row marked `?` is provisional: only the run can decide it.",
        )
        .after_help(example(
            "ccm plan site.yaml\n  ccm plan site.yaml --only web --no-diff\n  \
             ccm plan site.yaml --out site.plan && ccm apply site.plan",
        ))
        // `show` and `diff` are about saved plans and take no manifest.
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg(manifest::argument())
        .args(flags::selection_flags())
        .arg(saved_plan::out_flag())
        .arg(flags::detailed_exitcodes())
        .arg(state::directory_flag())
        .next_help_heading("Output")
        .arg(flags::diff().default_value("public").hide_default_value(true))
        .arg(
            Arg::new("no-diff")
                .long("no-diff")
                .action(ArgAction::SetTrue)
                .overrides_with("diff")
                .help("Do not show diffs"),
        )
        .args(flags::amount_flags())
        .arg(flags::json("Print the plan as JSON"))
        .next_help_heading("Data and facts")
        .args(inputs::flags())
        .subcommands(saved_plan::subcommands())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    match matches.subcommand() {
        Some(("show", matches)) => return saved_plan::show(ui, matches),
        Some(("diff", matches)) => return saved_plan::diff(ui, matches),
        _ => {}
    }
    let engine = flags::engine(matches, "plan");
    let mut options = flags::options(&engine)?;
    ui.follow(&options.host);
    // Everything that the plan depends on is read after this.
    let saving = Saving::start(&mut options, matches)?;
    options.inputs = inputs::inputs(&options, matches)?;
    options.mode.noop = true;
    options.state.directory = state::read_only(&options.host, matches);
    let manifest = engine.load(&manifest::source(matches)?, &options)?;
    flags::select(&engine, &manifest, &mut options, matches)?;
    let is_plain = matches.get_flag("no-diff");
    options.diffs = if is_plain { Diffs::None } else { flags::diffs(matches) };
    if matches.get_flag("json") {
        // Rows for people count lines; programs get digests too.
        options.detail = Detail::Changes;
    }
    ui.show(Show { output: Output::Nothing, ..Show::default() });
    let path = manifest.path.clone();
    let Planned { plan, finished } = engine.plan(manifest, &options, ui);
    let is_whole = !matches!(finished.stop, Some(Stop::Cancelled(_)));
    if let Some(saving) = saving.filter(|_| is_whole) {
        saving.finish(plan.clone(), path, &options, matches)?;
    }
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
