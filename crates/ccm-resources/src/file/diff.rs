//! Diffs of file contents.

use std::path::Path;

use ccm_engine::Diffs;
use ccm_host::{Attributes, Host};

use super::{Content, Provider, State};
use crate::text_diff::{hidden, line_counts, no_text, redacted};

/// The diff, or a line that says why there is none.
pub(super) fn of(
    on: &mut dyn Provider,
    path: &Path,
    content: &Content,
    wanted: &Attributes,
    have: &State,
    diffs: Diffs,
    host: &Host,
) -> Option<String> {
    if *content == Content::Empty {
        return None;
    }
    let shown = path.to_string_lossy();
    let is_new = have.stat.is_none();
    let texts = on.texts(path, content, is_new);
    let modes = [have.stat.map_or(wanted.mode, |stat| stat.mode), wanted.mode];
    if diffs != Diffs::All && modes.iter().any(|mode| mode & 0o004 == 0) {
        let counts = texts.map(|(old, new)| line_counts(&old, &new));
        return Some(hidden(&shown, counts.map(|(added, removed)| added + removed)));
    }
    let Some((old, new)) = texts else { return Some(no_text(&shown)) };
    if old == new {
        return None;
    }
    Some(redacted(&host.redactor(), &shown, (!is_new).then_some(&old), &new))
}
