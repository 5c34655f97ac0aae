//! `ccm apply MANIFEST`

use std::path::PathBuf;

use ccm_engine::{
    Detail, Finished, Manifest, Observer as _, RunOptions, RunRequest, RunResult, RunSource, Stop,
};
use ccm_host::OutputFile;
use ccm_model::Report;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::flags::OutputTarget;
use super::{Result, example, flags, inputs, manifest, saved_plan, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{Amount, Closing, Output, PlanView, Show, Ui};

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("apply")
        .about("Apply a manifest, or a saved plan")
        .before_help(
            "ccm checks the whole manifest first and applies nothing if it has an error. Then it \
             applies the resources in the order written, changes only what differs, and prints \
             one row per change. A failed resource does not stop the run, unless the manifest \
             sets `fail_on_error`. The exit code is 1 if a resource failed. `ccm undo` restores \
             what the run changed.",
        )
        .after_help(example(
            "ccm apply site.yaml --noop --diff\n  ccm apply site.yaml\n  \
             ccm apply site.yaml --only web --skip exec#migrate\n  \
             ccm apply https://files.example.net/site.tar.gz\n  ccm apply site.plan",
        ))
        .arg(manifest::argument().help(
            "Manifest or saved plan: a file, `-` for standard input, or the URL of a tarball",
        ))
        .arg(flags::noop())
        .arg(
            flag("monitor-only", "Run only the health checks, change nothing")
                .conflicts_with("noop"),
        )
        .arg(flags::offline().conflicts_with_all(["monitor-only", "register"]))
        .arg(flag("render", "Print the resolved manifest without applying it"))
        .args(flags::selection_flags())
        .arg(flags::no_groups())
        .arg(flags::max_depth())
        .arg(flags::register())
        .arg(flags::detailed_exitcodes())
        .next_help_heading("Output")
        .arg(flags::diff())
        .args(flags::amount_flags())
        .arg(
            flag("report", "Print the summary at the end (the default)")
                .overrides_with("no-report"),
        )
        .arg(flag("no-report", "Do not print the summary at the end").overrides_with("report"))
        .arg(
            Arg::new("report-file")
                .long("report-file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Write all events and the summary to FILE as JSON; `-` is standard output"),
        )
        .arg(flags::json("Print the report as JSON"))
        .arg(flags::events())
        .arg(flag("profile", "Print the slowest resources at the end"))
        .next_help_heading("Data and facts")
        .args(inputs::flags())
        .next_help_heading("Saved plans")
        .args(saved_plan::apply_flags())
        .next_help_heading("State")
        .arg(flags::session())
        .args(state::flags())
        .arg(flags::no_sync())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "apply");
    let mut options = flags::run_options(&engine, matches)?;
    options.max_depth = flags::given_depth(matches);
    ui.follow(&options.host);
    options.mode.health_check_only = matches.get_flag("monitor-only");
    options.register = flags::registry(matches);
    options.diffs = flags::diffs(matches);
    let host = options.host.clone();
    let report_file = matches.get_one::<PathBuf>("report-file");
    let report_file = report_file.map(|path| OutputTarget::check(&host, path)).transpose();
    let report_file = report_file.map_err(|(path, source)| Error::Report { path, source })?;
    let output = output(matches, options.mode.noop);
    let is_read_by_programs = matches.get_flag("json") || output == Output::Events;
    if is_read_by_programs || report_file.is_some() || options.has_history {
        options.detail = Detail::Report;
    }
    let source = manifest::source(matches)?;
    let load = |options: &RunOptions| engine.load(&source, options);
    let prepared = engine.prepare(
        RunRequest {
            source: match saved_plan::given(&source, &options, matches)? {
                Some(plan) => plan,
                None => RunSource::Manifest(&load),
            },
            state: state::request(&host, matches),
            session: flags::session_request(matches),
            selectors: flags::selectors(matches),
            inputs: &|options| inputs::inputs(options, matches),
            options,
            is_saved: false,
        },
        &mut |text| ui.waiting(text),
    )?;
    if matches.get_flag("render") {
        if let Some(manifest) = prepared.manifest() {
            ui.diagnosis(&manifest.warnings);
            ui.print(&ccm_yaml::to_yaml(&manifest.render()));
        }
        return Ok(Exit::Done);
    }
    let show = show(matches, output, prepared.manifest());
    ui.show(show);
    let RunResult { finished, plan, exit, .. } = prepared.run(ui)?;
    let Finished { report, stop, losses, post_message, .. } = finished;
    let has_summary = show.closing == Closing::Summary;
    let is_json = matches.get_flag("json");
    match (is_json, output, plan) {
        (true, ..) => ui.print_json(&report),
        (_, Output::Events, _) => {}
        (.., Some(plan)) => {
            ui.plan(&plan, PlanView { amount: show.amount, has_summary, stop, is_saved: false });
        }
        (.., None) => {
            if stop == Some(Stop::Failed) && show.amount != Amount::Quiet {
                ui.note("Terminating manifest execution due to failed resource");
            }
            if has_summary {
                ui.summary(&report, matches!(stop, Some(Stop::Cancelled(_))));
            }
        }
    }
    if show.profile && !is_read_by_programs {
        ui.profile();
    }
    let written = match report_file {
        Some(OutputTarget::StandardOutput) if !is_read_by_programs => {
            ui.print_json(&report);
            Ok(())
        }
        Some(OutputTarget::StandardOutput) | None => Ok(()),
        Some(OutputTarget::File(file, path)) => write_report(&file, path, &report),
    };
    let exit = Exit::of_run(exit, matches.get_flag("detailed-exitcodes"));
    if let Some(message) = post_message {
        ui.message(&message);
    }
    let exit = ui.losses(losses, exit);
    Ok(ui.losses(written.err(), exit))
}

/// What is printed while the run goes on.
fn output(matches: &ArgMatches, is_preview: bool) -> Output {
    match (matches.get_flag("json"), matches.get_flag("events")) {
        (true, _) => Output::Nothing,
        (_, true) => Output::Events,
        // A plan is printed when all of it is known.
        (false, false) if is_preview => Output::Nothing,
        (false, false) => Output::Rows,
    }
}

/// What is shown of the run.
fn show(matches: &ArgMatches, output: Output, manifest: Option<&Manifest>) -> Show {
    Show {
        output,
        amount: flags::amount(matches),
        closing: if matches.get_flag("no-report") { Closing::None } else { Closing::Summary },
        profile: matches.get_flag("profile"),
        names_output: output == Output::Rows && manifest.is_some_and(may_mix_output),
    }
}

/// Whether the output of more than one resource may be shown.
fn may_mix_output(manifest: &Manifest) -> bool {
    let mut resources = manifest.declarations.resources.iter();
    let mut count = 0;
    resources.any(|resource| {
        // What is in a manifest below is not known yet.
        let is_parent = resource.child().is_some();
        let logs = || resource.properties()["logoutput"] == true;
        count += if is_parent { 2 } else { usize::from(resource.kind() == "exec" && logs()) };
        count > 1
    })
}

/// Writes the report, a new file for its owner alone: it holds the content of
/// files.
fn write_report(file: &OutputFile, path: PathBuf, report: &Report) -> Result<()> {
    let json = serde_json::to_vec_pretty(report).unwrap_or_default();
    file.write(&json, 0o600).map_err(|source| Error::Report { path, source })
}
