//! `port`, `addr`, `dns` and `interface`

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ccm_host::{Host, Transport};

use super::dns::{self, RecordType};
use super::{Found, Machine, Probe, chain, list, number, unknown, value};
use crate::compile::{self, Entry};

/// The largest file of a number in `/sys`.
const SMALL: u64 = 4096;

pub(super) struct Port<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for Port<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let (protocol, port) = compile::port(&self.entry.name)?;
        let bound = self.machine.listeners(protocol)?.iter();
        let mut bound = bound.filter(|found| found.port == port);
        match attribute {
            "listening" => value(bound.next().is_some()),
            "ip" => {
                let mut addresses: Vec<String> = bound.map(|found| found.ip.to_string()).collect();
                addresses.sort_unstable();
                addresses.dedup();
                list(addresses)
            }
            other => unknown(other),
        }
    }
}

pub(super) struct Addr<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for Addr<'_> {
    fn find(&mut self, _: &str) -> Result<Found, String> {
        let (transport, host, port) = compile::address(&self.entry.name)?;
        let local = self.entry.settings.text("local-address").and_then(|text| text.parse().ok());
        let timeout = self.machine.time(self.entry.timeout())?;
        value(is_reachable(&self.machine.host, transport, (host, port), local, timeout))
    }
}

/// Whether a port of a host can be connected to, from a local address if one is
/// given.
fn is_reachable(
    host: &Host,
    transport: Transport,
    (name, port): (&str, u16),
    local: Option<IpAddr>,
    timeout: Duration,
) -> bool {
    let deadline = Instant::now() + timeout;
    let addresses = host.resolve(name, timeout).unwrap_or_default();
    let mut fitting = addresses
        .into_iter()
        .filter(|ip| local.is_none_or(|local| local.is_ipv4() == ip.is_ipv4()));
    fitting.any(|ip| host.connect(transport, SocketAddr::new(ip, port), local, deadline).is_ok())
}

pub(super) struct Dns<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    answers: Option<Result<Vec<String>, String>>,
}

impl<'a> Dns<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, answers: None }
    }

    fn ask(&self) -> Result<Vec<String>, String> {
        let (kind, name) = compile::question(&self.entry.name);
        let timeout = self.machine.time(self.entry.timeout())?;
        let host = &self.machine.host;
        let Some(server) = self.entry.settings.text("server") else {
            let found = host.resolve(name, timeout)?;
            return Ok(found.iter().map(ToString::to_string).collect());
        };
        let server = compile::server(server)?;
        let kinds: &[RecordType] = match &kind {
            Some(kind) => std::slice::from_ref(kind),
            None => &[RecordType::A, RecordType::Aaaa],
        };
        let mut answers = Vec::new();
        for kind in kinds {
            answers.extend(dns::query(host, server, *kind, name, timeout)?);
        }
        answers.sort_unstable();
        Ok(answers)
    }
}

impl Probe for Dns<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        if self.answers.is_none() {
            self.answers = Some(self.ask());
        }
        let Some(answers) = &self.answers else { return unknown(attribute) };
        match attribute {
            // A name that cannot be resolved is just that, whatever the reason.
            "resolvable" => value(answers.as_ref().is_ok_and(|answers| !answers.is_empty())),
            "addrs" => list(answers.clone()?),
            other => unknown(other),
        }
    }
}

pub(super) struct Interface<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
}

impl<'a> Interface<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine }
    }

    fn mtu(&self) -> Result<Found, String> {
        let path = PathBuf::from("/sys/class/net").join(&self.entry.name).join("mtu");
        let (text, _) = self.machine.host.read_text(&path, SMALL).map_err(|error| chain(&error))?;
        let mtu = text.trim().parse::<i64>();
        number(mtu.map_err(|_| format!("{} holds no number", path.display()))?)
    }
}

impl Probe for Interface<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let all = self.machine.host.interfaces().map_err(|error| chain(&error))?;
        let found = all.into_iter().find(|interface| interface.name == self.entry.name);
        if attribute == "exists" {
            return value(found.is_some());
        }
        let found = found.ok_or_else(|| format!("there is no interface {}", self.entry.name))?;
        match attribute {
            "addrs" => {
                let addresses = found.addresses.iter();
                list(addresses.map(|address| format!("{}/{}", address.ip, address.prefix)))
            }
            "mtu" => self.mtu(),
            other => unknown(other),
        }
    }
}
