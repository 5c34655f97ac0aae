//! `ccm plan MANIFEST`

use ccm_engine::{Detail, Diffs, RunRequest, RunResult, RunSource};
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
             it, and changes nothing. It runs read-only queries, the guards of `exec` resources \
             (`onlyif`, `unless`), and `post` commands of scaffolds on private copies. A row marked `?` is provisional: only the run can decide it.",
        )
        .after_help(example(
            "ccm plan site.yaml\n  ccm plan site.yaml --only web --no-diff\n  \
             ccm plan site.yaml --out site.plan && ccm apply site.plan",
        ))
        // `show` and `diff` are about saved plans and take no manifest.
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg(manifest::argument())
        .arg(flags::offline())
        .args(flags::selection_flags())
        .arg(
            Arg::new("no-post")
                .long("no-post")
                .action(ArgAction::SetTrue)
                .help("Do not run `post` commands of scaffolds; what they change is known at apply"),
        )
        .arg(flags::no_groups())
        .arg(flags::max_depth())
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
    options.max_depth = flags::given_depth(matches);
    ui.follow(&options.host);
    options.mode.noop = true;
    options.mode.offline = flags::is_offline(matches);
    options.groups = flags::has_groups(matches);
    options.skips_post = matches.get_flag("no-post");
    let is_plain = matches.get_flag("no-diff");
    options.diffs = if is_plain { Diffs::None } else { flags::diffs(matches) };
    if matches.get_flag("json") {
        // Rows for people count lines; programs get digests too.
        options.detail = Detail::Changes;
    }
    let host = options.host.clone();
    let saving = Saving::start(&host, matches)?;
    let source = manifest::source(matches)?;
    let prepared = engine.prepare(
        RunRequest {
            source: RunSource::Manifest(&|options| engine.load(&source, options)),
            state: state::request(&host, matches),
            session: None,
            selectors: flags::selectors(matches),
            inputs: &|options| inputs::inputs(options, matches),
            options,
            is_saved: saving.is_some(),
        },
        &mut |text| ui.waiting(text),
    )?;
    ui.show(Show { output: Output::Nothing, ..Show::default() });
    let RunResult { finished, plan, saved, exit } = prepared.run(ui)?;
    let is_saved = saved.is_some();
    if let (Some(saving), Some(saved)) = (saving, saved) {
        saving.finish(&saved, &host)?;
    }
    let plan = plan.unwrap_or_default();
    if matches.get_flag("json") {
        ui.print_json(&plan);
    } else {
        let (amount, stop) = (flags::amount(matches), finished.stop);
        ui.plan(&plan, PlanView { amount, has_summary: true, stop, is_saved });
    }
    Ok(Exit::of_run(exit, matches.get_flag("detailed-exitcodes")))
}
