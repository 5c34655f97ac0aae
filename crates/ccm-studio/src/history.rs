//! History: runs of this studio, sessions, report files in the directory, and
//! runs in the state directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ccm_engine::DirectorySession;
use ccm_host::FileKind;
use ccm_http::{Response, StatusCode};
use ccm_model::Report;
use ccm_state::history::{self, RecordedTurn};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::files::LIMITS;
use crate::routes::check_place;
use crate::runs::hide_content;

/// Sessions that are listed.
const MAX_SESSIONS: usize = 100;
/// Reports that are looked for in the directory.
const MAX_REPORTS: usize = 200;
/// JSON files above this are no reports that anyone opens here.
const MAX_REPORT: u64 = 16 << 20;

/// `GET history`
pub(crate) fn list(app: &App) -> Response {
    let mut found = Vec::new();
    for run in app.runs.all().iter().rev() {
        let mut entry = run.shown(false);
        entry["kind"] = "run".into();
        entry["id"] = format!("run:{}", run.id).into();
        entry["title"] = run.path.as_str().into();
        found.push(entry);
    }
    state_runs(app, &mut found);
    for path in sessions(app) {
        found.push(session_entry(app, &path));
    }
    reports(app, &mut found);
    json_response(StatusCode::OK, &json!({"history": found}))
}

fn state_runs(app: &App, found: &mut Vec<Value>) {
    let Some(directory) = (app.settings.state_directory)(&app.settings.host) else { return };
    let runs = match history::list(&directory) {
        Ok(runs) => runs,
        Err(error) => {
            found.push(json!({"kind": "state", "id": null, "title": "state directory",
                              "error": ccm_engine::chain(&error)}));
            return;
        }
    };
    for run in runs {
        let info = &run.info;
        found.push(json!({
            "kind": "state",
            "id": format!("state:{}", info.id),
            "title": info.manifest,
            "started": info.started,
            "finished": run.finished,
            "user": info.user,
            "undo_of": info.undo_of,
            "undo": run.undo,
            "summary": {"changed": run.changed, "failed": run.failed},
        }));
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

fn session_entry(app: &App, path: &Path) -> Value {
    let id = format!("session:{}", path.display());
    let mut entry = json!({"kind": "session", "id": id, "title": path.display().to_string()});
    match session_report(app, path) {
        Ok(report) => {
            entry["started"] = json!(report.started);
            entry["summary"] = serde_json::to_value(&report.summary).unwrap_or_default();
        }
        Err(message) => entry["error"] = message.into(),
    }
    entry
}

fn session_report(app: &App, path: &Path) -> Result<Report, String> {
    let found = DirectorySession::report_of(&app.settings.host, path);
    let found = found.map_err(|error| ccm_engine::chain(&error))?;
    found.ok_or_else(|| "there is no such session yet".to_owned())
}

fn reports(app: &App, found: &mut Vec<Value>) {
    let is_json = |name: &OsStr| Path::new(name).extension().is_some_and(|kind| kind == "json");
    let Ok((files, _)) = app.settings.directory.find(LIMITS, &is_json) else { return };
    for file in files.iter().take(MAX_REPORTS) {
        let Some(name) = file.place.to_str() else { continue };
        match report_file(app, name) {
            Ok(Some(report)) => found.push(json!({
                "kind": "report",
                "id": format!("report:{name}"),
                "title": name,
                "started": report["started"],
                "manifest": report["manifest"],
                "noop": report["noop"],
                "summary": report["summary"],
            })),
            Ok(None) => {}
            // It says that it is one, and is not.
            Err(message) => found.push(json!({
                "kind": "report", "id": null, "title": name, "error": message,
            })),
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
        events.iter_mut().for_each(hide_content);
    }
    app.settings.host.redactor().value(&mut report);
    report["id"] = id.into();
    Ok(json_response(StatusCode::OK, &report))
}

/// A run that the state directory keeps, with diffs.
fn state_run(app: &App, id: &str) -> ApiResult<Value> {
    let missing = || ApiError::not_found("such run in the history");
    let directory = (app.settings.state_directory)(&app.settings.host).ok_or_else(missing)?;
    let run = history::open(&directory, id)
        .map_err(|error| ApiError::internal(ccm_engine::chain(&error)))?
        .ok_or_else(missing)?;
    let info = &run.info;
    let resource = |turn: &RecordedTurn| {
        let mut event = serde_json::to_value(&turn.event).unwrap_or_default();
        hide_content(&mut event);
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
