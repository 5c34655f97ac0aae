//! Builds the editor's tree from the text and the parser's events.

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;

use granit_parser::{Event, ScalarStyle, StructureStyle, Tag as ParserTag};

use super::lines;
use super::tree::{Child, Collection, Id, Kind, Node, Scalar, Style, Tag, Text, Tree};
use crate::Span;

/// Events and text do not agree from this byte on.
pub(super) struct OutOfStep(pub(super) usize);

type Step<T> = Result<T, OutOfStep>;

/// Up to here looking through the keys beats hashing them.
const FEW_KEYS: usize = 8;

/// Reads a text in step with the parser's events.
pub(super) struct Lexer<'a, E: Iterator<Item = (Event<'a>, Span)>> {
    text: &'a str,
    at: usize,
    events: Peekable<E>,
    tree: Tree,
    anchors: HashMap<usize, Id>,
}

impl<'a, E: Iterator<Item = (Event<'a>, Span)>> Lexer<'a, E> {
    pub(super) fn new(text: &'a str, events: E) -> Self {
        let tree = Tree {
            // Most lines have a key and a value.
            nodes: Vec::with_capacity(text.len() / 16),
            root: 0,
            comments: Vec::new(),
            end: 0,
            quotes: [0; 2],
            is_plain: true,
            depth: 0,
        };
        let at = lines::text_start(text);
        Self { text, at, events: events.peekable(), tree, anchors: HashMap::new() }
    }

    pub(super) fn document(mut self) -> Step<Tree> {
        let explicit = loop {
            match self.events.peek() {
                Some((Event::StreamStart, _)) => drop(self.events.next()),
                Some((Event::DocumentStart(explicit, _), _)) => {
                    let explicit = *explicit;
                    self.events.next();
                    break Some(explicit);
                }
                _ => break None,
            }
        };
        self.prologue(explicit == Some(true))?;
        let is_nothing = matches!(self.events.peek(), None | Some((Event::StreamEnd, _)));
        self.tree.root = if explicit.is_none() || is_nothing {
            self.empty(None, false)
        } else {
            self.node(None, false)?
        };
        loop {
            self.skip();
            self.tree.end = self.at;
            if self.at == self.text.len() {
                return Ok(self.tree);
            }
            if !self.rest().starts_with("...") {
                return self.lost();
            }
            let end = self.at;
            self.at += 3;
            self.skip();
            if self.at == self.text.len() {
                self.tree.end = end;
                return Ok(self.tree);
            }
        }
    }

    /// Directives and the mark that begins a document.
    fn prologue(&mut self, is_explicit: bool) -> Step<()> {
        if !is_explicit {
            return Ok(());
        }
        loop {
            self.skip();
            if self.rest().starts_with('%') {
                self.at = lines::end(self.text, self.at);
            } else if self.rest().starts_with("---") {
                self.at += 3;
                return Ok(());
            } else if self.rest().starts_with("...") {
                self.at += 3;
            } else {
                return self.lost();
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn lost<T>(&self) -> Step<T> {
        Err(OutOfStep(self.at))
    }

    fn expect(&mut self, byte: u8) -> Step<usize> {
        if self.byte() != Some(byte) {
            return self.lost();
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    /// Passes over blanks, line ends and comments.
    fn skip(&mut self) {
        while let Some(byte) = self.byte() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => self.comment(),
                _ => break,
            }
        }
    }

    fn comment(&mut self) {
        let end = lines::end(self.text, self.at);
        self.tree.comments.push(self.at..end);
        self.at = end;
    }

    /// Adds a node whose kind is not known yet.
    fn add(&mut self, parent: Option<(Id, usize)>, in_flow: bool) -> Id {
        self.tree.nodes.push(Node {
            span: self.at..self.at,
            properties: self.at..self.at,
            is_anchored: false,
            tag: Tag::None,
            in_flow,
            parent,
            kind: Kind::Scalar(Scalar { text: Text::Slice(0..0), style: Style::Plain }),
        });
        self.tree.nodes.len() - 1
    }

    fn empty(&mut self, parent: Option<(Id, usize)>, in_flow: bool) -> Id {
        self.add(parent, in_flow)
    }

    fn node(&mut self, parent: Option<(Id, usize)>, in_flow: bool) -> Step<Id> {
        let Some((event, span)) = self.events.next() else { return self.lost() };
        match event {
            Event::Alias(anchor) => {
                self.tree.is_plain = false;
                self.skip();
                let id = self.add(parent, in_flow);
                if self.byte() != Some(b'*') || self.at != span.start as usize {
                    return self.lost();
                }
                self.at = span.end as usize;
                let Some(&target) = self.anchors.get(&anchor) else { return self.lost() };
                self.tree.nodes[id].span.end = self.at;
                self.tree.nodes[id].kind = Kind::Alias(target);
                Ok(id)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_empty = span.start == span.end && style == ScalarStyle::Plain;
                if is_empty && anchor == 0 && tag.is_none() {
                    return Ok(self.empty(parent, in_flow));
                }
                let id = self.begin(parent, in_flow, anchor, tag.as_deref())?;
                if is_empty {
                    // Whatever follows anchor and tag belongs to others.
                    self.at = self.tree.nodes[id].properties.end;
                    self.tree.nodes[id].span = self.at..self.at;
                    return Ok(id);
                }
                self.scalar(id, &text, style, span)?;
                Ok(id)
            }
            Event::SequenceStart(style, anchor, tag) => {
                let id = self.begin(parent, in_flow, anchor, tag.as_deref())?;
                let brackets = style == StructureStyle::Flow;
                let children = if brackets { self.flow_list(id)? } else { self.block_list(id)? };
                let collection = Collection { is_flow: brackets, is_pair: false, children };
                self.finish(id, Kind::List(collection));
                Ok(id)
            }
            Event::MappingStart(style, anchor, tag) => {
                let id = self.begin(parent, in_flow, anchor, tag.as_deref())?;
                let brackets = style == StructureStyle::Flow;
                let is_pair = brackets && self.byte() != Some(b'{');
                let children = match (brackets, is_pair) {
                    (true, false) => self.flow_map(id)?,
                    _ => self.entries(id, brackets)?,
                };
                let collection = Collection { is_flow: brackets, is_pair, children };
                self.finish(id, Kind::Map(collection));
                Ok(id)
            }
            _ => self.lost(),
        }
    }

    /// A node that is not empty: passes over what comes before its content.
    fn begin(
        &mut self,
        parent: Option<(Id, usize)>,
        in_flow: bool,
        anchor: usize,
        tag: Option<&ParserTag>,
    ) -> Step<Id> {
        let indicator = self.at;
        self.skip();
        let start = self.at;
        let wanted = usize::from(anchor != 0) + usize::from(tag.is_some());
        let mut end = start;
        for _ in 0..wanted {
            match self.byte() {
                Some(b'!') if self.rest().starts_with("!<") => {
                    self.at += self.rest().find('>').unwrap_or_default() + 1;
                }
                Some(b'!' | b'&') => self.token(),
                _ => return self.lost(),
            }
            end = self.at;
            self.skip();
        }
        let id = self.add(parent, in_flow);
        let node = &mut self.tree.nodes[id];
        node.properties = if wanted > 0 { start..end } else { indicator..indicator };
        node.is_anchored = anchor != 0;
        node.tag = match tag.map(|tag| tag.core_suffix()) {
            None => Tag::None,
            Some(Some("str")) => Tag::Text,
            Some(_) => Tag::Other,
        };
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        self.tree.is_plain &= wanted == 0;
        Ok(id)
    }

    /// Passes over an anchor or a tag.
    fn token(&mut self) {
        let in_brackets = |byte: u8| matches!(byte, b',' | b'[' | b']' | b'{' | b'}');
        let is_end = |byte: u8| byte.is_ascii_whitespace() || in_brackets(byte);
        let length = self.rest().bytes().position(is_end).unwrap_or(self.rest().len());
        self.at += length;
    }

    /// Takes the content's end from the cursor or the last child.
    fn finish(&mut self, id: Id, kind: Kind) {
        let end = match &kind {
            Kind::List(found) | Kind::Map(found) if !found.is_flow || found.is_pair => {
                found.children.last().map(|child| self.tree.child_end(child))
            }
            _ => Some(self.at),
        };
        let node = &mut self.tree.nodes[id];
        node.span.end = end.unwrap_or(node.span.start).max(node.span.start);
        node.kind = kind;
    }

    fn scalar(&mut self, id: Id, text: &str, style: ScalarStyle, span: Span) -> Step<()> {
        let (start, end) = (span.start as usize, span.end as usize);
        let (style, slice) = match style {
            ScalarStyle::Plain => {
                if self.at != start || end < start {
                    return self.lost();
                }
                self.at = start + self.text[start..end].trim_end_matches(is_blank).len();
                (Style::Plain, start)
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let is_single = style == ScalarStyle::SingleQuoted;
                let quote = if is_single { b'\'' } else { b'"' };
                let closes = self.text.as_bytes().get(end.wrapping_sub(1)) == Some(&quote);
                if self.at != start || self.byte() != Some(quote) || !closes || end < start + 2 {
                    return self.lost();
                }
                self.at = end;
                self.tree.quotes[usize::from(!is_single)] += 1;
                (if is_single { Style::Single } else { Style::Double }, start + 1)
            }
            ScalarStyle::Literal | ScalarStyle::Folded => (self.block_scalar(start, end)?, start),
        };
        if let Style::Block { header, content, .. } = &style {
            self.at = if content.is_empty() { header.end } else { content.end };
        }
        let is_slice = self.text.get(slice..slice + text.len()) == Some(text);
        let text = if is_slice {
            Text::Slice(slice..slice + text.len())
        } else {
            Text::Owned(text.into())
        };
        let node = &mut self.tree.nodes[id];
        node.span.end = self.at;
        node.kind = Kind::Scalar(Scalar { text, style });
        Ok(())
    }

    fn block_scalar(&mut self, start: usize, end: usize) -> Step<Style> {
        if !matches!(self.byte(), Some(b'|' | b'>')) {
            return self.lost();
        }
        let from = self.at;
        self.at += 1;
        while self.byte().is_some_and(|byte| matches!(byte, b'+' | b'-' | b'0'..=b'9')) {
            self.at += 1;
        }
        let header = from..self.at;
        let keeps = self.text[header.clone()].contains('+');
        while self.byte().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            self.at += 1;
        }
        let first = lines::next(self.text, self.at);
        if end <= first || first == self.text.len() {
            // Nothing in it; a comment behind the header is found as any other.
            self.at = header.end;
            return Ok(Style::Block { header, content: first..first, indent: 0, keeps });
        }
        if self.byte() == Some(b'#') {
            self.comment();
        }
        let indent = start.saturating_sub(lines::start(self.text, start));
        // The parser may have passed over the indentation of what follows.
        let line = lines::start(self.text, end);
        let is_indentation = self.text[line..end].bytes().all(|byte| byte == b' ');
        let mut last = if is_indentation && end < self.text.len() { line } else { end };
        loop {
            let line_end = lines::without_break(self.text, first, last);
            let line = lines::start(self.text, line_end).max(first);
            let is_blank = self.text[line..line_end].bytes().all(|byte| byte == b' ');
            if keeps || line <= first || !is_blank || line_end - line > indent {
                last = line_end;
                break;
            }
            last = line;
        }
        if self.text[first..last].trim_matches([' ', '\r', '\n']).is_empty() && !keeps {
            self.at = header.end;
            // The comment is found again.
            if self.tree.comments.last().is_some_and(|comment| comment.start >= header.end) {
                self.tree.comments.pop();
            }
            return Ok(Style::Block { header, content: first..first, indent: 0, keeps });
        }
        Ok(Style::Block { header, content: first..last, indent, keeps })
    }

    fn is_end(&mut self) -> bool {
        let is_end =
            matches!(self.events.peek(), Some((Event::SequenceEnd | Event::MappingEnd, _)));
        if is_end {
            self.events.next();
        }
        is_end
    }

    fn block_list(&mut self, id: Id) -> Step<Vec<Child>> {
        let mut children = Vec::new();
        while !self.is_end() {
            self.skip();
            let start = self.expect(b'-')?;
            let value = self.node(Some((id, children.len())), false)?;
            children.push(Child {
                start,
                key: None,
                value,
                indicator: Some(start),
                is_explicit: false,
                comma: None,
            });
        }
        if let Some(first) = children.first() {
            self.tree.nodes[id].span.start = first.start;
        }
        Ok(children)
    }

    fn flow_list(&mut self, id: Id) -> Step<Vec<Child>> {
        self.expect(b'[')?;
        let mut children: Vec<Child> = Vec::new();
        while !self.is_end() {
            let value = self.node(Some((id, children.len())), true)?;
            let start = self.tree.nodes[value].start();
            let comma = self.comma();
            children.push(Child {
                start,
                key: None,
                value,
                indicator: None,
                is_explicit: false,
                comma,
            });
        }
        self.skip();
        self.expect(b']')?;
        Ok(children)
    }

    fn flow_map(&mut self, id: Id) -> Step<Vec<Child>> {
        self.expect(b'{')?;
        let children = self.entries(id, true)?;
        self.skip();
        self.expect(b'}')?;
        Ok(children)
    }

    fn comma(&mut self) -> Option<usize> {
        self.skip();
        (self.byte() == Some(b',')).then(|| {
            self.at += 1;
            self.at - 1
        })
    }

    fn entries(&mut self, id: Id, in_flow: bool) -> Step<Vec<Child>> {
        let mut children: Vec<Child> = Vec::new();
        let is_braced = in_flow && self.text[..self.at].ends_with('{');
        while !self.is_end() {
            self.skip();
            let start = self.at;
            let behind = self.text.as_bytes().get(self.at + 1);
            let is_explicit =
                self.byte() == Some(b'?') && behind.is_none_or(u8::is_ascii_whitespace);
            if is_explicit {
                self.at += 1;
            }
            let place = Some((id, children.len()));
            let key = self.node(place, in_flow)?;
            let before = self.at;
            self.skip();
            let mut indicator = None;
            if self.byte() == Some(b':') {
                indicator = Some(self.at);
                self.at += 1;
            } else if in_flow || is_explicit {
                self.rewind(before);
            } else {
                return self.lost();
            }
            let value = self.node(place, in_flow)?;
            let comma = if is_braced { self.comma() } else { None };
            children.push(Child { start, key: Some(key), value, indicator, is_explicit, comma });
        }
        if let Some(first) = children.first().filter(|_| !is_braced) {
            self.tree.nodes[id].span.start = first.start;
        }
        self.tree.is_plain &= self.has_plain_keys(&children);
        Ok(children)
    }

    /// Whether keys are texts, each there once, and none merges anything.
    fn has_plain_keys(&self, children: &[Child]) -> bool {
        let key = |child: &Child| {
            let (key, _) = self.tree.scalar(self.text, child.key?)?;
            (key != "<<").then_some(key)
        };
        if children.len() <= FEW_KEYS {
            return children.iter().enumerate().all(|(index, child)| {
                key(child).is_some_and(|text| {
                    children[..index].iter().all(|other| key(other) != Some(text))
                })
            });
        }
        let mut seen = HashSet::with_capacity(children.len());
        children.iter().all(|child| key(child).is_some_and(|text| seen.insert(text)))
    }

    /// Goes back to before what [`Self::skip`] passed over.
    fn rewind(&mut self, at: usize) {
        self.at = at;
        while self.tree.comments.last().is_some_and(|comment| comment.start >= at) {
            self.tree.comments.pop();
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}
