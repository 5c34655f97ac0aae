//! The provider `shadow`: `groupadd`, `groupmod`, `groupdel`, and for members
//! `usermod`.

use std::collections::BTreeSet;

use ccm_engine::{ProviderDef, Result};
use ccm_host::{AccountKind, Command, Host};

use super::{Action, Group, Properties, Provider, State};
use crate::accounts::{self, GroupEntry, databases, group_members_removed, source_of};

const NAME: &str = "shadow";
/// `groupadd`: the ID or the name is taken.
const TAKEN: [i32; 2] = [4, 9];
/// `groupdel`: there is no such group any more.
const GONE: i32 = 6;

pub(super) const DEF: ProviderDef<Group> = ProviderDef {
    name: NAME,
    rank: |host, _| (host.which("groupadd") && host.which("groupmod")).then_some(1),
    open: |host| Box::new(Shadow { host: host.clone() }),
};

struct Shadow {
    host: Host,
}

impl Shadow {
    /// The wanted members that are not local users. One that nobody knows is an
    /// error, as the tool would fail in the middle.
    fn foreign(&self, want: &Properties) -> Result<BTreeSet<String>> {
        let databases = databases(&self.host)?;
        let mut foreign = BTreeSet::new();
        for member in want.members.iter().flatten() {
            if !databases.users.contains_key(member) {
                self.host.uid(member)?;
                foreign.insert(member.clone());
            }
        }
        Ok(foreign)
    }

    fn run(&self, program: &str, args: &[&str], say: &mut dyn FnMut(&str)) -> Result<()> {
        accounts::run(&self.host, Command::new(program, args), say)
    }

    fn create(
        &self,
        (name, gid): (&str, Option<u32>),
        (non_unique, system): (bool, bool),
        say: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let id = gid.map(|gid| gid.to_string());
        let mut args = Vec::new();
        args.extend(system.then_some("--system"));
        args.extend(id.iter().flat_map(|id| ["--gid", id.as_str()]));
        args.extend((non_unique && gid.is_some()).then_some("--non-unique"));
        args.push(name);
        let command = Command::new("groupadd", args);
        let code = accounts::run_code(&self.host, command.clone(), &TAKEN, say)?;
        let made = self.host.current_group(name)?;
        match made {
            // Another run has made it meanwhile; its ID is compared afterwards.
            Some(_) => {}
            None if code == 0 => {}
            None => return accounts::run(&self.host, command, say),
        }
        if let (Some(id), None) = (made, gid) {
            self.host.note_given_id(AccountKind::Group, id, name);
        }
        Ok(())
    }

    fn drop_members(&self, name: &str, users: &[String], say: &mut dyn FnMut(&str)) -> Result<()> {
        for user in users {
            let is_local = databases(&self.host)?.users.contains_key(user);
            if is_local {
                let command = group_members_removed(&[name.to_owned()], user);
                accounts::run(&self.host, command, say)?;
            } else {
                self.run("gpasswd", &["--delete", user, name], say)?;
            }
        }
        Ok(())
    }
}

impl Provider for Shadow {
    fn find(&mut self, want: &Properties) -> Result<State> {
        let name = &want.common.name;
        let databases = databases(&self.host)?;
        let mut state = State { name: name.clone(), provider: NAME, ..State::default() };
        match databases.groups.get(name) {
            Some(entry) => {
                state.gid = Some(entry.gid);
                state.members.clone_from(&entry.members);
            }
            None => {
                state.gid = self.host.find_group(name);
                if state.gid.is_some() {
                    state.source = Some(source_of(&self.host, "group", name));
                }
            }
        }
        if let Some(gid) = state.gid {
            state.primary_of = databases.user_of_group(gid, None).map(str::to_owned);
        }
        if let Some(gid) = want.gid().filter(|gid| state.gid != Some(*gid)) {
            let other = databases.group_with(gid).map(str::to_owned);
            let other = other.or_else(|| self.host.current_group_name(gid));
            state.gid_taken_by = other.filter(|other| other != name);
        }
        if want.common.ensure != super::ABSENT {
            state.foreign = self.foreign(want)?;
        }
        Ok(state)
    }

    fn act(&mut self, action: &Action, say: &mut dyn FnMut(&str)) -> Result<()> {
        match action {
            Action::Create { name, gid, non_unique, system } => {
                self.create((name, *gid), (*non_unique, *system), say)
            }
            Action::SetId { name, gid, non_unique, .. } => {
                let gid = gid.to_string();
                let mut args = vec!["--gid", gid.as_str()];
                args.extend(non_unique.then_some("--non-unique"));
                args.push(name);
                self.run("groupmod", &args, say)
            }
            Action::Add { name, users, foreign } => {
                for user in users {
                    // `groupmod --append --users` leaves /etc/gshadow as it is, and
                    // `gpasswd` loses members that are added at the same time.
                    if foreign.contains(user) {
                        self.run("gpasswd", &["--add", user, name], say)?;
                    } else {
                        self.run("usermod", &["--append", "--groups", name, user], say)?;
                    }
                }
                Ok(())
            }
            Action::Drop { name, users } => self.drop_members(name, users, say),
            Action::Remove { name } => {
                let command = Command::new("groupdel", [name]);
                accounts::run_code(&self.host, command, &[GONE], say).map(drop)
            }
        }
    }

    fn predict(&mut self, action: &Action) -> Result<()> {
        let host = &self.host;
        let change = |name: &str, change: &dyn Fn(&mut GroupEntry)| {
            accounts::predict(host, |databases| {
                let mut entry = databases.groups.get(name).cloned().unwrap_or_default();
                change(&mut entry);
                databases.set_group(name, entry);
            })
        };
        match action {
            Action::Create { name, gid, .. } => {
                let gid = host.predict_group(name, *gid);
                change(name, &|entry| entry.gid = gid)
            }
            Action::SetId { name, gid, .. } => {
                host.predict_group(name, Some(*gid));
                change(name, &|entry| entry.gid = *gid)
            }
            Action::Add { name, users, .. } => {
                change(name, &|entry| entry.members.extend(users.iter().cloned()))
            }
            Action::Drop { name, users } => {
                change(name, &|entry| entry.members.retain(|member| !users.contains(member)))
            }
            Action::Remove { name } => {
                host.predict_no_group(name);
                accounts::predict(host, |databases| databases.remove_group(name))
            }
        }
    }
}
