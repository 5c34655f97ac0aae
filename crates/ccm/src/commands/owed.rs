//! `ccm owed`: lists owed reactions.

use std::path::PathBuf;
use std::time::Duration;

use ccm_engine::SourceRef;
use ccm_host::{Host, StateDir};
use ccm_state::{Listing, OwedRecord, OwedStore};
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
             code is 0 if nothing is owed, 2 if something is, and 1 on an error or if the records \
             are damaged.",
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
    let listing = match &directory {
        Some(directory) => ccm_state::list(directory)?,
        None => Listing::default(),
    };
    let Listing { mut owed, is_damaged } = listing;
    if let Some(manifest) = matches.get_one::<PathBuf>("manifest") {
        let identity = identity(&host, manifest);
        owed.retain(|(manifest, _)| *manifest == identity);
    }
    if let (Some(forgotten), Some(directory)) = (matches.get_many::<String>("forget"), &directory) {
        for name in forgotten {
            forget(ui, directory, &owed, name)?;
            owed.retain(|(_, record)| record.subscriber != *name);
        }
    } else if let Some(name) = matches.get_one::<String>("forget") {
        return Err(unknown(name));
    }
    let is_json = matches.get_flag("json");
    if owed.is_empty() && is_damaged {
        if is_json {
            print(ui, &owed, is_damaged, is_json);
        }
        ui.warnings(&host);
        let message = "cannot tell what is owed: the records are damaged".to_owned();
        let hint = "the next run of their manifest sets them aside".to_owned();
        return Err(Error::Invalid { message, hint: Some(hint) });
    }
    print(ui, &owed, is_damaged, is_json);
    ui.warnings(&host);
    let is_owed = !owed.is_empty();
    Ok(if is_owed { Exit::Code(2) } else { Exit::Done })
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

fn forget(
    ui: &mut Ui,
    directory: &StateDir,
    owed: &[(String, OwedRecord)],
    name: &str,
) -> Result<()> {
    let found: Vec<_> = owed.iter().filter(|(_, record)| record.subscriber == name).collect();
    if found.is_empty() {
        return Err(unknown(name));
    }
    // No run may write the same records meanwhile.
    let _lock =
        directory.lock(PATIENCE, &mut |holder| ui.waiting(&ccm_engine::wait_for(holder)))?;
    for (manifest, record) in found {
        let mut store = OwedStore::open(directory, manifest, false)?;
        store.pay(&record.path, &record.subscriber)?;
        store.close()?;
    }
    Ok(())
}

fn unknown(name: &str) -> Error {
    let hint = Some("`ccm owed` lists what is owed".to_owned());
    Error::Invalid { message: format!("{name} owes nothing"), hint }
}

fn print(ui: &mut Ui, owed: &[(String, OwedRecord)], is_damaged: bool, is_json: bool) {
    let place = |manifest: &str, path: &[String]| {
        let below = path.iter().map(String::as_str);
        std::iter::once(manifest).chain(below).collect::<Vec<_>>().join(" > ")
    };
    if is_json {
        let owed: Vec<_> = owed
            .iter()
            .map(|(manifest, record)| {
                json!({
                    "subscriber": record.subscriber,
                    "by": record.by,
                    "since": record.since,
                    "manifest": place(manifest, &record.path),
                })
            })
            .collect();
        let mut document = json!({"owed": owed});
        if is_damaged {
            document["damaged"] = true.into();
        }
        ui.print_json(&document);
    } else if owed.is_empty() {
        ui.print("Nothing is owed\n");
    } else {
        for (manifest, record) in owed {
            let place = place(manifest, &record.path);
            let (subscriber, by) = (&record.subscriber, &record.by);
            let line =
                format!("{subscriber} owes a reaction to {by} since {:.0} ({place})", record.since);
            ui.line(&line);
        }
    }
}
