//! What changes in a text, as a unified diff.

use std::fmt::Write as _;

use ccm_engine::{Context, Diffs};
use ccm_host::Attributes;
use similar::TextDiff;

use super::{Properties, Provider, State};

/// Longer diffs are cut: a person wants to see what changes, not all of it.
const MAX_LINES: usize = 500;

/// The diff, or a line that says why there is none.
pub(super) fn of(
    on: &mut dyn Provider,
    want: &Properties,
    have: &State,
    wanted: &Attributes,
    diffs: Diffs,
    cx: &Context<'_>,
) -> Option<String> {
    let path = &want.common.name;
    let modes = [have.stat.map_or(wanted.mode, |stat| stat.mode), wanted.mode];
    if diffs != Diffs::All && modes.iter().any(|mode| mode & 0o004 == 0) {
        return Some(format!("{path}: not shown, its mode hides it from others (--diff=all)\n"));
    }
    let Some((old, new)) = on.texts(want, cx) else {
        return Some(format!("{path}: not shown, not a short text\n"));
    };
    if old == new {
        return None;
    }
    if old.contains('\0') || new.contains('\0') {
        return Some(format!("{path}: not shown, not a short text\n"));
    }
    let before = if have.stat.is_some() { path } else { "/dev/null" };
    let diff = TextDiff::from_lines(&old, &new);
    let text = diff.unified_diff().context_radius(3).header(before, path).to_string();
    let lines = text.lines().count();
    if lines <= MAX_LINES {
        return Some(text);
    }
    let mut cut: String = text.split_inclusive('\n').take(MAX_LINES).collect();
    let _ = writeln!(cut, "… {} more lines", lines - MAX_LINES);
    Some(cut)
}
