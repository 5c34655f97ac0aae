//! Writes members and items in the layout of their neighbours.

use serde_json::Value;

use super::parse::{Kind, Member, Node};
use crate::laws::Plan;

/// How a new member is laid out.
pub(super) struct Layout {
    /// Blanks before the members of the map or list; none if they share a line.
    indent: Option<String>,
}

impl Layout {
    /// The layout of what begins at a place in a map or list.
    pub(super) fn at(text: &str, container: &Node, start: usize) -> Self {
        let inner = &text[container.span.start + 1..start];
        let indent = inner.contains('\n').then(|| indent_of_line(text, start).to_owned());
        Self { indent }
    }
}

/// The blanks that the line of a place begins with.
fn indent_of_line(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

pub(super) struct Writer<'t> {
    text: &'t str,
    /// One step of indentation.
    unit: String,
    end: &'static str,
    /// Between a key and its value.
    colon: String,
    /// Between members that share a line.
    comma: &'static str,
    /// The document has one member per line.
    has_lines: bool,
}

impl<'t> Writer<'t> {
    pub(super) fn new(text: &'t str, root: &Node) -> Self {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = match &root.kind {
            Kind::Object(members) => members.first(),
            _ => None,
        };
        let indent = first.and_then(|member| Layout::at(text, root, member.start).indent);
        let colon = first.map(|member| &text[member.key_stop..member.value.span.start]);
        let is_plain = |colon: &&str| colon.trim_matches([' ', '\t']) == ":";
        let colon = colon.filter(is_plain).unwrap_or(": ").to_owned();
        let is_compact = colon == ":" && first.is_some();
        Self {
            text,
            unit: indent.clone().filter(|indent| !indent.is_empty()).unwrap_or("  ".to_owned()),
            end,
            colon,
            comma: if is_compact { "," } else { ", " },
            has_lines: indent.is_some() || first.is_none(),
        }
    }

    /// A value as it is written with this layout around it.
    pub(super) fn written(&self, value: &Value, layout: &Layout) -> String {
        let mut made = String::new();
        self.write(&mut made, value, layout.indent.as_deref());
        made
    }

    /// Maps and lists of maps take several lines where their neighbours do.
    fn write(&self, made: &mut String, value: &Value, indent: Option<&str>) {
        let is_deep = |value: &Value| matches!(value, Value::Object(_) | Value::Array(_));
        match value {
            Value::Object(map) if !map.is_empty() => {
                let items = map.iter().map(|(key, value)| (Some(key), value));
                self.write_all(made, ['{', '}'], items, indent);
            }
            Value::Array(list) if !list.is_empty() => {
                let indent = indent.filter(|_| list.iter().any(is_deep));
                self.write_all(made, ['[', ']'], list.iter().map(|item| (None, item)), indent);
            }
            value => made.push_str(&value.to_string()),
        }
    }

    fn write_all<'v>(
        &self,
        made: &mut String,
        brackets: [char; 2],
        items: impl Iterator<Item = (Option<&'v String>, &'v Value)>,
        indent: Option<&str>,
    ) {
        let inner = indent.map(|indent| format!("{indent}{}", self.unit));
        made.push(brackets[0]);
        for (index, (key, value)) in items.enumerate() {
            if index > 0 {
                made.push_str(if inner.is_some() { "," } else { self.comma });
            }
            if let Some(inner) = &inner {
                made.push_str(self.end);
                made.push_str(inner);
            }
            if let Some(key) = key {
                made.push_str(&Value::from(key.as_str()).to_string());
                made.push_str(&self.colon);
            }
            self.write(made, value, inner.as_deref());
        }
        if let Some(indent) = indent {
            made.push_str(self.end);
            made.push_str(indent);
        }
        made.push(brackets[1]);
    }

    /// Adds a member behind the last one.
    pub(super) fn add_member(&self, plan: &mut Plan, map: &Node, key: &str, value: &Value) {
        let Kind::Object(members) = &map.kind else { return };
        let last = members.last().map(|member| (member.start, member.value.span.end));
        self.insert(plan, map, last, Some(key), value);
    }

    /// Adds an item behind the last one.
    pub(super) fn add_item(&self, plan: &mut Plan, array: &Node, value: &Value) {
        let Kind::Array(items) = &array.kind else { return };
        let last = items.last().map(|item| (item.span.start, item.span.end));
        self.insert(plan, array, last, None, value);
    }

    fn insert(
        &self,
        plan: &mut Plan,
        container: &Node,
        last: Option<(usize, usize)>,
        key: Option<&str>,
        value: &Value,
    ) {
        let layout = match last {
            Some((start, _)) => Layout::at(self.text, container, start),
            None if self.has_lines && key.is_some() => {
                let above = indent_of_line(self.text, container.span.start);
                Layout { indent: Some(format!("{above}{}", self.unit)) }
            }
            None => Layout { indent: None },
        };
        let mut item = String::new();
        if let Some(key) = key {
            item = Value::from(key).to_string() + &self.colon;
        }
        item += &self.written(value, &layout);
        match last {
            Some((_, stop)) => self.insert_behind(plan, stop, &layout, &item),
            None => self.insert_first(plan, container, &layout, &item),
        }
    }

    fn insert_behind(&self, plan: &mut Plan, stop: usize, layout: &Layout, item: &str) {
        let comma = comma_behind(self.text, stop);
        let own = if comma.is_some() { "," } else { "" };
        let at = comma.map_or(stop, |comma| comma + 1);
        match &layout.indent {
            None => {
                let blank = self.comma.trim_start_matches(',');
                let first = if comma.is_some() { "" } else { "," };
                plan.insert(at, format!("{first}{blank}{item}{own}"));
            }
            Some(indent) => {
                let line = behind_comments(self.text, at);
                let new = format!("{}{indent}{item}{own}", self.end);
                if comma.is_some() || line == at {
                    let first = if comma.is_some() { "" } else { "," };
                    plan.insert(line, format!("{first}{new}"));
                } else {
                    plan.insert(at, ",");
                    plan.insert(line, new);
                }
            }
        }
    }

    /// Puts an item into a map or list that is empty but for comments.
    fn insert_first(&self, plan: &mut Plan, container: &Node, layout: &Layout, item: &str) {
        let (start, stop) = (container.span.start + 1, container.span.end - 1);
        let inner = &self.text[start..stop];
        let has_comment = !inner.trim().is_empty();
        match &layout.indent {
            Some(indent) if has_comment || inner.contains('\n') => {
                let at = start + inner.trim_end().len();
                plan.insert(at, format!("{}{indent}{item}", self.end));
                // What closes it gets a line of its own.
                if !self.text[at..stop].contains('\n') {
                    let above = indent_of_line(self.text, container.span.start);
                    plan.insert(stop, format!("{}{above}", self.end));
                }
            }
            Some(indent) => {
                let above = indent_of_line(self.text, container.span.start);
                plan.replace(start..stop, format!("{0}{indent}{item}{0}{above}", self.end));
            }
            None if has_comment => plan.insert(stop, item),
            None => plan.replace(start..stop, item),
        }
    }
}

/// Where the comma behind an item is, comments before it passed.
fn comma_behind(text: &str, stop: usize) -> Option<usize> {
    let at = pass(text, stop, true);
    text[at..].starts_with(',').then_some(at)
}

/// Behind the comments that end the line of a place. The place itself, if
/// something else follows in the line.
fn behind_comments(text: &str, at: usize) -> usize {
    let stop = pass(text, at, false);
    let line = &text[stop..];
    let is_end = line.starts_with('\n') || line.starts_with("\r\n") || line.is_empty();
    if is_end { at + text[at..stop].trim_end_matches([' ', '\t']).len() } else { at }
}

/// Passes blanks and comments, line ends too if `lines`.
fn pass(text: &str, from: usize, lines: bool) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            let length = comment.find('\n').unwrap_or(comment.len());
            at += 2 + comment[..length].trim_end_matches('\r').len();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            match comment.find("*/") {
                Some(stop) if lines || !comment[..stop].contains('\n') => at += stop + 4,
                _ => return at,
            }
        } else if rest.starts_with([' ', '\t']) || lines && rest.starts_with(['\n', '\r']) {
            at += 1;
        } else {
            return at;
        }
    }
}

/// Removes a member with its comma, and its lines if nothing else is in them.
pub(super) fn remove(plan: &mut Plan, text: &str, members: &[Member], index: usize) {
    let member = &members[index];
    let (start, value_stop) = (member.start, member.value.span.end);
    let comma = comma_behind(text, value_stop);
    let stop = comma.map_or(value_stop, |comma| comma + 1);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let owns_start = line_start > 0 && text[line_start..start].trim().is_empty();
    let behind = pass(text, stop, false);
    let line_stop = ["\r\n", "\n"]
        .iter()
        .find_map(|end| text[behind..].starts_with(end).then_some(behind + end.len()));
    let previous = index.checked_sub(1).map(|index| members[index].value.span.end);
    let comma_before =
        previous.and_then(|stop| comma_behind(text, stop)).filter(|_| comma.is_none());
    match line_stop.filter(|_| owns_start) {
        Some(line_stop) => {
            plan.remove(line_start..line_stop);
            if let Some(at) = comma_before {
                plan.remove(at..at + 1);
            }
        }
        None => {
            // In a line with others, the blanks before the next one go too.
            let rest = &text[stop..];
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let is_followed = comma.is_some() && index + 1 < members.len();
            plan.remove(start..if is_followed { stop + blanks } else { stop });
            if let Some(at) = comma_before {
                let is_blank = text[at + 1..start].trim().is_empty();
                plan.remove(at..if is_blank { start } else { at + 1 });
            }
        }
    }
}
