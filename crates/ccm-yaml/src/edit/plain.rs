//! The parser's events for texts without anchors, aliases and tags.

use granit_parser::{Event, Parser, StrInput};

use crate::Span;
use crate::build::{self, MAX_DEPTH, MAX_NODES};

/// Events up to the end, or to the first that such a text does not have.
pub(super) struct PlainEvents<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Bytes before the text that the parser reads.
    base: u32,
    depth: usize,
    pub(super) deepest: usize,
    nodes: usize,
    documents: usize,
    is_over: bool,
    /// Whether the end was reached.
    pub(super) is_complete: bool,
}

impl<'a> PlainEvents<'a> {
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let (parser, base) = build::parser(text, false).ok()?;
        Some(Self {
            parser,
            base,
            depth: 0,
            deepest: 0,
            nodes: 0,
            documents: 0,
            is_over: false,
            is_complete: false,
        })
    }

    /// Whether an event is one of a text that the full reader takes as it is.
    fn is_plain(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Scalar(_, _, anchor, tag) => {
                self.nodes += 1;
                *anchor == 0 && tag.is_none() && self.nodes <= MAX_NODES
            }
            Event::SequenceStart(_, anchor, tag) | Event::MappingStart(_, anchor, tag) => {
                self.nodes += 1;
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
                *anchor == 0 && tag.is_none() && self.depth <= MAX_DEPTH && self.nodes <= MAX_NODES
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.depth = self.depth.saturating_sub(1);
                true
            }
            Event::DocumentStart(..) => {
                self.documents += 1;
                self.documents == 1
            }
            Event::Alias(_) => false,
            _ => true,
        }
    }
}

impl<'a> Iterator for PlainEvents<'a> {
    type Item = (Event<'a>, Span);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let Some(next) = self.parser.next() else {
            (self.is_over, self.is_complete) = (true, true);
            return None;
        };
        let next = next.ok().filter(|(event, _)| self.is_plain(event));
        let Some((event, place)) = next else {
            self.is_over = true;
            return None;
        };
        Some((event, build::span(self.base, &place)))
    }
}
