//! Prints an explanation as an indented tree, in ASCII.

use ccm_author::Decision;
use ccm_author::why::{SetKind, Why, WhyOrigin, WhyProperty, WhyRead, WhyReference};
use ccm_model::Outcome;
use ccm_model::{Change, REDACTED};
use serde_json::Value;

/// Longer values are cut: `--json` has them in full.
const MAX_VALUE: usize = 100;

/// A tree that grows line by line.
#[derive(Default)]
struct Tree {
    text: String,
}

impl Tree {
    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&"  ".repeat(depth));
        for c in text.chars() {
            // Nothing of it may be an order to the terminal.
            if c.is_control() {
                self.text.extend(c.escape_default());
            } else {
                self.text.push(c);
            }
        }
        self.text.push('\n');
    }
}

/// Draws an explanation.
pub(super) fn render(why: &Why) -> String {
    let mut tree = Tree::default();
    let name = why.resource.as_deref().or(why.data.as_deref()).unwrap_or_default();
    let before = if why.data.is_some() { "data:" } else { "" };
    let alias = why.alias.as_deref().map(|alias| format!(" ({alias})"));
    let manifest = why.manifest.as_deref().map(|manifest| format!(", in {manifest}"));
    let (alias, manifest) = (alias.unwrap_or_default(), manifest.unwrap_or_default());
    tree.line(0, &format!("{before}{name}{alias}{manifest}"));
    for (name, property) in &why.properties {
        match &why.data {
            Some(_) => key(&mut tree, property),
            None => one_property(&mut tree, name, property),
        }
    }
    if !why.hierarchy.is_empty() {
        tree.line(1, "hierarchy");
        for entry in &why.hierarchy {
            let name = entry.name.as_ref().filter(|name| **name != entry.entry);
            let name = name.map(|name| format!(" = {name}")).unwrap_or_default();
            tree.line(2, &format!("{}{name}: {}", entry.entry, entry.state));
        }
    }
    if let Some(decision) = &why.decision {
        one_decision(&mut tree, decision);
    }
    if why.property.is_none() {
        references(&mut tree, "require", why.require.as_deref());
        references(&mut tree, "subscribe", why.subscribe.as_deref());
    }
    tree.text
}

fn one_property(tree: &mut Tree, name: &str, property: &WhyProperty) {
    tree.line(1, &format!("{name}: {}", shown(&property.value)));
    match &property.set_by {
        None if property.value.is_null() => tree.line(2, "not set"),
        None => tree.line(2, "default of the type"),
        Some(set_by) => {
            let kind = match set_by.kind {
                SetKind::Own => "",
                SetKind::Default => " (defaults)",
                SetKind::Block => " (block)",
                SetKind::Template => " (template)",
            };
            tree.line(2, &format!("set by {}{kind}", location(&set_by.file, set_by.line)));
        }
    }
    if let Some(error) = &property.error {
        for line in error.lines() {
            tree.line(2, &format!("error: {line}"));
        }
    }
    let mut expression = None;
    for read in &property.reads {
        if let Some(found) = read.expression.as_ref().filter(|found| expression != Some(*found)) {
            tree.line(2, &format!("reads, in `{}`", cut(found)));
            expression = Some(found);
        } else if read.expression.is_none() && expression.is_none() && is_first(property, read) {
            tree.line(2, "reads");
        }
        one_read(tree, 3, read);
    }
}

/// Whether a read is the first of its property.
fn is_first(property: &WhyProperty, read: &WhyRead) -> bool {
    property.reads.first().is_some_and(|first| std::ptr::eq(first, read))
}

/// A data key: its value is what it reads first.
fn key(tree: &mut Tree, property: &WhyProperty) {
    for read in &property.reads {
        one_read(tree, 1, read);
    }
}

fn one_read(tree: &mut Tree, depth: usize, read: &WhyRead) {
    let kind = read.kind.word();
    if read.value.is_null() && read.origin.is_none() {
        let nothing = if kind == "file" { "" } else { ": no value" };
        tree.line(depth, &format!("{kind} {}{nothing}", read.key));
    } else {
        tree.line(depth, &format!("{kind} {}: {}", read.key, shown(&read.value)));
    }
    if let Some(key) = &read.data {
        tree.line(depth + 1, &format!("is data {key}"));
    }
    if let Some(origin) = &read.origin {
        tree.line(depth + 1, &format!("from {}", place(origin)));
    }
    for merged in &read.merged {
        tree.line(depth + 1, &format!("merged with {}", place(merged)));
    }
    for overrode in &read.overrode {
        tree.line(depth + 1, &format!("overrides {}", place(overrode)));
    }
}

fn place(origin: &WhyOrigin) -> String {
    let Some(file) = origin.file.as_deref() else { return origin.level.clone() };
    format!("{} ({})", location(file, origin.line), origin.level)
}

fn location(file: &str, line: Option<usize>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

fn one_decision(tree: &mut Tree, decision: &Decision) {
    tree.line(1, &format!("now: {}", words(decision.outcome)));
    for change in &decision.changes {
        tree.line(2, &change_text(change));
    }
    for line in decision.error.iter().flat_map(|error| error.lines()) {
        tree.line(2, line);
    }
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Create => "a run creates it",
        Outcome::Change => "a run changes it",
        Outcome::Remove => "a run removes it",
        Outcome::Refresh => "a run refreshes it",
        Outcome::Run => "a run executes it",
        Outcome::Provisional => "only the run can decide",
        Outcome::Failed => "a run fails here",
        Outcome::Skipped => "a run skips it",
        Outcome::Stable => "stable, a run changes nothing",
    }
}

fn change_text(change: &Change) -> String {
    let property = &change.property;
    if change.secret {
        return format!("{property}: [redacted]");
    }
    let mut parts = Vec::new();
    if let Some(counts) = change.member_counts() {
        parts.push(counts);
    } else if let Some((added, removed)) = change.line_counts() {
        parts.push(format!("+{added} -{removed} lines"));
    } else {
        parts.extend(change.from.iter().map(|from| format!("from {}", cut(&from.to_string()))));
        parts.extend(change.to.iter().map(|to| format!("to {}", cut(&to.to_string()))));
    }
    format!("{property}: {}", parts.join(" "))
}

fn references(tree: &mut Tree, word: &str, references: Option<&[WhyReference]>) {
    let Some(references) = references.filter(|references| !references.is_empty()) else { return };
    tree.line(1, word);
    for reference in references {
        let outcome = reference.outcome.map_or("unknown", Outcome::word);
        tree.line(2, &format!("{}: {outcome}", reference.resource));
    }
}

/// A value on one line; a string without quotes where it cannot be mistaken.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => cut(text),
        value => cut(&value.to_string()),
    }
}

fn is_plain(text: &str) -> bool {
    if text == REDACTED {
        return true;
    }
    let is_other = matches!(text, "" | "null" | "true" | "false") || text.parse::<f64>().is_ok();
    !is_other
        && text.trim() == text
        && !text.contains(char::is_control)
        && !text.starts_with(['"', '{', '['])
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
