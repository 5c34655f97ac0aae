//! Users that try to make ccm write where they may not, and eyes that look for
//! hashes.

use super::{ANN, HASH, OTHER, databases, user};
use crate::{Changed, Layer, Machine};

/// What a user may do to a home directory, and what ccm says.
const STAGES: [(&str, &str); 6] = [
    ("ln -s /etc /home/app/.ssh", ".ssh: it is a symlink"),
    ("mkdir /home/app/.ssh; ln -s /etc/shadow /home/app/.ssh/authorized_keys", "it is a symlink"),
    ("mkdir /home/app/.ssh; mkfifo /home/app/.ssh/authorized_keys", "not a regular file"),
    ("mkdir /home/app/.ssh; ln /etc/app.copy /home/app/.ssh/authorized_keys", "several names"),
    ("mkdir /home/app/.ssh; chown 4999 /home/app/.ssh", "belongs to the ID 4999"),
    (
        "mkdir /home/app/.ssh; touch /home/app/.ssh/authorized_keys; \
         chown 4999 /home/app/.ssh/authorized_keys",
        "belongs to the ID 4999",
    ),
];

#[test]
fn a_hostile_ssh_directory_is_refused() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("useradd --create-home app; cp /etc/shadow /etc/app.copy");
    let before = machine.ok("sha256sum /etc/shadow /etc/app.copy; ls -A /etc");
    for (stage, words) in STAGES {
        machine.ok(&format!("rm -rf /home/app/.ssh; {stage}"));
        for mode in ["minimum", "exact"] {
            let keys = format!("authorized_keys: ['{ANN}'], authorized_keys_mode: {mode}");
            let errors = machine.apply(&user("app", &keys)).errors();
            assert!(errors.contains(words), "{stage}: {errors}");
        }
        assert_eq!(machine.ok("sha256sum /etc/shadow /etc/app.copy; ls -A /etc"), before);
    }
}

/// The directory is swapped back and forth while ccm writes to it.
#[test]
fn a_directory_that_is_swapped_in_between_leads_nowhere() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.ok("useradd --create-home app; mkdir /srv/out; chmod 777 /srv/out");
    machine.put(
        "/tmp/swap.sh",
        "cd /home/app; while [ ! -e /tmp/stop ]; do mkdir -p real; ln -sfn /srv/out link; \
         mv -T real .ssh 2> /dev/null; mv -T .ssh real 2> /dev/null; mv -T link .ssh 2> /dev/null; \
         rm -f .ssh 2> /dev/null; done",
    );
    for (name, key) in [("a", ANN), ("b", super::BOB)] {
        let keys = format!("authorized_keys: ['{key}'], authorized_keys_mode: exact");
        machine.put(&format!("/tmp/{name}.yaml"), &user("app", &keys));
    }
    let found = machine.ok("setpriv --reuid app --regid app --clear-groups bash /tmp/swap.sh &
         for i in $(seq 40); do ccm apply /tmp/a.yaml > /dev/null 2>&1 || true; \
         ccm apply /tmp/b.yaml > /dev/null 2>&1 || true; done
         touch /tmp/stop; wait; ls -A /srv/out | wc -l");
    assert_eq!(found, "0", "something was written through a symlink");
}

#[test]
fn homes_that_must_stay() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let cases = [
        ("useradd -M -d /srv app", "right below `/`"),
        ("useradd -m -d /home/x/app app", "belongs to the ID"),
        (
            "useradd -M -d /home/link app; mkdir /home/real; chown app /home/real; ln -s real /home/link",
            "it is a symlink",
        ),
        ("useradd -m app; useradd -M -d /home/app/inner bob", "user bob is in it"),
        (
            "useradd -m app; mkdir /home/app/m; mount -t tmpfs m /home/app/m",
            "is mounted on /home/app/m",
        ),
    ];
    for (stage, words) in cases {
        machine.ok(&format!("mkdir -p /home/x; {stage}"));
        if words == "belongs to the ID" {
            machine.ok("chown root /home/x/app");
        }
        let before = databases(&machine);
        let errors = machine.apply(&user("app", "ensure: absent, remove_home: true")).errors();
        assert!(errors.contains(words), "{stage}: {errors}");
        assert_eq!(databases(&machine), before);
        machine.ok(
            "umount /home/app/m 2> /dev/null || true; userdel app; userdel bob 2> /dev/null || true; \
             rm -rf /home/*",
        );
    }
    machine.ok("useradd -m app; setpriv --reuid app --regid app --clear-groups sleep 1000 > /dev/null 2>&1 &");
    let errors = machine.apply(&user("app", "ensure: absent")).errors();
    assert!(errors.starts_with("user app has 1 running process ("), "{errors}");
    let report = machine.apply(&user("app", "ensure: absent, kill_processes: true"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    machine.ok("mkdir /home/new; chown 4800 /home/new");
    let errors = machine.apply(&user("new", "uid: 4801")).errors();
    assert!(errors.contains("/home/new exists and belongs to the ID 4800"), "{errors}");
    assert_eq!(machine.sh("getent passwd new").code, 2);
}

#[test]
fn nobody_sees_a_hash() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/tmp/watch.sh",
        "while [ ! -e /tmp/stop ]; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null; \
         done | tr '\\0' '\\n' | grep -a -c -f /tmp/patterns > /tmp/seen",
    );
    // Not among the arguments of who looks for it.
    machine.put("/tmp/patterns", "saltsalt\nothersalt\n");
    machine.put("/tmp/one.yaml", &user("app", &format!("password: \"{HASH}\"")));
    machine.put("/tmp/two.yaml", &user("app", &format!("password: \"{OTHER}\"")));
    machine.put("/tmp/gone.yaml", &user("app", "ensure: absent, remove_home: true"));
    machine.ok(
        "bash /tmp/watch.sh > /dev/null 2>&1 &
         export CCM_LOG=debug
         ccm plan /tmp/one.yaml --out /tmp/plan > /tmp/out.plan 2>&1
         for m in one two gone; do ccm apply /tmp/$m.yaml --session /tmp/session > /tmp/out.$m 2>&1 || \
         ccm apply /tmp/$m.yaml > /tmp/out.$m 2>&1; done
         ccm apply /tmp/one.yaml --json > /tmp/out.json; ccm apply /tmp/two.yaml --events > /tmp/out.events 2>&1 || true
         ccm status user app > /tmp/out.status; ccm history show > /tmp/out.history 2>&1 || true
         ccm why /tmp/two.yaml user#app > /tmp/out.why 2>&1 || true
         touch /tmp/stop; wait",
    );
    assert_eq!(machine.read("/tmp/seen"), "0");
    let said =
        machine.sh("grep -l -a -e saltsalt -e othersalt /tmp/out.* /tmp/plan -r /tmp/session");
    assert_eq!(said.stdout, "", "{said:?}");
    // The former hash is in an object that only root may read, and the new one,
    // which replaced it, nowhere.
    let kept = machine.ok("grep -l -r -a -e saltsalt -e othersalt /var/lib/ccm || true");
    assert!(!kept.is_empty() && kept.lines().all(|file| file.contains("/objects/")), "{kept}");
    let modes = machine.ok(&format!("stat -c %a {} | sort -u", kept.replace('\n', " ")));
    assert_eq!(modes, "600");
    machine.ok("rm -rf /var/lib/ccm; userdel --remove app");
    machine.ok("ccm apply /tmp/one.yaml");
    assert_eq!(machine.ok("grep -l -r -a saltsalt /var/lib/ccm || true"), "");
}
