//! How much a template may do.

use std::cell::Cell;

use crate::error::Fail;

/// Bounds on one rendering, so that a mistake in a template ends in an error
/// and not in an exhausted machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes the result may have, and any text made on the way to it.
    pub output: usize,
    /// Steps: evaluated operands, rounds of loops, items of lists that
    /// functions build or look through, and bytes of text in pieces of 16.
    pub steps: u64,
    /// How deep templates, loops, conditions and parentheses may nest while
    /// running, through functions that render templates, too.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output: 64 << 20, steps: 20_000_000, depth: 500 }
    }
}

thread_local! {
    /// The rendering whose function runs on this thread: how deep it is, and
    /// the steps it has left.
    static OUTER: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

/// A function of the caller's may render a template that calls it again: while
/// this is held, renderings go on from the outer one's depth, and out of its
/// steps.
pub(crate) struct Nesting(Option<(usize, u64)>);

impl Nesting {
    /// The function's own frames on the stack count as well.
    const COST: usize = 10;

    pub(crate) fn enter(depth: usize, budget: &Budget) -> Self {
        Self(OUTER.replace(Some((depth + Self::COST, budget.steps))))
    }

    /// Takes from the outer rendering what the inner ones spent.
    pub(crate) fn leave(self, budget: &mut Budget) {
        if let Some((_, steps)) = OUTER.get() {
            budget.steps = budget.steps.min(steps);
        }
    }

    /// The depth at which a rendering starts.
    pub(crate) fn depth() -> usize {
        OUTER.get().map_or(0, |(depth, _)| depth)
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        OUTER.set(self.0);
    }
}

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    pub(crate) output: usize,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let steps = OUTER.get().map_or(limits.steps, |(_, left)| left.min(limits.steps));
        Self { steps, output: limits.output }
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Fail> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Fail::limit("the template takes too many steps")),
        }
    }

    /// Pays for items of a list or map, before they are made: an item takes as
    /// much memory as some text.
    pub(crate) fn spend_items(&mut self, count: usize) -> Result<(), Fail> {
        const ITEM: usize = 4;
        self.spend(count.saturating_mul(ITEM))
    }

    /// Tells the outer rendering, if there is one, what this one spent.
    pub(crate) fn settle(&self, started_with: u64) {
        if let Some((depth, left)) = OUTER.get() {
            OUTER.set(Some((depth, left.saturating_sub(started_with - self.steps))));
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Pays for a text of this length, before it is made where possible.
    pub(crate) fn spend_bytes(&mut self, length: usize) -> Result<(), Fail> {
        if length > self.output {
            return Err(Fail::limit(format!("a text of more than {} bytes", self.output)));
        }
        self.spend(length / 16 + 1)
    }
}
