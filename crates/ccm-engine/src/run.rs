//! A run of many resources.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use ccm_host::{CancelReason, Host};
use ccm_model::{Event, EventId, Report, Summary};
use ccm_template::Resolver;

use crate::inputs::Inputs;
use crate::lifecycle::{self, Surroundings};
use crate::manifest::Diagnosis;
use crate::nested::{Level, Library};
use crate::resource::{AnyResource, AnyType};
use crate::resource_type::{Detail, Diffs};
use crate::session::{Session, SessionError};

/// What holds for a whole run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The machine.
    pub host: Host,
    /// Only say what would be done.
    pub noop: bool,
    /// Change nothing, only look at the health of resources.
    pub health_check_only: bool,
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
    /// A manifest that a resource brings is about to be applied.
    fn entering(&mut self, _manifest: &str) {}
    /// Its resources are done.
    fn leaving(&mut self) {}
    /// What is wrong with such a manifest, or worth knowing of it.
    fn diagnosed(&mut self, _diagnosis: &Diagnosis) {}
    /// What such a manifest has to say before or after its resources.
    fn message(&mut self, _text: &str) {}
    /// A resource is finished.
    fn finished(&mut self, _event: &Event, _diff: Option<&str>) {}
}

/// Why a run ended before its last resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was cancelled.
    Cancelled(CancelReason),
    /// A resource failed and `fail_on_error` is set.
    Failed,
}

/// A run: takes resources one after the other and keeps their events.
pub struct Run<'a> {
    level: Level<'a>,
    record: Record<'a>,
    observer: RefCell<&'a mut dyn Observer>,
    library: Option<Library<'a>>,
}

/// What a run keeps of its events.
pub(crate) struct Record<'a> {
    pub(crate) session: &'a mut dyn Session,
    summary: Summary,
    events: Option<Vec<Event>>,
    last_id: EventId,
    session_error: Option<SessionError>,
    /// How many manifests resources have brought.
    pub(crate) manifests: usize,
}

impl<'a> Run<'a> {
    /// A run about to begin. Events are kept only if someone will read them
    /// in full.
    pub fn new(
        settings: Settings,
        templates: &'a Resolver,
        session: &'a mut dyn Session,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let record = Record {
            session,
            summary: Summary::starting(settings.host.now()),
            events: (settings.detail >= Detail::Report).then(Vec::new),
            last_id: EventId::default(),
            session_error: None,
            manifests: 0,
        };
        let level = Level { settings, templates, files: Vec::new() };
        Self { level, record, observer: RefCell::new(observer), library: None }
    }

    /// A run whose resources may bring manifests, as they are those of one
    /// themselves.
    #[must_use]
    pub fn of_manifest(
        mut self,
        file: &Path,
        types: &'a [&'static dyn AnyType],
        inputs: &'a Inputs,
    ) -> Self {
        self.level.files = vec![inputs.shown(file)];
        self.library = Some(Library { types, inputs });
        self
    }

    /// A run that goes on for long, whose events are read as they come.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        self.record.events = None;
        self
    }

    fn surroundings(&mut self) -> Surroundings<'_, 'a> {
        Surroundings {
            level: &self.level,
            record: &mut self.record,
            observer: &self.observer,
            library: self.library,
        }
    }

    /// Applies resources in order, each freed when it is done.
    pub fn apply_all(&mut self, resources: Vec<Box<dyn AnyResource>>) -> Option<Stop> {
        self.surroundings().apply_all(resources, |_| {})
    }

    /// Applies one resource, records what became of it in the session and the
    /// summary, and hands the event out.
    pub fn apply(&mut self, resource: &mut dyn AnyResource) -> Event {
        self.surroundings().apply_one(resource)
    }

    /// Ends the run and hands out what it leaves behind, and why not all of it
    /// is in the session where that is so.
    pub fn finish(self, manifest: impl Into<String>) -> (Report, Option<SessionError>) {
        let Self { level: Level { settings, .. }, record, .. } = self;
        let mut summary = record.summary;
        summary.finish(settings.host.now());
        let report = Report {
            protocol: Report::PROTOCOL,
            manifest: manifest.into(),
            noop: settings.noop,
            health_check_only: settings.health_check_only,
            started: summary.start,
            summary,
            events: record.events.unwrap_or_default(),
        };
        (report, record.session_error)
    }
}

impl Surroundings<'_, '_> {
    /// Applies the resources of one manifest; `each` sees what becomes of them.
    pub(crate) fn apply_all(
        &mut self,
        resources: Vec<Box<dyn AnyResource>>,
        mut each: impl FnMut(&Event),
    ) -> Option<Stop> {
        let settings = &self.level.settings;
        let total = resources.len();
        for (index, mut resource) in resources.into_iter().enumerate() {
            if let Some(reason) = settings.host.cancel().reason() {
                return Some(Stop::Cancelled(reason));
            }
            self.observer.borrow_mut().starting(&*resource, index + 1, total);
            let event = self.apply_one(&mut *resource);
            each(&event);
            let failed = event.failed;
            if let Some(events) = &mut self.record.events {
                events.push(event);
            }
            if failed && settings.fail_on_error {
                return Some(Stop::Failed);
            }
        }
        settings.host.cancel().reason().map(Stop::Cancelled)
    }

    fn apply_one(&mut self, resource: &mut dyn AnyResource) -> Event {
        let (mut event, diff) = lifecycle::apply(resource, self);
        self.record.add(&mut event, &self.level.settings.host);
        self.observer.borrow_mut().finished(&event, diff.as_deref());
        event
    }
}

impl Record<'_> {
    /// Gives an event its id, and records and counts it.
    fn add(&mut self, event: &mut Event, host: &Host) {
        // Ids sort in the order of recording, even if the clock is set back.
        let fresh = EventId::new(event.timestamp, host.random());
        self.last_id = if fresh > self.last_id { fresh } else { self.last_id.next() };
        event.event_id = self.last_id;
        if let Err(error) = self.session.record(event) {
            self.session_error.get_or_insert(error);
        }
        self.summary.add(event);
    }
}
