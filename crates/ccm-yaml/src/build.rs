//! Builds the tree from the parser's events.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, StrInput, Tag};

use crate::{Entry, Key, Kind, Node, Scalar, Source, Span, mistakes};

/// Deeper nesting than this is nonsense or an attack.
pub(crate) const MAX_DEPTH: usize = 100;
/// How many nodes aliases and merge keys may add in all, a long text counting
/// as many: aliases of aliases would otherwise let a small text fill the memory.
const MAX_EXPANDED: usize = 1_000_000;
/// How many nodes a text may have, keys included: each takes memory.
pub(crate) const MAX_NODES: usize = 5_000_000;
/// More duplicate keys than this are not told one by one.
const MAX_DUPLICATES: usize = 100;
/// Spans are 32 bits wide.
const MAX_TEXT: usize = 1 << 30;
/// Up to here looking through the keys beats hashing them.
const FEW_KEYS: usize = 8;

/// Why a text cannot be parsed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The message, in one line without a location.
    pub message: String,
    /// The bytes of the source that are at fault.
    pub span: Span,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
}

impl SyntaxError {
    fn new(span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Reads the one document of a source.
pub fn parse(source: &Source) -> Result<Node<'_>, SyntaxError> {
    let (node, duplicates) = read(source, None)?;
    duplicates.into_iter().next().map_or(Ok(node), Err)
}

/// As [`parse`], but returns duplicate keys as errors beside the tree, which
/// keeps the first of each. So later checks can report further errors.
pub fn parse_lenient(source: &Source) -> Result<(Node<'_>, Vec<SyntaxError>), SyntaxError> {
    read(source, None)
}

/// A comment as it stands in the text.
pub(crate) struct Comment<'a> {
    /// What follows the `#`.
    pub(crate) text: Cow<'a, str>,
    /// The `#` and all that follows.
    pub(crate) span: Span,
}

/// Reads the one document of a source; where comments are wanted, the first of
/// several. Duplicate keys come beside it.
pub(crate) fn read<'a>(
    source: &'a Source,
    comments: Option<&mut Vec<Comment<'a>>>,
) -> Result<(Node<'a>, Vec<SyntaxError>), SyntaxError> {
    read_bounded(source, comments, MAX_NODES, |_, _| {})
}

/// As [`parse`], with every event of the parser and its place handed to
/// `observe` as it comes.
pub(crate) fn read_observed<'a>(
    source: &'a Source,
    observe: impl FnMut(&Event<'a>, Span),
) -> Result<Node<'a>, SyntaxError> {
    let (node, duplicates) = read_bounded(source, None, MAX_NODES, observe)?;
    duplicates.into_iter().next().map_or(Ok(node), Err)
}

fn read_bounded<'a>(
    source: &'a Source,
    comments: Option<&mut Vec<Comment<'a>>>,
    max_nodes: usize,
    observe: impl FnMut(&Event<'a>, Span),
) -> Result<(Node<'a>, Vec<SyntaxError>), SyntaxError> {
    let text = source.text();
    let (parser, base) = parser(text, comments.is_some())?;
    Builder {
        base,
        stack: Vec::new(),
        anchors: HashMap::new(),
        expanded: 0,
        nodes: 0,
        max_nodes,
        duplicates: Vec::new(),
        root: None,
    }
    .build(parser, text.len() as u32, comments, observe)
    .map_err(|error| mistakes::explain(text, error))
}

/// A parser of a text, and how many bytes before it are left out.
pub(crate) fn parser(
    text: &str,
    comments: bool,
) -> Result<(Parser<'_, StrInput<'_>>, u32), SyntaxError> {
    if text.len() > MAX_TEXT {
        let message = format!("larger than {} MiB", MAX_TEXT >> 20);
        return Err(SyntaxError::new(Span::default(), message));
    }
    // The parser counts a byte order mark as the first character.
    let text_start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut options = Options::default();
    options.set_emit_comments(comments);
    options.max_buffered_comment_events = usize::MAX;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let parser = Parser::<StrInput<'_>>::new_from_str_with_options(&text[text_start..], options);
    Ok((parser, text_start as u32))
}

/// The place of an event.
pub(crate) fn span(base: u32, place: &granit_parser::Span) -> Span {
    let at =
        |marker: &granit_parser::Marker| base + marker.byte_offset().unwrap_or_default() as u32;
    Span { start: at(&place.start), end: at(&place.end) }
}

/// A collection whose end has not been seen.
struct Open<'a> {
    span: Span,
    anchor: usize,
    body: Body<'a>,
}

enum Body<'a> {
    Sequence(Vec<Node<'a>>),
    Mapping {
        entries: Vec<Entry<'a>>,
        key: Option<Key<'a>>,
        /// The key was there before: its value is left out.
        is_duplicate: bool,
        /// Filled only when there are many.
        seen: HashSet<Cow<'a, str>>,
        merged: Vec<Node<'a>>,
    },
}

struct Builder<'a> {
    base: u32,
    stack: Vec<Open<'a>>,
    anchors: HashMap<usize, Node<'a>>,
    expanded: usize,
    nodes: usize,
    max_nodes: usize,
    duplicates: Vec<SyntaxError>,
    root: Option<Node<'a>>,
}

impl<'a> Builder<'a> {
    fn build(
        mut self,
        parser: Parser<'a, StrInput<'a>>,
        end: u32,
        mut comments: Option<&mut Vec<Comment<'a>>>,
        mut observe: impl FnMut(&Event<'a>, Span),
    ) -> Result<(Node<'a>, Vec<SyntaxError>), SyntaxError> {
        let mut documents = 0;
        for event in parser {
            let (event, place) = event.map_err(|error| self.scan_error(&error, end))?;
            let span = span(self.base, &place);
            observe(&event, span);
            if documents > 1 {
                // Read on only for the errors.
                continue;
            }
            match event {
                Event::Comment(text, _) => {
                    if let Some(comments) = &mut comments {
                        comments.push(Comment { text, span });
                    }
                }
                Event::DocumentStart(..) => {
                    documents += 1;
                    if documents > 1 && comments.is_none() {
                        return Err(SyntaxError::new(span, "a second document begins here")
                            .hint("only one document is read; remove the `---`"));
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let mut plain = style == ScalarStyle::Plain;
                    if let Some(tag) = tag {
                        plain &= !Self::is_string_tag(&tag, span)?;
                    }
                    let node = Node { span, kind: Kind::Scalar(Scalar { text, plain }) };
                    self.finish(node, anchor)?;
                }
                Event::SequenceStart(_, anchor, tag) => {
                    Self::check_collection_tag(tag.as_deref(), span)?;
                    self.open(span, anchor, Body::Sequence(Vec::new()))?;
                }
                Event::MappingStart(_, anchor, tag) => {
                    Self::check_collection_tag(tag.as_deref(), span)?;
                    let body = Body::Mapping {
                        entries: Vec::new(),
                        key: None,
                        is_duplicate: false,
                        seen: HashSet::new(),
                        merged: Vec::new(),
                    };
                    self.open(span, anchor, body)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
                Event::Alias(anchor) => {
                    let Some(target) = self.anchors.get(&anchor) else {
                        return Err(SyntaxError::new(span, "an alias inside its own anchor"));
                    };
                    let mut node = target.clone();
                    node.span = span;
                    self.count_expanded(&node, span)?;
                    self.finish(node, 0)?;
                }
                _ => {}
            }
        }
        let nothing = Scalar { text: Cow::Borrowed(""), plain: true };
        let nothing = Node { span: Span::default(), kind: Kind::Scalar(nothing) };
        Ok((self.root.unwrap_or(nothing), self.duplicates))
    }

    fn scan_error(&self, error: &ScanError, end: u32) -> SyntaxError {
        let start = self.base + error.marker().byte_offset().unwrap_or_default() as u32;
        let span = Span { start: start.min(end), end: (start + 1).min(end) };
        let message = error.info().clone();
        let too_deep = message.contains("nesting") || message.contains("recursion");
        let error = SyntaxError::new(span, message);
        if too_deep {
            return error.hint(format!("at most {MAX_DEPTH} levels are read"));
        }
        error
    }

    /// Whether a scalar's tag makes it text whatever it looks like.
    fn is_string_tag(tag: &Tag, span: Span) -> Result<bool, SyntaxError> {
        match tag.core_suffix() {
            Some("str") => Ok(true),
            Some("null" | "bool" | "int" | "float") => Ok(false),
            _ => Err(unknown_tag(tag, span)),
        }
    }

    fn check_collection_tag(tag: Option<&Tag>, span: Span) -> Result<(), SyntaxError> {
        match tag {
            Some(tag) if !matches!(tag.core_suffix(), Some("map" | "seq")) => {
                Err(unknown_tag(tag, span))
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, body: Body<'a>) -> Result<(), SyntaxError> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(SyntaxError::new(span, "nested too deeply")
                .hint(format!("at most {MAX_DEPTH} levels are read")));
        }
        self.stack.push(Open { span, anchor, body });
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), SyntaxError> {
        let Some(Open { span, anchor, body }) = self.stack.pop() else { return Ok(()) };
        let kind = match body {
            Body::Sequence(items) => Kind::Sequence(items),
            Body::Mapping { mut entries, merged, .. } => {
                // Most maps are small, and there are many of them.
                entries.shrink_to_fit();
                if !merged.is_empty() {
                    let mut have = entries.iter().map(|entry| entry.key.text.clone()).collect();
                    for node in merged {
                        self.merge(&mut entries, &mut have, node)?;
                    }
                }
                Kind::Mapping(entries)
            }
        };
        self.finish(Node { span: Span { start: span.start, end: end.end }, kind }, anchor)
    }

    /// Puts a complete node where it belongs.
    fn finish(&mut self, node: Node<'a>, anchor: usize) -> Result<(), SyntaxError> {
        self.nodes += 1;
        if self.nodes > self.max_nodes {
            let message = format!("more than {} nodes", self.max_nodes);
            return Err(SyntaxError::new(node.span, message)
                .hint("split it, and apply the parts with `apply` resources"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.body {
            Body::Sequence(items) => items.push(node),
            Body::Mapping { entries, key, is_duplicate, seen, merged } => match key.take() {
                None => {
                    let (new, duplicate) = mapping_key(node, entries, seen)?;
                    *is_duplicate = duplicate.is_some();
                    match duplicate {
                        Some(error) if self.duplicates.len() == MAX_DUPLICATES => {
                            return Err(error);
                        }
                        found => self.duplicates.extend(found),
                    }
                    *key = Some(new);
                }
                Some(_) if *is_duplicate => *is_duplicate = false,
                Some(key) if key.text == "<<" => merged.push(node),
                Some(key) => entries.push(Entry { key, value: node }),
            },
        }
        Ok(())
    }

    /// `<<: map` or `<<: [map, map]`: what is not there yet.
    fn merge(
        &mut self,
        entries: &mut Vec<Entry<'a>>,
        have: &mut HashSet<Cow<'a, str>>,
        from: Node<'a>,
    ) -> Result<(), SyntaxError> {
        match from.kind {
            Kind::Mapping(more) => {
                for entry in more {
                    if !have.insert(entry.key.text.clone()) {
                        continue;
                    }
                    self.count_expanded(&entry.value, from.span)?;
                    entries.push(entry);
                }
                Ok(())
            }
            Kind::Sequence(maps) => maps.into_iter().try_for_each(|map| match map.kind {
                Kind::Mapping(_) => self.merge(entries, have, map),
                _ => Err(SyntaxError::new(map.span, "only maps can be merged with `<<`")),
            }),
            Kind::Scalar(_) => {
                Err(SyntaxError::new(from.span, "only maps can be merged with `<<`"))
            }
        }
    }

    fn count_expanded(&mut self, node: &Node<'a>, span: Span) -> Result<(), SyntaxError> {
        self.expanded += count(node);
        if self.expanded > MAX_EXPANDED {
            return Err(SyntaxError::new(span, "aliases expand to more than a million nodes"));
        }
        Ok(())
    }
}

fn count(node: &Node<'_>) -> usize {
    1 + match &node.kind {
        Kind::Scalar(scalar) => scalar.text.len() / 64,
        Kind::Sequence(items) => items.iter().map(count).sum(),
        Kind::Mapping(entries) => entries.iter().map(|entry| count(&entry.value)).sum(),
    }
}

fn unknown_tag(tag: &Tag, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("the tag `{}` is not known", tag.original()))
        .hint("remove the tag; to make the value a string, quote it")
}

/// Makes a node a key of the mapping that already has `entries`; with what is
/// wrong if one of them has it.
fn mapping_key<'a>(
    node: Node<'a>,
    entries: &[Entry<'a>],
    seen: &mut HashSet<Cow<'a, str>>,
) -> Result<(Key<'a>, Option<SyntaxError>), SyntaxError> {
    let Kind::Scalar(scalar) = node.kind else {
        return Err(SyntaxError::new(node.span, "a key must be a string"));
    };
    let key = Key { text: scalar.text, span: node.span };
    if key.text == "<<" {
        return Ok((key, None));
    }
    if entries.len() == FEW_KEYS && seen.is_empty() {
        seen.extend(entries.iter().map(|entry| entry.key.text.clone()));
    }
    let duplicate = if entries.len() < FEW_KEYS {
        entries.iter().any(|entry| entry.key.text == key.text)
    } else {
        !seen.insert(key.text.clone())
    };
    let duplicate = duplicate.then(|| {
        SyntaxError::new(key.span, format!("duplicate key `{}`", key.text))
            .hint("remove or rename one of them")
    });
    Ok((key, duplicate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let source = Source::new("t", text);
        match parse(&source) {
            Ok(node) => show_node(&node),
            Err(error) => {
                let place = source.position(error.span.start);
                format!("{}:{}: {error}", place.line, place.column)
            }
        }
    }

    fn show_node(node: &Node<'_>) -> String {
        match &node.kind {
            Kind::Scalar(scalar) if scalar.plain => scalar.text.to_string(),
            Kind::Scalar(scalar) => format!("{:?}", scalar.text),
            Kind::Sequence(items) => {
                format!("[{}]", items.iter().map(show_node).collect::<Vec<_>>().join(", "))
            }
            Kind::Mapping(entries) => {
                let shown: Vec<_> = entries
                    .iter()
                    .map(|entry| format!("{}: {}", entry.key.text, show_node(&entry.value)))
                    .collect();
                format!("{{{}}}", shown.join(", "))
            }
        }
    }

    #[test]
    fn scalars_keep_their_text() {
        assert_eq!(
            show("a: 0644\nb: 1.10\nc: \"x\\ty\"\nd: |\n  l1\n  l2\n"),
            r#"{a: 0644, b: 1.10, c: "x\ty", d: "l1\nl2\n"}"#
        );
    }

    #[test]
    fn the_number_of_nodes_is_bounded() {
        let source = Source::new("t", "- a\n- b: c\n");
        assert!(read_bounded(&source, None, 5, |_, _| {}).is_ok());
        let error = read_bounded(&source, None, 4, |_, _| {}).unwrap_err();
        assert_eq!(error.to_string(), "more than 4 nodes");
        assert!(error.hint.is_some_and(|hint| hint.starts_with("split it")));
    }

    #[test]
    fn duplicate_keys_come_beside_the_first_values() {
        let source = Source::new("t", "a: 1\na: {b: 2, b: 3}\nc: 4\n");
        let (root, duplicates) = parse_lenient(&source).unwrap();
        assert_eq!(show_node(&root), "{a: 1, c: 4}");
        let messages: Vec<_> = duplicates.iter().map(ToString::to_string).collect();
        assert_eq!(messages, ["duplicate key `a`", "duplicate key `b`"]);
        let many = "a: 1\n".repeat(MAX_DUPLICATES + 2);
        assert!(parse_lenient(&Source::new("t", many)).is_err());
    }

    #[test]
    fn a_string_tag_makes_text() {
        assert_eq!(show("a: !!str 5"), r#"{a: "5"}"#);
        assert_eq!(show("a: !mine 5"), "1:10: the tag `!mine` is not known");
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        assert_eq!(
            show("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\n"),
            "{a: {p: 1, q: 2}, b: {p: 1, q: 2}, c: {q: 3, p: 1}}"
        );
        assert_eq!(show("a: &x [1]\nb: {<<: *x}\n"), "1:8: only maps can be merged with `<<`");
    }

    #[test]
    fn duplicate_keys_are_errors_in_small_and_large_maps() {
        assert_eq!(show("a: 1\nb: 2\na: 3\n"), "3:1: duplicate key `a`");
        let mut many: String = (0..50).map(|n| format!("k{n}: {n}\n")).collect();
        assert!(show(&many).starts_with("{k0: 0"));
        many.push_str("k7: again\n");
        assert_eq!(show(&many), "51:1: duplicate key `k7`");
        let mut ninth: String = (0..8).map(|n| format!("k{n}: {n}\n")).collect();
        ninth.push_str("k8: x\nk8: y\n");
        assert_eq!(show(&ninth), "10:1: duplicate key `k8`");
    }

    #[test]
    fn second_documents_are_refused() {
        assert_eq!(show("a: 1\n---\nb: 2\n"), "2:1: a second document begins here");
        assert_eq!(show("---\na: 1\n...\n"), "{a: 1}");
    }

    #[test]
    fn empty_text_is_null() {
        assert_eq!(show(""), "");
        assert_eq!(show("# nothing\n"), "");
    }

    #[test]
    fn laughs_are_bounded() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..12 {
            let previous = n - 1;
            let list = vec![format!("*a{previous}"); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        assert!(show(&text).ends_with("aliases expand to more than a million nodes"));
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        assert!(show(&"[".repeat(10_000)).starts_with("1:"));
        let blocks: String = (0..10_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(show(&blocks).contains(':'));
    }

    #[test]
    fn a_byte_order_mark_does_not_shift_positions() {
        let source = Source::new("t", "\u{feff}a: 1\na: 2\n");
        let error = parse(&source).unwrap_err();
        assert_eq!(source.position(error.span.start).line, 2);
        assert_eq!(source.position(error.span.start).column, 1);
    }

    #[test]
    fn spans_cover_the_value() {
        let text = "a: [1, 2]\nb: {c: \"dé\"}\n";
        let source = Source::new("t", text);
        let Kind::Mapping(entries) = parse(&source).unwrap().kind else { panic!() };
        let slice = |span: Span| &text[span.start as usize..span.end as usize];
        assert_eq!(slice(entries[0].value.span), "[1, 2]");
        assert_eq!(slice(entries[1].value.span), "{c: \"dé\"}");
    }
}
