//! Owed reactions: who must still react to a change.
//!
//! There is one file for each manifest, or session, with owed reactions. A record is on
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
use crate::records::{decode, encode, set_aside};

/// Where the files are.
const FOLDER: &str = "owed";
/// The version of the format.
const FORMAT: u32 = 1;
/// Owed reactions are short; more than this was not written by ccm.
const MAX_SIZE: u64 = 256 << 20;

/// A reaction that a subscriber owes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedRecord {
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
    Owed(OwedRecord),
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

/// What the resources of one manifest owe.
#[derive(Debug)]
pub struct OwedStore {
    /// `None` for one that lasts as long as its process.
    state: Option<StateDir>,
    manifest: String,
    owed: BTreeMap<Key, OwedRecord>,
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

impl OwedStore {
    /// What is owed in a session that ends with its process.
    pub fn in_memory() -> Self {
        Self {
            state: None,
            manifest: String::new(),
            owed: BTreeMap::new(),
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

    /// Reads what a manifest owes. With `is_read_only` damage is reported and
    /// otherwise left alone.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or, when it is damaged, set aside.
    pub fn open(state: &StateDir, manifest: &str, is_read_only: bool) -> Result<Self> {
        let mut store = Self::in_memory();
        store.state = Some(state.clone());
        manifest.clone_into(&mut store.manifest);
        let Some(folder) = state.folder(FOLDER, false)? else { return Ok(store) };
        let name = name_of(manifest);
        let Some(content) = read(&folder, &name)? else { return Ok(store) };
        store.has_file = true;
        store.has_paid = content.has_paid;
        store.owed = content.owed;
        store.changes = content.changes;
        // Changes of this run come after all that these manifests have seen.
        store.has_paid |= !store.changes.seen.is_empty();
        store.changes.end_run();
        let Some(fault) = content.fault else { return Ok(store) };
        report(&folder, &name, fault, is_read_only);
        if !is_read_only {
            set_aside(&folder, &name, fault.suffix())?;
            store.has_file = false;
            if !store.is_empty() {
                store.rewrite(&folder)?;
            }
        }
        Ok(store)
    }

    /// Returns all owed reactions.
    pub fn records(&self) -> impl Iterator<Item = &OwedRecord> {
        self.owed.values()
    }

    /// Returns the owed reaction of a subscriber.
    pub fn find(&self, path: &[String], subscriber: &str) -> Option<&OwedRecord> {
        self.owed.get(&(path.to_vec(), subscriber.to_owned()))
    }

    fn is_empty(&self) -> bool {
        self.owed.is_empty() && self.changes.list.is_empty()
    }

    /// The changes of earlier runs that a manifest has taken no note of.
    pub fn unseen(&self, path: &[String]) -> &[Change] {
        let seen = self.changes.seen.get(path).copied().unwrap_or_default();
        self.changes.list.get(seen..).unwrap_or_default()
    }

    /// Adds records. They are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if they may not be; none of them counts then.
    pub fn owe(&mut self, owed: Vec<OwedRecord>) -> Result<()> {
        self.owe_for(owed, None, false)
    }

    /// Adds records and, for manifests that are still to come, the change
    /// that causes them. A change alone is on disk only if `is_synced` is set:
    /// without, it survives the process but not the machine.
    ///
    /// # Errors
    ///
    /// Fails if they may not be recorded; none of them counts then.
    pub fn owe_for(
        &mut self,
        owed: Vec<OwedRecord>,
        change: Option<Change>,
        is_synced: bool,
    ) -> Result<()> {
        let is_new = |record: &OwedRecord| self.find(&record.path, &record.subscriber).is_none();
        let new: Vec<OwedRecord> = owed.into_iter().filter(is_new).collect();
        let change = change.filter(|change| !self.changes.unseen.contains(&change.by));
        if new.is_empty() && change.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if let Some(change) = &change {
            bytes.extend(encode(&Record::Changed(change.clone())));
        }
        for record in &new {
            bytes.extend(encode(&Record::Owed(record.clone())));
        }
        self.append(&bytes, is_synced || !new.is_empty())?;
        if let Some(change) = change {
            self.changes.add(change);
        }
        for record in new {
            self.paid.remove(&(record.path.clone(), record.subscriber.clone()));
            self.owed.insert((record.path.clone(), record.subscriber.clone()), record);
        }
        Ok(())
    }

    /// Strikes a record out.
    ///
    /// # Errors
    ///
    /// Fails if that is not recorded, so that a later run sees the record again.
    pub fn pay(&mut self, path: &[String], subscriber: &str) -> Result<()> {
        let key = (path.to_vec(), subscriber.to_owned());
        if self.owed.remove(&key).is_none() {
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
        let name = name_of(&self.manifest);
        if let Some(content) = read(folder, &name)? {
            if let Some(fault) = content.fault {
                report(folder, &name, fault, false);
                set_aside(folder, &name, fault.suffix())?;
                // What is known is written again.
                self.has_paid = true;
            }
            for (key, record) in content.owed {
                if !self.paid.contains(&key) {
                    self.owed.entry(key).or_insert(record);
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
            .write(&name_of(&self.manifest), &whole(&self.manifest, &self.owed, &self.changes))?;
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
                // As a whole: a run that is killed now must not leave an empty file,
                // which would look as if something had been lost. A run within this run
                // may have left one.
                let name = name_of(&self.manifest);
                if folder.links(&name)?.is_none() {
                    let first = [&encode(&header(&self.manifest)), bytes].concat();
                    folder.write(&name, &first)?;
                    self.has_file = true;
                    *none = Some(folder.append_to(&name)?);
                    return Ok(());
                }
                // Half a last line would swallow what follows it.
                if self.has_file && self.has_paid {
                    let whole = whole(&self.manifest, &self.owed, &self.changes);
                    folder.write(&name_of(&self.manifest), &whole)?;
                    self.has_paid = false;
                }
                none.insert(folder.append_to(&name_of(&self.manifest))?)
            }
        };
        self.has_file = true;
        if file.length() == 0 {
            // Together: a header without anything behind it has lost something.
            file.append(&[&encode(&header(&self.manifest)), bytes].concat())?;
        } else {
            file.append(bytes)?;
        }
        if is_synced { file.sync() } else { Ok(()) }
    }
}

/// The whole of a manifest's file.
fn whole(manifest: &str, owed: &BTreeMap<Key, OwedRecord>, changes: &Changes) -> Vec<u8> {
    let mut bytes = encode(&header(manifest));
    for record in owed.values() {
        bytes.extend(encode(&Record::Owed(record.clone())));
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

/// What is owed, as far as it can be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// Owed reactions, and the manifests or sessions that they belong to.
    pub owed: Vec<(String, OwedRecord)>,
    /// Some of the records cannot be read, so more may be owed.
    pub is_damaged: bool,
}

/// All records, by manifest and subscriber. Damage is reported and left alone.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn list(state: &StateDir) -> Result<Listing> {
    let mut found = Listing::default();
    let Some(folder) = state.folder(FOLDER, false)? else { return Ok(found) };
    for name in folder.names()? {
        let Some(name) = name.to_str().filter(|name| !name.contains('.')) else { continue };
        let content = match read(&folder, name) {
            Ok(content) => content,
            Err(error) => {
                state.host().warn(format!("{error}; ccm ignores this record of owed reactions"));
                found.is_damaged = true;
                continue;
            }
        };
        let Some(content) = content else { continue };
        if let Some(fault) = content.fault {
            report(&folder, name, fault, true);
            found.is_damaged = true;
        }
        let manifest = content.manifest.unwrap_or_default();
        found.owed.extend(content.owed.into_values().map(|record| (manifest.clone(), record)));
    }
    found.owed.sort_by(|(a, one), (b, other)| (a, one.since).cmp(&(b, other.since)));
    Ok(found)
}

#[derive(Clone, Copy)]
enum Fault {
    Damaged,
    Newer,
}

impl Fault {
    /// What the name of a file that is set aside ends in.
    fn suffix(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Newer => "newer",
        }
    }
}

struct Content {
    manifest: Option<String>,
    owed: BTreeMap<Key, OwedRecord>,
    changes: Changes,
    has_paid: bool,
    fault: Option<Fault>,
}

/// What a file of the folder holds; `None` when there is none.
fn read(folder: &StateDir, name: &str) -> Result<Option<Content>> {
    let mut content = Content {
        manifest: None,
        owed: BTreeMap::new(),
        changes: Changes::default(),
        has_paid: false,
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
    // Half a last line may be all that is left of a record.
    if decoded.is_damaged || decoded.is_torn {
        content.fault = Some(Fault::Damaged);
    }
    let is_bare = decoded.records.len() < 2;
    for value in decoded.records {
        match serde_json::from_value(value) {
            Ok(Record::Header { format, manifest }) => {
                if format != FORMAT {
                    content.fault = Some(Fault::Newer);
                }
                content.manifest = Some(manifest);
            }
            Ok(Record::Owed(record)) => {
                let key = (record.path.clone(), record.subscriber.clone());
                content.owed.entry(key).or_insert(record);
            }
            Ok(Record::Paid { path, subscriber }) => {
                content.has_paid = true;
                content.owed.remove(&(path, subscriber));
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
    if !has_header || is_bare {
        content.fault.get_or_insert(Fault::Damaged);
    }
    Ok(Some(content))
}

fn report(folder: &StateDir, name: &str, fault: Fault, is_left: bool) {
    let path = folder.path().join(name);
    let what = match fault {
        Fault::Newer => "was written by a newer ccm",
        Fault::Damaged => "is damaged",
    };
    let renames = if is_left { "uses" } else { "renames it and uses" };
    folder.host().warn(format!("{} {what}; ccm {renames} the intact records", path.display()));
}

/// The name of a manifest's file.
fn name_of(manifest: &str) -> String {
    let mut name = Digest::of(manifest.as_bytes()).to_string();
    name.truncate(32);
    name
}
