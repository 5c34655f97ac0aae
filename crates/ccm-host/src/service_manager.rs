//! Notifies the service manager that started this process. systemd's protocol
//! is one datagram per message.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::Host;

/// Variables that are for this process, not for those that it starts.
pub const SERVICE_VARIABLES: &[&str] = &["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// The service manager that started this process, if it accepts notifications.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The service manager that the environment names.
    pub fn find(host: &Host) -> Self {
        let socket = host.env("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
                [b'/', ..] => SocketAddr::from_pathname(&name),
                _ => return None,
            };
            let socket = UnixDatagram::unbound().ok()?;
            // A manager that does not read must not stop this process.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address.ok()?))
        });
        let number = |name| host.env(name)?.to_str()?.parse::<u64>().ok();
        let is_for_us =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&limit| limit > 0 && is_for_us);
        let watchdog = watchdog.filter(|_| socket.is_some()).map(Duration::from_micros);
        Self { socket, watchdog }
    }

    /// Sends a message such as `READY=1`; does nothing without a service manager.
    pub fn tell(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }

    /// How long the manager may hear nothing before it ends this process.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }
}
