//! A run of many resources.

use std::path::PathBuf;

use ccm_host::Host;
use ccm_model::{Event, EventId, Summary};
use ccm_template::Engine;
use jiff::Timestamp;
use serde::Serialize;

use crate::lifecycle::{self, Surroundings};
use crate::resource::AnyResource;
use crate::resource_type::{Detail, Diffs};
use crate::session::{Session, SessionError};

/// What holds for a whole run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The machine.
    pub host: Host,
    /// Only say what would be done.
    pub noop: bool,
    /// Which diffs to make.
    pub diffs: Diffs,
    /// How much of each state someone will read.
    pub detail: Detail,
    /// Where relative paths begin.
    pub working_directory: PathBuf,
    /// Stop at the first resource that fails.
    pub fail_on_error: bool,
}

/// Sees what happens while it happens.
pub trait Observer {
    /// A resource's turn begins.
    fn starting(&mut self, _resource: &dyn AnyResource, _number: usize, _total: usize) {}
    /// A line of output from the resource at work.
    fn output(&mut self, _line: &str) {}
    /// A resource is finished.
    fn finished(&mut self, _event: &Event, _diff: Option<&str>) {}
}

/// Why a run ended before its last resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This signal came.
    Interrupted(i32),
    /// A resource failed and `fail_on_error` is set.
    Failed,
}

/// A run: takes resources one after the other and keeps their events.
pub struct Run<'a> {
    settings: Settings,
    templates: &'a Engine,
    session: &'a mut dyn Session,
    observer: &'a mut dyn Observer,
    summary: Summary,
    events: Option<Vec<Event>>,
    last_id: EventId,
    session_error: Option<SessionError>,
}

/// Everything that a run leaves behind, as `--report-file` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`Report::PROTOCOL`].
    pub protocol: &'static str,
    /// What was applied.
    pub manifest: String,
    /// Nothing was really done.
    pub noop: bool,
    /// When the run began.
    pub started: Timestamp,
    /// How many became what.
    pub summary: Summary,
    /// One event per resource, in run order.
    pub events: Vec<Event>,
}

impl Report {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.report";
}

impl<'a> Run<'a> {
    /// A run about to begin. Events are kept only if someone will read them
    /// in full.
    pub fn new(
        settings: Settings,
        templates: &'a Engine,
        session: &'a mut dyn Session,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let summary = Summary::starting(settings.host.now());
        let events = (settings.detail >= Detail::Report).then(Vec::new);
        Self {
            settings,
            templates,
            session,
            observer,
            summary,
            events,
            last_id: EventId::default(),
            session_error: None,
        }
    }

    /// Applies resources in order, each freed when it is done.
    pub fn apply_all(&mut self, resources: Vec<Box<dyn AnyResource>>) -> Option<Stop> {
        let total = resources.len();
        for (index, mut resource) in resources.into_iter().enumerate() {
            if let Some(signal) = self.settings.host.interrupt().signal() {
                return Some(Stop::Interrupted(signal));
            }
            self.observer.starting(&*resource, index + 1, total);
            let event = self.apply(&mut *resource);
            let failed = event.failed;
            if let Some(events) = &mut self.events {
                events.push(event);
            }
            if failed && self.settings.fail_on_error {
                return Some(Stop::Failed);
            }
        }
        let signal = self.settings.host.interrupt().signal();
        signal.map(Stop::Interrupted)
    }

    /// Applies one resource, records what became of it in the session and the
    /// summary, and hands the event out.
    pub fn apply(&mut self, resource: &mut dyn AnyResource) -> Event {
        let mut around = Surroundings {
            settings: &self.settings,
            templates: self.templates,
            session: self.session,
            observer: self.observer,
        };
        let (mut event, diff) = lifecycle::apply(resource, &mut around);
        event.event_id = self.next_id(event.timestamp);
        if let Err(error) = self.session.record(&event) {
            self.session_error.get_or_insert(error);
        }
        self.summary.add(&event);
        self.observer.finished(&event, diff.as_deref());
        event
    }

    /// Ends the run and hands out what it leaves behind, and why not all of it
    /// is in the session where that is so.
    pub fn finish(mut self, manifest: impl Into<String>) -> (Report, Option<SessionError>) {
        self.summary.finish(self.settings.host.now());
        let report = Report {
            protocol: Report::PROTOCOL,
            manifest: manifest.into(),
            noop: self.settings.noop,
            started: self.summary.start,
            summary: self.summary,
            events: self.events.unwrap_or_default(),
        };
        (report, self.session_error)
    }

    /// Ids sort in the order of recording, even if the clock is set back.
    fn next_id(&mut self, at: Timestamp) -> EventId {
        let fresh = EventId::new(at, self.settings.host.random());
        self.last_id = if fresh > self.last_id { fresh } else { self.last_id.next() };
        self.last_id
    }
}
