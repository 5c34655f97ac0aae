//! A run: its observers, its records and its end.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use ccm_host::{CancelReason, Host};
use ccm_model::{Diagnostic, Event, EventId, Report, Request, RequestError, ResourceRef, Summary};

use ccm_state::history::{Former, RecordedTurn};

use crate::declared::RunDeclarations;
use crate::history::History;
use crate::lifecycle::{LifecycleContext, Repeated};
use crate::manifest::{Diagnosis, Manifest};
use crate::manifest_run::{ChildSummary, ManifestFrame, Way};
use crate::options::RunOptions;
use crate::owed::OwedReactions;
use crate::registration::Unpublished;
use crate::request::read_request;
use crate::resource::{AnyResource, AnyType};
use crate::resource_type::Detail;
use crate::session::{MemorySession, NoSession, Session, SessionError};

/// Receives the events of a run as they happen.
pub trait Observer {
    /// The manifest is loaded and checked: its resources follow.
    fn loaded(&mut self, _manifest: &Manifest) {}
    /// A resource's turn begins.
    fn starting(&mut self, _resource: &dyn AnyResource, _position: Position<'_>) {}
    /// A line of output from the resource at work.
    fn output(&mut self, _line: &str) {}
    /// What is wrong with a manifest, or worth knowing of it.
    fn diagnosed(&mut self, _diagnosis: &Diagnosis) {}
    /// Something worth knowing that stops nothing.
    fn warning(&mut self, _warning: &Diagnostic) {}
    /// What a manifest has to say before or after its resources.
    fn message(&mut self, _text: &str) {}
    /// A resource is finished.
    fn finished(&mut self, _event: &Event, _diff: Option<&str>) {}
}

/// Where a resource is in a run.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// The child manifests on the way to it.
    pub route: &'a [String],
    /// Its number in its manifest, from 1.
    pub number: usize,
    /// How many resources its manifest has.
    pub total: usize,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Why a run ended before its last resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was cancelled.
    Cancelled(CancelReason),
    /// A resource failed and `fail_on_error` is set.
    Failed,
}

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// The report of the run.
    pub report: Report,
    /// Why not all resources had their turn.
    pub stop: Option<Stop>,
    /// Records and files that may not be on disk.
    pub losses: Vec<Loss>,
    /// The manifest's `post_message`, after a run without errors.
    pub post_message: Option<String>,
}

/// A result that a run could not record.
#[derive(Debug, thiserror::Error)]
pub enum Loss {
    /// Not all events are in the session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Written files may not be on disk.
    #[error(transparent)]
    Disk(#[from] ccm_host::Error),
}

impl Finished {
    /// Whether no resource failed and everything is recorded.
    pub fn is_without_errors(&self) -> bool {
        let Summary { failed, requirements_unmet, .. } = self.report.summary;
        failed + requirements_unmet == 0 && self.stop.is_none() && self.losses.is_empty()
    }
}

/// What a run keeps of its events.
pub(crate) struct Record<'a> {
    pub(crate) session: &'a mut dyn Session,
    summary: Summary,
    events: Option<Vec<Event>>,
    pub(crate) warnings: Vec<Diagnostic>,
    last_id: EventId,
    session_error: Option<SessionError>,
    /// How many manifests resources have applied.
    pub(crate) manifests: usize,
    pub(crate) owed: OwedReactions,
    pub(crate) history: History,
    pub(crate) declared: RunDeclarations,
    pub(crate) unpublished: Unpublished,
    /// Resources that were not selected, as `type#name` and `type#alias`.
    not_selected: HashSet<String>,
    /// Those that the real run only previews, in the same way.
    aside: HashSet<String>,
    /// Those that have not succeeded since a change that they subscribe to.
    owing: HashSet<String>,
    /// Provisional ones, in the same way, and what they wait for.
    waiting: HashMap<String, String>,
    /// What the next resource reacts to beside what it subscribes to.
    because: Vec<ResourceRef>,
}

impl<'a> Record<'a> {
    /// Events are kept only if someone will read them in full.
    fn new(
        session: &'a mut dyn Session,
        options: &RunOptions,
        keeps_events: bool,
        (owed, history): (OwedReactions, History),
    ) -> Self {
        let mut summary = Summary::starting(options.host.now());
        summary.noop = options.mode.noop;
        Self {
            session,
            summary,
            events: (keeps_events && options.detail >= Detail::Report).then(Vec::new),
            warnings: Vec::new(),
            last_id: EventId::default(),
            session_error: None,
            manifests: 0,
            owed,
            history,
            declared: RunDeclarations::default(),
            unpublished: Unpublished::default(),
            not_selected: HashSet::new(),
            aside: HashSet::new(),
            owing: HashSet::new(),
            waiting: HashMap::new(),
            because: Vec::new(),
        }
    }

    /// What the resource at work reacts to beside what it subscribes to.
    pub(crate) fn take_because(&mut self) -> Vec<ResourceRef> {
        std::mem::take(&mut self.because)
    }

    /// Gives an event its id, and records and counts it.
    /// Where `counts_for_others` is false, those that refer to the resource do not
    /// see the event.
    pub(crate) fn add(&mut self, event: &mut Event, counts_for_others: bool, host: &Host) {
        // Ids sort in the order of recording, even if the clock is set back.
        let fresh = EventId::new(event.timestamp, host.random());
        self.last_id = if fresh > self.last_id { fresh } else { self.last_id.next() };
        event.event_id = self.last_id;
        event.outcome = Some(event.outcome());
        let recorded = if counts_for_others {
            self.session.record(event)
        } else {
            self.session.record_unseen(event)
        };
        if let Err(error) = recorded {
            self.session_error.get_or_insert(error);
        }
        self.summary.add(event);
    }

    /// Takes note of a resource that was not selected.
    pub(crate) fn pass_over(&mut self, resource: &dyn AnyResource) {
        self.summary.not_selected += 1;
        self.summary.outcomes.not_selected += 1;
        self.not_selected.extend(references(resource));
    }

    /// Takes note of whether a real run would manage a resource, or only preview
    /// it as part of a child manifest with `noop: true`.
    pub(crate) fn note_aside(&mut self, resource: &dyn AnyResource, is_aside: bool) {
        if is_aside {
            self.aside.extend(references(resource));
        } else if !self.aside.is_empty() {
            for reference in references(resource) {
                self.aside.remove(&reference);
            }
        }
    }

    /// Takes note of what a provisional resource waits for.
    pub(crate) fn note_waiting(&mut self, resource: &dyn AnyResource, event: &Event) {
        if let Some(origin) = event.waits_for.first() {
            let waiting = references(resource).map(|reference| (reference, origin.clone()));
            self.waiting.extend(waiting);
        }
    }

    /// What a provisional resource waits for.
    pub(crate) fn awaited_by(&self, reference: &ResourceRef) -> String {
        let name = reference.to_string();
        self.waiting.get(&name).cloned().unwrap_or(name)
    }

    pub(crate) fn is_aside(&self, reference: &ResourceRef) -> bool {
        !self.aside.is_empty() && self.aside.contains(&reference.to_string())
    }

    /// Takes note of whether a resource still owes a reaction after its turn.
    pub(crate) fn note_owing(&mut self, resource: &dyn AnyResource, is_owing: bool) {
        for reference in references(resource) {
            if is_owing {
                self.owing.insert(reference);
            } else if !self.owing.is_empty() {
                self.owing.remove(&reference);
            }
        }
    }

    /// Whether a resource has not succeeded since a change that it subscribes to.
    pub(crate) fn is_owing(&self, reference: &ResourceRef) -> bool {
        !self.owing.is_empty() && self.owing.contains(&reference.to_string())
    }

    pub(crate) fn is_passed_over(&self, reference: &ResourceRef) -> bool {
        !self.not_selected.is_empty() && self.not_selected.contains(&reference.to_string())
    }

    /// Keeps an event for the report.
    pub(crate) fn keep(&mut self, event: Event) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// Writes the end of the history.
    fn finish_history(&mut self, host: &Host) {
        let mut summary = self.summary.clone();
        summary.finish(host.now());
        self.history.finish(&summary, host);
    }

    /// Ends the run: waits until what was written is on disk.
    fn finish(self, options: &RunOptions, manifest: String) -> Finished {
        let mut summary = self.summary;
        summary.finish(options.host.now());
        let mut losses: Vec<Loss> = self.session_error.into_iter().map(Loss::from).collect();
        losses.extend(options.host.sync().err().map(Loss::from));
        let report = Report {
            protocol: Report::PROTOCOL,
            manifest,
            noop: options.mode.noop,
            health_check_only: options.mode.health_check_only,
            started: summary.start,
            summary,
            events: self.events.unwrap_or_default(),
            warnings: self.warnings,
            errors: Vec::new(),
            owed: Vec::new(),
        };
        Finished { report, stop: None, losses, post_message: None }
    }
}

/// What others call a resource: `type#name` and `type#alias`.
pub(crate) fn references(resource: &dyn AnyResource) -> impl Iterator<Item = String> {
    let common = resource.common();
    let names = std::iter::once(&common.name).chain(&common.alias);
    names.map(|name| format!("{}#{name}", resource.kind()))
}

/// Runs a whole manifest.
pub(crate) fn run_manifest(
    types: &'static [&'static dyn AnyType],
    mut manifest: Manifest,
    options: &RunOptions,
    session: Option<&mut dyn Session>,
    observer: &mut dyn Observer,
) -> Finished {
    // Without references, the session is never queried.
    let (mut memory, mut none) = (MemorySession::default(), NoSession);
    let session: &mut dyn Session = match session {
        Some(session) => &mut *session,
        None if manifest.declarations.has_references() => &mut memory,
        None => &mut none,
    };
    let name = manifest.name.clone();
    let observer: RefCell<&mut dyn Observer> = RefCell::new(&mut *observer);
    let state = options.state.directory.as_ref();
    let identity = state.map(|_| manifest.identity(&options.host)).unwrap_or_default();
    let kept =
        (OwedReactions::of_manifest(&identity, options), History::new(options, Some(identity)));
    let mut record = Record::new(session, options, true, kept);
    // A resource that stands in no manifest needs a frame too; this one holds
    // only until the manifest has its own.
    let files = vec![manifest.path.display().to_string()];
    let frame = ManifestFrame::outside(options, manifest.templates);
    manifest.templates = frame.templates.clone();
    let mut context = LifecycleContext {
        types,
        options,
        frame: &frame,
        record: &mut record,
        observer: &observer,
    };
    context.take_warnings(None);
    let (ChildSummary { stop, .. }, post_message) =
        context.run_manifest(manifest, options.mode, files, false, Way::default());
    let is_whole = stop.is_none() && options.selection.is_everything();
    context.record.owed.finish(is_whole, &options.host);
    let owed = context.record.owed.records();
    context.finish_registrations();
    context.record.finish_history(&options.host);
    context.take_warnings(None);
    let mut finished = record.finish(options, name);
    finished.report.owed = owed;
    // Only now it is known whether something was lost.
    let post_message = post_message.filter(|_| finished.losses.is_empty());
    Finished { stop, post_message, ..finished }
}

/// A run that takes requests one after the other.
pub struct Run<'a> {
    types: &'static [&'static dyn AnyType],
    options: RunOptions,
    frame: ManifestFrame,
    record: Record<'a>,
    observer: RefCell<&'a mut dyn Observer>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        types: &'static [&'static dyn AnyType],
        options: &RunOptions,
        session: &'a mut dyn Session,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, ccm_hiera::Error> {
        let templates = options.inputs.templates(&options.host, &options.working_directory)?;
        let options = options.clone();
        Ok(Self {
            types,
            frame: ManifestFrame::outside(&options, templates),
            record: Record::new(
                session,
                &options,
                false,
                (OwedReactions::default(), History::new(&options, None)),
            ),
            observer: RefCell::new(observer),
            options,
        })
    }

    fn context(&mut self) -> LifecycleContext<'_, 'a> {
        LifecycleContext {
            types: self.types,
            options: &self.options,
            frame: &self.frame,
            record: &mut self.record,
            observer: &self.observer,
        }
    }

    /// Manages the resource that a request asks for.
    ///
    /// # Errors
    ///
    /// Returns all errors in the request. Nothing was changed then.
    pub fn ensure(&mut self, request: Request<'_>) -> Result<Event, RequestError> {
        let mut resource = read_request(request, self.types, &self.frame.templates)?;
        self.options.host.add_secrets(resource.secrets());
        self.record.owed.begin_request(&self.options);
        let event = self.context().run_resource(&mut *resource, Repeated::default(), None);
        self.record.owed.finish_request(&self.options.host);
        Ok(event)
    }

    /// Manages the resource of a request as one that reacts to others.
    ///
    /// # Errors
    ///
    /// Returns all errors in the request. Nothing was changed then.
    pub(crate) fn ensure_because(
        &mut self,
        request: Request<'_>,
        because: Vec<ResourceRef>,
    ) -> Result<Event, RequestError> {
        self.record.because = because;
        let event = self.ensure(request);
        self.record.because.clear();
        event
    }

    /// Keeps no more records: other runs may write the same ones.
    pub fn leave_state(&mut self) {
        self.options.state.directory = None;
        self.record.history = History::default();
    }

    /// The handle that its resources are given.
    pub(crate) fn host(&self) -> &Host {
        self.frame.templates.host()
    }

    /// What it was given.
    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Keeps its events for the report.
    pub(crate) fn keep_events(&mut self) {
        self.record.events.get_or_insert_default();
    }

    /// Keeps an event that [`Run::ensure`] gave back.
    pub(crate) fn keep(&mut self, event: Event) {
        self.record.keep(event);
    }

    /// Records, shows and keeps an event that was made elsewhere.
    pub(crate) fn add(&mut self, mut event: Event) {
        self.options.host.redactor().event(&mut event);
        self.record.add(&mut event, true, &self.options.host);
        self.record.history.event(&event, &self.frame.route, None);
        self.context().take_warnings(None);
        self.observer.borrow_mut().finished(&event, None);
        self.record.keep(event);
    }

    /// Hands on something worth knowing.
    pub(crate) fn warning(&mut self, warning: &Diagnostic) {
        self.observer.borrow_mut().warning(warning);
        self.record.warnings.push(warning.clone());
    }

    /// A recorded resource is about to be changed back.
    pub(crate) fn record_undo(&mut self, turn: &RecordedTurn) -> crate::Result<()> {
        let host = &self.options.host;
        let history = &mut self.record.history;
        history.before_change(&turn.kind, &turn.name, &turn.route, &Former::Files, host)
    }

    /// The resource is done.
    pub(crate) fn end_turn(&mut self) {
        self.record.history.end_turn(&self.options.host);
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        self.context().take_warnings(None);
        std::mem::take(&mut self.record.warnings)
    }

    /// Waits until what was written is on disk.
    pub fn sync(&self) -> Result<(), ccm_host::Error> {
        self.options.host.sync()
    }

    /// Ends the run.
    pub fn finish(mut self) -> Finished {
        self.context().finish_registrations();
        self.record.finish_history(&self.options.host);
        self.context().take_warnings(None);
        self.record.finish(&self.options, String::new())
    }
}
