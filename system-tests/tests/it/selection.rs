//! Which provider is chosen on which machine.

use crate::{Layer, Machine};

/// The provider that a package gets, or why there is none. Whether it has the
/// package does not matter here.
fn provider(machine: &Machine, flags: &[&str]) -> String {
    let mut args = vec!["ensure", "package", "ccm-app", "--noop", "--json"];
    args.extend(flags);
    let ran = machine.ccm(&args);
    let event: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    match event["provider"].as_str().unwrap() {
        "" => event["error"][0].as_str().unwrap().to_owned(),
        provider => provider.to_owned(),
    }
}

#[test]
fn apt_on_a_debian_and_nothing_without_a_package_manager() {
    let Some(machine) = Machine::up(Layer::Apt) else { return };
    assert_eq!(provider(&machine, &[]), "apt");
    assert_eq!(provider(&machine, &["--provider", "apt"]), "apt");
    assert_eq!(
        provider(&machine, &["--provider", "dnf"]),
        "provider `dnf` cannot manage package#ccm-app on this machine"
    );
    assert_eq!(
        provider(&machine, &["--provider", "atp"]),
        "provider not found: type `package` has no provider `atp`\nhint: did you mean `apt`?"
    );
    machine.ok("rm /usr/bin/apt-get");
    assert_eq!(
        provider(&machine, &[]),
        "no suitable provider can manage package#ccm-app on this machine\nhint: considered apt, dnf"
    );
    machine.ok("rm /usr/bin/systemctl");
    let service = machine.ccm(&["ensure", "service", "ccm-app"]);
    assert!(
        service.stdout.contains("no suitable provider can manage service#ccm-app"),
        "{service:?}"
    );
}

#[test]
fn the_systems_own_where_there_are_both_and_dnf_where_there_is_only_dnf() {
    let Some(machine) = Machine::up(Layer::Dnf) else { return };
    assert_eq!(provider(&machine, &[]), "apt");
    assert_eq!(provider(&machine, &["--provider", "dnf"]), "dnf");
    // A Fedora on which someone has installed apt.
    machine.ok("rm /etc/debian_version; touch /etc/system-release");
    assert_eq!(provider(&machine, &[]), "dnf");
    assert_eq!(provider(&machine, &["--provider", "apt"]), "apt");
    machine.ok("rm /etc/system-release");
    assert_eq!(provider(&machine, &[]), "apt", "neither is at home here");
    machine.ok("touch /etc/debian_version; rm /usr/bin/apt-get");
    assert_eq!(provider(&machine, &[]), "dnf");
    assert_eq!(
        provider(&machine, &["--provider", "apt"]),
        "provider `apt` cannot manage package#ccm-app on this machine"
    );
}
