//! Sources that are local files: read on demand, not watched.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ccm_engine::chain;
use ccm_host::{Cancel, Digest, FileKind, Host, System, Validators};

use super::poll::check_document;
use super::store::{MAX_DOCUMENT, Store};
use super::{Accept, Error, LastGood, Result, SourceContent, SourceEvent, SourceKind};

pub(super) struct Local {
    /// Keeps the last valid manifest.
    store: Arc<Store>,
    kind: SourceKind,
    path: PathBuf,
    accept: Option<Accept>,
    system: System,
    events: Box<dyn Fn(SourceEvent) + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last document that was good.
    document: Option<Arc<LastGood>>,
    /// The last manifest that a run has found valid, once it was asked for.
    last_valid: Option<Arc<LastGood>>,
    /// The error that was reported last.
    failure: Option<String>,
}

impl Local {
    pub(super) fn new(
        kind: SourceKind,
        path: PathBuf,
        accept: Option<Accept>,
        system: System,
        store: Arc<Store>,
        events: Box<dyn Fn(SourceEvent) + Send + Sync>,
    ) -> Self {
        Self { store, kind, path, accept, system, events, state: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds now. A document that cannot be used leaves the one
    /// before it; events tell so once per reason.
    pub(super) fn current(&self) -> Option<Arc<LastGood>> {
        let found = self.read();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(found) => {
                if state.failure.take().is_some() {
                    (self.events)(SourceEvent::Recovered);
                }
                if self.kind == SourceKind::Data {
                    state.document = Some(Arc::clone(&found));
                }
                Some(found)
            }
            Err(error) => {
                let message = error.to_string();
                if state.failure.as_ref() != Some(&message) {
                    state.failure = Some(message.clone());
                    (self.events)(SourceEvent::Failed { message, is_invalid: false });
                }
                state.document.clone()
            }
        }
    }

    /// Reads a document, or looks whether there is a manifest.
    pub(super) fn read(&self) -> Result<Arc<LastGood>> {
        let host = self.system.begin(Cancel::default());
        let failed = |reason: String| Error::Look {
            message: format!("cannot use {}: {reason}", self.path.display()),
        };
        let (content, digest) = match self.kind {
            SourceKind::Manifest => {
                let found = host.stat(&self.path).map_err(|error| failed(chain(&error)))?;
                match found.map(|stat| stat.kind) {
                    None => return Err(failed("there is no such file".to_owned())),
                    Some(FileKind::File) => {}
                    Some(_) => return Err(failed("it is not a regular file".to_owned())),
                }
                // What cannot be read is for the run to report.
                let digest = host.read_bytes(&self.path, MAX_DOCUMENT).ok();
                let digest = digest.map(|(bytes, _)| Digest::of(&bytes));
                (SourceContent::Manifest(self.path.clone()), digest)
            }
            SourceKind::Data => {
                let text = self.document(&host).map_err(failed)?;
                let digest = Digest::of(text.as_bytes());
                (SourceContent::Document(text), Some(digest))
            }
        };
        let fetched = host.now().as_second();
        Ok(Arc::new(LastGood { content, digest, files: None, fetched, _store: None }))
    }

    /// The text of the last manifest that a run has found valid.
    pub(super) fn last_valid(&self, host: &Host) -> Option<Arc<LastGood>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last_valid.is_none() {
            state.last_valid = self.store.load(host).map(|(_, copy)| copy);
        }
        state.last_valid.clone()
    }

    /// Keeps the text of a manifest that a run has found valid, if the file still
    /// holds it.
    pub(super) fn confirm(&self, manifest: &LastGood, host: &Host) -> Result<(), String> {
        let known = self.last_valid(host);
        let Some(digest) = manifest.digest else { return Ok(()) };
        if known.is_some_and(|known| known.digest == Some(digest)) {
            return Ok(());
        }
        let (text, _) = host.read_text(&self.path, MAX_DOCUMENT).map_err(|error| chain(&error))?;
        if Digest::of(text.as_bytes()) != digest {
            return Ok(());
        }
        let (_, copy) = self.store.put_text(host, text, digest, &Validators::default())?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_valid = Some(copy);
        Ok(())
    }

    fn document(&self, host: &Host) -> Result<String, String> {
        let text = host.read_trusted(&self.path, MAX_DOCUMENT).map_err(|error| chain(&error))?;
        for warning in host.take_warnings() {
            tracing::warn!(source = %self.path.display(), "{warning}");
        }
        check_document(&self.path.display().to_string(), &text, self.accept.as_ref())?;
        Ok(text)
    }
}
