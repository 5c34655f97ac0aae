//! The check behind an edit, from the lines around it alone.
//!
//! Entries of a block collection do not depend on those beside them: each begins
//! at the column of the collection, and what it is follows from its own lines.
//! So in a text without anchors and tags it is enough to read the entries that
//! changed as a collection of their own, at the same column, with a mark where
//! the next entry begins. If they begin with an entry, and the mark is found as
//! one at its byte, the rest of the text means what it did. Whatever is not as plain as that is left to
//! the check of the whole text.

use std::collections::HashSet;
use std::ops::Range;

use super::law::{self, Expected, Outcome, PartValue, Read};
use super::lines;
use super::tree::{Child, Collection, Id, Kind, Tree};

/// Deeper texts are checked as a whole, as they may be too deep.
const MAX_DEPTH: usize = 80;
/// The same for texts that may be too large.
const MAX_NODES: usize = 1_000_000;
/// An entry that follows a list, and one that follows a map.
const MARKS: [&str; 2] = ["- ~\n", "ccm-edit-end: ~\n"];

/// Changes in order and not overlapping, by bytes of the old text.
type Changes = [(Range<usize>, String)];

/// Entries of a block collection one after the other.
struct Run {
    collection: Id,
    entries: Range<usize>,
    /// Collections around it.
    depth: usize,
}

/// Whether the changed text certainly is the old one with what is expected.
/// False where only the whole text tells.
pub(super) fn holds(old: Read<'_>, changes: &Changes, expected: &Expected<'_>) -> bool {
    is_certain(old, changes, expected).unwrap_or_default()
}

fn is_certain(old: Read<'_>, changes: &Changes, expected: &Expected<'_>) -> Option<bool> {
    let tree = old.tree;
    if !tree.is_plain || tree.nodes.len() > MAX_NODES {
        return None;
    }
    let extent = changes.first()?.0.start..changes.last()?.0.end;
    let run = runs(tree, &extent).into_iter().rev().find(|run| has_all(tree, run, expected))?;
    let (text, column, mark) = alone(old, &run, changes)?;
    let read = Tree::read_plain(&text)?;
    if read.depth + run.depth > MAX_DEPTH || read.nodes.len() > MAX_NODES {
        return None;
    }
    let new = Read { text: &text, tree: &read };
    let entries = entries_alone(new, is_map(tree, run.collection), column, mark)?;
    Some(is_expected(old, new, &run, entries, expected))
}

/// The entries that hold all changes: of the outermost collection, and of those
/// in it as long as the changes are in one entry.
fn runs(tree: &Tree, changed: &Range<usize>) -> Vec<Run> {
    let mut found = Vec::new();
    let mut id = tree.root;
    let mut depth = 0;
    // Whether nothing but the end follows the collection.
    let mut is_last = true;
    while let Some(Collection { children, .. }) = block(tree, id) {
        let behind = children.partition_point(|child| child.start <= changed.start);
        let Some(first) = behind.checked_sub(1) else { break };
        let end = children.partition_point(|child| child.start < changed.end).max(first + 1);
        let is_open = end == children.len();
        if !is_open || is_last {
            found.push(Run { collection: id, entries: first..end, depth });
        }
        if end - first > 1 {
            break;
        }
        is_last &= is_open;
        depth += 1;
        id = children[first].value;
    }
    found
}

fn block(tree: &Tree, id: Id) -> Option<&Collection> {
    tree.nodes[id].collection().filter(|found| {
        !found.is_flow && !found.is_pair && !found.children.iter().any(|child| child.is_explicit)
    })
}

fn is_map(tree: &Tree, id: Id) -> bool {
    matches!(tree.nodes[id].kind, Kind::Map(_))
}

/// Whether everything that becomes different is among the entries.
fn has_all(tree: &Tree, run: &Run, expected: &Expected<'_>) -> bool {
    expected.iter().all(|(&id, outcome)| {
        if id == run.collection {
            return matches!(outcome, Outcome::Children(_));
        }
        let mut at = id;
        while let Some((parent, index)) = tree.nodes[at].parent {
            if parent == run.collection {
                return run.entries.contains(&index);
            }
            at = parent;
        }
        false
    })
}

/// The changed entries as a text of their own, the column that they begin at,
/// and where the mark behind them is.
fn alone(old: Read<'_>, run: &Run, changes: &Changes) -> Option<(String, usize, Option<usize>)> {
    let children = old.tree.children(run.collection);
    let start = children.get(run.entries.start)?.start;
    let next = children.get(run.entries.end).map(|child| child.start);
    let end = next.unwrap_or(old.text.len());
    let line = &old.text[lines::start(old.text, start)..start];
    // What else stands before the first entry may mean something to it.
    if !line.split(' ').all(|word| word.is_empty() || word == "-") {
        return None;
    }
    let column = line.len();
    let mut text = " ".repeat(column);
    let mut at = start;
    for (range, new) in changes {
        if range.start < at || range.end > end {
            return None;
        }
        text.push_str(&old.text[at..range.start]);
        text.push_str(new);
        at = range.end;
    }
    text.push_str(&old.text[at..end]);
    let mark = next.map(|_| text.len());
    if mark.is_some() {
        text.push_str(MARKS[usize::from(is_map(old.tree, run.collection))]);
    }
    Some((text, column, mark))
}

/// The entries of such a text, without the mark.
fn entries_alone(
    new: Read<'_>,
    is_map: bool,
    column: usize,
    mark: Option<usize>,
) -> Option<&[Child]> {
    let root = new.tree.root;
    let children = &block(new.tree, root)?.children;
    // Blank lines before the first entry would go to what is above it, which may
    // be a block scalar.
    if self::is_map(new.tree, root) != is_map || children.first()?.start != column {
        return None;
    }
    let Some(mark) = mark else { return Some(children) };
    let (last, entries) = children.split_last()?;
    (last.start == mark).then_some(entries)
}

/// Whether entries are what is expected in the place of the old ones.
fn is_expected(
    old: Read<'_>,
    new: Read<'_>,
    run: &Run,
    entries: &[Child],
    expected: &Expected<'_>,
) -> bool {
    let children = old.tree.children(run.collection);
    let (before, after) = (&children[..run.entries.start], &children[run.entries.end..]);
    let Some(Outcome::Children(parts)) = expected.get(&run.collection) else {
        return law::entries_hold(old, new, expected, &children[run.entries.clone()], entries);
    };
    let Some(behind) = parts.len().checked_sub(after.len()).filter(|&at| at >= before.len()) else {
        return false;
    };
    let key = |child: &Child| child.key.map(|key| old.tree.key(old.text, key));
    let stays = |(part, child): (&law::Part<'_>, &Child)| {
        part.key == key(child) && matches!(part.value, PartValue::Old(id) if id == child.value)
    };
    let beside: HashSet<&str> = before.iter().chain(after).filter_map(key).collect();
    let is_new =
        |child: &Child| child.key.is_none_or(|key| !beside.contains(new.tree.key(new.text, key)));
    parts[..before.len()].iter().zip(before).all(stays)
        && parts[behind..].iter().zip(after).all(stays)
        && entries.iter().all(is_new)
        && law::parts_hold(old, new, expected, &parts[before.len()..behind], entries)
}
