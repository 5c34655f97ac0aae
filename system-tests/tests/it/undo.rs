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

/// A release in an archive: a program that says which one it is, and runs on.
fn pack(machine: &Machine, version: &str) -> String {
    machine.ok(&format!(
        "mkdir -p /srv/build/{version}/bin && cd /srv/build/{version} && printf '#!/bin/sh\\necho \
         {version} > /run/app.version\\nexec sleep infinity\\n' > bin/app && chmod 755 bin/app && \
         tar -czf ../app-{version}.tar.gz bin"
    ));
    let sum = machine.ok(&format!("sha256sum /srv/build/app-{version}.tar.gz"));
    sum.split(' ').next().unwrap().to_owned()
}

/// The recipe for release archives, with its paths and with a unit.
fn release(version: &str, checksum: &str) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recipes.md"));
    let page = page.unwrap();
    let recipe = page.split("```yaml file=release.yaml\n").nth(1).unwrap();
    let recipe = recipe.split("```").next().unwrap();
    let mut lines: Vec<String> = recipe.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if line.starts_with("  version:") {
            *line = format!("  version: {version}");
        } else if line.starts_with("  checksum:") {
            *line = format!("  checksum: {checksum}");
        }
    }
    lines.join("\n").replace("https://releases.example.net/", "file:///srv/build/")
}

/// Upgraded from 1 to 2 and undone: `current` is on 1, and the service runs 1.
#[test]
fn an_upgrade_is_undone_with_its_service() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/etc/systemd/system/app.service",
        "[Service]\nExecStartPre=/bin/rm -f /run/app.version\nExecStart=/srv/app/current/bin/app\n",
    );
    let sums = ["1.0.0", "2.0.0"].map(|version| pack(&machine, version));
    machine.ok("mkdir -p /srv/app");
    let runs = |version: &str| {
        let wait = "for _ in $(seq 50); do test -s /run/app.version && break; sleep 0.1; done";
        assert_eq!(machine.ok(&format!("{wait}; cat /run/app.version")), version);
        assert_eq!(machine.ok("readlink /srv/app/current"), format!("/srv/app/{version}"));
        assert_eq!(state(&machine).split(' ').next(), Some("active"));
    };
    assert_eq!(machine.apply(&release("1.0.0", &sums[0])).errors(), "");
    runs("1.0.0");
    let upgrade = || {
        assert_eq!(machine.apply(&release("2.0.0", &sums[1])).errors(), "");
        runs("2.0.0");
    };
    upgrade();
    let preview = undo(&machine, &["--noop", "--refresh"], 0);
    assert!(preview.contains("service#app"), "{preview}");
    undo(&machine, &["--refresh"], 0);
    runs("1.0.0");
    assert_eq!(machine.ok("ls /srv/app"), "1.0.0\ncurrent");
    // The undo is undone, with the service.
    undo(&machine, &["--refresh"], 0);
    runs("2.0.0");
    // Without `--refresh`, the service is named, and runs on.
    let said = undo(&machine, &[], 0);
    assert!(said.contains("service#app was restarted") && said.contains("--refresh"), "{said}");
    assert_eq!(machine.ok("cat /run/app.version"), "2.0.0");
    assert_eq!(machine.ok("readlink /srv/app/current"), "/srv/app/1.0.0");
    machine.ok("systemctl restart app");
    // A release that cannot run leaves the service failed; its undo starts it.
    machine.ok("cd /srv/build/2.0.0 && printf '#!/bin/sh\\nexit 1\\n' > bin/app && tar -czf \
         ../app-2.0.0.tar.gz bin");
    let sum = machine.ok("sha256sum /srv/build/app-2.0.0.tar.gz");
    let sum = sum.split(' ').next().unwrap();
    assert_ne!(machine.apply(&release("2.0.0", sum)).errors(), "");
    undo(&machine, &["--refresh"], 0);
    runs("1.0.0");
    let owed = machine.ccm(&["owed"]);
    assert_eq!(owed.code, 0, "{}", owed.stdout);
}

/// A service that reloads after a command has checked its configuration.
#[test]
fn services_react_to_an_undo_and_owe_it_until_they_have() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/etc/systemd/system/app.service",
        "[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/sh -c 'test ! -e /run/broken \
         && cp /etc/app.conf /run/app.loaded'\n",
    );
    machine.put("/etc/app.conf", "one\n");
    let manifest = |content: &str, command: &str| {
        format!(
            "ccm:\n  resources:\n    - file: [{{/etc/app.conf: {{content: \"{content}\\n\", owner: \
             root, group: root, mode: '0644'}}}}]\n{command}    - service: [{{app: {{ensure: running, \
             reload: true, subscribe: ['{}']}}}}]\n",
            if command.is_empty() { "file#/etc/app.conf" } else { "exec#check" }
        )
    };
    let check = "    - exec: [{check: {command: 'true', refresh_only: true, subscribe: \
                 ['file#/etc/app.conf']}}]\n";
    assert_eq!(machine.apply(&manifest("one", "")).errors(), "");
    assert_eq!(machine.apply(&manifest("two", check)).errors(), "");
    assert_eq!(machine.ok("cat /run/app.loaded"), "two");
    let said = undo(&machine, &["--refresh"], 1);
    assert!(said.contains("exec#check reacted to file#/etc/app.conf"), "{said}");
    assert_eq!(machine.ok("cat /etc/app.conf"), "two");
    let said = undo(&machine, &["--refresh", "--partial"], 1);
    assert!(said.contains("service#app"), "{said}");
    assert_eq!(machine.ok("cat /etc/app.conf /run/app.loaded"), "one\none");
    // A reaction that fails is owed, and made up for by the same undo.
    assert_eq!(machine.apply(&manifest("three", "")).errors(), "");
    assert_eq!(machine.ok("cat /run/app.loaded"), "three");
    let list = machine.ccm(&["history", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let id = list["runs"][0]["id"].as_str().unwrap();
    machine.ok("touch /run/broken");
    undo(&machine, &[id, "--refresh"], 1);
    assert_eq!(machine.ok("cat /etc/app.conf /run/app.loaded"), "one\nthree");
    assert_eq!(machine.ccm(&["owed"]).code, 2);
    machine.ok("rm /run/broken");
    undo(&machine, &[id, "--refresh"], 0);
    assert_eq!(machine.ok("cat /run/app.loaded"), "one");
    let owed = machine.ccm(&["owed"]);
    assert_eq!(owed.code, 0, "{}", owed.stdout);
}
