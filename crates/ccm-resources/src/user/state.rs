//! The current state of a user.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::keys::Merged;
use super::{ABSENT, PRESENT, date, password};
use crate::accounts::Secret;

/// The current state of a user, and what decides about its changes.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) name: String,
    pub(crate) provider: &'static str,
    /// `None` if there is no such user.
    pub(crate) account: Option<Account>,
    pub(crate) facts: Facts,
}

/// An account.
#[derive(Clone, Debug, Default)]
pub struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The name of the primary group.
    pub(crate) group: String,
    /// The groups that list the user, sorted, without the primary one.
    pub(crate) groups: Vec<String>,
    pub(crate) comment: String,
    pub(crate) home: String,
    pub(crate) shell: String,
    /// Where it comes from, if that is not the local file.
    pub(crate) source: Option<String>,
    /// `None` if it cannot be read.
    pub(crate) access: Option<Access>,
}

/// Who may use an account.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The field of the password.
    pub(crate) password: Secret,
    /// The first day on which the account is expired.
    pub(crate) expires: Option<i64>,
}

/// What is at the path of a home directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// Nothing.
    #[default]
    Missing,
    /// A directory of this user.
    Directory(u32),
    /// Something else.
    Other,
}

/// What decides beside the account itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Whether the databases that only root may read could be read.
    pub(crate) is_complete: bool,
    /// The ID of the wanted primary group.
    pub(crate) wanted_gid: Option<u32>,
    /// Another user that has the wanted ID.
    pub(crate) uid_taken_by: Option<String>,
    /// It is the user that runs ccm.
    pub(crate) is_own: bool,
    /// The day, counted from 1970.
    pub(crate) today: i64,
    /// The home directory that the user is to have, and what is there.
    pub(crate) home_path: String,
    pub(crate) home: Home,
    /// What is at the home directory that the account has now.
    pub(crate) current_home: Home,
    /// Processes of the user, where they matter.
    pub(crate) processes: Vec<u32>,
    /// Whether services run without a login.
    pub(crate) linger: bool,
    /// What would become of the key file, if keys are managed.
    pub(crate) keys: Option<Merged>,
    /// How many keys are in it, where that could be read.
    pub(crate) key_count: Option<usize>,
    /// Why the home directory must not be removed.
    pub(crate) keeps_home: Option<String>,
    /// The group that goes with the user.
    pub(crate) private_gid: Option<u32>,
    /// What is wrong with the wanted shell.
    pub(crate) shell_problem: Option<String>,
}

impl Access {
    pub(super) fn is_expired(&self, today: i64) -> bool {
        self.expires.is_some_and(|day| day > 0 && day <= today)
    }

    /// Whether neither the password nor a key lets anybody in.
    pub(super) fn is_locked(&self, today: i64) -> bool {
        password::is_locked(self.password.expose()) && self.is_expired(today)
    }

    /// The date on which the account expires, or `never`.
    pub(super) fn expires_text(&self) -> String {
        self.expires.map_or_else(|| date::NEVER.to_owned(), date::date)
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.account.is_some() { PRESENT } else { ABSENT }
    }
}

/// A field that could not be read is absent. The hash of the password is never
/// part of it.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut metadata = json!({"name": self.name, "provider": self.provider});
        if let Some(account) = &self.account {
            metadata["uid"] = account.uid.into();
            metadata["gid"] = account.gid.into();
            metadata["group"] = account.group.as_str().into();
            metadata["groups"] = json!(account.groups);
            metadata["comment"] = account.comment.as_str().into();
            metadata["home"] = account.home.as_str().into();
            metadata["home_exists"] = matches!(self.facts.current_home, Home::Directory(_)).into();
            metadata["shell"] = account.shell.as_str().into();
            if let Some(access) = &account.access {
                metadata["locked"] = access.is_locked(self.facts.today).into();
                metadata["expires"] = access.expires_text().into();
            }
            metadata["linger"] = self.facts.linger.into();
            if let Some(count) = self.facts.key_count {
                metadata["authorized_keys"] = count.into();
            }
            metadata["local"] = account.source.is_none().into();
        }
        json!({ "metadata": metadata }).serialize(to)
    }
}
