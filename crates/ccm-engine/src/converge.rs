//! Applies one resource: observe, decide, act, verify.

use std::path::PathBuf;
use std::sync::Arc;

use ccm_host::Reach;
use ccm_model::{Change, Verb};

use crate::decision_log::ONLY_IN_THE_RUN;
use crate::resource_type::State as _;
use crate::resource_type::{Context, Diffs, Prediction, ResourceType, Trigger};
use crate::step::Step;
use crate::{Error, Result, chain};

/// The result of one resource.
#[derive(Debug)]
pub struct Converged<S> {
    /// The state observed last; `None` if it could not be read.
    pub state: Option<S>,
    /// Something was done, or in noop would have been.
    pub changed: bool,
    /// The action was a reaction to a changed resource.
    pub refreshed: bool,
    /// Actions performed, or in noop mode predicted.
    pub verbs: Vec<Verb>,
    /// Changes of these actions.
    pub changes: Vec<Change>,
    /// Description of the predicted actions.
    pub noop_message: Option<String>,
    /// Steps that are left to the first boot.
    pub deferred: Vec<String>,
    /// Unified diff of a text file.
    pub diff: Option<String>,
    /// The same for the history, without what others may not read.
    pub kept_diff: Option<String>,
    /// The properties that are not shown, because of what was there.
    pub hidden: &'static [&'static str],
}

impl<S> Default for Converged<S> {
    fn default() -> Self {
        Self {
            state: None,
            changed: false,
            refreshed: false,
            verbs: Vec::new(),
            changes: Vec::new(),
            noop_message: None,
            deferred: Vec::new(),
            diff: None,
            kept_diff: None,
            hidden: &[],
        }
    }
}

impl<S> Converged<S> {
    /// A step was taken, or would be.
    fn add<A>(&mut self, step: &Step<A>) {
        self.changed = true;
        self.verbs.push(step.verb);
        self.changes.extend_from_slice(&step.changes);
    }
}

/// What is known of a resource before its turn, because steps of several
/// resources are taken together.
#[derive(Debug)]
pub(crate) struct Ahead<T: ResourceType> {
    /// What was observed.
    pub(crate) before: T::State,
    /// What was decided.
    pub(crate) steps: Vec<Step<T::Action>>,
    /// What became of the steps.
    pub(crate) progress: Progress,
}

/// What became of the steps of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// They are not taken yet, as in a preview.
    Decided,
    /// They were taken without an error.
    Taken,
    /// They failed together; some may have been taken.
    Failed,
}

/// How a resource is applied.
#[derive(Debug)]
pub struct Convergence<T: ResourceType> {
    /// Say what would be done, and change nothing.
    pub noop: bool,
    /// The diffs that someone wants to see.
    pub diffs: Diffs,
    /// The history keeps diffs.
    pub keeps_diff: bool,
    /// What is known already.
    pub(crate) ahead: Option<Ahead<T>>,
}

/// Observes a resource and decides its steps.
pub(crate) fn decide<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    noop: bool,
    cx: &mut Context<'_>,
) -> Result<Ahead<T>> {
    if !noop {
        T::prepare(on)?;
    }
    let before = T::observe(on, want, cx)?;
    let steps = T::decide(want, &before, cx.trigger)?;
    Ok(Ahead { before, steps, progress: Progress::Decided })
}

/// Notes a decision for a saved plan, or compares it with that of the plan.
pub(crate) fn note_decision<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    noop: bool,
    (before, steps): (&T::State, &[Step<T::Action>]),
    cx: &Context<'_>,
) -> Result<()> {
    if !cx.decisions.are_watched() {
        return Ok(());
    }
    let mut state = T::evidence(on, want, before);
    if let Some(state) = state.as_object_mut() {
        state.insert("ensure".to_owned(), before.ensure().into());
        state.insert("symlinks".to_owned(), symlinks::<T>(want, cx));
    }
    // What a package may bring first is not what it was then.
    if noop && before.ensure() == "absent" && brought::<T>(want, cx).is_some() {
        state = ONLY_IN_THE_RUN.into();
    }
    let actions: Vec<&T::Action> = steps.iter().map(|step| &step.action).collect();
    cx.decisions.decided(cx.key, state, &actions, cx.templates.host())
}

/// Applies one resource: observes, decides, acts, verifies. The only code that
/// knows about noop mode.
///
/// On a failure, the outcome still has what was observed and done before it.
pub fn converge<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    how: Convergence<T>,
    cx: &mut Context<'_>,
    outcome: &mut Converged<T::State>,
) -> Result<()> {
    let Convergence { noop, diffs, keeps_diff, ahead } = how;
    let (mut steps, progress) = match ahead {
        Some(Ahead { before, steps, progress }) => {
            outcome.hidden = T::hidden(want, outcome.state.insert(before));
            (steps, progress)
        }
        None => {
            if !noop {
                T::prepare(on)?;
            }
            let before = outcome.state.insert(T::observe(on, want, cx)?);
            outcome.hidden = T::hidden(want, before);
            (T::decide(want, before, cx.trigger)?, Progress::Decided)
        }
    };
    let Some(before) = &outcome.state else { return Ok(()) };
    note_decision::<T>(on, want, noop, (before, &steps), cx)?;
    outcome.deferred = T::deferred(want, before, cx.trigger);
    let is_gone = || ccm_model::Properties::common(want).ensure == "absent" && steps.is_empty();
    let brought = || brought::<T>(want, cx).filter(|_| is_gone() && before.ensure() == "absent");
    let unsettled = cx.unsettled.clone().or_else(brought).filter(|_| noop);
    let at_apply = std::mem::take(&mut cx.at_apply);
    if steps.is_empty() && noop && !at_apply.is_empty() {
        return left_to_the_run(at_apply, cx);
    }
    if steps.is_empty() {
        return unsettled.map_or(Ok(()), |by| Err(Error::Awaited { by }));
    }
    if diffs != Diffs::None {
        outcome.diff = T::diff(on, want, before, &steps, diffs, cx);
    }
    // Of what comes or goes as a whole, a diff would say nothing more.
    if keeps_diff && !steps.iter().all(|step| step.touches("ensure")) {
        outcome.kept_diff = match diffs {
            Diffs::Public => outcome.diff.clone(),
            _ => T::diff(on, want, before, &steps, Diffs::Public, cx),
        };
    }
    outcome.refreshed = cx.trigger == Trigger::Refresh && steps.iter().any(T::is_refresh);
    if noop {
        let turn = T::decide(want, before, Trigger::Turn);
        let awaited = cx.awaited.filter(|_| !turn.as_ref().is_ok_and(|turn| is_same(turn, &steps)));
        preview::<T>(on, &mut steps, cx, outcome).map_err(|error| match &unsettled {
            // It fails only if the command is to run after all.
            Some(by) => Error::Missing {
                reason: chain(&error),
                hint: error.hint(),
                by: Some(Arc::clone(by)),
            },
            None => error,
        })?;
        if !at_apply.is_empty() {
            return left_to_the_run(at_apply, cx);
        }
        // As things are now, the trigger does not come.
        let is_still = awaited.is_some_and(|awaited| !awaited.is_now);
        if is_still && turn.is_ok_and(|turn| turn.is_empty()) {
            (outcome.changed, outcome.noop_message) = (false, None);
        }
        let by = unsettled.or_else(|| awaited.map(|awaited| Arc::clone(&awaited.by)));
        return by.map_or(Ok(()), |by| Err(Error::Awaited { by }));
    }
    cx.recorder.before(T::former(want, before))?;
    if progress == Progress::Decided {
        for step in &steps {
            T::act(on, &step.action, cx)?;
            outcome.add(step);
        }
    } else {
        act_after_group::<T>(on, want, progress, cx)?;
        for step in &steps {
            outcome.add(step);
        }
    }
    let after = T::observe(on, want, cx)?;
    cx.recorder.after(T::former(want, &after));
    outcome.changed = outcome.state.as_ref().is_none_or(|before| T::has_changed(before, &after));
    if outcome.changed {
        T::complete(&mut outcome.changes, &after);
    } else {
        outcome.verbs.clear();
        outcome.changes.clear();
    }
    match T::mismatch(want, outcome.state.insert(after)) {
        Some(reason) => Err(Error::NotConverged { reason }),
        None => Ok(()),
    }
}

/// Takes the steps of a resource that its group has left.
fn act_after_group<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    progress: Progress,
    cx: &mut Context<'_>,
) -> Result<()> {
    let now = T::observe(on, want, cx)?;
    if progress == Progress::Taken && T::mismatch(want, &now).is_none() {
        return Ok(());
    }
    for step in T::decide(want, &now, cx.trigger)? {
        T::act(on, &step.action, cx)?;
    }
    Ok(())
}

/// In a preview: the resource after which a package may have brought what is
/// managed.
fn brought<T: ResourceType>(want: &T::Properties, cx: &Context<'_>) -> Option<Arc<str>> {
    T::places(want).into_iter().find_map(|place| cx.templates.host().packager(place))
}

/// What commands decide that a preview does not run.
fn left_to_the_run(paths: Vec<PathBuf>, cx: &Context<'_>) -> Result<()> {
    for path in &paths {
        cx.templates.host().predict_something(path);
    }
    Err(Error::AtApply { paths })
}

/// Whether two decisions do the same.
fn is_same<A: PartialEq>(one: &[Step<A>], other: &[Step<A>]) -> bool {
    one.iter().map(|step| &step.action).eq(other.iter().map(|step| &step.action))
}

/// The symlinks on the way to what is managed, with what is in them.
fn symlinks<T: ResourceType>(want: &T::Properties, cx: &Context<'_>) -> serde_json::Value {
    let host = cx.templates.host();
    let links = T::places(want).into_iter().flat_map(|place| host.links_to(place));
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let named =
        links.map(|(link, target)| (format!("symlink {}", text(link)), text(target).into()));
    serde_json::Value::Object(named.collect())
}

/// Records what the steps would do instead of doing it.
fn preview<T: ResourceType>(
    on: &mut T::Provider,
    steps: &mut [Step<T::Action>],
    cx: &mut Context<'_>,
    outcome: &mut Converged<T::State>,
) -> Result<()> {
    let mut texts = Vec::new();
    for step in steps {
        let prediction = T::predict(on, step, cx)?;
        let host = cx.templates.host();
        match prediction {
            Prediction::Open => host.predict_more(Reach::Anything, None),
            Prediction::Packages => host.predict_more(Reach::Packages, None),
            Prediction::Files => host.predict_more(Reach::Files, None),
            Prediction::Exact | Prediction::Nothing => {}
        }
        if prediction != Prediction::Nothing {
            outcome.add(step);
            texts.push(T::describe(step));
        }
    }
    outcome.noop_message = (!texts.is_empty()).then(|| texts.join(". "));
    Ok(())
}
