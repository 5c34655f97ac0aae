//! `ccm validate MANIFEST…`

use std::path::PathBuf;

use ccm_author::{Validation, validate};
use ccm_engine::{ManifestError, SourceRef};
use ccm_host::Host;
use ccm_model::Diagnostic;
use clap::{ArgMatches, Command};
use serde::Serialize;

use super::{Result, example, flags, inputs, manifest};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("validate")
        .about("Check manifests without applying them")
        .before_help(
            "ccm reports all errors together, with file, line, column and, for misspelled names, a \
             suggestion. It also checks child manifests. The exit code is 1 if a manifest has an \
             error; warnings do not count.",
        )
        .after_help(example(
            "ccm validate site.yaml\n  ccm validate site.yaml roles/web.yaml --json",
        ))
        .arg(manifest::argument().num_args(1..))
        .arg(flags::json("Print errors and warnings as JSON"))
        .arg(flags::max_depth())
        .next_help_heading("Data and facts")
        .args(inputs::flags())
}

#[derive(Serialize)]
struct ValidationReport {
    valid: bool,
    findings: Vec<Diagnostic>,
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "validate");
    let mut options = flags::options(&engine)?;
    options.max_depth = flags::given_depth(matches);
    options.inputs = inputs::inputs(&options, matches)?;
    let is_json = matches.get_flag("json");
    let mut report = ValidationReport { valid: true, findings: Vec::new() };
    for path in matches.get_many::<PathBuf>("manifest").into_iter().flatten() {
        let found = validate(&engine, &SourceRef::new(path), &options);
        if let Some(ManifestError::Interrupted { reason, .. }) = found.error {
            return Ok(reason.into());
        }
        report.valid &= found.is_valid();
        if is_json {
            let noted = options.host.take_warnings().into_iter().map(Diagnostic::warning);
            report.findings.extend(noted.chain(found.diagnostics()));
        } else {
            show(ui, &options.host, found);
        }
    }
    let exit = if report.valid { Exit::Done } else { Exit::Failed };
    if is_json {
        ui.print_json(&report);
    }
    Ok(exit)
}

/// Shows what was found in one manifest.
fn show(ui: &mut Ui, host: &Host, found: Validation) {
    ui.warnings(host);
    found.diagnoses.iter().for_each(|diagnosis| ui.diagnosis(diagnosis));
    if !found.is_valid() {
        if let Some(error) = found.error {
            ui.error(&error.into());
        }
        return;
    }
    let resources = plural(found.resources, "resource");
    let below = match found.children {
        0 => String::new(),
        count => format!(", {} below", plural(count, "manifest")),
    };
    ui.line(&format!("{} is valid: {resources}{below}", found.name));
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
