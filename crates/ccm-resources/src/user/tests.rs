//! The decisions of the type `user`, by tables: nothing here touches the machine.

use ccm_engine::{Declare as _, ResourceType as _, Trigger};
use ccm_host::Host;
use ccm_model::{Change, Outcome, Verb};
use serde_json::{Value, json};

use super::keys::tests::{ANN, BOB};
use super::*;
use crate::testing;

const HASH: &str = "$6$salt$hash";
const OTHER: &str = "$6$salt$other";
const TODAY: i64 = 20_000;

#[expect(clippy::needless_pass_by_value, reason = "`json!` makes it")]
fn want(properties: Value) -> Properties {
    let mut all = json!({"name": "app", "ensure": "present"});
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    testing::properties::<Properties>(&all)
}

fn facts() -> Facts {
    Facts { is_complete: true, today: TODAY, home_path: "/home/app".into(), ..Facts::default() }
}

fn absent() -> State {
    State { name: "app".into(), provider: "shadow", account: None, facts: facts() }
}

fn account(password: &str, expires: Option<i64>) -> Account {
    Account {
        uid: 1001,
        gid: 1001,
        group: "app".into(),
        groups: vec!["adm".into(), "video".into()],
        comment: "App".into(),
        home: "/home/app".into(),
        shell: "/bin/sh".into(),
        source: None,
        access: Some(Access { password: Secret::new(password), expires }),
    }
}

fn present() -> State {
    let home = Home::Directory(1001);
    let facts = Facts { home, current_home: home, ..facts() };
    State { account: Some(account(HASH, None)), facts, ..absent() }
}

fn with_access(password: &str, expires: Option<i64>) -> State {
    State { account: Some(account(password, expires)), ..present() }
}

/// Keys as the provider compares them with a file.
fn with_keys(mut have: State, want: &Properties, file: &str) -> State {
    have.facts.keys = Some(keys::merge(file.as_bytes(), &want.keys(), want.has_exact_keys()));
    have
}

fn said(want: &Properties, have: &State) -> String {
    match User::decide(want, have, Trigger::Turn) {
        Ok(steps) => steps.iter().map(User::describe).collect::<Vec<_>>().join(". "),
        Err(error) => error.to_string(),
    }
}

fn hint(want: &Properties, have: &State) -> String {
    User::decide(want, have, Trigger::Turn).unwrap_err().hint().unwrap_or_default()
}

#[test]
fn create() {
    for (properties, wanted) in [
        (json!({}), "Would have created user"),
        (json!({"password": HASH}), "Would have created user. Would have updated password"),
        (
            json!({"password": HASH, "password_update": "on_create"}),
            "Would have created user. Would have updated password",
        ),
        (json!({"password": "!"}), "Would have created user"),
        (
            json!({"groups": ["adm", "web", "adm", "app"]}),
            "Would have created user. Would have added to 2 groups",
        ),
        (
            json!({"groups": ["adm"], "groups_mode": "exact"}),
            "Would have created user. Would have added to 1 group",
        ),
        (json!({"locked": true}), "Would have created user. Would have locked user"),
        (json!({"locked": false}), "Would have created user"),
        (json!({"linger": true}), "Would have created user. Would have enabled linger"),
        (json!({"linger": false}), "Would have created user"),
        (json!({"expires": "2030-01-01", "uid": 7}), "Would have created user"),
    ] {
        assert_eq!(said(&want(properties.clone()), &absent()), wanted, "{properties}");
    }
    let wanted = want(json!({"authorized_keys": [ANN, BOB]}));
    assert_eq!(
        said(&wanted, &with_keys(absent(), &wanted, "")),
        "Would have created user. Would have added 2 authorized keys"
    );
}

#[test]
fn a_new_account_is_as_described() {
    let all = want(json!({
        "uid": 7, "group": "web", "comment": "C", "home": "/srv/app", "home_mode": "0750",
        "shell": "/bin/sh", "expires": "2030-01-01", "system": true, "create_home": true,
    }));
    let mut have = absent();
    have.facts.home_path = "/srv/app".into();
    let steps = User::decide(&all, &have, Trigger::Turn).unwrap();
    let Action::Create(new) = &steps[0].action else { panic!("{steps:?}") };
    assert_eq!(
        *new,
        NewUser {
            name: "app".into(),
            uid: Some(7),
            non_unique: false,
            group: Some("web".into()),
            private_gid: None,
            comment: Some("C".into()),
            home: "/srv/app".into(),
            makes_home: true,
            home_mode: Some(0o750),
            shell: Some("/bin/sh".into()),
            expires: Some("2030-01-01".into()),
            system: true,
        }
    );
    let properties: Vec<_> = steps[0].changes.iter().map(|change| &*change.property).collect();
    assert_eq!(properties, ["ensure", "uid", "group", "comment", "home", "shell", "expires"]);
    let makes_home = |properties| {
        let steps = User::decide(&want(properties), &absent(), Trigger::Turn).unwrap();
        matches!(&steps[0].action, Action::Create(new) if new.makes_home)
    };
    assert!(makes_home(json!({})));
    assert!(!makes_home(json!({"system": true})));
    assert!(!makes_home(json!({"create_home": false})));
    assert!(makes_home(json!({"system": true, "create_home": true})));
    let locked = want(json!({"password": HASH, "locked": true}));
    let steps = User::decide(&locked, &absent(), Trigger::Turn).unwrap();
    let field = format!("!{HASH}");
    let set = Action::SetPassword { name: "app".into(), field: Secret::new(field) };
    assert_eq!((&steps[1].action, steps[2].verb), (&set, Verb::Locked));
}

#[test]
fn what_a_new_account_must_not_take_over() {
    let home = |home| State { facts: Facts { home, ..facts() }, ..absent() };
    let refused =
        "/home/app exists and belongs to the ID 1001, which is not known to be that of app";
    for (properties, have, wanted) in [
        (json!({}), home(Home::Directory(1001)), refused),
        (json!({"uid": 1002}), home(Home::Directory(1001)), refused),
        (json!({"create_home": false}), home(Home::Directory(1001)), refused),
        (json!({"uid": 1001}), home(Home::Directory(1001)), "Would have created user"),
        (json!({"create_home": false}), home(Home::Directory(0)), "Would have created user"),
        (json!({}), home(Home::Other), "/home/app exists and is not a directory"),
        (json!({"create_home": false}), home(Home::Other), "Would have created user"),
        (
            json!({"create_home": false, "authorized_keys": [ANN]}),
            absent(),
            "user app has no home directory for authorized_keys",
        ),
    ] {
        assert_eq!(said(&want(properties.clone()), &have), wanted, "{properties}");
    }
    let taken = Facts { uid_taken_by: Some("bob".into()), ..facts() };
    let taken = State { facts: taken, ..absent() };
    assert_eq!(said(&want(json!({"uid": 7})), &taken), "user bob already has the ID 7");
    let free = want(json!({"uid": 7, "non_unique": true}));
    assert_eq!(said(&free, &taken), "Would have created user");
    let no_shell = Facts { shell_problem: Some("the shell /x does not exist".into()), ..facts() };
    let no_shell = State { facts: no_shell, ..absent() };
    assert_eq!(said(&want(json!({"shell": "/x"})), &no_shell), "the shell /x does not exist");
    let others = State { facts: Facts { is_complete: false, ..facts() }, ..absent() };
    assert_eq!(said(&want(json!({})), &others), "cannot read /etc/shadow");
    assert_eq!(hint(&want(json!({})), &others), "run ccm as root");
}

#[test]
fn one_command_changes_an_account() {
    let gid =
        |gid| State { facts: Facts { wanted_gid: Some(gid), ..present().facts }, ..present() };
    for (properties, have, wanted) in [
        (json!({}), present(), ""),
        (
            json!({
                "uid": 1001, "comment": "App", "home": "/home/app", "shell": "/bin/sh",
                "expires": "never",
            }),
            present(),
            "",
        ),
        (json!({"uid": 1002}), present(), "Would have updated user"),
        (json!({"group": "app"}), gid(1001), ""),
        (json!({"group": "web"}), gid(33), "Would have updated user"),
        (json!({"comment": "", "shell": "/bin/x"}), present(), "Would have updated user"),
        (json!({"home": "/srv/app"}), present(), "Would have updated user"),
        (json!({"expires": "2030-01-01"}), present(), "Would have updated user"),
        // These are read on creation only.
        (json!({"system": true, "home_mode": "0700"}), present(), ""),
    ] {
        assert_eq!(said(&want(properties.clone()), &have), wanted, "{properties}");
    }
    let several = want(json!({"uid": 9, "comment": "B", "expires": "2030-01-01"}));
    let steps = User::decide(&several, &present(), Trigger::Turn).unwrap();
    assert_eq!(steps.len(), 1);
    assert_eq!(
        steps[0].changes,
        [
            Change::of("uid").from("1001").to("9"),
            Change::of("comment").from("App").to("B"),
            Change::of("expires").from("never").to("2030-01-01"),
        ]
    );
    let dated = with_access(HASH, Some(21_915));
    assert_eq!(said(&want(json!({"expires": "2030-01-01"})), &dated), "");
    let never = User::decide(&want(json!({"expires": "never"})), &dated, Trigger::Turn).unwrap();
    let Action::Modify(change) = &never[0].action else { panic!("{never:?}") };
    assert_eq!(change.expires.as_deref(), Some(""));
}

#[test]
fn an_id_and_a_home_change_only_for_idle_users() {
    let processes = vec![1201, 1202, 1203];
    let busy = State { facts: Facts { processes, ..present().facts }, ..present() };
    assert_eq!(
        said(&want(json!({"uid": 5})), &busy),
        "user app has 3 running processes (1201, 1202, …); a change of its ID needs a user without \
         any"
    );
    assert!(said(&want(json!({"home": "/srv/app"})), &busy).contains("of its home directory"));
    assert_eq!(said(&want(json!({"comment": "x"})), &busy), "Would have updated user");
    let mut exists = present();
    let moved = want(json!({"home": "/srv/app", "move_home": true}));
    exists.facts.home_path = "/srv/app".into();
    assert_eq!(said(&moved, &exists), "cannot move the home directory: /srv/app exists");
    exists.facts.home = Home::Missing;
    let steps = User::decide(&moved, &exists, Trigger::Turn).unwrap();
    assert!(matches!(&steps[0].action, Action::Modify(change) if change.moves_home));
    // Nothing to move.
    exists.facts.current_home = Home::Missing;
    let steps = User::decide(&moved, &exists, Trigger::Turn).unwrap();
    assert!(matches!(&steps[0].action, Action::Modify(change) if !change.moves_home));
}

#[test]
fn passwords() {
    let locked = format!("!{HASH}");
    for (properties, field, wanted) in [
        (json!({"password": HASH}), HASH, ""),
        (json!({"password": OTHER}), HASH, "Would have updated password"),
        (
            json!({"password": OTHER, "password_update": "always"}),
            HASH,
            "Would have updated password",
        ),
        (json!({"password": OTHER, "password_update": "on_create"}), HASH, ""),
        (json!({"password": HASH}), "!", "Would have updated password"),
        (json!({"password": HASH}), &locked, ""),
        (json!({"password": "*"}), HASH, "Would have updated password"),
    ] {
        assert_eq!(said(&want(properties.clone()), &with_access(field, None)), wanted);
    }
    let steps = User::decide(&want(json!({"password": OTHER})), &present(), Trigger::Turn).unwrap();
    assert_eq!(steps[0].changes, [Change::secret("password")]);
    let shown = format!("{steps:?} {}", serde_json::to_string(&steps).unwrap());
    assert!(!shown.contains(OTHER), "{shown}");
}

#[test]
fn groups() {
    for (properties, wanted) in [
        (json!({"groups": ["adm"]}), ""),
        (json!({"groups": []}), ""),
        (json!({"groups": ["adm", "app"]}), ""),
        (json!({"groups": ["adm", "web"]}), "Would have added to 1 group"),
        (json!({"groups": ["adm"], "groups_mode": "minimum"}), ""),
        (json!({"groups": ["adm"], "groups_mode": "exact"}), "Would have removed from 1 group"),
        (
            json!({"groups": ["web"], "groups_mode": "exact"}),
            "Would have added to 1 group. Would have removed from 2 groups",
        ),
        (json!({"groups": [], "groups_mode": "exact"}), "Would have removed from 2 groups"),
        (json!({"groups": ["video", "adm"], "groups_mode": "exact"}), ""),
    ] {
        assert_eq!(said(&want(properties.clone()), &present()), wanted, "{properties}");
    }
}

#[test]
fn keys() {
    let keys = |properties: Value, file: &str| {
        let want = want(properties);
        said(&want, &with_keys(present(), &want, file))
    };
    let both = format!("{ANN}\n{BOB}\n");
    assert_eq!(keys(json!({"authorized_keys": [ANN]}), &both), "");
    assert_eq!(
        keys(json!({"authorized_keys": [ANN, BOB]}), ""),
        "Would have added 2 authorized keys"
    );
    let exact = json!({"authorized_keys": [ANN], "authorized_keys_mode": "exact"});
    assert_eq!(keys(exact.clone(), &both), "Would have removed 1 authorized key");
    assert_eq!(
        keys(exact, &format!("{BOB}\n")),
        "Would have added 1 authorized key and removed 1 authorized key"
    );
    let restricted = json!({"authorized_keys": [{"key": ANN, "options": "restrict"}]});
    assert_eq!(keys(restricted, &both), "Would have updated 1 authorized key");
    let none = json!({"authorized_keys": [], "authorized_keys_mode": "exact"});
    assert_eq!(keys(none, &both), "Would have removed 2 authorized keys");
}

#[test]
fn a_home_that_is_missing() {
    let mut have = present();
    (have.facts.home, have.facts.current_home) = (Home::Missing, Home::Missing);
    assert_eq!(said(&want(json!({})), &have), "");
    let makes = want(json!({"create_home": true}));
    assert_eq!(said(&makes, &have), "Would have created home directory");
    assert_eq!(said(&makes, &present()), "");
    let wanted = want(json!({"authorized_keys": [ANN]}));
    let without = said(&wanted, &with_keys(have.clone(), &wanted, ""));
    assert_eq!(without, "user app has no home directory for authorized_keys");
    let both = want(json!({"authorized_keys": [ANN], "create_home": true}));
    assert_eq!(
        said(&both, &with_keys(have, &both, "")),
        "Would have created home directory. Would have added 1 authorized key"
    );
}

#[test]
fn locks() {
    let locked = format!("!{HASH}");
    let (past, future) = (Some(TODAY - 1), Some(21_915));
    for (properties, field, expires, wanted) in [
        (json!({"locked": true}), HASH, None, "Would have locked user"),
        // A locked password alone still allows keys.
        (json!({"locked": true}), &*locked, None, "Would have locked user"),
        (json!({"locked": true}), HASH, past, "Would have locked user"),
        (json!({"locked": true}), &locked, past, ""),
        (json!({"locked": true}), "!", Some(1), ""),
        (json!({"locked": false}), HASH, None, ""),
        (json!({"locked": false}), HASH, future, ""),
        (json!({"locked": false}), "!", None, ""),
        (json!({"locked": false}), "*", None, ""),
        (json!({"locked": false}), &locked, None, "Would have unlocked user"),
        (json!({"locked": false}), HASH, past, "Would have unlocked user"),
        (json!({"locked": false}), "!", Some(1), "Would have unlocked user"),
        (
            json!({"locked": false, "password": HASH}),
            &locked,
            past,
            "Would have updated password. Would have unlocked user",
        ),
        (json!({"locked": true, "password": HASH}), &locked, past, ""),
        (json!({}), &locked, past, ""),
    ] {
        let have = with_access(field, expires);
        assert_eq!(said(&want(properties.clone()), &have), wanted, "{properties} {expires:?}");
    }
    let unlock = |properties, field, expires| {
        let have = with_access(field, expires);
        let steps = User::decide(&want(properties), &have, Trigger::Turn).unwrap();
        assert_eq!(steps.len(), 1, "{steps:?}");
        match &steps[0].action {
            Action::Unlock { expires, has_hash, .. } => (expires.clone(), *has_hash),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(unlock(json!({"locked": false}), &locked, Some(1)), (String::new(), true));
    assert_eq!(unlock(json!({"locked": false}), "!", Some(1)), (String::new(), false));
    // A date in the future is no lock, so it stays.
    let kept = unlock(json!({"locked": false}), &locked, future);
    assert_eq!(kept, ("2030-01-01".to_owned(), true));
    let given = json!({"locked": false, "expires": "2030-01-01"});
    assert_eq!(unlock(given, &locked, Some(1)), ("2030-01-01".to_owned(), true));
}

#[test]
fn nobody_locks_out_root_or_who_runs_ccm() {
    let mut root = present();
    root.account.as_mut().unwrap().uid = 0;
    let own = State { facts: Facts { is_own: true, ..present().facts }, ..present() };
    for (have, whose) in [(root, "which has the ID 0"), (own, "which runs ccm")] {
        for (properties, what) in [
            (json!({"ensure": "absent"}), "remove"),
            (json!({"locked": true}), "lock"),
            (json!({"uid": 5}), "change the ID of"),
            (json!({"expires": "2020-01-01"}), "let expire"),
        ] {
            let wanted = format!("ccm does not {what} user app, {whose}");
            assert_eq!(said(&want(properties), &have), wanted);
        }
        let harmless = want(json!({"expires": "2030-01-01", "comment": "x"}));
        assert_eq!(said(&harmless, &have), "Would have updated user");
    }
}

#[test]
fn remove() {
    let gone = want(json!({"ensure": "absent"}));
    assert_eq!(said(&gone, &absent()), "");
    let with_home = want(json!({"ensure": "absent", "remove_home": true}));
    assert_eq!(said(&with_home, &absent()), "");
    assert_eq!(said(&gone, &present()), "Would have removed user");
    assert_eq!(
        said(&with_home, &present()),
        "Would have removed user. Would have removed home directory"
    );
    let mut homeless = present();
    homeless.facts.current_home = Home::Missing;
    assert_eq!(said(&with_home, &homeless), "Would have removed user");
    let mut busy = present();
    busy.facts.processes = vec![1201];
    assert_eq!(said(&gone, &busy), "user app has 1 running process (1201)");
    assert!(hint(&gone, &busy).contains("kill_processes"));
    let kills = want(json!({"ensure": "absent", "kill_processes": true}));
    assert_eq!(said(&kills, &busy), "Would have removed user");
    let mut kept = present();
    kept.facts.keeps_home = Some("it is a symlink".into());
    assert_eq!(
        said(&with_home, &kept),
        "ccm does not remove the home directory /home/app: it is a symlink"
    );
    assert_eq!(said(&gone, &kept), "Would have removed user");
    let mut private = present();
    private.facts.private_gid = Some(1001);
    let steps = User::decide(&gone, &private, Trigger::Turn).unwrap();
    assert_eq!(steps[0].changes[1], Change::of("group").from("app"));
}

#[test]
fn accounts_of_other_sources_are_only_used() {
    let mut have = present();
    let account = have.account.as_mut().unwrap();
    (account.source, account.access) = (Some("sss".into()), None);
    let refused = "user app comes from sss, not from /etc/passwd";
    for (properties, wanted) in [
        (json!({}), ""),
        (json!({"uid": 1001, "shell": "/bin/sh"}), ""),
        (json!({"groups": ["web"]}), "Would have added to 1 group"),
        (json!({"linger": true}), "Would have enabled linger"),
        (json!({"shell": "/bin/x"}), refused),
        (json!({"password": HASH}), refused),
        (json!({"password": HASH, "password_update": "on_create"}), ""),
        (json!({"locked": true}), refused),
        (json!({"expires": "never"}), refused),
        (json!({"ensure": "absent"}), refused),
    ] {
        assert_eq!(said(&want(properties.clone()), &have), wanted, "{properties}");
    }
}

#[test]
fn linger() {
    let lingers = State { facts: Facts { linger: true, ..present().facts }, ..present() };
    for (properties, have, wanted) in [
        (json!({"linger": true}), &present(), "Would have enabled linger"),
        (json!({"linger": true}), &lingers, ""),
        (json!({"linger": false}), &lingers, "Would have disabled linger"),
        (json!({"linger": false}), &present(), ""),
        (json!({}), &lingers, ""),
    ] {
        assert_eq!(said(&want(properties), have), wanted);
    }
}

fn former(properties: Value, have: &State) -> (Value, Option<Value>) {
    match User::former(&want(properties), have) {
        Former::Properties(former) => (former, None),
        Former::Sealed { properties, sealed } => (properties, Some(sealed)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn undo_needs_what_is_managed() {
    assert_eq!(former(json!({"password": HASH}), &absent()), (json!({"ensure": "absent"}), None));
    assert_eq!(former(json!({}), &present()), (json!({"ensure": "present"}), None));
    assert_eq!(
        former(json!({"comment": "x", "groups": ["web"], "expires": "2030-01-01"}), &present()),
        (
            json!({
                "ensure": "present", "comment": "App", "groups": ["adm", "video"],
                "groups_mode": "exact", "expires": "never",
            }),
            None
        )
    );
    assert_eq!(
        former(json!({"password": OTHER}), &present()),
        (json!({"ensure": "present"}), Some(json!({"password": HASH})))
    );
    let locked = with_access(&format!("!{HASH}"), Some(1));
    assert_eq!(
        former(json!({"locked": false}), &locked),
        (json!({"ensure": "present", "locked": true}), None)
    );
    assert_eq!(
        former(json!({"locked": true}), &with_access(HASH, Some(21_915))),
        (json!({"ensure": "present", "locked": false, "expires": "2030-01-01"}), None)
    );
    let weak = with_access("$1$salt$hash", None);
    let lost = User::former(&want(json!({"password": HASH})), &weak);
    assert!(matches!(lost, Former::Lost(_)), "{lost:?}");
    // It does not change, so nothing is lost.
    let kept =
        User::former(&want(json!({"password": HASH, "password_update": "on_create"})), &weak);
    assert!(matches!(kept, Former::Properties(_)), "{kept:?}");
}

#[test]
fn undo_needs_all_of_an_account_that_goes() {
    let mut have = present();
    (have.facts.private_gid, have.facts.linger) = (Some(1001), true);
    assert_eq!(
        former(json!({"ensure": "absent"}), &have),
        (
            json!({
                "ensure": "present", "uid": "1001", "private_gid": "1001", "comment": "App",
                "home": "/home/app", "create_home": false, "shell": "/bin/sh",
                "groups": ["adm", "video"], "groups_mode": "exact", "expires": "never",
                "linger": true,
            }),
            Some(json!({"password": HASH}))
        )
    );
    let locked = with_access(&format!("!{HASH}"), Some(1));
    let (shown, sealed) = former(json!({"ensure": "absent"}), &locked);
    assert_eq!((&shown["locked"], &shown["group"]), (&json!(true), &json!("1001")));
    assert_eq!(sealed, Some(json!({"password": HASH})));
    // What comes back is a valid request.
    testing::properties::<Properties>(&shown);
    let (_, none) = former(json!({"ensure": "absent"}), &with_access("!!", None));
    assert_eq!(none, Some(json!({"password": "!"})));
}

#[test]
fn a_difference_that_remains_is_named() {
    for (properties, wanted) in [
        (json!({}), None),
        (json!({"ensure": "absent"}), Some("ensure is present, should be absent")),
        (json!({"comment": "x"}), Some("comment is App, should be x")),
        (json!({"password": OTHER}), Some("password is not as wanted")),
        (json!({"locked": true}), Some("locked is false, should be true")),
    ] {
        let left = User::mismatch(&want(properties), &present());
        assert_eq!(left.as_deref(), wanted);
    }
    let left = User::mismatch(&want(json!({})), &absent());
    assert_eq!(left.as_deref(), Some("ensure is absent, should be present"));
}

#[test]
fn the_status_never_has_the_hash() {
    let have = present();
    let status = serde_json::to_value(&have).unwrap();
    assert_eq!(
        status["metadata"],
        json!({
            "name": "app", "provider": "shadow", "uid": 1001, "gid": 1001, "group": "app",
            "groups": ["adm", "video"], "comment": "App", "home": "/home/app",
            "home_exists": true, "shell": "/bin/sh", "locked": false, "expires": "never",
            "linger": false, "local": true,
        })
    );
    assert!(!format!("{have:?}").contains(HASH));
    let mut unknown = present();
    unknown.account.as_mut().unwrap().access = None;
    let status = serde_json::to_value(&unknown).unwrap();
    assert!(status["metadata"].get("locked").is_none());
    let none = serde_json::to_value(absent()).unwrap();
    assert_eq!(none["metadata"], json!({"name": "app", "provider": "shadow"}));
}

#[test]
fn what_is_wrong_is_found() {
    let key = format!("{ANN} x");
    for (properties, words) in [
        (json!({"name": "Bad Name"}), "is not a user name"),
        (json!({"name": "app", "uid": "65535"}), "cannot be one"),
        (json!({"name": "app", "group": "a b"}), "is not a group name"),
        (json!({"name": "app", "group": "4294967295"}), "is not a number"),
        (json!({"name": "app", "group": "web", "private_gid": 5}), "private_gid"),
        (json!({"name": "app", "groups": ["x", "-y"]}), "is not a group name"),
        (json!({"name": "app", "groups_mode": "exact"}), "needs `groups`"),
        (json!({"name": "app", "comment": "a:b"}), "neither `:`"),
        (json!({"name": "app", "home": "relative"}), "must be absolute"),
        (json!({"name": "app", "shell": "/bin/sh:x"}), "neither `:`"),
        (json!({"name": "app", "move_home": true}), "needs `home`"),
        (json!({"name": "app", "home_mode": "0999"}), "octal"),
        (json!({"name": "app", "password": "hunter2"}), "password is not a hash"),
        (json!({"name": "app", "password_update": "always"}), "needs `password`"),
        (
            json!({"name": "app", "password": HASH, "password_update": "often"}),
            "allowed: always, on_create",
        ),
        (json!({"name": "app", "expires": "soon"}), "is not a date"),
        (json!({"name": "app", "expires": "never", "locked": true}), "`locked: true`"),
        (json!({"name": "app", "authorized_keys": [ANN, "x"]}), "key 1 has no key"),
        (json!({"name": "app", "authorized_keys": [{"key": ANN, "options": "a b"}]}), "key 0"),
        (
            json!({"name": "app", "authorized_keys": [ANN, {"key": key, "options": "pty"}]}),
            "key 1 is key 0 with other options",
        ),
        (json!({"name": "app", "authorized_keys_mode": "exact"}), "needs `authorized_keys`"),
        (json!({"name": "app", "remove_home": true}), "only for `ensure: absent`"),
        (json!({"name": "app", "kill_processes": true}), "only for `ensure: absent`"),
    ] {
        let message = testing::invalid("user", &properties);
        assert!(message.contains(words), "{properties}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_placeholder_may_give_several_names_and_keys() {
    let mut want = want(json!({
        "groups": ["adm,web", "video"],
        "authorized_keys": [format!("{ANN}\n{BOB}\n")],
    }));
    User::settle(&mut want);
    assert_eq!(want.groups.as_ref().unwrap(), &["adm", "web", "video"]);
    assert_eq!(want.keys().len(), 2);
}

#[test]
fn a_purge_keeps_homes() {
    let paths = |properties| {
        let managed = User::managed_paths(&want(properties));
        managed.into_iter().map(|one| (one.path, one.extent)).collect::<Vec<_>>()
    };
    assert_eq!(paths(json!({})), [("/home/app".into(), ccm_engine::Extent::Tree)]);
    assert_eq!(paths(json!({"home": "/srv/app"})), [("/srv/app".into(), ccm_engine::Extent::Tree)]);
    for none in [json!({"ensure": "absent"}), json!({"home": "/"}), json!({"home": "/srv"})] {
        assert_eq!(paths(none), []);
    }
}

/// Previews change nothing, so they may ask the machine itself.
#[test]
fn previews_and_status_on_this_machine() {
    let host = Host::new();
    if !host.is_root() || !host.which("useradd") {
        ccm_testkit::not_run("needs root and useradd");
        return;
    }
    let event = testing::request("user", &json!({"name": "ccm-no-such-user"})).unwrap();
    assert_eq!(event.outcome(), Outcome::Create, "{:?}", event.error);
    assert_eq!(event.noop_message.as_deref(), Some("Would have created user"));
    let removal = json!({"name": "root", "ensure": "absent"});
    let event = testing::request("user", &removal).unwrap();
    assert!(event.error[0].contains("ccm does not remove user root"), "{:?}", event.error);
    let event = testing::request("user", &json!({"name": "root", "uid": 0})).unwrap();
    assert_eq!(event.outcome(), Outcome::Stable, "{:?}", event.error);
    let mut arguments = ccm_engine::Arguments::default();
    arguments.set("name", "root");
    let status = testing::status("user", arguments);
    assert_eq!((&status["metadata"]["uid"], &status["ensure"]), (&json!(0), &json!("present")));
}
