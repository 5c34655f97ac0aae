//! The kernel's routing tables, and the source addresses of the default routes.

use std::net::{IpAddr, Ipv4Addr};

use ccm_host::{Interface, InterfaceAddress};

/// The route is in use.
const UP: u32 = 0x1;
/// The route says that there is no way.
const REJECT: u32 = 0x200;

/// The best route to everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DefaultRoute {
    interface: String,
    metric: u32,
    /// Gateway, for IPv4.
    gateway: Option<Ipv4Addr>,
}

/// The default route in `/proc/net/route`.
pub(crate) fn default_v4(table: &str) -> Option<DefaultRoute> {
    best(table.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [interface, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
            return None;
        };
        let everywhere = is_zero(destination) && is_zero(mask);
        let usable = is_usable(u32::from_str_radix(flags, 16).ok()?);
        // The kernel prints an address in network order as one number.
        let gateway = u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes();
        (everywhere && usable).then_some(DefaultRoute {
            interface: interface.to_owned(),
            metric: metric.parse().ok()?,
            gateway: Some(gateway.into()).filter(|gateway: &Ipv4Addr| !gateway.is_unspecified()),
        })
    }))
}

/// The default route in `/proc/net/ipv6_route`.
pub(crate) fn default_v6(table: &str) -> Option<DefaultRoute> {
    best(table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [destination, bits, _, source_bits, _, metric, _, _, flags, interface] = fields[..]
        else {
            return None;
        };
        let everywhere = is_zero(destination) && is_zero(bits) && is_zero(source_bits);
        let usable = is_usable(u32::from_str_radix(flags, 16).ok()?);
        (everywhere && usable).then_some(DefaultRoute {
            interface: interface.to_owned(),
            metric: u32::from_str_radix(metric, 16).ok()?,
            gateway: None,
        })
    }))
}

fn is_zero(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
}

fn is_usable(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

/// Of routes that are equally good the first one.
fn best(routes: impl Iterator<Item = DefaultRoute>) -> Option<DefaultRoute> {
    routes.min_by_key(|route| route.metric)
}

/// The IPv6 addresses in `/proc/net/if_inet6` that are not to be used: not yet
/// known to be unique, known not to be, or on their way out; and those that
/// change all the time.
#[derive(Debug, Default)]
pub(crate) struct ExcludedAddresses {
    unusable: Vec<IpAddr>,
    temporary: Vec<IpAddr>,
}

impl ExcludedAddresses {
    pub(crate) fn parse(table: &str) -> Self {
        const TEMPORARY: u32 = 0x01;
        const FAILED: u32 = 0x08;
        const DEPRECATED: u32 = 0x20;
        const TENTATIVE: u32 = 0x40;
        let mut found = Self::default();
        for line in table.lines() {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [address, _, _, _, flags, ..] = fields[..] else { continue };
            let (Ok(bits), Ok(flags)) =
                (u128::from_str_radix(address, 16), u32::from_str_radix(flags, 16))
            else {
                continue;
            };
            let ip = IpAddr::from(bits.to_be_bytes());
            if flags & (FAILED | DEPRECATED | TENTATIVE) != 0 {
                found.unusable.push(ip);
            } else if flags & TEMPORARY != 0 {
                found.temporary.push(ip);
            }
        }
        found
    }
}

/// Whether others can reach the machine by this address.
pub(crate) fn is_global(ip: IpAddr) -> bool {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(link_local || ip.is_loopback() || ip.is_multicast() || ip.is_unspecified())
}

/// The address that packets along a route would bear: one of its interface, or
/// of any other where that has none.
pub(crate) fn source(
    route: &DefaultRoute,
    interfaces: &[Interface],
    v4: bool,
    excluded: &ExcludedAddresses,
) -> Option<IpAddr> {
    let candidates = interfaces
        .iter()
        .flat_map(|interface| interface.addresses.iter().map(move |address| (interface, address)));
    let candidates = candidates
        .filter(|(_, address)| address.ip.is_ipv4() == v4 && is_global(address.ip))
        .filter(|(_, address)| !excluded.unusable.contains(&address.ip));
    let rank = |(interface, address): &(&Interface, &InterfaceAddress)| {
        let elsewhere = interface.name != route.interface;
        let off_link = route.gateway.is_some_and(|gateway| !contains(address, gateway));
        let private = matches!(address.ip, IpAddr::V6(ip) if ip.is_unique_local());
        (elsewhere, off_link, private, excluded.temporary.contains(&address.ip))
    };
    candidates.min_by_key(rank).map(|(_, address)| address.ip)
}

fn contains(address: &InterfaceAddress, other: Ipv4Addr) -> bool {
    let IpAddr::V4(ip) = address.ip else { return false };
    let host_bits = 32u32.saturating_sub(address.prefix.into());
    (ip.to_bits() ^ other.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    fn number(ip: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(ip))
    }

    fn line(interface: &str, to: [u8; 4], via: [u8; 4], flags: &str, metric: u32) -> String {
        let mask = if to == [0; 4] { [0; 4] } else { [255, 255, 255, 0] };
        let (to, via, mask) = (number(to), number(via), number(mask));
        format!("{interface}\t{to}\t{via}\t{flags}\t0\t0\t{metric}\t{mask}\t0\t0\t0   \n")
    }

    fn route(interface: &str, metric: u32, gateway: Option<[u8; 4]>) -> DefaultRoute {
        let gateway = gateway.map(Ipv4Addr::from);
        DefaultRoute { interface: interface.to_owned(), metric, gateway }
    }

    fn interface(name: &str, addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|text| {
            let (ip, prefix) = text.split_once('/').unwrap();
            InterfaceAddress { ip: ip.parse().unwrap(), prefix: prefix.parse().unwrap() }
        });
        let addresses = addresses.collect();
        Interface { index: 1, name: name.to_owned(), flags: Vec::new(), addresses }
    }

    #[test]
    fn the_cheapest_way_out_is_the_default() {
        let via = [192, 0, 2, 1];
        let table = [
            HEADING.to_owned(),
            line("eth0", [0; 4], via, "0003", 100),
            line("wlan0", [0; 4], via, "0003", 50),
            line("down0", [0; 4], via, "0002", 1),
            line("dead0", [0; 4], via, "0201", 1),
            line("eth1", [10, 0, 0, 0], [0; 4], "0001", 0),
        ];
        assert_eq!(default_v4(&table.concat()), Some(route("wlan0", 50, Some(via))));
        assert_eq!(default_v4(HEADING), None);
        assert_eq!(default_v4(""), None);
        assert_eq!(default_v4("heading\nnonsense\na b c d e f g h\n"), None);
    }

    #[test]
    fn ipv6_default() {
        let zeros = "0".repeat(32);
        let gateway = "fd000000000000000000000000000001";
        let table = format!(
            "fd000000000000000000000000000000 40 {zeros} 00 {zeros} 00000100 00000001 00000000 00000001     eth0\n\
             {zeros} 00 {zeros} 00 {gateway} 00000400 00000002 00000000 00000003     eth0\n\
             {zeros} 00 {zeros} 00 {gateway} 00000200 00000002 00000000 00000003     eth1\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n"
        );
        assert_eq!(default_v6(&table), Some(route("eth1", 0x200, None)));
        let none = format!("{zeros} 00 {zeros} 00 {zeros} ffffffff 1 0 00200200 lo\nx\n");
        assert_eq!(default_v6(&none), None);
    }

    #[test]
    fn the_address_next_to_the_gateway_is_taken() {
        let interfaces = [
            interface("lo", &["127.0.0.1/8"]),
            interface("eth0", &["10.0.0.5/24", "192.0.2.7/24", "2001:db8::1/64"]),
        ];
        let nothing = ExcludedAddresses::default();
        let found = |route| source(&route, &interfaces, true, &nothing).map(|ip| ip.to_string());
        let eth0 = |gateway| found(route("eth0", 0, gateway)).unwrap();
        assert_eq!(eth0(Some([192, 0, 2, 1])), "192.0.2.7");
        assert_eq!(eth0(Some([203, 0, 113, 1])), "10.0.0.5");
        assert_eq!(eth0(None), "10.0.0.5");
        // A tunnel without an address of its own borrows one.
        assert_eq!(found(route("tun0", 0, None)).unwrap(), "10.0.0.5");
    }

    #[test]
    fn settled_global_ipv6_addresses_are_preferred() {
        let addresses =
            ["fe80::1/64", "fd00::2/64", "2001:db8::a/64", "2001:db8::b/64", "2001:db8::c/64"];
        let interfaces = [interface("eth0", &addresses)];
        let table = "20010db800000000000000000000000a 02 40 00 20     eth0\n\
                     20010db800000000000000000000000b 02 40 00 01     eth0\n\
                     20010db800000000000000000000000c 02 40 00 00     eth0\nnonsense\n";
        let excluded = ExcludedAddresses::parse(table);
        let route = route("eth0", 0, None);
        let found = source(&route, &interfaces, false, &excluded).unwrap();
        assert_eq!(found.to_string(), "2001:db8::c");
        let private = [interface("eth0", &addresses[..2])];
        let found = source(&route, &private, false, &excluded).unwrap();
        assert_eq!(found.to_string(), "fd00::2");
        let link_local = [interface("eth0", &addresses[..1])];
        assert_eq!(source(&route, &link_local, false, &excluded), None);
    }

    #[test]
    fn some_addresses_are_for_nobody_else() {
        for local in
            ["127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "::1", "fe80::1", "ff02::1"]
        {
            assert!(!is_global(local.parse().unwrap()), "{local}");
        }
        for global in ["10.0.0.1", "192.0.2.1", "fd00::1", "2001:db8::1"] {
            assert!(is_global(global.parse().unwrap()), "{global}");
        }
    }

    #[test]
    fn networks_contain_their_addresses() {
        let address = |text: &str| interface("x", &[text]).addresses[0];
        assert!(contains(&address("10.1.2.3/8"), [10, 9, 9, 9].into()));
        assert!(!contains(&address("10.1.2.3/24"), [10, 1, 3, 1].into()));
        assert!(contains(&address("10.1.2.3/0"), [192, 0, 2, 1].into()));
        assert!(contains(&address("10.1.2.3/32"), [10, 1, 2, 3].into()));
    }
}
