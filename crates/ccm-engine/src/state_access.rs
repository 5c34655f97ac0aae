//! The state directory of a run, and its lock.

use std::path::PathBuf;
use std::time::Duration;

use ccm_host::{Error as HostError, Host, LockError, LockHolder, RunLock, StateDir};

use ccm_state::history::Limits;

use crate::chain;
use crate::history::HistoryInfo;
use crate::options::RunOptions;

/// Where a run keeps its state, and what happens if it cannot.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Debug, Default)]
pub struct StateRequest {
    /// The directory; `None` for a user without a home.
    pub path: Option<PathBuf>,
    /// Use no state directory.
    pub is_off: bool,
    /// Fail without a state directory.
    pub is_required: bool,
    /// Read what is there and change nothing, as a preview does in any case.
    pub is_read_only: bool,
    /// Keep no history.
    pub has_no_history: bool,
    /// How long to wait for another run.
    pub lock_timeout: Duration,
}

/// Why a run cannot use its state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is none, or it cannot be written.
    #[error("{message}")]
    Unusable {
        /// What was done, to what, and why it failed.
        message: String,
        /// What to do.
        hint: &'static str,
    },
    /// Other users can change it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another run goes on.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl StateError {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unusable { hint, .. } => Some((*hint).to_owned()),
            Self::Host(error) => error.hint(),
            Self::Lock(LockError::Busy { .. }) => {
                Some("try again when it is done, or wait longer with --lock-timeout".to_owned())
            }
            Self::Lock(_) => None,
        }
    }
}

impl StateRequest {
    /// The directory for a command that only reads it. One that cannot be used is
    /// worth a warning.
    pub fn read_only(&self, host: &Host) -> Option<StateDir> {
        let path = self.path.as_ref().filter(|_| !self.is_off)?;
        match host.state_dir(path, false) {
            Ok(directory) => directory,
            Err(error) => {
                let error = chain(&error);
                host.warn(format!("{error}; ccm does not know what earlier runs owe"));
                None
            }
        }
    }
}

/// The state directory of a run that may change the machine.
#[derive(Debug)]
pub(crate) struct StateAccess {
    directory: Option<StateDir>,
    timeout: Duration,
    is_required: bool,
    /// Nothing may be written without the lock.
    is_locked: bool,
}

impl StateAccess {
    /// Opens the directory and gives it to the run, but takes no lock yet. A run
    /// that changes nothing only reads what is there.
    ///
    /// # Errors
    ///
    /// Fails if other users can change the directory, and if there is none and the
    /// request needs one. Otherwise a run without one gets a warning.
    pub(crate) fn open(
        request: &StateRequest,
        session: Option<PathBuf>,
        options: &mut RunOptions,
    ) -> Result<Self, StateError> {
        let (timeout, is_required) = (request.lock_timeout, request.is_required);
        let mut access = Self { directory: None, timeout, is_required, is_locked: false };
        if request.is_off {
            return Ok(access);
        }
        let mode = options.mode;
        options.state.session = session;
        options.state.history = (!request.has_no_history).then(HistoryInfo::default);
        let host = &options.host;
        if !request.has_no_history && request.path.is_some() {
            host.keep_images(Limits::default().content);
        }
        if request.is_read_only || mode.noop || mode.health_check_only {
            options.state.directory = request.read_only(host);
            return Ok(access);
        }
        let Some(path) = &request.path else {
            let message = "there is no home directory to keep state in";
            access.go_without(host, message, None)?;
            return Ok(access);
        };
        match host.state_dir(path, true) {
            Ok(directory) => {
                access.is_locked = directory.is_some();
                options.state.directory.clone_from(&directory);
                access.directory = directory;
            }
            Err(error @ HostError::SharedState { .. }) => return Err(error.into()),
            Err(error) => {
                access.go_without(host, "cannot use the state directory", Some(&error))?;
            }
        }
        Ok(access)
    }

    /// Takes the lock, for as long as the result lives. A run without a lock that
    /// works keeps no records, because another run may write the same ones.
    ///
    /// # Errors
    ///
    /// Fails if another run goes on for too long, and without a lock if the
    /// request needs one.
    pub(crate) fn lock(
        &mut self,
        options: &mut RunOptions,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Option<RunLock>, StateError> {
        let lock = self.take_lock(&options.host, waiting)?;
        if self.is_lost() {
            options.state.directory = None;
        }
        Ok(lock)
    }

    /// Whether there is a directory without a lock that works.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_locked && self.directory.is_none()
    }

    /// As [`StateAccess::lock`], for a run that has begun.
    ///
    /// # Errors
    ///
    /// As [`StateAccess::lock`].
    pub(crate) fn take_lock(
        &mut self,
        host: &Host,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Option<RunLock>, StateError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let lock = directory.lock(self.timeout, &mut |holder| waiting(&wait_for(holder)));
        match lock {
            Ok(lock) => {
                host.set_run_token(lock.token());
                Ok(Some(lock))
            }
            Err(LockError::Host(error)) => {
                self.go_without(host, "cannot use the lock", Some(&error))?;
                self.directory = None;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A run without state is better than none, unless someone says otherwise.
    fn go_without(
        &self,
        host: &Host,
        what: &str,
        error: Option<&HostError>,
    ) -> Result<(), StateError> {
        let reason = error.map(|error| format!(": {}", chain(error))).unwrap_or_default();
        let message = format!("{what}{reason}");
        if self.is_required {
            let hint = "--require-state is set; choose another directory with --state-dir";
            return Err(StateError::Unusable { message, hint });
        }
        // Owed reactions would be lost that could be kept.
        if error.is_some_and(is_full) {
            let hint =
                "free some space, choose another directory with --state-dir, or give --no-state";
            return Err(StateError::Unusable { message, hint });
        }
        host.warn(format!("{message}; ccm runs without a lock and keeps no records"));
        Ok(())
    }
}

fn is_full(error: &HostError) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            use std::io::ErrorKind::{QuotaExceeded, StorageFull};
            return matches!(error.kind(), StorageFull | QuotaExceeded);
        }
        source = error.source();
    }
    false
}

/// What to print while another run goes on.
pub fn wait_for(holder: Option<&LockHolder>) -> String {
    match holder {
        Some(holder) => format!("waiting for another run: {holder}"),
        None => "waiting for another run".to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set their stage")]
mod tests {
    use ccm_host::{Cancel, System};

    use super::*;
    use crate::engine::Engine;

    fn request(path: PathBuf) -> StateRequest {
        StateRequest { path: Some(path), ..StateRequest::default() }
    }

    fn options() -> RunOptions {
        Engine::new(System::default(), &[]).options(Cancel::default())
    }

    #[test]
    fn a_run_creates_its_directory_and_a_preview_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path().join("state"));
        let mut preview = options();
        preview.mode.noop = true;
        let mut access = StateAccess::open(&request, None, &mut preview).unwrap();
        assert!(preview.state.directory.is_none());
        assert!(access.lock(&mut preview, &mut |_| {}).unwrap().is_none());
        assert!(!access.is_lost());
        let mut run = options();
        let mut access = StateAccess::open(&request, None, &mut run).unwrap();
        assert!(run.state.directory.is_some());
        assert!(access.lock(&mut run, &mut |_| {}).unwrap().is_some());
        // Now there is something to read.
        StateAccess::open(&request, None, &mut preview).unwrap();
        assert!(preview.state.directory.is_some());
        let mut without = options();
        let off = StateRequest { is_off: true, ..request };
        StateAccess::open(&off, None, &mut without).unwrap();
        assert!(without.state.directory.is_none() && without.state.history.is_none());
    }

    #[test]
    fn the_second_run_waits_and_then_gives_up() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path().join("state"));
        let (mut first, mut second) = (options(), options());
        let mut holder = StateAccess::open(&request, None, &mut first).unwrap();
        let lock = holder.lock(&mut first, &mut |_| {}).unwrap();
        let mut access = StateAccess::open(&request, None, &mut second).unwrap();
        let mut said = Vec::new();
        let refused = access.lock(&mut second, &mut |text| said.push(text.to_owned()));
        assert!(matches!(refused, Err(StateError::Lock(LockError::Busy { .. }))), "{refused:?}");
        assert!(refused.unwrap_err().hint().unwrap().contains("--lock-timeout"));
        drop(lock);
        assert!(access.lock(&mut second, &mut |_| {}).unwrap().is_some());
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_a_warning_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let request = request(dir.path().join("file/state"));
        let mut run = options();
        StateAccess::open(&request, None, &mut run).unwrap();
        let warning = run.host.take_warnings().concat();
        assert!(warning.contains("ccm runs without a lock and keeps no records"), "{warning}");
        let required = StateRequest { is_required: true, ..request };
        let error = StateAccess::open(&required, None, &mut run).unwrap_err();
        assert!(error.hint().unwrap().contains("--state-dir"), "{error}");
    }
}
