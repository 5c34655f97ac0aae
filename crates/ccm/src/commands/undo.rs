//! `ccm undo`

use ccm_engine::{Engine, Finished, NoObserver, Planned, RunOptions, Stop, UndoOptions};
use ccm_state::history::{self, RecordedRun, RunSummary};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::state::Access;
use super::{Result, example, flags, history as runs, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{Amount, Closing, Output, PlanView, Show, Ui};

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("undo")
        .about("Undo the changes of a run")
        .before_help(
            "ccm restores files, directories, symlinks, services and packages in reverse order. It \
             does not touch what was changed after the run, and cannot undo `exec` commands; it \
             lists both before it changes anything. An undo is a run too, so you can undo it.",
        )
        .after_help(example(
            "ccm undo --noop\n  ccm undo\n  ccm undo 20261117-115402-001 --only file#/etc/motd",
        ))
        .arg(
            Arg::new("id").value_name("ID").help(
                "Run, as listed by `ccm history` [default: the last run that changed something]",
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
        .arg(flag("force", "Also restore paths that were changed after the run"))
        .next_help_heading("Output")
        .args(flags::amount_flags())
        .arg(flags::json("Print the report as JSON"))
        .next_help_heading("State")
        .args(state::flags())
        .arg(flags::no_sync())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "undo");
    let mut options = flags::run_options(&engine, matches)?;
    ui.follow(&options.host);
    let mut access = Access::open(&mut options, matches)?;
    // Before the lock: what another undo leaves meanwhile is not meant.
    let last = last_run(&options, matches)?;
    let mut has_waited = false;
    let mut wait = |text: &str| {
        has_waited = true;
        ui.waiting(text);
    };
    let _lock = access.lock(&mut wait, &options.host)?;
    // Nor is an undo that was at work already: both mean the same run.
    let last = last.map(|run| match run.info.undo_of {
        Some(of) if has_waited && run.finished.is_none() => of,
        _ => run.info.id,
    });
    if access.is_lost() {
        options.state.directory = None;
    }
    let run = chosen(&options, matches, last.as_deref())?;
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
        } else if is_done(&finished) {
            ui.print(&already_undone(&run, &options));
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
    } else if is_done(&finished) {
        ui.print(&already_undone(&run, &options));
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

/// Whether there was nothing to restore.
fn is_done(finished: &Finished) -> bool {
    finished.report.events.is_empty() && finished.stop.is_none()
}

/// Says that a run needs no undo, and what has undone it.
fn already_undone(run: &RecordedRun, options: &RunOptions) -> String {
    let id = &run.info.id;
    let all = options.state.directory.as_ref().map(history::list);
    let all = all.and_then(std::result::Result::ok).unwrap_or_default();
    match all.iter().find(|later| later.info.undo_of.as_ref() == Some(id)) {
        Some(undo) => format!("The run {id} is already undone, by the run {}\n", undo.info.id),
        None => format!("Nothing of the run {id} is left to undo\n"),
    }
}

/// The last run that changed something, unless the user has named one.
fn last_run(options: &RunOptions, matches: &ArgMatches) -> Result<Option<RunSummary>> {
    let Some(directory) = options.state.directory.as_ref() else { return Ok(None) };
    if matches.contains_id("id") {
        return Ok(None);
    }
    Ok(history::list(directory)?.into_iter().find(|run| run.changed > 0))
}

/// The run to take back. `last` was the last one before the lock was taken; it
/// may have been at work still, and changed nothing in the end.
fn chosen(options: &RunOptions, matches: &ArgMatches, last: Option<&str>) -> Result<RecordedRun> {
    let directory = options.state.directory.as_ref();
    if let Some(id) = matches.get_one::<String>("id") {
        return runs::find(directory, id);
    }
    if let (Some(directory), Some(last)) = (directory, last)
        && let Some(run) = history::open(directory, last)?
    {
        return Ok(run);
    }
    match last_run(options, matches)? {
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
