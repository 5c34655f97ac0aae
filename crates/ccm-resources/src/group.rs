//! The type `group`: groups of users, and who is in them.

mod command_line;
mod shadow;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Findings, Former, Prediction, ProviderDef,
    ResourceType, Result, Step, Trigger,
};
use ccm_model::{Change, Common, Stage, Verb};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::accounts::{self, EXACT, MAX_ID, MODES, check_id, check_mode_word, check_name};

const PRESENT: &str = "present";
const ABSENT: &str = "absent";

/// The `group` type.
pub struct Group;

/// Manage groups
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// ID of the group; if omitted, the tool chooses one, and ccm does not change it
    #[property(value = "GID", format = Within(0, MAX_ID), group = "Group")]
    pub(crate) gid: Option<String>,
    /// Allow an ID that another group has
    #[property(group = "Group")]
    pub(crate) non_unique: bool,
    /// Take the ID from those for system groups; only read on creation
    #[property(group = "Group")]
    pub(crate) system: bool,
    /// Users that are in the group; if omitted, ccm does not change them
    #[property(value = "USER", format = User, group = "Members")]
    pub(crate) members: Option<Vec<String>>,
    /// `minimum` keeps other members, `exact` removes them; defaults to `minimum`
    #[property(value = "MODE", format = OneOf(MODES), group = "Members")]
    pub(crate) members_mode: Option<String>,
}

impl Properties {
    fn is_exact(&self) -> bool {
        self.members_mode.as_deref() == Some(EXACT)
    }

    fn gid(&self) -> Option<u32> {
        self.gid.as_deref().and_then(|gid| gid.parse().ok())
    }
}

/// Operations of a group provider.
pub trait Provider {
    /// The current state of a group, and what decides about its changes.
    fn find(&mut self, want: &Properties) -> Result<State>;
    /// Takes a step; `say` gets what the user should know meanwhile.
    fn act(&mut self, action: &Action, say: &mut dyn FnMut(&str)) -> Result<()>;
    /// Records what a step would leave behind.
    fn predict(&mut self, action: &Action) -> Result<()>;
}

/// The current state of a group.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) name: String,
    pub(crate) provider: &'static str,
    /// Its ID; `None` if there is no such group.
    pub(crate) gid: Option<u32>,
    pub(crate) members: BTreeSet<String>,
    /// Where it comes from, if that is not the local file.
    pub(crate) source: Option<String>,
    /// A user whose primary group it is.
    pub(crate) primary_of: Option<String>,
    /// Another group that has the wanted ID.
    pub(crate) gid_taken_by: Option<String>,
    /// Those of the wanted members that are not local users.
    pub(crate) foreign: BTreeSet<String>,
}

impl State {
    fn missing(&self, want: &Properties) -> Vec<String> {
        let wanted: BTreeSet<&String> = want.members.iter().flatten().collect();
        let missing = wanted.into_iter().filter(|member| !self.members.contains(*member));
        missing.cloned().collect()
    }

    /// The members that are too many.
    fn surplus(&self, want: &Properties) -> Vec<String> {
        let Some(wanted) = want.members.as_ref().filter(|_| want.is_exact()) else {
            return Vec::new();
        };
        self.members.iter().filter(|member| !wanted.contains(member)).cloned().collect()
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.gid.is_some() { PRESENT } else { ABSENT }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            provider: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            gid: Option<u32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            members: Option<&'a BTreeSet<String>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            local: Option<bool>,
        }
        let is_there = self.gid.is_some();
        let metadata = Metadata {
            name: &self.name,
            provider: self.provider,
            gid: self.gid,
            members: is_there.then_some(&self.members),
            local: is_there.then_some(self.source.is_none()),
        };
        json!({ "metadata": metadata }).serialize(to)
    }
}

/// A step of this type.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Make a group.
    Create { name: String, gid: Option<u32>, non_unique: bool, system: bool },
    /// Give a group another ID.
    SetId { name: String, from: u32, gid: u32, non_unique: bool },
    /// Put users into a group. Those that are not local need another tool.
    Add { name: String, users: Vec<String>, foreign: BTreeSet<String> },
    /// Take users out of a group.
    Drop { name: String, users: Vec<String> },
    /// Remove a group.
    Remove { name: String },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = |users: &[String]| accounts::counted(users.len(), "member");
        match self {
            Self::Create { .. } => f.write_str("Would have created group"),
            Self::SetId { .. } => f.write_str("Would have updated the ID of the group"),
            Self::Add { users, .. } => write!(f, "Would have added {}", members(users)),
            Self::Drop { users, .. } => write!(f, "Would have removed {}", members(users)),
            Self::Remove { .. } => f.write_str("Would have removed group"),
        }
    }
}

impl Declare for Group {
    type Properties = Properties;

    const NAME: &'static str = "group";
    const ABOUT: &'static str = "Manage groups";
    const NAME_DOC: &'static str = "Name of the group";
    const ENSURE: Ensure = Ensure::OneOf(&[PRESENT, ABSENT]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        check_name(findings, "name", "group", &want.common.name);
        check_id(findings, "gid", want.gid.as_deref());
        let list = want.members.is_none().then_some("members");
        check_mode_word(findings, "members_mode", want.members_mode.as_deref(), list);
        for member in want.members.iter().flatten() {
            if !check_name(findings, "members", "user", member) {
                break;
            }
        }
    }

    fn settle(want: &mut Properties) {
        accounts::split_list(&mut want.members);
    }
}

impl Properties {
    fn create(&self) -> Step<Action> {
        let action = Action::Create {
            name: self.common.name.clone(),
            gid: self.gid(),
            non_unique: self.non_unique,
            system: self.system,
        };
        let step = Step::new(Verb::Created, action);
        let step = step.change(Change::of("ensure").from(ABSENT).to(PRESENT));
        match &self.gid {
            Some(gid) => step.change(Change::of("gid").to(gid.as_str())),
            None => step,
        }
    }

    fn remove(&self, have: &State) -> Result<Vec<Step<Action>>> {
        let name = &self.common.name;
        if have.gid.is_none() {
            return Ok(Vec::new());
        }
        have.refuse_foreign(name)?;
        if let Some(user) = &have.primary_of {
            return Err(Error::Refused {
                reason: format!("group {name} is the primary group of user {user}"),
                hint: Some("remove the user first, or give it another group".to_owned()),
            });
        }
        let step = Step::new(Verb::Removed, Action::Remove { name: name.clone() });
        Ok(vec![step.change(Change::of("ensure").from(PRESENT).to(ABSENT))])
    }

    /// The step that gives the group its ID.
    fn set_id(&self, have: &State) -> Result<Option<Step<Action>>> {
        let (Some(from), Some(gid)) = (have.gid, self.gid()) else { return Ok(None) };
        if from == gid {
            return Ok(None);
        }
        let name = self.common.name.clone();
        have.refuse_foreign(&name)?;
        if from == 0 {
            return Err(Error::refused(format!("ccm does not change the ID of group {name}, 0")));
        }
        let non_unique = self.non_unique;
        let step = Step::new(Verb::Updated, Action::SetId { name, from, gid, non_unique });
        Ok(Some(step.change(Change::of("gid").from(from.to_string()).to(gid.to_string()))))
    }

    /// The steps that make the members those that are wanted.
    fn set_members(&self, have: &State) -> Result<Vec<Step<Action>>> {
        let name = &self.common.name;
        let (added, dropped) = (have.missing(self), have.surplus(self));
        if added.is_empty() && dropped.is_empty() {
            return Ok(Vec::new());
        }
        have.refuse_foreign(name)?;
        let now: Vec<String> = have.members.iter().cloned().collect();
        let mut with: Vec<String> = now.iter().chain(&added).cloned().collect();
        with.sort_unstable();
        let without: Vec<String> =
            with.iter().filter(|user| !dropped.contains(user)).cloned().collect();
        let change = |from: &[String], to: &[String]| {
            Change::of("members").from(from.to_vec()).to(to.to_vec())
        };
        let mut steps = Vec::new();
        if !added.is_empty() {
            let change = change(&now, &with);
            let foreign = have.foreign.iter().filter(|user| added.contains(user));
            let foreign = foreign.cloned().collect();
            let action = Action::Add { name: name.clone(), users: added, foreign };
            steps.push(Step::new(Verb::Updated, action).change(change));
        }
        if !dropped.is_empty() {
            let change = change(&with, &without);
            let action = Action::Drop { name: name.clone(), users: dropped };
            steps.push(Step::new(Verb::Updated, action).change(change));
        }
        Ok(steps)
    }
}

impl State {
    /// A group that is not in the local file cannot be changed.
    fn refuse_foreign(&self, name: &str) -> Result<()> {
        match &self.source {
            Some(source) => Err(Error::refused(format!(
                "group {name} comes from {source}, not from {}",
                accounts::GROUP
            ))),
            None => Ok(()),
        }
    }
}

impl ResourceType for Group {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[shadow::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let have = on.find(want)?;
        if have.gid.is_none() && want.common.ensure == PRESENT {
            // A package or a command may make it first.
            cx.unsettled = cx.templates.host().changer().map(|changer| changer.origin);
        }
        Ok(have)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        if want.common.ensure == ABSENT {
            return want.remove(have);
        }
        let has_id = want.gid().is_none_or(|gid| have.gid == Some(gid));
        if let (Some(other), false, false) = (&have.gid_taken_by, has_id, want.non_unique) {
            let gid = want.gid.as_deref().unwrap_or_default();
            return Err(Error::Refused {
                reason: format!("group {other} already has the ID {gid}"),
                hint: Some("choose another `gid`, or set `non_unique: true`".to_owned()),
            });
        }
        let mut steps = match have.gid {
            None => vec![want.create()],
            Some(_) => want.set_id(have)?.into_iter().collect(),
        };
        steps.extend(want.set_members(have)?);
        Ok(steps)
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

    /// Only what is managed can have changed; what is removed comes back whole.
    fn former(want: &Properties, have: &State) -> Former {
        let Some(gid) = have.gid else { return Former::Properties(json!({"ensure": ABSENT})) };
        let is_removed = want.common.ensure == ABSENT;
        let mut former = json!({"ensure": PRESENT});
        if is_removed || want.gid.is_some() {
            former["gid"] = gid.to_string().into();
        }
        if (is_removed && !have.members.is_empty()) || want.members.is_some() {
            former["members"] = json!(have.members);
            former["members_mode"] = EXACT.into();
        }
        if want.non_unique {
            former["non_unique"] = true.into();
        }
        Former::Properties(former)
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let found = ccm_engine::State::ensure(have);
        if found != want.common.ensure {
            return Some(format!("ensure is {found}, should be {}", want.common.ensure));
        }
        if want.common.ensure == ABSENT {
            return None;
        }
        if let (Some(gid), Some(found)) = (want.gid(), have.gid)
            && gid != found
        {
            return Some(format!("gid is {found}, should be {gid}"));
        }
        let (missing, surplus) = (have.missing(want), have.surplus(want));
        match (missing.first(), surplus.first()) {
            (Some(user), _) => Some(format!("members lack {user}")),
            (None, Some(user)) => Some(format!("members contain {user}, should not")),
            (None, None) => None,
        }
    }
}

/// Files keep the number of a group that gets another one.
fn warn_of_id(action: &Action, cx: &Context<'_>) {
    if let Action::SetId { name, from, .. } = action {
        cx.templates
            .host()
            .warn(format!("group {name} gets another ID: files of the group keep the ID {from}"));
    }
}
