//! A whole run: from a request to its result. Command line, agent and studio
//! differ only in where the request comes from and where events go.

use std::path::PathBuf;
use std::time::Duration;

use ccm_host::{Host, Replay, RunLock};
use ccm_model::Plan;
use ccm_state::history::RecordedRun;

use crate::engine::Engine;
use crate::inputs::Inputs;
use crate::manifest::{Manifest, ManifestError, SourceRef};
use crate::options::RunOptions;
use crate::plan::Planned;
use crate::resource_type::Detail;
use crate::run::{Finished, NoObserver, Observer, Stop};
use crate::run_error::{RunError, RunExit};
use crate::saved_plan::{PlanRecording, SavedPlan};
use crate::selection::SelectionError;
use crate::session::{DirectorySession, Session};
use crate::state_access::{StateAccess, StateRequest};
use crate::undo::{UndoError, UndoOptions, already_undone, choose_undo};

/// What is to be run, and how. `E` is the error of reading the inputs.
pub struct RunRequest<'a, E> {
    /// What to run.
    pub source: RunSource<'a>,
    /// Machine, mode, limits and detail. Inputs, selection and state follow from
    /// the other fields.
    pub options: RunOptions,
    /// Reads facts, data and environment. A saved plan brings its own.
    pub inputs: &'a dyn Fn(&RunOptions) -> Result<Inputs, E>,
    /// The part of the manifest to run.
    pub selectors: Selectors,
    /// Where the run keeps its state.
    pub state: StateRequest,
    /// The session that records the events.
    pub session: Option<SessionRequest>,
    /// Records what a saved plan needs.
    pub is_saved: bool,
}

/// The selectors of `--only` and `--skip`.
#[derive(Clone, Debug, Default)]
pub struct Selectors {
    /// Only these, if there are any.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
}

/// What a run is made from.
pub enum RunSource<'a> {
    /// A manifest, and how to load it.
    Manifest(&'a dyn Fn(&RunOptions) -> Result<Manifest, ManifestError>),
    /// A saved plan, which is verified first.
    SavedPlan {
        /// The plan.
        plan: Box<SavedPlan>,
        /// Accept a plan for another machine.
        any_host: bool,
        /// Reject an older plan.
        max_age: Option<Duration>,
    },
    /// An earlier run, which is undone.
    Undo {
        /// The run: its id, or the first characters of it; without one, the last
        /// run that changed something.
        id: Option<String>,
        /// What of it.
        undo: UndoOptions,
    },
}

/// The session of a run.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// Its directory.
    pub path: PathBuf,
    /// It must be there already: creating it would hide that it was removed.
    pub must_exist: bool,
}

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Report, reason to stop, losses, and the message for the end.
    pub finished: Finished,
    /// The plan, if it was a preview.
    pub plan: Option<Plan>,
    /// The plan with everything that applying it needs, if it was requested and
    /// is complete.
    pub saved: Option<SavedPlan>,
    /// What the end means.
    pub exit: RunExit,
}

impl RunResult {
    /// Whether an undo had nothing to restore: the message says why.
    pub fn is_nothing_to_undo(&self) -> bool {
        self.finished.report.events.is_empty()
            && self.finished.stop.is_none()
            && self.finished.post_message.is_some()
    }
}

/// A run that can begin: its sources are checked, its lock is held.
pub struct PreparedRun<'a> {
    engine: &'a Engine,
    options: RunOptions,
    work: Work,
    session: Option<DirectorySession>,
    recording: Option<(PlanRecording, Selectors)>,
    /// The files of a saved plan last as long as its run.
    _replay: Option<Replay>,
    _lock: Option<RunLock>,
}

enum Work {
    Manifest(Box<Manifest>),
    Undo(Box<RecordedRun>, UndoOptions),
}

impl Engine {
    /// Prepares a run: opens and locks the state directory, reads the inputs,
    /// loads and checks the manifest, verifies a saved plan or chooses the run to
    /// undo. Changes nothing on the machine.
    ///
    /// # Errors
    ///
    /// Returns why the run cannot begin.
    pub fn prepare<'a, E>(
        &'a self,
        request: RunRequest<'_, E>,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<PreparedRun<'a>, RunError<E>> {
        let RunRequest { source, mut options, inputs, selectors, state, session, is_saved } =
            request;
        let session_path = session.as_ref().map(|session| session.path.clone());
        options.has_history |= session.is_some();
        let mut access = StateAccess::open(&state, session_path, &mut options)?;
        // Everything that a saved plan depends on is read after this.
        let recording = is_saved.then(|| PlanRecording::start(&mut options));
        let (work, replay, lock) = match source {
            RunSource::Undo { id, undo } => {
                let (run, lock) = choose_undo(id.as_deref(), &mut access, &mut options, waiting)?;
                (Work::Undo(Box::new(run), undo), None, lock)
            }
            RunSource::Manifest(load) => {
                let lock = access.lock(&mut options, waiting)?;
                options.inputs = inputs(&options).map_err(RunError::Inputs)?;
                let manifest = load(&options)?;
                self.choose(&manifest, &mut options, &selectors)?;
                (Work::Manifest(Box::new(manifest)), None, lock)
            }
            RunSource::SavedPlan { plan, any_host, max_age } => {
                let lock = access.lock(&mut options, waiting)?;
                if !any_host {
                    plan.check_host(&options.host)?;
                }
                if let Some(max_age) = max_age {
                    plan.check_age(options.host.now(), max_age)?;
                }
                let (manifest, replay) = self.replay(&plan, &mut options)?;
                (Work::Manifest(Box::new(manifest)), Some(replay), lock)
            }
        };
        let session = open_session(session, &options.host)?;
        Ok(PreparedRun {
            engine: self,
            options,
            work,
            session,
            recording: recording.map(|recording| (recording, selectors)),
            _replay: replay,
            _lock: lock,
        })
    }

    fn choose(
        &self,
        manifest: &Manifest,
        options: &mut RunOptions,
        Selectors { only, skip }: &Selectors,
    ) -> Result<(), SelectionError> {
        if !only.is_empty() || !skip.is_empty() {
            options.selection = self.select(manifest, options, only.clone(), skip.clone())?;
        }
        Ok(())
    }

    /// Verifies a saved plan and makes the options those of the plan.
    fn replay<E>(
        &self,
        saved: &SavedPlan,
        options: &mut RunOptions,
    ) -> Result<(Manifest, Replay), RunError<E>> {
        let sources = saved.sources()?;
        // With caches of its own: the run is to see the machine anew.
        let mut check = self.options(options.host.cancel().clone());
        check.inputs = saved.inputs()?;
        check.mode.offline = saved.is_offline();
        check.skips_post = saved.skips_post();
        check.groups = saved.has_groups();
        check.has_history = options.has_history;
        // What earlier runs have recorded decides too.
        let state = options.state.directory.as_ref();
        check.state.directory = state.map(|state| state.with_host(&check.host));
        let replay = check.host.replay(&sources)?;
        let differences = self.verify(saved, &sources, &check, &mut NoObserver)?;
        drop(replay);
        if !differences.is_empty() {
            return Err(RunError::Stale { differences });
        }
        options.inputs = saved.inputs()?;
        options.mode.offline = saved.is_offline();
        options.groups = saved.has_groups();
        options.decisions = saved.decisions();
        if let Some(history) = &mut options.state.history {
            history.plan = Some(saved.digest());
        }
        // What was observed is compared in full.
        options.detail = Detail::Report;
        let replay = options.host.replay(&sources)?;
        let manifest = self.load(&SourceRef::Path(saved.manifest_path().clone()), options)?;
        let manifest = saved.named(manifest);
        let (only, skip) = saved.selectors();
        self.choose(&manifest, options, &Selectors { only, skip })?;
        Ok((manifest, replay))
    }
}

/// Opens the session that a request names, if it names one.
pub(crate) fn open_session<E>(
    request: Option<SessionRequest>,
    host: &Host,
) -> Result<Option<DirectorySession>, RunError<E>> {
    let Some(SessionRequest { path, must_exist }) = request else { return Ok(None) };
    if must_exist && host.stat(&path)?.is_none() {
        return Err(RunError::NoSession { path });
    }
    Ok(Some(DirectorySession::open(host, &path)?))
}

impl PreparedRun<'_> {
    /// The manifest that will run, unless it is an undo.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.work {
            Work::Manifest(manifest) => Some(manifest),
            Work::Undo(..) => None,
        }
    }

    /// The options of the run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// How many resources the first manifest has, or the run to undo has changed.
    pub fn resources(&self) -> usize {
        match &self.work {
            Work::Manifest(manifest) => manifest.declarations.resources.len(),
            Work::Undo(run, _) => run.turns.len(),
        }
    }

    /// What an undo will leave as it is, with the reasons; nothing if it will stop
    /// before it changes anything.
    ///
    /// # Errors
    ///
    /// Fails if something was selected that the run did not change.
    pub fn conflicts(&self) -> Result<Vec<String>, UndoError> {
        let Work::Undo(run, undo) = &self.work else { return Ok(Vec::new()) };
        let mut preview = self.engine.options(self.options.host.cancel().clone());
        preview.mode.noop = true;
        let Planned { finished, .. } = self.engine.undo(run, undo, &preview, &mut NoObserver)?;
        if !finished.report.errors.is_empty() {
            return Ok(Vec::new());
        }
        let failed = finished.report.events.iter().filter(|event| event.failed);
        let lines = failed.flat_map(|event| {
            event.error.iter().map(move |error| format!("{}#{}: {error}", event.kind, event.name))
        });
        Ok(lines.collect())
    }

    /// Makes the run.
    ///
    /// # Errors
    ///
    /// Fails if an undo was selected that is not possible. Nothing was changed
    /// then.
    pub fn run(self, observer: &mut dyn Observer) -> Result<RunResult, UndoError> {
        let Self { engine, options, work, mut session, recording, .. } = self;
        let session = session.as_mut().map(|session| session as &mut dyn Session);
        let is_preview = options.mode.noop;
        let path;
        let (plan, finished) = match work {
            Work::Manifest(manifest) => {
                path = manifest.path.clone();
                if is_preview {
                    let planned = if recording.is_some() {
                        engine.plan(*manifest, &options, observer)
                    } else {
                        engine.preview(*manifest, &options, session, observer)
                    };
                    (Some(planned.plan), planned.finished)
                } else {
                    (None, engine.apply(*manifest, &options, session, observer))
                }
            }
            Work::Undo(run, undo) => {
                path = PathBuf::new();
                let Planned { plan, mut finished } =
                    engine.undo(&run, &undo, &options, observer)?;
                if finished.report.events.is_empty() && finished.is_without_errors() {
                    let directory = options.state.directory.as_ref();
                    finished.post_message = Some(already_undone(&run.info.id, directory));
                }
                (is_preview.then_some(plan), finished)
            }
        };
        let is_whole = !matches!(finished.stop, Some(Stop::Cancelled(_)));
        let saved = match (recording, &plan) {
            (Some((recording, Selectors { only, skip })), Some(plan)) if is_whole => {
                Some(recording.finish(plan.clone(), path, &options, only, skip))
            }
            _ => None,
        };
        let exit = RunExit::of(&finished);
        Ok(RunResult { finished, plan, saved, exit })
    }
}
