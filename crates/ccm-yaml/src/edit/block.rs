//! Changes of whole lines: entries and items of block collections.

use std::ops::Range;

use super::editor::{Editor, Segment};
use super::lines;
use super::tree::{Id, Kind, Style};
use super::write::Written;

impl Editor<'_> {
    /// A child with the comments that belong to it.
    pub(super) fn segment(&self, parent: Id, index: usize) -> Segment {
        let tree = self.tree();
        let child = &tree.children(parent)[index];
        let is_first = parent == tree.root && index == 0 && !self.is_flow(parent);
        let is_line = lines::is_first(self.text(), child.start);
        let head = if is_line && !is_first { self.attached(child.start) } else { child.start };
        let last = tree.child_end(child);
        let end = match child.comma {
            // What stands behind the comma belongs to it, if nothing else does.
            Some(comma) if lines::end(self.text(), last) > comma => {
                self.comment_behind(comma + 1).unwrap_or(last)
            }
            _ => self.comment_behind(last).unwrap_or_else(|| self.blanks_behind(last)),
        };
        Segment { head, end }
    }

    /// Behind blanks that end the line of a byte, or the byte itself.
    fn blanks_behind(&self, at: usize) -> usize {
        let end = lines::end(self.text(), at);
        if self.text()[at..end].trim_matches([' ', '\t']).is_empty() { end } else { at }
    }

    /// Where the comments begin that stand directly above a byte, at its column.
    fn attached(&self, start: usize) -> usize {
        let text = self.text();
        let column = lines::column(text, start);
        let mut head = start;
        let mut line = lines::start(text, start);
        while line > lines::text_start(text) {
            let above = lines::start(text, line - 1);
            let at = above + column;
            let is_comment = self.tree().comments.binary_search_by_key(&at, |found| found.start);
            if is_comment.is_err() || !lines::is_first(text, at) {
                break;
            }
            (head, line) = (at, above);
        }
        head
    }

    /// The end of the comment behind a byte, on its line.
    pub(super) fn comment_behind(&self, at: usize) -> Option<usize> {
        let rest = &self.text()[at..lines::end(self.text(), at)];
        let start = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let comments = &self.tree().comments;
        let found = comments.binary_search_by_key(&start, |comment| comment.start).ok()?;
        Some(comments[found].end)
    }

    /// Inserts lines before the child of an index, or behind the last.
    pub(super) fn insert_lines(&mut self, id: Id, index: usize, new: &[String]) {
        let text = self.text();
        let children = self.tree().children(id);
        let Some(child) = children.get(index) else {
            let end = self.segment(id, children.len() - 1).end;
            self.insert_behind(end, new);
            return;
        };
        let head = self.segment(id, index).head;
        let line = lines::start(text, head);
        if lines::is_first(text, child.start) {
            let line_break = match line.checked_sub(1) {
                Some(before) if line > lines::text_start(text) => break_of(text, before),
                _ => lines::new_break(text, line),
            };
            let new: String = new.iter().map(|new| format!("{new}{line_break}")).collect();
            self.change(line..line, new);
        } else {
            // The first of them goes behind the dash.
            let line_break = lines::new_break(text, child.start);
            let column = lines::column(text, child.start);
            let joined = new.join(line_break);
            let joined = joined.trim_start_matches(' ');
            let new = format!("{joined}{line_break}{:column$}", "");
            self.change(child.start..child.start, new);
        }
    }

    /// Inserts lines behind the line of a byte.
    fn insert_behind(&mut self, at: usize, new: &[String]) {
        let text = self.text();
        let next = lines::next(text, at);
        let line_break = lines::new_break(text, at);
        let joined = new.join(line_break);
        let new = if lines::line_break(text, at).is_empty() {
            format!("{line_break}{joined}")
        } else {
            format!("{joined}{line_break}")
        };
        self.change(next..next, new);
    }

    /// Puts lines in the place of children.
    pub(super) fn exchange_lines(&mut self, id: Id, run: Range<usize>, new: &[String]) {
        let start = self.segment(id, run.start).head;
        let end = self.segment(id, run.end - 1).end;
        let joined = new.join(lines::new_break(self.text(), start));
        self.change(start..end, joined.trim_start_matches(' '));
    }

    /// Removes children.
    pub(super) fn remove_block(&mut self, id: Id, run: Range<usize>) {
        let text = self.text();
        let children = self.tree().children(id);
        let first = &children[run.start];
        let head = self.segment(id, run.start).head;
        let end = self.segment(id, run.end - 1).end;
        let is_line = lines::is_first(text, first.start);
        if run.len() == children.len() {
            let empty =
                if matches!(self.tree().nodes[id].kind, Kind::List(_)) { "[]" } else { "{}" };
            let node = &self.tree().nodes[id];
            let is_beside = node.parent.is_none()
                || lines::start(text, self.base(id)) == lines::start(text, first.start);
            if is_beside {
                self.change(head..end, empty);
            } else {
                let base = self.base(id);
                self.change(base..base, format!(" {empty}"));
                self.remove_lines(head, end);
            }
        } else if is_line {
            self.remove_lines(head, end);
        } else {
            // What follows goes behind the dash.
            let next = lines::skip_blank(text, lines::next(text, end));
            let rest = &text[next..];
            let next = next + rest.len() - rest.trim_start_matches(' ').len();
            self.change(first.start..next, "");
        }
    }

    /// Removes the lines from one byte to another, and blank lines behind them
    /// that would meet those before.
    pub(super) fn remove_lines(&mut self, head: usize, end: usize) {
        let text = self.text();
        let start = lines::start(text, head);
        let mut next = lines::next(text, end);
        if lines::line_break(text, end).is_empty() {
            // The text ends without a line break, and still does, unless a block
            // scalar needs it.
            let before = &text[..start];
            let kept = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
            let blank = lines::start(text, start.saturating_sub(1));
            let has_blanks = lines::is_blank(text, blank)
                && !text[blank..start].trim_matches(['\r', '\n']).is_empty();
            let start = match (self.keeps_break, has_blanks) {
                (false, _) => kept,
                (true, true) => lines::without_break(text, 0, start),
                (true, false) => start,
            };
            self.change(start..text.len(), "");
            return;
        }
        let has_before = start > lines::text_start(text);
        let above = if has_before { lines::start(text, start - 1) } else { start };
        let would_meet = has_before && lines::is_blank(text, above);
        if would_meet || self.is_kept_until(start) {
            next = lines::skip_blank(text, next);
        }
        self.change(start..next, "");
    }

    /// Whether a block scalar ends before a line that would take blank lines
    /// for its own.
    fn is_kept_until(&self, line: usize) -> bool {
        let text = self.text();
        let nodes = &self.tree().nodes;
        // Nodes are in the order of the text.
        let before = nodes.partition_point(|node| node.start() < line);
        nodes[..before].iter().rev().take(8).any(|node| match &node.kind {
            Kind::Scalar(scalar) => match &scalar.style {
                Style::Block { keeps: true, header, content, .. } => {
                    let end = if content.is_empty() { header.end } else { content.end };
                    lines::next(text, end) == line
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Lets children change places, each with its comments. Blank lines and
    /// other comments between them stay where they are.
    pub(super) fn move_block(&mut self, id: Id, from: usize, to: usize) {
        let (low, high) = (from.min(to), from.max(to));
        let mut order: Vec<usize> = (low..=high).collect();
        let moved = order.remove(from - low);
        order.insert(to - low, moved);
        for (slot, source) in (low..=high).zip(order) {
            if slot != source {
                let (slot, source) = (self.segment(id, slot), self.segment(id, source));
                let text = self.text()[source.head..source.end].to_owned();
                self.change(slot.head..slot.end, text);
            }
        }
    }

    /// Repeats the text of a child.
    pub(super) fn copy_block(&mut self, id: Id, from: usize, to: usize) {
        let text = self.text();
        let segment = self.segment(id, from);
        let column = lines::column(text, segment.head);
        let copied = format!("{:column$}{}", "", &text[segment.head..segment.end]);
        self.insert_lines(id, to, &[copied]);
    }

    /// Where the value of a node may begin: behind its indicator, anchor and tag.
    pub(super) fn base(&self, id: Id) -> usize {
        let node = &self.tree().nodes[id];
        if node.has_properties() {
            return node.properties.end;
        }
        let Some((parent, index)) = node.parent else { return node.span.start };
        let child = &self.tree().children(parent)[index];
        let key = child.key.map_or(child.start, |key| self.tree().nodes[key].span.end);
        child.indicator.map_or(key, |at| at + 1)
    }

    /// Puts written text in the place of a node that stands in no brackets.
    pub(super) fn put(&mut self, id: Id, written: Written) {
        let text = self.text();
        let node = &self.tree().nodes[id];
        let base = self.base(id);
        if node.is_empty() && node.parent.is_none() && !node.has_properties() {
            self.put_first(written);
            return;
        }
        let (inline, lines) = self.occupied(id, base, &written);
        if inline.is_empty() {
            if !written.first.is_empty() {
                self.change(inline.clone(), format!(" {}", written.first));
            }
        } else if written.first.is_empty() {
            let before = &text[base.min(inline.start)..inline.start];
            let gap = before.len() - before.trim_end_matches([' ', '\t']).len();
            self.change(inline.start - gap..inline.end, "");
        } else {
            self.change(inline.clone(), written.first.clone());
        }
        match lines {
            Some(lines) if written.rest.is_empty() => self.remove_lines(lines.start, lines.end),
            Some(lines) => {
                let joined = written.rest.join(lines::new_break(text, lines.start));
                self.change(lines, joined);
            }
            None if written.rest.is_empty() => {}
            None => self.insert_behind(inline.end, &written.rest),
        }
    }

    /// The bytes of a node on the line of its indicator, and its further lines
    /// as a whole.
    fn occupied(
        &self,
        id: Id,
        base: usize,
        written: &Written,
    ) -> (Range<usize>, Option<Range<usize>>) {
        let text = self.text();
        let node = &self.tree().nodes[id];
        if node.is_empty() {
            return (base..base, None);
        }
        if let Kind::Scalar(scalar) = &node.kind
            && let Style::Block { header, content, .. } = &scalar.style
        {
            let content = (!content.is_empty()).then(|| content.clone());
            return (header.clone(), content);
        }
        let is_beside = lines::start(text, base) == lines::start(text, node.span.start);
        if node.is_block_collection() {
            let children = self.tree().children(id).len();
            let head = self.segment(id, 0).head;
            let end = self.segment(id, children - 1).end;
            if node.parent.is_some() && !is_beside {
                return (base..base, Some(lines::start(text, head)..end));
            }
            let is_line = lines::end(text, head) >= end;
            return (head..if is_line { node.span.end } else { end }, None);
        }
        let is_alone = !is_beside
            && node.parent.is_some()
            && lines::is_first(text, node.span.start)
            && text[node.span.end..lines::end(text, node.span.end)].trim().is_empty();
        if is_alone && written.first.is_empty() {
            let start = lines::start(text, node.span.start);
            return (base..base, Some(start..node.span.end));
        }
        (node.span.clone(), None)
    }

    /// Puts text in a document that has none, before the mark that ends it.
    fn put_first(&mut self, written: Written) {
        let text = self.text();
        let at = self.tree().end;
        let line_break = lines::new_break(text, at);
        let mut lines = written.rest;
        if !written.first.is_empty() {
            lines.insert(0, written.first);
        }
        let before = if lines::start(text, at) == at { "" } else { line_break };
        self.change(at..at, format!("{before}{}{line_break}", lines.join(line_break)));
    }
}

/// How the line ends whose last byte this is.
fn break_of(text: &str, last: usize) -> &'static str {
    if text[..=last].ends_with("\r\n") { "\r\n" } else { "\n" }
}
