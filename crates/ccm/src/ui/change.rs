//! Describes changes in words.

use std::borrow::Cow;
use std::fmt::Write as _;

use ccm_model::{Change, ChangeValue, Outcome, REDACTED, Verb};

use super::row::{Row, left_for_boot};
use super::text::{cut_end, cut_middle, printable};
use super::theme::Theme;

/// Longer values are cut: a row tells what changes, a diff shows it.
const VALUE: usize = 60;
/// Of a set, this many members are named.
const MEMBERS: usize = 3;
/// Of a checksum, this many digits tell it from others.
const DIGITS: usize = 12;

/// What a row says behind its name, and below it.
#[derive(Debug, Default)]
pub(super) struct Description {
    pub(super) text: String,
    /// Properties with what becomes of them, one line each.
    pub(super) details: Vec<(String, String)>,
}

impl Description {
    pub(super) fn of(row: &Row<'_>, theme: Theme) -> Self {
        let inline = |text: String| Self { text, details: Vec::new() };
        match row.outcome {
            Outcome::Stable if !row.deferred.is_empty() => inline(left_for_boot(row.deferred)),
            Outcome::Stable => inline("stable".to_owned()),
            Outcome::Skipped if row.because.is_empty() => inline("skipped by control".to_owned()),
            Outcome::Skipped => inline(format!("skipped, requires {}", names(&row.because))),
            Outcome::Run => inline(command(row, theme).unwrap_or_default()),
            Outcome::Refresh => Self {
                text: refresh(row),
                details: pairs(row, theme, |change| change.property != "command"),
            },
            Outcome::Provisional => provisional(row, theme),
            Outcome::Remove => inline(removal(row, theme)),
            Outcome::Create => creation(row, theme),
            // Done, and then found not healthy.
            Outcome::Failed if row.verbs.first() == Some(&Verb::Created) => creation(row, theme),
            Outcome::Change | Outcome::Failed => change(row, theme),
        }
    }
}

fn is_ensure(change: &Change) -> bool {
    change.property == "ensure"
}

/// One change on the same line, several below it.
fn change(row: &Row<'_>, theme: Theme) -> Description {
    let text = command(row, theme).unwrap_or_default();
    let is_told = |change: &Change| change.property != "command";
    let mut told =
        row.changes.iter().filter(|change| is_told(change) && !is_child_list(row, change));
    match (told.next(), told.next()) {
        (Some(only), None) if text.is_empty() => {
            let mut text = String::new();
            push_named(&mut text, row, only, theme);
            Description { text, details: Vec::new() }
        }
        _ => Description { text, details: pairs(row, theme, is_told) },
    }
}

/// What a new resource is like. That it was absent goes without saying.
fn creation(row: &Row<'_>, theme: Theme) -> Description {
    let mut text = String::with_capacity(64);
    if let [only] = row.changes
        && is_ensure(only)
    {
        push_value(&mut text, row, only, theme);
        return Description { text, details: Vec::new() };
    }
    for change in row.changes {
        // What a new file gets from elsewhere has no value of its own.
        let has_value = change.secret
            || change.added.is_some()
            || change.to.is_some()
            || change.member_counts().is_some();
        let is_told = match (is_ensure(change), &change.to) {
            (true, Some(to)) => !is_word(to, "present"),
            (true, None) => false,
            (false, _) => has_value || change.from.is_some(),
        };
        if !is_told || is_child_list(row, change) {
            continue;
        }
        separate(&mut text);
        match &change.to {
            Some(to) if is_ensure(change) => push_single(&mut text, row, to, theme),
            _ => push_named(&mut text, row, change, theme),
        }
    }
    Description { text, details: Vec::new() }
}

/// What is lost with a removed resource, beyond that it was present.
fn removal(row: &Row<'_>, theme: Theme) -> String {
    let mut text = String::new();
    for change in row.changes {
        match &change.from {
            Some(from) if is_ensure(change) => {
                if !is_word(from, "present") {
                    separate(&mut text);
                    push_single(&mut text, row, from, theme);
                }
            }
            _ => {
                separate(&mut text);
                push_named(&mut text, row, change, theme);
            }
        }
    }
    text
}

/// What a provisional resource would do now.
fn answer(row: &Row<'_>, now: Outcome, theme: Theme) -> String {
    match (now, row.kind) {
        (Outcome::Stable, "exec") => "would not run now".to_owned(),
        (Outcome::Stable, _) => "stable now".to_owned(),
        (Outcome::Run, _) => match command(row, theme) {
            Some(command) => format!("would run now: {command}"),
            None => "would run now".to_owned(),
        },
        (now, _) => format!("would {} now", now.word()),
    }
}

/// What the manifest says of it, and what it waits for.
fn provisional(row: &Row<'_>, theme: Theme) -> Description {
    /// More than this is put below the line.
    const ROOM: usize = 60;
    let waits = match row.waits_for {
        [] => "provisional: known at apply".to_owned(),
        all => format!("provisional: after {}", names(all)),
    };
    if let (Some((verb, _)), false) = (reaction(row), row.because.is_empty()) {
        let changes = if row.because.len() == 1 { "changes" } else { "change" };
        let text = format!("{verb} if {} {changes}, {waits}", names(&row.because));
        return Description { text, details: Vec::new() };
    }
    if let Some(now) = row.now {
        return Description {
            text: format!("{}; {waits}", answer(row, now, theme)),
            details: Vec::new(),
        };
    }
    let is_told = |change: &Change| {
        !is_ensure(change) || !change.to.as_ref().is_some_and(|to| is_word(to, "present"))
    };
    let mut text = String::new();
    for change in row.changes.iter().filter(|change| is_told(change)) {
        separate(&mut text);
        push_named(&mut text, row, change, theme);
    }
    if text.len() > ROOM {
        return Description { text: waits, details: pairs(row, theme, is_told) };
    }
    separate(&mut text);
    Description { text: text + &waits, details: Vec::new() }
}

fn is_word(value: &ChangeValue, word: &str) -> bool {
    matches!(value, ChangeValue::Text(text) if text == word)
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push_str(", ");
    }
}

/// The command that runs, unless its name says it all.
fn command(row: &Row<'_>, theme: Theme) -> Option<String> {
    let change = row.changes.iter().find(|change| change.property == "command")?;
    let command = change.to.as_ref()?.to_string();
    if command == row.name {
        return None;
    }
    Some(cut_end(&printable(&command), VALUE, theme.ellipsis()).into_owned())
}

/// What a reaction does, before it and after it.
fn reaction(row: &Row<'_>) -> Option<(&'static str, &'static str)> {
    row.verbs.iter().find_map(|verb| match verb {
        Verb::Restarted => Some(("restart", "restarted")),
        Verb::Reloaded => Some(("reload", "reloaded")),
        Verb::Executed => Some(("run", "ran")),
        _ => None,
    })
}

/// What a reaction does, and to what it reacts.
fn refresh(row: &Row<'_>) -> String {
    let (later, done) = reaction(row).unwrap_or(("refresh", "refreshed"));
    let verb = if row.is_preview { later } else { done };
    let changes = match (row.is_preview, row.because.len()) {
        (false, _) => "changed",
        (true, 1) => "changes",
        (true, _) => "change",
    };
    if row.because.is_empty() {
        return verb.to_owned();
    }
    format!("{verb}, because {} {changes}", names(&row.because))
}

/// Some names, all of them if they are few.
fn names(all: &[String]) -> String {
    let text = all.iter().take(MEMBERS).map(|name| printable(name)).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MEMBERS) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Whether it only says which resources of a manifest changed: these have rows
/// of their own.
fn is_child_list(row: &Row<'_>, change: &Change) -> bool {
    row.kind == "apply" && change.property == "resources"
}

/// The changes with their properties, as far as they are told in lines.
fn pairs(row: &Row<'_>, theme: Theme, is_told: impl Fn(&Change) -> bool) -> Vec<(String, String)> {
    let told = row.changes.iter().filter(|change| is_told(change) && !is_child_list(row, change));
    told.map(|change| {
        let mut text = String::new();
        push_value(&mut text, row, change, theme);
        (printable(&change.property).into_owned(), text)
    })
    .collect()
}

/// Adds a property and what becomes of it. The state itself needs no name.
fn push_named(out: &mut String, row: &Row<'_>, change: &Change, theme: Theme) {
    if !is_ensure(change) {
        out.push_str(&printable(&change.property));
        out.push(' ');
    }
    push_value(out, row, change, theme);
}

/// Adds what becomes of a property: `old → new`, or the lines of a text.
fn push_value(out: &mut String, row: &Row<'_>, change: &Change, theme: Theme) {
    if change.secret {
        out.push_str(REDACTED);
        return;
    }
    if let Some(counts) = change.member_counts() {
        out.push_str(&counts);
        return;
    }
    let minus = theme.minus();
    // Writing to a text cannot fail.
    let _ = match change.line_counts().unwrap_or((0, 0)) {
        (0, 0) if change.added.is_some() && change.from.is_none() => write!(out, "empty"),
        (0, 0) => {
            push_values(out, row, change, theme);
            Ok(())
        }
        (added, 0) => write!(out, "+{added}"),
        (0, removed) => write!(out, "{minus}{removed}"),
        (added, removed) => write!(out, "+{added} {minus}{removed}"),
    };
}

fn push_values(out: &mut String, row: &Row<'_>, change: &Change, theme: Theme) {
    let arrow = |out: &mut String| {
        out.push(' ');
        out.push_str(theme.arrow());
        out.push(' ');
    };
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            push_single(out, row, from, theme);
            arrow(out);
            push_single(out, row, to, theme);
        }
        (Some(value @ ChangeValue::List(_)), None) | (None, Some(value)) => {
            push_single(out, row, value, theme);
        }
        (Some(from), None) => {
            push_single(out, row, from, theme);
            arrow(out);
            out.push_str("none");
        }
        (None, None) => out.push_str("changed"),
    }
}

/// Adds one value, cut to what tells it from others.
fn push_single(out: &mut String, row: &Row<'_>, value: &ChangeValue, theme: Theme) {
    match value {
        ChangeValue::Switch(is_on) => out.push_str(if *is_on { "true" } else { "false" }),
        ChangeValue::Text(text) => out.push_str(&shortened(text, theme)),
        ChangeValue::List(members) => {
            for (at, member) in members.iter().take(MEMBERS).enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                // Members of a tree are known by their place in it.
                let local = member.strip_prefix(row.name).and_then(|rest| rest.strip_prefix('/'));
                let text = printable(local.unwrap_or(member));
                out.push_str(&cut_middle(&text, VALUE, theme.ellipsis()));
            }
            if members.len() > MEMBERS {
                out.push_str(&format!(" and {} more", members.len() - MEMBERS));
            }
        }
    }
}

fn shortened(text: &str, theme: Theme) -> Cow<'_, str> {
    let (prefix, rest) = match text.split_once(':') {
        Some((prefix, rest)) if prefix.len() <= 8 => (&text[..=prefix.len()], rest),
        _ => ("", text),
    };
    let is_digest = rest.len() >= 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest {
        return Cow::Owned(format!("{prefix}{}{}", &rest[..DIGITS], theme.ellipsis()));
    }
    match printable(text) {
        Cow::Borrowed(text) => cut_end(text, VALUE, theme.ellipsis()),
        Cow::Owned(text) => Cow::Owned(cut_end(&text, VALUE, theme.ellipsis()).into_owned()),
    }
}
