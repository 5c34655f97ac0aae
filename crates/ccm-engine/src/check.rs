//! What is wrong with the text of a manifest, for those who show it while it
//! is written: with ranges, caret frames and fixes, beside the outline.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ccm_model::{Diagnostic, Finding, Severity};
use ccm_yaml::Source;
use ccm_yaml::edit::{Document, Operation};
use serde::Serialize;

use crate::engine::Engine;
use crate::frame;
use crate::manifest::{Diagnosis, ManifestError};
use crate::options::RunOptions;
use crate::outline::{OutlineEntry, outline};

/// More findings than this come without frame and fixes: making them would take
/// longer than anyone waits.
const MAX_FRAMES: usize = 200;

/// Everything that is known about a text.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Whether it can be applied.
    pub valid: bool,
    /// What is wrong with it, or worth knowing.
    pub findings: Vec<CheckedFinding>,
    /// Its resources; none where it is not YAML.
    pub outline: Vec<CheckedResource>,
}

/// A finding with all that an editor shows.
#[derive(Debug, Serialize)]
pub struct CheckedFinding {
    /// What is wrong, and where.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// Where it is in the text: line, column, line, column, from 0, columns in
    /// UTF-16 units. Only for what is in the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[usize; 4]>,
    /// As the command line shows it; empty behind the first 200.
    pub frame: String,
    /// What would set it right.
    pub fixes: Vec<Fix>,
}

/// Edits that set something right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fix {
    /// What it does, in a few words.
    pub title: String,
    /// The edits.
    pub operations: Vec<Operation>,
}

/// A resource of the outline, with its range and how many findings it has.
#[derive(Debug, Serialize)]
pub struct CheckedResource {
    /// The resource.
    #[serde(flatten)]
    pub entry: OutlineEntry,
    /// Where it is in the text, as in [`CheckedFinding::range`].
    pub range: [usize; 4],
    /// How many findings are about it.
    pub findings: usize,
}

impl Engine {
    /// Checks the text of a manifest as if it were in the file `path`. Runs no
    /// command and does not use the network.
    pub fn check_text(&self, path: &Path, text: String, options: &RunOptions) -> Check {
        self.check_named(&path.display().to_string(), path, text, options)
    }

    /// As [`Engine::check_text`], with a name for people in the place of the
    /// path.
    pub fn check_named(
        &self,
        name: &str,
        path: &Path,
        text: String,
        options: &RunOptions,
    ) -> Check {
        let source = Source::new(name, text.clone());
        let (valid, diagnosis) = match self.load_named(name, path, text, options) {
            Ok(manifest) => {
                let diagnosis = manifest.into_diagnosis();
                (!diagnosis.has_errors(), Some(diagnosis))
            }
            Err(ManifestError::Invalid(diagnosis)) => (false, Some(diagnosis)),
            Err(_) => (false, None),
        };
        let found = outline(&source).unwrap_or_default();
        let ranges: Vec<_> = found.iter().map(|entry| source.range(entry.span)).collect();
        let mut counts = vec![0; found.len()];
        let document = Document::parse(source).ok();
        let mut findings = Vec::new();
        if let Some(Diagnosis { source, findings: all }) = diagnosis {
            let by_name: HashMap<String, usize> =
                found.iter().enumerate().map(|(at, entry)| (entry.reference(), at)).collect();
            for finding in all {
                if let Some(at) = entry_of(&finding, &found, &by_name) {
                    counts[at] += 1;
                }
                let diagnostic = Diagnostic::new(&finding, &source);
                let own = finding.span.filter(|_| finding.source.is_none());
                let range = own.map(|span| source.range(span));
                let (mut frame, mut fixes) = (String::new(), Vec::new());
                if findings.len() < MAX_FRAMES {
                    fixes.extend(document.iter().filter_map(|document| fix(document, &finding)));
                    let alone = Diagnosis { source: source.clone(), findings: vec![finding] };
                    frame = frame::render(&alone, self.types(), false);
                    frame.truncate(frame.trim_end().len());
                }
                findings.push(CheckedFinding { diagnostic, range, frame, fixes });
            }
        }
        let outline = found.into_iter().zip(ranges).zip(counts);
        let outline = outline
            .map(|((entry, range), findings)| CheckedResource { entry, range, findings })
            .collect();
        Check { valid, findings, outline }
    }
}

impl Engine {
    /// The errors that an edit adds to the text of a manifest: those of the text
    /// after it that the text before it does not have. None if there are none.
    pub fn new_errors(
        &self,
        path: &Path,
        (before, after): (&str, &str),
        options: &RunOptions,
    ) -> Option<Diagnosis> {
        let (source, errors) = self.errors(path, after, options)?;
        let mut known: HashMap<String, usize> = HashMap::new();
        for finding in self.errors(path, before, options).into_iter().flat_map(|found| found.1) {
            *known.entry(without_resource(&finding)).or_default() += 1;
        }
        let is_new = |finding: &Finding| match known.get_mut(&without_resource(finding)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let findings: Vec<Finding> = errors.into_iter().filter(is_new).collect();
        (!findings.is_empty()).then_some(Diagnosis { source, findings })
    }

    /// The errors in a text, if there are any.
    fn errors(
        &self,
        path: &Path,
        text: &str,
        options: &RunOptions,
    ) -> Option<(Arc<Source>, Vec<Finding>)> {
        let Diagnosis { source, mut findings } =
            match self.load_text(path, text.to_owned(), options) {
                Ok(manifest) => manifest.into_diagnosis(),
                Err(ManifestError::Invalid(diagnosis)) => diagnosis,
                // Nothing is known of it, neither before nor after.
                Err(_) => return None,
            };
        findings.retain(|finding| finding.severity == Severity::Error);
        (!findings.is_empty()).then_some((source, findings))
    }
}

/// What a finding says, whatever its resource is called: an edit may rename it.
fn without_resource(finding: &Finding) -> String {
    match &finding.resource {
        Some(resource) => finding.message.replace(resource, ""),
        None => finding.message.clone(),
    }
}

/// The resource that a finding stands in, or is about.
fn entry_of(
    finding: &Finding,
    found: &[OutlineEntry],
    by_name: &HashMap<String, usize>,
) -> Option<usize> {
    let own = finding.span.filter(|_| finding.source.is_none());
    let within = own.and_then(|span| {
        // Resources are in the order of the text.
        let behind = found.partition_point(|entry| entry.span.start <= span.start);
        let at = behind.checked_sub(1)?;
        (span.start < found[at].span.end).then_some(at)
    });
    within.or_else(|| by_name.get(finding.resource.as_deref()?).copied())
}

/// The edit that puts a suggestion in the place of what is wrong.
pub fn fix(document: &Document, finding: &Finding) -> Option<Fix> {
    let meant = finding.suggestion.clone().filter(|_| finding.source.is_none())?;
    let span = finding.span?;
    let path = document.path_at(span.start);
    let place = document.locate(&path)?;
    if place.key.is_some_and(|key| key.start == span.start) {
        let title = format!("Rename to {meant}");
        return Some(Fix { title, operations: vec![Operation::Rename { path, key: meant }] });
    }
    let is_value = place.value.start == span.start && document.value(&path)?.is_string();
    is_value.then(|| Fix {
        title: format!("Change to {meant}"),
        operations: vec![Operation::Set { path, value: meant.into(), beside: None }],
    })
}
