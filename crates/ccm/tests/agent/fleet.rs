//! `examples/fleet` with a few agents: nobody misses a manifest, also when a
//! server of the cluster is killed, or all are for some time.

use std::path::Path;
use std::process::Command;

use ccm_testkit::nats::{lacks_nats, program};
use ccm_testkit::{lacks_program, lacks_root};

#[test]
fn no_agent_of_a_small_fleet_misses_a_manifest() {
    // Their runs own files by number, and root's configuration is nobody else's.
    if lacks_nats() || lacks_program("python3") || lacks_root() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet/fleet.py");
    let ran = Command::new("python3")
        .arg("-B")
        .arg(script)
        .args(["--agents", "4", "--splay", "3", "--rest", "1", "--interval", "30"])
        .args(["--outage", "60", "--grace", "300", "--patience", "400"])
        .args(["--ccm", env!("CARGO_BIN_EXE_ccm")])
        .arg("--nats-server")
        .arg(program().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.matches("4 of 4 agents applied it").count(), 4, "{said}");
    assert!(said.contains(" 0 consumers"), "{said}");
}
