//! Plans against runs, with real packages and services: what a preview says of
//! each resource is what then becomes of it.

use system_tests::Report;

use crate::{Changed, Failed, Layer, Machine, Refreshed, Stable};

/// Previews and applies a manifest. Every resource that the preview has judged
/// ends as it said; the others are given back by their numbers.
fn predicted(machine: &Machine, resources: &str) -> (Report, Vec<usize>) {
    let manifest = format!("ccm:\n  resources:\n{resources}");
    let state = "dpkg-query -W 2>/dev/null | sha256sum; ls -lR /etc /usr/lib/systemd | sha256sum; \
                 systemctl list-units --plain --no-legend --type=service --state=running";
    let before = machine.ok(state);
    let preview = machine.noop(&manifest);
    assert_eq!(machine.ok(state), before, "the preview has changed something");
    let report = machine.apply(&manifest);
    let mut provisional = Vec::new();
    let outcomes = preview.outcomes().into_iter().zip(report.outcomes());
    for (number, (planned, became)) in outcomes.enumerate() {
        if preview.event(number)["provisional"] == true {
            provisional.push(number);
            continue;
        }
        let errors = (preview.errors(), report.errors());
        assert_eq!(planned, became, "{number} of\n{resources}\n{errors:?}");
    }
    (report, provisional)
}

#[test]
fn packages_and_services_of_debian() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    let app = "    - package: [{ccm-app: {ensure: 1.0-1}}]\n    - file:\n        \
               - /etc/ccm-app.conf: {content: mine, owner: root, group: root, mode: \"0644\"}\n    \
               - service: [{ccm-app: {enable: true, subscribe: [\"file#/etc/ccm-app.conf\"]}}]\n";
    let (report, provisional) = predicted(&machine, app);
    assert_eq!(provisional, [2], "the unit comes with the package");
    assert_eq!(report.outcomes(), [Changed, Changed, Changed]);
    let (report, provisional) = predicted(&machine, app);
    assert_eq!((report.outcomes(), provisional), (vec![Stable, Stable, Stable], vec![]));
    let changed = app.replace("mine", "other");
    let (report, provisional) = predicted(&machine, &changed);
    assert_eq!((report.outcomes(), provisional), (vec![Stable, Changed, Refreshed], vec![]));

    let (report, provisional) = predicted(
        &machine,
        "    - package: [{ccm-user: {}}]\n    - file:\n        - /srv/own: {ensure: directory, \
         owner: ccm-tester, group: root, mode: \"0755\", require: [\"package#ccm-user\"]}\n        \
         - /srv/own/f: {content: x, owner: ccm-tester, group: root, mode: \"0644\"}\n",
    );
    assert_eq!(provisional, [1, 2], "the user comes with the package");
    assert_eq!(report.outcomes(), [Changed, Changed, Changed], "{}", report.errors());

    // Its unit and its files come with the package, and go again.
    let brought = "    - package: [{ccm-app: {ensure: 1.0-1}}]\n    - file:\n        \
                   - /etc/systemd/system/ccm-app.service.d: {ensure: absent}\n    \
                   - service: [{ccm-app: {ensure: stopped, enable: false}}]\n";
    machine.ok("apt-get -y purge ccm-app");
    let (report, provisional) = predicted(&machine, brought);
    assert_eq!(provisional, [1, 2], "{}", report.errors());
    machine.apply(&format!("ccm:\n  resources:\n{app}"));

    for (resources, outcomes) in [
        ("    - package: [{ccm-app: {ensure: latest}}]\n", vec![Changed]),
        ("    - package: [{ccm-app: {ensure: latest}}]\n", vec![Stable]),
        ("    - package: [{ccm-app: {ensure: 9.9-9}}]\n", vec![Failed]),
        ("    - package: [{ccm-no-such: {}}]\n", vec![Failed]),
        ("    - package: [{ccm-no-such: {ensure: absent}}]\n", vec![Stable]),
        ("    - service: [{ccm-no-such: {}}]\n", vec![Failed]),
        ("    - service: [{ccm-app: {ensure: stopped, enable: false}}]\n", vec![Changed]),
        ("    - service: [{ccm-app: {ensure: stopped, enable: false}}]\n", vec![Stable]),
        ("    - package: [{ccm-app: {ensure: 1.1-1}}]\n", vec![Changed]),
        (
            "    - package: [{ccm-app: {ensure: absent}}]\n    - file: [{/etc/ccm-app.conf: \
             {ensure: absent}}]\n",
            vec![Changed, Changed],
        ),
    ] {
        let (report, provisional) = predicted(&machine, resources);
        assert_eq!(report.outcomes(), outcomes, "{resources}: {}", report.errors());
        assert!(provisional.is_empty(), "{resources}");
    }
}

#[test]
fn units_that_earlier_resources_write() {
    let Some(machine) = Machine::up(Layer::Plain) else { return };
    let unit = |text: &str| {
        format!(
            "    - file:\n        - /etc/systemd/system/own.service:\n            content: \
             \"[Service]\\nExecStart=/bin/sleep infinity\\n{text}\"\n            owner: root\n            \
             group: root\n            mode: \"0644\"\n    - service: [{{own: {{enable: true, \
             subscribe: [\"file#/etc/systemd/system/own.service\"]}}}}]\n"
        )
    };
    let install = "[Install]\\nWantedBy=multi-user.target\\n";
    let (report, provisional) = predicted(&machine, &unit(install));
    assert_eq!((report.outcomes(), provisional), (vec![Changed, Changed], vec![]));
    assert_eq!(machine.ok("systemctl is-enabled own; systemctl is-active own"), "enabled\nactive");
    let (report, provisional) = predicted(&machine, &unit(&format!("{install}# edited\\n")));
    assert_eq!((report.outcomes(), provisional), (vec![Changed, Refreshed], vec![]));
    // One that is started twice is started once.
    let twice = "    - service: [{own: {ensure: stopped}}]\n    - apply: [{/tmp/child.yaml: {}}]\n";
    machine.put("/tmp/child.yaml", "ccm: {resources: [{service: [{own: {ensure: running}}]}]}\n");
    let (report, provisional) = predicted(&machine, twice);
    assert_eq!((report.outcomes(), provisional), (vec![Changed, Changed, Changed], vec![]));
}

#[test]
fn packages_of_dnf() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    for (ensure, outcome) in [
        ("1.0-1", Changed),
        ("1.0-1", Stable),
        ("latest", Changed),
        ("latest", Stable),
        ("1.1-1", Changed),
        ("9.9-9", Failed),
        ("absent", Changed),
        ("absent", Stable),
        ("present", Changed),
    ] {
        let resources =
            format!("    - package: [{{ccm-app: {{ensure: {ensure}, provider: dnf}}}}]\n");
        let (report, provisional) = predicted(&machine, &resources);
        assert_eq!(report.outcomes(), [outcome], "{ensure}: {}", report.errors());
        assert!(provisional.is_empty(), "{ensure}");
    }
    let unknown = "    - package: [{ccm-no-such: {provider: dnf}}]\n";
    assert_eq!(predicted(&machine, unknown).0.outcomes(), [Failed]);
}
