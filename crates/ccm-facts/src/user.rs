//! `user`: who runs ccm.

use ccm_host::Host;
use govalue::Value;

use crate::{count, map};

/// The user and group with whose rights ccm works. Without an entry in the user
/// database, names are numbers, as everywhere in ccm, and there is no home.
pub(crate) fn facts(host: &Host) -> Value {
    let (uid, gid) = host.whoami();
    let home = host.account_of(uid).ok().flatten().map(|account| account.home);
    map([
        ("name", host.user_name(uid).to_string().into()),
        ("uid", count(u64::from(uid))),
        ("group", host.group_name(gid).to_string().into()),
        ("gid", count(u64::from(gid))),
        ("home", home.map(|home| home.to_string_lossy().into_owned()).unwrap_or_default().into()),
    ])
}
