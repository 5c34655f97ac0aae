//! The user and group databases of the machine, read once for all resources.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ccm_engine::Result;
use ccm_host::{Host, Stat};

use super::{GROUP, PASSWD, Secret};

const SHADOW: &str = "/etc/shadow";
/// A machine with a million users has smaller files.
const MAX_FILE: u64 = 256 << 20;

/// A line of `/etc/passwd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserEntry {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) comment: String,
    pub(crate) home: String,
    pub(crate) shell: String,
}

/// A line of `/etc/group`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupEntry {
    pub(crate) gid: u32,
    pub(crate) members: BTreeSet<String>,
}

/// What a line of `/etc/shadow` says about access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShadowEntry {
    /// The field of the password, as it is.
    pub(crate) password: Secret,
    /// The first day on which the account is expired, counted from 1970.
    pub(crate) expires: Option<i64>,
}

/// The databases of the machine, or what a preview expects of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Databases {
    pub(crate) users: HashMap<String, UserEntry>,
    pub(crate) groups: HashMap<String, GroupEntry>,
    /// `None` if only root may read it.
    pub(crate) shadow: Option<HashMap<String, ShadowEntry>>,
    /// The groups that list a user.
    memberships: HashMap<String, BTreeSet<String>>,
}

impl Databases {
    fn read(host: &Host) -> Result<Self> {
        let text = |path: &str| -> Result<Option<String>, ccm_host::Error> {
            match host.read_bytes(Path::new(path), MAX_FILE) {
                Ok((bytes, _)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
                Err(error) if error.is_missing() => Ok(Some(String::new())),
                Err(error) => Err(error),
            }
        };
        let shadow = match text(SHADOW) {
            Err(error) if error.is_denied() => None,
            other => other?,
        };
        let (passwd, group) = (text(PASSWD)?, text(GROUP)?);
        Ok(Self::parse(&passwd.unwrap_or_default(), &group.unwrap_or_default(), shadow.as_deref()))
    }

    /// The first line of a name counts, as it does for the C library.
    pub(crate) fn parse(passwd: &str, group: &str, shadow: Option<&str>) -> Self {
        let mut databases = Self::default();
        for (name, entry) in passwd.lines().filter_map(user) {
            databases.users.entry(name).or_insert(entry);
        }
        for (name, entry) in group.lines().filter_map(group_entry) {
            if !databases.groups.contains_key(&name) {
                databases.set_group(&name, entry);
            }
        }
        databases.shadow = shadow.map(|text| {
            let mut entries = HashMap::new();
            for (name, entry) in text.lines().filter_map(shadow_entry) {
                entries.entry(name).or_insert(entry);
            }
            entries
        });
        databases
    }

    /// Sets a group with its members.
    pub(crate) fn set_group(&mut self, name: &str, entry: GroupEntry) {
        self.remove_group(name);
        for member in &entry.members {
            let groups = self.memberships.entry(member.clone()).or_default();
            groups.insert(name.to_owned());
        }
        self.groups.insert(name.to_owned(), entry);
    }

    pub(crate) fn remove_group(&mut self, name: &str) {
        let Some(former) = self.groups.remove(name) else { return };
        for member in former.members {
            if let Some(groups) = self.memberships.get_mut(&member) {
                groups.remove(name);
            }
        }
    }

    /// The groups that list a user, sorted.
    pub(crate) fn groups_of(&self, user: &str) -> Vec<String> {
        let groups = self.memberships.get(user);
        groups.map(|groups| groups.iter().cloned().collect()).unwrap_or_default()
    }

    /// The name of a group with this ID.
    pub(crate) fn group_with(&self, gid: u32) -> Option<&str> {
        let found = self.groups.iter().filter(|(_, group)| group.gid == gid);
        found.map(|(name, _)| name.as_str()).min()
    }

    /// The name of a user with this ID, other than the one named.
    pub(crate) fn other_user_with(&self, uid: u32, name: &str) -> Option<&str> {
        let found = self.users.iter().filter(|(other, user)| user.uid == uid && *other != name);
        found.map(|(name, _)| name.as_str()).min()
    }

    /// The name of a user with this primary group.
    pub(crate) fn user_of_group(&self, gid: u32, except: Option<&str>) -> Option<&str> {
        let is_meant = |name: &str| except.is_none_or(|except| except != name);
        let found = self.users.iter().filter(|(name, user)| user.gid == gid && is_meant(name));
        found.map(|(name, _)| name.as_str()).min()
    }
}

fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.split(':').collect();
    fields.try_into().ok()
}

fn user(line: &str) -> Option<(String, UserEntry)> {
    let [name, _, uid, gid, comment, home, shell] = fields(line)?;
    // Lines of NIS begin with a sign and are no users.
    if name.is_empty() || name.starts_with(['+', '-']) {
        return None;
    }
    let entry = UserEntry {
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        comment: comment.to_owned(),
        home: home.to_owned(),
        shell: shell.to_owned(),
    };
    Some((name.to_owned(), entry))
}

fn group_entry(line: &str) -> Option<(String, GroupEntry)> {
    let [name, _, gid, members] = fields(line)?;
    if name.is_empty() || name.starts_with(['+', '-']) {
        return None;
    }
    let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned);
    Some((name.to_owned(), GroupEntry { gid: gid.parse().ok()?, members: members.collect() }))
}

fn shadow_entry(line: &str) -> Option<(String, ShadowEntry)> {
    let [name, password, _, _, _, _, _, expires, _] = fields(line)?;
    let expires = expires.parse().ok().filter(|day| *day >= 0);
    Some((name.to_owned(), ShadowEntry { password: Secret::new(password), expires }))
}

/// The files as they were read: what tells that one has changed since.
type Marks = [Option<(u64, i128, u64)>; 3];

/// The databases of a run, and when they were read.
#[derive(Default)]
struct Known(Mutex<Option<(u64, Marks, Arc<Databases>)>>);

/// What a preview expects of the databases, once a step would change them.
#[derive(Debug, Default)]
struct Predicted(Mutex<Option<Arc<Databases>>>);

impl Predicted {
    fn get(&self) -> Option<Arc<Databases>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clone for Predicted {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.get()))
    }
}

fn marks(host: &Host) -> Marks {
    let mark = |stat: Stat| (stat.ino, stat.mtime.as_nanosecond(), stat.size);
    let look = |path| host.stat(&PathBuf::from(path)).ok().flatten().map(mark);
    [PASSWD, GROUP, SHADOW].map(look)
}

/// The databases: in a preview, as its steps would leave them. They are read again
/// only after they have changed, or a command may have changed them.
pub(crate) fn databases(host: &Host) -> Result<Arc<Databases>> {
    if let Some(predicted) = host.predicted::<Predicted>().get() {
        return Ok(predicted);
    }
    let known = host.cached::<Known>();
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (commands, marks) = (host.changes().commands, marks(host));
    if let Some((then, before, databases)) = &*known
        && (*then, before) == (commands, &marks)
    {
        return Ok(Arc::clone(databases));
    }
    let databases = Arc::new(Databases::read(host)?);
    *known = Some((commands, marks, Arc::clone(&databases)));
    Ok(databases)
}

/// In a preview: changes what is expected of the databases.
pub(crate) fn predict(host: &Host, change: impl FnOnce(&mut Databases)) -> Result<()> {
    let predicted = host.predicted::<Predicted>();
    if predicted.get().is_none() {
        let now = databases(host)?;
        *predicted.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
    let mut expected = predicted.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(databases) = &mut *expected {
        change(Arc::make_mut(databases));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nann:x:1001:1001:Ann:/home/ann:/bin/sh\n\
                          ann:x:9:9:twice::\n+nis::::::\nbroken:x:a:b\nbob:x:1002:100::/h:/s\n";
    const GROUP: &str = "root:x:0:\nann:x:1001:\nadm:x:4:ann,bob\nsudo:x:27:ann\nusers:x:100:\n";
    const SHADOW: &str = "root:*:19000:0:99999:7:::\nann:$6$s$h:19000:0:99999:7::20000:\n\
                          bob:!$6$s$h:19000:0:99999:7:::\nshort:x\n";

    #[test]
    fn databases_are_read() {
        let databases = Databases::parse(PASSWD, GROUP, Some(SHADOW));
        assert_eq!(databases.users.len(), 3);
        assert_eq!(databases.users["ann"].uid, 1001);
        assert_eq!(databases.users["ann"].comment, "Ann");
        assert_eq!(databases.groups_of("ann"), ["adm", "sudo"]);
        assert_eq!(databases.groups_of("nobody"), [""; 0]);
        assert_eq!(databases.group_with(100), Some("users"));
        assert_eq!(databases.other_user_with(1001, "bob"), Some("ann"));
        assert_eq!(databases.other_user_with(1001, "ann"), None);
        assert_eq!(databases.user_of_group(100, None), Some("bob"));
        assert_eq!(databases.user_of_group(100, Some("bob")), None);
        let shadow = databases.shadow.unwrap();
        assert_eq!(shadow["ann"].expires, Some(20000));
        assert_eq!(shadow["bob"].password.expose(), "!$6$s$h");
        assert_eq!(shadow.len(), 3);
        assert_eq!(Databases::parse("", "", None).shadow, None);
    }

    #[test]
    fn a_group_that_changes_has_other_members() {
        let mut databases = Databases::parse(PASSWD, GROUP, None);
        let members = ["bob".to_owned()].into();
        databases.set_group("adm", GroupEntry { gid: 4, members });
        assert_eq!(databases.groups_of("ann"), ["sudo"]);
        assert_eq!(databases.groups_of("bob"), ["adm"]);
        databases.remove_group("adm");
        assert_eq!(databases.groups_of("bob"), [""; 0]);
    }

    #[test]
    fn a_run_reads_the_databases_once_and_a_preview_expects_others() {
        let host = Host::new();
        let first = databases(&host).unwrap();
        assert!(first.users.contains_key("root"));
        assert!(Arc::ptr_eq(&first, &databases(&host).unwrap()));
        let preview = host.preview();
        predict(&preview, |databases| drop(databases.users.remove("root"))).unwrap();
        assert!(!databases(&preview).unwrap().users.contains_key("root"));
        let copy = preview.preview();
        predict(&copy, |databases| databases.users.clear()).unwrap();
        assert!(databases(&copy).unwrap().users.is_empty());
        assert!(databases(&host).unwrap().users.contains_key("root"));
        let command = ccm_host::Command::new("true", [""; 0]);
        host.run(&command, &mut |_, _| {}).unwrap();
        assert!(!Arc::ptr_eq(&first, &databases(&host).unwrap()));
    }
}
