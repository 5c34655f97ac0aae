//! What the types `user` and `group` share: the databases in `/etc`, the tools
//! that change them, and the form of names and IDs.

mod database;
mod name;
mod nss;
mod secret;
mod tool;

pub(crate) use database::{Databases, GroupEntry, ShadowEntry, UserEntry, databases, predict};
pub(crate) use name::{check_id, check_mode_word, check_name};
pub(crate) use nss::source_of;
pub(crate) use secret::Secret;
pub(crate) use tool::{group_members_removed, run, run_code};

/// The file that local users come from.
pub(crate) const PASSWD: &str = "/etc/passwd";
/// The file that local groups come from.
pub(crate) const GROUP: &str = "/etc/group";
/// The largest ID that a user or group can have.
pub(crate) const MAX_ID: i64 = 4_294_967_293;

/// The words of a property that says whether a list of members is all of them.
pub(crate) const MODES: &[&str] = &["minimum", "exact"];
/// The list is all of them.
pub(crate) const EXACT: &str = "exact";

/// A number of things in words: `1 member`, `2 members`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A placeholder in a list gives one text, so several names may stand in it,
/// separated by commas.
pub(crate) fn split_list(list: &mut Option<Vec<String>>) {
    let Some(items) = list.as_mut().filter(|items| items.iter().any(|item| item.contains(',')))
    else {
        return;
    };
    let names = items.iter().flat_map(|item| item.split(','));
    *items = names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
}
