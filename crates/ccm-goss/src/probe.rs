//! Probes: read the attributes that rules test from the machine.

mod command;
pub(crate) mod dns;
mod file;
pub(crate) mod http;
pub(crate) mod kernel_tables;
mod matching;
mod network;
mod package;
mod service;
mod system;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ccm_host::{Command, Host, Output};
use govalue::{Str, Value};

use crate::compile::Entry;
use crate::kinds::{Id, SettingType};
use crate::matcher::Found;
use crate::run::Shared;
use kernel_tables::{Listener, Mount, Protocol};

/// One thing of the machine that is asked about.
pub(crate) trait Probe {
    /// Returns the value of an attribute, or why it cannot be read.
    fn find(&mut self, attribute: &str) -> Result<Found, String>;
}

/// The machine as one try sees it: what is read at all is read once.
pub(crate) struct Machine {
    pub(crate) host: Host,
    pub(crate) deadline: Instant,
    pub(crate) shared: Arc<Shared>,
    /// By protocol, in the order of its variants.
    listeners: [OnceCell<Result<Vec<Listener>, String>>; 4],
    processes: OnceCell<Result<HashSet<Vec<u8>>, String>>,
    mounts: OnceCell<Result<Vec<Mount>, String>>,
    packages: package::Packages,
    services: service::Services,
    users: RefCell<HashMap<u32, Value>>,
    groups: RefCell<HashMap<u32, Value>>,
}

impl Machine {
    pub(crate) fn new(
        host: Host,
        deadline: Instant,
        shared: Arc<Shared>,
        entries: &[Entry],
    ) -> Self {
        let names = |id: Id| {
            let of_kind = entries.iter().filter(move |entry| entry.kind.id == id);
            of_kind.filter(|entry| !entry.is_skipped).map(|entry| entry.name.clone()).collect()
        };
        Self {
            host,
            deadline,
            shared,
            listeners: Default::default(),
            processes: OnceCell::new(),
            mounts: OnceCell::new(),
            packages: package::Packages::new(names(Id::Package)),
            services: service::Services::new(names(Id::Service)),
            users: RefCell::default(),
            groups: RefCell::default(),
        }
    }

    /// What is left of the time, at most `most`.
    fn time(&self, most: Duration) -> Result<Duration, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the timeout for all tests has expired".to_owned());
        }
        Ok(left.min(most))
    }

    /// Runs a command to its end, or ends it.
    fn run(&self, command: &Command) -> Result<Output, ccm_host::Error> {
        self.shared.has_command.store(true, Ordering::Relaxed);
        let done = self.host.run(command, &mut |_, _| {});
        self.shared.has_command.store(false, Ordering::Relaxed);
        done
    }

    fn listeners(&self, protocol: Protocol) -> Result<&[Listener], String> {
        let read = || kernel_tables::listeners(&self.host, protocol);
        self.listeners[protocol as usize].get_or_init(read).as_deref().map_err(Clone::clone)
    }

    fn processes(&self) -> Result<&HashSet<Vec<u8>>, String> {
        let read = || kernel_tables::process_names(&self.host);
        self.processes.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    fn mounts(&self) -> Result<&[Mount], String> {
        let read = || kernel_tables::mounts(&self.host);
        self.mounts.get_or_init(read).as_deref().map_err(Clone::clone)
    }

    /// The name of a user, or the number of one without a name.
    fn user_name(&self, uid: u32) -> Value {
        let name = || self.host.current_user_name(uid).unwrap_or_else(|| uid.to_string()).into();
        self.users.borrow_mut().entry(uid).or_insert_with(name).clone()
    }

    /// The name of a group, or the number of one without a name.
    fn group_name(&self, gid: u32) -> Value {
        let name = || self.host.current_group_name(gid).unwrap_or_else(|| gid.to_string()).into();
        self.groups.borrow_mut().entry(gid).or_insert_with(name).clone()
    }
}

/// Gets ready to ask about the thing of an entry; nothing is asked yet.
pub(crate) fn open<'a>(entry: &'a Entry, machine: &'a Machine) -> Box<dyn Probe + 'a> {
    match entry.kind.id {
        Id::File => Box::new(file::File::new(entry, machine)),
        Id::Package => Box::new(package::Package { entry, machine }),
        Id::Service => Box::new(service::Service { entry, machine }),
        Id::Process => Box::new(system::Process { entry, machine }),
        Id::Port => Box::new(network::Port { entry, machine }),
        Id::Command => Box::new(command::Shell::new(entry, machine)),
        Id::Http => Box::new(http::Http::new(entry, machine)),
        Id::Addr => Box::new(network::Addr { entry, machine }),
        Id::Dns => Box::new(network::Dns::new(entry, machine)),
        Id::User => Box::new(system::User::new(entry, machine)),
        Id::Group => Box::new(system::Group::new(entry, machine)),
        Id::Interface => Box::new(network::Interface::new(entry, machine)),
        Id::Mount => Box::new(system::MountPoint { entry, machine }),
        Id::KernelParam => Box::new(system::KernelParam { entry, machine }),
        Id::Matching => Box::new(matching::Matching { entry }),
    }
}

impl Entry {
    /// How long its question may take.
    fn timeout(&self) -> Duration {
        let default = self.kind.settings.iter().find_map(|setting| match setting.value {
            SettingType::Milliseconds(default) => Some(default),
            _ => None,
        });
        let given = self.settings.get("timeout").and_then(Value::as_int);
        let given = given.and_then(|given| u64::try_from(given).ok());
        Duration::from_millis(given.unwrap_or(default.unwrap_or_default().into()))
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[expect(clippy::unnecessary_wraps, reason = "an answer is always a result")]
fn value(value: impl Into<Value>) -> Result<Found, String> {
    Ok(Found::Value(value.into()))
}

fn number(count: impl TryInto<i64>) -> Result<Found, String> {
    value(count.try_into().unwrap_or(i64::MAX))
}

#[expect(clippy::unnecessary_wraps, reason = "an answer is always a result")]
fn bytes(text: &[u8]) -> Result<Found, String> {
    Ok(Found::Value(Value::String(Str::from_bytes(text))))
}

fn list<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Result<Found, String> {
    value(Value::array(items.into_iter().map(Into::into)))
}

/// A path as a value; what is not UTF-8 stays as it is.
fn path(path: &std::path::Path) -> Result<Found, String> {
    bytes(path.as_os_str().as_encoded_bytes())
}

/// The table of kinds has an attribute that its kind does not answer.
fn unknown(attribute: &str) -> Result<Found, String> {
    Err(format!("nothing is known of `{attribute}`"))
}
