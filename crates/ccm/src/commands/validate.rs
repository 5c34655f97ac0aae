//! `ccm validate MANIFEST`

use ccm_engine::ManifestError;
use ccm_model::Diagnostic;
use clap::{ArgMatches, Command};
use serde::Serialize;

use super::{Result, example, flags, inputs, manifest};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("validate")
        .about("Check a manifest as `apply` would before it acts")
        .after_help(example("ccm validate manifest.yaml"))
        .arg(manifest::argument())
        .args(inputs::flags())
        .arg(flags::json("Print the findings as JSON"))
}

#[derive(Serialize)]
struct ValidationReport {
    valid: bool,
    findings: Vec<Diagnostic>,
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "validate");
    let mut options = flags::options(&engine)?;
    let source = manifest::source(matches)?;
    options.inputs = inputs::inputs(&options, matches)?;
    let found = engine.validate(&source, &options);
    let valid = found.is_valid();
    if matches.get_flag("json") {
        if let Some(ManifestError::Interrupted { reason, .. }) = found.error {
            return Ok(reason.into());
        }
        let noted = options.host.take_warnings().into_iter().map(Diagnostic::warning);
        let findings = noted.chain(found.diagnostics()).collect();
        ui.print_json(&ValidationReport { valid, findings });
        return Ok(if valid { Exit::Done } else { Exit::Failed });
    }
    ui.warnings(&options.host);
    found.diagnoses.iter().for_each(|diagnosis| ui.diagnosis(diagnosis));
    if let Some(error) = found.error {
        return Err(error.into());
    }
    if !valid {
        return Ok(Exit::Failed);
    }
    let resources = plural(found.resources, "resource");
    let below = match found.children {
        0 => String::new(),
        count => format!(", {} below", plural(count, "manifest")),
    };
    ui.print(&format!("{} is valid: {resources}{below}\n", found.name));
    Ok(Exit::Done)
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
