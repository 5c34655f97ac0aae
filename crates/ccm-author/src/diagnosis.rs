//! Everything that is known of a manifest before it runs: deferred templates, the
//! hierarchy, conditions.

use ccm_engine::{Diagnosis, FindingsByItem, Manifest, is_managed, templates_of};
use ccm_hiera::{Document, EntryState};
use ccm_model::{Finding, Stage, TemplateError, Templates};
use ccm_template::Resolver;
use ccm_template::placeholder::Openers;
use ccm_yaml::Comments;

/// Everything that was found in a manifest, with the errors that fail only one of
/// its resources, and entries of the hierarchy that match nothing.
pub(crate) fn diagnose(manifest: &mut Manifest) -> Diagnosis {
    let mut diagnosis = diagnose_resources(manifest);
    diagnosis.findings.extend(unmatched_entries(manifest));
    diagnosis.sort();
    diagnosis
}

/// The same without the hierarchy.
pub(crate) fn diagnose_resources(manifest: &mut Manifest) -> Diagnosis {
    let mut diagnosis = manifest.warnings.clone();
    diagnosis.findings.extend(manifest.declarations.control_errors.iter().cloned());
    diagnosis.findings.extend(deferred_errors(manifest));
    diagnosis.sort();
    diagnosis
}

/// Errors in deferred properties as far as they can be known now. A resource that
/// `control` skips resolves nothing.
fn deferred_errors(manifest: &mut Manifest) -> Vec<Finding> {
    let Manifest { declarations, templates, warnings, .. } = manifest;
    let rendered = declarations.rendered.as_ref();
    let source = rendered.unwrap_or(&warnings.source);
    let mut found = Vec::new();
    let mut of_items = FindingsByItem::default();
    for resource in &mut declarations.resources {
        if !is_managed(&**resource, templates).unwrap_or(false) {
            continue;
        }
        let templates = templates_of(&**resource, templates);
        let failures = resource.resolve(Stage::Apply, &Unresolved(&templates));
        let name = resource.display();
        let findings = failures.iter().map(|failure| {
            let finding = failure.finding(Some(source)).of(&*name);
            match rendered {
                Some(rendered) => finding.within(rendered),
                None => finding,
            }
        });
        match resource.item() {
            Some(item) => findings.for_each(|finding| of_items.add(finding, item)),
            None => found.extend(findings),
        }
    }
    let manifest = rendered.is_none().then_some(&*warnings.source);
    found.extend(of_items.into_findings(manifest, templates));
    found
}

/// Warns of entries of the hierarchy that match nothing because a fact does not
/// exist here.
fn unmatched_entries(manifest: &Manifest) -> Vec<Finding> {
    let source = &manifest.warnings.source;
    let Ok((root, _)) = ccm_yaml::parse_lenient(source) else { return Vec::new() };
    if root.entry("hierarchy").is_none() {
        return Vec::new();
    }
    let document = Document::from_node(&root, &Comments::default(), ccm_hiera::DATA);
    let (host, facts) = (manifest.templates.host(), manifest.templates.facts());
    let explained = document.and_then(|document| document.explain(host, facts));
    let entries = explained.map(|explained| explained.entries).unwrap_or_default();
    let missing = entries.iter().enumerate().filter_map(|(index, entry)| {
        let EntryState::NoValue { reason } = &entry.state else { return None };
        let span = ccm_hiera::entry_span(&root, index);
        let message = format!("this entry matches nothing on this machine: {reason}");
        Some(Finding::warning(span, message))
    });
    missing.collect()
}

/// Templates that are checked and stay as they are.
struct Unresolved<'a>(&'a Resolver);

impl Templates for Unresolved<'_> {
    fn text(&self, text: &str) -> Result<String, TemplateError> {
        self.0.check_later(text, Openers::All).map(|()| text.to_owned())
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        self.0.check_later(text, Openers::Shell).map(|()| text.to_owned())
    }

    fn value(&self, text: &str) -> Result<govalue::Value, TemplateError> {
        self.0.check_later(text, Openers::All).map(|()| text.into())
    }
}
