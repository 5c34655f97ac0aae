//! Users and groups with the real shadow tools.

mod documented;
mod hostile;
mod killed;
mod locks;
mod undo;

use system_tests::Report;

use crate::{Changed, Layer, Machine, Stable};

const HASH: &str = "$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnoq.qc.eoxqOmSuNp2xS0ktL3nh/";
const OTHER: &str = "$6$othersalt$W1XS4YBzwtVWcDnBVPyvKXMMVxvlBSXn6rZpQQx1xHTV2u8RNHVkcXh2y5JDa2k2sT3Y2m0Dq1rD7mM1f1CzQ/";
const ANN: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ann@laptop";
const BOB: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB bob@desk";

/// A manifest of one user.
fn user(name: &str, properties: &str) -> String {
    format!("ccm: {{resources: [{{user: [{{{name}: {{{properties}}}}}]}}]}}\n")
}

/// A manifest of one group.
fn group(name: &str, properties: &str) -> String {
    format!("ccm: {{resources: [{{group: [{{{name}: {{{properties}}}}}]}}]}}\n")
}

/// Everything that the tools write, but for the day of the last change.
fn databases(machine: &Machine) -> String {
    machine.ok(
        "sort /etc/passwd; sort /etc/group; sort /etc/gshadow; cut -d: -f1,2,8 /etc/shadow | sort; \
         ls -A /home; ls -A /var/lib/systemd/linger 2> /dev/null || true",
    )
}

/// Previews, applies, previews and applies again: what was said happens, and the
/// second run finds nothing to do.
fn apply(machine: &Machine, manifest: &str) -> Report {
    let before = databases(machine);
    let preview = machine.noop(manifest);
    assert_eq!(databases(machine), before, "the preview has changed something");
    let report = machine.apply(manifest);
    assert_eq!(report.errors(), "", "{manifest}");
    assert_eq!(preview.outcomes(), report.outcomes(), "{manifest}: {}", preview.errors());
    for number in 0..report.outcomes().len() {
        let changes = |report: &Report| report.event(number)["changes"].clone();
        assert_eq!(changes(&preview), changes(&report), "{manifest}");
        assert_ne!(preview.event(number)["provisional"], true, "{manifest}");
    }
    let again = machine.apply(manifest);
    assert!(again.outcomes().iter().all(|outcome| *outcome == Stable), "{manifest}: {again:?}");
    report
}

fn passwd(machine: &Machine, name: &str) -> String {
    machine.ok(&format!("getent passwd {name}"))
}

#[test]
fn groups_have_their_id_and_members() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("useradd ann; useradd bob; useradd cid");
    let entry = || machine.ok("getent group crew; grep ^crew: /etc/gshadow");
    apply(&machine, &group("crew", "gid: 4711"));
    assert_eq!(entry(), "crew:x:4711:\ncrew:!::");
    apply(&machine, &group("crew", "members: [ann, bob]"));
    assert_eq!(entry(), "crew:x:4711:ann,bob\ncrew:!::ann,bob");
    apply(&machine, &group("crew", "members: [cid]"));
    assert_eq!(entry(), "crew:x:4711:ann,bob,cid\ncrew:!::ann,bob,cid");
    apply(&machine, &group("crew", "members: [cid], members_mode: exact"));
    assert_eq!(entry(), "crew:x:4711:cid\ncrew:!::cid");
    let report = apply(&machine, &group("crew", "gid: 4712"));
    assert!(report.warnings()[0].contains("keep the ID 4711"), "{:?}", report.warnings());
    let refused = |manifest: &str| machine.apply(manifest).errors();
    for (manifest, words) in [
        (group("ann", "ensure: absent"), "group ann is the primary group of user ann"),
        (group("new", "gid: 4712"), "group crew already has the ID 4712"),
        (group("crew", "members: [nobody-here]"), "does not exist"),
    ] {
        assert!(refused(&manifest).contains(words), "{}", refused(&manifest));
    }
    apply(&machine, &group("twin", "gid: 4712, non_unique: true"));
    apply(&machine, &group("sys", "system: true"));
    let gid: u32 = machine.ok("getent group sys | cut -d: -f3").parse().unwrap();
    assert!(gid < 1000, "{gid}");
    apply(&machine, &group("crew", "ensure: absent"));
    assert_eq!(machine.sh("getent group crew").code, 2);
}

#[test]
fn users_are_made_changed_and_removed() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("groupadd web; groupadd adm2");
    apply(&machine, &user("app", "uid: 4711, comment: 'App One', home_mode: '0750'"));
    assert_eq!(passwd(&machine, "app"), "app:x:4711:4711:App One:/home/app:/bin/sh");
    assert_eq!(machine.ok("stat -c '%U:%G %a' /home/app"), "app:app 750");
    assert!(machine.has("/home/app/.profile") || !machine.has("/etc/skel/.profile"));
    apply(
        &machine,
        &user("app", "uid: 4712, shell: /bin/bash, comment: Two, group: web, expires: 2030-01-01"),
    );
    let gid = machine.ok("getent group web | cut -d: -f3");
    assert_eq!(passwd(&machine, "app"), format!("app:x:4712:{gid}:Two:/home/app:/bin/bash"));
    assert_eq!(machine.ok("stat -c %u /home/app"), "4712");
    apply(&machine, &user("app", "expires: never, groups: [adm2, web]"));
    assert_eq!(machine.ok("id -Gn app"), "web adm2");
    apply(&machine, &user("app", "groups: [], groups_mode: exact"));
    assert_eq!(machine.ok("id -Gn app"), "web");
    machine.ok("mkdir -p /srv; echo mine > /home/app/file");
    apply(&machine, &user("app", "home: /srv/app, move_home: true"));
    assert_eq!(machine.ok("cat /srv/app/file"), "mine");
    assert!(!machine.has("/home/app"));
    let system = "system: true, shell: /usr/sbin/nologin, home: /nonexistent";
    apply(&machine, &user("service", system));
    let uid: u32 = machine.ok("id -u service").parse().unwrap();
    assert!(uid < 1000 && !machine.has("/nonexistent"), "{uid}");
    apply(&machine, &user("app", "ensure: absent, remove_home: true"));
    assert_eq!(machine.sh("getent passwd app").code, 2);
    assert!(!machine.has("/srv/app"));
    apply(&machine, &user("app", "ensure: absent, remove_home: true"));
}

#[test]
fn access_is_locked_and_given_back() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let shadow = || machine.ok("getent shadow app | cut -d: -f2,8");
    apply(&machine, &user("app", &format!("password: \"{HASH}\"")));
    assert_eq!(shadow(), format!("{HASH}:"));
    apply(&machine, &user("app", "locked: true"));
    assert_eq!(shadow(), format!("!{HASH}:1"));
    apply(&machine, &user("app", &format!("locked: true, password: \"{OTHER}\"")));
    assert_eq!(shadow(), format!("!{OTHER}:1"));
    apply(&machine, &user("app", "locked: false, expires: 2030-01-01"));
    assert_eq!(shadow(), format!("{OTHER}:21915"));
    let once = format!("password: \"{HASH}\", password_update: on_create");
    assert_eq!(machine.apply(&user("app", &once)).outcomes(), [Stable]);
    apply(&machine, &user("app", "password: '!', expires: never"));
    assert_eq!(shadow(), "!:");
    apply(&machine, &user("app", "locked: true"));
    apply(&machine, &user("app", "locked: false"));
    assert_eq!(shadow(), "!:", "a mark alone is no locked password");
    apply(&machine, &user("new", &format!("locked: true, password: \"{HASH}\"")));
    assert_eq!(machine.ok("getent shadow new | cut -d: -f2,8"), format!("!{HASH}:1"));
    let errors = machine.apply(&user("root", "locked: true")).errors();
    assert_eq!(errors, "ccm does not lock user root, which has the ID 0");
}

#[test]
fn keys_are_put_into_the_key_file() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let file = "/home/app/.ssh/authorized_keys";
    apply(&machine, &user("app", &format!("authorized_keys: ['{ANN}']")));
    assert_eq!(machine.read(file), ANN);
    let modes = machine.ok(&format!("stat -c '%U:%G %a' /home/app/.ssh {file}"));
    assert_eq!(modes, "app:app 700\napp:app 600");
    machine.ok(&format!("printf '# mine\\n' >> {file}"));
    apply(&machine, &user("app", &format!("authorized_keys: ['{BOB}']")));
    assert_eq!(machine.read(file), format!("{ANN}\n# mine\n{BOB}"));
    let options = format!("authorized_keys: [{{key: '{ANN}', options: 'restrict,pty'}}]");
    apply(&machine, &user("app", &options));
    assert_eq!(machine.read(file), format!("restrict,pty {ANN}\n# mine\n{BOB}"));
    let exact = format!("authorized_keys: ['{ANN}'], authorized_keys_mode: exact");
    apply(&machine, &user("app", &exact));
    assert_eq!(machine.read(file), format!("restrict,pty {ANN}\n# mine"));
    machine.ok("userdel app; rm -rf /home/app; useradd --no-create-home app");
    let errors = machine.apply(&user("app", &exact)).errors();
    assert!(errors.starts_with("user app has no home directory for authorized_keys"), "{errors}");
    apply(&machine, &user("app", &format!("create_home: true, {exact}")));
    assert_eq!(machine.read(file), ANN);
}

#[test]
fn what_later_resources_need_is_planned() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let manifest = |uid: &str| {
        format!(
            "ccm:\n  resources:\n    - group: [{{crew: {{}}}}]\n    - user:\n        - app: {{{uid}\
             system: true, groups: [crew]}}\n        - ann: {{group: crew}}\n    - file:\n        \
             - /srv/app: {{ensure: directory, owner: app, group: crew, mode: '0750'}}\n        \
             - /srv/app/f: {{content: x, owner: app, group: app, mode: '0644'}}\n    - exec:\n        \
             - id -un > /srv/app/who: {{user: app, group: crew, provider: shell, creates: \
             /srv/app/who}}\n    - file:\n        - /etc/systemd/system/app.service: {{content: \
             \"[Service]\\nUser=app\\nExecStart=/bin/sleep infinity\\n\", owner: root, group: root, \
             mode: '0644'}}\n    - service: [{{app: {{}}}}]\n"
        )
    };
    let preview = machine.noop(&manifest(""));
    assert_eq!(preview.errors(), "");
    let report = machine.apply(&manifest(""));
    assert_eq!(report.outcomes(), [Changed; 8], "{}", report.errors());
    for number in 0..8 {
        let planned = preview.event(number);
        // A command may leave anything behind, so what follows it may wait for it.
        assert!(number > 5 || planned["provisional"] != true, "{number}: {planned}");
        assert_eq!(preview.outcomes()[number], Changed, "{number}: {planned}");
    }
    assert_eq!(machine.ok("stat -c '%U:%G' /srv/app /srv/app/f"), "app:crew\napp:app");
    assert_eq!(machine.read("/srv/app/who"), "app");
    assert_eq!(
        machine.ok("systemctl show -p User --value app; systemctl is-active app"),
        "app\nactive"
    );
}

#[test]
fn a_saved_plan_has_names_for_ids_that_are_not_known_yet() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/tmp/m.yaml",
        "ccm:\n  resources:\n    - user: [{app: {}}]\n    - file:\n        - /srv/f: {content: x, \
         owner: app, group: app, mode: '0644'}\n",
    );
    machine.ok("mkdir -p /srv; ccm plan /tmp/m.yaml --out /tmp/plan");
    let ran = machine.ccm(&["apply", "/tmp/plan"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(machine.ok("stat -c %U:%G /srv/f"), "app:app");
    // The password of a saved plan is in the manifest alone.
    machine.put("/tmp/p.yaml", &user("ann", &format!("password: \"{HASH}\"")));
    machine.ok("ccm plan /tmp/p.yaml --out /tmp/plan2");
    let ran = machine.ccm(&["apply", "/tmp/plan2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(machine.ok("getent shadow ann | cut -d: -f2"), HASH);
}

#[test]
fn services_of_a_user_run_without_a_login() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    // Without logind, the file is what counts at the next boot.
    machine.ok("rm /etc/systemd/system/systemd-logind.service; systemctl daemon-reload");
    machine.ok("systemctl start systemd-logind");
    apply(&machine, &user("app", "linger: true"));
    assert!(machine.has("/var/lib/systemd/linger/app"));
    assert_eq!(machine.ok("loginctl show-user app -p Linger --value"), "yes");
    let busy = machine.apply(&user("app", "ensure: absent")).errors();
    assert!(busy.contains("running process"), "{busy}");
    apply(&machine, &user("app", "linger: false"));
    assert!(!machine.has("/var/lib/systemd/linger/app"));
    apply(&machine, &user("app", "linger: true"));
    let report =
        machine.apply(&user("app", "ensure: absent, kill_processes: true, remove_home: true"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    assert!(!machine.has("/var/lib/systemd/linger/app") && !machine.has("/home/app"));
}

#[test]
fn a_thousand_stable_users_read_the_databases_once() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok(
        "for i in $(seq 1000); do echo \"u$i:x:$((20000+i)):100::/home/u$i:/bin/sh\" >> /etc/passwd; \
         echo \"u$i:!:19000:0:99999:7:::\" >> /etc/shadow; done",
    );
    let users: String = (1..=1000)
        .map(|i| format!("        - u{i}: {{uid: {}, shell: /bin/sh}}\n", 20000 + i))
        .collect();
    machine.put("/tmp/users.yaml", &format!("ccm:\n  resources:\n    - user:\n{users}"));
    let traced = machine.sh("command -v strace");
    let ran = machine.ccm(&["apply", "/tmp/users.yaml", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("\"stable\": 1000") || ran.stdout.contains("\"stable\":1000"));
    if traced.code != 0 {
        return;
    }
    let calls = machine.ok(
        "strace -f -qq -e trace=open,openat,openat2,execve -o /tmp/trace ccm apply /tmp/users.yaml > /dev/null; \
         grep -c '\"/etc/shadow\"' /tmp/trace; grep -c execve /tmp/trace",
    );
    assert_eq!(calls, "1\n1");
}
