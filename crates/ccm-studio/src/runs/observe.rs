//! Turns the output of a run into events for the page.

use std::sync::Arc;

use ccm_author::frame;
use ccm_engine::{AnyResource, AnyType, Diagnosis, Finished, Observer, Position, Stop};
use ccm_host::Host;
use ccm_model::{Counts, Diagnostic, Event, REDACTED};
use serde_json::{Value, json};

use super::Run;
use super::events::{
    Diagnosed, DiagnosedFinding, Message, OutputLine, RunEnded, TurnDone, TurnStarted,
};
use super::row::Row;

/// Turns what the engine says into events of a run.
pub(super) struct Watcher {
    run: Arc<Run>,
    types: &'static [&'static dyn AnyType],
    host: Host,
    is_preview: bool,
    counts: Counts,
}

impl Watcher {
    pub(super) fn new(
        run: &Arc<Run>,
        types: &'static [&'static dyn AnyType],
        host: &Host,
        is_preview: bool,
    ) -> Self {
        Self {
            run: Arc::clone(run),
            types,
            host: host.clone(),
            is_preview,
            counts: Counts::default(),
        }
    }
}

impl Observer for Watcher {
    fn starting(&mut self, resource: &dyn AnyResource, position: Position<'_>) {
        let Position { number, .. } = position;
        let (kind, name) = (resource.kind(), resource.common().name.as_str());
        let name = self.host.redactor().name(name).into_owned();
        let turn = TurnStarted { number, r#type: kind, name: &name };
        self.run.add("resource", &json!(turn));
    }

    fn output(&mut self, line: &str) {
        self.run.add("output", &json!(OutputLine { line }));
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        if !diagnosis.findings.is_empty() {
            diagnosed(&self.run, self.types, diagnosis);
        }
    }

    fn warning(&mut self, warning: &Diagnostic) {
        self.run.add("warning", &serde_json::to_value(warning).unwrap_or_default());
    }

    fn message(&mut self, text: &str) {
        self.run.add("message", &json!(Message::new(text)));
    }

    fn finished(&mut self, event: &Event, diff: Option<&str>) {
        self.counts.add(event, self.is_preview);
        let (row, counts) = (Row::of(event, diff), self.counts);
        self.run.add("event", &json!(TurnDone { event: without_hidden(event), row, counts }));
    }
}

/// An event without the content of a file that its mode hides from others.
pub(crate) fn without_hidden(event: &Event) -> Value {
    let mut event = serde_json::to_value(event).unwrap_or_default();
    hide_content(&mut event);
    event
}

pub(crate) fn hide_content(event: &mut Value) {
    let Some(properties) = event.get_mut("properties") else { return };
    let mode = properties.get("mode").and_then(Value::as_str);
    let mode = mode.map(|mode| mode.trim_start_matches("0o"));
    let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok());
    let is_hidden = mode.is_some_and(|mode| mode & 0o004 == 0);
    if is_hidden && let Some(content) = properties.get_mut("content") {
        *content = REDACTED.into();
    }
}

/// Tells what is wrong with a manifest.
pub(super) fn diagnosed(run: &Run, types: &[&'static dyn AnyType], diagnosis: &Diagnosis) {
    /// More of them are found with a check.
    const MAX: usize = 200;
    let findings = diagnosis
        .findings
        .iter()
        .take(MAX)
        .map(|finding| {
            let own = finding.span.filter(|_| finding.source.is_none());
            let alone = Diagnosis {
                source: Arc::clone(&diagnosis.source),
                findings: vec![finding.clone()],
            };
            DiagnosedFinding {
                diagnostic: Diagnostic::new(finding, &diagnosis.source),
                frame: frame::render(&alone, types, false).trim_end().to_owned(),
                range: own.map(|span| diagnosis.source.range(span)),
            }
        })
        .collect();
    run.add("diagnosis", &json!(Diagnosed { findings }));
}

/// The last event of a run; gives the state that it ends in.
pub(super) fn ended(run: &Run, finished: &Finished, summary: &Value) -> &'static str {
    let (stop, state) = match finished.stop {
        None if finished.losses.is_empty() => (None, "finished"),
        None => (None, "failed"),
        Some(Stop::Cancelled(_)) => (Some("cancelled"), "stopped"),
        Some(Stop::Failed) => (Some("failed"), "finished"),
    };
    for loss in &finished.losses {
        run.add("message", &json!(Message::new(&ccm_engine::chain(loss))));
    }
    if let Some(message) = finished.post_message.as_ref().filter(|_| finished.is_without_errors()) {
        run.add("message", &json!(Message::new(message)));
    }
    run.add("finished", &json!(RunEnded { summary: summary.clone(), stop }));
    state
}
