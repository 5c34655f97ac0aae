//! What a step changes, property by property.

use ccm_engine::Step;
use ccm_host::Digest;
use ccm_model::{Change, Verb};

use super::{Action, Content, ContentState, CurrentFile, Properties, State};

/// The step that takes an action, with everything that it changes.
pub(super) fn step(want: &Properties, have: &State, action: Action) -> Step<Action> {
    let is_new = have.found == CurrentFile::Nothing;
    let mut changes = Vec::new();
    if is_new {
        changes.push(have.ensure_change(&want.common.ensure));
    }
    let is_written = matches!(&action, Action::Store { content, .. } if *content != Content::Empty);
    if is_written && have.content != ContentState::Same {
        changes.push(content(want, have));
    }
    attributes(want, have, &mut changes);
    Step { verb: if is_new { Verb::Created } else { Verb::Updated }, changes, action }
}

/// A change of the content, redacted if the file is not world-readable.
fn content(want: &Properties, have: &State) -> Change {
    if have.is_hidden() {
        return Change::secret("content");
    }
    let digest = |digest: Digest| format!("sha256:{digest}");
    let mut change = Change::of("content");
    change.from = have.checksum.map(|checksum| digest(checksum).into());
    change.to = have.wanted_checksum.map(|checksum| digest(checksum).into());
    match (have.lines, &want.content) {
        (Some(lines), _) => change.lines(lines),
        (None, Some(text)) if have.found == CurrentFile::Nothing => {
            change.lines((text.lines().count() as u64, 0))
        }
        _ => change,
    }
}

/// Owner, group and mode, as they were given where there was nothing before.
pub(super) fn attributes(want: &Properties, have: &State, changes: &mut Vec<Change>) {
    let Some(wanted) = have.wanted else { return };
    let mode = |mode: u32| format!("{mode:04o}");
    let Some(stat) = &have.stat else {
        changes.push(Change::of("owner").to(want.owner.as_str()));
        changes.push(Change::of("group").to(want.group.as_str()));
        changes.push(Change::of("mode").to(mode(wanted.mode)));
        return;
    };
    let name = |name: &Option<std::sync::Arc<str>>, id: u32| {
        name.as_deref().map_or_else(|| id.to_string(), str::to_owned)
    };
    if stat.uid != wanted.uid {
        let from = name(&have.owner, stat.uid);
        changes.push(Change::of("owner").from(from).to(want.owner.as_str()));
    }
    if stat.gid != wanted.gid {
        let from = name(&have.group, stat.gid);
        changes.push(Change::of("group").from(from).to(want.group.as_str()));
    }
    if stat.mode & 0o777 != wanted.mode {
        changes.push(Change::of("mode").from(mode(stat.mode & 0o777)).to(mode(wanted.mode)));
    }
}
