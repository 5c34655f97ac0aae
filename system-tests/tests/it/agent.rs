//! The agent as its package installs it: under systemd, with a broker that
//! fails, a full disk, and broken manifests and data.

use std::path::Path;

use ccm_testkit::nats::{lacks_nats, program};
use ccm_testkit::not_run;

use crate::packages::{Directory, make};
use crate::{Layer, Machine};

const CONFIG: &str = "/etc/choria/ccm/config.yaml";

/// A machine with the package of the binary under test.
fn installed() -> Option<Machine> {
    let machine = Machine::up(Layer::Plain)?;
    if machine.ccm(&["agent", "--help"]).code != 0 {
        not_run("the binary has no agent");
        return None;
    }
    let directory = Directory::new("agent");
    machine.put_bytes("/root/ccm.deb", &make(system_tests::ccm(), &directory.0));
    machine.ok("apt-get install -y --no-install-recommends /root/ccm.deb");
    Some(machine)
}

fn wait_for(machine: &Machine, what: &str) {
    let shown = std::fmt::from_fn(|f| write!(f, "{what}\n{}", log(machine)));
    ccm_testkit::wait_until(shown, || machine.sh(what).code == 0);
}

fn log(machine: &Machine) -> String {
    machine.sh("journalctl --no-pager --output=cat --unit ccm-agent").stdout
}

fn signal(machine: &Machine) {
    machine.ok("systemctl kill --kill-whom=main --signal=USR1 ccm-agent");
}

fn manifest(path: &str, content: &str) -> String {
    format!(
        "ccm: {{resources: [{{file: [{{{path}: {{content: {content}, owner: root, group: root, mode: \"0644\"}}}}]}}]}}\n"
    )
}

const ASK: &str = "ask() { exec 3<>/dev/tcp/127.0.0.1/8812; \
    printf 'GET %s HTTP/1.0\\r\\n\\r\\n' \"$1\" >&3; cat <&3; }; ";

#[test]
fn the_unit_starts_reloads_and_stops_it() {
    let Some(machine) = installed() else { return };

    // Without a configuration it says which file it wants.
    assert_ne!(machine.sh("systemctl start ccm-agent").code, 0);
    assert!(log(&machine).contains(CONFIG), "{}", log(&machine));

    // The file that the package of Choria CCM installs is read where ours is not.
    machine.put("/etc/choria/ccm/agent.yaml", "manifests: [/srv/other.yaml]\nsplay: 0\n");
    machine.put("/srv/other.yaml", &manifest("/srv/other", "1"));
    machine.ok("systemctl reset-failed ccm-agent; systemctl start ccm-agent");
    wait_for(&machine, "test -e /srv/other");
    machine.ok("systemctl stop ccm-agent");

    machine.put(CONFIG, "manifests: [/srv/m.yaml]\nintervall: 1m\n");
    assert_ne!(machine.sh("systemctl start ccm-agent").code, 0);
    let said = log(&machine);
    assert!(said.contains("intervall") && said.contains("interval"), "{said}");
    let checked = machine.ccm(&["agent", "--check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stderr.contains("config.yaml:2"), "{checked:?}");

    let config = "manifests: [/srv/m.yaml]\ninterval: 10m\nsplay: 0\nmonitor_port: 8812\n\
        monitor_address: 127.0.0.1\n";
    machine.put(CONFIG, config);
    machine.put("/srv/m.yaml", &manifest("/srv/one", "1"));
    machine.ok("systemctl reset-failed ccm-agent; systemctl start ccm-agent");
    assert_eq!(machine.ok("systemctl is-active ccm-agent"), "active");
    wait_for(&machine, "test -e /srv/one");
    wait_for(&machine, &format!("{ASK} ask /metrics | grep -q 'result=\"ok\"}} 1$'"));
    let health = machine.ok(&format!("{ASK} ask /healthz"));
    assert!(health.contains(" 200 "), "{health}");
    assert_eq!(machine.ok("stat -c %a /var/lib/ccm/source"), "700");
    let status = machine.ok("systemctl show --property=StatusText --value ccm-agent");
    assert!(!status.is_empty(), "systemd knows no status");

    // A configuration that is refused changes nothing.
    machine.put(CONFIG, "manifests: []\n");
    machine.sh("systemctl reload ccm-agent");
    let refused = "grep -q '^choria_ccm_agent_config_reload_success 0'";
    wait_for(&machine, &format!("{ASK} ask /metrics | {refused}"));
    assert_eq!(machine.ok("systemctl is-active ccm-agent"), "active");
    machine.put(CONFIG, &config.replace("[/srv/m.yaml]", "[/srv/m.yaml, /srv/n.yaml]"));
    machine.put("/srv/n.yaml", &manifest("/srv/two", "2"));
    machine.ok("systemctl reload ccm-agent");
    wait_for(&machine, "test -e /srv/two");

    // The last valid one takes the place of a manifest that is broken.
    machine.put("/srv/m.yaml", "ccm: {resources: [{file: [{/srv/one: {contents: 1}}]}]}\n");
    machine.ok("rm /srv/one /srv/two");
    signal(&machine);
    wait_for(&machine, "test -e /srv/one && test -e /srv/two");
    wait_for(&machine, &format!("{ASK} ask /metrics | grep 'manifest_valid' | grep -q ' 0$'"));
    machine.put("/srv/m.yaml", &manifest("/srv/one", "3"));
    signal(&machine);
    wait_for(&machine, "grep -q 3 /srv/one");

    // A run that is at work gets to its end before the agent stops.
    machine.put(
        "/srv/m.yaml",
        "ccm: {resources: [{exec: [{slow: {command: \"sh -c 'touch /srv/begun; sleep 300'\", provider: posix}}]}]}\n",
    );
    signal(&machine);
    wait_for(&machine, "test -e /srv/begun");
    machine.ok("systemctl stop ccm-agent");
    assert_eq!(machine.ok("systemctl show --property=Result --value ccm-agent"), "success");
    assert_eq!(machine.sh("pgrep --exact sleep").code, 1, "a command outlived the agent");

    // An upgrade restarts an agent that runs, and leaves one alone that does not.
    machine.put("/srv/m.yaml", &manifest("/srv/one", "4"));
    machine.ok("apt-get install -y --reinstall /root/ccm.deb");
    assert_eq!(machine.sh("systemctl is-active ccm-agent").stdout, "inactive");
    machine.ok("systemctl start ccm-agent");
    let pid = "systemctl show --property=MainPID --value ccm-agent";
    let before = machine.ok(pid);
    machine.ok("apt-get install -y --reinstall /root/ccm.deb");
    wait_for(&machine, &format!("pid=$({pid}); [ $pid != {before} ] && [ $pid != 0 ]"));
    wait_for(&machine, "systemctl is-active ccm-agent");
    machine.ok("apt-get remove -y ccm");
    wait_for(&machine, "! systemctl is-active ccm-agent");
}

#[test]
fn it_survives_the_broker_a_full_disk_and_broken_objects() {
    if lacks_nats() {
        return;
    }
    let Some(machine) = installed() else { return };
    let Some(server) = program() else { return };
    machine.put_bytes("/usr/local/bin/nats-server", &std::fs::read(server).unwrap());
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fleet/nats.py");
    machine.put("/root/nats.py", &std::fs::read_to_string(client).unwrap());
    machine.ok("chmod 755 /usr/local/bin/nats-server; ip link set lo up");
    let broker = "systemd-run --quiet --unit=broker nats-server -a 127.0.0.1 -p 4222 \
        --jetstream --store_dir /var/lib/broker";
    machine.ok(broker);
    // One replica on one server; the experiment's cluster has three.
    machine.put(
        "/root/put.py",
        "import json, sys
from nats import Client, archive, wait_for
def connect():
    try: return Client(4222)
    except OSError: return None
client = wait_for('the broker', connect)
config = {'name': 'OBJ_SITE', 'subjects': ['$O.SITE.C.>', '$O.SITE.M.>'], 'num_replicas': 1,
    'allow_rollup_hdrs': True, 'allow_direct': True, 'storage': 'file', 'discard': 'new'}
def create():
    try: return client.request('$JS.API.STREAM.CREATE.OBJ_SITE', json.dumps(config).encode())
    except OSError: return None
wait_for('the bucket', create)
text = open(sys.argv[1]).read()
filler = {'filler': open(sys.argv[2], encoding='latin-1').read()} if len(sys.argv) > 2 else {}
client.put('SITE', 'm.tar.gz', archive({'manifest.yaml': text, **filler}))
",
    );
    let put = |text: &str, filler: &str| {
        machine.put("/root/manifest.yaml", text);
        machine.ok(&format!("cd /root; python3 put.py manifest.yaml {filler}"));
    };
    put(&manifest("/srv/one", "1"), "");
    machine.put("/etc/choria/ccm/context/CCM.json", "{\"url\": \"nats://127.0.0.1:4222\"}");
    machine.put(
        CONFIG,
        "manifests: [\"obj://SITE/m.tar.gz\"]\ninterval: 10m\nsplay: 0\nmonitor_port: 8812\n\
         cache_dir: /var/cache/small/source\n",
    );
    machine.ok("chmod 600 /etc/choria/ccm/context/CCM.json; mkdir /var/cache/small
        mount -t tmpfs -o size=1M,mode=700 tmpfs /var/cache/small");
    machine.ok("systemctl start ccm-agent");
    wait_for(&machine, "grep -q 1 /srv/one");

    // Without a broker, the last good copy is applied, also by an agent that
    // starts without one.
    machine.ok("systemctl stop broker; rm /srv/one");
    signal(&machine);
    wait_for(&machine, "grep -q 1 /srv/one");
    let connected = "grep -q '^choria_ccm_agent_nats_connected 0'";
    wait_for(&machine, &format!("{ASK} ask /metrics | {connected}"));
    machine.ok("systemctl restart ccm-agent; rm -f /srv/one");
    signal(&machine);
    wait_for(&machine, "grep -q 1 /srv/one");
    machine.ok(&format!("systemctl reset-failed broker 2> /dev/null || true; {broker}"));
    put(&manifest("/srv/one", "2"), "");
    wait_for(&machine, "grep -q 2 /srv/one");

    // A disk that is full keeps the old copy, and the new one comes later.
    machine.ok("head -c 2000000 /dev/zero > /var/cache/small/full || true");
    machine.ok("head -c 300000 /dev/urandom > /root/filler");
    put(&manifest("/srv/one", "3"), "filler");
    let failed = "grep '^choria_ccm_agent_manifest_fetch_error_count' | grep -qv ' 0$'";
    wait_for(&machine, &format!("{ASK} ask /metrics | {failed}"));
    machine.ok("rm /srv/one");
    signal(&machine);
    wait_for(&machine, "grep -q 2 /srv/one");
    machine.ok("rm /var/cache/small/full");
    wait_for(&machine, "grep -q 3 /srv/one");

    // What cannot be parsed is never applied, and the old one goes on.
    put("ccm: [", "");
    machine.ok("rm /srv/one");
    signal(&machine);
    wait_for(&machine, "grep -q 3 /srv/one");
    put(&manifest("/srv/one", "4"), "");
    wait_for(&machine, "grep -q 4 /srv/one");
    assert_eq!(machine.ok("systemctl is-active ccm-agent"), "active");
    machine.ok("systemctl stop ccm-agent broker; umount /var/cache/small");
}
