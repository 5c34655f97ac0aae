//! One resource, step by step, to its event.

use std::borrow::Cow;
use std::time::Instant;

use ccm_model::{Event, ResourceRef, Stage, Templates};

use crate::resource::{AnyResource, How};
use crate::resource_type::{Context, Detail, Trigger};
use crate::run::{Observer, Settings};
use crate::session::Session;
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
pub(crate) struct Surroundings<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) templates: &'a dyn Templates,
    pub(crate) session: &'a mut dyn Session,
    pub(crate) observer: &'a mut dyn Observer,
}

/// Takes a resource through its lifecycle. Whatever goes wrong becomes part of
/// the event; nothing of one resource aborts the run.
pub(crate) fn apply(
    resource: &mut dyn AnyResource,
    around: &mut Surroundings<'_>,
) -> (Event, Option<String>) {
    let begin = Instant::now();
    let settings = around.settings;
    let common = resource.common();
    let mut event = Event {
        protocol: Cow::Borrowed(Event::PROTOCOL),
        kind: Cow::Borrowed(resource.kind()),
        name: common.name.clone(),
        alias: common.alias.clone(),
        requested_ensure: common.ensure.clone(),
        noop: settings.noop,
        timestamp: settings.host.now(),
        ..Event::default()
    };
    let mut diff = None;
    let result = steps(resource, around, &mut event, &mut diff);
    if let Err(error) = result {
        event.failed = true;
        let mut message = chain(&error);
        if let Some(hint) = error.hint() {
            message = format!("{message} ({hint})");
        }
        event.error.push(message);
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
    around: &mut Surroundings<'_>,
    event: &mut Event,
    diff: &mut Option<String>,
) -> Result<()> {
    let settings = around.settings;
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
    let trigger = trigger(resource, around.session)?;
    let observer = &mut *around.observer;
    let how = How {
        host: &settings.host,
        noop: settings.noop,
        diffs: settings.diffs,
        context: Context {
            working_directory: &settings.working_directory,
            trigger,
            detail: settings.detail,
            output: &mut |line| observer.output(line),
        },
    };
    let (text, result) = resource.apply(provider, how, event);
    *diff = text;
    result
}

/// Control, deferred templates, requirements: may this resource be applied?
fn gate(resource: &mut dyn AnyResource, around: &mut Surroundings<'_>) -> Result<Gate> {
    if !is_managed(resource, around.templates)? {
        return Ok(Gate::Closed);
    }
    if let Some(failure) = resource.resolve(Stage::Apply, around.templates).into_iter().next() {
        return Err(Error::Template { property: failure.property, source: failure.error });
    }
    resource.check_resolved()?;
    let mut unmet = Vec::new();
    for reference in &resource.common().require {
        let last = around.session.last(reference);
        let last = last.ok_or_else(|| Error::NotApplied { reference: reference.clone() })?;
        if last.failed || last.unmet {
            unmet.push(reference.clone());
        }
    }
    Ok(if unmet.is_empty() { Gate::Open } else { Gate::Unmet(unmet) })
}

fn is_managed(resource: &dyn AnyResource, templates: &dyn Templates) -> Result<bool> {
    let Some(control) = &resource.common().control else { return Ok(true) };
    let evaluate = |which, expression: &Option<String>, unset| match expression {
        None => Ok(unset),
        Some(expression) => {
            templates.condition(expression).map_err(|source| Error::Control { which, source })
        }
    };
    Ok(evaluate("if", &control.r#if, true)? && !evaluate("unless", &control.unless, false)?)
}

fn trigger(resource: &dyn AnyResource, session: &mut dyn Session) -> Result<Trigger> {
    let mut trigger = Trigger::Turn;
    for reference in resource.subscribe() {
        let last = session.last(reference);
        let last = last.ok_or_else(|| Error::NotApplied { reference: reference.clone() })?;
        if last.changed {
            trigger = Trigger::Refresh;
        }
    }
    Ok(trigger)
}
