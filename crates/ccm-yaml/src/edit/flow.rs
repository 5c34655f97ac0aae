//! Changes inside brackets and braces (flow collections).

use std::ops::Range;

use super::editor::Editor;
use super::lines;
use super::tree::{Id, Kind};

impl Editor<'_> {
    /// Whether every child has lines of its own.
    fn is_by_lines(&self, id: Id) -> bool {
        let text = self.text();
        let tree = self.tree();
        let close = tree.nodes[id].span.end - 1;
        let children = tree.children(id);
        !children.is_empty()
            && lines::is_first(text, close)
            && children.iter().all(|child| {
                let end = tree.child_end(child);
                let behind = child.comma.map_or(end, |comma| comma + 1);
                let is_comma_beside =
                    child.comma.is_none_or(|comma| text[end..comma].trim_matches(' ').is_empty());
                let after = self.comment_behind(behind).unwrap_or(behind);
                lines::is_first(text, child.start)
                    && is_comma_beside
                    && text[after..lines::end(text, after)].trim_matches([' ', '\t']).is_empty()
            })
    }

    /// Inserts children that are written already.
    pub(super) fn insert_flow(&mut self, id: Id, index: usize, parts: &[String]) {
        let parts: Vec<_> = parts.iter().map(|part| (part.clone(), String::new())).collect();
        self.insert_parts(id, index, &parts);
    }

    /// Inserts children: what stands before the comma, and what behind it.
    fn insert_parts(&mut self, id: Id, index: usize, parts: &[(String, String)]) {
        let text = self.text();
        let tree = self.tree();
        let span = tree.nodes[id].span.clone();
        let children = tree.children(id);
        let joined = || {
            let parts: Vec<_> = parts.iter().map(|(part, _)| part.as_str()).collect();
            parts.join(", ")
        };
        let Some(last) = children.last() else {
            let inner = span.start + 1..span.end - 1;
            if text[inner.clone()].trim_matches(' ').is_empty() {
                let is_map = matches!(tree.nodes[id].kind, Kind::Map(_));
                let has_blanks = !inner.is_empty() || (is_map && self.manner(id).has_blanks);
                let blank = if has_blanks { " " } else { "" };
                self.change(inner, format!("{blank}{}{blank}", joined()));
            } else {
                self.change(inner.start..inner.start, joined());
            }
            return;
        };
        let last_end = tree.child_end(last);
        let is_by_lines = self.is_by_lines(id);
        if let Some(child) = children.get(index) {
            if is_by_lines {
                let line = lines::start(text, self.segment(id, index).head);
                let indent = &text[lines::start(text, child.start)..child.start];
                let line_break = lines::new_break(text, line);
                let line_of = |(part, behind): &(String, String)| {
                    format!("{indent}{part},{behind}{line_break}")
                };
                self.change(line..line, parts.iter().map(line_of).collect::<String>());
            } else {
                self.change(child.start..child.start, format!("{}, ", joined()));
            }
        } else if is_by_lines {
            let end = self.segment(id, children.len() - 1).end.max(last.comma.unwrap_or(0));
            let next = lines::next(text, end);
            let line_break = lines::new_break(text, end);
            let indent = &text[lines::start(text, last.start)..last.start];
            if last.comma.is_none() {
                self.change(last_end..last_end, ",");
            }
            let line_of = |(at, (part, behind)): (usize, &(String, String))| {
                let has_comma = last.comma.is_some() || at + 1 < parts.len();
                let comma = if has_comma { "," } else { "" };
                format!("{indent}{part}{comma}{behind}{line_break}")
            };
            self.change(next..next, parts.iter().enumerate().map(line_of).collect::<String>());
        } else if let Some(comma) = last.comma {
            self.change(comma + 1..comma + 1, format!(" {},", joined()));
        } else {
            self.change(last_end..last_end, format!(", {}", joined()));
        }
    }

    /// Removes children.
    pub(super) fn remove_flow(&mut self, id: Id, run: Range<usize>) {
        let text = self.text();
        let tree = self.tree();
        let children = tree.children(id);
        let span = tree.nodes[id].span.clone();
        let (first, last) = (&children[run.start], &children[run.end - 1]);
        let is_by_lines = self.is_by_lines(id);
        let head = self.segment(id, run.start).head;
        let last_end = tree.child_end(last);
        let end = self.segment(id, run.end - 1).end.max(last.comma.map_or(0, |comma| comma + 1));
        let end = end.max(last_end);
        let before = run.start.checked_sub(1).map(|index| &children[index]);
        if run.len() == children.len() {
            let inner = span.start + 1..span.end - 1;
            let is_gone = |at: usize| (head..end).contains(&at);
            let mut comments =
                tree.comments.iter().filter(|comment| inner.contains(&comment.start));
            if comments.all(|comment| is_gone(comment.start)) {
                self.change(inner, "");
            } else if is_by_lines {
                self.remove_lines(head, end);
            } else {
                self.change(first.start..end, "");
            }
        } else if is_by_lines {
            self.remove_lines(head, end);
            if let Some(comma) = before.and_then(|before| before.comma)
                && run.end == children.len()
                && last.comma.is_none()
            {
                self.change(comma..comma + 1, "");
            }
        } else if let Some(next) = children.get(run.end) {
            let is_same_line = lines::start(text, end) == lines::start(text, next.start);
            // A comment above the next one belongs to that.
            let end = if is_same_line { next.start } else { end };
            self.change(first.start..end, "");
        } else if let Some(before) = before {
            let comma = before.comma.unwrap_or(first.start);
            let is_bare =
                text[comma..first.start].trim_matches([',', ' ', '\t', '\r', '\n']).is_empty();
            match (last.comma, is_bare) {
                (Some(_), true) => self.change(comma + 1..end, ""),
                (Some(_), false) => self.change(first.start..end, ""),
                (None, true) => self.change(comma..end, ""),
                (None, false) => {
                    self.change(comma..comma + 1, "");
                    self.change(first.start..end, "");
                }
            }
        }
    }

    /// Lets children change places; commas stay.
    pub(super) fn move_flow(&mut self, id: Id, from: usize, to: usize) {
        let (low, high) = (from.min(to), from.max(to));
        let mut order: Vec<usize> = (low..=high).collect();
        let moved = order.remove(from - low);
        order.insert(to - low, moved);
        let is_by_lines = self.is_by_lines(id);
        for (slot, source) in (low..=high).zip(order) {
            if slot == source {
                continue;
            }
            if is_by_lines {
                let (before, behind) = self.line_parts(id, source);
                let segment = self.segment(id, slot);
                let comma = self.tree().children(id)[slot].comma;
                let end = segment.end.max(comma.map_or(0, |comma| comma + 1));
                let comma = if comma.is_some() { "," } else { "" };
                self.change(segment.head..end, format!("{before}{comma}{behind}"));
            } else {
                let children = self.tree().children(id);
                let (slot, source) = (&children[slot], &children[source]);
                let new = self.text()[source.start..self.tree().child_end(source)].to_owned();
                self.change(slot.start..self.tree().child_end(slot), new);
            }
        }
    }

    /// A child on lines of its own: what stands before its comma, and behind it.
    fn line_parts(&self, id: Id, index: usize) -> (String, String) {
        let text = self.text();
        let child = &self.tree().children(id)[index];
        let segment = self.segment(id, index);
        let end = self.tree().child_end(child);
        let behind = child.comma.map_or(end, |comma| comma + 1);
        let before = text[segment.head..end].to_owned();
        (before, text[behind..segment.end.max(behind)].to_owned())
    }

    /// Repeats the text of a child.
    pub(super) fn copy_flow(&mut self, id: Id, from: usize, to: usize) {
        if self.is_by_lines(id) {
            let parts = self.line_parts(id, from);
            self.insert_parts(id, to, &[parts]);
        } else {
            let child = &self.tree().children(id)[from];
            let text = self.text()[child.start..self.tree().child_end(child)].to_owned();
            self.insert_parts(id, to, &[(text, String::new())]);
        }
    }

    /// Puts text in the place of a node in brackets or braces.
    pub(super) fn put_in_flow(&mut self, id: Id, new: String) {
        let node = &self.tree().nodes[id];
        if !node.is_empty() {
            self.change(node.span.clone(), new);
            return;
        }
        let base = self.base(id);
        let has_colon = node.parent.is_some_and(|(parent, index)| {
            let child = &self.tree().children(parent)[index];
            child.indicator.is_some() || child.key.is_none()
        });
        let has_colon = has_colon || node.has_properties();
        let colon = if has_colon { "" } else { ":" };
        // What follows must not be taken for a part of it.
        let is_close = !self.text()[base..].starts_with([',', '}', ']', ' ', '\t', '\r', '\n']);
        let blank = if is_close { " " } else { "" };
        self.change(base..base, format!("{colon} {new}{blank}"));
    }
}
