//! `ccm undo`: take a run back.

use ccm_engine::{Engine, Finished, NoObserver, Planned, RunOptions, Stop, UndoOptions};
use ccm_state::history::{self, RecordedRun};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Result, example, flags, history as runs, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{Amount, Closing, Output, PlanView, Show, Ui};

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("undo")
        .about("Restore what a run changed")
        .after_help(example("ccm undo --noop"))
        .arg(
            Arg::new("id").value_name("ID").help(
                "Run, as `ccm history` lists it; the last one that changed something if omitted",
            ),
        )
        .arg(flags::noop())
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("TYPE#NAME")
                .action(ArgAction::Append)
                .help("Restore only this resource"),
        )
        .arg(flag("force", "Restore what was changed after the run, too"))
        .args(flags::amount_flags())
        .arg(flags::json("Print the report as JSON"))
        .arg(flags::no_sync())
        .args(state::flags())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "undo");
    let mut options = flags::run_options(&engine, matches)?;
    ui.follow(&options.host);
    let _lock = state::begin(ui, &mut options, matches)?;
    let run = chosen(&options, matches)?;
    let is_json = matches.get_flag("json");
    let undo = UndoOptions {
        only: matches.get_many("only").into_iter().flatten().cloned().collect(),
        force: matches.get_flag("force"),
    };
    let amount = flags::amount(matches);
    if options.mode.noop {
        let Planned { plan, finished } = engine.undo(&run, &undo, &options, &mut NoObserver)?;
        if is_json {
            ui.print_json(&finished.report);
        } else {
            ui.plan(&plan, PlanView { amount, has_summary: true, stop: finished.stop });
        }
        return Ok(exit(&finished));
    }
    if let Some(directory) = &options.state.directory {
        history::repair(directory, &run)?;
    }
    if !is_json && amount != Amount::Quiet {
        announce(ui, &engine, &run, &undo, &options)?;
    }
    if let Some(history) = &mut options.state.history {
        history.undo_of = Some(run.info.id.clone());
    }
    let output = if is_json { Output::Nothing } else { Output::Rows };
    ui.show(Show { output, amount, closing: Closing::Summary, ..Show::default() });
    let Planned { finished, .. } = engine.undo(&run, &undo, &options, ui)?;
    if is_json {
        ui.print_json(&finished.report);
    } else {
        ui.summary(&finished.report, matches!(finished.stop, Some(Stop::Cancelled(_))));
    }
    let mut exit = exit(&finished);
    for error in finished.losses.into_iter().map(Error::from) {
        ui.error(&error);
        exit = exit.or_failed();
    }
    Ok(exit)
}

/// The run to take back.
fn chosen(options: &RunOptions, matches: &ArgMatches) -> Result<RecordedRun> {
    let directory = options.state.directory.as_ref();
    if let Some(id) = matches.get_one::<String>("id") {
        return runs::find(directory, id);
    }
    let last = match directory {
        Some(directory) => history::list(directory)?.into_iter().find(|run| run.changed > 0),
        None => None,
    };
    match last {
        Some(run) => runs::find(directory, &run.info.id),
        None => Err(Error::Invalid {
            message: "there is no run to undo".to_owned(),
            hint: Some("`ccm history` lists the runs that are kept".to_owned()),
        }),
    }
}

/// Says beforehand what will not be undone.
fn announce(
    ui: &mut Ui,
    engine: &Engine,
    run: &RecordedRun,
    undo: &UndoOptions,
    options: &RunOptions,
) -> Result<()> {
    let mut preview = engine.options(options.host.cancel().clone());
    preview.mode.noop = true;
    let Planned { finished, .. } = engine.undo(run, undo, &preview, &mut NoObserver)?;
    let failed = finished.report.events.iter().filter(|event| event.failed);
    let lines = failed.flat_map(|event| {
        event.error.iter().map(move |error| format!("{}#{}: {error}", event.kind, event.name))
    });
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        ui.note("Will not be undone:");
        for line in lines {
            ui.line(&format!("  {line}"));
        }
        ui.note("");
    }
    Ok(())
}

fn exit(finished: &Finished) -> Exit {
    match finished.stop {
        Some(Stop::Cancelled(reason)) => reason.into(),
        _ => Exit::of_run(&finished.report.summary, false),
    }
}
