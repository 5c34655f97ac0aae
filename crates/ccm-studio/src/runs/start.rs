//! Starts runs.

use std::path::Path;
use std::sync::Arc;

use ccm_engine::{
    Detail, Diffs, DirectorySession, Manifest, ManifestError, NoObserver, PlanRecording, Planned,
    RunOptions, SavedPlan, Session, SourceRef, UndoOptions,
};
use ccm_host::{Cancel, Digest};
use ccm_http::Response;
use ccm_state::history;
use serde::Deserialize;
use serde_json::json;

use super::observe::{Watcher, diagnosed, ended, hide_content};
use super::{About, Mode, Run};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::facts::FactsChoice;
use crate::files::{FileText, MAX_SIZE};
use crate::known::KnownText;
use crate::routes::check_place;
use crate::texts::check_text;

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum RunRequest {
    Plan {
        path: String,
        #[serde(default)]
        text: Option<String>,
        /// Names the text that an answer was last about, in its place.
        #[serde(default)]
        digest: Option<String>,
        #[serde(default)]
        diffs: WhichDiffs,
        #[serde(default)]
        facts: Option<FactsChoice>,
    },
    Apply {
        plan: String,
    },
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhichDiffs {
    #[default]
    Public,
    All,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoRequest {
    /// Only tell what would be done.
    #[serde(default)]
    noop: bool,
    /// Restore what was changed since, too.
    #[serde(default)]
    force: bool,
    /// Only these resources.
    #[serde(default)]
    only: Vec<String>,
}

/// `POST runs`
pub(crate) fn start(app: &Arc<App>, request: RunRequest) -> ApiResult<Response> {
    match request {
        RunRequest::Plan { path, text, digest, diffs, facts } => {
            check_place(&path)?;
            text.as_deref().map_or(Ok(()), check_text)?;
            let known = app.texts.find(text.as_deref(), digest.as_deref())?;
            let about = About {
                path: path.clone(),
                digest: known.digest.clone(),
                diffs: if diffs == WhichDiffs::All { "all" } else { "public" },
                of: None,
            };
            let shared = Arc::clone(app);
            app.runs.begin(app, Mode::Plan, about, move |run| {
                let place = Place { name: path, known };
                plan(&shared, run, place, diffs, facts.as_ref());
            })
        }
        RunRequest::Apply { plan } => {
            check_allowed(app)?;
            let planned = app.runs.find(&plan)?;
            let saved = planned.take_saved()?;
            check_saved(app, &planned, &saved)?;
            let about = About {
                path: planned.path.clone(),
                digest: planned.digest.clone(),
                diffs: planned.diffs,
                of: Some(plan),
            };
            let shared = Arc::clone(app);
            app.runs.begin(app, Mode::Apply, about, move |run| {
                apply(&shared, run, &saved);
            })
        }
    }
}

/// `POST history/ID/undo`, for a run of the state directory.
pub(crate) fn undo(app: &Arc<App>, id: &str, request: UndoRequest) -> ApiResult<Response> {
    if !request.noop {
        check_allowed(app)?;
    }
    let directory = (app.settings.state_directory)(&app.settings.host);
    let directory = directory.ok_or_else(|| ApiError::not_found("such run"))?;
    let recorded = history::open(&directory, id)
        .map_err(|error| ApiError::internal(ccm_engine::chain(&error)))?
        .ok_or_else(|| ApiError::not_found("such run"))?;
    let about = About {
        path: recorded.info.manifest.clone(),
        digest: String::new(),
        diffs: "public",
        of: Some(id.to_owned()),
    };
    let (shared, id) = (Arc::clone(app), id.to_owned());
    app.runs.begin(app, Mode::Undo, about, move |run| {
        take_back(&shared, run, &id, request);
    })
}

fn check_allowed(app: &App) -> ApiResult<()> {
    if app.settings.allow_apply {
        return Ok(());
    }
    let message = "ccm studio was started without --allow-apply";
    Err(ApiError::forbidden("apply_not_allowed", message)
        .hint("start it again with --allow-apply to apply manifests from here"))
}

/// Refuses a plan whose manifest is not saved, or whose files have changed.
fn check_saved(app: &App, planned: &Run, saved: &SavedPlan) -> ApiResult<()> {
    let stale = |message: String| {
        ApiError::conflict("plan_stale", message).hint("save the file and make a new plan")
    };
    let read = app.settings.directory.read(Path::new(&planned.path), MAX_SIZE);
    let read = read.map_err(|error| ApiError::file(&error))?;
    let is_same = read.is_some_and(|(bytes, _)| {
        let text = FileText::of(&String::from_utf8_lossy(&bytes)).text;
        Digest::of(text.as_bytes()).to_string() == planned.digest
    });
    if !is_same {
        return Err(stale(format!("{} is not what was planned", planned.path)));
    }
    let sources = saved.sources().map_err(|error| stale(error.to_string()))?;
    let host = app.settings.engine.options(Cancel::default()).host;
    let changed = SavedPlan::changed_sources(&host, &sources);
    match changed.first() {
        None => Ok(()),
        Some(first) => Err(stale(first.to_string())),
    }
}

/// A text and the name of the file that it belongs to.
struct Place {
    name: String,
    known: Arc<KnownText>,
}

fn failed(run: &Run, message: &str) {
    run.add("message", &json!({"text": message, "severity": "error"}));
    run.finish("failed", None, None);
}

/// Ends a run whose manifest cannot be used.
fn invalid(app: &App, run: &Run, error: &ManifestError) {
    match error {
        ManifestError::Invalid(diagnosis) => {
            diagnosed(run, app.settings.engine.types(), diagnosis);
            run.finish("invalid", None, None);
        }
        ManifestError::Interrupted { .. } => {
            run.add("finished", &json!({"summary": null, "stop": "cancelled"}));
            run.finish("stopped", None, None);
        }
        error => failed(run, &ccm_engine::chain(error)),
    }
}

fn plan(app: &App, run: &Arc<Run>, place: Place, diffs: WhichDiffs, facts: Option<&FactsChoice>) {
    let engine = &app.settings.engine;
    let mut options = engine.options(run.cancel.clone());
    options.mode.noop = true;
    options.has_history = app.settings.session.is_some();
    // Everything that the plan depends on is read after this.
    let recording = PlanRecording::start(&mut options);
    let inputs = app.fresh_inputs(&options).and_then(|inputs| {
        options.inputs = (*inputs).clone();
        facts.map_or(Ok(()), |choice| choice.apply(app, &mut options.inputs))
    });
    if let Err(error) = inputs {
        return failed(run, &error.message);
    }
    options.state.directory = (app.settings.state_directory)(&options.host);
    options.diffs = if diffs == WhichDiffs::All { Diffs::All } else { Diffs::Public };
    let path = app.settings.directory.path().join(&place.name);
    let manifest = match load(app, &options, &path, place) {
        Ok(manifest) => manifest,
        Err(error) => return invalid(app, run, &error),
    };
    let mut watcher = Watcher::new(run, engine.types(), true);
    let total = manifest.declarations.resources.len();
    run.add("started", &json!({"total": total}));
    let Planned { plan, finished } = engine.plan(manifest, &options, &mut watcher);
    let report = serde_json::to_value(&plan).unwrap_or_default();
    let state = ended(run, &finished, &report["summary"]);
    let is_whole = state == "finished";
    let saved = is_whole.then(|| recording.finish(plan, path, &options, Vec::new(), Vec::new()));
    run.finish(state, Some(report), saved);
}

/// Loads the text of a plan: from the file if it is saved, so that the plan holds
/// the file itself.
fn load(
    app: &App,
    options: &RunOptions,
    path: &Path,
    place: Place,
) -> Result<Manifest, ManifestError> {
    let Place { name, known } = place;
    let engine = &app.settings.engine;
    let on_disk = app.settings.directory.read(Path::new(&name), MAX_SIZE).ok().flatten();
    let is_saved = on_disk.is_some_and(|(bytes, _)| {
        String::from_utf8(bytes).is_ok_and(|on_disk| FileText::of(&on_disk).text == known.text)
    });
    if is_saved {
        let mut manifest = engine.load(&SourceRef::Path(path.to_owned()), options)?;
        manifest.name = name;
        return Ok(manifest);
    }
    options.host.record_text(path, &known.text);
    engine.load_named(&name, path, known.text.clone(), options)
}

fn apply(app: &App, run: &Arc<Run>, saved: &SavedPlan) {
    let engine = &app.settings.engine;
    let mut options = engine.options(run.cancel.clone());
    options.has_history = app.settings.session.is_some();
    options.state.session.clone_from(&app.settings.session);
    let _lock = match (app.settings.begin_run)(&mut options) {
        Ok(lock) => lock,
        Err(message) => return failed(run, &message),
    };
    match try_apply(app, run, saved, &mut options) {
        Ok(()) => {}
        Err(Refused::Manifest(error)) => invalid(app, run, &error),
        Err(Refused::Stale(differences)) => {
            run.add("stale", &json!({"differences": differences}));
            run.finish("stale", None, None);
        }
        Err(Refused::Other(message)) => failed(run, &message),
    }
}

/// Why a plan was not applied.
enum Refused {
    Manifest(ManifestError),
    Stale(Vec<String>),
    Other(String),
}

impl Refused {
    fn other(error: &dyn std::error::Error) -> Self {
        Self::Other(ccm_engine::chain(error))
    }
}

fn try_apply(
    app: &App,
    run: &Arc<Run>,
    saved: &SavedPlan,
    options: &mut RunOptions,
) -> Result<(), Refused> {
    let engine = &app.settings.engine;
    let sources = saved.sources().map_err(|error| Refused::other(&error))?;
    // With caches of its own: the run is to see the machine anew.
    let mut check = engine.options(run.cancel.clone());
    check.has_history = options.has_history;
    check.inputs = saved.inputs().map_err(|error| Refused::other(&error))?;
    let replay = check.host.replay(&sources).map_err(|error| Refused::other(&error))?;
    let differences = engine
        .verify(saved, &sources, &check, &mut NoObserver)
        .map_err(|error| Refused::other(&error))?;
    drop(replay);
    if !differences.is_empty() {
        return Err(Refused::Stale(differences.iter().map(ToString::to_string).collect()));
    }
    options.inputs = saved.inputs().map_err(|error| Refused::other(&error))?;
    options.decisions = saved.decisions();
    if let Some(history) = &mut options.state.history {
        history.plan = Some(saved.digest());
    }
    options.detail = Detail::Report;
    options.diffs = Diffs::Public;
    let _replay = options.host.replay(&sources).map_err(|error| Refused::other(&error))?;
    let source = SourceRef::Path(saved.manifest_path().clone());
    let manifest = engine.load(&source, options).map_err(Refused::Manifest)?;
    let manifest = saved.named(manifest);
    let session = app.settings.session.as_ref();
    let session = session.map(|path| DirectorySession::open(&options.host, path)).transpose();
    let mut session = session.map_err(|error| Refused::other(&error))?;
    let session = session.as_mut().map(|session| session as &mut dyn Session);
    let mut watcher = Watcher::new(run, engine.types(), false);
    run.add("started", &json!({"total": manifest.declarations.resources.len()}));
    let finished = engine.apply(manifest, options, session, &mut watcher);
    app.runs.make_stale();
    finish(run, &finished);
    Ok(())
}

/// Ends a run that has a report.
fn finish(run: &Run, finished: &ccm_engine::Finished) {
    let mut report = serde_json::to_value(&finished.report).unwrap_or_default();
    if let Some(events) = report["events"].as_array_mut() {
        events.iter_mut().for_each(hide_content);
    }
    let state = ended(run, finished, &report["summary"]);
    run.finish(state, Some(report), None);
}

fn take_back(app: &App, run: &Arc<Run>, id: &str, request: UndoRequest) {
    let engine = &app.settings.engine;
    let mut options = engine.options(run.cancel.clone());
    let UndoRequest { noop, force, only } = request;
    options.mode.noop = noop;
    let lock = if noop {
        options.state.directory = (app.settings.state_directory)(&options.host);
        Ok(None)
    } else {
        (app.settings.begin_run)(&mut options)
    };
    let _lock = match lock {
        Ok(lock) => lock,
        Err(message) => return failed(run, &message),
    };
    let Some(directory) = options.state.directory.clone() else {
        return failed(run, "there is no state directory, so there is nothing to undo");
    };
    let recorded = match history::open(&directory, id) {
        Ok(Some(recorded)) => recorded,
        Ok(None) => return failed(run, "this run is not in the history any more"),
        Err(error) => return failed(run, &ccm_engine::chain(&error)),
    };
    if !noop {
        if let Err(error) = history::repair(&directory, &recorded) {
            return failed(run, &ccm_engine::chain(&error));
        }
        if let Some(history) = &mut options.state.history {
            history.undo_of = Some(recorded.info.id.clone());
        }
    }
    let mut watcher = Watcher::new(run, engine.types(), noop);
    run.add("started", &json!({"total": recorded.turns.len()}));
    match engine.undo(&recorded, &UndoOptions { only, force }, &options, &mut watcher) {
        Ok(Planned { finished, .. }) => {
            if !noop {
                app.runs.make_stale();
            }
            finish(run, &finished);
        }
        Err(error) => failed(run, &ccm_engine::chain(&error)),
    }
}
