//! A run that is killed leaves a state that the next run repairs.

use super::{ANN, HASH};
use crate::{Layer, Machine, Stable};

const MOMENTS: u32 = 40;

#[test]
fn the_next_run_repairs_what_a_killed_one_left() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let manifest = format!(
        "ccm:\n  resources:\n    - group: [{{crew: {{gid: 4700}}}}]\n    - user:\n        - ann: {{uid: \
         4701, groups: [crew], password: \"{HASH}\", authorized_keys: ['{ANN}']}}\n"
    );
    machine.put("/tmp/m.yaml", &manifest);
    let begin = std::time::Instant::now();
    machine.ok("ccm apply /tmp/m.yaml");
    let whole = begin.elapsed();
    machine.put(
        "/tmp/clean.yaml",
        "ccm: {resources: [{user: [{ann: {ensure: absent, remove_home: true}}]}, {group: [{crew: \
         {ensure: absent}}]}]}\n",
    );
    let mut killed = 0;
    for moment in 1..=MOMENTS {
        machine.ok("ccm apply /tmp/clean.yaml");
        let after = whole.mul_f64(f64::from(moment) / f64::from(MOMENTS));
        let limit = format!("timeout --signal=KILL {:.3}", after.as_secs_f64());
        killed += u32::from(machine.sh(&format!("{limit} ccm apply /tmp/m.yaml")).code != 0);
        let report = machine.apply(&manifest);
        assert_eq!(report.errors(), "", "killed after {after:?}");
        assert_eq!(machine.apply(&manifest).outcomes(), [Stable, Stable]);
        assert_eq!(machine.ok("id -u ann; id -Gn ann"), "4701\nann crew", "{after:?}");
        assert_eq!(machine.ok("getent shadow ann | cut -d: -f2"), HASH);
        assert_eq!(machine.read("/home/ann/.ssh/authorized_keys"), ANN);
    }
    assert!(killed > MOMENTS / 4, "only {killed} runs were killed");
}
