//! Users and groups, cached until a command runs.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use nix::unistd::{Gid, Group, Uid, User};

use crate::{Error, Host, Result, getent};

/// A user as the user database has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Numeric ID.
    pub uid: u32,
    /// Numeric ID of the primary group.
    pub gid: u32,
    /// Names of all groups, the primary one included, sorted; a group without a
    /// name has its number.
    pub groups: Vec<String>,
    /// The home directory.
    pub home: PathBuf,
    /// The login shell.
    pub shell: PathBuf,
}

/// What was looked up, absence included.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// How many commands had run by then: the next one may make or remove users.
    commands: u64,
    uids: HashMap<String, Option<u32>>,
    gids: HashMap<String, Option<u32>>,
    names: HashMap<u32, Arc<str>>,
    group_names: HashMap<u32, Arc<str>>,
}

impl Host {
    /// What is known of users and groups since the last command.
    fn users(&self) -> MutexGuard<'_, Users> {
        let commands = self.inner.commands.load(Ordering::Relaxed);
        let mut users = self.inner.users.hold();
        if users.commands != commands {
            *users = Users { commands, ..Users::default() };
        }
        users
    }

    /// The id of a user given by name, or by number without asking anyone.
    pub fn uid(&self, name: &str) -> Result<u32> {
        match numeric("user", name)? {
            Some(id) => Ok(id),
            None => {
                self.find_user(name).ok_or_else(|| Error::UnknownUser { name: name.to_owned() })
            }
        }
    }

    /// The id of a group given by name, or by number without asking anyone.
    pub fn gid(&self, name: &str) -> Result<u32> {
        match numeric("group", name)? {
            Some(id) => Ok(id),
            None => {
                self.find_group(name).ok_or_else(|| Error::UnknownGroup { name: name.to_owned() })
            }
        }
    }

    /// The id of a user of this name, if there is one; digits are a name too.
    pub fn find_user(&self, name: &str) -> Option<u32> {
        if let Some(predicted) = self.predicted_account(name) {
            return predicted.0.map(|account| account.uid);
        }
        let mut users = self.users();
        if let Some(&known) = users.uids.get(name) {
            return known;
        }
        let id = user_named(name).ok().flatten().map(|user| user.uid.as_raw());
        users.uids.insert(name.to_owned(), id);
        id
    }

    /// The id of a group of this name, if there is one; digits are a name too.
    pub fn find_group(&self, name: &str) -> Option<u32> {
        if let Some(predicted) = self.predicted_group(name) {
            return predicted.0;
        }
        let mut users = self.users();
        if let Some(&known) = users.gids.get(name) {
            return known;
        }
        let id = group_named(name).ok().flatten().map(|group| group.gid.as_raw());
        users.gids.insert(name.to_owned(), id);
        id
    }

    /// A user as the database has it now, whatever was looked up before.
    pub fn account(&self, name: &str) -> Result<Option<Account>> {
        if let Some(predicted) = self.predicted_account(name) {
            return Ok(predicted.0);
        }
        let found = user_named(name).map_err(|errno| lookup_failed(name, errno))?;
        found.map(|user| self.account_from(user)).transpose()
    }

    /// The same for a user given by number.
    pub fn account_of(&self, uid: u32) -> Result<Option<Account>> {
        if let Some(predicted) = self.predicted_account_of(uid) {
            return Ok(Some(predicted));
        }
        user_with(uid).map(|user| self.account_from(user)).transpose()
    }

    fn account_from(&self, user: User) -> Result<Account> {
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        let name_of = |gid: u32| self.current_group_name(gid).unwrap_or_else(|| gid.to_string());
        let mut groups: Vec<String> =
            self.group_ids(&user.name, gid)?.into_iter().map(name_of).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(Account { name: user.name, uid, gid, groups, home: user.dir, shell: user.shell })
    }

    /// The groups that the database lists for a user, with `gid` as the primary one.
    pub(crate) fn group_ids(&self, name: &str, gid: u32) -> Result<Vec<u32>> {
        if let Some(predicted) = self.predicted_account(name).and_then(|expected| expected.0) {
            let others = predicted.groups.iter().filter_map(|group| self.find_group(group));
            let mut ids: Vec<u32> = std::iter::once(gid).chain(others).collect();
            ids.dedup();
            return Ok(ids);
        }
        let of = CString::new(name).map_err(|_| lookup_failed(name, nix::Error::EINVAL))?;
        let mut ids = nix::unistd::getgrouplist(&of, Gid::from_raw(gid))
            .map_err(|errno| lookup_failed(name, errno))?;
        if getent::IS_NEEDED {
            ids.extend(getent::groups_of(name));
        }
        Ok(ids.into_iter().map(Gid::as_raw).collect())
    }

    /// The id of a group as the database has it now.
    pub fn current_group(&self, name: &str) -> Result<Option<u32>> {
        if let Some(predicted) = self.predicted_group(name) {
            return Ok(predicted.0);
        }
        let found = group_named(name)
            .map_err(|errno| Error::std_io("look up the group", Path::new(name))(errno.into()))?;
        Ok(found.map(|group| group.gid.as_raw()))
    }

    /// The name of a user as the database has it now.
    pub fn current_user_name(&self, uid: u32) -> Option<String> {
        if let Some(predicted) = self.predicted_account_of(uid) {
            return Some(predicted.name);
        }
        user_with(uid).map(|user| user.name)
    }

    /// The name of a group as the database has it now.
    pub fn current_group_name(&self, gid: u32) -> Option<String> {
        if let Some(predicted) = self.predicted_group_of(gid) {
            return Some(predicted);
        }
        group_with(gid).map(|group| group.name)
    }

    /// The name of a user, or its number where it has none.
    pub fn user_name(&self, uid: u32) -> Arc<str> {
        if let Some(predicted) = self.predicted_account_of(uid) {
            return predicted.name.into();
        }
        let names = &mut self.users().names;
        Arc::clone(names.entry(uid).or_insert_with(|| {
            user_with(uid).map_or_else(|| uid.to_string(), |user| user.name).into()
        }))
    }

    /// The name of a group, or its number where it has none.
    pub fn group_name(&self, gid: u32) -> Arc<str> {
        if let Some(predicted) = self.predicted_group_of(gid) {
            return predicted.into();
        }
        let names = &mut self.users().group_names;
        Arc::clone(names.entry(gid).or_insert_with(|| {
            group_with(gid).map_or_else(|| gid.to_string(), |group| group.name).into()
        }))
    }

    /// The caller's effective user and group.
    pub fn whoami(&self) -> (u32, u32) {
        let ask = || (Uid::effective().as_raw(), Gid::effective().as_raw());
        *self.inner.whoami.get_or_init(ask)
    }

    /// Whether the caller may do everything.
    pub fn is_root(&self) -> bool {
        self.whoami().0 == 0
    }
}

fn user_named(name: &str) -> nix::Result<Option<User>> {
    let found = User::from_name(name)?;
    Ok(found.or_else(|| getent::IS_NEEDED.then(|| getent::user_named(name)).flatten()))
}

fn group_named(name: &str) -> nix::Result<Option<Group>> {
    let found = Group::from_name(name)?;
    Ok(found.or_else(|| getent::IS_NEEDED.then(|| getent::group_named(name)).flatten()))
}

fn user_with(uid: u32) -> Option<User> {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    found.or_else(|| getent::IS_NEEDED.then(|| getent::user_with(uid)).flatten())
}

fn group_with(gid: u32) -> Option<Group> {
    let found = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    found.or_else(|| getent::IS_NEEDED.then(|| getent::group_with(gid)).flatten())
}

fn lookup_failed(name: &str, errno: nix::Error) -> Error {
    Error::std_io("look up the user", Path::new(name))(errno.into())
}

/// An id given in digits. The largest one means "leave as it is" to the
/// system, so it is no id.
fn numeric(what: &'static str, name: &str) -> Result<Option<u32>> {
    if name.is_empty() {
        return Err(Error::EmptyName { what });
    }
    if !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    match name.parse::<u32>() {
        Ok(id) if id != u32::MAX => Ok(Some(id)),
        _ => Err(Error::InvalidId { id: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let host = Host::new();
        assert_eq!(host.uid("root").unwrap(), 0);
        assert_eq!(host.gid("root").unwrap(), 0);
        assert_eq!(&*host.user_name(0), "root");
        assert_eq!(&*host.group_name(4_000_123), "4000123");
        assert_eq!(host.uid("4000123").unwrap(), 4_000_123);
    }

    #[test]
    fn accounts_are_those_of_the_database() {
        let host = Host::new();
        let root = host.account("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&"root".to_owned()) && root.groups.is_sorted());
        assert!(root.home.is_absolute());
        assert_eq!(host.account_of(0).unwrap(), Some(root));
        assert_eq!(host.account_of(4_000_123).unwrap(), None);
        assert_eq!(host.account("nobody-here").unwrap(), None);
        assert_eq!(host.account("a\0b").ok().flatten(), None);
        assert_eq!(host.current_group("root").unwrap(), Some(0));
        assert_eq!(host.current_group("no-group").unwrap(), None);
        assert_eq!(host.current_user_name(0).as_deref(), Some("root"));
        assert_eq!(host.current_group_name(4_000_123), None);
    }

    #[test]
    fn a_command_makes_what_is_known_old() {
        let host = Host::new();
        assert_eq!(host.find_user("nobody-here"), None);
        assert_eq!(&*host.user_name(0), "root");
        let known = |host: &Host| {
            let users = host.users();
            (users.uids.len(), users.names.len())
        };
        assert_eq!(known(&host), (1, 1));
        host.run(&crate::Command::new("true", [""; 0]), &mut |_, _| {}).unwrap();
        assert_eq!(known(&host), (0, 0));
    }

    #[test]
    fn what_does_not_exist_is_said_so() {
        let host = Host::new();
        assert_eq!(
            host.uid("nobody-here").unwrap_err().to_string(),
            "could not lookup user `nobody-here`: it does not exist"
        );
        assert_eq!(
            host.gid("no-group").unwrap_err().to_string(),
            "could not lookup group `no-group`: it does not exist"
        );
        assert_eq!(host.uid("").unwrap_err().to_string(), "user name cannot be empty");
        assert_eq!(host.gid("").unwrap_err().to_string(), "group name cannot be empty");
        assert!(host.uid("4294967295").is_err());
        assert!(host.uid("99999999999").is_err());
        assert!(host.uid("-1").is_err());
    }
}
