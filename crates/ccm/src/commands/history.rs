//! `ccm history`: lists what runs changed, and prints former contents.

use std::path::PathBuf;
use std::time::Duration;

use ccm_engine::Observer as _;
use ccm_host::{Host, Image, StateDir};
use ccm_state::history::{self, Limits, RecordedRun, RecordedTurn, RunSummary, Undoable};
use clap::{Arg, ArgMatches, Command, ValueHint};
use serde_json::{Value, json};

use super::{Result, example, flags, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{Amount, Closing, Output, Show, Ui};

/// How long to wait for a run that goes on before old runs are removed.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn command() -> Command {
    let id =
        || Arg::new("id").value_name("ID").required(true).help("Run, as listed by `ccm history`");
    Command::new("history")
        .about("List the runs that changed something")
        .before_help(
            "ccm keeps the last 100 runs, for at most 30 days, with at most 1 GiB of former \
             contents.",
        )
        .after_help(example("ccm history\n  ccm history show 20261117-115402-001"))
        .args_conflicts_with_subcommands(true)
        .arg(state::directory_flag())
        .arg(flags::json("Print the list as JSON"))
        .subcommand(
            Command::new("show")
                .about("Print what a run changed, with diffs")
                .after_help(example("ccm history show 20261117-115402-001"))
                .arg(id())
                .arg(state::directory_flag())
                .arg(flags::json("Print the run as JSON")),
        )
        .subcommand(
            Command::new("cat")
                .about("Print what a file contained before a run, secrets included")
                .after_help(example("ccm history cat 20261117-115402-001 /etc/motd"))
                .arg(id())
                .arg(
                    Arg::new("path")
                        .value_name("PATH")
                        .required(true)
                        .value_parser(clap::value_parser!(PathBuf))
                        .value_hint(ValueHint::FilePath)
                        .help("File that the run changed or removed"),
                )
                .arg(state::directory_flag()),
        )
        .subcommand(
            Command::new("prune")
                .about("Remove runs that exceed the limits")
                .after_help(example("ccm history prune"))
                .arg(state::directory_flag())
                .arg(flags::json("Print what was removed as JSON")),
        )
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let done = match matches.subcommand() {
        Some(("show", matches)) => show(ui, &host, matches),
        Some(("cat", matches)) => cat(ui, &host, matches),
        Some(("prune", matches)) => prune(ui, &host, matches),
        _ => list(ui, &host, matches),
    };
    ui.warnings(&host);
    done
}

/// The state directory, if there is one. One that other users can change is
/// worth a warning for those who only read.
fn directory(host: &Host, matches: &ArgMatches) -> Result<Option<StateDir>> {
    match state::path(host, matches) {
        Some(path) => match host.state_dir(&path, false) {
            Err(error @ ccm_host::Error::SharedState { .. }) => {
                host.warn(format!("{error}; ccm does not read the history there"));
                Ok(None)
            }
            opened => Ok(opened?),
        },
        None => Err(Error::Invalid {
            message: "there is no home directory with state".to_owned(),
            hint: Some("give --state-dir DIR".to_owned()),
        }),
    }
}

fn list(ui: &mut Ui, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let runs = match directory(host, matches)? {
        Some(directory) => history::list(&directory)?,
        None => Vec::new(),
    };
    if matches.get_flag("json") {
        let runs: Vec<Value> = runs.iter().map(to_json).collect();
        ui.print_json(&json!({"runs": runs}));
    } else if runs.is_empty() {
        ui.print("There is no history\n");
    } else {
        ui.table(&["ID", "CHANGED", "FAILED", "UNDO", "USER", "MANIFEST"], &rows(&runs));
    }
    Ok(Exit::Done)
}

fn rows(runs: &[RunSummary]) -> Vec<Vec<String>> {
    let row = |run: &RunSummary| {
        let manifest = match (&run.info.undo_of, run.finished) {
            (Some(id), _) => format!("undo of {id}"),
            (None, None) => format!("{} (interrupted)", run.info.manifest),
            (None, Some(_)) => run.info.manifest.clone(),
        };
        vec![
            run.info.id.clone(),
            run.changed.to_string(),
            run.failed.to_string(),
            word(run.undo).to_owned(),
            user(run),
            manifest,
        ]
    };
    runs.iter().map(row).collect()
}

fn user(run: &RunSummary) -> String {
    match &run.info.sudo_user {
        Some(name) => format!("{} ({name})", run.info.user),
        None => run.info.user.clone(),
    }
}

fn word(undo: Undoable) -> &'static str {
    match undo {
        Undoable::Yes => "yes",
        Undoable::Partly => "partly",
        Undoable::No => "no",
    }
}

fn to_json(run: &RunSummary) -> Value {
    let info = &run.info;
    let mut value = json!({
        "id": info.id,
        "time": info.started,
        "manifest": info.manifest,
        "user": info.user,
        "changed": run.changed,
        "failed": run.failed,
        "undo": run.undo,
        "finished": run.finished,
    });
    for (key, text) in
        [("sudo_user", &info.sudo_user), ("plan", &info.plan), ("undo_of", &info.undo_of)]
    {
        if let Some(text) = text {
            value[key] = text.as_str().into();
        }
    }
    value
}

fn show(ui: &mut Ui, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let id = matches.get_one::<String>("id").map_or("", String::as_str);
    let run = ccm_engine::find_run(directory(host, matches)?.as_ref(), id)?;
    host.add_secrets(run.secrets.iter().cloned());
    if matches.get_flag("json") {
        let mut shown = run_to_json(&run);
        host.redactor().value(&mut shown);
        ui.print_json(&shown);
        return Ok(Exit::Done);
    }
    let info = &run.info;
    let what = match &info.undo_of {
        Some(id) => format!("undo of {id}"),
        None => info.manifest.clone(),
    };
    ui.line(&format!("Run {} of {what} by {}", info.id, info.user));
    if run.finished.is_none() {
        ui.line("It was interrupted and may not be complete");
    }
    ui.line("");
    ui.show(Show {
        output: Output::Rows,
        amount: Amount::Normal,
        closing: Closing::None,
        ..Show::default()
    });
    for turn in &run.turns {
        match &turn.event {
            Some(event) => ui.finished(event, turn.diff.as_deref()),
            None => interrupted(ui, host, turn),
        }
        for (what, reason) in &turn.lost {
            let what = if what.is_empty() { "this" } else { what };
            let line = format!("        cannot undo {what}: {reason}");
            ui.line(&host.redactor().text(&line));
        }
    }
    ui.print(&format!("\nCan be undone: {}\n", word(run.undo())));
    Ok(Exit::Done)
}

/// A resource that was at work when the run was killed.
fn interrupted(ui: &mut Ui, host: &Host, turn: &RecordedTurn) {
    ui.line(&format!("  ? {}#{}  interrupted", turn.kind, turn.name));
    for change in &turn.paths {
        ui.line(&host.redactor().text(&format!("        {}", change.path.display())));
    }
}

fn run_to_json(run: &RecordedRun) -> Value {
    let info = &run.info;
    let resource = |turn: &RecordedTurn| {
        let paths: Vec<String> =
            turn.paths.iter().map(|change| change.path.to_string_lossy().into_owned()).collect();
        let lost: Vec<Value> = turn
            .lost
            .iter()
            .map(|(what, reason)| json!({"what": what, "reason": reason}))
            .collect();
        json!({
            "type": turn.kind,
            "name": turn.event.as_ref().map_or(&turn.name, |event| &event.name),
            "manifests": turn.route,
            "event": turn.event,
            "diff": turn.diff,
            "paths": paths,
            "cannot_undo": lost,
        })
    };
    json!({
        "id": info.id,
        "time": info.started,
        "finished": run.finished,
        "manifest": info.manifest,
        "user": info.user,
        "sudo_user": info.sudo_user,
        "plan": info.plan,
        "undo_of": info.undo_of,
        "undo": run.undo(),
        "summary": run.summary,
        "resources": run.turns.iter().map(resource).collect::<Vec<_>>(),
    })
}

fn cat(ui: &mut Ui, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let id = matches.get_one::<String>("id").map_or("", String::as_str);
    let run = ccm_engine::find_run(directory(host, matches)?.as_ref(), id)?;
    let Some(path) = matches.get_one::<PathBuf>("path") else { return Ok(Exit::Usage) };
    let path = flags::from_here(host, path);
    let shown = path.display();
    let refused = |message: String| Error::Invalid { message, hint: None };
    let digest = match run.former(&path) {
        None => {
            let hint = Some(format!("`ccm history show {}` lists what it changed", run.info.id));
            let message = format!("the run {} did not change {shown}", run.info.id);
            return Err(Error::Invalid { message, hint });
        }
        Some(Image::File { digest: Some(digest), .. }) => *digest,
        Some(Image::File { .. }) => {
            return Err(refused(format!("the former content of {shown} was not kept")));
        }
        Some(Image::Absent) => {
            return Err(refused(format!("{shown} did not exist before this run")));
        }
        Some(_) => return Err(refused(format!("{shown} was not a file before this run"))),
    };
    let Some(content) = run.content(digest)? else {
        return Err(refused(format!("the former content of {shown} is no longer there")));
    };
    ui.print_bytes(&content);
    Ok(Exit::Done)
}

fn prune(ui: &mut Ui, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let mut pruned = history::Pruned::default();
    if let Some(directory) = directory(host, matches)? {
        // No run may add to it meanwhile.
        let _lock =
            directory.lock(PATIENCE, &mut |holder| ui.waiting(&ccm_engine::wait_for(holder)))?;
        pruned = history::prune(&directory, Limits::default(), host.now(), None)?;
        pruned.bytes += history::sweep(&directory)?;
    }
    let history::Pruned { runs, bytes } = pruned;
    if matches.get_flag("json") {
        ui.print_json(&json!({"runs": runs, "bytes": bytes}));
    } else {
        let noun = if runs == 1 { "run" } else { "runs" };
        ui.print(&format!("Removed {runs} {noun} and {bytes} bytes of former content\n"));
    }
    Ok(Exit::Done)
}
