//! `ccm owed`: lists owed reactions.

use std::path::PathBuf;
use std::time::Duration;

use ccm_engine::SourceRef;
use ccm_host::{Host, StateDir};
use ccm_state::{Ledger, Listing};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use serde_json::json;

use super::{Result, example, flags, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// How long to wait for a run that goes on before something is forgotten.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn command() -> Command {
    Command::new("owed")
        .about("List reactions that failed or interrupted runs still owe")
        .before_help(
            "If a run changes a file and dies before it restarts the service that subscribes to \
             it, the restart is owed. The next run of the same manifest makes up for it. The exit \
             code is 0 if nothing is owed and 2 if something is.",
        )
        .after_help(example("ccm owed\n  ccm owed site.yaml --forget service#nginx"))
        .arg(
            Arg::new("manifest")
                .value_name("MANIFEST")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("List only what this manifest owes"),
        )
        .arg(
            Arg::new("forget")
                .long("forget")
                .value_name("TYPE#NAME")
                .action(ArgAction::Append)
                .help("Drop the reactions that this subscriber owes"),
        )
        .arg(state::directory_flag())
        .arg(flags::json("Print the list as JSON"))
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let Some(path) = state::path(&host, matches) else {
        let message = "there is no home directory with state".to_owned();
        return Err(Error::Invalid { message, hint: Some("give --state-dir DIR".to_owned()) });
    };
    let directory = host.state_dir(&path, false)?;
    let mut owed = match &directory {
        Some(directory) => ccm_state::list(directory)?,
        None => Listing::new(),
    };
    if let Some(manifest) = matches.get_one::<PathBuf>("manifest") {
        let identity = identity(&host, manifest);
        owed.retain(|(manifest, _)| *manifest == identity);
    }
    if let (Some(forgotten), Some(directory)) = (matches.get_many::<String>("forget"), &directory) {
        for name in forgotten {
            forget(ui, directory, &owed, name)?;
            owed.retain(|(_, debt)| debt.subscriber != *name);
        }
    } else if let Some(name) = matches.get_one::<String>("forget") {
        return Err(unknown(name));
    }
    print(ui, &owed, matches.get_flag("json"));
    ui.warnings(&host);
    let is_owed = !owed.is_empty();
    Ok(if is_owed { Exit::Detailed { changed: true, failed: false } } else { Exit::Done })
}

/// What a manifest is known as in records.
fn identity(host: &Host, path: &std::path::Path) -> String {
    match SourceRef::new(path) {
        SourceRef::Path(path) => {
            let path = flags::from_here(host, &path);
            host.canonicalize(&path).unwrap_or(path).display().to_string()
        }
        SourceRef::StandardInput => flags::from_here(host, path).display().to_string(),
        url @ SourceRef::Url(_) => url.name(),
    }
}

fn forget(ui: &mut Ui, directory: &StateDir, owed: &Listing, name: &str) -> Result<()> {
    let found: Vec<_> = owed.iter().filter(|(_, debt)| debt.subscriber == name).collect();
    if found.is_empty() {
        return Err(unknown(name));
    }
    // No run may write the same records meanwhile.
    let _lock = directory.lock(PATIENCE, &mut |holder| ui.waiting(&state::wait_for(holder)))?;
    for (manifest, debt) in found {
        let mut ledger = Ledger::open(directory, manifest, false)?;
        ledger.pay(&debt.path, &debt.subscriber)?;
        ledger.close()?;
    }
    Ok(())
}

fn unknown(name: &str) -> Error {
    let hint = Some("`ccm owed` lists what is owed".to_owned());
    Error::Invalid { message: format!("{name} owes nothing"), hint }
}

fn print(ui: &mut Ui, owed: &Listing, is_json: bool) {
    let place = |manifest: &str, path: &[String]| {
        let below = path.iter().map(String::as_str);
        std::iter::once(manifest).chain(below).collect::<Vec<_>>().join(" > ")
    };
    if is_json {
        let owed: Vec<_> = owed
            .iter()
            .map(|(manifest, debt)| {
                json!({
                    "subscriber": debt.subscriber,
                    "by": debt.by,
                    "since": debt.since,
                    "manifest": place(manifest, &debt.path),
                })
            })
            .collect();
        ui.print_json(&json!({"owed": owed}));
    } else if owed.is_empty() {
        ui.print("Nothing is owed\n");
    } else {
        for (manifest, debt) in owed {
            let place = place(manifest, &debt.path);
            let (subscriber, by) = (&debt.subscriber, &debt.by);
            let line =
                format!("{subscriber} owes a reaction to {by} since {:.0} ({place})", debt.since);
            ui.line(&line);
        }
    }
}
