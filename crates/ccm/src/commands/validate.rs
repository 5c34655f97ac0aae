//! `ccm validate MANIFEST`

use ccm_engine::{Diagnosis, Inputs, Manifest, ManifestError};
use ccm_model::Diagnostic;
use ccm_resources::TYPES;
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
struct Verdict {
    valid: bool,
    findings: Vec<Diagnostic>,
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = flags::host()?;
    let is_json = matches.get_flag("json");
    let origin = match manifest::locate(&host, matches) {
        Err(error) if is_json && error.exit() == Exit::Failed => {
            let finding = Diagnostic::unreadable(
                manifest::name(matches),
                ccm_engine::chain(&error),
                error.hint(),
            );
            ui.print_json(&Verdict { valid: false, findings: vec![finding] });
            return Ok(Exit::Failed);
        }
        origin => origin?,
    };
    let inputs = Inputs { served: origin.served(), ..inputs::inputs(&host, matches)? };
    let loaded = Manifest::load(&host, &origin.path, TYPES, &inputs, false);
    let (valid, findings) = match loaded {
        Ok(manifest) => {
            let children = manifest.check_children(&host, TYPES, &inputs);
            let diagnoses = || std::iter::once(&manifest.warnings).chain(&children.diagnoses);
            let valid = children.diagnoses.iter().all(|diagnosis| !diagnosis.has_errors());
            if !is_json {
                diagnoses().for_each(|diagnosis| ui.diagnosis(diagnosis));
                let exit = if valid { Exit::Done } else { Exit::Failed };
                if valid {
                    let resources = plural(manifest.declarations.resources.len(), "resource");
                    let below = match children.count {
                        0 => String::new(),
                        count => format!(", {} below", plural(count, "manifest")),
                    };
                    ui.print(&format!("{} is valid: {resources}{below}\n", origin.name));
                }
                return Ok(exit);
            }
            (valid, diagnoses().flat_map(located).collect())
        }
        Err(ManifestError::Invalid(diagnosis)) if is_json => (false, located(&diagnosis)),
        Err(error) if is_json => {
            let hint = error.hint();
            let ManifestError::Read { path, source } = error else { return Err(error.into()) };
            let file = path.display().to_string();
            (false, vec![Diagnostic::unreadable(file, ccm_engine::chain(&source), hint)])
        }
        Err(error) => return Err(error.into()),
    };
    ui.print_json(&Verdict { valid, findings });
    Ok(if valid { Exit::Done } else { Exit::Failed })
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn located(diagnosis: &Diagnosis) -> Vec<Diagnostic> {
    let findings = diagnosis.findings.iter();
    findings.map(|finding| Diagnostic::new(finding, &diagnosis.source)).collect()
}
