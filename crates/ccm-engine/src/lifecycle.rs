//! One resource, step by step, to its event.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::Instant;

use ccm_model::{Event, ResourceRef, Stage, TemplateError, Templates, redact_credentials};

use crate::health;
use crate::nested::{Level, Library, Mode};
use crate::resource::{AnyResource, How};
use crate::resource_type::{Context, Detail, Trigger};
use crate::run::{Observer, Record};
use crate::session::{Last, Session};
use crate::{Error, Result, chain};

/// What a step may find out.
enum Gate {
    Open,
    /// Control says no.
    Closed,
    /// These requirements are not met.
    Unmet(Vec<ResourceRef>),
}

/// What the steps need beside the resource.
pub(crate) struct Surroundings<'r, 'a> {
    /// The manifest that it stands in.
    pub(crate) level: &'r Level<'r>,
    pub(crate) record: &'r mut Record<'a>,
    pub(crate) observer: &'r RefCell<&'a mut dyn Observer>,
    /// For the manifests that resources bring, where they may.
    pub(crate) library: Option<Library<'r>>,
}

/// Takes a resource through its lifecycle. Whatever goes wrong becomes part of
/// the event; nothing of one resource aborts the run.
pub(crate) fn apply(
    resource: &mut dyn AnyResource,
    around: &mut Surroundings<'_, '_>,
) -> (Event, Option<String>) {
    let begin = Instant::now();
    let settings = &around.level.settings;
    let mode = around.level.mode().with(resource.child().as_ref());
    let common = resource.common();
    let mut event = Event {
        protocol: Cow::Borrowed(Event::PROTOCOL),
        kind: Cow::Borrowed(resource.kind()),
        name: redact_credentials(&common.name).into_owned(),
        alias: common.alias.clone(),
        requested_ensure: common.ensure.clone(),
        noop: mode.noop,
        health_check_only: mode.health_check_only,
        timestamp: settings.host.now(),
        ..Event::default()
    };
    let mut diff = None;
    let result = steps(resource, around, mode, &mut event, &mut diff);
    if let Err(error) = result {
        event.failed = true;
        let mut message = chain(&error);
        if let Some(hint) = error.hint() {
            let gap = if message.contains('\n') { '\n' } else { ' ' };
            message = format!("{message}{gap}({hint})");
        }
        event.error.push(redact_credentials(&message).into_owned());
    }
    if settings.detail >= Detail::Report {
        event.properties = resource.properties();
    }
    event.timestamp = settings.host.now();
    event.duration = begin.elapsed();
    (event, diff)
}

fn steps(
    resource: &mut dyn AnyResource,
    around: &mut Surroundings<'_, '_>,
    mode: Mode,
    event: &mut Event,
    diff: &mut Option<String>,
) -> Result<()> {
    let settings = &around.level.settings;
    let (provider, name) = resource.select_provider(&settings.host)?;
    event.provider = Cow::Borrowed(name);
    match gate(resource, around)? {
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
    // What brings a manifest has that one's resources looked at.
    if !mode.health_check_only || resource.child().is_some() {
        converge(resource, provider, around, mode, event, diff)?;
    }
    // In noop, what they would look at was not done.
    if !mode.noop {
        health::check(&settings.host, &resource.common().health_checks, event)?;
    }
    Ok(())
}

fn converge(
    resource: &dyn AnyResource,
    provider: usize,
    around: &mut Surroundings<'_, '_>,
    mode: Mode,
    event: &mut Event,
    diff: &mut Option<String>,
) -> Result<()> {
    let settings = &around.level.settings;
    let trigger = trigger(resource, around.record.session, mode.noop)?;
    let observer = around.observer;
    let how = How {
        host: &settings.host,
        noop: mode.noop,
        diffs: settings.diffs,
        context: Context {
            working_directory: &settings.working_directory,
            templates: around.level.templates,
            trigger,
            detail: settings.detail,
            output: &mut |line| observer.borrow_mut().output(line),
            nested: around,
        },
    };
    let (text, result) = resource.apply(provider, how, event);
    *diff = text;
    result
}

/// Control, deferred templates, requirements: may this resource be applied?
fn gate(resource: &mut dyn AnyResource, around: &mut Surroundings<'_, '_>) -> Result<Gate> {
    if !is_managed(resource, around.level.templates)? {
        return Ok(Gate::Closed);
    }
    let templates = Noticing { templates: around.level.templates, is_used: Cell::new(false) };
    if let Some(failure) = resource.resolve(Stage::Apply, &templates).into_iter().next() {
        return Err(Error::Template { property: failure.property, source: failure.error });
    }
    // What held no template was found valid with the manifest.
    if templates.is_used.get() {
        resource.check_resolved(around.level.templates.host())?;
    }
    let mut unmet = Vec::new();
    for reference in &resource.common().require {
        let last = last(around.record.session, reference)?;
        if last.failed || last.unmet {
            unmet.push(reference.clone());
        }
    }
    Ok(if unmet.is_empty() { Gate::Open } else { Gate::Unmet(unmet) })
}

/// What became of something referred to. Events carry no credentials, so they
/// are found without them.
fn last(session: &mut dyn Session, reference: &ResourceRef) -> Result<Last> {
    let found = match redact_credentials(&reference.name) {
        Cow::Borrowed(_) => session.last(reference),
        Cow::Owned(name) => session.last(&ResourceRef::new(&*reference.kind, name)),
    };
    found.ok_or_else(|| Error::NotApplied { reference: reference.clone() })
}

/// Templates that remember whether anything was resolved.
struct Noticing<'a> {
    templates: &'a dyn Templates,
    is_used: Cell<bool>,
}

impl Templates for Noticing<'_> {
    fn text(&self, text: &str) -> std::result::Result<String, TemplateError> {
        self.is_used.set(true);
        self.templates.text(text)
    }

    fn script(&self, text: &str) -> std::result::Result<String, TemplateError> {
        self.is_used.set(true);
        self.templates.script(text)
    }

    fn condition(&self, expression: &str) -> std::result::Result<bool, TemplateError> {
        self.templates.condition(expression)
    }

    fn value(&self, text: &str) -> std::result::Result<govalue::Value, TemplateError> {
        self.is_used.set(true);
        self.templates.value(text)
    }
}

pub(crate) fn is_managed(resource: &dyn AnyResource, templates: &dyn Templates) -> Result<bool> {
    let Some(control) = &resource.common().control else { return Ok(true) };
    let evaluate = |which, expression: &Option<String>, unset| match expression {
        None => Ok(unset),
        Some(expression) => {
            templates.condition(expression).map_err(|source| Error::Control { which, source })
        }
    };
    Ok(evaluate("if", &control.r#if, true)? && !evaluate("unless", &control.unless, false)?)
}

fn trigger(resource: &dyn AnyResource, session: &mut dyn Session, noop: bool) -> Result<Trigger> {
    let mut trigger = Trigger::Turn;
    for reference in resource.subscribe() {
        let last = last(session, reference)?;
        // What only would have changed moves nothing but a preview.
        if last.changed && (noop || !last.noop) {
            trigger = Trigger::Refresh;
        }
    }
    Ok(trigger)
}
