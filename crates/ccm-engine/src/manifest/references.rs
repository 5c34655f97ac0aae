//! Finds duplicate names and invalid references.

use std::collections::{BTreeSet, HashMap};

use ccm_model::{Finding, ResourceRef, Severity, closest};
use ccm_template::LoopItem;
use ccm_yaml::Source;

use super::Declarations;
use super::item_findings::FindingsByItem;
use crate::resource::{AnyResource, AnyType};

/// Adds what is wrong to `findings`, or to `of_items` for the resources of loops.
/// Returns the resources, by index, whose name or alias another one has too, each
/// with its line.
pub(super) fn check(
    source: &Source,
    declarations: &Declarations,
    types: &[&'static dyn AnyType],
    has_history: bool,
    findings: &mut Vec<Finding>,
    of_items: &mut FindingsByItem,
) -> HashMap<usize, usize> {
    let resources = &declarations.resources[..];
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
            let items = same.map(|resource| resource.item());
            let is_same_text = same[0].span() == same[1].span();
            if let ("name", [Some(one), Some(other_item)], true) = (word, items, is_same_text) {
                let span = resource.property_span(word);
                // What is wrong with the name itself has been said, and for two
                // items is enough.
                if findings
                    .iter()
                    .any(|known| known.span == span && known.severity == Severity::Error)
                {
                    continue;
                }
                let name = resource.display();
                let (one, other) = match (one.label(), other_item.label()) {
                    // The same item of the inner loop, for other items of the outer one.
                    (same, other) if same == other => (path_of(one), path_of(other_item)),
                    labels => labels,
                };
                let message =
                    format!("{name} is made by item {one} and item {other} of this for_each");
                findings.push(Finding::error(span, message));
                continue;
            }
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
    check_parts(resources, findings);
    // Only the first resource of a name counts below: the others are errors.
    let mut nested = has_history;
    let mut tags = Tags { declarations, seen: BTreeSet::new(), blocks: 0 };
    let mut suggested = 0;
    for (index, resource) in resources.iter().enumerate() {
        let lists = [("require", &*resource.common().require), ("subscribe", resource.subscribe())];
        for (property, references) in lists {
            for (item, reference) in references.iter().enumerate() {
                if reference.is_tag() {
                    if let Some(finding) = tags.check(reference, index) {
                        let span = resource.reference_span(property, item);
                        add(Finding { span, ..finding }, &**resource, findings, of_items);
                    }
                    continue;
                }
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
                suggested += 1;
                let suggest = suggested < 20;
                let finding = unmet(
                    reference,
                    known == Some(index),
                    known,
                    types,
                    suggest.then_some(&declared),
                );
                let finding = Finding { span: resource.reference_span(property, item), ..finding };
                add(finding, &**resource, findings, of_items);
            }
        }
        nested |= resource.child().is_some();
        tags.seen.extend(resource.common().tags.iter().map(String::as_str));
    }
    repeated
}

/// The place of an item in all loops around it, the outermost first.
fn path_of(item: &LoopItem) -> String {
    match item.outer.as_deref() {
        Some(outer) => format!("{} of item {}", item.label(), path_of(outer)),
        None => item.label(),
    }
}

/// One reference of a loop is wrong for many items at once, and told once.
fn add(
    finding: Finding,
    resource: &dyn AnyResource,
    findings: &mut Vec<Finding>,
    of_items: &mut FindingsByItem,
) {
    let finding = finding.of(resource.display());
    match resource.item() {
        Some(item) => of_items.add_similar(finding, item),
        None => findings.push(finding),
    }
}

/// Finds resources that change a part of a file that another one writes whole.
/// Where `control` chooses between them, the run tells.
fn check_parts(resources: &[Box<dyn AnyResource>], findings: &mut Vec<Finding>) {
    if resources.iter().all(|resource| resource.part_of().is_none()) {
        return;
    }
    let certain = || resources.iter().filter(|resource| resource.common().control.is_none());
    let whole: HashMap<_, _> =
        certain().filter_map(|resource| Some((resource.whole_file()?, resource))).collect();
    for resource in certain() {
        let Some(writer) = resource.part_of().and_then(|path| whole.get(path)) else { continue };
        let message =
            format!("{} writes the whole content; this edit would be lost", writer.display());
        let hint = "put the change into that content, or let only one of them manage the file";
        let finding = Finding::error(resource.span(), message).hint(Some(hint.to_owned()));
        findings.push(finding.of(resource.display()));
    }
}

/// The tags that references can name.
struct Tags<'d> {
    declarations: &'d Declarations,
    /// Those of the resources and blocks so far.
    seen: BTreeSet<&'d str>,
    /// How many blocks that is.
    blocks: usize,
}

impl Tags<'_> {
    /// What is wrong with a reference to a tag in the resource of this index.
    fn check(&mut self, reference: &ResourceRef, index: usize) -> Option<Finding> {
        let name = &*reference.name;
        let Declarations { block_tags, resources, .. } = self.declarations;
        let own =
            resources[index].block().is_some_and(|block| block.tags.iter().any(|t| t == name));
        if own {
            let message = format!("{reference} names the tag of the block that it stands in");
            let hint = "refer to one resource of the block by its name".to_owned();
            return Some(Finding::error(None, message).hint(hint));
        }
        while let Some((_, tags)) = block_tags.get(self.blocks).filter(|(at, _)| *at <= index) {
            self.seen.extend(tags.iter().map(String::as_str));
            self.blocks += 1;
        }
        if self.seen.contains(name) {
            return None;
        }
        let later = resources.get(index..).unwrap_or_default();
        let is_later = later.iter().any(|other| other.common().tags.iter().any(|tag| tag == name));
        let message = format!("no earlier resource has the tag `{name}`");
        let finding = Finding::error(None, message);
        if is_later {
            return Some(finding.hint("resources run in the order written: move it up".to_owned()));
        }
        let meant = closest(name, self.seen.iter().copied());
        let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        let suggestion = meant.map(|meant| format!("tag#{meant}"));
        Some(Finding { suggestion, ..finding.hint(hint) })
    }
}

/// Puts the earlier resources with a tag in the place of each reference to it, so
/// that nobody else needs to know tags.
pub(super) fn expand_tags(resources: &mut [Box<dyn AnyResource>]) {
    let lists = resources
        .iter()
        .flat_map(|resource| resource.common().require.iter().chain(resource.subscribe()));
    let named = lists.filter(|reference| reference.is_tag());
    let mut tagged: HashMap<String, Vec<ResourceRef>> =
        named.map(|reference| (reference.name.clone(), Vec::new())).collect();
    if tagged.is_empty() {
        return;
    }
    for resource in resources {
        resource.expand_tags(&|reference| match tagged.get(&reference.name) {
            Some(members) if reference.is_tag() => members.clone(),
            _ => vec![reference.clone()],
        });
        let member = ResourceRef::new(resource.kind(), &*resource.common().name);
        for tag in &resource.common().tags {
            if let Some(members) =
                tagged.get_mut(tag).filter(|members| members.last() != Some(&member))
            {
                members.push(member.clone());
            }
        }
    }
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
