//! What a run may use.

use std::collections::HashSet;
use std::sync::Arc;

use govalue::{Map, Value};

use super::Failure;
use crate::environment::{Interrupt, Limits};

/// What is left of the limits.
pub(crate) struct Budget {
    steps: u64,
    memory: u64,
    string: usize,
    /// What functions may make, which the reference does not count at all.
    made: u64,
    /// The limit on memory, which also bounds how large one value may be.
    whole: u64,
    /// Bytes of values that were made since memory was last looked at.
    unseen: usize,
    interrupt: Option<Interrupt>,
    /// Whether to stop is asked when so many steps are left.
    ask_at: u64,
}

/// So many steps are taken before that is asked again.
const ASK_AFTER: u64 = 10_000;

/// So many bytes are made before memory is looked at again.
const LOOK_AFTER: usize = 16 << 20;

/// How deep values may nest, so that printing, comparing and dropping them
/// cannot exhaust the stack.
const MAX_DEPTH: u32 = 500;

impl Budget {
    pub(crate) fn new(limits: Limits, interrupt: Option<Interrupt>) -> Self {
        Self {
            ask_at: limits.steps.saturating_sub(ASK_AFTER),
            interrupt,
            steps: limits.steps,
            memory: limits.memory,
            string: limits.string,
            made: limits.memory.saturating_mul(4),
            whole: limits.memory,
            unseen: 0,
        }
    }

    /// Notes a value that was made; whether it is time to look at all values
    /// that are held.
    pub(crate) fn notice(&mut self, bytes: usize) -> bool {
        self.unseen = self.unseen.saturating_add(bytes);
        let is_due = self.unseen >= LOOK_AFTER.min(self.string);
        if is_due {
            self.unseen = 0;
        }
        is_due
    }

    /// Checks the memory that all values together take.
    pub(crate) fn hold(&mut self, held: &Held) -> Result<(), Failure> {
        self.spend(held.items as u64 / 4)?;
        let items = self.whole.saturating_mul(5);
        if held.text > self.string || held.items as u64 > items {
            return Err(Failure::memory(self.string));
        }
        Ok(())
    }

    pub(crate) fn step(&mut self) -> Result<(), Failure> {
        self.spend(1)
    }

    /// Uses up steps for work that depends on the size of values.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Failure> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                if left > self.ask_at { Ok(()) } else { self.ask() }
            }
            None => Err(Failure::budget("step")),
        }
    }

    /// Asks whether to stop.
    fn ask(&mut self) -> Result<(), Failure> {
        self.ask_at = self.steps.saturating_sub(ASK_AFTER);
        match &self.interrupt {
            Some(interrupt) if interrupt() => Err(Failure::interrupted()),
            _ => Ok(()),
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
        if bytes > self.string { Err(Failure::memory(self.string)) } else { Ok(()) }
    }

    /// Checks that a value that is written out as text stays within the bounds
    /// of a string.
    pub(crate) fn text_of(&mut self, value: &Value) -> Result<(), Failure> {
        let mut left = self.string;
        let fits = written(value, &mut left, 0);
        self.spend((self.string - left) as u64 / 32)?;
        if fits { Ok(()) } else { Err(Failure::memory(self.string)) }
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

/// Subtracts about the bytes that a value has as JSON; false when they are used
/// up.
fn written(value: &Value, left: &mut usize, depth: usize) -> bool {
    let indent = 2 * depth + 2;
    let own = match value {
        Value::String(text) => {
            let is_escaped = |byte: &&u8| **byte < 0x20 || matches!(**byte, b'<' | b'>' | b'&');
            text.len() + 5 * text.as_bytes().iter().filter(is_escaped).count()
        }
        Value::Bytes(bytes) => bytes.len() * 4,
        _ => 8,
    };
    match left.checked_sub(own.saturating_add(indent)) {
        Some(rest) => *left = rest,
        None => return false,
    }
    match value {
        Value::Array(items) => items.iter().all(|item| written(item, left, depth + 1)),
        Value::Map(map) => map.iter().all(|(key, item)| {
            written(key.value(), left, depth + 1) && written(item, left, depth + 1)
        }),
        _ => true,
    }
}

/// The memory that values take; what they share counts once.
#[derive(Debug, Default)]
pub(crate) struct Held {
    text: usize,
    items: usize,
    seen: HashSet<*const u8>,
}

/// What a string takes beside its bytes.
const STRING_COST: usize = 32;
/// Shorter strings are counted each time: to remember them would take as much.
const SHORT: usize = 256;

impl Held {
    pub(crate) fn add(&mut self, value: &Value) {
        self.items += 1;
        match value {
            Value::String(text) => {
                let bytes = text.as_bytes();
                if bytes.len() < SHORT || self.seen.insert(bytes.as_ptr()) {
                    self.text += bytes.len() + STRING_COST;
                }
            }
            Value::Bytes(bytes) => self.add_bytes(bytes),
            Value::Array(items) if self.seen.insert(Arc::as_ptr(items).cast()) => {
                items.iter().for_each(|item| self.add(item));
            }
            Value::Map(map) if self.seen.insert(Arc::as_ptr(map).cast()) => self.add_map(map),
            _ => {}
        }
    }

    pub(crate) fn add_map(&mut self, map: &Map) {
        for (key, item) in map.iter() {
            self.add(key.value());
            self.add(item);
        }
    }

    pub(crate) fn add_bytes(&mut self, bytes: &Arc<[u8]>) {
        if self.seen.insert(bytes.as_ptr()) {
            self.text += bytes.len();
        }
    }
}

/// About the bytes that making a value took: its own, not those of its members,
/// which are mostly shared.
pub(crate) fn own_size(value: &Value) -> usize {
    const ITEM: usize = size_of::<Value>();
    match value {
        Value::String(text) => text.len() + STRING_COST,
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => items.len() * (ITEM + STRING_COST),
        Value::Map(map) => map.len() * (2 * ITEM + STRING_COST),
        _ => 0,
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
        Budget::new(limits, None)
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
    fn held_values_count_once_with_their_text() {
        let long = Value::from("x".repeat(1000));
        let list = Value::array([long.clone(), long, "short".into()]);
        let mut held = Held::default();
        held.add(&list);
        held.add(&list);
        assert_eq!((held.text, held.items), (1000 + 5 + 2 * STRING_COST, 5));
        assert!(small().hold(&held).is_err());
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
        assert!(Budget::new(Limits::default(), None).measure(&deep).is_err());
    }
}
