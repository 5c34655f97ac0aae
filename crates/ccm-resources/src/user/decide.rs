//! From the current state of a user to the steps. Pure.

use ccm_engine::{Error, Result, Step};
use ccm_model::{Change, Verb};

use super::state::{Access, Account, Home, State};
use super::{
    ABSENT, Action, Modification, NewUser, ON_CREATE, PRESENT, Properties, date, password,
};
use crate::accounts::{PASSWD, Secret};
use crate::file::mode;

/// How many processes a message names.
const NAMED: usize = 2;

type Steps = Vec<Step<Action>>;

pub(super) fn decide(want: &Properties, have: &State) -> Result<Steps> {
    match &have.account {
        None if want.is_absent() => Ok(Vec::new()),
        _ if !have.facts.is_complete => Err(Error::Refused {
            reason: "cannot read /etc/shadow".to_owned(),
            hint: Some("run ccm as root".to_owned()),
        }),
        Some(account) if want.is_absent() => remove(want, have, account),
        None => create(want, have),
        Some(account) => update(want, have, account),
    }
}

fn refused<T>(reason: String, hint: &str) -> Result<T> {
    Err(Error::Refused { reason, hint: Some(hint.to_owned()) })
}

/// The first difference that is left.
pub(super) fn mismatch(want: &Properties, have: &State) -> Option<String> {
    let steps = match decide(want, have) {
        Ok(steps) => steps,
        Err(error) => return Some(error.to_string()),
    };
    let step = steps.first()?;
    let Some(change) = step.changes.first() else { return Some(step.action.to_string()) };
    let value = |value: &Option<ccm_model::ChangeValue>| {
        value.as_ref().map_or_else(|| "another".to_owned(), ToString::to_string)
    };
    let property = &change.property;
    Some(match (&change.from, &change.to) {
        (None, None) => format!("{property} is not as wanted"),
        (from, to) => format!("{property} is {}, should be {}", value(from), value(to)),
    })
}

fn create(want: &Properties, have: &State) -> Result<Steps> {
    let name = &want.common.name;
    let facts = &have.facts;
    check_uid(want, have)?;
    check_shell(have)?;
    let makes_home = want.makes_home();
    check_new_home(want, have)?;
    if want.authorized_keys.is_some() && !makes_home && facts.home == Home::Missing {
        return Err(no_home(want));
    }
    let has_home = matches!(facts.home, Home::Directory(_));
    let new = NewUser {
        name: name.clone(),
        uid: want.uid(),
        non_unique: want.non_unique,
        group: want.group.clone(),
        private_gid: want.private_gid(),
        comment: want.comment.clone(),
        home: facts.home_path.clone(),
        makes_home: makes_home && !has_home,
        home_mode: home_mode(want),
        shell: want.shell.clone(),
        expires: want.expires.clone().filter(|date| date != date::NEVER),
        system: want.system,
    };
    let mut step = Step::new(Verb::Created, Action::Create(new));
    step = step.change(Change::of("ensure").from(ABSENT).to(PRESENT));
    for (property, value) in [
        ("uid", &want.uid),
        ("group", &want.group),
        ("comment", &want.comment),
        ("home", &want.home),
        ("shell", &want.shell),
        ("expires", &want.expires),
    ] {
        if let Some(value) = value {
            step = step.change(Change::of(property).to(value.as_str()));
        }
    }
    let mut steps = vec![step];
    let account = Account {
        group: want.group.clone().unwrap_or_else(|| name.clone()),
        access: Some(Access { password: Secret::new("!"), expires: None }),
        ..Account::default()
    };
    let field = want.password.as_deref();
    let field = field.and_then(|wanted| password::new_field(wanted, "!", want.locked));
    steps.extend(field.map(|field| set_password(name, field)));
    steps.extend(groups(want, &account));
    steps.extend(keys(want, have));
    if want.locked == Some(true) {
        steps.push(lock(name));
    }
    steps.extend(linger(want, have));
    Ok(steps)
}

fn home_mode(want: &Properties) -> Option<u32> {
    want.home_mode.as_deref().and_then(|mode| mode::parse(mode).ok())
}

fn no_home(want: &Properties) -> Error {
    Error::Refused {
        reason: format!("user {} has no home directory for authorized_keys", want.common.name),
        hint: Some("set `create_home: true`".to_owned()),
    }
}

fn check_uid(want: &Properties, have: &State) -> Result<()> {
    match (&have.facts.uid_taken_by, want.non_unique) {
        (Some(other), false) => refused(
            format!("user {other} already has the ID {}", want.uid.as_deref().unwrap_or_default()),
            "choose another `uid`, or set `non_unique: true`",
        ),
        _ => Ok(()),
    }
}

fn check_shell(have: &State) -> Result<()> {
    match &have.facts.shell_problem {
        // A package may bring it.
        Some(problem) => Err(Error::Missing {
            reason: problem.clone(),
            hint: Some("name an executable file, or install it in an earlier resource".to_owned()),
            by: None,
        }),
        None => Ok(()),
    }
}

/// Whoever owns an existing home directory decides about its keys.
fn check_new_home(want: &Properties, have: &State) -> Result<()> {
    let path = &have.facts.home_path;
    let owner = match have.facts.home {
        Home::Missing => return Ok(()),
        Home::Other if !want.makes_home() => return Ok(()),
        Home::Other => {
            return Err(Error::refused(format!("{path} exists and is not a directory")));
        }
        Home::Directory(owner) => owner,
    };
    let is_kept = !want.makes_home() && owner == 0;
    if is_kept || want.uid() == Some(owner) {
        return Ok(());
    }
    let name = &want.common.name;
    refused(
        format!(
            "{path} exists and belongs to the ID {owner}, which is not known to be that of {name}"
        ),
        "set `uid` to that ID, or remove or rename the directory",
    )
}

fn update(want: &Properties, have: &State, account: &Account) -> Result<Steps> {
    let name = &want.common.name;
    let facts = &have.facts;
    let mut steps = Vec::new();
    let field = new_password(want, have);
    let unlock = unlock(want, have, account, field.is_some());
    steps.extend(modify(want, have, account, unlock.is_some())?);
    let is_modified = !steps.is_empty();
    steps.extend(field.map(|field| set_password(name, field)));
    let local = steps.len();
    steps.extend(groups(want, account));
    if want.create_home == Some(true) && facts.home == Home::Missing {
        let home = facts.home_path.clone();
        let action =
            Action::MakeHome { name: name.clone(), home: home.clone(), mode: home_mode(want) };
        steps.push(Step::new(Verb::Created, action).change(Change::of("home").to(home)));
    } else if want.authorized_keys.is_some() && facts.home == Home::Missing {
        let is_moved = is_modified && want.move_home && want.home.is_some();
        if !(is_moved && matches!(facts.current_home, Home::Directory(_))) {
            return Err(no_home(want));
        }
    }
    steps.extend(keys(want, have));
    let lock_now = needs_lock(want, have, account);
    if lock_now {
        protect(have, account, "lock")?;
        steps.push(lock(name));
    }
    let is_unlocked = unlock.is_some();
    steps.extend(unlock);
    if let (Some(source), true) = (&account.source, local > 0 || lock_now || is_unlocked) {
        return Err(foreign(name, source));
    }
    steps.extend(linger(want, have));
    Ok(steps)
}

fn foreign(name: &str, source: &str) -> Error {
    Error::refused(format!("user {name} comes from {source}, not from {PASSWD}"))
}

/// Nobody can undo that who cannot log in any more.
fn protect(have: &State, account: &Account, what: &str) -> Result<()> {
    let name = &have.name;
    let whose = match (account.uid, have.facts.is_own) {
        (0, _) => "which has the ID 0",
        (_, true) => "which runs ccm",
        _ => return Ok(()),
    };
    Err(Error::refused(format!("ccm does not {what} user {name}, {whose}")))
}

/// What one command changes of an account.
fn modify(
    want: &Properties,
    have: &State,
    account: &Account,
    is_unlocked: bool,
) -> Result<Option<Step<Action>>> {
    let facts = &have.facts;
    let mut change = Modification {
        name: want.common.name.clone(),
        former_uid: account.uid,
        ..Modification::default()
    };
    let mut changes = Vec::new();
    if let Some(uid) = want.uid().filter(|uid| *uid != account.uid) {
        check_uid(want, have)?;
        protect(have, account, "change the ID of")?;
        check_processes(have, "a change of its ID")?;
        (change.uid, change.non_unique) = (Some(uid), want.non_unique);
        changes.push(Change::of("uid").from(account.uid.to_string()).to(uid.to_string()));
    }
    if let (Some(gid), Some(group)) = (facts.wanted_gid, &want.group)
        && gid != account.gid
    {
        change.gid = Some(gid);
        changes.push(Change::of("group").from(account.group.as_str()).to(group.as_str()));
    }
    let differs = |wanted: &Option<String>, have: &str| wanted.clone().filter(|text| text != have);
    change.comment = differs(&want.comment, &account.comment);
    change.home = differs(&want.home, &account.home);
    change.shell = differs(&want.shell, &account.shell);
    for (property, from, to) in [
        ("comment", &account.comment, &change.comment),
        ("home", &account.home, &change.home),
        ("shell", &account.shell, &change.shell),
    ] {
        if let Some(to) = to {
            changes.push(Change::of(property).from(from.as_str()).to(to.as_str()));
        }
    }
    if change.shell.is_some() {
        check_shell(have)?;
    }
    if let Some(home) = &change.home {
        check_processes(have, "a change of its home directory")?;
        if want.move_home && facts.home != Home::Missing {
            return refused(
                format!("cannot move the home directory: {home} exists"),
                "remove or rename it, or omit `move_home`",
            );
        }
        change.moves_home = want.move_home && matches!(facts.current_home, Home::Directory(_));
    }
    if let Some((from, to)) = expiry(want, account).filter(|_| !is_unlocked) {
        let day = date::day(&to);
        if day.is_some_and(|day| day <= facts.today) {
            protect(have, account, "let expire")?;
        }
        changes.push(Change::of("expires").from(from).to(to.as_str()));
        change.expires = Some(if day.is_some() { to } else { String::new() });
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let mut step = Step::new(Verb::Updated, Action::Modify(change));
    step.changes = changes;
    Ok(Some(step))
}

/// The date that an account has and the one that it should have, if they differ.
fn expiry(want: &Properties, account: &Account) -> Option<(String, String)> {
    let wanted = want.expires.as_deref().filter(|_| want.locked != Some(true))?;
    // Nothing is known of an account that is not local, but that it differs.
    let access = account.access.as_ref();
    let have = access.map_or_else(|| "unknown".to_owned(), Access::expires_text);
    (have != wanted).then(|| (have, wanted.to_owned()))
}

fn check_processes(have: &State, what: &str) -> Result<()> {
    if have.facts.processes.is_empty() {
        return Ok(());
    }
    let processes = processes(&have.name, &have.facts.processes);
    refused(format!("{processes}; {what} needs a user without any"), "end them first")
}

/// How many processes a user has, and some of them.
fn processes(name: &str, all: &[u32]) -> String {
    let mut named: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    if all.len() > NAMED {
        named.push("…".to_owned());
    }
    let plural = if all.len() == 1 { "process" } else { "processes" };
    format!("user {name} has {} running {plural} ({})", all.len(), named.join(", "))
}

/// The field of the password to set for an account that is there.
pub(super) fn new_password(want: &Properties, have: &State) -> Option<Secret> {
    let wanted = want.password.as_deref()?;
    if want.password_update.as_deref() == Some(ON_CREATE) {
        return None;
    }
    let access = have.account.as_ref()?.access.as_ref();
    let field = access.map(|access| access.password.expose()).unwrap_or_default();
    password::new_field(wanted, field, want.locked)
}

fn set_password(name: &str, field: Secret) -> Step<Action> {
    let action = Action::SetPassword { name: name.to_owned(), field };
    Step::new(Verb::Updated, action).change(Change::secret("password"))
}

fn groups(want: &Properties, account: &Account) -> Steps {
    let Some(wanted) = &want.groups else { return Vec::new() };
    let is_primary = |group: &String| *group == account.group;
    let mut added: Vec<String> = Vec::new();
    for group in wanted.iter().filter(|group| !is_primary(group)) {
        if !account.groups.contains(group) && !added.contains(group) {
            added.push(group.clone());
        }
    }
    let mut left = Vec::new();
    if want.has_exact_groups() {
        let surplus = account.groups.iter().filter(|group| !wanted.contains(group));
        left = surplus.filter(|group| !is_primary(group)).cloned().collect();
    }
    let (name, is_local) = (&want.common.name, account.source.is_none());
    let mut with: Vec<String> = account.groups.iter().chain(&added).cloned().collect();
    with.sort_unstable();
    let without: Vec<String> = with.iter().filter(|group| !left.contains(group)).cloned().collect();
    let mut steps = Vec::new();
    if !added.is_empty() {
        let change = Change::of("groups").to(with.clone());
        let change = match account.groups.as_slice() {
            [] => change,
            now => change.from(now.to_vec()),
        };
        let action = Action::AddGroups { name: name.clone(), groups: added, is_local };
        steps.push(Step::new(Verb::Updated, action).change(change));
    }
    if !left.is_empty() {
        let change = Change::of("groups").from(with).to(without);
        let action = Action::LeaveGroups { name: name.clone(), groups: left, is_local };
        steps.push(Step::new(Verb::Updated, action).change(change));
    }
    steps
}

fn keys(want: &Properties, have: &State) -> Option<Step<Action>> {
    let merged = have.facts.keys.as_ref().filter(|merged| !merged.is_stable())?;
    let lists = [&merged.added, &merged.updated, &merged.removed];
    let action = Action::SetKeys {
        name: want.common.name.clone(),
        keys: want.keys(),
        exact: want.has_exact_keys(),
        counts: lists.map(Vec::len),
    };
    let change = Change::of("authorized_keys").members(lists.map(Clone::clone));
    Some(Step::new(Verb::Updated, action).change(change))
}

fn lock(name: &str) -> Step<Action> {
    let change = Change::of("locked").from(false).to(true);
    Step::new(Verb::Locked, Action::Lock { name: name.to_owned() }).change(change)
}

fn needs_lock(want: &Properties, have: &State, account: &Account) -> bool {
    let access = account.access.as_ref();
    let is_locked = access.is_some_and(|access| access.is_locked(have.facts.today));
    want.locked == Some(true) && !is_locked
}

/// Unlocks an account that is expired, or whose password is locked. A mark alone
/// is no locked password: no tool takes it away.
fn unlock(
    want: &Properties,
    have: &State,
    account: &Account,
    sets_password: bool,
) -> Option<Step<Action>> {
    if want.locked != Some(false) {
        return None;
    }
    let access = account.access.as_ref();
    let field = access.map(|access| access.password.expose()).unwrap_or_default();
    let has_hash = password::is_locked_hash(field) && !sets_password;
    let wanted = want.expires.as_deref().and_then(date::day);
    let is_wanted_past = wanted.is_some_and(|day| day <= have.facts.today);
    let is_expired =
        access.is_some_and(|access| access.is_expired(have.facts.today)) && !is_wanted_past;
    if !has_hash && !is_expired {
        return None;
    }
    let kept = access.and_then(|access| access.expires).filter(|_| !is_expired);
    let expires = match (&want.expires, kept) {
        (Some(text), _) if text != date::NEVER => text.clone(),
        (None, Some(day)) => date::date(day),
        _ => String::new(),
    };
    let change = Change::of("locked").from(true).to(false);
    let action = Action::Unlock { name: want.common.name.clone(), expires, has_hash };
    Some(Step::new(Verb::Unlocked, action).change(change))
}

fn linger(want: &Properties, have: &State) -> Option<Step<Action>> {
    let enable = want.linger.filter(|enable| *enable != have.facts.linger)?;
    let action = Action::Linger { name: want.common.name.clone(), enable };
    let change = Change::of("linger").from(!enable).to(enable);
    Some(Step::new(Verb::Updated, action).change(change))
}

fn remove(want: &Properties, have: &State, account: &Account) -> Result<Steps> {
    let (name, facts) = (&want.common.name, &have.facts);
    protect(have, account, "remove")?;
    if let Some(source) = &account.source {
        return Err(foreign(name, source));
    }
    if !facts.processes.is_empty() && !want.kill_processes {
        return refused(
            processes(name, &facts.processes),
            "end them first, or set `kill_processes: true`",
        );
    }
    if let Some(reason) = facts.keeps_home.as_ref().filter(|_| want.remove_home) {
        return refused(
            format!("ccm does not remove the home directory {}: {reason}", account.home),
            "omit `remove_home`, and remove the directory yourself if that is right",
        );
    }
    let action = Action::Remove {
        name: name.clone(),
        uid: account.uid,
        ends_processes: want.kill_processes,
        linger: facts.linger,
    };
    let mut step = Step::new(Verb::Removed, action);
    step = step.change(Change::of("ensure").from(PRESENT).to(ABSENT));
    if facts.private_gid.is_some() {
        step = step.change(Change::of("group").from(name.as_str()));
    }
    let mut steps = vec![step];
    if want.remove_home && facts.current_home != Home::Missing {
        let home = account.home.clone();
        let change = Change::of("home").from(home.as_str());
        let action = Action::RemoveHome { home, uid: account.uid };
        steps.push(Step::new(Verb::Removed, action).change(change));
    }
    Ok(steps)
}
