//! Detects whether the machine is virtual.

use crate::tree::{Tree, pairs};

/// The technique, and whether the machine is its `guest` or `host`; empty where
/// the machine is real or its secret is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Virtualization {
    pub(crate) system: String,
    pub(crate) role: &'static str,
}

impl Virtualization {
    /// The innermost answer: a container in a guest is a container, and a guest
    /// that could have guests of its own is a guest.
    pub(crate) fn find(tree: &Tree<'_>) -> Self {
        container(tree)
            .or_else(|| paravirtual(tree))
            .or_else(|| dmi(tree).map(guest))
            .or_else(|| device_tree(tree).map(guest))
            .or_else(|| processor(tree))
            .or_else(|| hypervisor_here(tree))
            .unwrap_or_default()
    }
}

fn guest(system: &str) -> Virtualization {
    Virtualization { system: system.to_owned(), role: "guest" }
}

fn host(system: &str) -> Virtualization {
    Virtualization { system: system.to_owned(), role: "host" }
}

fn container(tree: &Tree<'_>) -> Option<Virtualization> {
    if tree.exists("proc/bc/0") {
        return Some(host("openvz"));
    }
    if tree.exists("proc/vz") {
        return Some(guest("openvz"));
    }
    if tree.exists("run/.containerenv") {
        return Some(guest("podman"));
    }
    if tree.exists(".dockerenv") {
        return Some(guest("docker"));
    }
    // What runs as process 1 may know; only root may ask it, so systemd repeats it.
    let environment = tree.text("proc/1/environ").unwrap_or_default();
    let told = environment.split('\0').find_map(|pair| pair.strip_prefix("container="));
    let told = told.map(str::to_owned).or_else(|| tree.line("run/systemd/container"));
    if let Some(told) = told.filter(|told| !told.is_empty()) {
        return Some(guest(&told));
    }
    let groups = tree.text("proc/self/cgroup").unwrap_or_default();
    let marks =
        [("docker", "docker"), ("libpod", "podman"), ("/lxc", "lxc"), ("machine-rkt", "rkt")];
    if let Some((_, system)) = marks.iter().find(|(mark, _)| groups.contains(mark)) {
        return Some(guest(system));
    }
    let kernel = tree.line("proc/sys/kernel/osrelease").unwrap_or_default().to_ascii_lowercase();
    kernel.contains("microsoft").then(|| guest("wsl"))
}

fn paravirtual(tree: &Tree<'_>) -> Option<Virtualization> {
    let xen = tree.line("sys/hypervisor/type").is_some_and(|kind| kind == "xen");
    if xen || tree.exists("proc/xen/capabilities") {
        let controls =
            tree.line("proc/xen/capabilities").is_some_and(|text| text.contains("control_d"));
        return Some(if controls { host("xen") } else { guest("xen") });
    }
    None
}

/// What the firmware says; hypervisors put their name there.
fn dmi(tree: &Tree<'_>) -> Option<&'static str> {
    let read = |name: &str| tree.line(format!("sys/class/dmi/id/{name}")).unwrap_or_default();
    of_firmware(&read("sys_vendor"), &read("product_name"), &read("bios_vendor"))
}

fn of_firmware(vendor: &str, product: &str, bios: &str) -> Option<&'static str> {
    // These rent real machines as well.
    if product.contains(".metal") || product.contains("Bare Metal") {
        return None;
    }
    match vendor {
        "Microsoft Corporation" => return (product == "Virtual Machine").then_some("hyperv"),
        "Google" => return (product == "Google Compute Engine").then_some("kvm"),
        "Hetzner" => return (product == "vServer").then_some("kvm"),
        "Alibaba Cloud" => return product.contains("ECS").then_some("kvm"),
        _ => {}
    }
    let by_vendor = [
        ("QEMU", "kvm"),
        ("Amazon EC2", "kvm"),
        ("DigitalOcean", "kvm"),
        ("VMware", "vmware"),
        ("innotek", "vbox"),
        ("Xen", "xen"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
    ];
    let by_product = [
        ("KVM", "kvm"),
        ("OpenStack", "kvm"),
        ("oVirt", "kvm"),
        ("RHEV", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "vbox"),
        ("HVM domU", "xen"),
        ("BHYVE", "bhyve"),
        ("Apple Virtualization", "apple"),
    ];
    let find = |table: &[(&'static str, &'static str)], text: &str| {
        table.iter().find(|(mark, _)| text.starts_with(mark)).map(|(_, system)| *system)
    };
    find(&by_product, product).or_else(|| find(&by_vendor, vendor)).or_else(|| {
        let bios_of_hypervisor = [("BHYVE", "bhyve"), ("Xen", "xen"), ("Bochs", "bochs")];
        find(&bios_of_hypervisor, bios)
    })
}

/// What the device tree says, where machines have one instead of DMI.
fn device_tree(tree: &Tree<'_>) -> Option<&'static str> {
    let text = tree.line("proc/device-tree/hypervisor/compatible")?;
    let known = [("linux,kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware")];
    known.iter().find(|(mark, _)| text.contains(mark)).map(|(_, system)| *system)
}

/// What the processor says, and the clock that fits to it.
fn processor(tree: &Tree<'_>) -> Option<Virtualization> {
    let text = tree.text("proc/cpuinfo").unwrap_or_default();
    let value = |wanted: &str| {
        pairs(&text).find(|(key, _)| *key == wanted).map(|(_, value)| value).unwrap_or_default()
    };
    if value("vendor_id") == "User Mode Linux" {
        return Some(guest("uml"));
    }
    let model = value("model name");
    if ["QEMU Virtual CPU", "Common KVM", "Common 32-bit KVM"].iter().any(|m| model.starts_with(m))
    {
        return Some(guest("kvm"));
    }
    let devices = tree.text("proc/bus/pci/devices").unwrap_or_default();
    if devices.contains("virtio-pci") {
        return Some(guest("kvm"));
    }
    if !value("flags").split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = tree.text(clocks).unwrap_or_default();
    let known = [("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen")];
    let system = known.iter().find(|(clock, _)| clocks.contains(clock)).map(|(_, system)| *system);
    Some(guest(system.unwrap_or_default()))
}

/// Whether the machine is ready to have guests.
fn hypervisor_here(tree: &Tree<'_>) -> Option<Virtualization> {
    let modules = tree.text("proc/modules").unwrap_or_default();
    let loaded = |wanted: &str| modules.lines().any(|line| line.split(' ').next() == Some(wanted));
    if loaded("kvm_intel") || loaded("kvm_amd") || tree.exists("dev/kvm") {
        return Some(host("kvm"));
    }
    loaded("vboxdrv").then(|| host("vbox"))
}

#[cfg(test)]
mod tests {
    use ccm_host::Host;

    use super::*;
    use crate::tree::planted;

    fn is(files: &[(&str, &str)], system: &str, role: &str) {
        let dir = planted(files);
        let found = Virtualization::find(&Tree::at(&Host::new(), dir.path()));
        assert_eq!((&*found.system, found.role), (system, role));
    }

    const GUEST: (&str, &str) =
        ("proc/cpuinfo", "model name : AMD EPYC\nflags\t: fpu hypervisor\n");
    const REAL: (&str, &str) = ("proc/cpuinfo", "model name : AMD EPYC\nflags\t: fpu svm\n");
    const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

    #[test]
    fn containers() {
        is(&[(".dockerenv", ""), GUEST], "docker", "guest");
        is(&[("run/.containerenv", "")], "podman", "guest");
        is(&[("proc/1/environ", "PATH=/bin\0container=lxc\0")], "lxc", "guest");
        is(&[("run/systemd/container", "systemd-nspawn\n")], "systemd-nspawn", "guest");
        is(&[("proc/self/cgroup", "1:name=systemd:/docker/0a1b\n")], "docker", "guest");
        is(&[("proc/vz/x", "")], "openvz", "guest");
        is(&[("proc/vz/x", ""), ("proc/bc/0/x", "")], "openvz", "host");
        is(&[("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2")], "wsl", "guest");
    }

    #[test]
    fn guests_by_firmware() {
        for (vendor, product, system) in [
            ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "kvm"),
            ("Red Hat", "KVM", "kvm"),
            ("Amazon EC2", "t3.micro", "kvm"),
            ("Xen", "HVM domU", "xen"),
            ("VMware, Inc.", "VMware Virtual Platform", "vmware"),
            ("innotek GmbH", "VirtualBox", "vbox"),
            ("Microsoft Corporation", "Virtual Machine", "hyperv"),
            ("Google", "Google Compute Engine", "kvm"),
            ("OpenStack Foundation", "OpenStack Nova", "kvm"),
        ] {
            let files = [
                ("sys/class/dmi/id/sys_vendor", vendor),
                ("sys/class/dmi/id/product_name", product),
            ];
            is(&files, system, "guest");
        }
    }

    #[test]
    fn real_machines_of_the_same_vendors() {
        for (vendor, product) in [
            ("Amazon EC2", "m5.metal"),
            ("Microsoft Corporation", "Surface Pro"),
            ("Google", "Pixelbook"),
            ("Dell Inc.", "PowerEdge R750"),
        ] {
            assert_eq!(of_firmware(vendor, product, "American Megatrends"), None, "{product}");
        }
    }

    #[test]
    fn guests_by_processor_and_device_tree() {
        is(&[GUEST, (CLOCK, "tsc kvm-clock \n")], "kvm", "guest");
        is(&[GUEST, (CLOCK, "hyperv_clocksource_tsc_page acpi_pm")], "hyperv", "guest");
        is(&[GUEST], "", "guest");
        is(&[("proc/cpuinfo", "model name\t: QEMU Virtual CPU version 2.5+\n")], "kvm", "guest");
        is(&[("proc/device-tree/hypervisor/compatible", "linux,kvm\0")], "kvm", "guest");
        is(&[("sys/hypervisor/type", "xen\n")], "xen", "guest");
        is(&[("proc/xen/capabilities", "control_d\n")], "xen", "host");
    }

    #[test]
    fn hosts_and_real_machines() {
        is(&[REAL, ("proc/modules", "kvm_amd 16384 0 - Live 0x0\n")], "kvm", "host");
        is(&[REAL, ("dev/kvm", "")], "kvm", "host");
        is(&[REAL, ("proc/modules", "vboxdrv 1 0 - Live 0x0\n")], "vbox", "host");
        is(&[REAL, ("proc/modules", "kvm_guestlike 1 0 - Live 0x0\n")], "", "");
        is(&[REAL], "", "");
        is(&[GUEST, (CLOCK, "kvm-clock"), ("dev/kvm", "")], "kvm", "guest");
    }
}
