//! Network interfaces and their addresses.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use crate::{Error, Host, Result};

/// A network interface as the kernel lists it, without its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The number by which the kernel's tables refer to it.
    pub index: u32,
    /// The name that administrators use, such as `eth0`.
    pub name: String,
    /// Its flags, as words: `up`, `broadcast`, `loopback`, `pointtopoint`,
    /// `multicast`, in this order.
    pub flags: Vec<&'static str>,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// IPv4 or IPv6, without the length of its prefix.
    pub ip: IpAddr,
    /// How many bits of it name the network.
    pub prefix: u8,
}

impl Host {
    /// All network interfaces, by number. Read from the kernel.
    pub fn interfaces(&self) -> Result<Vec<Interface>> {
        let mut interfaces: Vec<Interface> = Vec::new();
        let found = getifaddrs().map_err(|errno| {
            Error::std_io("list", Path::new("network interfaces"))(errno.into())
        })?;
        for entry in found {
            // An alias such as `eth0:1` is a label of an address, not an interface.
            let name = entry.interface_name.split(':').next().unwrap_or_default();
            let at = interfaces.iter().position(|have| have.name == name).unwrap_or_else(|| {
                interfaces.push(Interface {
                    index: nix::net::if_::if_nametoindex(name).unwrap_or_default(),
                    name: name.to_owned(),
                    flags: words(entry.flags),
                    addresses: Vec::new(),
                });
                interfaces.len() - 1
            });
            if let Some(ip) = entry.address.as_ref().and_then(ip_of) {
                let prefix = entry.netmask.as_ref().and_then(ip_of).map_or(0, ones);
                interfaces[at].addresses.push(InterfaceAddress { ip, prefix });
            }
        }
        interfaces.sort_by_key(|interface| interface.index);
        Ok(interfaces)
    }
}

fn words(flags: InterfaceFlags) -> Vec<&'static str> {
    let known = [
        (InterfaceFlags::IFF_UP, "up"),
        (InterfaceFlags::IFF_BROADCAST, "broadcast"),
        (InterfaceFlags::IFF_LOOPBACK, "loopback"),
        (InterfaceFlags::IFF_POINTOPOINT, "pointtopoint"),
        (InterfaceFlags::IFF_MULTICAST, "multicast"),
    ];
    known.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, word)| word).collect()
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    ones as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interfaces_are_those_of_the_kernel() {
        let found = Host::new().interfaces().unwrap();
        for interface in &found {
            let path = Path::new("/sys/class/net").join(&interface.name).join("ifindex");
            let index = std::fs::read_to_string(path).unwrap();
            assert_eq!(interface.index.to_string(), index.trim());
        }
        assert!(found.is_sorted_by_key(|interface| interface.index));
    }

    #[test]
    fn the_loopback_has_its_address() {
        let found = Host::new().interfaces().unwrap();
        let Some(lo) = found.iter().find(|interface| interface.flags.contains(&"loopback")) else {
            return;
        };
        if lo.flags.contains(&"up") {
            let wanted = InterfaceAddress { ip: [127, 0, 0, 1].into(), prefix: 8 };
            assert!(lo.addresses.contains(&wanted), "{lo:?}");
        }
    }

    #[test]
    fn masks_are_counted() {
        assert_eq!(ones([255, 255, 240, 0].into()), 20);
        assert_eq!(ones([0; 4].into()), 0);
        assert_eq!(ones([0xffff, 0xffff, 0, 0, 0, 0, 0, 0].into()), 32);
    }
}
