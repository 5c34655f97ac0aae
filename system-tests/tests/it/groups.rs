//! Groups with the real tools: one transaction, and the results of many.
//!
//! `CCM_KILLS` sets how often a run is killed, `CCM_ROUNDS` how often the times are
//! measured.

use std::time::{Duration, Instant};

use crate::{Changed, Failed, Layer, Machine, Stable};

const MANY: usize = 30;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A manifest of so many packages with properties, and others in between.
fn packages(count: usize, properties: &str, others: &[&str]) -> String {
    let many = (1..=count).map(|number| format!("ccm-many{number:02}"));
    let others = others.iter().map(|&name| name.to_owned());
    let (before, after): (Vec<_>, Vec<_>) = many.enumerate().partition(|(at, _)| *at < count / 2);
    let names = before.into_iter().map(|(_, name)| name).chain(others);
    let names = names.chain(after.into_iter().map(|(_, name)| name));
    let entries: String = names.map(|name| format!("      - {name}: {{{properties}}}\n")).collect();
    format!("ccm:\n  resources:\n    - package:\n{entries}")
}

fn services(count: usize, properties: &str) -> String {
    let entries: String =
        (1..=count).map(|n| format!("      - many{n:02}: {{{properties}}}\n")).collect();
    format!("ccm:\n  resources:\n    - service:\n{entries}")
}

/// How many packages and transactions there are.
fn apt_state(machine: &Machine) -> (String, String) {
    let installed = "dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'ccm-many*' 2>/dev/null \
                     | grep -c '^installed' || true";
    let transactions = "grep -c ^Start-Date /var/log/apt/history.log || true";
    (machine.ok(installed), machine.ok(transactions))
}

#[test]
fn packages_of_apt_are_one_transaction() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.ok("rm -f /var/log/apt/history.log; touch /var/log/apt/history.log");
    let present = packages(6, "", &[]);
    let preview = machine.noop(&present);
    assert_eq!(preview.messages(), ["Would have installed latest"; 6], "{}", preview.errors());
    assert_eq!(apt_state(&machine), ("0".into(), "0".into()));
    let report = machine.apply(&present);
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    assert_eq!(apt_state(&machine), ("6".into(), "1".into()));
    assert_eq!(report.event(5)["group"], serde_json::json!({"size": 6, "index": 5}));
    assert_eq!(report.event(5)["changes"][0]["to"], "1.0-1");
    assert_eq!(machine.apply(&present).outcomes(), [Stable; 6]);
    let latest = packages(6, "ensure: latest", &[]);
    assert_eq!(machine.noop(&latest).outcomes(), [Stable; 6]);
    assert_eq!(machine.apply(&latest).outcomes(), [Stable; 6]);
    // The history has each of them.
    let undone = machine.ccm(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(apt_state(&machine).0, "0");
    machine.apply(&present);
    let before = apt_state(&machine).1;
    let report = machine.apply(&packages(6, "ensure: absent", &[]));
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    let (installed, transactions) = apt_state(&machine);
    assert_eq!(installed, "0");
    assert_eq!(transactions.parse::<u32>().unwrap(), before.parse::<u32>().unwrap() + 1);
    assert_eq!(machine.ok("dpkg --audit"), "");
}

/// One that cannot be found, downloaded or configured fails alone.
#[test]
fn a_package_that_fails_spoils_no_other() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.put("/etc/ccm-broken.fail", "");
    for bad in ["ccm-misspelled", "ccm-gone", "ccm-broken"] {
        let report = machine.apply(&packages(4, "", &[bad]));
        let wanted = [Changed, Changed, Failed, Changed, Changed];
        assert_eq!(report.outcomes(), wanted, "{bad}: {}", report.errors());
        assert_eq!(apt_state(&machine).0, "4", "{bad}");
        machine.ok("rm /etc/ccm-broken.fail; dpkg --configure -a; touch /etc/ccm-broken.fail");
        let cleared = machine.apply(&packages(4, "ensure: absent", &["ccm-broken"]));
        assert_eq!(cleared.errors(), "");
    }
    // With `--no-groups` the result is the same.
    machine.put("/tmp/manifest.yaml", &packages(4, "", &["ccm-misspelled"]));
    let ran = machine.ccm(&["apply", "/tmp/manifest.yaml", "--no-groups", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let changed = report["events"].as_array().unwrap().iter().map(|event| &event["changed"]);
    assert_eq!(changed.collect::<Vec<_>>(), [true, true, false, true, true]);
    assert_eq!(apt_state(&machine).0, "4");
}

#[test]
fn packages_of_dnf_are_one_transaction() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    let count = || -> usize {
        machine.ok("dnf -q history list | grep -c '^ *[0-9]' || true").parse().unwrap()
    };
    let present = packages(6, "provider: dnf", &[]);
    let before = count();
    let preview = machine.noop(&present);
    assert_eq!(preview.messages(), ["Would have installed latest"; 6], "{}", preview.errors());
    let report = machine.apply(&present);
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    assert_eq!(count(), before + 1);
    assert_eq!(machine.apply(&present).outcomes(), [Stable; 6]);
    let absent = packages(6, "provider: dnf, ensure: absent", &[]);
    let report = machine.apply(&absent);
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    assert_eq!(count(), before + 2);
    // What does not exist fails alone.
    let report = machine.apply(&packages(4, "provider: dnf", &["ccm-misspelled"]));
    let wanted = [Changed, Changed, Failed, Changed, Changed];
    assert_eq!(report.outcomes(), wanted, "{}", report.errors());
    assert_eq!(machine.ok("rpm -qa 'ccm-many*' | wc -l"), "4");
}

const UNIT: &str =
    "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";

fn machine_with_services(count: usize) -> Option<Machine> {
    let machine = Machine::up(Layer::Plain)?;
    machine.put("/tmp/unit", UNIT);
    machine.ok(&format!(
        "for n in $(seq -f %02g {count}); do cp /tmp/unit /etc/systemd/system/many$n.service; done; \
         systemctl daemon-reload"
    ));
    Some(machine)
}

#[test]
fn services_start_and_stop_together() {
    let Some(machine) = machine_with_services(6) else { return };
    let run = services(6, "ensure: running, enable: true");
    let preview = machine.noop(&run);
    assert_eq!(preview.messages(), ["Would have started. Would have enabled"; 6]);
    let report = machine.apply(&run);
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    assert_eq!(report.event(0)["group"]["size"], 6);
    let states = "systemctl is-active many0{1..6}; systemctl is-enabled many0{1..6}";
    let running = ["active"; 6].into_iter().chain(["enabled"; 6]).collect::<Vec<_>>().join("\n");
    assert_eq!(machine.ok(states), running);
    assert_eq!(machine.apply(&run).outcomes(), [Stable; 6]);
    let report = machine.apply(&services(6, "ensure: stopped, enable: false"));
    assert_eq!(report.outcomes(), [Changed; 6], "{}", report.errors());
    assert_eq!(machine.sh("systemctl is-active many0{1..6} | sort -u").stdout, "inactive");
    machine.ccm(&["undo"]);
    assert_eq!(machine.ok(states), running);
    // One that cannot start fails alone, and says why.
    let broken = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo no license; exit 3'\n";
    machine.put("/etc/systemd/system/many03.service", broken);
    machine.ok("systemctl stop many0{1..6}");
    let report = machine.apply(&services(6, "ensure: running"));
    let wanted = [Changed, Changed, Failed, Changed, Changed, Changed];
    assert_eq!(report.outcomes(), wanted, "{}", report.errors());
    assert!(report.errors().contains("no license"), "{}", report.errors());
}

/// An interrupt while ccm waits whether the services stay up: all were started, so
/// all are reported as changed.
#[test]
fn services_that_were_started_before_an_interrupt_are_reported() {
    let Some(machine) = machine_with_services(4) else { return };
    machine.ok("mv /usr/bin/systemctl /usr/bin/systemctl.real");
    machine.put(
        "/usr/bin/systemctl",
        "#!/bin/sh\nif [ \"$1\" = start ]; then\n  (sleep 0.1; kill -TERM $PPID) > /dev/null 2>&1 &\n\
         fi\nexec /usr/bin/systemctl.real \"$@\"\n",
    );
    machine.ok("chmod 755 /usr/bin/systemctl");
    machine.put("/tmp/manifest.yaml", &services(4, "ensure: running"));
    let ran = machine.ccm(&["apply", "/tmp/manifest.yaml", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let changed = report["events"].as_array().unwrap().iter().map(|event| &event["changed"]);
    assert_eq!(changed.collect::<Vec<_>>(), [true; 4], "{ran:?}");
}

/// A service that subscribes to a package of a group reacts, also if the run is
/// killed at any moment of the transaction.
#[test]
fn a_group_that_is_killed_is_finished_by_the_next_run() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let manifest = |ensure: &str| {
        packages(6, &format!("ensure: {ensure}"), &[])
            + "    - exec:\n      - count: {command: \"/bin/sh -c 'echo x >> /root/reactions'\", \
               refresh_only: true, subscribe: [package#ccm-many01]}\n"
    };
    let begin = Instant::now();
    machine.apply(&manifest("present"));
    let whole = begin.elapsed();
    let kills = setting("CCM_KILLS", 6);
    for kill in 0..kills {
        let ensure = if kill % 2 == 0 { "absent" } else { "present" };
        machine.put("/tmp/manifest.yaml", &manifest(ensure));
        machine.ok("rm -f /root/reactions");
        let after = whole * u32::try_from(kill).unwrap() / u32::try_from(kills).unwrap();
        let after = after.as_secs_f32();
        machine.sh(&format!(
            "ccm apply /tmp/manifest.yaml > /tmp/killed.log 2>&1 & pid=$!; sleep {after}; \
             kill -KILL $pid || true; wait $pid || true"
        ));
        let report = machine.apply(&manifest(ensure));
        assert_eq!(report.errors(), "", "kill {kill} after {after} s");
        let wanted = if ensure == "absent" { "0" } else { "6" };
        assert_eq!(apt_state(&machine).0, wanted, "kill {kill} after {after} s");
        assert_eq!(machine.ok("dpkg --audit"), "");
        // At least once: it may have reacted just before it was killed.
        assert!(machine.has("/root/reactions"), "kill {kill} after {after} s");
        assert_eq!(machine.apply(&manifest(ensure)).outcomes(), [Stable; 7]);
    }
}

/// Times as ratios to one command that does all, in turn; printed, not judged.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn times_beside_one_command() {
    let rounds = setting("CCM_ROUNDS", 0);
    if rounds == 0 {
        return;
    }
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let names: Vec<String> = (1..=MANY).map(|n| format!("ccm-many{n:02}")).collect();
    let names = names.join(" ");
    machine.put("/tmp/packages.yaml", &packages(MANY, "", &[]));
    machine.put("/tmp/services.yaml", &services(20, "ensure: running, enable: true"));
    machine.put("/tmp/unit", UNIT);
    machine.ok("for n in $(seq -w 20); do cp /tmp/unit /etc/systemd/system/many$n.service; done; \
         systemctl daemon-reload");
    let units = "many{01..20}";
    let remove = format!("apt-get -qq -y remove {names} > /dev/null");
    let off = format!("systemctl disable --now {units} 2> /dev/null");
    let cases: [(&str, String, &str, String); 6] = [
        (
            "30 packages, first",
            format!("apt-get -qq -y install {names} > /dev/null"),
            "apply /tmp/packages.yaml",
            remove.clone(),
        ),
        (
            "30 packages, first, --no-groups",
            format!("apt-get -qq -y install {names} > /dev/null"),
            "apply --no-groups /tmp/packages.yaml",
            remove,
        ),
        (
            "30 packages, preview",
            format!("apt-get -qq -s install {names} > /dev/null"),
            "plan /tmp/packages.yaml",
            "true".into(),
        ),
        (
            "20 services, first",
            format!("systemctl enable --now {units} 2> /dev/null"),
            "apply /tmp/services.yaml",
            off.clone(),
        ),
        (
            "20 services, first, --no-groups",
            format!("systemctl enable --now {units} 2> /dev/null"),
            "apply --no-groups /tmp/services.yaml",
            off,
        ),
        (
            "20 services, stable",
            format!("systemctl show {units} > /dev/null"),
            "apply /tmp/services.yaml",
            "true".into(),
        ),
    ];
    for (what, limit, ccm, reset) in cases {
        let mut ratios: [Vec<f64>; 2] = Default::default();
        let mut figures = Vec::new();
        for _ in 0..rounds {
            let times = [limit.clone(), format!("ccm {ccm} > /dev/null")].map(|command| {
                machine.sh(&reset);
                measured(&machine, &command)
            });
            for (ratio, pick) in ratios.iter_mut().zip([0, 1]) {
                ratio.push(times[1][pick].as_secs_f64() / times[0][pick].as_secs_f64());
            }
            figures.push(times);
        }
        let middle = |list: &mut Vec<f64>| {
            list.sort_by(f64::total_cmp);
            list[list.len() / 2]
        };
        let [wall, cpu] = ratios.each_mut().map(middle);
        println!("{what}: wall {wall:.2} x, CPU {cpu:.2} x; (limit, ccm) [wall, CPU]: {figures:?}");
    }
}

/// Wall clock and CPU of a command.
fn measured(machine: &Machine, command: &str) -> [Duration; 2] {
    let script = format!("TIMEFORMAT='%R %U %S'; time {{ {command}; }}");
    let ran = machine.sh(&script);
    assert_eq!(ran.code, 0, "{ran:?}");
    let times = ran.stderr.lines().last().unwrap().split(' ');
    let times: Vec<f64> = times.map(|time| time.parse().unwrap()).collect();
    [times[0], times[1] + times[2]].map(Duration::from_secs_f64)
}
