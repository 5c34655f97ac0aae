//! `package`, from the database of dpkg or rpm.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ccm_host::{Command, Exit, Host, Stat};

use super::{Found, Machine, Probe, chain, list, unknown, value};
use crate::compile::Entry;

/// What dpkg knows of all packages. Reading it costs a fraction of a process.
const STATUS: &str = "/var/lib/dpkg/status";
/// What dpkg has not written into it yet.
const UPDATES: &str = "/var/lib/dpkg/updates";
const LARGEST_STATUS: u64 = 256 << 20;
const FORMAT: &str = "--queryformat=%{NAME}\\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n";
/// As many packages of a long list are told of.
const CAPTURE: usize = 8 << 20;
/// rpm may wait for another one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Versions by name, and by name and architecture.
type Versions = HashMap<String, Vec<String>>;

/// The packages of a try. rpm is asked for all of them at once.
pub(super) struct Packages {
    names: Vec<String>,
    versions: OnceCell<Result<Arc<Versions>, String>>,
}

impl Packages {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, versions: OnceCell::new() }
    }

    fn versions(&self, machine: &Machine) -> Result<&Versions, String> {
        self.versions.get_or_init(|| self.read(machine)).as_deref().map_err(Clone::clone)
    }

    fn read(&self, machine: &Machine) -> Result<Arc<Versions>, String> {
        let host = &machine.host;
        let is_there = |path: &str| matches!(host.stat(Path::new(path)), Ok(Some(_)));
        let (has_dpkg, has_rpm) = (is_there(STATUS), host.which("rpm"));
        // Where both are, the distribution decides.
        if has_dpkg && (!has_rpm || is_there("/etc/debian_version")) {
            return dpkg(machine);
        }
        if has_rpm {
            return self.rpm(machine).map(Arc::new);
        }
        Err("this machine has neither dpkg nor rpm".to_owned())
    }

    fn rpm(&self, machine: &Machine) -> Result<Versions, String> {
        let names = self.names.iter().map(String::as_str).filter(|name| !name.contains('\0'));
        let command = Command::new("rpm", ["--query", FORMAT, "--"].into_iter().chain(names))
            .query()
            .capture(CAPTURE)
            .timeout(Some(machine.time(PATIENCE)?));
        let output = machine.run(&command).map_err(|error| chain(&error))?;
        // The code is the number of packages that are missing.
        match output.exit {
            Exit::Code(_) => Ok(parse_rpm(&String::from_utf8_lossy(&output.stdout))),
            exit @ Exit::Signal(_) => Err(format!("rpm {exit}")),
        }
    }
}

fn parse_rpm(text: &str) -> Versions {
    let mut versions = Versions::new();
    for (name, version) in text.lines().filter_map(|line| line.split_once('\t')) {
        versions.entry(name.to_owned()).or_default().push(version.to_owned());
    }
    versions
}

/// What a run has read of dpkg, as long as its file stays the same.
#[derive(Default)]
struct Known(Mutex<Option<(FileIdentity, Arc<Versions>)>>);

type FileIdentity = (u64, u64, u64, i64, i32);

fn identity(stat: &Stat) -> FileIdentity {
    let time = stat.mtime;
    (stat.dev, stat.ino, stat.size, time.as_second(), time.subsec_nanosecond())
}

fn dpkg(machine: &Machine) -> Result<Arc<Versions>, String> {
    let host = &machine.host;
    let said = |error: ccm_host::Error| chain(&error);
    let known = host.cached::<Known>();
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(STATUS);
    if has_updates(host) {
        // dpkg is at work, and only its own tool sees both.
        return dpkg_query(machine).map(Arc::new);
    }
    let (file, stat) = host.open(path).map_err(said)?;
    drop(file);
    if let Some((then, versions)) = &*known
        && *then == identity(&stat)
    {
        return Ok(Arc::clone(versions));
    }
    let (text, stat) = host.read_bytes(path, LARGEST_STATUS).map_err(said)?;
    let versions = Arc::new(parse_status(&String::from_utf8_lossy(&text)));
    *known = Some((identity(&stat), Arc::clone(&versions)));
    Ok(versions)
}

/// Whether dpkg keeps changes in files of their own, named by numbers.
fn has_updates(host: &Host) -> bool {
    let names = host.list(Path::new(UPDATES)).unwrap_or_default();
    names.iter().any(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

fn dpkg_query(machine: &Machine) -> Result<Versions, String> {
    let format = "-f=Package: ${Package}\\nStatus: ${Status}\\nArchitecture: ${Architecture}\\nVersion: \
         ${Version}\\n\\n";
    let command = Command::new("dpkg-query", ["-W", format])
        .query()
        .capture(64 << 20)
        .timeout(Some(machine.time(PATIENCE)?));
    let output = machine.run(&command).map_err(|error| chain(&error))?;
    Ok(parse_status(&String::from_utf8_lossy(&output.stdout)))
}

/// Paragraphs of fields, a blank line between them.
fn parse_status(text: &str) -> Versions {
    let mut versions = Versions::new();
    for paragraph in text.split("\n\n") {
        let [mut name, mut status, mut architecture, mut version] = [""; 4];
        for line in paragraph.lines() {
            let Some((field, value)) = line.split_once(':') else { continue };
            let field = match field {
                "Package" => &mut name,
                "Status" => &mut status,
                "Architecture" => &mut architecture,
                "Version" => &mut version,
                _ => continue,
            };
            *field = value.trim();
        }
        if name.is_empty() || status.split(' ').next_back() != Some("installed") {
            continue;
        }
        for name in [name.to_owned(), format!("{name}:{architecture}")] {
            versions.entry(name).or_default().push(version.to_owned());
        }
    }
    versions
}

pub(super) struct Package<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for Package<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let versions = self.machine.packages.versions(self.machine)?.get(&self.entry.name);
        match attribute {
            "installed" => value(versions.is_some()),
            "versions" => list(versions.into_iter().flatten().map(String::as_str)),
            other => unknown(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_dpkg_is_read() {
        let text = "Package: zsh\nStatus: install ok installed\nArchitecture: amd64\n\
                    Version: 5.9-4\nDescription: shell\n Version: no field\n\n\
                    Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                    Package: half\nStatus: install ok half-installed\nVersion: 1\n";
        let versions = parse_status(text);
        assert_eq!(versions["zsh"], ["5.9-4"]);
        assert_eq!(versions["zsh:amd64"], ["5.9-4"]);
        assert_eq!(versions.len(), 2, "{versions:?}");
    }

    #[test]
    fn the_answer_of_rpm_is_read() {
        let text = "bash\t5.2.15-1.el9\npackage nope is not installed\n\
                    bind\t32:9.16.23-1.el9\nbash\t5.3.0-1.el9\n";
        let versions = parse_rpm(text);
        assert_eq!(versions["bash"], ["5.2.15-1.el9", "5.3.0-1.el9"]);
        assert_eq!(versions["bind"], ["32:9.16.23-1.el9"]);
        assert_eq!(versions.len(), 2);
    }
}
