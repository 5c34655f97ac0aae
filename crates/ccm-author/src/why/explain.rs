//! Builds an explanation.

use ccm_engine::{
    AnyType, Engine, Inputs, Manifest, RunOptions, WrittenPart, WrittenProperty, find_type,
    templates_of,
};
use ccm_hiera::{Document, EntryState, Explanation};
use ccm_host::Host;
use ccm_model::{Field, Outcome, REDACTED, ResourceRef, Stage};
use ccm_template::placeholder::Openers;
use ccm_template::{ExpressionReads, reads_of_expression, reads_of_text};
use serde_json::Value;

use super::reads::Lookup;
use super::{
    SetBy, SetKind, Why, WhyEntry, WhyError, WhyFound, WhyProperty, WhyRead, WhyReference,
    WhyTarget,
};
use crate::decision::{Decision, Decisions};

/// A map with more keys is explained as one value.
const MAX_LEAVES: usize = 200;

/// Explains a resource or a data key. `decisions` are what a run would do, if
/// that is to be told.
///
/// # Errors
///
/// Returns why the manifest's data cannot be followed.
pub fn why(
    engine: &Engine,
    found: WhyFound,
    options: &RunOptions,
    decisions: Option<&Decisions>,
) -> Result<Why, WhyError> {
    let WhyFound { mut manifest, target, child, route, inputs } = found;
    let place = RunPosition { decisions, route };
    let explained = explained(&manifest, &inputs, &options.host)?;
    for resource in &manifest.declarations.resources {
        options.host.add_secrets(resource.secrets());
    }
    let mut why = match target {
        WhyTarget::Data { path } => {
            key(&path, &Lookup { templates: &manifest.templates, explained: &explained })
        }
        WhyTarget::Resource { index, property } => {
            resource(engine.types(), &mut manifest, index, property, &explained, &place)
        }
    };
    why.manifest = child;
    why.redact(&options.host);
    Ok(why)
}

fn resource(
    types: &[&'static dyn AnyType],
    manifest: &mut Manifest,
    index: usize,
    only: Option<&'static str>,
    explained: &Explanation,
    place: &RunPosition<'_>,
) -> Why {
    let written = manifest.written(types, index);
    let resource = &mut manifest.declarations.resources[index];
    let templates = templates_of(&**resource, &manifest.templates).into_owned();
    let failures = resource.resolve(Stage::Apply, &templates);
    let secrets = resource.secret_values();
    templates.host().add_secrets(secrets.run);
    templates.host().set_resource_secrets(secrets.resource);
    let values = resource.properties();
    let fields = find_type(types, resource.kind()).map_or(&[][..], |kind| kind.fields());
    let lookup = Lookup { templates: &templates, explained };
    let resource = &manifest.declarations.resources[index];
    let mut properties = Vec::new();
    for field in fields {
        let entry = written.iter().find(|entry| field.is_called(&entry.key));
        let value = values.get(field.name).cloned().unwrap_or_default();
        let is_wanted = only.map_or(!value.is_null(), |only| only == field.name);
        if !is_wanted {
            continue;
        }
        let is_secret = is_secret(field, &value);
        let failure = failures.iter().find(|failure| failure.property == field.name);
        let property = WhyProperty {
            value,
            set_by: entry.map(|entry| set_by(manifest, entry)),
            reads: entry
                .map_or_else(Vec::new, |entry| lookup.reads(expressions(field, entry), is_secret)),
            error: failure.map(|failure| failure.error.to_string()),
        };
        properties.push((field.name.to_owned(), property));
    }
    let host = templates.host();
    let reference = |reference: &ResourceRef| WhyReference {
        resource: reference.to_string(),
        outcome: place.outcome(&named(manifest, host, reference)),
    };
    let name = host.redactor().name(&resource.display()).into_owned();
    let mut decision = place.decision(&name).cloned();
    if let (Some(decision), Some(only)) = (&mut decision, only) {
        decision.changes.retain(|change| change.property == only);
    }
    Why {
        decision,
        resource: Some(name),
        alias: resource.common().alias.clone(),
        properties,
        require: Some(resource.common().require.iter().map(reference).collect()),
        subscribe: Some(resource.subscribe().iter().map(reference).collect()),
        property: only,
        ..Why::default()
    }
}

/// Where a resource is among those of a run, and what the run would do.
struct RunPosition<'a> {
    decisions: Option<&'a Decisions>,
    /// The child manifests on the way to it.
    route: Vec<String>,
}

impl RunPosition<'_> {
    /// The decision about the resource itself.
    fn decision(&self, name: &str) -> Option<&Decision> {
        self.decisions?.nth(name, &self.route, 0)
    }

    /// What becomes of a resource that it refers to: one beside it, or one above.
    fn outcome(&self, name: &str) -> Option<Outcome> {
        let decisions = self.decisions?;
        let routes = (0..=self.route.len()).rev().map(|length| &self.route[..length]);
        let found = routes.into_iter().find_map(|route| decisions.nth(name, route, 0));
        found.map(|decision| decision.outcome)
    }
}

/// The name under which the decision about a referenced resource is known: a
/// reference may use the alias.
fn named(manifest: &Manifest, host: &Host, reference: &ResourceRef) -> String {
    let found = manifest.declarations.resources.iter().find(|resource| {
        let common = resource.common();
        resource.kind() == reference.kind
            && (common.name == reference.name || common.alias.as_ref() == Some(&reference.name))
    });
    let name = found.map_or_else(|| reference.to_string(), |found| found.display());
    host.redactor().name(&name).into_owned()
}

/// Where the data of the manifest comes from.
fn explained(manifest: &Manifest, inputs: &Inputs, host: &Host) -> Result<Explanation, WhyError> {
    let source = &manifest.warnings.source;
    let document = Document::parse(source.name(), source.text());
    let explained = document.and_then(|document| inputs.explain(host, &document));
    explained.map_err(|error| {
        let message = format!("cannot resolve data: {}", ccm_engine::chain(&error));
        WhyError::new(&message, error.hint())
    })
}

/// Whether what a property reads must not be shown: its value is not.
fn is_secret(field: &Field, value: &Value) -> bool {
    field.secret || field.secret_values || value.as_str() == Some(REDACTED)
}

fn set_by(manifest: &Manifest, entry: &WrittenProperty) -> SetBy {
    let source = manifest.source();
    let kind = if manifest.declarations.rendered.is_some() {
        SetKind::Template
    } else {
        match entry.part {
            WrittenPart::Own => SetKind::Own,
            WrittenPart::Defaults => SetKind::Default,
            WrittenPart::Block => SetKind::Block,
        }
    };
    let line = Some(source.line(entry.span.start));
    SetBy { file: source.name().to_owned(), line, kind }
}

/// The expressions of a property. Those of `control` stand without placeholders.
fn expressions(field: &Field, entry: &WrittenProperty) -> Vec<ExpressionReads> {
    if field.name == "control" {
        return entry.texts.iter().map(|text| reads_of_expression(text)).collect();
    }
    entry.texts.iter().flat_map(|text| reads_of_text(text, Openers::All)).collect()
}

/// Explains a data key: a map by its leaves.
fn key(path: &[String], lookup: &Lookup<'_>) -> Why {
    let mut leaves = Vec::new();
    add_leaves(&lookup.value(path), &mut path.to_vec(), &mut leaves);
    if leaves.is_empty() || leaves.len() > MAX_LEAVES {
        leaves = vec![path.to_vec()];
    }
    let whole = lookup.data(path);
    let mut reads: Vec<WhyRead> = leaves.iter().map(|leaf| lookup.data(leaf)).collect();
    let facts = leaves.iter().flat_map(|leaf| lookup.facts_of(leaf)).collect();
    let is_secret = whole.value.as_str() == Some(REDACTED);
    reads.extend(lookup.reads(facts, is_secret));
    let set_by = whole.origin.map(|origin| SetBy {
        file: origin.file.unwrap_or_default(),
        line: origin.line,
        kind: SetKind::Own,
    });
    let name = path.join(".");
    let property = WhyProperty { value: whole.value, set_by, reads, error: None };
    let entry = |entry: &ccm_hiera::HierarchyEntry| WhyEntry {
        entry: entry.written.clone(),
        name: entry.name.clone(),
        applies: entry.state == EntryState::Applied,
        state: entry.state.to_string(),
    };
    Why {
        data: Some(name.clone()),
        properties: vec![(name, property)],
        hierarchy: lookup.explained.entries.iter().map(entry).collect(),
        ..Why::default()
    }
}

fn add_leaves(value: &Value, path: &mut Vec<String>, into: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, below) in map {
                path.push(key.clone());
                add_leaves(below, path, into);
                path.pop();
            }
        }
        _ => into.push(path.clone()),
    }
}

impl Why {
    /// Takes out everything that the run knows to be secret.
    fn redact(&mut self, host: &Host) {
        let redactor = host.redactor();
        let text = |text: &mut String| *text = redactor.text(text).into_owned();
        let mut names: Vec<&mut String> = Vec::new();
        names.extend(self.resource.iter_mut().chain(&mut self.alias));
        for (_, property) in &mut self.properties {
            redactor.value(&mut property.value);
            names.extend(&mut property.error);
            for read in &mut property.reads {
                redactor.value(&mut read.value);
                names.extend([&mut read.key].into_iter().chain(&mut read.expression));
            }
        }
        let references = self.require.iter_mut().chain(&mut self.subscribe).flatten();
        names.extend(references.map(|reference| &mut reference.resource));
        for entry in &mut self.hierarchy {
            names.extend([&mut entry.state].into_iter().chain(&mut entry.name));
        }
        names.into_iter().for_each(text);
    }
}
