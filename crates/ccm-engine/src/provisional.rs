//! Provisional resources: a preview cannot decide them, because an earlier
//! resource may create what is missing.

use ccm_host::{Host, MissedFile, Supplier};
use ccm_model::{Change, ChangeValue, Event};
use serde_json::Value;

use crate::Error;
use crate::resource::AnyResource;

/// Properties that say nothing about the machine.
const NOT_SHOWN: [&str; 11] = [
    "name",
    "alias",
    "ensure",
    "provider",
    "require",
    "subscribe",
    "control",
    "health_checks",
    "register_when_stable",
    "tags",
    "content",
];

/// The resources that a failed one waits for, if an earlier one of the preview
/// may bring what it misses.
pub(crate) fn waits_for(
    host: &Host,
    resource: &dyn AnyResource,
    error: &Error,
) -> Option<Vec<String>> {
    let suppliers = host.suppliers();
    // What waits itself makes no difference; what it waits for does.
    let origin = |by: &str| {
        let supplier = suppliers.iter().rfind(|supplier| &*supplier.name == by);
        Some(vec![supplier.map_or(by, |supplier| &*supplier.origin).to_owned()])
    };
    if let Some(by) = error.awaited() {
        return origin(by);
    }
    if matches!(error, Error::AtApply { .. }) {
        return Some(Vec::new());
    }
    let is_template = matches!(error, Error::Template { .. } | Error::Control { .. });
    let missed = host.missed_file().filter(|_| is_template);
    if let Some(MissedFile::Awaited(by)) = &missed {
        return origin(by);
    }
    if missed.is_none() && !error.is_about_something_missing() {
        return None;
    }
    let last = suppliers.last()?;
    origin(&likely(&suppliers, resource, error).unwrap_or(last).name)
}

/// The supplier that is required, or whose name stands in the resource or in the
/// error; the last of those counts.
fn likely<'s>(
    suppliers: &'s [Supplier],
    resource: &dyn AnyResource,
    error: &Error,
) -> Option<&'s Supplier> {
    let required = &resource.common().require;
    let is_required = |supplier: &&Supplier| {
        required.iter().any(|reference| reference.to_string() == *supplier.name)
    };
    let text = format!("{} {error}", resource.display());
    let is_named = |supplier: &&Supplier| {
        let name = supplier.name.split_once('#').map_or("", |(_, name)| name);
        name.len() > 2 && text.contains(name)
    };
    suppliers.iter().rfind(is_required).or_else(|| suppliers.iter().rfind(is_named))
}

/// Makes an event a provisional one. One that could not be decided counts as
/// changed; of another, the event tells what would be done now.
pub(crate) fn mark(event: &mut Event, resource: &dyn AnyResource, error: &Error) {
    event.provisional = true;
    match error {
        Error::Awaited { .. } => {}
        Error::AtApply { paths } => {
            event.changed = true;
            let paths: Vec<String> =
                paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            event.changes.push(Change::of("post").to(paths));
        }
        _ => {
            event.changed = true;
            event.verbs.clear();
            event.changes = wanted(resource);
        }
    }
}

/// What the manifest says of a resource, as changes of which nobody knows what
/// was before.
fn wanted(resource: &dyn AnyResource) -> Vec<Change> {
    let mut changes = vec![Change::of("ensure").to(resource.common().ensure.as_str())];
    if let Value::Object(properties) = resource.properties() {
        let shown = properties.into_iter().filter(|(name, _)| !NOT_SHOWN.contains(&name.as_str()));
        for (name, value) in shown {
            if let Some(value) = change_value(value) {
                changes.push(Change::of(name).to(value));
            }
        }
    }
    changes
}

/// A value as a change shows it; empty ones are none.
fn change_value(value: Value) -> Option<ChangeValue> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::Bool(is_on) => is_on.then_some(ChangeValue::Switch(true)),
        Value::Number(number) => Some(number.to_string().into()),
        Value::String(text) => (!text.is_empty()).then_some(ChangeValue::Text(text)),
        Value::Array(items) => {
            let text = |item: Value| match item {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let items: Vec<String> = items.into_iter().map(text).collect();
            (!items.is_empty()).then_some(ChangeValue::List(items))
        }
    }
}
