//! How much a template may do.

use std::cell::Cell;
use std::sync::Arc;

use crate::engine::Interrupt;
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

/// The rendering that calls a function. A template that the function renders
/// with [`Template::render_within`](crate::Template::render_within) goes on from
/// its depth, and out of its steps: a template that renders itself ends.
#[derive(Debug)]
pub struct Caller {
    depth: usize,
    steps: Cell<u64>,
}

impl Caller {
    /// The function's own frames on the stack count as well.
    const COST: usize = 10;

    pub(crate) fn new(depth: usize, budget: &Budget) -> Self {
        Self { depth: depth + Self::COST, steps: Cell::new(budget.steps) }
    }

    /// The depth at which a rendering within this one starts.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

/// What is left of the limits.
pub(crate) struct Budget {
    steps: u64,
    pub(crate) output: usize,
    interrupt: Option<Arc<Interrupt>>,
    /// Whether to stop is asked when so many steps are left.
    ask_at: u64,
}

/// So many steps are taken before that is asked again.
const ASK_AFTER: u64 = 10_000;

impl Budget {
    pub(crate) fn new(
        limits: &Limits,
        interrupt: Option<Arc<Interrupt>>,
        caller: Option<&Caller>,
    ) -> Self {
        let steps = caller.map_or(limits.steps, |caller| caller.steps.get().min(limits.steps));
        let ask_at = steps.saturating_sub(ASK_AFTER);
        Self { steps, output: limits.output, interrupt, ask_at }
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Fail> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => {
                self.steps = left;
                if left > self.ask_at { Ok(()) } else { self.ask() }
            }
            None => Err(Fail::limit("the template takes too many steps")),
        }
    }

    /// Asks whether to stop.
    fn ask(&mut self) -> Result<(), Fail> {
        self.ask_at = self.steps.saturating_sub(ASK_AFTER);
        match &self.interrupt {
            Some(interrupt) if interrupt() => Err(Fail::limit("interrupted")),
            _ => Ok(()),
        }
    }

    /// Pays for items of a list or map, before they are made: an item takes as
    /// much memory as some text.
    pub(crate) fn spend_items(&mut self, count: usize) -> Result<(), Fail> {
        const ITEM: usize = 4;
        self.spend(count.saturating_mul(ITEM))
    }

    /// Tells the outer rendering what this one spent.
    pub(crate) fn settle(&self, started_with: u64, caller: &Caller) {
        let spent = started_with - self.steps;
        caller.steps.set(caller.steps.get().saturating_sub(spent));
    }

    /// Takes from this rendering what those within it spent.
    pub(crate) fn charge(&mut self, caller: &Caller) {
        self.steps = self.steps.min(caller.steps.get());
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
