//! Runs: plans, applies and undos, one at a time, each in a thread of its own.
//! Their events are kept, so that a page can read them from any place on.

pub(crate) mod events;
mod observe;
pub(crate) mod row;
mod shown;
mod start;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ccm_engine::{RunExit, SavedPlan};
use ccm_host::{Cancel, CancelReason, Host};
use ccm_http::{Bytes, Response, StatusCode, StreamSender};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::app::{App, lock};
use crate::error::{ApiError, ApiResult, json_response};
use crate::watch::{BEAT, event};

use events::Message;
pub(crate) use observe::hide_content;
use shown::RunReport;
pub(crate) use shown::{RunList, RunShown, Started};
pub(crate) use start::{start, undo};

/// Runs that are kept.
const MAX_RUNS: usize = 200;
/// Bytes of events that are kept of all runs together.
const MAX_BYTES: usize = 96 << 20;
/// Bytes of events of one run, behind which output is left out.
const MAX_RUN_BYTES: usize = 48 << 20;
/// How old a plan may be that is applied.
pub(crate) const MAX_AGE: Duration = Duration::from_mins(10);

/// The runs of a studio, the oldest first.
#[derive(Default)]
pub(crate) struct Runs {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: VecDeque<Arc<Run>>,
    count: usize,
    thread: Option<JoinHandle<()>>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Plan,
    Apply,
    Undo,
}

/// One run.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    /// The manifest, by its place in the directory.
    pub(crate) path: String,
    /// The digest of its text.
    pub(crate) digest: String,
    diffs: &'static str,
    /// The plan that is applied, or the run that is undone.
    of: Option<String>,
    started: String,
    begun: Instant,
    /// Stops it; gone with its descriptors when it is done.
    cancel: Mutex<Option<Cancel>>,
    progress: Mutex<Progress>,
    /// How many events there are, and whether that is all.
    seen: watch::Sender<(usize, bool)>,
}

/// How far a run is.
#[derive(Default)]
struct Progress {
    events: Vec<Bytes>,
    bytes: usize,
    is_cut: bool,
    state: Option<&'static str>,
    exit: Option<RunExit>,
    /// The plan, or the report.
    report: Option<RunReport>,
    /// The recorded plan, for applying it.
    saved: Option<SavedPlan>,
    is_stale: bool,
}

impl Run {
    fn new(id: String, mode: Mode, about: About, host: &Host) -> std::io::Result<Self> {
        Ok(Self {
            id,
            mode,
            path: about.path,
            digest: about.digest,
            diffs: about.diffs,
            of: about.of,
            started: host.now().to_string(),
            begun: Instant::now(),
            // A second signal ends the studio, and with it what a run has started.
            cancel: Mutex::new(Some(host.cancel().part()?)),
            progress: Mutex::default(),
            seen: watch::Sender::new((0, false)),
        })
    }

    /// Adds an event. What a command prints is left out when there is too much.
    fn add(&self, name: &str, data: &Value) {
        let mut progress = lock(&self.progress);
        if progress.bytes > MAX_RUN_BYTES && name == "output" {
            if progress.is_cut {
                return;
            }
            progress.is_cut = true;
            let note = Message::new("further output is left out: there is too much of it");
            self.push(&mut progress, "message", &json!(note));
            return;
        }
        self.push(&mut progress, name, data);
    }

    fn push(&self, progress: &mut Progress, name: &str, data: &Value) {
        let id = progress.events.len() + 1;
        let piece = Bytes::from(event(Some(id), name, data));
        progress.bytes += piece.len();
        progress.events.push(piece);
        self.seen.send_replace((id, false));
    }

    /// Ends the run in a state.
    fn finish(
        &self,
        state: &'static str,
        exit: RunExit,
        report: Option<RunReport>,
        saved: Option<SavedPlan>,
    ) {
        let mut progress = lock(&self.progress);
        (progress.state, progress.exit) = (Some(state), Some(exit));
        progress.report = report;
        progress.saved = saved;
        lock(&self.cancel).take();
        self.seen.send_replace((progress.events.len(), true));
    }

    /// Stops the run if it goes on. Returns whether it was not asked to before.
    fn stop(&self) -> bool {
        lock(&self.cancel).as_ref().is_none_or(|cancel| cancel.cancel(CancelReason::Requested))
    }

    /// What stops the run.
    pub(crate) fn cancel(&self) -> Cancel {
        lock(&self.cancel).clone().unwrap_or_default()
    }

    fn is_running(&self) -> bool {
        lock(&self.progress).state.is_none()
    }

    pub(crate) fn shown(&self, is_whole: bool) -> RunShown {
        let progress = lock(&self.progress);
        let (is_undo, is_plan) = (self.mode == Mode::Undo, self.mode == Mode::Plan);
        let of = |is_wanted: bool| self.of.clone().filter(|_| is_wanted);
        let report = progress.report.as_ref();
        RunShown {
            id: self.id.clone(),
            mode: self.mode,
            path: self.path.clone(),
            digest: self.digest.clone(),
            state: progress.state.unwrap_or("running"),
            exit: progress.exit.map(RunExit::word),
            started: self.started.clone(),
            diffs: self.diffs,
            stale: progress.is_stale || is_plan && self.begun.elapsed() > MAX_AGE,
            undo_of: of(is_undo),
            plan: of(!is_undo),
            report: report.filter(|_| is_whole).cloned(),
            summary: report.filter(|_| !is_whole).map(RunReport::summary),
        }
    }

    /// The report or plan of a run that has one.
    pub(crate) fn report(&self) -> Option<Value> {
        let progress = lock(&self.progress);
        progress.report.as_ref().map(|report| serde_json::to_value(report).unwrap_or_default())
    }

    /// The plan to apply, if it can still be applied.
    fn take_saved(&self) -> ApiResult<SavedPlan> {
        let progress = lock(&self.progress);
        let stale =
            |message: &str| ApiError::conflict("plan_stale", message).hint("make a new plan");
        match progress.state {
            None => return Err(ApiError::conflict("running", "the plan is still being made")),
            Some("invalid") => {
                return Err(ApiError::conflict("not_valid", "the manifest is not valid"));
            }
            _ if self.mode != Mode::Plan => {
                return Err(ApiError::conflict("not_valid", "this run is not a plan"));
            }
            Some(_) => {}
        }
        if self.begun.elapsed() > MAX_AGE {
            return Err(stale("the plan is older than 10 minutes"));
        }
        progress.saved.clone().ok_or_else(|| stale("the plan is not the last one, or not complete"))
    }

    fn make_stale(&self) {
        let mut progress = lock(&self.progress);
        progress.saved = None;
        progress.is_stale = self.mode == Mode::Plan;
    }
}

/// What a run is about.
struct About {
    path: String,
    digest: String,
    diffs: &'static str,
    of: Option<String>,
}

impl Runs {
    /// Begins a run, if none goes on.
    fn begin(
        &self,
        app: &App,
        mode: Mode,
        about: About,
        work: impl FnOnce(&Arc<Run>) + Send + 'static,
    ) -> ApiResult<Response> {
        let mut state = lock(&self.state);
        if state.runs.iter().any(|run| run.is_running()) {
            let message = "another run is in progress; wait for it or stop it";
            return Err(ApiError::conflict("running", message));
        }
        let failed = |error: std::io::Error| ApiError::internal(error.to_string());
        state.count += 1;
        let id = state.count.to_string();
        let run = Arc::new(Run::new(id, mode, about, &app.settings.host).map_err(failed)?);
        let shared = Arc::clone(&run);
        let thread = std::thread::Builder::new().name("run".into()).stack_size(8 << 20);
        let thread = thread.spawn(move || {
            let inner = Arc::clone(&shared);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&inner)));
            if done.is_err() {
                let text = "ccm has a bug: this run ended in a panic";
                shared.add("message", &json!(Message::new(text)));
            }
            if shared.is_running() {
                shared.finish("failed", RunExit::Failed, None, None);
            }
        });
        state.thread = Some(thread.map_err(failed)?);
        if mode == Mode::Plan {
            // Only the last plan can be applied.
            state.runs.iter().for_each(|run| lock(&run.progress).saved = None);
        }
        state.runs.push_back(Arc::clone(&run));
        let bytes = |runs: &VecDeque<Arc<Run>>| -> usize {
            runs.iter().map(|run| lock(&run.progress).bytes).sum()
        };
        while state.runs.len() > MAX_RUNS || state.runs.len() > 1 && bytes(&state.runs) > MAX_BYTES
        {
            state.runs.pop_front();
        }
        Ok(json_response(StatusCode::ACCEPTED, &Started { id: run.id.clone() }))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Run>> {
        lock(&self.state).runs.iter().cloned().collect()
    }

    pub(crate) fn find(&self, id: &str) -> ApiResult<Arc<Run>> {
        let state = lock(&self.state);
        let found = state.runs.iter().find(|run| run.id == id).cloned();
        found.ok_or_else(|| ApiError::not_found("such run"))
    }

    pub(crate) fn list(&self) -> Response {
        let runs = self.all().iter().rev().map(|run| run.shown(false)).collect();
        json_response(StatusCode::OK, &RunList { runs })
    }

    pub(crate) fn show(&self, id: &str) -> ApiResult<Response> {
        Ok(json_response(StatusCode::OK, &self.find(id)?.shown(true)))
    }

    /// Asks a run to stop. Asked again, it also kills the command that the run
    /// waits for, as a package manager is not stopped the first time.
    pub(crate) fn stop(&self, id: &str) -> ApiResult<Response> {
        let run = self.find(id)?;
        if !run.stop() {
            run.cancel().kill_command();
        }
        Ok(json_response(StatusCode::ACCEPTED, &Started { id: run.id.clone() }))
    }

    /// Stops what runs, and waits for it.
    pub(crate) fn end(&self) {
        for run in self.all().iter().filter(|run| run.is_running()) {
            run.stop();
        }
        let thread = lock(&self.state).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// What was applied has made all plans old.
    fn make_stale(&self) {
        self.all().iter().for_each(|run| run.make_stale());
    }
}

/// `GET runs/ID/events`: all events of a run, or those behind the last one that
/// the page knows.
pub(crate) fn events(app: &Arc<App>, id: &str, last: Option<&str>) -> ApiResult<Response> {
    let run = app.runs.find(id)?;
    let after = last.and_then(|last| last.trim().parse().ok()).unwrap_or(0);
    let (response, sender) = Response::stream("text/event-stream", 16);
    tokio::task::spawn_local(send(run, after, sender));
    Ok(response)
}

/// Sends events as fast as the page reads them. They are kept anyway, so a slow
/// page holds nothing up; one that does not read at all is hung up on.
async fn send(run: Arc<Run>, mut next: usize, sender: StreamSender) {
    /// Bytes that are sent at once.
    const PIECE: usize = 256 << 10;
    let mut seen = run.seen.subscribe();
    loop {
        let (_, is_done) = *seen.borrow_and_update();
        loop {
            let mut piece = Vec::new();
            {
                let progress = lock(&run.progress);
                while piece.len() < PIECE
                    && let Some(event) = progress.events.get(next)
                {
                    piece.extend_from_slice(event);
                    next += 1;
                }
            }
            if piece.is_empty() {
                break;
            }
            if !sender.send(piece).await {
                return;
            }
        }
        if is_done {
            return;
        }
        tokio::select! {
            changed = seen.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = sender.closed() => return,
            () = tokio::time::sleep(BEAT) => {
                if !sender.send(":\n\n").await {
                    return;
                }
            }
        }
    }
}
