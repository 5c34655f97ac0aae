//! What steps would leave behind, for the rest of a preview.

use std::path::{Path, PathBuf};

use ccm_engine::Result;
use ccm_host::{Attributes, Host, NewAccount, NewContent};

use super::key_file::Owner;
use super::shadow::linger_file;
use super::{Action, Modification, NewUser, date, keys};
use crate::accounts::{self, Databases, GroupEntry, Secret, ShadowEntry, UserEntry, databases};

/// Permissions of a home directory, as far as they are not said.
const HOME_MODE: u32 = 0o700;
const LOCKED_DAY: i64 = 1;

pub(super) fn predict(host: &Host, action: &Action) -> Result<()> {
    match action {
        Action::Create(new) => create(host, new),
        Action::Modify(change) => modify(host, change),
        Action::SetPassword { name, field } => {
            change_access(host, name, |access| access.password = field.clone())
        }
        Action::AddGroups { name, groups, .. } => set_groups(host, name, groups, true),
        Action::LeaveGroups { name, groups, .. } => set_groups(host, name, groups, false),
        Action::MakeHome { name, home, mode } => {
            let (uid, gid) = ids(host, name)?;
            let attributes = Attributes { uid, gid, mode: mode.unwrap_or(HOME_MODE) };
            Ok(host.predict_directory(Path::new(home), &attributes)?)
        }
        Action::SetKeys { name, keys, exact, .. } => {
            let (uid, gid) = ids(host, name)?;
            let home = host.account(name)?.map(|account| account.home).unwrap_or_default();
            // An earlier step may give the user another ID: then the files follow.
            let now = host.inspect(&home)?.map_or(uid, |found| found.uid);
            let existing = Owner { home: &home, uid: now, gid }.read(host)?;
            let merged = keys::merge(&existing, keys, *exact);
            Owner { home: &home, uid, gid }.predict(host, &merged)
        }
        Action::Lock { name } => change_access(host, name, |access| {
            let hash = access.password.expose().trim_start_matches('!').to_owned();
            *access = ShadowEntry {
                password: Secret::new(format!("!{hash}")),
                expires: Some(LOCKED_DAY),
            };
        }),
        Action::Unlock { name, expires, has_hash } => change_access(host, name, |access| {
            access.expires = date::day(expires);
            if *has_hash {
                let hash = access.password.expose().trim_start_matches('!').to_owned();
                access.password = Secret::new(hash);
            }
        }),
        Action::Linger { name, enable } => linger(host, name, *enable),
        Action::Remove { name, linger: lingers, .. } => {
            if *lingers {
                linger(host, name, false)?;
            }
            remove(host, name)
        }
        Action::RemoveHome { home, .. } => Ok(host.predict_removal(Path::new(home), true)?),
    }
}

fn ids(host: &Host, name: &str) -> Result<(u32, u32)> {
    let account = host.account(name)?;
    let account = account.ok_or_else(|| ccm_host::Error::UnknownUser { name: name.to_owned() })?;
    Ok((account.uid, account.gid))
}

fn create(host: &Host, new: &NewUser) -> Result<()> {
    let name = &new.name;
    let gid = match &new.group {
        Some(group) => host.gid(group)?,
        None => match host.find_group(name) {
            Some(gid) => gid,
            None => {
                let gid = host.predict_group(name, new.private_gid);
                let entry = GroupEntry { gid, ..GroupEntry::default() };
                accounts::predict(host, |databases| databases.set_group(name, entry))?;
                gid
            }
        },
    };
    let shell = new.shell.clone().unwrap_or_default();
    let home = PathBuf::from(&new.home);
    let account = host.predict_account(NewAccount {
        name: name.clone(),
        uid: new.uid,
        gid,
        groups: Vec::new(),
        home: home.clone(),
        shell: PathBuf::from(&shell),
    });
    let entry = UserEntry {
        uid: account.uid,
        gid,
        comment: new.comment.clone().unwrap_or_default(),
        home: new.home.clone(),
        shell,
    };
    let expires = new.expires.as_deref().and_then(date::day);
    accounts::predict(host, |databases| {
        databases.users.insert(name.clone(), entry);
        if let Some(shadow) = &mut databases.shadow {
            let access = ShadowEntry { password: Secret::new("!"), expires };
            shadow.insert(name.clone(), access);
        }
    })?;
    if new.makes_home {
        let mode = new.home_mode.unwrap_or(HOME_MODE);
        host.predict_directory(&home, &Attributes { uid: account.uid, gid, mode })?;
    }
    Ok(())
}

fn modify(host: &Host, change: &Modification) -> Result<()> {
    let name = &change.name;
    accounts::predict(host, |databases| {
        if let Some(entry) = databases.users.get_mut(name) {
            entry.uid = change.uid.unwrap_or(entry.uid);
            entry.gid = change.gid.unwrap_or(entry.gid);
            for (field, value) in [
                (&mut entry.comment, &change.comment),
                (&mut entry.home, &change.home),
                (&mut entry.shell, &change.shell),
            ] {
                if let Some(value) = value {
                    field.clone_from(value);
                }
            }
        }
    })?;
    if let Some(expires) = &change.expires {
        change_access(host, name, |access| access.expires = date::day(expires))?;
    }
    let former = host.account(name)?.map(|account| account.home);
    announce(host, name)?;
    if let (true, Some(former), Some(home)) = (change.moves_home, former, &change.home) {
        let (uid, gid) = ids(host, name)?;
        let mode = host.stat(&former)?.map_or(HOME_MODE, |stat| stat.mode & 0o777);
        host.predict_directory(Path::new(home), &Attributes { uid, gid, mode })?;
        host.predict_unknown_content(Path::new(home));
        host.predict_removal(&former, true)?;
    }
    Ok(())
}

/// Lets everything else find the user as it is expected now.
fn announce(host: &Host, name: &str) -> Result<()> {
    let databases = databases(host)?;
    let Some(entry) = databases.users.get(name) else { return Ok(()) };
    host.predict_account(NewAccount {
        name: name.to_owned(),
        uid: Some(entry.uid),
        gid: entry.gid,
        groups: databases.groups_of(name),
        home: PathBuf::from(&entry.home),
        shell: PathBuf::from(&entry.shell),
    });
    Ok(())
}

fn change_access(host: &Host, name: &str, change: impl FnOnce(&mut ShadowEntry)) -> Result<()> {
    accounts::predict(host, |databases| {
        if let Some(shadow) = &mut databases.shadow {
            change(shadow.entry(name.to_owned()).or_default());
        }
    })
}

fn set_groups(host: &Host, name: &str, groups: &[String], joins: bool) -> Result<()> {
    accounts::predict(host, |databases: &mut Databases| {
        for group in groups {
            let mut entry = databases.groups.get(group).cloned().unwrap_or_default();
            if joins {
                entry.members.insert(name.to_owned());
            } else {
                entry.members.remove(name);
            }
            databases.set_group(group, entry);
        }
    })?;
    announce(host, name)
}

fn linger(host: &Host, name: &str, enable: bool) -> Result<()> {
    let file = PathBuf::from(linger_file(name));
    if !enable {
        return Ok(host.predict_removal(&file, false)?);
    }
    let attributes = |mode| Attributes { uid: 0, gid: 0, mode };
    if let Some(directory) = file.parent()
        && host.stat(directory)?.is_none()
    {
        host.predict_directory(directory, &attributes(0o755))?;
    }
    Ok(host.predict_file(&file, NewContent::Bytes(b""), &attributes(0o644))?)
}

fn remove(host: &Host, name: &str) -> Result<()> {
    let databases = databases(host)?;
    let gid = databases.users.get(name).map(|entry| entry.gid);
    let private = gid.and_then(|gid| super::shadow::private_gid(host, &databases, name, gid));
    drop(databases);
    host.predict_no_account(name);
    if private.is_some() {
        host.predict_no_group(name);
    }
    accounts::predict(host, |databases| {
        databases.users.remove(name);
        if let Some(shadow) = &mut databases.shadow {
            shadow.remove(name);
        }
        if private.is_some() {
            databases.remove_group(name);
        }
        for group in databases.groups_of(name) {
            if let Some(mut entry) = databases.groups.get(&group).cloned() {
                entry.members.remove(name);
                databases.set_group(&group, entry);
            }
        }
    })
}
