//! The provider `shadow`: `useradd`, `usermod`, `userdel`, `chpasswd`. They hold
//! the locks that other programs honour, so ccm writes none of their files.

use std::path::Path;
use std::time::Duration;

use ccm_engine::{Detail, Error, ProviderDef, Result};
use ccm_host::{AccountKind, Attributes, Command, Content, FileKind, Host};

use super::home;
use super::key_file::Owner;
use super::keys;
use super::predict;
use super::state::{Access, Account, Facts, Home, State};
use super::{Action, Modification, NewUser, Properties, Provider, User, date};
use crate::accounts::{
    self, Databases, GROUP, PASSWD, Secret, ShadowEntry, UserEntry, databases,
    group_members_removed, source_of,
};

const NAME: &str = "shadow";
/// `useradd`, `groupadd`: the ID or the name is taken.
const TAKEN: [i32; 2] = [4, 9];
/// `userdel`: there is no such user any more.
const GONE: i32 = 6;
/// How long processes have to end by themselves.
const PATIENCE: Duration = Duration::from_secs(10);
/// `useradd` makes a home directory after the account, when it holds no lock any
/// more. For so long after a change, one that is missing may be about to come.
const SETTLING: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// systemd makes it when it boots a machine.
const BOOTED: &str = "/run/systemd/system";
/// Where logind keeps who lingers.
const LINGER: &str = "/var/lib/systemd/linger";
const LOGIN_DEFS: &str = "/etc/login.defs";
const MAX_FILE: u64 = 1 << 20;
/// Permissions of a home directory that ccm makes.
const HOME_MODE: u32 = 0o700;

pub(super) const DEF: ProviderDef<User> = ProviderDef {
    name: NAME,
    rank: |host, _| (host.which("useradd") && host.which("usermod")).then_some(1),
    open: |host| Box::new(Shadow { host: host.clone() }),
};

struct Shadow {
    host: Host,
}

/// The path of the file that says whether a user lingers.
pub(super) fn linger_file(name: &str) -> String {
    format!("{LINGER}/{name}")
}

impl Shadow {
    fn run(&self, program: &str, args: &[&str], say: &mut dyn FnMut(&str)) -> Result<()> {
        accounts::run(&self.host, Command::new(program, args), say)
    }

    /// The account as the local files have it, or another source.
    fn account(&self, databases: &Databases, name: &str) -> Result<Option<Account>> {
        if let Some(entry) = databases.users.get(name) {
            return Ok(Some(self.local(databases, name, entry)));
        }
        let Some(found) = self.host.account(name)? else { return Ok(None) };
        let group = self.host.group_name(found.gid).to_string();
        let groups = found.groups.into_iter().filter(|other| *other != group).collect();
        Ok(Some(Account {
            uid: found.uid,
            gid: found.gid,
            group,
            groups,
            home: found.home.to_string_lossy().into_owned(),
            shell: found.shell.to_string_lossy().into_owned(),
            source: Some(source_of(&self.host, "passwd", name)),
            ..Account::default()
        }))
    }

    fn local(&self, databases: &Databases, name: &str, entry: &UserEntry) -> Account {
        let group = databases.group_with(entry.gid).map(str::to_owned);
        let group = group.unwrap_or_else(|| self.host.group_name(entry.gid).to_string());
        let access = databases.shadow.as_ref().map(|shadow| {
            let ShadowEntry { password, expires } = shadow.get(name).cloned().unwrap_or_default();
            Access { password, expires }
        });
        Account {
            uid: entry.uid,
            gid: entry.gid,
            groups: databases.groups_of(name).into_iter().filter(|other| *other != group).collect(),
            group,
            comment: entry.comment.clone(),
            home: entry.home.clone(),
            shell: entry.shell.clone(),
            source: None,
            access,
        }
    }

    fn facts(
        &self,
        want: &Properties,
        databases: &Databases,
        account: Option<&Account>,
        detail: Detail,
    ) -> Result<Facts> {
        let host = &self.host;
        let name = &want.common.name;
        let mut facts = Facts {
            is_complete: databases.shadow.is_some(),
            today: date::today(host.now().as_second()),
            ..Facts::default()
        };
        if let Some(account) = account {
            facts.is_own = host.whoami().0 == account.uid;
            facts.current_home = home::look(host, &account.home)?;
            facts.private_gid = private_gid(host, databases, name, account.gid);
        }
        if account.is_some()
            && (want.linger.is_some() || want.is_absent() || detail > Detail::Changes)
        {
            facts.linger = host.stat(Path::new(&linger_file(name)))?.is_some();
        }
        if want.is_absent() {
            if let Some(account) = account {
                facts.processes = host.processes_of(account.uid);
                let keeps = || home::keeps(host, databases, name, account.uid, &account.home);
                facts.keeps_home = if want.remove_home { keeps()? } else { None };
            }
            return Ok(facts);
        }
        self.wanted(want, databases, account, &mut facts)?;
        self.keys(want, account, detail, &mut facts)?;
        Ok(facts)
    }

    /// What decides about the wanted properties.
    fn wanted(
        &self,
        want: &Properties,
        databases: &Databases,
        account: Option<&Account>,
        facts: &mut Facts,
    ) -> Result<()> {
        let host = &self.host;
        let name = &want.common.name;
        let current = |get: fn(&Account) -> &String| account.map(get);
        facts.wanted_gid = want.group.as_deref().map(|group| host.gid(group)).transpose()?;
        if let (Some(gid), Some(group)) = (facts.wanted_gid, &want.group)
            && databases.group_with(gid).is_none()
            && host.current_group_name(gid).is_none()
        {
            return Err(ccm_host::Error::UnknownGroup { name: group.clone() }.into());
        }
        for group in want.groups.iter().flatten() {
            if !databases.groups.contains_key(group) && host.find_group(group).is_none() {
                return Err(ccm_host::Error::UnknownGroup { name: group.clone() }.into());
            }
        }
        if let Some(uid) = want.uid().filter(|uid| account.is_none_or(|one| one.uid != *uid)) {
            let local = databases.other_user_with(uid, name).map(str::to_owned);
            let other = local.or_else(|| host.current_user_name(uid));
            facts.uid_taken_by = other.filter(|other| other != name);
        }
        let home = want.home.as_ref().or(current(|account| &account.home));
        facts.home_path = home.cloned().unwrap_or_else(|| home::default_home(host, name));
        let needs_home = want.authorized_keys.is_some() || want.create_home == Some(true);
        facts.home = if account.is_some() && needs_home {
            self.settled_home(&facts.home_path)?
        } else {
            home::look(host, &facts.home_path)?
        };
        let is_moved = account.is_some_and(|account| account.home != facts.home_path);
        let gets_id = account.is_some_and(|one| want.uid().is_some_and(|uid| uid != one.uid));
        if let Some(account) = account.filter(|_| is_moved || gets_id) {
            facts.processes = host.processes_of(account.uid);
        }
        if want.shell.as_ref() != current(|account| &account.shell) {
            facts.shell_problem = want.shell.as_deref().and_then(|shell| self.shell_problem(shell));
        }
        Ok(())
    }

    /// What is at the path of a home directory, once another run that has just made
    /// its user has made it too.
    fn settled_home(&self, path: &str) -> Result<Home> {
        let host = &self.host;
        let is_recent = || {
            let changed = host.stat(Path::new(PASSWD)).ok().flatten().map(|stat| stat.mtime);
            let age = changed.map(|changed| host.now().duration_since(changed).unsigned_abs());
            age.is_some_and(|age| age < SETTLING)
        };
        loop {
            let home = home::look(host, path)?;
            if home != Home::Missing || !is_recent() || host.cancel().is_cancelled() {
                return Ok(home);
            }
            host.cancel().pause(PAUSE);
        }
    }

    fn shell_problem(&self, shell: &str) -> Option<String> {
        let stat = match self.host.stat(Path::new(shell)) {
            Ok(stat) => stat,
            Err(error) => return Some(format!("cannot use the shell {shell}: {error}")),
        };
        match stat {
            None => Some(format!("the shell {shell} does not exist")),
            Some(stat) if stat.kind == FileKind::File && stat.mode & 0o111 != 0 => None,
            Some(_) => Some(format!("the shell {shell} is not an executable file")),
        }
    }

    /// What becomes of the keys. The keys of a new account are those of the home
    /// directory that it takes over.
    fn keys(
        &self,
        want: &Properties,
        account: Option<&Account>,
        detail: Detail,
        facts: &mut Facts,
    ) -> Result<()> {
        // Those of a home directory that is moved come along.
        let is_moved = want.move_home && facts.home == Home::Missing;
        let (home, found) = match account.filter(|_| is_moved) {
            Some(account) => (account.home.clone(), facts.current_home),
            None => (facts.home_path.clone(), facts.home),
        };
        let owner = match (account, found) {
            (Some(account), Home::Directory(_)) => Some((account.uid, account.gid)),
            (None, Home::Directory(uid)) => Some((uid, 0)),
            _ => None,
        };
        let read = || match owner {
            Some((uid, gid)) => Owner { home: Path::new(&home), uid, gid }.read(&self.host),
            None => Ok(Vec::new()),
        };
        if want.authorized_keys.is_some() {
            let existing = read()?;
            let merged = keys::merge(&existing, &want.keys(), want.has_exact_keys());
            facts.key_count = Some(keys::count(&existing));
            facts.keys = Some(merged);
        } else if detail > Detail::Changes && account.is_some() {
            facts.key_count = read().ok().map(|existing| keys::count(&existing));
        }
        Ok(())
    }

    fn create(&self, new: &NewUser, say: &mut dyn FnMut(&str)) -> Result<()> {
        let name = &new.name;
        let has_group = databases(&self.host)?.groups.contains_key(name);
        if let (Some(gid), None, false) = (new.private_gid, &new.group, has_group) {
            let command = Command::new("groupadd", ["--gid", &gid.to_string(), name]);
            accounts::run_code(&self.host, command, &TAKEN, say)?;
        }
        let is_group_there = has_group || new.private_gid.is_some();
        let args = arguments(new, is_group_there);
        let command = Command::new("useradd", args);
        let code = accounts::run_code(&self.host, command.clone(), &TAKEN, say)?;
        let entry = databases(&self.host)?.users.get(name).cloned();
        let Some(entry) = entry else {
            // It is not this user that has the name or the ID: the error says who.
            if code != 0 {
                return accounts::run(&self.host, command, say);
            }
            return Err(Error::refused(format!("useradd has not made the user {name}")));
        };
        if new.uid.is_none() {
            self.host.note_given_id(AccountKind::User, entry.uid, name);
        }
        if new.group.is_none() && !is_group_there {
            self.host.note_given_id(AccountKind::Group, entry.gid, name);
        }
        // Another run has made it meanwhile; what differs is seen afterwards.
        if code == 0 && new.makes_home {
            self.finish_home(new, &entry)?;
        }
        Ok(())
    }

    /// Sets the mode of a new home directory, and records what it contains.
    fn finish_home(&self, new: &NewUser, entry: &UserEntry) -> Result<()> {
        let path = Path::new(&new.home);
        if let Some(mode) = new.home_mode {
            let attributes = Attributes { uid: entry.uid, gid: entry.gid, mode };
            if self.host.stat(path)?.is_some_and(|stat| stat.uid == entry.uid) {
                self.host.record_made_tree(path)?;
                return Ok(self.host.set_attributes(path, &attributes)?);
            }
        }
        Ok(self.host.record_made_tree(path)?)
    }

    fn modify(&self, change: &Modification, say: &mut dyn FnMut(&str)) -> Result<()> {
        let id = |id: Option<u32>| id.map(|id| id.to_string());
        let mut args: Vec<String> = Vec::new();
        for (option, value) in [
            ("--uid", id(change.uid)),
            ("--gid", id(change.gid)),
            ("--comment", change.comment.clone()),
            ("--home", change.home.clone()),
            ("--shell", change.shell.clone()),
            ("--expiredate", change.expires.clone()),
        ] {
            args.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        if change.uid.is_some() && change.non_unique {
            args.push("--non-unique".to_owned());
        }
        if change.moves_home {
            args.push("--move-home".to_owned());
        }
        args.push(change.name.clone());
        accounts::run(&self.host, Command::new("usermod", args), say)
    }

    fn set_password(&self, name: &str, field: &Secret, say: &mut dyn FnMut(&str)) -> Result<()> {
        let line = format!("{name}:{}\n", field.expose());
        accounts::run(&self.host, Command::new("chpasswd", ["--encrypted"]).input(line), say)
    }

    fn set_groups(
        &self,
        (name, is_local): (&str, bool),
        groups: &[String],
        joins: bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let known = databases(&self.host)?;
        if let Some(group) = groups.iter().find(|group| !known.groups.contains_key(*group)) {
            let source = source_of(&self.host, "group", group);
            let reason = format!("group {group} comes from {source}, not from {GROUP}");
            return Err(Error::refused(reason));
        }
        // No tool but this one changes groups for a user that is not local.
        if !is_local {
            let option = if joins { "--add" } else { "--delete" };
            return groups
                .iter()
                .try_for_each(|group| self.run("gpasswd", &[option, name, group], say));
        }
        if joins {
            return self.run("usermod", &["--append", "--groups", &groups.join(","), name], say);
        }
        accounts::run(&self.host, group_members_removed(groups, name), say)
    }

    /// The account as it is now: a step before may have made it.
    fn now(&self, name: &str) -> Result<Account> {
        let account = self.account(&*databases(&self.host)?, name)?;
        account.ok_or_else(|| ccm_host::Error::UnknownUser { name: name.to_owned() }.into())
    }

    fn make_home(&self, name: &str, home: &str, mode: Option<u32>) -> Result<()> {
        let account = self.now(name)?;
        let mode = mode.unwrap_or(HOME_MODE);
        let attributes = Attributes { uid: account.uid, gid: account.gid, mode };
        Ok(self.host.create_directory(Path::new(home), &attributes)?)
    }

    fn linger(&self, name: &str, enable: bool, say: &mut dyn FnMut(&str)) -> Result<()> {
        let host = &self.host;
        let is_booted = host.stat(Path::new(BOOTED))?.is_some();
        if is_booted && host.which("loginctl") {
            let verb = if enable { "enable-linger" } else { "disable-linger" };
            return self.run("loginctl", &[verb, name], say);
        }
        // systemd reads the file when it boots the machine.
        let file = linger_file(name);
        if !enable {
            return Ok(host.remove(Path::new(&file))?);
        }
        let attributes = |mode| Attributes { uid: 0, gid: 0, mode };
        if host.stat(Path::new(LINGER))?.is_none() {
            host.create_directory(Path::new(LINGER), &attributes(0o755))?;
        }
        Ok(host.replace(Path::new(&file), Content::Bytes(b""), &attributes(0o644))?)
    }

    fn remove(
        &self,
        (name, uid): (&str, u32),
        (ends_processes, linger): (bool, bool),
        say: &mut dyn FnMut(&str),
    ) -> Result<()> {
        if linger {
            // Its manager would start again.
            self.linger(name, false, say)?;
        }
        if ends_processes {
            self.host.end_processes_of(uid, PATIENCE)?;
        }
        let command = Command::new("userdel", [name]);
        accounts::run_code(&self.host, command, &[GONE], say).map(drop)
    }
}

/// The arguments of `useradd`. The hash of a password is never among them.
fn arguments(new: &NewUser, has_group: bool) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        args.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    option("--uid", new.uid.map(|uid| uid.to_string()));
    let own = has_group.then(|| new.name.clone());
    option("--gid", new.group.clone().or(own.clone()));
    option("--comment", new.comment.clone());
    option("--home-dir", Some(new.home.clone()));
    option("--shell", new.shell.clone());
    option("--expiredate", new.expires.clone());
    let switches = [
        (new.system, "--system"),
        (new.non_unique && new.uid.is_some(), "--non-unique"),
        (new.group.is_none() && own.is_none(), "--user-group"),
        (new.makes_home, "--create-home"),
        (!new.makes_home, "--no-create-home"),
    ];
    args.extend(switches.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| (*name).to_owned()));
    args.push(new.name.clone());
    args
}

/// The group that `userdel` removes with the user.
pub(super) fn private_gid(host: &Host, databases: &Databases, name: &str, gid: u32) -> Option<u32> {
    own_group(databases, name, gid).filter(|_| removes_groups(host))
}

/// The group of the same name that nobody else is in.
fn own_group(databases: &Databases, name: &str, gid: u32) -> Option<u32> {
    let group = databases.groups.get(name)?;
    let is_own = group.gid == gid
        && group.members.iter().all(|member| member == name)
        && databases.user_of_group(gid, Some(name)).is_none();
    is_own.then_some(gid)
}

fn removes_groups(host: &Host) -> bool {
    let text = host.read_text(Path::new(LOGIN_DEFS), MAX_FILE);
    let text = text.map(|(text, _)| text).unwrap_or_default();
    is_yes(&text, "USERGROUPS_ENAB")
}

fn is_yes(defs: &str, name: &str) -> bool {
    let mut lines = defs.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next())?);
    value.is_some_and(|value| value.eq_ignore_ascii_case("yes"))
}

impl Provider for Shadow {
    fn find(&mut self, want: &Properties, detail: Detail) -> Result<State> {
        let name = &want.common.name;
        let databases = databases(&self.host)?;
        let account = self.account(&databases, name)?;
        let facts = self.facts(want, &databases, account.as_ref(), detail)?;
        Ok(State { name: name.clone(), provider: NAME, account, facts })
    }

    fn act(&mut self, action: &Action, say: &mut dyn FnMut(&str)) -> Result<()> {
        match action {
            Action::Create(new) => self.create(new, say),
            Action::Modify(change) => self.modify(change, say),
            Action::SetPassword { name, field } => self.set_password(name, field, say),
            Action::AddGroups { name, groups, is_local } => {
                self.set_groups((name, *is_local), groups, true, say)
            }
            Action::LeaveGroups { name, groups, is_local } => {
                self.set_groups((name, *is_local), groups, false, say)
            }
            Action::MakeHome { name, home, mode } => self.make_home(name, home, *mode),
            Action::SetKeys { name, keys, exact, .. } => {
                let Account { home, uid, gid, .. } = self.now(name)?;
                self.settled_home(&home)?;
                Owner { home: Path::new(&home), uid, gid }.write(&self.host, keys, *exact)
            }
            Action::Lock { name } => {
                self.run("usermod", &["--lock", "--expiredate", "1", name], say)
            }
            Action::Unlock { name, expires, has_hash } => {
                let mut args = vec!["--expiredate", expires.as_str()];
                args.extend(has_hash.then_some("--unlock"));
                args.push(name);
                self.run("usermod", &args, say)
            }
            Action::Linger { name, enable } => self.linger(name, *enable, say),
            Action::Remove { name, uid, ends_processes, linger } => {
                self.remove((name, *uid), (*ends_processes, *linger), say)
            }
            Action::RemoveHome { home, uid } => {
                Ok(self.host.remove_tree_of(Path::new(home), *uid)?)
            }
        }
    }

    fn predict(&mut self, action: &Action) -> Result<()> {
        predict::predict(&self.host, action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn useradd_gets_what_is_wanted() {
        let words = |new: &NewUser, has_group| arguments(new, has_group).join(" ");
        let plain = NewUser {
            name: "app".into(),
            home: "/home/app".into(),
            makes_home: true,
            ..NewUser::default()
        };
        assert_eq!(words(&plain, false), "--home-dir /home/app --user-group --create-home app");
        let group = words(&plain, true);
        assert_eq!(group, "--gid app --home-dir /home/app --create-home app");
        let whole = NewUser {
            uid: Some(0),
            non_unique: true,
            group: Some("web".into()),
            comment: Some("A B".into()),
            makes_home: false,
            shell: Some("/bin/sh".into()),
            expires: Some("2030-01-01".into()),
            system: true,
            ..plain
        };
        assert_eq!(
            words(&whole, true),
            "--uid 0 --gid web --comment A B --home-dir /home/app --shell /bin/sh --expiredate \
             2030-01-01 --system --non-unique --no-create-home app"
        );
    }

    #[test]
    fn a_private_group_is_nobody_elses() {
        let passwd = "app:x:7:7:::\nann:x:8:8:::\nbob:x:9:7:::\n";
        let gid = |passwd: &str, group: &str, name: &str, gid| {
            own_group(&Databases::parse(passwd, group, None), name, gid)
        };
        assert_eq!(gid(passwd, "ann:x:8:\n", "ann", 8), Some(8));
        assert_eq!(gid(passwd, "ann:x:8:ann\n", "ann", 8), Some(8));
        assert_eq!(gid(passwd, "ann:x:8:bob\n", "ann", 8), None);
        assert_eq!(gid(passwd, "ann:x:9:\n", "ann", 8), None);
        assert_eq!(gid(passwd, "app:x:7:\n", "app", 7), None);
        assert_eq!(gid(passwd, "", "ann", 8), None);
        assert!(is_yes("# x\nUSERGROUPS_ENAB yes\n", "USERGROUPS_ENAB"));
        assert!(!is_yes("USERGROUPS_ENAB no\n", "USERGROUPS_ENAB"));
        assert!(!is_yes("#USERGROUPS_ENAB yes\n", "USERGROUPS_ENAB"));
    }
}
