//! A whole run that takes requests one after the other.

use ccm_host::{Host, RunLock};
use ccm_model::{Diagnostic, Event, Request};

use crate::engine::{Engine, EnsureError};
use crate::options::RunOptions;
use crate::run::{Finished, Observer, Run, Stop};
use crate::run_error::{RunError, RunExit};
use crate::session::{MemorySession, Session};
use crate::state_access::{StateAccess, StateError, StateRequest};
use crate::whole_run::{RunResult, SessionRequest, open_session};

/// A run that can take requests: its state directory and its session are open.
pub struct OpenRun<'a> {
    engine: &'a Engine,
    options: RunOptions,
    access: StateAccess,
    session: Box<dyn Session>,
    /// The lock of the whole run. Without it, each request takes it, so that
    /// others get their turn between two requests.
    lock: Option<RunLock>,
    is_locked: bool,
}

impl Engine {
    /// Opens state directory and session of a run that takes requests.
    ///
    /// # Errors
    ///
    /// Returns why the run cannot begin.
    pub fn open<'a, E>(
        &'a self,
        mut options: RunOptions,
        state: &StateRequest,
        session: Option<SessionRequest>,
    ) -> Result<OpenRun<'a>, RunError<E>> {
        let path = session.as_ref().map(|session| session.path.clone());
        let access = StateAccess::open(state, path, &mut options)?;
        let session: Box<dyn Session> = match open_session(session, &options.host)? {
            Some(session) => Box::new(session),
            None => Box::new(MemorySession::default()),
        };
        Ok(OpenRun { engine: self, options, access, session, lock: None, is_locked: false })
    }
}

impl OpenRun<'_> {
    /// Takes the lock for the whole run.
    ///
    /// # Errors
    ///
    /// Fails if the state directory cannot be opened or another run holds it for too
    /// long.
    pub fn lock(&mut self, waiting: &mut dyn FnMut(&str)) -> Result<(), StateError> {
        self.lock = self.access.lock(&mut self.options, waiting)?;
        self.is_locked = true;
        Ok(())
    }

    /// Begins the run.
    ///
    /// # Errors
    ///
    /// Returns why the data that templates see cannot be resolved.
    pub fn start<'a>(
        &'a mut self,
        observer: &'a mut dyn Observer,
    ) -> Result<Requests<'a>, ccm_hiera::Error> {
        let Self { engine, options, access, session, is_locked, .. } = self;
        let run = engine.start(options, &mut **session, observer)?;
        let access = (!*is_locked).then_some(access);
        Ok(Requests { run, access, host: options.host.clone(), is_failed: false, is_busy: false })
    }
}

/// A run that takes requests one after the other.
pub struct Requests<'a> {
    run: Run<'a>,
    /// Takes the lock for each request.
    access: Option<&'a mut StateAccess>,
    host: Host,
    /// A request could not be tried.
    is_failed: bool,
    /// Another run went on for too long.
    is_busy: bool,
}

impl Requests<'_> {
    /// Manages the resource that a request asks for.
    ///
    /// # Errors
    ///
    /// Returns all errors in the request, or why there is no lock. Nothing was
    /// changed then.
    pub fn ensure(
        &mut self,
        request: Request<'_>,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Event, EnsureError> {
        let lock = self.access.as_mut().map(|access| {
            let lock = access.take_lock(&self.host, waiting)?;
            if access.is_lost() {
                self.run.leave_state();
            }
            Ok(lock)
        });
        let _lock = lock.transpose().map_err(|error: StateError| {
            self.is_busy = true;
            EnsureError::State(error)
        })?;
        self.run.ensure(request).map_err(|error| {
            self.is_failed = true;
            EnsureError::Request(error)
        })
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        self.run.take_warnings()
    }

    /// Ends the run.
    pub fn finish(self) -> RunResult {
        let stop = self.host.cancel().reason().map(Stop::Cancelled);
        let finished = Finished { stop, ..self.run.finish() };
        let exit = match RunExit::of(&finished) {
            RunExit::Finished { .. } if self.is_busy => RunExit::Busy,
            RunExit::Finished { changed, failed } => {
                RunExit::Finished { changed, failed: failed || self.is_failed }
            }
            exit => exit,
        };
        RunResult { finished, plan: None, saved: None, exit }
    }
}
