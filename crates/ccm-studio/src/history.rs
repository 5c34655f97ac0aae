//! History: runs of this studio, sessions, report files in the directory, and
//! runs in the state directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ccm_engine::DirectorySession;
use ccm_host::FileKind;
use ccm_http::{Response, StatusCode};
use ccm_model::{Counts, Event, Plan, PlannedResource, Report};
use ccm_state::history::{self, RecordedTurn, Undoable};
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::files::LIMITS;
use crate::routes::check_place;
use crate::runs::row::{Row, rows_of};
use crate::runs::{Mode, hide_content};

/// Sessions that are listed.
const MAX_SESSIONS: usize = 100;
/// Reports that are looked for in the directory.
const MAX_REPORTS: usize = 200;
/// JSON files above this are no reports that anyone opens here.
const MAX_REPORT: u64 = 16 << 20;

/// What has happened, by where it is known from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct History {
    history: Vec<HistoryEntry>,
}

/// A run in the list.
#[derive(Serialize, JsonSchema)]
struct HistoryEntry {
    kind: HistoryKind,
    /// Asks for it; null if it cannot be read, for the reason in `error`.
    id: Option<String>,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<String>,
    /// How many resources have which outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    /// Whether it changed nothing: a plan, or a run in noop mode.
    is_preview: bool,
    /// How many resources a run of the state directory changed that has no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<usize>,
    /// How many failed.
    failed: usize,
    /// Of a run of this studio.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// Of a run of the state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_of: Option<String>,
    /// How much of it can be taken back: `yes`, `partly` or `no`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    undo: Option<Undoable>,
}

/// Where a run is known from.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HistoryKind {
    /// This studio.
    Run,
    /// The state directory.
    State,
    Session,
    /// A file in the directory.
    Report,
}

impl HistoryEntry {
    fn new(kind: HistoryKind, id: Option<String>, title: impl Into<String>) -> Self {
        Self {
            kind,
            id,
            title: title.into(),
            error: None,
            started: None,
            finished: None,
            counts: None,
            is_preview: false,
            changed: None,
            failed: 0,
            mode: None,
            state: None,
            user: None,
            undo_of: None,
            undo: None,
        }
    }

    /// Adds what became of the resources.
    fn counted(self, counts: Option<Counts>, is_preview: bool) -> Self {
        let failed = counts.map_or(0, |counts| counts.failed);
        Self { counts, is_preview, failed, ..self }
    }

    /// One that cannot be read.
    fn unreadable(kind: HistoryKind, title: impl Into<String>, error: String) -> Self {
        Self { error: Some(error), ..Self::new(kind, None, title) }
    }
}

/// `GET history`
pub(crate) fn list(app: &App) -> Response {
    let mut found = Vec::new();
    for run in app.runs.all().iter().rev() {
        let shown = run.shown(false);
        let id = Some(format!("run:{}", run.id));
        let report = run.report().unwrap_or_default();
        let entry = HistoryEntry {
            started: Some(shown.started),
            mode: Some(shown.mode),
            state: Some(shown.state),
            undo_of: shown.undo_of,
            ..HistoryEntry::new(HistoryKind::Run, id, &run.path)
        };
        found.push(entry.counted(counts_of(&report), is_preview(&report)));
    }
    state_runs(app, &mut found);
    for path in sessions(app) {
        found.push(session_entry(app, &path));
    }
    reports(app, &mut found);
    json_response(StatusCode::OK, &History { history: found })
}

fn state_runs(app: &App, found: &mut Vec<HistoryEntry>) {
    let Some(directory) = app.settings.state.read_only(&app.settings.host) else { return };
    let runs = match history::list(&directory) {
        Ok(runs) => runs,
        Err(error) => {
            let error = ccm_engine::chain(&error);
            found.push(HistoryEntry::unreadable(HistoryKind::State, "state directory", error));
            return;
        }
    };
    for run in runs {
        let info = &run.info;
        let id = Some(format!("state:{}", info.id));
        found.push(HistoryEntry {
            started: Some(info.started.to_string()),
            finished: run.finished.map(|time| time.to_string()),
            user: Some(info.user.clone()),
            undo_of: info.undo_of.clone(),
            undo: Some(run.undo),
            changed: run.counts.is_none().then_some(run.changed),
            counts: run.counts,
            failed: run.failed,
            ..HistoryEntry::new(HistoryKind::State, id, &info.manifest)
        });
    }
}

/// The session of the command line, and those of this user where temporary
/// files belong.
fn sessions(app: &App) -> Vec<PathBuf> {
    let host = &app.settings.host;
    let mut found: Vec<PathBuf> = app.settings.session.iter().cloned().collect();
    let temporary = host.temp_dir();
    let mut names = host.list(&temporary).unwrap_or_default();
    names.sort();
    let is_session = |name: &std::ffi::OsString| {
        name.to_str().is_some_and(|name| name.starts_with("ccm-session-"))
    };
    for path in names.into_iter().filter(is_session).map(|name| temporary.join(name)) {
        let stat = host.lstat(&path).ok().flatten();
        let is_mine = stat
            .is_some_and(|stat| stat.kind == FileKind::Directory && stat.uid == host.whoami().0);
        if is_mine && !found.contains(&path) && found.len() < MAX_SESSIONS {
            found.push(path);
        }
    }
    found
}

fn session_entry(app: &App, path: &Path) -> HistoryEntry {
    let title = path.display().to_string();
    let entry = HistoryEntry::new(HistoryKind::Session, Some(format!("session:{title}")), title);
    match session_report(app, path) {
        Ok(report) => {
            let started = Some(report.started.to_string());
            HistoryEntry { started, ..entry }.counted(Some(report.summary.outcomes), report.noop)
        }
        Err(error) => HistoryEntry { error: Some(error), ..entry },
    }
}

fn session_report(app: &App, path: &Path) -> Result<Report, String> {
    let found = DirectorySession::report_of(&app.settings.host, path);
    let found = found.map_err(|error| ccm_engine::chain(&error))?;
    found.ok_or_else(|| "there is no such session yet".to_owned())
}

fn reports(app: &App, found: &mut Vec<HistoryEntry>) {
    let is_json = |name: &OsStr| Path::new(name).extension().is_some_and(|kind| kind == "json");
    let Ok((files, _)) = app.settings.directory.find(LIMITS, &is_json) else { return };
    for file in files.iter().take(MAX_REPORTS) {
        let Some(name) = file.place.to_str() else { continue };
        match report_file(app, name) {
            Ok(Some(report)) => {
                let id = Some(format!("report:{name}"));
                let started = report["started"].as_str().map(str::to_owned);
                let entry = HistoryEntry::new(HistoryKind::Report, id, name);
                let entry = HistoryEntry { started, ..entry };
                found.push(entry.counted(counts_of(&report), is_preview(&report)));
            }
            Ok(None) => {}
            // It says that it is one, and is not.
            Err(error) => {
                found.push(HistoryEntry::unreadable(HistoryKind::Report, name, error));
            }
        }
    }
}

/// A file that is a report; `None` if it is something else.
fn report_file(app: &App, place: &str) -> Result<Option<Value>, String> {
    let read = app.settings.directory.read(Path::new(place), MAX_REPORT).ok().flatten();
    let Some((bytes, _)) = read else { return Ok(None) };
    let is_meant =
        bytes.windows(Report::PROTOCOL.len()).any(|part| part == Report::PROTOCOL.as_bytes());
    if !is_meant {
        return Ok(None);
    }
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(report) if report["protocol"] == Report::PROTOCOL && report["events"].is_array() => {
            Ok(Some(report))
        }
        Ok(_) => Ok(None),
        Err(_) => Err("the file is not a complete report".to_owned()),
    }
}

/// `GET history/ID`
pub(crate) fn show(app: &App, id: &str) -> ApiResult<Response> {
    let missing = || ApiError::not_found("such entry in the history");
    let (kind, rest) = id.split_once(':').ok_or_else(missing)?;
    let mut report = match kind {
        "run" => app.runs.find(rest)?.report().ok_or_else(missing)?,
        "session" => {
            let path = PathBuf::from(rest);
            if !sessions(app).contains(&path) {
                return Err(missing());
            }
            let report = session_report(app, &path).map_err(|_| missing())?;
            serde_json::to_value(&report).unwrap_or_default()
        }
        "report" => {
            check_place(rest)?;
            report_file(app, rest).ok().flatten().ok_or_else(missing)?
        }
        "state" => state_run(app, rest)?,
        _ => return Err(missing()),
    };
    if let Some(events) = report.get_mut("events").and_then(Value::as_array_mut) {
        let properties = events.iter_mut().filter_map(|event| event.get_mut("properties"));
        properties.for_each(hide_content);
    }
    app.settings.host.redactor().value(&mut report);
    let unreadable = |error: serde_json::Error| {
        ApiError::conflict("not_valid", format!("this record cannot be read: {error}"))
    };
    let (rows, counts) = rows(&report).map_err(unreadable)?;
    let text = |report: &mut Value, name: &str| match report[name].take() {
        Value::String(text) => Some(text),
        _ => None,
    };
    let answer = HistoryShown {
        id: id.to_owned(),
        manifest: text(&mut report, "manifest"),
        started: text(&mut report, "started"),
        undo_of: text(&mut report, "undo_of"),
        damaged: report["damaged"].take() == true,
        rows,
        counts,
        record: report,
    };
    Ok(json_response(StatusCode::OK, &answer))
}

/// A run with its resources.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HistoryShown {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    /// The run that it took back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_of: Option<String>,
    /// Whether parts of it could not be read.
    damaged: bool,
    rows: Vec<Row>,
    counts: Counts,
    /// The plan, report or recorded run itself.
    record: Value,
}

/// Whether a plan or report is about a run that changed nothing.
fn is_preview(report: &Value) -> bool {
    report["noop"] == true || report["protocol"] == Plan::PROTOCOL
}

/// The outcomes in a plan or report. Those of older versions are counted anew.
fn counts_of(report: &Value) -> Option<Counts> {
    let summary = &report["summary"];
    let known = if report["protocol"] == Plan::PROTOCOL { summary } else { &summary["outcomes"] };
    match Counts::deserialize(known) {
        Ok(counts) => Some(counts),
        Err(_) => rows(report).ok().map(|(_, counts)| counts),
    }
}

/// The resources of a plan, a report or a recorded run, and their outcomes.
fn rows(record: &Value) -> serde_json::Result<(Vec<Row>, Counts)> {
    if record["protocol"] == Plan::PROTOCOL {
        let resources = Vec::<PlannedResource>::deserialize(&record["resources"])?;
        return Ok((rows_of(resources, 0), Counts::deserialize(&record["summary"])?));
    }
    let mut counts = Counts::default();
    let mut rows = Vec::new();
    let is_preview = is_preview(record);
    for event in record["events"].as_array().into_iter().flatten() {
        let event = Event::deserialize(event)?;
        counts.add(&event, is_preview);
        rows.push(Row::in_full(&event, None, Vec::new()));
    }
    for turn in record["resources"].as_array().into_iter().flatten() {
        let event = match &turn["event"] {
            Value::Null => interrupted(turn),
            event => Event::deserialize(event)?,
        };
        let lost = turn["cannot_undo"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lost = lost.map(|one| format!("{}: {}", text(&one["what"]), text(&one["reason"])));
        counts.add(&event, false);
        rows.push(Row::in_full(&event, turn["diff"].as_str(), lost.collect()));
    }
    Ok((rows, counts))
}

/// The event of a turn that has none, as the run was killed in it.
fn interrupted(turn: &Value) -> Event {
    let text = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
    Event {
        kind: text("type").into(),
        name: text("name"),
        failed: true,
        error: vec!["the run was killed before this was done".to_owned()],
        ..Event::default()
    }
}

/// A run that the state directory keeps, with diffs.
fn state_run(app: &App, id: &str) -> ApiResult<Value> {
    let missing = || ApiError::not_found("such run in the history");
    let directory = app.settings.state.read_only(&app.settings.host).ok_or_else(missing)?;
    let run = history::open(&directory, id)
        .map_err(|error| ApiError::internal(ccm_engine::chain(&error)))?
        .ok_or_else(missing)?;
    app.settings.host.add_secrets(run.secrets.iter().cloned());
    let info = &run.info;
    let resource = |turn: &RecordedTurn| {
        let mut event = serde_json::to_value(&turn.event).unwrap_or_default();
        event.get_mut("properties").map(hide_content);
        let paths: Vec<String> =
            turn.paths.iter().map(|change| change.path.to_string_lossy().into_owned()).collect();
        let lost: Vec<Value> = turn
            .lost
            .iter()
            .map(|(what, reason)| json!({"what": what, "reason": reason}))
            .collect();
        json!({"type": turn.kind, "name": turn.name, "event": event, "diff": turn.diff,
               "paths": paths, "cannot_undo": lost})
    };
    Ok(json!({
        "kind": "state",
        "manifest": info.manifest,
        "started": info.started,
        "finished": run.finished,
        "user": info.user,
        "sudo_user": info.sudo_user,
        "undo_of": info.undo_of,
        "undo": run.undo(),
        "damaged": run.is_damaged,
        "summary": run.summary,
        "resources": run.turns.iter().map(resource).collect::<Vec<_>>(),
    }))
}
