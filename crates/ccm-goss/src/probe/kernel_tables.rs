//! Tables of the kernel in `/proc`: sockets, processes, mounts.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ccm_host::{Error, Host, kernel_name};

use super::chain;

/// No table of the kernel is larger.
const LARGEST_TABLE: u64 = 1 << 30;
/// A command name has 15 bytes and a line end.
const LARGEST_NAME: u64 = 64;

/// The kinds of sockets that wait for someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TCP over IPv4.
    Tcp,
    /// TCP over IPv6, and over both where the address is `::`.
    Tcp6,
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    Udp6,
}

/// A socket that accepts connections or datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    /// Which table of the kernel it is in.
    pub(super) protocol: Protocol,
    /// The address that it is bound to.
    pub(super) ip: IpAddr,
    /// The port that it is bound to.
    pub(super) port: u16,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is mounted.
    pub(super) mountpoint: PathBuf,
    /// Its type, such as `ext4`.
    pub(super) filesystem: String,
    /// The device or share, or whatever its file system calls it.
    pub(super) source: String,
    /// The options of this mount.
    pub(super) options: Vec<String>,
    /// The options of the file system, which all its mounts share.
    pub(super) super_options: Vec<String>,
}

/// What a TCP socket in state `LISTEN` has in its column.
const LISTENING: &str = "0A";

/// The sockets of this network namespace that wait for someone: TCP in state
/// `LISTEN`, UDP in any state. Each table costs the kernel milliseconds, so only
/// the one in question is read.
pub(super) fn listeners(host: &Host, protocol: Protocol) -> Result<Vec<Listener>, String> {
    let path = Path::new(match protocol {
        Protocol::Tcp => "/proc/net/tcp",
        Protocol::Tcp6 => "/proc/net/tcp6",
        Protocol::Udp => "/proc/net/udp",
        Protocol::Udp6 => "/proc/net/udp6",
    });
    match host.read_text(path, LARGEST_TABLE) {
        Ok((table, _)) => Ok(table.lines().filter_map(|row| listener(row, protocol)).collect()),
        // A kernel without IPv6 has no table for it.
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(chain(&error)),
    }
}

/// The command names of all processes, each once. The kernel keeps 15 bytes of
/// them. A process that ends meanwhile is left out.
pub(super) fn process_names(host: &Host) -> Result<HashSet<Vec<u8>>, String> {
    let path = Path::new("/proc");
    let mut names = HashSet::new();
    for pid in host.list(path).map_err(|error| chain(&error))? {
        if !pid.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let file = path.join(pid).join("comm");
        if let Ok((mut name, _)) = host.read_bytes(&file, LARGEST_NAME) {
            if name.last() == Some(&b'\n') {
                name.pop();
            }
            names.insert(name);
        }
    }
    Ok(names)
}

/// All mounts of this mount namespace, in the order in which they were made.
pub(super) fn mounts(host: &Host) -> Result<Vec<Mount>, String> {
    let path = Path::new("/proc/self/mountinfo");
    let (table, _) = host.read_bytes(path, LARGEST_TABLE).map_err(|error| chain(&error))?;
    Ok(String::from_utf8_lossy(&table).lines().filter_map(mount).collect())
}

/// A row such as `0: 0100007F:0050 00000000:0000 0A …`.
fn listener(row: &str, protocol: Protocol) -> Option<Listener> {
    let mut columns = row.split_whitespace().skip(1);
    let (address, port) = columns.next()?.split_once(':')?;
    let state = columns.nth(1)?;
    if matches!(protocol, Protocol::Tcp | Protocol::Tcp6) && state != LISTENING {
        return None;
    }
    let ip = ip(address)?;
    Some(Listener { protocol, ip, port: u16::from_str_radix(port, 16).ok()? })
}

/// An address as words of 32 bits, each in the byte order of the machine.
fn ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[4 * at..4 * at + 4].copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// A row such as `36 35 98:0 / /mnt rw,noatime shared:1 - ext3 /dev/root rw`.
fn mount(row: &str) -> Option<Mount> {
    // A few optional fields stand before the dash.
    let (place, source) = row.split_once(" - ")?;
    let mut place = place.split(' ').skip(4);
    let mountpoint = PathBuf::from(kernel_name(place.next()?));
    let options = list(place.next()?);
    let mut source = source.split(' ');
    let text = |name: &str| kernel_name(name).to_string_lossy().into_owned();
    Some(Mount {
        mountpoint,
        filesystem: text(source.next()?),
        source: text(source.next()?),
        options,
        super_options: list(source.next().unwrap_or_default()),
    })
}

fn list(options: &str) -> Vec<String> {
    options.split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test compares with the kernel's own answer")]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn sockets_that_listen_are_found_and_others_are_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let has = |protocol, address: std::net::SocketAddr| {
            let found = listeners(&Host::new(), protocol).unwrap();
            found.contains(&Listener { protocol, ip: address.ip(), port: address.port() })
        };
        assert!(has(Protocol::Tcp, tcp.local_addr().unwrap()));
        assert!(has(Protocol::Udp, udp.local_addr().unwrap()));
        assert!(!has(Protocol::Tcp, client.local_addr().unwrap()), "it is connected");
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn rows_of_the_kernel_are_read() {
        let row = "   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000";
        let found = listener(row, Protocol::Tcp).unwrap();
        assert_eq!((found.ip, found.port), ([127, 0, 0, 1].into(), 80));
        let row = "1: 00000000000000000000000001000000:1F90 0:0 0A";
        let found = listener(row, Protocol::Tcp6).unwrap();
        assert_eq!((found.ip, found.port), (Ipv6Addr::LOCALHOST.into(), 8080));
        for row in ["", "sl local_address rem st", "0: x:y 0 0A", "0: 0100007F:0050 0:0 01"] {
            assert_eq!(listener(row, Protocol::Tcp), None, "{row}");
        }
    }

    #[test]
    fn processes_have_their_names() {
        let own = std::fs::read("/proc/self/comm").unwrap();
        let names = process_names(&Host::new()).unwrap();
        assert!(names.contains(own.strip_suffix(b"\n").unwrap()));
        assert!(!names.contains(&b"no-such-process"[..]));
    }

    #[test]
    fn mounts_are_those_of_the_kernel() {
        let mounts = mounts(&Host::new()).unwrap();
        let proc = mounts.iter().find(|mount| mount.mountpoint == Path::new("/proc")).unwrap();
        assert_eq!(proc.filesystem, "proc");
        let row =
            "36 35 98:0 / /mnt/a\\040b rw,noatime master:1 shared:2 - ext4 /dev/root rw,quota";
        let found = mount(row).unwrap();
        assert_eq!(found.mountpoint, Path::new("/mnt/a b"));
        assert_eq!((found.filesystem.as_str(), found.source.as_str()), ("ext4", "/dev/root"));
        assert_eq!(found.options, ["rw", "noatime"]);
        assert_eq!(found.super_options, ["rw", "quota"]);
        assert_eq!(mount("36 35 98:0 / /mnt rw"), None);
    }
}
