//! Notifies pages of changed files in the directory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ccm_host::Digest;
use ccm_http::{Response, StreamSender, blocking};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{App, lock};
use crate::files::{LIMITS, MAX_SIZE, is_listed};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_secs(2);
/// A line without content, so that both sides notice if the other one is gone.
pub(crate) const BEAT: Duration = Duration::from_secs(15);

/// A file that is open in a page, as it is now.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileChanged<'a> {
    path: &'a str,
    /// Absent if the file is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
}

/// An event that says nothing but its name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Nothing {}

/// An event of a stream.
pub(crate) fn event(id: Option<usize>, name: &str, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

/// `GET watch`: events about files until the page or the studio ends. The first
/// look tells of everything, and each later one of what has changed, so that
/// nothing is missed between reading a file and looking at it.
pub(crate) fn watch(app: &Arc<App>) -> Response {
    let (response, sender) = Response::stream("text/event-stream", 64);
    tokio::task::spawn_local(run(Arc::clone(app), sender));
    response
}

async fn run(app: Arc<App>, sender: StreamSender) {
    let mut stopping = app.stopping();
    let mut before = Snapshot::default();
    let mut silence = Duration::ZERO;
    sender.try_send(": here\n\n".to_owned());
    loop {
        let shared = Arc::clone(&app);
        let Some(now) = blocking(move || Snapshot::take(&shared)).await else { return };
        let mut events = now.events_since(&before);
        before = now;
        silence += PAUSE;
        if events.is_empty() && silence >= BEAT {
            events.push(":\n\n".to_owned());
        }
        for event in events {
            silence = Duration::ZERO;
            // A page that does not read is dropped; it asks again.
            if !sender.try_send(event) {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = sender.closed() => return,
            _ = stopping.wait_for(|stopping| *stopping) => {
                sender.try_send(event(None, "stopping", &json!(Nothing {})));
                return;
            }
        }
    }
}

/// What the directory looks like.
#[derive(Default)]
struct Snapshot {
    /// The digests of files that pages have read.
    opened: HashMap<String, Option<String>>,
    /// All files that are listed.
    listed: Vec<(std::path::PathBuf, u64, bool)>,
}

impl Snapshot {
    fn take(app: &App) -> Self {
        let tree = &app.settings.directory;
        let names = lock(&app.opened).clone();
        let digest = |name: &str| {
            let read = tree.read(Path::new(name), MAX_SIZE).ok().flatten();
            read.map(|(bytes, _)| Digest::of(&bytes).to_string())
        };
        let opened = names.into_iter().map(|name| {
            let digest = digest(&name);
            (name, digest)
        });
        let opened = opened.collect();
        let listed = tree.find(LIMITS, &is_listed).map(|(found, _)| found).unwrap_or_default();
        let listed = listed
            .into_iter()
            .map(|file| (file.place, file.stat.mtime.as_nanosecond() as u64, file.writable))
            .collect();
        Self { opened, listed }
    }

    fn events_since(&self, before: &Self) -> Vec<String> {
        let mut events = Vec::new();
        let mut names: Vec<&String> = self.opened.keys().collect();
        names.sort();
        for name in names {
            let now = &self.opened[name];
            // Also notify for files opened since: they may have changed after they were read.
            if before.opened.get(name) != Some(now) {
                let changed = FileChanged { path: name, digest: now.as_deref() };
                events.push(event(None, "file", &json!(changed)));
            }
        }
        if self.listed != before.listed {
            events.push(event(None, "files", &json!(Nothing {})));
        }
        events
    }
}
