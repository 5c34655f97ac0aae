//! One check of a source: asks its server, and stores new content if it is
//! valid.

use std::io::Read as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ccm_engine::chain;
use ccm_hiera::Document;
use ccm_host::{Cancel, Fetched, Host, Request, System, Validators};

use super::store::{MAX_DOCUMENT, Record, Rejection, Store, ValidRecord};
use super::timer::Outcome;
use super::watcher::Work;
use super::{Accept, LastGood, SourceEvent, SourceKind};

/// How often the files of a copy are compared with what was fetched.
const CHECK_INTERVAL: Duration = Duration::from_mins(5);

/// A source that others serve.
pub(super) struct Remote {
    pub(super) kind: SourceKind,
    /// With its credentials.
    pub(super) url: String,
    pub(super) accept: Option<Accept>,
    pub(super) system: System,
    pub(super) cancel: Cancel,
    pub(super) store: Arc<Store>,
    pub(super) events: Box<dyn Fn(SourceEvent) + Send + Sync>,
    pub(super) state: Mutex<State>,
}

/// What is known of a source.
#[derive(Default)]
pub(super) struct State {
    /// The last good copy, also while the source is suspended.
    pub(super) copy: Option<(Record, Arc<LastGood>)>,
    /// The last one that a run has found valid.
    pub(super) last_valid: Option<Arc<LastGood>>,
    pub(super) is_suspended: bool,
    pub(super) is_failing: bool,
    /// When the files of the copy were last compared.
    pub(super) checked: Duration,
}

/// What a check found.
enum Found {
    New { is_cheap: bool },
    Same { is_cheap: bool },
    Deleted,
}

impl Remote {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event, unless the source is no longer watched.
    fn tell(&self, event: SourceEvent) {
        if !self.cancel.is_cancelled() {
            (self.events)(event);
        }
    }

    fn attempt(&self, host: &Host) -> Result<Found, Rejection> {
        self.check_copy(host, host.since_boot());
        let known = self.state().copy.as_ref().map(|(record, _)| record.clone());
        let validators = known.as_ref().map(|record| record.validators.clone());
        let validators = validators.unwrap_or_default();
        let request = self.request().with_validators(&validators);
        let directory = self.store.directory(host).map_err(|error| chain(&error))?;
        let fetched = match host.fetch_new(&request, directory.path()) {
            Err(error @ ccm_host::Error::Deleted { .. }) => {
                return self.suspend(host, known).map_or_else(|| Err(chain(&error).into()), Ok);
            }
            fetched => fetched.map_err(|error| with_hint(&error))?,
        };
        let Some(fetched) = fetched else {
            self.restore(host);
            return Ok(Found::Same { is_cheap: true });
        };
        self.tell(SourceEvent::Fetched);
        let is_cheap = !fetched.validators.is_empty();
        if let Some(record) = known.filter(|record| record.digest == fetched.digest) {
            // A server that was told of this very version and sends it again does
            // not compare.
            let is_cheap = is_cheap && fetched.validators != validators;
            self.renew(host, record, fetched.validators);
            self.restore(host);
            return Ok(Found::Same { is_cheap });
        }
        let kept = match self.kind {
            SourceKind::Manifest => {
                let last_valid = self.state().last_valid.as_deref().and_then(ValidRecord::of);
                self.store.put_tree(host, &request, fetched, last_valid)?
            }
            SourceKind::Data => {
                let (text, fetched) = self.document(fetched)?;
                self.store.put_document(host, text, &fetched)?
            }
        };
        let record = kept.0.clone();
        let was_suspended = {
            let mut state = self.state();
            (state.copy, state.checked) = (Some(kept), host.since_boot());
            std::mem::take(&mut state.is_suspended)
        };
        // The one before is not in use any more, unless a run has it.
        self.store.sweep(&directory, &record);
        if was_suspended {
            self.tell(SourceEvent::Restored);
        }
        self.tell(SourceEvent::Changed { digest: record.digest });
        Ok(Found::New { is_cheap })
    }

    fn request(&self) -> Request<'_> {
        match self.kind {
            SourceKind::Manifest => ccm_archive::tree_request(&self.url),
            SourceKind::Data => Request::new(&self.url).with_limit(MAX_DOCUMENT),
        }
    }

    /// Withdraws a copy whose files are not those that were fetched, so that it
    /// is fetched again; removes what nobody uses any more.
    fn check_copy(&self, host: &Host, now: Duration) {
        let record = {
            let mut state = self.state();
            if now.saturating_sub(state.checked) < CHECK_INTERVAL {
                return;
            }
            state.checked = now;
            state.copy.as_ref().map(|(record, _)| record.clone())
        };
        let Some(record) = record else { return };
        if let Err(reason) = self.store.check(host, &record) {
            tracing::warn!(source = self.store.shown(), "the copy is damaged: {reason}");
            self.state().copy = None;
            self.tell(SourceEvent::Withdrawn);
            return;
        }
        self.sweep(host, &record);
    }

    fn sweep(&self, host: &Host, record: &Record) {
        if let Ok(directory) = self.store.directory(host) {
            self.store.sweep(&directory, record);
        }
    }

    /// The text of a document that may become the last good one.
    fn document(&self, mut fetched: Fetched) -> Result<(String, Fetched), String> {
        let shown = self.store.shown();
        let refused = |reason: &str| format!("cannot use {shown}: {reason}");
        let mut bytes = Vec::new();
        let read = fetched.file.read_to_end(&mut bytes);
        read.map_err(|error| refused(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
        check_document(shown, &text, self.accept.as_ref()).map_err(|reason| refused(&reason))?;
        Ok((text, fetched))
    }

    /// Remembers what the server says of a version that is here already. This
    /// saves a download later, and is worth no failure.
    fn renew(&self, host: &Host, mut record: Record, validators: Validators) {
        if record.validators == validators {
            return;
        }
        record.validators = validators;
        if let Err(reason) = self.store.update(host, &record) {
            tracing::debug!(
                source = self.store.shown(),
                "cannot store the server's validators: {reason}"
            );
        }
        if let Some((known, _)) = &mut self.state().copy {
            *known = record;
        }
    }

    /// Marks the copy of a deleted object; `None` if there never was a copy.
    fn suspend(&self, host: &Host, known: Option<Record>) -> Option<Found> {
        let mut record = known?;
        if !record.deleted {
            record.deleted = true;
            match self.store.update(host, &record) {
                Ok(()) => self.remember(record),
                // Tried again with the next check.
                Err(reason) => {
                    tracing::warn!(
                        source = self.store.shown(),
                        "cannot update the cached copy: {reason}"
                    );
                }
            }
        }
        if !std::mem::replace(&mut self.state().is_suspended, true) {
            self.tell(SourceEvent::Deleted);
        }
        Some(Found::Deleted)
    }

    /// Takes the mark away.
    fn restore(&self, host: &Host) {
        let record = self.state().copy.as_ref().map(|(record, _)| record.clone());
        if let Some(mut record) = record.filter(|record| record.deleted) {
            record.deleted = false;
            match self.store.update(host, &record) {
                Ok(()) => self.remember(record),
                Err(reason) => {
                    tracing::warn!(
                        source = self.store.shown(),
                        "cannot update the cached copy: {reason}"
                    );
                }
            }
        }
        if std::mem::take(&mut self.state().is_suspended) {
            self.tell(SourceEvent::Restored);
        }
    }

    /// The last copy that a run has found valid, if its files are still there.
    pub(super) fn last_valid(&self, host: &Host) -> Option<Arc<LastGood>> {
        let (record, _) = self.state().copy.clone()?;
        self.state().last_valid.clone().filter(|_| self.store.load_valid(host, &record).is_some())
    }

    /// Takes note that a run has found a copy valid.
    pub(super) fn confirm(&self, copy: &Arc<LastGood>, host: &Host) -> Result<(), String> {
        let valid = ValidRecord::of(copy);
        let record = self.state().copy.as_ref().map(|(record, _)| record.clone());
        let Some(mut record) = record.filter(|record| record.last_valid != valid) else {
            return Ok(());
        };
        record.last_valid = valid;
        self.store.update(host, &record)?;
        let mut state = self.state();
        state.last_valid = Some(Arc::clone(copy));
        if let Some((known, _)) = &mut state.copy {
            known.last_valid = valid;
        }
        Ok(())
    }

    fn remember(&self, record: Record) {
        if let Some((known, _)) = &mut self.state().copy {
            *known = record;
        }
    }
}

impl Work for Remote {
    fn check(&self) -> (Outcome, Result<(), String>) {
        let host = self.system.begin(self.cancel.clone());
        let found = self.attempt(&host);
        for warning in host.take_warnings() {
            tracing::warn!(source = self.store.shown(), "{warning}");
        }
        match found {
            Ok(found) => {
                if std::mem::take(&mut self.state().is_failing) {
                    self.tell(SourceEvent::Recovered);
                }
                match found {
                    Found::New { is_cheap } => (Outcome::New { is_cheap }, Ok(())),
                    Found::Same { is_cheap } => (Outcome::Same { is_cheap }, Ok(())),
                    Found::Deleted => {
                        let message = format!("{} was deleted", self.store.shown());
                        (Outcome::Same { is_cheap: true }, Err(message))
                    }
                }
            }
            Err(Rejection { reason, is_invalid }) => {
                let message = host.redactor().text(&reason).into_owned();
                let known = {
                    let mut state = self.state();
                    state.is_failing = true;
                    state.copy.as_ref().map(|(record, _)| record.clone())
                };
                // On a full disk every byte counts.
                if let Some(record) = known {
                    self.sweep(&host, &record);
                }
                self.tell(SourceEvent::Failed { message: message.clone(), is_invalid });
                (Outcome::Failed, Err(message))
            }
        }
    }
}

/// Whether a text can be the external data of a machine.
pub(super) fn check_document(
    name: &str,
    text: &str,
    accept: Option<&Accept>,
) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Document::parse(name, text).map_err(|error| chain(&error))?;
    accept.map_or(Ok(()), |accept| accept(text))
}

/// With what to do about it: there is no other place for it.
fn with_hint(error: &ccm_host::Error) -> String {
    match error.hint() {
        Some(hint) => format!("{}; {hint}", chain(error)),
        None => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{Cache, Inner, Source, SourceSettings};

    /// Who schedules runs must know that there is nothing to apply.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is what others do to a copy")]
    fn a_damaged_copy_is_withdrawn() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = b"ccm: {resources: [{exec: [{\"true\": {}}]}]}\n";
        let archive = ccm_testkit::tarball(&[("manifest.yaml", manifest)]);
        let server = ccm_testkit::Server::with_body(archive);
        let system = System::default();
        let host = system.begin(Cancel::default());
        let cache = Cache::open(&directory.path().join("cache"), &host).unwrap();
        let settings = SourceSettings {
            kind: SourceKind::Manifest,
            url: server.url("/m.tgz"),
            interval: Duration::from_hours(1),
            splay: Duration::ZERO,
            accept: None,
        };
        let (sender, events) = std::sync::mpsc::channel();
        let tell = move |event| drop(sender.send(event));
        let source = Source::start(settings, &cache, &system, None, tell).unwrap();
        let copy = source.fetch_once(Duration::from_mins(1)).unwrap();
        let crate::sources::SourceContent::Manifest(path) = &copy.content else { panic!() };
        let Inner::Remote { remote, .. } = &source.0 else { panic!() };
        let later = host.since_boot() + CHECK_INTERVAL * 2;
        remote.check_copy(&host, later);
        assert!(source.current().is_some());
        assert!(events.try_iter().all(|event| event != SourceEvent::Withdrawn));
        std::fs::write(path, "ccm: {}\n").unwrap();
        remote.check_copy(&host, later + CHECK_INTERVAL);
        assert!(source.current().is_none());
        assert_eq!(events.try_iter().last(), Some(SourceEvent::Withdrawn));
    }
}
