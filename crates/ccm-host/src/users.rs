//! Users and groups, looked up once per run.

use std::collections::HashMap;
use std::rc::Rc;

use nix::unistd::{Gid, Group, Uid, User};

use crate::{Error, Host, Result};

#[derive(Debug, Default)]
pub(crate) struct Users {
    uids: HashMap<String, u32>,
    gids: HashMap<String, u32>,
    uids_found: HashMap<String, Option<u32>>,
    gids_found: HashMap<String, Option<u32>>,
    names: HashMap<u32, Rc<str>>,
    group_names: HashMap<u32, Rc<str>>,
}

impl Host {
    /// The id of a user given by name, or by number without asking anyone.
    pub fn uid(&self, name: &str) -> Result<u32> {
        if let Some(id) = numeric("user", name)? {
            return Ok(id);
        }
        let users = &mut self.inner.users.borrow_mut();
        if let Some(&id) = users.uids.get(name) {
            return Ok(id);
        }
        let user = User::from_name(name).ok().flatten();
        let id = user.ok_or_else(|| Error::UnknownUser { name: name.to_owned() })?.uid.as_raw();
        users.uids.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The id of a group given by name, or by number without asking anyone.
    pub fn gid(&self, name: &str) -> Result<u32> {
        if let Some(id) = numeric("group", name)? {
            return Ok(id);
        }
        let users = &mut self.inner.users.borrow_mut();
        if let Some(&id) = users.gids.get(name) {
            return Ok(id);
        }
        let group = Group::from_name(name).ok().flatten();
        let id = group.ok_or_else(|| Error::UnknownGroup { name: name.to_owned() })?.gid.as_raw();
        users.gids.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The id of a user of this name, if there is one; digits are a name too.
    pub fn find_user(&self, name: &str) -> Option<u32> {
        let found = &mut self.inner.users.borrow_mut().uids_found;
        if let Some(&known) = found.get(name) {
            return known;
        }
        let id = User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
        found.insert(name.to_owned(), id);
        id
    }

    /// The id of a group of this name, if there is one; digits are a name too.
    pub fn find_group(&self, name: &str) -> Option<u32> {
        let found = &mut self.inner.users.borrow_mut().gids_found;
        if let Some(&known) = found.get(name) {
            return known;
        }
        let id = Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
        found.insert(name.to_owned(), id);
        id
    }

    /// The name of a user, or its number where it has none.
    pub fn user_name(&self, uid: u32) -> Rc<str> {
        let users = &mut self.inner.users.borrow_mut().names;
        Rc::clone(users.entry(uid).or_insert_with(|| {
            let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
            user.map_or_else(|| uid.to_string(), |user| user.name).into()
        }))
    }

    /// The name of a group, or its number where it has none.
    pub fn group_name(&self, gid: u32) -> Rc<str> {
        let users = &mut self.inner.users.borrow_mut().group_names;
        Rc::clone(users.entry(gid).or_insert_with(|| {
            let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
            group.map_or_else(|| gid.to_string(), |group| group.name).into()
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
    fn what_does_not_exist_is_said_so() {
        let host = Host::new();
        assert_eq!(
            host.uid("nobody-here").unwrap_err().to_string(),
            "could not lookup user `nobody-here`"
        );
        assert_eq!(
            host.gid("no-group").unwrap_err().to_string(),
            "could not lookup group `no-group`"
        );
        assert_eq!(host.uid("").unwrap_err().to_string(), "user name cannot be empty");
        assert_eq!(host.gid("").unwrap_err().to_string(), "group name cannot be empty");
        assert!(host.uid("4294967295").is_err());
        assert!(host.uid("99999999999").is_err());
        assert!(host.uid("-1").is_err());
    }
}
