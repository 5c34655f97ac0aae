//! Saved plans at the command line: `plan --out`, `apply FILE`, `plan show` and
//! `plan diff`.

use std::path::PathBuf;
use std::time::Duration;

use ccm_engine::{RunOptions, RunSource, SavedPlan, SourceRef};
use ccm_host::{Host, OutputFile};
use ccm_model::{Plan, duration};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags, manifest};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{PlanView, Ui};

/// How old a plan may be.
const MAX_AGE: &str = "24h";

/// Flags that a saved plan has settled already.
const SETTLED: [&str; 9] = [
    "only",
    "skip",
    "hiera",
    "fact",
    "facts",
    "read-env",
    "no-read-env",
    "monitor-only",
    "offline",
];

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

/// Where a plan is to be saved.
pub(super) struct Saving {
    file: OutputFile,
    path: PathBuf,
}

impl Saving {
    /// Finds out before the plan that the file could not be written later.
    pub(super) fn start(host: &Host, matches: &ArgMatches) -> Result<Option<Self>> {
        let Some(path) = matches.get_one::<PathBuf>("out") else { return Ok(None) };
        if manifest::source(matches)? == SourceRef::StandardInput {
            return Err(Error::usage(
                "a plan of standard input cannot be saved",
                "save the manifest to a file: `ccm apply` reads it again to check the plan",
            ));
        }
        let path = flags::from_here(host, path);
        let file = OutputFile::new(host, &path);
        let file = file.map_err(|source| Error::File { path: path.clone(), source })?;
        Ok(Some(Self { file, path }))
    }

    /// Writes the plan for its owner alone.
    pub(super) fn finish(self, saved: &SavedPlan, host: &Host) -> Result<()> {
        flags::check_not_read(host, &self.path)?;
        let written = self.file.write_private(&saved.encode());
        written.map_err(|source| Error::File { path: self.path, source })
    }
}

/// The saved plan that `apply` was given instead of a manifest, if it was.
pub(super) fn given<'a>(
    source: &SourceRef,
    options: &RunOptions,
    matches: &ArgMatches,
) -> Result<Option<RunSource<'a>>> {
    let SourceRef::Path(path) = source else { return Ok(None) };
    if !SavedPlan::is_one(&options.host, path) {
        return Ok(None);
    }
    let is_given =
        |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
    if let Some(flag) = SETTLED.iter().find(|name| is_given(name)) {
        return Err(Error::usage(
            format!("--{flag} cannot be used with a saved plan"),
            "give it to `ccm plan` when you make the plan",
        ));
    }
    Ok(Some(RunSource::SavedPlan {
        plan: Box::new(SavedPlan::read(&options.host, path)?),
        any_host: matches.get_flag("any-host"),
        max_age: matches.get_one::<Duration>("max-age").copied(),
    }))
}

/// `ccm plan show FILE`
pub(super) fn show(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let plan = read(matches, "file")?;
    if matches.get_flag("json") {
        ui.print_json(&plan);
    } else {
        ui.plan(&plan, PlanView { has_summary: true, is_saved: true, ..PlanView::default() });
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
