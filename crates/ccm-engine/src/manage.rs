//! Manages one resource within its lifecycle.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::{Common, Event, ResourceRef, Verb, redact_credentials};
use ccm_state::Extractions;
use ccm_state::history::Former;
use ccm_template::Resolver;
use serde_json::{Map, Value};

use crate::converge::{Ahead, Converged, Convergence, Progress, converge, decide, note_decision};
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
    /// What is known of it since its group was formed.
    pub(crate) ahead: Option<AnyAhead>,
}

/// What is known of a resource of any type before its turn.
pub struct AnyAhead(pub(crate) Box<dyn Any>);

impl fmt::Debug for AnyAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyAhead")
    }
}

/// What a group can do with a resource.
#[derive(Debug)]
pub enum Foreseen {
    /// Nothing: it is as desired.
    Stable,
    /// Its steps can be taken together with others of this kind.
    Together(&'static str, AnyAhead),
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

    /// Whether steps of adjacent resources can be taken together.
    const HAS_GROUPS: bool = false;

    /// Observes and decides one resource before its turn; `None` if it must be
    /// managed at its turn.
    fn foresee(
        _want: &Self::Properties,
        _provider: usize,
        _turn: &mut Turn<'_, '_, '_>,
    ) -> Option<Foreseen> {
        None
    }

    /// Properties that restore what the resource is before its group changes it.
    fn former_ahead(_want: &Self::Properties, _ahead: &AnyAhead) -> Option<Value> {
        None
    }

    /// Makes ready, and reads the states of several resources at once.
    fn survey(_provider: usize, _host: &Host, _noop: bool, _names: &[&str]) {}

    /// Takes the steps of a group, in the name of its first resource, or foresees
    /// them in a preview.
    ///
    /// # Errors
    ///
    /// Fails if not all steps were taken.
    fn act_together(
        _want: &Self::Properties,
        _provider: usize,
        _turn: &mut Turn<'_, '_, '_>,
        _group: &mut [&mut AnyAhead],
    ) -> Result<()> {
        Ok(())
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
        let (noop, diffs) = (turn.mode.noop, turn.run.options.diffs);
        let keeps_diff = turn.run.record.history.is_kept() && !noop;
        let ahead = turn.ahead.take().and_then(own::<T>);
        let how = Convergence { noop, diffs, keeps_diff, ahead };
        let mut outcome = Converged::default();
        let result = in_context::<T, _>(want, provider, turn, |on, cx| {
            converge::<T>(on, want, how, cx, &mut outcome)
        });
        turn.run.record.history.end_turn(&turn.run.options.host);
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
            if turn.run.options.detail >= Detail::Report {
                event.status = status(T::NAME, state, event, !is_decided);
            }
        }
        turn.diff = outcome.diff;
        turn.kept_diff = outcome.kept_diff;
        turn.hidden = outcome.hidden;
        result
    }

    const HAS_GROUPS: bool = T::TOGETHER.is_some();

    fn foresee(
        want: &T::Properties,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
    ) -> Option<Foreseen> {
        let together = T::TOGETHER?;
        let noop = turn.mode.noop;
        let ahead = in_context::<T, _>(want, provider, turn, |on, cx| {
            let ahead = decide::<T>(on, want, noop, cx).ok()?;
            let decision = (&ahead.before, &*ahead.steps);
            note_decision::<T>(on, want, noop, decision, cx).ok()?;
            let is_open =
                cx.unsettled.is_some() || !T::deferred(want, &ahead.before, cx.trigger).is_empty();
            // The history records these before the turn of a resource.
            let is_simple = matches!(T::former(want, &ahead.before), Former::Properties(_));
            (is_simple && !is_open).then_some(ahead)
        })?;
        let mut kinds = ahead.steps.iter().map(|step| (together.kind)(&step.action));
        let Some(first) = kinds.next() else { return Some(Foreseen::Stable) };
        let kind = first.filter(|_| kinds.all(|kind| kind == first))?;
        Some(Foreseen::Together(kind, AnyAhead(Box::new(ahead))))
    }

    fn former_ahead(want: &T::Properties, ahead: &AnyAhead) -> Option<Value> {
        match T::former(want, &ahead.0.downcast_ref::<Ahead<T>>()?.before) {
            Former::Properties(properties) => Some(properties),
            Former::Files | Former::Lost(_) | Former::Sealed { .. } => None,
        }
    }

    fn survey(provider: usize, host: &Host, noop: bool, names: &[&str]) {
        let Some(together) = T::TOGETHER else { return };
        let mut on = (T::PROVIDERS[provider].open)(host);
        let ready = if noop { Ok(()) } else { T::prepare(&mut on) };
        // What fails here fails again at the turn of a resource, which says why.
        let _ = ready.and_then(|()| (together.survey)(&mut on, names));
    }

    fn act_together(
        want: &T::Properties,
        provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        group: &mut [&mut AnyAhead],
    ) -> Result<()> {
        let Some(together) = T::TOGETHER else { return Ok(()) };
        let noop = turn.mode.noop;
        let group: Vec<&mut Ahead<T>> =
            group.iter_mut().filter_map(|ahead| ahead.0.downcast_mut()).collect();
        let steps = group.iter().flat_map(|ahead| &ahead.steps);
        let actions: Vec<&T::Action> = steps.map(|step| &step.action).collect();
        let act = if noop { together.predict } else { together.act };
        let result = in_context::<T, _>(want, provider, turn, |on, cx| act(on, &actions, cx));
        if !noop {
            let is_done = result.is_ok();
            let progress = if is_done { Progress::Taken } else { Progress::Failed };
            for ahead in group {
                ahead.progress = progress;
            }
        }
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

/// What was foreseen of a resource of this type.
fn own<T: ResourceType>(ahead: AnyAhead) -> Option<Ahead<T>> {
    ahead.0.downcast().ok().map(|ahead| *ahead)
}

/// Opens the provider, and calls `work` with it in the context of a turn.
fn in_context<T: ResourceType, R>(
    want: &T::Properties,
    provider: usize,
    turn: &mut Turn<'_, '_, '_>,
    work: impl FnOnce(&mut T::Provider, &mut Context<'_>) -> R,
) -> R {
    let frame = turn.run.frame;
    let options = turn.run.options;
    let observer = turn.run.observer;
    let declared = if T::purges(want) {
        turn.run.record.declared.paths(turn.run.types, options)
    } else {
        Arc::default()
    };
    let mut recorder = Recorder {
        kind: T::NAME,
        common: ccm_model::Properties::common(want),
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
    work(&mut on, &mut cx)
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

/// What subscribers and those that apply its manifest call a resource, and what
/// records call it.
pub(crate) fn names_of(
    kind: &'static str,
    common: &Common,
    frame: &ManifestFrame,
) -> (Vec<String>, String) {
    let own = std::iter::once(&common.name).chain(&common.alias);
    let own = own.map(|name| format!("{kind}#{name}"));
    let by = redact_credentials(&format!("{kind}#{}", common.name)).into_owned();
    (own.chain(frame.above.iter().cloned()).collect(), by)
}

impl ChangeRecorder for Recorder<'_, '_> {
    fn before(&mut self, former: Former) -> Result<()> {
        let Self { kind, common, frame, types, options, .. } = *self;
        let (names, by) = names_of(kind, common, frame);
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
