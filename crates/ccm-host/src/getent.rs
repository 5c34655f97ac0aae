//! Users and groups that only `getent` knows.
//!
//! glibc asks the modules that `/etc/nsswitch.conf` lists, for directories such as
//! LDAP. A static binary cannot load them: musl reads `/etc/passwd` and
//! `/etc/group` alone. There, the program `getent` of the machine asks in its place.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::unistd::{Gid, Group, Uid, User};

/// Whether the C library of this build asks nothing but files.
pub(crate) const IS_NEEDED: bool = cfg!(target_env = "musl");

/// Where distributions have it. The search path decides nothing about users.
const PROGRAMS: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];

pub(crate) fn user_named(name: &str) -> Option<User> {
    ask("passwd", name, user).filter(|user| user.name == name)
}

pub(crate) fn user_with(uid: u32) -> Option<User> {
    ask("passwd", &uid.to_string(), user).filter(|user| user.uid.as_raw() == uid)
}

pub(crate) fn group_named(name: &str) -> Option<Group> {
    ask("group", name, group).filter(|group| group.name == name)
}

pub(crate) fn group_with(gid: u32) -> Option<Group> {
    ask("group", &gid.to_string(), group).filter(|group| group.gid.as_raw() == gid)
}

/// The groups of a user other than the primary one.
pub(crate) fn groups_of(name: &str) -> Vec<Gid> {
    let ids = |line: &str| {
        let ids = line.strip_prefix(name)?.split_ascii_whitespace();
        Some(ids.filter_map(|id| id.parse().ok().map(Gid::from_raw)).collect())
    };
    ask("initgroups", name, ids).unwrap_or_default()
}

/// Asks for one entry. A name that is no key for `getent` is not known to it.
fn ask<T>(database: &str, key: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let is_key = !key.is_empty()
        && !key.starts_with('-')
        && !key.contains(|c: char| c == ':' || c.is_control() || c.is_whitespace());
    let program = PROGRAMS.iter().find(|program| std::path::Path::new(program).exists());
    let program = program.filter(|_| is_key)?;
    let output = Command::new(program)
        .args([database, key])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    if output.status.success() { text.lines().next().and_then(parse) } else { None }
}

fn user(line: &str) -> Option<User> {
    let [name, _, uid, gid, _, home, shell] = fields(line)?;
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    Some(User {
        name: name.to_owned(),
        passwd: c"x".to_owned(),
        uid: Uid::from_raw(uid),
        gid: Gid::from_raw(gid),
        gecos: c"".to_owned(),
        dir: PathBuf::from(home),
        shell: PathBuf::from(shell),
    })
}

fn group(line: &str) -> Option<Group> {
    let [name, _, gid, members] = fields(line)?;
    Some(Group {
        name: name.to_owned(),
        passwd: c"x".to_owned(),
        gid: Gid::from_raw(gid.parse().ok()?),
        mem: members.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    })
}

fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.split(':').collect();
    fields.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getent_gives_the_answers_of_the_c_library() {
        if ccm_testkit::lacks_program("getent") {
            return;
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
        for name in passwd.lines().filter_map(|line| line.split(':').next()) {
            let expected = User::from_name(name).unwrap().unwrap();
            let found = user_named(name).unwrap();
            let facts = |user: &User| {
                let (dir, shell) = (user.dir.clone(), user.shell.clone());
                (user.name.clone(), user.uid, user.gid, dir, shell)
            };
            assert_eq!(facts(&found), facts(&expected));
            let by_id = user_with(expected.uid.as_raw()).unwrap();
            assert_eq!(by_id.uid, expected.uid);
            let of = std::ffi::CString::new(name).unwrap();
            let mut groups = nix::unistd::getgrouplist(&of, expected.gid).unwrap();
            groups.retain(|gid| *gid != expected.gid);
            let mut found = groups_of(name);
            found.retain(|gid| *gid != expected.gid);
            assert_eq!(found, groups, "{name}");
        }
        let group = group_named("root").unwrap();
        assert_eq!((group.gid.as_raw(), group.name.as_str()), (0, "root"));
        assert_eq!(group_with(0).unwrap().name, "root");
    }

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        for name in ["", "nobody-here", "-s", "--help", "a:b", "a\nb", "a\0b", "0", "root extra"] {
            assert_eq!(user_named(name).map(|user| user.name), None, "{name:?}");
            assert_eq!(group_named(name).map(|group| group.name), None, "{name:?}");
            assert!(groups_of(name).is_empty(), "{name:?}");
        }
        assert!(user_with(4_000_123).is_none() && group_with(4_000_123).is_none());
    }

    #[test]
    fn lines_that_are_no_entries() {
        for line in ["", "a", "a:x:1:2:g:/h", "a:x:-1:2:g:/h:/s", "a:x:1:2:g:/h:/s:more"] {
            assert!(user(line).is_none(), "{line}");
        }
        assert!(group("a:x:b:").is_none() && group("a:x").is_none());
        assert_eq!(group("a:x:7:b,c").unwrap().mem, ["b", "c"]);
    }
}
