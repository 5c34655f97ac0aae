//! What changes in a file's text.

use ccm_engine::{Context, Diffs};
use ccm_host::Attributes;

use super::{Properties, Provider, State};
use crate::text_diff::{hidden, no_text, unified};

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
        return Some(hidden(path));
    }
    let Some((old, new)) = on.texts(want, cx) else { return Some(no_text(path)) };
    if old == new {
        return None;
    }
    Some(unified(path, have.stat.is_some().then_some(&old), &new))
}
