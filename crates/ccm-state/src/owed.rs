//! Owed reactions: who must still react to a change.
//!
//! There is one file for each manifest, or session, with debts. A debt is on
//! disk before the change that causes it. That it was paid need not be: a
//! subscriber that reacts twice does no harm.

use std::collections::{BTreeMap, BTreeSet};

use ccm_host::{AppendFile, Digest, Error, Result, StateDir};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
    /// The manifests below the first that lead to the subscriber, as they are
    /// written in the ones above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Who must react, as `type#name`.
    pub subscriber: String,
    /// The first change that it must react to, as `type#name`.
    pub by: String,
    /// When that change was about to be made.
    pub since: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Header { format: u32, manifest: String },
    Owed(Debt),
    Paid { path: Vec<String>, subscriber: String },
}

type Key = (Vec<String>, String);

/// The debts of one manifest.
#[derive(Debug)]
pub struct Ledger {
    state: StateDir,
    manifest: String,
    debts: BTreeMap<Key, Debt>,
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
    /// Reads the debts of a manifest. With `is_read_only` damage is reported and
    /// otherwise left alone.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or, when it is damaged, set aside.
    pub fn open(state: &StateDir, manifest: &str, is_read_only: bool) -> Result<Self> {
        let mut ledger = Self {
            state: state.clone(),
            manifest: manifest.to_owned(),
            debts: BTreeMap::new(),
            paid: BTreeSet::new(),
            file: None,
            has_file: false,
            has_paid: false,
        };
        let Some(folder) = state.folder(FOLDER, false)? else { return Ok(ledger) };
        let name = name_of(manifest);
        let Some(content) = read(&folder, &name)? else { return Ok(ledger) };
        ledger.has_file = true;
        ledger.has_paid = content.has_paid || content.is_torn;
        ledger.debts = content.debts;
        let suffix = match content.fault {
            None => return Ok(ledger),
            Some(Fault::Newer) => "newer",
            Some(Fault::Damaged) => "damaged",
        };
        report(&folder, &name, suffix);
        if !is_read_only {
            folder.rename(&name, format!("{name}.{suffix}"))?;
            ledger.has_file = false;
            if !ledger.debts.is_empty() {
                ledger.rewrite(&folder)?;
            }
        }
        Ok(ledger)
    }

    /// What is owed now.
    pub fn debts(&self) -> impl Iterator<Item = &Debt> {
        self.debts.values()
    }

    /// What a subscriber owes.
    pub fn find(&self, path: &[String], subscriber: &str) -> Option<&Debt> {
        self.debts.get(&(path.to_vec(), subscriber.to_owned()))
    }

    /// Records new debts. They are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if they may not be; none of them counts then.
    pub fn owe(&mut self, debts: Vec<Debt>) -> Result<()> {
        let is_new = |debt: &Debt| self.find(&debt.path, &debt.subscriber).is_none();
        let new: Vec<Debt> = debts.into_iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for debt in &new {
            bytes.extend(encode(&Record::Owed(debt.clone())));
        }
        self.append(&bytes, true)?;
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

    /// Leaves on disk what is owed, and nothing where nothing is.
    ///
    /// # Errors
    ///
    /// Fails if more stays on disk than is owed.
    pub fn close(&mut self) -> Result<()> {
        self.file = None;
        if !self.has_file {
            return Ok(());
        }
        let Some(folder) = self.state.folder(FOLDER, false)? else { return Ok(()) };
        self.add_from_disk(&folder)?;
        if self.debts.is_empty() {
            self.has_file = false;
            return folder.remove(name_of(&self.manifest));
        }
        if self.has_paid {
            self.rewrite(&folder)?;
        }
        Ok(())
    }

    /// Adds what a run within this run has left.
    fn add_from_disk(&mut self, folder: &StateDir) -> Result<()> {
        if let Some(content) = read(folder, &name_of(&self.manifest))? {
            for (key, debt) in content.debts {
                if !self.paid.contains(&key) {
                    self.debts.entry(key).or_insert(debt);
                }
            }
        }
        Ok(())
    }

    fn rewrite(&mut self, folder: &StateDir) -> Result<()> {
        let bytes = content(&self.manifest, &self.debts);
        folder.write(&name_of(&self.manifest), &bytes)?;
        (self.has_file, self.has_paid) = (true, false);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], is_synced: bool) -> Result<()> {
        if self.file.as_ref().is_some_and(AppendFile::is_replaced) {
            // What is recorded in a file without a name is lost.
            self.file = None;
            if let Some(folder) = self.state.folder(FOLDER, false)? {
                self.add_from_disk(&folder)?;
                self.rewrite(&folder)?;
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let folder = self.state.folder(FOLDER, true)?;
                let folder = folder
                    .ok_or_else(|| Error::NotADirectory { path: self.state.path().join(FOLDER) })?;
                // Half a last line would swallow what follows it.
                if self.has_file && self.has_paid {
                    let whole = content(&self.manifest, &self.debts);
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
fn content(manifest: &str, debts: &BTreeMap<Key, Debt>) -> Vec<u8> {
    let mut bytes = encode(&header(manifest));
    for debt in debts.values() {
        bytes.extend(encode(&Record::Owed(debt.clone())));
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
    has_paid: bool,
    is_torn: bool,
    fault: Option<Fault>,
}

/// What a file of the folder holds; `None` when there is none.
fn read(folder: &StateDir, name: &str) -> Result<Option<Content>> {
    let mut content = Content {
        manifest: None,
        debts: BTreeMap::new(),
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
            // Whole, so another version has written it.
            Err(_) => content.fault = Some(Fault::Newer),
        }
    }
    let has_header = content.manifest.as_deref().is_some_and(|known| name_of(known) == name);
    // A writer may have been killed before its first record was whole.
    let is_begun = content.debts.is_empty() && (bytes.is_empty() || content.is_torn);
    if !has_header && !is_begun {
        content.fault.get_or_insert(Fault::Damaged);
    }
    Ok(Some(content))
}

fn report(folder: &StateDir, name: &str, suffix: &str) {
    let path = folder.path().join(name);
    let what = if suffix == "newer" { "was written by a newer ccm" } else { "is damaged" };
    folder.host().warn(format!(
        "{} {what}; ccm sets it aside and uses what can be read of it",
        path.display()
    ));
}

/// The name of a manifest's file.
fn name_of(manifest: &str) -> String {
    let mut name = Digest::of(manifest.as_bytes()).to_string();
    name.truncate(32);
    name
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use ccm_host::Host;

    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        host: Host,
        state: StateDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let host = Host::new();
            let state = host.state_dir(&dir.path().join("state"), true).unwrap().unwrap();
            Self { dir, host, state }
        }

        fn ledger(&self) -> Ledger {
            Ledger::open(&self.state, "/m.yaml", false).unwrap()
        }

        fn owed(&self) -> Vec<String> {
            self.ledger().debts().map(|debt| debt.subscriber.clone()).collect()
        }

        fn file(&self) -> std::path::PathBuf {
            self.dir.path().join("state/owed").join(name_of("/m.yaml"))
        }

        fn names(&self) -> usize {
            std::fs::read_dir(self.dir.path().join("state/owed")).unwrap().count()
        }
    }

    fn debt(subscriber: &str) -> Debt {
        let since = Timestamp::from_second(1_800_000_000).unwrap();
        Debt { path: Vec::new(), subscriber: subscriber.into(), by: "file#/a".into(), since }
    }

    #[test]
    fn debts_last_until_they_are_paid() {
        let scene = Scene::new();
        assert!(scene.owed().is_empty());
        assert_eq!(scene.state.names().unwrap().len(), 0, "reading writes nothing");
        let mut ledger = scene.ledger();
        ledger.owe(vec![debt("exec#a"), debt("exec#b")]).unwrap();
        let below = Debt { path: vec!["c.yaml".into()], ..debt("exec#a") };
        ledger.owe(vec![below.clone()]).unwrap();
        // Killed here: nothing was closed.
        assert_eq!(scene.owed(), ["exec#a", "exec#b", "exec#a"]);
        ledger.pay(&[], "exec#a").unwrap();
        assert_eq!(scene.owed(), ["exec#b", "exec#a"]);
        let again = Debt { by: "file#/later".into(), ..debt("exec#b") };
        ledger.owe(vec![again]).unwrap();
        assert_eq!(ledger.find(&[], "exec#b"), Some(&debt("exec#b")), "the first change counts");
        ledger.close().unwrap();
        let mut ledger = scene.ledger();
        assert_eq!(ledger.find(&below.path, "exec#a"), Some(&below));
        ledger.pay(&below.path, "exec#a").unwrap();
        ledger.pay(&[], "exec#b").unwrap();
        ledger.close().unwrap();
        assert_eq!(scene.names(), 0);
    }

    /// A command of a run may apply the same manifest.
    #[test]
    fn a_run_within_a_run_loses_nothing() {
        let scene = Scene::new();
        let mut outer = scene.ledger();
        outer.owe(vec![debt("exec#a"), debt("exec#b")]).unwrap();
        let mut inner = scene.ledger();
        inner.pay(&[], "exec#a").unwrap();
        inner.owe(vec![debt("exec#inner")]).unwrap();
        inner.close().unwrap();
        // The inner run has replaced the file that the outer one has open.
        outer.owe(vec![debt("exec#c")]).unwrap();
        assert_eq!(scene.owed(), ["exec#a", "exec#b", "exec#c", "exec#inner"]);
        for name in ["exec#a", "exec#b", "exec#c"] {
            outer.pay(&[], name).unwrap();
        }
        outer.close().unwrap();
        assert_eq!(scene.owed(), ["exec#inner"]);
        let mut outer = scene.ledger();
        let mut inner = scene.ledger();
        inner.pay(&[], "exec#inner").unwrap();
        inner.close().unwrap();
        assert!(!scene.file().exists());
        outer.owe(vec![debt("exec#d")]).unwrap();
        outer.pay(&[], "exec#inner").unwrap();
        outer.pay(&[], "exec#d").unwrap();
        outer.close().unwrap();
        assert_eq!(scene.names(), 0);
    }

    #[test]
    fn manifests_do_not_meet() {
        let scene = Scene::new();
        scene.ledger().owe(vec![debt("exec#a")]).unwrap();
        Ledger::open(&scene.state, "/n.yaml", false).unwrap().owe(vec![debt("exec#b")]).unwrap();
        assert_eq!(scene.owed(), ["exec#a"]);
        let all = list(&scene.state).unwrap();
        let all: Vec<_> = all.iter().map(|(m, debt)| (&**m, &*debt.subscriber)).collect();
        assert_eq!(all, [("/m.yaml", "exec#a"), ("/n.yaml", "exec#b")]);
    }

    #[test]
    fn a_file_cut_anywhere_can_be_read_and_written() {
        let scene = Scene::new();
        scene.ledger().owe(vec![debt("exec#a"), debt("exec#b")]).unwrap();
        let whole = std::fs::read(scene.file()).unwrap();
        for end in 0..=whole.len() {
            std::fs::write(scene.file(), &whole[..end]).unwrap();
            let before = scene.owed();
            assert!(
                ["exec#a", "exec#b"].starts_with(&before.iter().map(|s| &**s).collect::<Vec<_>>())
            );
            scene.ledger().owe(vec![debt("exec#z")]).unwrap();
            assert_eq!(scene.owed().len(), before.len() + 1, "cut at {end}");
            assert_eq!(scene.host.take_warnings(), [""; 0], "cut at {end}");
        }
    }

    #[test]
    fn flipped_bits_are_reported_and_the_rest_survives() {
        let scene = Scene::new();
        scene.ledger().owe(vec![debt("exec#a"), debt("exec#b")]).unwrap();
        let whole = std::fs::read(scene.file()).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(scene.file(), &flipped).unwrap();
            let host = Host::new();
            let state = host.state_dir(&scene.dir.path().join("state"), false).unwrap().unwrap();
            let mut ledger = Ledger::open(&state, "/m.yaml", false).unwrap();
            let is_last = bit / 8 == whole.len() - 1;
            assert!(is_last || !host.take_warnings().is_empty(), "bit {bit}");
            // Without its end, a line takes the next one with it.
            let is_end = whole[bit / 8] == b'\n';
            assert!(is_end || ledger.debts().count() >= 1, "bit {bit}");
            ledger.owe(vec![debt("exec#z")]).unwrap();
            assert!(scene.owed().contains(&"exec#z".to_owned()), "bit {bit}");
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_kept() {
        let scene = Scene::new();
        scene.ledger().owe(vec![debt("exec#a")]).unwrap();
        let newer = Record::Header { format: FORMAT + 1, manifest: "/m.yaml".into() };
        let bytes = [encode(&newer), encode(&serde_json::json!({"lent": 1}))].concat();
        std::fs::write(scene.file(), &bytes).unwrap();
        assert!(Ledger::open(&scene.state, "/m.yaml", true).is_ok());
        assert!(scene.host.take_warnings()[0].contains("newer"));
        assert_eq!(scene.names(), 1, "a preview only reports it");
        scene.ledger().owe(vec![debt("exec#b")]).unwrap();
        assert_eq!(std::fs::read(scene.file().with_extension("newer")).unwrap(), bytes);
        assert_eq!(scene.owed(), ["exec#b"]);
    }
}
