//! Goss rules of every kind on a machine that has the real thing, and on one
//! that has not.

use ccm_testkit::not_run;

use crate::{Changed, Layer, Machine, Stable, package};

const UNIT: &str = "[Service]\nExecStart=/usr/bin/python3 -m http.server 8099 --bind 127.0.0.1 \
                    --directory /srv/web\n[Install]\nWantedBy=multi-user.target\n";

/// Everything is there.
const PRESENT: &str = r#"
file:
  /srv/web/index.html: {exists: true, mode: "0644", owner: root, contents: [hello], filetype: file}
package:
  ccm-app: {installed: true, versions: ["1.1-1"]}
service:
  web: {running: true, enabled: true}
  web.service: {running: true}
process:
  python3: {running: true}
port:
  tcp:8099: {listening: true, ip: [127.0.0.1]}
command:
  systemctl is-active web: {exit-status: 0, stdout: [active], stderr: ""}
http:
  http://127.0.0.1:8099/: {status: 200, body: [hello], headers: ["/^Server: /"], timeout: 20000}
addr:
  tcp://127.0.0.1:8099: {reachable: true, timeout: 20000}
dns:
  localhost: {resolvable: true, addrs: {contain-element: 127.0.0.1}, timeout: 20000}
user:
  ann: {exists: true, uid: 4711, groups: {contain-elements: [crew, ann]}, home: /home/ann, shell: /bin/sh}
group:
  crew: {exists: true, gid: 4712}
interface:
  lo: {exists: true, addrs: {contain-element: 127.0.0.1/8}, mtu: {gt: 0}}
mount:
  /srv/small: {exists: true, filesystem: tmpfs, opts: [nosuid], vfs-opts: [size=1024k], source: small, usage: {ge: 50}}
kernel-param:
  kernel.ostype: {value: Linux}
matching:
  a fact: {content: "{{ Facts.host.info.os }}", matches: linux}
"#;

/// Nothing of that is there.
const ABSENT: &str = r#"
file:
  /srv/web/index.html: {exists: false}
package:
  ccm-app: {installed: false}
service:
  web: {running: false, enabled: false}
process:
  no-such-process: {running: false}
port:
  tcp:8099: {listening: false}
command:
  systemctl is-active web: {exit-status: {not: 0}, stdout: [inactive]}
http:
  http://127.0.0.1:8099/: {status: {not: 200}, skip: true}
addr:
  tcp://127.0.0.1:8099: {reachable: false}
dns:
  no-such-host.invalid: {resolvable: false, timeout: 20000}
user:
  ann: {exists: false}
group:
  crew: {exists: false}
interface:
  no-such0: {exists: false}
mount:
  /srv/small: {exists: false}
kernel-param:
  kernel.ostype: {value: {not: Windows}}
matching:
  a fact: {content: "{{ Facts.host.info.os }}", matches: {not: windows}}
"#;

fn results(machine: &Machine, rules: &str) -> (i32, serde_json::Value) {
    machine.put("/root/rules.yaml", rules);
    let ran = machine.ccm(&["check", "/root/rules.yaml", "--json"]);
    let json = serde_json::from_str(&ran.stdout);
    (ran.code, json.unwrap_or_else(|error| panic!("{error}: {ran:?}")))
}

#[test]
fn every_kind_is_seen_present_and_absent() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    if !machine.has("/usr/bin/python3") {
        return not_run("there is no python3 to serve a page with");
    }
    machine.ok("ip link set lo up");
    let kinds = |json: &serde_json::Value| {
        let results = json["results"].as_array().unwrap().iter();
        let mut kinds: Vec<String> =
            results.map(|result| result["kind"].as_str().unwrap().to_owned()).collect();
        kinds.dedup();
        kinds.len()
    };
    let (code, json) = results(&machine, ABSENT);
    assert_eq!((code, kinds(&json)), (0, 15), "{json:#}");
    // What should be there and is not fails, each with what was found.
    let (code, json) =
        results(&machine, &PRESENT.replace("{exists: true", "{exists: true, title: t"));
    assert_eq!(code, 2);
    let failed = json["summary"]["failed"].as_u64().unwrap();
    assert!(failed >= 12, "{json:#}");

    let report = machine.apply(&package("ccm-app", "1.1-1"));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    machine.put("/usr/lib/systemd/system/web.service", UNIT);
    machine.put("/srv/web/index.html", "hello world\n");
    machine.ok("chmod 0644 /srv/web/index.html");
    machine.ok("systemctl daemon-reload && systemctl enable --now web");
    machine.ok("groupadd --gid 4712 crew");
    machine.ok(
        "useradd --uid 4711 --user-group --groups crew --home-dir /home/ann --shell /bin/sh ann",
    );
    machine.ok("mkdir -p /srv/small && mount -t tmpfs -o size=1m,nosuid small /srv/small");
    machine.ok("head -c 600000 /dev/zero > /srv/small/x");
    machine.ok("for i in $(seq 100); do ss -ltn | grep -q :8099 && exit; sleep 0.1; done; exit 1");
    let (code, json) = results(&machine, PRESENT);
    assert_eq!((code, kinds(&json)), (0, 15), "{json:#}");
    assert_eq!(json["summary"]["skipped"], 0, "{json:#}");
    let (code, _) = results(&machine, ABSENT);
    assert_eq!(code, 2);
}

#[test]
fn rules_check_the_health_of_a_service() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    machine.put(
        "/usr/lib/systemd/system/app.service",
        "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
    );
    let manifest = |running: bool| {
        format!(
            "ccm: {{resources: [{{service: [{{app: {{enable: true, health_checks: [{{goss_rules: \
             {{service: {{app: {{running: {running}, enabled: true}}}}, process: {{sleep: \
             {{running: true}}}}}}}}]}}}}]}}]}}\n"
        )
    };
    let report = machine.apply(&manifest(true));
    assert_eq!(report.outcomes(), [Changed], "{}", report.errors());
    assert_eq!(machine.apply(&manifest(true)).outcomes(), [Stable]);
    let report = machine.apply(&manifest(false));
    let errors = report.errors();
    assert!(errors.contains("Service: app: running: expected false, found true"), "{errors}");
}

/// rpm is asked where dpkg has no database. The package says that its epoch is 0.
#[test]
fn packages_of_rpm_have_release_and_epoch() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    machine.ok("dnf -q -y install ccm-app-1.0-1");
    machine.ok("mv /var/lib/dpkg/status /var/lib/dpkg/status.away");
    let (code, json) = results(
        &machine,
        "package: {ccm-app: {installed: true, versions: ['0:1.0-1']}, no-such: {installed: false}}",
    );
    assert_eq!(code, 0, "{json:#}");
    let (code, json) = results(&machine, "package: {no-such: {installed: true, versions: ['1']}}");
    assert_eq!(code, 2, "{json:#}");
}
