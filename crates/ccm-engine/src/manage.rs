//! Manages one resource within its lifecycle.

use std::path::Path;
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::{Common, Event, ResourceRef, Verb, redact_credentials};
use ccm_state::Extractions;
use ccm_state::history::Former;
use ccm_template::Resolver;
use serde_json::{Map, Value};

use crate::converge::{Converged, converge};
use crate::decision_log::DecisionPolicy;
use crate::declare::Declare;
use crate::declared::DeclaredPaths;
use crate::lifecycle::LifecycleContext;
use crate::manifest_run::{ManifestFrame, Mode};
use crate::options::RunOptions;
use crate::resource::AnyType;
use crate::resource_type::{
    Awaited, ChangeRecorder, Context, Detail, NoRecorder, ProviderDef, ResourceType, State, Trigger,
};
use crate::run::Record;
use crate::{Error, Result};

/// The context in which a type manages one resource of a run.
pub struct Turn<'t, 'r, 'a> {
    pub(crate) run: &'t mut LifecycleContext<'r, 'a>,
    pub(crate) mode: Mode,
    pub(crate) trigger: Trigger,
    /// In a preview: the resource after which is known whether there is such a
    /// trigger, where that is not known yet.
    pub(crate) awaited: Option<Awaited>,
    /// Its key among the decisions.
    pub(crate) key: String,
    /// Everything that it applies was selected with it.
    pub(crate) is_chosen: bool,
    /// What changed in a text, if someone wants to see it.
    pub(crate) diff: Option<String>,
    /// What the history keeps of it.
    pub(crate) kept_diff: Option<String>,
    /// The properties that its event shows redacted.
    pub(crate) hidden: &'static [&'static str],
}

/// A type as the engine calls it. Every [`ResourceType`] is one; so is `apply`,
/// whose resources are managed by running a manifest.
pub trait Manage: Declare {
    /// The names of its providers.
    fn providers() -> Vec<&'static str>;

    /// Chooses the provider: an index for the calls below, and its name.
    fn select_provider(want: &Self::Properties, host: &Host) -> Result<(usize, &'static str)>;

    /// Manages one resource, and writes what became of it into the event.
    fn manage(
        want: &Self::Properties,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        event: &mut Event,
    ) -> Result<()>;

    /// For `undo --refresh`: the properties of a request that makes a resource
    /// react, if it can.
    fn reaction(_former: &Value, _verbs: &[Verb]) -> Option<Value> {
        None
    }

    /// Its current state.
    fn status(
        want: &Self::Properties,
        host: &Host,
        working_directory: &Path,
        templates: &Resolver,
    ) -> Result<Value>;
}

impl<T: ResourceType> Manage for T {
    fn reaction(former: &Value, verbs: &[Verb]) -> Option<Value> {
        <T as ResourceType>::reaction(former, verbs)
    }

    fn providers() -> Vec<&'static str> {
        T::PROVIDERS.iter().map(|provider| provider.name).collect()
    }

    fn select_provider(want: &T::Properties, host: &Host) -> Result<(usize, &'static str)> {
        let rank = |provider: &ProviderDef<T>| (provider.rank)(host, want);
        let common = ccm_model::Properties::common(want);
        let resource = || ResourceRef::new(T::NAME, &*common.name);
        if let Some(name) = &common.provider {
            let index = T::PROVIDERS.iter().position(|provider| provider.name == name);
            let index = index.ok_or_else(|| Error::UnknownProvider {
                name: name.clone(),
                kind: T::NAME,
                known: T::providers(),
            })?;
            let provider = &T::PROVIDERS[index];
            return match rank(provider) {
                Some(_) => Ok((index, provider.name)),
                None => Err(Error::UnsuitableProvider { name: name.clone(), resource: resource() }),
            };
        }
        T::PROVIDERS
            .iter()
            .enumerate()
            .filter_map(|(index, provider)| Some((rank(provider)?, index, provider.name)))
            .min()
            .map(|(_, index, name)| (index, name))
            .ok_or_else(|| Error::NoProvider { resource: resource(), tried: T::providers() })
    }

    fn manage(
        want: &T::Properties,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        event: &mut Event,
    ) -> Result<()> {
        if turn.mode.health_check_only {
            return Ok(());
        }
        let frame = turn.run.frame;
        let options = turn.run.options;
        let observer = turn.run.observer;
        let common = ccm_model::Properties::common(want);
        let keeps_diff = turn.run.record.history.is_kept() && !turn.mode.noop;
        let declared = if T::purges(want) {
            turn.run.record.declared.paths(turn.run.types, options)
        } else {
            Arc::default()
        };
        let mut recorder = Recorder {
            kind: T::NAME,
            common,
            frame,
            types: turn.run.types,
            options,
            record: &mut *turn.run.record,
        };
        let state = options.state.directory.as_ref();
        let extractions = state.map(|state| Extractions::new(state, turn.mode.noop));
        let mut cx = Context {
            working_directory: &frame.working_directory,
            templates: &frame.templates,
            trigger: turn.trigger,
            awaited: turn.awaited.as_ref(),
            unsettled: None,
            skips_post: options.skips_post && turn.mode.noop,
            at_apply: Vec::new(),
            declared: &declared,
            detail: options.detail,
            offline: turn.mode.offline,
            decisions: &options.decisions,
            key: &turn.key,
            extractions: extractions.as_ref(),
            recorder: &mut recorder,
            output: &mut |line| {
                // The redactor is free again by the time that the observer may ask it.
                let line = options.host.redactor().text(line).into_owned();
                observer.borrow_mut().output(&line);
            },
        };
        let mut on = (T::PROVIDERS[provider].open)(frame.templates.host());
        let mut outcome = Converged::default();
        let noop = turn.mode.noop;
        let diffs = options.diffs;
        let result = converge::<T>(&mut on, want, noop, diffs, keeps_diff, &mut cx, &mut outcome);
        turn.run.record.history.end_turn(&options.host);
        // Of what awaits the run, it is known what would be done now.
        let is_decided =
            matches!(result, Ok(()) | Err(Error::Awaited { .. } | Error::AtApply { .. }));
        event.changed = outcome.changed && is_decided;
        event.refreshed = event.changed && outcome.refreshed && result.is_ok();
        event.verbs = outcome.verbs;
        event.changes = outcome.changes;
        event.noop_message = outcome.noop_message;
        event.deferred = outcome.deferred;
        if let Some(state) = &outcome.state {
            state.ensure().clone_into(&mut event.final_ensure);
            event.tries = state.tries();
            if options.detail >= Detail::Report {
                event.status = status(T::NAME, state, event, !is_decided);
            }
        }
        turn.diff = outcome.diff;
        turn.kept_diff = outcome.kept_diff;
        turn.hidden = outcome.hidden;
        result
    }

    fn status(
        want: &T::Properties,
        host: &Host,
        working_directory: &Path,
        templates: &Resolver,
    ) -> Result<Value> {
        let (provider, _) = T::select_provider(want, host)?;
        let mut cx = Context {
            working_directory,
            templates,
            trigger: Trigger::Turn,
            awaited: None,
            unsettled: None,
            skips_post: false,
            at_apply: Vec::new(),
            declared: &DeclaredPaths::default(),
            detail: Detail::Inspect,
            offline: false,
            decisions: &DecisionPolicy::Free,
            key: "",
            extractions: None,
            recorder: &mut NoRecorder,
            output: &mut |_| {},
        };
        let state = T::observe(&mut (T::PROVIDERS[provider].open)(host), want, &mut cx)?;
        let event = Event {
            name: ccm_model::Properties::common(want).name.clone(),
            timestamp: host.now(),
            ..Event::default()
        };
        Ok(status(T::NAME, &state, &event, false))
    }
}

/// Tells what later runs must know of a change before it is made.
struct Recorder<'t, 'a> {
    kind: &'static str,
    common: &'t Common,
    frame: &'t ManifestFrame,
    types: &'static [&'static dyn AnyType],
    options: &'t RunOptions,
    record: &'t mut Record<'a>,
}

impl ChangeRecorder for Recorder<'_, '_> {
    fn before(&mut self, former: Former) -> Result<()> {
        let Self { kind, common, frame, types, options, .. } = *self;
        let own = std::iter::once(&common.name).chain(&common.alias);
        let own = own.map(|name| format!("{kind}#{name}"));
        let by = redact_credentials(&format!("{kind}#{}", common.name)).into_owned();
        let names = own.chain(frame.above.iter().cloned());
        self.record.owed.before_change(names, &by, types, options)?;
        let Record { history, .. } = &mut *self.record;
        history.before_change(kind, &common.name, &frame.route, &former, &options.host)
    }

    fn after(&mut self, now: Former) {
        self.record.history.after_change(&now);
    }
}

/// The common fields of a status and those that its type adds.
pub(crate) fn status<S: State>(kind: &str, state: &S, event: &Event, failed: bool) -> Value {
    let mut map = Map::new();
    map.insert("timestamp".into(), event.timestamp.to_string().into());
    map.insert("protocol".into(), format!("io.choria.ccm.v1.resource.{kind}.state").into());
    map.insert("type".into(), kind.into());
    map.insert("name".into(), event.name.as_str().into());
    map.insert("ensure".into(), state.ensure().into());
    map.insert("changed".into(), event.changed.into());
    map.insert("refreshed".into(), event.refreshed.into());
    let is_stable = !event.changed && !failed && event.deferred.is_empty();
    map.insert("stable".into(), is_stable.into());
    map.insert("noop".into(), event.noop.into());
    if let Some(message) = &event.noop_message {
        map.insert("noop_message".into(), message.as_str().into());
    }
    if let Ok(Value::Object(own)) = serde_json::to_value(state) {
        map.extend(own);
    }
    Value::Object(map)
}
