//! Errors and warnings of a manifest's text for editors: with ranges, caret
//! frames, fixes and the outline.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ccm_engine::{AnyType, Diagnosis, Engine, Manifest, ManifestError, RunOptions};
use ccm_model::{Diagnostic, Finding, Severity};
use ccm_yaml::edit::{Document, Operation, Step};
use ccm_yaml::{Kind, Node, Source};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::diagnosis::{diagnose, diagnose_resources};
use crate::frame;
use crate::outline::{OutlineBlock, OutlineEntry, resources_of};

/// More findings than this come without frame and fixes: making them would take
/// longer than anyone waits.
const MAX_FRAMES: usize = 200;

/// The result of checking the text of a manifest.
#[derive(Debug, Default, Serialize)]
pub struct Check {
    /// Whether it can be applied.
    pub valid: bool,
    /// Errors and warnings.
    pub findings: Vec<CheckedFinding>,
    /// Its resources; none where it is not YAML.
    pub outline: Vec<CheckedResource>,
    /// The blocks of resources that have `defaults`.
    pub blocks: Vec<CheckedBlock>,
}

/// A block with `defaults`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Block")]
pub struct CheckedBlock {
    /// Where it is.
    pub path: Vec<Step>,
    /// The defaults, as written.
    pub defaults: Value,
}

/// A finding with its range, frame and fixes, for editors.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct CheckedFinding {
    /// The message and its location.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// Where it is in the text: line, column, line, column, from 0, columns in
    /// UTF-16 units. Only for what is in the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[usize; 4]>,
    /// As the command line shows it; empty behind the first 200.
    pub frame: String,
    /// Edits that would fix the problem.
    pub fixes: Vec<Fix>,
}

/// Edits that fix a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fix {
    /// A short description of the fix.
    pub title: String,
    /// The edits.
    pub operations: Vec<Operation>,
}

/// A resource of the outline, with its range and how many findings it has.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OutlineEntry")]
pub struct CheckedResource {
    /// The resource.
    #[serde(flatten)]
    pub entry: OutlineEntry,
    /// Where it is in the text, as in [`CheckedFinding::range`].
    pub range: [usize; 4],
    /// How many findings are about it.
    pub findings: usize,
}

/// Checks the text of a manifest as if it were in the file `path`. Runs no command
/// and does not use the network.
pub fn check_text(engine: &Engine, path: &Path, text: String, options: &RunOptions) -> Check {
    check_loaded(engine, &path.display().to_string(), path, text, options).0
}

/// As [`check_text`], with a display name instead of the path, and with the
/// manifest if it could be read.
pub fn check_loaded(
    engine: &Engine,
    name: &str,
    path: &Path,
    text: String,
    options: &RunOptions,
) -> (Check, Option<Manifest>) {
    let (mut found, mut blocks) = (Vec::new(), Vec::new());
    let mut see = |source: &Source, root: &Node<'_>| {
        found = resources_of(source, root);
        blocks = blocks_of(root, &found);
    };
    let loaded = engine.load_seen(name, path, text, options, &mut see);
    let (diagnosis, manifest) = match loaded {
        Ok(mut manifest) => (diagnose_resources(&mut manifest), Some(manifest)),
        Err(ManifestError::Invalid(diagnosis)) => (diagnosis, None),
        Err(_) => return (Check::default(), None),
    };
    let valid = !diagnosis.has_errors();
    (Check { valid, blocks, ..checked(engine.types(), diagnosis, found) }, manifest)
}

/// What is wrong with a text as an editor shows it, beside its resources.
fn checked(
    types: &[&'static dyn AnyType],
    diagnosis: Diagnosis,
    found: Vec<OutlineEntry>,
) -> Check {
    let Diagnosis { source, findings: all } = diagnosis;
    let mut counts = vec![0; found.len()];
    let by_name: HashMap<String, usize> = if all.is_empty() {
        HashMap::new()
    } else {
        found.iter().enumerate().map(|(at, entry)| (entry.reference(), at)).collect()
    };
    // Only fixes need it, and most texts have nothing to be fixed.
    let document = OnceCell::new();
    let read = || Document::parse(Source::new(source.name(), source.text())).ok();
    let mut findings = Vec::new();
    for finding in all {
        if let Some(at) = entry_of(&finding, &found, &by_name) {
            counts[at] += 1;
        }
        let diagnostic = Diagnostic::new(&finding, &source);
        let own = finding.span.filter(|_| finding.source.is_none());
        let range = own.map(|span| source.range(span));
        let (mut frame, mut fixes) = (String::new(), Vec::new());
        if findings.len() < MAX_FRAMES {
            if finding.suggestion.is_some() {
                let document = document.get_or_init(read).as_ref();
                fixes.extend(document.and_then(|document| fix(document, &finding)));
            }
            let alone = Diagnosis { source: Arc::clone(&source), findings: vec![finding] };
            frame = frame::render(&alone, types, false);
            frame.truncate(frame.trim_end().len());
        }
        findings.push(CheckedFinding { diagnostic, range, frame, fixes });
    }
    let outline = found.into_iter().zip(counts);
    let outline = outline
        .map(|(entry, findings)| CheckedResource {
            range: source.range(entry.span),
            entry,
            findings,
        })
        .collect();
    Check { valid: false, findings, outline, blocks: Vec::new() }
}

/// The errors that an edit adds to the text of a manifest: those of the text
/// after it that the text before it does not have. None if there are none.
pub fn new_errors(
    engine: &Engine,
    path: &Path,
    (before, after): (&str, &str),
    options: &RunOptions,
) -> Option<Diagnosis> {
    let (source, found) = errors(engine, path, after, options)?;
    let mut known: HashMap<String, usize> = HashMap::new();
    for finding in errors(engine, path, before, options).into_iter().flat_map(|found| found.1) {
        *known.entry(without_resource(&finding)).or_default() += 1;
    }
    let is_new = |finding: &Finding| match known.get_mut(&without_resource(finding)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let findings: Vec<Finding> = found.into_iter().filter(is_new).collect();
    (!findings.is_empty()).then_some(Diagnosis { source, findings })
}

/// The errors in a text, if there are any.
fn errors(
    engine: &Engine,
    path: &Path,
    text: &str,
    options: &RunOptions,
) -> Option<(Arc<Source>, Vec<Finding>)> {
    let Diagnosis { source, mut findings } = match engine.load_text(path, text.to_owned(), options)
    {
        Ok(mut manifest) => diagnose(&mut manifest),
        Err(ManifestError::Invalid(diagnosis)) => diagnosis,
        // Nothing is known of it, neither before nor after.
        Err(_) => return None,
    };
    findings.retain(|finding| finding.severity == Severity::Error);
    (!findings.is_empty()).then_some((source, findings))
}

/// What a finding says, whatever its resource is called: an edit may rename it.
fn without_resource(finding: &Finding) -> String {
    match &finding.resource {
        Some(resource) => finding.message.replace(resource, ""),
        None => finding.message.clone(),
    }
}

/// The defaults of the blocks that the resources stand in.
fn blocks_of(root: &Node<'_>, found: &[OutlineEntry]) -> Vec<CheckedBlock> {
    let mut blocks: Vec<CheckedBlock> = Vec::new();
    let mut last: Option<&Arc<OutlineBlock>> = None;
    for block in found.iter().map(|entry| &entry.block) {
        let is_known = last.is_some_and(|last| Arc::ptr_eq(last, block));
        last = Some(block);
        if let Some(defaults) = block.defaults.as_ref().filter(|_| !is_known)
            && let Some(defaults) = node_at(root, defaults)
        {
            let defaults = crate::edit::read_value(defaults, None);
            blocks.push(CheckedBlock { path: block.path.clone(), defaults });
        }
    }
    blocks
}

fn node_at<'n, 'a>(root: &'n Node<'a>, path: &[Step]) -> Option<&'n Node<'a>> {
    path.iter().try_fold(root, |node, step| match (&node.kind, step) {
        (Kind::Mapping(entries), Step::Key(key)) => {
            entries.iter().find(|entry| entry.key.text == *key).map(|entry| &entry.value)
        }
        (Kind::Sequence(items), Step::Index(index)) => items.get(*index),
        _ => None,
    })
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
