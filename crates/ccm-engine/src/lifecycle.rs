//! The lifecycle of one resource, from provider selection to its event.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use ccm_host::Host;
use ccm_model::{
    Diagnostic, Event, ItemPlace, OwedReaction, REDACTED, ResourceRef, Spanned, Stage,
    TemplateError, Templates,
};
use ccm_template::{LoopItem, Resolver};

use crate::group::{Group, TakenAhead};
use crate::manage::{AnyAhead, Turn};
use crate::manifest::Diagnosis;
use crate::manifest_run::{ManifestFrame, Mode};
use crate::options::RunOptions;
use crate::provisional;
use crate::resource::{AnyResource, AnyType, templates_of};
use crate::resource_type::{Awaited, Detail, Trigger};
use crate::run::{Observer, Position, Record, Stop};
use crate::selection::Choice;
use crate::session::{LastOutcome, Session};
use crate::{Error, Result, chain};
use crate::{decision_log, health};

/// What may come before a resource is managed.
enum Gate {
    Open,
    /// Control says no.
    Closed,
    /// These requirements are not met.
    Unmet(Vec<ResourceRef>),
}

/// What a resource changes in texts.
#[derive(Default)]
struct TurnDiffs {
    /// The diff for the observer of the run.
    shown: Option<String>,
    /// For the history.
    kept: Option<String>,
    /// The properties that are not shown, because of what was there.
    hidden: &'static [&'static str],
}

/// What it means for a resource that others of its manifest have its name.
#[derive(Clone, Copy, Default)]
pub(crate) struct Repeated {
    /// Its own line, if there are others.
    line: Option<usize>,
    /// The line of the one that was managed before it.
    managed: Option<usize>,
}

/// What the lifecycle of a resource needs beside the resource.
pub(crate) struct LifecycleContext<'r, 'a> {
    pub(crate) types: &'static [&'static dyn AnyType],
    pub(crate) options: &'r RunOptions,
    /// The manifest that it stands in.
    pub(crate) frame: &'r ManifestFrame,
    pub(crate) record: &'r mut Record<'a>,
    pub(crate) observer: &'r RefCell<&'a mut dyn Observer>,
}

/// Whether control skipped the resource.
fn is_closed(event: &Event) -> bool {
    event.skipped && event.unmet_requirements.is_empty()
}

impl<'a> LifecycleContext<'_, 'a> {
    /// The same run, in another manifest.
    pub(crate) fn within<'s>(&'s mut self, frame: &'s ManifestFrame) -> LifecycleContext<'s, 'a> {
        LifecycleContext {
            types: self.types,
            options: self.options,
            frame,
            record: &mut *self.record,
            observer: self.observer,
        }
    }

    /// Runs resources in order, each freed when it is done; `each` sees what
    /// becomes of them.
    pub(crate) fn run_all(
        &mut self,
        resources: Vec<Box<dyn AnyResource>>,
        mut each: impl FnMut(&Event),
    ) -> Option<Stop> {
        let cancel = self.options.host.cancel();
        let total = resources.len();
        let mut managed: HashMap<String, usize> = HashMap::new();
        let mut rest = VecDeque::from(resources);
        let mut group = Group::default();
        for index in 0..total {
            let Some(mut resource) = rest.pop_front() else { break };
            // Of what a group has changed, the events are still to come.
            if let Some(reason) = cancel.reason().filter(|_| !group.is_owing_turns()) {
                rest.push_front(resource);
                self.leave_group(&group, &rest, index);
                return Some(Stop::Cancelled(reason));
            }
            if self.choose(&*resource) == Choice::NotSelected {
                self.record.pass_over(&*resource);
                self.note_owing(&*resource, None);
                continue;
            }
            let position = Position { route: &self.frame.route, number: index + 1, total };
            self.observer.borrow_mut().starting(&*resource, position);
            let line = self.frame.repeated.get(&index).copied();
            let first = line.and_then(|_| managed.get(&resource.display()).copied());
            if group.is_over(index) {
                group = self.form_group(&*resource, index, &rest);
            }
            let repeated = Repeated { line, managed: first };
            let ahead = group.take(index);
            let ends_group = ahead.is_some() && group.is_at_end();
            let event = self.run_resource(&mut *resource, repeated, ahead);
            if ends_group {
                self.record.owed.end_group(&self.options.host);
            }
            if let Some(line) = line.filter(|_| !event.skipped) {
                managed.entry(resource.display()).or_insert(line);
            }
            each(&event);
            let failed = event.failed;
            self.record.keep(event);
            if failed && self.frame.fail_on_error {
                self.leave_group(&group, &rest, index + 1);
                return Some(Stop::Failed);
            }
        }
        cancel.reason().map(Stop::Cancelled)
    }

    /// The key of a resource among the decisions, if anyone looks at them.
    pub(crate) fn decision_key(&self, resource: &dyn AnyResource, repeated: Repeated) -> String {
        if self.options.decisions.are_watched() {
            let mut name = resource.display();
            if let Some(line) = repeated.line {
                name += &format!("\n{line}");
            }
            decision_log::key(&self.frame.files, &name)
        } else {
            String::new()
        }
    }

    /// Whether the run looks at a resource.
    pub(crate) fn choose(&self, resource: &dyn AnyResource) -> Choice {
        let selection = &self.options.selection;
        if selection.is_everything() {
            return Choice::Chosen;
        }
        let child = resource.child();
        let child = child.map(|child| self.frame.working_directory.join(child.path));
        selection.choose(resource, self.frame.is_chosen, child)
    }

    /// Takes a resource through its lifecycle and records what became of it.
    /// Whatever goes wrong becomes part of the event; nothing of one resource
    /// aborts the run.
    pub(crate) fn run_resource(
        &mut self,
        resource: &mut dyn AnyResource,
        repeated: Repeated,
        ahead: Option<TakenAhead>,
    ) -> Event {
        match resource.item() {
            Some(item) => {
                let frame = self.frame.with_item(item);
                self.within(&frame).run_in_frame(resource, repeated, ahead)
            }
            None => self.run_in_frame(resource, repeated, ahead),
        }
    }

    fn run_in_frame(
        &mut self,
        resource: &mut dyn AnyResource,
        repeated: Repeated,
        ahead: Option<TakenAhead>,
    ) -> Event {
        let begin = Instant::now();
        let options = self.options;
        let _secrets = options.host.begin_resource(resource.secret_values().resource);
        let mode = resource.mode(self.frame.mode);
        let common = resource.common();
        let mut event = Event {
            protocol: Cow::Borrowed(Event::PROTOCOL),
            kind: Cow::Borrowed(resource.kind()),
            name: common.name.clone(),
            alias: common.alias.clone(),
            route: self.frame.route.clone(),
            item: resource.item().map(|item| Box::new(item_place(item))),
            group: ahead.as_ref().map(|ahead| ahead.place),
            requested_ensure: common.ensure.clone(),
            noop: mode.noop,
            health_check_only: mode.health_check_only,
            timestamp: options.host.now(),
            ..Event::default()
        };
        let mut diffs = TurnDiffs::default();
        let host = self.frame.templates.host();
        if mode.noop {
            host.begin_prediction(&resource.display());
        }
        let share = ahead.as_ref().map(|ahead| ahead.share).unwrap_or_default();
        let ahead = ahead.map(|ahead| ahead.ahead);
        let done = self.steps(resource, (repeated, ahead), mode, &mut event, &mut diffs);
        // Another one of this name may be the one that owes a reaction.
        let is_left_to_another = repeated.line.is_some() && is_closed(&event);
        if !is_left_to_another {
            self.record_owed(resource, mode, done.is_ok(), &event);
        }
        self.note_owing(resource, Some(&event));
        if let Err(error) = &done
            && let Some(waits_for) = self.waits_for(resource, mode, error)
        {
            let origin = waits_for.first().map(String::as_str);
            host.predict_more(resource.reach(), origin);
            provisional::mark(&mut event, resource, error);
            event.waits_for = waits_for;
        } else if let Err(error) = done {
            event.failed = true;
            let mut message = chain(&error);
            if let Some(hint) = error.hint() {
                message = format!("{message}\nhint: {hint}");
            }
            event.error.push(message);
        }
        if event.failed {
            event.location = self.frame.place(resource.span()).map(String::from);
        }
        if options.decisions.are_watched() {
            let key = self.decision_key(resource, repeated);
            options.decisions.finished(&key, resource.display(), &event);
        }
        if options.detail >= Detail::Report {
            event.properties = resource.properties();
            for name in diffs.hidden {
                if let Some(value) = event.properties.get_mut(name) {
                    *value = REDACTED.into();
                }
            }
        }
        options.host.redactor().event(&mut event);
        let diff = diffs.shown.as_deref().map(|diff| options.host.redactor().text(diff));
        let kept_diff = diffs.kept.as_deref().map(|diff| options.host.redactor().text(diff));
        event.timestamp = options.host.now();
        event.duration = begin.elapsed() + share;
        let counts_for_others = repeated.managed.is_none() || !is_closed(&event);
        self.record.add(&mut event, counts_for_others, &options.host);
        self.record.note_aside(resource, mode.is_aside);
        self.record.note_waiting(resource, &event);
        self.record.history.event(&event, &self.frame.route, kept_diff.as_deref());
        self.register(resource, &event);
        self.take_warnings(Some(resource));
        self.observer.borrow_mut().finished(&event, diff.as_deref());
        event
    }

    fn steps(
        &mut self,
        resource: &mut dyn AnyResource,
        (repeated, ahead): (Repeated, Option<AnyAhead>),
        mode: Mode,
        event: &mut Event,
        diffs: &mut TurnDiffs,
    ) -> Result<()> {
        let host = self.frame.templates.host();
        let (provider, name) = resource.select_provider(host)?;
        event.provider = Cow::Borrowed(name);
        match self.gate(resource, repeated)? {
            Gate::Open => {}
            Gate::Closed => {
                event.skipped = true;
                return Ok(());
            }
            Gate::Unmet(requirements) => {
                event.skipped = true;
                event.unmet_requirements = requirements;
                return Ok(());
            }
        }
        let mut awaited = None;
        if !mode.health_check_only {
            (event.because, awaited) = self.changed_subscriptions(resource, mode)?;
            event.owed = self.owed_from_earlier(resource);
            let Self { frame, record, .. } = self;
            if !mode.noop {
                record.owed.reacting(resource, &frame.route, &event.because, host)?;
            }
        }
        let is_triggered = !event.because.is_empty() || event.owed.is_some();
        let awaited = awaited.filter(|_| event.owed.is_none());
        let trigger = if is_triggered { Trigger::Refresh } else { Trigger::Turn };
        let is_chosen = self.choose(resource) == Choice::Chosen;
        let key = self.decision_key(resource, repeated);
        let (diff, kept_diff, hidden) = (None, None, &[][..]);
        let mut turn = Turn {
            run: self,
            mode,
            trigger,
            awaited,
            key,
            is_chosen,
            diff,
            kept_diff,
            hidden,
            ahead,
        };
        let managed = resource.manage(provider, &mut turn, event);
        *diffs = TurnDiffs { shown: turn.diff, kept: turn.kept_diff, hidden: turn.hidden };
        managed?;
        // Its health is another matter: the reaction itself is done.
        if is_triggered && !mode.noop {
            self.record.owed.reacted(resource, &self.frame.route, host);
        }
        // In noop, what they would look at was not done; nor where it was left to
        // the first boot.
        if !mode.noop && event.deferred.is_empty() {
            let checks = &resource.common().health_checks;
            health::check(host, &self.frame.templates, checks, event)?;
            event.aggregate &= !event.failed;
        }
        Ok(())
    }

    /// What the resource owes from earlier runs.
    pub(crate) fn owed_from_earlier(&mut self, resource: &dyn AnyResource) -> Option<OwedReaction> {
        let Record { owed, session, .. } = &mut *self.record;
        owed.left_by_earlier(resource, &self.frame.route, &self.options.host, |by| {
            session.last(by).is_some_and(|last| last.failed || last.unmet)
        })
    }

    /// Takes note of a resource that acts only on changes and has not succeeded
    /// since the last one: what requires it must wait. Without an event, it was
    /// not selected.
    fn note_owing(&mut self, resource: &dyn AnyResource, event: Option<&Event>) {
        if !resource.is_refresh_only() {
            return;
        }
        let reacts = |event: &Event| !event.because.is_empty() || event.owed.is_some();
        let is_waiting = event.is_none_or(|event| !event.skipped && !reacts(event));
        let Record { owed, session, .. } = &mut *self.record;
        let is_owed = owed.is_owed(resource, &self.frame.route, &self.options.host);
        let has_failed = event.is_some()
            && resource.subscribe().iter().any(|reference| {
                session.last(reference).is_some_and(|last| last.failed || last.unmet)
            });
        self.record.note_owing(resource, is_waiting && (is_owed || has_failed));
    }

    /// Takes note of what a turn means for what is owed.
    fn record_owed(
        &mut self,
        resource: &dyn AnyResource,
        mode: Mode,
        is_done: bool,
        event: &Event,
    ) {
        let (owed, route, host) = (&mut self.record.owed, &self.frame.route, &self.options.host);
        if mode.noop || mode.health_check_only {
            return;
        }
        owed.after_change(event, is_done, host);
        if is_closed(event) && is_done {
            owed.skipped(resource, route, host);
        } else if !is_done || event.skipped {
            owed.kept(resource, route, host);
        }
    }

    /// Control, deferred templates, requirements: may this resource be managed?
    fn gate(&mut self, resource: &mut dyn AnyResource, repeated: Repeated) -> Result<Gate> {
        let templates = &self.frame.templates;
        let is_managed = is_managed(resource, templates).map_err(|error| match error {
            Error::Control { which, source, .. } => {
                let control = resource.common().control.as_ref();
                let written = control.and_then(|control| match which {
                    "if" => control.r#if.as_ref(),
                    _ => control.unless.as_ref(),
                });
                let place = self.frame.place(written.map(|written| written.span));
                Error::Control { which, place, source }
            }
            error => error,
        })?;
        if !is_managed {
            return Ok(Gate::Closed);
        }
        if let Some(line) = repeated.managed {
            return Err(Error::AlreadyManaged { resource: resource.display(), line });
        }
        let templates = TrackingTemplates { templates, is_used: Cell::new(false) };
        if let Some(failure) = resource.resolve(Stage::Apply, &templates).into_iter().next() {
            let place = self.frame.place(failure.span);
            return Err(Error::Template {
                property: failure.property,
                place,
                source: failure.error,
            });
        }
        // What held no template was found valid with the manifest.
        if templates.is_used.get() {
            let secrets = resource.secret_values();
            self.options.host.add_secrets(secrets.run);
            self.options.host.set_resource_secrets(secrets.resource);
            resource.check_resolved(self.frame.templates.host())?;
        }
        let mut unmet = Vec::new();
        for reference in &resource.common().require {
            if self.record.is_owing(reference) {
                unmet.push(reference.clone());
                continue;
            }
            if self.record.is_passed_over(reference) {
                let message =
                    format!("{reference} is not selected; ccm treats this requirement as met");
                self.warn(Some(&resource.display()), &message);
                continue;
            }
            let last = last(&self.options.host, self.record.session, reference)?;
            if last.failed || last.unmet {
                unmet.push(reference.clone());
            }
        }
        Ok(if unmet.is_empty() { Gate::Open } else { Gate::Unmet(unmet) })
    }

    /// What became of a resource that had its turn.
    pub(crate) fn last(&mut self, reference: &ResourceRef) -> Result<LastOutcome> {
        last(&self.options.host, self.record.session, reference)
    }

    /// The resources that it subscribes to and that have changed, or may change.
    /// If only the run can tell of all of them, also what the first one waits for.
    fn changed_subscriptions(
        &mut self,
        resource: &dyn AnyResource,
        mode: Mode,
    ) -> Result<(Vec<ResourceRef>, Option<Awaited>)> {
        let mut changed = self.record.take_because();
        let (mut is_certain, mut is_now, mut awaited) = (!changed.is_empty(), false, None);
        for reference in resource.subscribe() {
            if self.record.is_passed_over(reference) {
                continue;
            }
            let last = last(&self.options.host, self.record.session, reference)?;
            // What only would have changed moves nothing but a preview, and what a
            // plan says of a child in noop moves nothing but that child.
            let is_aside = self.record.is_aside(reference) && !mode.is_aside;
            let may_change = last.changed || last.provisional;
            if may_change && (mode.noop || !last.noop) && !is_aside {
                changed.push(reference.clone());
                is_certain |= !last.provisional;
                is_now |= last.changed;
                awaited = awaited.or_else(|| Some(self.record.awaited_by(reference)));
            }
        }
        let awaited = awaited.filter(|_| !is_certain);
        Ok((changed, awaited.map(|by: String| Awaited { by: by.into(), is_now })))
    }

    /// In a preview: the resources after which one that failed now can be judged,
    /// if there are any.
    fn waits_for(
        &self,
        resource: &dyn AnyResource,
        mode: Mode,
        error: &Error,
    ) -> Option<Vec<String>> {
        if !mode.noop || mode.health_check_only {
            return None;
        }
        provisional::waits_for(self.frame.templates.host(), resource, error)
    }

    /// Hands on what is worth knowing of a manifest.
    pub(crate) fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        self.record.warnings.extend(diagnosis.diagnostics());
        self.observer.borrow_mut().diagnosed(diagnosis);
    }

    /// Hands on what the machine had to say meanwhile, about this resource.
    pub(crate) fn take_warnings(&mut self, resource: Option<&dyn AnyResource>) {
        for message in self.options.host.take_warnings() {
            let resource = resource.map(AnyResource::display);
            self.warn(resource.as_deref(), &message);
        }
    }

    /// Hands on something worth knowing that stops nothing.
    pub(crate) fn warn(&mut self, resource: Option<&str>, message: &str) {
        let redactor = self.options.host.redactor();
        let resource = resource.map(|name| redactor.name(name).into_owned());
        let message = redactor.text(message).into_owned();
        drop(redactor);
        let warning = Diagnostic { resource, ..Diagnostic::warning(message) };
        self.observer.borrow_mut().warning(&warning);
        self.record.warnings.push(warning);
    }
}

/// What became of something referred to. Events carry no secrets, so they are
/// found without them.
fn last(host: &Host, session: &mut dyn Session, reference: &ResourceRef) -> Result<LastOutcome> {
    let found = match host.redactor().name(&reference.name) {
        Cow::Borrowed(_) => session.last(reference),
        Cow::Owned(name) => session
            .last(&ResourceRef::new(&*reference.kind, name))
            // It may have become known as a secret only later.
            .or_else(|| session.last(reference)),
    };
    found.ok_or_else(|| Error::NotApplied { reference: reference.clone() })
}

/// Templates that remember whether anything was resolved.
struct TrackingTemplates<'a> {
    templates: &'a dyn Templates,
    is_used: Cell<bool>,
}

impl Templates for TrackingTemplates<'_> {
    fn text(&self, text: &str) -> std::result::Result<String, TemplateError> {
        self.is_used.set(true);
        self.templates.text(text)
    }

    fn script(&self, text: &str) -> std::result::Result<String, TemplateError> {
        self.is_used.set(true);
        self.templates.script(text)
    }

    fn value(&self, text: &str) -> std::result::Result<govalue::Value, TemplateError> {
        self.is_used.set(true);
        self.templates.value(text)
    }

    fn reads_secret(&self, text: &str) -> bool {
        self.templates.reads_secret(text)
    }
}

/// Whether `control` lets ccm manage a resource. A condition without a value is
/// false, with a warning.
///
/// # Errors
///
/// Returns why a condition cannot be evaluated.
pub fn is_managed(resource: &dyn AnyResource, templates: &Resolver) -> Result<bool> {
    let of_block = resource.block().map_or(&[][..], |block| &block.control);
    let own = &resource.common().control;
    if of_block.is_empty() && own.is_none() {
        return Ok(true);
    }
    let templates = templates_of(resource, templates);
    let evaluate = |which, expression: &Option<Spanned<String>>, unset| match expression {
        None => Ok(unset),
        Some(Spanned { value, .. }) => match templates.condition(value) {
            Err(error @ ccm_template::Error::NoValue { .. }) => {
                let message = format!("control.{which} counts as false: {error}");
                templates.host().warn(message);
                Ok(false)
            }
            other => {
                other.map_err(|error| Error::Control { which, place: None, source: error.into() })
            }
        },
    };
    for control in of_block.iter().chain(own) {
        let is_wanted = evaluate("if", &control.r#if, true)?;
        if !is_wanted || evaluate("unless", &control.unless, false)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where in its loops a resource comes from.
fn item_place(item: &LoopItem) -> ItemPlace {
    ItemPlace {
        index: item.index,
        key: item.key.clone(),
        name: item.name.to_string(),
        parent: item.outer.as_deref().map(|outer| Box::new(item_place(outer))),
    }
}
