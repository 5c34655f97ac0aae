//! `ccm validate MANIFEST`

use std::path::PathBuf;

use ccm_engine::{Diagnosis, Manifest, ManifestError};
use ccm_host::Host;
use ccm_model::{Severity, redact_credentials};
use ccm_resources::TYPES;
use clap::{ArgMatches, Command};
use serde::Serialize;

use super::{Result, apply, example, flags, inputs};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("validate")
        .about("Check a manifest as `apply` would before it acts")
        .after_help(example("ccm validate manifest.yaml"))
        .arg(apply::manifest())
        .args(inputs::flags())
        .arg(flags::json("Print the findings as JSON"))
}

#[derive(Serialize)]
struct Verdict {
    valid: bool,
    findings: Vec<Located>,
}

/// A finding with its place as people count.
#[derive(Serialize)]
struct Located {
    severity: Severity,
    message: String,
    file: String,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let path: &PathBuf =
        matches.get_one("manifest").ok_or_else(|| Error::usage("no manifest", ""))?;
    let host = Host::new();
    let inputs = inputs::inputs(&host, matches)?;
    let loaded = Manifest::load(&host, path, TYPES, &inputs, false);
    let is_json = matches.get_flag("json");
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
                    ui.print(&format!("{} is valid: {resources}{below}\n", path.display()));
                }
                return Ok(exit);
            }
            (valid, diagnoses().flat_map(located).collect())
        }
        Err(ManifestError::Invalid(diagnosis)) if is_json => (false, located(&diagnosis)),
        Err(ManifestError::Read { path, source }) if is_json => {
            let finding = Located {
                severity: Severity::Error,
                hint: source.hint(),
                message: ccm_engine::chain(&source),
                file: path.display().to_string(),
                line: None,
                column: None,
                resource: None,
            };
            (false, vec![finding])
        }
        Err(error) => return Err(error.into()),
    };
    ui.print_json(&Verdict { valid, findings });
    Ok(if valid { Exit::Done } else { Exit::Failed })
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn located(diagnosis: &Diagnosis) -> Vec<Located> {
    let findings = diagnosis.findings.iter().map(|finding| {
        let source = finding.source.as_ref().unwrap_or(&diagnosis.source);
        let place = finding.span.map(|span| source.position(span.start));
        Located {
            severity: finding.severity,
            message: redact_credentials(&finding.message).into_owned(),
            file: source.name().to_owned(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            resource: finding.resource.clone(),
            hint: finding.hint.clone(),
        }
    });
    findings.collect()
}
