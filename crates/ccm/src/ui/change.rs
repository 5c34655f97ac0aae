//! What changes, in words.

use std::borrow::Cow;

use ccm_model::{Change, ChangeValue, PlanOutcome, REDACTED, Verb};

use super::row::Row;
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
            PlanOutcome::Stable => inline("stable".to_owned()),
            PlanOutcome::Skipped if row.because.is_empty() => {
                inline("skipped by control".to_owned())
            }
            PlanOutcome::Skipped => inline(format!("skipped, requires {}", names(&row.because))),
            PlanOutcome::Run => inline(command(row, theme).unwrap_or_default()),
            PlanOutcome::Refresh => Self {
                text: refresh(row),
                details: pairs(row, theme, |change| change.property != "command"),
            },
            PlanOutcome::Provisional => provisional(row, theme),
            PlanOutcome::Remove => inline(removal(row, theme)),
            PlanOutcome::Create => creation(row, theme),
            // Done, and then found not healthy.
            PlanOutcome::Failed if row.verbs.first() == Some(&Verb::Created) => {
                creation(row, theme)
            }
            PlanOutcome::Change | PlanOutcome::Failed => change(row, theme),
        }
    }
}

fn is_ensure(change: &Change) -> bool {
    change.property == "ensure"
}

/// One change on the same line, several below it.
fn change(row: &Row<'_>, theme: Theme) -> Description {
    let text = command(row, theme).unwrap_or_default();
    let mut details = pairs(row, theme, |change| change.property != "command");
    if details.len() != 1 || !text.is_empty() {
        return Description { text, details };
    }
    let text = details.pop().map(named).unwrap_or_default();
    Description { text, details }
}

/// What a new resource is like. That it was absent goes without saying.
fn creation(row: &Row<'_>, theme: Theme) -> Description {
    if let [only] = row.changes
        && is_ensure(only)
    {
        return Description { text: value_text(row, only, theme), details: Vec::new() };
    }
    let mut parts = Vec::new();
    let kind = row.changes.iter().find(|change| is_ensure(change)).and_then(|it| it.to.as_ref());
    parts.extend(kind.map(ToString::to_string).filter(|kind| kind != "present"));
    // What a new file gets from elsewhere has no value of its own.
    let has_value = |change: &Change| {
        change.secret || change.added.is_some() || change.from.is_some() || change.to.is_some()
    };
    let others = pairs(row, theme, |change| !is_ensure(change) && has_value(change));
    parts.extend(others.into_iter().map(named));
    Description { text: parts.join(", "), details: Vec::new() }
}

/// What is lost with a removed resource, beyond that it was present.
fn removal(row: &Row<'_>, theme: Theme) -> String {
    let from = row.changes.iter().find(|change| is_ensure(change)).and_then(|it| it.from.as_ref());
    let from = from.map(|from| single(row, from, theme)).filter(|from| from != "present");
    let others = pairs(row, theme, |change| !is_ensure(change));
    let others = others.into_iter().map(named);
    from.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// What the manifest says of it, and what it waits for.
fn provisional(row: &Row<'_>, theme: Theme) -> Description {
    /// More than this is put below the line.
    const ROOM: usize = 60;
    let waits = format!("provisional: after {}", names(row.waits_for));
    let ensure = row.changes.iter().find(|change| is_ensure(change)).and_then(|it| it.to.as_ref());
    let ensure = ensure.map(ToString::to_string).filter(|ensure| ensure != "present");
    let details = pairs(row, theme, |change| !is_ensure(change));
    let parts: Vec<String> = ensure.into_iter().chain(details.iter().cloned().map(named)).collect();
    let text = parts.join(", ");
    if text.is_empty() {
        return Description { text: waits, details: Vec::new() };
    }
    if text.len() > ROOM {
        return Description { text: waits, details };
    }
    Description { text: format!("{text}, {waits}"), details: Vec::new() }
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

/// What a reaction does, and to what it reacts.
fn refresh(row: &Row<'_>) -> String {
    let words = |verb: &Verb| match verb {
        Verb::Restarted => Some(("restart", "restarted")),
        Verb::Reloaded => Some(("reload", "reloaded")),
        Verb::Executed => Some(("run", "ran")),
        _ => None,
    };
    let (later, done) = row.verbs.iter().find_map(words).unwrap_or(("refresh", "refreshed"));
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

fn named((property, text): (String, String)) -> String {
    if property == "ensure" { text } else { format!("{property} {text}") }
}

/// The changes with their properties, as far as they are told in lines.
fn pairs(row: &Row<'_>, theme: Theme, is_told: impl Fn(&Change) -> bool) -> Vec<(String, String)> {
    let told = row.changes.iter().filter(|change| is_told(change));
    // The resources of a manifest have rows of their own.
    let told = told.filter(|change| !(row.kind == "apply" && change.property == "resources"));
    told.map(|change| (printable(&change.property).into_owned(), value_text(row, change, theme)))
        .collect()
}

/// What becomes of a property: `old → new`, or the lines of a text.
fn value_text(row: &Row<'_>, change: &Change, theme: Theme) -> String {
    if change.secret {
        return REDACTED.to_owned();
    }
    let minus = theme.minus();
    match (change.added.unwrap_or(0), change.removed.unwrap_or(0)) {
        (0, 0) if change.added.is_some() && change.from.is_none() => return "empty".to_owned(),
        (0, 0) => {}
        (added, 0) => return format!("+{added}"),
        (0, removed) => return format!("{minus}{removed}"),
        (added, removed) => return format!("+{added} {minus}{removed}"),
    }
    let shown = |value: &ChangeValue| single(row, value, theme);
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => format!("{} {} {}", shown(from), theme.arrow(), shown(to)),
        (Some(value @ ChangeValue::List(_)), None) | (None, Some(value)) => shown(value),
        (Some(from), None) => format!("{} {} none", shown(from), theme.arrow()),
        (None, None) => "changed".to_owned(),
    }
}

/// One value, cut to what tells it from others.
fn single(row: &Row<'_>, value: &ChangeValue, theme: Theme) -> String {
    match value {
        ChangeValue::Switch(is_on) => is_on.to_string(),
        ChangeValue::Text(text) => shortened(text, theme).into_owned(),
        ChangeValue::List(members) => {
            // Members of a tree are known by their place in it.
            let local = |member: &String| {
                let rest = member.strip_prefix(row.name).and_then(|rest| rest.strip_prefix('/'));
                let text = printable(rest.unwrap_or(member)).into_owned();
                cut_middle(&text, VALUE, theme.ellipsis()).into_owned()
            };
            let shown = members.iter().take(MEMBERS).map(local).collect::<Vec<_>>().join(", ");
            match members.len().saturating_sub(MEMBERS) {
                0 => shown,
                more => format!("{shown} and {more} more"),
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
