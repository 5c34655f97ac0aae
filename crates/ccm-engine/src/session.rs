//! Sessions: recorded events, in memory or in a directory that several
//! processes share.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ccm_host::{Attributes, Content, Host};
use ccm_model::{Counts, Event, EventId, Report, ResourceRef, SessionStart, Summary};
use jiff::Timestamp;

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} session {}", path.display())]
pub struct SessionError {
    action: &'static str,
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The outcome of a resource's last event, for references to it.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastOutcome {
    /// It changed, or would have.
    pub changed: bool,
    /// It failed.
    pub failed: bool,
    /// It was skipped because a requirement was not met.
    pub unmet: bool,
    /// Nothing was really done.
    pub noop: bool,
    /// Only the real run can tell whether it changes.
    pub provisional: bool,
    /// ID of that event.
    id: EventId,
}

impl From<&Event> for LastOutcome {
    fn from(event: &Event) -> Self {
        let unmet = !event.unmet_requirements.is_empty();
        Self {
            changed: event.changed,
            failed: event.failed,
            unmet,
            noop: event.noop,
            provisional: event.provisional,
            id: event.event_id,
        }
    }
}

/// The record of a run.
pub trait Session {
    /// Records one event.
    fn record(&mut self, event: &Event) -> Result<(), SessionError>;

    /// Records an event that says nothing about the resource to those that refer
    /// to it: control skipped it, and another one of its name was managed.
    fn record_unseen(&mut self, event: &Event) -> Result<(), SessionError>;

    /// Returns the last outcome of a resource, by name or alias.
    fn last(&mut self, reference: &ResourceRef) -> Option<LastOutcome>;
}

/// A session that lasts as long as its process.
#[derive(Debug, Default)]
pub struct MemorySession {
    last: HashMap<String, LastOutcome>,
}

impl MemorySession {
    fn remember(&mut self, event: &Event) {
        let mut insert = |name: &str| {
            let mut key = String::with_capacity(event.kind.len() + 1 + name.len());
            key.extend([&*event.kind, "#", name]);
            let last = self.last.entry(key).or_default();
            if last.id <= event.event_id {
                *last = event.into();
            }
        };
        insert(&event.name);
        if let Some(alias) = &event.alias {
            insert(alias);
        }
    }
}

impl Session for MemorySession {
    fn record(&mut self, event: &Event) -> Result<(), SessionError> {
        self.remember(event);
        Ok(())
    }

    fn record_unseen(&mut self, _event: &Event) -> Result<(), SessionError> {
        Ok(())
    }

    fn last(&mut self, reference: &ResourceRef) -> Option<LastOutcome> {
        self.last.get(&reference.to_string()).copied()
    }
}

/// No session: for a run in which nothing refers to anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSession;

impl Session for NoSession {
    fn record(&mut self, _event: &Event) -> Result<(), SessionError> {
        Ok(())
    }

    fn record_unseen(&mut self, _event: &Event) -> Result<(), SessionError> {
        Ok(())
    }

    fn last(&mut self, _reference: &ResourceRef) -> Option<LastOutcome> {
        None
    }
}

/// A session in a directory: one file per event, `<event_id>.event`, so that
/// several processes can write it at the same time.
#[derive(Debug)]
pub struct DirectorySession {
    host: Host,
    path: PathBuf,
    /// Cached events of the directory.
    known: MemorySession,
    read: HashSet<OsString>,
    /// The directory's time of change when it was last read.
    seen: Option<Timestamp>,
}

impl DirectorySession {
    const EXTENSION: &'static str = "event";
    /// An event is a few kilobytes; one that holds a file's content is larger.
    const MAX_EVENT: u64 = 64 << 20;

    /// Creates a new session under the system's temporary directory.
    pub fn create(host: &Host) -> Result<PathBuf, SessionError> {
        let failed = |source: ccm_host::Error| SessionError {
            action: "create",
            path: host.temp_dir(),
            source: source.into(),
        };
        let path = host.private_directory("ccm-session-").map_err(failed)?;
        Self::open(host, &path)?.start()?;
        Ok(path)
    }

    /// The report of the session in a directory, if there is one.
    pub fn report_of(host: &Host, path: &Path) -> Result<Option<Report>, SessionError> {
        let failed = |source: ccm_host::Error| SessionError {
            action: "open",
            path: path.to_owned(),
            source: source.into(),
        };
        match host.stat(path).map_err(failed)? {
            Some(_) => Self::open(host, path)?.report().map(Some),
            None => Ok(None),
        }
    }

    /// Opens a session; the directory is made if it is not there.
    pub fn open(host: &Host, path: &Path) -> Result<Self, SessionError> {
        let this = Self {
            host: host.clone(),
            path: path.to_owned(),
            known: MemorySession::default(),
            read: HashSet::new(),
            seen: None,
        };
        let found = host.stat(path).map_err(|error| this.error("open", error))?;
        let (uid, gid) = host.whoami();
        if let Some(found) = found {
            // A file, or a directory that may not be listed, is found out now.
            host.list(path).map_err(|error| this.error("open", error))?;
            // A user who can add an event can trigger commands that subscribe to it.
            if host.is_root() {
                host.check_trusted_directory(path).map_err(|error| this.error("open", error))?;
            } else if found.uid != uid || found.mode & 0o022 != 0 {
                host.warn(format!("the session {} is writable by other users", path.display()));
            }
        } else {
            host.create_directory(path, &Attributes { uid, gid, mode: 0o700 })
                .map_err(|error| this.error("create", error))?;
            this.start()?;
        }
        Ok(this)
    }

    fn start(&self) -> Result<(), SessionError> {
        let timestamp = self.host.now();
        let start = SessionStart {
            protocol: SessionStart::PROTOCOL.into(),
            event_id: EventId::new(timestamp, self.host.random()),
            timestamp,
        };
        self.write(start.event_id, &start)
    }

    /// Everything that is recorded, in the order of recording.
    pub fn events(&self) -> Result<(Summary, Vec<Event>), SessionError> {
        let mut names = self.host.list(&self.path).map_err(|error| self.error("read", error))?;
        names.sort();
        let records: Vec<Record> = names.iter().filter_map(|name| self.read_file(name)).collect();
        let first = records.iter().map(|record| match record {
            Record::Start(start) => start.timestamp,
            Record::Event(event) => event.timestamp,
        });
        let start = first.min().unwrap_or(Timestamp::UNIX_EPOCH);
        let mut summary = Summary::starting(start);
        let mut events = Vec::new();
        for record in records {
            if let Record::Event(event) = record {
                summary.add(&event);
                events.push(*event);
            }
        }
        if !events.is_empty() && events.iter().all(|event| event.noop) {
            summary.outcomes = Counts::default();
            for event in &events {
                summary.outcomes.add(event, true);
            }
        }
        Ok((summary, events))
    }

    /// Everything that is recorded, as a report.
    pub fn report(&self) -> Result<Report, SessionError> {
        let (summary, events) = self.events()?;
        Ok(Report {
            protocol: Report::PROTOCOL,
            manifest: self.path.display().to_string(),
            noop: events.iter().any(|event| event.noop),
            health_check_only: !events.is_empty()
                && events.iter().all(|event| event.health_check_only),
            started: summary.start,
            summary,
            events,
            warnings: Vec::new(),
            errors: Vec::new(),
            owed: Vec::new(),
        })
    }

    /// Removes a session, if it lies where temporary files belong and nothing
    /// else is in it.
    pub fn remove(host: &Host, path: &Path) -> Result<(), SessionError> {
        let error = |source: Box<dyn std::error::Error + Send + Sync>| SessionError {
            action: "remove",
            path: path.to_owned(),
            source,
        };
        let real = host.canonicalize(path).map_err(|source| error(source.into()))?;
        let temporary =
            host.canonicalize(&host.temp_dir()).map_err(|source| error(source.into()))?;
        if real == temporary || !real.starts_with(&temporary) {
            let reason = format!("it is not under {}; remove it by hand", temporary.display());
            return Err(error(reason.into()));
        }
        let names = host.list(&real).map_err(|source| error(source.into()))?;
        let is_ours = |name: &OsString| {
            Path::new(name).extension().is_some_and(|extension| extension == Self::EXTENSION)
        };
        if let Some(name) = names.iter().find(|name| !is_ours(name)) {
            let reason = format!("it also holds {}; remove it by hand", name.to_string_lossy());
            return Err(error(reason.into()));
        }
        if names.is_empty() {
            return Err(error("it contains no event; remove it by hand".into()));
        }
        for name in &names {
            host.remove(&real.join(name)).map_err(|source| error(source.into()))?;
        }
        host.remove(&real).map_err(|source| error(source.into()))
    }

    fn write(&self, id: EventId, record: &impl serde::Serialize) -> Result<(), SessionError> {
        let (uid, gid) = self.host.whoami();
        let json = serde_json::to_vec(record).map_err(|error| self.error("write", error))?;
        let path = self.path.join(format!("{id}.{}", Self::EXTENSION));
        let attributes = Attributes { uid, gid, mode: 0o600 };
        self.host
            .replace_unsynced(&path, Content::Bytes(&json), &attributes)
            .map(drop)
            .map_err(|error| self.error("write", error))
    }

    /// The directory's time of change.
    fn changed(&self) -> Option<Timestamp> {
        self.host.stat(&self.path).ok().flatten().map(|stat| stat.mtime)
    }

    /// Reads what other processes have recorded since.
    fn refresh(&mut self) {
        let changed = self.changed();
        if changed.is_some() && changed == self.seen {
            return;
        }
        self.seen = changed;
        let mut names = match self.host.list(&self.path) {
            Ok(names) => names,
            Err(error) => {
                let error = crate::chain(&error);
                self.host.warn(format!("cannot read the session: {error}"));
                return;
            }
        };
        names.retain(|name| !self.read.contains(name));
        names.sort();
        for name in names {
            if let Some(Record::Event(event)) = self.read_file(&name) {
                self.known.remember(&event);
            }
            self.read.insert(name);
        }
    }

    /// One file of the session. What cannot be read is reported and passed
    /// over: a session outlives a bad file.
    fn read_file(&self, name: &OsString) -> Option<Record> {
        let path = self.path.join(name);
        if path.extension()? != Self::EXTENSION {
            return None;
        }
        let text = match self.host.read_trusted(&path, Self::MAX_EVENT) {
            Ok(text) => text,
            Err(error) => {
                let error = crate::chain(&error);
                self.host.warn(format!("{error}; ccm ignores this event of the session"));
                return None;
            }
        };
        if let Ok(event) = serde_json::from_str::<Event>(&text)
            && event.protocol == Event::PROTOCOL
        {
            return Some(Record::Event(event.into()));
        }
        if let Ok(start) = serde_json::from_str::<SessionStart>(&text)
            && start.protocol == SessionStart::PROTOCOL
        {
            return Some(Record::Start(start));
        }
        let path = path.display();
        self.host.warn(format!("{path} is not an event; ccm ignores it"));
        None
    }

    fn error(
        &self,
        action: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> SessionError {
        SessionError { action, path: self.path.clone(), source: source.into() }
    }
}

enum Record {
    Start(SessionStart),
    Event(Box<Event>),
}

impl Session for DirectorySession {
    fn record(&mut self, event: &Event) -> Result<(), SessionError> {
        self.known.remember(event);
        self.record_unseen(event)
    }

    fn record_unseen(&mut self, event: &Event) -> Result<(), SessionError> {
        let is_current = self.seen.is_some() && self.changed() == self.seen;
        self.write(event.event_id, event)?;
        // Our own file is no reason to look for those of others.
        if is_current {
            self.read.insert(format!("{}.{}", event.event_id, Self::EXTENSION).into());
            self.seen = self.changed();
        }
        Ok(())
    }

    fn last(&mut self, reference: &ResourceRef) -> Option<LastOutcome> {
        self.refresh();
        self.known.last(reference)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn event(name: &str, at: i64) -> Event {
        let timestamp = Timestamp::from_second(at).unwrap();
        Event {
            protocol: Event::PROTOCOL.into(),
            event_id: EventId::new(timestamp, [0; 12]),
            timestamp,
            kind: "file".into(),
            name: name.into(),
            ..Event::default()
        }
    }

    #[test]
    fn names_and_aliases_find_the_last_event() {
        let mut session = MemorySession::default();
        let aliased = Event { alias: Some("motd".into()), changed: true, ..event("/a", 1) };
        session.record(&aliased).unwrap();
        session.record(&Event { failed: true, ..event("/b", 2) }).unwrap();
        session.record(&event("/b", 3)).unwrap();
        assert!(session.last(&"file#motd".parse().unwrap()).unwrap().changed);
        assert!(session.last(&"file#/a".parse().unwrap()).unwrap().changed);
        assert!(!session.last(&"file#/b".parse().unwrap()).unwrap().failed);
        assert_eq!(session.last(&"exec#/a".parse().unwrap()), None);
    }

    #[test]
    fn directories_are_private_and_shared_between_processes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session");
        let host = Host::new();
        let mut first = DirectorySession::open(&host, &path).unwrap();
        let mut second = DirectorySession::open(&host, &path).unwrap();
        first.record(&Event { changed: true, ..event("/a", 1_800_000_001) }).unwrap();
        assert!(second.last(&"file#/a".parse().unwrap()).unwrap().changed);
        assert_eq!(second.last(&"file#/b".parse().unwrap()), None);
        first.record(&event("/b", 1_800_000_002)).unwrap();
        assert!(second.last(&"file#/b".parse().unwrap()).is_some());
        first.record(&Event { failed: true, ..event("/b", 1_800_000_003) }).unwrap();
        assert!(second.last(&"file#/b".parse().unwrap()).unwrap().failed, "the last event counts");
        second.record(&event("/b", 1_800_000_002)).unwrap();
        assert!(second.last(&"file#/b".parse().unwrap()).unwrap().failed, "by its id");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for entry in std::fs::read_dir(&path).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }

    #[test]
    fn bad_files_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let mut session = DirectorySession::open(&host, &dir.path().join("s")).unwrap();
        session.record(&event("/a", 1_800_000_000)).unwrap();
        for (name, text) in [("x.event", "{\"half"), ("y.event", "{}"), ("notes.txt", "hello")] {
            std::fs::write(dir.path().join("s").join(name), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("s/d.event")).unwrap();
        std::os::unix::fs::symlink("/nonexistent", dir.path().join("s/l.event")).unwrap();
        let (summary, events) = session.events().unwrap();
        assert_eq!((summary.total, events.len()), (1, 1));
    }

    #[test]
    fn only_temporary_sessions_are_removed() {
        let host = Host::new();
        let path = DirectorySession::create(&host).unwrap();
        DirectorySession::remove(&host, &path).unwrap();
        assert!(!path.exists());
        let error = DirectorySession::remove(&host, Path::new("/usr")).unwrap_err();
        assert!(crate::chain(&error).contains("remove it by hand"), "{error}");
        assert!(DirectorySession::remove(&host, &host.temp_dir()).is_err());
        let precious = tempfile::tempdir().unwrap();
        assert!(DirectorySession::remove(&host, precious.path()).is_err(), "it is no session");
        std::fs::write(precious.path().join("notes"), "").unwrap();
        assert!(DirectorySession::remove(&host, precious.path()).is_err());
        assert!(precious.path().join("notes").exists());
    }
}
