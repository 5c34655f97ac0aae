//! Applies one resource: observe, decide, act, verify.

use std::path::PathBuf;

use ccm_model::{Change, Verb};

use crate::resource_type::State as _;
use crate::resource_type::{Context, Diffs, Prediction, ResourceType, Trigger};
use crate::step::Step;
use crate::{Error, Result};

/// The result of one resource.
#[derive(Debug)]
pub struct Outcome<S> {
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
    /// Unified diff of a text file.
    pub diff: Option<String>,
    /// The same for the history, without what others may not read.
    pub kept_diff: Option<String>,
}

impl<S> Default for Outcome<S> {
    fn default() -> Self {
        Self {
            state: None,
            changed: false,
            refreshed: false,
            verbs: Vec::new(),
            changes: Vec::new(),
            noop_message: None,
            diff: None,
            kept_diff: None,
        }
    }
}

impl<S> Outcome<S> {
    /// A step was taken, or would be.
    fn add<A>(&mut self, step: &Step<A>) {
        self.changed = true;
        self.verbs.push(step.verb);
        self.changes.extend_from_slice(&step.changes);
    }
}

/// Applies one resource: observes, decides, acts, verifies. The only code that
/// knows about noop mode.
///
/// On a failure, the outcome still has what was observed and done before it.
pub fn converge<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    noop: bool,
    diffs: Diffs,
    keeps_diff: bool,
    cx: &mut Context<'_>,
    outcome: &mut Outcome<T::State>,
) -> Result<()> {
    if !noop {
        T::prepare(on)?;
    }
    outcome.state = Some(T::observe(on, want, cx)?);
    let Some(before) = &outcome.state else { return Ok(()) };
    let mut steps = T::decide(want, before, cx.trigger)?;
    if cx.decisions.are_watched() {
        let mut state = T::evidence(on, want, before);
        if let Some(state) = state.as_object_mut() {
            state.insert("ensure".to_owned(), before.ensure().into());
            state.insert("symlinks".to_owned(), symlinks::<T>(want, cx));
        }
        let actions: Vec<&T::Action> = steps.iter().map(|step| &step.action).collect();
        cx.decisions.decided(cx.key, state, &actions, cx.templates.host())?;
    }
    if steps.is_empty() {
        return Ok(());
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
        let awaited = cx.awaited.filter(|_| !is_decided::<T>(want, before, &steps));
        preview::<T>(on, &mut steps, cx, outcome)?;
        return awaited.map_or(Ok(()), |by| Err(Error::Awaited { by: by.into() }));
    }
    cx.recorder.before(T::former(want, before))?;
    for step in &steps {
        T::act(on, &step.action, cx)?;
        outcome.add(step);
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

/// Whether the same is done without a change elsewhere.
fn is_decided<T: ResourceType>(
    want: &T::Properties,
    have: &T::State,
    steps: &[Step<T::Action>],
) -> bool {
    let actions = |steps: &[Step<T::Action>]| {
        let actions: Vec<&T::Action> = steps.iter().map(|step| &step.action).collect();
        serde_json::to_vec(&actions).ok()
    };
    T::decide(want, have, Trigger::Turn).is_ok_and(|turn| actions(&turn) == actions(steps))
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
    outcome: &mut Outcome<T::State>,
) -> Result<()> {
    let mut texts = Vec::new();
    for step in steps {
        let prediction = T::predict(on, step, cx)?;
        if prediction == Prediction::Open {
            cx.templates.host().predict_anything(None);
        }
        if prediction != Prediction::Nothing {
            outcome.add(step);
            texts.push(T::describe(step));
        }
    }
    outcome.noop_message = (!texts.is_empty()).then(|| texts.join(". "));
    Ok(())
}
