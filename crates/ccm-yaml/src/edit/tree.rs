//! The editor's tree: what stands where, to the byte.
//!
//! The parser's events say what the nodes are. Where they begin and end is read
//! from the text itself, in step with the events: the parser's own spans run
//! over comments, leave out anchors and tags, and are missing for what is empty.
//! A text in which both do not agree is not edited.

use std::ops::Range;

use super::lexer::{Lexer, OutOfStep};
use super::plain::PlainEvents;
use crate::{Source, SyntaxError};

/// An index into [`Tree::nodes`].
pub(super) type Id = usize;

/// All nodes of a document and its comments.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
    /// From `#` to the end of the line, in order.
    pub(super) comments: Vec<Range<usize>>,
    /// Where the document's content ends at the latest: `...` or the end.
    pub(super) end: usize,
    /// How many scalars have single and double quotes.
    pub(super) quotes: [usize; 2],
    /// Whether there are no anchors, aliases, tags and merge keys.
    pub(super) is_plain: bool,
    /// How deep collections are in each other.
    pub(super) depth: usize,
}

#[derive(Debug)]
pub(super) struct Node {
    /// The content: without anchor and tag; a block collection from its first
    /// entry to the end of its last leaf; a block scalar with its header. Of no
    /// width behind the indicator where there is nothing.
    pub(super) span: Range<usize>,
    /// Anchor and tag, of no width where there are none.
    pub(super) properties: Range<usize>,
    pub(super) is_anchored: bool,
    pub(super) tag: Tag,
    /// Whether it stands inside of brackets or braces.
    pub(super) in_flow: bool,
    pub(super) parent: Option<(Id, usize)>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    None,
    Text,
    Other,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Collection),
    Map(Collection),
    Alias(Id),
}

#[derive(Debug)]
pub(super) struct Scalar {
    pub(super) text: Text,
    pub(super) style: Style,
}

/// Most texts are slices of the source.
#[derive(Debug)]
pub(super) enum Text {
    Slice(Range<usize>),
    Owned(Box<str>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Block {
        /// `|` or `>` with its indicators.
        header: Range<usize>,
        /// From the line behind the header to the end of the last line, without
        /// its line end. Of no width where there is nothing.
        content: Range<usize>,
        /// Blanks before each line.
        indent: usize,
        /// Whether blank lines behind it are part of it.
        keeps: bool,
    },
}

#[derive(Debug)]
pub(super) struct Collection {
    pub(super) is_flow: bool,
    /// A map of one pair without braces, in a list: `[a: 1]`.
    pub(super) is_pair: bool,
    pub(super) children: Vec<Child>,
}

/// An item of a list, or a key with its value.
#[derive(Debug)]
pub(super) struct Child {
    /// The first byte: dash, question mark, anchor, tag, key or value.
    pub(super) start: usize,
    pub(super) key: Option<Id>,
    pub(super) value: Id,
    /// The colon or dash.
    pub(super) indicator: Option<usize>,
    /// Whether the key is written behind a question mark.
    pub(super) is_explicit: bool,
    /// The comma behind it.
    pub(super) comma: Option<usize>,
}

impl Node {
    pub(super) fn collection(&self) -> Option<&Collection> {
        match &self.kind {
            Kind::List(found) | Kind::Map(found) => Some(found),
            Kind::Scalar(_) | Kind::Alias(_) => None,
        }
    }

    pub(super) fn is_block_collection(&self) -> bool {
        self.collection().is_some_and(|found| !found.is_flow)
    }

    pub(super) fn has_properties(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Whether nothing is written for it.
    pub(super) fn is_empty(&self) -> bool {
        self.span.is_empty() && !matches!(self.kind, Kind::Alias(_))
    }

    /// The first byte, anchor and tag included.
    pub(super) fn start(&self) -> usize {
        if self.has_properties() { self.properties.start } else { self.span.start }
    }
}

/// Why there is no tree.
pub(super) enum Unread {
    Syntax(SyntaxError),
    /// Events and text do not agree from this byte on.
    OutOfStep(usize),
}

impl From<SyntaxError> for Unread {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl Tree {
    pub(super) fn read(source: &Source) -> Result<Self, Unread> {
        let text = source.text();
        if let Some(tree) = Self::read_plain(text) {
            return Ok(tree);
        }
        let mut events = Vec::new();
        crate::build::read_observed(source, |event, span| events.push((event.clone(), span)))?;
        if let Some(at) = lone_carriage_return(text) {
            return Err(Unread::OutOfStep(at));
        }
        let read = Lexer::new(text, events.into_iter()).document();
        let tree = read.map_err(|OutOfStep(at)| Unread::OutOfStep(at))?;
        Ok(Self { is_plain: false, ..tree })
    }

    /// Reads what most texts are: YAML without anchors, aliases, tags and merge
    /// keys, in one pass. None for anything else, right or wrong.
    pub(super) fn read_plain(text: &str) -> Option<Self> {
        if lone_carriage_return(text).is_some() {
            return None;
        }
        let mut events = PlainEvents::new(text)?;
        let tree = Lexer::new(text, &mut events).document().ok()?;
        // What is wrong behind the document is wrong with it.
        events.by_ref().for_each(drop);
        (tree.is_plain && events.is_complete).then_some(Self { depth: events.deepest, ..tree })
    }

    pub(super) fn scalar<'a>(&'a self, text: &'a str, id: Id) -> Option<(&'a str, bool)> {
        let node = &self.nodes[id];
        match &node.kind {
            Kind::Scalar(scalar) => {
                let plain = scalar.style == Style::Plain && node.tag != Tag::Text;
                Some((scalar.text(text), plain))
            }
            _ => None,
        }
    }

    /// What a key is called; aliases as keys are followed.
    pub(super) fn key<'a>(&'a self, text: &'a str, id: Id) -> &'a str {
        self.scalar(text, self.resolve(id)).map_or("", |(key, _)| key)
    }

    /// The node itself, or the one that an alias stands for.
    pub(super) fn resolve(&self, id: Id) -> Id {
        match self.nodes[id].kind {
            Kind::Alias(target) => target,
            _ => id,
        }
    }

    pub(super) fn children(&self, id: Id) -> &[Child] {
        self.nodes[id].collection().map_or(&[], |found| &found.children)
    }

    /// Where a child ends: behind its last leaf.
    pub(super) fn child_end(&self, child: &Child) -> usize {
        let value = &self.nodes[child.value];
        let behind = child.indicator.map_or(0, |at| at + 1);
        let key = child.key.map_or(0, |key| self.nodes[key].span.end);
        behind.max(key).max(value.span.end).max(value.properties.end)
    }

    /// Whether a node is below another, or the same.
    pub(super) fn is_within(&self, mut id: Id, ancestor: Id) -> bool {
        loop {
            if id == ancestor {
                return true;
            }
            match self.nodes[id].parent {
                Some((parent, _)) => id = parent,
                None => return false,
            }
        }
    }
}

impl Scalar {
    pub(super) fn text<'a>(&'a self, source: &'a str) -> &'a str {
        match &self.text {
            Text::Slice(range) => &source[range.clone()],
            Text::Owned(text) => text,
        }
    }
}

/// A carriage return alone is a line end to YAML, but to no editor.
fn lone_carriage_return(text: &str) -> Option<usize> {
    let is_lone = |at: &usize| text.as_bytes().get(at + 1) != Some(&b'\n');
    text.match_indices('\r').map(|(at, _)| at).find(is_lone)
}
