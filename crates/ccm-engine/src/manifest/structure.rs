//! The structure of a manifest: the forms in which it can list resources.

use std::borrow::Cow;
use std::sync::Arc;

use ccm_model::{Control, Finding, Node, Reader, Span, property_hint};
use ccm_template::Resolver;
use ccm_yaml::{Entry, Key, Kind, Scalar, Source};

use super::Declarations;
use super::block::{self, Block, MAX_ITEMS, MAX_LOOPS, MAX_RESOURCES, Words};
use crate::resource::{AnyResource, AnyType};
use crate::type_hints::type_hint;

/// The file that resources are rendered from, where it stands.
pub(super) struct JetFile {
    pub(super) path: String,
    pub(super) span: Span,
}

const TOP: [&str; 4] = ["data", "hierarchy", "overrides", "ccm"];
const CCM: [&str; 5] =
    ["resources", "resources_jet_file", "pre_message", "post_message", "fail_on_error"];
/// In a block of resources, not a name but what all of them share.
const DEFAULTS: &str = "defaults";

/// What a tree is read with.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'t> {
    pub(super) types: &'t [&'static dyn AnyType],
    /// What loops are written out with. Without it each has one unknown item.
    pub(super) templates: Option<&'t Resolver>,
    /// The text of the tree.
    pub(super) source: &'t Source,
}

/// Reads the whole tree; gives back what is wrong with it, and where the
/// resources are if not in it.
pub(super) fn read(
    root: Node<'_>,
    with: ReadContext<'_>,
    into: &mut Declarations,
) -> (Vec<Finding>, Option<JetFile>) {
    let mut reading = Reading::new(with);
    reading.top(root, into);
    let jet_file = reading.jet_file.take();
    (reading.finish(into), jet_file)
}

/// Reads a list of resources that stands alone.
pub(super) fn read_resources(
    root: Node<'_>,
    with: ReadContext<'_>,
    into: &mut Declarations,
) -> Vec<Finding> {
    let mut reading = Reading::new(with);
    reading.resources(root);
    reading.finish(into)
}

/// Reads the tree once more, to tell where the properties of one resource are
/// written: that of this index. `is_list` says that the tree is a list of
/// resources that stands alone.
pub(super) fn read_written(
    root: Node<'_>,
    with: ReadContext<'_>,
    is_list: bool,
    index: usize,
) -> Vec<WrittenProperty> {
    let mut reading = Reading::new(with);
    reading.watched = Some(index);
    if is_list {
        reading.resources(root);
    } else {
        reading.top(root, &mut Declarations::default());
    }
    reading.written
}

/// A property of a resource as it is written.
#[derive(Clone, Debug)]
pub struct WrittenProperty {
    /// The key, which may be an alias of the property's name.
    pub key: String,
    /// Where the key stands.
    pub span: Span,
    /// The part of the manifest that sets it.
    pub part: WrittenPart,
    /// Every text in it, keys of maps included.
    pub texts: Vec<String>,
}

/// The part of a manifest that sets a property of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenPart {
    /// The resource itself.
    Own,
    /// The `defaults` of its type.
    Defaults,
    /// A block around its type, with `for_each` or without.
    Block,
}

impl WrittenProperty {
    fn new(key: &str, span: Span, value: &Node<'_>, part: WrittenPart) -> Self {
        let mut texts = Vec::new();
        add_texts(value, &mut texts);
        Self { key: key.to_owned(), span, part, texts }
    }
}

fn add_texts(node: &Node<'_>, into: &mut Vec<String>) {
    match &node.kind {
        Kind::Scalar(scalar) => into.push(scalar.text.to_string()),
        Kind::Sequence(items) => items.iter().for_each(|item| add_texts(item, into)),
        Kind::Mapping(entries) => {
            for entry in entries {
                into.push(entry.key.text.to_string());
                add_texts(&entry.value, into);
            }
        }
    }
}

struct Reading<'t> {
    types: &'t [&'static dyn AnyType],
    source: &'t Source,
    reader: Reader,
    resources: Vec<Box<dyn AnyResource>>,
    /// The block that is being read, and what its expressions see.
    block: Option<Arc<Block>>,
    /// What it and those around it set, as written.
    blocks: Vec<WrittenProperty>,
    templates: Option<&'t Resolver>,
    /// The tags of blocks that have been read, even of empty loops.
    block_tags: Vec<(usize, Vec<String>)>,
    has_loops: bool,
    is_full: bool,
    /// The items of all loops so far.
    items: usize,
    jet_file: Option<JetFile>,
    /// The resource whose properties are kept as written.
    watched: Option<usize>,
    written: Vec<WrittenProperty>,
}

impl<'t> Reading<'t> {
    fn new(with: ReadContext<'t>) -> Self {
        Self {
            types: with.types,
            source: with.source,
            reader: Reader::default(),
            resources: Vec::new(),
            block: None,
            blocks: Vec::new(),
            templates: with.templates,
            block_tags: Vec::new(),
            has_loops: false,
            is_full: false,
            items: 0,
            jet_file: None,
            watched: None,
            written: Vec::new(),
        }
    }

    fn finish(self, into: &mut Declarations) -> Vec<Finding> {
        into.resources = self.resources;
        into.block_tags = self.block_tags;
        into.has_loops = self.has_loops;
        self.reader.findings
    }
}

impl Reading<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.reader.findings.push(Finding::error(span, message));
    }

    fn unknown(&mut self, key: &Key<'_>, what: &str, known: &[&str]) {
        let message = format!("unknown {what} `{}`", key.text);
        let hint = if what == "resource type" {
            type_hint(&key.text, known)
        } else {
            ccm_model::did_you_mean(&key.text, known.iter().copied())
                .unwrap_or_else(|| format!("available: {}", known.join(", ")))
        };
        let finding =
            Finding::error(key.span, message).suggest(&key.text, known.iter().copied()).hint(hint);
        self.reader.findings.push(finding);
    }

    fn top(&mut self, root: Node<'_>, into: &mut Declarations) {
        let span = root.span;
        let Kind::Mapping(entries) = root.kind else {
            let message = format!("a manifest must be a map, not {}", root.describe());
            let hint = "write `ccm:` with `resources:` below it".to_owned();
            self.reader.findings.push(Finding::error(span, message).hint(hint));
            return;
        };
        let mut has_ccm = false;
        for Entry { key, value } in entries {
            match &*key.text {
                "ccm" => {
                    has_ccm = true;
                    self.ccm(value, into);
                }
                "data" | "hierarchy" | "overrides" => {
                    if !matches!(value.kind, Kind::Mapping(_)) && !value.is_null() {
                        self.reader.wrong_type::<()>(&value, "a map");
                    }
                }
                // Anchors live there.
                key if key.starts_with("x-") => {}
                _ => self.unknown(&key, "top-level key", &TOP),
            }
        }
        if !has_ccm {
            self.error(span, "a manifest needs `ccm:` with `resources:` below it");
        }
    }

    fn ccm(&mut self, node: Node<'_>, into: &mut Declarations) {
        let span = node.span;
        let Kind::Mapping(entries) = node.kind else {
            self.reader.wrong_type::<()>(&node, "a map with `resources`");
            return;
        };
        let mut has_resources = false;
        let (mut jet_key, mut list_key) = (None, None);
        for Entry { key, value } in entries {
            match &*key.text {
                "resources" => {
                    has_resources = true;
                    list_key = Some(key.span);
                    self.resources(value);
                }
                "resources_jet_file" => {
                    has_resources = true;
                    let span = value.span;
                    let path = self.reader.read(value);
                    self.jet_file = path.map(|path| JetFile { path, span });
                    jet_key = Some(key.span);
                }
                "pre_message" | "post_message" | "fail_on_error" if value.is_null() => {}
                "pre_message" => {
                    into.message_spans[0] = value.span;
                    into.pre_message = self.reader.read(value);
                }
                "post_message" => {
                    into.message_spans[1] = value.span;
                    into.post_message = self.reader.read(value);
                }
                "fail_on_error" => {
                    into.fail_on_error = self.reader.read(value).unwrap_or_default();
                }
                _ => self.unknown(&key, "`ccm` key", &CCM),
            }
        }
        if !has_resources {
            self.error(span, "there are no `resources`");
        }
        if let (Some(jet), Some(_)) = (jet_key, list_key) {
            self.error(jet, "`resources` and `resources_jet_file` cannot both be set");
            self.jet_file = None;
        }
    }

    fn resources(&mut self, node: Node<'_>) {
        let span = node.span;
        let Kind::Sequence(items) = node.kind else {
            self.reader.wrong_type::<()>(&node, "a list of resources");
            return;
        };
        if items.is_empty() {
            self.error(span, "there are no resources");
        }
        for item in items {
            self.resource_entry(item);
        }
    }

    /// `- type: …`, and the words of a block beside it.
    fn resource_entry(&mut self, node: Node<'_>) {
        let Kind::Mapping(entries) = node.kind else {
            self.reader.wrong_type::<()>(&node, "a map with the resource type as its key");
            return;
        };
        let (words, mut entries) = Words::take(entries);
        if entries.len() > 1 {
            let names: Vec<_> =
                entries.iter().map(|entry| format!("`{}`", entry.key.text)).collect();
            let message = format!("an entry must have one type, not {}", names.join(" and "));
            let mut hints = entries.iter().filter_map(|entry| self.word_hint(&entry.key.text));
            let hint = hints.next().unwrap_or_else(|| {
                "begin each type with its own `-`; indent properties below the name".to_owned()
            });
            let finding = Finding::error(entries[1].key.span, message).hint(hint);
            self.reader.findings.push(finding);
            return;
        }
        let Some(entry) = entries.pop() else {
            let message = if words.is_empty() {
                "an entry needs a resource type as its key"
            } else {
                "an entry needs a resource type or `resources` beside these words"
            };
            self.error(node.span, message);
            return;
        };
        if words.is_empty() {
            self.typed_entry(entry);
        } else {
            self.block_entry(words, &entry);
        }
    }

    /// What was meant by a word that is neither a type nor a word of a block.
    fn word_hint(&self, word: &str) -> Option<String> {
        if word == "resources" || self.types.iter().any(|kind| kind.name() == word) {
            return None;
        }
        let own = property_hint(word).map(str::to_owned);
        own.or_else(|| ccm_model::did_you_mean(word, block::WORDS.iter().copied()))
    }

    /// One type with its resources, or a list of entries.
    fn typed_entry(&mut self, Entry { key, value }: Entry<'_>) {
        if key.text == "resources" {
            self.resources(value);
            return;
        }
        let Some(kind) = self.types.iter().copied().find(|kind| kind.name() == key.text) else {
            let names: Vec<_> = self.types.iter().map(|kind| kind.name()).collect();
            self.unknown(&key, "resource type", &names);
            return;
        };
        match value.kind {
            Kind::Sequence(items) => self.list(kind, items),
            Kind::Mapping(entries) if is_single(&entries) => {
                self.declare(kind, None, entries, 0, key.span);
            }
            Kind::Mapping(entries) => self.block(kind, entries),
            Kind::Scalar(_) => {
                let message = format!("`{}` needs resources below it", key.text);
                self.error(key.span, message);
            }
        }
    }

    /// An entry with `for_each`, `tags` or `control` beside its type.
    fn block_entry(&mut self, words: Words<'_>, entry: &Entry<'_>) {
        let mut block = self.block.as_deref().cloned().unwrap_or_default();
        let blocks = self.blocks.len();
        if let Some(tags) = words.tags.filter(|node| !node.is_null()) {
            self.blocks.push(WrittenProperty::new("tags", tags.span, &tags, WrittenPart::Block));
            let tags: Vec<String> = self.reader.read(tags).unwrap_or_default();
            block.tags.extend(tags);
        }
        if let Some(control) = words.control.filter(|node| !node.is_null()) {
            block.control.extend(self.reader.read::<Control>(control));
        }
        if !block.tags.is_empty() {
            self.block_tags.push((self.resources.len(), block.tags.clone()));
        }
        let name = words.name.and_then(|(key, node)| {
            if words.for_each.is_none() {
                self.error(key.span, "`as` names the items of a `for_each`, which is missing");
            }
            let span = node.span;
            let name: String = self.reader.read(node)?;
            let wrong = block::check_as(&name, span, &block);
            let is_right = wrong.is_none();
            self.reader.findings.extend(wrong);
            is_right.then_some(name)
        });
        let outer = self.block.clone();
        match words.for_each {
            Some((key, node)) => self.repeat(&key, &node, name.as_deref(), &block, entry),
            None => {
                self.block = Some(Arc::new(block));
                self.typed_entry(entry.clone());
            }
        }
        self.block = outer;
        self.blocks.truncate(blocks);
    }

    /// Reads the entry of a loop that makes nothing, which is to be right for the
    /// items to come.
    fn check_shape(&mut self, entry: &Entry<'_>) {
        let resources = self.resources.len();
        let templates = self.templates.take();
        self.block = None;
        self.typed_entry(entry.clone());
        self.templates = templates;
        self.resources.truncate(resources);
    }

    /// Reads the entry of a loop once for each item.
    fn repeat(
        &mut self,
        key: &Key<'_>,
        node: &Node<'_>,
        name: Option<&str>,
        block: &Block,
        entry: &Entry<'_>,
    ) {
        self.has_loops = true;
        if block.depth() == MAX_LOOPS {
            let message = format!("`for_each` can be nested {MAX_LOOPS} levels deep, no deeper");
            self.error(key.span, message);
            return;
        }
        if name.is_none() && block.item.as_ref().is_some_and(|outer| &*outer.name == "Item") {
            let message = "`Item` is now the item of this loop, and hides the outer one";
            let hint = "name the items of each loop with `as`".to_owned();
            self.reader.findings.push(Finding::warning(key.span, message).hint(hint));
        }
        let templates = match &block.item {
            Some(item) => self.templates.map(|templates| Cow::Owned(templates.with_item(item))),
            None => self.templates.map(Cow::Borrowed),
        };
        let Some(templates) = templates else {
            // Without data, the shape of the block is all that can be checked.
            self.block = None;
            self.typed_entry(entry.clone());
            return;
        };
        let items = match block::items(node, &templates, Some(self.source)) {
            Ok(items) => items,
            Err(finding) => {
                self.reader.findings.push(*finding);
                return;
            }
        };
        let count = items.len();
        if count == 0 {
            self.check_shape(entry);
            return;
        }
        let has_keys = matches!(items, block::Items::Map(_));
        let text = node.scalar().map(|scalar| &*scalar.text);
        let looped = templates.begin_loop(name, has_keys).over(&templates, text, count);
        let reads = Arc::new(block::reads_of(node));
        let mut known = Vec::new();
        for (index, (item_key, value)) in items.into_pairs().into_iter().enumerate() {
            // Items make nothing where the loops in them are empty, and take time.
            self.items += 1;
            if self.items > MAX_ITEMS {
                if !self.is_full {
                    self.is_full = true;
                    let message = format!("the loops have more than {MAX_ITEMS} items");
                    self.error(key.span, message);
                }
                break;
            }
            if templates.host().cancel().is_cancelled() {
                break;
            }
            if self.resources.len() >= MAX_RESOURCES {
                if !self.is_full {
                    self.is_full = true;
                    let per_item = self.resources.len().div_ceil(index.max(1));
                    let message = format!(
                        "for_each makes {} resources; the limit is {MAX_RESOURCES}",
                        per_item.saturating_mul(count)
                    );
                    self.error(key.span, message);
                }
                break;
            }
            let item = looped.item(index, item_key.as_deref(), value);
            let mut inner = block.clone();
            inner.enter_loop(Arc::clone(&item), Arc::clone(&reads));
            self.block = Some(Arc::new(inner));
            let before = self.reader.findings.len();
            self.typed_entry(entry.clone());
            // The same text is wrong in the same way for every item.
            if self.reader.findings.len() > before {
                let found = self.reader.findings.split_off(before);
                for finding in found {
                    let place = (finding.span.map(|span| span.start), finding.message.clone());
                    if !known.contains(&place) {
                        known.push(place);
                        self.reader.findings.push(finding);
                    }
                }
            }
        }
    }

    /// A list of single-key maps.
    fn list(&mut self, kind: &'static dyn AnyType, items: Vec<Node<'_>>) {
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            match item.kind {
                Kind::Mapping(mut map) if map.len() == 1 => entries.extend(map.pop()),
                Kind::Mapping(map) => {
                    let message =
                        format!("expected one name with its properties, found {} keys", map.len());
                    let hint = "indent the properties deeper than the name".to_owned();
                    let span = map.get(1).map_or(item.span, |entry| entry.key.span);
                    self.reader.findings.push(Finding::error(span, message).hint(hint));
                }
                // `- /usr/bin/true` without the colon: only a name, too.
                Kind::Scalar(scalar) if !scalar.is_null() && !scalar.text.is_empty() => {
                    let key = Key { text: scalar.text, span: item.span };
                    entries.push(Entry { key, value: Node::plain("") });
                }
                _ => {
                    self.reader.wrong_type::<()>(&item, "a name with its properties");
                }
            }
        }
        self.block(kind, entries);
    }

    /// Names with their properties, and perhaps what they share.
    fn block(&mut self, kind: &'static dyn AnyType, entries: Vec<Entry<'_>>) {
        let mut defaults: Vec<Entry<'_>> = Vec::new();
        let mut found = false;
        let mut named = Vec::with_capacity(entries.len());
        for Entry { key, value } in entries {
            if key.text != DEFAULTS {
                named.push(Entry { key, value });
            } else if found {
                self.error(key.span, "a block has at most one `defaults`");
            } else {
                found = true;
                defaults = self.properties(value).unwrap_or_default();
            }
        }
        if let Some(name) = defaults.iter().find(|entry| entry.key.text == "name") {
            self.error(name.key.span, "a name cannot be a default");
        }
        // What is wrong with the defaults is said once, not once per resource.
        self.check_names(kind, &mut defaults);
        for Entry { key, value } in named {
            let Some(mut properties) = self.properties(value) else { continue };
            if let Some(name) = properties.iter().find(|entry| entry.key.text == "name") {
                self.error(name.key.span, "the key above already sets the name");
                continue;
            }
            let added = add_defaults(kind, &mut properties, &defaults);
            let span = key.span;
            self.declare(kind, Some(key), properties, added, span);
        }
    }

    /// The properties below a name; none at all is fine.
    fn properties<'a>(&mut self, node: Node<'a>) -> Option<Vec<Entry<'a>>> {
        if node.is_null() {
            return Some(Vec::new());
        }
        match node.kind {
            Kind::Mapping(entries) => Some(entries),
            _ => self.reader.wrong_type(&node, "a map of properties"),
        }
    }

    fn check_names(&mut self, kind: &'static dyn AnyType, entries: &mut Vec<Entry<'_>>) {
        let fields = kind.fields();
        entries.retain(|entry| {
            let known = fields.iter().any(|field| field.is_called(&entry.key.text));
            if !known {
                let names = fields.iter().map(|field| field.name);
                let message = format!("unknown property `{}`", entry.key.text);
                let hint = property_hint(&entry.key.text).map(str::to_owned);
                let finding = Finding::error(entry.key.span, message).hint(hint);
                self.reader.findings.push(finding.suggest(&entry.key.text, names));
            }
            known && entry.key.text != "name"
        });
    }

    /// Declares a resource; the last `defaults` of its properties come from its
    /// block.
    fn declare<'a>(
        &mut self,
        kind: &'static dyn AnyType,
        name: Option<Key<'a>>,
        mut properties: Vec<Entry<'a>>,
        defaults: usize,
        span: Span,
    ) {
        if let Some(block) = self.block.as_ref().filter(|block| block.is_first()) {
            let own = properties.iter().find(|entry| entry.key.text == "name");
            let own = own.and_then(|entry| Some((&*entry.value.scalar()?.text, entry.value.span)));
            let written = name.as_ref().map(|key| (&*key.text, key.span)).or(own);
            let wrong = written.and_then(|(text, span)| block.check_name(text, span));
            self.reader.findings.extend(wrong);
        }
        if let Some(Key { text, span }) = name {
            let scalar = Scalar { text, plain: false };
            let value = Node { span, kind: Kind::Scalar(scalar) };
            properties.insert(0, Entry { key: Key { text: Cow::Borrowed("name"), span }, value });
        }
        if self.watched == Some(self.resources.len()) {
            let own = properties.len() - defaults;
            let written = properties.iter().enumerate();
            let written = written.filter(|(_, entry)| !entry.value.is_null());
            let written = written.map(|(at, Entry { key, value })| {
                let part = if at < own { WrittenPart::Own } else { WrittenPart::Defaults };
                WrittenProperty::new(&key.text, key.span, value, part)
            });
            self.written = written.chain(self.blocks.iter().cloned()).collect();
        }
        let mut resource = kind.declare(properties, Some(span), &mut self.reader);
        if let Some(block) = &self.block {
            resource.enter(block);
        }
        self.resources.push(resource);
    }
}

/// Whether a map is one resource with a name property, not a map of names.
fn is_single(entries: &[Entry<'_>]) -> bool {
    entries.iter().any(|entry| {
        entry.key.text == "name" && entry.value.scalar().is_some_and(|scalar| !scalar.is_null())
    })
}

/// Adds the defaults that a resource does not set by one of their names, behind
/// its own properties, and tells how many; null sets nothing.
fn add_defaults<'a>(
    kind: &'static dyn AnyType,
    properties: &mut Vec<Entry<'a>>,
    defaults: &[Entry<'a>],
) -> usize {
    let mut added = 0;
    let ensure = [&properties[..], defaults].into_iter().flatten().find_map(|entry| {
        let is_ensure = entry.key.text == "ensure" && !entry.value.is_null();
        entry.value.scalar().filter(|_| is_ensure).map(|scalar| scalar.text.clone())
    });
    let ensure = ensure.as_deref().unwrap_or_else(|| kind.ensure().default());
    for default in defaults.iter().filter(|default| !default.value.is_null()) {
        let field = kind.fields().iter().find(|field| field.is_called(&default.key.text));
        let is_same = |entry: &Entry<'_>| field.is_some_and(|f| f.is_called(&entry.key.text));
        let is_taken = field.is_none_or(|field| kind.takes_default(field.name, ensure));
        if is_taken && !properties.iter().any(|entry| is_same(entry) && !entry.value.is_null()) {
            properties.retain(|entry| !is_same(entry));
            properties.push(default.clone());
            added += 1;
        }
    }
    added
}
