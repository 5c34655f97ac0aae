//! What is wrong for several items of a loop, told once and with its place.

use std::collections::HashMap;
use std::sync::Arc;

use ccm_hiera::{Document, Explanation};
use ccm_model::{Finding, Node, Span};
use ccm_template::{LoopItem, Resolver};
use ccm_yaml::{Comments, Kind, Source};
use govalue::Value;

/// Joins findings that differ only in the item they were found for.
#[derive(Debug, Default)]
pub struct FindingsByItem {
    found: Vec<(Finding, Vec<Arc<LoopItem>>)>,
    known: HashMap<(Option<u32>, String), usize>,
}

impl FindingsByItem {
    /// Adds what was found for an item.
    pub fn add(&mut self, finding: Finding, item: &Arc<LoopItem>) {
        let message = finding.message.clone();
        self.add_as(message, finding, item);
    }

    /// Adds what was found for an item, whose message differs for each item: the
    /// first one stands for all.
    pub fn add_similar(&mut self, finding: Finding, item: &Arc<LoopItem>) {
        self.add_as(String::new(), finding, item);
    }

    fn add_as(&mut self, message: String, finding: Finding, item: &Arc<LoopItem>) {
        let key = (finding.span.map(|span| span.start), message);
        let next = self.found.len();
        let at = *self.known.entry(key).or_insert(next);
        match self.found.get_mut(at) {
            Some((_, items)) => items.push(Arc::clone(item)),
            None => self.found.push((finding, vec![Arc::clone(item)])),
        }
    }

    /// Each finding once, with its items, and where the first one is in the data or
    /// the overrides of a manifest, unless that line shows a secret.
    pub fn into_findings(
        self,
        manifest: Option<&Source>,
        templates: &Resolver,
    ) -> impl Iterator<Item = Finding> {
        /// More are not read.
        const MAX_SHOWN: usize = 3;
        let manifest = manifest.filter(|_| !self.found.is_empty());
        let data = manifest.and_then(|source| WrittenData::read(source, templates));
        let redactor = templates.host().redactor();
        self.found.into_iter().map(move |(mut finding, items)| {
            let place = |item: &Arc<LoopItem>| {
                let span = data.as_ref()?.place(&item.data()?)?;
                let (before, after) = manifest?.text().split_at_checked(span.start as usize)?;
                let begin = before.rsplit('\n').next().unwrap_or_default();
                let end = after.split('\n').next().unwrap_or_default();
                (!redactor.finds_in(&format!("{begin}{end}"))).then_some(span)
            };
            // What is wrong for all items is wrong with the block.
            let first = items.first().filter(|first| items.len() < first.count);
            finding.item = first.and_then(place).filter(|_| finding.source.is_none());
            let mut more = items.iter();
            let first = more.next().map(|item| item.label()).unwrap_or_default();
            finding.message += &format!(" (in item {first} of for_each");
            match more.len() {
                0 => {}
                count => {
                    let plain = |item: &Arc<LoopItem>| {
                        item.key.clone().unwrap_or_else(|| item.index.to_string())
                    };
                    let shown: Vec<String> = more.take(MAX_SHOWN).map(plain).collect();
                    let rest = if count > MAX_SHOWN { ", …" } else { "" };
                    let word = if count == 1 { "item" } else { "items" };
                    let shown = shown.join(", ");
                    finding.message += &format!(", and {count} more {word}: {shown}{rest}");
                }
            }
            finding.message.push(')');
            finding
        })
    }
}

/// The data of a manifest as it is written.
struct WrittenData<'a> {
    root: Node<'a>,
    values: Value,
    explained: Explanation,
}

impl<'a> WrittenData<'a> {
    fn read(source: &'a Source, templates: &Resolver) -> Option<Self> {
        let (root, _) = ccm_yaml::parse_lenient(source).ok()?;
        let document = Document::from_node(&root, &Comments::default(), ccm_hiera::DATA).ok()?;
        let explained = document.explain(templates.host(), templates.facts()).ok()?;
        Some(Self { root, values: templates.data().clone(), explained })
    }

    /// Where the value that these keys lead to is written, if one level has it.
    fn place(&self, keys: &[String]) -> Option<Span> {
        // Levels are told apart by key, and lists are appended as a whole.
        let mut value = Some(&self.values);
        let maps = keys.iter().take_while(|key| {
            let Some(Value::Map(map)) = value else { return false };
            value = map.get(key);
            true
        });
        let maps: Vec<String> = maps.cloned().collect();
        let origin = self.explained.origin(&maps);
        let [level] = &origin.supplied[..] else { return None };
        let node = match self.root.entry(ccm_hiera::DATA) {
            Some(node) if level.level == ccm_hiera::DATA => node,
            _ => self.root.entry("overrides")?.entry(&level.level)?,
        };
        place_in(node, keys)
    }
}

/// Where a value is below a node.
fn place_in(node: &Node<'_>, keys: &[String]) -> Option<Span> {
    let Some((key, rest)) = keys.split_first() else { return Some(node.span) };
    let next = match &node.kind {
        Kind::Sequence(items) => items.get(key.parse::<usize>().ok()?)?,
        Kind::Mapping(_) => node.entry(key)?,
        Kind::Scalar(_) => return None,
    };
    place_in(next, rest)
}
