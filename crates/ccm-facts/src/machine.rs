//! `host`: information about the system as a whole.

use govalue::Value;

use crate::platform::Platform;
use crate::tree::Tree;
use crate::virtualization::Virtualization;
use crate::{count, map};

pub(crate) fn facts(tree: &Tree<'_>) -> Value {
    let uname = tree.host.uname();
    let platform = Platform::find(tree);
    let virtualization = Virtualization::find(tree);
    // A container's own `/proc/uptime` may say when the container was started.
    let uptime = tree.text("proc/uptime").and_then(|text| seconds(&text));
    let info = map([
        ("hostname", uname.hostname.into()),
        ("uptime", count(uptime.unwrap_or_else(|| tree.host.uptime()))),
        ("bootTime", count(tree.text("proc/stat").and_then(|text| boot_time(&text)).unwrap_or(0))),
        ("procs", processes(&tree.names("proc")).into()),
        ("os", std::env::consts::OS.into()),
        ("platform", platform.name.into()),
        ("platformFamily", platform.family.into()),
        ("platformVersion", platform.version.into()),
        ("kernelVersion", uname.release.into()),
        ("kernelArch", uname.machine.into()),
        ("virtualizationSystem", virtualization.system.into()),
        ("virtualizationRole", virtualization.role.into()),
        ("hostId", host_id(tree).into()),
    ]);
    map([("info", info)])
}

fn seconds(uptime: &str) -> Option<u64> {
    uptime.split(['.', ' ']).next()?.parse().ok()
}

fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn processes(names: &[String]) -> usize {
    names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).count()
}

/// The identity of the hardware, which only root may read, else that of the
/// installation, else that of this boot.
fn host_id(tree: &Tree<'_>) -> String {
    let product = tree.line("sys/class/dmi/id/product_uuid");
    let machine = || tree.line("etc/machine-id").and_then(|id| uuid(&id));
    let boot = || tree.line("proc/sys/kernel/random/boot_id");
    product.or_else(machine).or_else(boot).unwrap_or_default().to_ascii_lowercase()
}

/// A machine id written as a UUID.
fn uuid(id: &str) -> Option<String> {
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    Some(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use ccm_host::Host;

    use super::*;
    use crate::tree::planted;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("12345.67 8901.23\n"), Some(12345));
        assert_eq!(seconds(""), None);
        assert_eq!(
            boot_time("cpu  1 2 3\nctxt 5\nbtime 1700000000\nprocesses 9\n"),
            Some(1_700_000_000)
        );
        assert_eq!(boot_time("cpu  1 2 3\n"), None);
    }

    #[test]
    fn processes_are_numbers() {
        let names = ["1", "42", "self", "cpuinfo", "4x"].map(str::to_owned);
        assert_eq!(processes(&names), 2);
    }

    #[test]
    fn the_hardware_is_identified_first() {
        let id = |files: &[(&str, &str)]| {
            let dir = planted(files);
            host_id(&Tree::at(&Host::new(), dir.path()))
        };
        let boot = ("proc/sys/kernel/random/boot_id", "5d1c-boot\n");
        let machine = ("etc/machine-id", "3d1219c7c4c5404aaa1f6d2a48adfda4\n");
        let product = ("sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510\n");
        assert_eq!(id(&[]), "");
        assert_eq!(id(&[boot, ("etc/machine-id", "uninitialized\n")]), "5d1c-boot");
        assert_eq!(id(&[boot, machine]), "3d1219c7-c4c5-404a-aa1f-6d2a48adfda4");
        assert_eq!(id(&[boot, machine, product]), "4c4c4544-0042-3510");
    }
}
