//! `ccm undo`

use ccm_engine::{
    Finished, Inputs, RunRequest, RunResult, RunSource, Selectors, Stop, UndoOptions,
};
use ccm_model::Diagnostic;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Result, example, flags, state};
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
             lists both before it changes anything. If a command ran after something that ccm would \
             restore, or reacted to it, ccm stops before it changes anything, unless you add \
             `--partial`. An undo is a run too, so you can undo it.",
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
                .help("Restore only this resource; a trailing `*` matches any rest; repeatable"),
        )
        .arg(flag("force", "Also restore paths that were changed after the run"))
        .arg(flag("partial", "Restore the rest of a run with steps that cannot be undone"))
        .arg(flag("refresh", "Also restart or reload the services that reacted to the run"))
        .next_help_heading("Output")
        .args(flags::amount_flags())
        .arg(flags::json("Print the report as JSON"))
        .next_help_heading("State")
        // The runs to undo are in the state directory.
        .args(state::flags().into_iter().filter(|flag| flag.get_id() != "no-state"))
        .arg(flags::no_sync())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "undo");
    let options = flags::run_options(&engine, matches)?;
    ui.follow(&options.host);
    let undo = UndoOptions {
        only: flags::given(matches, "only"),
        force: matches.get_flag("force"),
        partial: matches.get_flag("partial"),
        refresh: matches.get_flag("refresh"),
    };
    let prepared = engine.prepare(
        RunRequest {
            source: RunSource::Undo { id: matches.get_one("id").cloned(), undo },
            state: state::request(&options.host, matches),
            session: None,
            selectors: Selectors::default(),
            // An undo needs no templates.
            inputs: &|_| Ok(Inputs::default()),
            is_saved: false,
            options,
        },
        &mut |text| ui.waiting(text),
    )?;
    let is_json = matches.get_flag("json");
    let amount = flags::amount(matches);
    let is_preview = prepared.options().mode.noop;
    if !is_json && !is_preview && amount != Amount::Quiet {
        announce(ui, prepared.conflicts()?);
    }
    let output = if is_json || is_preview { Output::Nothing } else { Output::Rows };
    ui.show(Show { output, amount, closing: Closing::Summary, ..Show::default() });
    let result = prepared.run(ui)?;
    let is_nothing = result.is_nothing_to_undo();
    let RunResult { finished, plan, exit, .. } = result;
    let Finished { report, stop, losses, post_message, .. } = finished;
    let refusal = report.errors.first().cloned();
    match (is_json, post_message.filter(|_| is_nothing), plan) {
        (true, ..) => ui.print_json(&report),
        (_, Some(message), _) => ui.print(&format!("{message}\n")),
        (.., Some(plan)) => {
            ui.plan(&plan, PlanView { amount, has_summary: true, stop, is_saved: false });
        }
        (.., None) => ui.summary(&report, matches!(stop, Some(Stop::Cancelled(_)))),
    }
    // In a preview: that the undo itself would stop.
    if let Some(Diagnostic { message, hint, .. }) = refusal {
        ui.error(&Error::Invalid { message, hint });
    }
    Ok(ui.losses(losses, Exit::of_run(exit, false)))
}

/// Says beforehand what will not be undone.
fn announce(ui: &mut Ui, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    ui.note("Will not be undone:");
    for line in lines {
        ui.line(&format!("  {line}"));
    }
    ui.note("");
}
