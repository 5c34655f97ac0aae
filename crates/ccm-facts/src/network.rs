//! `network`: interfaces, their addresses, and the addresses of the default
//! routes.

use std::net::IpAddr;

use ccm_host::Interface;
use govalue::Value;

use crate::map;
use crate::route::{self, ExcludedAddresses};
use crate::tree::Tree;

pub(crate) fn facts(tree: &Tree<'_>) -> Value {
    let interfaces = tree.host.interfaces().unwrap_or_else(|error| {
        tree.host.warn(format!("there are no network facts: {error}"));
        Vec::new()
    });
    let text = |path: &str| tree.text(path).unwrap_or_default();
    let excluded = ExcludedAddresses::parse(&text("proc/net/if_inet6"));
    let default_route = |route: Option<route::DefaultRoute>, v4| {
        route.and_then(|route| route::source(&route, &interfaces, v4, &excluded))
    };
    let v4 = default_route(route::default_v4(&text("proc/net/route")), true);
    let v6 = default_route(route::default_v6(&text("proc/net/ipv6_route")), false);
    map([
        ("interfaces", Value::array(interfaces.iter().map(|found| interface(found, tree)))),
        ("addresses", Value::array(addresses(&interfaces, [v4, v6]))),
        ("default_ipv4", shown(v4)),
        ("default_ipv6", shown(v6)),
        ("primaryIP", shown(v4.or(v6))),
    ])
}

fn shown(ip: Option<IpAddr>) -> Value {
    ip.map(|ip| ip.to_string()).unwrap_or_default().into()
}

fn interface(interface: &Interface, tree: &Tree<'_>) -> Value {
    let read = |name: &str| tree.line(format!("sys/class/net/{}/{name}", interface.name));
    let mtu = read("mtu").and_then(|mtu| mtu.parse::<i64>().ok()).unwrap_or_default();
    let hardware = read("address").filter(|address| is_hardware_address(address));
    let addresses = interface
        .addresses
        .iter()
        .map(|address| map([("addr", format!("{}/{}", address.ip, address.prefix).into())]));
    map([
        ("index", i64::from(interface.index).into()),
        ("mtu", mtu.into()),
        ("name", interface.name.as_str().into()),
        ("hardwareAddr", hardware.unwrap_or_default().into()),
        ("flags", Value::array(interface.flags.iter().map(|&flag| flag.into()))),
        ("addrs", Value::array(addresses)),
    ])
}

/// Whether this names hardware: the loopback's zeros do not, nor do the IP
/// addresses that tunnels have here.
fn is_hardware_address(text: &str) -> bool {
    let bytes: Option<Vec<_>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.is_some_and(|bytes| bytes.len() >= 6 && bytes.iter().any(|&byte| byte != 0))
}

/// The addresses by which others reach the machine.
fn addresses(interfaces: &[Interface], defaults: [Option<IpAddr>; 2]) -> Vec<Value> {
    let all = interfaces.iter().flat_map(|interface| {
        interface.addresses.iter().map(|address| (interface.name.as_str(), address.ip))
    });
    all.filter(|(_, ip)| route::is_global(*ip))
        .map(|(interface, ip)| {
            map([
                ("interface", interface.into()),
                ("address", ip.to_string().into()),
                ("ipv4", ip.is_ipv4().into()),
                ("default", defaults.contains(&Some(ip)).into()),
            ])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ccm_host::InterfaceAddress;

    use super::*;

    #[test]
    fn addresses_say_whether_they_are_the_default() {
        let address = |ip: &str| InterfaceAddress { ip: ip.parse().unwrap(), prefix: 24 };
        let interfaces = [Interface {
            index: 2,
            name: "eth0".to_owned(),
            flags: vec!["up"],
            addresses: ["192.0.2.2", "192.0.2.3", "fd00::2", "fe80::1"].map(address).to_vec(),
        }];
        let defaults = ["192.0.2.3", "fd00::2"].map(|ip| Some(ip.parse().unwrap()));
        let found: Vec<_> =
            addresses(&interfaces, defaults).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "map[address:192.0.2.2 default:false interface:eth0 ipv4:true]",
                "map[address:192.0.2.3 default:true interface:eth0 ipv4:true]",
                "map[address:fd00::2 default:true interface:eth0 ipv4:false]",
            ]
        );
    }

    #[test]
    fn hardware_addresses() {
        assert!(is_hardware_address("02:fc:00:00:00:01"));
        let infiniband = ["80"; 20].join(":");
        assert!(is_hardware_address(&infiniband));
        for text in ["00:00:00:00:00:00", "0.0.0.0", "", "c0:00:02:01", "xx:00:00:00:00:00"] {
            assert!(!is_hardware_address(text), "{text}");
        }
    }
}
