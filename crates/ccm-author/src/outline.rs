//! The resources of a text, whether it is a valid manifest or not.
//!
//! The outline is read from anything that is YAML: for people who are still
//! writing. It names each resource by its path, so that edits find it again.

use std::sync::Arc;

use ccm_model::Span;
use ccm_yaml::edit::{Document, Step};
use ccm_yaml::{Entry, Kind, Node, Source, SyntaxError};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// A resource as it is written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "WrittenResource")]
pub struct OutlineEntry {
    /// Its place in the order of the text, from 1.
    pub number: usize,
    /// Its type, which may be unknown.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name, placeholders as written.
    pub name: String,
    /// Its other name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The state that is asked for, its own or from the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ensure: Option<String>,
    /// Where it is: the value of this path has its properties.
    pub path: Vec<Step>,
    /// From its name to the end of its last line.
    #[serde(serialize_with = "bytes")]
    #[schemars(with = "[u32; 2]")]
    pub span: Span,
    /// The block that it is in.
    #[serde(serialize_with = "shared")]
    #[schemars(with = "OutlineBlock")]
    pub block: Arc<OutlineBlock>,
    /// Its `require` references, as written.
    pub require: Vec<String>,
    /// Its `subscribe` references, as written.
    pub subscribe: Vec<String>,
    /// How it is written.
    #[serde(skip)]
    pub shape: ResourceShape,
}

/// The block of a resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutlineBlock {
    /// Where it is.
    pub path: Vec<Step>,
    /// Where its `defaults` are, if it has any.
    pub defaults: Option<Vec<Step>>,
    /// The loops around it, the outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<OutlineLoop>,
    /// The tags that the blocks around it add, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A `for_each` around resources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutlineLoop {
    /// What it goes over, as written.
    pub for_each: String,
    /// The name of its items, if it gives them one.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The three ways to write a resource, and a name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceShape {
    /// `- type: {name: …}`: the block is the resource.
    Single,
    /// `- type: [{name: {…}}]`: an item of a list.
    Item,
    /// `- type: [name]`: an item that is only a name.
    BareItem,
    /// `- type: {name: {…}}`: an entry of a map.
    Entry,
}

impl OutlineEntry {
    /// `type#name`.
    pub fn reference(&self) -> String {
        format!("{}#{}", self.kind, self.name)
    }

    /// Whether this is its name or its other name.
    pub fn is_called(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && (self.name == name || self.alias.as_deref() == Some(name))
    }
}

fn shared<S: Serializer>(block: &OutlineBlock, to: S) -> Result<S::Ok, S::Error> {
    block.serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn bytes<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    [span.start, span.end].serialize(to)
}

/// Lists the resources of a text in the order in which they run.
///
/// # Errors
///
/// Returns why the text is not YAML. Duplicate keys are no reason: the first
/// of each counts.
///
/// ```
/// let text = "ccm:\n  resources:\n    - file:\n        - /etc/motd: {contnet: hi}\n";
/// let source = ccm_yaml::Source::new("m.yaml", text);
/// let found = ccm_author::outline::outline(&source)?;
/// assert_eq!(found[0].reference(), "file#/etc/motd");
/// # Ok::<(), ccm_yaml::SyntaxError>(())
/// ```
pub fn outline(source: &Source) -> Result<Vec<OutlineEntry>, SyntaxError> {
    let (root, _) = ccm_yaml::parse_lenient(source)?;
    Ok(resources_of(source, &root))
}

/// The same of a document, which is only read again if it has anchors or tags.
///
/// # Errors
///
/// Returns why the text is not YAML.
pub fn outline_of(document: &Document) -> Result<Vec<OutlineEntry>, SyntaxError> {
    match document.node() {
        Some(root) => Ok(resources_of(document.source(), &root)),
        None => outline(document.source()),
    }
}

/// The resources of a tree that was read from a source.
pub(crate) fn resources_of(source: &Source, root: &Node<'_>) -> Vec<OutlineEntry> {
    let mut reading = Reading { source, found: Vec::new(), loops: Vec::new(), tags: Vec::new() };
    let resources = root.entry("ccm").and_then(|ccm| ccm.entry("resources"));
    if let Some(resources) = resources {
        reading.entries(resources, &["ccm".into(), "resources".into()]);
    }
    reading.found
}

/// The words beside a type that are no types.
const BLOCK_WORDS: [&str; 4] = ["for_each", "as", "tags", "control"];

fn scalar(node: &Node<'_>) -> Option<String> {
    let scalar = node.scalar().filter(|scalar| !scalar.is_null())?;
    Some(scalar.text.to_string())
}

/// The texts of a list, or one text alone.
fn texts(node: Option<&Node<'_>>) -> Vec<String> {
    match node.map(|node| &node.kind) {
        Some(Kind::Sequence(items)) => items.iter().filter_map(scalar).collect(),
        Some(Kind::Scalar(_)) => node.and_then(scalar).into_iter().collect(),
        _ => Vec::new(),
    }
}

struct Reading<'s> {
    source: &'s Source,
    found: Vec<OutlineEntry>,
    /// The loops around the entry that is read, and the tags of its blocks.
    loops: Vec<OutlineLoop>,
    tags: Vec<String>,
}

impl Reading<'_> {
    /// A list of entries, each with a type, or with another list.
    fn entries(&mut self, node: &Node<'_>, path: &[Step]) {
        let Kind::Sequence(items) = &node.kind else { return };
        for (index, item) in items.iter().enumerate() {
            let Kind::Mapping(entries) = &item.kind else { continue };
            let (loops, tags) = (self.loops.len(), self.tags.len());
            self.loops.extend(item.entry("for_each").map(|over| OutlineLoop {
                for_each: self.written(over),
                name: item.entry("as").and_then(scalar),
            }));
            // Beside a type: below one they are those of a resource.
            self.tags.extend(texts(item.entry("tags")));
            for Entry { key, value } in entries {
                let path = below(&below(path, index), &*key.text);
                match &*key.text {
                    "resources" => self.entries(value, &path),
                    word if BLOCK_WORDS.contains(&word) => {}
                    kind => self.block(kind, key.span, value, path),
                }
            }
            self.loops.truncate(loops);
            self.tags.truncate(tags);
        }
    }

    /// A text, or the line that a list or map begins with.
    fn written(&self, node: &Node<'_>) -> String {
        scalar(node).unwrap_or_else(|| {
            let place = self.source.clamp(node.span);
            self.source.text()[place].lines().next().unwrap_or_default().trim_end().to_owned()
        })
    }

    fn new_block(&self, path: Vec<Step>, defaults: Option<Vec<Step>>) -> Arc<OutlineBlock> {
        let (loops, tags) = (self.loops.clone(), self.tags.clone());
        Arc::new(OutlineBlock { path, defaults, loops, tags })
    }

    fn block(&mut self, kind: &str, span: Span, node: &Node<'_>, path: Vec<Step>) {
        match &node.kind {
            Kind::Mapping(_) if node.entry("name").and_then(scalar).is_some() => {
                let name = node.entry("name").and_then(scalar).unwrap_or_default();
                let block = self.new_block(path.clone(), None);
                self.add(kind, name, (span, path), node, (&block, None), ResourceShape::Single);
            }
            Kind::Mapping(entries) => {
                let (defaults, place) = (node.entry("defaults"), below(&path, "defaults"));
                let block = self.new_block(path, defaults.map(|_| place));
                for Entry { key, value } in entries.iter().filter(|e| e.key.text != "defaults") {
                    let path = below(&block.path, &*key.text);
                    let name = key.text.to_string();
                    let shared = (&block, defaults);
                    self.add(kind, name, (key.span, path), value, shared, ResourceShape::Entry);
                }
            }
            Kind::Sequence(items) => self.list(kind, items, path),
            Kind::Scalar(_) => {}
        }
    }

    fn list(&mut self, kind: &str, items: &[Node<'_>], path: Vec<Step>) {
        let place = items.iter().position(|item| item.entry("defaults").is_some());
        let defaults = place.and_then(|index| items[index].entry("defaults"));
        let place = place.map(|index| below(&below(&path, index), "defaults"));
        let block = self.new_block(path, place);
        for (index, item) in items.iter().enumerate() {
            let path = below(&block.path, index);
            let shared = (&block, defaults);
            match &item.kind {
                Kind::Mapping(entries) => {
                    for Entry { key, value } in entries.iter().filter(|e| e.key.text != "defaults")
                    {
                        let place = (key.span, below(&path, &*key.text));
                        let name = key.text.to_string();
                        self.add(kind, name, place, value, shared, ResourceShape::Item);
                    }
                }
                Kind::Scalar(_) => {
                    let Some(name) = scalar(item) else { continue };
                    self.add(kind, name, (item.span, path), item, shared, ResourceShape::BareItem);
                }
                Kind::Sequence(_) => {}
            }
        }
    }

    fn add(
        &mut self,
        kind: &str,
        name: String,
        (start, path): (Span, Vec<Step>),
        node: &Node<'_>,
        (block, defaults): (&Arc<OutlineBlock>, Option<&Node<'_>>),
        shape: ResourceShape,
    ) {
        let own = |property| node.entry(property).filter(|node| !node.is_null());
        let shared = |property| own(property).or_else(|| defaults?.entry(property));
        let end = self.end(node).max(start.end);
        self.found.push(OutlineEntry {
            number: self.found.len() + 1,
            kind: kind.to_owned(),
            name,
            alias: own("alias").and_then(scalar),
            ensure: shared("ensure").and_then(scalar),
            path,
            span: Span { start: start.start, end },
            block: Arc::clone(block),
            require: texts(shared("require")),
            subscribe: texts(shared("subscribe")),
            shape,
        });
    }

    /// The end of the line that the last leaf of a node ends on. The node's own
    /// span runs on to what follows it.
    fn end(&self, node: &Node<'_>) -> u32 {
        let text = self.source.text();
        let is_bracket =
            matches!(text.as_bytes().get(node.span.start as usize), Some(b'[' | b'{' | b'*'));
        match &node.kind {
            Kind::Sequence(items) if !is_bracket => {
                items.last().map_or(node.span.start, |item| self.end(item))
            }
            Kind::Mapping(entries) if !is_bracket => entries
                .iter()
                .filter(|entry| node.owns(&entry.key))
                .map(|entry| self.end(&entry.value).max(entry.key.span.end))
                .max()
                .unwrap_or(node.span.start),
            _ => {
                let end = self.source.clamp(node.span).end;
                let is_line = end == 0 || text.as_bytes()[end - 1] == b'\n';
                let rest = &text[end..];
                let line =
                    if is_line { 0 } else { rest.find('\n').map_or(rest.len(), |at| at + 1) };
                (end + line) as u32
            }
        }
    }
}

fn below(path: &[Step], step: impl Into<Step>) -> Vec<Step> {
    let mut path = path.to_vec();
    path.push(step.into());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ccm:
  resources:
    - file:
        - defaults: {owner: root, ensure: present}
        - /etc/motd:
            contnet: hi  # wrong
            alias: motd

        - /etc/issue
    - package:
        zsh:
        vim: {ensure: latest}
    - exec:
        name: reload
        subscribe: file#motd
    - nonsense: [x]
";

    #[test]
    fn a_document_has_the_outline_of_its_text() {
        let with_anchor = TEXT.replace("vim: {", "vim: &v {");
        for text in [TEXT, &with_anchor, "", "a: 1", "ccm: {resources: [{file: [a, {b: {}}]}]}"] {
            let document = Document::parse(Source::new("m.yaml", text)).unwrap();
            let shown = |found: Vec<OutlineEntry>| serde_json::to_value(found).unwrap();
            let of_text = shown(outline(document.source()).unwrap());
            assert_eq!(shown(outline_of(&document).unwrap()), of_text, "{text}");
        }
    }

    #[test]
    fn blocks_tell_the_loops_and_tags_around_them() {
        let text = "\
ccm:
  resources:
    - for_each: \"{{ Data.sites }}\"
      as: site
      tags: [web]
      resources:
        - for_each: [a, b]
          file:
            - \"/{{ site }}/{{ Item }}\": {}
        - exec: {reload: {tags: [own]}}
    - file: {name: /a, tags: [own]}
";
        let found = outline(&Source::new("m.yaml", text)).unwrap();
        let shown: Vec<_> =
            found.iter().map(|entry| (&entry.block.loops[..], &entry.block.tags[..])).collect();
        let words = |at: usize| -> Vec<String> {
            let of_loop = |one: &OutlineLoop| format!("{} {:?}", one.for_each, one.name);
            shown[at].0.iter().map(of_loop).collect()
        };
        assert_eq!(words(0), ["{{ Data.sites }} Some(\"site\")", "[a, b] None"]);
        assert_eq!(words(1), ["{{ Data.sites }} Some(\"site\")"]);
        assert_eq!((shown[0].1, shown[1].1), (&["web".to_owned()][..], &["web".to_owned()][..]));
        assert_eq!((shown[2].0.len(), shown[2].1.len()), (0, 0));
    }

    #[test]
    fn every_shape_is_found_also_where_the_manifest_is_wrong() {
        let source = Source::new("m.yaml", TEXT);
        let found = outline(&source).unwrap();
        let names: Vec<_> = found.iter().map(OutlineEntry::reference).collect();
        let wanted = [
            "file#/etc/motd",
            "file#/etc/issue",
            "package#zsh",
            "package#vim",
            "exec#reload",
            "nonsense#x",
        ];
        assert_eq!(names, wanted);
        assert_eq!(found[0].alias.as_deref(), Some("motd"));
        assert_eq!(found[0].ensure.as_deref(), Some("present"));
        let slice =
            |entry: &OutlineEntry| &TEXT[entry.span.start as usize..entry.span.end as usize];
        assert!(slice(&found[0]).starts_with("/etc/motd:\n"));
        assert!(slice(&found[0]).ends_with("alias: motd\n"));
        assert_eq!(slice(&found[3]), "vim: {ensure: latest}\n");
        assert_eq!(found[4].subscribe, ["file#motd"]);
        let json = serde_json::to_value(&found[0]).unwrap();
        assert_eq!(
            json["path"],
            serde_json::json!(["ccm", "resources", 0, "file", 1, "/etc/motd"])
        );
        assert_eq!(
            json["block"]["defaults"],
            serde_json::json!(["ccm", "resources", 0, "file", 0, "defaults"])
        );
    }

    #[test]
    fn texts_that_are_no_manifests_have_none() {
        for text in [
            "",
            "a",
            "[1]",
            "ccm: 1",
            "ccm: {resources: {a: 1}}",
            "ccm: {resources: [1, [x], {a: 1}]}",
        ] {
            assert_eq!(outline(&Source::new("t", text)).unwrap().len(), 0, "{text}");
        }
        assert!(outline(&Source::new("t", "a: [")).is_err());
        let twice = Source::new("t", "ccm: {resources: [{file: {a: {}, a: {}}}]}");
        assert_eq!(outline(&twice).unwrap().len(), 1);
    }
}
