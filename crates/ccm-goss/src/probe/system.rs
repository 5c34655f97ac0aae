//! `process`, `user`, `group`, `mount` and `kernel-param`

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

use ccm_host::{Account, Space};

use super::{Found, Machine, Probe, bytes, chain, list, number, path, unknown, value};
use crate::compile::{self, Entry};

/// The kernel keeps this many bytes of a command name.
const COMMAND_NAME: usize = 15;
/// No parameter of the kernel is larger.
const LARGEST_PARAMETER: u64 = 1 << 20;

pub(super) struct Process<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for Process<'_> {
    fn find(&mut self, _: &str) -> Result<Found, String> {
        let name = self.entry.name.as_bytes();
        let name = &name[..name.len().min(COMMAND_NAME)];
        value(self.machine.processes()?.contains(name))
    }
}

pub(super) struct User<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    account: Option<Result<Option<Account>, String>>,
}

impl<'a> User<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, account: None }
    }
}

impl Probe for User<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let look_up = || self.machine.host.account(&self.entry.name).map_err(|error| chain(&error));
        let account = self.account.get_or_insert_with(look_up).clone()?;
        if attribute == "exists" {
            return value(account.is_some());
        }
        let account = account.ok_or_else(|| format!("there is no user {}", self.entry.name))?;
        match attribute {
            "uid" => number(account.uid),
            "gid" => number(account.gid),
            "groups" => list(account.groups),
            "home" => path(&account.home),
            "shell" => path(&account.shell),
            other => unknown(other),
        }
    }
}

pub(super) struct Group<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    gid: Option<Result<Option<u32>, String>>,
}

impl<'a> Group<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, gid: None }
    }
}

impl Probe for Group<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        let look_up =
            || self.machine.host.current_group(&self.entry.name).map_err(|error| chain(&error));
        let gid = self.gid.get_or_insert_with(look_up).clone()?;
        match (attribute, gid) {
            ("exists", gid) => value(gid.is_some()),
            ("gid", Some(gid)) => number(gid),
            (_, None) => Err(format!("there is no group {}", self.entry.name)),
            (other, Some(_)) => unknown(other),
        }
    }
}

pub(super) struct MountPoint<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl MountPoint<'_> {
    /// The used share as `df` counts it. A file system whose server is gone does
    /// not answer, so the question is asked in a thread of its own.
    fn usage(&self, at: &Path) -> Result<Found, String> {
        let timeout = self.machine.time(self.entry.timeout())?;
        let late = || format!("the file system did not answer within {timeout:?}");
        let host = &self.machine.host;
        let until = Instant::now() + timeout;
        let query = host.query_until("space", at, until).ok_or_else(late)?;
        let (sender, answer) = mpsc::sync_channel(1);
        let (path, host) = (at.to_owned(), host.clone());
        let run = host.clone();
        let ask = move || {
            let space = host.space(&path).map_err(|error| chain(&error));
            drop(query);
            let _ = sender.send(space);
        };
        run.in_thread(ask).map_err(|error| format!("cannot start a thread: {error}"))?;
        number(percent(answer.recv_timeout(timeout).map_err(|_| late())??))
    }
}

/// The used share of what everybody could ever have, rounded up.
fn percent(space: Space) -> u64 {
    let used = space.total.saturating_sub(space.free);
    let whole = u128::from(used) + u128::from(space.available);
    if whole == 0 { 0 } else { (u128::from(used) * 100).div_ceil(whole) as u64 }
}

impl Probe for MountPoint<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        // A slash at the end means the same place.
        let name = self.entry.name.trim_end_matches('/');
        let at = PathBuf::from(if name.is_empty() { "/" } else { name });
        // What is mounted over is out of reach, so the last one counts.
        let found = self.machine.mounts()?.iter().rev().find(|mount| mount.mountpoint == at);
        if attribute == "exists" {
            return value(found.is_some());
        }
        let found = found.ok_or_else(|| format!("nothing is mounted at {}", at.display()))?;
        match attribute {
            "opts" => list(found.options.iter().map(String::as_str)),
            "vfs-opts" => list(found.super_options.iter().map(String::as_str)),
            "source" => value(found.source.as_str()),
            "filesystem" => value(found.filesystem.as_str()),
            "usage" => self.usage(&at),
            other => unknown(other),
        }
    }
}

pub(super) struct KernelParam<'a> {
    pub(super) entry: &'a Entry,
    pub(super) machine: &'a Machine,
}

impl Probe for KernelParam<'_> {
    fn find(&mut self, _: &str) -> Result<Found, String> {
        let path = Path::new("/proc/sys").join(compile::kernel_param(&self.entry.name)?);
        let read = self.machine.host.read_bytes(&path, LARGEST_PARAMETER);
        let (text, _) = read.map_err(|error| chain(&error))?;
        bytes(text.trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_as_df_does() {
        let space =
            |total, free, available| Space { total, free, available, inodes: 0, inodes_free: 0 };
        assert_eq!(percent(space(0, 0, 0)), 0, "a file system without size");
        assert_eq!(percent(space(1000, 500, 500)), 50);
        assert_eq!(percent(space(1000, 499, 499)), 51, "a part counts as a whole");
        assert_eq!(percent(space(1000, 100, 0)), 100, "the rest is for root");
        assert_eq!(percent(space(u64::MAX, 0, 0)), 100);
    }
}
