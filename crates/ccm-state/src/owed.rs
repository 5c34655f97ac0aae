//! Owed reactions: who must still react to a change.
//!
//! There is one file for each manifest, or session, with debts. A debt is on
//! disk before the change that causes it. That it was paid need not be: a
//! subscriber that reacts twice does no harm.

mod changes;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use ccm_host::{AppendFile, Digest, Error, Result, StateDir};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::changes::Change;
use self::changes::Changes;
use crate::records::{decode, encode};

/// Where the files are.
const FOLDER: &str = "owed";
/// The version of the format.
const FORMAT: u32 = 1;
/// Debts are short; more than this was not written by ccm.
const MAX_SIZE: u64 = 256 << 20;

/// A reaction that a subscriber owes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    /// The chain of child manifests to the subscriber, each as written in its
    /// parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The resource that must react, as `type#name`.
    pub subscriber: String,
    /// The first change that it must react to, as `type#name`.
    pub by: String,
    /// When that change was about to be made.
    pub since: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Header {
        format: u32,
        manifest: String,
    },
    Owed(Debt),
    Paid {
        path: Vec<String>,
        subscriber: String,
    },
    Changed(Change),
    /// A change made no difference after all.
    Unchanged {
        by: String,
    },
    /// A manifest runs: what it owes for the changes above is recorded, and what
    /// it owes for later ones will be.
    Entered {
        path: Vec<String>,
    },
    /// A manifest that an earlier run has entered: only what it owes for the
    /// changes above is recorded.
    Seen {
        path: Vec<String>,
    },
}

type Key = (Vec<String>, String);

/// The debts of one manifest.
#[derive(Debug)]
pub struct Ledger {
    /// `None` for one that lasts as long as its process.
    state: Option<StateDir>,
    manifest: String,
    debts: BTreeMap<Key, Debt>,
    changes: Changes,
    /// What was struck out here. A run within this run may write the same file,
    /// so what is found in it later is owed unless it is one of these.
    paid: BTreeSet<Key>,
    /// Open once something was written.
    file: Option<AppendFile>,
    /// There is a file on disk.
    has_file: bool,
    /// It also has records that no longer count.
    has_paid: bool,
}

impl Ledger {
    /// The debts of a session that ends with its process.
    pub fn in_memory() -> Self {
        Self {
            state: None,
            manifest: String::new(),
            debts: BTreeMap::new(),
            changes: Changes::default(),
            paid: BTreeSet::new(),
            file: None,
            has_file: false,
            has_paid: false,
        }
    }

    /// Whether it lasts as long as its process.
    pub fn is_in_memory(&self) -> bool {
        self.state.is_none()
    }

    /// Reads the debts of a manifest. With `is_read_only` damage is reported and
    /// otherwise left alone.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or, when it is damaged, set aside.
    pub fn open(state: &StateDir, manifest: &str, is_read_only: bool) -> Result<Self> {
        let mut ledger = Self::in_memory();
        ledger.state = Some(state.clone());
        manifest.clone_into(&mut ledger.manifest);
        let Some(folder) = state.folder(FOLDER, false)? else { return Ok(ledger) };
        let name = name_of(manifest);
        let Some(content) = read(&folder, &name)? else { return Ok(ledger) };
        ledger.has_file = true;
        ledger.has_paid = content.has_paid || content.is_torn;
        ledger.debts = content.debts;
        ledger.changes = content.changes;
        // Changes of this run come after all that these manifests have seen.
        ledger.has_paid |= !ledger.changes.seen.is_empty();
        ledger.changes.end_run();
        let suffix = match content.fault {
            None => return Ok(ledger),
            Some(Fault::Newer) => "newer",
            Some(Fault::Damaged) => "damaged",
        };
        report(&folder, &name, suffix);
        if !is_read_only {
            folder.rename(&name, format!("{name}.{suffix}"))?;
            ledger.has_file = false;
            if !ledger.is_empty() {
                ledger.rewrite(&folder)?;
            }
        }
        Ok(ledger)
    }

    /// Returns all owed reactions.
    pub fn debts(&self) -> impl Iterator<Item = &Debt> {
        self.debts.values()
    }

    /// Returns the owed reaction of a subscriber.
    pub fn find(&self, path: &[String], subscriber: &str) -> Option<&Debt> {
        self.debts.get(&(path.to_vec(), subscriber.to_owned()))
    }

    fn is_empty(&self) -> bool {
        self.debts.is_empty() && self.changes.list.is_empty()
    }

    /// The changes of earlier runs that a manifest has taken no note of.
    pub fn unseen(&self, path: &[String]) -> &[Change] {
        let seen = self.changes.seen.get(path).copied().unwrap_or_default();
        self.changes.list.get(seen..).unwrap_or_default()
    }

    /// Records new debts. They are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if they may not be; none of them counts then.
    pub fn owe(&mut self, debts: Vec<Debt>) -> Result<()> {
        self.owe_for(debts, None, false)
    }

    /// Records new debts and, for manifests that are still to come, the change
    /// that causes them. A change alone is on disk only if `is_synced` is set:
    /// without, it survives the process but not the machine.
    ///
    /// # Errors
    ///
    /// Fails if they may not be recorded; none of them counts then.
    pub fn owe_for(
        &mut self,
        debts: Vec<Debt>,
        change: Option<Change>,
        is_synced: bool,
    ) -> Result<()> {
        let is_new = |debt: &Debt| self.find(&debt.path, &debt.subscriber).is_none();
        let new: Vec<Debt> = debts.into_iter().filter(is_new).collect();
        let change = change.filter(|change| !self.changes.unseen.contains(&change.by));
        if new.is_empty() && change.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if let Some(change) = &change {
            bytes.extend(encode(&Record::Changed(change.clone())));
        }
        for debt in &new {
            bytes.extend(encode(&Record::Owed(debt.clone())));
        }
        self.append(&bytes, is_synced || !new.is_empty())?;
        if let Some(change) = change {
            self.changes.add(change);
        }
        for debt in new {
            self.paid.remove(&(debt.path.clone(), debt.subscriber.clone()));
            self.debts.insert((debt.path.clone(), debt.subscriber.clone()), debt);
        }
        Ok(())
    }

    /// Strikes a debt out.
    ///
    /// # Errors
    ///
    /// Fails if that is not recorded, so that a later run sees the debt again.
    pub fn pay(&mut self, path: &[String], subscriber: &str) -> Result<()> {
        let key = (path.to_vec(), subscriber.to_owned());
        if self.debts.remove(&key).is_none() {
            return Ok(());
        }
        self.has_paid = true;
        self.paid.insert(key.clone());
        let (path, subscriber) = key;
        let bytes = encode(&Record::Paid { path, subscriber });
        self.append(&bytes, false)
    }

    /// A change made no difference.
    ///
    /// # Errors
    ///
    /// Fails if that is not recorded.
    pub fn take_back(&mut self, by: &str) -> Result<()> {
        if !self.changes.take_back(by) {
            return Ok(());
        }
        self.has_paid = true;
        self.append(&encode(&Record::Unchanged { by: by.to_owned() }), false)
    }

    /// A manifest runs, and what it owes for all changes so far is recorded.
    ///
    /// # Errors
    ///
    /// Fails if that is not recorded.
    pub fn enter(&mut self, path: &[String]) -> Result<()> {
        if self.changes.list.is_empty() {
            return Ok(());
        }
        self.changes.enter(path.to_vec());
        self.has_paid = true;
        self.append(&encode(&Record::Entered { path: path.to_vec() }), false)
    }

    /// No manifest is still to come.
    pub fn forget_changes(&mut self) {
        self.has_paid |= !self.changes.list.is_empty();
        let known = std::mem::take(&mut self.changes.known);
        self.changes = Changes { known, ..Changes::default() };
    }

    /// Leaves on disk what is owed, and nothing where nothing is.
    ///
    /// # Errors
    ///
    /// Fails if more stays on disk than is owed.
    pub fn close(&mut self) -> Result<()> {
        let is_ours = self.file.take().is_some_and(|file| file.is_untouched());
        if !self.has_file {
            return Ok(());
        }
        let Some(folder) = self.folder(false)? else { return Ok(()) };
        if !is_ours {
            self.add_from_disk(&folder)?;
        }
        if self.is_empty() {
            self.has_file = false;
            return folder.remove(name_of(&self.manifest));
        }
        if self.has_paid {
            self.rewrite(&folder)?;
        }
        Ok(())
    }

    fn folder(&self, create: bool) -> Result<Option<StateDir>> {
        self.state.as_ref().map_or(Ok(None), |state| state.folder(FOLDER, create))
    }

    /// Adds what a run within this run has left.
    fn add_from_disk(&mut self, folder: &StateDir) -> Result<()> {
        if let Some(content) = read(folder, &name_of(&self.manifest))? {
            for (key, debt) in content.debts {
                if !self.paid.contains(&key) {
                    self.debts.entry(key).or_insert(debt);
                }
            }
            for change in content.changes.list {
                if !self.changes.known.contains(&(change.by.clone(), change.since)) {
                    self.changes.add(change);
                }
            }
        }
        Ok(())
    }

    fn rewrite(&mut self, folder: &StateDir) -> Result<()> {
        folder
            .write(&name_of(&self.manifest), &whole(&self.manifest, &self.debts, &self.changes))?;
        (self.has_file, self.has_paid) = (true, false);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], is_synced: bool) -> Result<()> {
        let Some(state) = self.state.clone() else { return Ok(()) };
        if self.file.as_ref().is_some_and(AppendFile::is_replaced) {
            // What is recorded in a file without a name is lost.
            self.file = None;
            if let Some(folder) = self.folder(false)? {
                self.add_from_disk(&folder)?;
                self.rewrite(&folder)?;
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let folder = state.folder(FOLDER, true)?;
                let folder = folder
                    .ok_or_else(|| Error::NotADirectory { path: state.path().join(FOLDER) })?;
                // Half a last line would swallow what follows it.
                if self.has_file && self.has_paid {
                    let whole = whole(&self.manifest, &self.debts, &self.changes);
                    folder.write(&name_of(&self.manifest), &whole)?;
                    self.has_paid = false;
                }
                none.insert(folder.append_to(&name_of(&self.manifest))?)
            }
        };
        if file.length() == 0 {
            file.append(&encode(&header(&self.manifest)))?;
        }
        self.has_file = true;
        file.append(bytes)?;
        if is_synced { file.sync() } else { Ok(()) }
    }
}

/// The whole of a manifest's file.
fn whole(manifest: &str, debts: &BTreeMap<Key, Debt>, changes: &Changes) -> Vec<u8> {
    let mut bytes = encode(&header(manifest));
    for debt in debts.values() {
        bytes.extend(encode(&Record::Owed(debt.clone())));
    }
    for at in 0..=changes.list.len() {
        for (path, _) in changes.seen.iter().filter(|(_, seen)| **seen == at) {
            let path = path.clone();
            let is_entered = changes.entered.contains(&path);
            let record = if is_entered { Record::Entered { path } } else { Record::Seen { path } };
            bytes.extend(encode(&record));
        }
        if let Some(change) = changes.list.get(at) {
            bytes.extend(encode(&Record::Changed(change.clone())));
        }
    }
    bytes
}

fn header(manifest: &str) -> Record {
    Record::Header { format: FORMAT, manifest: manifest.to_owned() }
}

/// Debts, and the manifests or sessions that they belong to.
pub type Listing = Vec<(String, Debt)>;

/// All debts, by manifest and subscriber. Damage is reported and left alone.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn list(state: &StateDir) -> Result<Listing> {
    let mut found = Vec::new();
    let Some(folder) = state.folder(FOLDER, false)? else { return Ok(found) };
    for name in folder.names()? {
        let Some(name) = name.to_str().filter(|name| !name.contains('.')) else { continue };
        let content = match read(&folder, name) {
            Ok(content) => content,
            Err(error) => {
                state.host().warn(format!("{error}; ccm ignores this record of owed reactions"));
                continue;
            }
        };
        let Some(content) = content else { continue };
        match content.fault {
            Some(Fault::Newer) => report(&folder, name, "newer"),
            Some(Fault::Damaged) => report(&folder, name, "damaged"),
            None => {}
        }
        let manifest = content.manifest.unwrap_or_default();
        found.extend(content.debts.into_values().map(|debt| (manifest.clone(), debt)));
    }
    found.sort_by(|(a, one), (b, other)| (a, one.since).cmp(&(b, other.since)));
    Ok(found)
}

enum Fault {
    Damaged,
    Newer,
}

struct Content {
    manifest: Option<String>,
    debts: BTreeMap<Key, Debt>,
    changes: Changes,
    has_paid: bool,
    is_torn: bool,
    fault: Option<Fault>,
}

/// What a file of the folder holds; `None` when there is none.
fn read(folder: &StateDir, name: &str) -> Result<Option<Content>> {
    let mut content = Content {
        manifest: None,
        debts: BTreeMap::new(),
        changes: Changes::default(),
        has_paid: false,
        is_torn: false,
        fault: None,
    };
    let bytes = match folder.read(name, MAX_SIZE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(Error::NotAFile { .. } | Error::TooLarge { .. }) => {
            content.fault = Some(Fault::Damaged);
            return Ok(Some(content));
        }
        Err(error) => return Err(error),
    };
    let decoded = decode::<serde_json::Value>(&bytes);
    content.is_torn = decoded.is_torn;
    if decoded.is_damaged {
        content.fault = Some(Fault::Damaged);
    }
    for value in decoded.records {
        match serde_json::from_value(value) {
            Ok(Record::Header { format, manifest }) => {
                if format != FORMAT {
                    content.fault = Some(Fault::Newer);
                }
                content.manifest = Some(manifest);
            }
            Ok(Record::Owed(debt)) => {
                let key = (debt.path.clone(), debt.subscriber.clone());
                content.debts.entry(key).or_insert(debt);
            }
            Ok(Record::Paid { path, subscriber }) => {
                content.has_paid = true;
                content.debts.remove(&(path, subscriber));
            }
            Ok(Record::Changed(change)) => content.changes.add(change),
            Ok(Record::Unchanged { by }) => {
                content.changes.take_back(&by);
            }
            Ok(Record::Entered { path }) => content.changes.enter(path),
            Ok(Record::Seen { path }) => content.changes.see(path),
            // Whole, so another version has written it.
            Err(_) => content.fault = Some(Fault::Newer),
        }
    }
    let has_header = content.manifest.as_deref().is_some_and(|known| name_of(known) == name);
    // A writer may have been killed before its first record was whole.
    let is_begun = content.debts.is_empty()
        && content.changes.list.is_empty()
        && (bytes.is_empty() || content.is_torn);
    if !has_header && !is_begun {
        content.fault.get_or_insert(Fault::Damaged);
    }
    Ok(Some(content))
}

fn report(folder: &StateDir, name: &str, suffix: &str) {
    let path = folder.path().join(name);
    let what = if suffix == "newer" { "was written by a newer ccm" } else { "is damaged" };
    folder
        .host()
        .warn(format!("{} {what}; ccm renames it and uses the intact records", path.display()));
}

/// The name of a manifest's file.
fn name_of(manifest: &str) -> String {
    let mut name = Digest::of(manifest.as_bytes()).to_string();
    name.truncate(32);
    name
}
