//! Random edits of random documents: the text after means what the operation
//! says, nothing else changes by a byte, no comment is lost.
//!
//! `CCM_RANDOM_EDITS` says how many operations are tried, `CCM_RANDOM_SEED`
//! where to begin.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod model;
mod random;
mod writer;

use std::collections::BTreeMap;

use ccm_yaml::edit::{Beside, Change, Document, EditErrorKind, Operation, Step};
use ccm_yaml::{Kind as YamlKind, Source};
use serde_json::Value;

use model::{Impossible, Kind, Node};
use random::Random;
use writer::{Comment, Written};

/// What is tried in every test run.
const COUNT: u64 = 5_000;
/// How many wrong edits are shown.
const SHOWN: usize = 5;

#[derive(Default)]
struct Counts {
    /// Texts that do not mean what the generator thinks.
    unread: u64,
    done: u64,
    refused: BTreeMap<&'static str, u64>,
}

#[test]
fn random_edits_do_what_they_say() {
    #[expect(clippy::disallowed_methods, reason = "a test")]
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let count = number("CCM_RANDOM_EDITS").unwrap_or(COUNT);
    let first = number("CCM_RANDOM_SEED").unwrap_or(1);
    let mut counts = Counts::default();
    let mut seed = first;
    let mut wrong = Vec::new();
    while wrong.len() < 20 && counts.done + counts.refused.values().sum::<u64>() < count {
        if let Err(why) = one(seed, &mut counts) {
            wrong.push(format!("seed {seed}: {why}"));
        }
        seed += 1;
    }
    // The shortest say most.
    wrong.sort_by_key(String::len);
    wrong.truncate(SHOWN);
    assert!(
        wrong.is_empty(),
        "wrong after {} documents, such as {}",
        seed - first,
        wrong.join("\n")
    );
    let Counts { unread, done, refused } = counts;
    println!("random edits: {done} done, refused {refused:?}, {unread} texts passed over");
    let unsupported = refused.get("unsupported").copied().unwrap_or_default();
    assert!(unsupported * 25 < count, "too many are refused: {unsupported} of {count}");
    assert!(unread * 10 < count, "the generator is wrong too often: {unread} of {count}");
}

/// Generates a document and an operation, and checks what comes of it.
fn one(seed: u64, counts: &mut Counts) -> Result<(), String> {
    let mut random = Random::new(seed);
    let Written { root, text, comments } = writer::document(&mut random);
    let Some(value) = root.resolve() else { return Ok(()) };
    if read(&text).as_ref() != Some(&value) {
        counts.unread += 1;
        return Ok(());
    }
    let mut document = Document::parse(Source::new("t", text.clone())).unwrap();
    let operation = operation(&mut random, &root);
    let explain = |what: &str, after: &str| {
        format!("{what}\n{operation:?}\n--- before\n{text}\n--- after\n{after}\n---")
    };
    let mut expected = root.clone();
    let wanted = expected.apply(&operation);
    let changes = match document.apply(std::slice::from_ref(&operation)) {
        Ok(changes) => changes,
        Err(error) => {
            let kind = error.kind;
            *counts.refused.entry(kind.word()).or_default() += 1;
            let agrees = match kind {
                EditErrorKind::Unsupported => true,
                EditErrorKind::Missing => {
                    matches!(wanted, Err(Impossible::Missing | Impossible::Linked))
                }
                EditErrorKind::Kind => matches!(wanted, Err(Impossible::Kind | Impossible::Linked)),
                EditErrorKind::Duplicate => wanted == Err(Impossible::Duplicate),
                EditErrorKind::Alias | EditErrorKind::Merged => text.contains("*n"),
                EditErrorKind::Anchored => text.contains("&n"),
                EditErrorKind::Syntax => false,
            };
            if !agrees || document.text() != text {
                return Err(explain(&format!("{kind:?} for {wanted:?}: {error}"), document.text()));
            }
            return Ok(());
        }
    };
    counts.done += 1;
    let after = document.text();
    let Ok(()) = wanted else { return Err(explain("it should be refused", after)) };
    // An item of a list that stays as it is keeps its anchor, which the model has
    // replaced with the list. The aliases must then mean what they meant; had the
    // anchor gone, the text would not be read.
    let as_before = || {
        let mut plain = Node::new(&value);
        plain.apply(&operation).ok()?;
        plain.resolve()
    };
    let Some(expected) = expected.resolve().or_else(as_before) else {
        return Err(explain("an anchor is gone", after));
    };
    let found = read(after);
    let same_order = matches!(operation, Operation::Set { .. })
        || found.as_ref().map(ToString::to_string) == Some(expected.to_string());
    if found.as_ref() != Some(&expected) || !same_order {
        return Err(explain(&format!("wanted {expected}\nfound {found:?}"), after));
    }
    if applied(&text, &changes) != after {
        return Err(explain(&format!("{changes:?} make another text"), after));
    }
    check_comments(&root, &operation, &comments, after).map_err(|what| explain(&what, after))?;
    check_lines(&text, after).map_err(|what| explain(what, after))?;
    check_places(&text, &operation, &changes).map_err(|what| explain(what, after))?;
    if let Operation::Set { path, value, .. } = &operation {
        let again = Operation::Set { path: path.clone(), value: value.clone(), beside: None };
        let again = document.apply(&[again]);
        if again.as_ref().map(Vec::is_empty).ok() != Some(true) {
            return Err(explain(&format!("the same again makes {again:?}"), document.text()));
        }
    }
    Ok(())
}

fn operation(random: &mut Random, root: &Node) -> Operation {
    let mut nodes = Vec::new();
    root.walk(&mut Vec::new(), &mut nodes);
    let (path, node) = random.pick(&nodes);
    let mut path = path.clone();
    let is_in_list = matches!(path.last(), Some(Step::Index(_)));
    let count = match &node.kind {
        Kind::List(items) => items.len(),
        Kind::Map(entries) => entries.len(),
        _ => 0,
    };
    let siblings = match path.split_last() {
        Some((_, above)) => nodes
            .iter()
            .filter(|(path, _)| path.split_last().is_some_and(|(_, found)| found == above))
            .count(),
        None => 0,
    };
    if random.once_in(25) {
        path.push(if random.once_in(2) { Step::Index(random.below(5)) } else { "nowhere".into() });
    }
    match (random.below(10), &node.kind) {
        (0..=2, _) => Operation::Set { path, value: model::value(random, 2), beside: None },
        (3 | 4, Kind::Map(entries)) => {
            let beside = entries.first().filter(|_| random.once_in(3)).map(|_| {
                let key = random.pick(entries).0.clone();
                if random.once_in(2) { Beside::Before(key) } else { Beside::After(key) }
            });
            path.push(model::key(random).into());
            Operation::Set { path, value: model::value(random, 2), beside }
        }
        (3 | 4, Kind::List(_)) => {
            let index = random.below(count + 1);
            Operation::Insert { path, index, value: model::value(random, 2) }
        }
        (5, _) if siblings > 0 => Operation::Move { path, to: random.below(siblings) },
        (7, _) if is_in_list => Operation::Copy { path, to: random.below(siblings + 1) },
        (6, _) if is_in_list => Operation::Move { path, to: random.below(siblings) },
        (5.., _) if path.is_empty() => {
            Operation::Set { path, value: model::value(random, 2), beside: None }
        }
        (5 | 6, _) => Operation::Rename { path, key: model::key(random) },
        _ => Operation::Remove { path },
    }
}

/// What a text means, in the order of its keys.
fn read(text: &str) -> Option<Value> {
    let source = Source::new("t", text);
    let root = ccm_yaml::parse(&source).ok()?;
    Some(json(&root))
}

fn json(node: &ccm_yaml::Node<'_>) -> Value {
    match &node.kind {
        YamlKind::Scalar(scalar) => match ccm_yaml::to_value(node) {
            govalue::Value::Nil => Value::Null,
            govalue::Value::Bool(flag) => flag.into(),
            govalue::Value::Int(number) => number.into(),
            govalue::Value::Float(number) => number.into(),
            govalue::Value::Sized(_, bits) => bits.cast_unsigned().into(),
            _ => scalar.text.clone().into(),
        },
        YamlKind::Sequence(items) => items.iter().map(json).collect(),
        YamlKind::Mapping(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.text.to_string(), json(&entry.value))).collect(),
        ),
    }
}

fn applied(text: &str, changes: &[Change]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for change in changes {
        assert!(change.span.start as usize >= at, "in order, not overlapping");
        out.push_str(&text[at..change.span.start as usize]);
        out.push_str(&change.text);
        at = change.span.end as usize;
    }
    out.push_str(&text[at..]);
    out
}

/// Comments go only with what they belong to.
fn check_comments(
    root: &Node,
    operation: &Operation,
    comments: &[Comment],
    after: &str,
) -> Result<(), String> {
    let target = find(root, operation.path());
    let mut below = Vec::new();
    if let Some(target) = target {
        let mut nodes = Vec::new();
        target.walk(&mut Vec::new(), &mut nodes);
        below.extend(nodes.iter().map(|(_, node)| node.id));
    }
    let is_below = |id: &usize| below.contains(id);
    for (index, comment) in comments.iter().enumerate() {
        let is_there = after.contains(&format!("#c{index};"));
        let owner_goes = comment.owner.as_ref().is_some_and(is_below);
        let is_target = comment.owner == target.map(|target| target.id);
        match operation {
            Operation::Remove { .. } => {
                if !is_there && !owner_goes && !comment.inside.iter().any(is_below) {
                    return Err(format!("comment {index} is lost"));
                }
                if is_there && owner_goes {
                    return Err(format!("comment {index} stays without its entry"));
                }
            }
            Operation::Set { .. } => {
                let may_go = (owner_goes && !is_target) || comment.inside.iter().any(is_below);
                if !is_there && !may_go {
                    return Err(format!("comment {index} is lost"));
                }
            }
            _ if !is_there => return Err(format!("comment {index} is lost")),
            _ => {}
        }
    }
    Ok(())
}

fn find<'a>(root: &'a Node, path: &[Step]) -> Option<&'a Node> {
    path.iter().try_fold(root, |node, step| match (&node.kind, step) {
        (Kind::List(items), Step::Index(index)) => items.get(*index),
        (Kind::Map(entries), Step::Key(key)) => {
            entries.iter().find(|(found, _)| found == key).map(|(_, value)| value)
        }
        _ => None,
    })
}

/// Line ends, the end of the file and the byte order mark stay.
fn check_lines(before: &str, after: &str) -> Result<(), &'static str> {
    let lone = |text: &str| text.matches('\n').count() - text.matches("\r\n").count();
    if before.contains("\r\n") && lone(before) == 0 && lone(after) > 0 {
        return Err("a line ends in another way");
    }
    if !before.contains("\r\n") && after.contains("\r\n") {
        return Err("a line ends in another way");
    }
    if before.starts_with('\u{feff}') != after.starts_with('\u{feff}') {
        return Err("the byte order mark changes");
    }
    // A document of nothing may get its first line.
    let has_content = read(before) != Some(Value::Null);
    // A block scalar at the end may need its line break.
    let needs_break = read(after.trim_end_matches(['\r', '\n'])) != read(after);
    if has_content && before.ends_with('\n') != after.ends_with('\n') && !needs_break {
        return Err("the end of the file changes");
    }
    Ok(())
}

/// Changes lie within what the operation concerns.
fn check_places(text: &str, operation: &Operation, changes: &[Change]) -> Result<(), &'static str> {
    let document = Document::parse(Source::new("t", text)).unwrap();
    match operation {
        Operation::Insert { path, .. } => {
            let list = document.value(path);
            if list != Some(Value::Array(Vec::new()))
                && changes.iter().any(|change| change.span.start < change.span.end)
            {
                return Err("an insertion replaces something");
            }
        }
        Operation::Copy { .. }
            if changes.iter().any(|change| change.span.start < change.span.end) =>
        {
            return Err("a copy replaces something");
        }
        Operation::Set { path, .. } | Operation::Rename { path, .. } => {
            let Some(place) = document.locate(path) else {
                let (_, above) = path.split_last().ok_or("no path")?;
                let is_empty = document.value(above) == Some(Value::Object(serde_json::Map::new()));
                let replaces = changes.iter().any(|change| change.span.start < change.span.end);
                return if replaces && !is_empty {
                    Err("a new key replaces something")
                } else {
                    Ok(())
                };
            };
            // Lines of a new block begin behind the line of the old value.
            let rest = &text[place.whole.end as usize..];
            let end = place.whole.end as usize + rest.find('\n').map_or(rest.len(), |at| at + 1);
            let is_within = |change: &Change| {
                change.span.start >= place.whole.start && change.span.end as usize <= end
            };
            let is_root = path.is_empty();
            if !is_root && !changes.iter().all(is_within) {
                // When the last lines go from a file without final line break,
                // the line break before them goes instead.
                if !text.ends_with('\n') {
                    return Ok(());
                }
                let blank = |change: &Change| {
                    let from = (change.span.start as usize).max(end);
                    from >= change.span.end as usize
                        || text[from..change.span.end as usize].trim().is_empty()
                };
                if !changes.iter().all(blank) {
                    return Err("something else changes");
                }
            }
        }
        _ => {}
    }
    Ok(())
}
