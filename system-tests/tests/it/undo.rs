//! Undo of packages and services, with files that belong to them.

use crate::{Layer, Machine};

const UNIT: &str =
    "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n";

fn version(machine: &Machine) -> String {
    machine.sh("dpkg-query -W -f '${Version} ${db:Status-Status}' ccm-app").stdout
}

fn state(machine: &Machine) -> String {
    let words =
        machine.sh("systemctl is-active app || true; systemctl is-enabled app 2>/dev/null || true");
    words.stdout.replace('\n', " ")
}

fn undo(machine: &Machine, flags: &[&str], code: i32) -> String {
    let args: Vec<&str> = ["undo"].iter().chain(flags).copied().collect();
    let ran = machine.ccm(&args);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, code, "{flags:?}: {said}");
    said
}

#[test]
fn services_are_as_they_were() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let manifest = |service: &str| {
        format!(
            "ccm:\n  resources:\n    - file: [{{/etc/systemd/system/app.service: {{content: \
             \"{UNIT}\", owner: root, group: root, mode: '0644'}}}}]\n    - service: [{{app: \
             {{{service}}}}}]\n"
        )
    };
    let report = machine.apply(&manifest("ensure: stopped"));
    assert_eq!(report.errors(), "");
    let report = machine.apply(&manifest("ensure: running, enable: true"));
    assert_eq!(report.errors(), "");
    assert_eq!(state(&machine), "active enabled");
    let preview = undo(&machine, &["--noop"], 0);
    assert!(preview.contains("service#app") && preview.contains("running → stopped"), "{preview}");
    assert_eq!(state(&machine), "active enabled");
    undo(&machine, &[], 0);
    assert_eq!(state(&machine), "inactive disabled");
    undo(&machine, &[], 0);
    assert_eq!(state(&machine), "active enabled", "the undo is undone");
    // Somebody has stopped it meanwhile, but not disabled it.
    machine.ok("systemctl stop app");
    let said = undo(&machine, &[], 1);
    assert!(
        said.contains("no longer as the run left it (ensure: running, enable: true)"),
        "{said}"
    );
    assert_eq!(state(&machine), "inactive enabled");
    undo(&machine, &["--force"], 0);
    assert_eq!(state(&machine), "inactive disabled");
}

#[test]
fn packages_get_their_former_version() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let app = |ensure: &str| crate::package("ccm-app", ensure);
    assert_eq!(machine.apply(&app("1.0-1")).errors(), "");
    assert_eq!(machine.apply(&app("2.0-1")).errors(), "");
    let preview = undo(&machine, &["--noop"], 0);
    assert!(preview.contains("2.0-1 → 1.0-1"), "{preview}");
    undo(&machine, &[], 0);
    assert_eq!(version(&machine), "1.0-1 installed");
    undo(&machine, &[], 0);
    assert_eq!(version(&machine), "2.0-1 installed");
    let list = machine.ccm(&["history", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let first = list["runs"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    // Another version has been installed since the first run.
    let said = undo(&machine, &[first], 1);
    assert!(said.contains("no longer as the run left it (ensure: 1.0-1)"), "{said}");
    assert_eq!(version(&machine), "2.0-1 installed");
    undo(&machine, &[first, "--force"], 0);
    assert_eq!(version(&machine), "2.0-1 config-files");
    // A version that is not to be had any more is named, and nothing changes.
    assert_eq!(machine.apply(&app("1.1-1")).errors(), "");
    assert_eq!(machine.apply(&app("2.0-1")).errors(), "");
    machine.ok(
        "rm -f /etc/apt/sources.list.d/*; : > /etc/apt/sources.list; rm -rf /var/lib/apt/lists/*",
    );
    let said = undo(&machine, &[], 1);
    assert!(said.starts_with("Will not be undone:") && said.contains("1.1-1"), "{said}");
    assert_eq!(version(&machine), "2.0-1 installed");
}
