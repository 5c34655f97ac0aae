//! What a run may use.

use govalue::Value;

use super::Failure;
use crate::environment::Limits;

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u64,
    memory: u64,
    string: usize,
    /// What functions may make, which the reference does not count at all.
    made: u64,
    /// The limit on memory, which also bounds how large one value may be.
    whole: u64,
}

/// How deep values may nest, so that printing, comparing and dropping them
/// cannot exhaust the stack.
const MAX_DEPTH: u32 = 500;

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            steps: limits.steps,
            memory: limits.memory,
            string: limits.string,
            made: limits.memory.saturating_mul(4),
            whole: limits.memory,
        }
    }

    pub(crate) fn step(&mut self) -> Result<(), Failure> {
        self.spend(1)
    }

    /// Uses up steps for work that depends on the size of values.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Failure> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Failure::budget("step")),
        }
    }

    /// Uses up memory for items that are made.
    pub(crate) fn grow(&mut self, items: u64) -> Result<(), Failure> {
        match self.memory.checked_sub(items) {
            Some(left) if left > 0 => {
                self.memory = left;
                Ok(())
            }
            _ => Err(Failure::budget("memory")),
        }
    }

    /// Uses up memory for items that a function makes.
    pub(crate) fn make(&mut self, items: u64) -> Result<(), Failure> {
        match self.made.checked_sub(items) {
            Some(left) => {
                self.made = left;
                Ok(())
            }
            None => Err(Failure::budget("memory")),
        }
    }

    /// Checks the length of a string that is about to be made.
    pub(crate) fn string(&self, bytes: usize) -> Result<(), Failure> {
        if bytes > self.string { Err(Failure::budget("memory")) } else { Ok(()) }
    }

    /// Checks that a value, written out in full, is neither too large nor too
    /// deep: its parts may be shared, and then it is larger than its memory.
    pub(crate) fn measure(&mut self, value: &Value) -> Result<(), Failure> {
        if !matches!(value, Value::Array(_) | Value::Map(_)) {
            return Ok(());
        }
        let mut left = self.whole.saturating_mul(4);
        let before = left;
        let fits = size(value, &mut left, MAX_DEPTH);
        self.spend((before - left) / 16)?;
        if fits { Ok(()) } else { Err(Failure::budget("memory")) }
    }
}

/// Subtracts the parts of a value from `left`; false when it is used up.
fn size(value: &Value, left: &mut u64, depth: u32) -> bool {
    match left.checked_sub(1) {
        Some(rest) => *left = rest,
        None => return false,
    }
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| size(item, left, depth - 1)),
        Value::Map(map) => depth > 0 && map.values().all(|item| size(item, left, depth - 1)),
        _ => true,
    }
}

/// About how many steps going through a value takes.
pub(crate) fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 32,
        Value::Bytes(bytes) => bytes.len() as u64 / 32,
        Value::Array(items) => items.len() as u64 / 4,
        Value::Map(map) => map.len() as u64 / 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Budget {
        let mut limits = Limits::default();
        (limits.steps, limits.memory, limits.string) = (10, 10, 10);
        Budget::new(limits)
    }

    #[test]
    fn every_limit_is_reached() {
        let mut budget = small();
        assert!(budget.spend(10).is_ok() && budget.step().is_err());
        assert!(budget.grow(9).is_ok() && budget.grow(1).is_err());
        assert!(budget.string(10).is_ok() && budget.string(11).is_err());
        assert!(budget.make(40).is_ok() && budget.make(1).is_err());
    }

    #[test]
    fn shared_parts_count_each_time() {
        let mut value = Value::array([1.into()]);
        for _ in 0..4 {
            value = Value::array([value.clone(), value]);
        }
        assert!(small().measure(&value).is_err());
        assert!(small().measure(&Value::array([1.into()])).is_ok());
        let deep = (0..=MAX_DEPTH).fold(Value::Nil, |value, _| Value::array([value]));
        assert!(Budget::new(Limits::default()).measure(&deep).is_err());
    }
}
