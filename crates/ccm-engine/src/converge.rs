//! One resource, from what is to what is wanted.

use crate::resource_type::{Context, Diffs, ResourceType, Trigger};
use crate::{Error, Result};

/// What became of one resource.
#[derive(Debug)]
pub struct Outcome<S> {
    /// What was found last; `None` when the machine could not even be asked.
    pub state: Option<S>,
    /// Something was done, or in noop would have been.
    pub changed: bool,
    /// What was done answers a change elsewhere.
    pub refreshed: bool,
    /// What would have been done.
    pub noop_message: Option<String>,
    /// What changed in a text.
    pub diff: Option<String>,
}

impl<S> Default for Outcome<S> {
    fn default() -> Self {
        Self { state: None, changed: false, refreshed: false, noop_message: None, diff: None }
    }
}

/// Observes, decides, acts, verifies. The only code that knows about noop.
///
/// The outcome is filled as far as things went, so that a failure still tells
/// what was found before it.
pub fn converge<T: ResourceType>(
    on: &mut T::Provider,
    want: &T::Properties,
    noop: bool,
    diffs: Diffs,
    cx: &mut Context<'_>,
    outcome: &mut Outcome<T::State>,
) -> Result<()> {
    if !noop {
        T::prepare(on)?;
    }
    let before = outcome.state.insert(T::observe(on, want, cx)?);
    let plan = T::decide(want, before, cx.trigger)?;
    if plan.is_empty() {
        return Ok(());
    }
    outcome.refreshed = cx.trigger == Trigger::Refresh && plan.iter().any(T::is_refresh);
    if diffs != Diffs::None {
        outcome.diff = T::diff(on, want, before, &plan, diffs, cx);
    }
    if noop && !T::NESTS {
        outcome.noop_message = Some(T::describe(&plan));
        outcome.changed = true;
        return Ok(());
    }
    for step in &plan {
        T::act(on, want, step, cx)?;
        outcome.changed = true;
    }
    let after = T::observe(on, want, cx)?;
    outcome.changed = T::has_changed(before, &after);
    if noop && outcome.changed {
        outcome.noop_message = Some(T::describe(&plan));
    }
    match T::mismatch(want, outcome.state.insert(after)) {
        Some(reason) => Err(Error::NotConverged { reason }),
        None => Ok(()),
    }
}
