//! Users and groups that earlier steps of a preview would make or remove, and the
//! IDs that a run has given to those that it made.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Forecast;
use crate::{Account, Error, Host, Result};

/// The first ID that a preview gives to a user or group whose ID only the run
/// knows. No tool gives such IDs.
const FIRST_OPEN_ID: u32 = 0xFFF0_0000;

/// A user as a preview expects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// Its name.
    pub name: String,
    /// Its ID; `None` if the tool chooses one.
    pub uid: Option<u32>,
    /// The ID of its primary group.
    pub gid: u32,
    /// The names of its other groups.
    pub groups: Vec<String>,
    /// Its home directory.
    pub home: PathBuf,
    /// Its login shell.
    pub shell: PathBuf,
}

/// What the steps of a preview make of users and groups.
#[derive(Clone, Debug, Default)]
pub(super) struct PredictedAccounts {
    /// By name; `None` for those that are removed.
    users: HashMap<String, (Option<Account>, Arc<str>)>,
    groups: HashMap<String, Option<u32>>,
    /// How many IDs are open so far.
    open: u32,
}

/// What a preview expects of a user or group; `None` if there will be none.
#[derive(Clone, Debug)]
pub(crate) struct Expected<T>(pub(crate) Option<T>);

/// The users and groups that got their ID from a tool in this run, by ID.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenIds {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

/// Whether a user or a group is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// A user.
    User,
    /// A group.
    Group,
}

impl Forecast {
    fn open_id(&mut self) -> u32 {
        self.accounts.open += 1;
        FIRST_OPEN_ID + self.accounts.open
    }
}

impl Host {
    /// In a preview: a user will be as described. Where only the run knows its ID,
    /// it gets one that stands for it. Returns the user.
    pub fn predict_account(&self, new: NewAccount) -> Account {
        let group = self.group_name(new.gid).to_string();
        let known = self.predicted_account(&new.name).and_then(|expected| expected.0);
        let mut forecast = self.view.forecast.hold();
        let known = known.map(|account| account.uid);
        let uid = new.uid.or(known).unwrap_or_else(|| forecast.open_id());
        let mut groups = new.groups;
        groups.push(group);
        groups.sort_unstable();
        groups.dedup();
        let NewAccount { name, gid, home, shell, .. } = new;
        let account = Account { name, uid, gid, groups, home, shell };
        let by = Arc::clone(&forecast.current);
        let entry = (Some(account.clone()), by);
        forecast.accounts.users.insert(account.name.clone(), entry);
        account
    }

    /// In a preview: there will be no such user.
    pub fn predict_no_account(&self, name: &str) {
        let mut forecast = self.view.forecast.hold();
        let by = Arc::clone(&forecast.current);
        forecast.accounts.users.insert(name.to_owned(), (None, by));
    }

    /// In a preview: a group will have this ID, or one that only the run knows.
    /// Returns the ID, or one that stands for it.
    pub fn predict_group(&self, name: &str, gid: Option<u32>) -> u32 {
        let mut forecast = self.view.forecast.hold();
        let known = forecast.accounts.groups.get(name).copied().flatten();
        let gid = gid.or(known).unwrap_or_else(|| forecast.open_id());
        forecast.accounts.groups.insert(name.to_owned(), Some(gid));
        gid
    }

    /// In a preview: there will be no such group.
    pub fn predict_no_group(&self, name: &str) {
        self.view.forecast.hold().accounts.groups.insert(name.to_owned(), None);
    }

    /// What the preview decided about a user, if it did.
    pub(crate) fn predicted_account(&self, name: &str) -> Option<Expected<Account>> {
        if !self.is_preview() {
            return None;
        }
        let forecast = self.view.forecast.hold();
        forecast.accounts.users.get(name).map(|(account, _)| Expected(account.clone()))
    }

    /// The user that will have an ID.
    pub(crate) fn predicted_account_of(&self, uid: u32) -> Option<Account> {
        if !self.is_preview() {
            return None;
        }
        let forecast = self.view.forecast.hold();
        let accounts = forecast.accounts.users.values().filter_map(|(account, _)| account.as_ref());
        accounts.into_iter().find(|account| account.uid == uid).cloned()
    }

    /// What the preview decided about a group, if it did.
    pub(crate) fn predicted_group(&self, name: &str) -> Option<Expected<u32>> {
        if !self.is_preview() {
            return None;
        }
        self.view.forecast.hold().accounts.groups.get(name).copied().map(Expected)
    }

    /// The group that will have an ID.
    pub(crate) fn predicted_group_of(&self, gid: u32) -> Option<String> {
        if !self.is_preview() {
            return None;
        }
        let forecast = self.view.forecast.hold();
        let found = forecast.accounts.groups.iter().find(|(_, id)| **id == Some(gid));
        found.map(|(name, _)| name.clone())
    }

    /// Fails if a preview would run something as a user that an earlier step makes
    /// or changes: now it would be another user, or none.
    pub(crate) fn check_not_predicted(&self, user: &str, program: &str) -> Result<()> {
        if !self.is_preview() {
            return Ok(());
        }
        let forecast = self.view.forecast.hold();
        let is_meant = |name: &String, account: &Option<Account>| {
            name == user || account.as_ref().is_some_and(|one| one.uid.to_string() == user)
        };
        let mut users = forecast.accounts.users.iter();
        match users.find(|(name, (account, _))| is_meant(name, account)) {
            Some((_, (_, by))) => {
                Err(Error::Unpredictable { path: PathBuf::from(program), by: Arc::clone(by) })
            }
            None => Ok(()),
        }
    }

    /// Notes that a user or group has got its ID from a tool in this run.
    pub fn note_given_id(&self, kind: AccountKind, id: u32, name: &str) {
        let mut given = self.inner.given_ids.hold();
        let ids = match kind {
            AccountKind::User => &mut given.users,
            AccountKind::Group => &mut given.groups,
        };
        ids.insert(id, name.to_owned());
    }

    /// The name of a user or group whose ID is not in the manifest: the run has
    /// got it from a tool, or a preview cannot know it. A saved plan has the name
    /// in place of the ID.
    pub fn open_id_name(&self, kind: AccountKind, id: u32) -> Option<String> {
        let given = self.inner.given_ids.hold();
        let ids = match kind {
            AccountKind::User => &given.users,
            AccountKind::Group => &given.groups,
        };
        if let Some(name) = ids.get(&id) {
            return Some(name.clone());
        }
        drop(given);
        if id < FIRST_OPEN_ID {
            return None;
        }
        match kind {
            AccountKind::User => self.predicted_account_of(id).map(|account| account.name),
            AccountKind::Group => self.predicted_group_of(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, uid: Option<u32>, gid: u32) -> NewAccount {
        NewAccount {
            name: name.to_owned(),
            uid,
            gid,
            groups: vec!["adm-of-ann".to_owned()],
            home: PathBuf::from("/home/ann"),
            shell: PathBuf::from("/bin/sh"),
        }
    }

    #[test]
    fn a_preview_finds_users_and_groups_that_it_makes() {
        let host = Host::new();
        let preview = host.preview();
        let gid = preview.predict_group("ann", None);
        let made = preview.predict_account(new("ann", Some(4711), gid));
        assert_eq!(preview.uid("ann").unwrap(), 4711);
        assert_eq!(preview.gid("ann").unwrap(), gid);
        assert_eq!(&*preview.user_name(4711), "ann");
        assert_eq!(&*preview.group_name(gid), "ann");
        assert_eq!(preview.account("ann").unwrap().unwrap(), made);
        assert_eq!(preview.account_of(4711).unwrap().unwrap().groups, ["adm-of-ann", "ann"]);
        assert_eq!(preview.current_group("ann").unwrap(), Some(gid));
        assert_eq!(preview.current_user_name(4711).as_deref(), Some("ann"));
        assert_eq!(preview.current_group_name(gid).as_deref(), Some("ann"));
        assert_eq!(preview.group_ids("ann", gid).unwrap(), [gid]);
        // The machine has none of them.
        assert!(host.uid("ann").is_err() && host.gid("ann").is_err());
        assert_eq!(&*host.user_name(4711), "4711");
        assert_eq!(host.preview().find_user("ann"), None);
    }

    #[test]
    fn an_id_that_only_the_run_knows_stands_for_a_name() {
        let host = Host::new();
        let preview = host.preview();
        let gid = preview.predict_group("ann", None);
        let uid = preview.predict_account(new("ann", None, gid)).uid;
        assert!(uid != gid && uid > FIRST_OPEN_ID && gid > FIRST_OPEN_ID);
        assert_eq!(preview.predict_account(new("ann", None, gid)).uid, uid);
        assert_eq!(preview.predict_group("ann", None), gid);
        let name = |host: &Host, kind, id| host.open_id_name(kind, id);
        assert_eq!(name(&preview, AccountKind::User, uid).as_deref(), Some("ann"));
        assert_eq!(name(&preview, AccountKind::Group, gid).as_deref(), Some("ann"));
        assert_eq!(name(&preview, AccountKind::User, 0), None);
        host.note_given_id(AccountKind::User, 1001, "ann");
        assert_eq!(name(&host, AccountKind::User, 1001).as_deref(), Some("ann"));
        assert_eq!(name(&host, AccountKind::Group, 1001), None);
    }

    #[test]
    fn a_preview_does_not_find_what_it_removes() {
        let preview = Host::new().preview();
        preview.predict_no_account("root");
        preview.predict_no_group("root");
        assert_eq!(preview.find_user("root"), None);
        assert_eq!(preview.find_group("root"), None);
        assert_eq!(preview.account("root").unwrap(), None);
        assert_eq!(preview.current_group("root").unwrap(), None);
    }

    #[test]
    fn a_preview_runs_nothing_as_a_user_that_it_makes() {
        let preview = Host::new().preview();
        preview.begin_prediction("user#ann");
        preview.predict_account(new("ann", Some(4711), 0));
        for user in ["ann", "4711"] {
            let error = preview.check_not_predicted(user, "id").unwrap_err();
            assert!(error.is_about_something_missing(), "{error}");
            assert!(error.to_string().contains("user#ann"), "{error}");
        }
        preview.check_not_predicted("root", "id").unwrap();
    }
}
