//! Starts runs.

use std::path::Path;
use std::sync::Arc;

use ccm_engine::{
    Diffs, Finished, Inputs, Manifest, ManifestError, RunError, RunExit, RunOptions, RunRequest,
    RunResult, RunSource, SavedPlan, Selectors, SessionRequest, SourceRef, UndoOptions,
};
use ccm_host::{Cancel, Digest};
use ccm_http::Response;
use ccm_model::Severity;
use ccm_state::history;
use serde::Deserialize;
use serde_json::json;

use super::events::{Differences, Message, RunEnded, RunStarted};
use super::observe::{Watcher, diagnosed, ended, hide_content, state_of, stop_of};
use super::shown::RunReport;
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
pub(crate) enum StartRequest {
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
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the page's request")]
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
    /// Restore the rest where some of it cannot be undone.
    #[serde(default)]
    partial: bool,
    /// Also restart and reload services onto what is restored.
    #[serde(default)]
    refresh: bool,
}

/// `POST runs`
pub(crate) fn start(app: &Arc<App>, request: StartRequest) -> ApiResult<Response> {
    match request {
        StartRequest::Plan { path, text, digest, diffs, facts } => {
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
                let place = PlannedText { name: path, known };
                plan(&shared, run, &place, diffs, facts.as_ref());
            })
        }
        StartRequest::Apply { plan } => {
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
                apply(&shared, run, Box::new(saved));
            })
        }
    }
}

/// `POST history/ID/undo`, for a run of the state directory.
pub(crate) fn undo(app: &Arc<App>, id: &str, request: UndoRequest) -> ApiResult<Response> {
    if !request.noop {
        check_allowed(app)?;
    }
    let directory = app.settings.state.read_only(&app.settings.host);
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
        take_back(&shared, run, id, request);
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
struct PlannedText {
    name: String,
    known: Arc<KnownText>,
}

fn failed(run: &Run, message: &str) {
    let severity = Some(Severity::Error);
    run.add("message", &json!(Message { text: message, severity }));
    run.finish("failed", RunExit::Failed, None, None);
}

/// Ends a run that did not begin.
fn refused(app: &App, run: &Run, error: &RunError<String>) {
    match error {
        RunError::Manifest(ManifestError::Invalid(diagnosis)) => {
            diagnosed(run, app.settings.engine.types(), diagnosis);
            run.finish("invalid", error.exit(), None, None);
        }
        RunError::Manifest(ManifestError::Interrupted { .. }) => {
            let ended = RunEnded { summary: None, stop: Some("cancelled") };
            run.add("finished", &json!(ended));
            run.finish("stopped", error.exit(), None, None);
        }
        RunError::Stale { differences } => {
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            run.add("stale", &json!(Differences { differences }));
            run.finish("stale", error.exit(), None, None);
        }
        error => {
            let message = ccm_engine::chain(error);
            match error.hint() {
                Some(hint) => failed(run, &format!("{message} ({hint})")),
                None => failed(run, &message),
            }
        }
    }
}

/// Makes a run and ends it with its report.
fn perform(app: &App, run: &Arc<Run>, request: RunRequest<'_, String>) {
    let engine = &app.settings.engine;
    let (is_preview, is_plan) = (request.options.mode.noop, request.is_saved);
    let mut waiting = |text: &str| run.add("message", &json!(Message::new(text)));
    let prepared = match engine.prepare(request, &mut waiting) {
        Ok(prepared) => prepared,
        Err(error) => return refused(app, run, &error),
    };
    let mut watcher = Watcher::new(run, engine.types(), &prepared.options().host, is_preview);
    run.add("started", &json!(RunStarted { total: prepared.resources() }));
    let RunResult { finished, plan, saved, exit } = match prepared.run(&mut watcher) {
        Ok(result) => result,
        Err(error) => return refused(app, run, &RunError::Undo(error)),
    };
    for error in finished.report.errors.iter().filter(|_| !is_plan) {
        let text = match &error.hint {
            Some(hint) => format!("{} ({hint})", error.message),
            None => error.message.clone(),
        };
        run.add("message", &json!(Message { text: &text, severity: Some(Severity::Error) }));
    }
    if !is_preview {
        app.runs.make_stale();
    }
    let Finished { mut report, stop, losses, post_message } = finished;
    let report = match plan.filter(|_| is_plan) {
        Some(plan) => RunReport::Plan(plan),
        None => {
            report.events.iter_mut().for_each(|event| hide_content(&mut event.properties));
            RunReport::Report(report)
        }
    };
    let end = RunEnded { summary: Some(report.summary()), stop: stop.map(stop_of) };
    ended(run, &losses, post_message.as_deref(), &end);
    let saved = saved.filter(|_| matches!(exit, RunExit::Finished { .. }));
    run.finish(state_of(exit), exit, Some(report), saved);
}

/// A request that the settings of the studio complete.
fn request<'a>(app: &App, options: RunOptions, source: RunSource<'a>) -> RunRequest<'a, String> {
    let session = app.settings.session.clone();
    RunRequest {
        source,
        options,
        inputs: &|_| Ok(Inputs::default()),
        selectors: Selectors::default(),
        state: app.settings.state.clone(),
        session: session.map(|path| SessionRequest { path, must_exist: false }),
        is_saved: false,
    }
}

fn plan(
    app: &App,
    run: &Arc<Run>,
    place: &PlannedText,
    diffs: WhichDiffs,
    facts: Option<&FactsChoice>,
) {
    let mut options = app.settings.engine.options(run.cancel());
    options.mode.noop = true;
    options.has_history = app.settings.session.is_some();
    options.diffs = if diffs == WhichDiffs::All { Diffs::All } else { Diffs::Public };
    let path = app.settings.directory.path().join(&place.name);
    let inputs = |options: &RunOptions| {
        let read = app.fresh_inputs(options).and_then(|inputs| {
            let mut inputs = (*inputs).clone();
            facts.map_or(Ok(()), |choice| choice.apply(app, &mut inputs))?;
            Ok(inputs)
        });
        read.map_err(|error| error.message)
    };
    let load = |options: &RunOptions| load(app, options, &path, place);
    let request = request(app, options, RunSource::Manifest(&load));
    perform(app, run, RunRequest { inputs: &inputs, session: None, is_saved: true, ..request });
}

/// Loads the text of a plan: from the file if it is saved, so that the plan holds
/// the file itself.
fn load(
    app: &App,
    options: &RunOptions,
    path: &Path,
    PlannedText { name, known }: &PlannedText,
) -> Result<Manifest, ManifestError> {
    let engine = &app.settings.engine;
    let on_disk = app.settings.directory.read(Path::new(name), MAX_SIZE).ok().flatten();
    let is_saved = on_disk.is_some_and(|(bytes, _)| {
        String::from_utf8(bytes).is_ok_and(|on_disk| FileText::of(&on_disk).text == known.text)
    });
    if is_saved {
        let mut manifest = engine.load(&SourceRef::Path(path.to_owned()), options)?;
        manifest.name.clone_from(name);
        return Ok(manifest);
    }
    options.host.record_text(path, &known.text);
    engine.load_named(name, path, known.text.clone(), options)
}

fn apply(app: &App, run: &Arc<Run>, saved: Box<SavedPlan>) {
    let mut options = app.settings.engine.options(run.cancel());
    options.diffs = Diffs::Public;
    let source = RunSource::SavedPlan { plan: saved, any_host: false, max_age: None };
    perform(app, run, request(app, options, source));
}

fn take_back(app: &App, run: &Arc<Run>, id: String, request_for: UndoRequest) {
    let UndoRequest { noop, force, only, partial, refresh } = request_for;
    let mut options = app.settings.engine.options(run.cancel());
    options.mode.noop = noop;
    let source =
        RunSource::Undo { id: Some(id), undo: UndoOptions { only, force, partial, refresh } };
    perform(app, run, RunRequest { session: None, ..request(app, options, source) });
}
