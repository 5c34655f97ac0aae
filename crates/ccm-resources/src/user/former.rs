//! What the history keeps of a user.

use ccm_engine::Former;
use serde_json::{Value, json};

use super::state::{Account, State};
use super::{ABSENT, PRESENT, Properties, decide, password};
use crate::accounts::EXACT;

/// Only what is managed can have changed; an account that is removed comes back
/// whole. The hash of the password is sealed.
pub(super) fn former(want: &Properties, have: &State) -> Former {
    let Some(account) = &have.account else {
        return Former::Properties(json!({"ensure": ABSENT}));
    };
    let mut former = json!({"ensure": PRESENT});
    let is_removed = want.is_absent();
    if is_removed {
        whole(&mut former, have, account);
    } else {
        managed(&mut former, want, account);
    }
    access(&mut former, want, have, account);
    if want.non_unique {
        former["non_unique"] = true.into();
    }
    if want.linger.is_some() || (is_removed && have.facts.linger) {
        former["linger"] = have.facts.linger.into();
    }
    sealed(former, want, have, account)
}

/// Everything that makes the account.
fn whole(former: &mut Value, have: &State, account: &Account) {
    former["uid"] = account.uid.to_string().into();
    match have.facts.private_gid {
        Some(gid) => former["private_gid"] = gid.to_string().into(),
        None => former["group"] = account.gid.to_string().into(),
    }
    former["comment"] = account.comment.as_str().into();
    former["home"] = account.home.as_str().into();
    former["create_home"] = false.into();
    former["shell"] = account.shell.as_str().into();
    groups(former, account);
}

fn groups(former: &mut Value, account: &Account) {
    former["groups"] = json!(account.groups);
    former["groups_mode"] = EXACT.into();
}

fn managed(former: &mut Value, want: &Properties, account: &Account) {
    if want.uid.is_some() {
        former["uid"] = account.uid.to_string().into();
    }
    if want.group.is_some() {
        former["group"] = account.gid.to_string().into();
    }
    for (property, wanted, have) in [
        ("comment", &want.comment, &account.comment),
        ("home", &want.home, &account.home),
        ("shell", &want.shell, &account.shell),
    ] {
        if wanted.is_some() {
            former[property] = have.as_str().into();
        }
    }
    if want.home.is_some() && want.move_home {
        former["move_home"] = true.into();
    }
    if want.groups.is_some() {
        groups(former, account);
    }
}

fn access(former: &mut Value, want: &Properties, have: &State, account: &Account) {
    let Some(access) = &account.access else { return };
    let is_locked = access.is_locked(have.facts.today);
    let is_all = want.is_absent() || want.locked.is_some();
    if is_all && is_locked {
        former["locked"] = true.into();
    } else if is_all || want.expires.is_some() {
        let field = access.password.expose();
        if want.locked.is_some() && !password::is_locked_hash(field) {
            former["locked"] = false.into();
        }
        former["expires"] = access.expires_text().into();
    }
}

/// Adds the hash that comes back, where the history may see it only sealed.
fn sealed(former: Value, want: &Properties, have: &State, account: &Account) -> Former {
    let is_set = !want.is_absent() && decide::new_password(want, have).is_some();
    if !want.is_absent() && want.password.is_none() {
        return Former::Properties(former);
    }
    let field = account.access.as_ref().map(|access| access.password.expose());
    let field = field.unwrap_or_default();
    let wanted = match password::hash(field) {
        "" if !field.is_empty() => "!",
        hash if former["locked"] == true => hash,
        _ => field,
    };
    if password::problem(wanted).is_none() {
        return Former::Sealed { properties: former, sealed: json!({"password": wanted}) };
    }
    if is_set {
        return Former::Lost("the former password is none that ccm sets");
    }
    Former::Properties(former)
}
