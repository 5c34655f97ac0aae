//! Undo gives accounts, groups, passwords and homes back.

use super::{ANN, BOB, HASH, OTHER, databases, group, user};
use crate::{Changed, Layer, Machine};

fn undo(machine: &Machine) {
    let preview = machine.ccm(&["undo", "--noop"]);
    assert_eq!(preview.code, 0, "{preview:?}");
    let ran = machine.ccm(&["undo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn change(machine: &Machine, manifest: &str) {
    let report = machine.apply(manifest);
    assert_eq!(report.outcomes(), [Changed], "{manifest}: {}", report.errors());
}

#[test]
fn every_change_is_taken_back() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok(&format!(
        "groupadd crew; useradd --create-home --uid 4701 --comment Old --groups crew app
         echo 'app:{HASH}' | chpasswd -e; useradd --uid 4790 bob"
    ));
    let tree =
        "find /home/app -printf '%p %u %m\\n' | sort; cat /home/app/.ssh/* 2> /dev/null || true";
    for manifest in [
        group("new", "gid: 4711, members: [bob]"),
        group("crew", "gid: 4712"),
        group("crew", "members: [bob], members_mode: exact"),
        group("crew", "ensure: absent"),
        user("app", "comment: New, shell: /bin/bash, expires: 2030-01-01"),
        user("app", "uid: 4702"),
        user("app", "groups: [], groups_mode: exact"),
        user("app", "group: crew"),
        user("app", &format!("password: \"{OTHER}\"")),
        user("app", "locked: true"),
        user("app", &format!("authorized_keys: ['{ANN}', '{BOB}']")),
        user("app", "home: /home/moved, move_home: true"),
        user("app", "ensure: absent"),
        user("app", "ensure: absent, remove_home: true"),
        user("other", &format!("authorized_keys: ['{ANN}'], groups: [crew], password: \"{HASH}\"")),
    ] {
        let before = (databases(&machine), machine.ok(tree));
        change(&machine, &manifest);
        undo(&machine);
        assert_eq!((databases(&machine), machine.ok(tree)), before, "{manifest}");
    }
}

#[test]
fn what_a_user_has_done_since_stays() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    change(&machine, &user("app", "comment: x"));
    machine.ok("echo work > /home/app/thesis; chown app /home/app/thesis");
    let ran = machine.ccm(&["undo"]);
    assert!(machine.has("/home/app/thesis"), "{ran:?}");
    change(&machine, &user("ann", "comment: x"));
    machine.ok("usermod --comment mine ann");
    let ran = machine.ccm(&["undo"]);
    assert!(format!("{ran:?}").contains("no longer as the run left it"), "{ran:?}");
    assert_eq!(machine.ok("getent passwd ann | cut -d: -f5"), "mine");
}
