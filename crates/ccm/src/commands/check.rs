//! `ccm check FILE`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ccm_engine::{Diagnosis, ManifestError, RunOptions};
use ccm_goss::{Outcome, Report, Rules, RulesError, TestResult};
use ccm_model::Finding;
use ccm_yaml::Source;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::flags::OutputTarget;
use super::{Result, example, flags, inputs};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// Anything larger was not written for one machine.
const MAX_SIZE: u64 = 16 << 20;

pub(super) fn command() -> Command {
    Command::new("check")
        .about("Check the machine against a file of Goss rules")
        .before_help(
            "ccm evaluates the rules itself, without the `goss` program. The exit code is 0 if all \
             rules hold, 2 if some do not, and 3 if the rules cannot be used.",
        )
        .after_help(example("ccm check rules.yaml\n  ccm check rules.yaml --junit results.xml"))
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("YAML file of rules, in which ccm resolves placeholders"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("DURATION")
                .default_value("1m")
                .value_parser(timeout)
                .help("Limit the time of all tests together"),
        )
        .arg(
            Arg::new("verbose")
                .long("verbose")
                .short('v')
                .action(ArgAction::SetTrue)
                .help("Also show tests that pass or are skipped"),
        )
        .arg(flags::json("Print all results as JSON"))
        .arg(
            Arg::new("junit")
                .long("junit")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Write all results to FILE as JUnit XML; `-` is standard output"),
        )
        .next_help_heading("Data and facts")
        .args(inputs::flags())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let parsed = ccm_model::duration::parse_positive(text).map_err(|error| error.to_string())?;
    if parsed.is_zero() { Err("must be greater than zero".to_owned()) } else { Ok(parsed) }
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    match run_checks(ui, matches) {
        // An error that prevents the tests is not a failed test.
        Err(error) if error.exit() == Exit::Failed => {
            super::print_refusal(ui, "check", matches, &error);
            ui.error(&error);
            Ok(Exit::RulesUnusable)
        }
        done => done,
    }
}

fn run_checks(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "check");
    let mut options = flags::options(&engine)?;
    let given = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let path = flags::from_here(&options.host, &given);
    let junit = matches.get_one::<PathBuf>("junit");
    let junit = junit.map(|path| OutputTarget::check(&options.host, path)).transpose();
    let junit = junit.map_err(|(path, source)| Error::File { path, source })?;
    options.inputs = inputs::inputs_here(&options, matches)?;
    let rules = read(&options, &given, &path)?;
    ui.warnings(&options.host);
    let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or_default();
    let Ok(report) = rules.run(&options.host, timeout) else {
        let reason = options.host.cancel().reason();
        return Ok(reason.map_or(Exit::Failed, Into::into));
    };
    if matches.get_flag("json") {
        ui.print_json(&report);
    } else if !matches!(junit, Some(OutputTarget::StandardOutput)) {
        show(ui, &report, matches.get_flag("verbose"));
    }
    match junit {
        Some(OutputTarget::StandardOutput) => ui.print(&report.junit()),
        Some(OutputTarget::File(file, path)) => file
            .write(report.junit().as_bytes(), 0o644)
            .map_err(|source| Error::File { path, source })?,
        None => {}
    }
    Ok(if report.is_ok() { Exit::Done } else { Exit::RulesFailed })
}

fn read(options: &RunOptions, given: &Path, path: &Path) -> Result<Rules> {
    let host = &options.host;
    let text = host.read_trusted(path, MAX_SIZE)?;
    let source = Arc::new(Source::new(given.display().to_string(), text));
    let invalid = |findings: Vec<Finding>| {
        let source = Arc::clone(&source);
        Error::from(ManifestError::Invalid(Diagnosis { source, findings }))
    };
    let node = ccm_yaml::parse(&source).map_err(|error| {
        invalid(vec![Finding::error(error.span, error.message).hint(error.hint)])
    })?;
    let findings = ccm_goss::check(&node);
    if !findings.is_empty() {
        return Err(invalid(findings));
    }
    for warning in ccm_goss::warnings(&node) {
        let line = warning.span.map_or(1, |span| source.line(span.start));
        host.warn(format!("{}:{line}: {}", given.display(), warning.message));
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let templates = options.inputs.templates(host, directory)?;
    let rules = Rules::read(&node, Some(&templates)).map_err(|error| match error {
        RulesError::Invalid(findings) => invalid(findings),
        RulesError::Template(error) => {
            let span = error.place.as_ref().and_then(|place| place.within(&source, node.span));
            invalid(vec![Finding::error(span, error.message).hint(error.hint)])
        }
    })?;
    host.add_secrets(rules.secrets());
    Ok(rules)
}

/// Prints the tests that failed, and how many there were.
fn show(ui: &mut Ui, report: &Report, is_verbose: bool) {
    let shown = |result: &&TestResult| is_verbose || result.outcome == Outcome::Failed;
    ui.marked(report.results.iter().filter(shown).map(|result| {
        let mark = match result.outcome {
            Outcome::Passed => '=',
            Outcome::Failed => '✗',
            Outcome::Skipped => '·',
        };
        (mark, result.line())
    }));
    let summary = report.summary;
    ui.print(&format!(
        "Count: {}, Failed: {}, Skipped: {}, Duration: {:.3}s\n",
        summary.count,
        summary.failed,
        summary.skipped,
        summary.duration.as_secs_f64()
    ));
}
