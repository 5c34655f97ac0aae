//! Comments and the keys that they belong to.

use std::cell::Cell;
use std::collections::HashMap;

use crate::build::{Comment, read};
use crate::{Key, Kind, Node, Source, Span, SyntaxError};

/// The comments of a text, by the keys that they are about.
#[derive(Clone, Debug, Default)]
pub struct Comments {
    by_key: HashMap<u32, Vec<String>>,
}

impl Comments {
    /// The comments about a key, in their order: lines above it, what stands
    /// behind it or its value, lines that trail its map. Without the `#`, and
    /// without blanks around them.
    pub fn of(&self, key: &Key<'_>) -> &[String] {
        self.by_key.get(&key.span.start).map_or(&[], Vec::as_slice)
    }
}

/// Reads a document with its comments. Of several documents the first counts.
///
/// Keys that come from an alias or a merge are the same keys as those they come
/// from: [`Node::owns`] tells them apart.
///
/// ```
/// let source = ccm_yaml::Source::new("d.yaml", "# the port\nport: 80 # or 443\n");
/// let (root, comments) = ccm_yaml::parse_annotated(&source)?;
/// let ccm_yaml::Kind::Mapping(entries) = &root.kind else { unreachable!() };
/// assert_eq!(comments.of(&entries[0].key), ["the port", "or 443"]);
/// # Ok::<(), ccm_yaml::SyntaxError>(())
/// ```
pub fn parse_annotated(source: &Source) -> Result<(Node<'_>, Comments), SyntaxError> {
    let (root, comments, duplicates) = parse_annotated_lenient(source)?;
    duplicates.into_iter().next().map_or(Ok((root, comments)), Err)
}

/// As [`parse_annotated`], with duplicate keys beside the tree, which has the
/// first of each.
pub fn parse_annotated_lenient(
    source: &Source,
) -> Result<(Node<'_>, Comments, Vec<SyntaxError>), SyntaxError> {
    let mut found = Vec::new();
    let (root, duplicates) = read(source, Some(&mut found))?;
    let mut comments = Comments::default();
    if !found.is_empty() {
        let mut places =
            KeyPositions { text: source.text(), keys: Vec::new(), known: Cell::default() };
        places.collect(&root, u32::MAX);
        places.keys.sort_by_key(|key| key.span.start);
        for comment in &found {
            if let Some(key) = places.key_of(comment) {
                let text = comment.text.trim().to_owned();
                comments.by_key.entry(key).or_default().push(text);
            }
        }
    }
    Ok((root, comments, duplicates))
}

impl Node<'_> {
    /// Whether a key of this map was written in it, rather than merged into it
    /// or reached through an alias.
    pub fn owns(&self, key: &Key<'_>) -> bool {
        self.span.start <= key.span.start && key.span.end <= self.span.end
    }
}

/// Where things stand in a text.
struct KeyPositions<'a> {
    text: &'a str,
    /// In the order of the text.
    keys: Vec<KeyPlace>,
    /// From where on what content comes next, as last found: comments in a row
    /// have the same.
    known: Cell<(usize, Option<usize>)>,
}

struct KeyPlace {
    span: Span,
    value: Span,
    /// Where the innermost brackets end that it stands in.
    closed: u32,
    /// Whether the value is a list of lines with dashes.
    block_list: bool,
    /// Whether the value is a list or map of lines.
    block: bool,
}

impl KeyPositions<'_> {
    /// Notes the keys of a node that stands in brackets which end at `closed`.
    fn collect(&mut self, node: &Node<'_>, closed: u32) {
        let closed = if self.is_flow(node) { node.span.end } else { closed };
        match &node.kind {
            Kind::Scalar(_) => {}
            Kind::Sequence(items) => items.iter().for_each(|item| self.collect(item, closed)),
            Kind::Mapping(entries) => {
                for entry in entries.iter().filter(|entry| node.owns(&entry.key)) {
                    let block = entry.value.scalar().is_none() && !self.is_flow(&entry.value);
                    let is_list = matches!(entry.value.kind, Kind::Sequence(_));
                    self.keys.push(KeyPlace {
                        span: entry.key.span,
                        value: entry.value.span,
                        closed,
                        block_list: block && is_list,
                        block,
                    });
                    self.collect(&entry.value, closed);
                }
            }
        }
    }

    /// Aliases begin with an asterisk, so they count as what is written.
    fn is_flow(&self, node: &Node<'_>) -> bool {
        let first = self.text.as_bytes().get(node.span.start as usize);
        matches!(first, Some(b'[' | b'{' | b'*'))
    }

    /// Where the key begins that a comment is about.
    fn key_of(&self, comment: &Comment<'_>) -> Option<u32> {
        let start = comment.span.start as usize;
        let before = self.line_before(start);
        if before.trim().is_empty() {
            self.key_of_line(start, comment.span.end as usize)
        } else {
            self.key_behind(start)
        }
    }

    /// A comment with something before it on its line.
    fn key_behind(&self, start: usize) -> Option<u32> {
        let line = start - self.line_before(start).len();
        for key in self.keys_before(start).rev() {
            let closed = key.closed as usize;
            if closed <= line {
                return None;
            }
            if closed > start {
                let same_line = key.span.end as usize > line;
                let value_ends_here = !key.block && key.value.end as usize > line;
                return (same_line || value_ends_here).then_some(key.span.start);
            }
        }
        None
    }

    /// A comment on a line of its own: about the key that follows, unless that
    /// stands further to the left; then about the last one of its own map.
    fn key_of_line(&self, start: usize, end: usize) -> Option<u32> {
        let column = self.column(start);
        let next = self.next_content(end);
        if let Some(next) = next.filter(|next| column <= self.column(*next)) {
            let found = self.keys.binary_search_by_key(&(next as u32), |key| key.span.start);
            return found.is_ok().then_some(next as u32);
        }
        let key = self
            .keys_before(start)
            .rev()
            .find(|key| self.column(key.span.start as usize) <= column)?;
        let in_list = key.block_list && self.column(key.value.start as usize) <= column;
        (!in_list).then_some(key.span.start)
    }

    fn keys_before(&self, at: usize) -> std::slice::Iter<'_, KeyPlace> {
        let count = self.keys.partition_point(|key| (key.span.start as usize) < at);
        self.keys[..count].iter()
    }

    /// What comes next that is neither blank nor a comment.
    fn next_content(&self, from: usize) -> Option<usize> {
        let (known_from, known) = self.known.get();
        if known_from > 0 && known_from <= from && known.is_none_or(|at| from <= at) {
            return known;
        }
        let found = self.find_content(from);
        self.known.set((from, found));
        found
    }

    fn find_content(&self, mut at: usize) -> Option<usize> {
        loop {
            let rest = &self.text[at..];
            at += rest.len() - rest.trim_start().len();
            let rest = &self.text[at..];
            if rest.is_empty() {
                return None;
            }
            if rest.starts_with('#') {
                at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(key) = rest.strip_prefix("? ") {
                return Some(at + 2 + key.len() - key.trim_start().len());
            } else {
                return Some(at);
            }
        }
    }

    fn column(&self, at: usize) -> usize {
        self.line_before(at).len()
    }

    fn line_before(&self, at: usize) -> &str {
        let before = &self.text[..at];
        &before[before.rfind('\n').map_or(0, |line| line + 1)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with their comments, such as `a: one, two`.
    fn show(text: &str) -> String {
        let source = Source::new("t", text);
        let (root, comments) = parse_annotated(&source).unwrap();
        let mut shown = Vec::new();
        walk(&root, &comments, &mut shown);
        shown.join("; ")
    }

    fn walk(node: &Node<'_>, comments: &Comments, shown: &mut Vec<String>) {
        match &node.kind {
            Kind::Scalar(_) => {}
            Kind::Sequence(items) => items.iter().for_each(|item| walk(item, comments, shown)),
            Kind::Mapping(entries) => {
                for entry in entries.iter().filter(|entry| node.owns(&entry.key)) {
                    let about = comments.of(&entry.key);
                    if !about.is_empty() {
                        shown.push(format!("{}: {}", entry.key.text, about.join(", ")));
                    }
                    walk(&entry.value, comments, shown);
                }
            }
        }
    }

    #[test]
    fn lines_above_and_words_behind() {
        for (text, wanted) in [
            ("# 1\na: x\n", "a: 1"),
            ("# 1\n\n#2\na: x # 3\n", "a: 1, 2, 3"),
            ("a: # 1\n  b: x\n", "a: 1"),
            ("a:\n  # 1\n  b: x\n", "b: 1"),
            ("a:\n# 1\n  b: x\n", "b: 1"),
            ("a: |  # 1\n  # text\nb: x\n", "a: 1"),
            ("a: \"x\n  y\" # 1\n", "a: 1"),
            ("a: 'x # no' # 1\n", "a: 1"),
            ("# 1\n\"a b\": x\n", "a b: 1"),
            ("# 1\n? a\n: x\n", "a: 1"),
        ] {
            assert_eq!(show(text), wanted, "{text}");
        }
    }

    #[test]
    fn lines_that_trail() {
        for (text, wanted) in [
            ("a: 1\n# 1\n", "a: 1"),
            ("d:\n  a: x\n  # 1\no: y\n", "a: 1"),
            ("d:\n  w:\n    p: x\n  # 1\n  u: y\n", "u: 1"),
            ("d:\n  w:\n    p: x\n  # 1\n", "w: 1"),
            ("d:\n  w:\n    p: x\n    # 1\n  u: y\n", "p: 1"),
        ] {
            assert_eq!(show(text), wanted, "{text}");
        }
    }

    #[test]
    fn lists_have_comments_of_their_own() {
        for (text, wanted) in [
            ("a:\n  # 1\n  - x # 2\n  # 3\n", ""),
            ("a:\n  - x\n  # 1\nb: y\n", ""),
            ("a:\n  - x\n# 1\nb: y\n", "b: 1"),
            ("a: [1, 2] # 1\n", "a: 1"),
            ("a: {b: 1, c: 2} # 1\n", "a: 1"),
            ("a: {b: 1, # 1\n  c: 2} # 2\n", "a: 2; b: 1"),
            ("a:\n  - b: x # 1\n", "b: 1"),
        ] {
            assert_eq!(show(text), wanted, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in r#"([-{}\[\]:#?&*"'| \n,é0-9a-c]|: |\n  |\# c\n){0,40}"#) {
            let source = Source::new("t", text);
            if let Ok((root, comments)) = parse_annotated(&source) {
                walk(&root, &comments, &mut Vec::new());
            }
        }
    }

    #[test]
    fn aliases_and_merges_do_not_repeat_comments() {
        assert_eq!(show("a: &x\n  # 1\n  p: v\nb: *x\nc:\n  <<: *x\n  q: w\n"), "p: 1");
    }

    #[test]
    fn the_first_document_counts_and_many_comments_are_fine() {
        assert_eq!(show("# 1\na: x\n---\n# 2\nb: y\n"), "a: 1");
        let many = format!("{}a: x\n", "# c\n".repeat(5000));
        assert_eq!(show(&many).matches('c').count(), 5000);
        let source = Source::new("t", "a: x\n---\nb: [\n");
        assert!(parse_annotated(&source).is_err());
    }
}
