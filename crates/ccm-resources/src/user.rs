//! The type `user`: accounts, their groups, their keys.

mod authorized_key;
mod command_line;
mod date;
mod decide;
mod former;
mod home;
mod key_file;
mod keys;
mod password;
mod predict;
mod shadow;
mod state;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::path::PathBuf;

use ccm_engine::{
    CommandLine, Context, Declare, Detail, Ensure, Extent, Findings, Former, ManagedPath,
    Prediction, ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_model::{Common, Stage};
use serde::{Deserialize, Serialize};

use crate::accounts::{self, EXACT, MAX_ID, MODES, Secret};
pub use authorized_key::AuthorizedKey;
pub use keys::KeyLine;
pub use state::{Access, Account, Facts, Home, State};

pub(crate) const PRESENT: &str = "present";
pub(crate) const ABSENT: &str = "absent";

/// When a password is set.
const ALWAYS: &str = "always";
const ON_CREATE: &str = "on_create";
const UPDATES: &[&str] = &[ALWAYS, ON_CREATE];

/// The `user` type.
pub struct User;

/// Manage users
#[expect(clippy::struct_excessive_bools, reason = "each is a property by itself")]
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// ID of the user; if omitted, the tool chooses one, and ccm does not change it
    #[property(value = "UID", format = Within(0, MAX_ID), group = "Account")]
    pub(crate) uid: Option<String>,
    /// Allow an ID that another user has
    #[property(group = "Account")]
    pub(crate) non_unique: bool,
    /// Primary group, by name or ID; if omitted on creation, a group with the name of
    /// the user
    #[property(value = "GROUP", format = Group, group = "Account")]
    pub(crate) group: Option<String>,
    /// ID of the group that is made with the name of the user; only read on creation
    #[property(
        value = "GID",
        format = Within(0, MAX_ID),
        group = "Account",
        conflicts("group")
    )]
    pub(crate) private_gid: Option<String>,
    /// Comment, mostly the full name
    #[property(group = "Account")]
    pub(crate) comment: Option<String>,
    /// Login shell
    #[property(value = "PATH", format = Path, group = "Account")]
    pub(crate) shell: Option<String>,
    /// Make a system account; only read on creation
    #[property(group = "Account")]
    pub(crate) system: bool,
    /// Groups that the user is in, beside the primary one; if omitted, ccm does not
    /// change them
    #[property(value = "GROUP", format = Group, group = "Groups")]
    pub(crate) groups: Option<Vec<String>>,
    /// `minimum` keeps other groups, `exact` leaves them; defaults to `minimum`
    #[property(value = "MODE", format = OneOf(MODES), group = "Groups")]
    pub(crate) groups_mode: Option<String>,
    /// Home directory
    #[property(value = "PATH", format = Path, group = "Home")]
    pub(crate) home: Option<String>,
    /// Make the home directory; on creation `true` by default, for a system account
    /// `false`
    #[property(group = "Home")]
    pub(crate) create_home: Option<bool>,
    /// Move the content of the former home directory to a new `home`
    #[property(group = "Home")]
    pub(crate) move_home: bool,
    /// Permissions of the home directory in octal; only read when it is made
    #[property(value = "MODE", format = Mode, group = "Home")]
    pub(crate) home_mode: Option<String>,
    /// Hash of the password, or `!` or `*` for none
    #[property(secret, value = "HASH", env = "CCM_USER_PASSWORD", group = "Access")]
    pub(crate) password: Option<String>,
    /// `always` sets a password that differs, `on_create` only that of a new account;
    /// defaults to `always`
    #[property(value = "WHEN", format = OneOf(UPDATES), group = "Access")]
    pub(crate) password_update: Option<String>,
    /// `true` locks the password and lets the account expire, `false` takes that back
    #[property(group = "Access")]
    pub(crate) locked: Option<bool>,
    /// Day on which the account expires, as `YYYY-MM-DD`, or `never`
    #[property(value = "DATE", group = "Access")]
    pub(crate) expires: Option<String>,
    /// Let services of the user run without a login
    #[property(group = "Access")]
    pub(crate) linger: Option<bool>,
    /// Keys that may log in, as lines or with `options`; if omitted, ccm does not
    /// change them
    #[property(value = "KEY", group = "Keys")]
    pub(crate) authorized_keys: Option<Vec<AuthorizedKey>>,
    /// `minimum` keeps other keys, `exact` removes them; defaults to `minimum`
    #[property(value = "MODE", format = OneOf(MODES), group = "Keys")]
    pub(crate) authorized_keys_mode: Option<String>,
    /// With `absent`: remove the home directory too
    #[property(group = "Removal")]
    pub(crate) remove_home: bool,
    /// With `absent`: end the processes of the user first
    #[property(group = "Removal")]
    pub(crate) kill_processes: bool,
}

impl Properties {
    fn is_absent(&self) -> bool {
        self.common.ensure == ABSENT
    }

    fn uid(&self) -> Option<u32> {
        self.uid.as_deref().and_then(|uid| uid.parse().ok())
    }

    fn private_gid(&self) -> Option<u32> {
        self.private_gid.as_deref().and_then(|gid| gid.parse().ok())
    }

    fn has_exact_groups(&self) -> bool {
        self.groups_mode.as_deref() == Some(EXACT)
    }

    fn has_exact_keys(&self) -> bool {
        self.authorized_keys_mode.as_deref() == Some(EXACT)
    }

    /// Whether a new account gets a home directory.
    fn makes_home(&self) -> bool {
        self.create_home.unwrap_or(!self.system)
    }

    /// The keys; what is wrong with one was found before.
    fn keys(&self) -> Vec<KeyLine> {
        let keys = self.authorized_keys.iter().flatten();
        let mut read: Vec<KeyLine> = keys.filter_map(|key| key.read().ok()).collect();
        read.dedup();
        read
    }
}

/// Operations of a user provider.
pub trait Provider {
    /// The current state of a user, and what decides about its changes.
    fn find(&mut self, want: &Properties, detail: Detail) -> Result<State>;
    /// Takes a step; `say` gets what the user of ccm should know meanwhile.
    fn act(&mut self, action: &Action, say: &mut dyn FnMut(&str)) -> Result<()>;
    /// Records what a step would leave behind.
    fn predict(&mut self, action: &Action) -> Result<()>;
}

/// A new account.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUser {
    pub name: String,
    pub uid: Option<u32>,
    pub non_unique: bool,
    /// The primary group; if omitted, one with the name of the user.
    pub group: Option<String>,
    pub private_gid: Option<u32>,
    pub comment: Option<String>,
    pub home: String,
    pub makes_home: bool,
    pub home_mode: Option<u32>,
    pub shell: Option<String>,
    pub expires: Option<String>,
    pub system: bool,
}

/// What changes of an account; what is omitted stays.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Modification {
    pub name: String,
    pub uid: Option<u32>,
    pub former_uid: u32,
    pub non_unique: bool,
    pub gid: Option<u32>,
    pub comment: Option<String>,
    pub home: Option<String>,
    pub moves_home: bool,
    pub shell: Option<String>,
    /// A date; empty for none.
    pub expires: Option<String>,
}

/// A step of this type.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Make an account.
    Create(NewUser),
    /// Change an account.
    Modify(Modification),
    /// Set the field of the password.
    SetPassword {
        name: String,
        #[serde(skip)]
        field: Secret,
    },
    /// Put the user into groups.
    AddGroups { name: String, groups: Vec<String>, is_local: bool },
    /// Take the user out of groups.
    LeaveGroups { name: String, groups: Vec<String>, is_local: bool },
    /// Make the home directory.
    MakeHome { name: String, home: String, mode: Option<u32> },
    /// Put keys into the key file.
    SetKeys { name: String, keys: Vec<KeyLine>, exact: bool, counts: [usize; 3] },
    /// Lock the password and let the account expire.
    Lock { name: String },
    /// Take that back; the date is empty for none.
    Unlock { name: String, expires: String, has_hash: bool },
    /// Let services of the user run without a login, or not.
    Linger { name: String, enable: bool },
    /// Remove the account.
    Remove { name: String, uid: u32, ends_processes: bool, linger: bool },
    /// Remove the home directory of an account that is gone.
    RemoveHome { home: String, uid: u32 },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = |groups: &[String]| accounts::counted(groups.len(), "group");
        match self {
            Self::Create(_) => f.write_str("Would have created user"),
            Self::Modify(_) => f.write_str("Would have updated user"),
            Self::SetPassword { .. } => f.write_str("Would have updated password"),
            Self::AddGroups { groups: names, .. } => {
                write!(f, "Would have added to {}", groups(names))
            }
            Self::LeaveGroups { groups: names, .. } => {
                write!(f, "Would have removed from {}", groups(names))
            }
            Self::MakeHome { .. } => f.write_str("Would have created home directory"),
            Self::SetKeys { counts: [added, updated, removed], .. } => {
                let parts = [(*added, "added"), (*updated, "updated"), (*removed, "removed")];
                let parts = parts.iter().filter(|(count, _)| *count > 0);
                let key = |(count, verb): &(usize, &str)| {
                    format!("{verb} {}", accounts::counted(*count, "authorized key"))
                };
                let parts: Vec<String> = parts.map(key).collect();
                write!(f, "Would have {}", parts.join(" and "))
            }
            Self::Lock { .. } => f.write_str("Would have locked user"),
            Self::Unlock { .. } => f.write_str("Would have unlocked user"),
            Self::Linger { enable: true, .. } => f.write_str("Would have enabled linger"),
            Self::Linger { enable: false, .. } => f.write_str("Would have disabled linger"),
            Self::Remove { .. } => f.write_str("Would have removed user"),
            Self::RemoveHome { .. } => f.write_str("Would have removed home directory"),
        }
    }
}

impl Declare for User {
    type Properties = Properties;

    const NAME: &'static str = "user";
    const ABOUT: &'static str = "Manage users";
    const NAME_DOC: &'static str = "Name of the user";
    const ENSURE: Ensure = Ensure::OneOf(&[PRESENT, ABSENT]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        validate::validate(want, findings);
    }

    /// The home directory with everything in it: a purge around it keeps it. Where
    /// `home` is not said, it is where it mostly is.
    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        if want.is_absent() {
            return Vec::new();
        }
        let usual = || format!("/home/{}", want.common.name);
        let path: PathBuf = want.home.clone().unwrap_or_else(usual).into();
        let is_own = home::by_path(&path).is_none();
        is_own.then_some(ManagedPath { path, extent: Extent::Tree }).into_iter().collect()
    }

    fn settle(want: &mut Properties) {
        accounts::split_list(&mut want.groups);
        if let Some(keys) = &mut want.authorized_keys
            && keys.iter().any(AuthorizedKey::has_several)
        {
            *keys = keys.iter().flat_map(AuthorizedKey::split).collect();
        }
    }
}

impl ResourceType for User {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[shadow::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let have = on.find(want, cx.detail)?;
        if have.account.is_none() && !want.is_absent() {
            // A package or a command may make it first.
            cx.unsettled = cx.templates.host().changer().map(|changer| changer.origin);
        }
        Ok(have)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        decide::decide(want, have)
    }

    fn act(on: &mut Self::Provider, action: &Action, cx: &mut Context<'_>) -> Result<()> {
        warn_of_id(action, cx);
        on.act(action, &mut *cx.output)
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        warn_of_id(&step.action, cx);
        on.predict(&step.action)?;
        Ok(Prediction::Exact)
    }

    fn former(want: &Properties, have: &State) -> Former {
        former::former(want, have)
    }

    /// Beside the status, whether the password and the keys are the wanted ones.
    fn evidence(_on: &mut Self::Provider, want: &Properties, have: &State) -> serde_json::Value {
        let mut evidence = serde_json::to_value(have).unwrap_or_default();
        if want.password.is_some() {
            evidence["has_password"] = decide::new_password(want, have).is_none().into();
        }
        if let Some(keys) = &have.facts.keys {
            evidence["keys"] = serde_json::json!([keys.added, keys.updated, keys.removed]);
        }
        evidence
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        decide::mismatch(want, have)
    }
}

/// The tools give files in the home directory to the new ID, and no others.
fn warn_of_id(action: &Action, cx: &Context<'_>) {
    if let Action::Modify(Modification { name, uid: Some(_), former_uid, .. }) = action {
        cx.templates.host().warn(format!(
            "user {name} gets another ID: files outside of the home directory keep the ID \
             {former_uid}"
        ));
    }
}
