//! `service`, by systemd.

use std::cell::OnceCell;
use std::time::Duration;

use ccm_host::{Command, Exit};

use super::{Found, Machine, Probe, chain, unknown, value};
use crate::compile::Entry;

/// systemd answers within moments, or not at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// Enough for the properties of every service of a machine.
const CAPTURE: usize = 8 << 20;

/// The services of a try, all asked for at once: one process costs more than
/// what it asks.
pub(super) struct Services {
    names: Vec<String>,
    units: OnceCell<Result<Vec<Unit>, String>>,
}

#[derive(Debug, Default)]
struct Unit {
    names: Vec<String>,
    is_running: bool,
    is_enabled: bool,
}

impl Services {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, units: OnceCell::new() }
    }

    fn units(&self, machine: &Machine) -> Result<&[Unit], String> {
        self.units.get_or_init(|| self.ask(machine)).as_deref().map_err(Clone::clone)
    }

    fn ask(&self, machine: &Machine) -> Result<Vec<Unit>, String> {
        let host = &machine.host;
        if !host.which("systemctl") {
            return Err("this machine has no systemd".to_owned());
        }
        let names = self.names.iter().filter(|name| is_name(name)).map(|name| unit_name(name));
        let properties = ["show", "--system", "--property=Names,ActiveState,UnitFileState", "--"];
        let args = properties.into_iter().map(str::to_owned).chain(names);
        let command = Command::new("systemctl", args)
            .query()
            .capture(CAPTURE)
            .timeout(Some(machine.time(PATIENCE)?));
        let output = host
            .exclusively("systemctl", || machine.run(&command))
            .map_err(|error| chain(&error))?;
        if output.exit != Exit::Code(0) {
            return Err(format!("systemctl {}: {}", output.exit, output.stderr_tail(1)));
        }
        Ok(parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// The properties of each unit, a blank line between them.
fn parse(text: &str) -> Vec<Unit> {
    let unit = |block: &str| {
        let mut unit = Unit::default();
        for line in block.lines() {
            match line.split_once('=') {
                Some(("Names", names)) => {
                    unit.names = names.split_whitespace().map(str::to_owned).collect();
                }
                Some(("ActiveState", word)) => {
                    unit.is_running = matches!(word, "active" | "reloading" | "refreshing");
                }
                Some(("UnitFileState", word)) => unit.is_enabled = is_enabled(word),
                _ => {}
            }
        }
        unit
    };
    text.split("\n\n").filter(|block| !block.trim().is_empty()).map(unit).collect()
}

/// What `systemctl is-enabled` calls a success.
fn is_enabled(word: &str) -> bool {
    matches!(
        word,
        "enabled" | "enabled-runtime" | "static" | "alias" | "indirect" | "generated" | "transient"
    )
}

/// Whether systemd can have a unit of this name. It would take other characters
/// for a pattern.
fn is_name(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    !name.is_empty() && name.len() < 256 && name.chars().all(is_known)
}

/// The unit that a name without an ending means.
fn unit_name(name: &str) -> String {
    const ENDINGS: [&str; 11] = [
        "service",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "target",
        "path",
        "timer",
        "slice",
        "scope",
    ];
    let has_ending = name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
    if has_ending { name.to_owned() } else { format!("{name}.service") }
}

pub(super) struct Service<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for Service<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let name = &self.entry.name;
        if !is_name(name) {
            return Err("this is not the name of a unit".to_owned());
        }
        let units = self.machine.services.units(self.machine)?;
        let wanted = unit_name(name);
        let unit = units.iter().find(|unit| unit.names.contains(&wanted));
        match attribute {
            "running" => value(unit.is_some_and(|unit| unit.is_running)),
            "enabled" => value(unit.is_some_and(|unit| unit.is_enabled)),
            other => unknown(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_systemctl_are_read() {
        let text = "Names=ssh.service sshd.service\nActiveState=active\nUnitFileState=enabled\n\n\
                    Names=no-such.service\nActiveState=inactive\nUnitFileState=\n";
        let units = parse(text);
        assert_eq!(units.len(), 2);
        assert_eq!(units[0].names, ["ssh.service", "sshd.service"]);
        assert!(units[0].is_running && units[0].is_enabled);
        assert!(!units[1].is_running && !units[1].is_enabled);
        assert_eq!(parse("").len(), 0);
    }

    #[test]
    fn names_are_those_of_units() {
        assert_eq!(unit_name("ssh"), "ssh.service");
        assert_eq!(unit_name("a.b"), "a.b.service");
        assert_eq!(unit_name("x.timer"), "x.timer");
        for name in ["", "a*", "a b", "../x", "é", "[a]"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("getty@tty1"));
    }
}
