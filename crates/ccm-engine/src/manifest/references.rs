//! Finds duplicate names and invalid references.

use std::collections::{BTreeSet, HashMap};

use ccm_model::{Finding, ResourceRef, closest};
use ccm_yaml::Source;

use crate::resource::{AnyResource, AnyType};

/// Adds what is wrong to `findings`. Returns the resources, by index, whose name
/// or alias another one has too, each with its line.
pub(super) fn check(
    source: &Source,
    resources: &[Box<dyn AnyResource>],
    types: &[&'static dyn AnyType],
    has_history: bool,
    findings: &mut Vec<Finding>,
) -> HashMap<usize, usize> {
    let mut repeated = HashMap::new();
    let line = |resource: &dyn AnyResource| resource.span().map(|span| source.line(span.start));
    let mut declared: HashMap<(&str, &str), usize> = HashMap::with_capacity(resources.len());
    for (index, resource) in resources.iter().enumerate() {
        let common = resource.common();
        let name = Some(&common.name).filter(|_| resource.has_name());
        let names = [name, common.alias.as_ref()];
        for (name, word) in names.into_iter().zip(["name", "alias"]) {
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            let first = *declared.entry((resource.kind(), name)).or_insert(index);
            if first == index {
                continue;
            }
            // `control` chooses between them when the manifest is applied.
            let same = [first, index].map(|at| &resources[at]);
            if same.iter().all(|resource| resource.common().control.is_some()) {
                let lines = [first, index].map(|at| (at, line(&*resources[at]).unwrap_or(0)));
                repeated.extend(lines);
                continue;
            }
            let line = line(&*resources[first]);
            let message = match word {
                "name" => format!("{}#{name} is declared twice", resource.kind()),
                _ => format!("the alias `{name}` is taken by another {}", resource.kind()),
            };
            let hint = line.map(|line| {
                format!(
                    "the first one is in line {line}; two are allowed if each has `control` and \
                     only one applies"
                )
            });
            let finding = Finding::error(resource.property_span(word), message);
            findings.push(finding.hint(hint).of(resource.display()));
        }
    }
    // Only the first resource of a name counts below: the others are errors.
    let mut nested = has_history;
    for (index, resource) in resources.iter().enumerate() {
        let lists = [("require", &*resource.common().require), ("subscribe", resource.subscribe())];
        for (property, references) in lists {
            for (item, reference) in references.iter().enumerate() {
                let known = declared.get(&(&*reference.kind, &*reference.name)).copied();
                if known.is_some_and(|at| at < index) {
                    continue;
                }
                if nested && known.is_none() && is_type(types, &reference.kind) {
                    continue;
                }
                // It may be one whose name is not known, which is said already.
                let is_nameless =
                    |other: &dyn AnyResource| other.kind() == reference.kind && !other.has_name();
                if known.is_none() && resources.iter().any(|other| is_nameless(&**other)) {
                    continue;
                }
                // Looking through all names for each of many would take forever.
                let suggest = findings.len() < 20;
                let finding = unmet(
                    reference,
                    known == Some(index),
                    known,
                    types,
                    suggest.then_some(&declared),
                );
                let finding = Finding { span: resource.reference_span(property, item), ..finding };
                findings.push(finding.of(resource.display()));
            }
        }
        nested |= resource.child().is_some();
    }
    repeated
}

fn is_type(types: &[&'static dyn AnyType], name: &str) -> bool {
    types.iter().any(|kind| kind.name() == name)
}

fn unmet(
    reference: &ResourceRef,
    itself: bool,
    known: Option<usize>,
    types: &[&'static dyn AnyType],
    declared: Option<&HashMap<(&str, &str), usize>>,
) -> Finding {
    if !is_type(types, &reference.kind) {
        let names = types.iter().map(|kind| kind.name());
        let message = format!("{reference} has an unknown resource type");
        let mut finding = Finding::error(None, message).suggest(&reference.kind, names);
        let meant = |kind| format!("{kind}#{}", reference.name);
        finding.suggestion = finding.suggestion.map(meant);
        return finding;
    }
    match known {
        Some(_) if itself => Finding::error(None, format!("{reference} refers to itself")),
        Some(_) => Finding::error(None, format!("{reference} comes later in the manifest"))
            .hint("resources run in the order written: move it up".to_owned()),
        None => {
            let names = declared.into_iter().flat_map(HashMap::keys);
            let names = names.filter(|(kind, _)| *kind == reference.kind);
            // The same suggestion in every run, whatever the order of the map.
            let names = names.map(|(_, name)| *name).collect::<BTreeSet<_>>();
            let meant = closest(&reference.name, names);
            let meant = meant.map(|name| format!("{}#{name}", reference.kind));
            let hint = meant.as_ref().map(|meant| format!("did you mean `{meant}`?"));
            let finding = Finding::error(None, format!("{reference} is not in this manifest"));
            Finding { suggestion: meant, ..finding.hint(hint) }
        }
    }
}
