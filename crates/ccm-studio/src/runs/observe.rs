//! Turns the output of a run into events for the page.

use std::sync::Arc;

use ccm_author::frame;
use ccm_engine::{AnyResource, AnyType, Diagnosis, Loss, Observer, Position, RunExit, Stop};
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
        let (row, counts, mut event) = (Row::of(event, diff), self.counts, event.clone());
        hide_content(&mut event.properties);
        self.run.add("event", &json!(TurnDone { event, row, counts }));
    }
}

/// Hides the content of a file among its properties if its mode hides it from
/// others.
pub(crate) fn hide_content(properties: &mut Value) {
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

/// The state of a run that began.
pub(super) fn state_of(exit: RunExit) -> &'static str {
    match exit {
        RunExit::Finished { .. } => "finished",
        RunExit::Interrupted(_) | RunExit::Cancelled => "stopped",
        RunExit::Failed | RunExit::Busy => "failed",
    }
}

/// The last event of a run.
pub(super) fn ended(run: &Run, losses: &[Loss], message: Option<&str>, end: &RunEnded) {
    for loss in losses {
        run.add("message", &json!(Message::new(&ccm_engine::chain(loss))));
    }
    if let Some(message) = message {
        run.add("message", &json!(Message::new(message)));
    }
    run.add("finished", &json!(end));
}

/// Why a run ended early.
pub(super) fn stop_of(stop: Stop) -> &'static str {
    match stop {
        Stop::Cancelled(_) => "cancelled",
        Stop::Failed => "failed",
    }
}
