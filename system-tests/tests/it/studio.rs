//! The studio on a machine with real packages and services, driven by a browser.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{Layer, Machine};

const MANIFEST: &str = r#"ccm:
  resources:
    - package:
        - ccm-app:
            ensure: 1.0-1
    - file:
        - /etc/ccm-studio.conf:
            content: "workers = 4\n"
            owner: root
            group: root
            mode: "0644"
            require: ["package#ccm-app"]
    - service:
        - ccm-app:
            ensure: running
            enable: true
            subscribe: ["file#/etc/ccm-studio.conf"]
"#;

/// The tests of the page, or why there is no browser to run them.
fn driver() -> Result<PathBuf, String> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ccm-studio/browser-tests");
    let chromium = std::env::var_os("CCM_CHROMIUM").map(PathBuf::from);
    let chromium = chromium.unwrap_or_else(|| "/usr/bin/chromium".into());
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory.join("node").exists()) {
        return Err("there is no node".into());
    }
    if !chromium.exists() {
        return Err(format!("{} is missing", chromium.display()));
    }
    if !tools.join("node_modules/playwright-core").exists() {
        return Err("`cargo xtask studio-test` installs what drives the browser".into());
    }
    Ok(tools)
}

fn state(machine: &Machine) -> String {
    let script = "dpkg-query -W -f '${Version} ${db:Status-Status} ' ccm-app 2>/dev/null || true; \
                  cat /etc/ccm-studio.conf 2>/dev/null || true; \
                  systemctl is-active ccm-app || true; \
                  systemctl is-enabled ccm-app 2>/dev/null || true";
    machine.sh(script).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn packages_files_and_services_are_applied_and_undone_from_the_browser() {
    let tools = match driver() {
        Ok(tools) => tools,
        Err(reason) => return ccm_testkit::not_run(&reason),
    };
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    machine.put("/srv/site/site.yaml", MANIFEST);
    assert_eq!(state(&machine), "inactive");
    machine.ok(
        "systemd-run --quiet --unit=studio --property=StandardOutput=file:/run/studio.json \
         --property=StandardError=journal \
         ccm studio --json --allow-apply /srv/site",
    );
    let link = machine
        .ok("for _ in $(seq 600); do [ -s /run/studio.json ] && break; sleep 0.1; done; \
         sed 's/.*\"url\":\"\\([^\"]*\\)\".*/\\1/' /run/studio.json");
    let mut page = machine
        .beside("node")
        .arg("machine/apply.js")
        .arg(&link)
        .current_dir(tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(page.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(said.next().as_deref(), Some("applied"));
    assert_eq!(state(&machine), "1.0-1 installed workers = 4 active enabled");
    page.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(said.next().as_deref(), Some("undone"));
    assert!(page.wait().unwrap().success());
    let state = state(&machine);
    assert!(!state.contains("installed") && !state.contains("workers"), "{state}");
    assert!(state.contains("inactive"), "{state}");
    let history = machine.ccm(&["history", "--json"]).stdout;
    assert!(history.contains("\"undo_of\""), "{history}");
}
