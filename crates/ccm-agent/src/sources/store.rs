//! The copies of one source on disk: a directory with trees or documents named
//! by their digests, and `current.json`, which says which one is good.
//!
//! A tree gets its final name when it is complete and on disk; `current.json`
//! is replaced after that. So a killed agent leaves the old copy or the new
//! one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ccm_archive::Limits;
use ccm_engine::chain;
use ccm_host::{Digest, Fetched, Host, Request, StateDir, TreeEntry, Validators};
use ccm_model::redact_credentials;
use serde::{Deserialize, Serialize};

use super::{Cache, LastGood, SourceContent, SourceKind};

const CURRENT: &str = "current.json";
const VERSION: u32 = 1;
const MAX_RECORD: u64 = 1 << 16;
/// As for documents that are read from files.
pub(super) const MAX_DOCUMENT: u64 = 64 << 20;
/// What is being made begins with this.
const NEW: &str = "new-";
/// What is about to be removed begins with this.
const OLD: &str = "old-";

/// What `current.json` says of the last good copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// Where it is from, without credentials.
    source: String,
    kind: SourceKind,
    /// Of the archive or document.
    pub(super) digest: Digest,
    /// Digest of the extracted files and their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<Digest>,
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub(super) validators: Validators,
    /// When it was fetched, in seconds since 1970.
    time: i64,
    /// The last manifest that was valid when a run applied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_valid: Option<ValidRecord>,
    /// Whether the source was deleted since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) deleted: bool,
}

/// A copy that a run has found valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ValidRecord {
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<Digest>,
    time: i64,
}

impl ValidRecord {
    pub(super) fn of(copy: &LastGood) -> Option<Self> {
        Some(Self { digest: copy.digest?, files: copy.files, time: copy.fetched })
    }
}

/// The copies of one source. Sources and copies share it.
#[derive(Debug)]
pub(super) struct Store {
    cache: Cache,
    name: String,
    shown: String,
    kind: SourceKind,
    /// Whether a source watches it.
    pub(super) is_watched: AtomicBool,
    is_unwanted: AtomicBool,
    /// Copies that may be in use. Locked while anything changes on disk.
    used: Mutex<Vec<Weak<LastGood>>>,
}

/// The name of the directory of a source: the first 16 digits of the digest of
/// its URL without the password.
pub(super) fn directory_name(url: &str) -> String {
    let digest = Digest::of(without_password(url).as_bytes()).to_string();
    digest[..16].to_owned()
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Why a downloaded copy was rejected, as a message.
type Refusal = String;

/// Why an archive did not become the last good copy.
pub(super) struct Rejection {
    pub(super) reason: Refusal,
    /// It is the fault of what was fetched.
    pub(super) is_invalid: bool,
}

impl From<Refusal> for Rejection {
    fn from(reason: Refusal) -> Self {
        Self { reason, is_invalid: false }
    }
}

impl Store {
    pub(super) fn new(cache: &Cache, name: &str, url: &str, kind: SourceKind) -> Self {
        Self {
            cache: cache.clone(),
            name: name.to_owned(),
            shown: redact_credentials(url).into_owned(),
            kind,
            is_watched: AtomicBool::new(false),
            is_unwanted: AtomicBool::new(false),
            used: Mutex::default(),
        }
    }

    /// The URL without credentials.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    fn used(&self) -> MutexGuard<'_, Vec<Weak<LastGood>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory, made if it is not there.
    pub(super) fn directory(&self, host: &Host) -> ccm_host::Result<StateDir> {
        let directory = self.cache.0.directory.with_host(host).folder(&self.name, true)?;
        directory.ok_or_else(|| ccm_host::Error::NotADirectory {
            path: self.cache.0.directory.path().join(&self.name),
        })
    }

    /// The copy that an earlier agent left, if it is still good.
    pub(super) fn load(self: &Arc<Self>, host: &Host) -> Option<(Record, Arc<LastGood>)> {
        let loaded = self.try_load(host);
        match loaded {
            Ok(found) => found,
            Err(reason) => {
                tracing::warn!(source = self.shown, "cannot use the cached copy: {reason}");
                None
            }
        }
    }

    fn try_load(self: &Arc<Self>, host: &Host) -> Result<Option<(Record, Arc<LastGood>)>, Refusal> {
        let failed = |error: ccm_host::Error| chain(&error);
        let directory = self.cache.0.directory.with_host(host).folder(&self.name, false);
        let Some(directory) = directory.map_err(failed)? else { return Ok(None) };
        let Some(text) = directory.read(CURRENT, MAX_RECORD).map_err(failed)? else {
            return Ok(None);
        };
        let record: Record = serde_json::from_slice(&text)
            .map_err(|error| format!("{CURRENT} is damaged: {error}"))?;
        if (record.version, record.kind) != (VERSION, self.kind) {
            return Err("another version of ccm wrote it, or it is of another kind".to_owned());
        }
        let content = self.content(&directory, &record)?;
        let copy = self.copy(content, &record);
        self.sweep(&directory, &record);
        Ok(Some((record, copy)))
    }

    /// The last valid copy that the record names, if it is still good.
    pub(super) fn load_valid(
        self: &Arc<Self>,
        host: &Host,
        record: &Record,
    ) -> Option<Arc<LastGood>> {
        let ValidRecord { digest, files, time } = record.last_valid?;
        let record = Record { digest, files, time, ..record.clone() };
        let directory = self.directory(host).map_err(|error| chain(&error));
        match directory.and_then(|directory| self.content(&directory, &record)) {
            Ok(content) => Some(self.copy(content, &record)),
            Err(reason) => {
                tracing::warn!(source = self.shown, "cannot use the last valid copy: {reason}");
                None
            }
        }
    }

    /// What the record says is there, after a check of every byte of it.
    fn content(&self, directory: &StateDir, record: &Record) -> Result<SourceContent, Refusal> {
        let name = record.digest.to_string();
        match self.kind {
            SourceKind::Manifest => {
                let tree = directory.path().join(&name);
                let digest = tree_digest(directory.host(), &tree)?;
                if record.files != Some(digest) {
                    return Err("its files have changed".to_owned());
                }
                let found = ccm_engine::find_manifest(directory.host(), &tree, &self.shown);
                Ok(SourceContent::Manifest(found.map_err(|error| chain(&error))?))
            }
            SourceKind::Data => {
                let bytes = directory.read(&name, MAX_DOCUMENT).map_err(|error| chain(&error))?;
                let bytes = bytes.ok_or_else(|| "it is gone".to_owned())?;
                if Digest::of(&bytes) != record.digest {
                    return Err("it has changed".to_owned());
                }
                let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
                Ok(SourceContent::Document(text))
            }
        }
    }

    /// Whether the files of the copy are still those that were fetched.
    pub(super) fn check(&self, host: &Host, record: &Record) -> Result<(), Refusal> {
        let directory = self.directory(host).map_err(|error| chain(&error))?;
        self.content(&directory, record).map(drop)
    }

    fn copy(self: &Arc<Self>, content: SourceContent, record: &Record) -> Arc<LastGood> {
        let copy = Arc::new(LastGood {
            content,
            digest: Some(record.digest),
            files: record.files,
            fetched: record.time,
            _store: Some(Arc::clone(self)),
        });
        let mut used = self.used();
        used.retain(|copy| copy.strong_count() > 0);
        used.push(Arc::downgrade(&copy));
        copy
    }

    fn record(&self, host: &Host, digest: Digest, validators: &Validators) -> Record {
        Record {
            version: VERSION,
            source: self.shown.clone(),
            kind: self.kind,
            digest,
            files: None,
            validators: validators.clone(),
            time: host.now().as_second(),
            last_valid: None,
            deleted: false,
        }
    }

    /// Makes an archive the last good copy, if it unpacks and holds a manifest
    /// that parses.
    pub(super) fn put_tree(
        self: &Arc<Self>,
        host: &Host,
        request: &Request<'_>,
        fetched: Fetched,
        last_valid: Option<ValidRecord>,
    ) -> Result<(Record, Arc<LastGood>), Rejection> {
        let failed = |error: ccm_host::Error| chain(&error);
        let directory = self.directory(host).map_err(failed)?;
        let mut record = self.record(host, fetched.digest, &fetched.validators);
        record.last_valid = last_valid;
        let staged = Staged::make(&directory).map_err(failed)?;
        ccm_archive::extract_tree(host, request, fetched, &Limits::TREE, staged.path()).map_err(
            |error| {
                use ccm_archive::Error::{Host, Interrupted};
                let is_invalid = !matches!(error, Host(_) | Interrupted { .. });
                Rejection { reason: chain(&error), is_invalid }
            },
        )?;
        let invalid = |reason| Rejection { reason, is_invalid: true };
        let found = ccm_engine::find_manifest(host, staged.path(), &self.shown);
        let found = found.map_err(|error| invalid(chain(&error)))?;
        self.parse(host, &found).map_err(invalid)?;
        record.files = Some(tree_digest(host, staged.path())?);
        host.sync().map_err(failed)?;
        let inner = found.strip_prefix(staged.path()).unwrap_or(&found).to_owned();
        let name = record.digest.to_string();
        let used = self.used();
        is_wanted(host)?;
        staged.place(&name).map_err(failed)?;
        write(&directory, &record).map_err(failed)?;
        drop(used);
        let path = directory.path().join(name).join(inner);
        let copy = self.copy(SourceContent::Manifest(path), &record);
        Ok((record, copy))
    }

    fn parse(&self, host: &Host, manifest: &Path) -> Result<(), Refusal> {
        let (text, _) =
            host.read_text(manifest, Limits::TREE.bytes).map_err(|error| chain(&error))?;
        let source = ccm_yaml::Source::new("manifest.yaml", text);
        let wrong = |error: ccm_yaml::SyntaxError| {
            let line = source.line(error.span.start);
            format!("{}: manifest.yaml, line {line}: {error}", self.shown)
        };
        ccm_yaml::parse_lenient(&source).map(drop).map_err(wrong)
    }

    /// Makes a document the last good copy.
    pub(super) fn put_document(
        self: &Arc<Self>,
        host: &Host,
        text: String,
        fetched: &Fetched,
    ) -> Result<(Record, Arc<LastGood>), Refusal> {
        self.put_text(host, text, fetched.digest, &fetched.validators)
    }

    /// Makes a text of this digest the last good copy.
    pub(super) fn put_text(
        self: &Arc<Self>,
        host: &Host,
        text: String,
        digest: Digest,
        validators: &Validators,
    ) -> Result<(Record, Arc<LastGood>), Refusal> {
        let failed = |error: ccm_host::Error| chain(&error);
        let directory = self.directory(host).map_err(failed)?;
        let record = self.record(host, digest, validators);
        let used = self.used();
        is_wanted(host)?;
        directory.write(&record.digest.to_string(), text.as_bytes()).map_err(failed)?;
        write(&directory, &record).map_err(failed)?;
        drop(used);
        let copy = self.copy(SourceContent::Document(text), &record);
        Ok((record, copy))
    }

    /// Replaces the metadata of the copy.
    pub(super) fn update(&self, host: &Host, record: &Record) -> Result<(), Refusal> {
        let failed = |error: ccm_host::Error| chain(&error);
        let directory = self.directory(host).map_err(failed)?;
        let _used = self.used();
        is_wanted(host)?;
        write(&directory, record).map_err(failed)
    }

    /// Removes unused copies, and leftovers of a killed agent.
    pub(super) fn sweep(&self, directory: &StateDir, record: &Record) {
        let mut used = self.used();
        used.retain(|copy| copy.strong_count() > 0);
        let in_use: Vec<String> = used
            .iter()
            .filter_map(|copy| Some(copy.upgrade()?.digest?.to_string()))
            .chain(record.last_valid.map(|valid| valid.digest.to_string()))
            .chain([record.digest.to_string(), CURRENT.to_owned()])
            .collect();
        let removed = directory.names().and_then(|names| {
            let unused = |name: &&OsString| in_use.iter().all(|used| OsStr::new(used) != **name);
            names.iter().filter(unused).try_for_each(|name| directory.remove_tree(name))
        });
        if let Err(error) = removed {
            tracing::debug!(source = self.shown, "cannot remove an old copy: {}", chain(&error));
        }
    }

    /// Removes the directory once neither a source nor a run uses it.
    pub(super) fn remove_when_unused(&self) {
        if !self.is_watched.load(Ordering::SeqCst) {
            self.is_unwanted.store(true, Ordering::SeqCst);
        }
    }

    /// Says that a source watches it; false if another one does.
    pub(super) fn watch(&self) -> bool {
        self.is_unwanted.store(false, Ordering::SeqCst);
        !self.is_watched.swap(true, Ordering::SeqCst)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.is_unwanted.load(Ordering::SeqCst)
            && let Err(error) = self.cache.0.directory.remove_tree(&self.name)
        {
            tracing::warn!("cannot remove an old copy: {}", chain(&error));
        }
    }
}

/// Fails if the source is no longer watched: another one may have replaced it.
fn is_wanted(host: &Host) -> Result<(), Refusal> {
    if host.cancel().is_cancelled() {
        return Err("the source is no longer watched".to_owned());
    }
    Ok(())
}

fn write(directory: &StateDir, record: &Record) -> ccm_host::Result<()> {
    let mut text = serde_json::to_string_pretty(record).unwrap_or_default();
    text.push('\n');
    directory.write(CURRENT, text.as_bytes())
}

/// A tree that is being made. Dropped before it has its name, it is removed.
struct Staged<'a> {
    directory: &'a StateDir,
    name: String,
    path: PathBuf,
    is_placed: bool,
}

impl<'a> Staged<'a> {
    fn make(directory: &'a StateDir) -> ccm_host::Result<Self> {
        let random = u64::from_ne_bytes(directory.host().random());
        let name = format!("{NEW}{random:016x}");
        let path = directory.make_folder(&name)?.path().to_owned();
        Ok(Self { directory, name, path, is_placed: false })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the tree its name, in place of a damaged one that has it.
    fn place(mut self, name: &str) -> ccm_host::Result<()> {
        let old = format!("{OLD}{}", self.name);
        if self.directory.links(name)?.is_some() {
            self.directory.rename(name, &old)?;
        }
        self.directory.rename(&self.name, name)?;
        self.is_placed = true;
        self.directory.sync()?;
        // What is left is swept later.
        let _ = self.directory.remove_tree(old);
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = self.directory.remove_tree(&self.name);
        }
    }
}

/// The digest of the files of a tree: their names, whether they can be executed,
/// and their contents.
fn tree_digest(host: &Host, path: &Path) -> Result<Digest, Refusal> {
    use std::os::unix::ffi::OsStrExt as _;
    let failed = |error: ccm_host::Error| chain(&error);
    let tree = host.open_tree(path).map_err(failed)?.ok_or_else(|| "it is gone".to_owned())?;
    let entries = tree.entries().map_err(failed)?;
    if let Some(error) = entries.unknown {
        return Err(chain(&error));
    }
    let mut lines = Vec::new();
    let mut add = |kind: u8, place: &Path, digest: &str| {
        let name = place.as_os_str().as_bytes();
        lines.push(kind);
        lines.extend_from_slice(digest.as_bytes());
        // A length, as names may hold anything.
        lines.extend_from_slice(&(name.len() as u64).to_be_bytes());
        lines.extend_from_slice(name);
    };
    for place in &entries.directories {
        add(b'd', place, "");
    }
    for place in &entries.files {
        let TreeEntry::File(file, stat) = tree.open(place).map_err(failed)? else {
            return Err(format!("{} is not a regular file", place.display()));
        };
        let read = ccm_host::Digesting::new(file).finish();
        let (_, digest) = read.map_err(|error| format!("{}: {error}", place.display()))?;
        let kind = if stat.mode & 0o100 == 0 { b'f' } else { b'x' };
        add(kind, place, &digest.to_string());
    }
    Ok(Digest::of(&lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_change_the_directory_and_everything_else_does() {
        let base = directory_name("https://me:one@host/a.tgz?v=1");
        assert_eq!(base.len(), 16);
        assert_eq!(base, directory_name("https://me:two@host/a.tgz?v=1"));
        assert_eq!(base, directory_name("https://me@host/a.tgz?v=1"));
        for other in [
            "https://you:one@host/a.tgz?v=1",
            "https://host/a.tgz?v=1",
            "https://me:one@host/a.tgz?v=2",
            "https://me:one@host/b.tgz?v=1",
            "http://me:one@host/a.tgz?v=1",
        ] {
            assert_ne!(base, directory_name(other), "{other}");
        }
        let digest = Digest::of(b"obj://B/a/b.tgz").to_string();
        assert_eq!(directory_name("obj://B/a/b.tgz"), digest[..16]);
    }
}
