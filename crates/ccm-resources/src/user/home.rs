//! Home directories: what is there, and whether one may be removed.

use std::path::{Component, Path};

use ccm_engine::Result;
use ccm_host::{FileKind, Host};

use super::state::Home;
use crate::accounts::Databases;

const DEFAULTS: &str = "/etc/default/useradd";
const MAX_DEFAULTS: u64 = 1 << 20;

/// Where `useradd` puts the home directory of a new user.
pub(super) fn default_home(host: &Host, name: &str) -> String {
    let text = host.read_text(Path::new(DEFAULTS), MAX_DEFAULTS);
    let text = text.map(|(text, _)| text).unwrap_or_default();
    format!("{}/{name}", base(&text).trim_end_matches('/'))
}

fn base(defaults: &str) -> &str {
    let line = defaults.lines().rev().find_map(|line| line.trim().strip_prefix("HOME="));
    line.map(str::trim).filter(|path| path.starts_with('/')).unwrap_or("/home")
}

/// What is at the path of a home directory. A symlink leads to it, except where
/// it is to be removed.
pub(super) fn look(host: &Host, path: &str) -> Result<Home> {
    if !path.starts_with('/') {
        return Ok(Home::Missing);
    }
    Ok(match host.stat(Path::new(path))? {
        Some(stat) if stat.kind == FileKind::Directory => Home::Directory(stat.uid),
        Some(_) => Home::Other,
        None if host.lstat(Path::new(path))?.is_some() => Home::Other,
        None => Home::Missing,
    })
}

/// Why the home directory of a user must not be removed, if so.
pub(super) fn keeps(
    host: &Host,
    databases: &Databases,
    name: &str,
    uid: u32,
    home: &str,
) -> Result<Option<String>> {
    let path = Path::new(home);
    if let Some(reason) = by_path(path) {
        return Ok(Some(reason.to_owned()));
    }
    let Some(stat) = host.lstat(path)? else { return Ok(None) };
    match stat.kind {
        FileKind::Directory => {}
        FileKind::Symlink => return Ok(Some("it is a symlink".to_owned())),
        FileKind::File | FileKind::Other => return Ok(Some("it is not a directory".to_owned())),
    }
    if stat.uid != uid {
        return Ok(Some(format!("it belongs to the ID {}, not to {uid}", stat.uid)));
    }
    let real = host.canonicalize(path)?;
    if let Some(reason) = by_path(&real) {
        return Ok(Some(reason.to_owned()));
    }
    if let Some(mount) = host.mounts_below(&real).first() {
        return Ok(Some(format!("something is mounted on {}", mount.display())));
    }
    let others = databases.users.iter().filter(|(other, _)| *other != name);
    let mut sharing: Vec<&str> = others
        .filter(|(_, entry)| {
            let theirs = Path::new(&entry.home);
            let is_below = |theirs: &Path| theirs.starts_with(&real) || theirs.starts_with(path);
            is_below(theirs) || host.canonicalize(theirs).is_ok_and(|theirs| is_below(&theirs))
        })
        .map(|(other, _)| other.as_str())
        .collect();
    sharing.sort_unstable();
    Ok(sharing.first().map(|other| format!("the home directory of user {other} is in it")))
}

/// What the path alone tells.
pub(super) fn by_path(path: &Path) -> Option<&'static str> {
    let mut depth = 0;
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(_) => depth += 1,
            _ => return Some("its path is not clean"),
        }
    }
    if !path.is_absolute() {
        return Some("its path is not absolute");
    }
    (depth < 2).then_some("it is `/`, or right below `/`")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the test sets its stage")]

    use super::*;

    #[test]
    fn homes_are_where_useradd_puts_them() {
        assert_eq!(base(""), "/home");
        assert_eq!(base("# HOME=/x\nSHELL=/bin/sh\n"), "/home");
        assert_eq!(base("HOME=/srv/people\n"), "/srv/people");
        assert_eq!(base("HOME=people\n"), "/home");
    }

    #[test]
    fn some_paths_are_never_removed() {
        for path in ["/", "/root", "/home", "/var/..", "relative/x", ""] {
            assert!(by_path(Path::new(path)).is_some(), "{path}");
        }
        assert_eq!(by_path(Path::new("/home/ann")), None);
    }

    fn kept(databases: &str, uid: u32, home: &Path) -> Option<String> {
        let databases = Databases::parse(databases, "", None);
        keeps(&Host::new(), &databases, "ann", uid, home.to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_home_stays_that_is_not_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("ann/deep/bob")).unwrap();
        std::os::unix::fs::symlink("ann", at("link")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        let (uid, _) = Host::new().whoami();
        let home = at("ann");
        assert_eq!(kept("", uid, &home), None);
        assert_eq!(kept("", uid, &at("none")), None);
        assert!(kept("", uid + 1, &home).unwrap().contains("belongs to the ID"));
        assert_eq!(kept("", uid, &at("link")).unwrap(), "it is a symlink");
        assert_eq!(kept("", uid, &at("file")).unwrap(), "it is not a directory");
        let other = |name: &str, home: &Path| format!("{name}:x:1:1::{}:/bin/sh\n", home.display());
        for theirs in ["ann", "ann/deep/bob", "link", "link/deep"] {
            let said = kept(&other("bob", &at(theirs)), uid, &home);
            assert_eq!(said.unwrap(), "the home directory of user bob is in it", "{theirs}");
        }
        assert_eq!(kept(&other("ann", &home), uid, &home), None);
        assert_eq!(kept(&other("bob", &at("annex")), uid, &home), None);
        assert!(kept("", 0, Path::new("/proc/self")).is_some());
    }
}
