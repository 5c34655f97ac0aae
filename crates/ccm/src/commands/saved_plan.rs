//! Saved plans at the command line: `plan --out`, `apply FILE`, `plan show` and
//! `plan diff`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_engine::{
    Detail, Engine, Manifest, NoObserver, PlanRecording, RunOptions, SavedPlan, SourceRef,
};
use ccm_host::{OutputFile, Replay};
use ccm_model::{Plan, duration};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags, manifest};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{PlanView, Ui};

/// How old a plan may be.
const MAX_AGE: &str = "24h";

/// Flags that a saved plan has settled already.
const SETTLED: [&str; 8] =
    ["only", "skip", "hiera", "fact", "facts", "read-env", "no-read-env", "monitor-only"];

/// `--out` of `plan`.
pub(super) fn out_flag() -> Arg {
    Arg::new("out")
        .long("out")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Also save the plan to this file, for `ccm apply FILE`")
}

/// The flags of `apply` for saved plans.
pub(super) fn apply_flags() -> [Arg; 2] {
    [
        Arg::new("any-host")
            .long("any-host")
            .action(ArgAction::SetTrue)
            .help("Apply a saved plan that was made for another machine"),
        Arg::new("max-age")
            .long("max-age")
            .value_name("DURATION")
            .default_value(MAX_AGE)
            .value_parser(|text: &str| duration::parse_positive(text))
            .help("Reject a saved plan that is older than this"),
    ]
}

/// The subcommands of `plan`.
pub(super) fn subcommands() -> [Command; 2] {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(name.to_uppercase())
            .required(true)
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help(help)
    };
    [
        Command::new("show")
            .about("Print a saved plan")
            .after_help(example("ccm plan show web.plan"))
            .arg(file("file", "Saved plan"))
            .arg(flags::json("Print the plan as JSON")),
        Command::new("diff")
            .about("Compare two saved plans")
            .after_help(example("ccm plan diff monday.plan tuesday.plan"))
            .arg(file("a", "The older plan"))
            .arg(file("b", "The newer plan"))
            .arg(flags::json("Print the differences as JSON")),
    ]
}

/// A plan that is to be saved: where, and what it depends on.
pub(super) struct Saving {
    file: OutputFile,
    path: PathBuf,
    recording: PlanRecording,
}

impl Saving {
    /// Begins to record if the flags ask for it. Finds out now that the file
    /// could not be written later.
    pub(super) fn start(options: &mut RunOptions, matches: &ArgMatches) -> Result<Option<Self>> {
        let Some(path) = matches.get_one::<PathBuf>("out") else { return Ok(None) };
        if manifest::source(matches)? == SourceRef::StandardInput {
            return Err(Error::usage(
                "a plan of standard input cannot be saved",
                "save the manifest to a file: `ccm apply` reads it again to check the plan",
            ));
        }
        let path = flags::from_here(&options.host, path);
        let file = options.host.output_file(&path);
        let file = file.map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Some(Self { file, path, recording: PlanRecording::start(options) }))
    }

    /// Writes the plan for its owner alone.
    pub(super) fn finish(
        self,
        plan: Plan,
        manifest: PathBuf,
        options: &RunOptions,
        matches: &ArgMatches,
    ) -> Result<()> {
        flags::check_not_read(&options.host, &self.path)?;
        let (only, skip) = (flags::given(matches, "only"), flags::given(matches, "skip"));
        let saved = self.recording.finish(plan, manifest, options, only, skip);
        let written = self.file.write_private(&saved.encode());
        written.map_err(|source| Error::File { path: self.path, source })
    }
}

/// The saved plan that `apply` was given instead of a manifest, if it was.
pub(super) fn given(source: &SourceRef, options: &RunOptions) -> Option<PathBuf> {
    match source {
        SourceRef::Path(path) if SavedPlan::is_one(&options.host, path) => Some(path.clone()),
        _ => None,
    }
}

/// Reads a saved plan, refuses it if anything is not as it was, and makes the
/// options those of the plan. Nothing has been changed by then. The files of the
/// plan last as long as what is given back with the manifest.
pub(super) fn open(
    engine: &Engine,
    options: &mut RunOptions,
    matches: &ArgMatches,
    path: &Path,
) -> Result<(Manifest, Replay)> {
    let is_given =
        |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    if let Some(flag) = SETTLED.iter().find(|name| is_given(name)) {
        return Err(Error::usage(
            format!("--{flag} cannot be used with a saved plan"),
            "give it to `ccm plan` when you make the plan",
        ));
    }
    let saved = SavedPlan::read(&options.host, path)?;
    if !matches.get_flag("any-host") {
        saved.check_host(&options.host)?;
    }
    let max_age = matches.get_one::<Duration>("max-age").copied().unwrap_or_default();
    saved.check_age(options.host.now(), max_age)?;
    let sources = saved.sources()?;
    // With caches of its own: the run is to see the machine anew.
    let mut check = engine.options(options.host.cancel().clone());
    check.inputs = saved.inputs()?;
    let replay = check.host.replay(&sources)?;
    let differences = engine.verify(&saved, &sources, &check, &mut NoObserver)?;
    drop(replay);
    if !differences.is_empty() {
        return Err(Error::Stale { differences });
    }
    options.inputs = saved.inputs()?;
    options.decisions = saved.decisions();
    if let Some(history) = &mut options.state.history {
        history.plan = Some(saved.digest());
    }
    // What was observed is compared in full.
    options.detail = Detail::Report;
    let replay = options.host.replay(&sources)?;
    let manifest = engine.load(&SourceRef::Path(saved.manifest_path().clone()), options)?;
    let manifest = saved.named(manifest);
    let (only, skip) = saved.selectors();
    if !only.is_empty() || !skip.is_empty() {
        options.selection = engine.select(&manifest, options, only, skip)?;
    }
    Ok((manifest, replay))
}

/// `ccm plan show FILE`
pub(super) fn show(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let plan = read(matches, "file")?;
    if matches.get_flag("json") {
        ui.print_json(&plan);
    } else {
        ui.plan(&plan, PlanView { has_summary: true, ..PlanView::default() });
    }
    Ok(Exit::Done)
}

/// `ccm plan diff A B`
pub(super) fn diff(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let differences = read(matches, "a")?.diff(&read(matches, "b")?);
    if matches.get_flag("json") {
        ui.print_json(&serde_json::json!({ "differences": differences }));
    } else if differences.is_empty() {
        ui.print("The plans are the same\n");
    } else {
        ui.plan_differences(&differences);
    }
    Ok(Exit::Done)
}

fn read(matches: &ArgMatches, name: &str) -> Result<Plan> {
    let options = flags::options(&flags::engine(matches, "plan"))?;
    let path = matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    Ok(SavedPlan::read(&options.host, &path)?.plan)
}
