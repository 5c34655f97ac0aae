//! `ccm apply MANIFEST`

use std::path::PathBuf;

use ccm_engine::{Detail, Finished, Manifest, Observer as _, Planned, Session, Stop};
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
        .arg(flag("render", "Print the resolved manifest without applying it"))
        .args(flags::selection_flags())
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
    ui.follow(&options.host);
    options.mode.health_check_only = matches.get_flag("monitor-only");
    options.register = flags::registry(matches);
    let _lock = state::begin(ui, &mut options, matches)?;
    let source = manifest::source(matches)?;
    let (manifest, _replay) = if let Some(path) = saved_plan::given(&source, &options) {
        let (manifest, replay) = saved_plan::open(&engine, &mut options, matches, &path)?;
        (manifest, Some(replay))
    } else {
        options.inputs = inputs::inputs(&options, matches)?;
        let manifest = engine.load(&source, &options)?;
        flags::select(&engine, &manifest, &mut options, matches)?;
        (manifest, None)
    };
    if matches.get_flag("render") {
        ui.diagnosis(&manifest.warnings);
        ui.print(&ccm_yaml::to_yaml(&manifest.render()));
        return Ok(Exit::Done);
    }
    let show = show(matches, options.mode.noop, &manifest);
    ui.show(show);
    let is_json = matches.get_flag("json");
    let is_events = show.output == Output::Events;
    let report_file = matches.get_one::<PathBuf>("report-file");
    let report_file = report_file.map(|path| OutputTarget::check(&options.host, path)).transpose();
    let report_file = report_file.map_err(|(path, source)| Error::Report { path, source })?;
    options.diffs = flags::diffs(matches);
    if is_json || is_events || report_file.is_some() || options.has_history {
        options.detail = Detail::Report;
    }
    let mut session = flags::open_session(&options.host, matches)?;
    let session = session.as_mut().map(|session| session as &mut dyn Session);
    let (plan, finished) = if options.mode.noop {
        let Planned { plan, finished } = engine.preview(manifest, &options, session, ui);
        (Some(plan), finished)
    } else {
        (None, engine.apply(manifest, &options, session, ui))
    };
    let Finished { report, stop, .. } = &finished;
    let is_interrupted = matches!(stop, Some(Stop::Cancelled(_)));
    let has_summary = show.closing == Closing::Summary;
    match (is_json, is_events, plan) {
        (true, ..) => ui.print_json(report),
        (_, true, _) => {}
        (.., Some(plan)) => {
            ui.plan(&plan, PlanView { amount: show.amount, has_summary, stop: *stop });
        }
        (.., None) => {
            if *stop == Some(Stop::Failed) && show.amount != Amount::Quiet {
                ui.note("Terminating manifest execution due to failed resource");
            }
            if has_summary {
                ui.summary(report, is_interrupted);
            }
        }
    }
    if show.profile && !is_json && !is_events {
        ui.profile();
    }
    let written = match report_file {
        Some(OutputTarget::StandardOutput) if !is_json && !is_events => {
            ui.print_json(report);
            Ok(())
        }
        Some(OutputTarget::StandardOutput) | None => Ok(()),
        Some(OutputTarget::File(file, path)) => write_report(&file, path, report),
    };
    let mut exit = match stop {
        Some(Stop::Cancelled(reason)) => (*reason).into(),
        _ => Exit::of_run(&report.summary, matches.get_flag("detailed-exitcodes")),
    };
    let is_without_errors = finished.is_without_errors() && written.is_ok();
    for error in finished.losses.into_iter().map(Error::from).chain(written.err()) {
        ui.error(&error);
        exit = exit.or_failed();
    }
    if let Some(message) = finished.post_message.filter(|_| is_without_errors) {
        ui.message(&message);
    }
    Ok(exit)
}

/// What is shown of the run.
fn show(matches: &ArgMatches, is_preview: bool, manifest: &Manifest) -> Show {
    let output = match (matches.get_flag("json"), matches.get_flag("events")) {
        (true, _) => Output::Nothing,
        (_, true) => Output::Events,
        // A plan is printed when all of it is known.
        (false, false) if is_preview => Output::Nothing,
        (false, false) => Output::Rows,
    };
    Show {
        output,
        amount: flags::amount(matches),
        closing: if matches.get_flag("no-report") { Closing::None } else { Closing::Summary },
        profile: matches.get_flag("profile"),
        names_output: output == Output::Rows && may_mix_output(manifest),
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
