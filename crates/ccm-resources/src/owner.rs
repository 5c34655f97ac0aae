//! `--owner USER[:GROUP]` at the command line.

use ccm_engine::Arguments;
use ccm_host::Host;

/// Makes owner and group out of one, and the caller's own where none is given.
pub(crate) fn prepare(arguments: &mut Arguments, host: &Host) {
    let (uid, gid) = host.whoami();
    match arguments.get("owner").and_then(|owner| owner.split_once(':')) {
        Some((user, group)) => {
            let (user, group) = (user.to_owned(), group.to_owned());
            if arguments.get("group").is_none() {
                arguments.set("group", group);
            }
            arguments.set("owner", user);
        }
        None if arguments.get("owner").is_none() => arguments.set("owner", uid.to_string()),
        None => {}
    }
    if arguments.get("group").is_none() {
        arguments.set("group", gid.to_string());
    }
}
