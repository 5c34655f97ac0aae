//! Other programs that change users at the same time.

use super::{ANN, HASH, OTHER, apply, databases, user};
use crate::{Changed, Layer, Machine, Stable};

/// Ends when somebody has made the file.
const VIPW: &str = "EDITOR='/bin/sh -c \"touch /tmp/open; until [ -e /tmp/close ]; do sleep 0.1; done\"' \
                    vipw > /tmp/vipw.log 2>&1 &";

#[test]
fn twenty_runs_at_once() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/tmp/m.yaml",
        &format!(
            "ccm:\n  resources:\n    - group: [{{crew: {{gid: 4700}}}}]\n    - user:\n        - ann: \
             {{uid: 4701, groups: [crew], password: \"{HASH}\", authorized_keys: ['{ANN}']}}\n        \
             - bob: {{uid: 4702, groups: [crew]}}\n    "
        ),
    );
    let codes = machine.ok(
        "for i in $(seq 20); do (ccm apply /tmp/m.yaml --state-dir /tmp/state$i > /tmp/out$i 2>&1; \
         echo $? > /tmp/code$i) & done; wait; cat /tmp/code* | sort | uniq -c",
    );
    assert_eq!(codes.trim(), "20 0", "{}", machine.ok("tail -n 5 /tmp/out*"));
    assert_eq!(machine.ok("getent group crew"), "crew:x:4700:ann,bob");
    assert_eq!(machine.ok("getent shadow ann | cut -d: -f2"), HASH);
    assert_eq!(machine.read("/home/ann/.ssh/authorized_keys"), ANN);
    assert_eq!(machine.ok("grpck -r > /dev/null && grep -c ^ann: /etc/passwd"), "1");
}

#[test]
fn members_of_twenty_runs_are_all_kept() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("groupadd crew; for i in $(seq 20); do useradd u$i; done");
    for i in 1..=20 {
        machine.put(&format!("/tmp/m{i}.yaml"), &user(&format!("u{i}"), "groups: [crew]"));
    }
    machine.ok(
        "for i in $(seq 20); do (ccm apply /tmp/m$i.yaml --state-dir /tmp/state$i > /tmp/out$i 2>&1; \
         echo $? > /tmp/code$i) & done; wait",
    );
    assert_eq!(machine.ok("cat /tmp/code* | sort | uniq -c").trim(), "20 0");
    let members = machine.ok("getent group crew | cut -d: -f4 | tr , '\\n' | sort | uniq | wc -l");
    assert_eq!(members, "20");
}

#[test]
fn an_open_vipw_is_waited_for() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("command -v vipw");
    machine.put("/tmp/m.yaml", &user("app", "comment: x"));
    let said = machine.ok(&format!(
        "{VIPW} until [ -e /tmp/open ]; do sleep 0.1; done
         ccm apply /tmp/m.yaml > /tmp/out 2>&1 & run=$!
         until grep -q 'waiting for /etc/' /tmp/out || ! kill -0 $run; do sleep 0.1; done
         touch /tmp/close; wait $run; cat /tmp/out; getent passwd app"
    ));
    assert!(said.contains("waiting for /etc/") && said.contains("app:x:"), "{said}");
}

#[test]
fn a_lock_of_a_process_that_is_gone_is_no_obstacle() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("printf 4194000 > /etc/passwd.lock; printf 4194000 > /etc/group.lock");
    apply(&machine, &user("app", "comment: x"));
}

#[test]
fn accounts_of_another_source_are_used_and_not_changed() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    // The module is there, and nothing uses it.
    if !machine.has("/usr/share/doc/libnss-extrausers") {
        ccm_testkit::not_run("needs the Debian package libnss-extrausers");
        return;
    }
    machine.ok("groupadd crew
         sed -i -E 's/^(passwd):.*/\\1: files extrausers/' /etc/nsswitch.conf
         mkdir -p /var/lib/extrausers /home/ann
         echo ann:x:7001:100:Ann:/home/ann:/bin/sh > /var/lib/extrausers/passwd
         chown 7001 /home/ann; getent passwd ann");
    let before = databases(&machine);
    assert_eq!(machine.apply(&user("ann", "shell: /bin/sh")).outcomes(), [Stable]);
    for properties in ["shell: /bin/bash", "ensure: absent", "locked: true", "uid: 7005"] {
        let report = machine.apply(&user("ann", properties));
        assert_eq!(
            report.errors(),
            "user ann comes from extrausers, not from /etc/passwd",
            "{properties}"
        );
    }
    let report = machine.apply(&user("ann", &format!("password: \"{OTHER}\"")));
    assert!(report.errors().contains("comes from extrausers"), "{}", report.errors());
    assert_eq!(databases(&machine), before);
    let report = machine.apply(&user("ann", "groups: [crew]"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    assert_eq!(machine.ok("getent group crew | cut -d: -f4"), "ann");
    let report = machine.apply(&user("ann", "groups: [], groups_mode: exact"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    assert_eq!(machine.ok("getent group crew | cut -d: -f4"), "");
    let keys = machine.apply(&user("ann", &format!("authorized_keys: ['{ANN}']")));
    assert_eq!(keys.outcomes(), [Changed], "{}", keys.errors());
    assert_eq!(machine.ok("stat -c %u /home/ann/.ssh/authorized_keys"), "7001");
}
