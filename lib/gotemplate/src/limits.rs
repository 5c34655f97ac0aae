//! How much a template may do.

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
    /// running.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output: 64 << 20, steps: 20_000_000, depth: 500 }
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
        Self { steps: limits.steps, output: limits.output }
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

    /// Pays for a text of this length, before it is made where possible.
    pub(crate) fn spend_bytes(&mut self, length: usize) -> Result<(), Fail> {
        if length > self.output {
            return Err(Fail::limit(format!("a text of more than {} bytes", self.output)));
        }
        self.spend(length / 16 + 1)
    }
}
