//! What an edit changes, for events, previews and diffs.

use ccm_engine::Diffs;
use ccm_host::Host;
use ccm_model::Change;

use super::Properties;
use super::state::{Found, State};
use crate::text_diff::{hidden, line_counts, no_text, redacted};

/// One change per line or entry, redacted where the file is not for everybody.
pub(super) fn entries(have: &State, changes: &[ccm_textedit::Change]) -> Vec<Change> {
    changes.iter().map(|change| entry(have, change)).collect()
}

fn entry(have: &State, change: &ccm_textedit::Change) -> Change {
    let name = change.name.clone();
    if have.is_secret {
        return Change::secret(name);
    }
    if have.format == "block" {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        return Change::of(name).lines(line_counts(&text(&change.from), &text(&change.to)));
    }
    let mut shown = Change::of(name);
    shown.from = change.from.clone().map(Into::into);
    shown.to = change.to.clone().map(Into::into);
    shown
}

/// The changes of the step; a new file has attributes too.
pub(super) fn of(want: &Properties, have: &State, changes: &[ccm_textedit::Change]) -> Vec<Change> {
    let mut all = Vec::new();
    if have.stat.is_none() {
        all.push(Change::of("ensure").from("absent").to("present"));
    }
    all.extend(entries(have, changes));
    if have.stat.is_none() {
        let attributes = [("owner", &want.owner), ("group", &want.group), ("mode", &want.mode)];
        for (property, value) in attributes {
            all.push(Change::of(property).to(value.as_deref().unwrap_or_default()));
        }
    }
    all
}

/// What noop says: `Would have edited 2 keys`.
pub(super) fn said(want: &Properties, have: &State, changes: &[ccm_textedit::Change]) -> String {
    if have.stat.is_none() {
        return "Would have created the file".to_owned();
    }
    let is_all = |test: fn(&ccm_textedit::Change) -> bool| changes.iter().all(test);
    let verb = if is_all(|change| change.from.is_none()) {
        "inserted"
    } else if is_all(|change| change.to.is_none()) {
        "removed"
    } else if want.is_structured() || !is_all(|change| change.from.is_some() && change.to.is_some())
    {
        "edited"
    } else {
        "replaced"
    };
    let noun = match want.format.as_str() {
        "block" => return format!("Would have {verb} block"),
        "line" => "line",
        _ => "key",
    };
    // Keys are set or removed, whatever was there.
    let verb = if noun == "key" && verb == "inserted" { "edited" } else { verb };
    let count = changes.len();
    format!("Would have {verb} {count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The diff, or a line that says why there is none.
pub(super) fn diff(have: &State, diffs: Diffs, host: &Host) -> Option<String> {
    let (Found::Missing(Some(Ok(edited))) | Found::File(Ok(edited))) = &have.found else {
        return None;
    };
    let path = have.path.to_string_lossy();
    let texts = std::str::from_utf8(&have.text).ok().zip(std::str::from_utf8(&edited.text).ok());
    if have.is_secret && diffs != Diffs::All {
        let counts = texts.map(|(old, new)| line_counts(old, new));
        return Some(hidden(&path, counts.map(|(added, removed)| added + removed)));
    }
    let Some((old, new)) = texts else { return Some(no_text(&path)) };
    let old = have.stat.is_some().then_some(old);
    Some(redacted(&host.redactor(), &path, old, new))
}
