//! The provider `systemd`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ccm_engine::{Error, ProviderDef, Result};
use ccm_host::{ChangeCounters, Command, FileKind, Host, Output};

use super::predicted::{self, Outlook, PredictedServices};
use super::{Action, Manager, Order, Provider, Service, State};

const NAME: &str = "systemd";

/// Where unit files are.
pub(super) const UNIT_DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// How the directories begin in which generators put the units that they make of
/// other files.
const GENERATED: &str = "/run/systemd/generator";

/// systemd makes it when it boots a machine.
const BOOTED: &str = "/run/systemd/system";

/// A service that dies as soon as it has started is still active in the first
/// moment.
const STARTUP_GRACE: Duration = Duration::from_millis(250);

/// Only one run of a process calls it at a time.
const TOOL: &str = "systemctl";

pub(super) const DEF: ProviderDef<Service> = ProviderDef {
    name: NAME,
    rank: |host, _| host.which("systemctl").then_some(1),
    open: |host| Box::new(Systemd { host: host.clone(), is_started: false }),
};

struct Systemd {
    host: Host,
    /// It was started for this resource, so it should run.
    is_started: bool,
}

/// What the run knows of the unit files that systemd has loaded.
#[derive(Default)]
struct Loaded(Mutex<Option<Knowledge>>);

#[derive(Clone, Copy)]
struct Knowledge {
    /// The unit files.
    units: u64,
    /// What had changed on the machine when they were looked at.
    seen: ChangeCounters,
    /// What had changed on the machine when this run made systemd read them, and
    /// run its generators; `None` if it has not yet.
    reloaded: Option<ChangeCounters>,
}

/// What systemd has said of several services at once: whether they are active and
/// enabled, in its words. It holds as long as nothing has changed.
#[derive(Default)]
struct Surveyed(Mutex<Option<(ChangeCounters, WordsByService)>>);

type WordsByService = HashMap<String, (String, String)>;

impl Loaded {
    fn get(&self) -> Option<Knowledge> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, knowledge: Knowledge) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(knowledge);
    }
}

impl Systemd {
    /// Asks about several services; one line for each, if systemd knows all of them.
    /// It finishes when the run is interrupted: what was started a moment before is
    /// still to be verified.
    fn ask(&self, verb: &str, services: &[&str]) -> Result<Output> {
        let words = [verb, "--system"].into_iter().chain(services.iter().copied());
        let command = Command::new("systemctl", words).query().uninterruptible();
        Ok(self.host.exclusively(TOOL, || self.host.run(&command, &mut |_, _| {}))?)
    }

    /// What was said of a service when several were looked at.
    fn surveyed(&self, service: &str) -> Option<(String, String)> {
        let known = self.host.cached::<Surveyed>();
        let known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, words) = known.as_ref()?;
        words.get(service).filter(|_| *then == self.host.changes()).cloned()
    }

    fn query(&self, verb: &str, service: &str) -> Result<(Output, String)> {
        let output = self.ask(verb, &[service])?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let word = answer.lines().last().unwrap_or_default().trim().to_owned();
        Ok((output, word))
    }

    fn change(&self, args: &[&str]) -> Result<(), ccm_host::Error> {
        let command = Command::new("systemctl", args);
        self.host.exclusively(TOOL, || self.host.run_checked(&command, &mut |_, _| {})).map(drop)
    }

    /// Starts, restarts or reloads a service; what it said goes into the error.
    fn bring_up(&mut self, verb: &str, service: &str) -> Result<()> {
        self.read_units()?;
        self.update_units(&[service])?;
        let mut done = self.change(&[verb, "--system", service]);
        if let Err(ccm_host::Error::Failed { last_words, .. }) = &mut done {
            let journal = self.journal(service);
            if !journal.is_empty() {
                last_words.push('\n');
                last_words.push_str(&journal);
            }
        }
        done?;
        self.is_started = true;
        std::thread::sleep(STARTUP_GRACE);
        Ok(())
    }

    /// The last that a service said, as far as anybody can know.
    fn journal(&self, service: &str) -> String {
        if !self.host.which("journalctl") {
            return String::new();
        }
        let run = |args: &[&str]| {
            let command = Command::new("journalctl", args).query();
            self.host.run(&command.timeout(Some(Duration::from_secs(10))), &mut |_, _| {})
        };
        let _ = run(&["--sync"]);
        let shown =
            run(&["--no-pager", "--quiet", "--output=cat", "--lines=10", "--unit", service]);
        shown.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned(),
        )
    }

    /// Properties of a unit as systemd has loaded it, one `NAME=VALUE` per line.
    fn show(&self, services: &[&str], properties: &[&str]) -> Result<String> {
        let properties = properties.iter().map(|property| format!("--property={property}"));
        let args = ["show".to_owned(), "--system".to_owned()].into_iter().chain(properties);
        let services = services.iter().map(|&service| service.to_owned());
        let args = args.chain(["--".to_owned()]).chain(services);
        let command = Command::new("systemctl", args).query();
        let output = self.host.exclusively(TOOL, || self.host.run(&command, &mut |_, _| {}))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes systemd read all unit files again, and run its generators.
    fn reload_units(&self) -> Result<()> {
        // Looked at first: what changes meanwhile is then seen the next time.
        let units = unit_files(&self.host)?;
        self.change(&["daemon-reload"])?;
        self.note_reload(units);
        Ok(())
    }

    /// Takes note that systemd knows these unit files.
    fn note_reload(&self, units: u64) {
        let now = self.host.changes();
        self.host.cached::<Loaded>().set(Knowledge { units, seen: now, reloaded: Some(now) });
    }

    /// Whether unit files, or what generators read, may have changed since systemd
    /// has read them. Only a run that may reload unit files knows.
    fn may_have_new_units(&self) -> bool {
        let known = self.host.cached::<Loaded>().get();
        known.is_some_and(|known| known.reloaded != Some(self.host.changes()))
    }

    /// Makes systemd read all unit files before this run changes a service for the
    /// first time. A run that finds all services as desired needs no reload.
    fn read_units(&self) -> Result<()> {
        match self.host.cached::<Loaded>().get() {
            Some(Knowledge { reloaded: None, .. }) => self.reload_units(),
            _ => Ok(()),
        }
    }

    /// Whether systemd has read the unit files for this run. It has not where
    /// nothing is prepared, as in a preview: what is in the files then counts too.
    fn has_loaded_units(&self) -> bool {
        self.host.cached::<Loaded>().get().is_some()
    }

    /// Reloads unit files if a unit that systemd has loaded is out of date. Not
    /// every generator tells systemd which files it reads, so what generators
    /// make is out of date after any change.
    fn update_units(&self, services: &[&str]) -> Result<()> {
        let units = self.show(services, &["NeedDaemonReload", "FragmentPath", "DropInPaths"])?;
        let is_stale = units.lines().any(|line| line == "NeedDaemonReload=yes");
        if is_stale || units.contains(GENERATED) && self.may_have_new_units() {
            self.reload_units()?;
        }
        Ok(())
    }
}

/// Changes whenever a unit file or drop-in does. Links that only order what
/// starts with what are left out: `enable` makes them and tells systemd.
fn unit_files(host: &Host) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for directory in UNIT_DIRECTORIES.map(Path::new) {
        look_through(host, directory, &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn look_through(host: &Host, directory: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let Some(folder) = host.open_folder(directory)? else { return Ok(()) };
    for name in folder.names()? {
        let path = directory.join(&name);
        let Some(stat) = host.lstat(&path)? else { continue };
        match stat.kind {
            FileKind::Directory if name.to_string_lossy().ends_with(".d") => {
                look_through(host, &path, hasher)?;
            }
            FileKind::Directory => {}
            _ => (&path, stat.size, stat.mtime).hash(hasher),
        }
    }
    Ok(())
}

/// Whether an answer of `is-active` means that the service runs.
fn is_running(word: &str) -> Option<bool> {
    match word {
        "active" => Some(true),
        "inactive" | "failed" | "activating" => Some(false),
        _ => None,
    }
}

/// Whether an answer of `is-enabled` means that the service starts at boot.
fn is_enabled(word: &str) -> Option<bool> {
    match word {
        "enabled" | "enabled-runtime" | "alias" | "static" | "indirect" | "generated"
        | "transient" => Some(true),
        "linked" | "linked-runtime" | "masked" | "masked-runtime" | "disabled" => Some(false),
        _ => None,
    }
}

fn invalid(verb: &str, word: &str, output: &Output) -> Error {
    let reason = format!("invalid systemctl {verb} output: {word:?}");
    Error::refused(match output.stderr_tail(10).as_str() {
        "" => reason,
        words => format!("{reason}\n{words}"),
    })
}

fn not_found(service: &str) -> Error {
    Error::Missing {
        reason: format!("service not found: {service}"),
        hint: Some("`systemctl list-unit-files` lists the available services".to_owned()),
        by: None,
    }
}

/// Whether systemd runs. It does not in a container, a chroot, or an image that
/// is being built.
fn manager(host: &Host) -> Result<Manager> {
    let is_booted =
        host.stat(Path::new(BOOTED))?.is_some_and(|stat| stat.kind == FileKind::Directory);
    // The first process has another root directory: systemctl answers nothing
    // then, even where /run is that of the machine around it.
    let first = match host.stat(Path::new("/proc/1/root")) {
        // Only root may look there. Others are taken not to be in a chroot.
        Err(ccm_host::Error::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            None
        }
        first => first?,
    };
    let is_chroot = match (first, host.stat(Path::new("/"))?) {
        (Some(first), Some(own)) => (first.dev, first.ino) != (own.dev, own.ino),
        _ => false,
    };
    Ok(if is_booted && !is_chroot { Manager::Online } else { Manager::Offline })
}

/// The state that a preview expects.
fn foreseen(service: &str, outlook: Outlook, manager: Manager) -> State {
    let active = if outlook.running { "active" } else { "inactive" };
    let boot = if outlook.enabled { "enabled" } else { "disabled" };
    State {
        name: service.to_owned(),
        provider: NAME,
        running: outlook.running,
        manager,
        is_deferred: false,
        lacks_reload: false,
        enabled: outlook.enabled,
        words: (active.to_owned(), boot.to_owned()),
        last_words: String::new(),
    }
}

impl Provider for Systemd {
    fn prepare(&mut self) -> Result<()> {
        if manager(&self.host)? == Manager::Offline {
            return Ok(());
        }
        let loaded = self.host.cached::<Loaded>();
        let now = self.host.changes();
        let Some(known) = loaded.get() else {
            let units = unit_files(&self.host)?;
            loaded.set(Knowledge { units, seen: now, reloaded: None });
            return Ok(());
        };
        if known.seen == now {
            return Ok(());
        }
        if unit_files(&self.host)? == known.units {
            loaded.set(Knowledge { seen: now, ..known });
            return Ok(());
        }
        self.reload_units()
    }

    fn status(&mut self, service: &str) -> Result<State> {
        if let Some(outlook) = self.host.predicted::<PredictedServices>().get(service) {
            return Ok(foreseen(service, outlook, manager(&self.host)?));
        }
        match self.present_status(service) {
            Err(Error::Missing { .. }) if !self.has_loaded_units() => {
                let unit = predicted::new_unit(&self.host, service);
                let outlook = unit.ok_or_else(|| not_found(service))?;
                Ok(foreseen(service, outlook, manager(&self.host)?))
            }
            Err(Error::Missing { .. }) if self.may_have_new_units() => {
                self.reload_units()?;
                self.present_status(service)
            }
            other => other,
        }
    }

    fn predict(&mut self, action: &Action) -> Result<()> {
        let state = self.status(&action.service)?;
        let now = Outlook { running: state.running, enabled: state.enabled };
        self.host.predicted::<PredictedServices>().record(action, now);
        Ok(())
    }

    fn survey(&mut self, services: &[&str]) -> Result<()> {
        let is_known = services.first().is_some_and(|first| self.surveyed(first).is_some());
        if is_known || manager(&self.host)? == Manager::Offline {
            return Ok(());
        }
        let lines = |output: &Output| -> Vec<String> {
            let answer = String::from_utf8_lossy(&output.stdout);
            answer.lines().map(|line| line.trim().to_owned()).collect()
        };
        let then = self.host.changes();
        let active = lines(&self.ask("is-active", services)?);
        let enabled = lines(&self.ask("is-enabled", services)?);
        // If systemd does not know one of them, a line is missing.
        let is_whole = [&active, &enabled].iter().all(|lines| lines.len() == services.len());
        let words = services.iter().map(|&service| service.to_owned());
        let words = words.zip(active.into_iter().zip(enabled)).collect();
        let known = self.host.cached::<Surveyed>();
        *known.0.lock().unwrap_or_else(PoisonError::into_inner) = is_whole.then_some((then, words));
        Ok(())
    }

    fn order(&mut self, order: Order, services: &[&str]) -> Result<()> {
        self.read_units()?;
        let verb = order.to_string();
        let is_start = order == Order::Start;
        if is_start {
            self.update_units(services)?;
        }
        let words = [verb.as_str(), "--system"].into_iter().chain(services.iter().copied());
        self.change(&words.collect::<Vec<_>>())?;
        match order {
            Order::Enable | Order::Disable => self.note_reload(unit_files(&self.host)?),
            _ if is_start => std::thread::sleep(STARTUP_GRACE),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, service: &str) -> Result<()> {
        self.bring_up("start", service)
    }

    fn stop(&mut self, service: &str) -> Result<()> {
        self.read_units()?;
        Ok(self.change(&["stop", "--system", service])?)
    }

    fn restart(&mut self, service: &str) -> Result<()> {
        self.bring_up("restart", service)
    }

    fn reload(&mut self, service: &str) -> Result<()> {
        self.bring_up("reload", service)
    }

    fn can_reload(&mut self, service: &str) -> Result<bool> {
        let has_loaded = self.has_loaded_units();
        if has_loaded {
            self.read_units()?;
            self.update_units(&[service])?;
        }
        let can_reload = self.show(&[service], &["CanReload"])?.trim() == "CanReload=yes";
        Ok(can_reload || !has_loaded && predicted::has_reload(&self.host, service))
    }

    fn enable(&mut self, service: &str) -> Result<()> {
        self.read_units()?;
        self.change(&["enable", "--system", service])?;
        self.note_reload(unit_files(&self.host)?);
        Ok(())
    }

    fn disable(&mut self, service: &str) -> Result<()> {
        self.read_units()?;
        self.change(&["disable", "--system", service])?;
        self.note_reload(unit_files(&self.host)?);
        Ok(())
    }
}

impl Systemd {
    /// What systemd says of a service now.
    fn present_status(&mut self, service: &str) -> Result<State> {
        let manager = manager(&self.host)?;
        if let Some((active, boot)) = self.surveyed(service)
            && let (Some(running), Some(enabled)) = (is_running(&active), is_enabled(&boot))
            && (running || !self.is_started)
        {
            return Ok(State {
                name: service.to_owned(),
                provider: NAME,
                running,
                manager,
                enabled,
                words: (active, boot),
                ..State::default()
            });
        }
        let (running, active) = if manager == Manager::Offline {
            (false, "offline".to_owned())
        } else {
            let (output, active) = self.query("is-active", service)?;
            let running = is_running(&active);
            (running.ok_or_else(|| invalid("is-active", &active, &output))?, active)
        };
        let (output, boot) = self.query("is-enabled", service)?;
        let enabled = is_enabled(&boot).ok_or_else(|| {
            let said = output.stderr_tail(10);
            // Older versions answer in a sentence.
            if boot == "not-found" || said.contains("No such file or directory") {
                return not_found(service);
            }
            invalid("is-enabled", &boot, &output)
        })?;
        let last_words =
            if self.is_started && !running { self.journal(service) } else { String::new() };
        Ok(State {
            name: service.to_owned(),
            provider: NAME,
            running,
            manager,
            is_deferred: false,
            lacks_reload: false,
            enabled,
            words: (active, boot),
            last_words,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_is_active() {
        for (word, running) in [
            ("active", Some(true)),
            ("inactive", Some(false)),
            ("failed", Some(false)),
            ("activating", Some(false)),
            ("deactivating", None),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(is_running(word), running, "{word}");
        }
    }

    #[test]
    fn answers_of_is_enabled() {
        for (word, enabled) in [
            ("enabled", Some(true)),
            ("enabled-runtime", Some(true)),
            ("alias", Some(true)),
            ("static", Some(true)),
            ("indirect", Some(true)),
            ("generated", Some(true)),
            ("transient", Some(true)),
            ("linked", Some(false)),
            ("linked-runtime", Some(false)),
            ("masked", Some(false)),
            ("masked-runtime", Some(false)),
            ("disabled", Some(false)),
            ("not-found", None),
            ("bad", None),
            ("", None),
        ] {
            assert_eq!(is_enabled(word), enabled, "{word}");
        }
    }
}
