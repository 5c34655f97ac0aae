//! Random documents as text, in every style that YAML has, with comments whose
//! owners are known.

use serde_json::Value;

use crate::model::{Kind, Node, key, value};
use crate::random::Random;

/// A document, its text, and who owns its comments.
pub(crate) struct Written {
    pub(crate) root: Node,
    pub(crate) text: String,
    pub(crate) comments: Vec<Comment>,
}

/// A comment, which is `#c` and its index.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    /// The node whose entry it belongs to; nobody's otherwise.
    pub(crate) owner: Option<usize>,
    /// The collections that it stands in, between their children or before them.
    pub(crate) inside: Vec<usize>,
}

pub(crate) struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    comments: Vec<Comment>,
    line_break: &'static str,
    step: usize,
    is_flat: bool,
    has_comments: bool,
    anchors: Vec<(usize, bool)>,
    anchor_count: usize,
    nodes: usize,
    stack: Vec<usize>,
}

pub(crate) fn document(random: &mut Random) -> Written {
    let line_break = if random.once_in(6) { "\r\n" } else { "\n" };
    let step = *random.pick(&[2, 2, 2, 4, 3, 1]);
    let is_flat = random.once_in(3);
    let has_comments = !random.once_in(3);
    let mut writer = Writer {
        random,
        out: String::new(),
        comments: Vec::new(),
        line_break,
        step,
        is_flat,
        has_comments,
        anchors: Vec::new(),
        anchor_count: 0,
        nodes: 1,
        stack: Vec::new(),
    };
    writer.prologue();
    let root = writer.root();
    let Writer { out: text, comments, .. } = writer;
    Written { root, text, comments }
}

impl Writer<'_> {
    fn prologue(&mut self) {
        if self.random.once_in(15) {
            self.out.push('\u{feff}');
        }
        if self.random.once_in(12) {
            if self.random.once_in(3) {
                self.push("%YAML 1.2");
                self.end_line();
            }
            self.push("---");
            if self.random.once_in(3) {
                self.push(" ");
                self.comment(None);
            }
            self.end_line();
        }
        while self.has_comments && self.random.once_in(3) {
            self.comment(None);
            self.end_line();
            self.blank_lines();
        }
    }

    fn root(&mut self) -> Node {
        let root = if self.random.once_in(60) {
            let nothing = Node { id: 0, anchor: None, kind: Kind::Scalar(Value::Null) };
            return nothing;
        } else if self.random.once_in(12) {
            let node = self.flow(0, 4);
            self.trailing(Some(0));
            self.end_line();
            node
        } else if self.random.once_in(2) {
            self.block_map(0, 4, 0, false)
        } else {
            self.block_list(0, 4, 0, false)
        };
        if self.random.once_in(8) {
            while self.has_comments && self.random.once_in(2) {
                self.blank_lines();
                self.comment(None);
                self.end_line();
            }
        }
        if self.random.once_in(25) {
            self.push("...");
            self.end_line();
        } else if self.random.once_in(8) {
            let end = self.out.trim_end_matches(['\r', '\n']).len();
            self.out.truncate(end);
        }
        root
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn push_one(&mut self, of: &[&str]) {
        let text = *self.random.pick(of);
        self.push(text);
    }

    fn end_line(&mut self) {
        self.out.push_str(self.line_break);
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    fn id(&mut self) -> usize {
        self.nodes += 1;
        self.nodes
    }

    fn comment(&mut self, owner: Option<usize>) {
        let text = format!("#c{};", self.comments.len());
        self.push(&text);
        if self.random.once_in(4) {
            self.push(" - said: \"it's\" {x}");
        }
        self.comments.push(Comment { owner, inside: self.stack.clone() });
    }

    fn blank_lines(&mut self) {
        while self.random.once_in(5) {
            if self.random.once_in(6) {
                self.push_one(&["  ", "\t"]);
            }
            self.end_line();
        }
    }

    /// Perhaps a comment behind what was written.
    fn trailing(&mut self, owner: Option<usize>) {
        if self.has_comments && self.random.once_in(5) {
            self.push_one(&[" ", "  ", "   ", "\t"]);
            self.comment(owner);
        } else if self.random.once_in(25) {
            self.push_one(&[" ", "\t"]);
        }
    }

    /// What stands above an entry: blank lines, comments of nobody, its own.
    fn above(&mut self, owner: usize, column: usize, is_document: bool) {
        if self.random.once_in(4) {
            self.blank_lines();
        }
        if self.has_comments && self.random.once_in(8) {
            self.indent(column);
            self.comment(None);
            self.end_line();
            self.end_line();
        }
        while self.has_comments && self.random.once_in(5) {
            self.indent(column);
            self.comment((!is_document).then_some(owner));
            self.end_line();
        }
    }

    fn anchor(&mut self) -> Option<usize> {
        self.random.once_in(14).then(|| {
            let anchor = self.anchor_count;
            self.anchor_count += 1;
            let text = format!("&n{anchor} ");
            self.push(&text);
            anchor
        })
    }

    /// From here on aliases may stand for a node.
    fn define(&mut self, node: Node) -> Node {
        if let Some(anchor) = node.anchor {
            self.anchors.push((anchor, matches!(node.kind, Kind::Map(_))));
        }
        node
    }

    fn alias(&mut self, id: usize) -> Option<Node> {
        if self.anchors.is_empty() || !self.random.once_in(6) {
            return None;
        }
        let (anchor, _) = *self.random.pick(&self.anchors);
        self.push(&format!("*n{anchor}"));
        Some(Node { id, anchor: None, kind: Kind::Alias(anchor) })
    }

    /// Keys that are not there yet, with a merge key at times.
    fn keys(&mut self, count: usize) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..count {
            let new = key(self.random);
            if !keys.contains(&new) {
                keys.push(new);
            }
        }
        if self.anchors.iter().any(|(_, is_map)| *is_map) && self.random.once_in(4) {
            let at = self.random.below(keys.len() + 1);
            keys.insert(at, "<<".to_owned());
        }
        keys
    }

    fn merge(&mut self, id: usize) -> Node {
        let maps: Vec<_> = self.anchors.iter().filter(|(_, is_map)| *is_map).collect();
        let (anchor, _) = **self.random.pick(&maps);
        self.push(&format!("*n{anchor}"));
        Node { id, anchor: None, kind: Kind::Alias(anchor) }
    }

    fn write_key(&mut self, key: &str, in_flow: bool) {
        let is_simple =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "/_".contains(c));
        let text = match self.random.below(4) {
            _ if key == "<<" => key.to_owned(),
            0 if !key.contains('\n') => format!("'{}'", key.replace('\'', "''")),
            1 => serde_json::to_string(key).unwrap(),
            _ if is_simple || (!in_flow && key == "k#1") => key.to_owned(),
            _ => serde_json::to_string(key).unwrap(),
        };
        self.push(&text);
    }

    /// A map in lines. `is_placed` says that the first key goes behind a dash.
    fn block_map(&mut self, id: usize, depth: usize, column: usize, is_placed: bool) -> Node {
        self.stack.push(id);
        let mut entries = Vec::new();
        let count = 1 + self.random.below(4);
        for (index, key) in self.keys(count).into_iter().enumerate() {
            let child = self.id();
            if index > 0 || !is_placed {
                self.above(child, column, column == 0 && index == 0 && self.stack.len() == 1);
                self.indent(column);
            }
            let is_explicit = key != "<<" && self.random.once_in(60);
            if is_explicit {
                self.push("? ");
            }
            self.write_key(&key, false);
            if is_explicit {
                self.end_line();
                self.indent(column);
            } else if self.random.once_in(30) {
                self.push(" ");
            }
            self.push(":");
            let value = if key == "<<" {
                self.push(" ");
                let value = self.merge(child);
                self.trailing(Some(child));
                self.end_line();
                value
            } else {
                self.entry_value(child, depth, column, false)
            };
            entries.push((key, value));
        }
        self.stack.pop();
        Node { id, anchor: None, kind: Kind::Map(entries) }
    }

    fn block_list(&mut self, id: usize, depth: usize, column: usize, is_placed: bool) -> Node {
        self.stack.push(id);
        let mut items = Vec::new();
        for index in 0..=self.random.below(4) {
            let child = self.id();
            if index > 0 || !is_placed {
                self.above(child, column, column == 0 && index == 0 && self.stack.len() == 1);
                self.indent(column);
            }
            self.push("-");
            items.push(self.entry_value(child, depth, column, true));
        }
        self.stack.pop();
        Node { id, anchor: None, kind: Kind::List(items) }
    }

    /// What stands behind a colon or dash, up to the end of its last line.
    fn entry_value(&mut self, id: usize, depth: usize, column: usize, is_item: bool) -> Node {
        let choice = self.random.below(if depth == 0 { 7 } else { 11 });
        if choice >= 7 && self.random.once_in(3) && is_item {
            // A map or list behind the dash.
            let gap = if self.random.once_in(8) { 3 } else { 1 };
            self.indent(gap);
            let column = column + 1 + gap;
            return if choice >= 9 {
                self.block_list(id, depth - 1, column, true)
            } else {
                self.block_map(id, depth - 1, column, true)
            };
        }
        if choice >= 7 {
            let is_list = choice >= 9;
            let mut anchor = None;
            if self.random.once_in(14) {
                self.push(" ");
                anchor = self.anchor();
                let end = self.out.trim_end_matches(' ').len();
                self.out.truncate(end);
            }
            self.trailing(Some(id));
            self.end_line();
            let is_flat = is_list && !is_item && self.is_flat;
            let step = if self.random.once_in(10) { 1 + self.random.below(5) } else { self.step };
            let below = if is_flat { column } else { column + step };
            let mut node = if is_list {
                self.block_list(id, depth - 1, below, false)
            } else {
                self.block_map(id, depth - 1, below, false)
            };
            node.anchor = anchor;
            return self.define(node);
        }
        if choice == 0 && self.random.once_in(2) {
            self.trailing(Some(id));
            self.end_line();
            return Node { id, anchor: None, kind: Kind::Scalar(Value::Null) };
        }
        self.push_one(&[" ", " ", " ", "  "]);
        let node = match choice {
            1 if depth > 0 => self.flow(id, depth.min(2)),
            2 => match self.alias(id) {
                Some(alias) => alias,
                None => self.scalar(id, column, false),
            },
            3 | 4 => return self.block_scalar(id, column),
            _ => self.scalar(id, column, false),
        };
        self.trailing(Some(id));
        self.end_line();
        node
    }

    fn block_scalar(&mut self, id: usize, column: usize) -> Node {
        let anchor = self.anchor();
        let below = column + self.step;
        let is_folded = self.random.once_in(5);
        let ends = self.random.below(4);
        let indicator = self.random.once_in(8);
        let mut header = if is_folded { ">" } else { "|" }.to_owned();
        if indicator {
            header.push_str(&self.step.to_string());
        }
        header.push_str(["", "-", "+", ""][ends]);
        self.push(&header);
        self.trailing(Some(id));
        self.end_line();
        let count = 1 + self.random.below(3);
        let mut text = String::new();
        for index in 0..count {
            let line =
                *self.random.pick(&["text", "# no comment", "key: value", "- item", "", "a\tb"]);
            let line =
                if line.is_empty() && (index == 0 || index + 1 == count) { "x" } else { line };
            if !line.is_empty() {
                self.indent(below);
                self.push(line);
            }
            self.end_line();
            text.push_str(line);
            text.push('\n');
        }
        if is_folded {
            text = folded(&text);
        }
        let blank = self.random.below(3);
        for _ in 0..blank {
            self.end_line();
        }
        match ends {
            1 => text.truncate(text.trim_end_matches('\n').len()),
            2 => text.extend(std::iter::repeat_n('\n', blank)),
            _ => {}
        }
        self.define(Node { id, anchor, kind: Kind::Scalar(text.into()) })
    }

    fn scalar(&mut self, id: usize, column: usize, in_flow: bool) -> Node {
        let anchor = self.anchor();
        let value = value(self.random, 0);
        let text = match &value {
            Value::String(text) => {
                let is_word = !text.is_empty() && text.chars().all(char::is_alphabetic);
                let is_plain = is_word && !matches!(&**text, "true" | "null");
                match self.random.below(4) {
                    0 if !text.contains(|c: char| c.is_control()) => {
                        format!("'{}'", text.replace('\'', "''"))
                    }
                    1 | 2 if is_plain => text.clone(),
                    1 if text == "hello world" && !in_flow && self.random.once_in(2) => {
                        let below = column + self.step;
                        format!("hello{}{:below$}world", self.line_break, "")
                    }
                    1 if text == "hello world" => text.clone(),
                    2 if self.random.once_in(12) && is_plain => format!("!!str {text}"),
                    _ => serde_json::to_string(text).unwrap(),
                }
            }
            Value::Number(number) if number.is_f64() && !number.to_string().contains('.') => {
                number.to_string().replace('e', ".0e")
            }
            other => other.to_string(),
        };
        self.push(&text);
        self.define(Node { id, anchor, kind: Kind::Scalar(value) })
    }

    /// A value in brackets or braces, or a scalar.
    fn flow(&mut self, id: usize, depth: usize) -> Node {
        let is_by_lines = self.random.once_in(4);
        let is_map = self.random.once_in(2);
        let anchor = self.anchor();
        let count = self.random.below(4);
        let column = {
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            let line = &self.out[line..];
            line.len() - line.trim_start_matches([' ', '-']).len() + 2 + 2 * depth
        };
        let has_blanks = self.random.once_in(3);
        let has_comma = self.random.once_in(4) && count > 0;
        self.stack.push(id);
        self.push(if is_map { "{" } else { "[" });
        let keys = if is_map { self.keys(count) } else { vec![String::new(); count] };
        let keys: Vec<_> = keys.into_iter().filter(|key| key != "<<").collect();
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        let count = keys.len();
        if is_by_lines && count > 0 {
            self.end_line();
        } else if has_blanks && count > 0 {
            self.push(" ");
        }
        for (index, key) in keys.into_iter().enumerate() {
            let child = self.id();
            if is_by_lines {
                self.above(child, column, false);
                self.indent(column);
            }
            if is_map {
                self.write_key(&key, true);
                self.push(": ");
            }
            let node = if depth > 1 && self.random.once_in(4) {
                self.flow(child, depth - 1)
            } else if self.random.once_in(8) {
                match self.alias(child) {
                    Some(alias) => alias,
                    None => self.scalar(child, column, true),
                }
            } else {
                self.scalar(child, column, true)
            };
            if index + 1 < count || has_comma {
                if matches!(node.kind, Kind::Alias(_)) {
                    self.push(" ");
                }
                self.push(",");
            }
            if is_by_lines {
                self.trailing(Some(child));
                self.end_line();
            } else if index + 1 < count {
                self.push(" ");
            }
            if is_map { entries.push((key, node)) } else { items.push(node) }
        }
        if is_by_lines && count > 0 {
            self.indent(column - 1);
        } else if has_blanks
            || entries
                .last()
                .is_some_and(|(_, node): &(String, Node)| matches!(node.kind, Kind::Alias(_)))
        {
            self.push(" ");
        }
        self.push(if is_map { "}" } else { "]" });
        self.stack.pop();
        let kind = if is_map { Kind::Map(entries) } else { Kind::List(items) };
        self.define(Node { id, anchor, kind })
    }
}

/// Folds text of lines without leading blanks.
fn folded(text: &str) -> String {
    let mut out = String::new();
    let body = text.trim_end_matches('\n');
    let mut breaks = 0;
    for line in body.split('\n') {
        if line.is_empty() {
            breaks += 1;
            continue;
        }
        match breaks {
            0 => {}
            1 => out.push(' '),
            _ => out.extend(std::iter::repeat_n('\n', breaks - 1)),
        }
        out.push_str(line);
        breaks = 1;
    }
    out.push_str(&text[body.len()..]);
    out
}
